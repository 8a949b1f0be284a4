"""Grids for privacy losses: default window and step from a profile alone, and its convex envelope."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, log, nextafter

import numpy as np
from numpy.typing import NDArray

from confide._special import ndtri
from confide.guarantees.losses.convolution import TAIL

__all__ = ["HIGHEST", "RESOLUTION", "convex_slopes", "default_step", "default_window", "gaussian_scale"]

Floats = NDArray[np.float64]

# A step is at most this part of the loss's spread. Connecting the dots adds about step^2/6 to the variance of the loss,
# here 4e-8 of it, and epsilon moves by at most that share.
RESOLUTION = 2.0**-11
_MOST_POINTS = 1 << 18  # of one loss by default
HIGHEST = 690.0  # largest epsilon of the grid of one loss: e^epsilon is a float; mass above counts as infinite


def gaussian_scale(total_variation: float) -> float:
    """mu with 2 Phi(mu/2) - 1 = total variation, a public scale of a loss; kept inside what a grid can follow.

    >>> round(gaussian_scale(0.3829249225480262), 9)
    1.0
    """
    return float(min(2 * ndtri(min((1 + total_variation) / 2, 1 - 1e-16)), 32.0))


def default_step(total_variation: float, top: float) -> float:
    """The top divided by a multiple of 256, so that it stays a grid point when the step is widened later.

    >>> default_step(0.3829249225480262, 11.0) <= 2**-11
    True
    """
    wanted = max(RESOLUTION * gaussian_scale(total_variation), 2 * top / _MOST_POINTS, 2.0**-50)
    return float(top / (256 * ceil(top / wanted / 256)))


def default_window(delta: Callable[[float], float]) -> float:
    """Where the default window of a profile ends.

    Where delta has come down to its last value, for a bounded loss, to the last bit; else where delta is below 1e-25; or,
    for a heavy tail, where moving the mass above to infinity changes delta(epsilon) by less than 1e-25 for every epsilon up
    to twice the median loss and 30: it changes it by delta(top) e^(epsilon - top).

    >>> default_window(lambda epsilon: max(0.0, 0.5 - epsilon))
    0.5
    """
    interest = 30.0 + 2 * _first(lambda epsilon: delta(epsilon) <= 0.5)
    light = _first(lambda epsilon: delta(epsilon) <= TAIL)
    heavy = _first(lambda epsilon: log(max(delta(epsilon), 1e-300)) + interest - epsilon <= log(TAIL), interest)
    rest = delta(HIGHEST)
    bounded = _first(lambda epsilon: delta(epsilon) <= rest, exact=True)
    return min(light, heavy, bounded, HIGHEST)


def _first(holds: Callable[[float], bool], start: float = 1e-9, *, exact: bool = False) -> float:
    """An epsilon from which on a property holds, at most one percent too large; infinity where there is none."""
    low, high = 0.0, start
    while not holds(high):
        if high >= HIGHEST:
            return inf
        low, high = high, min(2 * high, HIGHEST)
    while high - low > 0.01 * high or (exact and nextafter(low, inf) < high):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
        if high <= 1e-9:
            break
    return high


def convex_slopes(rises: Floats, widths: Floats) -> Floats:
    """Slopes of the greatest convex function below points with these rises, capped at 0 (pooling of neighbours).

    >>> convex_slopes(np.array([-1.0, -3.0, 0.5]), np.ones(3)).tolist()
    [-2.0, -2.0, 0.0]
    """
    slopes: Floats = rises / widths
    if np.all(np.diff(slopes) >= 0):
        return np.asarray(np.minimum(slopes, 0.0))
    heights: list[float] = []
    lengths: list[float] = []
    counts: list[int] = []
    for rise, width in zip(rises.tolist(), widths.tolist(), strict=True):
        number = 1
        while heights and heights[-1] * width >= rise * lengths[-1]:
            rise, width, number = rise + heights.pop(), width + lengths.pop(), number + counts.pop()
        heights.append(rise)
        lengths.append(width)
        counts.append(number)
    slopes = np.repeat(np.array(heights) / np.array(lengths), counts)
    return np.asarray(np.minimum(slopes, 0.0))
