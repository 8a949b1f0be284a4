"""Each record once: a record that would count twice and be charged once is refused before any charge, from public facts
alone.

The same records may be given twice. Files are compared as the file system tells them apart (links lead to one file),
queries by address and text, functions by what they are made of, and the result of a function as an object in memory.
A folder may be what only another program can read. A table format (Delta Lake, Iceberg, Hudi) keeps the files of
former versions beside those of the current one, and says in a log which are which. Read as a folder, its records
count twice, and those that were erased come back. And folders within a folder hold other parts of the records where
they are named key=value; under other names they may hold copies. Names within a folder may be ids and are in no
message.

Copies under other names are other records to all of this.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple
from weakref import ref

import pyarrow as pa

from confide.errors import SourceError
from confide.sources.formats.filesystems import FolderListing
from confide.sources.formats.parquet import is_key

_PLAIN = (type(None), bool, int, float, str, bytes, PurePath)


class SeenOrigins:
    """Where the records that were opened so far come from."""

    def __init__(self) -> None:
        self._places: dict[Hashable, str] = {}

    def add(self, origin: Hashable, place: str) -> None:
        """Raises `SourceError` for an origin that was seen before.

        place: which part of what was given it is, in words; two files within one folder have the same.
        """
        if origin not in self._places:
            self._places[origin] = place
            return
        names = f"{self._places[origin]} and {place}"
        if self._places[origin] == place:
            names = f"{place} and another one there (not named here, as an id may name it; links: find FOLDER -type l -o -links +1)"
        raise SourceError(
            f"the same records are there twice: {names}. Each of them would count twice and be charged once. Give each file, table and "
            "function once; a link is the file that it leads to, and a folder stands for the files in it"
        )


@dataclass(frozen=True)
class Origin:
    """Equal for what is made alike, and shows nothing of it: an address or the text of a function may hold a password.

    thing: what it is of, which is held as long as it is compared: what is let go leaves its place in memory to others.
    """

    key: Hashable = field(repr=False)
    thing: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, thing: Any) -> Origin:
        """Equal for two functions that are one, or do the same with the same: so do those that a loop makes of one variable.

        >>> one, two = [lambda: week for week in (1, 2)], [lambda week=week: week for week in (1, 2)]
        >>> Origin.of(one[0]) == Origin.of(one[1]), Origin.of(two[0]) == Origin.of(two[1])
        (True, False)
        """
        return cls(_key(thing, {}), thing)


def _key(thing: Any, met: dict[int, int]) -> Hashable:
    """What a thing is made of, down to plain values; what cannot be taken apart is itself alone.

    met: by id, the functions that were taken apart so far: one may be in its own closure, and many in each other's.
    """
    if isinstance(thing, _PLAIN):
        return type(thing), thing
    if isinstance(thing, tuple):
        return tuple, tuple(_key(one, met) for one in thing)
    if id(thing) in met:
        return type(thing), met[id(thing)]
    made = _made(thing)
    if made is None:
        return type(thing), id(thing)
    met[id(thing)] = len(met)
    return type(thing), tuple(_key(one, met) for one in made)


def _made(thing: Any) -> tuple[Any, ...] | None:
    if isinstance(thing, partial):
        return thing.func, thing.args, tuple(sorted(thing.keywords.items()))
    if isinstance(thing, MethodType):
        return thing.__self__, thing.__func__
    if isinstance(thing, CodeType):
        return thing.co_code, thing.co_consts, thing.co_names, thing.co_exceptiontable
    if isinstance(thing, FunctionType):
        words = tuple(sorted((thing.__kwdefaults__ or {}).items()))
        return thing.__code__, id(thing.__globals__), thing.__defaults__, words, *map(_content, thing.__closure__ or ())
    return None


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing in it yet
        return cell


@dataclass(frozen=True, eq=False)
class MemoryOrigin:
    """Places in memory for as long as somebody else holds what lies there: what is let go leaves its place to others."""

    refs: tuple[Any, ...] = field(repr=False)
    places: tuple[Any, ...] = field(repr=False)

    def __hash__(self) -> int:
        return hash(self.places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemoryOrigin) or self.places != other.places:
            return False
        return all(one() is not None for one in (*self.refs, *other.refs))


def memory_origins(given: Any) -> Iterator[MemoryOrigin]:
    """Where what a function gave lies in memory: one object, the columns of a mapping, one stretch of Arrow's memory."""
    parts = tuple(given.values()) if isinstance(given, Mapping) else (given,)
    try:
        refs = tuple(map(ref, parts))
    except TypeError:  # lists, for one
        return
    yield MemoryOrigin(refs, tuple(map(id, parts)))
    if isinstance(given, (pa.Table, pa.RecordBatch)) and (stretches := tuple(_stretches(given))):
        yield MemoryOrigin(refs, stretches)


def _stretches(table: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, int, int]]:
    for column in table.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            for buffer in chunk.buffers()[1:]:
                if buffer is not None and buffer.size and len(chunk):
                    yield buffer.address, chunk.offset, len(chunk)


class _Format(NamedTuple):
    kind: str
    call: str


_SPARK = "cf.read(spark.read.format({}).load(path), schema)"
_DELTA = _Format(
    "a Delta Lake table",
    'cf.read(pl.scan_delta(path), schema), cf.read(cf.sql("duckdb://", "select * from delta_scan(\'...\')"), schema), or '
    + _SPARK.format('"delta"'),
)
_ICEBERG = _Format(
    "an Iceberg table",
    'cf.read(pl.scan_iceberg(path), schema), cf.read(cf.sql("duckdb://", "select * from iceberg_scan(\'...\')"), schema), or '
    + _SPARK.format('"iceberg"'),
)
_HUDI = _Format("a Hudi table", _SPARK.format('"hudi"'))
_STREAM = _Format("what a stream of Spark writes", _SPARK.format('"parquet"'))
# by the name of a file or folder that no records have
_LOGS = {"_delta_log": _DELTA, "_spark_metadata": _STREAM, ".hoodie": _HUDI, ".hoodie_partition_metadata": _HUDI}
# Iceberg's log in `metadata`, where other files of that ending may lie: a version's number is before it
_VERSION = re.compile(r"v?\d+[-.](.*\.)?metadata\.json(\.gz)?")


def check_log(listing: FolderListing, place: str, looked: dict[str, list[Any]]) -> None:
    """Raises `SourceError` for a folder that holds a table format's log, and for Parquet files of a table whose log lies above them.

    looked: by folder, the file systems in which it was looked at and found without a log.
    """
    own = _log_among(listing.inside or ())
    filesystem, folders = listing.folders
    while own is None and folders:
        own = _log_above(filesystem, folders.pop(), looked)
    if own is not None:
        raise SourceError(
            f"{place} is, or is in, {own.kind}: beside its records lie files of former versions, whose records would count twice and, if "
            f"they were erased, come back. Read its current version: {own.call}"
        )


def check_depth(listing: FolderListing, folder: str) -> None:
    """Raises `SourceError` for files in folders within the folder that are not named key=value."""
    depths = {depth for one in listing.files for depth, name in enumerate(one.folders, 1) if not is_key(name)}
    if depths:
        where = ", ".join(map(str, sorted(depths)))
        raise SourceError(
            f"{folder} has Parquet files in folders within it that are not named key=value (counted down from it: {where}; not named here, "
            "as an id may name one). They may hold copies of the same records. Give each of the folders; or, if each "
            "record is in one file, write in Python cf.read(path, schema, recursive=True)"
        )


def _log_among(paths: Iterable[Sequence[str]]) -> _Format | None:
    """The format whose log is among the paths within a folder."""
    for path in paths:
        for name in path:
            if name in _LOGS:
                return _LOGS[name]
        if len(path) > 1 and path[-2] == "metadata" and _VERSION.fullmatch(path[-1]):
            return _ICEBERG
    return None


def _log_above(filesystem: Any, folder: str, looked: dict[str, list[Any]]) -> _Format | None:
    """The format whose log lies in a folder or in one that it is in, whatever those are named; None where none can be seen."""
    while filesystem not in looked.setdefault(folder, []):
        looked[folder].append(filesystem)
        with suppress(Exception):
            if (own := _log_among(_beside(filesystem, folder))) is not None:
                return own
        folder = posixpath.dirname(folder)
    return None


def _beside(filesystem: Any, folder: str) -> list[tuple[str, ...]]:
    """What of a folder can be a log."""
    from pyarrow import fs

    logs = filesystem.get_file_info([posixpath.join(folder, name) for name in _LOGS])
    there = [(name,) for name, one in zip(_LOGS, logs, strict=True) if one.type != fs.FileType.NotFound]
    listed = filesystem.get_file_info(fs.FileSelector(posixpath.join(folder, "metadata"), allow_not_found=True))
    return [*there, *(("metadata", one.base_name) for one in listed)]
