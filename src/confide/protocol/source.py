"""Where records are, as the rest of the house may see it: exact sums, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from confide.errors import SourceError
from confide.protocol.statistic import Statistic

__all__ = ["Behind", "Source", "Through"]


class Source(Protocol):
    """Base of streams of records behind the schema's coding.

    `aggregate` runs one pass and returns one array of exact integers for each statistic. `count` is for the gate alone, and
    there only under "substitute", where n is public. `check` raises on public facts only: a column that is not there, a
    physical type that no column can have, a file that cannot be opened.
    """

    if TYPE_CHECKING:  # what each source has, as attributes or methods of its own

        @property
        def schema(self) -> Any: ...
        @property
        def dataset(self) -> str | None: ...
        @property
        def rereadable(self) -> bool: ...
        def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]: ...
        def count(self) -> int: ...
        def check(self, columns: Sequence[str]) -> None: ...

    def check_statistics(self, statistics: Sequence[Statistic]) -> None:
        """Raise `SourceError` for statistics that it cannot add up, before anything is charged. Override where it adds up some alone."""
        return

    def opened(self) -> AbstractContextManager[Source]:
        """What one release reads. Override where something must be opened for it: a snapshot of a database, the workers' records."""
        return nullcontext(self)

    def bounded(self, key: bytes | None = None, *, whole: bool = False) -> AbstractContextManager[Source]:
        """The records of the schema's enforced unit for one release, at most so many rows of each as it allows. Override where it can.

        key: by which the rows that count are chosen; whole: all rows of a unit are there, for statistics that weigh them.
        """
        raise SourceError(
            f"the schema protects {self.schema.unit.column!r}, and a {type(self).__name__} cannot bound its rows; "
            "read the records with cf.read(data, schema)"
        )

    def kept(self, rows: Sequence[str]) -> AbstractContextManager[Source]:
        """The records for one draw of several passes over these rows of codes. Override where coding them once is quicker."""
        return nullcontext(self)


class Behind(Source):
    """A source in front of another one, which answers all that is not said otherwise; it sees every pass, since nothing is kept for it."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def schema(self) -> Any:
        return self._source.schema

    @property
    def dataset(self) -> str | None:
        return self._source.dataset

    @property
    def rereadable(self) -> bool:
        return self._source.rereadable

    def check(self, columns: Sequence[str]) -> None:
        """As the source behind it."""
        self._source.check(columns)

    def count(self) -> int:
        """As the source behind it: for the gate alone."""
        return self._source.count()

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """As the source behind it."""
        return self._source.aggregate(*statistics)


class Through(Behind):
    """A source whose sums are of other statistics than were asked for. of: the one that stands for each."""

    def __init__(self, source: Source, of: Callable[[Statistic], Statistic]) -> None:
        super().__init__(source)
        self._of = of

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        return self._source.aggregate(*map(self._of, statistics))
