"""Folders named key=value: a file's records have these values in columns of those names, as Hive, Spark, DuckDB and Arrow write them.

A value is text, read by the schema's rules as the text of a CSV file is. Which values there are may tell about the records, and an id's
folder is named by the id: so messages name the folder that was asked for, and never those within it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from confide.sources.parts import Block, Part, Piece, guarded
from confide.sources.physical import Coded

__all__ = ["FolderPart", "is_key"]

_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def is_key(folder: str) -> bool:
    """Whether a folder's name is a key and its value.

    >>> is_key("year=2020"), is_key("2020"), is_key("=2020")
    (True, False, False)
    """
    key, sign, _ = folder.partition("=")
    return bool(key and sign)


def _keys_of(folders: Sequence[str]) -> dict[str, str | None]:
    """The keys in the names of folders, from the outermost in; None where there is no value.

    >>> _keys_of(("year=2020", "old", "region=N%20W"))
    {'year': '2020', 'region': 'N W'}
    """
    pairs = (folder.partition("=") for folder in folders if is_key(folder))
    return {unquote(key): None if value == _NOTHING else unquote(value) for key, _, value in pairs}


@dataclass(frozen=True)
class FolderPart(Part):
    """A file in folders within the one that was asked for, with the columns that their names give; a column of the file itself goes before
    one of the same name."""

    part: Part = field(repr=False)
    keys: Mapping[str, str | None] = field(repr=False)
    place: str

    @classmethod
    def of(cls, part: Part, folders: Sequence[str], place: str) -> FolderPart:
        """folders: their names, from the outermost in; place: how messages call the file, without them."""
        return cls(part, {key: value for key, value in _keys_of(folders).items() if key not in part.names}, place)

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
    def names(self) -> tuple[str, ...]:
        return (*self.part.names, *self.keys)

    def kind(self, name: str) -> Any:
        return pa.string() if name in self.keys else self.part.kind(name)

    def verify(self) -> None:
        guarded(f"{self.place} changed since it was opened; open it again with confide.read(...)", self.part.verify)

    def count(self) -> int:
        return self.part.count()

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        asked = tuple(name for name in names if name not in self.keys)
        for piece in self.part.pieces(asked):
            yield replace(piece, place=self.place, blocks=partial(self._blocks, piece, tuple(names)))

    def _blocks(self, piece: Piece, names: tuple[str, ...], rows: int) -> Iterator[Block]:
        cells = {key: pa.array([value], pa.string()) for key, value in self.keys.items()}
        for block in piece.blocks(rows):
            own = iter(block.columns)
            yield Block(
                block.rows,
                [Coded(np.zeros(block.rows, np.int8), cells[name]) if name in cells else next(own) for name in names],
            )
