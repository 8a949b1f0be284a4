"""Rows of Table 1 from a release. All records are the sum of the groups, with the sum of their noise.

What Table 1 is about: its groups, its rows, and the exact sums behind each.

Rows of Table 1: what a numeric column or a level says of all records and of each group, and standardized differences.

d = D/S, D the difference of two means, S^2 the mean of two variances. By the delta method its variance is

    V(D)/S^2 + d^2 V(S^2)/(4 S^4) - d C(D, S^2)/S^3,

V(S^2) a quarter of the sum of the variances of s_g^2, C half of C(m_1, s_1^2) - C(m_2, s_2^2); each is sampling, (m4 - s^4)/n and m3/n, and
noise. Of levels m = p and s^2 = p (1 - p), so that all follows from the variance of p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, isqrt, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.core import Release, Statistic
from confide.methods.quantiles.draw import CumulativeRounds
from confide.methods.quantiles.reading import QuantileGroup
from confide.methods.tables.intervals import MeanSums, share_interval
from confide.methods.tables.reading import WeightedSums, mean_weights
from confide.methods.tables.results import UNKNOWN, alone_parts, missing_parts, noisy_numbers
from confide.results.pages.table import DASH, noise_share
from confide.schema import Schema
from confide.sums.cells.cell_sums import Attribute, CellCounts, CellIndex, CellTotals, Crossing
from confide.sums.cells.moments import Measure, MomentRows, count_steps
from confide.sums.cells.weighted_cells import CountRows, WeightedRows
from confide.sums.coding import BITS, BOUND

#: Integer steps of a record of the largest weight, and of a missing value.
STEPS = float(1 << BITS)


@dataclass(frozen=True)
class TableOneAbout:
    """What the rows are about. groups: the crossing right of ~, or none; order: the columns as they were named."""

    schema: Schema
    groups: Crossing
    order: tuple[str, ...]
    measures: tuple[Measure, ...]
    levels: tuple[Attribute, ...]
    medians: tuple[CumulativeRounds, ...]
    weight: Measure | None = None

    @property
    def heaviest(self) -> float:
        """The largest weight; 1 without weights."""
        return 1.0 if self.weight is None else float(self.weight.term.high)

    @property
    def step(self) -> float:
        """Integer steps of a record of the largest weight in counts."""
        return 1.0 if self.weight is None else STEPS

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(len(self.groups.attributes)))

    @property
    def cells(self) -> int:
        return self.groups.cells(self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the groups."""
        titles = [own.name for own in self.groups.attributes]
        return tuple(
            ", ".join(f"{title}={label}" for title, label in zip(titles, labels, strict=True))
            for labels in self.groups.labels(self.axes)
        )

    @property
    def rows(self) -> int:
        return len(self.measures) + len(self.levels) + len(self.medians)

    def moments(self, relation: str) -> MomentRows:
        """All numeric columns by group; T^2 : S^2 is a tenth to the share of a row, and k : 1 under substitution, where it is free."""
        if self.apart:
            return MomentRows(self.groups, self.axes, self.measures, count_steps(1, relation))
        squared = len(self.measures) * BOUND if relation == "substitute" else self.rows * BOUND // 9
        return MomentRows(self.groups, self.axes, self.measures, isqrt(squared))

    @property
    def apart(self) -> bool:
        """Whether the groups' numbers of records are a separate release."""
        return not self.measures or (len(self.measures) == 1 and self.measures[0].drops)

    def counted(self, attribute: Attribute | None = None) -> Statistic:
        """Numbers of records by group, and within the groups by a categorical column."""
        crossing = self.groups if attribute is None else Crossing((*self.groups.attributes, attribute), self.schema)
        axes = tuple(range(len(crossing.attributes)))
        if self.weight is None:
            return CellCounts(CellIndex(crossing, axes))
        return CellTotals(WeightedRows(crossing, axes, CountRows(crossing, axes), self.weight))

    def summed(self, relation: str) -> Statistic:
        """The numeric columns by group."""
        rows = self.moments(relation)
        return CellTotals(rows if self.weight is None else WeightedRows(self.groups, self.axes, rows, self.weight))


# Sds of its noise that a variance stands above, for differences in units of it, and where a distribution tells it as well.
_STANDS = 5.0
# Half of a 95 % interval in standard errors.
_Z = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Cells:
    """Numbers of one row: of all records, then of each group; (g + 1,) each. texts: as they are printed.

    share: the privacy share of 95% intervals; weak: cells of means of too few records for so skewed a column, none by default.
    """

    name: str
    estimates: Array
    errors: Array
    low: Array
    high: Array
    open: NDArray[np.bool_]
    texts: tuple[str, ...]
    share: Array
    weak: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Row:
    """A row. part: the share of the sampling variance that counts, 0 for exactly these records."""

    name: str


@dataclass(frozen=True, eq=False)
class Numeric(Row):
    """A numeric column: sums in [-1, 1] units of all records and each group; quartiles: cumulative counts of the same, or none.

    An SD that does not exceed its noise is not printed: what is left of its square may be the least that there can be. Where
    there are quartiles it is then that of their distribution (`QuantileGroup.sd`).
    """

    sums: MeanSums
    middle: float
    half: float
    part: float
    quartiles: tuple[QuantileGroup, ...] = ()

    @property
    def sizes(self) -> Array:
        return self.sums.n

    @property
    def size_variance(self) -> Array:
        return self.sums.v0

    @cached_property
    def binned(self) -> NDArray[np.bool_]:
        """Where the SD is that of the distribution: sums that pass at three SDs of their noise were mostly helped by it."""
        stands = self.sums.clear & (self.sums.plain_variance > _STANDS * np.sqrt(self.sums.variance_noise))
        return np.asarray(~stands & bool(self.quartiles))

    @cached_property
    def sd(self) -> Array:
        """In the column's units, NaN where noise hides it."""
        found = self.half * self.sums.sd
        return np.where(self.binned, [group.sd for group in self.quartiles], found) if self.quartiles else found

    def cells(self, alpha: float) -> list[Cells]:
        """The mean with its SD, and the median with its quartiles."""
        z = float(-special.ndtri(alpha / 2))
        low, high = self.sums.interval(z, self.part)
        mean, sd = self.middle + self.half * self.sums.mean, self.sd
        texts = tuple(
            f"{_short(m, s)} ({DASH if np.isnan(s) else _short(s, s)})" for m, s in zip(mean, sd, strict=True)
        )
        own = Cells(
            f"{self.name}: mean",
            mean,
            self.half * self.sums.standard_error(self.part),
            self.middle + self.half * low,
            self.middle + self.half * high,
            (low <= -1) & (high >= 1),
            texts,
            _share(*(one.interval(_Z, self.part) for one in (self.sums, self.sums.quiet))),
            self.sums.skewed if self.part else None,
        )
        return [own, self._median(alpha)] if self.quartiles else [own]

    def _median(self, alpha: float) -> Cells:
        found = [group.quantiles(np.array([0.25, 0.5, 0.75]), alpha) for group in self.quartiles]
        texts = []
        for one in found:
            first, middle, third = (_short(v, one.estimates[2] - one.estimates[0]) for v in one.estimates)
            texts.append(f"{middle} [{first}, {third}]")
        estimates, low, high, open_ = (
            np.array([getattr(one, name)[1] for one in found]) for name in ("estimates", "low", "high", "open")
        )
        share = np.concatenate([group.noise_share(np.array([0.5])) for group in self.quartiles])
        return Cells(f"{self.name}: median", estimates, np.full(len(found), nan), low, high, open_, tuple(texts), share)

    def difference(self, one: int, other: int, alpha: float) -> tuple[float, float, float]:
        """Standardized, between two groups: estimate, low, high; nothing where noise hides a variance.

        There S is what noise made of it, and no interval about D/S holds d. At five SDs, because of releases of which few pass most were
        helped by noise (`_STANDS`).
        """
        sums = self.sums
        pair = [one, other]
        square = sums.plain_variance[pair]
        if not (square > _STANDS * np.sqrt(sums.variance_noise[pair])).all():
            return nan, -inf, inf
        sampled = self.part / sums.size[pair]
        m, q = sums.mean[pair], 1.0 - square - sums.mean[pair] ** 2
        v0, v1 = sums.v0[pair] / sums.size[pair] ** 2, sums.v1[pair] / sums.size[pair] ** 2
        of_mean = sampled * sums.variance[pair] + v1 + m * m * v0
        of_square = sampled * sums.spread_sampling[pair] + sums.variance_noise[pair]
        together = sampled * sums.joint_sampling[pair] - 2 * m * v1 - m * (q + 2 * m * m) * v0
        return standardised(m, square, of_mean, of_square, together, alpha)


@dataclass(frozen=True, eq=False)
class Level(Row):
    """A level of a categorical column: numbers with it and with any level, of all records and each group; noise variance of one number.

    With weights numbers are sums of omega = w/W, weights: sum omega^2/sum omega of the records with the level and of all of them, and
    heaviest is W.
    """

    counts: Array
    bases: Array
    variance: Array
    levels: int
    part: float
    weights: tuple[Array | float, Array | float] = (1.0, 1.0)
    heaviest: float = 1.0

    @property
    def sizes(self) -> Array:
        return self.bases

    @property
    def size_variance(self) -> Array:
        return self.variance * self.levels

    @property
    def _share(self) -> Array:
        return np.clip(self.counts / np.maximum(self.bases, 1.0), 0.0, 1.0)

    @property
    def _noise(self) -> Array:
        """Noise variance of Y - p N, N the sum of all levels."""
        p = self._share
        return np.asarray(self.variance * (1 - 2 * p + self.levels * p * p) / np.maximum(self.bases, 1.0) ** 2)

    @property
    def _square(self) -> Array:
        """N times the sampling variance of the share: p (1 - p) without weights."""
        own, of_base = self.weights
        p = self._share
        return np.asarray(p * (own + (of_base - 2 * own) * p))

    def cells(self, alpha: float) -> list[Cells]:
        """The share; printed with the number."""
        z, p = float(-special.ndtri(alpha / 2)), self._share
        noises = self.variance, self.variance * self.levels, self.variance
        low, high = share_interval(self.counts, self.bases, *noises, z, self.part, *self.weights)
        errors = np.sqrt(self.part * self._square / np.maximum(self.bases, 1.0) + self._noise)
        numbers = self.heaviest * self.counts
        texts = tuple(f"{count:,.0f} ({share:.1%})" for count, share in zip(numbers, p, strict=True))
        # counts of records alone lie between 0 and those of all
        bases, nothing = np.maximum(self.bases, 1.0), (0.0 * self.variance,) * 3
        share = _share(
            share_interval(self.counts, self.bases, *noises, _Z, self.part, *self.weights),
            share_interval(np.clip(self.counts, 0.0, bases), bases, *nothing, _Z, self.part, *self.weights),
        )
        return [Cells(self.name, p, errors, low, high, (low <= 0) & (high >= 1), texts, share)]

    def difference(self, one: int, other: int, alpha: float) -> tuple[float, float, float]:
        """Standardized, between two groups: estimate, low, high; nothing where noise hides the variances."""
        pair = [one, other]
        p = self._share[pair]
        square = p * (1 - p)
        if not square.sum() > _STANDS * float(np.sqrt(((1 - 2 * p) ** 2 * self._noise[pair]).sum())):
            return nan, -inf, inf
        of_mean = (
            self.part * np.maximum(self._square[pair], 1e-4) / np.maximum(self.bases[pair], 1.0) + self._noise[pair]
        )
        slope = 1 - 2 * p
        return standardised(p, square, of_mean, slope**2 * of_mean, slope * of_mean, alpha)


def _share(whole: tuple[Array, Array], alone: tuple[Array, Array]) -> Array:
    """The privacy share, from ends with noise and without."""
    return noise_share(whole[1] - whole[0], alone[1] - alone[0])


def standardised(
    means: Array, squares: Array, of_mean: Array, of_square: Array, together: Array, alpha: float
) -> tuple[float, float, float]:
    """d with its interval, from two means, variances, and the variances and covariances of their estimates."""
    scale = float(np.sqrt(squares.mean()))
    d = float(means[0] - means[1]) / scale
    cross = -d * float(together[0] - together[1]) / 2 / scale**3
    variance = float(of_mean.sum()) / scale**2 + d * d * float(of_square.sum()) / 16 / scale**4 + cross
    half = float(-special.ndtri(alpha / 2)) * float(np.sqrt(max(variance, 0.0)))
    return d, d - half, d + half


def _short(value: float, spread: float) -> str:
    """A number with as many digits as its spread deserves."""
    if not np.isfinite(value) or not spread > 0:
        return f"{float(f'{value:.4g}'):,.10g}"
    digits = max(0, 1 - int(np.floor(np.log10(spread))))
    return f"{value:,.{min(digits, 8)}f}"


@dataclass(frozen=True)
class Reader:
    """The rows of a release. All records are the sum of the groups, with the sum of their noise."""

    release: Release
    about: TableOneAbout
    part: float

    def read(self) -> tuple[tuple[Row, ...], Array, float]:
        """(rows, numbers of records: all, then each group; the noise SD of a group's)."""
        rows: list[Row] = []
        for name in self.about.order:
            rows += [self._numeric(k) for k, own in enumerate(self.about.measures) if own.name == name]
            rows += [row for own in self.about.levels if own.name == name for row in self._levels(own)]
        sizes, variance = self._sizes
        return tuple(rows), np.append(sizes.sum(), sizes), float(np.sqrt(variance))

    def missing(self) -> tuple[tuple[str, str], ...]:
        """What becomes of missing values: of a group's column the record, of a row's the value, in numbers where they are released."""
        about = self.about
        columns = {name: about.schema[name] for own in about.measures for name in own.columns}
        columns |= {own.column: about.schema[own.column] for own in about.levels}
        apart = [own.name for own in about.measures if own.drops]
        apart += [own.name for own in about.levels if about.schema[own.column].on_missing == "drop"]
        kept = {name: column for name, column in columns.items() if column.on_missing != "drop"}
        parts = missing_parts(about.groups, [] if about.weight is None else [about.weight])
        parts += [UNKNOWN] if any("excluded" in part for part in parts) else []
        parts += alone_parts(kept, apart, noisy_numbers(self.without))
        return (("Missing", "; ".join(parts)),) if parts else ()

    @property
    def without(self) -> dict[str, tuple[float, float]]:
        """(number of records without a value, its noise SD) by column; nothing of weighted records."""
        if self.about.weight is not None:
            return {}
        found, (sizes, variance), cells = {}, self._sizes, self.about.cells
        for k, own in enumerate(self.about.measures):
            table, rows, noise = self._moments
            if rows.counts_missing(k):
                found[own.name] = float(table[rows.starts[k] + 4].sum()) / STEPS, sqrt(cells * noise) / STEPS
            elif own.drops:
                number = float(sizes.sum() - table[0].sum() / rows.count)
                found[own.name] = number, sqrt(cells * (variance + noise / rows.count**2))
        for level in self.about.levels:
            if self.about.schema[level.column].on_missing == "drop":
                noisy = self.release[f"levels of {level.name}"]
                sd = sqrt(cells * (variance + level.size * noisy.variance))
                found[level.name] = float(sizes.sum() - noisy.decode().sum()), sd
        return found

    @cached_property
    def _moments(self) -> tuple[Array, MomentRows, float]:
        rows = self.about.moments(self.release.plan.relation)
        noisy = self.release["moments"]
        return noisy.decode().reshape(-1, self.about.cells), rows, noisy.variance

    @cached_property
    def _sizes(self) -> tuple[Array, float]:
        if self.about.apart:
            groups, step = self.release["groups"], self.about.step
            return groups.decode().reshape(-1, self.about.cells)[0] / step, groups.variance / step**2
        table, rows, variance = self._moments
        return table[0] / rows.count, variance / rows.count**2

    def _numeric(self, column: int) -> Row:
        table, rows, variance = self._moments
        measure = self.about.measures[column]
        v0, v1 = variance / rows.count**2, variance / rows.steps**2
        if rows.counts_missing(column):
            v0 += variance / STEPS**2
        first = _sums(table, rows, column)
        cells = np.append(float(self.about.cells), np.ones(self.about.cells))
        n, s, q, c, d = first
        sums = MeanSums(n, s, q, c, d, cells * v0, cells * v1)
        if self.about.weight is not None:
            # sums of omega^2 f are those of omega f less those of omega (1 - omega) f, which stand behind them
            n2, s2, q2, c2, d2 = first - _sums(table[rows.block :], rows, column)
            sums = WeightedSums(n, s, q, c, d, cells * v0, cells * v1, n2, s2, q2, c2, d2)
        return Numeric(measure.name, sums, measure.middle, measure.half, self.part, self._quartiles(measure))

    def _quartiles(self, measure: Measure) -> tuple[QuantileGroup, ...]:
        """The distribution of all records and of each group, nothing of a column without a median."""
        axes = self.about.axes
        groups = [("", (), 0), *((name, axes, cell) for cell, name in enumerate(self.about.names))]
        asked = (own for own in self.about.medians if own.rows.measure.name == measure.name)
        return tuple(group for own in asked for group in own.read(self.release, self.part, groups))

    def _levels(self, own: Attribute) -> list[Row]:
        noisy = self.release[f"levels of {own.name}"]
        halves = noisy.decode().reshape(-1, self.about.cells, own.size) / self.about.step
        halves = np.concatenate([halves.sum(axis=1, keepdims=True), halves], axis=1)
        table, bases = halves[0], halves[0].sum(axis=1)
        cells = np.append(float(self.about.cells), np.ones(self.about.cells))
        variance = cells * noisy.variance / self.about.step**2
        found: list[Row] = []
        for k, label in enumerate(own.labels):
            weights: tuple[Array | float, Array | float] = (1.0, 1.0)
            if self.about.weight is not None:
                weights = _mean_weights(halves, k, np.sqrt(variance))
            name = f"{own.name}={label}"
            found.append(Level(name, table[:, k], bases, variance, own.size, self.part, weights, self.about.heaviest))
        return found


def _sums(table: Array, rows: MomentRows, column: int) -> Array:
    """(N, S, Q, C, D) of all records and each group, (5, groups + 1), from the numbers of a block on."""
    start = rows.starts[column]
    n = table[0] / rows.count
    if rows.counts_missing(column):
        n = n - table[start + 4] / STEPS
    s, q, c, d = table[start : start + 4] / rows.steps
    return np.stack([np.append(one.sum(), one) for one in (n, s, q, c, d)])


def _mean_weights(halves: Array, level: int, noise_sd: Array) -> tuple[Array, Array]:
    """sum omega^2/sum omega of the records with a level and of all that have one, (groups + 1,) each, from (2, groups + 1, levels)."""
    n, squares = halves[0], halves[0] - halves[1]
    overall = float(np.clip(squares[0].sum() / max(float(n[0].sum()), 1.0), 0.01, 1.0))
    of_base = mean_weights(n.sum(axis=1), squares.sum(axis=1), noise_sd * n.shape[1] ** 0.5, overall)
    own = mean_weights(n[:, level], squares[:, level], noise_sd, overall)
    share = np.clip(n[:, level] / np.maximum(n.sum(axis=1), 1.0), 0.0, 1.0)
    # the base has the records of the level, at least
    return own, np.maximum(of_base, share * own)
