"""One run of the command line: how it speaks, in which colors, which step is running, whether a charge may have been made, its end."""

from __future__ import annotations

import io
import json
import os
import re
import select
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from traceback import walk_tb
from typing import Any

import typer

from confide._helpers import clean
from confide.cli.messages import as_said, for_command_line
from confide.errors import BudgetExceeded, ConfideError, ReleaseError

# The parent of every usage error. Newer releases of typer carry their own copy of click: no public name leads to it.
_PARSER_ERROR: type[Exception] = typer.BadParameter.__bases__[0]

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PIPE_CLOSED = 141  # 128 + SIGPIPE
# Bytes that the disk of a stdout that is a file must have left: many tables, and the JSON of most releases.
_LEFT = 1 << 20


class Refused(Exception):
    """A command line that cannot be run as it stands: exit code 2, nothing was done.

    problem: what was given, and which rule it breaks; remedy: what to write.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__("; ".join(filter(None, [problem, remedy])))
        self.problem, self.remedy = problem, remedy


@dataclass
class Session:
    """The state of one run, handed to every command as `ctx.obj`.

    json: one JSON document on stdout and nothing else. step: the running step, for messages. private: whether that step can see records.
    charging: whether the command charges. charge: "none", "possible" (during a release with a ledger) or "made".
    ledger, dataset: those that were named, or opened. options: of the command.
    `cheaper`: the `confide plan` for another cost, from its options. kept: the file of the release. spoke: whether stdout has its document.
    mute: prints nothing, for a rehearsal. uncharged: charged to no ledger. verbose: whether all facts and notes of a table are printed.
    """

    json: bool = False
    step: str = "reading the command"
    private: bool = False
    charging: bool = False
    charge: str = "none"
    ledger: str | None = None
    dataset: str | None = None
    options: frozenset[str] = frozenset()
    cheaper: Callable[[str], str] | None = None
    kept: str | None = None
    spoke: bool = False
    mute: bool = False
    uncharged: bool = False
    verbose: bool = False

    # speaking -------------------------------------------------------------------------------------------------------

    def say(self, text: str = "") -> None:
        """Text for people on stdout; nothing under --json."""
        if not self.json and not self.mute:
            shown = printable(as_said(text, self.options))
            typer.echo(painted(shown) if paints(sys.stdout) else shown)

    def say_as_is(self, text: str) -> None:
        """The same for text that was cleaned and has the escapes of colors in it."""
        if not self.json and not self.mute:
            typer.echo(as_said(text, self.options))

    def worded(self, message: str, priced: Callable[[str], str] | None = None) -> str:
        """A message of the package in the words of the command that runs; priced: how it asks for a privacy, if not by options alone."""
        return for_command_line(message, ledger=self.ledger, dataset=self.dataset, options=self.options, priced=priced)

    def note(self, text: str) -> None:
        """Text for people on stderr, so that it never mixes with what a pipe carries."""
        if self.mute:
            return
        shown = printable(text)
        typer.echo(painted(shown) if paints(sys.stderr) else shown, err=True)

    def answer(self, payload: Mapping[str, Any]) -> None:
        """The one JSON document of a run with --json; nothing otherwise."""
        if self.json and not self.mute:
            typer.echo(json.dumps(strict(payload), allow_nan=False))
            self.spoke = True

    @contextmanager
    def doing(self, step: str, *, private: bool = False) -> Iterator[None]:
        """Name a step, with a spinner on stderr in a terminal. When the step fails its name stays, for the message."""
        self.step, self.private = step, private
        with self._spinner(step):
            yield
        self.step, self.private = "printing", False

    @contextmanager
    def paying(self, step: str, *, ledger: bool) -> Iterator[None]:
        """A private step that charges a ledger, where there is one: from its beginning on a charge may have been made."""
        try:
            with self.doing(step, private=True):
                self.charge = "possible" if ledger else "none"
                yield
        except ConfideError:
            # its class says whether a charge was made, and its words say what became of it
            self.charge = "none"
            raise
        self.charge = "made" if ledger else "none"

    @contextmanager
    def _spinner(self, step: str) -> Iterator[None]:
        if self.mute or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(f"{step} ...", spinner="line"):
            yield

    # ending ---------------------------------------------------------------------------------------------------------

    def run(self, work: Callable[[], Any]) -> int:
        """Run the work and turn every way in which it can end into a message and an exit code."""
        with _streams():
            return self._run(work)

    def check_heard(self) -> None:
        """Refuse where stdout, which alone is to hold what will be paid for, is closed, full or a pipe that nobody reads."""
        reason = _unheard(sys.stdout)
        if reason is not None:
            raise Refused(
                f"the result would go to stdout alone, which cannot take it ({reason})",
                "keep the release in a file as well: -o release.json",
            )

    def _run(self, work: Callable[[], Any]) -> int:
        code = self._ended(work)
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            _close_stdout()
        return code

    def _ended(self, work: Callable[[], Any]) -> int:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = self._warned
                work()
            sys.stdout.flush()
            return 0
        except typer.Exit as end:
            return end.exit_code
        except KeyboardInterrupt:
            return self._fail("Interrupted", "interrupted" + self._charge_words(), INTERRUPTED)
        except BrokenPipeError:
            return PIPE_CLOSED
        except Refused as error:
            made = self.charge == "made"
            problem = error.problem + (self._charge_words() if made else "")
            return self._fail("UsageError", problem, 6 if made else 2, error.remedy)
        except _PARSER_ERROR as error:
            return self._parser(error)
        except ConfideError as error:
            return self._confide(error)
        except (Exception, SystemExit) as error:
            if isinstance(error.__context__, BrokenPipeError):  # rich turns a closed pipe into SystemExit
                return PIPE_CLOSED
            return self._unexpected(error)

    def _warned(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Pass on what is meant for users, outside private steps: the warning of a reader may quote a cell."""
        if issubclass(category, UserWarning) and not self.private:
            self.note(f"warning: {self.worded(str(message))}")

    def _parser(self, error: Any) -> int:
        if type(error).__name__ == "NoArgsIsHelpError" and not self.json:
            error.show()
            return 2
        context, remedy = getattr(error, "ctx", None), ""
        message = "say which command" if type(error).__name__ == "NoArgsIsHelpError" else error.format_message()
        if message.startswith("Missing option '--schema'"):
            message += " Write a schema: confide schema draft DATA -o schema.toml"
        if context is not None:
            remedy = f"{context.command_path} --help"
            self.charging = any(one.name == "unaccounted" for one in context.command.params)
        return self._fail("UsageError", message.rstrip("."), 2, remedy)

    def _confide(self, error: ConfideError) -> int:
        # Behind the gate whatever fails, fails after the charge: 3, for a report that cannot be written, would deny it.
        code = 6 if self.charge == "made" else error.exit_code
        priced = self.cheaper if isinstance(error, BudgetExceeded) else None
        problem, remedy = (self.worded(text, priced) for text in (error.problem, error.remedy))
        if self.charge == "made":
            problem += self._charge_words()
        if isinstance(error, BudgetExceeded):
            totals = {"requested": error.requested, "spent": error.spent, "remaining": error.remaining}
            return self._fail("BudgetExceeded", problem, code, remedy, **totals)
        return self._fail(type(error).__name__, problem, code, remedy)

    def _unexpected(self, error: BaseException) -> int:
        """An error that was not planned. Its text may quote a record, so it is never printed; nor is a traceback.

        In a step that can see records, even the class of the exception may depend on them: an overflow for one dataset and
        none for its neighbor. So it is withheld, too. In steps that see only public facts, the class and the line of code are
        printed, because the author of a method needs them. The exit code is 6 as soon as a charge is possible. A script
        that reads 2 may try again, and would be charged twice.
        """
        system = error.strerror if isinstance(error, OSError) else None
        public = f"{type(error).__name__}{f', {system}' if system else ''}{_line_of(error)}; its text withheld"
        what = "details withheld, they may depend on records" if self.private else public
        code = 2 if self.charge == "none" else 6
        return self._fail("UnexpectedError", f"unexpected error in {self.step} ({what}){self._charge_words()}", code)

    def _charge_words(self) -> str:
        where = f"; the release is in {self.kept}" if self.kept else ""
        if self.charge == "none":
            return where
        if self.charge == "possible":
            return "; a charge already made stays in the ledger: see `confide ledger show`"
        return f"; the charge was made and stays in the ledger{where}"

    def _fail(self, kind: str, problem: str, code: int, remedy: str = "", **more: Any) -> int:
        # A failure after the charge, and a ledger that may or may not have written it, tell their own story.
        uncharged = self.charging and self.charge == "none" and code not in (5, 6)
        if uncharged:
            problem, remedy = (
                text.replace("nothing was charged; ", "").removesuffix("; nothing was charged")
                for text in (problem, remedy)
            )
        ends = ["nothing was charged"] if uncharged else []
        # where nobody can be told, the code still stands
        with suppress(OSError):
            if self.json and not self.spoke:
                message = "; ".join(filter(None, [problem, remedy, *ends]))
                told = {"error": kind, "message": message, "problem": problem, "remedy": remedy, "exit_code": code}
                self.answer({**told, **more})
                return code
        with suppress(OSError):
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
            lines = [f"Error: {problem}" + ("" if problem.endswith((".", "?", "!")) else ".")]
            lines += [f"  Try      {remedy.removeprefix('write ')}"] if remedy else []
            lines += ["".join(f"{end.capitalize()}. " for end in ends) + f"[{name}, exit {code}]"]
            self.note("\n".join(lines))
        return code

    def last_resort(self, text: str) -> None:
        """Print a paid release because its file could not be written, on stdout, or on stderr where that fails: the alternative is to
        lose it.
        """
        self.note("the release has no file and follows here; save it, because it is charged and cannot be drawn again")
        try:
            heard = _unheard(sys.stdout) is None
            typer.echo(text, nl=not text.endswith("\n"), err=not heard)
            (sys.stdout if heard else sys.stderr).flush()
        except OSError:
            typer.echo(text, err=True)
        self.spoke = True


class _Nowhere(io.TextIOWrapper):
    """Where a stream leads that was closed before we began."""


@contextmanager
def _streams() -> Iterator[None]:
    """Give a process that was started without stdout or stderr streams that lead nowhere; Python has None there."""
    closed = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        setattr(sys, name, _Nowhere(io.FileIO(os.devnull, "w"), errors="backslashreplace"))
    try:
        yield
    finally:
        for name in closed:
            getattr(sys, name).close()
            setattr(sys, name, None)


def _unheard(stream: Any) -> str | None:
    """Why what is written to a stream will not arrive; None where it may. Writes nothing."""
    if isinstance(stream, _Nowhere):
        return "it is closed"
    try:
        number = stream.fileno()
    except (OSError, ValueError, AttributeError):  # no file of the system: a notebook's, a test's
        return None
    try:
        stream.flush()
        os.write(number, b"")  # a device that is full refuses this much
        kind = os.fstat(number).st_mode
        if stat.S_ISREG(kind) and hasattr(os, "fstatvfs"):
            disk = os.fstatvfs(number)
            if disk.f_bavail * disk.f_frsize < _LEFT:
                return "the disk is full"
        if hasattr(select, "poll"):
            asked = select.poll()
            asked.register(number, select.POLLOUT)
            if any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in asked.poll(0)):
                return "nobody reads it"
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def _line_of(error: BaseException) -> str:
    """The file, without its folders, and the line where an error arose."""
    places = [(Path(frame.f_code.co_filename).name, line) for frame, line in walk_tb(error.__traceback__)]
    return f" in {places[-1][0]}, line {places[-1][1]}" if places else ""


def reading_only(error: ReleaseError) -> ReleaseError:
    """A damaged file, met before the gate: exit code 3, because 6 says that a charge was made."""
    error.exit_code = 3
    return error


def printable(text: str) -> str:
    """Text whose control characters are visible escapes: names come from others' files and could repaint a terminal."""
    return "\n".join(clean(line) for line in text.split("\n"))


def strict(value: Any) -> Any:
    """Plain JSON types of nested public values; a number that is not finite becomes null.

    >>> strict({"low": float("-inf"), "names": ("a", "b")})
    {'low': None, 'names': ['a', 'b']}
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (Sequence, Set)):
        return [strict(item) for item in value]
    if is_dataclass(value):
        return {
            "kind": type(value).__name__,
            "text": str(value),
            **{f.name: strict(getattr(value, f.name)) for f in fields(value)},
        }
    return str(value)


def _close_stdout() -> None:
    """Point stdout at nothing, so that the interpreter does not try once more at exit and complain."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


_BOLD, _RED, _GREEN, _YELLOW, _DIM = "1", "1;31", "32", "33", "2"
_GOOD = "valid|released|done"
_CAUTION = "partial|imprecise|stopped|refused"
_ALARM = "no information|not identified|declined|failed"
#: (pattern, colours of its groups, in order; none where the group stays as it is)
_RULES: tuple[tuple[re.Pattern[str], tuple[str | None, ...]], ...] = (
    (re.compile(r"(!!.+!!|!{20,})"), (_RED,)),
    (re.compile(r"(warning:)(.*)"), (_YELLOW, None)),
    (re.compile(r"(note:)(.*)"), (_DIM, None)),
    (re.compile(r"(error \(\w+\):)(.*)"), (_RED, None)),
    (re.compile(rf"(Status:?\s+)({_GOOD})(\b.*)"), (_BOLD, _GREEN, None)),
    (re.compile(rf"(Status:?\s+)({_CAUTION})(\b.*)"), (_BOLD, _YELLOW, None)),
    (re.compile(rf"(Status:?\s+)({_ALARM})(\b.*)"), (_BOLD, _RED, None)),
    (re.compile(r"(Caution\s\s+)(.*)"), (_YELLOW, None)),
    (re.compile(r"(Alarm\s\s+)(.*)"), (_RED, None)),
    (re.compile(r"(SIMULATED NOISE[^\n]*)"), (_RED,)),
    (re.compile(r"(={20,}|-{20,})"), (_DIM,)),
    (re.compile(r"(Plan: [^\n]+|Publication of [^\n]+)"), (_BOLD,)),
    (re.compile(r"(Intervals for|Privacy|Clipped|Missing|Reference|Release ID)(\s\s+.*)"), (_BOLD, None)),
)


def paints(stream: Any) -> bool:
    """Whether a stream is a terminal that shows colors, for someone who wants them (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"
    return wanted and bool(getattr(stream, "isatty", lambda: False)())


def painted(text: str) -> str:
    r"""Text that was cleaned, with the escapes of colors in it.

    >>> painted("warning: many levels"), painted("Status   imprecise: too few")
    ('\x1b[33mwarning:\x1b[0m many levels', '\x1b[1mStatus   \x1b[0m\x1b[33mimprecise\x1b[0m: too few')
    """
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    for pattern, colours in _RULES:
        if found := pattern.fullmatch(line):
            parts = zip(found.groups(), colours, strict=True)
            return "".join(
                part if colour is None or not part else f"\x1b[{colour}m{part}\x1b[0m" for part, colour in parts
            )
    return line
