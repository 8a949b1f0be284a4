"""A Spark DataFrame as a part, and what workers do with its batches: to codes, units bounded, states to JSON."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from confide.errors import SourceError
from confide.protocol.units.whose import UNIT_ROW
from confide.schema import Schema
from confide.sources.aggregation import BLOCK_ROWS, Codes
from confide.sources.coding import Coder, columns_behind
from confide.sources.executors.groups import Coding, places, unit_blocks, whole_units
from confide.sources.executors.work import FAILED, Work
from confide.sources.formats.plain import kind_of
from confide.sources.grouping.keep import Keep
from confide.sources.parts import Block, Part, Piece, cut, guarded

__all__ = [
    "ID",
    "PORTION",
    "SparkFrame",
    "bounded",
    "cells",
    "coded",
    "of_cells",
    "of_codes",
    "of_portions",
    "portion_cells",
    "worked",
]

ID, PORTION = "id", "portion"


@dataclass(frozen=True)
class SparkFrame(Part):
    """A Spark DataFrame as a part: its names and types; its rows are read by Spark's own workers alone."""

    frame: Any = field(repr=False)
    names: tuple[str, ...]
    kinds: tuple[Any, ...]
    type: str = field(default="Spark DataFrame", init=False)
    place: str = field(default="the Spark DataFrame", init=False)
    rereadable: bool = field(default=True, init=False)
    file: None = field(default=None, init=False)

    @classmethod
    def open(cls, frame: Any) -> SparkFrame:
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(frame.schema)
        return cls(frame, tuple(schema.names), tuple(kind_of(one.type) for one in schema))

    def kind(self, name: str) -> Any:
        return self.kinds[self.names.index(name)]

    def verify(self) -> None:
        """Nothing to compare: what is behind a DataFrame is Spark's to keep."""

    def count(self) -> int:
        return int(self.frame.count())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        raise SourceError('a Spark DataFrame is read by Spark: leave executor= out, or write executor="spark://..."')


@dataclass(frozen=True)
class _Portion:
    """What a task of Spark is handed, as a portion."""

    batches: Iterator[Any]
    made: Callable[..., Iterator[Codes]]

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        return self.made(self.batches, rows, schema)


def worked(made: Callable[..., Iterator[Codes]], work: Work, batches: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    label = TaskContext.get().partitionId()
    yield pa.record_batch({"document": [work(label, _Portion(batches, made))]})


def cells(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Block]:
    """Blocks of the named columns of batches."""
    for batch in batches:
        yield from cut(Block(batch.num_rows, [batch.column(name) for name in names]), BLOCK_ROWS)


def of_cells(batches: Iterator[Any], rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
    yield from map(Coder(rows, schema, BLOCK_ROWS), cells(batches, columns_behind(rows, schema)))


def _portions(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for one in batch.column(PORTION):
            yield pickle.loads(one.as_py())


def portion_cells(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Block]:
    """Blocks of the named columns of portions, read here."""
    for one in _portions(batches):
        yield from one.blocks(names)


def of_portions(batches: Iterator[Any], rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
    for one in _portions(batches):
        yield from one.coded(rows, schema)


def of_codes(own: tuple[str, ...], batches: Iterator[Any], rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
    """Spark hands kept rows over in batches of its own, which cut units apart."""
    picks = places(own, rows)
    pieces = ([column.to_numpy() for column in batch.columns] for batch in batches)
    for block in unit_blocks(pieces, own.index(UNIT_ROW)):
        yield np.array([block[at] for at in picks], dtype=np.float64)


def coded(blocks: Callable[..., Iterator[Block]], coding: Coding, batches: Iterator[Any]) -> Iterator[Any]:
    """Canonical ids and codes as columns; rows without an id are left out."""
    for rows in _guarded(coding(blocks(batches, coding.columns))):
        yield pa.record_batch({ID: rows.ids.cast(pa.binary())} | _columns(rows.codes))


def bounded(rule: Keep, batches: Iterator[Any]) -> Iterator[Any]:
    for codes, sizes in _guarded(rule(rows) for rows in whole_units(batches)):
        yield pa.record_batch(_columns(codes) | {"sizes": pa.array(sizes, pa.int32())})


def _columns(codes: list[Any]) -> dict[str, Any]:
    """Rows of codes as columns: 32 bits, and 64 of the numbers of clusters."""
    return {
        f"c{at}": pa.array(row, pa.int64() if row.dtype == np.int64 else pa.int32()) for at, row in enumerate(codes)
    }


def _guarded(values: Iterator[Any]) -> Iterator[Any]:
    """What fails on a worker is written into Spark's logs: in fixed words."""
    while (one := guarded(FAILED, partial(next, values, None))) is not None:
        yield one
