"""The command line: a thin face over gate, registry, ledger and schema.

Commands are loaded when they are called (`confide.cli.registry`), and heavy rooms inside them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from confide._version import __version__
from confide.cli.options import Json
from confide.cli.registry import Commands, purposes, spared
from confide.cli.session import Refused, Session

__all__ = ["app", "main"]

_HELP = """\
Differentially private statistics with confidence intervals.

A steward describes the data in a schema, plans an analysis and releases it once.
An analyst then reads tables, intervals and tests from the released file:

\b
confide schema draft survey.csv -o schema.toml    (then replace each '?')
confide schema check schema.toml
confide ledger init ledger.db --dataset survey --mu 2
confide plan "happy ~ age" --schema schema.toml --mu 1 -o plan.json
confide release plan.json survey.csv --ledger ledger.db -o release.json
confide infer release.json --report report.html

\b
Exit codes
0  done (also if the mechanism declined to answer)
1  a check failed
2  the command line is wrong
3  the schema or the plan is wrong
4  the budget is too small; nothing was charged
5  the ledger is busy
6  failed after the charge, which stays
7  an audit in which nothing failed and something was not tested
8  stopped after the preflight; nothing was charged
130  interrupted

With --json a command prints one JSON document on stdout and nothing else. An
error has the keys "error" (its class), "message" and "exit_code".
"""


_NOT_RUN = (
    "the command that was named did not run: the installed typer does not hand command lines on; "
    "write: pip install --upgrade typer"
)


def _brought() -> dict[str, EntryPoint]:
    """The commands that other packages bring (entry points of the group `confide.commands`: typer applications)."""
    return {point.name: point for point in entry_points(group="confide.commands")}


def _words(given: Sequence[str]) -> tuple[str, ...]:
    """What is no option, in its order: the command's words come first, since no option before them takes a value."""
    return tuple(word for word in given if not word.startswith("-"))


def _told(given: Sequence[str]) -> bool:
    """Whether words alone are asked for: a page of help, or the version, which is an option before any command."""
    return "--help" in given or "--version" in takewhile(lambda word: word.startswith("-"), given)


class CommandGroup(TyperGroup):
    """The outermost command: it makes the session, and every way to end goes through it.

    A command that is not ours is looked up among those of other packages, which are loaded when they are called or listed.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._ours = Commands()
        self.commands = self._ours  # type: ignore[assignment]
        spared(self)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Our commands, then those of other packages."""
        own = super().list_commands(ctx)
        return own + sorted(set(_brought()) - set(own))

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """The command of a name; None if there is none. Nobody else's can stand in for ours."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or (point := _brought().get(cmd_name)) is None:
            return own
        return self._ours.built(point.load(), cmd_name)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Without frames: loading what draws them takes longer than all the rest of this page."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """The purpose of each command, whole."""
        with formatter.section("Commands"):
            formatter.write_dl(list(purposes()))

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Run one command line and exit with its code."""
        given = tuple(sys.argv[1:] if args is None else args)
        # Looked up in the arguments and not where typer parses it: a usage error comes before anything is parsed.
        session = Session(given, json="--json" in given and given[:2] != ("lab", "run"))

        def work() -> None:
            if given == ("--help",):  # parsing it as an option would first load all that checks options
                typer.echo(self.get_help(typer.Context(self, info_name="confide", obj=session)))
                return
            try:
                with self.make_context("confide", list(given), obj=session) as ctx:
                    self.invoke(ctx)
            except typer.Exit as end:
                if end.exit_code:
                    raise
            # what reads command lines is another project's, and versions of it said 0 and ran nothing
            ran = self._ours.ran
            if not _told(given) and (not ran or _words(given)[: len(ran)] != ran):
                raise Refused(_NOT_RUN)

        self._ours.ran = ()
        sys.exit(session.run(work))


app = typer.Typer(
    cls=CommandGroup,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        session: Session = ctx.obj
        session.say(f"confide {__version__}")
        session.answer({"version": __version__})
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
    json: Json = False,
) -> None:
    pass


def main() -> None:
    """Run the command line of this process; ends in `SystemExit`."""
    # A reader's thread that dies would print its traceback, in which a record may stand; the step that waits for it
    # reports the failure anyway.
    threading.excepthook = lambda _: None
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            # a terminal that cannot show a character shows its escape, instead of an error after the charge
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app()
    # `CommandGroup.main` ends the process: whoever comes here did not come by it
    sys.stderr.write(f"error (UsageError): {_NOT_RUN}\n")
    sys.exit(2)
