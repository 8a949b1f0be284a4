"""The same records twice: found by where they come from, before anything is read of them. Each would count twice at the price of once.

What is looked at is public: files, as the file system tells them apart (links lead to one file); addresses and texts of queries; functions,
and what a function gives, as an object in memory. Copies under other names are other records to all of these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any
from weakref import ref

import pyarrow as pa

from confide.errors import SourceError

__all__ = ["Like", "Seen", "file_at", "held"]

_PLAIN = (type(None), bool, int, float, str, bytes, PurePath)


class Seen:
    """Where the records that were opened so far come from."""

    def __init__(self) -> None:
        self._places: dict[Hashable, str] = {}
        self._folders: set[tuple[str, str]] = set()

    def enter(self, filesystem: Any, folder: str) -> bool:
        """Whether a folder is looked at for the first time."""
        before = len(self._folders)
        self._folders.add((filesystem.type_name, folder))
        return len(self._folders) > before

    def add(self, origin: Hashable, place: str) -> None:
        """Raises `SourceError` for an origin that was seen before."""
        if origin not in self._places:
            self._places[origin] = place
            return
        names = " and ".join(dict.fromkeys((self._places[origin], place)))
        raise SourceError(
            f"the same records are there twice ({names}): each of them would count twice at the price of once. Give each file, table and "
            "function once; a link is the file that it leads to, and a folder stands for the files in it"
        )


@dataclass(frozen=True)
class Like:
    """Equal for what is made alike, and shows nothing of it: an address or the text of a function may hold a password.

    thing: what it is of, which is held as long as it is compared: what is let go leaves its place in memory to others.
    """

    key: Hashable = field(repr=False)
    thing: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, thing: Any) -> Like:
        """Equal for two functions that are one, or do the same with the same: so do those that a loop makes of one variable.

        >>> one, two = [lambda: week for week in (1, 2)], [lambda week=week: week for week in (1, 2)]
        >>> Like.of(one[0]) == Like.of(one[1]), Like.of(two[0]) == Like.of(two[1])
        (True, False)
        """
        return cls(_key(thing, {}), thing)


def _key(thing: Any, met: dict[int, int]) -> Hashable:
    """What a thing is made of, down to plain values; what cannot be taken apart is itself alone.

    met: by id, the functions that were taken apart so far: one may be in its own closure, and many in each other's.
    """
    if isinstance(thing, _PLAIN):
        return type(thing), thing
    if isinstance(thing, tuple):
        return tuple, tuple(_key(one, met) for one in thing)
    if id(thing) in met:
        return type(thing), met[id(thing)]
    made = _made(thing)
    if made is None:
        return type(thing), id(thing)
    met[id(thing)] = len(met)
    return type(thing), tuple(_key(one, met) for one in made)


def _made(thing: Any) -> tuple[Any, ...] | None:
    if isinstance(thing, partial):
        return thing.func, thing.args, tuple(sorted(thing.keywords.items()))
    if isinstance(thing, MethodType):
        return thing.__self__, thing.__func__
    if isinstance(thing, CodeType):
        return thing.co_code, thing.co_consts, thing.co_names, thing.co_exceptiontable
    if isinstance(thing, FunctionType):
        words = tuple(sorted((thing.__kwdefaults__ or {}).items()))
        return thing.__code__, id(thing.__globals__), thing.__defaults__, words, *map(_content, thing.__closure__ or ())
    return None


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing in it yet
        return cell


def file_at(path: str) -> Hashable:
    """Which file a path leads to, through all links; the path itself where there is none.

    >>> file_at(__file__) == file_at(f"{Path(__file__).parent}/./{Path(__file__).name}")
    True
    """
    try:
        state = Path(path).stat()
    except (OSError, ValueError):
        return path
    # some file systems number nothing
    return (state.st_dev, state.st_ino) if state.st_ino else str(Path(path).resolve())


def held(given: Any) -> Iterator[Hashable]:
    """Where what a function gave lies in memory: one object, the columns of a mapping, one stretch of Arrow's memory."""
    parts = tuple(given.values()) if isinstance(given, Mapping) else (given,)
    try:
        refs = tuple(map(ref, parts))
    except TypeError:  # lists, for one
        return
    yield _Held(refs, tuple(map(id, parts)))
    if isinstance(given, (pa.Table, pa.RecordBatch)) and (stretches := tuple(_stretches(given))):
        yield _Held(refs, stretches)


def _stretches(table: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, int, int]]:
    for column in table.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            for buffer in chunk.buffers()[1:]:
                if buffer is not None and buffer.size and len(chunk):
                    yield buffer.address, chunk.offset, len(chunk)


@dataclass(frozen=True, eq=False)
class _Held:
    """Places in memory for as long as somebody else holds what lies there: what is let go leaves its place to others."""

    refs: tuple[Any, ...] = field(repr=False)
    places: tuple[Any, ...] = field(repr=False)

    def __hash__(self) -> int:
        return hash(self.places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Held) or self.places != other.places:
            return False
        return all(one() is not None for one in (*self.refs, *other.refs))
