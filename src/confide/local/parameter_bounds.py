"""Bounds of the coefficients of a fit to protected rows: as they are asked for, and in the units in which a fit is done.

The theory of corrected losses is that of a compact set of parameters (Lu, Chen, Qiu 2026, Theorem 5.3). A corrected loss may fall without
end beyond it, because its bend is weighed negatively. A minimum on the edge of bounds gives no interval, because the mean score is not zero
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from confide._arrays import Array
from confide._helpers import near_match
from confide.errors import PlanError
from confide.guarantees.validation import is_finite
from confide.local.fits.fitting import BOX, Fitted, Model

#: One pair for all coefficients, or coefficient -> pair.
Bounds = tuple[float, float] | Mapping[str, tuple[float, float]]

_EXAMPLE = "write bounds=(-2, 2) for all coefficients, or bounds={'x': (0, 2)}"
_ROUNDINGS = 1e-6


def checked_bounds(bounds: Any) -> Bounds | None:
    """Bounds as they are kept; `PlanError` for anything but pairs of finite numbers, the lower one first.

    >>> checked_bounds({"x": [0, 2]}), checked_bounds((-1, 1))
    ({'x': (0.0, 2.0)}, (-1.0, 1.0))
    """
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        return {str(name): _pair(own, f"the bounds of {name!r}") for name, own in bounds.items()}
    return _pair(bounds, "bounds")


def _pair(given: Any, what: str) -> tuple[float, float]:
    ends = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    if len(ends) != 2 or not all(map(is_finite, ends)) or not ends[0] < ends[1]:
        raise PlanError(f"{what} must be two finite numbers, the lower one first, got {given!r}", _EXAMPLE)
    return float(ends[0]), float(ends[1])


def of_intercept(bounds: Bounds | None) -> bool:
    """Whether bounds are of the intercept, too: it is then fitted as it stands, not at the middle of the terms."""
    return bounds is not None and (not isinstance(bounds, Mapping) or "Intercept" in bounds)


def scaled_bounds(bounds: Bounds | None, model: Model) -> tuple[Array, Array] | None:
    """(low, high), shapes (p,), in the units of a fit; a coefficient without bounds has those of every fit.

    Raises `PlanError` for a name that is not a coefficient.
    """
    if bounds is None:
        return None
    named = bounds if isinstance(bounds, Mapping) else dict.fromkeys(model.names, bounds)
    unknown = [name for name in named if name not in model.names]
    if unknown:
        raise PlanError(
            f"bounds are of {unknown[0]!r}, which is not a coefficient{near_match(unknown[0], model.names)}; there are: "
            f"{', '.join(model.names)}",
            "name a coefficient as it is printed there",
        )
    ends = np.tile([[-BOX], [BOX]], len(model.names))
    for k, name in enumerate(model.names):
        if name in named:
            ends[:, k] = (np.array(named[name]) - model.shift[k]) / model.to_units[k, k]
    return ends[0], ends[1]


def on_edge(done: Fitted, ends: tuple[Array, Array] | None, model: Model) -> str:
    """Why there is no answer, where the corrected loss is least on the edge of the bounds; empty where it is not."""
    if ends is None or done.identified or not np.isfinite(done.theta).all():
        return ""
    low, high = ends
    off = _ROUNDINGS * (high - low)
    names = [
        name
        for name, out in zip(model.names, (done.theta <= low + off) | (done.theta >= high - off), strict=True)
        if out
    ]
    if not names:
        return ""
    return (
        f"the corrected loss is least at the edge of the bounds of {', '.join(names)}, where the normal interval is not valid. "
        "Wider bounds, more records or less noise would give an answer"
    )
