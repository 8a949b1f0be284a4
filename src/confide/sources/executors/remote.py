"""A source whose records are on workers: each pass sends the work there, and states of integers come back.

Exactly one document for each portion counts, no matter who sends two. Where one is missing, two differ, workers round
differently or the records are not those of an earlier pass, the pass is an error with a fixed sentence, after the
charge. Nothing is ever added twice or omitted.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from numpy.typing import NDArray

from confide.core import Statistic
from confide.core.statistic import WrappedSource
from confide.core.units.privacy_unit import UNIT_ROW, WHOLE_ROW
from confide.errors import SourceError
from confide.sources.aggregation import Codes, named_rows
from confide.sources.code_cache import Passes, renamed
from confide.sources.coding import Part, guarded
from confide.sources.executors.worker import FAILED, Work, check_states, state_from_plain
from confide.sources.formats.tables import Table
from confide.sources.grouping.ids import HashedGroups
from confide.sources.grouping.sampling import Keep
from confide.sources.grouping.units import NOT_KEPT, of_kept_rows, rows_of

if TYPE_CHECKING:
    from confide.sources.executors.kept import Keeping
    from confide.sources.executors.worker import Change, Coding


T = TypeVar("T")

_NOTHING = Table("table without records", (), {}, 0)


class Executor(Protocol):
    """Where passes run. `records` is a separate handle on what workers hold or can read; no record comes back through it."""

    name: str

    def takes(self, part: Part) -> bool:
        """Whether its workers can read a part of this kind."""
        ...

    def placed(self, parts: Sequence[Part]) -> Any:
        """A handle on the records of parts, which workers read at each pass."""
        ...

    def size(self, records: Any) -> int | None:
        """How many portions there are; None where the engine vouches that each is there."""
        ...

    def run(self, records: Any, work: Work) -> Iterable[str]:
        """The documents of `work(label, portion)` for each portion, in any order."""
        ...

    def kept(self, records: Any, keeping: Keeping) -> Any:
        """A handle on the same records, whose codes workers keep from the first pass over it on, until it is dropped."""
        ...

    def grouped(self, records: Any, coding: Coding, rule: Keep) -> Any:
        """A handle on the same records, coded by `coding`, with all rows of one canonical id of its column in one portion and bounded by
        `rule`: each portion's codes have the further row `UNIT_ROW`. Without a column each record is a unit and stays where it is."""
        ...

    def dropped(self, records: Any) -> None:
        """Workers forget what they hold for a handle."""
        ...


class RemoteSource(WrappedSource):
    """A source for one release, whose passes run on workers. Made by `RecordSource.opened` or `bounded`, closed by it.

    It is private: it hands records to no one, cannot be pickled, and shows nothing.
    """

    rereadable = True
    _source: Passes

    def __init__(
        self, source: Passes, executor: Executor, rule: Keep | None = None, *, in_clusters: bool = True
    ) -> None:
        """`rule`: by which units are bounded, and its key tells clusters apart; None for the records as they are.
        `in_clusters`: whether units are those that name a cluster, where the schema has them.
        """
        super().__init__(source)
        self._executor, self._rule, self._in_clusters = executor, rule, in_clusters
        self._seed = secrets.randbits(64)
        self._rows: tuple[str, ...] = ()
        self._wanted: tuple[str, ...] = ()
        self._other: RemoteSource | None = None
        self._keeping: Keeping | None = None
        self._names: tuple[str, ...] = ()
        self._changes: tuple[Change, ...] = ()
        self._records: Any = None
        self._kept: Any = None
        self._number: int | None = None
        self._digests: dict[tuple[str, ...], int] = {}

    def __repr__(self) -> str:
        return repr(self._source)

    def __reduce__(self) -> NoReturn:
        raise TypeError("records do not leave the workers that read them: a source of one release is not pickled")

    def check_statistics(self, statistics: Sequence[Statistic]) -> None:
        """Raise `SourceError` where a statistic is not a sum of integers or no worker answers, before anything is
        charged.

        The workers are asked for one pass over no records: it goes the way of all passes.
        """
        check_states(statistics, self._executor.name)
        records = self._asked(partial(self._executor.placed, [_NOTHING]))
        try:
            self._merged(records, Work(self.schema, (), (), self._seed))
        finally:
            self._forgotten(records)

    @contextmanager
    def kept(self, rows: Sequence[str], once: Collection[str] = ()) -> Iterator[WrappedSource]:
        """For one draw of several passes over these rows of codes, which workers keep meanwhile (`executors.kept`).

        A pass that meets other records than the first is an error. Of units these rows alone are on the workers.
        """
        from confide.sources.executors.kept import Keeping

        if self._rows:  # a draw within this one: what is kept for this one stays as it is
            yield WrappedSource(self)
            return
        self._rows = self._wanted = self._names = tuple(dict.fromkeys(rows))
        if self._rule is None and self._rows:
            memory, folder = self._source._memory, self._source._spool
            self._keeping = Keeping(secrets.token_hex(16), self._rows, self.schema, self._seed, memory, folder)
        try:
            yield self
        finally:
            self._rows = self._names = self._changes = ()
            self._keeping = None
            self._forget_kept()

    def coded_again(self, rows: Mapping[str, str], code: Callable[[str, Codes], Codes]) -> bool:
        """As `Source.coded_again`: workers change what they keep in the next pass, and a worker that codes again changes that too."""
        from confide.sources.executors.worker import Change

        names = renamed(self._names, rows)
        if self._keeping is None or names is None:
            return False
        self._changes, self._names = (*self._changes, Change(tuple(rows.items()), code)), names
        return True

    def count(self) -> int:
        """The exact number of records, of ids under a unit. For the gate alone, and there only under substitution."""
        if self._rule is None:
            self._summed((), self.schema.names[:1])
            return self._number or 0
        if self._grouping[0].column is None:
            with closing(RemoteSource(self._source, self._executor)) as records:
                return records.count()
        from confide.sources.executors.worker import Ids

        if self._grouping[0].groups is not None:
            # units that name no cluster have no rows there, and are units all the same
            with closing(RemoteSource(self._source, self._executor, self._rule, in_clusters=False)) as units:
                return units.count()
        (ids,) = self._summed((Ids(),))
        return int(ids[0])

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """As `RecordSource.aggregate`, to the bit."""
        check_states(statistics, self._executor.name)
        self._source.check(named_rows(statistics))
        own = statistics if self._rule is None else of_kept_rows(statistics, self._rule)
        if self._rule is not None and not set(named_rows(own)) <= {*self._grouping[0].rows, UNIT_ROW, WHOLE_ROW}:
            if not self._wanted:
                raise SourceError(NOT_KEPT)
            # of a draw within this one, until this one ends
            self._other = self._other or RemoteSource(self._source, self._executor, self._rule)
            self._other._number = self._number
            return self._other.aggregate(*statistics)
        sums = self._summed(own)
        self._source.check(())
        return sums

    def close(self) -> None:
        self._forget_kept()
        if self._other is not None:
            self._other.close()
        if self._records is not None:
            self._forgotten(self._records)

    def _forget_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            self._forgotten(kept)

    def _forgotten(self, records: Any) -> None:
        guarded(f"{self._executor.name} could not forget the records", partial(self._executor.dropped, records))

    def _summed(self, statistics: Sequence[Statistic], asked: Sequence[str] = ()) -> tuple[NDArray[Any], ...]:
        asked = tuple(dict.fromkeys((*asked, *named_rows(statistics))))
        if self._keeping is not None and set(asked) <= set(self._names):
            # of the codes as they were read, whatever they were changed to
            rows = self._keeping.rows
            records = self._asked(partial(self._held, self._keeping))
            work = Work(self.schema, self._names, tuple(statistics), self._seed, self._changes)
        else:
            rows = tuple(dict.fromkeys((*self._rows, *asked)))
            if self._rule is not None:
                rows = (*self._grouping[0].rows, UNIT_ROW, *([] if self._rule.first is None else [WHOLE_ROW]))
            records = self._asked(self._placed)
            work = Work(self.schema, rows, tuple(statistics), self._seed)
        number, digest, sums = self._merged(records, work)
        if self._number not in (None, number) or self._digests.setdefault(rows, digest) != digest:
            raise SourceError(
                "the records changed between two passes of this release", "read them from where they stay as they are"
            )
        self._number = number
        return sums

    def _asked(self, action: Callable[[], T]) -> T:
        """What the engine gives; what it says of a failure is not told."""
        name = self._executor.name
        return guarded(
            f"the records could not be added up on {name}: workers, or the connection to them, were lost", action
        )

    def _merged(self, records: Any, work: Work) -> tuple[int, int, tuple[NDArray[Any], ...]]:
        documents = iter(self._asked(partial(self._executor.run, records, work)))
        each = iter(lambda: self._asked(partial(next, documents, None)), None)
        size = self._asked(partial(self._executor.size, records))
        return merged(each, work.statistics, size)

    def _held(self, keeping: Keeping) -> Any:
        if self._kept is None:
            self._kept = self._executor.kept(self._placed(), keeping)
        return self._kept

    def _placed(self) -> Any:
        if self._records is None:
            records = self._executor.placed(self._source._parts)
            if self._rule is not None:
                records = self._executor.grouped(records, *self._grouping)
            self._records = records
        return self._records

    @cached_property
    def _grouping(self) -> tuple[Coding, Keep]:
        """How workers code the records of units, and what they keep of each."""
        from confide.sources.executors.worker import Coding

        schema, rule = self.schema, self._rule
        assert rule is not None
        coded, words = rows_of(schema, rule, self._wanted or None)
        named = schema.cluster is not None and self._in_clusters
        groups = HashedGroups(schema.cluster.column, rule.key) if named else None
        return Coding(schema, groups, coded), replace(rule, words=words, groups=groups)


def _read(text: str) -> dict[str, Any] | None:
    """The checked part of what a worker sent; None where it says that it failed, whatever it says of that."""
    one: dict[str, Any] = json.loads(text)
    if "failed" in one:
        return None
    if not all(type(one[name]) is int for name in ("part", "records", "digest")) or type(one["machine"]) is not str:
        raise ValueError
    return {**one, "states": list(one["states"])}


def merged(
    documents: Iterable[str], statistics: Sequence[Statistic], portions: int | None
) -> tuple[int, int, tuple[NDArray[Any], ...]]:
    """Number of records, their digest, and the sums of the documents of all portions, each of which counts once."""
    seen: dict[int, bytes] = {}
    machines: set[str] = set()
    records = digest = 0
    states = [one.zero() for one in statistics]
    for text in documents:
        one = guarded("what a worker sent could not be put together", partial(_read, text))
        if one is None:
            raise SourceError(FAILED)
        own = hashlib.sha256(text.encode()).digest()
        if one["part"] in seen:
            if seen[one["part"]] == own:
                continue
            raise SourceError(
                "two runs of one task gave different sums", "read the records from where they stay as they are"
            )
        seen[one["part"]] = own
        machines.add(one["machine"])
        if len(one["states"]) != len(statistics):
            raise SourceError("a worker sent something that is not a state of these statistics")
        records, digest = records + one["records"], (digest + one["digest"]) % (1 << 64)
        states = [
            exact.merge(state, state_from_plain(exact.zero(), data))
            for exact, state, data in zip(statistics, states, one["states"], strict=True)
        ]
    if portions is not None and sorted(seen) != list(range(portions)):
        raise SourceError("what some tasks of this pass gave is missing; nothing is released without it")
    if len(machines) > 1:
        raise SourceError(
            "the workers are of different kinds or have different versions of numpy or confide", "use equal ones"
        )
    return records, digest, tuple(exact.value(state) for exact, state in zip(statistics, states, strict=True))
