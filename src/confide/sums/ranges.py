"""Ranges of numeric columns, found privately: public bins, noisy numbers of records in them, and the range that follows.

Guarantee: for each column the statistic is K h, h the numbers of records in m public bins and K the integer strategy of
cumulative counts (`confide.sums.distributions.cumulative`). A record is one column of K, of squared length at most q_m; two of them
differ by at most 2 q_m, because no entry of K is negative. Each of C columns has its own noise, for 1/C of the share of the square
of mu, so that squares of mu add up to that share. A value that is missing adds nothing. What follows is post-processing.

Bins are even in asinh(x/u): linear near 0, logarithmic beyond. What lies outside counts in the end bins. Ends are the last edges
beyond which nothing is seen above two noise standard deviations. They are widened until the noise is small beside sampling, and rounded
outwards to two digits of the width. Source: derived in confide from the strategy of Fichtenberger, Henzinger, Upadhyay 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import asinh, ceil, floor, log10, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.core import Allowance, Method, Noisy, Plan, RecordMap, Statistic
from confide.core.exact import digest, exact_products
from confide.core.lost_values import SHARE
from confide.core.ranges import MOST_BEYOND, ColumnRange, RangeStep, as_fine, fine_row, from_fine
from confide.errors import PlanError
from confide.schema import Integer, Numeric, Schema
from confide.schema.formulas.conditions import parse_predicate
from confide.sums.cells.moments import Measure
from confide.sums.coding import BITS
from confide.sums.distributions.cumulative import Strategy, strategy

#: Bins of a column with two declared bounds; of one without.
BINS, OPEN_BINS = 256, 1024
# Of columns without bounds: sizes that the grid tells from 0.
_LEAST = 1e-6
# Bits of a code within a cell: 6 of the mantissa remain. Of more bins in one than so many, a search is as fast.
_CELL, _STEPS = 35, 8
# Of the square of mu, for all columns of a request; for means of several.
_SHARE, _SHARE_OF_SEVERAL, _SEVERAL = Fraction(1, 10), Fraction(1, 5), 4
# Columns of at most so many values have nothing to find.
_FEW_VALUES = 16
# The .95 quantile of the largest |noise|/sd over all edges of both ends, for shares that hold at a chosen edge.
_BAND = {BINS: 3.76, OPEN_BINS: 4.05}
# Bounds that are closer together than this share of the larger one are kept: codes of values in order hold 41 bits.
_CLOSEST = 2.0**-20
# A tail count is seen where it exceeds so many of its noise sds; below so large a hidden tail more noise is borne, and none is found.
_SEEN, _HIDDEN, _MOST_HIDDEN = 2.0, 0.02, 0.25
# Noise of a mean over its standard error of sampling, up to which a range is widened; relative noise of the variance, up to which it is.
_KAPPA, _SPREAD = 0.6, 0.15
# Means: so many standard deviations from the mean, or where the last values are seen. Intervals take no variance below 1e-4 of the
# square of half the range, so that they would be too wide in ranges of more than a hundred.
_FARTHEST = 50.0
# Coefficients: ends at PER sqrt(mu n) sds, within NEAR and FAR, unless more than TRIM of the records, or PART of those outside the
# fullest bin, would lie beyond.
_NEAR, _FAR, _PER, _TRIM, _PART = 4.0, 8.0, 0.08, 0.01, 0.1
# The noise variance of a mean of values at +-half, over the square of half/(mu n), under add-remove.
_MEAN = 1.5
_VARIANCE = 1.22


@lru_cache(maxsize=64)
def edges_of(column: Numeric | Integer) -> tuple[float, ...]:
    """Public edges of the bins of a column, in ascending order, rounded to 12 digits.

    >>> edges = edges_of(Numeric(0, 1e6))
    >>> len(edges), edges[0], edges[-1], round(edges[128])
    (257, 0.0, 1000000.0, 691)
    """
    declared = all(column.declared)
    unit = (column.high - column.low) / 2**20 if declared else _LEAST
    count = BINS if declared else OPEN_BINS
    inner = unit * np.sinh(np.linspace(asinh(column.low / unit), asinh(column.high / unit), count + 1))[1:-1]
    rounded = {float(f"{edge:.12g}") for edge in inner}
    return (column.low, *sorted(edge for edge in rounded if column.low < edge < column.high), column.high)


# The first cell; the bin in which each cell begins; the first code of each bin but the first, and one above all; how many bins begin
# inside a cell at most.
_Cells = tuple[int, NDArray[np.int16], Whole, int]


@lru_cache(maxsize=16)
def _cells_of(edges: tuple[float, ...]) -> _Cells:
    """For `BinRows.placed`, which looks a bin up in even cells of codes, because a search among edges takes longer."""
    inner = np.array(edges[1:-1])
    starts = as_fine(inner).astype(np.int64)
    starts += from_fine(starts.astype(np.float64)) < inner
    # -0.0 is in the bin of 0.0
    starts -= from_fine((starts - 1).astype(np.float64)) >= inner
    within = -(-starts >> _CELL)
    first = int(starts[0] >> _CELL)
    begun = np.bincount(within - first, minlength=int(starts[-1] >> _CELL) - first + 1)
    return first, np.cumsum(begun, dtype=np.int16), np.append(starts, 1 << 53), int(begun[1:].max(initial=0))


@dataclass(frozen=True)
class BinRows(RecordMap):
    """One record as the column of K for its bin."""

    name: str
    column: Numeric | Integer

    @property
    def columns(self) -> tuple[str, ...]:
        return (fine_row(self.name),)

    @cached_property
    def bins(self) -> int:
        """How many there are."""
        return len(edges_of(self.column)) - 1

    @property
    def strategy(self) -> Strategy:
        return strategy(self.bins)

    @property
    def width(self) -> int:
        return 3 * self.bins

    @property
    def l2_squared(self) -> int:
        return self.strategy.longest

    @cached_property
    def l1(self) -> int:
        return int(self.strategy.table.sum(axis=0).max())

    @cached_property
    def digest(self) -> str:
        return digest(["range rows", self.name, [edge.hex() for edge in edges_of(self.column)]])

    def placed(self, codes: Array) -> Whole:
        """The bin of each record, the number of bins for one without a value."""
        first, cells, starts, steps = self._cells
        whole = codes[0].astype(np.int64)
        place: NDArray[Any]
        if steps > _STEPS:
            place = np.searchsorted(starts[:-1], whole, side="right")
        else:
            cell = whole >> _CELL
            cell -= first
            place = cells.take(cell, mode="clip")
            for _ in range(steps):
                place += whole >= starts.take(place, mode="clip")
        place[codes[0] < 0] = self.bins
        return place

    @cached_property
    def _cells(self) -> _Cells:
        return _cells_of(edges_of(self.column))

    def __call__(self, codes: Array) -> Array:
        table = np.concatenate([self.strategy.table, np.zeros((self.width, 1), dtype=np.int64)], axis=1)
        return np.asarray(table[:, self.placed(codes)], dtype=np.float64)


@dataclass(frozen=True)
class TermRows(BinRows):
    """The same of a derived term, from the codes of its columns."""

    measure: Measure

    @property
    def columns(self) -> tuple[str, ...]:
        return self.measure.columns

    @cached_property
    def digest(self) -> str:
        return digest(["range rows of a term", self.measure.digest, [edge.hex() for edge in edges_of(self.column)]])

    def placed(self, codes: Array) -> Whole:
        coded, keep = self.measure.design.codes(codes)
        values = self.measure.term.grid.decode(np.maximum(coded[-1], 0.0))
        place = np.searchsorted(edges_of(self.column)[1:-1], values, side="right")
        return place if keep is None else np.where(keep, place, self.bins)


@dataclass(frozen=True)
class RangeCounts(Statistic):
    """K h of one column: the map's rows added up, from the histogram. Two rows, none of them negative, differ by at most 2 q squared."""

    map: BinRows
    norm: ClassVar[str] = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.l2_squared * (2 if relation == "substitute" else 1))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" else 1))

    def zero(self) -> Any:
        return np.zeros(self.map.bins, dtype=np.int64)

    def update(self, state: Any, codes: Array) -> Any:
        bins = self.map.bins
        return state + np.bincount(self.map.placed(codes), minlength=bins + 1)[:bins]

    def merge(self, a: Any, b: Any) -> Any:
        return a + b

    def value(self, state: Any) -> NDArray[Any]:
        """Entries of K are at most 2^20: int64 holds the sums of 2^42 records, and doubles those of 2^32."""
        own, few = self.map.strategy, state.sum() < 1 << 32 and exact_products()
        return np.asarray((own.doubles if few else own.table) @ state, dtype=np.int64).astype(object)


# the rule -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Width:
    """How wide a range may be: what its sums are for.

    mu: of the sums that follow, for one record. `cells`: of the finest table shown. `noise`: the variances of a count and of a sum of
    places in [-1, 1], of means and totals, None of coefficients. `whole`: nothing that is seen is trimmed, and the lower end stays.
    """

    mu: float
    cells: float = 1.0
    noise: tuple[float, float] | None = None
    whole: bool = False

    @classmethod
    def of_means(cls, noise: tuple[float, float], cells: float) -> Width:
        """Of means in so many cells, whose counts and sums have these noise variances."""
        return cls(sqrt(_MEAN / noise[1]), cells, noise)

    def of_mean(self, low: float, high: float, mean: float, size: float) -> float:
        """The standard deviation of the noise of a mean of so many records between these bounds."""
        assert self.noise is not None
        half, off = (high - low) / 2, mean - (high + low) / 2
        return sqrt(half * half * self.noise[1] + off * off * self.noise[0]) / size

    def reach(self, n: float) -> float:
        """Coefficients: so many standard deviations from the mean, of n records."""
        return min(_FAR, max(_NEAR, _PER * sqrt(self.mu * n)))


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy numbers of records in bins, (m,), with edges (m + 1,). `sd`: of the noise of the sums up to and from each edge."""

    counts: Array
    edges: Array
    up_sd: Array
    down_sd: Array

    @classmethod
    def of(cls, noisy: Noisy, edges: tuple[float, ...]) -> Counts:
        """By least squares from what was drawn."""
        own = strategy(len(edges) - 1)
        unit = noisy.variance / 4.0**BITS
        down = np.maximum(own.total + own.upto - 2 * own.with_all, 0.0)
        return cls(own.counts(noisy.decode()), np.array(edges), np.sqrt(unit * own.upto), np.sqrt(unit * down))

    @cached_property
    def up(self) -> Array:
        """Records below each edge."""
        return np.concatenate([[0.0], np.cumsum(self.counts)])

    @cached_property
    def down(self) -> Array:
        """Records from each edge on."""
        return np.concatenate([np.cumsum(self.counts[::-1])[::-1], [0.0]])

    @property
    def n(self) -> float:
        """All records, at least one."""
        return max(float(self.up[-1]), 1.0)

    @property
    def hidden(self) -> float:
        """The share of records that noise can hide at an end."""
        middle = [(len(self.edges) - 1) // 2, len(self.edges) // 2]  # NumPy's own median loads its masked arrays first
        return _SEEN * float(np.sort(self.up_sd)[middle].mean()) / self.n

    def range(self, width: Width, declared: tuple[bool, bool], *, keep: bool = True) -> ColumnRange:
        """The range. declared: whether the lowest and the highest edge are bounds; keep: whether both may be kept."""
        return _Search(self, width, declared, keep).found()

    def beyond(self, low: float, high: float, declared: tuple[bool, bool] = (True, True)) -> tuple[float, float, float]:
        """(estimate, low end, high end) of the share of records outside, valid for a range that was chosen from the same counts.

        declared: whether the lowest and the highest edge are bounds; the end bins hold what lies beyond edges that are none.
        """
        edges, last = self.edges, len(self.counts)
        band = _BAND.get(last, max(_BAND.values()))
        a = max(int(np.searchsorted(edges, low, "right")) - 1, 0)
        b = min(int(np.searchsorted(edges, high, "left")), last)
        c, d = min(a + (edges[a] < low), last), max(b - (edges[b] > high), 0)
        c, d = c if c or declared[0] else 1, d if d < last or declared[1] else last - 1
        about = max(self.up[c], 0.0) + max(self.down[d], 0.0)
        most = max(self.up[c] + band * self.up_sd[c], 0.0) * (c > 0) + max(
            self.down[d] + band * self.down_sd[d], 0.0
        ) * (d < last)
        least = max(self.up[a] - band * self.up_sd[a], 0.0) + max(self.down[b] - band * self.down_sd[b], 0.0)
        # to six digits, because the last bits of least squares differ between machines
        share = [float(f"{min(float(part) / self.n, 1.0):.6g}") for part in (about, least, most)]
        return share[0], min(share[1], share[2]), share[2]


def _borne(hidden: float) -> float:
    """The noise of a mean over its sampling error, up to which a range is widened. hidden: the share that noise can hide at an end."""
    return min(_KAPPA * sqrt(max(hidden / _HIDDEN, 1.0)), 1.0)


class _Search:
    """One search for a range."""

    def __init__(self, of: Counts, width: Width, bounds: tuple[bool, bool], keep: bool) -> None:
        self.of, self.width, self.bounds, self.declared = of, width, bounds, all(bounds)
        self.keep = self.declared and keep
        self.edges, self.last = of.edges, len(of.counts)
        self.ends = float(of.edges[0]), float(of.edges[-1])

    def found(self) -> ColumnRange:
        of = self.of
        if of.hidden > _MOST_HIDDEN:
            # n mu is too small: nothing to find
            return ColumnRange(*self.ends, kept=True, seen=self.declared)
        i, j, sides = self._seen()
        flat = np.clip((np.maximum.accumulate(of.up) + np.minimum.accumulate(of.up[::-1])[::-1]) / 2, 0, of.n)
        # what is beyond lies in the end bins
        flat[: i + 1], flat[j:] = 0, of.n
        share = np.diff(flat) / of.n
        mean, variance = self._moments(share, i, j)
        if self.width.noise is None and not self.width.whole:
            i, j, mean, variance = self._trimmed(share, flat, i, j, mean, variance)
        low, high = max(float(self.edges[i]), sides[0]), min(float(self.edges[j]), sides[1])
        if not low < high:
            low, high = float(self.edges[i]), float(self.edges[j])
        if self.width.whole:
            low, sides = self.ends[0], (self.ends[0], sides[1])
        fullest = int(np.argmax(share))
        if share[fullest] > 1 - 2 * of.hidden or variance <= 0:
            near = int(np.argmin(np.abs(self.edges)))
            if self.keep and (fullest in (0, self.last - 1) or near - 1 <= fullest <= near):
                # rare values may lie anywhere
                return ColumnRange(*self.ends, kept=True, spread=False)
            return self._told(low, high, spread=False)
        spread = sqrt(variance)
        if self.width.noise is None:
            wide = self.width.reach(of.n) * spread
            return self._told(*self._at(wide, mean, low, high, sides))
        size, borne = of.n / self.width.cells, _borne(of.hidden)
        sampled = borne * spread / sqrt(size)
        told = sqrt(_SPREAD * self.width.mu * size / _VARIANCE) * (borne / _KAPPA)
        small, big = 0.0, min(told, _FARTHEST) * spread
        for _ in range(60):
            wide = (small + big) / 2
            fine = self.width.of_mean(*self._at(wide, mean, low, high, sides), mean, size) <= sampled
            small, big = (wide, big) if fine else (small, wide)
        return self._told(*self._at(small, mean, low, high, sides))

    def _seen(self) -> tuple[int, int, tuple[float, float]]:
        """The last edge below which, and the first edge from which on, nothing is seen; the ends that 0 sets."""
        of, edges, last = self.of, self.edges, self.last
        i = int(np.flatnonzero(of.up <= _SEEN * of.up_sd + 1e-9)[-1])
        j = int(np.flatnonzero(of.down <= _SEEN * of.down_sd + 1e-9)[0])
        near = int(np.argmin(np.abs(edges)))
        positive = edges[i] >= 0 or (near > 0 and edges[j] > 0 and of.up[near - 1] <= _SEEN * of.up_sd[near - 1])
        negative = edges[j] <= 0 or (near < last and edges[i] < 0 and of.down[near + 1] <= _SEEN * of.down_sd[near + 1])
        i, j = max(i, near - 1) if positive else i, min(j, near + 1) if negative else j
        if positive and negative:
            # all in the bins at 0: they are the range
            positive = negative = False
        if j <= i:
            i, j = max(min(i, j) - 1, 0), min(max(i, j) + 1, last)
        return (
            i,
            j,
            (
                max(self.ends[0], 0.0) if positive else self.ends[0],
                min(self.ends[1], 0.0) if negative else self.ends[1],
            ),
        )

    def _moments(self, share: Array, a: int, b: int) -> tuple[float, float]:
        """Mean and variance of the column clipped to edges a, b; a bin with half of all records is taken for a point."""
        low, high = self.edges[a], self.edges[b]
        middle = (np.clip(self.edges[:-1], low, high) + np.clip(self.edges[1:], low, high)) / 2
        inside = (share < 0.5) & (middle > low) & (middle < high)
        mean = float(share @ middle)
        return mean, float(share @ ((middle - mean) ** 2 + np.diff(self.edges) ** 2 / 12 * inside))

    def _trimmed(
        self, share: Array, flat: Array, i: int, j: int, mean: float, variance: float
    ) -> tuple[int, int, float, float]:
        """Coefficients: the farther end moved inwards while it is far away and few records lie beyond."""
        n = self.of.n
        most = min(_TRIM, _PART * (1 - float(share.max())))
        while j - i > 2 and variance > 0:
            out = self.edges[j] - mean > mean - self.edges[i]
            a, b = (i, j - 1) if out else (i + 1, j)
            beyond = 1 - flat[b] / n if out else flat[a] / n
            reach = max(self.edges[j] - mean, mean - self.edges[i])
            if reach <= self.width.reach(n) * sqrt(variance) or beyond > most:
                break
            i, j, (mean, variance) = a, b, self._moments(share, a, b)
        return i, j, mean, variance

    def _at(self, wide: float, mean: float, low: float, high: float, sides: tuple[float, float]) -> tuple[float, float]:
        return max(sides[0], min(low, mean - wide)), min(sides[1], max(high, mean + wide))

    def _told(self, low: float, high: float, *, spread: bool = True) -> ColumnRange:
        """Outwards to two digits of the width, within the ends."""
        unit = 10.0 ** (floor(log10(high - low)) - 1)
        low, high = floor(low / unit + 1e-9) * unit, ceil(high / unit - 1e-9) * unit
        low, high = max(float(f"{low:.12g}"), self.ends[0]), min(float(f"{high:.12g}"), self.ends[1])
        beyond = self.of.beyond(low, high, self.bounds)
        # bounds are better than a range that may cut off so much
        if (self.declared and (low, high) == self.ends) or (self.keep and beyond[2] > MOST_BEYOND):
            return ColumnRange(*self.ends, kept=True, spread=spread)
        return ColumnRange(low, high, False, *beyond, spread=spread)


#: What has a range: a column, or a derived term that is measured.
Ranged = Numeric | Integer | Measure

# the step of a method -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnRanges(RangeStep):
    """The step of one request: ranges of these columns of its schema, or derived terms. keep: whether declared bounds may be kept.
    `widths`: of a column and the plan, what its range is for; the range is the widest.
    """

    ranged: Mapping[str, Ranged]
    share: Fraction
    widths: Callable[[str, Plan], Sequence[Width]]
    keep: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.ranged)

    def statistic(self, name: str) -> RangeCounts:
        own = self.ranged[name]
        return RangeCounts(TermRows(name, _bounds(own), own) if isinstance(own, Measure) else BinRows(name, own))

    def found(self, name: str, noisy: Noisy, plan: Plan) -> ColumnRange:
        column = _bounds(self.ranged[name])
        counts, whole = Counts.of(noisy, edges_of(column)), isinstance(column, Integer)
        widths = self.widths(name, plan)
        found = [counts.range(width, column.declared, keep=self.keep) for width in widths]
        if any(own.kept for own in found):
            return next(own for own in found if own.kept)
        low, high = min(own.low for own in found), max(own.high for own in found)
        if whole:
            # a design of few values has other sums than were planned; those of means are the same for any
            least = 1 if all(width.noise is not None for width in widths) else _FEW_VALUES
            high = min(max(float(ceil(high)), floor(low) + float(least)), column.high)
            low = max(min(float(floor(low)), high - least), column.low)
        if all(column.declared) and (low, high) == (column.low, column.high):
            return ColumnRange(low, high, kept=True)
        return ColumnRange(
            low, high, False, *counts.beyond(low, high, column.declared), spread=all(own.spread for own in found)
        )


@dataclass(frozen=True)
class RangedMethod(Method):
    """Base of methods that add numbers up, and may find the ranges of their columns first. Field: bounds.

    "auto": ranges are found, and declared bounds kept where their noise is small. `"found"`: also used where declared bounds would do.
    `"declared"`: no range is found.
    `"shared"`: they are found by the publication that it is part of.
    """

    bounds: str = field(default="auto", kw_only=True)

    of_means: ClassVar[bool] = False
    counts_lost: ClassVar[bool] = True

    def summed(self, schema: Schema) -> tuple[str, ...]:
        """The columns that enter its sums: those of its design. Override where there is none."""
        return tuple(self._design(schema).columns)

    def width(self, plan: Plan, name: str) -> Width:
        """What the range of a column is for: coefficients. Override where it is for means."""
        allowance = Allowance.of(plan.requested, self, plan.declared)
        return Width(sqrt(float(allowance.amount)) / allowance.rows_per_unit)

    def in_range(self, noise: float, sampling: float, records: float, amount: float, columns: int) -> float:
        """The noise variance to expect of a mean or total that has `noise` in the declared bounds.

        records: all of them; amount: the square of mu of its sums; columns: that share the step.
        """
        if self.bounds == "declared":
            return noise
        share = float(share_of(range(columns), of_means=True))
        one = strategy(BINS)
        weight = records * sqrt(amount / (1 - share - float(SHARE)) * share / columns)
        hidden = _SEEN * sqrt(np.sort(one.upto)[len(one.upto) // 2]) / weight
        # a third is left for what lies beyond
        if hidden > _MOST_HIDDEN or 3 * _BAND[BINS] * sqrt(float(one.upto[1])) / weight > MOST_BEYOND:
            return noise
        return min(noise, _borne(hidden) ** 2 * sampling)

    def ranges(self, schema: Any) -> ColumnRanges | None:
        columns = self.to_find(schema)
        if not columns or self.bounds not in ("auto", "found"):
            return None
        return ColumnRanges(columns, share_of(columns, of_means=self.of_means), self._widths, self.bounds == "auto")

    def _widths(self, name: str, plan: Plan) -> tuple[Width, ...]:
        return (self.width(plan, name),)

    def to_find(self, schema: Any) -> dict[str, Ranged]:
        """The columns and terms whose ranges may be found. `PlanError` for a setting that `bounds` does not have."""
        if self.bounds not in _BOUNDS:
            raise PlanError(f"bounds must be 'auto', 'declared' or 'found', got {self.bounds!r}", "write bounds='auto'")
        if self.bounds == "declared":
            return {}
        whole = Schema.of(schema)
        named = parse_predicate(self.where, whole).columns if self.where is not None else ()
        names = (name for name in self.summed(whole) if name not in named and _may_be_found(whole[name]))
        columns = {name: whole[name] for name in names}
        terms = {name: own for name, own in self.terms(whole).items() if told_apart(_bounds(own))}
        for name in terms:
            if name in whole:
                raise PlanError(
                    f"the derived term {name!r} has the name of a column, and their ranges could not be told apart",
                    "rename the column, or write bounds='declared'",
                )
        return {**columns, **terms}  # type: ignore[dict-item]

    def terms(self, schema: Schema) -> dict[str, Measure]:
        """The derived terms whose own ranges are found. Override where some are measured."""
        return {}


_BOUNDS = ("auto", "declared", "found", "shared")


def _bounds(ranged: Ranged) -> Numeric | Integer:
    """The bounds of a column, or of a derived term."""
    return Numeric(ranged.term.low, ranged.term.high) if isinstance(ranged, Measure) else ranged


def share_of(columns: Collection[Any], *, of_means: bool) -> Fraction:
    """Of the square of mu, what the ranges of so many columns cost."""
    return _SHARE_OF_SEVERAL if of_means and len(columns) >= _SEVERAL else _SHARE


def _may_be_found(column: Any) -> bool:
    """Whether there is a range to find: not of labels, or of few values."""
    return isinstance(column, Numeric | Integer) and column.steps > _FEW_VALUES and told_apart(column)


def told_apart(column: Numeric | Integer) -> bool:
    """Whether bins tell values apart: not so far from 0 that edges of 12 digits hardly differ.

    >>> told_apart(Numeric(0, 1)), told_apart(Numeric(1.7e9, 1.8e9)), told_apart(Numeric(1e15, 1e15 + 100))
    (True, True, False)
    """
    return column.high - column.low >= _CLOSEST * max(abs(column.low), abs(column.high))
