"""Where a ledger is: a file, or a database of a PostgreSQL server. A URL is never quoted in a message: it may hold a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from confide.errors import PlanError
from confide.guarantees.validation import is_number
from confide.ledger.storage.store import Store

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # one slash: what a Path leaves of two
# A password may hold what else ends a part.
_PARTS = re.compile(
    r"[\w+]+://(?:(?P<username>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:(?:\[(?P<address>[^/?]+)\]|(?P<host>[^/:?]+))?(?::(?P<port>[^/?]*))?)?(?:/(?P<database>[^?]*))?(?:\?(?P<settings>.*))?"
)
# Several hosts, each with its port: host=one:5432&host=other:5433.
_WITH_PORTS = re.compile(r"[\w.-]*:\d*(,[\w.-]*:\d*)*")
# Which settings may be shown.
_SHOWN = ("host", "port", "sslmode", "options")
_WORKS = "Ledger.open('postgresql://user@host/database', dataset=...)"


@dataclass(frozen=True)
class Address:
    """A database of a server, as a URL says it; settings: what stands behind the question mark."""

    username: str | None
    password: str | None = field(repr=False)
    host: str | None
    port: int | None
    database: str
    settings: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, url: str) -> Address:
        """The parts of a URL; `ValueError` for a port that is no number."""
        found = _PARTS.match(url)
        parts = {} if found is None else found.groupdict()
        own = [parts.get(name) for name in ("username", "password", "database")]
        username, password, database = (None if part is None else unquote(part) for part in own)
        settings: dict[str, str] = {}
        for key, value in parse_qsl(parts.get("settings") or ""):
            settings[key] = f"{settings[key]},{value}" if key in settings else value
        if "port" not in settings and _WITH_PORTS.fullmatch(settings.get("host", "")):
            pairs = [pair.split(":") for pair in settings["host"].split(",")]
            settings["host"], settings["port"] = (",".join(side) for side in zip(*pairs, strict=True))
        port = int(parts["port"]) if parts.get("port") else None
        return cls(username, password, parts.get("address") or parts.get("host"), port, database or "", settings)

    def text(self, *, password: bool = False) -> str:
        """The URL; with its password, and settings that may hold one, only where that is asked for."""
        secret = "" if self.password is None else f":{quote(self.password, safe=' +') if password else '***'}"
        whose = "" if self.username is None else f"{quote(self.username, safe=' +')}{secret}@"
        host = f"[{self.host}]" if self.host is not None and ":" in self.host else self.host or ""
        port = "" if self.port is None else f":{self.port}"
        told = sorted((key, value) for key, value in self.settings.items() if password or key in _SHOWN)
        more = "&".join(f"{quote_plus(key)}={quote_plus(value)}" for key, value in told)
        return f"postgresql://{whose}{host}{port}/{quote(self.database, safe=' +/')}{'?' if more else ''}{more}"

    def driver_settings(self) -> dict[str, Any]:
        """What the driver connects with."""
        own = {"host": self.host, "port": self.port, "user": self.username, "password": self.password}
        return {**{key: value for key, value in own.items() if value}, "dbname": self.database, **self.settings}


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
