"""Exact counts of how cells are read, for `sources.preflight`: by the readers of the Coder, block by block.

A cell of a column is exactly one of these: a value, empty, a declared missing code, or unread. Unread is what holds something and is read
as missing. Of an unread cell its shape is counted, and of a row its hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.schema import Categorical, Column, Schema
from confide.sources.aggregation import Codes, Input
from confide.sources.coder import code_of, reader_of
from confide.sources.coding import EMPTY, HOLDS, Block, Cells, Floats, Part, missing_of, taken
from confide.sources.grouping.ids import canonical, hashes
from confide.sources.shapes import UNDECODED, shapes_of, texts_of

Hashes = NDArray[np.uint64]
Mask = NDArray[np.bool_]

# Hashes that are kept to find equals: 128 MB. Of more rows nothing is said.
_MOST = 1 << 24
# Shapes of one column that are told apart.
_SHAPES = 1000
_STEP, _MISSING = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


class Repeats:
    """Hashes of 64 bits, of which it is asked how many are there again. Two of 2^24 are confused with a chance of 10^-5.

    >>> found = Repeats()
    >>> found.add(np.array([7, 8, 7, 7], dtype=np.uint64))
    >>> found.again
    (2, 1)
    """

    def __init__(self) -> None:
        self._held = np.empty(0, dtype=np.uint64)
        self._rows = 0
        self._lock = Lock()

    def add(self, hashes: Hashes) -> None:
        with self._lock:
            if not len(self._held):
                # pages of it become memory when they are written
                self._held = np.empty(_MOST, dtype=np.uint64)
            start, self._rows = self._rows, self._rows + len(hashes)
            if self._rows <= _MOST:
                self._held[start : self._rows] = hashes

    @property
    def again(self) -> tuple[int, int] | None:
        """How many hashes were there before, and how many different ones are there more than once; None where not counted."""
        if self._rows > _MOST:
            return None
        held = self._held[: self._rows]
        held.sort()
        same = held[1:] == held[:-1]
        first = same & ~np.concatenate([[False], same[:-1]])
        return int(np.count_nonzero(same)), int(np.count_nonzero(first))


@dataclass
class CellCounts:
    """Of one column, in what one thread read.

    codes: declared missing, by code; undecoded: unread with a character that the file's encoding does not have; least, most: of the values;
    tops: the largest of them without its sign in rows that are half empty, and in all others.
    """

    empty: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    unread: int = 0
    undecoded: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    below: int = 0
    above: int = 0
    values: int = 0
    least: float = np.inf
    most: float = -np.inf
    tops: tuple[float, float] = (0.0, 0.0)

    def __repr__(self) -> str:
        return "CellCounts"

    def add(self, other: CellCounts) -> None:
        """Those of another thread."""
        for name in ("empty", "unread", "undecoded", "below", "above", "values"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codes.update(other.codes)
        self.take_shapes(other.shapes)
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.take_tops(*other.tops)

    def take_tops(self, sparse: float, full: float) -> None:
        self.tops = max(self.tops[0], sparse), max(self.tops[1], full)

    def take_shapes(self, found: Counter[str]) -> None:
        """Shapes beyond the first thousand are not told apart, so that a file cannot fill the memory with them."""
        for shape, times in found.items():
            if shape in self.shapes or len(self.shapes) < _SHAPES:
                self.shapes[shape] += times


class _OfColumn:
    """Counts the cells of one column. It belongs to one thread."""

    def __init__(self, column: Column, marks: tuple[str, str]) -> None:
        self.column, self.counts = column, CellCounts()
        self._reader, self._code = reader_of(column, marks), code_of(column, marks)
        self._top = 0.0

    def __call__(self, cells: Cells, empty: NDArray[np.intp]) -> tuple[Floats, Mask | None]:
        """The values, and where there is one; None where all cells have one. empty: counts the empty cells of each row."""
        values, counts, labels = self._reader(cells), self.counts, isinstance(self.column, Categorical)
        if not len(values):
            return values, None
        # the least or the most is no number where one of a block is none
        least, most, there = float(values.min()), float(values.max()), None
        known = len(values)
        if least < 0 if labels else not np.isfinite([least, most]).all():
            there = values >= 0 if labels else np.isfinite(values)
            (at,) = np.nonzero(~there)
            if isinstance(cells, pa.Array) and cells.null_count == len(at):
                # none holds anything
                counts.empty += len(at)
                empty[at] += 1
            else:
                empty[at] += self._missing(taken(cells, at))
            known -= len(at)
            some = values[there]
            least, most = float(some.min(initial=np.inf)), float(some.max(initial=-np.inf))
        counts.values += known
        counts.least, counts.most = min(counts.least, least), max(counts.most, most)
        self._top = max(-least, most, 0.0)
        if not isinstance(self.column, Categorical):
            low, high = self.column.low, self.column.high
            counts.below += int(np.count_nonzero((values < low) & np.isfinite(values))) if least < low else 0
            counts.above += int(np.count_nonzero((values > high) & np.isfinite(values))) if most > high else 0
        return values, there

    def _missing(self, cells: Cells) -> Mask:
        """Count cells without a value. Where one is empty."""
        counts, found = self.counts, self._code(cells)
        (at,) = np.nonzero(found == HOLDS)
        counts.unread += len(at)
        if len(at):
            texts = texts_of(taken(cells, at))
            counts.undecoded += pc.sum(pc.match_substring(texts, UNDECODED)).as_py() or 0
            if not isinstance(self.column, Categorical):
                counts.take_shapes(shapes_of(texts))
        counts.empty += int(np.count_nonzero(found == EMPTY))
        codes, times = np.unique(found[found >= 0].astype(int), return_counts=True)
        counts.codes.update(dict(zip(codes.tolist(), times.tolist(), strict=True)))
        return np.asarray(found == EMPTY)

    def compare(self, values: Floats, there: Mask | None, sparse: NDArray[np.intp]) -> None:
        """Of numbers in the last block the largest in rows that are half empty, and in the others. sparse: places of these rows."""
        if self.column.kind not in ("numeric", "integer"):
            return
        known = sparse if there is None else sparse[there[sparse]]
        top, others = float(np.abs(values[known]).max(initial=0.0)), self._top
        if top == others:
            rest = np.isfinite(values)
            rest[sparse] = False
            others = float(np.abs(values).max(where=rest, initial=0.0))
        self.counts.take_tops(top, others)


@dataclass
class RowCounts:
    """What is counted of whole rows, in what one thread read. no_id: by id column; pairs: of strata and PSUs that have a row."""

    records: int = 0
    without_any: int = 0
    no_id: Counter[str] = field(default_factory=Counter)
    pairs: set[tuple[int, int]] = field(default_factory=set)

    def __repr__(self) -> str:
        return "RowCounts"

    def add(self, other: RowCounts) -> None:
        """Those of another thread."""
        self.records += other.records
        self.without_any += other.without_any
        self.no_id.update(other.no_id)
        self.pairs |= other.pairs


@dataclass(frozen=True)
class Asked:
    """What is looked at. ids: id columns; one: the id of which each should have one row; drawn: strata and PSUs among the columns."""

    columns: tuple[str, ...]
    ids: tuple[str, ...] = ()
    one: str | None = None
    drawn: tuple[str | None, str | None] = (None, None)
    equals: bool = False


class Look(Input):
    """All cells of some columns, counted in one pass: `counts` and `rows` of all threads, `ids` and `equal` of rows that repeat."""

    parts: Sequence[Part]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(self, parts: Sequence[Part], schema: Schema, asked: Asked) -> None:
        self.parts, self.rows, self.asked = parts, asked.columns, asked
        self.columns = (*asked.ids, *asked.columns)
        self._schema = schema
        self._threads: list[_Thread] = []
        self.ids, self.equal = Repeats(), Repeats()

    def coder(self, block_rows: int) -> Callable[[Block], Codes]:
        self._threads.append(one := _Thread(self._schema, self))
        return one

    def counts(self) -> tuple[RowCounts, dict[str, CellCounts]]:
        """Those of all threads."""
        rows, cells = RowCounts(), {name: CellCounts() for name in self.asked.columns}
        for one in self._threads:
            rows.add(one.rows)
            for name, own in zip(self.asked.columns, one.columns, strict=True):
                cells[name].add(own.counts)
        return rows, cells


class _Thread:
    """Counts blocks of records. It belongs to one thread."""

    def __init__(self, schema: Schema, look: Look) -> None:
        self._look, self._asked = look, look.asked
        self.columns = [_OfColumn(schema[name], schema.file.marks) for name in look.asked.columns]
        self.rows = RowCounts()
        self._dropping = all(one.column.on_missing == "drop" for one in self.columns)

    def __call__(self, block: Block) -> Codes:
        asked, rows = self._asked, self.rows
        rows.records += block.rows
        hashes = np.zeros(block.rows, dtype=np.uint64)
        without = np.zeros(block.rows, dtype=bool)
        for name, cells in zip(asked.ids, block.columns, strict=False):
            hashes ^= (own := self._of_ids(name, cells))[0]
            # without an id of its unit, or of its cluster, a record is in no question
            without |= own[1] if name != asked.one else False
        empty = np.zeros(block.rows, dtype=np.intp)
        own_columns = block.columns[len(asked.ids) :]
        read = [column(cells, empty) for column, cells in zip(self.columns, own_columns, strict=True)]
        (sparse,) = np.nonzero((2 * empty >= len(read)) & (empty < len(read)))
        for column, (values, there) in zip(self.columns, read, strict=True):
            column.compare(values, there, sparse)
        if self._dropping and read and all(there is not None for _, there in read):
            without |= ~np.logical_or.reduce(np.array([there for _, there in read]))
        rows.without_any += int(np.count_nonzero(without))
        if asked.equals:
            with np.errstate(over="ignore"):
                for values, there in read:
                    _mix(hashes, values, there)
            self._look.equal.add(hashes)
        self._pairs(dict(zip(asked.columns, read, strict=True)), block.rows)
        return np.empty((0, block.rows))

    def _of_ids(self, name: str, cells: Cells) -> tuple[Hashes, Mask]:
        """The hash of each row's id, and where there is none."""
        ids = canonical(cells)
        none = missing_of(ids)
        self.rows.no_id[name] += int(np.count_nonzero(none))
        own = hashes(ids)
        if name == self._asked.one:
            self._look.ids.add(own[~none])
        return own, none

    def _pairs(self, read: dict[str, tuple[Floats, Mask | None]], rows: int) -> None:
        """Which strata and PSUs have a row; 0 stands for the stratum where there are none."""
        drawn = [read[name] if name is not None else (np.zeros(rows), None) for name in self._asked.drawn]
        if self._asked.drawn == (None, None):
            return
        both = np.stack([values for values, _ in drawn])
        found = np.unique(both[:, (both >= 0).all(axis=0)].astype(np.int64), axis=1)
        self.rows.pairs |= set(map(tuple, found.T.tolist()))


def _mix(hashes: Hashes, values: Floats, there: Mask | None) -> None:
    """Take one column more into the hash of each row; missing cells are alike."""
    words = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    hashes ^= words if there is None else np.where(there, words, _MISSING)
    hashes *= _STEP
    hashes ^= hashes >> np.uint64(32)
