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
from confide.cli.messages import as_said, for_command_line, typed
from confide.errors import BudgetExceeded, ConfideError, ReleaseError, hanging

# The parent of every usage error. Newer releases of typer carry their own copy of click: no public name leads to it.
_PARSER_ERROR: type[Exception] = typer.BadParameter.__bases__[0]

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PIPE_CLOSED = 141  # 128 + SIGPIPE
# Bytes that the disk of a stdout that is a file must have left: many tables, and the JSON of most releases.
_LEFT = 1 << 20


#: Options that say what a release may cost.
_COSTS = frozenset({"--mu", "--rho", "--epsilon", "--delta", "--margin", "--cv"})


class Refused(ConfideError):
    """A command line that cannot be run as it stands: exit code 2, nothing was done."""

    _called = "usage_error"


class Stopped(ConfideError):
    """The steward saw how the records are read, and goes no further: exit code 8, nothing was charged."""

    exit_code = 8
    _called = "stopped"


@dataclass
class Session:
    """The state of one run, handed to every command as `ctx.obj`.

    given: the words of the command line. `json`: one JSON document on stdout and nothing else. `step`: the running step, for messages.
    `private`: whether that step can see records.
    `charging`: whether the command charges. `charge`: "none", "possible" (during a release with a ledger) or "made".
    ledger, dataset: those that were named, or opened. options: of the command.
    `cheaper`: the `confide plan` for another cost, from its options. kept: the file of the release. spoke: whether stdout has its document.
    mute: prints nothing, for a rehearsal. uncharged: charged to no ledger. verbose: whether all facts and notes of a table are printed.
    """

    given: Sequence[str] = ()
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
            shown = fitted(printable(as_said(text, self.options)))
            typer.echo(painted(shown) if paints(sys.stdout) else shown)

    def say_as_is(self, text: str) -> None:
        """The same for text that was cleaned and has the escapes of colors in it."""
        if not self.json and not self.mute:
            typer.echo(as_said(text, self.options))

    def worded(self, message: str, analysis: str | None = None, priced: Callable[[str], str] | None = None) -> str:
        """A message of the package in the words of the command that runs; priced: how it asks for a privacy, if not by options alone."""
        told = {"ledger": self.ledger, "dataset": self.dataset, "analysis": analysis}
        return for_command_line(message, options=self.options, priced=priced, **told)

    def command(self, cost: str = "", instead: tuple[str, str] = ("", ""), more: str = "") -> str:
        """The command line that runs: at another cost, with one argument in the place of another, with more options."""
        words, rest = ["confide"], iter(self.given)
        for word in rest:
            name, sign, _ = word.partition("=")
            if cost and name in _COSTS:
                _ = sign or next(rest, "")
                words += [] if cost in words else [cost]
            else:
                words.append("URL" if "://" in word else typed(instead[1] if word == instead[0] else word))
        return " ".join(filter(None, [*words, "" if cost in words else cost, more]))

    def note(self, text: str) -> None:
        """Text for people on stderr, so that it never mixes with what a pipe carries."""
        if self.mute:
            return
        shown = fitted(printable(text))
        typer.echo(painted(shown) if paints(sys.stderr) else shown, err=True)

    def asks(self, question: str) -> bool:
        """Whether someone at a terminal says yes; where no one is, it is not asked and the answer is yes."""
        if self.mute or sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        typer.echo(f"{question} [y/N] ", nl=False, err=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

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
            error = ConfideError("interrupted" + self._charge_words(), name="interrupted")
            return self._fail("Interrupted", error, INTERRUPTED)
        except BrokenPipeError:
            return PIPE_CLOSED
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
        if context is not None:
            remedy = f"{context.command_path} --help"
            self.charging = any(one.name == "unaccounted" for one in context.command.params)
        if message.startswith("Missing option '--schema'"):
            remedy = self.command(more="--schema schema.toml")
            remedy += "\nor, where there is no schema yet:\nconfide schema draft DATA -o schema.toml"
        return self._fail("UsageError", Refused(message.rstrip("."), remedy), 2)

    def _confide(self, error: ConfideError) -> int:
        # Behind the gate whatever fails, fails after the charge: 3, for a report that cannot be written, would deny it.
        code = 6 if self.charge == "made" else error.exit_code
        if self.charge == "made":
            error.problem += self._charge_words()
        if isinstance(error, BudgetExceeded):
            totals = {"requested": error.requested, "spent": error.spent, "remaining": error.remaining}
            return self._fail("BudgetExceeded", error, code, **totals)
        return self._fail("UsageError" if isinstance(error, Refused) else type(error).__name__, error, code)

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
        told = f"unexpected error in {self.step} ({what}){self._charge_words()}"
        return self._fail("UnexpectedError", ConfideError(told, name="unexpected_error"), code)

    def _charge_words(self) -> str:
        where = f"; the release is in {self.kept}" if self.kept else ""
        if self.charge == "none":
            return where
        if self.charge == "possible":
            return "; a charge already made stays in the ledger: see `confide ledger show`"
        return f"; the charge was made and stays in the ledger{where}"

    def _fail(self, kind: str, error: ConfideError, code: int, **more: Any) -> int:
        # A failure after the charge, and a ledger that may or may not have written it, tell their own story.
        uncharged = self.charging and self.charge == "none" and code not in (5, 6)
        priced = self.cheaper or self.command if isinstance(error, BudgetExceeded) else None

        def said(one: ConfideError, text: str) -> str:
            words = text if isinstance(one, Refused) else self.worded(text, one.analysis or None, priced)
            words = words.replace("nothing was charged; ", "") if uncharged else words
            return words.removesuffix("; nothing was charged") if uncharged else words

        if error.instead is not None and error.instead[0] in self.given:
            error.remedy = self.command(instead=error.instead)
        # where nobody can be told, the code still stands
        with suppress(OSError):
            if self.json and not self.spoke:
                problem = "; ".join(said(one, one.told) for one in (error, *error.parts))
                told = {"problem": problem, "remedy": said(error, error.remedy)}
                message = "; ".join(filter(None, [*told.values(), "nothing was charged" if uncharged else ""]))
                allowed = {"allowed": error.allowed} if error.allowed else {}
                self.answer({"error": kind, "message": message, **told, **allowed, "exit_code": code, **more})
                return code
        with suppress(OSError):
            end = error.ending or ("Nothing was charged." if uncharged else "")
            names = ", ".join([*error.names, f"exit {code}"])
            self.note("\n".join([*error.lines(said, "Error: "), *hanging("", f"{end} [{names}]".lstrip())]))
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


#: Lines that stay whole: of a TOML file, and of a table, whose columns are two blanks apart.
_WHOLE = re.compile(r"\s*(?:[\w.\"-]+ = |\[|#)|.*\S {2,}\S.*\S {2,}\S")
_LABEL = re.compile(r"\s*(?:\S+(?: \S+){0,3} {2,}|(?:[Nn]ote|warning): )?")


def fitted(text: str) -> str:
    """Text with its long lines wrapped to 80 columns, behind their labels.

    >>> print(fitted("Method     " + "word " * 16))
    Method     word word word word word word word word word word word word word
               word word word
    """

    def rows(line: str) -> list[str]:
        label = _LABEL.match(line)[0]  # type: ignore[index]
        return [line] if len(line) <= 80 or _WHOLE.match(line) else hanging(label, line[len(label) :])

    return "\n".join(row for line in text.split("\n") for row in rows(line))


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
    (re.compile(r"(Error:)(.*)"), (_RED, None)),
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
