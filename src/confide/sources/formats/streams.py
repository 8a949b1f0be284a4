"""Records that come as a stream of Arrow batches: queries and functions that give them again for each pass, readers that give
them once.

What can be asked again is asked again: a DuckDB relation, a polars LazyFrame, a function that returns any of what `confide.read` takes.
What can be read once is read to its end when it is opened and kept, as Arrow, for the passes that follow (`streams.Spooled`).

A stream that can be read once, kept for the passes that follow: in memory up to a limit, else in a temporary file without a name.

It is read to its end when the source is opened, because a plan may ask for several passes, and its number of records
may be asked for first. Only the columns that the schema knows are kept. How much that is tells the number of records.
`confide.read` says it on standard error, to anyone who holds the records and calls it, and nothing that is planned,
released or raised has it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar

import pyarrow as pa

from confide.errors import SourceError
from confide.sources.coding import Block, FileMark, Part, Piece, cut, guarded
from confide.sources.formats.tables import column_of, kind_of, plain_cells

# rows of one batch that a query is asked for
_BATCH = 1 << 16


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def pieces_of(place: str, batches: Any, names: Sequence[str]) -> Iterator[Piece]:
    """A piece for each batch of a stream."""
    for batch in batches:
        columns = [plain_cells(batch.column(name)) for name in names]
        yield Piece(place, partial(cut, Block(batch.num_rows, columns)))


class Stream(Part):
    """An Arrow record batch reader, from the batch where it stands to its end: what a function gives in one pass."""

    type = "Arrow record batch reader"
    place = "the Arrow record batch reader"
    rereadable = False
    file = None
    names: tuple[str, ...]

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.reader = reader
        self.names = tuple(str(name) for name in reader.schema.names)

    def kind(self, name: str) -> Any:
        return kind_of(self.reader.schema.field(name).type)

    def verify(self) -> None:
        """Nothing to compare: the stream is read once."""

    def count(self) -> int:
        """It is read for it."""
        return sum(batch.num_rows for batch in self.reader)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        yield from pieces_of(self.place, self.reader, names)

    def close(self) -> None:
        with suppress(Exception):
            self.reader.close()


@dataclass(frozen=True)
class _Query(Part):
    """A query that runs again for each pass, for the columns that are asked for. asked: what is run."""

    asked: Any = field(repr=False)
    names: tuple[str, ...]
    kinds: Mapping[str, Any]

    type: ClassVar[str]
    rereadable: ClassVar[bool] = True
    file: ClassVar[None] = None

    @property
    def place(self) -> str:
        return f"the {self.type}"

    def kind(self, name: str) -> Any:
        return self.kinds[name]

    def verify(self) -> None:
        """Nothing to compare: what is behind a query is its owner's to keep."""


class Relation(_Query):
    """A DuckDB relation; a release looks at its columns again before it is charged."""

    type = "DuckDB relation"

    @classmethod
    def open(cls, relation: Any) -> Relation:
        with closing(relation_reader(relation.limit(0))) as empty:
            schema = empty.schema
        return cls(
            relation,
            tuple(schema.names),
            {name: kind_of(schema.field(at).type) for at, name in enumerate(schema.names)},
        )

    @contextmanager
    def session(self) -> Iterator[None]:
        said = f"{self.place} does not work any more: a table, a file or its connection is gone"
        _check_same(self, guarded(said, partial(self.open, self.asked)))
        yield

    def count(self) -> int:
        return int(self.asked.aggregate("count(*)").fetchall()[0][0])

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        asked = tuple(names) or self.names[:1]
        with closing(relation_reader(self.asked.project(", ".join(map(quoted, asked))))) as batches:
            yield from pieces_of(self.place, batches, names)


def relation_reader(relation: Any) -> Any:
    """A relation's rows as a record batch reader: DuckDB renamed the method."""
    ask = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return ask(_BATCH)


@dataclass(frozen=True)
class Lazy(_Query):
    """A polars LazyFrame, whose query runs in streaming. marks: the files that it scans, as they were when it was opened.

    Polars itself would tell of a file that is gone only when it reads records: it keeps the schema, and asks nobody for no rows.
    """

    marks: tuple[FileMark, ...] = field(default=(), repr=False)

    type = "polars LazyFrame"

    @classmethod
    def open(cls, frame: Any) -> Lazy:
        import polars as pl

        schema = frame.collect_schema()
        kinds = {name: column_of(pl.Series(name, [], dtype=kind), name).kind for name, kind in schema.items()}
        marks = tuple(FileMark.of(path) for path in map(Path, _scanned(frame)) if path.is_file())
        return cls(frame, tuple(schema.names()), kinds, marks)

    def verify(self) -> None:
        # their names may be ids
        said = f"a file that {self.place} scans is gone, or changed since it was opened; open it again with confide.read(...)"
        for mark in self.marks:
            guarded(said, mark.verify)

    def count(self) -> int:
        import polars as pl

        return int(self.asked.select(pl.len()).collect(engine="streaming").item())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        from polars import selectors

        # a bare name may be a pattern to polars: "*", "^x.*$"
        asked = self.asked.select(selectors.by_name(*(tuple(names) or self.names[:1])))
        for batch in _batches(asked):
            columns = [batch.get_column(name).to_arrow() for name in names]
            yield Piece(self.place, partial(cut, Block(batch.height, columns)))


def _scanned(frame: Any) -> list[str]:
    """The files that a LazyFrame scans, if its plan names them."""
    found: list[str] = []
    with suppress(Exception):  # of a polars that shows its plans otherwise
        plan = frame._ldf.visit()
        nodes = [plan.get_node()]
        while nodes:
            plan.set_node(nodes.pop())
            nodes += plan.get_inputs()
            with suppress(NotImplementedError):
                found += map(str, getattr(plan.view_current_node(), "paths", ()))
    return found


def _batches(frame: Any) -> Iterator[Any]:
    """A LazyFrame's rows in portions; a polars that cannot stream them gives one."""
    if not hasattr(frame, "collect_batches"):
        yield frame.collect()
        return
    yield from frame.collect_batches(chunk_size=_BATCH, maintain_order=False, lazy=True, engine="streaming")


def given_by(function: Callable[[], Any]) -> Any:
    """What a caller's function gives, this time."""
    return guarded("the function that was given to confide.read failed", function)


class Factory(Part):
    """A function without arguments that gives the records again each time: a table, a query, a reader.

    opened: makes a part of what it gives. data: what it gave first, which says what columns there are; they may not change.
    """

    type = "function"
    place = "what the function gives"
    rereadable = True
    file = None
    travels = True
    names: tuple[str, ...]

    def __init__(
        self,
        function: Callable[[], Any],
        opened: Callable[[Any], Part],
        data: Any,
    ) -> None:
        self._function, self._opened = function, opened
        part = opened(data)
        try:
            self.names = part.names
            once = [name for name in part.names if part.names.count(name) == 1]
            self.kinds = {name: part.kind(name) for name in once if _has_kind(part, name)}
        finally:
            part.close()

    def _part(self) -> Part:
        part = self._opened(given_by(self._function))
        try:
            _check_same(self, part)
        except BaseException:
            part.close()
            raise
        return part

    @contextmanager
    def session(self) -> Iterator[None]:
        """Before a release is charged it is called once more; what it gives then is looked at, and let go: each pass calls it again."""
        self._part().close()
        yield

    def kind(self, name: str) -> Any:
        return self.kinds[name]

    def verify(self) -> None:
        """Nothing to compare: what is behind a function is the caller's to keep."""

    def count(self) -> int:
        part = self._part()
        try:
            return part.count()
        finally:
            part.close()

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        part = self._part()
        try:
            yield from part.pieces(names)
        finally:
            part.close()


def _check_same(part: _Query | Factory, now: Part) -> None:
    """Raises `SourceError` where the repeated query has other columns."""
    if now.names != part.names or any(now.kind(name) != kind for name, kind in part.kinds.items()):
        raise SourceError(
            f"{part.place} has other columns than when it was opened", "open it again with confide.read(...)"
        )


def _has_kind(part: Part, name: str) -> bool:
    """A table in memory keeps the columns that the schema knows."""
    try:
        part.kind(name)
    except KeyError:
        return False
    return True


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
        """Say on standard error how much is kept, to anyone who holds the records."""
        where = "in memory" if self._file is None else "in memory and in a temporary file without a name"
        sys.stderr.write(
            f"confide.read: an Arrow record batch reader can be read once, so that the {len(self._kept)} columns that the schema knows are "
            f"kept {where}: {self._bytes / 1e6:.1f} MB. This tells how many records there are; it is for those who hold them.\n"
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
