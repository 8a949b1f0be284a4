"""Private quantiles of a column by the exponential mechanism on ranks, with finite-sample intervals.

Guarantee: PureDP(epsilon), add-remove or substitute. The candidates are the points of the column's public grid, all of the same length: a
base measure that no record touches, as the mechanism asks for (lengths of the intervals between records would not be one). For
q = a/b in lowest terms, n records, below(c) of them below the point c and upto(c) up to it, the score is an integer,

    score(c) = -max(b below(c) - T, T - b upto(c), 0),    T = a n - o,

b times the distance of the rank q n - o/b from those of c, with an offset o that is public by then. Sensitivity D, for every c and o:
    one record added: n grows by 1, below(c) and upto(c) by 0 or 1, so the differences move by a or by b - a, one way or the other:
    D = max(a, b - a); one removed: the same, backwards;
    one replaced: n stays, below(c) and upto(c) move by at most 1: D = b; a record that gains or loses its place in the column counts
    as added or removed, which is less.
The number n is never released exactly, though the rank follows it: it moves the target along with the ranks, so that a median under
add-remove costs half of what a rank counted from one end does. Offsets follow from a noisy count, which is a release of its own (Laplace
noise, sensitivity 1) and is paid for. Sources: McSherry, Talwar 2007, Theorem 6 (mechanism); Smith 2011 (ranks as scores).

Interval: for the population quantile Q = inf{x: F(x) >= q} of the coded column (clipped to its bounds; records with a missing value under
"drop" left out), at finite n, for independent records from any law, ties included; sampling and privacy noise. Let a_s, a_p, a_n share
the error. With probability 1 - a_n the count n is within w of its noisy value. If 0 <= T <= b n, some point has score 0, so that a choice L
among m points misses T by less than t = ceil(2 D log(m / a_p) / epsilon'), but for probability a_p: b below(L) <= T + t - 1. Were L > Q, at
least as many records would lie below L as lie at or below Q, of which there are at least k_n = the a_s-quantile of Bin(n, q) with
probability 1 - a_s. So with o >= a n - b k_n + t for every n within w, b below(L) < b k_n, and L <= Q. The upper end is its mirror image,
with the upper a_s-quantile of Bin(n, q). An end whose T could be below 0 or above b n is not given: the interval is open there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, inf, log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._helpers import later
from confide.core import Allowance, BudgetItem, Composed, Meter, Method, Plan, Release, ResultOptions, Source, Total
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.intervals.block_posterior import rank_scores
from confide.results.pages.content import Flag
from confide.results.pages.table import noise_share
from confide.schema import Categorical, CodedFrame, Schema
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import ends
from confide.sums.columns import OfColumn
from confide_lab.methods.quantile.intervals import Intervals

__all__ = ["Place", "Quantile"]

_OPEN_END = Flag(
    "one_sided",
    "at least one end of an interval cannot be given at this budget; it is printed as none",
)

stats = later("scipy.stats")

# Shares of epsilon: the count; of each quantile's part of the rest, the estimate and either end.
_COUNT_SHARE = Fraction(1, 10)
_PARTS = (Fraction(2, 5), Fraction(1, 5), Fraction(2, 5))
# Shares of the error of an interval: the count, then for each end the choice and the sampling.
_COUNT_ERROR, _CHOICE_ERROR, _SAMPLING_ERROR = 0.1, 0.1, 0.35
_DENOMINATOR = 10**6
_FAR = 1 << 60  # an offset in scores that no number of records makes up for
_POINTS = 1_000
_IN_GDP = (
    "in a ledger that adds up GDP the same charge buys intervals at most a quarter as long, for any quantiles: "
    'cf.tables.quantiles("{}", ...); this method is for ledgers of pure epsilon'
)


@dataclass(frozen=True)
class Place(OfColumn):
    """One record as its place on the column's grid, counted from 1; 0 for one that is left out.

    present=True: 1 for every record with a place, for counting them.
    """

    present: bool = False
    width: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        self._need_numbers("quantiles")

    @property
    def cells(self) -> int:
        """Number of points of the grid."""
        column = self.schema[self.column]
        assert not isinstance(column, Categorical)
        return column.steps

    @property
    def l1(self) -> int:
        return 1 if self.present else self.cells

    @property
    def l2_squared(self) -> int:
        return self.l1**2

    @property
    def digest(self) -> str:
        return self._digest("place", self.present)

    def __call__(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        place = codes[:1] + 1
        return np.asarray(np.minimum(place, 1.0) if self.present else place)


@dataclass(frozen=True)
class Quantile(Method):
    """Quantiles of a numeric column with intervals that hold at finite n.

    column: its name in the schema; q: one number or several, increasing, strictly between 0 and 1, each taken at the nearest fraction
    with a denominator up to 10^6; level: of each interval. The grid of the column (`steps` in the schema) is the set of possible
    answers; a coarser one gives narrower intervals, as log(steps).

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5, steps=1001)})
    >>> source = cf.read(schema.sample(5_000, seed=1), schema)
    >>> noise = cf.noise.SimulatedNoise(1)
    >>> release = cf.release(Quantile("income"), source, cf.PureDP(2.0), ledger=None, noise=noise)
    >>> frame = cf.infer(release).to_frame()
    >>> bool(frame.ci_low.iloc[0] < frame.estimate.iloc[0] < frame.ci_high.iloc[0])
    True
    """

    column: str
    q: float | tuple[float, ...] = 0.5
    level: float = 0.95

    name: ClassVar[str] = "quantile"
    family: ClassVar[str] = "intervals"
    source: ClassVar[str] = "exponential mechanism on ranks (McSherry, Talwar 2007; Smith 2011), finite-sample interval"
    native: ClassVar[str] = "PureDP"
    intervals: ClassVar[str] = "population quantiles of the clipped column at finite n; sampling and privacy noise"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise PlanError(
                f'column must be the name of a column, got {self.column!r}; write Quantile("income", q=0.5)'
            )
        if not self.qs or not all(map(_inside, self.qs)):
            raise PlanError(
                "q must be one number or several, each strictly between 0 and 1, "
                f'got {self.q!r}; write Quantile("income", q=(0.25, 0.5, 0.75))'
            )
        if not _inside(self.level):
            percent = isinstance(self.level, (int, float)) and 1 < self.level < 100
            works = f"{self.level / 100:g}" if percent else "0.95"
            raise PlanError(
                f"level must be a number strictly between 0 and 1, got {self.level!r}; "
                f'write Quantile("income", level={works})'
            )
        exact = self._exact
        if not exact or any(a >= b for a, b in pairwise(exact)) or exact[0] == 0 or exact[-1] == 1:
            raise PlanError(
                f"q must be increasing, at least 10^-6 from 0 and from 1 and from one another, got {self.q!r}; "
                'write Quantile("income", q=(0.25, 0.5, 0.75))'
            )

    @property
    def qs(self) -> tuple[float, ...]:
        """The quantiles as a tuple."""
        return tuple(self.q) if isinstance(self.q, (tuple, list)) else (self.q,)

    @property
    def _exact(self) -> list[Fraction]:
        return [Fraction(str(float(q))).limit_denominator(_DENOMINATOR) for q in self.qs]

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """A noisy count and three choices for each quantile; `PlanError` for a column that has no quantiles."""
        allowance = Allowance.of(privacy, self, schema)
        ranks = Histogram(Place(schema, self.column))
        records = Total(Place(schema, self.column, present=True), nonnegative=True)
        share = (1 - _COUNT_SHARE) / len(self.qs)
        choices = [
            allowance.choice(
                name, ranks.map.cells, _sensitivity(exact, allowance.relation), share * part, map=ranks.map.digest
            )
            for q, exact in zip(self.qs, self._exact, strict=True)
            for name, part in zip(_names(q), _PARTS, strict=True)
        ]
        plan = Plan.of(
            self,
            schema,
            allowance,
            Composed((allowance.spend("records", records, _COUNT_SHARE), *choices)),
            {"records": records, "ranks": ranks},
            n=n,
            target=f"quantiles of {self.column} at {', '.join(f'{q:g}' for q in self.qs)}",
            intervals_for=(
                f"population quantiles of {self.column} clipped to its declared bounds, at {self.level:.0%} each; independent records, "
                "any distribution, finite n; sampling of records and privacy noise"
            ),
        )
        notes = (*plan.notes, _IN_GDP.format(self.column))
        return replace(plan, notes=notes if n is None else (*notes, self._forecast(plan, n)))

    def _forecast(self, plan: Plan, n: int) -> str:
        """How far the intervals reach at n records, as quantiles of the sample, for a noisy count without error: public."""
        offsets = self._offsets(float(n), plan)
        reaches = []
        for q, exact, (low, high) in zip(self.qs, self._exact, offsets.tolist(), strict=True):
            whole = exact.denominator * max(n, 1)
            down = (low + self._reach(plan.spend(f"{q!r} low"), 1 - self.level)) / whole
            up = (high + self._reach(plan.spend(f"{q!r} high"), 1 - self.level)) / whole
            ends = f"{max(q - down, 0):.3g}" if low >= 0 else "open", f"{min(q + up, 1):.3g}" if high >= 0 else "open"
            reaches.append(f"{q:g} from {ends[0]} to {ends[1]}")
        return f"with {n:,} records the intervals reach about as far as these quantiles of the sample: {', '.join(reaches)}"

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The count, then three choices for each quantile, at offsets that follow from it; one pass."""
        records, counts = source.aggregate(plan.statistic("records"), plan.statistic("ranks"))
        noisy = meter.draw("records", records)
        offsets = self._offsets(float(noisy.decode()[0]), plan)
        for q, exact, (low, high) in zip(self.qs, self._exact, offsets.tolist(), strict=True):
            # an end that is not given is drawn all the same
            for name, offset in zip(_names(q), (max(low, 0), 0, -max(high, 0)), strict=True):
                meter.choose(name, rank_scores(counts, exact, offset))
        return {"offsets": offsets}

    def _offsets(self, count: float, plan: Plan) -> NDArray[np.int64]:
        """How far, in scores, the low ends aim below the rank q n and the high ends above it, shape (quantiles, 2); -1: no end."""
        spend = plan.spend("records")
        alpha = 1 - self.level
        # a Laplace of scale s is beyond s log(1/a) with probability a; rounding moves it by half a step
        within = float(spend.scale * spend.step) * log(1 / (alpha * _COUNT_ERROR)) + 1
        least, most = max(floor(count - within), 0), max(ceil(count + within), 0)
        offsets = np.full((len(self.qs), 2), -1, dtype=np.int64)
        if most >= 1 << 40:
            return offsets
        for row, q, exact in zip(offsets, self.qs, self._exact, strict=True):
            low, high = _binomial_offsets(exact, least, most, alpha * _SAMPLING_ERROR)
            low += self._reach(plan.spend(f"{q!r} low"), alpha)
            high += self._reach(plan.spend(f"{q!r} high"), alpha)
            if low <= exact.numerator * least:
                row[0] = low
            if high <= (exact.denominator - exact.numerator) * least:
                row[1] = high
        return offsets

    def _reach(self, choice: BudgetItem, alpha: float) -> int:
        """t: a choice misses its target by less, in scores, but for the probability that an interval allows it."""
        reach = 2 * float(choice.sensitivity / choice.scale) * log(choice.shape[0] / (alpha * _CHOICE_ERROR))
        return _FAR if reach >= _FAR else ceil(reach)

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Intervals:
        """Estimates and intervals in the column's units. There is no question to ask: `PlanError` for one."""
        (options or ResultOptions()).only()
        column = release.plan.declared[self.column]
        assert not isinstance(column, Categorical)
        chosen = np.array([int(release[name].values[0]) for q in self.qs for name in _names(q)])
        given = np.asarray(release.public["offsets"]).reshape(-1, 2) >= 0
        # a value on the grid stands for half a step to either side
        half = (column.high - column.low) / (column.steps - 1) / 2
        places = column.decode(chosen).reshape(-1, 3)
        low: Any = np.where(given[:, 0], places[:, 0] - half, -inf)
        high: Any = np.where(given[:, 1], places[:, 2] + half, inf)
        # quantiles do not fall: ends that do are moved outwards, as each interval must hold by itself; the estimates are sorted
        low, high = np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)
        middle: Any = np.clip(np.sort(places[:, 1]), np.minimum(low, high), np.maximum(low, high))
        open_ends = int((~given).sum())
        empty = bool((low > high).any())
        useless = open_ends == 2 * len(self.qs) or empty
        count = release["records"]
        share = self._share(float(count.decode()[0]), np.asarray(release.public["offsets"]).reshape(-1, 2))
        # 95 % of a Laplace of scale s lie within s log 20
        margin = float(count.scale * count.step) * log(20)
        return Intervals.of(
            release,
            response=self.column,
            names=tuple(f"{q:g}" for q in self.qs),
            estimates=middle,
            low=np.full_like(low, -inf) if useless else low,
            high=np.full_like(high, inf) if useless else high,
            level=self.level,
            share=share,
            status="no_information" if useless else "valid",
            reason="too few records for this budget: no end of any interval can be given; spend more, or take a coarser grid"
            if useless
            else "",
            flags=(_OPEN_END,) if open_ends and not useless else (),
            facts=(
                (
                    "Records",
                    f"{float(count.decode()[0]):,.0f} ± {margin:,.0f} (noisy count; the noise is within ± at 95 %)",
                ),
                ("Bounds", f"{column.low:,g} to {column.high:,g}, declared; {column.steps:,} possible answers"),
            ),
            rows_are="quantile",
        )

    def _share(self, count: float, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of the squared half-widths, in ranks, what sampling alone would not give."""
        n = max(round(count), 1)
        alone = [sum(_binomial_offsets(exact, n, n, (1 - self.level) / 2)) for exact in self._exact]
        return noise_share(np.where((offsets < 0).any(axis=1), inf, offsets.sum(axis=1)), alone)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The quantiles of the clipped column: the least value that a share of at least q of the records does not exceed."""
        values = CodedFrame.checked(frame).present(self.column)
        if not len(values):
            raise PlanError(f"no practice record has a value of {self.column!r}; give more records")
        found = np.quantile(values, self.qs, method="inverted_cdf")
        return {f"{q:g}": float(value) for q, value in zip(self.qs, found, strict=True)}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A record at either end of the grid: it moves every rank, or none."""
        if isinstance(schema, Schema):
            yield ends(schema, (self.column,))


def _inside(x: object) -> bool:
    return is_finite(x) and 0 < x < 1


def _names(q: float) -> tuple[str, str, str]:
    return f"{q!r} low", f"{q!r}", f"{q!r} high"


def _sensitivity(q: Fraction, relation: str) -> Fraction:
    """D of `rank_scores`."""
    return Fraction(q.denominator if relation == "substitute" else max(q.numerator, q.denominator - q.numerator))


def _binomial_offsets(q: Fraction, least: int, most: int, error: float) -> tuple[int, int]:
    """The largest a n - b k_n and b h_n - a n, k_n and h_n the lower and upper `error`-quantiles of Bin(n, q), over least <= n <= most.

    At most 1,001 values of n are looked at; between two of them k_n and h_n do not fall, which bounds both.
    """
    gap = (most - least) // _POINTS + 1
    starts = np.arange(least, most + 1, gap)
    ends = np.minimum(starts + gap - 1, most)
    chance = q.numerator / q.denominator
    lower, upper = stats.binom.ppf(error, starts, chance), stats.binom.isf(error, ends, chance)
    # Bin(0, q) is 0; its quantiles are given as -1 by some versions
    lower, upper = (np.maximum(v, 0).astype(np.int64) for v in (lower, upper))
    a, b = q.numerator, q.denominator
    return max(int((a * ends - b * lower).max()), 0), max(int((b * upper - a * starts).max()), 0)
