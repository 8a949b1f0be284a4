"""`read`: the one way in, whatever holds the records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from confide.errors import SchemaError, SourceError
from confide.schema import Schema, Unit
from confide.schema.draft import other_delimiter
from confide.sources.aggregation import THREADS
from confide.sources.csvfile import CsvPart
from confide.sources.kept import MEMORY
from confide.sources.parquet import ParquetPart
from confide.sources.parts import Part, guarded
from confide.sources.source import RecordSource
from confide.sources.tables import Stream, from_arrow, from_lazy, from_mapping, from_numpy, from_pandas, from_polars

__all__ = ["read"]

_TAKES = (
    "a NumPy array, a mapping of arrays, a pandas or polars DataFrame, an Arrow table or record batch reader, "
    "or the path of a .csv, .csv.gz or .parquet file (or several paths, or a directory of Parquet files)"
)


def read(
    data: Any,
    schema: Schema | str | os.PathLike[str],
    *,
    dataset: str | None = None,
    delimiter: str = ",",
    memory: int = MEMORY,
    spool: str | os.PathLike[str] | None = None,
    threads: int | None = None,
) -> RecordSource:
    """Records behind a schema, ready for a release. Nothing is read here but names, types and sizes.

    data: a NumPy array of shape (records, columns), columns in the schema's order (one dimension for one column); a
    mapping of column names to arrays, series or lists; a pandas DataFrame; a polars DataFrame or LazyFrame (collected
    here); a pyarrow Table, RecordBatch or RecordBatchReader (read only once); the path of a .csv, .csv.gz or .parquet
    file, a list of such paths, or a directory of Parquet files. Columns that the schema lacks are ignored.
    schema: a `Schema`, or the path of a TOML file; dataset: the name under which a ledger charges these records, by
    default the schema's; delimiter: what separates the fields of CSV files.
    memory, spool: a release of several passes codes its records once and keeps the codes until it is drawn, up to `memory` megabytes in
    memory (192), what is more in a file without a name in the folder `spool` (the system's own for temporary files); memory=0 keeps all of
    them there. threads: that read and add up, by default one for each processor, at most four; sums are the same for any number.

    Values never raise: text that is no number, a label that is no level and a malformed line are missing, and follow
    the schema's `on_missing`; values out of bounds are moved to the bounds. One line of a CSV file is one record.

    Raises `SourceError` for data that cannot be read as such (no file, unknown ending, not Parquet, unequal columns)
    and `SchemaError` for the schema or the delimiter; columns are checked when an analysis asks for them.

    >>> import numpy as np
    >>> from confide.schema import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 100), "income": Numeric(0, 1e5)}, dataset="survey")
    >>> read(np.array([[31.0, 2e4], [57.0, 4e4]]), schema)
    RecordSource(NumPy array, dataset='survey', columns=('age', 'income'))
    """
    public = schema if isinstance(schema, Schema) else _schema_from(schema)
    ids = (public.unit.column,) if isinstance(public.unit, Unit) else ()
    if ids and isinstance(data, np.ndarray):
        raise SourceError(
            f"a NumPy array has no column {ids[0]!r}, whose ids the schema's unit needs; pass a mapping or a DataFrame with it"
        )
    parts = _parts(data, (*public.names, *ids), delimiter)
    for part in parts:
        _check_delimiter(part, public)
    return RecordSource(
        public, parts, dataset=dataset, memory=_memory(memory), spool=_folder(spool), threads=_threads(threads)
    )


def _threads(threads: Any) -> int:
    if threads is None:
        return THREADS
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise SourceError(f"threads={threads!r} is no number of threads; write threads=1 or more, or leave it out")
    return int(threads)


def _memory(memory: Any) -> int:
    if isinstance(memory, bool) or not isinstance(memory, (int, np.integer)) or memory < 0:
        raise SourceError(
            f"memory={memory!r} is no number of megabytes; it is what a release may keep of its coded records in memory: "
            "write memory=192, or memory=0 to keep them in a temporary file"
        )
    return int(memory)


def _folder(spool: Any) -> str | None:
    if spool is None:
        return None
    if not isinstance(spool, (str, os.PathLike)) or not Path(spool).is_dir():
        raise SourceError(
            f"spool={os.fspath(spool) if isinstance(spool, os.PathLike) else spool!r} is no folder; it is where codes that do not fit in "
            'memory are kept during a release: write spool="/var/tmp", or leave it out'
        )
    return str(Path(spool))


def _schema_from(schema: Any) -> Schema:
    if not isinstance(schema, (str, os.PathLike)):
        raise SchemaError(f"schema is a {type(schema).__name__}; pass a confide.Schema or the path of a TOML file")
    return Schema.from_toml(schema)


def _check_delimiter(part: Part, schema: Schema) -> None:
    """A CSV file whose columns came out as one was read with the wrong delimiter; its header is not quoted."""
    other = other_delimiter(part.names) if isinstance(part, CsvPart) else None
    if other is not None and part.names[0] not in schema:
        raise SourceError(
            f"the first line of {part.place} is one field with {other!r} in it; if that separates the columns, write "
            f"cf.read(path, schema, delimiter={other!r})"
        )


def _parts(data: Any, wanted: tuple[str, ...], delimiter: str) -> list[Part]:
    if isinstance(data, (str, os.PathLike)):
        return _files(Path(data), delimiter)
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, os.PathLike)) for path in data):
        return [part for path in data for part in _files(Path(path), delimiter)]
    return [_table(data, wanted)]


def _table(data: Any, wanted: tuple[str, ...]) -> Part:
    # named by module, so that pandas and polars are loaded only by those who use them
    kinds = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(data).__mro__}
    if isinstance(data, np.ndarray):
        return from_numpy(data, wanted)
    if "pandas.DataFrame" in kinds:
        return from_pandas(data, wanted)
    if "polars.LazyFrame" in kinds:
        return guarded("the polars LazyFrame could not be collected", partial(from_lazy, data, wanted))
    if "polars.DataFrame" in kinds:
        return from_polars(data, wanted)
    if isinstance(data, pa.Table):
        return from_arrow(data, wanted)
    if isinstance(data, pa.RecordBatch):
        return from_arrow(pa.Table.from_batches([data]), wanted)
    if isinstance(data, pa.RecordBatchReader):
        return Stream(data)
    if isinstance(data, Mapping):
        return from_mapping(data, wanted)
    raise SourceError(f"cannot read a {type(data).__name__}; confide.read takes {_TAKES}")


def _files(path: Path, delimiter: str) -> list[Part]:
    """The files behind a path; a directory stands for the Parquet files in it, in any depth."""
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if _is_data(file, path))
        if not found:
            raise SourceError(f"the directory {str(path)!r} holds no .parquet file; confide.read takes {_TAKES}")
        return [ParquetPart.open(file) for file in found]
    name = path.name.lower()
    if name.endswith(".parquet"):
        return [ParquetPart.open(path)]
    if name.endswith((".csv", ".csv.gz")):
        return [CsvPart.open(path, delimiter)]
    raise SourceError(f"{str(path)!r} has an ending that is not known; confide.read takes {_TAKES}")


def _is_data(file: Path, directory: Path) -> bool:
    """A Parquet file that no writer keeps to itself: those names, or their directory's, begin with "_" or "."."""
    own = any(part.startswith(("_", ".")) for part in file.relative_to(directory).parts)
    return file.name.lower().endswith(".parquet") and not own and file.is_file()
