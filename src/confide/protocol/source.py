"""Where records are, as the rest of the house may see it: exact sums, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from confide.protocol.statistic import Statistic

__all__ = ["Source"]


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
