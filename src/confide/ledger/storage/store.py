"""Under a ledger: transactions on a database. Only the back ends (`sqlite.py`, `postgres.py`) know their drivers.

What the database reports, in words for the steward: busy, read-only, full or damaged, and what to do.

What a fork does to open stores: no connection of the parent is ever used, or closed, by a child.

A fork waits for running transactions (up to the store's timeout), so that it finds only idle connections; each back
end says what becomes of those.

Room for a receipt, taken before its charge is on disk: a full disk refuses the charge, and never the receipt alone.
"""

# Some hooks have nothing to do in one of the back ends.
# ruff: noqa: B027
from __future__ import annotations

import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

from confide.errors import ConfideError, LedgerBusy, PlanError


class Connection(Protocol):
    """A connection of either driver. A statement has a ? for each value, and its cursor gives rows as tuples.

    for_update: the end of a SELECT that locks the row it finds. stream: as execute, for more rows than memory holds.
    """

    for_update: str

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Any: ...
    def executemany(self, statement: str, many: Iterable[Sequence[Any]], /) -> Any: ...
    def stream(self, statement: str, values: Sequence[Any] = ..., /) -> Iterable[Any]: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


_ZEROS = bytes(65_536)
_IDLE = 8  # connections that stay open between two transactions, at most


# The stores of this process, for the fork hooks alone: a fork concerns all of them and asks none. The lock is held
# from before a fork until after it, in the parent and in the child.
_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_fork_lock = threading.Lock()


def _before() -> None:
    _fork_lock.acquire()
    for store in list(_stores):
        store.before_fork()


def _in_parent() -> None:
    for store in list(_stores):
        store.after_fork_in_parent()
    _fork_lock.release()


def _in_child() -> None:
    for store in list(_stores):
        store.after_fork_in_child()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


class Room:
    """Bytes of a folder's disk that nobody else can take: a file without a name, which the system frees when the process ends.

    folder: beside the ledger; start: they lie behind a hole of so many bytes, which takes no room, so that a limit on the size of files
    refuses here as well; opening, size: how many are given back before the receipt's lock, for what opening the ledger anew takes, and how
    many under it. Raises `OSError` where they cannot be had. A room that is dropped is given back.
    """

    def __init__(self, folder: Path, start: int, size: int, opening: int) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (held until the receipt)
        self._under = start + size
        self._file.seek(start)
        left = size + opening
        while left:
            # written and not allocated alone, as every system and every file system has it; a full disk writes less, then nothing
            left -= self._file.write(_ZEROS[:left]) or 0

    def give_back(self, *, locked: bool) -> None:
        """Free bytes now, although a forked child may hold the file as well; locked: the rest, too."""
        with suppress(OSError, ValueError):  # closed: given back before, and the receipt is refused
            self._file.truncate(0 if locked else self._under)
        if locked:
            self._file.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # no file could be made
            self._file.close()


class Store(ABC):
    """Transactions on one database; safe for threads, processes and forks.

    name: where the ledger is, as `Ledger.open` takes it, without a password.
    timeout: seconds to wait for a lock. A connection serves one thread at a time and belongs to one process.
    """

    _READ: ClassVar[str]  # how a transaction begins that sees one moment, and one that writes
    _WRITE: ClassVar[str]
    _ERROR: ClassVar[type[Exception]]  # the driver's errors, and the one of a rule of the tables
    _CONFLICT: ClassVar[type[Exception]]
    _kept_from_children: ClassVar[list[Connection]] = []

    def __init__(self, name: str, timeout: float) -> None:
        self.name, self.timeout = name, timeout
        self._idle: list[Connection] = []
        self._opened = 0  # how often all connections were given up; one from before is not used again
        # A store that is dropped closes its connections at once: one left to the garbage collector could see a fork.
        weakref.finalize(self, _close_all, self._idle)
        self._begin_afresh()
        with _fork_lock:
            _stores.add(self)

    @property
    @abstractmethod
    def path(self) -> Path:
        """The file, absolute; `PlanError` when the ledger is on a server."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view, without a lock that keeps anybody from writing."""
        with self._transaction(self._READ) as connection:
            yield connection

    @contextmanager
    def writing(self, *, creating: bool = False) -> Iterator[Connection]:
        """One durable transaction; leaving the block commits.

        Who writes to a dataset locks its row of `budget` by its first statement (`rows.locked_account`), and reads
        after that alone. creating: whoever adds tables or a dataset, which has no row yet, excludes all others who do.
        """
        with self._transaction(self._WRITE) as connection:
            self._prepare(connection, creating)
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        """begin: its first statement; "" for what a database refuses inside a transaction."""
        committing = False
        with self._entered() as opened:
            try:
                connection = self._begun(begin)
                try:
                    yield connection
                    if begin == self._WRITE:
                        self._check_still_open(connection)
                        committing = True
                    self._commit(connection)
                except BaseException:
                    # Closing rolls back whatever it still holds: nothing else does after a COMMIT that failed.
                    connection.close()
                    raise
            except self._ERROR as error:
                raise self._explained(error, committing) from None
            with self._changed:
                if opened == self._opened and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                else:
                    connection.close()

    def _begun(self, begin: str) -> Connection:
        """A connection in a new transaction."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            if begin:
                connection.execute(begin)
        except BaseException:
            connection.close()
            raise
        return connection

    def _commit(self, connection: Connection) -> None:
        connection.commit()

    def room(self, size: int) -> Room | None:
        """The room that a receipt will need, taken before its charge is committed; None on a server, whose disk is its own.

        size: bytes of text in an entry. Raises `LedgerBusy` where there is none.
        """
        return None

    @abstractmethod
    def create(self) -> None:
        """Make the ledger's place and its tables unless they are there; `PlanError` when it is something else."""

    @abstractmethod
    def check(self) -> None:
        """Refuse what is no ledger, or one of another version: `PlanError`. Warn of a place that is not safe."""

    @abstractmethod
    def integrity(self) -> list[str]:
        """What the database itself finds wrong with its file; empty when nothing is."""

    @abstractmethod
    def copy_to(self, target: Path) -> None:
        """A consistent copy in one new file, where the database can make one."""

    @abstractmethod
    def has_table(self, connection: Connection, table: str) -> bool:
        """Whether there is a table of that name."""

    def close(self) -> None:
        """Close idle connections; the next transaction opens a new one."""
        with self._changed:
            self._give_up()

    def _give_up(self) -> None:
        self._opened += 1
        _close_all(self._idle)

    @abstractmethod
    def _open(self) -> Connection:
        """A new connection, which commits each statement on its own until a transaction begins."""

    @abstractmethod
    def _reason(self, error: Exception) -> tuple[str | None, bool]:
        """The words for a driver's error, or None when the state will not pass; and whether a COMMIT that failed so has certainly
        left nothing behind.
        """

    def _explained(self, error: Exception, committing: bool) -> ConfideError:
        """A driver's error as `LedgerBusy` (locked, read-only, full, gone) or `PlanError` (damaged, no ledger)."""
        if isinstance(error, self._CONFLICT):
            return PlanError(
                f"{self.name}: a second entry claims the same place in the chain, so the lock did not hold (a network disk?); "
                "nothing was written",
                "keep the ledger on a local disk or on a server, and run ledger.verify()",
            )
        reason, undone = self._reason(error)
        if reason is None:
            return PlanError(
                f"{self.name}: not a ledger, or damaged ({error})",
                "restore it from a backup, or give the place of a ledger",
            )
        state = (
            "it failed while writing: take it as charged if ledger.show() lists it; nothing was released"
            if committing and not undone
            else "nothing was charged"
        )
        return LedgerBusy(f"{self.name} {reason}", state)

    def _prepare(self, connection: Connection, creating: bool) -> None:
        """What a writing transaction does first."""

    def _check_still_open(self, connection: Connection) -> None:
        """Raise when a COMMIT would quietly undo what was written."""

    def _same_place(self) -> None:
        """Raise, or connect anew, when what the open connections lead to is not the ledger any more."""

    @contextmanager
    def _entered(self) -> Iterator[int]:
        """Count this thread as inside, so that a fork waits for it; the place and the process must be the same still."""
        with self._changed:
            if os.getpid() != self._pid:
                raise LedgerBusy(
                    f"{self.name}: this process was forked, behind Python's back, while the ledger was open; its "
                    "connections are the parent's; nothing was charged",
                    "start processes with os.fork, multiprocessing or subprocess",
                )
            self._same_place()
            self._inside += 1
            opened = self._opened
        try:
            yield opened
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def _begin_afresh(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._pid = os.getpid()

    def before_fork(self) -> None:
        """Wait for running transactions, and let none begin until the fork is done."""
        self._changed.acquire()
        if self._changed.wait_for(lambda: self._inside == 0, self.timeout):
            self._leave_nothing_to_the_child()

    def after_fork_in_parent(self) -> None:
        """Let transactions begin again."""
        self._changed.release()

    def after_fork_in_child(self) -> None:
        """Begin afresh, unless a transaction of the parent was still open: then the child is refused by its pid."""
        idle, pid = self._inside == 0, self._pid
        # Never closed and never collected: either would speak on the parent's socket, or drop its locks.
        self._kept_from_children.extend(self._idle)
        self._idle.clear()
        self._begin_afresh()
        if not idle:
            self._pid = pid

    def _leave_nothing_to_the_child(self) -> None:
        """Close what must not be open across a fork."""


def _close_all(idle: list[Connection]) -> None:
    with suppress(IndexError):  # another thread may take the last one
        while True:
            idle.pop().close()
