"""Records that come as a stream of Arrow batches: queries and functions that give them anew for each pass, and readers that give them once.

What can be asked again is asked again: a DuckDB relation, a polars LazyFrame, a function that returns any of what `confide.read` takes.
What can be read once is read to its end when it is opened and kept, as Arrow, for the passes that follow (`spooled.Spooled`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from confide.errors import SourceError
from confide.sources.formats.plain import kind_of, plain_cells
from confide.sources.formats.tables import column_of
from confide.sources.parts import Block, FileMark, Part, Piece, cut, guarded

__all__ = ["Factory", "Lazy", "Relation", "Stream", "given_by", "pieces_of", "quoted", "relation_reader"]

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
    """A query that runs anew for each pass, for the columns that are asked for. asked: what is run."""

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
    """A DuckDB relation; a release looks at its columns anew before it is charged."""

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
        said = f"{self.place} is no longer answered: a table, a file or its connection is gone"
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
    """The files that a LazyFrame scans, as far as its plan says."""
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
    """A function without arguments that gives the records anew each time: a table, a query, a reader.

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
        """Before a release is charged it is called once more; what it gives then is looked at, and let go: each pass calls it anew."""
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
    """Raises `SourceError` where what is asked again has other columns."""
    if now.names != part.names or any(now.kind(name) != kind for name, kind in part.kinds.items()):
        raise SourceError(
            f"{part.place} has other columns than when it was opened; open it again with confide.read(...)"
        )


def _has_kind(part: Part, name: str) -> bool:
    """A table in memory keeps the columns that the schema knows."""
    try:
        part.kind(name)
    except KeyError:
        return False
    return True
