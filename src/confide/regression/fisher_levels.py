"""Levels of which next to no records have one of the two outcomes: their coefficients are at a boundary, or cannot be told from it.

The linear round's moments hold sum w z and sum w z (2 y - 1), and with them the noisy number of records of each level and outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.rounds import Round
from confide.mechanisms.rows import Box
from confide.regression.level_counts import base_levels, counted_levels
from confide.results.levels import LevelCount
from confide.schema import Design
from confide.schema.term import Indicator

__all__ = ["QuietLevel", "quiet_levels", "quiet_words"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class QuietLevel:
    """A level with a noisy count of records of one outcome; places: the coefficients that hang on it."""

    count: LevelCount
    outcome: int
    places: tuple[int, ...]


def quiet_levels(design: Design, schema: Mapping[str, Any], begun: Round, box: Box) -> list[QuietLevel]:
    """The levels, and the values of 0/1 columns, whose noisy count of either outcome does not stand above its noise."""
    p = len(begun.cross)
    half = begun.sd_gram**2 / 2
    noise = (half + begun.sd_cross**2) * np.eye(p)
    noise[0, 0] += half
    found = []
    for outcome, sign in enumerate((-1.0, 1.0)):
        totals = (begun.gram[:, 0] + sign * begun.cross) / 2, noise / 4
        counts = [*counted_levels(design, schema, totals, box=box), *_values(design, totals)]
        found += [QuietLevel(one, outcome, _places(design, schema, one)) for one in counts if not one.seen]
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
