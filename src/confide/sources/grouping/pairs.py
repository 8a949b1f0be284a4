"""Which rows count where a unit counts once in each level of a column: in each year, month, region.

Of the levels that a unit's rows name, the `groups` with the smallest hashes of (id, level) under the key count, a missing level last, and
in each of these one row, that of the smallest priority (`priorities`). Both follow from the unit's own rows as a multiset and the key, so
that nobody else's rows move when a unit leaves. So a unit has at most `groups` rows, no two of one level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.schema import Schema, Unit
from confide.sources.grouping.groups import numbered_units
from confide.sources.grouping.priorities import first_rows, hashed, priorities, seeds
from confide.sources.grouping.spill import Rows

__all__ = ["Levels"]


class _Rule(Protocol):
    """How rows are told apart and ranked (`units.Keep`)."""

    @property
    def key(self) -> bytes: ...
    def words(self, rows: Rows) -> list[NDArray[Any]]: ...
    def ranked(
        self, unit: NDArray[Any], ids: Any, words: list[NDArray[Any]]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]: ...


@dataclass(frozen=True)
class Levels:
    """The levels that a unit counts once in. row: the place of their codes among the words of a row; groups: at most so many of a unit."""

    row: int
    groups: int

    @classmethod
    def of(cls, unit: Unit | None, schema: Schema) -> Levels | None:
        """Of a unit, None where it says no column."""
        if unit is None or unit.per is None:
            return None
        return cls(schema.names.index(unit.per), schema.rows_per_unit)

    def kept(self, rows: Rows, rule: _Rule, priority: NDArray[np.uint64] | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """(the places of the rows that count, unit after unit; how many levels each row's unit has).

        priority: where it was found before, for rows of which some were cut.
        """
        unit, ids = numbered_units(rows)
        (of, named), pair = self.pairs(rows, unit)
        own = hashed(seeds(ids.to_pylist(), rule.key)[of], [named])
        order = np.lexsort((named, priorities(own, np.zeros(len(of), dtype=np.int64)), named < 0, of))
        place = np.arange(len(of)) - np.searchsorted(of[order], of[order])
        counts = np.zeros(len(of), dtype=np.bool_)
        counts[order[place < self.groups]] = True
        inside = np.flatnonzero(counts[pair])
        kept = self._one_of_each(rows.take(inside), pair[inside], None if priority is None else priority[inside], rule)
        found = inside[kept]
        # pairs are numbered unit after unit
        found = found[np.argsort(pair[found], kind="stable")]
        return found, np.bincount(of)[unit[found]]

    def pairs(self, rows: Rows, unit: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """(unit and level of each pair of them that occurs, in order; the number of each row's pair)."""
        level = rows.codes[self.row].astype(np.int64)
        found, pair = np.unique(np.stack([unit.astype(np.int64), level]), axis=1, return_inverse=True)
        return found, pair.ravel()

    def _one_of_each(
        self, rows: Rows, pair: NDArray[Any], priority: NDArray[np.uint64] | None, rule: _Rule
    ) -> NDArray[Any]:
        """The places of the row of the smallest priority of each pair."""
        several = np.bincount(pair)[pair] > 1
        if not several.any():
            return np.arange(len(rows))
        (large,) = np.nonzero(several)
        some = rows.take(large)
        words = rule.words(some)
        if priority is None:
            unit, ids = numbered_units(some)
            found, j = rule.ranked(unit, ids, words)
        else:
            found, j = priority[large], np.zeros(len(large), dtype=np.int64)
        return np.concatenate([np.flatnonzero(~several), large[first_rows(pair[large], found, words, j, 1)]])
