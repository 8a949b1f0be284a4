"""Which rows of a unit count: those of the smallest priorities under the gate's key, the rest are dropped.

What a rule makes of rows lies unit after unit, with the row of codes `UNIT_ROW` that says where a unit begins and how many rows it has.

A unit may count once in each level of a column: in each year, month, region. Of the levels that its rows name, the
`groups` with the smallest hashes of (id, level) under the key count, a missing level last. In each of these one row
counts, that of the smallest priority (`priorities`). Both follow from the unit's own rows as a multiset and the key, so
that nobody else's rows move when a unit leaves. So a unit has at most `groups` rows, no two of one level.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.core.units.contributions import CELLS
from confide.schema import Schema, Unit
from confide.schema.unit import MOST
from confide.sources.coding import to_arrow
from confide.sources.grouping.ids import (
    Groups,
    HashedGroups,
    Rows,
    first_rows,
    hashed,
    numbered,
    numbered_units,
    priorities,
    seeds,
)


@dataclass(frozen=True)
class Levels:
    """The levels that a unit counts once in. row: the place of their codes among the words of a row; groups: at most so many of a unit."""

    row: int
    groups: int

    @classmethod
    def of(cls, schema: Schema) -> Levels | None:
        """Of the schema's unit, None where it says no column."""
        per = schema.unit.per if isinstance(schema.unit, Unit) else None
        return None if per is None else cls(schema.names.index(per), schema.rows_per_unit)

    def kept(self, rows: Rows, rule: Keep, priority: NDArray[np.uint64] | None) -> tuple[NDArray[Any], NDArray[Any]]:
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
        self, rows: Rows, pair: NDArray[Any], priority: NDArray[np.uint64] | None, rule: Keep
    ) -> NDArray[Any]:
        """The places of the row of the smallest priority of each pair."""
        several = np.bincount(pair)[pair] > 1
        if not several.any():
            return np.arange(len(rows))
        (large,) = np.nonzero(several)
        some = rows.take(large)
        words = rule.told(some)
        if priority is None:
            unit, ids = numbered_units(some)
            found, j = rule.ranked(unit, ids, words, rule.beside(some))
        else:
            found, j = priority[large], np.zeros(len(large), dtype=np.int64)
        return np.concatenate([np.flatnonzero(~several), large[first_rows(pair[large], found, words, j, 1)]])


# Codes of whole units, unit after unit, and the row of codes `UNIT_ROW`.
Bounded: TypeAlias = tuple[list[NDArray[Any]], NDArray[np.int8]]


def counted(rule: Keep, rows: Rows) -> tuple[int, Bounded]:
    """How many units the rows are of, and what the rule makes of them: nothing of one that names no cluster, which counts all the same."""
    found = rule(rows)
    units = int((found[1] >= 0).sum()) if rule.groups is None else int(pc.count_distinct(rows.ids).as_py())
    return units, found


def rule_of_rows(schema: Schema, key: bytes | None = None, *, whole: bool = False, first: bool = True) -> Keep:
    """At most the schema's rows of each unit; whole: all of them up to `MOST`; first: and some statistics read the first ones.

    key: that of the ledger; without one it is the schema's digest.
    """
    key, rows = bytes.fromhex(schema.digest) if key is None else key, schema.rows_per_unit
    found = Keep(key, MOST, first=rows if first else 0) if whole else Keep(key, rows)
    return replace(found, levels=Levels.of(schema))


@dataclass(frozen=True)
class Keep:
    """At most `most` rows of each unit, those of the smallest priorities under a key.

    `first`: where rows are weighed, how many a statistic of kept rows reads, 0 where there is none: rows of units of
    more lie in the order of their priorities. `words`: how many of a row's codes tell it apart, None for all. `groups`: the clusters, of
    which each unit is in one. `levels`: where a unit counts once in each level of a column.
    """

    key: bytes = field(repr=False)
    most: int
    first: int | None = None
    words: int | None = None
    groups: Groups | HashedGroups | None = None
    levels: Levels | None = None

    def __call__(self, rows: Rows, priority: NDArray[np.uint64] | None = None) -> Bounded:
        """The kept rows, unit after unit. priority: where it was found before, for rows of which some were cut."""
        if self.groups is not None:
            inside = self.groups.inside(rows)
            rows, priority = rows.take(inside), None if priority is None else priority[inside]
        if self.levels is not None:
            order, sizes = self.levels.kept(rows, self, priority)
            return [row[order] for row in rows.codes], _marked(sizes, numbered_units(rows)[0][order])
        unit, ids = numbered_units(rows)
        sizes = np.bincount(unit)
        over = (sizes > (self.first or self.most))[unit]
        if not over.any():
            order = np.arange(len(rows)) if len(ids) == len(rows) else _in_order(unit)
        else:
            (large,) = np.nonzero(over)
            some = [row[large] for row in self.told(rows)]
            if priority is None:
                found, j = self.ranked(unit[large], ids, some, [row[large] for row in self.beside(rows)])
            else:
                found, j = priority[large], np.zeros(len(large), dtype=np.int64)
            order = np.concatenate([np.flatnonzero(~over), large[first_rows(unit[large], found, some, j, self.most)]])
            order = order[_in_order(unit[order])]
        if self.first is not None:
            # units of one size next to each other: sums by weight are added up for one size after the other
            order = order[_in_order(np.minimum(sizes, MOST - 1)[unit[order]])]
        own = unit[order]
        return [row[order] for row in rows.codes], _marked(sizes[own], own)

    def told(self, rows: Rows) -> list[NDArray[Any]]:
        """The codes that tell rows apart, which are the first of each row; the number of a cluster depends on the rows before."""
        return rows.codes[: self.words]

    def beside(self, rows: Rows) -> list[NDArray[Any]]:
        """The others: values in order, by which equal rows are numbered, and the cluster, which is one for all rows of a unit."""
        return [] if self.words is None else rows.codes[self.words :]

    def cut(self, rows: Rows) -> tuple[Rows, NDArray[np.uint64]]:
        """Of rows that hold all their equals, but not all rows of a unit: those that can be among the first `MOST`, with priorities.

        In clusters of the unit's cluster alone, which is the first wherever its rows are; with levels among the first of each level.
        """
        if self.groups is not None:
            rows = rows.take(self.groups.inside(rows))
        if not len(rows):
            return rows, np.zeros(0, dtype=np.uint64)
        unit, ids = numbered_units(rows)
        words = self.told(rows)
        found, j = self.ranked(unit, ids, words, self.beside(rows))
        own, most = (unit, MOST) if self.levels is None else (self.levels.pairs(rows, unit)[1], 1)
        order = first_rows(own, found, words, j, most)
        return rows.take(order), found[order]

    def ranked(
        self, unit: NDArray[Any], ids: pa.Array, words: list[NDArray[Any]], beside: list[NDArray[Any]]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The priority of each row, and its number among its equals."""
        asked, own = np.unique(unit, return_inverse=True)
        h = hashed(seeds(ids.take(to_arrow(asked)).to_pylist(), self.key)[own], words)
        j = numbered(unit, h, words, beside)
        return priorities(h, j), j


def _in_order(numbers: NDArray[Any]) -> NDArray[np.intp]:
    """The places of whole numbers from 0 on, the smallest first, equal ones in their order; up to 2^16 sorted by counting."""
    few = not len(numbers) or numbers.max() < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if few else numbers, kind="stable")


def _marked(sizes: NDArray[Any], unit: NDArray[Any]) -> NDArray[np.int8]:
    """The row of codes `UNIT_ROW` of rows that lie unit after unit: the cell of a unit's size where it begins, -1 on its other rows."""
    # as many rows as lie above 2^(cell - 1) and up to 2^cell
    cells: NDArray[np.int8] = np.minimum(np.frexp(sizes - 1)[1], CELLS - 1).astype(np.int8)
    cells[1:][unit[1:] == unit[:-1]] = -1
    return cells
