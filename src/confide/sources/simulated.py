"""Simulated rows behind readers of the same kinds as a source's own: what a release would meet there, before any record is seen.

The rows come from the schema alone (`Schema.sample`). Of the source nothing is used but what its metadata say: which kinds of files and
tables there are, and the physical types of the columns. CSV and Parquet files are written into memory and read by their own readers.
Tables, queries and frames become columns of the same types. Functions are not called, and an executor's workers are not asked.
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

from confide.core import Source
from confide.schema import Schema
from confide.schema.layout import FileLayout
from confide.sources.coding import Part, is_readable, is_typed_date, matches_type, text_array, to_arrow
from confide.sources.formats.parquet import FolderPart, ParquetPart
from confide.sources.formats.renamed import RenamedPart
from confide.sources.formats.tables import from_mapping
from confide.sources.formats.text_files import CsvPart
from confide.sources.reading import read
from confide.sources.source import RecordSource

#: Rows of a rehearsal: enough that most tables have estimates, and so all that follows on them is tried; few enough to cost little.
SIMULATED_ROWS = 3_000


def simulated_source(source: Source) -> RecordSource:
    """Simulated rows of a source's schema, read as its records are where `confide.read` made it."""
    if isinstance(source, RecordSource):
        return source.like(simulated_parts(source._parts, source.schema, (*source.schema.in_data, *source.schema.ids)))
    return read(source.schema.simulated(SIMULATED_ROWS, seed=1), source.schema)


def simulated_parts(parts: Sequence[Part], schema: Schema, names: Sequence[str]) -> list[Part]:
    """One part for each way in which parts are read, with simulated rows in the physical types of its columns.

    names: the columns of the schema, and its ids.
    """
    rows = schema.simulated(SIMULATED_ROWS, seed=1)
    forms = {_form(part, names): part for part in parts}
    found = []
    for part in forms.values():
        there = [name for name in names if name in part.names and name in rows]
        # text has no types
        typed = not isinstance(_plain(part), CsvPart)
        kinds = {name: part.kind(name) if typed else None for name in there}
        found.append(
            _as(
                part,
                {
                    name: _cells(_written(rows[name], schema.columns.get(name), kinds[name]), kinds[name])
                    for name in there
                },
            )
        )
    return found


def _form(part: Part, names: Sequence[str]) -> tuple[object, ...]:
    """What tells how a part is read, from metadata: its kind, its delimiter, the physical types of the columns.

    >>> import pandas as pd
    >>> from confide.sources.formats.tables import from_pandas
    >>> _form(from_pandas(pd.DataFrame({"x": [0.5]}), ["x"]), ["x", "y"])
    ('pandas DataFrame', '', (('x', dtype('float64')),))
    """
    types = tuple((name, part.kind(name)) for name in names if name in part.names)
    plain = _plain(part)
    return part.type, plain.delimiter if isinstance(plain, CsvPart) else "", types


def _plain(part: Part) -> Part:
    return part.part if isinstance(part, RenamedPart) else part


def _as(part: Part, cells: dict[str, Any]) -> Part:
    """Cells behind the same reader: files are written into memory and read from there; of queries and frames the types are kept."""
    if isinstance(part, RenamedPart):
        return _as(part.part, cells)
    if isinstance(part, FolderPart):
        inner = {name: values for name, values in cells.items() if name not in part.keys}
        return FolderPart(_as(part.part, inner), part.keys, part.place)
    if isinstance(part, CsvPart):
        sink = io.BytesIO()
        # without names, marks and encoding of the records' own layout, which `RecordSource.like` leaves out too
        layout = FileLayout(delimiter=part.delimiter)
        options = pyarrow.csv.WriteOptions(delimiter=part.delimiter)
        pyarrow.csv.write_csv(pa.table(cells), sink, options)
        packed = part.mark.name.lower().endswith(".gz")
        content = gzip.compress(sink.getvalue()) if packed else sink.getvalue()
        return CsvPart.open(_File("simulated.csv.gz" if packed else "simulated.csv", content), layout)
    if isinstance(part, ParquetPart):
        sink = io.BytesIO()
        pq.write_table(pa.table(cells), sink)
        return ParquetPart.open(_File("simulated.parquet", sink.getvalue()))
    return from_mapping(cells, tuple(cells))


def _written(values: Any, column: Any, kind: Any) -> Any:
    """A simulated column as the records' own are written: dates as text in their format, or as numbers, where they are not typed.

    column: of the schema; None for an id.
    """
    if column is None or column.kind != "date" or is_typed_date(kind):
        return values
    days = values.astype("datetime64[D]").astype(np.int64)
    number = matches_type(kind, "iuf", (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
    return days - int(column.epoch_day or 0) if number else np.array(column.text_of(days), dtype=object)


def _cells(values: Any, kind: Any) -> Any:
    """Simulated cells in a physical type; missing ones where it holds no such values, as a column of whole numbers holds no words."""
    if isinstance(kind, np.dtype):
        try:
            return values.astype(kind)
        except (TypeError, ValueError):
            return np.zeros(len(values), dtype=kind)
    if not isinstance(kind, (pa.DataType, type(None))):
        return values.astype(object)
    if values.dtype.kind in "if":
        plain = to_arrow(values)
    elif all(isinstance(value, str) for value in values.tolist()):
        plain = text_array(values.tolist(), pa.string())
    else:
        plain = pa.array(values.tolist())
    if kind is None:
        return plain
    if pa.types.is_dictionary(kind):
        return _cells(values, kind.value_type).dictionary_encode()
    if not is_readable(kind) and not is_typed_date(kind):
        # an id may have other types; which they are is looked at by the check that every release makes
        return plain
    try:
        return plain.cast(kind)
    except pa.ArrowException:
        return pa.nulls(len(values), kind)


@dataclass(frozen=True)
class _File:
    """A file in memory, as `coding.Mark`."""

    name: str
    content: bytes = field(repr=False)

    @property
    def place(self) -> str:
        return "a file of simulated rows"

    @property
    def origin(self) -> None:
        """None: it is nowhere."""

    def open(self) -> Any:
        """A file that can be read anywhere."""
        return pa.BufferReader(self.content)

    def verify(self) -> None:
        """Nothing to compare: it was just made."""
