"""Files of the command line: inputs that say what is wrong with them, outputs that are never lost or overwritten."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
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
    goes to a file beside the old one, which is replaced only when the new one is complete. option: what named it, for messages.
    """

    def __init__(self, path: Path, *, force: bool, option: str = "-o") -> None:
        self.path = path
        self._option = option
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
            # the same ending: what writes pictures goes by it
            beside = f".confide-{secrets.token_hex(8)}.part{self._target.suffix}"
            place = self._target if fresh else self._target.with_name(beside)
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            raise self._there() from None
        except (OSError, ValueError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "no usable file name"
            raise Refused(
                f"{self.path} cannot be written: {reason}; nothing was done; give a folder that you may write to"
            ) from None
        self._place = place

    def _there(self) -> Refused:
        return Refused(f"{self.path} exists; nothing was done; give another {self._option}, or --force to replace it")

    def _check(self, force: bool) -> None:
        if self._target.exists():
            if not self._target.is_file():
                raise Refused(f"{self.path} is not a file that can be replaced; give another {self._option}")
            if not force:
                raise self._there()
        elif not self._target.parent.is_dir():
            raise Refused(
                f"{self.path} cannot be written: its folder does not exist; nothing was done; make the folder first"
            )

    def take(self, size: int) -> None:
        """Take room for so many bytes, which what is written later has for itself; `Refused` where there is none."""
        assert self._place is not None
        try:
            with self._place.open("r+b") as file:
                file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())  # some file systems learn only now that they are full
        except OSError as error:
            raise Refused(
                f"{self.path} has no room for what will be written ({error.strerror}); nothing was done; make room, or give another "
                f"{self._option}"
            ) from None

    def write(self, content: str | bytes) -> None:
        """Write all of it to the disk; `OSError` when that fails."""
        assert self._place is not None
        with self._place.open(
            "r+b"
        ) as file:  # over the room that was taken, none of which is given away before it is used
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.truncate()
        self._finish()

    def by(self, write: Callable[[Path], object]) -> None:
        """Have the file written by what takes a path; `OSError` when that fails."""
        assert self._place is not None
        write(self._place)
        self._finish()

    def _finish(self) -> None:
        assert self._place is not None
        with self._place.open("r+b") as file:
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


def put(output: Output, content: str | bytes | Callable[[Path], object]) -> None:
    """Write an output that can be made again, or have it written; `Refused` when that fails."""
    try:
        output.by(content) if callable(content) else output.write(content)
    except OSError as error:
        raise Refused(f"{output.path} could not be written: {error.strerror or type(error).__name__}") from None


@contextmanager
def reserve(path: Path | None, *, force: bool = False, option: str = "-o") -> Iterator[Output | None]:
    """The place of an output for the length of a block; None stays None. Raises `Refused` when it cannot be had."""
    if path is None:
        yield None
        return
    output = Output(path, force=force, option=option)
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

    @contextmanager
    def reserved(self, *, force: bool) -> Iterator[Mapping[str, Output]]:
        """The places by their options, for the length of a block. Raises `Refused` when an ending is none, or a place cannot be had."""
        with ExitStack() as stack:
            found = {}
            for name, path in self.places.items():
                if path is None:
                    continue
                if path.suffix.lower() not in _ENDINGS[name]:
                    raise Refused(f"{name} {path} must end in {', '.join(_ENDINGS[name])}")
                if path.suffix.lower() == ".docx":
                    from confide.results.pages.written import check_word

                    check_word()
                output = stack.enter_context(reserve(path, force=force, option=name))
                assert output is not None
                found[name] = output
            yield found


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
