"""Protected tables written to files, batch by batch, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from confide.errors import PlanError
from confide.local.protection import KEY

__all__ = ["check_place", "written"]

_SUFFIXES = (".parquet", ".csv")
# Rows of each row group but the last. Batches end where the pieces of the source do, as at the file of each region, and would tell of
# every row which of them it is from.
_GROUP = 65_536


def check_place(path: Path, force: bool) -> None:
    """Refuse a place that no protected table can take, before anything is charged."""
    if path.suffix.lower() not in _SUFFIXES:
        raise PlanError(f"a protected table is a .parquet or .csv file, got {str(path)!r}; write 'protected.parquet'")
    if not path.parent.is_dir():
        raise PlanError(f"there is no folder {str(path.parent)!r}; make it first")
    if path.exists() and not force:
        raise PlanError(f"{str(path)!r} exists; give another name, or force=True to replace it")


def written(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> str:
    """Write the batches beside `path` and move them there when all is written; returns the file's SHA-256.

    A draw that ends half-way leaves no file: half a table tells which rows came first.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".confide-", suffix=path.suffix)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw:
            _write(batches, schema, path.suffix.lower(), raw)
            raw.flush()
            os.fsync(raw.fileno())
        digest = _digest(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return digest


def _write(batches: Iterable[pa.RecordBatch], schema: pa.Schema, suffix: str, raw: object) -> None:
    if suffix == ".csv":
        told = (schema.metadata or {})[KEY.encode()]
        raw.write(f"# {KEY} ".encode() + told + b"\n")  # type: ignore[attr-defined]
        with csv.CSVWriter(raw, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    with pq.ParquetWriter(raw, schema) as file:
        for table in _even(batches, schema):
            file.write_table(table, row_group_size=_GROUP)


def _even(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of `_GROUP` rows and a last one with the rest, whatever the batches are."""
    held = schema.empty_table()
    for batch in batches:
        held = pa.concat_tables([held, pa.Table.from_batches([batch])])
        while held.num_rows >= _GROUP:
            yield held.slice(0, _GROUP)
            held = held.slice(_GROUP)
    if held.num_rows:
        yield held


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
