"""Levels of which next to no records have one of the two outcomes: their coefficients are at a boundary, or cannot be told from it.

At the line of the last step sum (y - p) over the records of a level is in g, and h = sum p (1 - p) in A; with N records, about
N (1 - sqrt(1 - 4 h/N))/2 are expected to have the rarer outcome. Expected and surprise together are a noisy count of those that have it,
far better known than from the first round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.rows import Box
from confide.regression.fisher_rounds import FisherRound
from confide.regression.level_counts import base_levels, counted_levels, totals_of_gram
from confide.results.levels import LevelCount
from confide.schema import Design
from confide.schema.term import Indicator

__all__ = ["QuietLevel", "Seen", "quiet_words"]

Array = NDArray[np.float64]

# With fewer records of an outcome than this a coefficient has no normal distribution to speak of.
_FEWEST = 5.0
# Near even odds h says little of which share has an outcome, and there it does not matter.
_LEAST_ROOT = 0.3


@dataclass(frozen=True)
class QuietLevel:
    """A level with a noisy count of records of one outcome; places: the coefficients that hang on it."""

    count: LevelCount
    outcome: int
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of levels. last: the last round, in u = transform' z, at theta = line; moments: of z per record, (k, k)."""

    last: FisherRound
    transform: Array
    line: Array
    moments: Array
    records: float
    box: Box

    def quiet(self, design: Design, schema: Mapping[str, Any]) -> list[QuietLevel]:
        """The levels, and the values of 0/1 columns, whose noisy count of the rarer outcome is small or does not stand above its noise."""
        information, noise = totals_of_gram(self.last.gram, self.last.sd_gram, self.transform)
        back = np.linalg.inv(self.transform)
        nothing = np.zeros_like(noise)
        sums = (
            (information, noise),
            (back.T @ self.last.cross, self.last.sd_cross**2 * back.T @ back),
            (self.moments[0] * self.records, nothing),
            (self.moments @ self.line, nothing),
        )
        counted = ([*counted_levels(design, schema, own, box=self.box), *_values(design, own)] for own in sums)
        found = []
        for expected, surprise, size, log_odds in zip(*counted, strict=True):
            likely = int(log_odds.count > 0)
            one = _rarer(expected, surprise, max(size.count, 1.0), -1.0 if likely else 1.0)
            if not one.seen or one.count < _FEWEST:
                found.append(QuietLevel(one, 1 - likely, _places(design, schema, one)))
        return found


def _rarer(expected: LevelCount, surprise: LevelCount, size: float, sign: float) -> LevelCount:
    """The noisy count of records of a level with the rarer outcome; sign: 1 where that is the outcome itself."""
    root = sqrt(max(1 - 4 * max(expected.count, 0.0) / size, _LEAST_ROOT**2))
    count = size * (1 - root) / 2 + sign * surprise.count
    return replace(surprise, count=count, sd=sqrt(surprise.sd**2 + (expected.sd / root) ** 2))


def _values(design: Design, totals: tuple[Array, Array]) -> Iterator[LevelCount]:
    """Counts of the values 0 and 1 of plain columns."""
    values, noise = totals
    for j, term in enumerate(design.terms):
        if term.binary and term.plain is not None:
            for value, sign in (("0", -1.0), ("1", 1.0)):
                weights = np.zeros(len(values))
                weights[0], weights[1 + j] = 0.5, sign / 2
                yield LevelCount(
                    term.name, value, float(weights @ values), sqrt(max(float(weights @ noise @ weights), 0.0))
                )


def _places(design: Design, schema: Mapping[str, Any], level: LevelCount) -> tuple[int, ...]:
    """Coefficients that hang on a level: its own, or all of the column and the intercept where the others compare with it."""
    parts = [term.parts[0] if len(term.parts) == 1 else None for term in design.terms]
    own = [1 + j for j, part in enumerate(parts) if isinstance(part, Indicator) and part.column == level.column]
    if not own:
        place = 1 + next(j for j, term in enumerate(design.terms) if term.name == level.column)
        return (0, place) if level.level == "0" else (place,)
    if base_levels(design, schema).get(level.column) == level.level:
        return (0, *own)
    return tuple(place for place in own if design.terms[place - 1].name == f"{level.column}[T.{level.level}]")


def quiet_words(found: Sequence[QuietLevel], most: int = 3) -> list[str]:
    """One sentence for the levels, the rarest first; none for none."""
    if not found:
        return []
    first = sorted(found, key=lambda one: one.count.count)[:most]
    named = ", ".join(
        f"{one.count.column}[{one.count.level}] (about {max(one.count.count, 0.0):.0f} ± {one.count.margin:.0f} "
        f"{'with' if one.outcome else 'without'} the outcome)"
        for one in first
    )
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return [f"levels with next to no records of one outcome have no coefficient that could be told: {named}{more}"]
