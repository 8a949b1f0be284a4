"""The file under a book: SQLite through SQLAlchemy Core, its locking and settings. Only this module knows the dialect."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event

from confide.errors import LedgerBusy, PlanError
from confide.ledger.failures import Progress, explained
from confide.ledger.tables import FORMAT, metadata

__all__ = ["Store"]

_APPLICATION = 0x636F6E66  # "conf": tells a book from any other SQLite file
_SMALLEST = 512  # bytes of the smallest SQLite file that holds anything
_NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "gpfs",
    "fuse.sshfs",
    "fuse.glusterfs",
}


class Store:
    """Transactions on one file; safe for threads, processes and forks.

    A connection serves one thread at a time and belongs to one process. SQLite keeps its locks per process and file,
    so that a connection must not be alive across a fork, not even to be closed in the child: all are closed just
    before one.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self._engine = _engine(path, timeout)
        self._identity: tuple[int, int] | None = None
        self._begin_afresh()
        # A store that is dropped closes its connections at once: one left to the garbage collector could see a fork.
        weakref.finalize(self, self._engine.dispose)
        with _fork_lock:
            _stores.add(self)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view, without a lock that keeps anybody from writing."""
        with (
            self._entered(),
            explained(self.path, self.timeout, Progress()),
            self._engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One durable transaction; everything read in it is read after the lock. Leaving the block commits."""
        progress = Progress()
        with self._entered(), explained(self.path, self.timeout, progress), self._engine.connect() as plain:
            connection = plain.execution_options(confide_lock=True)
            transaction = connection.begin()
            try:
                yield connection
                progress.committing = True
                transaction.commit()
            except BaseException:
                # Closing the connection rolls back whatever it still holds. A rollback of its own would be left out
                # after a COMMIT that failed, and the connection would go back to the pool with the lock.
                connection.invalidate()
                raise

    def create(self) -> None:
        """Make the file (mode 0600) unless it is there, and its tables in one transaction unless they are.

        Raises `PlanError` when the file is something else.
        """
        with suppress(FileExistsError):
            _new_file(self.path)
        if 0 < self.path.stat().st_size < _SMALLEST:  # SQLite takes such a file as empty and would write over it
            raise PlanError(f"{self.path} is not a ledger; give the path of a book, or of a new file")
        with self.reading() as connection:
            fresh = _is_empty(connection)
        if fresh:
            with suppress(OSError):
                self.path.chmod(0o600)
            # WAL is faster for one process, and impossible on a network disk. It cannot be set inside a transaction.
            with self._driver() as driver:
                driver.execute(f"PRAGMA journal_mode = {'DELETE' if on_network(self.path) else 'WAL'}")
        with self.writing() as connection:
            if _is_empty(connection):
                metadata.create_all(connection)
                connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION}")
                connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")
        self.check()

    def check(self) -> None:
        """Refuse a file that is no book, or one of a newer version: `PlanError`. Warn when it is on a network disk."""
        with self.reading() as connection:
            application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        if application != _APPLICATION:
            raise PlanError(
                f"{self.path} is not a ledger; give the path of a book, or of a new file: Ledger.create(path, "
                "dataset=..., budget=...)"
            )
        if version > FORMAT:
            raise PlanError(
                f"{self.path} was written by a newer version of confide (tables {version}, here {FORMAT}); install "
                "that version"
            )
        if on_network(self.path):
            warnings.warn(
                f"{self.path} is on a network file system, where file locks are not reliable and two processes may "
                "spend the same budget; keep the book on a local disk of the one machine that charges it",
                stacklevel=3,
            )

    def integrity(self) -> list[str]:
        """What SQLite itself finds wrong with the file; empty when nothing is."""
        with self.reading() as connection:
            found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        return [line for line in found if line != "ok"]

    def copy_to(self, target: Path) -> None:
        """A consistent copy in one file (VACUUM INTO); copying the file would leave out what is still in the journal."""
        try:
            _new_file(target)
        except FileExistsError:
            raise PlanError(f"{target} exists, and a backup never overwrites; give a path that is free") from None
        with self._driver() as driver:
            driver.execute("VACUUM INTO ?", (str(target),))

    def close(self) -> None:
        """Close idle connections; the next transaction opens a new one."""
        self._engine.dispose()

    @contextmanager
    def _driver(self) -> Iterator[sqlite3.Connection]:
        """The driver's connection outside any transaction, for the statements that SQLite refuses inside one."""
        with self._entered(), explained(self.path, self.timeout, Progress()), self._engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            yield driver

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Count this thread as inside, so that a fork waits for it; the file and the process must be the same still."""
        with self._changed:
            if os.getpid() != self._pid:
                raise LedgerBusy(
                    f"{self.path}: this process was forked, behind Python's back, while the book was open; SQLite "
                    "forbids that; nothing was charged; start processes with os.fork, multiprocessing or subprocess"
                )
            self._same_file()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def _same_file(self) -> None:
        """A connection to a file that was replaced or deleted charges a book that nobody sees: reconnect, or refuse."""
        try:
            found = self.path.stat()
        except OSError as error:
            self._engine.dispose()
            raise PlanError(
                f"there is no ledger at {self.path} ({error.strerror}); create it: "
                "Ledger.create(path, dataset=..., budget=...)"
            ) from None
        if self._identity != (found.st_dev, found.st_ino):
            self._engine.dispose()
            self._identity = (found.st_dev, found.st_ino)

    def _begin_afresh(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._pid = os.getpid()

    def before_fork(self) -> None:
        """Wait for running transactions, close every connection, and let none begin until the fork is done."""
        self._changed.acquire()
        if self._changed.wait_for(lambda: self._inside == 0, self.timeout):
            self._engine.dispose()

    def after_fork_in_parent(self) -> None:
        """Let transactions begin again."""
        self._changed.release()

    def after_fork_in_child(self) -> None:
        """Begin afresh, unless a transaction of the parent was still open: then the child is refused by its pid."""
        idle, pid = self._inside == 0, self._pid
        self._begin_afresh()
        if not idle:
            self._pid = pid


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


def _engine(path: Path, timeout: float) -> Engine:
    def connect() -> sqlite3.Connection:
        # mode=rw never creates a file. isolation_level None: the driver's own default begins deferred, reads before
        # it locks, and then fails at once with "database is locked" whatever the timeout.
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        for pragma in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=8, max_overflow=-1)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        locked = connection.get_execution_options().get("confide_lock", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if locked else "BEGIN")

    return engine


def _is_empty(connection: Connection) -> bool:
    return not connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").all()


def _new_file(path: Path) -> None:
    """An empty file that only its owner can read, and that was not there before; its name is made durable as well."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise
    except OSError as error:
        raise PlanError(
            f"{path} cannot be created ({error.strerror}); give a path in a directory that exists and can be written"
        ) from None
    if os.name == "posix":
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def on_network(path: Path) -> bool:
    """Whether the file lies on a network file system, as far as the system tells (only Linux does)."""
    if not sys.platform.startswith("linux"):
        return False
    best, kind = -1, ""
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, point, name, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            if path.is_relative_to(point) and len(point) > best:
                best, kind = len(point), name
    return kind in _NETWORK
