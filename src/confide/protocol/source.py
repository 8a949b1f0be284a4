"""Where records are, as the rest of the house may see it: exact sums, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, cast

from numpy.typing import NDArray

from confide.protocol.statistic import Statistic

if TYPE_CHECKING:
    from confide.protocol.plan import Plan

__all__ = ["Source", "for_one_draw"]


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


def for_one_draw(source: Source, plan: Plan) -> AbstractContextManager[Source]:
    """What a plan's draw reads: where it reads the records more than once, a source that codes them once (`RecordSource.kept`).

    Asked of the class, so that a source that stands before another one, to watch it, is asked for every pass itself.
    """
    keep = getattr(type(source), "kept", None)
    if keep is None or plan.passes < 2:
        return nullcontext(source)
    rows = dict.fromkeys(row for statistic in plan.statistics.values() for row in statistic.map.columns)
    return cast("AbstractContextManager[Source]", keep(source, tuple(rows)))
