"""Under a ledger: transactions on a database. Only the back ends (`sqlite.py`, `postgres.py`) know its dialect."""

# Some hooks have nothing to do in one of the back ends.
# ruff: noqa: B027

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine

from confide.errors import LedgerBusy
from confide.ledger.storage.failures import Progress
from confide.ledger.storage.forks import register
from confide.ledger.storage.room import Room

__all__ = ["Store"]


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
                    "connections are the parent's; nothing was charged; start processes with os.fork, multiprocessing "
                    "or subprocess"
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
