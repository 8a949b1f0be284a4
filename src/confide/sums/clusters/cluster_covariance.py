"""The meat of clusters: the Gram matrix of cluster sums, where what is protected is one of a cluster's members.

A map of units gives each unit integers with |m| <= s = 2^20 (`scores.unit_scores`). T is their sum over a cluster, projected on the
ball of radius G = g s and rounded, and M = sum T T' over clusters.

Guarantee. The projection on a ball moves no two points further apart (it is the projection on a convex set). So a unit that is added or
removed moves its cluster's limited sum by at most s. Rounding and the floats of the projection move it by sqrt(p) + 1 more. With
|aa' - bb'|_F <= |a - b| (|a| + |b|) and |T| <= G + sqrt(p)/2 it moves M by at most

    (s + sqrt(p) + 1) (2 G + sqrt(p)),

about 2 G s. Behind M on the diagonal are two more parts: what the limit removes (`beyond`), and how many clusters hold units, at least
(`fewest`). A unit moves each by at most a third of that: sqrt(11/9) of it in all. Replaced, a unit may leave one cluster and enter
another, or change its scores where it is: twice that. Which cluster a unit is in follows from its own rows alone. G follows from public
facts (size, icc), caps of units from these and earlier noisy numbers. Products are of Python integers. Source: derived here; the
estimator is the cluster-robust covariance of Liang, Zeger 1986.

Up to what size the scores of persons and of PSUs have full weight in a meat: from three standard deviations on, as the noise allows.

The limit of a person's score is s, that of the sum of a PSU is G: one person moves the meat by about 2 s G (4 s G centered in strata),
so that its noise is that over mu of the meat. What it measures in one of p cells is about

    (n/p) E omega^2 (1 + (S - 1) icc) SD^2,

as weights are about the same within a PSU. G is made for PSUs of the weights that sums are made of, E omega^2/E omega, not of the mean
one. Persons are limited at 3 SDs times the root of that, as few are near omega = 1 where weights are uneven. Both grow from there as
long as that ratio stays below `FINE`, up to a length that limits no one in PSUs of the stated sizes. From there G may grow alone, up to
`wide`, for sums of PSUs that are more alike than declared, or whose means are skewed. Both the noise and what noise hides of the sums
beyond G grow with G. So a long limit is not safer than a short one whose ramps (`beyond`) are told well. The centered form is taken
where its ratio at the least limits is below `CENTRED`. All from public facts and earlier noisy numbers; source: derived here.

How many PSUs, or clusters, hold records, at least: by how many records each holds, limited at caps.

N_i is the number of records in PSU i. With caps 1 <= m_1 <= m_2, whole numbers,

    R_1 = sum_i min(N_i, m_1),    R_2 = sum_i min(max(N_i - m_1, 0), m_2 - m_1),

and K, the number of PSUs with N_i > 0, is at least R_1/m_1, and at least (R_1 + R_2)/m_2, as min(N, m) <= m [N > 0]. A PSU that holds
next to no record adds next to nothing, because it tells next to nothing of how PSUs differ. The cap m_1 is the number of records over
that of all PSUs, what each holds where they are spread evenly. The cap m_2 is the stated size of a PSU, what each holds where they fill
whole PSUs.

A record is in one PSU. One that comes or goes moves one N_i by 1, and with it one of the two, which share out the whole numbers up to
m_2, by 1 at most. So both together have sensitivity 1, whatever the caps are, which may come from earlier noisy numbers. Source:
derived here.

What the limit on sums of clusters removes: ramps of lengths beyond it, which one person moves by little, and what they say.

With Z_i the sum of cluster i before it is limited to length G,

    T_k = sum_i min(max(|Z_i| - 2^k G, 0), 2^k G),    k = 0, ..., 4.

These run over lengths from 1 to 32 times G. For one Z_i at most one ramp moves at a time, so that sum_k |T_k/2^k| moves by no more than
|Z_i| does. A person, whose scores are of length s, moves it by s/G of a cluster. A count of clusters beyond the limit is told by far
fewer of them than their squares would need. Source: derived here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.core import Gram, Noisy, RecordMap, Release, Statistic
from confide.core.exact import digest, pack
from confide.core.statistic import MapOver
from confide.core.units.contributions import Independent
from confide.core.units.privacy_unit import CLUSTER_ROW, UNIT_ROW, WHOLE_ROW, Keyed, by_units
from confide.schema import Clusters, Schema, SurveyDesign, Unit
from confide.sums.coding import BITS, Codes, leverage, round_within

#: Standard deviations of persons and of PSUs at which cuts begin.
LEAST = 3.0
#: Noise over what a meat measures: where longer limits stop, up to which strata are centred, and above which a plan warns.
FINE, CENTRED, _WARNED = 0.05, 0.2, 0.5
#: The same up to which G grows alone for tables. Where PSUs are less alike than declared the noise is more of what is measured: at .1, and
#: half of the declared variance, 50 degrees of freedom are left; at .25 there would be eight.
WIDE = 0.1

_MULTIPLES = (3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 16.0, 24.0, 32.0, 64.0, 128.0)


@dataclass(frozen=True)
class Sampled:
    """What is known of the sample: persons, first and second moments of omega, cells of the marginal, the design."""

    persons: float
    first: float
    second: float
    cells: int
    design: SurveyDesign

    @property
    def usual(self) -> float:
        """The size of a PSU: 1 where persons are independent."""
        return 1.0 if self.design.psu is None else float(self.design.size or 1.0)

    @property
    def measured(self) -> float:
        """What a diagonal entry of the meat is about, in squared SDs of a person's score at omega = 1."""
        size = max(self.usual / self.cells, 1.0)
        return max(self.persons / self.cells * self.second * self._within(size) / size, 1e-9)

    def _within(self, size: float) -> float:
        """The variance of the sum of a PSU of so many persons of omega = 1."""
        return size * (1 + (size - 1) * self.design.icc)

    @property
    def _heavy(self) -> float:
        """E omega^2/E omega: the weight of those that sums are made of, at least the root of E omega^2."""
        return min(self.second / self.first, 1.0)

    def spread(self, shift: float) -> float:
        """The SD of the sum of the largest PSUs, and what a mean score of `shift` SDs adds to three of them."""
        if self.design.psu is None:
            return 1.0
        return self._heavy * (sqrt(self._within(self.design.most)) + self.design.most * shift / LEAST)


@dataclass(frozen=True)
class Limits:
    """s and G in SDs of a person's score at omega = 1; whole: no one is limited; `centred`: the form of the meat."""

    person: float
    psu: float
    centred: bool
    whole: bool

    @classmethod
    def of(
        cls,
        sampled: Sampled,
        mu: float,
        *,
        longest: float,
        shift: float = 0.0,
        centred: bool = False,
        fixed: bool = False,
        first: float = LEAST,
        wide: float = 0.0,
    ) -> Limits:
        """Limits from public facts and the noise.

        mu: of the meat, over what one person moves it by; longest: of a person's score, in SDs; `centred`: whether it may be.

        fixed: they are short, so that none is limited; first: where limits of persons of the whole weight begin; wide: the noise up to
        which G grows alone.
        """
        design, spread = sampled.design, sampled.spread(shift)
        # with uneven weights few persons are near omega = 1
        least = sqrt(min(sampled.second / sampled.first, 1.0))
        persons = [longest] if fixed else [min(one * least * first / LEAST, longest) for one in _MULTIPLES]
        largest = longest * design.most if design.psu is not None else longest

        def made(k: int, form: bool) -> Limits:
            person = persons[min(k, len(persons) - 1)]
            if design.psu is None:
                return cls(person, person, False, person >= longest)
            every = k >= len(_MULTIPLES) - 1 and person >= longest
            psu = max(largest if every else min(_MULTIPLES[k] * spread, largest), person)
            return cls(person, psu, form, person >= longest)

        def noise(own: Limits) -> float:
            return own.moved(design.psu is None) / mu / sampled.measured

        form = centred and noise(made(0, True)) <= CENTRED
        chosen = made(0, form)
        for k in range(1, len(_MULTIPLES)):
            longer = made(k, form)
            if noise(longer) > FINE:
                break
            chosen = longer
        if design.psu is not None:
            chosen = replace(chosen, psu=min(chosen.psu * max(wide / noise(chosen), 1.0), max(largest, chosen.psu)))
        return chosen

    def moved(self, alone: bool) -> float:
        """How far one person moves the meat; alone: without PSUs."""
        return self.person**2 if alone else (4 if self.centred else 2) * self.person * self.psu


def hidden_part(design: SurveyDesign, mu: float) -> float:
    """The noise of a meat at its least limits as a part of what it measures, times sum omega. mu: of the meat.

    One person moves it by 9 E omega^2/E omega squared SDs, and it measures sum omega^2 of them; with PSUs twice the limit of their sums
    over what these measure.
    """
    size = 1.0 if design.psu is None else float(design.size or 1.0)
    wide = 1.0 if design.psu is None else 2 * sqrt(size / (1 + (size - 1) * design.icc))
    return LEAST**2 * wide / mu


# Of lines of an outcome scores count as far as any goes, and their noise is so many times that of three sds, without columns of numbers
# and with them: measured at even outcomes, normal features and persons alike by .2 (tests/methods/regression/test_survey_logistic.py).
PSU_OUTCOME = (2.0, 5.0)
IF_EVEN = "where the outcome is even, and more where it is rare"


def too_few_psus(
    design: SurveyDesign, mu: float, n: int | None = None, cells: int = 1, outcome: float | None = None
) -> tuple[str, ...]:
    """The warning of a plan whose meat is mostly noise, where the number of PSUs is public.

    Where it is not, the note of one that was asked for n persons. mu: of the meat; cells: of the table, as large as one another.

    outcome: of a regression of an outcome, of `PSU_OUTCOME`.

    >>> from confide.schema import SurveyDesign
    >>> too_few_psus(SurveyDesign(psu="v", size=10, count=20), 0.3)[0][:38]
    'too few PSUs for this budget: the nois'
    >>> too_few_psus(SurveyDesign(psu="v", size=10), 0.3, 200)[0][:38]
    'too few PSUs for this budget at n = 20'
    """
    count, told = design.psu_count, ""
    if n:
        # of a public number of PSUs there is the warning
        count = None if count else max(round(n / float(design.size or 1.0)), 2)
        told = f" at n = {n:,}"
    if design.psu is None or count is None:
        return ()
    sampled = Sampled(count * float(design.size or 1.0), 1.0, 1.0, cells, design)
    each = f" in each of {cells:,} cells" if cells > 1 else ""
    share = (outcome or 1.0) * 2 * LEAST**2 * sampled.spread(0.0) / mu / sampled.measured
    if share <= _WARNED:
        return ()
    return (
        f"too few PSUs for this budget{told}: the noise of their sums is about {share:.2g} times what they measure{each}, with equal "
        f"weights, so that intervals are wide. About {ceil(share / _WARNED * count):,} PSUs of {design.psu}, or "
        f"{ceil(10 * share / _WARNED) / 10:.1f} times the mu, would do{f' {IF_EVEN}' if outcome else ''}",
    )


#: How many numbers say it.
COUNTED = 2
#: Degrees of freedom, one less than PSUs, below which PSUs do not show how much they differ.
LEAST_DF = 2.5
#: Why there is no interval then.
FEW = (
    "the records are not known to lie in more than three PSUs, or clusters. Fewer do not show how much these differ; "
    "ask for a subgroup that lies in more of them, or for a larger budget"
)
# The chance that a bound is above the number itself, shared out among the two that the larger is taken of.
_MISSED = 0.05
_MOST = 1 << 40


def caps_of(records: Any, count: float, size: float) -> NDArray[np.int64]:
    """(m_1, m_2), each as `records` is. records: noisy numbers; count: of all PSUs; size: of one, as stated.

    >>> caps_of(np.array([600.0, 1.0]), 40.0, 30.0).tolist()
    [[15, 1], [30, 30]]
    """
    low = np.clip(np.rint(np.asarray(records) / count), 1, _MOST)
    return np.stack([low, np.maximum(low, min(round(size), _MOST))]).astype(np.int64)


def ramps_of(own: NDArray[np.int64], caps: NDArray[np.int64]) -> NDArray[np.int64]:
    """What PSUs with N = own add to (R_1, R_2).

    >>> ramps_of(np.array([2, 20, 99]), np.array([[15], [30]])).tolist()
    [[2, 15, 15], [0, 5, 15]]
    """
    low, high = caps
    first = np.minimum(own, low)
    return np.stack([first, np.minimum(own, high) - first])


def fewest(ramps: Array, sd: float, caps: Array) -> Array:
    """A lower bound of K, above it with a probability of one in twenty at most. ramps: (R_1, R_2), noisy; `sd`: of the noise of each.

    >>> fewest(np.array([[150.0], [140.0]]), 0.0, np.array([[15], [30]])).tolist()
    [10.0]
    """
    (first, second), (low, high) = ramps, caps
    two = high > low
    z = -special.ndtri(np.where(two, _MISSED / 2, _MISSED))
    even, whole = (first - z * sd) / low, (first + second - z * np.sqrt(2) * sd) / high
    return np.asarray(np.where(two, np.maximum(even, whole), even))


def fewest_behind(noisy: Noisy, ruler: Array) -> float:
    """The bound by a meat that holds both numbers at the end of its diagonal. ruler: what it is read with, (..., what a record counts, m_1,
    m_2).
    """
    record, *caps = ruler[-3:]
    ramps = np.diag(noisy.decode())[-COUNTED:] / record
    return float(fewest(ramps, float(np.sqrt(noisy.variance) / record), np.array(caps)))


# Ramps of lengths beyond the cut, each twice as long as the one before; an upper bound of |Z|^2/G^2 - 1 by the parts of ramps that are run.
RAMPS = 5
_CHORDS = tuple(3.0 * 4.0**k for k in range(RAMPS))
# A ramp counts from so many sds of its noise on; a sum of squares is one from so many.
_RUN, _SEEN = 2.0, 3.0
# A variance that many times as large is told.
_TOLD = 1.05


@dataclass(frozen=True)
class TruncationBias:
    """What the limit on PSU sums removed, from a released meat. run: the sums of ramps, in PSUs; `sd`: of their noise.

    part: G^2 over the sum of squares that M holds, in all coordinates.

    >>> TruncationBias((4.0, 1.0, 0.0, 0.0, 0.0), 0.2, 1 / 60).factor
    1.4
    """

    run: tuple[float, ...]
    sd: float
    part: float

    @classmethod
    def of(cls, noisy: Noisy, ruler: NDArray[np.float64]) -> TruncationBias:
        """Of a released meat, and what was made public of its statistic, which says more where it counts clusters too."""
        found, sd = noisy.decode(), sqrt(noisy.variance)
        width = len(found) - RAMPS - (COUNTED if len(ruler) > 2 else 0)
        squares = max(float(np.trace(found[:width, :width])), _SEEN * sd * sqrt(width))
        return cls(
            tuple((np.diag(found)[width : width + RAMPS] / ruler[0]).tolist()),
            float(sd / ruler[0]),
            float(ruler[1] ** 2 / squares),
        )

    @classmethod
    def factor_of(cls, release: Release) -> float:
        """What the released meat of a line grows by: 1 of units."""
        ruler = release.public.get("meat_beyond")
        return 1.0 if ruler is None else cls.of(release["meat"], np.asarray(ruler, dtype=np.float64)).factor

    @property
    def seen(self) -> tuple[float, ...]:
        """The ramps that stand above noise; none is run by more PSUs than the one before."""
        found: list[float] = []
        for own in self.run:
            if own <= _RUN * self.sd:
                break
            found.append(min([own, *found[-1:]]))
        return tuple(found)

    @property
    def factor(self) -> float:
        """What M grows by: |Z|^2/G^2 - 1 is convex, so that its chord over each ramp is at least as large.

        Of the first ramp that noise hides, after one that is seen, as much counts as is there. It counts for no more than a quarter of
        that one, as in a tail of finite variance.
        """
        seen = self.seen
        if seen and len(seen) < len(self.run):
            seen = (*seen, min(seen[-1] / 4, max(self.run[len(seen)], 0.0)))
        return 1.0 + self.part * sum(own * chord for own, chord in zip(seen, _CHORDS, strict=False))

    @property
    def whole(self) -> bool:
        """Whether the ramps are long enough for all that was seen."""
        return len(self.seen) < len(self.run)

    @property
    def words(self) -> str:
        """What it does to variances, for the line that says what PSUs are taken for; "" where that is next to nothing."""
        if self.factor < _TOLD:
            return ""
        return f", here by a variance {self.factor:.3g} times as large; a larger largest= or icc= in the design measures them instead"


def ramps(sums: Iterable[NDArray[np.int64]], cut: int) -> list[int]:
    """2^(RAMPS - 1 - k) T_k, T_k how far sums go beyond 2^k cut, by at most as much again, in whole steps."""
    found = [0] * RAMPS
    for total in sums:
        squared = sum(v * v for v in total.tolist())
        if squared > cut**2:
            length = isqrt(squared)
            for k in range(RAMPS):
                found[k] += min(max(length - (cut << k), 0), cut << k)
    return [total << (RAMPS - 1 - k) for k, total in enumerate(found)]


def moved_ramps(length: int) -> int:
    """How far all of them move, in total, where one length moves by so much: at most one ramp moves at a time. And what one counts that
    a cluster has run, where the cut is so long.
    """
    return length << (RAMPS - 1)


_ONE = 1 << BITS


@dataclass(frozen=True)
class _ClusterRows(MapOver):
    """A map of units and the row of codes that says which cluster a unit is in; of a single unit it is the map."""

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
class ClusterCovariance(Statistic):
    """M = sum T T' over clusters in the first `width` rows and columns.

    Behind it what the limit removes and how many clusters there are. scores: a map of units; spread: g, at least 1; caps: of the units
    in a cluster, those with a score.
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
        `TruncationBias.of` and `fewest_behind`.
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
        """T: the sum limited to length G, as Python integers."""
        exact = total.astype(object)
        squared = int((exact * exact).sum())
        if squared <= self.cut**2:
            return np.asarray(exact)
        root = isqrt(squared) + 1
        return np.array([(2 * int(v) * self.cut + root) // (2 * root) for v in exact], dtype=object)


def meat_of(scores: RecordMap, cluster: Clusters | None) -> Statistic:
    """The Gram matrix of units, or of clusters of them."""
    return Gram(scores) if cluster is None else ClusterCovariance(scores, cluster.spread)


def scores_of(meat: Statistic) -> Any:
    """The map behind a meat."""
    return meat.scores if isinstance(meat, ClusterCovariance) else meat.map


def ruler_of(meat: Statistic) -> dict[str, NDArray[np.float64]]:
    """The public numbers that what stands behind a meat of clusters is read with, by name; none of units."""
    return {"meat_beyond": meat.ruler} if isinstance(meat, ClusterCovariance) else {}


def with_scores(meat: Statistic, scores: RecordMap, schema: Schema, records: float) -> Statistic:
    """The meat of another map of the same bounds. records: their noisy number, which sets the caps of units in a cluster."""
    if isinstance(meat, ClusterCovariance):
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


# As `cluster_covariance.PSU_OUTCOME`, of clusters, whose scores are cut at the bound of one record.
OUTCOME = (1.0, 13.0)


def too_few(
    cluster: Clusters | None, coordinates: int, mu: float, n: int | None = None, outcome: float | None = None
) -> tuple[str, ...]:
    """The warning of a plan whose meat is mostly noise, where the number of clusters is public.

    Where it is not, the note of one that was asked for n units. mu: of the meat; outcome: of a regression of an outcome, of `OUTCOME`.

    The noise of a diagonal entry over what it measures is about 18 p/(mu C sqrt(S (1 + (S - 1) icc))) for a limit at three SDs.

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
        f"are wide. About {ceil(2 * share * count):,} values of {cluster.column}, or {ceil(20 * share) / 10:.1f} times the mu, would do"
        f"{f' {IF_EVEN}' if outcome else ''}",
    )


_LARGEST = 2.0**46


@dataclass(frozen=True)
class Counting:
    """How the rows of a unit count: `rows` at most, by the row of codes that says where units begin.

    >>> Counting.of(Schema({"x": {"kind": "numeric", "low": 0, "high": 1}}, unit=Unit("id", rows=2))).weighted
    True
    """

    rows: int
    row: str

    @classmethod
    def of(cls, schema: Schema) -> Counting | None:
        """Of a schema, by weight unless it says otherwise; None where a record is its own unit, or one row of each is kept."""
        unit = schema.unit
        if not isinstance(unit, Unit) or (unit.rule == "keep" and unit.rows == 1):
            # of clusters, each record or kept row is a unit
            return None if schema.cluster is None else cls(1, UNIT_ROW)
        return cls(unit.rows, UNIT_ROW if unit.rule == "keep" else WHOLE_ROW)

    @classmethod
    def of_plan(cls, plan: Any) -> Counting | None:
        """As the rows of a plan's unit were counted: a plan that says no rule kept rows."""
        rows, weighted = int(plan.schema["rows_per_unit"]), plan.rule == "weight"
        several = isinstance(plan.schema["unit"], Mapping) and (weighted or rows > 1)
        if not several and plan.schema.get("cluster") is None:
            return None
        return cls(rows, WHOLE_ROW if weighted else UNIT_ROW)

    @property
    def weighted(self) -> bool:
        """Whether all rows count, by weight."""
        return self.row == WHOLE_ROW

    @property
    def spread(self) -> float:
        """About how large a unit's score is, relative to a row's: rows of one unit correlate by 0.3."""
        return float(np.sqrt(self.rows * (1 + 0.3 * (self.rows - 1))))

    def weights(self, sizes: NDArray[np.intp]) -> Array:
        """v of the rows of units with so many usable ones."""
        return np.minimum(1.0, self.rows / np.maximum(sizes, 1))


def summed_by_unit(rows: Array, starts: NDArray[np.intp]) -> Array:
    """Sums of rounded rows of each unit, exact in any order; NaN counts as 0. Shape (width, units)."""
    whole = np.rint(rows)
    np.nan_to_num(whole, copy=False, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)
    np.clip(whole, -_LARGEST, _LARGEST, out=whole)
    return np.add.reduceat(whole.astype(np.int64), starts, axis=1).astype(np.float64)


def limited(sums: Array, longest: float) -> Array:
    """Columns limited to a length and rounded, from sums in steps."""
    size = np.sqrt(leverage(sums))
    np.maximum(size, longest, out=size)
    sums *= longest / size
    return round_within(sums)
