"""Levels of which next to no records have one of the two outcomes: their coefficients are at a boundary, or cannot be told from it.

Two noisy counts of a level's records with its rarer outcome follow from the last round, and neither may be few. With N_l records and mean
log-odds eta_l the line before it expects N_l p_l, p_l = expit(c eta_l), c = (1 + pi s^2/8)^(-1/2) for log-odds that vary by s within
a level (MacKay 1992); g holds sum (y - p), and their sum is the first count. The second is what the released line expects: at a boundary
it lags behind the first, since a step moves log-odds by about one, but its noise is another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._special import expit
from confide.aggregates.rows import Box
from confide.aggregates.scores.fisher_families import LOGIT, Counts, Family
from confide.methods.regression.level_counts import base_levels
from confide.methods.regression.likelihood.fisher.fisher_hidden import Level, levels_of
from confide.methods.regression.scaling import extent
from confide.results.levels import LevelCount
from confide.schema import Design
from confide.schema.term import Indicator

__all__ = ["QuietLevel", "Seen", "places_of", "quiet_words"]

Array = NDArray[np.float64]

# With fewer records of an outcome than this, noise counted against them, a coefficient has no normal distribution to speak of.
_FEWEST = 5.0
# By outcome: 0, 1, or counts of any size.
_SAID = ("without the outcome", "with the outcome", "counted in all")
# A level's counts are expected to stand so many sds of their noise above 0.
_CLEAR = 3.0
# No level has a smaller share of the records.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class QuietLevel:
    """A level with a noisy count of one outcome (0 or 1), or a noisy total of counts (2); places: the coefficients that hang on it."""

    count: LevelCount
    outcome: int
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of levels: theta before the last round and the released one (k,), the covariance of its privacy noise (k, k), sum z
    (y - p) at the first with the covariance of its noise, second moments of z per record (k, k), z measured from `box`, and the noisy
    number of records.
    """

    before: Array
    line: Array
    noise: Array
    surprise: tuple[Array, Array]
    moments: Array
    records: float
    box: Box
    family: Family = LOGIT

    def quiet(self, design: Design, schema: Mapping[str, Any]) -> list[QuietLevel]:
        """The levels, and the values of 0/1 columns, whose number of records with the rarer outcome is small or hidden by noise."""
        totals, noise = self.surprise
        found = []
        for level in levels_of(design, schema, self.box):
            weights, mean = level.weights, self._mean(design, level)
            eta, error = float(mean @ self.line), sqrt(max(float(mean @ self.noise @ mean), 0.0))
            damped, damped_before = (self._damped(line, design, level) for line in (self.line, self.before))
            # of the outcome that the released line says is the rarer; of counts there is one side
            sign, number = (
                (-1.0 if eta > 0 and not self._counts else 1.0),
                max(float(weights @ self.moments[0]), _LEAST_SHARE) * self.records,
            )
            rarer, steep = self._expected(number, sign * eta, damped)
            before = sign * float(mean @ self.before)
            expected, unit = self._expected(number, before, damped_before)[0], self._unit(before)
            missed, unsure = float(weights @ totals), sqrt(max(float(weights @ noise @ weights), 0.0))
            counts = (
                LevelCount(level.column, level.name, rarer, steep * error),
                LevelCount(level.column, level.name, expected + sign * unit * missed, unit * unsure),
            )
            one = min(counts, key=lambda count: count.count - count.margin)
            if self._hidden(counts, expected):
                outcome = 2 if self._counts else int(sign > 0)
                found.append(QuietLevel(one, outcome, places_of(design, schema, level.column, level.name)))
        return found

    def _hidden(self, counts: tuple[LevelCount, LevelCount], expected: float) -> bool:
        """Whether a level cannot be told. expected: its count by the line before the last round."""
        if not self._counts:
            return any(count.count - count.margin < _FEWEST for count in counts)
        # by what was expected rather than by what came: a level that is answered by luck of its noise is answered too high
        expects, came = counts
        return (
            not expects.seen or expects.count < _FEWEST or expected < _CLEAR * came.sd or came.count < came.sd + _FEWEST
        )

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
        for j, value in _fixed(design, level):
            mean[1 + j] = (value - middle[j]) / half[j]
        return np.asarray(mean)

    def _damped(self, line: Array, design: Design, level: Level) -> float:
        """c of a line over the records of a level, of whose own columns nothing varies there."""
        own = np.array(line)
        own[[1 + j for j, _ in _fixed(design, level)]] = 0.0
        varying = float(own @ self.moments @ own) - float(self.moments[0] @ own) ** 2
        return 1 / sqrt(1 + pi * max(varying, 0.0) / 8)


def _fixed(design: Design, level: Level) -> Iterator[tuple[int, float]]:
    """The terms that a level fixes, by place, with their value there: its column's other levels, too."""
    for j, term in enumerate(design.terms):
        part = term.parts[0] if len(term.parts) == 1 else None
        if isinstance(part, Indicator) and part.column == level.column:
            yield j, float(term.name == f"{level.column}[T.{level.name}]")
        elif term.plain == level.column:
            yield j, float(level.name == "1")


def places_of(design: Design, schema: Mapping[str, Any], column: str, level: str) -> tuple[int, ...]:
    """Coefficients that hang on a level: its own, or all of the column and the intercept where the others compare with it."""
    parts = [term.parts[0] if len(term.parts) == 1 else None for term in design.terms]
    own = [1 + j for j, part in enumerate(parts) if isinstance(part, Indicator) and part.column == column]
    if not own:
        place = 1 + next(j for j, term in enumerate(design.terms) if term.name == column)
        return (0, place) if level == "0" else (place,)
    if base_levels(design, schema).get(column) == level:
        return (0, *own)
    return tuple(place for place in own if design.terms[place - 1].name == f"{column}[T.{level}]")


def quiet_words(found: Sequence[QuietLevel], most: int = 3) -> list[str]:
    """One sentence for the levels, the rarest first; none for none."""
    if not found:
        return []
    first = sorted(found, key=lambda one: one.count.count)[:most]
    named = ", ".join(
        f"{one.count.column}[{one.count.level}] (about {max(one.count.count, 0.0):.0f} ± {one.count.margin:.0f} "
        f"{_SAID[one.outcome]})"
        for one in first
    )
    more = f" and {len(found) - most} more" if len(found) > most else ""
    of = "counts" if first[0].outcome == len(_SAID) - 1 else "records of one outcome"
    return [
        f"levels with next to no {of} have no coefficient that could be told: {named}{more}; join such a level with another, or leave "
        "it out of the schema, by which its records count as missing"
    ]
