"""Widths that the formulas of docs/methods/tables.md give at the true numbers: what an interval costs when nothing in it is estimated.

Counts, shares and means: their sets at the expected counts and sums. What is wider or narrower in a release is so because noise stands in
the variance, the skewness or the number of records that its interval is made of, or because a bound cuts it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.methods.tables.intervals import MeanSums, count_interval, share_interval
from confide_lab.benchmarks.tables_judge.sets import Case

__all__ = ["widths"]

_Z = 1.959963984540054


def widths(case: Case, kind: str, table: Any, n: int) -> np.ndarray:
    """(rows,) of a table of counts, shares or means of samples of n records."""
    make = {"counts": _counts, "shares": _shares, "means": _means}[kind.split(",")[0]]
    return make(case, table, n)


def _expected(case: Case, table: Any, axes: Any) -> np.ndarray:
    """The share of records in each cell of a marginal."""
    names = [table.layout.crossing.attributes[axis].name for axis in axes]
    if not names:
        return np.ones(1)
    counted = case.frame.groupby(names, observed=True).size() / len(case.frame)
    keys = table.layout.crossing.labels(axes)
    return np.array([float(counted.get(key if len(names) > 1 else key[0], 0.0)) for key in keys])


def _counts(case: Case, table: Any, n: int) -> np.ndarray:
    parts = []
    for axes in table.marginals:
        low, high = count_interval(n * _expected(case, table, axes), table.count_variance(axes), _Z)
        parts.append(high - low)
    return np.concatenate(parts)


def _shares(case: Case, table: Any, n: int) -> np.ndarray:
    parts = []
    for axes in table.marginals:
        y = n * _expected(case, table, axes)
        _, _, v_count, v_base, both = table.parts(axes)
        low, high = share_interval(y, np.full(len(y), float(n)), v_count, v_base, both, _Z)
        parts.append(high - low)
    return np.concatenate(parts)


def _means(case: Case, table: Any, n: int) -> np.ndarray:
    parts = []
    for column, name in enumerate(case.measures):
        values = case.frame[name].clip(*case.recipe.columns[name])
        measure = table.layout.measures[column]
        u = (values - measure.middle) / measure.half
        for axes in table.marginals:
            sums = table.sums(axes, column)
            groups = [u] if not axes else [u[case.frame[case.recipe.group] == level[0]] for level in
                                           table.layout.crossing.labels(axes)]  # fmt: skip
            for v0, v1, own in zip(sums.v0, sums.v1, groups, strict=True):
                parts.append(measure.half * _width(own.dropna().to_numpy(), len(u), n, float(v0), float(v1)))
    return np.array(parts)


def _width(u: np.ndarray, whole: int, n: int, v0: float, v1: float) -> float:
    """Of the interval of a mean at the expected sums of the whole table's places."""
    if not len(u):
        return float("nan")
    size, v = n * len(u) / whole, u * u
    n_, s, q, c, d = (np.array([size * part.mean()]) for part in (np.ones_like(u), u, 1 - v, u * (1 - v), v * (1 - v)))
    own = MeanSums(n_, s, q, c, d, np.array([v0]), np.array([v1]))
    low, high = own.interval(_Z)
    return float(high[0] - low[0])
