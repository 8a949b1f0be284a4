"""`read`: how records enter, whatever holds them."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from confide.errors import SchemaError, SourceError
from confide.schema import Schema
from confide.schema.draft import Field, other_delimiter
from confide.schema.layout import FileLayout
from confide.schema.toml import value
from confide.sources.aggregation import THREADS
from confide.sources.code_cache import MEMORY
from confide.sources.coding import FileMark, Mark, Part, guarded
from confide.sources.executors import Executor, executor_of
from confide.sources.formats.databases import Query, SqlPart, table_at
from confide.sources.formats.filesystems import FoundFile, files_at, files_behind, is_address
from confide.sources.formats.parquet import FolderPart, ParquetPart
from confide.sources.formats.read_once import Origin, SeenOrigins, check_depth, check_log, memory_origins
from confide.sources.formats.renamed import RenamedPart
from confide.sources.formats.sheets import header as sheet_header, open_sheet
from confide.sources.formats.statistics_files import fields as statistics_fields, open_statistics
from confide.sources.formats.streams import Factory, Lazy, Relation, Spooled, Stream, given_by
from confide.sources.formats.tables import from_arrow, from_mapping, from_numpy, from_pandas, from_polars
from confide.sources.formats.text_files import CsvPart, header as text_header
from confide.sources.source import RecordSource

_TAKES = (
    "a NumPy array, a mapping of arrays, a pandas or polars frame, anything with an Arrow stream, a DuckDB relation, "
    "cf.sql(address, query), or a function that gives one of these again each time. Also the path of a .csv, .csv.gz, .tsv or "
    ".parquet file, a list of paths, a directory of Parquet files, or a table of a database (survey.sqlite/answers). "
    "Also sheets (.xlsx, .xlsm, .xlsb, .xls, .ods) and files of Stata, SPSS and SAS (.dta, .sav, .zsav, .por, .xpt)"
)


@dataclass(frozen=True)
class _Opening:
    """What opening data needs to know.

    own: the columns of the schema, and the ids. wanted: these, and what they are called in the file. recursive: as it was given.
    """

    own: tuple[str, ...]
    wanted: tuple[str, ...]
    layout: FileLayout
    memory: int
    spool: str | None
    filesystem: Any
    recursive: Any


def read(
    data: Any,
    schema: Schema | str | os.PathLike[str],
    *,
    dataset: str | None = None,
    delimiter: str | None = None,
    file: Mapping[str, Any] | None = None,
    memory: int = MEMORY,
    spool: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    filesystem: Any = None,
    recursive: bool = False,
    ids: str | None = None,
    executor: Any = None,
) -> RecordSource:
    """Put records behind a schema, ready for a release.

    Nothing is read here except names, types and sizes, and what can be read
    only once: a stream, or a sheet. Columns that the schema lacks are ignored.

    Parameters
    ----------
    data : array, mapping, DataFrame, Table, path, list of paths, or Query
        The records; the kinds are listed in Notes.
    schema : Schema or path
        A `Schema`, or the path of its TOML file.
    dataset : str, optional
        Name under which a ledger charges these records. Left out: that of the
        schema.
    delimiter : str, optional
        What separates the fields of text files: short for `file`. Left out:
        that of the schema, else a comma, and a tab in TSV files.
    file : mapping, optional
        How the files are laid out, such as ``{"decimal": ",", "encoding":
        "cp1252"}``: entries in the place of those of ``[file]`` in the schema.
    memory : int, default 192
        Megabytes in memory for codes. A release of several passes codes its
        records once and keeps the codes until it is drawn. 0 keeps all of them
        in a file.
    spool : path, optional
        Folder of the file, which has no name, for codes beyond `memory`. Left
        out: the system's folder for temporary files. Spark keeps codes in files
        among its own blocks instead.
    threads : int, optional
        Threads that read and add up. Left out: one for each processor, at most
        four. Sums are the same for any number.
    filesystem : pyarrow.fs.FileSystem, optional
        File system in which paths are looked up.
    recursive : bool, default False
        Whether to read Parquet files of folders within a directory that are not
        named key=value, too. Otherwise these folders are refused.
    ids : str, optional
        Column of record IDs that is not in the schema, for a protected stream
        (`cf.local.Releaser`).
    executor : str, distributed.Client or SparkSession, optional
        Where passes run, such as ``"dask://host:8786"`` or
        ``"spark://host:7077"``. Workers read files (or call functions) and send
        sums of integers alone, the same to the bit. They take up to twice the
        CPU of one process, which reads 10^8 records in some minutes. Left out:
        the threads of this process.

    Returns
    -------
    RecordSource
        The records behind the schema.

    Raises
    ------
    SourceError
        The data cannot be read: no file, unknown ending, not Parquet, unequal
        columns.
    SchemaError
        The schema or the delimiter is wrong. Columns are checked when an
        analysis needs them.

    Notes
    -----
    Kinds of data:

    - a NumPy array of shape (records, columns) in the schema's order, or a
    mapping of column names to arrays, series or lists;
    - a pandas DataFrame, a polars DataFrame or LazyFrame (streamed), a pyarrow
    Table or RecordBatch, a DuckDB relation;
    - a Spark DataFrame, which Spark's workers read;
    - a query, ``cf.sql("postgresql://...", "select ...")``, or a table of a
    database: "survey.sqlite/answers", "survey.duckdb/answers", or
    "env:CLINIC/answers" where the variable CLINIC holds the database's address;
    - the path of a .csv, .csv.gz, .tsv or .parquet file, a list of paths, or a
    directory of Parquet files, whose folders key=value are columns;
    - the path of a workbook (.xlsx, .xlsm, .xlsb, .xls, .ods), with the extra
    "excel";
    - the path of a file of Stata, SPSS or SAS (.dta, .sav, .zsav, .por, .xpt),
    with the extra "stats";
    - an address such as "s3://bucket/survey", or a path within `filesystem`;
    - a function without arguments that gives one of these again each time, or a
    list of functions;
    - anything else with `__arrow_c_stream__`, such as a pyarrow
    RecordBatchReader. It can be read once, so it is read here and kept as
    `memory` and `spool` say.

    Records must be given once. These are refused: the same file twice (by two
    names or by a link), a folder and its file, the same query, table, function
    or frame twice. The reason: each record would count twice and be charged
    once. So is a folder of a table format (Delta Lake, Iceberg, Hudi), in which
    files of former versions lie. Copies are not found.

    Values never raise. Text that is not a number, an undeclared label and a
    malformed line are missing and follow the schema's `on_missing`. Values
    outside the bounds are clipped. One line of a CSV file is one record.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.schema import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 100), "income": Numeric(0, 1e5)}, dataset="survey")
    >>> read(np.array([[31.0, 2e4], [57.0, 4e4]]), schema)
    RecordSource(NumPy array, dataset='survey', columns=('age', 'income'))
    """
    public = schema if isinstance(schema, Schema) else _schema_from(schema)
    entries = {**({} if file is None else file), **({} if delimiter is None else {"delimiter": delimiter})}
    public = public.with_file(entries) if entries else public
    layout = public.file
    named = (*public.ids, *(() if ids is None else (ids,)))
    if named and isinstance(data, np.ndarray):
        raise SourceError(
            f"a NumPy array has no column {named[0]!r}, whose ids are needed", "pass a mapping or a DataFrame with it"
        )
    folder = None if spool is None else _folder(spool)
    own = (*public.in_data, *named)
    opening = _Opening(own, (*own, *layout.names.values()), layout, _memory(memory), folder, filesystem, recursive)
    parts = _parts(data, opening)
    if layout.names:
        parts = [RenamedPart.of(part, layout.names) for part in parts]
    # a Spark DataFrame is read where it is
    where = getattr(getattr(parts[0], "frame", None), "sparkSession", None) if executor is None and parts else executor
    return RecordSource(
        public,
        parts,
        dataset=dataset,
        memory=opening.memory,
        spool=folder,
        threads=THREADS if threads is None else _threads(threads),
        executor=None if where is None else _executor(where, parts),
    )


def _executor(given: Any, parts: Sequence[Part]) -> Executor | None:
    """The executor, where its workers can read the parts."""
    found = executor_of(given)
    there = None if found is None else next((part for part in parts if not found.takes(part)), None)
    if found is None or there is None:
        return found
    raise SourceError(
        f"{there.place} is read by this process alone, and {found.name} reads on its workers. Give it files that all of them see, a "
        "function (or a list of functions) that each of them can call, or leave executor= out"
    )


def _threads(threads: Any) -> int:
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise SourceError(f"threads={threads!r} is not a number of threads", "write threads=1 or more, or leave it out")
    return int(threads)


def _memory(memory: Any) -> int:
    if isinstance(memory, bool) or not isinstance(memory, (int, np.integer)) or memory < 0:
        raise SourceError(
            f"memory={memory!r} is not a number of megabytes; it is what a release may keep of its coded records in memory: "
            "write memory=192, or memory=0 to keep them in a temporary file"
        )
    return int(memory)


def _folder(spool: Any) -> str:
    if not isinstance(spool, (str, os.PathLike)) or not Path(spool).is_dir():
        raise SourceError(
            f"spool={os.fspath(spool) if isinstance(spool, os.PathLike) else spool!r} is not a folder; it is where codes that do not fit "
            'in memory are kept during a release: write spool="/var/tmp", or leave it out'
        )
    return str(Path(spool))


def _recursive(recursive: Any) -> bool:
    if not isinstance(recursive, bool):
        raise SourceError(
            f"recursive is a {type(recursive).__name__}; it says whether folders within a folder are read that are not named key=value: "
            "write recursive=True, or leave it out"
        )
    return recursive


def _schema_from(schema: Any) -> Schema:
    if not isinstance(schema, (str, os.PathLike)):
        raise SchemaError(f"schema is a {type(schema).__name__}", "pass a confide.Schema or the path of a TOML file")
    return Schema.from_toml(schema)


def _parts(data: Any, opening: _Opening) -> list[Part]:
    if isinstance(data, (str, os.PathLike)):
        return _paths([data], opening)
    if isinstance(data, (list, tuple)) and data:
        if all(isinstance(path, (str, os.PathLike)) for path in data):
            return _paths(data, opening)
        if all(callable(function) for function in data):
            seen = SeenOrigins()
            return [_function(function, opening, seen, f"function {k}") for k, function in enumerate(data, 1)]
    return [_table(data, opening)]


def _function(function: Any, opening: _Opening, seen: SeenOrigins, place: str) -> Part:
    """One of several functions: neither it nor what it gives was there before."""
    seen.add(Origin.of(function), place)
    data = given_by(function)
    for origin in [data.origin] if isinstance(data, Query) else memory_origins(data):
        seen.add(origin, place)
    return Factory(function, partial(_table, opening=opening, again=True), data)


def _table(data: Any, opening: _Opening, again: bool = False) -> Part:
    """The part of one table, in memory or not. again: the caller can make it again, so that what is read once need not be kept."""
    # named by module, so that pandas, polars and duckdb are loaded only by those who use them
    kinds = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(data).__mro__}
    wanted = opening.wanted
    if isinstance(data, np.ndarray):
        return from_numpy(data, opening.own)
    if "pandas.DataFrame" in kinds:
        return from_pandas(data, wanted)
    if "polars.DataFrame" in kinds:
        return from_polars(data, wanted)
    if isinstance(data, pa.Table):
        return from_arrow(data, wanted)
    if isinstance(data, pa.RecordBatch):
        return from_arrow(pa.Table.from_batches([data]), wanted)
    if isinstance(data, Mapping):
        return from_mapping(data, wanted)
    return _behind_a_stream(data, kinds, opening, again)


def _behind_a_stream(data: Any, kinds: set[str], opening: _Opening, again: bool) -> Part:
    """The part of what gives records when it is asked: a query, a relation, a lazy frame, a stream, a function."""
    if "polars.LazyFrame" in kinds:
        return guarded("the polars LazyFrame has no columns that can be known", partial(Lazy.open, data))
    if kinds & {"duckdb.DuckDBPyRelation", "_duckdb.DuckDBPyRelation"}:
        return guarded("the DuckDB relation has no columns that can be known", partial(Relation.open, data))
    if "pyspark.DataFrame" in kinds and hasattr(data, "mapInArrow"):
        from confide.sources.executors.spark import SparkFrame

        return guarded("the Spark DataFrame has no columns that can be known", partial(SparkFrame.open, data))
    if isinstance(data, Query):
        return SqlPart(data)
    if hasattr(data, "__arrow_c_stream__"):
        reader = data
        if not isinstance(data, pa.RecordBatchReader):
            reader = guarded(f"the Arrow stream of a {type(data).__name__} could not be opened", lambda: _reader(data))
        return Stream(reader) if again else _kept(Stream(reader), opening)
    if hasattr(data, "__arrow_c_array__"):
        batch = guarded(
            f"the Arrow array of a {type(data).__name__} is not a record batch", partial(pa.record_batch, data)
        )
        return from_arrow(pa.Table.from_batches([batch]), opening.wanted)
    if callable(data) and not again:
        return Factory(data, partial(_table, opening=opening, again=True), given_by(data))
    raise SourceError(f"cannot read a {type(data).__name__}; confide.read takes {_TAKES}")


def _reader(data: Any) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(data)


def _kept(stream: Stream, opening: _Opening) -> Part:
    """A stream that can be read once, read and kept now; its size is printed on standard error."""
    kept = Spooled(stream, opening.wanted, opening.memory, opening.spool)
    kept.tell()
    return kept


def _paths(paths: Sequence[Any], opening: _Opening) -> list[Part]:
    """The files and tables behind paths and addresses, each of them once."""
    seen, parts, looked = SeenOrigins(), list[Part](), dict[str, list[Any]]()
    for k, path in enumerate(paths, 1):
        for origin, part in _behind(path, opening, looked):
            seen.add(origin, part.place if len(paths) == 1 else f"{part.place} (part {k})")
            parts.append(part)
    return parts


def _behind(path: Any, opening: _Opening, looked: dict[str, list[Any]]) -> Iterator[tuple[Hashable, Part]]:
    """What is behind a path or address, with its origin; a folder stands for the Parquet files in it. looked: of `check_log`."""
    if opening.filesystem is None and not is_address(path):
        table = table_at(path)
        if table is not None:
            yield table.origin, SqlPart(table)
            return
        listing, place = files_at(Path(path)), repr(str(path))
    else:
        listing = files_behind(os.fspath(path), opening.filesystem)
        # an address is not repeated: it may hold a key
        place = "the folder of the address" if is_address(path) else repr(path)
    if listing.inside is None:
        (mark,) = (file.mark for file in listing.files)
        check_log(listing, mark.place, looked)
        yield mark.origin, _file(mark, opening)
        return
    check_log(listing, place, looked)
    if listing.others:
        raise SourceError(
            f"the directory {place} holds other files of records, such as CSV files, and of a folder .parquet files alone "
            "are read",
            "give a list of the files",
        )
    if not listing.files:
        raise SourceError(f"the directory {place} holds no .parquet file; confide.read takes {_TAKES}")
    if not _recursive(opening.recursive):
        check_depth(listing, place)
    for file in listing.files:
        yield file.mark.origin, _within(file, place)


def _within(file: FoundFile, folder: str) -> Part:
    if not file.folders:
        return ParquetPart.open(file.mark)
    place = f"a file in {folder}"  # a folder within it may be named by an id
    part = guarded(f"{place} has no Parquet metadata or codec that is known here", partial(ParquetPart.open, file.mark))
    return FolderPart.of(part, file.folders, place)


def _file(mark: Mark, opening: _Opening) -> Part:
    kind = opening.layout.kind_of(mark.name)
    if kind == "parquet":
        return ParquetPart.open(mark)
    if kind == "text":
        return _csv(mark, opening)
    if kind == "sheet":
        return open_sheet(mark, opening.layout, opening.wanted)
    if kind == "statistics":
        return open_statistics(mark, opening.layout)
    raise SourceError(
        f"{mark.place} has an ending that is not known; confide.read takes {_TAKES}",
        "read another format with pandas: cf.read(pandas.read_...(path), schema)",
    )


def fields_at(path: Path, layout: FileLayout) -> list[Field]:
    """The columns of a file of a statistics package, from its metadata."""
    return statistics_fields(FileMark.of(path), layout)


def header_at(path: Path, layout: FileLayout) -> tuple[tuple[str, ...], list[int]]:
    """The names in the header of a text file or a sheet, and how many cells it and some rows below it have."""
    mark = FileMark.of(path)
    return sheet_header(mark, layout) if layout.kind_of(path.name) == "sheet" else text_header(mark, layout, 5)


def _csv(mark: Mark, opening: _Opening) -> Part:
    """Raises `SourceError` where all columns come out as one, as with a wrong delimiter; the header is not quoted."""
    part = CsvPart.open(mark, opening.layout)
    other = other_delimiter(part.names)
    if other is not None and part.names[0] not in opening.wanted:
        raise SourceError(
            f"the first line of {part.place} is one field with {other!r} in it",
            f"if that separates the columns, write delimiter = {value(other)} in the table [file] of the schema, or "
            f"cf.read(path, schema, delimiter={other!r})",
        )
    return part
