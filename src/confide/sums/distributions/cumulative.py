"""Numbers of records up to public edges, by cell: the integer strategy under distribution functions, quantiles and ranks.

A measure is cut at public edges into m bins. A cell's numbers of records h (m,) are released as K h, three integers a bin:

- left: rows of the square root of "count from the left", f_(i-j) for i >= j, f_k = floor(2^20 C(2k, k) / 4^k). The rows
  times themselves give the cumulative counts (Fichtenberger, Henzinger, Upadhyay 2023, for counts that continue).
- right: the same from the right end.
- slack: isqrt(q_max - q_j) times h_j, q_j the squared length of column j of the two above: what lifts every column to the longest.

Sensitivity: a record is one column of K in its own cell. Its squared length is at most q_max, exactly, in integers. Under substitution
two records in different cells do not overlap, 2 q_max. Two in one cell change it by |k - k'|^2 <= |k|^2 + |k'|^2 <= 2 q_max, because no
entry of K is negative. Least squares (K'K)^-1 K' then gives counts whose partial sums have the least noise that K h holds. Variances of
"up to x" less F(x) times all are 5.85 on average and 6.47 at most for 256 bins at mu = 1, where bins alone have 42.8 and 64.

Scores: a record gives its cell (T, S u, S (1 - u^2)), u in [-1, 1] public for each bin, S^2 = 2^40. Because u^2 + (1 - u^2)^2 <= 1, its
squared length is at most T^2 + S^2. Two records in one cell have the same T, and |S phi - S phi'|^2 <= 4 S^2.

Everything is a public table times the histogram of a cell, so that one pass over the records, which adds up bins, serves them all.

The integer strategy K of cumulative counts, and what least squares makes of it.

What noisy cumulative counts say of quantiles: sums that do not fall, and the bins that a quantile may lie in.

P_k is the released number of records below edge k (least squares of the strategy), N = P_m, V(c) the noise variance of a functional c.
For the quantile x in bin j, P_(j-1) is about the records below x and P_j about those up to x, atoms or not. So the set is the hull of
the bins with

    P_(j-1) - q N <= u_(j-1)   and   P_j - q N >= l_j,      u, l = +- z s + (z^2 - 1) k / (6 s^2),   s^2 = part N q (1 - q) + V(P - q N).

The second term (Cornish, Fisher 1938) is for the skewness of a binomial, k = part N q (1 - q)(1 - 2 q); P_0 = 0 exactly. The part is 1
for a population, 0 for exactly these records. An atom is one bin, where the hull is that bin. q is public, so that nothing is estimated
but N. Any distribution, whole bins; noise is assumed normal.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, comb, floor, inf, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array, Whole
from confide.core.exact import digest
from confide.errors import PlanError, SchemaError
from confide.sums.cells.cell_sums import CellRows, CellTotals
from confide.sums.cells.moments import Measure
from confide.sums.coding import BITS, BOUND, round_within, steps
from confide.sums.columns import codes_of, columns_of


@dataclass(frozen=True, eq=False)
class Strategy:
    """K for m bins, and what least squares makes of it. table (3 m, m): K; longest: q_max; both exact.

    In units where the released numbers have noise variance 1 and K is K / 2^20, covariance (m, m) is of the counts and `root` a square
    root of it. For sums up to each edge, (m + 1,), `upto` has their variances and `with_all` their covariances with the total.

    >>> own = strategy(64)
    >>> variances = own.centred(np.arange(1, 65) / 64) * own.longest / 4.0**20
    >>> [round(float(v), 2) for v in (variances[:-1].mean(), variances.max())]
    [3.85, 4.38]
    """

    table: Whole
    longest: int

    @cached_property
    def doubles(self) -> Array:
        """K as doubles, exactly."""
        return self.table.astype(np.float64)

    @cached_property
    def covariance(self) -> Array:
        unit = self.table / 2.0**BITS
        return np.asarray(np.linalg.inv(unit.T @ unit))

    @cached_property
    def root(self) -> Array:
        return np.asarray(np.linalg.cholesky(self.covariance))

    @cached_property
    def upto(self) -> Array:
        rows = np.cumsum(self.covariance, axis=0)
        return np.concatenate([[0.0], np.diag(np.cumsum(rows, axis=1))])

    @cached_property
    def with_all(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self.covariance.sum(axis=1))])

    @property
    def total(self) -> float:
        """The variance of the number of all records."""
        return float(self.upto[-1])

    def counts(self, values: Array) -> Array:
        """Least squares: counts (..., m) from released numbers (..., 3 m), in the integers that they are released in."""
        return np.asarray((values / 4.0**BITS) @ self.doubles @ self.covariance)

    def centred(self, q: float | Array) -> Array:
        """Variances of "up to each edge" less q times all, (m + 1,), or (m,) for one q for each upper edge."""
        upto, both = (self.upto, self.with_all) if np.ndim(q) == 0 else (self.upto[1:], self.with_all[1:])
        return np.asarray(upto - 2 * q * both + np.square(q) * self.total)


@lru_cache(maxsize=8)
def strategy(bins: int) -> Strategy:
    """The strategy of so many bins."""
    f = np.array([(comb(2 * k, k) << BITS) >> (2 * k) for k in range(bins)], dtype=np.int64)
    apart = np.subtract.outer(np.arange(bins), np.arange(bins))
    left = np.where(apart >= 0, f[np.abs(apart)], 0)
    right = left[::-1, ::-1]
    # f^2 below 2^40, at most 2^11 of them: no sum reaches 2^63
    squares = (left * left).sum(axis=0) + (right * right).sum(axis=0)
    longest = int(squares.max())
    slack = np.diag([isqrt(longest - int(square)) for square in squares])
    table = np.concatenate([left, right, slack])
    table.setflags(write=False)
    return Strategy(table, longest)


MOST_BINS = 1024
# Integer steps in one unit of (u, 1 - u^2), so that rounding stays within 2^20.
_STEPS = steps(1.0, 2)


@dataclass(frozen=True)
class Bins:
    """Public bins of a measure, closed on the left, the last one on both sides. Made by `Bins.of`.

    starts: the first code of each bin; edges (m + 1,), in the measure's units; step: of whole values, 0 for others.

    >>> import confide as cf
    >>> own = Measure.of("x", cf.Schema({"x": cf.Numeric(0, 100)}))
    >>> Bins.of(own, 4).edges, Bins.of(own, (18, 65)).edges
    ((0.0, 25.0, 50.0, 75.0, 100.0), (0.0, 18.0, 65.0, 100.0))
    >>> Bins.of(Measure.of("k", cf.Schema({"k": cf.Integer(0, 9)})), 4).edges  # whole values stay together
    (0.0, 3.0, 6.0, 9.0, 10.0)
    """

    starts: tuple[int, ...]
    edges: tuple[float, ...]
    step: float

    @classmethod
    def of(cls, measure: Measure, bins: int | Sequence[float]) -> Bins:
        """So many even bins, or bins between public edges; `PlanError` or `SchemaError` for what cannot be used.

        The bins of an integer column hold the same number of values each, one where there are enough bins.
        """
        if isinstance(bins, int) and not isinstance(bins, bool):
            return _even(measure, bins)
        return _between(measure, bins)

    @classmethod
    def graded(cls, measure: Measure, bins: int) -> Bins:
        """At most so many bins, about half of them even, the others ever finer toward 0, and one of 0 itself, where the bounds hold 0.

        For ranks: bounds of amounts are wide beside most of them, and records in one bin count as ties. Where 0 is outside of the bounds,
        or every value has a bin, `of`. Edges are rational, so that every machine has the same; as many even ones as there is room for.

        >>> import confide as cf
        >>> own = Bins.graded(Measure.of("x", cf.Schema({"x": cf.Numeric(0, 1e6)})), 16)
        >>> own.size, [round(edge) for edge in own.edges[:3]]
        (16, [0, 1, 44064])
        """
        term, step = measure.term, step_of(measure)
        if term.steps <= bins or not term.low <= 0 <= term.high:
            return _even(measure, bins)
        scale = Fraction(term.steps - 1) / (Fraction(term.high) - Fraction(term.low))
        zero = round(-Fraction(term.low) * scale)
        sides = tuple(side for side, there in ((1, term.high > 0), (-1, term.low < 0)) if there)
        enough = range(bins // 2, bins)
        even = enough[bisect_right(enough, bins, key=lambda k: len(_starts(term.steps, zero, sides, k, bins))) - 1]
        whole = _starts(term.steps, zero, sides, even, bins)
        edges = [float(Fraction(term.low) + start / scale) for start in whole]
        return cls(whole, (*edges, term.high + step), step)

    @classmethod
    def signed(cls, measure: Measure, half: int) -> Bins:
        """Bins of the size of a measure, by its sign: at most `half - 1` below 0, one of 0 itself, as many above. Half of the
        sizes are even, the others ever finer toward 0.

        0 is what the grid has nearest to it. Sizes reach to the farther bound; an edge belongs to the smaller size.
        """
        term = measure.term
        scale = Fraction(term.steps - 1) / (Fraction(term.high) - Fraction(term.low))
        centre = -Fraction(term.low) * scale
        reach = Fraction(max(abs(term.low), abs(term.high))) * scale
        even = half // 2
        sizes = [Fraction(3, 4)]
        for size in (*reversed(_graded(reach / even, half - 1 - even, 1)), *(reach * k / even for k in range(1, even))):
            # codes are whole: a size nearer to the one before has no values of its own
            sizes += [size] if size >= sizes[-1] + 1 else []
        above = [int(centre + size) + 1 if centre + size >= 0 else 0 for size in sizes]
        below = [max(ceil(centre - size), 0) for size in reversed(sizes)]
        starts = (0, *(min(start, term.steps) for start in (*below, *above)))
        ends = [float(size / scale) for size in (*sizes, reach)]
        return cls(starts, (*(-end for end in reversed(ends)), *ends), 0.0)

    @property
    def size(self) -> int:
        return len(self.starts)

    def alone(self, codes: int) -> NDArray[np.bool_]:
        """Bins of one value, of so many codes: records there are ties among themselves."""
        return np.diff(np.array(self.starts), append=codes) <= 1

    @cached_property
    def lows(self) -> Array:
        """The least value of each bin."""
        return np.array(self.edges[:-1])

    @cached_property
    def highs(self) -> Array:
        """The greatest value of each bin, or what its values stay below."""
        return np.array(self.edges[1:]) - self.step

    def at(self, codes: Array) -> Whole:
        """The bin of each code."""
        return np.searchsorted(self._starts, codes, side="right") - 1

    @cached_property
    def _starts(self) -> Array:
        return np.array(self.starts, dtype=np.float64)


@lru_cache(maxsize=256)
def _starts(codes: int, zero: int, sides: tuple[int, ...], even: int, bins: int) -> tuple[int, ...]:
    """First codes of so many even bins, of 0 alone, and of half of `bins` ever finer ones on either side of it."""
    last = Fraction(codes - 1)
    found = {ceil(last * k / even) for k in range(even)} | {zero, zero + 1}
    for size in _graded(last / even, (bins - bins // 2 - 2) // len(sides), len(sides)):
        found |= {zero + side * ceil(size) for side in sides}
    return tuple(sorted(start for start in found if 0 <= start < codes))


def _graded(width: Fraction, count: int, sides: int) -> list[Fraction]:
    """Sizes below the first even one, the largest first: by 6/7 to 1/10^4 of it in 63 steps, by 3/4 where both signs share them."""
    ratio = Fraction(6, 7) if sides == 1 else Fraction(3, 4)
    return [width * ratio**k for k in range(1, count + 1)]


def _even(measure: Measure, bins: int) -> Bins:
    if not 2 <= bins <= MOST_BINS:
        raise PlanError(
            f"bins must be a number from 2 to {MOST_BINS} or a list of public edges, got {bins}",
            f"write bins={min(max(bins, 2), MOST_BINS)}",
        )
    term = measure.term
    step = step_of(measure)
    if step or term.steps <= bins:
        wide = ceil(term.steps / bins)
        starts = tuple(range(0, term.steps, wide))
        if len(starts) > 1:
            own = (term.high - term.low) / (term.steps - 1)
            edges = (*(term.low + own * start for start in starts), term.high + own)
            return Bins(starts, edges, own)
    width = term.high - term.low
    edges = (*(term.low + width * k / bins for k in range(bins)), term.high)
    return Bins(tuple(-(-k * (term.steps - 1) // bins) for k in range(bins)), edges, 0.0)


def _between(measure: Measure, edges: Any) -> Bins:
    term, example = measure.term, "write bins=(0, 18, 65, 100) or bins=256"
    try:
        given = [float(edge) for edge in edges]
    except (TypeError, ValueError):
        raise PlanError(
            f"bins must be a number of bins or a list of public edges, got {edges!r}", f"{example}"
        ) from None
    if not given or given != sorted(set(given)):
        raise PlanError(f"edges of bins must be increasing numbers, got {given}", f"{example}")
    if given[0] < term.low or given[-1] > term.high:
        raise SchemaError(
            f"bins has an edge outside the bounds of {measure.name!r}, {term.low:g} to {term.high:g}: "
            f"{given[0] if given[0] < term.low else given[-1]:g}",
            "leave it out or widen the bounds",
        )
    inner = [edge for edge in given if term.low < edge < term.high]
    scale = Fraction(term.steps - 1) / (Fraction(term.high) - Fraction(term.low))
    starts = (0, *(ceil((Fraction(edge) - Fraction(term.low)) * scale) for edge in inner))
    if len(starts) < 2 or len(set(starts)) < len(starts):
        raise PlanError(
            f"bins needs edges inside the bounds of {measure.name!r}, further apart than a step of its grid",
            f"{example}",
        )
    if len(starts) > MOST_BINS:
        raise PlanError(
            f"at most {MOST_BINS} bins are released, got {len(starts)}", f"give fewer edges or bins={MOST_BINS}"
        )
    step = step_of(measure)
    if not step:
        return Bins(starts, (term.low, *inner, term.high), 0.0)
    return Bins(starts, (*(term.low + start for start in starts), term.high + 1.0), step)


def step_of(measure: Measure) -> float:
    """Between whole values: 1 for an integer column, 0 for others."""
    plain = measure.term.plain
    return 1.0 if plain is not None and measure.design.schema[plain].kind == "integer" else 0.0


# record maps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BinRows(CellRows):
    """One record as the column of a public table for its bin, in the numbers of its cell; without a value it is in none."""

    measure: Measure
    bins: Bins
    #: Of the digest.
    kind: ClassVar[str]

    @property
    def together(self) -> int:
        return 2 * self.l2_squared

    @property
    def digest(self) -> str:
        return digest(self._facts())

    @property
    @abstractmethod
    def table(self) -> Whole:
        """Integers, shape (block, bins)."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.crossing, self.measure)

    def placed(self, codes: Array) -> tuple[Whole, Whole]:
        """The cell of each record, the number of cells for one in none, and its bin."""
        place, coded = self.coded(codes)
        return place, np.clip(self.bins.at(coded), 0, self.bins.size - 1)

    def coded(self, codes: Array) -> tuple[Whole, Array]:
        """The cell of each record, the number of cells for one in none, and the code of its value."""
        place = self.crossing.places(codes[: len(self.crossing.columns)], self.axes)
        coded, keep = self.measure.design.codes(codes_of(self.measure, self.columns, codes))
        if keep is not None:
            place[~keep] = self.cells
        return place, coded[-1]

    def rows(self, codes: Array) -> tuple[Whole, Array]:
        place, bins = self.placed(codes)
        return place, np.asarray(self.table[:, bins], dtype=np.float64)

    def _facts(self) -> list[Any]:
        return [self.kind, self.crossing.digest, list(self.axes), self.measure.digest, list(self.bins.starts)]


@dataclass(frozen=True)
class CumulativeRows(BinRows):
    """One record as its column of the strategy's K."""

    kind = "cumulative rows"

    @property
    def block(self) -> int:
        return 3 * self.bins.size

    @property
    def table(self) -> Whole:
        return strategy(self.bins.size).table

    @property
    def l2_squared(self) -> int:
        return strategy(self.bins.size).longest


@dataclass(frozen=True)
class SignedRows(BinRows):
    """One record as K's column for its size, in one half of the numbers for what is below 0 and in the other for the rest (`Bins.signed`).

    A record is one column of K, as in `CumulativeRows`.
    """

    kind = "signed cumulative rows"

    @property
    def half(self) -> int:
        """How many sizes there are, 0 included."""
        return (self.bins.size + 1) // 2

    @property
    def block(self) -> int:
        return 6 * self.half

    @cached_property
    def table(self) -> Whole:
        own = strategy(self.half).table
        none = np.zeros((len(own), self.half - 1), dtype=np.int64)
        below = np.concatenate([own[:, :0:-1], np.zeros_like(own)], axis=1)
        return np.concatenate([below, np.concatenate([none, own], axis=1)])

    @property
    def l2_squared(self) -> int:
        return strategy(self.half).longest


@dataclass(frozen=True)
class ScoreRows(BinRows):
    """One record as (T, S u, S (1 - u^2)) for the score u in [-1, 1] of its bin.

    count: T, in steps; scores: u of each bin, zeros until noisy numbers say them: the bounds hold for any.
    """

    count: int
    scores: tuple[float, ...] = field(default=())
    kind = "score rows"

    @property
    def block(self) -> int:
        return 3

    @property
    def steps(self) -> int:
        """S, integer steps in one unit of a score."""
        return _STEPS

    @cached_property
    def table(self) -> Whole:
        u = np.clip(np.nan_to_num(np.array(self.scores or (0.0,) * self.bins.size)), -1.0, 1.0)
        own = round_within(np.stack([u, 1.0 - u * u]) * float(self.steps))
        return np.concatenate([np.full((1, len(u)), self.count), own.astype(np.int64)])

    @property
    def l2_squared(self) -> int:
        return self.count**2 + BOUND

    @property
    def together(self) -> int:
        return 4 * BOUND

    @property
    def digest(self) -> str:
        # scores are left out: the bounds hold for any, and the plan does not know them yet
        return digest([*self._facts(), self.count])


@dataclass(frozen=True)
class BinTotals(CellTotals):
    """The rows of all records added up by cell, from the histogram of each cell; shape (block cells,), as `CellTotals`."""

    map: BinRows

    @property
    def _state(self) -> tuple[int, ...]:
        return (self.map.cells, self.map.bins.size)

    def _binned(self, codes: Array) -> tuple[Whole, Whole]:
        return self.map.placed(codes)

    def update(self, state: Whole, codes: Array) -> Whole:
        place, bins = self._binned(codes)
        cells, size = state.shape
        index = np.where(place < cells, place * size + bins, cells * size)
        state += np.bincount(index, minlength=cells * size + 1)[:-1].reshape(cells, size)
        return state

    def value(self, state: Whole) -> NDArray[Any]:
        """Entries stay below 2^20 (T below 2^20, too): int64 holds the sums of 2^42 records."""
        return (self.map.table @ state.T).ravel().astype(object)


@dataclass(frozen=True)
class Histograms(BinTotals):
    """The histograms themselves, (cells, bins), from which every other table's totals follow; it is aggregated and never released."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self._state

    def value(self, state: Whole) -> NDArray[Any]:
        return state.copy()


# Below so many noise standard deviations of its number of records a group says nothing.
_FEWEST = 3.0
# Beyond the ends of the 95 % interval.
_TAIL = 0.025


def monotone(sums: Array) -> Array:
    """Cumulative counts (..., m) that do not fall and are at least 0: the mean of running maximum and running minimum from the right.

    >>> monotone(np.array([3.0, 1.0, 5.0])).tolist()
    [2.0, 2.0, 5.0]
    """
    up = np.maximum.accumulate(sums, axis=-1)
    down = np.minimum.accumulate(sums[..., ::-1], axis=-1)[..., ::-1]
    return np.maximum((up + down) / 2, 0.0)


class CumulativeCounts:
    """Base of readings of one group. counts (m,): noisy, of bins; unit: their noise variance in units of the strategy's; part: as above."""

    counts: Array
    unit: float
    strategy: Strategy
    part: float

    @cached_property
    def sums(self) -> Array:
        """P, (m + 1,): noisy numbers below each edge."""
        return np.concatenate([[0.0], np.cumsum(self.counts)])

    @property
    def sds(self) -> Array:
        """Standard deviations of the noise of P, (m + 1,)."""
        return np.sqrt(np.maximum(self.unit * self.strategy.upto, 0.0))

    @property
    def size(self) -> float:
        """N."""
        return float(self.sums[-1])

    @property
    def size_sd(self) -> float:
        """The standard deviation of its noise."""
        return sqrt(self.unit * self.strategy.total)

    @property
    def below_noise(self) -> bool:
        """Whether the group is too small relative to the noise to say anything."""
        return self.size < _FEWEST * self.size_sd

    @cached_property
    def rising(self) -> Array:
        """Monotone cumulative counts at the upper edges, (m,)."""
        return monotone(self.sums[1:])

    def hull(self, q: float, alpha: float) -> tuple[int, int]:
        """The first and the last bin that the quantile may lie in, at level 1 - alpha."""
        z = float(-special.ndtri(alpha / 2))
        shift, upper, lower = self._reach(q, z)
        inside = np.flatnonzero((shift[:-1] <= upper[:-1]) & (shift[1:] >= lower[1:]))
        if self.below_noise or not len(inside):
            return 0, len(self.counts) - 1
        return int(inside[0]), int(inside[-1])

    def unbacked(self, q: float, alpha: float) -> tuple[bool, bool]:
        """Whether no records may lie below the low end's bin, and none above the high end's: noise alone would put these ends there.

        Of a quantile that can be in the outermost bin alone, that end is known: nothing is beyond.
        """
        first, last = self.hull(q, alpha)
        _, upper, lower = self._reach(q, float(-special.ndtri(alpha / 2)))
        low, high = -q * self.size >= lower[first + 1], (1 - q) * self.size <= upper[last]
        if self.below_noise:
            return True, True
        return bool(low and (high or last > 0)), bool(high and (low or first < len(self.counts) - 1))

    def backing(self, q: float, high: bool, alpha: float = 0.05) -> tuple[float, float]:
        """About how many records, and how many times the budget (infinite where none does), would back the low or the high end."""
        z, r = float(-special.ndtri(alpha / 2)), 1 - q if high else q
        first, last = self.hull(q, alpha)
        variance = self.unit * float(self.strategy.centred(q)[last if high else first + 1])
        # r n = z sqrt(n q (1 - q) + variance), solved for n and for the variance
        half = z * z * q * (1 - q) / 2
        records = (half + sqrt(half * half + (z * r) ** 2 * variance)) / r**2
        size = max(self.size, 0.0)
        room = (r * size) ** 2 / z**2 - size * q * (1 - q)
        return records, sqrt(variance / room) if room > 0 else inf

    def widths(self, q: float, edges: Sequence[float], step: float = 0.0) -> tuple[float, float]:
        """(how wide the 95% interval of the quantile is, how wide it would be by sampling alone).

        edges (m + 1,): of the bins; step: of whole values.
        In units of the edges, between which the counts are read; a set of one bin, which may be an atom, in numbers of records.
        """
        z, last = float(-special.ndtri(_TAIL)), len(self.counts) - 1
        sides, hull = self.unbacked(q, 2 * _TAIL), self.hull(q, 2 * _TAIL)
        first, final = 0 if sides[0] else hull[0], last if sides[1] else hull[1]
        binomial = self.part * max(self.size, 0.0) * q * (1 - q)
        if first == final:
            noise = self.unit * float(np.min(self.strategy.centred(q)[[first, first + 1]]))
            return 2 * z * sqrt(binomial + max(noise, 0.0)), 2 * z * sqrt(binomial)
        ranks = np.clip(np.array([-1.0, 1.0]) * z * sqrt(binomial) + q * self.size, 0.0, float(self.rising[-1]))
        low, high = np.interp(ranks, [0.0, *self.rising], edges)
        if step:
            low, high = (
                edges[0] + step * floor((low - edges[0]) / step),
                edges[0] + step * ceil((high - edges[0]) / step),
            )
        return float(edges[final + 1] - edges[first]), float(high - low)

    def _reach(self, q: float, z: float) -> tuple[Array, Array, Array]:
        """P - q N at each edge, and how far it may be above and below 0 there."""
        binomial = self.part * max(self.size, 0.0) * q * (1 - q)
        square = binomial + self.unit * self.strategy.centred(q)
        half = z * np.sqrt(square)
        with np.errstate(all="ignore"):
            skewed = (z * z - 1) / 6 * binomial * (1 - 2 * q) / square
        skewed = np.where(np.isfinite(skewed), skewed, 0.0)
        upper, lower = half + skewed, -half + skewed
        upper[0] = max(upper[0], 0.0)  # nothing lies below the first edge, whatever N is
        return self.sums - q * self.size, upper, lower
