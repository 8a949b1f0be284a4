"""The same numbers without privacy, from a sample or a whole table: estimates and the intervals that a reader would take.

Counts: the score interval of a Poisson count; shares: Wilson's; differences of shares: Newcombe's; relative risks: by the logarithm; means:
Student's t, differences Welch's; quantiles: order statistics at the normal approximation of the binomial. Computed with pandas and scipy
from the labels, by no code of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from confide_lab.benchmarks.tables_judge.sets import Case
from confide_lab.benchmarks.tables_judge.streams import QUANTILES

__all__ = ["Ends", "differences", "intervals", "truths"]

#: Name of a number -> its interval.
Ends = Mapping[str, tuple[float, float]]
_Z = 1.959963984540054


def _cells(frame: pd.DataFrame, *attributes: str) -> dict[str, Any]:
    """Name of a cell -> its numbers of records, of all crossings of the attributes."""
    found: dict[str, Any] = {"total": len(frame)}
    for own in attributes:
        found |= {f"{own}={level}": count for level, count in frame.groupby(own, observed=True).size().items()}
    one, other = attributes
    both: Any = frame.groupby([one, other], observed=True).size()
    return found | {f"{one}={a}, {other}={b}": count for (a, b), count in both.items()}


def truths(case: Case, frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Shares of records, shares within groups, means by group and quantiles of a table or a sample, by name."""
    own = case.recipe
    cells = _cells(frame, own.group, own.by)
    shares = {name: count / len(frame) for name, count in cells.items()}
    within = {
        name: count / cells[name.split(", ")[0]]
        for name, count in cells.items()
        if name.startswith(f"{own.group}=") and ", " in name
    }
    means: dict[str, float] = {}
    quantiles: dict[str, float] = {}
    for column in case.measures:
        for cell, values in _groups(case, frame, column):
            if not len(values):
                continue
            means[_named(column, cell)] = float(values.mean())
            ranks = np.quantile(values, QUANTILES, method="inverted_cdf")
            quantiles |= {f"{column} | {_row(cell, q)}": float(v) for q, v in zip(QUANTILES, ranks, strict=True)}
    return {"shares": shares, "within": within, "means": means, "quantiles": quantiles}


def _groups(case: Case, frame: pd.DataFrame, column: str) -> list[tuple[str, np.ndarray]]:
    """Values of a column within its bounds, of all records and of each group."""
    low, high = case.recipe.columns[column]
    values = frame[column].clip(low, high)
    kept = values.notna()
    found = [("", values[kept].to_numpy(dtype=float))]
    by = frame.loc[kept, case.recipe.group].to_numpy()
    numbers = values[kept].to_numpy(dtype=float)
    for level in pd.unique(frame[case.recipe.group]):
        found.append((f"{case.recipe.group}={level}", numbers[by == level]))
    return found


def _named(column: str, cell: str) -> str:
    return f"{column} | {cell}" if cell else column


def _row(cell: str, q: float) -> str:
    return f"{cell}, {q:g}" if cell else f"{q:g}"


def _wilson(count: float, size: float) -> tuple[float, float, float]:
    """(estimate, low, high)."""
    if size <= 0:
        return float("nan"), 0.0, 1.0
    p, square = count / size, _Z**2
    middle, half = p + square / (2 * size), _Z * np.sqrt(p * (1 - p) / size + square / (4 * size**2))
    return p, (middle - half) / (1 + square / size), (middle + half) / (1 + square / size)


def intervals(case: Case, frame: pd.DataFrame) -> dict[str, dict[str, tuple[float, float]]]:
    """Kind -> name -> interval, of one sample."""
    own = case.recipe
    cells = _cells(frame, own.group, own.by)
    counts, shares = {}, {}
    for name, count in cells.items():
        half = _Z * np.sqrt(count + _Z**2 / 4)
        counts[name] = (count + _Z**2 / 2 - half, count + _Z**2 / 2 + half)
        shares[name] = _wilson(count, len(frame))[1:]
    means, quantiles, moments = {}, {}, {}
    for column in case.measures:
        for cell, values in _groups(case, frame, column):
            n = len(values)
            if n > 1:
                error = values.std(ddof=1) / np.sqrt(n)
                half = stats.t.ppf(0.975, n - 1) * error
                means[_named(column, cell)] = (values.mean() - half, values.mean() + half)
                moments[_named(column, cell)] = (values.mean(), error**2, n)
            if n:
                for q in QUANTILES:
                    quantiles[f"{column} | {_row(cell, q)}"] = _order(np.sort(values), q)
    within = {
        name: _wilson(count, cells[name.split(", ")[0]])
        for name, count in cells.items()
        if name.startswith(f"{own.group}=") and ", " in name
    }
    return {
        "counts": counts,
        "shares": shares,
        "means": means,
        "quantiles": quantiles,
        **differences(within, moments, cells),
    }


def _order(values: np.ndarray, q: float) -> tuple[float, float]:
    n, half = len(values), _Z * np.sqrt(len(values) * q * (1 - q))
    first, last = int(np.floor(n * q - half)), int(np.ceil(n * q + half))
    return float(values[max(first - 1, 0)]), float(values[min(last, n) - 1])


def differences(
    within: Mapping[str, tuple[float, float, float]],
    moments: Mapping[str, tuple[float, float, int]],
    cells: Mapping[str, Any],
) -> dict[str, dict[str, tuple[float, float]]]:
    """Intervals of every cell less, and over, every other one of the same kind, by "(cell) - (cell)"."""
    gaps: dict[str, tuple[float, float]] = {}
    ratios: dict[str, tuple[float, float]] = {}
    for a, (p, lp, up) in within.items():
        for b, (q, lq, uq) in within.items():
            if a != b and a.split(", ")[1] == b.split(", ")[1]:
                low, high = p - q - np.hypot(p - lp, uq - q), p - q + np.hypot(up - p, q - lq)
                gaps[f"({a}) - ({b})"] = (low, high)
                ratios[f"({a}) / ({b})"] = _log_ratio(p, q, cells[a], cells[b])
    welch = {}
    for a, (m, v, n) in moments.items():
        for b, (m2, v2, n2) in moments.items():
            column, _, cell = a.partition(" | ")
            other_column, _, other = b.partition(" | ")
            if column == other_column and cell and other and a != b and v + v2 > 0:
                df = (v + v2) ** 2 / (v**2 / max(n - 1, 1) + v2**2 / max(n2 - 1, 1))
                half = stats.t.ppf(0.975, df) * np.sqrt(v + v2)
                welch[f"{column}: ({cell}) - ({other})"] = (m - m2 - half, m - m2 + half)
    return {"differences of shares": gaps, "relative risks": ratios, "differences of means": welch}


def _log_ratio(p: float, q: float, count: float, other: float) -> tuple[float, float]:
    if not (count and other):
        return 0.0, float("inf")
    half = _Z * np.sqrt((1 - p) / count + (1 - q) / other)
    return p / q * np.exp(-half), p / q * np.exp(half)
