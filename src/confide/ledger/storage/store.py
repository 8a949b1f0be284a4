"""Under a ledger: transactions on a database. Only the back ends (`sqlite.py`, `postgres.py`) know its dialect.

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
import sqlite3
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from confide.errors import ConfideError, LedgerBusy, PlanError


class Progress:
    """How far a transaction came, so that an error says what is known of the charge."""

    def __init__(self) -> None:
        self.committing = False


@contextmanager
def explained(
    name: str, reason_of: Callable[[BaseException | None], tuple[str | None, bool]], progress: Progress
) -> Iterator[None]:
    """Turn database errors into `LedgerBusy` (locked, read-only, full, gone) and `PlanError` (damaged, no ledger).

    reason_of: the back end's words for the driver's error, or None when it is no passing state; and whether a COMMIT
    that failed so has certainly left nothing behind.
    """
    try:
        yield
    except ConfideError:
        raise
    except IntegrityError:
        raise PlanError(
            f"{name}: a second entry claims the same place in the chain, so the lock did not hold (a network disk?); "
            "nothing was written",
            "keep the ledger on a local disk or on a server, and run ledger.verify()",
        ) from None
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        reason, undone = reason_of(cause)
        if reason is None:
            raise PlanError(
                f"{name}: not a ledger, or damaged ({cause})", "restore it from a backup, or give the place of a ledger"
            ) from None
        unknown = progress.committing and not undone
        state = (
            "it failed while writing: take it as charged if ledger.show() lists it; nothing was released"
            if unknown
            else "nothing was charged"
        )
        raise LedgerBusy(f"{name} {reason}", f"{state}") from None


class Forked(Protocol):
    """What the hooks ask of a store."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


# The stores of this process, for the fork hooks alone: a fork concerns all of them and asks none. The lock is held
# from before a fork until after it, in the parent and in the child.
_stores: weakref.WeakSet[Forked] = weakref.WeakSet()
_fork_lock = threading.Lock()


def register(store: Forked) -> None:
    """Tell the hooks of a new store."""
    with _fork_lock:
        _stores.add(store)


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
            left -= self._file.write(bytes(left)) or 0

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

    name: where the ledger is, for messages; target: what `Ledger.open` takes to find it. Neither has a password in it.
    timeout: seconds to wait for a lock. A connection serves one thread at a time and belongs to one process.
    """

    def __init__(self, name: str, target: str, timeout: float) -> None:
        self.name = name
        self.target = target
        self.timeout = timeout
        self._use(self._new_engine())
        self._begin_afresh()
        register(self)

    @property
    @abstractmethod
    def path(self) -> Path:
        """The file, absolute; `PlanError` when the ledger is on a server."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view, without a lock that keeps anybody from writing."""
        with self._entered(), self._explained(Progress()), self._connect() as plain:
            connection = self._for_reading(plain)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self, *, creating: bool = False) -> Iterator[Connection]:
        """One durable transaction; leaving the block commits.

        Who writes to a dataset locks its row of `budget` by its first statement (`rows.locked_account`), and reads
        after that alone. creating: whoever adds tables or a dataset, which has no row yet, excludes all others who do.
        """
        progress = Progress()
        with self._entered(), self._explained(progress), self._connect() as plain:
            connection = self._for_writing(plain)
            transaction = connection.begin()
            try:
                self._prepare(connection, creating)
                yield connection
                self._check_still_open(connection)
                progress.committing = True
                transaction.commit()
            except BaseException:
                # Closing the connection rolls back whatever it still holds. A rollback of its own would be left out
                # after a COMMIT that failed, and the connection would go back to the pool with the lock.
                connection.invalidate()
                raise

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

    def close(self) -> None:
        """Close idle connections; the next transaction opens a new one."""
        self._engine.dispose()

    @abstractmethod
    def _new_engine(self) -> Engine: ...

    @abstractmethod
    def _explained(self, progress: Progress) -> AbstractContextManager[None]:
        """Turn the database's errors into ours."""

    def _connect(self) -> AbstractContextManager[Connection]:
        return self._engine.connect()

    @abstractmethod
    def _for_reading(self, connection: Connection) -> Connection: ...

    @abstractmethod
    def _for_writing(self, connection: Connection) -> Connection: ...

    def _prepare(self, connection: Connection, creating: bool) -> None:
        """What a writing transaction does first."""

    def _check_still_open(self, connection: Connection) -> None:
        """Raise when a COMMIT would quietly undo what was written."""

    def _same_place(self) -> None:
        """Raise, or connect anew, when what the open connections lead to is not the ledger any more."""

    def _use(self, engine: Engine) -> None:
        self._engine = engine
        # A store that is dropped closes its connections at once: one left to the garbage collector could see a fork.
        self._dropped = weakref.finalize(self, engine.dispose)

    @contextmanager
    def _entered(self) -> Iterator[None]:
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
        try:
            yield
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
        self._forget_the_parents()
        self._begin_afresh()
        if not idle:
            self._pid = pid

    def _leave_nothing_to_the_child(self) -> None:
        """Close what must not be open across a fork."""

    def _forget_the_parents(self) -> None:
        """Let go, in a child, of connections that are the parent's, without closing them."""
