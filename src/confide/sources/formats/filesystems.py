"""Files behind a path, or behind an Arrow file system: object stores (s3://, gs://, abfs://), hdfs://, file://, or a
`pyarrow.fs.FileSystem` of the caller's.

Addresses may hold keys (s3://key:secret@bucket/...). They are handed to pyarrow and are in no message: a file is named by its path within
the file system, and a failure by fixed words.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confide.errors import SourceError
from confide.sources.formats.twice import file_at
from confide.sources.parts import FileMark, guarded

__all__ = ["Found", "FoundFile", "RemoteMark", "files_at", "files_behind", "is_address"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(path: object) -> bool:
    """Whether a text is an address of a file system and no path.

    >>> is_address("s3://bucket/survey"), is_address("survey.parquet")
    (True, False)
    """
    return isinstance(path, str) and _ADDRESS.match(path) is not None


@dataclass(frozen=True)
class RemoteMark:
    """Size and time of the last change of a file of a file system, taken when it was opened and compared at each pass."""

    filesystem: Any = field(repr=False)
    path: str
    size: int = field(repr=False)
    changed: int | None = field(repr=False)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def place(self) -> str:
        return repr(self.path)

    @property
    def origin(self) -> Hashable:
        """Equal for two marks of one file."""
        own = _own_path(self.filesystem, self.path)
        return _Object(self) if own is None else file_at(own)

    def open(self) -> Any:
        """A file that can be read anywhere."""
        return self.filesystem.open_input_file(self.path)

    def verify(self) -> None:
        """Raise `SourceError` when the file changed since it was looked at."""
        found = guarded(
            f"the state of {self.place} could not be read", partial(self.filesystem.get_file_info, self.path)
        )
        if not found.is_file or (found.size, found.mtime_ns) != (self.size, self.changed):
            raise SourceError(f"{self.place} changed since it was opened; open it again with confide.read(...)")


def _own_path(filesystem: Any, path: str) -> str | None:
    """The path on this machine, where the file system is its own or a view of it."""
    if filesystem.type_name == "subtree":
        return _own_path(filesystem.base_fs, filesystem.base_path + path)
    return path if filesystem.type_name == "local" else None


@dataclass(frozen=True, eq=False)
class _Object:
    """Which object of a store a mark is of.

    One path in one store, written in any way; or one key with one ETag and size in buckets of two names, as an alias of a bucket has them.
    The store is asked for ETags only where keys and sizes agree.
    """

    mark: RemoteMark = field(repr=False)

    @property
    def _path(self) -> tuple[str, ...]:
        return tuple(one for one in self.mark.path.split("/") if one not in ("", "."))

    def __hash__(self) -> int:
        return hash((self._path[1:], self.mark.size))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Object) or (self._path[1:], self.mark.size) != (other._path[1:], other.mark.size):
            return False
        one, two = self.mark, other.mark
        if self._path == other._path and (one.filesystem == two.filesystem or one.changed == two.changed):
            return True
        return (tag := _tag(one)) is not None and tag == _tag(two)


def _tag(mark: RemoteMark) -> str | None:
    """The ETag of an object, where its file system gives one."""
    found: dict[Any, Any] = {}
    with suppress(Exception), mark.open() as file:
        found = dict(file.metadata())
    with suppress(Exception):  # one of fsspec
        found |= mark.filesystem.handler.fs.info(mark.path)
    tags = {str(name).lower(): str(value) for name, value in found.items() if value}
    return tags.get("etag")


@dataclass(frozen=True)
class FoundFile:
    """A file, and the folders between it and the folder that was asked for: those may be named key=value."""

    mark: FileMark | RemoteMark = field(repr=False)
    folders: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Found:
    """What is behind a path: one file; or the Parquet files in a folder, in any depth.

    inside: the paths of all that is in the folder, None for a file. filesystem, path: where it is.
    """

    files: tuple[FoundFile, ...]
    inside: tuple[tuple[str, ...], ...] | None = field(repr=False)
    filesystem: Any = field(repr=False)
    path: str = field(repr=False)


def files_at(path: Path) -> Found:
    """The file of a path on this machine, or the Parquet files in the folder that it is, in any depth."""
    from pyarrow import fs

    alone = None if path.is_dir() else FoundFile(FileMark.of(path))
    here = fs.LocalFileSystem(), path.resolve().as_posix()
    if alone is not None:
        return Found((alone,), None, *here)
    inside = {file: file.relative_to(path).parts for file in sorted(path.rglob("*"))}
    kept = [file for file, parts in inside.items() if _is_data(parts) and file.is_file()]
    return Found(tuple(FoundFile(FileMark.of(file), inside[file][:-1]) for file in kept), tuple(inside.values()), *here)


def files_behind(address: str, filesystem: Any = None) -> Found:
    """The file of an address, or the Parquet files in the folder that it is, in any depth.

    Raises `SourceError`, without the address, for a file system that is not known or does not answer.
    """
    if filesystem is None:
        filesystem, path = guarded(
            "no file system answers to the address (it is not shown, as it may hold a key); confide.read takes those that "
            "pyarrow.fs.FileSystem.from_uri knows (s3://, gs://, abfs://, hdfs://, file://), or a path with filesystem=",
            partial(_from_uri, address),
        )
    else:
        path = address
    found = guarded(f"the file system did not say what {path!r} is", partial(filesystem.get_file_info, path))
    if found.is_file:
        return Found((FoundFile(_mark(filesystem, found)),), None, filesystem, path)
    if found.type.name != "Directory":
        raise SourceError(
            f"there is no file {path!r} in the file system; confide.read takes .csv, .csv.gz and .parquet files, and folders"
        )
    inside = guarded(f"the folder {path!r} could not be listed", lambda: dict(_within(filesystem, path)))
    kept = [parts for parts, info in inside.items() if info.is_file and _is_data(parts)]
    files = tuple(FoundFile(_mark(filesystem, inside[parts]), parts[:-1]) for parts in kept)
    return Found(files, tuple(inside), filesystem, path)


def _from_uri(address: str) -> Any:
    from pyarrow import fs

    return fs.FileSystem.from_uri(address)


def _within(filesystem: Any, path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    from pyarrow import fs

    root = path.rstrip("/") + "/"
    for found in sorted(filesystem.get_file_info(fs.FileSelector(path, recursive=True)), key=lambda one: one.path):
        yield tuple(found.path.removeprefix(root).split("/")), found


def _mark(filesystem: Any, found: Any) -> RemoteMark:
    return RemoteMark(filesystem, found.path, int(found.size), found.mtime_ns)


def _is_data(path: Sequence[str]) -> bool:
    """Whether a path within a folder is that of a Parquet file that no writer keeps to itself: those names, or their folder's, begin with
    "_" or "."."""
    return path[-1].lower().endswith(".parquet") and not any(part.startswith(("_", ".")) for part in path)
