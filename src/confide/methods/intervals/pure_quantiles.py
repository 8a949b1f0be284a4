"""Quantiles of a column under pure epsilon, all of them and both ends of each interval from one noisy tree of counts.

Guarantee: PureDP(epsilon), add-remove or substitute. A record lies in one of m public bins, and in one node of each of h levels above them
(8 and 128 nodes of 2,048 bins): numbers of records of all nodes, which one record moves by 1 in each of h levels (add-remove), or two
by 1 in each (substitute): h and 2 h in l1. Two-sided geometric noise (Ghosh, Roughgarden, Sundararajan 2012) on the whole numbers.

Least squares makes counts of the bins that add up (Hay, Rastogi, Miklau, Suciu 2010): "up to x" is the sum of a few nodes of each level,
where bins alone would add up hundreds. Nothing else is paid for, so that any quantile is read off.

Intervals are hulls of whole bins (`aggregates.cells.cumulative_counts`), for any distribution; the noise, a sum of dozens, is taken as
normal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.cumulative_counts import CumulativeCounts
from confide.aggregates.cells.cumulative_strategy import Strategy
from confide.aggregates.cells.histogram import CellNumber, WholeSums
from confide.aggregates.rows import BITS
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.intervals.result import ConfidenceIntervals
from confide.methods.intervals.rows import numeric
from confide.protocol import Allowance, Method, Plan, Question, Release
from confide.protocol.exact import digest
from confide.schema import Practice, Schema

__all__ = ["PureQuantiles", "TreeCounts", "TreePlace"]

Array = NDArray[np.float64]

# Points of a grid -> children of a node, level by level, for columns with more: 8, 128 and 2,048 nodes, fewer where points are few.
_TREES = {1024: (8, 16, 16), 256: (8, 8, 16), 0: (8, 16)}


@dataclass(frozen=True)
class TreePlace(CellNumber):
    """One record as its bin, counted from 1; 0 for one that is left out. tree: children of a node, level by level."""

    schema: Schema
    column: str
    tree: tuple[int, ...] = _TREES[1024]

    @classmethod
    def read(cls, schema: Schema, column: str, nodes: int) -> TreePlace:
        """Of a release, by the number of its nodes: columns had fewer bins in version 1."""
        return next(own for tree in _TREES.values() if (own := cls(schema, column, tree)).nodes == nodes)

    @property
    def nodes(self) -> int:
        """Number of nodes of all levels."""
        return sum(prod(self.tree[: level + 1]) for level in range(len(self.tree)))

    @property
    def cells(self) -> int:
        """Number of bins."""
        return prod(self.tree)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def digest(self) -> str:
        return digest(["tree place", self.schema[self.column].to_dict(), self.column, list(self.tree)])

    @property
    def edges(self) -> Array:
        """The m + 1 edges, in the column's units."""
        own = numeric(self.schema, self.column, "a quantile")
        step = (own.high - own.low) / (own.steps - 1)
        starts = np.ceil(np.arange(self.cells + 1) * (own.steps / self.cells))
        # a value on the grid stands for half a step to either side
        return np.asarray(np.clip(own.low + (starts - 0.5) * step, own.low, own.high))

    def __call__(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        place = np.floor(codes[:1] * (self.cells / self.schema[self.column].steps))
        return np.asarray(np.where(codes[:1] >= 0, np.clip(place, 0, self.cells - 1) + 1, 0.0))


@dataclass(frozen=True)
class TreeCounts(WholeSums):
    """Numbers of records in all nodes, level by level; one record moves one node of each level by 1."""

    map: TreePlace
    norm: ClassVar[str] = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.nodes,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(len(self.map.tree) * (2 if relation == "substitute" else 1))

    sensitivity_l1 = sensitivity_squared

    def zero(self) -> NDArray[Any]:
        return np.zeros(self.map.cells, dtype=np.int64)

    def update(self, state: NDArray[np.int64], codes: NDArray[np.float64]) -> NDArray[np.int64]:
        state += np.bincount(self.map(codes)[0].astype(np.int64), minlength=self.map.cells + 1)[1:]
        return state

    def value(self, state: NDArray[Any]) -> NDArray[Any]:
        sizes = [prod(self.map.tree[: level + 1]) for level in range(len(self.map.tree))]
        return np.concatenate([state.reshape(size, -1).sum(axis=1) for size in sizes]).astype(object)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Nodes that differ, where a record gives way to each of others."""
        found = 0
        for level in range(len(self.map.tree)):
            size = self.map.cells // prod(self.map.tree[: level + 1])
            one, other = -(-own // size), -(-rows // size)
            found = found + ((other != one[:, None]) * ((other > 0) * 1 + (one > 0)[:, None] * 1)).sum(axis=0)
        return found


@lru_cache(maxsize=4)
def _strategy(tree: tuple[int, ...]) -> Strategy:
    """Least squares of a tree of counts, in units where noise has variance 1."""
    m, size, levels = prod(tree), prod(tree), []
    for children in tree:
        size //= children
        levels.append(np.kron(np.eye(m // size, dtype=np.int64), np.ones((1, size), dtype=np.int64)))
    return Strategy(np.concatenate(levels) << BITS, len(tree))


@dataclass(frozen=True)
class PureQuantiles(Method):
    """Quantiles of a numeric column with intervals, under pure epsilon.

    column; q: one number or several strictly between 0 and 1, for the table; any others are read off the same release by
    cf.Question(quantiles=(.1, .9)).

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
    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("1",)  # fewer bins
    family: ClassVar[str] = "intervals"
    source: ClassVar[str] = (
        "tree of counts with geometric noise, least squares (Hay et al. 2010); interval derived in confide"
    )
    native: ClassVar[str] = "PureDP"
    intervals: ClassVar[str] = (
        "population quantiles of the clipped column, any distribution; sampling and privacy noise"
    )
    asks: ClassVar[tuple[str, ...]] = ("quantiles",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", _checked(self.q))

    def about(self, schema: Any) -> TreePlace:
        whole = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        own = numeric(whole, self.column, "a quantile")
        return TreePlace(whole, self.column, next(tree for least, tree in _TREES.items() if own.steps > least))

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One noisy tree; with n, a note says how far intervals will reach."""
        about, allowance = self.about(schema), Allowance.of(privacy, self, schema)
        counts = TreeCounts(about)
        spend = allowance.spend("tree", counts, Fraction(1), law="discrete_laplace")
        noise = spend.noise_sd or 0.0
        made = Plan.of(
            self,
            schema,
            allowance,
            spend,
            {"tree": counts},
            n=n,
            target=f"quantiles of {self.column}, clipped to its declared bounds",
            covers="population quantiles, in whole bins; independent records, any distribution; sampling of records and privacy noise",
        )
        if not n:
            return made
        own, reached = _strategy(about.tree), []
        for q in self._qs:
            half = 1.96 * sqrt(n * q * (1 - q) + noise**2 * float(own.centred(q)[int(q * about.cells)])) / n
            reached.append(f"{q:g} from {max(q - half, 0):.3g} to {min(q + half, 1):.3g}")
        said = (
            f"with {n:,} records the intervals reach about as far as these quantiles, and a bin: {', '.join(reached)}"
        )
        return replace(made, notes=(*made.notes, said))

    @property
    def _qs(self) -> tuple[float, ...]:
        return _checked(self.q)

    def table(self, release: Release, about: TreePlace, question: Question) -> ConfidenceIntervals:
        """Quantiles; question: `quantiles` in place of the plan's."""
        qs = self._qs if question.quantiles is None else _checked(question.quantiles)
        own = _Tree.of(release, about)
        edges = own.edges
        low, high = float(edges[0]), float(edges[-1])

        def limits(alpha: float) -> tuple[list[float], list[float]]:
            found = [own.interval(q, alpha) for q in qs]
            return [a for a, _ in found], [b for _, b in found]

        return ConfidenceIntervals.read(
            release,
            response=self.column,
            names=tuple(f"{q:g}" for q in qs),
            limits=limits,
            estimates=[own.point(q) for q in qs],
            bounds=[(low, high)] * len(qs),
            facts=(
                ("Records", f"{own.size:,.0f} (noise sd {own.size_sd:,.3g})"),
                ("Bins", f"{len(edges) - 1:,}, public, {low:,g} to {high:,g}"),
            ),
        )

    def cumulative(self, release: Release) -> tuple[Array, Array, Array]:
        """(sums up to each edge, sds of their noise, edges in the column's units), (m + 1,) each."""
        about = self.about(release.plan.schema)
        own = _Tree.of(release, about)
        return own.sums, own.sds, own.edges

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The quantiles of the clipped column: the least value that a share of at least q of the records does not exceed."""
        values = Practice.checked(frame).present(self.column)
        if not len(values):
            raise PlanError(f"no practice record has a value of {self.column!r}; give more records")
        found = np.quantile(values, self._qs, method="inverted_cdf")
        return {f"{q:g}": float(value) for q, value in zip(self._qs, found, strict=True)}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records at either end."""
        if isinstance(schema, Schema):
            own = numeric(schema, self.column, "a quantile")
            yield {self.column: own.low}, {self.column: own.high}


@dataclass(frozen=True, eq=False)
class _Tree(CumulativeCounts):
    """Counts of the bins by least squares of a released tree. edges (m + 1,), in the column's units."""

    counts: Array
    unit: float
    strategy: Strategy
    edges: Array
    part: float = 1.0

    @classmethod
    def of(cls, release: Release, about: TreePlace) -> _Tree:
        noisy = release["tree"]
        place = TreePlace.read(about.schema, about.column, len(noisy.values))
        own = _strategy(place.tree)
        return cls(own.counts(noisy.decode() * 2.0**BITS), noisy.variance, own, place.edges)

    def interval(self, q: float, alpha: float) -> tuple[float, float]:
        """Ends in the column's units."""
        first, last = self.hull(q, alpha)
        return float(self.edges[first]), float(self.edges[last + 1])

    def point(self, q: float) -> float:
        """Interpolated where the monotone sums reach q N."""
        rising = np.concatenate([[0.0], self.rising])
        target = q * rising[-1]
        j = int(np.clip(np.searchsorted(rising, target, side="left"), 1, len(rising) - 1))
        inside = rising[j] - rising[j - 1]
        part = (target - rising[j - 1]) / inside if inside > 0 else 0.5
        return float(self.edges[j - 1] + np.clip(part, 0.0, 1.0) * (self.edges[j] - self.edges[j - 1]))


def _checked(q: Any) -> tuple[float, ...]:
    """Probabilities as a tuple; `PlanError` for any that are none."""
    given: Sequence[Any] = tuple(q) if isinstance(q, (tuple, list, np.ndarray)) else (q,)
    if not given or not all(is_finite(one) and 0 < one < 1 for one in given):
        raise PlanError(
            f"q must be one number or several, each strictly between 0 and 1, got {q!r}; write q=(0.25, 0.5, 0.75)"
        )
    return tuple(float(one) for one in given)
