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
from confide.schema.missing import MissingCode, code_ranges
from confide.sources.aggregation import Codes, Input
from confide.sources.coding import (
    Block,
    Cells,
    Floats,
    Part,
    Reader,
    held_of,
    reader_of,
    taken,
    text_numbers,
    unread,
    valid_text,
)
from confide.sources.grouping.ids import canonical
from confide.sources.shapes import shapes_of, texts_of

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


class CodeOf(Reader):
    """Which code of missing values a cell is, -1 for none.

    >>> CodeOf(["-99", "n/a"])(pa.array(["n/a", "-99.0", "3"])).tolist()
    [1.0, 0.0, -1.0]
    """

    missing = -1.0

    def __init__(self, codes: Sequence[MissingCode], marks: tuple[str, str] = (".", "")) -> None:
        super().__init__(marks)
        self._texts = pa.array([code if isinstance(code, str) else None for code in codes], pa.large_string())
        self._ranges = [code_ranges([code]) for code in codes]

    def numbers(self, values: Floats) -> Floats:
        found = np.full(len(values), -1.0)
        for at, ranges in enumerate(self._ranges):
            for low, high in ranges:
                found[(found < 0) & (values >= low) & (values <= high)] = at
        return found

    def integers(self, cells: pa.Array) -> Floats:
        return self.numbers(np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)))

    def booleans(self, values: Floats) -> Floats:
        return np.full(len(values), -1.0)

    def text(self, cells: pa.Array, marks: tuple[str, str]) -> Floats:
        trimmed = pc.utf8_trim_whitespace(valid_text(cells))
        known = pc.index_in(trimmed, value_set=self._texts.cast(trimmed.type), skip_nulls=True)
        found = np.asarray(pc.fill_null(known, -1), dtype=np.float64)
        return np.where(found < 0, self.numbers(text_numbers(trimmed, marks)), found)

    def cell(self, cell: object) -> float:
        try:
            return float(self.numbers(np.array([float(cell)]))[0])  # type: ignore[arg-type]
        except Exception:  # whatever it is, it is no code
            return -1.0


@dataclass
class CellCounts:
    """Of one column, in what one thread read. codes: declared missing, by code. least, most: of the values."""

    empty: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    unread: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    below: int = 0
    above: int = 0
    values: int = 0
    least: float = np.inf
    most: float = -np.inf

    def __repr__(self) -> str:
        return "CellCounts"

    def add(self, other: CellCounts) -> None:
        """Those of another thread."""
        for name in ("empty", "unread", "below", "above", "values"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codes.update(other.codes)
        self.take_shapes(other.shapes)
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    def take_shapes(self, found: Counter[str]) -> None:
        """Shapes beyond the first thousand are not told apart, so that a file cannot fill the memory with them."""
        for shape, times in found.items():
            if shape in self.shapes or len(self.shapes) < _SHAPES:
                self.shapes[shape] += times


class _OfColumn:
    """Counts the cells of one column. It belongs to one thread."""

    def __init__(self, column: Column, marks: tuple[str, str]) -> None:
        self.column, self.counts = column, CellCounts()
        self._reader, self._held = reader_of(column, marks), held_of(column, marks)
        self._code = CodeOf(column.missing or (), marks)

    def __call__(self, cells: Cells) -> tuple[Floats, Mask | None]:
        """The values, and where there is one; None where all cells have one."""
        values, counts, labels = self._reader(cells), self.counts, isinstance(self.column, Categorical)
        if not len(values):
            return values, None
        # the least or the most is no number where one of a block is none
        least, most, there = float(values.min()), float(values.max()), None
        known = len(values)
        if least < 0 if labels else not np.isfinite([least, most]).all():
            there = values >= 0 if labels else np.isfinite(values)
            (at,) = np.nonzero(~there)
            self._missing(values[at], taken(cells, at))
            known -= len(at)
            least, most = (
                float(values.min(where=there, initial=np.inf)),
                float(values.max(where=there, initial=-np.inf)),
            )
        counts.values += known
        counts.least, counts.most = min(counts.least, least), max(counts.most, most)
        if not isinstance(self.column, Categorical):
            low, high = self.column.low, self.column.high
            counts.below += int(np.count_nonzero((values < low) & np.isfinite(values))) if least < low else 0
            counts.above += int(np.count_nonzero((values > high) & np.isfinite(values))) if most > high else 0
        return values, there

    def _missing(self, values: Floats, cells: Cells) -> None:
        counts, odd = self.counts, unread(values, cells, self._held) > 0
        (at,) = np.nonzero(odd)
        counts.unread += len(at)
        if len(at) and not isinstance(self.column, Categorical):
            counts.take_shapes(shapes_of(texts_of(taken(cells, at))))
        code = self._code(cells)[~odd] if self.column.missing else np.full(len(values) - len(at), -1.0)
        found = np.bincount((code + 1).astype(np.intp), minlength=1)
        counts.empty += int(found[0])
        counts.codes.update({int(k) - 1: int(found[k]) for k in np.flatnonzero(found) if k})


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
        read = [column(cells) for column, cells in zip(self.columns, block.columns[len(asked.ids) :], strict=True)]
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
        import polars as pl  # here, because sources without ids need not load it

        ids = canonical(cells)
        none = np.asarray(ids.is_null())
        self.rows.no_id[name] += int(np.count_nonzero(none))
        hashes = np.array(pl.Series(values=ids).hash(seed=1).to_numpy(), dtype=np.uint64)
        if name == self._asked.one:
            self._look.ids.add(hashes[~none])
        return hashes, none

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
