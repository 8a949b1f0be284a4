"""The results on disk: Parquet parts that appear whole or not at all, so that a killed run loses nothing it recorded."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Outcome", "Parts"]

# Measures stand in two maps, so that every part has the same columns whatever a study measures.
_SCHEMA = pa.schema(
    [
        pa.field("settings", pa.string(), nullable=False),
        pa.field("replication", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("error", pa.string()),
        pa.field("numbers", pa.map_(pa.string(), pa.float64()), nullable=False),
        pa.field("texts", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)


@dataclass(frozen=True)
class Outcome:
    """What came of a cell: measures by name, or the exception's text."""

    settings: str
    replication: int
    seconds: float
    error: str | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """The cell's key."""
        return self.settings, self.replication


class Parts:
    """The part files of one study and version, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self) -> dict[tuple[str, int], Outcome]:
        """Every recorded outcome by key; a success counts before a failure. A damaged part is left out with a warning."""
        return _by_key(outcome for path in self._paths() for outcome in _read(path))

    def write(self, outcomes: Sequence[Outcome]) -> None:
        """One more part. It has its name only once it is whole and on disk."""
        if not outcomes:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"part-{uuid.uuid4().hex}.parquet"
        hidden = self.folder / f".{name}"
        with hidden.open("wb") as file:
            pq.write_table(pa.Table.from_pylist([vars(outcome) for outcome in outcomes], _SCHEMA), file)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(self.folder / name)

    def merge(self) -> None:
        """Many parts into one. A crash in between leaves outcomes twice, which `load` reads once."""
        paths = self._paths()
        if len(paths) > 1:
            self.write(list(_by_key(outcome for path in paths for outcome in _read(path)).values()))
            for path in paths:
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all parts."""
        for path in self._paths():
            path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"), key=lambda path: (path.stat().st_mtime_ns, path.name))


def _by_key(outcomes: Iterable[Outcome]) -> dict[tuple[str, int], Outcome]:
    found: dict[tuple[str, int], Outcome] = {}
    for outcome in outcomes:
        before = found.get(outcome.key)
        if outcome.error is None or before is None or before.error is not None:
            found[outcome.key] = outcome
    return found


def _read(path: Path) -> list[Outcome]:
    try:
        rows = pq.read_table(path, schema=_SCHEMA).to_pylist()
        return [Outcome(**{**row, "numbers": dict(row["numbers"]), "texts": dict(row["texts"])}) for row in rows]
    # A damaged file may raise nearly anything; its cells are simply not finished.
    except Exception as error:
        warnings.warn(f"{path} is damaged ({type(error).__name__}); its cells are run again", stacklevel=2)
        return []
