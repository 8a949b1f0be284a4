"""Practice records behind readers of the same kinds as a source's own: what a release would meet there, before any record is seen.

Practice records come from the schema alone (`Schema.sample`). Of the source nothing is used but what its metadata say: which kinds of files
and tables there are, and the physical types of the columns.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from confide.schema import Schema
from confide.sources.formats.csvfile import CsvPart
from confide.sources.formats.hive import HivePart
from confide.sources.formats.parquet import ParquetPart
from confide.sources.formats.queries import SqlPart
from confide.sources.formats.tables import from_mapping
from confide.sources.parts import Part
from confide.sources.physical import is_readable

__all__ = ["PRACTICE_ROWS", "form_of", "practice_parts"]

#: Rows of practice records: enough that each thread's blocks are merged and most levels are met, few enough to cost nothing.
PRACTICE_ROWS = 24


def form_of(part: Part, names: Sequence[str]) -> tuple[object, ...]:
    """What tells how a part is read, from metadata: its kind, its delimiter, the physical types of the columns.

    >>> import pandas as pd
    >>> from confide.sources.formats.tables import from_pandas
    >>> form_of(from_pandas(pd.DataFrame({"x": [0.5]}), ["x"]), ["x", "y"])
    ('pandas DataFrame', '', (('x', dtype('float64')),))
    """
    types = tuple((name, part.kind(name)) for name in names if name in part.names)
    return part.type, getattr(_inner(part), "delimiter", ""), types


def practice_parts(parts: Sequence[Part], schema: Schema, names: Sequence[str]) -> list[Part]:
    """One part for each form there is, with practice records in the physical types of its columns.

    names: the columns of the schema, and its ids.
    """
    frame = schema.sample(PRACTICE_ROWS, seed=1)
    forms = {form_of(part, names): part for part in parts}
    found = []
    for part in forms.values():
        there = [name for name in names if name in part.names and name in frame.columns]
        # SQLite says what type a column has when its cells come, and not before
        kinds = {name: None if isinstance(part, SqlPart) else part.kind(name) for name in there}
        found.append(_as(part, {name: _cells(frame[name].to_numpy(), kinds[name]) for name in there}))
    return found


def _inner(part: Part) -> Part:
    return part.part if isinstance(part, HivePart) else part


def _as(part: Part, cells: dict[str, Any]) -> Part:
    """Cells behind the same reader: files are written into memory and read from there; of queries and frames the types are kept."""
    if isinstance(part, HivePart):
        inner = {name: values for name, values in cells.items() if name not in part.keys}
        return HivePart(_as(part.part, inner), part.keys, part.place)
    if isinstance(part, CsvPart):
        sink = io.BytesIO()
        options = pyarrow.csv.WriteOptions(delimiter=part.delimiter)
        pyarrow.csv.write_csv(pa.table({name: _text(values) for name, values in cells.items()}), sink, options)
        packed = part.mark.name.lower().endswith(".gz")
        content = gzip.compress(sink.getvalue()) if packed else sink.getvalue()
        return CsvPart.open(_File("practice.csv.gz" if packed else "practice.csv", content), part.delimiter)
    if isinstance(part, ParquetPart):
        sink = io.BytesIO()
        pq.write_table(pa.table(cells), sink)
        return ParquetPart.open(_File("practice.parquet", sink.getvalue()))
    return from_mapping(cells, tuple(cells))


def _cells(values: Any, kind: Any) -> Any:
    """Practice cells in a physical type; missing ones where it holds no such values, as a column of whole numbers holds no words."""
    if isinstance(kind, np.dtype):
        try:
            return values.astype(kind)
        except (TypeError, ValueError):
            return np.zeros(len(values), dtype=kind)
    if not isinstance(kind, (pa.DataType, type(None))):
        return values.astype(object)
    plain = pa.array(values.tolist())
    if kind is None:
        return plain
    if pa.types.is_dictionary(kind):
        return _cells(values, kind.value_type).dictionary_encode()
    if not is_readable(kind):
        # an id may have other types; which they are is looked at by the check that every release makes
        return plain
    try:
        return plain.cast(kind)
    except pa.ArrowException:
        return pa.nulls(len(values), kind)


def _text(values: Any) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values.tolist())


@dataclass(frozen=True)
class _File:
    """A file in memory, as `parts.Mark`."""

    name: str
    content: bytes = field(repr=False)

    @property
    def place(self) -> str:
        return "a file of practice records"

    def open(self) -> Any:
        """A file that can be read anywhere."""
        return pa.BufferReader(self.content)

    def verify(self) -> None:
        """Nothing to compare: it was just made."""
