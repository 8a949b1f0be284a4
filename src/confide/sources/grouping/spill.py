"""Records with their ids while units are brought together: in memory, or dealt out to files without names."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Files", "Rows", "joined"]

# Files at once: each then has to hold a 64th of the records, so that 64 times the memory's limit are finished in one round, and 4,096 times
# where each is dealt out once more.
_FILES = 64
_CONTENT = np.uint64(0x9FB21C651E98DF25)


@dataclass(frozen=True)
class Rows:
    """Some records: their canonical ids (large_binary, no null), and their codes, one array of whole numbers for each row of codes."""

    ids: pa.Array = field(repr=False)
    codes: list[NDArray[Any]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """What they take in memory."""
        return int(self.ids.nbytes) + sum(row.nbytes for row in self.codes)

    def take(self, at: NDArray[Any]) -> Rows:
        """The rows at these places, in this order."""
        return Rows(self.ids.take(pa.array(at)), [row[at] for row in self.codes])

    def by_id(self, seed: int = 1) -> NDArray[Any]:
        """The file of each record: equal ids have one file. Which ids share a file changes no integer, only where they wait."""
        import polars as pl  # here, because few sources spill

        return (pl.Series(values=self.ids).hash(seed=seed).to_numpy() % np.uint64(_FILES)).astype(np.intp)

    def by_content(self) -> NDArray[Any]:
        """The file of each record of one unit or a few: equal rows have one file."""
        h = np.zeros(len(self), dtype=np.uint64)
        with np.errstate(over="ignore"):
            for row in self.codes:
                h = (h ^ row.astype(np.int64).view(np.uint64)) * _CONTENT
                h ^= h >> np.uint64(29)
        return (h % np.uint64(_FILES)).astype(np.intp)


def joined(parts: Sequence[Rows]) -> Rows:
    """Records one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        pa.concat_arrays([part.ids for part in parts]),
        [np.concatenate(rows) for rows in zip(*(part.codes for part in parts), strict=True)],
    )


class Files:
    """Records dealt out to files, each of which is written, then read once; nobody else can open them, and they end with the process."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._files: list[IO[bytes]] = []
        self._writers: list[Any] = []
        self._counts = [0] * _FILES

    @property
    def parts(self) -> int:
        return _FILES

    def rows(self, part: int) -> int:
        """How many records a file holds."""
        return self._counts[part]

    def add(self, rows: Rows, parts: NDArray[Any]) -> None:
        """Each record into its file."""
        if not self._files:
            self._open(rows)
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=_FILES))
        dealt = rows.take(order)
        batch = pa.record_batch([dealt.ids, *map(pa.array, dealt.codes)], names=self._names(rows))
        for part, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if stop > start:
                self._writers[part].write_batch(batch.slice(start, stop - start))
                self._counts[part] += int(stop - start)

    def _open(self, rows: Rows) -> None:
        kinds = [pa.large_binary(), *(pa.from_numpy_dtype(row.dtype) for row in rows.codes)]
        schema = pa.schema(list(zip(self._names(rows), kinds, strict=True)))
        for _ in range(_FILES):
            # closed by close
            file = tempfile.TemporaryFile(prefix="confide-", dir=self._folder, buffering=0)  # noqa: SIM115
            self._files.append(file)
            self._writers.append(pa.ipc.new_stream(pa.PythonFile(file, mode="w"), schema))

    @staticmethod
    def _names(rows: Rows) -> list[str]:
        return [str(at) for at in range(1 + len(rows.codes))]

    def read(self, part: int) -> Iterator[Rows]:
        """The records of a file, in portions; it takes no more afterwards."""
        self._writers[part].close()
        self._files[part].seek(0)
        for batch in pa.ipc.open_stream(pa.PythonFile(self._files[part], mode="r")):
            ids, *codes = batch.columns
            yield Rows(ids, [row.to_numpy() for row in codes])

    def close(self) -> None:
        """Give the files back."""
        for file in self._files:
            with suppress(OSError):
                file.close()
        self._files, self._writers = [], []
