"""Columns under the schema's names where the file has others: `in_file` of a column."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from confide.errors import SourceError
from confide.sources.coding import Part, Piece


@dataclass(frozen=True)
class PartAround(Part):
    """A part with other columns than the one in it, which says all else."""

    part: Part = field(repr=False)

    @property
    def place(self) -> str:
        return self.part.place

    @property
    def type(self) -> str:
        return self.part.type

    @property
    def rereadable(self) -> bool:
        return self.part.rereadable

    @property
    def file(self) -> Hashable:
        return self.part.file

    @property
    def travels(self) -> bool:
        return self.part.travels

    @property
    def groups(self) -> int | None:
        return self.part.groups

    @property
    def headed(self) -> bool:
        return self.part.headed

    def verify(self) -> None:
        self.part.verify()

    def count(self) -> int:
        return self.part.count()

    def session(self) -> AbstractContextManager[None]:
        return self.part.session()

    def close(self) -> None:
        self.part.close()

    def watched(self, saw: Callable[[int, int], None]) -> Part:
        return replace(self, part=self.part.watched(saw))


@dataclass(frozen=True)
class RenamedPart(PartAround):
    """A part whose columns have the schema's names. `in_file`: the name in the file of each that has another there."""

    in_file: Mapping[str, str]

    @classmethod
    def of(cls, part: Part, in_file: Mapping[str, str]) -> Part:
        """The part itself where its columns have their names in the schema, as those of a frame may have."""
        there = {name: other for name, other in in_file.items() if other in part.names}
        if there and part.type == "Spark DataFrame":
            raise SourceError(
                f"{part.place} has a column for in_file", "rename it there: its workers read the frame as it is"
            )
        return cls(part, there) if there else part

    @property
    def names(self) -> tuple[str, ...]:
        back = {there: name for name, there in self.in_file.items()}
        # a column of the file that has the name of one that is read from another is not the schema's
        return tuple(back.get(name, name) for name in self.part.names if name in back or name not in self.in_file)

    def kind(self, name: str) -> Any:
        return self.part.kind(self._there(name))

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        return self.part.pieces([self._there(name) for name in names])

    def _there(self, name: str) -> str:
        return self.in_file.get(name, name)
