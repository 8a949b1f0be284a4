"""What a source for one draw needs of the records behind it: passes over them, and where codes may be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from confide.protocol import Source, Statistic
from confide.schema import Schema
from confide.sources.aggregation import Codes, Input
from confide.sources.parts import Part

__all__ = ["Passes"]


class Passes(Source, Protocol):
    """A source that can be asked for single passes (`RecordSource`). Inside this room alone."""

    @property
    def schema(self) -> Schema: ...
    @property
    def _parts(self) -> tuple[Part, ...]: ...
    @property
    def _threads(self) -> int: ...
    @property
    def _memory(self) -> int: ...
    @property
    def _spool(self) -> str | None: ...
    def _aggregate(
        self, statistics: Sequence[Statistic], rows: tuple[str, ...], kept: Callable[[Codes], None] | None = None
    ) -> tuple[NDArray[Any], ...]: ...
    def _pass(self, records: Input, statistics: Sequence[Statistic]) -> tuple[NDArray[Any], ...]: ...
