"""A profile whose values are expensive, from a few hundred of them."""

from __future__ import annotations

from collections.abc import Callable
from math import asinh

import numpy as np

from confide._lazy import later
from confide.guarantees.curves.curve import Floats

__all__ = ["interpolated"]

interpolate = later("scipy.interpolate")

_SMALLEST = 5e-324


def interpolated(profile: Callable[[Floats], Floats], high: float, *, points: int = 193) -> Callable[[Floats], Floats]:
    """A spline of log delta on [0, high], raised by four times its largest error halfway between its points.

    profile: takes and returns arrays; smooth and above 0. Points are dense near 0 and spread out where a tail is nearly a power. Twice
    the points are taken until that raise is below 1e-5 of delta.
    """
    scale = min(1.0, high / 8)

    def spread(count: int) -> Floats:
        return np.asarray(scale * np.sinh(np.linspace(0.0, asinh(high / scale), count)))

    at = spread(points)
    logs = np.log(np.maximum(profile(at), _SMALLEST))
    while True:
        curve = interpolate.CubicSpline(at, logs)
        between = spread(2 * len(at) - 1)[1::2]
        halfway = np.log(np.maximum(profile(between), _SMALLEST))
        error = float(np.abs(halfway - curve(between)).max())
        at, logs = np.append(at, between), np.append(logs, halfway)
        order = np.argsort(at)
        at, logs = at[order], logs[order]
        if error < 1e-5 or len(at) > 3000:
            break
    finest, raised = interpolate.CubicSpline(at, logs), 1 + 4 * error

    def value(epsilons: Floats) -> Floats:
        return np.asarray(np.minimum(np.exp(finest(np.minimum(epsilons, high))) * raised, 1.0))

    return value
