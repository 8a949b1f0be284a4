"""A stream that can be read once, kept for the passes that follow: in memory up to a limit, else in a temporary file without a name.

It is read to its end when the source is opened, because a plan may ask for several passes, and its number of records may be asked for
first. Only the columns that the schema knows are kept. How much that is tells the number of records: `confide.read` says it on standard
error, to whoever holds the records and calls it, and nothing that is planned, released or raised has it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, Any

import pyarrow as pa

from confide.errors import SourceError
from confide.sources.formats.plain import kind_of, plain_cells
from confide.sources.formats.streams import Stream
from confide.sources.parts import Block, Part, Piece, cut, guarded

__all__ = ["Spooled"]

# records of one piece that is kept
_ROWS = 1 << 16
_FULL = "the Arrow record batch reader could not be kept for several passes (the disk may be full, or the folder of spool= not writable)"


class Spooled(Part):
    """The records of a one-shot stream, kept as self-contained pieces of Arrow that any thread can read."""

    type = "Arrow record batch reader"
    place = "the Arrow record batch reader"
    rereadable = True
    file = None
    names: tuple[str, ...]

    def __init__(self, stream: Stream, wanted: Sequence[str], memory: int, folder: str | None) -> None:
        schema = stream.reader.schema
        self.names = stream.names
        self._kept = tuple(name for name in dict.fromkeys(wanted) if stream.names.count(name) == 1)
        self._kinds = {name: kind_of(schema.field(name).type) for name in self._kept}
        self._schema = pa.schema(list(self._kinds.items()))
        self._memory, self._folder = memory << 20, folder
        self._file: IO[bytes] | None = None
        self._pieces: list[tuple[int, pa.Buffer | tuple[int, int]]] = []
        self._bytes = self._written = 0
        self._fill(stream.reader)

    def _fill(self, reader: pa.RecordBatchReader) -> None:
        held: list[pa.RecordBatch] = []
        rows = 0
        while (batch := guarded(f"{self.place} could not be read", partial(next, reader, None))) is not None:
            held.append(guarded(f"{self.place} could not be read", partial(self._own, batch)))
            rows += batch.num_rows
            if rows >= _ROWS:
                self._add(held, rows)
                held, rows = [], 0
        self._add(held, rows)

    def _own(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([plain_cells(batch.column(name)) for name in self._kept], schema=self._schema)

    def _add(self, held: list[pa.RecordBatch], rows: int) -> None:
        if not rows:
            return
        data = guarded(f"{self.place} could not be read", partial(self._packed, held))
        self._bytes += data.size
        self._pieces.append((rows, data if self._bytes - self._written <= self._memory else self._write(data)))

    def _packed(self, held: list[pa.RecordBatch]) -> pa.Buffer:
        sink = pa.BufferOutputStream()
        if self._kept:
            # one batch of them: readers of small batches would be kept with more words than records
            with pa.ipc.new_stream(sink, self._schema) as out:
                out.write_table(pa.Table.from_batches(held).combine_chunks())
        return sink.getvalue()

    def _write(self, data: pa.Buffer) -> tuple[int, int]:
        try:
            if self._file is None:
                # closed with this object, as the last that knows it
                self._file = tempfile.TemporaryFile(prefix="confide-", dir=self._folder, buffering=0)  # noqa: SIM115
            start, rest = self._written, memoryview(data)
            while rest.nbytes:
                rest = rest[self._file.write(rest) :]
        except OSError:
            start = -1
        if start < 0:
            raise SourceError(_FULL)
        self._written += data.size
        return start, data.size

    def tell(self) -> None:
        """Say on standard error how much is kept, to whoever holds the records."""
        where = "in memory" if self._file is None else "in memory and in a temporary file without a name"
        sys.stderr.write(
            f"confide.read: an Arrow record batch reader can be read once, so that the {len(self._kept)} columns that the schema knows are "
            f"kept {where}: {self._bytes / 1e6:.1f} MB. This tells how many records there are; it is for whoever holds them.\n"
        )

    def kind(self, name: str) -> Any:
        return self._kinds[name]

    def verify(self) -> None:
        """Nothing to compare: nobody else can change what is kept."""

    def count(self) -> int:
        return sum(rows for rows, _ in self._pieces)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for rows, data in self._pieces:
            yield Piece(self.place, partial(self._blocks, rows, data, tuple(names)))

    def _blocks(
        self, rows: int, data: pa.Buffer | tuple[int, int], names: tuple[str, ...], most: int
    ) -> Iterator[Block]:
        if not names:
            yield from cut(Block(rows, []), most)
            return
        for batch in pa.ipc.open_stream(self._read(*data) if isinstance(data, tuple) else data):
            yield from cut(Block(batch.num_rows, [batch.column(name) for name in names]), most)

    def _read(self, start: int, size: int) -> bytes:
        assert self._file is not None
        found = b""
        while len(found) < size:
            found += (got := os.pread(self._file.fileno(), size - len(found), start + len(found)))
            if not got:
                raise OSError
        return found

    def __reduce__(self) -> Any:
        raise TypeError("records do not leave the process that reads them: a reader that was kept is not pickled")
