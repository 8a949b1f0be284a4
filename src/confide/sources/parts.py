"""Where records come from, piece by piece: what every kind of input gives to the aggregation.

An input is a list of parts (one table, or several files); a part is cut into pieces that threads take one after the
other; a piece streams blocks of rows. Nothing that leaves this room quotes a record: see `guarded`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from confide.errors import SourceError
from confide.sources.physical import Cells, sliced

__all__ = ["Block", "FileMark", "Mark", "Part", "Piece", "cut", "file_at", "guarded", "of_simulated"]

T = TypeVar("T")

# what a reader must never swallow
_PASSING = (KeyboardInterrupt, SystemExit, GeneratorExit)


class Block(NamedTuple):
    """Some records: their number, and their cells in the columns that were asked for, in that order."""

    rows: int
    columns: list[Cells]

    def __repr__(self) -> str:
        return "Block"


@dataclass(frozen=True)
class Piece:
    """A stretch of records that one thread reads: `blocks(rows)` streams it with at most `rows` rows at a time."""

    place: str
    blocks: Callable[[int], Iterator[Block]] = field(repr=False)


class Part(Protocol):
    """Base of tables and files. `place` names one in messages, `type` in `repr`; `names` are all its columns, in order."""

    if TYPE_CHECKING:  # what each part has, as attributes or methods of its own

        @property
        def place(self) -> str: ...
        @property
        def type(self) -> str: ...
        @property
        def names(self) -> tuple[str, ...]: ...
        @property
        def rereadable(self) -> bool: ...
        @property
        def file(self) -> Hashable:
            """Which file it is read from, as `file_at` has it; what no file is for all else."""
            ...

        def kind(self, name: str) -> Any:
            """The physical type of a column: a NumPy dtype, a pyarrow type, or the name of another; from metadata."""
            ...

        def verify(self) -> None:
            """Raise `SourceError` when the file is no longer the one that was opened."""
            ...

        def pieces(self, names: Sequence[str]) -> Iterator[Piece]: ...
        def count(self) -> int: ...

    @property
    def travels(self) -> bool:
        """Whether workers elsewhere can read it by themselves. Override where they can."""
        return False

    @property
    def groups(self) -> int | None:
        """How many pieces it has, for workers that take some each. Override where they are known and many."""
        return None

    def session(self) -> AbstractContextManager[None]:
        """For one release, with a new look at names and types before the charge. Override where it is asked again for each pass."""
        return nullcontext()

    def close(self) -> None:
        """Let go of what reading holds. Override where something is open."""
        return


class Mark(Protocol):
    """A file as it was when it was opened: where it is, and whether it is still the same."""

    @property
    def name(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def origin(self) -> Hashable: ...
    def open(self) -> Any: ...
    def verify(self) -> None: ...


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


# As a Path it has one slash of the two. It is not repeated, because it may hold a password.
_ADDRESS = re.compile(r"[a-z][a-z0-9+]+:/+[^/]", re.IGNORECASE)


@dataclass(frozen=True)
class FileMark:
    """Size, time of the last change and inode of a file, taken when it was opened and compared at each pass."""

    path: Path
    size: int = field(repr=False)
    changed: int = field(repr=False)
    inode: tuple[int, int] = field(repr=False)

    @classmethod
    def of(cls, path: Path) -> FileMark:
        """Raises `SourceError` when there is no such file, or when it is no regular one."""
        if _ADDRESS.match(str(path)):
            raise SourceError(
                "an address is no file; a database is read in Python, by cf.read(cf.sql(address, 'select ...'), schema)"
            )
        if not path.exists():
            raise SourceError(
                f"there is no file {str(path)!r}; confide.read takes the path of a .csv, .csv.gz or .parquet file"
            )
        if not path.is_file():
            raise SourceError(f"{str(path)!r} is not a file; confide.read takes .csv, .csv.gz and .parquet files")
        state = guarded(f"the state of {str(path)!r} could not be read", path.stat)
        return cls(path, state.st_size, state.st_mtime_ns, (state.st_dev, state.st_ino))

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def place(self) -> str:
        return repr(str(self.path))

    @property
    def origin(self) -> Hashable:
        """Equal for two marks of one file, whatever links lead to it."""
        return file_at(str(self.path))

    @property
    def own_path(self) -> str:
        """The path on this machine."""
        return str(self.path)

    def open(self) -> Any:
        """A file that can be read anywhere."""
        return pa.OSFile(str(self.path))

    def __reduce__(self) -> Any:
        # workers may be elsewhere in the file system
        return FileMark, (self.path.absolute(), self.size, self.changed, self.inode)

    def verify(self) -> None:
        """Raise `SourceError` when the file changed since `of`."""
        if not self.path.is_file() or FileMark.of(self.path) != self:
            raise SourceError(f"{str(self.path)!r} changed since it was opened; open it again with confide.read(...)")


def cut(block: Block, rows: int) -> Iterator[Block]:
    """The same records in blocks of at most `rows`."""
    if 0 < block.rows <= rows:
        yield block
        return
    for start in range(0, block.rows, rows):
        stop = min(start + rows, block.rows)
        yield Block(stop - start, [sliced(cells, start, stop) for cells in block.columns])


# Within `of_simulated` of this thread: what readers say may be told, because the cells are made.
_SIMULATED = ContextVar("simulated rows are read", default=False)


@contextmanager
def of_simulated() -> Iterator[None]:
    """What is read within is simulated rows, by this thread: `guarded` lets errors through as they are."""
    token = _SIMULATED.set(True)
    try:
        yield
    finally:
        _SIMULATED.reset(token)


def guarded(message: str, action: Callable[[], T]) -> T:
    """The result of `action`; whatever it raises becomes `SourceError(message)`, but where simulated rows are read (`of_simulated`).

    Readers quote cells, row numbers and counts in their errors, so neither the text nor the chain of the original may
    stay.

    >>> guarded("'survey.csv' could not be read", lambda: float("a cell"))
    Traceback (most recent call last):
    confide.errors.SourceError: 'survey.csv' could not be read
    """
    try:
        return action()
    except _PASSING:
        raise
    except BaseException:  # a panic of polars is no Exception
        if _SIMULATED.get():
            raise
    # raised here and not above: an error raised while handling another carries it along
    raise SourceError(message)
