"""Quantiles of a column under pure epsilon, all of them and both ends of each interval from two noisy trees of counts.

Guarantee: PureDP(epsilon), add-remove or substitute. Round 1, for a fifth of epsilon, counts the records in 256 public bins and in 16 nodes
above them; round 2, for the rest, in 256 bins that follow from round 1 alone and lie mostly where the quantiles may be
(`aggregates.cells.fitted_bins.about_quantiles`), and in 16 nodes. One record moves 2 numbers of a round by 1 (add-remove), or 4
(substitute), wherever the bins are (`aggregates.cells.tree_counts`, proof): the epsilons add up. Two-sided geometric noise (Ghosh,
Roughgarden, Sundararajan 2012) on the whole numbers. A column of at most 256 values has a bin for each, and round 2 alone; of at most 16,
no nodes.

Any quantile is read off round 2; those that the plan names have the narrowest intervals.

Intervals are hulls of whole bins (`aggregates.distributions.cumulative_counts`), for any distribution; the noise, a sum of dozens, is
taken as normal. Given round 1 the bins are fixed, and round 2's noise is what it is for public ones: intervals hold as they do there. An
end that is the declared bound because noise may be all that lies beyond the quantile is flagged, status "partial".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.free_moments import Measure
from confide.aggregates.cells.histogram import Histogram
from confide.aggregates.distributions.cumulative import Bins
from confide.aggregates.distributions.cumulative_counts import CumulativeCounts
from confide.aggregates.distributions.cumulative_strategy import Strategy
from confide.aggregates.distributions.fitted_bins import Fine, about_quantiles
from confide.aggregates.distributions.tree_counts import FinePlace, TreeCounts, tree_strategy
from confide.aggregates.lines.corners import ends
from confide.aggregates.lines.rows import BITS
from confide.errors import PlanError, ReleaseError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.intervals.posteriors.rows import numeric
from confide.methods.intervals.result import QuantileIntervals
from confide.protocol import Allowance, Meter, Method, Noisy, Plan, Question, Release, Source, Together
from confide.results.declared_bounds import DECLARED_BOUND, open_ends
from confide.schema import Integer, Practice, Schema
from confide.schema.formulas.names import quoted

__all__ = ["PureQuantiles", "QuantileAbout", "practice_quantiles"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_TREE, _SMALL = (16, 16), (16,)
_BINS = 256
# Fine bins at most, of which those of both rounds are made.
_FINE = 1 << 16
# Shares of epsilon: of the round that finds the quantiles, and of the one that counts about them.
_FIRST, _SECOND = Fraction(1, 5), Fraction(4, 5)
# Within so many standard errors of round 1 and sampling a quantile is looked for.
_NEAR = 3.0


@dataclass(frozen=True)
class QuantileAbout:
    """The column with its fine bins; outline: the fine bins at which round 1's bins start, () where every value has a bin of its own."""

    place: FinePlace
    outline: tuple[int, ...]

    @property
    def first(self) -> TreeCounts:
        """What round 1 counts."""
        return TreeCounts(self.place, _TREE, self.outline)

    @property
    def second(self) -> TreeCounts:
        """What round 2 counts: in even bins, until round 1 says where they start."""
        size = self.place.cells
        if not self.outline:
            return TreeCounts(self.place, _TREE if size > _SMALL[0] else _SMALL, tuple(range(size)))
        return TreeCounts(self.place, _TREE, tuple(k * size // _BINS for k in range(_BINS)))

    def starts(self, noisy: Noisy, qs: Sequence[float]) -> Whole:
        """The fine bins at which those of round 2 start, from round 1."""
        own = _Tree.of(noisy, self.first.tree, self.edges(np.array(self.outline)))
        size = max(own.size, 1.0)
        spans = []
        for q in qs:
            half = _NEAR * sqrt(size * q * (1 - q) + own.unit * float(own.strategy.centred(q).max())) / size
            spans.append((max(q - half, 0.0), min(q + half, 1.0)))
        return about_quantiles(own.rising, np.array(self.outline), self.place.cells, _BINS, spans)

    def edges(self, starts: Whole) -> Array:
        """Edges of bins that start at these fine ones, (m + 1,), in the column's units."""
        codes = np.append(starts * self.place.fine.width, self.place.fine.codes)
        own = numeric(self.place.schema, self.place.column, "a quantile")
        step = (own.high - own.low) / (own.steps - 1)
        # a value on the grid stands for half a step to either side
        return np.asarray(np.clip(own.low + (codes - 0.5) * step, own.low, own.high))

    def read(self, release: Release) -> _Tree:
        """The tree that the estimates follow from."""
        noisy = release["tree"]
        starts = np.array(self.second.starts)
        if self.outline:
            starts = np.asarray(release.public.get("starts", ()), dtype=np.int64)
            if (
                starts.shape != (_BINS,)
                or starts[0] != 0
                or starts[-1] >= self.place.cells
                or (np.diff(starts) < 1).any()
            ):
                raise ReleaseError("the release does not say where its bins start: the file was altered")
        return _Tree.of(noisy, self.second.tree, self.edges(starts))


def practice_quantiles(frame: Any, column: str, qs: tuple[float, ...]) -> Mapping[str, float]:
    """The least values that a share of at least each q of the practice records does not exceed."""
    values = Practice.checked(frame).present(column)
    if not len(values):
        raise PlanError(f"no practice record has a value of {column!r}; give more records")
    found = np.quantile(values, qs, method="inverted_cdf")
    return {f"{q:g}": float(value) for q, value in zip(qs, found, strict=True)}


@dataclass(frozen=True)
class PureQuantiles(Method):
    """Quantiles of a numeric column with intervals, under pure epsilon.

    column; q: one number or several strictly between 0 and 1, for the table, about which most bins lie; any others are read off the same
    release, in wider bins, by cf.Question(quantiles=(.1, .9)).

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5)})
    >>> source = cf.read(schema.sample(5_000, seed=1), schema)
    >>> release = cf.release(PureQuantiles("income"), source, cf.PureDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> frame = cf.infer(release, cf.Question(quantiles=(0.1, 0.9))).to_frame()
    >>> bool((frame.low < frame.estimate).all() and (frame.estimate < frame.high).all())
    True
    """

    column: str
    q: float | tuple[float, ...] = 0.5

    name: ClassVar[str] = "pure_quantiles"
    family: ClassVar[str] = "intervals"
    source: ClassVar[str] = (
        "two trees of counts with geometric noise, least squares (Hay et al. 2010); bins about quantiles and interval derived in confide"
    )
    native: ClassVar[str] = "PureDP"
    intervals: ClassVar[str] = (
        "population quantiles of the clipped column, any distribution; sampling and privacy noise"
    )
    asks: ClassVar[tuple[str, ...]] = ("quantiles",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", _checked(self.q))

    def about(self, schema: Any) -> QuantileAbout:
        whole = Schema.of(schema)
        own = numeric(whole, self.column, "a quantile")
        fine = Fine(own.steps, ceil(own.steps / _FINE))
        place = FinePlace(whole, self.column, fine)
        if own.steps <= _BINS:
            return QuantileAbout(place, ())
        graded = Bins.graded(Measure.of(quoted(self.column), whole), _BINS)
        return QuantileAbout(place, tuple(sorted({start // fine.width for start in graded.starts})))

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Two noisy trees; with n, a note says how far intervals will reach."""
        about, allowance = self.about(schema), Allowance.of(privacy, self, schema)
        second = about.second
        if about.outline:
            first = allowance.spend("outline", about.first, _FIRST, law="discrete_laplace")
            spend = allowance.spend("tree", second, _SECOND, law="discrete_laplace")
            event: Any = Together((first, spend))
            live: dict[str, Any] = {"fine": Histogram(about.place), "outline": about.first, "tree": second}
        else:
            event = spend = allowance.spend("tree", second, Fraction(1), law="discrete_laplace")
            live = {"tree": second}
        made = Plan.of(
            self,
            schema,
            allowance,
            event,
            live,
            n=n,
            target=f"quantiles of {self.column}, clipped to its declared bounds",
            covers="population quantiles, in whole bins; independent records, any distribution; sampling of records and privacy noise",
        )
        if not n:
            return made
        own, noise, reached = tree_strategy(second.tree, len(second.starts)), spend.noise_sd or 0.0, []
        for q in self._qs:
            half = 1.96 * sqrt(n * q * (1 - q) + noise**2 * float(own.centred(q)[int(q * len(second.starts))])) / n
            reached.append(f"{q:g} from {max(q - half, 0):.3g} to {min(q + half, 1):.3g}")
        said = (
            f"with {n:,} records the intervals reach about as far as these quantiles, and a bin: {', '.join(reached)}"
        )
        return replace(made, notes=(*made.notes, said))

    @property
    def _qs(self) -> tuple[float, ...]:
        return _checked(self.q)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the fine counts, which stay here; round 1, the bins that follow from it, round 2."""
        about = self.about(Schema.from_dict(plan.schema))
        if not about.outline:
            return super().draw(source, plan, meter)
        (counts,) = source.aggregate(plan.statistic("fine"))
        outline = meter.draw("outline", about.first.of_fine(counts, np.array(about.outline)))
        starts = about.starts(outline, self._qs)
        meter.draw("tree", about.second.of_fine(counts, starts))
        return {"starts": starts}

    def table(self, release: Release, about: QuantileAbout, question: Question) -> QuantileIntervals:
        """Quantiles; question: `quantiles` in place of the plan's."""
        qs = self._qs if question.quantiles is None else _checked(question.quantiles)
        own = about.read(release)
        whole = isinstance(about.place.schema[self.column], Integer)
        low, high = float(own.edges[0]), float(own.edges[-1])

        def limits(alpha: float) -> tuple[list[float], list[float]]:
            found = [own.interval(q, alpha, whole=whole) for q in qs]
            return [a for a, _ in found], [b for _, b in found]

        def marks(alpha: float) -> list[str]:
            return [str(DECLARED_BOUND) if any(own.unbacked(q, alpha)) else "" for q in qs]

        bound = [own.unbacked(q, 0.05) for q in qs]
        reason = open_ends(((f"{q:g}", own, q, sides) for q, sides in zip(qs, bound, strict=True)), "epsilon")
        status: dict[str, Any] = {"status": "partial", "reason": reason, "flags": (DECLARED_BOUND,)}
        useless = all(a and b for a, b in bound)
        size = (("Records", f"{own.size:,.0f} (noise sd {own.size_sd:,.3g})"),)
        return QuantileIntervals.read(
            release,
            response=self.column,
            names=tuple(f"{q:g}" for q in qs),
            limits=limits,
            estimates=[own.point(q, whole=whole) for q in qs],
            bounds=[(low, high)] * len(qs),
            alone=self._alone(own, qs, limits(0.05), whole=whole),
            marks=marks,
            facts=(
                *(size if self._hides_size(release, about) else ()),
                ("Bins", f"{len(own.counts):,}, {low:,g} to {high:,g}"),
            ),
            **(status if any(a or b for a, b in bound) and not useless else {}),
        )

    @staticmethod
    def _alone(own: _Tree, qs: Sequence[float], ends: tuple[list[float], list[float]], *, whole: bool) -> list[float]:
        """How wide the intervals would be by sampling alone."""
        found = [own.widths(q, own.edges.tolist(), float(whole)) for q in qs]
        return [(b - a) * alone / width for (width, alone), a, b in zip(found, *ends, strict=True)]

    def _hides_size(self, release: Release, about: QuantileAbout) -> bool:
        """Whether the number of records that count is private: not under substitute, where each one does."""
        left_out = about.place.schema[self.column].on_missing == "drop" or self.where is not None
        return left_out or release.guarantees[0].relation != "substitute"

    def cumulative(self, release: Release) -> tuple[Array, Array, Array]:
        """(sums up to each edge, sds of their noise, edges in the column's units), (m + 1,) each."""
        own = self.about(release.plan.schema).read(release)
        return own.sums, own.sds, own.edges

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The quantiles of the clipped column: the least value that a share of at least q of the records does not exceed."""
        return practice_quantiles(frame, self.column, self._qs)

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records at either end."""
        if isinstance(schema, Schema):
            yield ends(schema, (self.column,))


@dataclass(frozen=True, eq=False)
class _Tree(CumulativeCounts):
    """Counts of the bins by least squares of a released tree. edges (m + 1,), in the column's units."""

    counts: Array
    unit: float
    strategy: Strategy
    edges: Array
    part: float = 1.0

    @classmethod
    def of(cls, noisy: Noisy, tree: tuple[int, ...], edges: Array) -> _Tree:
        own = tree_strategy(tree, len(edges) - 1)
        return cls(own.counts(noisy.decode() * 2.0**BITS), noisy.variance, own, edges)

    def interval(self, q: float, alpha: float, *, whole: bool) -> tuple[float, float]:
        """Ends in the column's units, the bounds in place of unbacked ones; whole: of an integer column, whose values lie half a step
        inside the edges."""
        (first, last), (least, most) = self.hull(q, alpha), self.unbacked(q, alpha)
        low, high = float(self.edges[0 if least else first]), float(self.edges[-1 if most else last + 1])
        return (float(np.ceil(low)), float(np.floor(high))) if whole else (low, high)

    def point(self, q: float, *, whole: bool) -> float:
        """Interpolated where the monotone sums reach q N."""
        rising = np.concatenate([[0.0], self.rising])
        target = q * rising[-1]
        j = int(np.clip(np.searchsorted(rising, target, side="left"), 1, len(rising) - 1))
        inside = rising[j] - rising[j - 1]
        part = (target - rising[j - 1]) / inside if inside > 0 else 0.5
        found = float(self.edges[j - 1] + np.clip(part, 0.0, 1.0) * (self.edges[j] - self.edges[j - 1]))
        return float(np.ceil(found - 0.5)) if whole else found


def _checked(q: Any) -> tuple[float, ...]:
    """Probabilities as a tuple; `PlanError` for any that are none."""
    given: Sequence[Any] = tuple(q) if isinstance(q, (tuple, list, np.ndarray)) else (q,)
    if not given or not all(is_finite(one) and 0 < one < 1 for one in given):
        raise PlanError(
            f"q must be one number or several, each strictly between 0 and 1, got {q!r}; write q=(0.25, 0.5, 0.75)"
        )
    return tuple(float(one) for one in given)
