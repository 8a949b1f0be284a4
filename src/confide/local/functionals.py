r"""The mean of a function of one protected column: E h(X), from rows whose noise is Laplace, with its interval.

The column's bounds are public, so that h counts on them alone and may be continued outside as helps most:

    SL       h(x1) - lam^2/2 h''(x1), h continued by straight lines, which leave no atom in h''; for h with a second derivative
    RB       h(x1)/zeta + (1 - 1/zeta) (G h)(x1), h continued by its values at the bounds, G the mean under the second noise; any h
    optimal  the weight k of least variance where X is even on its bounds, among all that are unbiased whatever X is: with K the
             probabilities of cells of X1 given cells of X and p1 those of X1, k = K'm / p1, (K diag(1/p1) K') m = h

One column of symmetric Laplace noise is Laplace noise of the same standard deviation, whatever the other columns carry.
Source: Lu, Chen, Qiu 2026, sections 4 and 7.1 (SL, DR); RB, the continuations and the optimal weight are derived here: errata, the section
on protected records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import nan, sqrt
from typing import Any

import numpy as np
from scipy.signal import lfilter

from confide._arrays import Array
from confide.errors import PlanError
from confide.local.estimates import FEW, ProtectedEstimates, stated
from confide.local.protection import Noised, Protection
from confide.local.table import read_protected

__all__ = ["Function", "mean", "optimal_weights"]

Function = Callable[[Array], Array]

#: Cells of the optimal weight on the bounds, and on each side of them.
POINTS, OUTSIDE = 400, 320
# Cells on which the mean under the second noise is added up exactly, of the width; differences for h''.
_CELLS, _STEP = 2**16, 1e-4
# Fewer rows without noise than these, and their 1/zeta is no normal mean.
_FEW = 50
_METHODS = ("auto", "SL", "RB", "optimal")


def mean(
    data: Any, column: str, function: Function | None = None, *, method: str = "auto", name: str = ""
) -> ProtectedEstimates:
    """The population's mean of a function of one protected column, clipped to its bounds, with an interval.

    data: as `fit`. function: (n,) -> (n,), of values within the column's bounds: `lambda x: x**2`, `lambda x: x > 30`; the column itself
    when left out. method: "RB" for any function where some rows went without noise, "SL" for one with a second derivative (the choice of
    "auto", in this order), "optimal" for the least variance. name: what the function is called in the table.

    The interval covers the mean over the population, sampling and noise together. Raises `PlanError` and `ReleaseError`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(schema.sample(4_000, seed=1), schema, place, columns=["x"], noise=0.5, ledger=None)
    >>> found = cf.local.mean(place, "x", lambda x: x**2)
    >>> found.status, bool(abs(found.params.iloc[0] - 1 / 3) < 5 * found.bse.iloc[0])
    ('ok', True)
    """
    frame, told, digest = read_protected(data)
    noised = told.column(column)
    if noised is None:
        raise PlanError(f"{column!r} was published as it is, and its mean needs no correction: data[{column!r}].mean()")
    if frame.empty:
        raise PlanError("the table has no records, and nothing has a mean in it; give one that has some")
    h = (lambda x: x) if function is None else function
    called = name or (column if function is None else f"a function of {column}")
    how = _method(method, told)
    weights = _weights(how, h, noised, told.zeta, np.asarray(frame[column], dtype=np.float64))
    n = len(weights)
    spread = float(weights.var(ddof=1)) / n if n > 1 else nan
    status, reason = "ok", ""
    if told.zeta and how != "SL" and n * told.zeta < _FEW:
        status, reason = (
            "weak",
            (
                f"about {n * told.zeta:.0f} rows went without noise, and their weights of 1/zeta have no normal mean below {_FEW}; more "
                "records would do"
            ),
        )
    elif n <= FEW:
        status, reason = "weak", f"the table has {n:,} records, and a normal interval needs more than {FEW}"
    variance = spread if status == "ok" else nan
    return ProtectedEstimates(
        method=f"local mean {how}",
        response=column,
        heading=f"mean of {called}",
        names=(f"mean({called})",),
        estimates=np.array([weights.mean()]),
        covariance=np.array([[variance]]),
        noise_variance=np.array([nan if variance != variance else 0.0]),
        status=status,
        reason=reason,
        target=f"the population's mean of {called}, {column} clipped to its public bounds",
        covers="sampling and the noise of the protection",
        **stated(told, digest, n),
    )


def _method(method: str, told: Protection) -> str:
    if method not in _METHODS:
        raise PlanError(f"method must be one of {', '.join(_METHODS)}, got {method!r}; write method='auto'")
    if method == "RB" and not told.zeta:
        raise PlanError("RB weighs rows by 1 / zeta, and these records were protected with zeta = 0; write method='SL'")
    if method == "auto":
        return "RB" if told.zeta else "SL"
    return method


def _weights(how: str, function: Function, noised: Noised, zeta: float, x: Array) -> Array:
    """The weight of each row, whose mean is the estimate. On (0, 1): the column in units of its width."""
    width = noised.high - noised.low

    def h(u: Array) -> Array:
        found = np.asarray(function(noised.low + width * u), dtype=np.float64)
        if found.shape != u.shape or not np.isfinite(found).all():
            raise PlanError(
                "function takes an array of the column's values to one finite number for each; write lambda x: x**2"
            )
        return found

    u, lam = (x - noised.low) / width, noised.sd / width
    if how == "SL":
        # a further draw makes rows with and without noise alike
        again = np.random.default_rng(0)
        more = sqrt(zeta) * lam * again.laplace(scale=sqrt(0.5), size=len(u)) if zeta else 0.0
        return _bent(h, lam, u + more)
    if how == "RB":
        return h(np.clip(u, 0, 1)) / zeta + (1 - 1 / zeta) * _smoothed(h, lam * sqrt(zeta / 2), u)
    edges, kernel, _ = optimal_weights(h, lam, zeta)
    return np.asarray(kernel[np.clip(np.searchsorted(edges, u, side="right") - 1, 0, len(kernel) - 1)])


def _bent(h: Function, lam: float, u: Array) -> Array:
    """h - lam^2/2 h'', continued by straight lines. A corner shows where a finer difference is no nearer to a limit."""
    ends = h(np.array([0.0, _STEP, 1 - _STEP, 1.0]))
    slopes = (ends[1] - ends[0]) / _STEP, (ends[3] - ends[2]) / _STEP
    grid = np.linspace(2 * _STEP, 1 - 2 * _STEP, 20_001)
    coarse, fine = (np.abs(_second(h, grid, step)).max() for step in (_STEP, _STEP / 4))
    if fine > 2 * coarse + 1e-3 * (1 + np.abs(h(grid)).max()):
        raise PlanError(
            "the function has a corner or a jump, which noise on every row hides; write method='optimal' for its least variance, or "
            "protect with zeta, which leaves some rows without noise"
        )
    inside = np.clip(u, _STEP, 1 - _STEP)
    value = h(np.clip(u, 0, 1)) + slopes[0] * np.minimum(u, 0) + slopes[1] * np.maximum(u - 1, 0)
    return np.asarray(value - lam**2 / 2 * np.where((u > 0) & (u < 1), _second(h, inside, _STEP), 0.0))


def _second(h: Function, u: Array, step: float) -> Array:
    return np.asarray((h(u + step) - 2 * h(u) + h(u - step)) / step**2)


def _smoothed(h: Function, s: float, u: Array) -> Array:
    """The mean of h(clip(u + L)), L Laplace of scale s: h constant on fine cells, added up exactly from both sides."""
    r = np.exp(-1 / (_CELLS * s))
    values = h((np.arange(_CELLS) + 0.5) / _CELLS)
    first, last = (float(end) for end in h(np.array([0.0, 1.0])))
    from_left = lfilter([0, 1], [1, -r], np.append(values * (1 - r) / 2, 0.0), zi=[first / 2])[0]
    from_right = lfilter([0, 1], [1, -r], np.append(values[::-1] * (1 - r) / 2, 0.0), zi=[last / 2])[0][::-1]
    inner = np.interp(u, np.arange(_CELLS + 1) / _CELLS, from_left + from_right)
    below, above = np.exp(np.minimum(u, 0) / s), np.exp(np.minimum(1 - u, 0) / s)
    low = first * (1 - below / 2) + from_right[0] * below
    high = last * (1 - above / 2) + from_left[-1] * above
    return np.asarray(np.where(u < 0, low, np.where(u > 1, high, inner)))


def optimal_weights(h: Function, lam: float, zeta: float) -> tuple[Array, Array, float]:
    """(edges of cells, weight of each cell, its mean square where X is even on (0, 1)), of the module's `optimal`.

    h: on (0, 1); lam: noise sd in units of the width. X counts as the middle of one of 400 cells.
    """
    edges, chance, first = _cells(lam, zeta)
    middle = (np.arange(POINTS) + 0.5) / POINTS
    kernel = chance.T @ np.linalg.solve((chance / first) @ chance.T, h(middle)) / first
    return edges, kernel, float(first @ kernel**2)


@lru_cache(maxsize=8)
def _cells(lam: float, zeta: float) -> tuple[Array, Array, Array]:
    """(edges, probabilities of cells of X1 given cells of X, those of X1 where X is even)."""
    scale = lam / sqrt(2)
    inner = np.linspace(0, 1, POINTS + 1)
    outer = np.geomspace(1 / POINTS, 25 * scale, OUTSIDE)
    edges = np.concatenate([-outer[::-1], inner, 1 + outer])
    middle = (inner[1:] + inner[:-1]) / 2
    away = (edges[None, :] - middle[:, None]) / scale
    tail = np.exp(-np.abs(away)) / 2
    reached = np.where(away < 0, tail, 1 - tail)
    reached[:, 0], reached[:, -1] = 0, 1
    chance = (1 - zeta) * np.diff(reached, axis=1)
    chance[np.arange(POINTS), OUTSIDE + np.arange(POINTS)] += zeta
    return edges, chance, chance.mean(axis=0)
