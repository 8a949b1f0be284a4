"""Records that come as a stream of Arrow batches: queries and functions that give them anew for each pass, and readers that give them once.

What can be asked again is asked again: a DuckDB relation, a polars LazyFrame, a function that returns any of what `confide.read` takes.
What can be read once is read to its end when it is opened and kept, as Arrow, for the passes that follow (`spooled.Spooled`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from confide.errors import SourceError
from confide.sources.formats.plain import kind_of, plain_cells
from confide.sources.formats.tables import column_of
from confide.sources.parts import Block, Part, Piece, cut, guarded

__all__ = ["Factory", "Lazy", "Relation", "Stream", "pieces_of", "quoted", "relation_reader"]

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


class Stream:
    """An Arrow record batch reader, from the batch where it stands to its end: what a function gives in one pass."""

    type = "Arrow record batch reader"
    place = "the Arrow record batch reader"
    rereadable = False

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
class _Query:
    """A query that runs anew for each pass, for the columns that are asked for. asked: what is run."""

    asked: Any = field(repr=False)
    names: tuple[str, ...]
    kinds: Mapping[str, Any]

    type: ClassVar[str]
    rereadable: ClassVar[bool] = True

    @property
    def place(self) -> str:
        return f"the {self.type}"

    def kind(self, name: str) -> Any:
        return self.kinds[name]

    def verify(self) -> None:
        """Nothing to compare: what is behind a query is its owner's to keep."""


class Relation(_Query):
    """A DuckDB relation."""

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


class Lazy(_Query):
    """A polars LazyFrame, whose query runs in streaming."""

    type = "polars LazyFrame"

    @classmethod
    def open(cls, frame: Any) -> Lazy:
        import polars as pl

        schema = frame.collect_schema()
        kinds = {name: column_of(pl.Series(name, [], dtype=kind), name).kind for name, kind in schema.items()}
        return cls(frame, tuple(schema.names()), kinds)

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


def _batches(frame: Any) -> Iterator[Any]:
    """A LazyFrame's rows in portions; a polars that cannot stream them gives one."""
    if not hasattr(frame, "collect_batches"):
        yield frame.collect()
        return
    yield from frame.collect_batches(chunk_size=_BATCH, maintain_order=False, lazy=True, engine="streaming")


class Factory:
    """A function without arguments that gives the records anew each time: a table, a query, a reader.

    opened: makes a part of what it gives. What it gave when it was opened says which columns there are; they may not change. given: told of
    what it gave then.
    """

    type = "function"
    place = "what the function gives"
    rereadable = True
    travels = True

    def __init__(
        self,
        function: Callable[[], Any],
        opened: Callable[[Any], Part],
        given: Callable[[Any], None] = lambda data: None,
    ) -> None:
        self._function, self._opened = function, opened
        data = self._given()
        given(data)
        part = opened(data)
        try:
            self.names = part.names
            once = [name for name in part.names if part.names.count(name) == 1]
            self._kinds = {name: part.kind(name) for name in once if _has_kind(part, name)}
        finally:
            _closed(part)

    def _given(self) -> Any:
        return guarded("the function that was given to confide.read failed", self._function)

    def _part(self) -> Part:
        return self._opened(self._given())

    def kind(self, name: str) -> Any:
        return self._kinds[name]

    def verify(self) -> None:
        """Nothing to compare: what is behind a function is the caller's to keep."""

    def count(self) -> int:
        part = self._part()
        try:
            return part.count()
        finally:
            _closed(part)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        part = self._part()
        try:
            if part.names != self.names or any(part.kind(name) != self._kinds[name] for name in names):
                raise SourceError(
                    f"{self.place} has other columns than when it was opened; open it again with confide.read(...)"
                )
            yield from part.pieces(names)
        finally:
            _closed(part)


def _has_kind(part: Part, name: str) -> bool:
    """A table in memory keeps the columns that the schema knows."""
    try:
        part.kind(name)
    except KeyError:
        return False
    return True


def _closed(part: Part) -> None:
    close = getattr(part, "close", None)
    if close is not None:
        close()
