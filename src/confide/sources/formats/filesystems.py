"""Files behind an Arrow file system: object stores (s3://, gs://, abfs://), hdfs://, file://, or a `pyarrow.fs.FileSystem` of the caller's.

Addresses may hold keys (s3://key:secret@bucket/...). They are handed to pyarrow and are in no message: a file is named by its path within
the file system, and a failure by fixed words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confide.errors import SourceError
from confide.sources.parts import Mark, guarded

__all__ = ["FoundFile", "RemoteMark", "files_behind", "is_address"]

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


@dataclass(frozen=True)
class FoundFile:
    """A file, and the folders between it and the folder that was asked for: those may be named key=value."""

    mark: Mark = field(repr=False)
    folders: tuple[str, ...] = field(default=(), repr=False)


def files_behind(address: str, filesystem: Any = None) -> tuple[list[FoundFile], bool]:
    """The file of an address, or all files in the folder that it is, in any depth; and whether it is a folder.

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
        return [FoundFile(_mark(filesystem, found))], False
    if found.type.name != "Directory":
        raise SourceError(
            f"there is no file {path!r} in the file system; confide.read takes .csv, .csv.gz and .parquet files, and folders"
        )
    return guarded(f"the folder {path!r} could not be listed", lambda: list(_within(filesystem, path))), True


def _from_uri(address: str) -> Any:
    from pyarrow import fs

    return fs.FileSystem.from_uri(address)


def _within(filesystem: Any, path: str) -> Iterator[FoundFile]:
    from pyarrow import fs

    root = path.rstrip("/") + "/"
    for found in sorted(filesystem.get_file_info(fs.FileSelector(path, recursive=True)), key=lambda one: one.path):
        if found.is_file:
            yield FoundFile(_mark(filesystem, found), tuple(found.path.removeprefix(root).split("/")[:-1]))


def _mark(filesystem: Any, found: Any) -> RemoteMark:
    return RemoteMark(filesystem, found.path, int(found.size), found.mtime_ns)
