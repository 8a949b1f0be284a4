"""Where counts are cut, and what the cut may move: read from one noisy histogram of them.

Noise on the sums costs in proportion to c, the largest count that counts in full. So c is at least half an octave beyond the last cell in
which a count is seen, there where an interval is about the shortest, and never beyond the declared bound C: at C nothing is cut. The line
is that of y as declared; what lies above c unseen moves it. Two things may: records that stand by themselves at C, as many as the noise of
one cell hides (95 %), and a tail. The tail is bounded by the counts that are seen, in records per unit of the count in the last three
visible octaves, n2, n1, n0. Where their logarithm falls at a growing or an even rate (Poisson, negative binomial, zeros in excess) it is
taken to go on falling at the last rate, exponentially; where the rate itself falls, as a power of the count through n1 and n0 (lognormal,
Pareto); where it does not fall, all that noise hides lies at the bound. The larger of the two is in the intervals, and c is one at which it
is at most half of a half-width: mostly C, where records are many. What is assumed is named in the table with its price.
All of it is post-processing of noisy numbers; no sensitivity rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, floor, inf, log, sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.distributions.count_cells import count_edges
from confide.aggregates.lines.rows import BOUND
from confide.aggregates.scores.fisher_families import Counts
from confide.methods.regression.evidence.needs import plain
from confide.methods.regression.likelihood.fisher.fisher_bound import TAIL_RESIDUAL
from confide.protocol import Release
from confide.schema import Design

__all__ = [
    "TAIL_FEATURES",
    "CountCut",
    "counts_words",
    "cut_assumption",
    "full_assumption",
    "full_words",
    "less_assumption",
    "less_words",
    "missing",
    "spacing",
    "too_far_words",
    "wide_words",
]


# A cell's count is seen from so many sds of its noise on.
_SEEN = 3.5
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
_ONE_SIDED = 1.645


@dataclass(frozen=True, eq=False)
class CountCut:
    """A noisy histogram of counts (cells,), the sd of its noise, the declared bound, the noisy number of records, k coefficients, mu of the
    last round for one record, and how far apart counts are on their grid (1: whole numbers).
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
        """How many records noise hides in one cell, 95 %."""
        return _ONE_SIDED * self.sd

    @property
    def cut(self) -> float:
        """c."""
        return float(self._edges[self._place])

    def beyond(self, cut: float) -> float:
        """A bound on the sum of (y - c)+ over the records: as many as noise hides in one cell, all at the declared bound, or a tail that
        thins out beyond the last visible octave as it does before it, whichever is more.
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


def spacing(design: Design) -> float:
    """How far apart the counts of a design are on their grid."""
    return float(design.response.high) / (design.response.steps - 1)


def missing(release: Release, design: Design, family: Counts, records: float) -> float:
    """The bound on the sum of (y - c)+ at the cut of a release, in units of the cut."""
    if family.cut >= family.high:
        return 0.0
    return _read(release, design, family, records).beyond(family.cut) / family.cut


def _read(release: Release, design: Design, family: Counts, records: float) -> CountCut:
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
        f"assumed for counts above {plain(family.cut)}, of which noise shows none: as many as it hides in one cell of their histogram lie "
        f"at the declared {family.high:g}, or their number falls from there on at least as fast as up to it, whichever is more; that is in "
        f"the intervals; without it, cut at {family.high:g}, they are about {plain(price)} times as wide"
    ]


def wide_words(release: Release, design: Design, family: Counts, records: float) -> list[str]:
    """The sentence on a declared bound of counts that lies far beyond those that are seen; none where it does not."""
    seen = _read(release, design, family, records).seen
    if family.high <= _FAR_BOUND * seen:
        return []
    return [
        f"counts of {design.response.name} are declared up to {family.high:g} and none was seen above {plain(seen)}, while noise is in "
        f"proportion to the largest that counts; declare it within (0, {plain(2 * seen)}), where values beyond count as that"
    ]


def too_far_words(name: str, family: Counts) -> str:
    """Why counts beyond the cut leave no interval."""
    enough = plain(min(2 * family.cut, family.high))
    return (
        f"counts of {name} are declared up to {family.high:g} and none was seen above {plain(family.cut)}; a few beyond, which noise "
        f"hides, could move every coefficient: declare it within (0, {enough}), where values beyond count as that, or ask for more records "
        "or a larger budget"
    )


def less_words(share: float, names: Sequence[str]) -> str:
    """Why records that count less leave no interval. share: of the records; names: of the features whose bounds reach farthest."""
    bounds = f"declare tighter bounds of {', '.join(names)}, " if names else ""
    return (
        f"of the records whose features lie far out, up to {share:.1%} of all, which count less, more are off the line than it says, and "
        f"could move every coefficient; {bounds}ask for a larger budget or more records, or write "
        'target="weighted" for the line of records as they count'
    )


def less_assumption(price: float, paid: Sequence[str], others: Sequence[str], *, odd: bool) -> list[str]:
    """What intervals of counts rest on where records count less. price: the width with all residuals in one direction, in that of the
    interval; paid: whose intervals have a part for the records that noise hides; others: whose intervals all this is about; odd: whether
    more is seen than the line says.
    """
    if price <= _SAID or not others:
        return []
    hidden = (
        f", but for those that noise hides at the ends of bounds, whose mean residual is at most {TAIL_RESIDUAL:g} of the largest count: "
        f"that is in the intervals of {', '.join(paid)}"
        if paid
        else ""
    )
    seen = "; more of them are off the line than it says, which is in the intervals" if odd else ""
    return [
        f"assumed for {', '.join(others)}: the records that count less miss the line as little as the others{hidden}{seen}; were all their "
        f"residuals in one direction, of as many records as noise may hide, intervals would be up to {plain(price)} times as wide"
    ]


def full_words(name: str) -> str:
    """Why records of which the line says more than half of the largest count leave no interval."""
    return (
        f"where features lie far out the line says more {name} than half of what is declared to be possible, of records that count less: a "
        "mean that stops growing there would move every coefficient; declare tighter bounds of those features, take their logarithm, or "
        "ask for more records or a larger budget"
    )


def full_assumption(biases: Array) -> list[str]:
    """What intervals of counts hold where the line says more than half of the largest count. biases: in half-widths."""
    widest = float((1 + biases).max()) if len(biases) else 1.0
    if widest <= _SAID:
        return []
    return [
        "the mean may be anything at records that count less and of which the line says more than half of the largest count, as many as "
        f"there are where features are normal; for that, intervals are up to {plain(widest)} times as wide"
    ]
