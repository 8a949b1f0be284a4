"""About how large persons' scores are, by cell, from the released moments: what limits and scales are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confide.methods.tables.survey.estimand import Sums

__all__ = ["pooled", "shift_of", "spreads", "squares_of"]

Array = NDArray[np.float64]

# The least sd in half-widths; noise sds of a count at which a cell's own spread counts as much as that of all.
_LEAST, _BORROWED = 1e-3, 10.0


def spreads(sums: Sums, theta: Array) -> tuple[Array, float]:
    """(a person's sd at omega = 1 in each cell, the longest score in sds).

    Scores that reach into other cells have one sd for all, those of indicators 1, of which none is longer than sqrt(2).
    """
    of = sums.of
    if of.kind in ("shares", "counts"):
        return np.ones(len(theta)), float(np.sqrt(2.0))
    if of.kind == "totals":
        own = of.layout.measures[of.column]
        most = abs(own.middle) + own.half + (float(np.sqrt(theta @ theta)) if of.base is not None else 0.0)
        mean, variance = pooled(sums)
        root = max(float(np.sqrt(mean**2 + variance)), _LEAST * own.half)
        return np.full(len(theta), root), most / root
    if of.kind == "ratios":
        y, x = of.layout.measures
        both = pooled(sums)[1] + theta**2 * pooled(sums, 1)[1]
        spread = np.sqrt(np.maximum(both, (_LEAST * y.half) ** 2))
        reach = abs(y.middle) + y.half + np.abs(theta) * (abs(x.middle) + x.half)
        return spread, float(np.max(reach / spread))
    own = of.layout.measures[of.column]
    spread = own.half * np.maximum(_of_cells(sums), _LEAST)
    return spread, float(np.max((own.half + np.abs(theta - own.middle)) / spread))


def _of_cells(sums: Sums) -> Array:
    """The sd of a column in half-widths, in each cell, moved towards that of all where the cell is near its noise."""
    n, _, variance = _moments(sums)
    _, _, overall = _moments(sums.overall)
    borrowed = _BORROWED * np.sqrt(sums.margins.variance(sums.of.axes)) / (sums.rows.count if sums.rows else sums.one)
    weight = np.maximum(n, 0.0)
    return np.asarray(np.sqrt((weight * variance + borrowed * overall) / (weight + borrowed + 1e-9)))


def _moments(sums: Sums, column: int | None = None) -> tuple[Array, Array, Array]:
    """(sum omega, mean, variance) of u, by cell."""
    assert sums.rows is not None
    of = sums.of
    table = sums.margins.table(of.axes)
    table = table.reshape(len(table), -1)
    start = sums.rows.starts[of.column if column is None else column]
    n = np.maximum(sums.persons, 1e-9) if column is None else np.maximum(table[0] / sums.rows.count, 1e-9)
    mean = np.clip(table[start] / sums.rows.steps / n, -1.0, 1.0)
    variance = np.clip(1.0 - table[start + 1] / sums.rows.steps / n - mean**2, 0.0, 1.0)
    return n, mean, variance


def pooled(sums: Sums, column: int | None = None) -> tuple[float, float]:
    """(mean, variance) of a column among all persons, in its units."""
    own = sums.of.layout.measures[sums.of.column if column is None else column]
    _, mean, variance = _moments(sums.overall, column)
    return own.middle + own.half * float(mean[0]), own.half**2 * float(variance[0])


def shift_of(sums: Sums) -> float:
    """The length of the mean score of a total without a public N, in its units."""
    return abs(pooled(sums)[0]) if sums.rows is not None else 1.0


def squares_of(sums: Sums, theta: Array) -> Array:
    """sum omega^2 (y - theta)^2 of each cell, from the released moments, for means."""
    assert sums.rows is not None
    own, rows, start = sums.of.layout.measures[sums.of.column], sums.rows, sums.rows.starts[sums.of.column]
    table = sums.margins.table(sums.of.axes)
    table = table.reshape(len(table), -1)
    if sums.of.layout.weight is not None:
        half = len(table) // 2
        table = table[:half] - table[half:]
    n = table[0] / rows.count
    if rows.counts_missing(sums.of.column):
        n = n - table[start + 4] / float(1 << 20)
    s, q = table[start] / rows.steps, table[start + 1] / rows.steps
    m = (theta - own.middle) / own.half
    return np.asarray(own.half**2 * np.maximum(n - q - 2 * m * s + m * m * n, 0.0))
