"""The meat of clusters: the Gram matrix of cluster sums, where what is protected is one of a cluster's members.

A map of units gives each unit integers with |m| <= s = 2^20 (`scores.unit_scores`); T is their sum over a cluster, cut to G = g s and
rounded, and M = sum T T' over clusters.

Guarantee. A cut to a ball moves no two points further apart (it is the projection on a convex set), so that a unit that is added or removed
moves its cluster's cut sum by at most s, and rounding and the floats of the cut move it by sqrt(p) + 1 more. With
|aa' - bb'|_F <= |a - b| (|a| + |b|) and |T| <= G + sqrt(p)/2 it moves M by at most

    (s + sqrt(p) + 1) (2 G + sqrt(p)),

about 2 G s. Behind M on the diagonal stands how far the cut goes (`beyond`), which a unit moves by at most a third of that: sqrt(10/9) of
it in all. Replaced, a unit may leave one cluster and enter another, or change its scores where it is: twice that. Which cluster a unit is
in follows from its own rows alone. G follows from public facts (size, icc). Products are of Python integers. Source: derived here; the
estimator is the cluster-robust covariance of Liang, Zeger 1986.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.clusters.beyond import RAMPS, moved_ramps, ramps
from confide.aggregates.clusters.psu_limits import IF_EVEN
from confide.aggregates.lines.rows import BITS, Codes
from confide.protocol import Gram, RecordMap, Statistic
from confide.protocol.exact import digest, pack
from confide.protocol.units.keyed import Keyed
from confide.protocol.units.over import MapOver
from confide.protocol.units.whose import CLUSTER_ROW, by_units
from confide.schema import Clusters

__all__ = ["OUTCOME", "ClusterMeat", "meat_of", "ruler_of", "scores_of", "too_few", "with_scores"]

_ONE = 1 << BITS


@dataclass(frozen=True)
class _ClusterRows(MapOver):
    """A map of units and the row of codes that says which cluster a unit is in; of one unit by itself it is the map."""

    map: RecordMap
    spread: float

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.map.columns, CLUSTER_ROW)

    @cached_property
    def digest(self) -> str:
        return digest(["of clusters", self.map.digest, pack(self.spread)])

    def __call__(self, codes: Codes) -> Codes:
        return self.map(codes[:-1])


@dataclass(frozen=True)
class ClusterMeat:
    """M = sum T T' over clusters in the first `width` rows and columns, and behind it what the cut leaves out. scores: a map of units;
    spread: g, at least 1.
    """

    scores: RecordMap
    spread: float
    norm: str = "frobenius"

    @cached_property
    def map(self) -> _ClusterRows:
        return _ClusterRows(self.scores, self.spread)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.scores.width + RAMPS, self.scores.width + RAMPS)

    @property
    def _longest(self) -> int:
        """s, in steps."""
        return isqrt(self.scores.l2_squared - 1) + 1

    @property
    def cut(self) -> int:
        """G, in steps."""
        return ceil(self.spread * self._longest)

    @property
    def _root(self) -> int:
        return isqrt(self.scores.width - 1) + 1

    @property
    def _moved(self) -> int:
        return (self._longest + self._root + 1) * (2 * self.cut + self._root)

    @cached_property
    def _fine(self) -> int:
        """What ramps count by."""
        return self._moved // 3 // moved_ramps(self._longest + self._root + 2)

    @property
    def ruler(self) -> NDArray[np.float64]:
        """(what a ramp that one cluster has run counts, G) in whole numbers of this statistic, for `Beyond.of`."""
        return np.array([float(self._fine * moved_ramps(self.cut)), float(self.cut)])

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self._moved * (2 if relation == "substitute" else 1)) ** 2 * Fraction(10, 9)

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= p |M|_F
        squared = self.sensitivity_squared(relation)
        return Fraction((self.scores.width + 1) * (isqrt(int(squared)) + 1))

    # the sum ----------------------------------------------------------------------------------------------------------

    def zero(self) -> Keyed:
        return Keyed(partial(np.zeros, self.scores.width, np.int64))

    def update(self, state: Keyed, codes: Codes) -> Keyed:
        own = codes[:-1]
        found = self.scores(own)
        row = by_units(self)
        assert row is not None
        cluster = codes[-1, own[self.scores.columns.index(row)] >= 0]
        numbers, at = np.unique(cluster, return_inverse=True)
        sums = np.zeros((len(numbers), len(found)), dtype=np.int64)
        np.add.at(sums, at, found.T.astype(np.int64))
        for number, total in zip(numbers.tolist(), sums, strict=True):
            state[int(number)] += total
        return state

    def merge(self, a: Keyed, b: Keyed) -> Keyed:
        for key, total in b.items():
            a[key] += total
        return a

    def value(self, state: Keyed) -> NDArray[Any]:
        whole, width = np.zeros(self.shape, dtype=object), self.scores.width
        for total in state.values():
            t = self._limited(total)
            whole[:width, :width] += np.multiply.outer(t, t)
        for k, total in enumerate(ramps(state.values(), self.cut)):
            whole[width + k, width + k] = self._fine * total
        return whole

    def _limited(self, total: NDArray[np.int64]) -> NDArray[Any]:
        """T: the sum cut to G, as Python integers."""
        exact = total.astype(object)
        squared = int((exact * exact).sum())
        if squared <= self.cut**2:
            return np.asarray(exact)
        root = isqrt(squared) + 1
        return np.array([(2 * int(v) * self.cut + root) // (2 * root) for v in exact], dtype=object)


def meat_of(scores: RecordMap, spread: float | None) -> Statistic:
    """The Gram matrix of units, or of clusters of them where their spread is given."""
    return Gram(scores) if spread is None else ClusterMeat(scores, spread)


def scores_of(meat: Statistic) -> Any:
    """The map behind a meat."""
    return meat.scores if isinstance(meat, ClusterMeat) else meat.map


def ruler_of(meat: Statistic) -> dict[str, NDArray[np.float64]]:
    """The public number that what a cut of clusters leaves out is read with, by name; none of units."""
    return {"meat_beyond": meat.ruler} if isinstance(meat, ClusterMeat) else {}


def with_scores(meat: Statistic, scores: RecordMap) -> Statistic:
    """The meat of another map of the same bounds."""
    if isinstance(meat, ClusterMeat):
        return replace(meat, scores=scores)
    assert isinstance(meat, Gram)
    return replace(meat, map=scores)


# As `psu_limits.OUTCOME`, of clusters, whose scores are cut at the bound of one record.
OUTCOME = (1.0, 13.0)


def too_few(
    cluster: Clusters | None, coordinates: int, mu: float, n: int | None = None, outcome: float | None = None
) -> tuple[str, ...]:
    """The warning of a plan whose meat is mostly noise, where the number of clusters is public; where it is not, the note of one that was
    asked for n units. mu: of the meat; outcome: of a line of an outcome, of `OUTCOME`.

    The noise of a diagonal entry over what it measures is about 18 p/(mu C sqrt(S (1 + (S - 1) icc))) for a cut at three sds.

    >>> too_few(Clusters("school", size=30, count=10), 2, 0.3)[0][:42]
    'too few clusters for this budget: the nois'
    >>> too_few(Clusters("school", size=30), 2, 0.3, 300)[0][:43]
    'too few clusters for this budget at n = 300'
    """
    if cluster is None:
        return ()
    count, told = cluster.count, ""
    if n:
        # of a public number of clusters there is the warning
        count, told = None if count else max(round(n / cluster.size), 2), f" at n = {n:,}"
    if count is None:
        return ()
    share = (outcome or 1.0) * 18 * coordinates * cluster.spread / (mu * count * cluster.usual**2)
    if share <= 0.5:
        return ()
    return (
        f"too few clusters for this budget{told}: the noise of their sums is about {share:.2g} times what it measures, so that intervals "
        f"are wide; about {ceil(2 * share * count):,} values of {cluster.column}, or {ceil(20 * share) / 10:.1f} times the mu, would do"
        f"{f' {IF_EVEN}' if outcome else ''}",
    )
