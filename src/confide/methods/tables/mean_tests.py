"""t, paired and F tests on released means: Wald's statistic with the variance of the intervals, its null distribution simulated.

The difference of two means has the variance s1^2/n1 + s2^2/n2 and the noise that least squares makes them share; the means of k groups are
compared by the quadratic form of their contrasts. s^2 is that of the intervals (with half its noise sd), so that p-value and interval
agree.

Null distribution: 1,999 draws at the pooled mean with each group's own variance: xbar normal, s^2 chi-square, Q = N (1 - s^2 - xbar^2),
each with noise of its own, read as the release is. Groups may have unequal variances.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError
from confide.methods.tables.independence import tested
from confide.methods.tables.intervals import MeanSums, difference
from confide.noise import keyed_generator
from confide.results.hypothesis import HypothesisTests

if TYPE_CHECKING:
    from confide.methods.tables.means import MeanTable

__all__ = ["groups", "one_mean"]

Array = NDArray[np.float64]

_RUNS, _LOST = 1999, 3.0


def groups(table: MeanTable, attribute: str | None, column: int, *, names: str) -> HypothesisTests:
    """Whether the means of the levels of an attribute are equal: t for two levels (first minus second), F for more."""
    axes = _one_attribute(table, attribute)
    own = table.layout.crossing.attributes[axes[0]]
    if names == "t" and own.size != 2:
        raise PlanError(
            f"a t test compares two groups, and {own.name!r} has {own.size}; ask for test('f', {own.name!r})"
        )
    if axes not in table.marginals:
        raise PlanError(
            f"the table has no means by {own.name} alone; plan Means('{table.measured[column]} ~ {own.name}')"
        )
    sums, noise_n, noise_s = table.sums(axes, column), *_noises(table, axes, column)
    title = f"{table.measured[column]} by {own.name}"
    skewed = bool(table.weak(axes, column).any())
    if (sums.n < _LOST * np.sqrt(sums.v0)).any():
        return tested(table, (title,), [nan], [nan], [nan], "none", weak=True, statistic=names)
    observed = _wald(_stacked(sums), noise_n, noise_s)
    generator = keyed_generator(table.release_sha256, f"{names} test {attribute} {column}")
    weights = 1.0 / (sums.variance / sums.size)
    pooled = float((weights * sums.mean).sum() / weights.sum())
    simulated = _wald(_drawn(table, sums, axes, pooled, generator), noise_n, noise_s)
    pvalue = (1 + float((simulated >= observed[0]).sum())) / (_RUNS + 1)
    null = f"simulated, {_RUNS:,} draws at the pooled mean"
    if names != "t":
        df = own.size - 1
        return tested(table, (title,), [observed[0] / df], [df], [pvalue], null, skewed=skewed, statistic="F")
    sign = np.sign(sums.mean[0] - sums.mean[1])

    def limits(alpha: float) -> tuple[Array, Array]:
        low, high = table.ends(axes, column, table.quantile(alpha))
        parts = [(table.points(axes, column)[0][k], low[k], high[k]) for k in (0, 1)]
        _, low, high = difference(parts[0], parts[1])
        return np.atleast_1d(low), np.atleast_1d(high)

    estimate = np.array([table.points(axes, column)[0] @ [1.0, -1.0]])
    name = f"{title}: {own.labels[0]} - {own.labels[1]}"
    return tested(
        table,
        (name,),
        [sign * np.sqrt(observed[0])],
        [nan],
        [pvalue],
        null,
        skewed=skewed,
        statistic="t",
        estimates=estimate,
        limits=limits,
    )


def one_mean(table: MeanTable, value: float, column: int) -> HypothesisTests:
    """Whether the mean of all records is `value`; of a difference of two columns, the paired t test."""
    sums, (middle, half) = table.sums((), column), table._scale(column)
    title = f"mean of {table.measured[column]}"
    if (sums.n < _LOST * np.sqrt(sums.v0)).any():
        return tested(table, (title,), [nan], [nan], [nan], "none", weak=True, statistic="t")
    target = (float(value) - middle) / half
    if not -1 <= target <= 1:
        raise PlanError(f"the value {value:g} is outside the bounds of {table.measured[column]}; no test is needed")
    generator = keyed_generator(table.release_sha256, f"mean test {value} {column}")

    def statistics(own: MeanSums) -> Array:
        return np.asarray((own.mean - target) / own.standard_error())

    observed = float(statistics(sums)[0])
    simulated = np.abs(statistics(_flat(_drawn(table, sums, (), target, generator))))
    pvalue = (1 + float((simulated >= abs(observed)).sum())) / (_RUNS + 1)

    def limits(alpha: float) -> tuple[Array, Array]:
        return table.ends((), column, table.quantile(alpha))

    null = f"simulated, {_RUNS:,} draws at {value:g}"
    estimates = table.points((), column)[0]
    return tested(
        table,
        (title,),
        [observed],
        [nan],
        [pvalue],
        null,
        skewed=bool(table.weak((), column).any()),
        statistic="t",
        estimates=estimates,
        limits=limits,
    )


def _one_attribute(table: MeanTable, attribute: str | None) -> Axes:
    if attribute is None:
        if len(table.layout.crossing.attributes) != 1:
            raise PlanError("name the attribute whose groups are compared: test('t', 'sex')")
        return (0,)
    return table.layout.axes(attribute)


def _noises(table: MeanTable, axes: Axes, column: int) -> tuple[Array, Array]:
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
    n, s, q, c, d = (np.asarray(part)[None] for part in (sums.n, sums.s, sums.q, sums.c, sums.d))
    return MeanSums(n, s, q, c, d, sums.v0, sums.v1)


def _flat(sums: MeanSums) -> MeanSums:
    """Of one group, (runs, 1), as (runs,)."""
    n, s, q, c, d = (part[:, 0] for part in (sums.n, sums.s, sums.q, sums.c, sums.d))
    return MeanSums(n, s, q, c, d, sums.v0[0], sums.v1[0])


def _drawn(table: MeanTable, sums: MeanSums, axes: Axes, mean: float, generator: np.random.Generator) -> MeanSums:
    """Draws of a release under equal means, (runs, groups)."""
    size = np.maximum(np.rint(sums.size), 2.0)
    square = sums.plain_variance
    shape = (_RUNS, len(size))
    xbar = np.clip(mean + generator.standard_normal(shape) * np.sqrt(square / size), -1.0, 1.0)
    own = square * generator.chisquare(np.broadcast_to(size - 1, shape)) / size
    own = np.minimum(own, np.maximum(1.0 - xbar**2, 0.0))
    parts = [np.broadcast_to(size, shape), size * xbar, size * (1.0 - own - xbar**2)]
    noise_n = table.margins.noise([axes], _RUNS, generator, counts=True)[0].reshape(shape) / table.rows.count
    noises = [table.margins.noise([axes], _RUNS, generator)[0].reshape(shape) / table.rows.steps for _ in range(2)]
    n, s, q = (part + noise for part, noise in zip(parts, (noise_n, *noises), strict=True))
    nothing = np.zeros(shape)
    return MeanSums(n, s, q, nothing, nothing, sums.v0, sums.v1)


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
