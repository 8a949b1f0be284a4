"""Files behind a path, or behind an Arrow file system: object stores (s3://, gs://, abfs://), hdfs://, file://, or a
`pyarrow.fs.FileSystem` of the caller's.

Addresses may hold keys (s3://key:secret@bucket/...). They are handed to pyarrow and are in no message: a file is named by its path within
the file system, and a failure by fixed words.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confide.errors import SourceError
from confide.schema.layout import ENDINGS
from confide.sources.coding import FileMark, file_at, guarded

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
        own = self.own_path
        return _Object(self) if own is None else file_at(own)

    @property
    def own_path(self) -> str | None:
        """The path on this machine; None where the file system is that of another."""
        return _own_path(self.filesystem, self.path)

    def open(self) -> Any:
        """A file that can be read anywhere."""
        return self.filesystem.open_input_file(self.path)

    def verify(self) -> None:
        """Raise `SourceError` when the file changed since it was looked at."""
        found = guarded(
            f"the state of {self.place} could not be read", partial(self.filesystem.get_file_info, self.path)
        )
        if not found.is_file or (found.size, found.mtime_ns) != (self.size, self.changed):
            raise SourceError(f"{self.place} changed since it was opened", "open it again with confide.read(...)")


def _own_path(filesystem: Any, path: str) -> str | None:
    """The path on this machine, where the file system is its own, or a view or wrapper of it, by Arrow or fsspec."""
    kind = getattr(filesystem, "type_name", "")
    if kind == "local":
        return path
    if kind == "subtree":
        return _own_path(filesystem.base_fs, filesystem.base_path + path)
    inner = getattr(getattr(filesystem, "handler", filesystem), "fs", None)
    if inner is not None:
        folder = getattr(filesystem, "__dict__", {}).get("path")  # of fsspec's "dir"
        return _own_path(inner, path if folder is None else f"{folder}/{path}")
    protocol = getattr(filesystem, "protocol", ())
    is_own = "file" in ((protocol,) if isinstance(protocol, str) else protocol)
    return str(filesystem._strip_protocol(path)) if is_own else None


@dataclass(frozen=True, eq=False)
class _Object:
    """Which object of a store a mark is of.

    One path in one store, written in any way; or one key with one ETag and size in buckets of two names, as an alias of a bucket has them.
    The store is asked for ETags only where keys and sizes agree.
    """

    mark: RemoteMark = field(repr=False)

    @property
    def _path(self) -> tuple[str, ...]:
        return tuple(posixpath.normpath("/" + self.mark.path.lstrip("/")).split("/")[1:])

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
class FolderListing:
    """What is behind a path: one file; or the Parquet files in a folder, in any depth.

    inside: the paths of all that is in the folder, None for a file. filesystem, path: where it is.
    """

    files: tuple[FoundFile, ...]
    inside: tuple[tuple[str, ...], ...] | None = field(repr=False)
    filesystem: Any = field(repr=False)
    path: str = field(repr=False)

    @property
    def others(self) -> bool:
        """Whether there are files of records that no folder is read for: with them left out, a part would stand for the whole."""
        return any(_is_data(one, tuple(end for end in ENDINGS if end != ".parquet")) for one in self.inside or ())

    @property
    def folders(self) -> tuple[Any, set[str]]:
        """Where its Parquet files lie: a file system, and folders in it; through all links, where it is of this machine."""
        from pyarrow import fs

        marks = [file.mark for file in self.files if file.mark.name.lower().endswith(".parquet")]
        own = [path for mark in marks if (path := mark.own_path) is not None]
        if own or not marks:
            return fs.LocalFileSystem(), {Path(path).resolve().parent.as_posix() for path in own}
        filesystem, path = self.filesystem, self.path if self.inside is not None else posixpath.dirname(self.path)
        while filesystem.type_name == "subtree":
            filesystem, path = filesystem.base_fs, filesystem.base_path + path
        return filesystem, {path.rstrip("/")}


def files_at(path: Path) -> FolderListing:
    """The file of a path on this machine, or the Parquet files in the folder that it is, in any depth."""
    from pyarrow import fs

    if not path.is_dir():
        file = FoundFile(FileMark.of(path))
        return FolderListing((file,), None, fs.LocalFileSystem(), path.resolve().as_posix())
    inside = {file: file.relative_to(path).parts for file in sorted(path.rglob("*"))}
    kept = [file for file, parts in inside.items() if _is_data(parts) and file.is_file()]
    files = tuple(FoundFile(FileMark.of(file), inside[file][:-1]) for file in kept)
    return FolderListing(files, tuple(inside.values()), fs.LocalFileSystem(), path.resolve().as_posix())


def files_behind(address: str, filesystem: Any = None) -> FolderListing:
    """The file of an address, or the Parquet files in the folder that it is, in any depth.

    Raises `SourceError`, without the address, for a file system that is not known or does not answer.
    """
    if filesystem is None:
        filesystem, path = guarded(
            "no file system answers to the address (not shown, as it may hold a key); confide.read takes those that "
            "pyarrow.fs.FileSystem.from_uri knows (s3://, gs://, abfs://, hdfs://, file://), or a path with filesystem=",
            partial(_from_uri, address),
        )
    else:
        path = address
    found = guarded(f"the file system did not say what {path!r} is", partial(filesystem.get_file_info, path))
    if found.is_file:
        return FolderListing((FoundFile(_mark(filesystem, found)),), None, filesystem, path)
    if found.type.name != "Directory":
        raise SourceError(
            f"there is no file {path!r} in the file system; confide.read takes .csv, .csv.gz and .parquet files, and folders"
        )
    inside = guarded(f"the folder {path!r} could not be listed", lambda: dict(_within(filesystem, path)))
    kept = [parts for parts, info in inside.items() if info.is_file and _is_data(parts)]
    files = tuple(FoundFile(_mark(filesystem, inside[parts]), parts[:-1]) for parts in kept)
    return FolderListing(files, tuple(inside), filesystem, path)


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


def _is_data(path: Sequence[str], endings: tuple[str, ...] = (".parquet",)) -> bool:
    """Whether a path within a folder is that of a file with this ending that no writer keeps to itself: those names, or
    their folder's, begin with "_" or ".".
    """
    return path[-1].lower().endswith(endings) and not any(part.startswith(("_", ".")) for part in path)
