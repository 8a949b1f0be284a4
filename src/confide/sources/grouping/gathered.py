"""Rows of one unit brought together: coded with their ids, held in memory or dealt out to files.

Rows are gathered in memory up to a public number of cells and of megabytes, else in 64 files without names (as in `kept`), by a hash of
the id, and each file is finished by itself. A file too large for that is dealt out once more by another hash of the id. What is too large
then is one unit's, or few units', and is dealt out by a hash of the rows' codes, so that equal rows are together and each part can be cut
to the 65,536 rows of smallest priority that any unit may have.
Their sizes show to whoever can watch this machine's disk or memory meanwhile what the source's own size shows, and how unevenly ids have
rows; nothing that is published follows from it. A full disk is an error with a fixed sentence: there is no release without the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from threading import Lock

import numpy as np
import pyarrow as pa

from confide.errors import SourceError
from confide.protocol.units.whose import CLUSTER_ROW
from confide.schema import Schema
from confide.sources.aggregation import Codes, Input
from confide.sources.coding import Coder, columns_behind
from confide.sources.grouping.groups import Groups, HashedGroups
from confide.sources.grouping.ids import canonical
from confide.sources.grouping.keep import Bounded, Keep, counted
from confide.sources.grouping.spill import Files, Rows, joined
from confide.sources.kept import Packing
from confide.sources.parts import Block, Part

__all__ = ["GROUPED", "Gathered", "WithIds", "identified", "packing"]

#: Where they cannot be, whatever the reason: the sentence is fixed.
GROUPED = (
    "the rows of each unit could not be brought together (the disk may be full, or the folder of spool= not writable)"
)


def packing(rows: tuple[str, ...], schema: Schema) -> Packing:
    """How these rows lie in bytes; clusters are numbered by 53 bits at most."""
    found = Packing.of(rows, schema)
    types = (np.dtype(np.int64) if row == CLUSTER_ROW else kind for row, kind in zip(rows, found.types, strict=True))
    return replace(found, types=tuple(types))


class WithIds(Input):
    """Records as they are in tables and files, coded with their ids and clusters. took: is handed the ids and codes of each block, to copy.

    column: of the ids, None where each record is a unit of its own; groups: numbers clusters.
    """

    parts: Sequence[Part]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(
        self,
        parts: Sequence[Part],
        schema: Schema,
        rows: tuple[str, ...],
        column: str | None,
        took: Callable[[pa.Array, Codes], None],
        groups: Groups | HashedGroups | None = None,
    ) -> None:
        self.parts, self.rows = parts, rows
        self._ids = [one for one in (column, None if groups is None else groups.column) if one is not None]
        self.columns = (*self._ids, *columns_behind(rows, schema))
        self._schema, self._took, self._groups, self._numbered = schema, took, groups, column is None
        self._numbers = count()

    def coder(self, block_rows: int) -> Callable[[Block], Codes]:
        coder = Coder(self.rows, self._schema, block_rows)

        def coded(block: Block) -> Codes:
            cells = block.columns[len(self._ids) :]
            codes = coder(Block(block.rows, cells))
            ids = self._of_records(block.rows) if self._numbered else canonical(block.columns[0])
            if self._groups is None:
                self._took(ids, codes)
                return codes
            # rows without a cluster are there until units are counted (`Groups.inside`)
            own = self._groups(block.columns[len(self._ids) - 1])
            self._took(ids, np.concatenate([codes, own[None, :]]))
            return codes

        return coded

    def _of_records(self, rows: int) -> pa.Array:
        """An id for each record of a block, which no other has, in ascending order."""
        block = next(self._numbers)
        return pa.array([b"%010d:%010d" % (block, row) for row in range(rows)], pa.large_binary())


def identified(ids: pa.Array, codes: Codes, packing: Packing) -> Rows:
    """The records of a block that have an id, packed."""
    if ids.null_count:
        there = np.asarray(ids.is_valid())
        ids, codes = ids.filter(pa.array(there)), codes[:, there]
    return Rows(ids, packing.typed(packing.pack(codes), codes.shape[1]))


class Gathered:
    """All records with an id, in memory or dealt out to files by a hash of the id."""

    def __init__(self, packing: Packing, rows: int, memory: int, folder: str | None) -> None:
        self._packing, self._limit, self._memory, self._folder = packing, rows, memory, folder
        self._lock = Lock()
        self._held: list[Rows] = []
        self._rows = self._bytes = 0
        self._files: Files | None = None
        self._failed = False

    def add(self, ids: pa.Array, codes: Codes) -> None:
        """A block of records; those without an id are dropped."""
        rows = identified(ids, codes, self._packing)
        if not len(rows):
            return
        with self._lock:
            self._held.append(rows)
            self._rows += len(rows)
            self._bytes += rows.bytes
            if self._rows > self._limit or self._bytes > self._memory:
                self._deal()

    def _deal(self) -> None:
        """What is held into the files; where they cannot be written, that is said when the pass ends, without its place."""
        rows, self._held, self._rows, self._bytes = joined(self._held), [], 0, 0
        if self._files is None:
            self._files = Files(self._folder)
        try:
            if not self._failed:
                self._files.add(rows, rows.by_id())
        except (OSError, ValueError, pa.ArrowException):
            self._failed = True

    def whole_units(self, rule: Keep) -> Iterator[tuple[int, Bounded]]:
        """What the rule makes of all rows, in portions that hold every row of a unit, with the number of their units."""
        if self._files is None:
            if self._held:
                held, self._held = self._held, []
                yield counted(rule, joined(held))
            return
        if self._held:
            self._deal()
        if self._failed:
            raise SourceError(GROUPED)
        for one in range(self._files.parts):
            yield from self._finished(self._files, one, rule, again=True)

    def _finished(self, files: Files, one: int, rule: Keep, *, again: bool) -> Iterator[tuple[int, Bounded]]:
        """What the rule makes of a file. again: whether too large a file may be one of many units, and is dealt out by id once more."""
        if not files.rows(one):
            return
        if files.rows(one) <= self._limit:
            yield counted(rule, joined(list(files.read(one))))
            return
        finer, portions, ids = Files(self._folder), [], []
        try:
            for rows in files.read(one):
                finer.add(rows, rows.by_id(seed=2) if again else rows.by_content())
            if again:
                for part in range(finer.parts):
                    yield from self._finished(finer, part, rule, again=False)
                return
            for part in range(finer.parts):
                if finer.rows(part):
                    rows = joined(list(finer.read(part)))
                    ids.append(rows.ids.unique())
                    portions.append(rule.cut(rows))
        finally:
            finer.close()
        whole, priority = joined([rows for rows, _ in portions]), np.concatenate([own for _, own in portions])
        yield len(pa.concat_arrays(ids).unique()), rule(whole, priority)

    def close(self) -> None:
        self._held = []
        if self._files is not None:
            self._files.close()
