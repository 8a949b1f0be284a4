"""t, paired and F tests on released means, with p-values that agree with the intervals.

Two groups (t) and more (F): Wald's quadratic form of the contrasts of k means, with the noise that least squares makes them share. Its
s^2 is that of the intervals, with half the SD of its noise. The null distribution is 1,999 draws at the pooled mean with each group's
variance: xbar normal, s^2 chi-square, Q = N (1 - s^2 - xbar^2), each with separate noise, read as the release is. For two groups the
variance has half the SD of its noise here as well, because a noisy one is too small as often as too large. Groups may have unequal
variances; F is of groups with n distinguishable from zero (`results/hypothesis_tests`). The interval of a difference uses the quantile of
the same draws, so p < 0.05 agrees with the 95% interval. It is shorter than that of `diff`, where each end allows for skewness.

One mean, and paired: the p-value is 1 - the largest level with an interval (`intervals.MeanSums`) that excludes the hypothesis, also if
skewness makes an interval asymmetric. The printed statistic is Wald's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.errors import PlanError
from confide.methods.tables.comparing.chi_square import TOO_FEW, said_of, tested
from confide.methods.tables.intervals import MeanSums
from confide.methods.tables.mean_table import MeasuredTable
from confide.noise import keyed_generator
from confide.results.hypothesis_tests import LOST, HypothesisTests, too_few, without
from confide.results.pages.content import Column
from confide.sums.cells.cell_sums import Axes

_RUNS = 1999
_INVERTED = "the interval, inverted"
# Quantiles that are tried from above: .02 to 26, the last one p = 1e-150.
_FINEST, _LADDER = 0.02, 33


def groups(table: MeasuredTable, attribute: str | None, column: int, *, names: str) -> HypothesisTests:
    """Whether the means of the levels of an attribute are equal: t for two levels (first minus second), F for more."""
    axes = _one_attribute(table, attribute)
    own = table.layout.crossing.attributes[axes[0]]
    if names == "t" and own.size != 2:
        raise PlanError(
            f"a t test compares two groups, and {own.name!r} has {own.size}",
            f"ask the table for test('f', {own.name!r})",
        )
    if axes not in table.marginals:
        raise PlanError(
            f"the table has no means by {own.name} alone", f"plan Means('{table.measured[column]} ~ {own.name}')"
        )
    sums, noise_n, noise_s = table.sums(axes, column), *_noises(table, axes, column)
    title = f"{table.measured[column]} by {own.name}"
    heading = f"Welch {'t' if names == 't' else 'F'} test: mean {title}"
    told = sums.n >= LOST * np.sqrt(sums.v0)
    lost = [f"{own.name}={label}" for label, seen in zip(own.labels, told, strict=True) if not seen]
    weak = too_few(lost) if told.sum() < 2 else ""
    if names != "t":
        title += without(lost)
        if weak:
            return tested(table, (title,), [nan], [nan], [nan], "none", weak=weak, statistic="F", heading=heading)
        sums, noise_n, noise_s = (
            sums.at(lambda part: part[told]),
            *(one[np.ix_(told, told)] for one in (noise_n, noise_s)),
        )
    else:
        told = np.ones_like(told)
    skewed = not table.in_range(column) and bool(table.weak(axes, column)[told].any())
    observed = _wald(_stacked(sums), noise_n, noise_s)
    generator = keyed_generator(table.drawn_sha256, f"{names} test {axes} {column}")
    weights = 1.0 / (sums.variance / sums.size)
    pooled = float((weights * sums.mean).sum() / weights.sum())
    simulated = _wald(_drawn(table, sums, (axes, told), pooled, generator, wide=names == "t"), noise_n, noise_s)
    pvalue = (1 + float((simulated >= observed[0]).sum())) / (_RUNS + 1)
    null = f"simulated, {_RUNS:,} draws at the pooled mean"
    if names != "t":
        df = int(told.sum()) - 1
        return tested(
            table,
            (title,),
            [observed[0] / df],
            [df],
            [pvalue],
            null,
            skewed=skewed,
            statistic="F",
            lost=lost,
            heading=heading,
            compared=_compared(table, axes, column, told),
        )
    half, gap = table._scale(column)[1], float(sums.mean[0] - sums.mean[1])
    alone = 2 * table.quantile(0.05) * half * float(np.sqrt((sums.quiet.sampling_variance / sums.size).sum()))
    root, falling = float(np.sqrt(observed[0])), np.sort(simulated)[::-1]

    def limits(alpha: float) -> tuple[Array, Array]:
        rank = int(alpha * (_RUNS + 1) + 1e-9)
        # what the draws cannot tell is everything that bounds allow
        reach = half * abs(gap) / root * float(np.sqrt(falling[rank - 1])) if rank and root > 0 else 2 * half
        middle = half * gap
        return np.atleast_1d(max(middle - reach, -2 * half)), np.atleast_1d(min(middle + reach, 2 * half))

    return tested(
        table,
        (f"{title}: {own.labels[0]} - {own.labels[1]}",),
        [np.sign(gap) * root],
        [nan],
        [nan if weak else pvalue],
        null,
        weak=weak,
        skewed=skewed,
        statistic="t",
        estimates=np.array([half * gap]),
        limits=limits,
        alone=np.array([alone]),
        heading=heading,
        compared=_compared(table, axes, column, told, (f"{own.labels[0]} - {own.labels[1]}", half * gap, limits)),
    )


def _compared(
    table: MeasuredTable,
    axes: Axes,
    column: int,
    told: NDArray[np.bool_],
    difference: tuple[str, float, Callable[[float], tuple[Array, Array]]] | None = None,
) -> Callable[[float], Sequence[Column]]:
    """The printed rows of a test: n and mean of each group with its interval, of the population; difference: name, value, interval."""
    own = replace(table, inference="population") if table.inference == "dataset" else table
    names, labels = (
        (own.layout.crossing.attributes[axes[0]].name, own.layout.crossing.attributes[axes[0]].labels)
        if axes
        else ("column", (own.measured[column],))
    )

    def columns(alpha: float) -> Sequence[Column]:
        means, errors = own.points(axes, column)
        numbers = own.sums(axes, column).n, means, errors, *own.ends(axes, column, own.quantile(alpha))
        n, mean, error, low, high = ([float(value) for value in part[told]] for part in numbers)
        head = [label for label, kept in zip(labels, told, strict=True) if kept]
        rows: list[list[Any]] = [head, n, mean, error, low, high]
        if difference is not None:
            name, gap, limits = difference
            below, above = limits(alpha)
            for row, value in zip(rows, (name, None, gap, None, float(below[0]), float(above[0])), strict=True):
                row.append(value)
        return (
            Column(names, rows[0], "text"),
            Column("n", rows[1], "number", whole=True),
            Column("estimate", rows[2], head="mean"),
            Column("std_err", rows[3], "std_err"),
            Column("ci_low", rows[4], "interval"),
            Column("ci_high", rows[5], "interval"),
        )

    return columns


def one_mean(table: MeasuredTable, value: float, column: int) -> HypothesisTests:
    """Whether the mean of all records is `value`; of a difference of two columns, the paired t test."""
    sums, (middle, half) = table.sums((), column), table._scale(column)
    title = f"mean of {table.measured[column]}"
    lost = bool((sums.n < LOST * np.sqrt(sums.v0)).any())
    target = (float(value) - middle) / half
    if not -1 <= target <= 1:
        raise PlanError(f"the value {value:g} is outside the bounds of {table.measured[column]}; no test is needed")

    def ends(z: float) -> tuple[float, float]:
        low, high = sums.interval(z, _part(table))
        return middle + half * float(low[0]), middle + half * float(high[0])

    low, high = sums.quiet.interval(table.quantile(0.05), _part(table))

    return tested(
        table,
        (title,),
        [float((sums.mean[0] - target) / sums.standard_error(_part(table))[0])],
        [nan],
        [nan if lost else level_left_out(ends, float(value))],
        _INVERTED,
        weak=TOO_FEW if lost else "",
        skewed=not table.in_range(column) and bool(table.weak((), column).any()),
        statistic="t",
        heading=f"t test: mean {table.measured[column]}, null value {value:g}",
        compared=_compared(table, (), column, np.array([True])),
        estimates=table.points((), column)[0],
        limits=_limits(table, ends),
        alone=half * (high - low),
    )


def _part(table: MeasuredTable) -> float:
    """Tests are of the population, whatever the table covers."""
    return 1.0 if table.inference == "dataset" else table.part


def _limits(
    table: MeasuredTable, ends: Callable[[float], tuple[float, float]]
) -> Callable[[float], tuple[Array, Array]]:
    def found(alpha: float) -> tuple[Array, Array]:
        low, high = ends(table.quantile(alpha))
        return np.atleast_1d(low), np.atleast_1d(high)

    return found


def level_left_out(ends: Callable[[float], tuple[float, float]], value: float) -> float:
    """The p-value of an interval: two tails at the largest normal quantile z whose interval, ends(z), leaves the value out.

    >>> round(level_left_out(lambda z: (1.0 - 0.5 * z, 1.0 + 0.5 * z), 0.0), 4)
    0.0455
    """

    def out(z: float) -> bool:
        low, high = ends(z)
        return not low <= value <= high

    # intervals grow with z, but for the smallest, whose skewness moves them as a whole
    steps = [_FINEST * 1.25**k for k in range(_LADDER)]
    last = next((k for k in reversed(range(_LADDER)) if out(steps[k])), None)
    if last is None:
        return 1.0
    low, high = steps[last], steps[min(last + 1, _LADDER - 1)]
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if out(middle) else (low, middle)
    return float(2 * special.ndtr(-low))


def _one_attribute(table: MeasuredTable, attribute: str | None) -> Axes:
    if attribute is None:
        if len(table.layout.crossing.attributes) != 1:
            raise PlanError(f"name the attribute whose groups are compared: {said_of(table)}")
        return (0,)
    return table.layout.axes(attribute)


def _noises(table: MeasuredTable, axes: Axes, column: int) -> tuple[Array, Array]:
    """Noise covariances of the groups' N and S."""
    cells = table.margins.cells(axes)
    n, s = np.empty((cells, cells)), np.empty((cells, cells))
    for one in range(cells):
        for other in range(cells):
            pair = ((axes, [one]), (axes, [other]))
            n[one, other] = table.margins.covariance(*pair, counts=True) / table.rows.count**2
            s[one, other] = table.margins.covariance(*pair) / table.rows.steps**2
    if table.rows.counts_missing(column):
        n = n + s * (table.rows.steps / float(1 << 20)) ** 2
    return n, s


def _stacked(sums: MeanSums) -> MeanSums:
    """One run: (1, groups)."""
    return sums.at(lambda part: np.asarray(part)[None])


def _drawn(
    table: MeasuredTable,
    sums: MeanSums,
    groups_: tuple[Axes, NDArray[np.bool_]],
    mean: float,
    generator: np.random.Generator,
    *,
    wide: bool,
) -> MeanSums:
    """Draws of a release under equal means, (runs, groups). groups_: the marginal, and which of its cells; wide:
    of records with the s^2 of the intervals, and its allowance for noise."""
    size = np.maximum(np.rint(sums.effective), 2.0)
    square = sums.sampling_variance * (sums.variance / sums.plain_variance if wide else 1.0)
    shape = (_RUNS, len(size))
    xbar = np.clip(mean + generator.standard_normal(shape) * np.sqrt(square / np.maximum(sums.size, 2.0)), -1.0, 1.0)
    own = square * generator.chisquare(np.broadcast_to(size - 1, shape)) / size
    own = np.minimum(own, np.maximum(1.0 - xbar**2, 0.0))
    axes, told = groups_

    def noise(counts: bool = False) -> Array:
        return table.margins.noise([axes], _RUNS, generator, counts=counts)[0].reshape(_RUNS, -1)[:, told]

    noises = [noise(counts=True) / table.rows.count, *(noise() / table.rows.steps for _ in range(2))]
    if table.layout.weight is not None:
        more = [noise() for _ in range(3)]
        noises += [more[0] / table.rows.count, more[1] / table.rows.steps, more[2] / table.rows.steps]
    return sums.redrawn(xbar, own, noises)


def _wald(sums: MeanSums, noise_n: Array, noise_s: Array) -> Array:
    """The quadratic form of the contrasts of the groups' means, (runs,)."""
    mean, size = sums.mean, sums.size
    groups_ = mean.shape[1]
    noise = noise_s[None] + mean[:, :, None] * mean[:, None, :] * noise_n[None]
    whole = noise / (size[:, :, None] * size[:, None, :])
    place = np.arange(groups_)
    whole[:, place, place] += sums.variance / size
    contrasts = np.hstack([np.ones((groups_ - 1, 1)), -np.eye(groups_ - 1)])
    gap = mean @ contrasts.T
    turned: Any = contrasts @ whole @ contrasts.T
    return np.asarray(np.einsum("ri,ri->r", gap, np.linalg.solve(turned, gap[:, :, None])[:, :, 0]))
