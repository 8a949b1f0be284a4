"""Up to what length the records of the last round have full weight: kappa and D from the last noisy information and a histogram of N^2.

D costs noise in proportion, and a record with N > D is down-weighted (w = D/N < 1). So D is where the predicted variance is about
smallest and no record is seen beyond. The weight
kappa of information against score in the joint bound keeps the information above
its noise. A few records that no noisy number shows can move a fit by several standard errors, if they are extreme, down-weighted and
have outcomes against it. Where public bounds say how extreme a record can be, D goes on to there as long as that is affordable. Then no
record is down-weighted. All of it is post-processing of noisy numbers; no sensitivity rests on it.

Where counts are clipped, and what that may move: read from one noisy histogram of them.

Noise on the sums costs in proportion to c, the largest count that has full weight. So c is at least half an octave beyond the last cell
in which a count is seen, there where an interval is about the shortest. It is never beyond the declared bound C: at C nothing is
clipped. The estimand is that of y as declared, and what lies above c unseen moves it. Two things may: isolated records at C, as many as
the noise of one cell hides (95%), and a tail. The tail is bounded by the counts that are seen, in records per unit of the count in the
last three visible octaves, n2, n1, n0.

- Where their logarithm falls at a growing or an even rate (Poisson, negative binomial, zeros in excess), it is assumed to go on falling at
  the last rate, exponentially.
- Where the rate itself falls, it is a power of the count through n1 and n0 (lognormal, Pareto).
- Where it does not fall, all that noise hides lies at the bound.

The larger of the two is in the intervals. The limit c is one at which it is at most half of a margin of error: mostly C, where records are
many. What is assumed is named in the table with its price. All of it is post-processing of noisy numbers; no sensitivity rests on it.

How far the public bounds of features reach, and the records that lie there: where the bound of the last rounds should reach, too.

A feature whose bounds reach beyond seven SDs is at risk from down-weighted records, and the reading has a bound of that bias
(`coefficients`). Others have none: so the records at the ends of THEIR bounds should have full weight. A record of this kind has one
feature at an end of its bounds and all others at their means. Where noise leaves the bound short of it, the feature is at risk, too.
What one record misses may then be more than the bound, by which the excess counts it. All of it is post-processing of public and noisy
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, floor, inf, log, sqrt

import numpy as np

from confide._arrays import Array
from confide.core import Release
from confide.methods.regression.evidence.sample_size_advice import plain, reaches
from confide.methods.regression.glm.fisher_families import Counts
from confide.methods.regression.glm.fisher_rows import FisherRows
from confide.methods.regression.glm.sums import count_edges
from confide.methods.regression.sums.linear_rows import ranged
from confide.schema import ModelMatrix
from confide.sums.coding import BOUND

_KAPPAS = (1.5, 2.0, 3.0, 4.5)
# The least eigenvalue stands above the noise of A so many times, or kappa is the largest.
_ABOVE = 8.0
# A cell's count is seen from so many sds of its noise on.
_SEEN = 3.5
# Open cells: where their records are taken to lie, in the first and the last edge.
_FIRST, _LAST = 0.7, 1.5
# The mean information of a record is taken to be at least this, for eigenvalues and for counts.
_LEAST_SHARE, _LEAST_MEAN = 0.005, 0.01
# How much above the smallest predicted variance a wider bound may be where the information stands well above its noise; and in any case.
_AFFORDED, _CLEAR = 1.5, 0.3
_CHEAP = 1.1
_ONE_SIDED = 1.645
#: The mean residual of records that count less, at most.
TAIL_RESIDUAL = 0.15


def chosen_kappa(gram: Array, mu: float) -> float:
    """kappa. gram: the last noisy A, (k, k); mu: of the last round for one record."""
    k = len(gram)
    mean = float(np.trace(gram)) / k
    least = max(float(np.linalg.eigvalsh(gram)[0]), 0.25 * mean)
    return next((kappa for kappa in _KAPPAS if least * kappa * mu / (4 * k**1.5) >= _ABOVE), _KAPPAS[-1])


@dataclass(frozen=True)
class Bound:
    """D, and the share of records that may be down-weighted: its upper 95% bound."""

    value: float
    less: float


@dataclass(frozen=True, eq=False)
class Sizes:
    """A noisy histogram of N^2 and what the last step knows.

    counts, edges : array
        (cells,) and (cells - 1,).
    `sd` : float
        SD of a count's noise.
    gram : array
        The last noisy A (k, k).
    alpha : float
        kappa/sqrt(k).
    mu : float
        Of the last round for one record.
    records : float
        Their estimated number, at least 1.
    scale : float
        R of the family, 1/R the variance of a score per information.
    near : float
        How much above the smallest predicted variance a wider bound may be.
    ends : (float, float)
        Squared lengths of a record at the farthest end of bounds, of its score and of N.
        A bound reaches the first where that is
        affordable, the other where it costs little (`clipping`).
    """

    counts: Array
    edges: Array
    sd: float
    gram: Array
    alpha: float
    mu: float
    records: float
    scale: float = 1.0
    near: float = 1.1
    ends: tuple[float, float] = (0.0, 0.0)

    @property
    def _seen(self) -> Array:
        return np.where(self.counts > _SEEN * self.sd, self.counts, 0.0)

    def bound(self) -> Bound:
        """The bound of the last step and the last round."""
        k, seen, edges = len(self.gram), self._seen, self.edges
        middles = np.concatenate([[_FIRST * edges[0]], np.sqrt(edges[:-1] * edges[1:]), [_LAST * edges[-1]]])
        mean = max(float(np.trace(self.gram)) / k, _LEAST_SHARE * self.records)
        least = max(float(np.linalg.eigvalsh(self.gram)[0]), 0.1 * mean)
        information = max(mean / self.records, _LEAST_MEAN)
        variances, noises = [], []
        for edge in edges:
            kept = max(information * float(seen @ np.minimum(middles, np.sqrt(edge * middles))) / k, 1.0)
            noise = sqrt(2 * k * edge) / (self.alpha * self.mu * kept)
            variances.append((1 / (self.scale * kept) + edge / (self.mu * kept) ** 2) * (1 + noise**2))
            noises.append(noise * mean / least)
        best = min(variances)
        costs = [(j, variance / best, noise) for j, (variance, noise) in enumerate(zip(variances, noises, strict=True))]
        cheap = max(j for j, cost, _ in costs if cost <= _CHEAP)
        near = max(j for j, cost, noise in costs if cost <= self.near or (cost <= _AFFORDED and noise <= _CLEAR))
        beyond = np.cumsum(seen[::-1])[::-1][1:]
        first = int(np.searchsorted(edges, k / 2 * (1 - 1e-9)))
        clear = next((j for j in range(first, len(edges)) if beyond[j] == 0), len(edges) - 1)
        score, whole = (int(np.searchsorted(edges, end * (1 - 1e-9))) for end in self.ends)
        place = max(min(max(clear, score), near), min(whole, cheap), first)
        far = self.counts[place + 1 :]
        less = (float(far.sum()) + _ONE_SIDED * self.sd * sqrt(len(far))) / self.records
        return Bound(sqrt(float(edges[place])), float(np.clip(less, 0.0, 1.0)))


# Nothing is cut where intervals are at most so many times as wide as they could be.
_NEAR = 1.05
_Z = 1.96
#: Records above the cut are so many sds of the features away on average, at most.
TAIL_FEATURES = 2.0
# D^2/k as it is expected.
_ROOM = 1.5
# A price below this is not worth a sentence.
_SAID = 1.1
# A rate counts as even from this part of the one before on.
_CONCAVE = 0.75
# Bounds this many times above the counts that are seen are worth a sentence where they leave no answer.
_FAR_BOUND = 4.0
# What a cut may hide is at most this part of the half-width.
_BORNE = 0.5


@dataclass(frozen=True, eq=False)
class CountCut:
    """A noisy histogram of counts (cells,), with the SD of its noise and the declared bound.

    records: their estimated number; k: coefficients; mu: of the last round for one record; spacing: how far apart counts are on their
    grid (1: whole numbers).
    """

    counts: Array
    sd: float
    high: float
    records: float
    k: int
    mu: float
    spacing: float = 1.0

    @cached_property
    def _edges(self) -> Array:
        return count_edges(self.high)

    @cached_property
    def _last(self) -> int:
        """The last cell in which counts are seen; the last of all where none is."""
        seen = np.flatnonzero(self.counts > _SEEN * self.sd)
        return int(seen[-1]) if len(seen) else len(self.counts) - 1

    @property
    def _middles(self) -> Array:
        # the first cell holds the zeros
        return np.concatenate([[0.0], (self._edges[:-1] + self._edges[1:]) / 2])

    @cached_property
    def _place(self) -> int:
        """Of the cut: where an interval is about the shortest, its bound on bias included; C where that costs next to nothing."""
        seen = np.where(self.counts > _SEEN * self.sd, self.counts, 0.0)
        total = max(float(seen @ self._middles), 1e-3 * self.high)
        places = range(min(self._last + 1, len(self._edges) - 1), len(self._edges))
        noises = [_Z * sqrt(total + _ROOM * self.k * float(self._edges[j]) ** 2 / self.mu**2) for j in places]
        biases = [TAIL_FEATURES * self._beyond(j) for j in places]
        halves = [noise + bias if bias <= _BORNE * noise else inf for noise, bias in zip(noises, biases, strict=True)]
        return places[-1] if halves[-1] <= _NEAR * min(halves) else places[int(np.argmin(halves))]

    @property
    def seen(self) -> float:
        """The upper edge of the last cell in which counts are seen."""
        return float(self._edges[self._last])

    @property
    def hidden(self) -> float:
        """How many records noise hides in one cell, 95%."""
        return _ONE_SIDED * self.sd

    @property
    def cut(self) -> float:
        """c."""
        return float(self._edges[self._place])

    def beyond(self, cut: float) -> float:
        """A bound on the sum of (y - c)+ over the records.

        It is as many as noise hides in one cell, all at the declared bound. Or it is a tail that thins out beyond the last visible
        octave as it does before it, whichever is more.
        """
        return self._beyond(int(np.argmin(np.abs(self._edges - cut))))

    def _beyond(self, place: int) -> float:
        if place == len(self._edges) - 1:
            return 0.0
        # nothing says that counts thin out: one cell of them may stand by itself at the bound, as far as noise hides it
        cut = float(self._edges[place])
        return max(self._tail(place), self.hidden * (self.high - cut))

    def _tail(self, place: int) -> float:
        """The same where counts go on as they are seen to."""
        doubt, cut = sqrt(2) * self.sd, float(self._edges[place])
        own = max(float(self.counts[place + 1 :].sum()), 0.0)
        most = (own + self.hidden * sqrt(len(self._edges) - 1 - place)) * (self.high - cut)
        (here, middle), (earlier, before), (first, start) = (
            self._octave(back, more) for back, more in ((0, doubt), (1, -doubt), (2, 0.0))
        )
        if earlier <= here:
            return most
        rate = log(earlier / here) / (middle - before)
        if rate >= _CONCAVE * log(max(first / earlier, 1.0)) / max(before - start, self.spacing):
            return min(most, here * exp(-rate * (cut - middle)) / rate**2)
        return min(most, _power(here, log(earlier / here) / log(middle / before), middle, cut, self.high))

    def _octave(self, back: int, more: float) -> tuple[float, float]:
        """Records per unit of the count, with so many more of them, and the middle of an octave, the last visible one for 0. By octaves,
        as single cells may hold no whole number.
        """
        last = self._last - 2 * back
        if last < 2:
            return 0.0, 0.0
        low, high = (floor(float(self._edges[j]) / self.spacing) for j in (last - 2, last))
        number = float(self.counts[last - 1 : last + 1].sum()) + more
        return number / (max(high - low, 1) * self.spacing), (low + high + 1) / 2 * self.spacing


def _power(density: float, index: float, middle: float, cut: float, high: float) -> float:
    """The integral of (y - c) density (y/middle)^-index from c to the bound."""
    y = np.geomspace(cut, high, 200)
    values = (y - cut) * density * (y / middle) ** -index
    return float(((values[1:] + values[:-1]) / 2 * np.diff(y)).sum())


def spacing(design: ModelMatrix) -> float:
    """How far apart the counts of a design are on their grid."""
    return float(design.response.high) / (design.response.steps - 1)


def missing(release: Release, design: ModelMatrix, family: Counts, records: float) -> float:
    """The bound on the sum of (y - c)+ at the cut of a release, in units of the cut."""
    if family.cut >= family.high:
        return 0.0
    return _read(release, design, family, records).beyond(family.cut) / family.cut


def _read(release: Release, design: ModelMatrix, family: Counts, records: float) -> CountCut:
    """The histogram of a release."""
    noisy, last = release["counts"], release["last" if "last" in release.statistics else "short last"]
    k, mu = len(design.terms) + 1, BOUND / sqrt(last.variance)
    return CountCut(noisy.decode(), sqrt(noisy.variance), family.high, records, k, mu, spacing(design))


def counts_words(family: Counts) -> str:
    """Where counts lie, and where they are cut."""
    return f"between 0 and {family.high:g}" + (f", cut at {plain(family.cut)}" if family.cut < family.high else "")


def cut_assumption(family: Counts, noise: Array) -> list[str]:
    """What intervals rest on where counts are cut, and their width without it. noise: shares of privacy noise in their variances."""
    if family.cut >= family.high or not len(noise):
        return []
    price = float(np.sqrt(1 + ((family.high / family.cut) ** 2 - 1) * noise).max())
    return [
        f"assumed for counts above {plain(family.cut)}, of which none is seen: as many as noise hides in one cell are "
        f"at {family.high:g}. Or their number falls beyond at least as fast as before, whichever is more. Intervals include "
        f"this; without it, clipped at {family.high:g}, they are about {plain(price)} times as wide"
    ]


def wide_words(release: Release, design: ModelMatrix, family: Counts, records: float) -> list[str]:
    """The sentence on a declared bound of counts that lies far beyond those that are seen; none where it does not."""
    seen = _read(release, design, family, records).seen
    if family.high <= _FAR_BOUND * seen:
        return []
    return [
        f"counts of {design.response.name} are declared up to {family.high:g} and none was seen above {plain(seen)}. Noise is "
        f"proportional to the largest count that is used; declare it within (0, {plain(2 * seen)}), where values beyond count as that"
    ]


def too_far_words(name: str, family: Counts) -> str:
    """Why counts beyond the cut leave no interval."""
    enough = plain(min(2 * family.cut, family.high))
    return (
        f"counts of {name} are declared up to {family.high:g} and none was seen above {plain(family.cut)}. A few beyond "
        f"it could move every coefficient; declare it within (0, {enough}) (values beyond count at the bound), or ask for more records "
        "or a larger budget"
    )


def less_words(share: float) -> str:
    """Why down-weighted records leave no interval. share: of the records."""
    return (
        f"up to {share:.1%} of the records have extreme features and are down-weighted. More of them than expected are far from "
        "the model and could move every coefficient; ask for a larger budget or more records, or write "
        'target="weighted" for the coefficients of the weighted records'
    )


def less_assumption(price: float, paid: Sequence[str], others: Sequence[str], *, odd: bool) -> list[str]:
    """What intervals of counts rest on where records are down-weighted.

    price: the width with all residuals in one direction, in that of the interval; paid: whose intervals have a part for the records
    that noise hides.

    others: whose intervals all this is about; odd: whether more is seen than the fit says.
    """
    if price <= _SAID or not others:
        return []
    hidden = (
        f", but for those that noise hides at the ends of bounds, whose mean residual is at most {TAIL_RESIDUAL:g} of the largest count: "
        f"that is in the intervals of {', '.join(paid)}"
        if paid
        else ""
    )
    seen = ". More of them are far from the model than it says, which is in the intervals" if odd else ""
    return [
        f"assumed for {', '.join(others)}: the down-weighted records are as close to the model as the others{hidden}{seen}. Were all their "
        f"residuals in one direction, of as many records as noise may hide, intervals would be up to {plain(price)} times as wide"
    ]


def full_words(name: str) -> str:
    """Why records of which the fit says more than half of the largest count leave no interval."""
    return (
        f"for extreme features the model says more {name} than half of what is declared to be possible, of records that are "
        "down-weighted. A mean that stops growing there would move every coefficient; declare tighter bounds of those features, take "
        "their logarithm, or ask for more records or a larger budget"
    )


def full_assumption(biases: Array) -> list[str]:
    """What intervals of counts include where the fit says more than half of the largest count. biases: in margins of error."""
    widest = float((1 + biases).max()) if len(biases) else 1.0
    if widest <= _SAID:
        return []
    return [
        "the mean may be anything at down-weighted records of which the model says more than half of the largest count. They are as "
        f"many as there are where features are normal; for that, intervals are up to {plain(widest)} times as wide"
    ]


#: Coefficients of features whose bounds reach beyond so many SDs are at risk from records that count less: below eight, where the range
#: that is found of many records ends, and above six, to where bounds of normal values are declared.
AT_RISK = 7.0
# Edges of bounds lie a factor of 1.19 apart, and lines move on: a score is in full with nine tenths of it.
_FULL = 1.1
# More digits are the arithmetic's, not the data's.
_DIGITS = 3


def beyond(ends: Array, bound: float) -> Array:
    """How many times the bound a score at the ends of each feature's bounds may miss, at least 1; 0 where it has full weight, (terms,).

    ends: M of `lengths_at_ends`, of a family that weighs score and information alike.

    >>> beyond(np.array([0.0, 3.0, 4.5, 9.0]), 3.0).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    return np.where(ends > _FULL * bound, np.maximum(ends / bound - 1, 1.0), 0.0)


def lengths_at_ends(design: ModelMatrix, rows: FisherRows, mean: Array, sd: Array) -> tuple[Array, Array]:
    """(M, N), (terms,) each: the largest of a record at either end of a feature's bounds; of rows at a line.

    0 of features at risk and of two values. M is the length that its score can have, over the part of a bound within which scores have
    full weight.
    """
    safe, z = _at_ends(design, mean, sd)
    lengths = rows.lengths_of(z)
    most, whole = (_largest(own, safe, len(design.terms)) for own in lengths)
    # scores count in full within a part of the bound, whatever the information
    return np.round(most / (rows.family.score_part or 1.0), _DIGITS), np.round(whole, _DIGITS)


def missed_at_ends(design: ModelMatrix, rows: FisherRows, mean: Array, sd: Array, moments: Array) -> Array:
    """What the score of a record at either end of a feature's bounds misses at most, in units of the bound, (terms,).

    All others are where they are on average there, as a square is with what it is the square of; residuals up to the largest outcome. 0
    as above.

    moments: of z, (k, k).
    """
    safe, z = _at_ends(design, mean, sd)
    for i, j in enumerate(safe):
        # the others' means move with how far the end is from the mean
        slope = (moments[1:, 1 + j] - mean * mean[j]) / sd[j] ** 2
        slope[j] = 0.0
        at = [i, len(safe) + i]
        z[at, 1:] += np.outer(z[at, 1 + j] - mean[j], slope)
    z[:, 1:] = np.clip(z[:, 1:], -1.0, 1.0)
    return np.round(_largest(rows.missed(*rows.sizes_of(z)[1:]), safe, len(design.terms)), _DIGITS)


def _at_ends(design: ModelMatrix, mean: Array, sd: Array) -> tuple[list[int], Array]:
    """Features that are not at risk without it, and z of records at the ends of each, (2 features, k).

    First at the lower end of each, then at the upper, all others at their means.
    """
    sds = reaches(mean, sd)
    safe = [j for j in ranged(design) if sds[j] <= AT_RISK]
    z = np.tile(np.concatenate([[1.0], mean]), (2, len(safe), 1))
    for i, j in enumerate(safe):
        z[:, i, 1 + j] = -1.0, 1.0
    return safe, z.reshape(-1, z.shape[-1])


def _largest(of: Array, places: list[int], terms: int) -> Array:
    """The larger of either end, by feature, 0 elsewhere."""
    whole = np.zeros(terms)
    whole[places] = of.reshape(2, -1).max(axis=0)
    return whole
