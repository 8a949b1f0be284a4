"""Where a ledger is: a file, or a database of a PostgreSQL server. A URL is never quoted in a message: it may hold a password."""

from __future__ import annotations

import re
from pathlib import Path

from confide.errors import PlanError
from confide.guarantees.validation import is_number
from confide.ledger.storage.address import Address
from confide.ledger.storage.store import Store

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # one slash: what a Path leaves of two
_WORKS = "Ledger.open('postgresql://user@host/database', dataset=...)"


def store_of(place: str | Path, timeout: float) -> Store:
    """The store behind a path, or behind a URL such as postgresql://user@host/database; `PlanError` for another URL."""
    _check_timeout(timeout)
    scheme = _URL.match(str(place))
    if scheme is None or (isinstance(place, Path) and not scheme[1].startswith("postgres")):
        from confide.ledger.storage.sqlite import SQLiteStore

        return SQLiteStore(checked_path(place), float(timeout))
    address = _address(place, scheme[1].lower())
    try:
        from confide.ledger.storage.postgres import PostgresStore
    except ImportError:
        raise PlanError(
            "a ledger on PostgreSQL needs psycopg: pip install 'confide[postgres]'; or keep the ledger in a file: "
            "Ledger.create('ledger.db', dataset=..., budget=...)"
        ) from None
    return PostgresStore(address, float(timeout))


def checked_path(path: str | Path) -> Path:
    """The path, absolute; `PlanError` for text that cannot be one."""
    check_text("path", str(path))
    return Path(path).expanduser().absolute()


def check_text(name: str, text: str) -> None:
    """Refuse, with `PlanError`, what the databases could not store as it is."""
    try:
        text.encode()
    except (AttributeError, UnicodeEncodeError):
        raise PlanError(f"{name} must be text that UTF-8 can write, got {text!r}") from None
    if "\x00" in text:
        raise PlanError(f"{name} must be text without a NUL character, got {text!r}")


def _address(place: str | Path, scheme: str) -> Address:
    if scheme not in {"postgresql", "postgres", "postgresql+psycopg"}:
        raise PlanError(
            f"a ledger is a file or a PostgreSQL database, not {scheme}://...", f"write for instance {_WORKS}"
        )
    if isinstance(place, Path):
        raise PlanError("give the URL of a ledger as text: a Path turns // into /", f"write {_WORKS}")
    try:
        address = Address.of(place)
    except ValueError:
        raise PlanError("the URL of the ledger cannot be read", f"write for instance {_WORKS}") from None
    if not address.database:
        raise PlanError("the URL of the ledger names no database", f"write for instance {_WORKS}")
    return address


def _check_timeout(timeout: float) -> None:
    if not is_number(timeout) or not 0 <= timeout <= 86_400:
        raise PlanError(f"timeout must be a number of seconds from 0 to 86400, got {timeout!r}; the default is 60")
