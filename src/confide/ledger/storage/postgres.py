"""A ledger on a server: PostgreSQL, its locking and settings, through psycopg."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, select, text
from sqlalchemy.exc import DBAPIError, OperationalError

from confide.errors import PlanError
from confide.ledger.chain import APPLICATION, FORMAT, ledger_tables, metadata
from confide.ledger.storage.store import Progress, Store, explained

# Everybody who adds tables or a dataset takes this lock first; the number is "conf" in ASCII.
_CREATING = 0x636F6E66
_SLACK = 30  # seconds that a statement may take beyond the wait for its lock
_IDLE = 20  # seconds between two statements after which the server gives up on a process, and gives its lock away
_RETRY = 0.2
# What of a URL's options may be shown.
_SHOWN = ("host", "port", "sslmode", "options")
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


class PostgresStore(Store):
    """A ledger in a database of a server.

    The lock is that of the dataset's row of `budget`, taken by SELECT ... FOR UPDATE: READ COMMITTED gives the row as
    it is after the wait, and each later statement sees what was committed before the lock was given. Idle connections
    live through a fork in the parent; a child never uses or closes them, it opens its own.
    """

    _kept_from_children: ClassVar[list[Engine]] = []

    def __init__(self, url: URL, timeout: float) -> None:
        self._url = url
        shown = URL.create(
            "postgresql",
            username=url.username,
            host=url.host,
            port=url.port,
            database=url.database,
            query={key: value for key, value in url.query.items() if key in _SHOWN},
        ).render_as_string(hide_password=True)
        super().__init__(shown, shown, timeout)

    @property
    def path(self) -> Path:
        raise PlanError(f"the ledger is on a server and has no file; ledger.place says where: {self.name}")

    def create(self) -> None:
        """Make the tables, in one transaction, unless they are there; the database itself must be."""
        with self.writing(creating=True) as connection:
            if not _is_there(connection, ledger_tables.name):
                for table in metadata.sorted_tables:
                    if _is_there(connection, table.name):
                        raise PlanError(
                            f"{self.name} has a table {table.name!r} of something else",
                            "give the ledger a database of its own: createdb ledger",
                        )
                encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
                if encoding != "UTF8":
                    raise PlanError(
                        f"{self.name} stores text as {encoding}; a ledger needs UTF8: createdb --encoding=UTF8 "
                        "--template=template0 ledger"
                    )
                metadata.create_all(connection)
                ledger_tables.create(connection)
                connection.execute(ledger_tables.insert().values(application=APPLICATION, format=FORMAT))
        self.check()

    def check(self) -> None:
        with self.reading() as connection:
            found = None
            if _is_there(connection, ledger_tables.name):
                found = connection.execute(select(ledger_tables.c.application, ledger_tables.c.format)).first()
            flushed = connection.execute(text("SHOW fsync")).scalar_one() == "on"
        if found is None or found.application != APPLICATION:
            raise PlanError(
                f"{self.name} holds no ledger",
                "create one: Ledger.create(url, dataset=..., budget=...), or give the URL of a database that has one",
            )
        if found.format != FORMAT:
            raise PlanError(
                f"{self.name} was written by another version of confide (tables {found.format}, here {FORMAT})",
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

    def _new_engine(self) -> Engine:
        patience = max(2, math.ceil(self.timeout))
        settings: dict[str, Any] = {
            "connect_timeout": patience,
            "client_encoding": "utf8",
            "application_name": "confide ledger",
            # a server that is gone without a word is noticed, also while waiting for its answer
            "keepalives_idle": 10,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 1000 * (patience + _SLACK),
        }
        try:
            return create_engine(
                self._url,
                poolclass=QueuePool,
                pool_size=8,
                max_overflow=-1,
                pool_pre_ping=True,
                isolation_level="READ COMMITTED",
                hide_parameters=True,
                connect_args=settings,
            )
        except ImportError:
            raise PlanError(
                "a ledger on PostgreSQL needs psycopg: pip install 'confide[postgres]'; or keep the ledger in a file: "
                "Ledger.create('ledger.db', dataset=..., budget=...)"
            ) from None

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        """A connection, waiting for a server that is restarting or full as for a lock: up to the timeout."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                connection = self._engine.connect()
                break
            except OperationalError as error:
                if time.monotonic() + _RETRY > deadline or _final(error):
                    raise
                time.sleep(_RETRY)
        with connection:
            yield connection

    def _explained(self, progress: Progress) -> AbstractContextManager[None]:
        return explained(self.name, self._reason, progress)

    def _reason(self, cause: BaseException | None) -> tuple[str | None, bool]:
        """The words for an error. A COMMIT that failed is never taken as undone: its answer may have been lost."""
        code = getattr(cause, "sqlstate", None)
        if code is None:
            words = self._words(cause)
            if _refusal(words):
                raise PlanError(f"{self.name} does not let us in ({words}); nothing was charged") from None
            return f"cannot be reached ({words}); check the server and try again", False
        if code.startswith("08"):
            return _LOST, False
        reason = _REASONS.get(code)
        return None if reason is None else reason.format(timeout=self.timeout), False

    def _words(self, cause: BaseException | None) -> str:
        """The first line of what libpq says, in which no password may stand."""
        words = str(cause).strip().split("\n")[0] or type(cause).__name__
        secrets = [self._url.password, *(self._url.query.get(key) for key in ("password", "passfile", "sslpassword"))]
        for secret in secrets:
            if secret:
                words = words.replace(str(secret), "***")
        return words

    def _for_reading(self, connection: Connection) -> Connection:
        # several statements, one view; a mode READ ONLY would be reset to READ WRITE, which a standby refuses
        return connection.execution_options(isolation_level="REPEATABLE READ")

    def _for_writing(self, connection: Connection) -> Connection:
        return connection

    def _prepare(self, connection: Connection, creating: bool) -> None:
        """Limits in time, and a COMMIT that returns only once it is on disk, whatever the role's defaults are."""
        wait = max(1, round(1000 * self.timeout))  # 0 would mean for ever
        connection.execute(
            text(
                "SELECT set_config('lock_timeout', :wait, true), set_config('statement_timeout', :most, true), "
                "set_config('idle_in_transaction_session_timeout', :idle, true), "
                "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
                "ELSE current_setting('synchronous_commit') END, true)"
            ),
            {"wait": str(wait), "most": str(wait + 1000 * _SLACK), "idle": str(1000 * _IDLE)},
        )
        if creating:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATING})

    def _check_still_open(self, connection: Connection) -> None:
        """The server answers COMMIT of a failed transaction with a rollback, and with no error."""
        driver: Any = connection.connection.driver_connection
        if driver.info.transaction_status.name != "INTRANS":
            raise PlanError(f"{self.name}: the transaction was lost before its end; nothing was charged", "try again")

    def _forget_the_parents(self) -> None:
        # Never disposed and never collected: either would speak on the parent's socket.
        self._dropped.detach()
        self._kept_from_children.append(self._engine)
        self._use(self._new_engine())


def _is_there(connection: Connection, table: str) -> bool:
    return connection.execute(text("SELECT to_regclass(:name) IS NOT NULL"), {"name": table}).scalar_one() is True


def _refusal(words: str) -> bool:
    return "FATAL" in words and not any(passing in words for passing in _PASSING)


def _final(error: DBAPIError) -> bool:
    return _refusal(str(error.orig))
