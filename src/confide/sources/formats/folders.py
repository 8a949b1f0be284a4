"""What a folder of files may be: records, each in one of its files; or something that only another program knows how to read.

A table format (Delta Lake, Iceberg, Hudi) keeps the files of former versions beside those of the current one, and says in a log which are
which: read as a folder, records count twice, and those that were erased come back. Folders within a folder hold other parts of the records
where they are named key=value; under other names they may as well hold copies. Their names may be ids and are in no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from confide.errors import SourceError
from confide.sources.formats.filesystems import Found
from confide.sources.formats.hive import is_key
from confide.sources.formats.twice import Seen

__all__ = ["check_depth", "check_log"]


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
_METADATA = ".metadata.json"
# how Iceberg's own names begin: beside a file, other metadata of that ending may lie
_VERSION = re.compile(r"v?\d+[-.]")


def check_log(found: Found, place: str, seen: Seen) -> None:
    """Raises `SourceError` for a folder that holds a table format's log, and for Parquet files of a table whose log lies above them."""
    own = _log_among(found.inside) if found.inside is not None else None
    if own is None and (found.inside is not None or found.path.lower().endswith(".parquet")):
        own = _log_above(found, seen)
    if own is not None:
        kind, table = own.kind, own.call
        raise SourceError(
            f"{place} is, or is in, {kind}: beside its records lie files of former versions, whose records would count twice and, if they "
            f"were erased, come back. Read its current version: {table}"
        )


def check_depth(found: Found, folder: str) -> None:
    """Raises `SourceError` for files in folders within the folder that are not named key=value."""
    depths = {depth for one in found.files for depth, name in enumerate(one.folders, 1) if not is_key(name)}
    if depths:
        where = ", ".join(map(str, sorted(depths)))
        raise SourceError(
            f"{folder} has Parquet files in folders within it that are not named key=value (counted down from it: {where}; not named here, "
            "as an id may name one): they may hold copies of the same records. If each record is in one file, write "
            "cf.read(path, schema, recursive=True); or give the folders that are meant one by one"
        )


def _log_among(paths: Iterable[Sequence[str]]) -> _Format | None:
    """The format whose log is among the paths within a folder."""
    for path in paths:
        for name in path:
            if name == "_delta_log":
                return _DELTA
            if name.startswith(".hoodie"):
                return _HUDI
            if name == "_spark_metadata":
                return _STREAM
        if len(path) > 1 and path[-2] == "metadata" and path[-1].removesuffix(".gz").endswith(_METADATA):
            return _ICEBERG
    return None


def _log_above(found: Found, seen: Seen) -> _Format | None:
    """The format whose log lies beside a file, or above the partitions and the folder `data` that it is in; None where none can be seen."""
    folder, _, name = found.path.rstrip("/").rpartition("/")
    if found.inside is not None and not _is_within(name):
        return None
    while seen.enter(found.filesystem, folder):
        with suppress(Exception):
            if (own := _log_among(_beside(found.filesystem, folder))) is not None:
                return own
        folder, _, name = folder.rpartition("/")
        if not _is_within(name):
            break
    return None


def _is_within(name: str) -> bool:
    """Whether a table format puts folders of that name between its log and its files."""
    return is_key(name) or name == "data"


def _beside(filesystem: Any, folder: str) -> list[tuple[str, ...]]:
    from pyarrow import fs

    names = ("_delta_log", "_spark_metadata", ".hoodie", ".hoodie_partition_metadata")
    logs = filesystem.get_file_info([f"{folder}/{name}" for name in names])
    there = [(name,) for name, one in zip(names, logs, strict=True) if one.type != fs.FileType.NotFound]
    listed = filesystem.get_file_info(fs.FileSelector(f"{folder}/metadata", allow_not_found=True))
    return [*there, *(("metadata", one.base_name) for one in listed if _VERSION.match(one.base_name))]
