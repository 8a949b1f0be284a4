"""Where records are, as the rest of the house may see it: exact sums, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from confide.protocol.statistic import Statistic

__all__ = ["Behind", "Source", "Through"]


class Source(Protocol):
    """A stream of records behind the schema's coding.

    `aggregate` runs one pass and returns one array of exact integers for each statistic. `count` is for the gate alone, and
    there only under "substitute", where n is public. `check` raises on public facts only: a column that is not there, a
    physical type that no column can have, a file that cannot be opened.
    """

    @property
    def schema(self) -> Any: ...
    @property
    def dataset(self) -> str | None: ...
    @property
    def rereadable(self) -> bool: ...
    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]: ...
    def count(self) -> int: ...
    def check(self, columns: Sequence[str]) -> None: ...


class Behind:
    """A source in front of another one, which answers all that is not said otherwise."""

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
