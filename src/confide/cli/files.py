"""Files of the command line: inputs that say what is wrong with them, outputs that are never lost or overwritten."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confide.cli.options import Csv, Plot, Report
from confide.cli.session import Refused, Session, reading_only
from confide.errors import PlanError, ReleaseError

if TYPE_CHECKING:
    from confide.protocol import Plan, Release
    from confide.schema import Schema

__all__ = [
    "Drawings",
    "Output",
    "check_places",
    "keep",
    "ledger_file",
    "load_plan",
    "load_release",
    "load_schema",
    "put",
    "reserve",
]

_ENDINGS = {
    "--report": (".html", ".htm", ".md", ".tex", ".docx"),
    "--plot": (".png", ".svg", ".pdf"),
    "--csv": (".csv",),
}


class Output:
    """A file whose place is taken before anything is spent, so that what was paid for can be kept.

    A new file is created at once, exclusively: nobody else can take its name in the meantime. With --force the text
    goes to a file beside the old one, which is replaced only when the new one is complete.
    """

    def __init__(self, path: Path, *, force: bool) -> None:
        self.path = path
        self._target = path
        self._place: Path | None = None
        self._reserve(force)

    def _reserve(self, force: bool) -> None:
        if str(self.path) == "-":
            raise Refused("an output needs a file name, not '-'; for JSON on stdout use --json")
        try:
            self._target = self.path.resolve()
            self._check(force)
            fresh = not self._target.exists()
            place = self._target if fresh else self._target.with_name(f".confide-{secrets.token_hex(8)}.part")
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            raise Refused(f"{self.path} exists; nothing was done; give another -o, or --force to replace it") from None
        except (OSError, ValueError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "no usable file name"
            raise Refused(
                f"{self.path} cannot be written: {reason}; nothing was done; give a folder that you may write to"
            ) from None
        self._place = place

    def _check(self, force: bool) -> None:
        if self._target.exists():
            if not self._target.is_file():
                raise Refused(f"{self.path} is not a file that can be replaced; give another -o")
            if not force:
                raise Refused(f"{self.path} exists; nothing was done; give another -o, or --force to replace it")
        elif not self._target.parent.is_dir():
            raise Refused(
                f"{self.path} cannot be written: its folder does not exist; nothing was done; make the folder first"
            )

    def write(self, content: str | bytes) -> None:
        """Write all of it to the disk; `OSError` when that fails."""
        assert self._place is not None
        with self._place.open("wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        if self._place != self._target:
            self._place.replace(self._target)
        self._place = None

    def discard(self) -> None:
        """Give the place back when nothing was written."""
        if self._place is not None:
            with suppress(OSError):
                self._place.unlink()
            self._place = None


def put(output: Output, content: str | bytes) -> None:
    """Write an output that can be made again; `Refused` when that fails."""
    try:
        output.write(content)
    except OSError as error:
        raise Refused(f"{output.path} could not be written: {error.strerror or type(error).__name__}") from None


@contextmanager
def reserve(path: Path | None, *, force: bool = False) -> Iterator[Output | None]:
    """The place of an output for the length of a block; None stays None. Raises `Refused` when it cannot be had."""
    if path is None:
        yield None
        return
    output = Output(path, force=force)
    try:
        yield output
    finally:
        output.discard()


def keep(session: Session, output: Output | None, release: Release) -> None:
    """Write a release; if that fails, print it on stdout rather than lose it, and raise `ReleaseError`."""
    if output is None:
        return
    try:
        output.write(release.to_json())
    except BaseException as error:
        session.last_resort(release.to_json())
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise ReleaseError(
            f"{output.path} could not be written ({reason}); the release was printed on stdout instead"
        ) from None
    session.kept = str(output.path)


def ledger_file(ledger: str | None) -> Path | None:
    """The file of a ledger; None for a ledger on a server, whose URL is no path."""
    return None if ledger is None or "://" in ledger else Path(ledger)


def check_places(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse an output that is an input or another output: --force on a ledger would be the end of it."""
    taken = {path.resolve(): name for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        place = path.resolve()
        if place in taken:
            raise Refused(f"{name} {path} is {taken[place]} as well; give it a file of its own")
        taken[place] = name


@dataclass(frozen=True)
class Drawings:
    """Where a result is to be written beside the table on stdout: the report, the plot, the table as CSV."""

    report: Report = None
    plot: Plot = None
    csv: Csv = None

    @property
    def places(self) -> dict[str, Path | None]:
        """Each by its option."""
        return {"--report": self.report, "--plot": self.plot, "--csv": self.csv}

    def check(self, *, force: bool) -> None:
        """What can be known before anything is spent: endings, folders, and files that are there already."""
        for name, path in self.places.items():
            if path is None:
                continue
            if path.suffix.lower() not in _ENDINGS[name]:
                raise Refused(f"{name} {path} must end in {', '.join(_ENDINGS[name])}")
            if path.suffix.lower() == ".docx":
                from confide.results.pages.written import check_word

                check_word()
            folder = path.resolve().parent
            there = path.exists()
            if (
                path.is_dir()
                or not folder.is_dir()
                or not os.access(folder, os.W_OK)
                or (there and not os.access(path, os.W_OK))
            ):
                raise Refused(
                    f"{name} {path} cannot be written; give a file in a folder that exists and that you may write to"
                )
            if there and not force:
                raise Refused(f"{path} exists; nothing was done; give another {name}, or --force to replace it")


# inputs ---------------------------------------------------------------------------------------------------------------


def load_schema(path: Path) -> Schema:
    """The schema in a TOML file; `SchemaError` when there is none."""
    from confide.schema import Schema

    return Schema.from_toml(path)


def load_plan(path: Path) -> Plan:
    """The plan in a file that `confide plan -o` wrote; nothing in it is believed before the gate makes it anew."""
    from confide.protocol import Plan
    from confide.protocol.serialization.files import text_of

    with _reading(path, "plan", "confide plan MODEL --schema schema.toml --mu 1 -o plan.json"):
        return Plan.from_json(text_of(path, "plan"))


def load_release(path: Path) -> Release:
    """The release in a file that `confide release -o` wrote."""
    from confide.protocol import Release

    with _reading(path, "release", "confide release plan.json DATA --ledger LEDGER -o release.json"):
        return Release.load(path)


@contextmanager
def _reading(path: Path, kind: str, make: str) -> Iterator[None]:
    """Whatever is wrong inside a file, it is the file that is wrong: no charge was made."""
    try:
        yield
    except ReleaseError as error:
        raise reading_only(ReleaseError(f"{path}: {error}")) from None
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else "no usable file name"
        raise PlanError(f"the {kind} {path} cannot be read: {reason}; make one with `{make}`") from None
