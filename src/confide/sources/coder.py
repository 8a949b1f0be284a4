"""Cells to codes: the rows of exact integers that a statistic is handed.

A statistic names its rows. A schema column means its codes. `read(NAME)` says how its cells were read (`core.lost_values`), and
`fine(NAME)` is its value in order (`core.ranges`). Each column is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from confide.core.ranges import as_fine
from confide.errors import SchemaError
from confide.schema import Categorical, Column, Schema
from confide.sources.coding import MARKS, Block, CodeOf, Labels, Numbers, Reader, how_read

# Rows of codes lie three lines of the cache more than a block apart: places that are a power of two apart share too few places of it, and
# a product with a block of 21 such rows takes half as long again.
_APART = 24


def columns_behind(rows: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The columns of the data that named rows are made from, each once, in order.

    Raises `SchemaError` for a name that the schema lacks.
    """
    return schema.behind(_column(row, schema)[0] for row in rows)


def _column(row: str, schema: Schema) -> tuple[str, str]:
    """The column that a row is of, and what of it: "codes", "fine" or "read"."""
    for kind in ("fine", "read"):
        inner = row.removeprefix(f"{kind}(").removesuffix(")")
        if row != f"{kind}({inner})" or inner not in schema.columns:
            continue
        if row in schema.columns:
            raise SchemaError(
                f"the schema column {row!r} cannot be told from what is derived of {inner!r}", "give it another name"
            )
        return inner, kind
    if row not in schema.columns:
        raise SchemaError(
            f"the schema has no column {row!r}; it has {', '.join(schema.names)}. Add the column to the schema"
        )
    return row, "codes"


def apart(records: int) -> int:
    """How many doubles lie between the beginnings of rows of so many codes."""
    return records + _APART


def doubles_of(raw: NDArray[np.float64], rows: int, records: int) -> NDArray[np.float64]:
    """A matrix of codes, shape (rows, records), in doubles that begin at a line of the cache."""
    return raw[: rows * apart(records)].reshape(rows, apart(records))[:, :records]


class Room:
    """One thread's memory for blocks of codes, which grows to the largest."""

    def __init__(self, rows: int, records: int) -> None:
        self._rows, self._records = rows, 0
        self._codes = np.empty((rows, 0))
        self.block(records)

    def block(self, records: int) -> NDArray[np.float64]:
        """Shape (rows, records); the next one lies in the same place."""
        if records > self._records:
            self._records = records
            raw = np.empty(self._rows * apart(records) + 8)
            self._codes = doubles_of(raw[-raw.ctypes.data % 64 // 8 :], self._rows, records)
        return self._codes[:, :records]


class Coder:
    """Blocks of cells to a matrix of codes, float64 of shape (rows named, records). One coder belongs to one thread."""

    def __init__(self, rows: Sequence[str], schema: Schema, block_rows: int) -> None:
        # of each column, where its rows lie and what each of them is
        made: dict[str, list[tuple[int, str]]] = {}
        for at, row in enumerate(rows):
            name, kind = _column(row, schema)
            made.setdefault(name, []).append((at, kind))
        self._names = schema.behind(made)
        told = schema.behind(name for name, own in made.items() if "read" in dict(own).values())
        self._columns: list[tuple[Column, Reader, CodeOf | None, list[tuple[int, str]]]] = []
        for name in self._names:
            column, marks = schema[name], schema.file.marks
            read = reader_of(column, marks), code_of(column, marks) if name in told else None
            self._columns.append((column, *read, made.pop(name, [])))
        self._derived: Callable[..., None] | None = None
        if made:
            # here, because schemas without derived columns need not load it
            from confide.sources.derived import DerivedRows

            self._derived = DerivedRows(schema, made)
        self._room = Room(len(rows), block_rows)

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """The codes of a block. The matrix is overwritten by the next call."""
        codes = self._room.block(block.rows)
        given: list[Any] = []
        for (column, reader, code, made), cells in zip(self._columns, block.columns, strict=True):
            values = reader(cells)
            how = None if code is None else how_read(values, cells, code)
            given.append((column, values, how))
            for at, kind in made:
                if kind == "codes":
                    column.code(values, out=codes[at])
                elif kind == "fine":
                    as_fine(values, out=codes[at])
                else:
                    codes[at] = how
        if self._derived is not None:
            self._derived(codes, dict(zip(self._names, given, strict=True)))
        return codes


def reader_of(column: Column, marks: tuple[str, str] = MARKS) -> Reader:
    """What reads the cells of a column. marks: of numbers in text."""
    if column.kind == "date":
        from confide.sources.dates import Dates  # here, because schemas without dates need not load it

        return Dates(cast("Any", column), marks)
    return Labels(column, marks) if isinstance(column, Categorical) else Numbers(marks, column.missing or ())


def code_of(column: Column, marks: tuple[str, str] = MARKS) -> CodeOf:
    """What tells which cells of a column hold something other than a code of a missing value. marks: of numbers in text."""
    if column.kind == "date":
        from confide.sources.dates import CodeOfDate

        return CodeOfDate(cast("Any", column), marks)
    return CodeOf(column, marks)
