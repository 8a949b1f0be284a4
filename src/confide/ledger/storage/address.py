"""The address of a ledger on a server, as a URL says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote

# A password may hold what else ends a part.
_PARTS = re.compile(
    r"[\w+]+://(?:(?P<username>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:(?:\[(?P<address>[^/?]+)\]|(?P<host>[^/:?]+))?(?::(?P<port>[^/?]*))?)?(?:/(?P<database>[^?]*))?(?:\?(?P<settings>.*))?"
)
# Several hosts, each with its port: host=one:5432&host=other:5433.
_WITH_PORTS = re.compile(r"[\w.-]*:\d*(,[\w.-]*:\d*)*")
# Which settings may be shown.
_SHOWN = ("host", "port", "sslmode", "options")


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
        """The parts of a URL; `ValueError` for a port that is not a number."""
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
