"""A ledger in a file: SQLite, its locking and settings."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from confide.errors import LedgerBusy, PlanError
from confide.ledger.chain import FORMAT, TABLES
from confide.ledger.storage.store import Connection, Room, Store

#: "conf": tells a ledger from any other SQLite file.
APPLICATION = 0x636F6E66
_SMALLEST = 512  # bytes of the smallest SQLite file that holds anything
# Bytes that a transaction of one entry writes at most beside the text of the entry: 64 pages of 4 KiB in the journal, with their tips,
# where an entry touches 7 and the splits of its four trees a few more each.
_ENTRY = 64 * 4_120
# Bytes that a connection takes where a fork closed the last one: a step of the journal's index, and the journal's tip.
_OPENING = 32_768 + 8_192
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs"}
_NETWORK |= {"fuse.sshfs", "fuse.glusterfs"}
_PERMIT = "give this account read and write permission on the file and on its directory"
_REASONS = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another process, and stayed so for {timeout:g} s; try again, or open it with a longer timeout="
    ),
    sqlite3.SQLITE_LOCKED: "is locked by another connection of this process; try again",
    sqlite3.SQLITE_READONLY: f"is read-only; {_PERMIT}",
    sqlite3.SQLITE_PERM: f"is not permitted to this account; {_PERMIT}",
    sqlite3.SQLITE_AUTH: f"is not permitted to this account; {_PERMIT}",
    sqlite3.SQLITE_FULL: "cannot grow because the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "could not be read or written (input/output error); check the disk and try again",
    sqlite3.SQLITE_CANTOPEN: f"could not be opened; {_PERMIT}",
}
# After these a failed COMMIT has certainly left nothing behind: the transaction was still open and was rolled back.
_NEVER_WRITTEN = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY}


class _File(sqlite3.Connection):
    """A connection to the file; its transactions lock all of it."""

    for_update = ""
    stream = sqlite3.Connection.execute  # rows come one by one as it is


class SQLiteStore(Store):
    """A ledger in one file.

    The lock is that of the whole file, taken by BEGIN IMMEDIATE before anything is read. SQLite keeps its locks per
    process and file, so that a connection must not be alive across a fork, not even to be closed in the child: all are
    closed just before one.
    """

    _READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"
    _ERROR, _CONFLICT = sqlite3.Error, sqlite3.IntegrityError

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._files = tuple(Path(f"{path}{end}") for end in ("", "-wal", "-journal"))
        self._identity: tuple[int, int] | None = None
        super().__init__(str(path), timeout)

    @property
    def path(self) -> Path:
        return self._path

    def create(self) -> None:
        """Make the file (mode 0600) unless it is there, and its tables in one transaction unless they are."""
        with suppress(FileExistsError):
            _new_file(self.path)
        if 0 < self.path.stat().st_size < _SMALLEST:  # SQLite takes such a file as empty and would write over it
            raise PlanError(f"{self.path} is not a ledger", "give the path of a ledger, or of a new file")
        with self.reading() as connection:
            fresh = _is_empty(connection)
        if fresh:
            with suppress(OSError):
                self.path.chmod(0o600)
            # WAL is faster for one process, and impossible on a network disk. It cannot be set inside a transaction.
            self._alone(f"PRAGMA journal_mode = {'DELETE' if on_network(self.path) else 'WAL'}")
        with self.writing(creating=True) as connection:
            if _is_empty(connection):
                for table in TABLES.values():
                    connection.execute(table)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
        self.check()

    def check(self) -> None:
        with self.reading() as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise PlanError(
                f"{self.path} is not a ledger",
                "give the path of a ledger, or of a new file: Ledger.create(path, dataset=..., budget=...)",
            )
        if version != FORMAT:
            raise PlanError(
                f"{self.path} was written by another version of confide (tables {version}, here {FORMAT})",
                "install that version",
            )
        if on_network(self.path):
            warnings.warn(
                f"{self.path} is on a network file system, where file locks are not reliable and two processes may "
                "spend the same budget; keep the ledger on a local disk of the one machine that charges it, or on a "
                "PostgreSQL server: Ledger.create('postgresql://...', dataset=..., budget=...)",
                stacklevel=3,
            )

    def integrity(self) -> list[str]:
        with self.reading() as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        return [line for line in found if line != "ok"]

    def copy_to(self, target: Path) -> None:
        """A consistent copy in one file (VACUUM INTO); copying the file would leave out what is still in the journal."""
        try:
            _new_file(target)
        except FileExistsError:
            raise PlanError(f"{target} exists, and a backup never overwrites", "give a path that is free") from None
        self._alone("VACUUM INTO ?", str(target))

    def has_table(self, connection: Connection, table: str) -> bool:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        return found.fetchone() is not None

    def room(self, size: int) -> Room:
        size += _ENTRY
        largest = 0
        for file in self._files:
            with suppress(FileNotFoundError):
                largest = max(largest, file.stat().st_size)
        try:
            return Room(self._path.parent, largest + size, size, _OPENING)
        except OSError as error:
            raise LedgerBusy(
                f"{self.name} has no room for a charge and its receipt ({error.strerror})",
                "make room, on the disk and under a limit on the size of files, and try again; nothing was charged",
            ) from None

    def _open(self) -> Connection:
        # mode=rw never creates a file. isolation_level None: the driver's own default begins deferred, reads before
        # it locks, and then fails at once with "database is locked" whatever the timeout.
        connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode=rw",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=_File,
        )
        for pragma in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _alone(self, statement: str, *values: str) -> None:
        """A statement that SQLite refuses inside a transaction.

        The change of the journal is refused at once while another process writes, whatever the connection's timeout:
        it is tried again until that time is over.
        """
        end = time.monotonic() + self.timeout
        with self._transaction("") as connection:
            while True:
                try:
                    connection.execute(statement, values)
                    return
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                        raise
                time.sleep(0.01)

    def _reason(self, error: Exception) -> tuple[str | None, bool]:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        reason = _REASONS.get(code)
        return None if reason is None else reason.format(timeout=self.timeout), code in _NEVER_WRITTEN

    def _same_place(self) -> None:
        """A connection to a file that was replaced or deleted charges a ledger that nobody sees: reconnect, or refuse."""
        try:
            found = self._path.stat()
        except OSError as error:
            self._give_up()
            raise PlanError(
                f"there is no ledger at {self.path} ({error.strerror})",
                "check the path first; for a new one: Ledger.create(path, dataset=..., budget=...)",
            ) from None
        if self._identity != (found.st_dev, found.st_ino):
            self._give_up()
            self._identity = (found.st_dev, found.st_ino)

    def _leave_nothing_to_the_child(self) -> None:
        self._give_up()


def _is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _new_file(path: Path) -> None:
    """An empty file that only its owner can read, and that was not there before; its name is made durable as well."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise
    except OSError as error:
        raise PlanError(
            f"{path} cannot be created ({error.strerror})", "give a path in a directory that exists and can be written"
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
