"""Levels of which next to no records have one of the two outcomes: their coefficients are at a boundary, or cannot be told from it.

A level is any cell of the design, up to all records (`evidence.cells`); all have one rule. So have other directions that no record stands
against (`fisher_directions`), whose counts are a histogram's.

Two noisy counts of a level's records with its rarer outcome follow from the last round, and neither may be few. With N_l records and mean
log-odds eta_l the line before it expects N_l p_l, p_l = expit(c eta_l), c = (1 + pi s^2/8)^(-1/2) for log-odds that vary by s within
a level (MacKay 1992); g holds sum (y - p), and their sum is the first count. The second is what the released line expects: at a boundary
it lags behind the first, since a step moves log-odds by about one, but its noise is another.

What is answered by its own noisy count is answered too high: of levels with few such records those with lucky noise pass. So a count X with
noise of sd s, answered from T on, has the interval that holds GIVEN that it is answered (Lee, Sun, Sun, Taylor 2016, for a truncated
normal number). With sd r of noise and of sampling, r^2 = s^2 + X, d = (X - T)/r and the normal tail Q, all counts below X - x r are
excluded, where

    Q(x) = .025 Q(x - d),      x > 1.96, infinite at d = 0 and 1.96 again where d is large.

In log-odds noise is not normal where X is no multiple of s: down to the count L = X - x s it is log(X/L), for which 1.96 s/X is too little.
The variance of a level's log-odds grows by what is missing; a level for which L is below one record cannot be told. The other end of an
interval grows with it, without need. Counts of any size have the same rule with what a level counts in all, r of the Poisson's; and the
number of the level's records in the linear round must stand above its noise: within it, all that follows from it is luck, and a few records
of large counts look like many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, log, pi, sqrt

import numpy as np

from confide._arrays import Array
from confide._special import expit, log_ndtr
from confide.aggregates.lines.rows import Box
from confide.aggregates.scores.fisher_families import LOGIT, Counts, Family
from confide.methods.regression.evidence.cells import all_records, cell_words, distinct_rows
from confide.methods.regression.likelihood.fisher.fisher_directions import least_against
from confide.methods.regression.likelihood.fisher.fisher_hidden import Level, level_of, levels_of
from confide.methods.regression.scaling import extent
from confide.results.levels import LevelCount
from confide.schema import Design

__all__ = ["AGAINST", "NearLevel", "QuietLevel", "Seen", "quiet_words"]


# With fewer records of an outcome than this, noise counted against them, a coefficient has no normal distribution to speak of.
_FEWEST = 5.0
# By outcome: 0, 1, or counts of any size.
_SAID = ("without the outcome", "with the outcome", "counted in all", "of the other outcome")
_COUNTED = 2
#: Records against a direction.
AGAINST = 3
# The number of a level's records stands so many sds of its noise above 0.
_CLEAR = 3.0
# No level has a smaller share of the records, and none counts less than so much.
_LEAST_SHARE, _LEAST_WEIGHT = 1e-4, 0.1
# Half of a 95 % interval in sds, and the tail beyond it.
_NORMAL, _TAIL = 1.96, 0.025
# Nearer than this to where answers begin no interval is short enough for any use; farther than that a normal one is as good.
_AT_ONCE, _FAR_OFF = 0.05, 6.0


@dataclass(frozen=True)
class QuietLevel:
    """A level with a noisy count of one outcome (0 or 1), a noisy total of counts (2), or what a direction moves, with a noisy count of
    records against it (3); places: the coefficients that hang on it."""

    count: LevelCount
    outcome: int
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NearLevel:
    """A level that is told by its count, and the variances that its log-odds have beside those of the sandwich: of noise, and in all.

    moves: how the coefficients move with it, (k,).
    """

    noise: float
    variance: float
    moves: Array


@dataclass(frozen=True, eq=False)
class _Look:
    """Two counts of the rarer outcome, log-odds per record of it, and which outcome it is."""

    counts: tuple[LevelCount, LevelCount]
    per: float
    outcome: int

    @property
    def hidden(self) -> bool:
        """Whether the level cannot be told."""
        return any(_lowest(count)[0] < 1.0 for count in self.counts)


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of levels: theta before the last round and the released one (k,), the covariance of its privacy noise (k, k), sum w z
    (y - p) at the first with the covariance of its noise, sum w h z z' there with the sd of its noise for a direction c as a function of
    c, second moments of z per record (k, k), z measured from `box`, and the noisy number of records. numbers: of weights of levels (levels,
    k), how many records of each the linear round counted, with sds; outcomes: noisy numbers of records by distinct row of the matrix and
    outcome (rows, 2), with the sd of each.
    """

    before: Array
    line: Array
    noise: Array
    surprise: tuple[Array, Array]
    moments: Array
    records: float
    box: Box
    family: Family = LOGIT
    information: tuple[Array, Array] | None = None
    numbers: Callable[[Array], tuple[Array, Array]] | None = None
    outcomes: tuple[Array, float] | None = None

    def quiet(self, design: Design) -> list[QuietLevel]:
        """The levels and other directions whose number of records with the rarer outcome, or against them, is small or hidden by noise."""
        found = []
        levels = levels_of(design, self.box)
        # where all outcomes are alike each level has its own noise, and what hangs on none would be answered
        if all(one.column for one in levels):
            levels.append(level_of(all_records(design), self.box))
        for level, look in self._looks(design, levels):
            if look.hidden or self._few(level):
                one = min(look.counts, key=lambda count: count.count - count.margin)
                found.append(QuietLevel(one, look.outcome, level.cell.places))
        return found + self._separated(design)

    def _separated(self, design: Design) -> list[QuietLevel]:
        """The directions of separation, by the rows that they move."""
        rows = distinct_rows(design)
        if rows is None or self.outcomes is None:
            return []
        counts, sd = self.outcomes
        known = [rows.rows @ one.cell.weights for one in levels_of(design, self.box)]
        places: dict[tuple[str, str], set[int]] = {}
        least: dict[tuple[str, str], LevelCount] = {}
        for one in least_against(rows.rows, counts, sd, known, of_counts=self._counts):
            said = rows.named(design, one.moved)
            count = LevelCount(*said, one.count, one.sd)
            if _lowest(count)[0] < 1.0:
                places.setdefault(said, set()).add(one.place)
                least.setdefault(said, count)
        return [QuietLevel(least[said], AGAINST, tuple(sorted(own))) for said, own in places.items()]

    def near(self, design: Design) -> list[NearLevel]:
        """The levels that are told although noise could have hidden them."""
        found = []
        for level, look in self._looks(design, levels_of(design, self.box)):
            if look.hidden:
                continue
            ends = [_lowest(count) for count in look.counts]
            noise, more = max((_missing_variance(c, *end) for c, end in zip(look.counts, ends, strict=True)), key=sum)
            if noise + more > 0:
                moves = level.cell.weights
                found.append(NearLevel(noise * look.per**2, (noise + more) * look.per**2, moves))
        return found

    def _looks(self, design: Design, levels: Sequence[Level]) -> Iterator[tuple[Level, _Look]]:
        """What each level shows."""
        totals, noise = self.surprise
        for level in levels:
            weights, mean = level.weights, self._mean(design, level)
            eta, error = float(mean @ self.line), sqrt(max(float(mean @ self.noise @ mean), 0.0))
            damped, damped_before = (self._damped(line, level) for line in (self.line, self.before))
            # of the outcome that the released line says is the rarer; of counts there is one side
            sign, number = (
                (-1.0 if eta > 0 and not self._counts else 1.0),
                max(float(weights @ self.moments[0]), _LEAST_SHARE) * self.records,
            )
            rarer, steep = self._expected(number, sign * eta, damped)
            before = sign * float(mean @ self.before)
            expected, slope = self._expected(number, before, damped_before)
            unit = self._unit(before) / self._weight(weights, slope / self._unit(before))
            missed, unsure = float(weights @ totals), sqrt(max(float(weights @ noise @ weights), 0.0))
            counts = (
                LevelCount(level.column, level.name, rarer, steep * error),
                LevelCount(level.column, level.name, expected + sign * unit * missed, unit * unsure),
            )
            yield level, _Look(counts, 1 / max(steep, 1e-300), 2 if self._counts else int(sign > 0))

    def _weight(self, weights: Array, most: float) -> float:
        """How much a record of a level counts on average, by the information there is and there would be of full weights."""
        if self.information is None or self._counts:
            return 1.0
        there, noise = (float(weights @ own @ weights) for own in self.information)
        return float(np.clip((there + noise) / max(most, 1e-300), _LEAST_WEIGHT, 1.0))

    def _few(self, level: Level) -> bool:
        """Whether noise hides how many records have a level of counts."""
        if not self._counts or self.numbers is None:
            return False
        (number,), (sd,) = self.numbers(level.weights[None, :])
        return bool(number < _CLEAR * sd)

    @property
    def _counts(self) -> bool:
        return isinstance(self.family, Counts)

    def _expected(self, number: float, eta: float, damped: float) -> tuple[float, float]:
        """What so many records count where eta has this mean, and its derivative. damped: of a line."""
        if self.family == LOGIT:
            mean = float(expit(eta * damped))
            return number * mean, number * mean * (1 - mean)
        at = np.array([eta if self._counts else eta * damped])
        return number * float(self.family.mean(at)[0]), number * float(self.family.slope(at)[0])

    def _unit(self, eta: float) -> float:
        """How many outcomes one unit of the score stands for."""
        if self.family == LOGIT:
            return 1.0
        at = np.array([eta])
        return float(self.family.slope(at)[0] / self.family.information(at)[0])

    def _mean(self, design: Design, level: Level) -> Array:
        """The mean of z over the records of a level, (k,): exactly in its own columns, as the moments say and within bounds in others."""
        mean = level.weights @ self.moments / max(float(level.weights @ self.moments[0]), _LEAST_SHARE)
        low, high = extent(design, self.box)
        mean = np.concatenate([[1.0], np.clip(mean[1:], low, high)])
        middle, half = self.box.arrays
        for j, value in level.cell.fixed:
            mean[1 + j] = (value - middle[j]) / half[j]
        return np.asarray(mean)

    def _damped(self, line: Array, level: Level) -> float:
        """c of a line over the records of a level, of whose own columns nothing varies there."""
        own = np.array(line)
        own[[1 + j for j, _ in level.cell.fixed]] = 0.0
        varying = float(own @ self.moments @ own) - float(self.moments[0] @ own) ** 2
        return 1 / sqrt(1 + pi * max(varying, 0.0) / 8)


def _lowest(count: LevelCount) -> tuple[float, float]:
    """(L, x): the least count that is not excluded, given that this one was answered, and x; -inf where none is."""
    beyond = (count.count - _FEWEST) / sqrt(count.sd**2 + max(count.count, 1.0))
    if not beyond > _AT_ONCE:
        return -inf, inf
    x = _sds_beyond(beyond) if beyond < _FAR_OFF else _NORMAL
    return count.count - x * count.sd, x


def _sds_beyond(d: float) -> float:
    """x of Q(x) = .025 Q(x - d)."""
    low, high = _NORMAL, 4 / d + d + 2
    for _ in range(60):
        x = (low + high) / 2
        if float(log_ndtr(-x)) > log(_TAIL) + float(log_ndtr(d - x)):
            low = x
        else:
            high = x
    return high


def _missing_variance(count: LevelCount, low: float, x: float) -> tuple[float, float]:
    """What a normal interval of the logarithm of a count lacks: of noise, and of sampling, in squared records."""
    noise = (count.count * log(count.count / low) / _NORMAL) ** 2 - count.sd**2
    return max(noise, 0.0), ((x / _NORMAL) ** 2 - 1) * count.count


def quiet_words(found: Sequence[QuietLevel], most: int = 3) -> list[str]:
    """One sentence for the levels, the rarest first; none for none."""
    if not found:
        return []
    first = sorted(found, key=lambda one: one.count.count)[:most]
    named = ", ".join(
        f"{cell_words(one.count.column, one.count.level)} (about {max(one.count.count, 0.0):.0f} ± {one.count.margin:.0f} "
        f"{_SAID[one.outcome]})"
        for one in first
    )
    more = f" and {len(found) - most} more" if len(found) > most else ""
    counted = first[0].outcome == _COUNTED
    if not all(one.count.column for one in first):
        return [f"{named} are too alike for any coefficient to be told; more records or a larger budget may tell them"]
    crossed = list(dict.fromkeys(one.count.column for one in first if ":" in one.count.column))
    way = f", or write the formula without the product of {' or '.join(crossed)}" if crossed else ""
    rest = f"join such a level with another, or leave it out of the schema, by which its records count as missing{way}"
    if counted:
        return [
            f"levels whose counts noise may have made have no coefficient that could be told: {named}{more}; more records or a larger "
            f"budget tell them; else {rest}"
        ]
    return [
        f"levels with next to no records of one outcome have no coefficient that could be told: {named}{more}; {rest}"
    ]
