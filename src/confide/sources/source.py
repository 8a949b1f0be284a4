"""The source: records behind the schema's coding, and exact sums over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing as _closing, contextmanager
from typing import Any, cast

from numpy.typing import NDArray

from confide.core import Source, Statistic
from confide.core.units.privacy_unit import CLUSTER_ROW, UNIT_ROW, WHOLE_ROW
from confide.errors import SchemaError, SourceError
from confide.schema import Column, Schema, Unit
from confide.schema.draft import may_be_a_record
from confide.sources.aggregation import THREADS, Codes, Input, UncachedRecords, named_rows, summed
from confide.sources.code_cache import MEMORY, KeptSource
from confide.sources.coder import columns_behind
from confide.sources.coding import Part, file_at, guarded, is_readable, is_typed_date
from confide.sources.executors import Executor, RemoteSource
from confide.sources.grouping.ids import is_id
from confide.sources.grouping.sampling import rule_of_rows
from confide.sources.grouping.units import UnitSource

# names that an error lists; a file may have thousands of columns
_LISTED = 30


class RecordSource(Source):
    """Records of one table or of several files, coded block by block. Made by `confide.read`.

    `schema`: what is public about the records. `dataset`: the name under which a ledger charges them. `rereadable`:
    whether they can be read several times, as all that `confide.read` opens can. `memory`, `spool`, `threads`: of
    `confide.read`.

    It is private: it hands records to no one, and nothing that it shows depends on them.

    >>> from confide.schema import Numeric, Schema
    >>> source = RecordSource(Schema({"age": Numeric(0, 100)}, dataset="survey"), [])
    >>> source
    RecordSource(no records, dataset='survey', columns=('age',))
    """

    def __init__(
        self,
        schema: Schema,
        parts: Sequence[Part],
        *,
        dataset: str | None = None,
        memory: int = MEMORY,
        spool: str | None = None,
        threads: int = THREADS,
        executor: Executor | None = None,
    ) -> None:
        self._schema = schema
        self._threads, self._executor = threads, executor
        self._memory, self._spool = memory, spool
        self._parts = tuple(parts)
        self._dataset = schema.dataset if dataset is None else dataset

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def dataset(self) -> str | None:
        return self._dataset

    @property
    def rereadable(self) -> bool:
        return all(part.rereadable for part in self._parts)

    @property
    def _brought_together(self) -> bool:
        """Whether records are read as units, or as members of clusters."""
        return bool(self._schema.ids)

    def __repr__(self) -> str:
        types = ", ".join(dict.fromkeys(part.type for part in self._parts)) or "no records"
        return f"RecordSource({types}, dataset={self.dataset!r}, columns={tuple(self._schema.names)!r})"

    def check(self, columns: Sequence[str]) -> None:
        """Raise when these columns cannot be read, from the schema and the files' metadata; no record is read.

        Raises `SchemaError` for a column that the schema lacks, `SourceError` for one that is not in the data, is
        there twice, or has a physical type that no column can have. Also for a file that changed.
        """
        ids = self._schema.ids
        of_units = (UNIT_ROW, WHOLE_ROW, CLUSTER_ROW) if ids else ()
        wanted = columns_behind([name for name in columns if name not in of_units], self._schema)
        for part in self._parts:
            part.verify()
            for name in ids:
                check_id(part, name, self._known)
                wanted = self._schema.in_data  # which rows of a unit count hangs on all columns
            for name in wanted:
                _check_column(part, name, self._schema[name], self._known)

    @property
    def _known(self) -> tuple[str, ...]:
        return (*self._schema.in_data, *self._schema.ids)

    def lacks(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Those of the columns that some part of the data does not have, from metadata; of derived ones, their inputs."""
        wanted = self._schema.behind(columns)
        return tuple(name for name in wanted if any(name not in part.names for part in self._parts))

    def reads(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path leads to a file that is read here: what is written there would replace the records."""
        found = file_at(os.fspath(path))
        return any(part.file == found for part in self._parts)

    @contextmanager
    def opened(self) -> Iterator[RecordSource | RemoteSource]:
        """What one release reads: of databases one snapshot, on an executor its workers' records. The gate opens it before the charge.

        Raises `SourceError` for a query or function that no longer works, or with other columns than when it was
        opened.
        """
        with ExitStack() as sessions:
            for part in self._parts:
                sessions.enter_context(part.session())
            if self._executor is None:
                yield self
                return
            # where only clusters are brought together, the gate asks for no bound
            rule = rule_of_rows(self._schema) if self._brought_together else None
            yield sessions.enter_context(_closing(RemoteSource(self, self._executor, rule)))

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """One pass over all records: one array of exact Python integers for each statistic.

        The integers are the same for any order of the records, any size of batches, any number of threads and any
        format. Records that lack a value under on_missing="drop" reach the statistics with the code -1. A statistic
        may keep no reference to the codes that it is handed.

        Raises as `check` does before the first record, and `SourceError` when a file cannot be read to its end, or when it
        changed meanwhile.

        Under an enforced unit the sums are over the bounded units, no matter who asks: the gate's `bounded` alone gives the ledger's key.
        """
        if self._apart:
            with self._one(WHOLE_ROW in named_rows(statistics)) as source:
                sums: tuple[NDArray[Any], ...] = source.aggregate(*statistics)
            return sums
        return self._aggregate(statistics, named_rows(statistics))

    @property
    def _apart(self) -> bool:
        """Whether another source stands between this one and the sums: that of bounded units, that of an executor."""
        return self._brought_together or self._executor is not None

    def _one(self, whole: bool = False) -> AbstractContextManager[Any]:
        return self.bounded(whole=whole) if self._brought_together else self.opened()

    def _aggregate(
        self, statistics: Sequence[Statistic], rows: tuple[str, ...], kept: Callable[[Codes], None] | None = None
    ) -> tuple[NDArray[Any], ...]:
        """One pass that codes all of `rows`; each block of codes is handed to `kept` too."""
        return self._pass(UncachedRecords(self._parts, self._schema, rows, kept), statistics)

    def _pass(self, records: Input, statistics: Sequence[Statistic]) -> tuple[NDArray[Any], ...]:
        """One pass over all records, which are those that were opened, to their end."""
        self.check(records.rows)
        sums = summed(records, statistics, threads=self._threads)
        for part in self._parts:
            part.verify()
        return sums

    @contextmanager
    def bounded(
        self, key: bytes | None = None, *, whole: bool = False, first: bool = True
    ) -> Iterator[UnitSource | RemoteSource]:
        """The records of the schema's enforced unit for one draw: read and coded once, at most `rows` rows' worth of each unit.

        `key`: the ledger's, 32 bytes; the schema's digest when left out. What the unit's rule keeps depends on it,
        and no guarantee does. `whole`: all rows of a unit are there, up to 2^16, for statistics that weigh them
        (`core.units.privacy_unit`); others see the kept ones alone. `first`: whether there are such others.
        """
        if not self._brought_together:
            raise SchemaError("the schema has no enforced unit", 'write cf.Schema(..., unit=cf.Unit("person_id"))')
        rule, executor = rule_of_rows(self._schema, key, whole=whole, first=first), self._executor
        made = UnitSource(self, rule) if executor is None else RemoteSource(self, executor, rule)
        with _closing(made) as source, self.opened():
            yield source

    @contextmanager
    def kept(self, rows: Sequence[str], once: Collection[str] = ()) -> Iterator[Source]:
        """The records for one draw of several passes: read and coded once, in the first pass, and forgotten at the end.

        rows: the rows of codes that the draw may ask for. once: those that its first pass alone does. Later passes give the same
        integers as a pass over the source would, from codes in memory, beyond `memory` MB from a temporary file without a name
        (`code_cache`).
        """
        if self._apart:
            with self._one(WHOLE_ROW in rows) as source, source.kept(rows) as kept:
                yield kept
            return
        with _closing(KeptSource(self, [row for row in rows if row not in once], self._memory, self._spool)) as kept:
            yield kept

    def like(self, parts: Sequence[Part]) -> RecordSource:
        """Other records behind the same schema, read in this process by one thread: simulated rows (`sources.simulated`)."""
        # their cells are written plainly, whatever the layout of the records' files
        return RecordSource(
            self._schema.bare, parts, dataset=self._dataset, memory=self._memory, spool=self._spool, threads=1
        )

    def count(self) -> int:
        """The exact number of records, of ids under an enforced unit. For the gate alone, and there only under substitution, where it is
        public.

        Raises `SourceError` for a file that changed or cannot be read.
        """
        if isinstance(self._schema.unit, Unit) or self._executor is not None:
            with self._one() as source:
                return int(source.count())
        for part in self._parts:
            part.verify()
        return sum(guarded(f"{part.place} could not be read", part.count) for part in self._parts)


def check_id(part: Part, name: str, known: Collection[str]) -> None:
    """The id column of a unit: there, once, of a type whose cells can be ids; its values are never looked at here."""
    _check_there(part, name, known)
    if not is_id(part.kind(name)):
        raise SchemaError(
            f"{part.place}: the id column {name!r} has the type {part.kind(name)}; an id is a whole number, text, binary or a date. Turn "
            "it into text first, or name another column in Unit(...)"
        )


def _check_there(part: Part, name: str, known: Collection[str]) -> None:
    found = part.names.count(name)
    if not found:
        listed = ", ".join(map(repr, part.names[:_LISTED])) + (", ..." if len(part.names) > _LISTED else "")
        if may_be_a_record(part.names):
            listed = "a first line with numbers, which may be a record and is not shown"
        elif part.headed and not any(other in known for other in part.names):
            listed = "a first line with none of the schema's names, which may be a record and is not shown"
        raise SourceError(
            f"{part.place} has no column {name!r}; it has {listed or 'no columns'}. "
            "Name the schema's columns as the data do, or rename the column in the data"
        )
    if found > 1:
        raise SourceError(f"{part.place} has more than one column {name!r}", "keep one of them")


def _check_column(part: Part, name: str, column: Column, known: Collection[str]) -> None:
    _check_there(part, name, known)
    kind = part.kind(name)
    if column.kind == "date":
        from confide.sources.dates import check_type  # here, because schemas without dates need not load it

        check_type(part.place, name, kind, cast("Any", column))
    elif is_typed_date(kind):
        raise SourceError(
            f"{part.place}: column {name!r} has the type {kind}, and the schema says that it is {column.kind}",
            f'write {name!r}: cf.Date("1900-01-01", "2006-12-31") with its public bounds; in a file: kind = "date"',
        )
    elif not is_readable(kind):
        raise SourceError(
            f"{part.place}: column {name!r} has the type {kind}; a column holds numbers, booleans, text or dates",
            "turn it into one of them first",
        )
