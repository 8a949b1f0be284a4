"""The files of a synthetic table: Parquet or CSV, and beside it a JSON with the release that its numbers come from.

A file alone cannot give intervals: whoever treats its rows as records is too sure. The sidecar holds the whole release, so that the
intervals can be computed from what was really released, and a digest of the rows' content, the same for CSV and Parquet. A Parquet file
carries its sidecar in its own metadata as well.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from confide.errors import PlanError, ReleaseError
from confide.protocol import Release
from confide.protocol.serialization.files import read, text_of, written
from confide.results.pages.spreadsheet import csv_text, plain, shielded
from confide.schema import Categorical, Schema

__all__ = [
    "Synthetic",
    "check_ending",
    "check_place",
    "content_digest",
    "file_names",
    "kinds_of",
    "load",
    "sidecar_of",
    "sidecar_path",
    "sidecar_text",
    "table_bytes",
    "write",
]

_KEY = b"confide"
_KIND = "synthetic table"
_ENDINGS = (".parquet", ".csv")
_TYPES = {"text": pa.string(), "whole": pa.int64(), "double": pa.float64()}
_MAKE = 'make it with cf.synthesize(data, "y ~ a", privacy=..., ledger=..., path="table.parquet")'


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A table that was read back, its release, and how it was made."""

    frame: pd.DataFrame
    release: Release
    facts: Mapping[str, Any]


def kinds_of(frame: pd.DataFrame, schema: Schema) -> dict[str, str]:
    """How each column is stored: "text", "whole" or "double"."""
    return {
        str(name): "text"
        if isinstance(schema[str(name)], Categorical)
        else ("whole" if frame[name].dtype.kind in "iu" else "double")
        for name in frame.columns
    }


def content_digest(frame: pd.DataFrame, kinds: Mapping[str, str]) -> str:
    """SHA-256 of names and values, column by column: whole numbers, doubles to the bit, labels as text.

    Raises `ValueError` or `TypeError` for values that are not of their kind.
    """
    found = hashlib.sha256()
    for name in frame.columns:
        values, kind = frame[name], kinds[str(name)]
        found.update(f"{json.dumps(str(name))} {kind} {len(values)}\0".encode())
        if kind == "text":
            found.update(json.dumps(list(map(str, values.tolist()))).encode())
        else:
            # 0.0 added: -0.0 and 0.0 are one number and may be written alike
            found.update(values.to_numpy(dtype="<i8" if kind == "whole" else "<f8").__add__(0).tobytes())
    return found.hexdigest()


def sidecar_of(release: Release, facts: Mapping[str, Any], frame: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """The body of a sidecar."""
    kinds = kinds_of(frame, schema)
    content = content_digest(frame, kinds)
    return {"release": release.to_dict(), "made": dict(facts), "columns": kinds, "content_sha256": content}


def sidecar_path(path: Path) -> Path:
    """NAME.confide.json beside NAME."""
    return path.with_name(path.name + ".confide.json")


def check_ending(path: Path) -> None:
    """`PlanError` for an ending other than .parquet and .csv."""
    if path.suffix.lower() not in _ENDINGS:
        raise PlanError(f'a table is a .parquet or .csv file, got {str(path)!r}; write path="table.parquet"')


def check_place(path: Path) -> None:
    """`PlanError` for an ending or a folder that cannot be: to be known before anything is paid for."""
    check_ending(path)
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise PlanError(
            f"{str(path)!r} cannot be written; give a file in a folder that exists and that you may write to"
        )


def file_names(path: Path, files: int) -> list[Path]:
    """The tables' paths: the one given, or for several "table-1.parquet" and so on."""
    if files == 1:
        return [path]
    return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, files + 1)]


def sidecar_text(sidecar: Mapping[str, Any]) -> str:
    """The sidecar's file."""
    return written(_KIND, sidecar)


def table_bytes(frame: pd.DataFrame, text: str, path: Path) -> bytes:
    """A table's file, Parquet or CSV by the ending of its path; a Parquet file has the sidecar's text in its metadata."""
    if path.suffix.lower() == ".csv":
        return csv_text(frame, index=False).encode("utf-8")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: text}), sink)
    return sink.getvalue()


def write(path: Path, frames: Sequence[pd.DataFrame], sidecars: Sequence[Mapping[str, Any]]) -> tuple[Path, ...]:
    """Write tables with their sidecars; several get numbers."""
    check_ending(path)
    places = file_names(path, len(frames))
    for place, frame, sidecar in zip(places, frames, sidecars, strict=True):
        text = sidecar_text(sidecar)
        try:
            place.write_bytes(table_bytes(frame, text, place))
            sidecar_path(place).write_text(text, encoding="utf-8")
        except OSError as error:
            raise PlanError(
                f"{str(place)!r} cannot be written: {error.strerror}; give a file in a folder that exists"
            ) from None
    return tuple(places)


def load(path: Path) -> Synthetic:
    """A table with its sidecar, or the metadata of its Parquet file.

    Raises `ReleaseError` when there is no sidecar or it was changed, or when the rows are not those that it was written for.
    """
    check_ending(path)
    if not path.is_file():
        raise _reading(f"there is no file {str(path)!r}; {_MAKE}")
    try:
        release, body = read(_KIND, _sidecar_text(path), lambda body: (Release.from_dict(body["release"]), body))
    except ReleaseError as error:
        raise _reading(str(error)) from error
    content, kinds, facts = body["content_sha256"], body["columns"], body["made"]
    try:
        frame = _rows(path, kinds)
        same = set(frame.columns) == set(kinds) and content_digest(frame, kinds) == content
    except (KeyError, TypeError, ValueError):
        same = False
    if not same:
        raise _reading(
            f"the rows of {str(path)!r} are not those that its sidecar was written for: they were changed, left out or put in another "
            "order; intervals come from the release alone, so ask for the original file"
        )
    return Synthetic(frame, release, facts)


def _reading(message: str) -> ReleaseError:
    """A file that cannot be used: no charge was made."""
    error = ReleaseError(message)
    error.exit_code = 3
    return error


def _sidecar_text(path: Path) -> str:
    beside = sidecar_path(path)
    if beside.is_file():
        try:
            return text_of(beside, _KIND)
        except OSError:
            raise _reading(f"the sidecar {str(beside)!r} cannot be read; ask for the original file") from None
    if path.suffix.lower() == ".parquet":
        try:
            metadata = pq.read_schema(path).metadata or {}
        except (OSError, pa.ArrowException):
            raise _reading(f"{str(path)!r} is no Parquet file that can be read; ask for the original file") from None
        if _KEY in metadata:
            return str(metadata[_KEY].decode("utf-8", errors="replace"))
    raise _reading(
        f"{str(path)!r} has no sidecar ({beside.name}), and synthetic rows carry no interval of their own; put the sidecar beside the "
        f"file, or {_MAKE}"
    )


def _rows(path: Path, kinds: Mapping[str, str]) -> pd.DataFrame:
    """The rows of a file as they were written: labels as text, doubles to the bit."""
    try:
        if path.suffix.lower() == ".parquet":
            return pd.DataFrame(pq.read_table(path).to_pandas())
        types = {shielded(name): _TYPES[kind] for name, kind in kinds.items()}
        options = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        lines = csv.ParseOptions(newlines_in_values=True)
        frame = pd.DataFrame(csv.read_csv(path, parse_options=lines, convert_options=options).to_pandas())
        named = frame.set_axis([plain(name) for name in frame.columns], axis=1)
        for name in named.columns[named.columns.isin([name for name, kind in kinds.items() if kind == "text"])]:
            named[name] = named[name].map(plain)
        return named
    except (OSError, pa.ArrowException):
        raise _reading(
            f"{str(path)!r} cannot be read as the table that was written; ask for the original file"
        ) from None
