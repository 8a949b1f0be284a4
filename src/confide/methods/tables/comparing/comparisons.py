"""Differences, ratios and odds ratios of cells by the MOVER, and rates standardized to public weights.

Two cells of one marginal are compared by their intervals. Their estimates are correlated by the noise that consistent margins share, and
by sampling, if two shares are of the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.methods.tables.draw import check_one_level, level_axis
from confide.methods.tables.intervals import Cells, cell_name, cells_of, difference, ratio
from confide.results.pages.table import DOMINATES, dominated, noise_share
from confide.sums.cells.cell_sums import Axes

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# A stratum below so many noise sds has a variance of a share of 1/4; one below the other number makes the result weak.
_LOST, _THIN = 3.0, 10.0
# Of the intervals whose noise share is told.
_ALPHA = 0.05


def compared(table: Cells, how: str, first: Any, second: Any, column: int, alpha: float) -> pd.DataFrame:
    """Columns estimate, ci_low, ci_high and flags, one row for each comparison. how: "diff", "ratio" or "odds".

    Flags are those of either cell, and of dominating noise in the interval of a difference.
    """
    pairs = _pairs(table, first, second)
    check_one_level(table.layout, table.inference, pairs)
    z = table.quantile(alpha)
    names, rows = [], []
    for axes, one, other in pairs:
        estimate, low, high = table.compared(axes, column, z)
        if how != "diff":
            # logarithms begin at 0, those of odds end at 1
            most = 1.0 if how == "odds" else np.inf
            estimate, low, high = np.clip((estimate, low, high), 0.0, most)
        parts = [(estimate[cell], low[cell], high[cell]) for cell in (one, other)]
        rho = correlation(table, axes, column, one, other)
        if how == "diff":
            least, most = table.bounds(column)
            estimates = table.points(axes, column)[0]
            _, below, above = np.clip(difference(parts[0], parts[1], rho), least - most, most - least)
            found: tuple[Any, ...] = (np.clip(estimates[one] - estimates[other], below, above), below, above)
            share = noise_share(above - below, _alone(table, axes, column, one, other, z)) if table.part else 0.0
            marks = [DOMINATES] if dominated(share) else []
        else:
            marks = []
            _check_positive(table, column)
            found = ratio(parts[0], parts[1], rho, odds=how == "odds")
        sign = {"diff": "-", "ratio": "/", "odds": "/"}[how]
        names.append(f"({label(table, axes, one)}) {sign} ({label(table, axes, other)})")
        flags = " ".join(filter(None, (_flag(table, axes, column, (one, other)), *marks)))
        rows.append([*(float(v) for v in found), flags])
    return pd.DataFrame(rows, index=names, columns=["estimate", "ci_low", "ci_high", "flags"])


def differences_alone(table: Cells, first: Any, second: Any, column: int) -> list[float]:
    """How wide the 95% intervals of `compared`'s differences would be by sampling alone."""
    z = table.quantile(_ALPHA)
    return [_alone(table, axes, column, one, other, z) for axes, one, other in _pairs(table, first, second)]


def _alone(table: Cells, axes: Axes, column: int, one: int, other: int, z: float) -> float:
    estimate = table.compared(axes, column, z)[0]
    low, high = table.sampled(axes, column, z, apart=True)
    parts = [(estimate[cell], low[cell], high[cell]) for cell in (one, other)]
    _, below, above = difference(parts[0], parts[1], correlation(table.quiet, axes, column, one, other))
    return float(above - below)


def _flag(table: Cells, axes: Axes, column: int, cells: tuple[int, int]) -> str:
    """The flags of a table's rows that also speak of what is compared."""
    chosen = list(cells)
    counts, sd = table.counts(axes)[chosen], np.sqrt(table.count_variance(axes))
    # a share near 0 or 1 of few records makes a difference short; the interval of the cell itself is not
    thin = table.weak(axes, column)[chosen].any() or (table.part > 0 and (counts < _THIN * sd).any())
    found = {"count_below_noise": (counts < _LOST * sd).any(), "skewed_few_records": thin}
    return " ".join(name for name, there in found.items() if there)


def correlation(table: Cells, axes: Axes, column: int, one: int, other: int) -> float:
    """Of two cells' estimates."""
    if one == other:
        return 1.0
    _, errors = table.points(axes, column)
    size = float(errors[one] * errors[other])
    return float(np.clip(table.covariance(axes, column, one, other) / size, -1.0, 1.0)) if size > 0 else 0.0


def label(table: Cells, axes: Axes, cell: int) -> str:
    """A cell by its levels."""
    return cell_name(table.layout, axes, cell)


def _pairs(table: Cells, first: Any, second: Any) -> list[tuple[Axes, int, int]]:
    if second is not None:
        (axes, one), (other_axes, other) = cells_of(table, first), cells_of(table, second)
        if axes != other_axes:
            raise PlanError(
                "two cells of one marginal are compared, got cells of two",
                "name a level of the same attributes in both, as in diff({'region': 'N'}, {'region': 'S'})",
            )
        return [(axes, one, other)]
    if not isinstance(first, str):
        raise PlanError(
            "a comparison takes two cells, or the name of an attribute",
            "write diff({'region': 'N'}, {'region': 'S'}), or diff('region')",
        )
    (axis,) = table.layout.axes(first)
    candidates = [axes for axes in table.marginals if axis in axes]
    axes = max(candidates, key=len)
    shape = table.layout.crossing.shape(axes)
    cells = np.moveaxis(np.arange(int(np.prod(shape))).reshape(shape), axes.index(axis), 0)
    base = cells[0].ravel()
    return [(axes, int(one), int(other)) for level in cells[1:] for one, other in zip(level.ravel(), base, strict=True)]


def _check_positive(table: Cells, column: int) -> None:
    if table.bounds(column)[0] < 0:
        raise PlanError(
            f"a ratio of means needs a column that cannot be negative, and the bounds of {table.measured[column]!r} begin at "
            f"{table.bounds(column)[0]:g}",
            "ask for diff(...)",
        )


def standardised(table: Any, weights: Mapping[str, float], over: str, column: int, alpha: float) -> pd.DataFrame:
    """sum_k w_k of the cells' shares or means over the levels of an attribute, for each combination of the others.

    Delta method; a stratum with n below three SDs of its noise has the largest possible variance. Columns estimate, std_err, ci_low,
    ci_high and status: "imprecise" if a stratum has n below ten SDs of its noise.
    """
    (axis,) = table.layout.axes(over)
    own = table.layout.crossing.attributes[axis]
    unknown = [name for name in weights if str(name) not in own.labels]
    if unknown or set(map(str, weights)) != set(own.labels) or not all(float(v) >= 0 for v in weights.values()):
        raise PlanError(
            f"weights must give each level of {over!r} a share of at least 0: {', '.join(own.labels)}; got {dict(weights)!r}"
        )
    total = sum(float(v) for v in weights.values())
    share = np.array([float(weights[name]) for name in own.labels]) / total
    axes = max((axes for axes in table.marginals if axis in axes), key=len)
    if axis == level_axis(table.layout):
        check_one_level(table.layout, table.inference, [(axes, 0, table.layout.crossing.cells(axes) - 1)])
    others = tuple(place for place in axes if place != axis)
    shape, at = table.layout.crossing.shape(axes), axes.index(axis)
    estimate, errors, sizes, noise_sd, widest = table.strata(axes, column)
    lost = sizes < _LOST * noise_sd
    variance = np.where(lost, widest, errors**2)

    def moved(values: Array) -> Array:
        return np.moveaxis(values.reshape(shape), at, 0).reshape(len(share), -1)

    mean = share @ moved(estimate)
    error = np.sqrt(share**2 @ moved(variance))
    thin = moved(sizes < _THIN * noise_sd)[share > 0].any(axis=0)
    z = table.quantile(alpha)
    least, most = table.bounds(column)
    index = [label(table, others, cell) for cell in range(mean.size)]
    return pd.DataFrame(
        {
            "estimate": mean,
            "std_err": error,
            "ci_low": np.clip(mean - z * error, least, most),
            "ci_high": np.clip(mean + z * error, least, most),
            "status": np.where(thin, "imprecise", "valid"),
        },
        index=index,
    )
