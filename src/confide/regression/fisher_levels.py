"""Levels of which next to no records have one of the two outcomes: their coefficients are at a boundary, or cannot be told from it.

At the likeliest line the shares that it predicts for the records of a level add up to the level's records with the outcome. So the released
line, whose privacy noise is known, says how many have it: N_l p_l, p_l = expit(c eta_l), eta_l the mean log-odds of the level and c = (1 +
pi s^2/8)^(-1/2) for log-odds that vary by s over records (MacKay 1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from confide.mechanisms.rows import Box
from confide.regression.level_counts import base_levels, counted_levels
from confide.results.levels import LevelCount
from confide.schema import Design
from confide.schema.term import Indicator

__all__ = ["QuietLevel", "Seen", "quiet_words"]

Array = NDArray[np.float64]

# With fewer records of an outcome than this a coefficient has no normal distribution to speak of.
_FEWEST = 5.0
# No level has a smaller share of the records.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class QuietLevel:
    """A level with a noisy count of records of one outcome; places: the coefficients that hang on it."""

    count: LevelCount
    outcome: int
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of levels: theta (k,) of the released line, the covariance of its privacy noise (k, k), second moments of z per
    record (k, k), z measured from `box`, and the noisy number of records.
    """

    line: Array
    noise: Array
    moments: Array
    records: float
    box: Box

    def quiet(self, design: Design, schema: Mapping[str, Any]) -> list[QuietLevel]:
        """The levels, and the values of 0/1 columns, whose number of records with the rarer outcome is small or hidden by noise."""
        m = self.moments
        totals = ((m[0], np.zeros_like(m)), (m @ self.line, m @ self.noise @ m))
        counted = ([*counted_levels(design, schema, own, box=self.box), *_values(design, own)] for own in totals)
        varying = float(self.line @ m @ self.line) - float(m[0] @ self.line) ** 2
        damped = 1 / sqrt(1 + pi * max(varying, 0.0) / 8)
        found = []
        for size, log_odds in zip(*counted, strict=True):
            share = max(size.count, _LEAST_SHARE)
            mean, error = log_odds.count / share, log_odds.sd / share
            rarer = float(expit(-abs(mean) * damped))
            count = share * self.records * rarer
            one = replace(log_odds, count=count, sd=count * (1 - rarer) * error)
            if not one.seen or one.count < _FEWEST:
                found.append(QuietLevel(one, int(mean <= 0), _places(design, schema, one)))
        return found


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
