"""A ledger on a server: PostgreSQL, its locking and settings, through psycopg."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from confide.errors import PlanError
from confide.ledger.chain import APPLICATION, FORMAT, TABLES
from confide.ledger.storage.address import Address
from confide.ledger.storage.store import Connection, Store

# Everybody who adds tables or a dataset takes this lock first; the number is "conf" in ASCII.
_CREATING = 0x636F6E66
_SLACK = 30  # seconds that a statement may take beyond the wait for its lock
_IDLE = 20  # seconds between two statements after which the server gives up on a process, and gives its lock away
_RETRY = 0.2
# A server that says one of these will take connections later.
_PASSING = ("starting up", "shutting down", "too many clients", "connection slots", "recovery")
_LOST = "broke the connection; check the server and try again"
_DOWN = "is shutting down or starting; try again"
_REASONS = {
    "55P03": (
        "is locked by another session, and stayed so for {timeout:g} s; try again, or open it with a longer timeout="
    ),
    "57014": "did not answer in time (statement timeout); try again, or open it with a longer timeout=",
    "25P03": "ended the transaction because this process did not go on with it; try again",
    "57P05": "ended the session because this process was idle; try again",
    "40001": "had another session in the way; try again",
    "40P01": "had another session in the way; try again",
    "25006": "is read-only (a standby?); give the URL of the primary server",
    "42501": (
        "does not permit it to this role; grant it SELECT on confide_ledger, SELECT and INSERT on entry and stream_output, and "
        "SELECT, INSERT and UPDATE on budget"
    ),
    "53100": "cannot grow because the disk is full; make room and try again",
    "53200": "is out of memory; try again",
    "53300": "has too many connections; try again",
    "57P01": _DOWN,
    "57P02": _DOWN,
    "57P03": _DOWN,
}


# Whose tables these are, and their version. One row.
_HEAD = "confide_ledger"
_MADE = f"CREATE TABLE {_HEAD} (application VARCHAR(32) NOT NULL, format BIGINT NOT NULL, PRIMARY KEY (application))"


class _Session:
    """A connection to the server, with statements as the file has them."""

    for_update = " FOR UPDATE"

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self.driver = driver
        self.commit, self.close = driver.commit, driver.close

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        return self.driver.execute(_said(statement), values)

    def executemany(self, statement: str, many: Iterable[Sequence[Any]], /) -> None:
        self.driver.cursor().executemany(_said(statement), many)

    def stream(self, statement: str, values: Sequence[Any] = (), /) -> Iterable[Any]:
        return self.driver.cursor().stream(_said(statement), values)


def _said(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


class PostgresStore(Store):
    """A ledger in a database of a server.

    The lock is that of the dataset's row of `budget`, taken by SELECT ... FOR UPDATE: READ COMMITTED gives the row as
    it is after the wait, and each later statement sees what was committed before the lock was given. Idle connections
    live through a fork in the parent; a child never uses or closes them, it opens its own.
    """

    # several statements, one view; a mode READ ONLY would be reset to READ WRITE, which a standby refuses
    _READ, _WRITE = "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL READ COMMITTED"
    _ERROR, _CONFLICT = psycopg.Error, psycopg.IntegrityError

    def __init__(self, address: Address, timeout: float) -> None:
        self._address = address
        super().__init__(address.text(), timeout)

    @property
    def path(self) -> Path:
        raise PlanError(f"the ledger is on a server and has no file; ledger.place says where: {self.name}")

    def create(self) -> None:
        """Make the tables, in one transaction, unless they are there; the database itself must be."""
        with self.writing(creating=True) as connection:
            if not self.has_table(connection, _HEAD):
                for table in TABLES:
                    if self.has_table(connection, table):
                        raise PlanError(
                            f"{self.name} has a table {table!r} of something else",
                            "give the ledger a database of its own: createdb ledger",
                        )
                (encoding,) = connection.execute("SHOW server_encoding").fetchone()
                if encoding != "UTF8":
                    raise PlanError(
                        f"{self.name} stores text as {encoding}; a ledger needs UTF8: createdb --encoding=UTF8 "
                        "--template=template0 ledger"
                    )
                for table in TABLES.values():
                    connection.execute(table.replace("BLOB", "BYTEA").removesuffix(" WITHOUT ROWID"))
                connection.execute(_MADE)
                connection.execute(f"INSERT INTO {_HEAD} (application, format) VALUES (?, ?)", (APPLICATION, FORMAT))
        self.check()

    def check(self) -> None:
        with self.reading() as connection:
            found = None
            if self.has_table(connection, _HEAD):
                found = connection.execute(f"SELECT application, format FROM {_HEAD}").fetchone()
            flushed = connection.execute("SHOW fsync").fetchone() == ("on",)
        if found is None or found[0] != APPLICATION:
            raise PlanError(
                f"{self.name} holds no ledger",
                "create one: Ledger.create(url, dataset=..., budget=...), or give the URL of a database that has one",
            )
        if found[1] != FORMAT:
            raise PlanError(
                f"{self.name} was written by another version of confide (tables {found[1]}, here {FORMAT})",
                "install that version",
            )
        if not flushed:
            warnings.warn(
                f"{self.name}: the server has fsync off and may forget charges when the machine stops; set fsync = on",
                stacklevel=3,
            )

    def integrity(self) -> list[str]:
        """Nothing: the server checks its own files (pg_amcheck, data checksums)."""
        return []

    def copy_to(self, target: Path) -> None:
        raise PlanError(
            f"a ledger on a server is copied by the server's own tools: pg_dump --format=custom --table=confide_ledger "
            f"--table=budget --table=entry --table=stream_output --file={target} (and pg_restore), with the URL of {self.name}"
        )

    def has_table(self, connection: Connection, table: str) -> bool:
        return bool(connection.execute("SELECT to_regclass(?) IS NOT NULL", (table,)).fetchone() == (True,))

    def _begun(self, begin: str) -> Connection:
        """On an idle connection, unless the server has ended it since: nothing was done on it yet."""
        if self._idle:
            try:
                return super()._begun(begin)
            except psycopg.OperationalError:
                self.close()  # the others as well
        return super()._begun(begin)

    def _open(self) -> Connection:
        """A connection, waiting for a server that is restarting or full as for a lock: up to the timeout."""
        patience = max(2, math.ceil(self.timeout))
        settings: dict[str, Any] = {
            **self._address.driver_settings(),
            "connect_timeout": patience,
            "client_encoding": "utf8",
            "application_name": "confide ledger",
            # a server that is gone without a word is noticed, also while waiting for its answer
            "keepalives_idle": 10,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 1000 * (patience + _SLACK),
        }
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return _Session(psycopg.connect(autocommit=True, **settings))
            except psycopg.OperationalError as error:
                if time.monotonic() + _RETRY > deadline or _refusal(str(error)):
                    raise
                time.sleep(_RETRY)

    def _reason(self, error: Exception) -> tuple[str | None, bool]:
        """The words for an error. A COMMIT that failed is never taken as undone: its answer may have been lost."""
        code = getattr(error, "sqlstate", None)
        if code is None:
            words = self._words(error)
            if _refusal(words):
                raise PlanError(f"{self.name} does not let us in ({words}); nothing was charged") from None
            return f"cannot be reached ({words}); check the server and try again", False
        if code.startswith("08"):
            return _LOST, False
        reason = _REASONS.get(code)
        return None if reason is None else reason.format(timeout=self.timeout), False

    def _words(self, error: Exception) -> str:
        """The first line of what libpq says, in which no password may stand."""
        words = str(error).strip().split("\n")[0] or type(error).__name__
        own = self._address
        for secret in (own.password, *(own.settings.get(key) for key in ("password", "passfile", "sslpassword"))):
            if secret:
                words = words.replace(secret, "***")
        return words

    def _prepare(self, connection: Connection, creating: bool) -> None:
        """Limits in time, and a COMMIT that returns only once it is on disk, whatever the role's defaults are."""
        wait = max(1, round(1000 * self.timeout))  # 0 would mean for ever
        connection.execute(
            "SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true), "
            "set_config('idle_in_transaction_session_timeout', ?, true), "
            "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
            "ELSE current_setting('synchronous_commit') END, true)",
            (str(wait), str(wait + 1000 * _SLACK), str(1000 * _IDLE)),
        )
        if creating:
            connection.execute("SELECT pg_advisory_xact_lock(?)", (_CREATING,))

    def _check_still_open(self, connection: Connection) -> None:
        """The server answers COMMIT of a failed transaction with a rollback, and with no error."""
        assert isinstance(connection, _Session)
        if connection.driver.info.transaction_status.name != "INTRANS":
            raise PlanError(f"{self.name}: the transaction was lost before its end; nothing was charged", "try again")


def _refusal(words: str) -> bool:
    return "FATAL" in words and not any(passing in words for passing in _PASSING)
