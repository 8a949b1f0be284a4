"""Cells to codes: the rows of exact integers that a statistic is handed.

A statistic names its rows: a schema column stands for its codes, `outside(NAME)` for 1 where the value of a numeric
column lay outside its bounds and 0 elsewhere (a missing value did not). Each column is read once for both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from confide.errors import SchemaError
from confide.schema import Categorical, Column, Schema
from confide.sources.parts import Block
from confide.sources.physical import Labels, Numbers, Reader

__all__ = ["Coder", "Room", "apart", "columns_behind", "doubles_of"]

# Rows of codes lie three lines of the cache more than a block apart: places that are a power of two apart share too few places of it, and
# a product with a block of 21 such rows takes half as long again.
_APART = 24


def columns_behind(rows: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The schema columns that named rows are made from, each once, in order.

    Raises `SchemaError` for a name that the schema lacks.
    """
    known = frozenset(schema.names)
    return tuple(dict.fromkeys(_column(row, schema, known) for row in rows))


def _column(row: str, schema: Schema, known: frozenset[str]) -> str:
    inner = row.removeprefix("outside(").removesuffix(")")
    outside = row == f"outside({inner})" and inner in known
    if outside and row in known:
        raise SchemaError(
            f"the schema column {row!r} cannot be told from the clipping of {inner!r}; give it another name"
        )
    if outside:
        return inner
    if row not in known:
        raise SchemaError(
            f"the schema has no column {row!r}; it has {', '.join(schema.names)}. Add the column to the schema"
        )
    return row


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
        known = frozenset(schema.names)
        behind: dict[str, list[int]] = {}
        for at, row in enumerate(rows):
            behind.setdefault(_column(row, schema, known), []).append(at)
        # for each column: itself, its reader, the rows of its codes and the rows of its clipping
        self._columns: list[tuple[Column, Reader, list[int], list[int]]] = []
        for name, own in behind.items():
            column = schema[name]
            reader: Reader = Labels(column.levels) if isinstance(column, Categorical) else Numbers()
            self._columns.append(
                (column, reader, [at for at in own if rows[at] == name], [at for at in own if rows[at] != name])
            )
        self._room = Room(len(rows), block_rows)

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """The codes of a block. The matrix is overwritten by the next call."""
        codes = self._room.block(block.rows)
        for (column, reader, coded, clipped), cells in zip(self._columns, block.columns, strict=True):
            values = reader(cells)
            for at in coded:
                column.code(values, out=codes[at])
            for at in clipped:
                # a label is a level or missing, never outside
                codes[at] = 0.0 if isinstance(column, Categorical) else column.outside(values)
        return codes
