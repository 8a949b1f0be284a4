"""The meat of clusters: the Gram matrix of cluster sums, where what is protected is one of a cluster's members.

A map of units gives each unit integers with |m| <= s = 2^20 (`scores.unit_scores`); T is their sum over a cluster, cut to G = g s and
rounded, and M = sum T T' over clusters.

Guarantee. A cut to a ball moves no two points further apart (it is the projection on a convex set), so that a unit that is added or removed
moves its cluster's cut sum by at most s, and rounding and the floats of the cut move it by sqrt(p) + 1 more. With
|aa' - bb'|_F <= |a - b| (|a| + |b|) and |T| <= G + sqrt(p)/2 it moves M by at most

    (s + sqrt(p) + 1) (2 G + sqrt(p)),

about 2 G s. Behind M on the diagonal stand how far the cut goes (`beyond`), and how many clusters hold units, at least (`fewest`), each of
which a unit moves by at most a third of that: sqrt(11/9) of it in all. Replaced, a unit may leave one cluster and enter another, or change
its scores where it is: twice that. Which cluster a unit is in follows from its own rows alone. G follows from public facts (size, icc),
caps of units from these and earlier noisy numbers. Products are of Python integers. Source: derived here; the estimator is the
cluster-robust covariance of Liang, Zeger 1986.
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
from confide.aggregates.clusters.fewest import COUNTED, FEW, LEAST_DF, caps_of, fewest_behind, ramps_of
from confide.aggregates.clusters.psu_limits import IF_EVEN
from confide.aggregates.lines.rows import BITS, Codes
from confide.protocol import Gram, RecordMap, Release, Statistic
from confide.protocol.exact import digest, pack
from confide.protocol.units.contributions import Independent
from confide.protocol.units.keyed import Keyed
from confide.protocol.units.over import MapOver
from confide.protocol.units.whose import CLUSTER_ROW, by_units
from confide.schema import Clusters, Schema, SurveyDesign

__all__ = [
    "OUTCOME",
    "ClusterMeat",
    "independent_of",
    "meat_of",
    "ruler_of",
    "scores_of",
    "too_few",
    "unit_caps",
    "with_scores",
]

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
class ClusterMeat(Statistic):
    """M = sum T T' over clusters in the first `width` rows and columns, and behind it what the cut leaves out and how many clusters there
    are. scores: a map of units; spread: g, at least 1; caps: of the units in a cluster, those with a score.
    """

    scores: RecordMap
    spread: float
    caps: tuple[int, int] = (1, 1)
    norm: str = "frobenius"

    @cached_property
    def map(self) -> _ClusterRows:
        return _ClusterRows(self.scores, self.spread)

    @property
    def shape(self) -> tuple[int, int]:
        width = self.scores.width + RAMPS + COUNTED
        return (width, width)

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
        """(what a ramp that one cluster has run counts, G, what a unit counts) in whole numbers of this statistic, and the caps, for
        `Beyond.of` and `fewest_behind`.
        """
        return np.array(
            [float(self._fine * moved_ramps(self.cut)), float(self.cut), float(self._moved // 3), *self.caps]
        )

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self._moved * (2 if relation == "substitute" else 1)) ** 2 * Fraction(11, 9)

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= p |M|_F
        squared = self.sensitivity_squared(relation)
        return Fraction((self.scores.width + 1) * (isqrt(int(squared)) + 1))

    # the sum ----------------------------------------------------------------------------------------------------------

    def zero(self) -> Keyed:
        # the last number is that of units
        return Keyed(partial(np.zeros, self.scores.width + 1, np.int64))

    def update(self, state: Keyed, codes: Codes) -> Keyed:
        own = codes[:-1]
        found = self.scores(own)
        row = by_units(self)
        assert row is not None
        cluster = codes[-1, own[self.scores.columns.index(row)] >= 0]
        numbers, at = np.unique(cluster, return_inverse=True)
        rows = np.vstack([found, found.any(axis=0)]).astype(np.int64)
        sums = np.zeros((len(numbers), len(rows)), dtype=np.int64)
        np.add.at(sums, at, rows.T)
        for number, total in zip(numbers.tolist(), sums, strict=True):
            state[int(number)] += total
        return state

    def merge(self, a: Keyed, b: Keyed) -> Keyed:
        for key, total in b.items():
            a[key] += total
        return a

    def value(self, state: Keyed) -> NDArray[Any]:
        whole, width = np.zeros(self.shape, dtype=object), self.scores.width
        sums, units = [total[:-1] for total in state.values()], np.array([total[-1] for total in state.values()])
        for total in sums:
            t = self._limited(total)
            whole[:width, :width] += np.multiply.outer(t, t)
        counted = ramps_of(units, np.array(self.caps)).sum(axis=1)
        behind = [
            *(self._fine * total for total in ramps(sums, self.cut)),
            *(self._moved // 3 * int(v) for v in counted),
        ]
        for k, total in enumerate(behind, width):
            whole[k, k] = total
        return whole

    def _limited(self, total: NDArray[np.int64]) -> NDArray[Any]:
        """T: the sum cut to G, as Python integers."""
        exact = total.astype(object)
        squared = int((exact * exact).sum())
        if squared <= self.cut**2:
            return np.asarray(exact)
        root = isqrt(squared) + 1
        return np.array([(2 * int(v) * self.cut + root) // (2 * root) for v in exact], dtype=object)


def meat_of(scores: RecordMap, cluster: Clusters | None) -> Statistic:
    """The Gram matrix of units, or of clusters of them."""
    return Gram(scores) if cluster is None else ClusterMeat(scores, cluster.spread)


def scores_of(meat: Statistic) -> Any:
    """The map behind a meat."""
    return meat.scores if isinstance(meat, ClusterMeat) else meat.map


def ruler_of(meat: Statistic) -> dict[str, NDArray[np.float64]]:
    """The public numbers that what stands behind a meat of clusters is read with, by name; none of units."""
    return {"meat_beyond": meat.ruler} if isinstance(meat, ClusterMeat) else {}


def with_scores(meat: Statistic, scores: RecordMap, schema: Schema, records: float) -> Statistic:
    """The meat of another map of the same bounds. records: their noisy number, which sets the caps of units in a cluster."""
    if isinstance(meat, ClusterMeat):
        assert schema.cluster is not None
        return replace(meat, scores=scores, caps=unit_caps(schema.cluster, records / schema.rows_per_unit))
    assert isinstance(meat, Gram)
    return replace(meat, map=scores)


def independent_of(release: Release, records: float) -> Independent | None:
    """`Independent.of`, with no more clusters than are known to hold records, and weak where these are too few."""
    found, ruler = Independent.of(release, records), release.public.get("meat_beyond")
    if found is None or ruler is None:
        return found
    known = fewest_behind(release["meat"], np.asarray(ruler, dtype=np.float64))
    few = FEW if known - 1 < LEAST_DF else found.weak
    return replace(found, units=max(min(found.units, known), 1.0), weak=few)


def unit_caps(cluster: Clusters | SurveyDesign, units: float) -> tuple[int, int]:
    """(m_1, m_2) of clusters, or PSUs, by how many units there are, and how many clusters where that is public."""
    size = float(cluster.size or 1.0)
    count = cluster.count if isinstance(cluster, Clusters) else cluster.psu_count
    low, high = caps_of(units, float(count or max(units, 1.0) / size), size).tolist()
    return low, high


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
