"""The files of a made-up table: Parquet or CSV, and beside it a JSON with the release that its numbers come from.

A file alone cannot give intervals: whoever treats its rows as records is too sure. The sidecar holds the whole release, so that the
intervals can be computed from what was really released, and a digest of the rows' content, the same for CSV and Parquet. A Parquet file
carries its sidecar in its own metadata as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from confide.errors import PlanError, ReleaseError
from confide.protocol import Release
from confide.protocol.files import from_file, to_file
from confide.schema import Categorical, Schema

__all__ = ["Synthetic", "content_digest", "load", "sidecar_of", "sidecar_path", "write"]

_KEY = b"confide"
_KIND = "synthetic table"
_ENDINGS = (".parquet", ".csv")
_MAKE = 'make it with cf.synthesize(data, "y ~ a", privacy=..., ledger=..., path="table.parquet")'


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A table that was read back, its release, and how it was made."""

    frame: pd.DataFrame
    release: Release
    facts: Mapping[str, Any]


def content_digest(frame: pd.DataFrame, schema: Schema) -> str:
    """SHA-256 of names and values, column by column: whole numbers, doubles to the bit, labels as text."""
    found = hashlib.sha256()
    for name in frame.columns:
        values = frame[name]
        found.update(json.dumps(str(name)).encode() + b"\0")
        if isinstance(schema[str(name)], Categorical):
            found.update(b"text\0" + "\0".join(map(str, values.tolist())).encode())
        elif values.dtype.kind in "iu":
            found.update(b"whole\0" + values.to_numpy(dtype="<i8").tobytes())
        else:
            found.update(b"double\0" + (values.to_numpy(dtype="<f8") + 0.0).tobytes())
        found.update(b"\0")
    return found.hexdigest()


def sidecar_of(release: Release, facts: Mapping[str, Any], content: str) -> dict[str, Any]:
    """The body of a sidecar."""
    return {"release": release.to_dict(), "made": dict(facts), "content_sha256": content}


def sidecar_path(path: Path) -> Path:
    """NAME.confide.json beside NAME."""
    return path.with_name(path.name + ".confide.json")


def write(path: Path, frames: Sequence[pd.DataFrame], sidecars: Sequence[Mapping[str, Any]]) -> tuple[Path, ...]:
    """Write tables with their sidecars; several get numbers."""
    if path.suffix.lower() not in _ENDINGS:
        raise PlanError(f'a table is written as .parquet or .csv, got {str(path)!r}; write save("table.parquet")')
    places = [
        path if len(frames) == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        for number in range(1, len(frames) + 1)
    ]
    for place, frame, sidecar in zip(places, frames, sidecars, strict=True):
        text = to_file(_KIND, sidecar)
        try:
            if place.suffix.lower() == ".parquet":
                table = pa.Table.from_pandas(frame, preserve_index=False)
                pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: text}), place)
            else:
                frame.to_csv(place, index=False, lineterminator="\n")
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
    if path.suffix.lower() not in _ENDINGS:
        raise PlanError(f'a table is a .parquet or .csv file, got {str(path)!r}; write cf.refit("table.parquet")')
    if not path.is_file():
        raise _reading(f"there is no file {str(path)!r}; {_MAKE}")
    body = from_file(_KIND, _sidecar_text(path))
    try:
        release, content = Release.from_dict(body["release"]), str(body["content_sha256"])
        schema = Schema.from_dict(release.plan.schema)
    except (KeyError, TypeError, AttributeError):
        raise _reading(f"the sidecar of {str(path)!r} is incomplete; ask for the original file") from None
    frame = _rows(path, schema)
    if content_digest(frame, schema) != content:
        raise _reading(
            f"the rows of {str(path)!r} are not those that its sidecar was written for: they were changed, left out or put in another "
            "order; intervals come from the release alone, so ask for the original file, or read the release with "
            'cf.refit("original.parquet")'
        )
    return Synthetic(frame, release, body["made"])


def _reading(message: str) -> ReleaseError:
    """A file that cannot be used: no charge was made."""
    error = ReleaseError(message)
    error.exit_code = 3
    return error


def _sidecar_text(path: Path) -> str:
    beside = sidecar_path(path)
    if beside.is_file():
        try:
            return beside.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise _reading(f"the sidecar {str(beside)!r} cannot be read; ask for the original file") from None
    if path.suffix.lower() == ".parquet":
        try:
            metadata = pq.read_schema(path).metadata or {}
        except (OSError, pa.ArrowException):
            raise _reading(f"{str(path)!r} is no Parquet file that can be read; ask for the original file") from None
        if _KEY in metadata:
            return str(metadata[_KEY].decode("utf-8"))
    raise _reading(
        f"{str(path)!r} has no sidecar ({beside.name}), and made-up rows carry no interval of their own; put the sidecar beside the "
        f"file, or {_MAKE}"
    )


def _rows(path: Path, schema: Schema) -> pd.DataFrame:
    """The rows of a file as they were written: labels as text, doubles to the bit."""
    labels = {name: str for name in schema.names if isinstance(schema[name], Categorical)}
    try:
        if path.suffix.lower() == ".parquet":
            return pd.DataFrame(pq.read_table(path).to_pandas())
        return pd.read_csv(path, dtype=labels, float_precision="round_trip", keep_default_na=False)
    except (OSError, ValueError, pa.ArrowException):
        raise _reading(f"{str(path)!r} cannot be read as a table; ask for the original file") from None
