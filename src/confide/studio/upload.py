"""A file that the browser sends into the folder: streamed to disk, under a name that is free, kept only where it is what its name says.

The form's own field comes before the file, so that no byte of a stranger's file is written. What is written goes into a hidden file of
this account alone, and takes its name once it is whole: a link that never replaces, so that no file, no ledger and no link that stands
there is written over or followed. Then its metadata is read as that of any file of the folder; what has none is taken away again.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Web

from confide._helpers import later
from confide.errors import ConfideError, PlanError
from confide.schema import Schema
from confide.schema.layout import FileLayout
from confide.studio.folder import DATA, DATABASES, SCHEMA, Folder

multipart = later("python_multipart")

#: The most bytes of a form with a file; a larger file is copied into the folder by other means.
LARGEST = 1 << 32
_REQUEST = ".request.json"
_RECORDS = (*DATA, *(one for one in DATABASES if one != ".db"))
#: What may be sent: records, databases, schemas and requests. No ledger: a budget is opened here, by the steward.
ENDINGS = (*_RECORDS, SCHEMA, _REQUEST)
_LONGEST = 200  # bytes of a name: what else is written about the file has a longer one


class ForeignForm(PlanError):
    """A form that is not of this session."""


async def received(web: Web, folder: Folder, own: Callable[[str], bool]) -> str:
    """Take the file of a form into the folder; returns the page that shows it. own: whether a form's field is this session's.

    Raises `ForeignForm` for a form of another session, and `PlanError` for what cannot be kept; then nothing is.
    """
    _, said = multipart.multipart.parse_options_header(web.headers.get("content-type", ""))
    part = folder.root / f".{secrets.token_urlsafe(16)}.upload"
    form = _Form(folder, own, part, int(web.headers["content-length"]))
    refused: PlanError | None = None
    try:
        parser = _parser(said.get(b"boundary", b""), form)
        async for piece in _pieces(web):
            # what was refused is read to its end, and dropped: a browser shows no answer to a form that it is still sending
            if refused is None:
                try:
                    parser.write(piece)
                except PlanError as error:
                    refused = error
                except multipart.exceptions.FormParserError:
                    refused = PlanError("this form cannot be read", "go back, and send the file again")
                except OSError as error:
                    refused = PlanError(f"the file could not be written ({error.strerror}); it was not kept")
        if refused is not None:
            raise refused
        if not form.whole:
            raise PlanError("no whole file came with this form", "choose one, and send it again")
        form.close()
        return await run_in_threadpool(_kept, folder, form.name, part)
    finally:
        form.close()
        part.unlink(missing_ok=True)


async def _pieces(web: Web) -> AsyncIterator[bytes]:
    async for piece in web.stream():
        if piece:
            yield piece


def _parser(boundary: bytes, form: _Form) -> Any:
    steps = ("part_begin", "header_field", "header_value", "header_end", "headers_finished", "part_data", "end")
    if not boundary or len(boundary) > 70:
        raise PlanError("this form cannot be read", "go back, and send the file again")
    return multipart.multipart.MultipartParser(boundary, {f"on_{step}": getattr(form, step) for step in steps})


class _Form:
    """The two parts that are awaited, in their order: the session's field, then the file, which goes to disk as it comes."""

    def __init__(self, folder: Folder, own: Callable[[str], bool], part: Path, length: int) -> None:
        self._folder, self._own, self._part, self._length = folder, own, part, length
        self._heads: dict[bytes, bytes] = {}
        self._field, self._value, self._secret = b"", b"", b""
        self._at = 0
        self._file: IO[bytes] | None = None
        self.name, self.whole = "", False

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def part_begin(self) -> None:
        self._at += 1
        self._heads = {}
        if self._at > 2:
            raise PlanError("one file is taken at a time")

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        self._heads[self._field.lower()] = self._value
        self._field = self._value = b""

    def headers_finished(self) -> None:
        # browsers send names in UTF-8; the package reads and gives them byte by byte, as Latin-1
        said = self._heads.get(b"content-disposition", b"").decode("latin-1")
        _, facts = multipart.multipart.parse_options_header(said)
        if self._at == 1 and facts.get(b"name") == b"csrf" and b"filename" not in facts:
            return
        if self._at == 1 or not self._own(self._secret.decode("latin-1")):
            raise ForeignForm("this form is of another session; nothing was kept")
        self.name = _checked(self._folder, facts.get(b"filename", b""))
        if self._length > shutil.disk_usage(self._folder.root).free:
            raise PlanError("the disk of the folder has no room for this file; nothing was kept")
        opened = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._file = os.fdopen(opened, "wb")

    def part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
        elif len(self._secret) + end - start <= 200:
            self._secret += data[start:end]
        else:
            raise ForeignForm("this form is of another session; nothing was kept")

    def end(self) -> None:
        self.whole = self._file is not None


def _checked(folder: Folder, given: bytes) -> str:
    """The name of a file that may be kept; `PlanError` for any other."""
    try:
        name = given.decode("utf-8")
    except UnicodeDecodeError:
        raise PlanError("the file's name is not UTF-8", "give it another") from None
    if not name:
        raise PlanError("no file was chosen", "choose one, and send it again")
    if len(given) > _LONGEST:
        raise PlanError(f"the file's name is longer than {_LONGEST} bytes", "give it a shorter one")
    if name.startswith("-"):
        raise PlanError(f"{name} would be an option of a command, not a file", "give it another name")
    folder.path(name)
    if not (name.lower().endswith(_RECORDS) or name.endswith((SCHEMA, _REQUEST))):
        raise PlanError(
            f"{name} is not taken: the name of a file that is sent ends in {', '.join(ENDINGS)}; a budget is opened on the first page"
        )
    there = next((one for one in (name, *_beside(name)) if os.path.lexists(folder.root / one)), None)
    if there is not None:
        raise PlanError(
            f"{there} is there already, and no file is written over another",
            "give yours another name, or move that one away",
        )
    if name.endswith(_REQUEST):
        stem = name.removesuffix(_REQUEST)
        about = next((one for one in ("decision", "release") if folder.path(f"{stem}.{one}.json").exists()), None)
        if about is not None:
            raise PlanError(
                f"{stem}.{about}.json is there, and would be taken for this request's", "give it another name"
            )
    return name


def _beside(name: str) -> tuple[str, ...]:
    """The files that SQLite keeps beside a database, and would read with it."""
    return tuple(f"{name}-{one}" for one in ("wal", "shm", "journal")) if name.lower().endswith(DATABASES) else ()


def _kept(folder: Folder, name: str, part: Path) -> str:
    """Give the file its name, and see what it is; returns the page about it."""
    place = folder.path(name)
    try:
        os.link(part, place)
    except FileExistsError:
        raise PlanError(f"{name} came to be there meanwhile, and no file is written over another") from None
    except OSError as error:
        raise PlanError(f"{name} cannot be kept under this name ({error.strerror})", "give it another") from None
    try:
        return _page_of(folder, name)
    except BaseException:
        for one in (name, *_beside(name)):
            with suppress(OSError):
                (folder.root / one).unlink()
        raise


def _page_of(folder: Folder, name: str) -> str:
    """The page that shows a file; `ConfideError` where it is not what its name says."""
    if name.endswith(_REQUEST):
        return f"/request/{quote(folder.request(name.removesuffix(_REQUEST)).name)}"
    if name.endswith(SCHEMA):
        Schema.from_toml(folder.path(name))
        return f"/schema/{quote(name)}"
    if name.lower().endswith(DATABASES):
        tables = [one for one in folder.data() if one.startswith(f"{name}/")]
        if not tables:
            raise PlanError(f"{name} has no table that can be listed, as a SQLite or DuckDB file has; it was not kept")
        return f"/schema?data={quote(tables[0])}" if len(tables) == 1 else "/"
    try:
        folder.fields(name, FileLayout())
    except ConfideError as error:
        # in another encoding, or of one of its sheets, it may be read: its page asks which
        if not any(_is_read(folder, name, other) for other in (FileLayout(encoding="cp1252"), FileLayout(sheet=1))):
            raise PlanError(f"{name} was not kept: {error}") from None
    return f"/schema?data={quote(name)}"


def _is_read(folder: Folder, name: str, layout: FileLayout) -> bool:
    try:
        return bool(folder.fields(name, layout)[0])
    except ConfideError:
        return False
