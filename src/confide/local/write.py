"""Protected tables written to files, batch by batch, whole or not at all."""

from __future__ import annotations

import errno
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

__all__ = ["Place", "write_table"]

_SUFFIXES = (".parquet", ".csv")
# Rows of each row group but the last. Batches end where the pieces of the source do, as at the file of each region, and would tell of
# every row which of them it is from.
_GROUP = 65_536
# Bytes of a cell at most, as text of a double with its separator: what is set aside on the disk.
_CELL = 26


class Place:
    """Where a protected table is written: a file beside `path`, taken before anything is charged and moved there when all is written.

    A draw that ends half-way leaves no file: half a table tells which rows came first. Raises `PlanError` for a place that cannot take it.
    """

    def __init__(self, path: Path, force: bool) -> None:
        self.path = path
        if path.suffix.lower() not in _SUFFIXES:
            raise PlanError(
                f"a protected table is a .parquet or .csv file, got {str(path)!r}; write 'protected.parquet'"
            )
        if not path.parent.is_dir():
            raise PlanError(f"there is no folder {str(path.parent)!r}; make it first")
        if path.exists() and not path.is_file():
            raise PlanError(f"{str(path)!r} is no file; give the name of a file")
        if path.exists() and not force:
            raise PlanError(f"{str(path)!r} exists; give another name, or force=True to replace it")
        try:
            if path.exists():
                path.open("ab").close()
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".confide-", suffix=path.suffix)
        except OSError as error:
            raise self._refused(error) from None
        self._raw, self._part = os.fdopen(handle, "wb"), Path(name)

    def _refused(self, error: OSError) -> PlanError:
        return PlanError(
            f"{str(self.path)!r} cannot be written: {error.strerror}; give a file in a folder that you may write to"
        )

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()
        self._part.unlink(missing_ok=True)

    def set_aside(self, rows: int, columns: int) -> None:
        """Take room on the disk for so many rows, where the system can. Their number is public: each is published."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._raw.fileno(), 0, _GROUP + rows * columns * _CELL)
        except OSError as error:
            if error.errno not in (
                errno.EINVAL,
                errno.EOPNOTSUPP,
                errno.ENOSYS,
            ):  # a file system that sets nothing aside
                raise self._refused(error) from None

    def write(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
        """Write the batches and move them to their place; returns the file's SHA-256."""
        write_table(batches, schema, self.path.suffix.lower(), self._raw)
        self._raw.flush()
        self._raw.truncate()
        os.fsync(self._raw.fileno())
        digest = _digest(self._part)
        self._part.replace(self.path)
        return digest


def write_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, suffix: str, raw: object) -> None:
    """Write batches as a file of that ending."""
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
