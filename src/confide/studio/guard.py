"""What stands before every page of the studio: who may ask, from where, and what a browser may do with an answer.

The page is on this machine only, and other people's pages and programs are on it too. So a session begins with a token that is printed
once; the browser keeps it as a cookie that no script reads and no foreign page sends; a request must name this host and this port, and a
form must come from this very page (Origin, Sec-Fetch-Site, and a field that only this page knows). No page may be framed, cached, or load
anything.

Whose program is at the other end of a connection within this machine, where the system tells it: Linux does.

A cookie knows no port: a browser sends the studio's to every server on the same address, and another account of this machine may run one.
So where it can be known, a request of another account is refused whatever it has.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# a socket of IPv6 reaches an address of IPv4, too
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_STANDS = "01"


def stranger(client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Whether a connection is of an account that is neither this one nor the system's own; False where the system does not tell.

    Of a socket that its owner closed nothing is known, so that such a request, whose answer nobody waits for, is a stranger's.
    """
    if not _TABLES[0].exists():
        return False
    try:
        near, far = _written(client), _written(server)
    except OSError:  # no address of IPv4
        return True
    own = [(state, user) for local, remote, state, user in _rows() if local.endswith(near) and remote.endswith(far)]
    if own:
        known = {os.getuid(), os.geteuid(), 0}
        return any(state != _STANDS or user not in known for state, user in own)
    # it comes from another network than this process sees, as a container's host has; or it was closed meanwhile, and this end knows
    return not any(
        local.endswith(far) and remote.endswith(near) and state == _STANDS for local, remote, state, _ in _rows()
    )


def _written(address: tuple[str, int]) -> str:
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def _rows() -> Iterator[tuple[str, str, str, int]]:
    """(local address, remote address, state, user) of each connection."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                _, local, remote, state, _, _, _, user, *_ = line.split()
                yield local, remote, state, int(user)


_SAFE = ("GET", "HEAD")
# A form of the studio is a few fields of text; a longer body is not one.
_PLAIN, _LONGEST = "application/x-www-form-urlencoded", 1 << 18

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would make browsers send `Origin: null` with the studio's own forms
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Keys:
    """The secrets of one session: the token of its printed link, the cookie's value, the field of its forms."""

    def __init__(self) -> None:
        self._link: str | None = secrets.token_urlsafe(32)
        self.cookie, self.form = secrets.token_urlsafe(32), secrets.token_urlsafe(32)

    @property
    def link(self) -> str:
        """The token that opens a session, once."""
        return self._link or ""

    def opens(self, token: str) -> bool:
        """Whether this is the token of the link; it opens one session, and then no other."""
        if self._link is None or not _same(token, self._link):
            return False
        self._link = None
        return True

    def known(self, cookie: str) -> bool:
        return _same(cookie, self.cookie)

    def own(self, field: str) -> bool:
        """Whether a form has the field that this session's pages have."""
        return _same(field, self.form)


class Guard:
    """ASGI middleware: refuses, with a plain line and no cause that helps a stranger, whatever is not the steward's own request."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int, files: Mapping[str, int]) -> None:
        """files: the paths whose form carries a file, and how many bytes it may have."""
        self._app, self._keys, self._port, self._files = app, keys, port, files
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._name = f"confide_studio_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = {name.lower().encode(): value.encode() for name, value in _HEADERS.items()}
                own = [(name, value) for name, value in message["headers"] if name not in more]
                message["headers"] = [*own, *more.items()]
            await send(message)

        refused = self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, dressed)
            return
        await self._app(scope, receive, dressed)

    def _refused(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        if headers.get("host", "") not in self._hosts:
            return _no("this page answers on its own address alone", 421)
        if stranger(scope["client"], ("127.0.0.1", self._port)):
            return _no("this page is of another account", 403)
        if not any(map(self._keys.known, self._cookies(headers))):
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if scope["method"] == "GET" and scope["path"] == "/" and self._keys.opens(token):
                return self._opened()
            return _no("no session: open the link that `confide studio` printed; it opens one browser, once", 403)
        if scope["method"] not in _SAFE and not self._from_here(scope["path"], headers):
            return _no("this form does not come from the studio's own page", 403)
        return None

    def _opened(self) -> Response:
        response = RedirectResponse("/", 303)
        response.set_cookie(self._name, self._keys.cookie, httponly=True, samesite="strict", path="/")
        return response

    def _cookies(self, headers: Mapping[str, str]) -> list[str]:
        """The values of this port's cookie. Others are of other servers on this machine, and may be no text that a parser takes."""
        parts = (one.strip().partition("=") for one in headers.get("cookie", "").split(";"))
        return [value for name, _, value in parts if name == self._name]

    def _from_here(self, path: str, headers: Mapping[str, str]) -> bool:
        """A form of the studio: same origin, said by the browser itself, short, and plain; or long where it carries a file."""
        length = headers.get("content-length", "")
        kind, most = ("multipart/form-data", self._files[path]) if path in self._files else (_PLAIN, _LONGEST)
        return (
            headers.get("origin") == f"http://{headers['host']}"
            and headers.get("sec-fetch-site", "same-origin") == "same-origin"
            and headers.get("content-type", "").split(";")[0] == kind
            and re.fullmatch("[0-9]{1,12}", length) is not None
            and int(length) <= most
            # a body in chunks may be longer than it says; browsers send none
            and "transfer-encoding" not in headers
        )


def policy(script: str | None) -> str:
    """The content security policy of a page whose only script is this one, and whose styles are the studio's own file."""
    scripts = "'none'" if script is None else _hashed(script)
    reach = "'none'" if script is None else "'self'"
    return (
        f"default-src 'none'; style-src 'self'; script-src {scripts}; connect-src {reach}; img-src 'self' data:; frame-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _same(given: str, kept: str) -> bool:
    return secrets.compare_digest(given.encode(), kept.encode())


def _no(words: str, status: int) -> Response:
    return PlainTextResponse(words + "\n", status)
