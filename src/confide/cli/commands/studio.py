"""`confide studio`: the page on this machine."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from confide.cli.options import Json
from confide.cli.session import Refused, Session
from confide.errors import PlanError


def studio(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder that holds records, schemas, ledgers and requests.")
    ] = Path(),
    port: Annotated[int, typer.Option(help="A port of this machine; a free one when left out.", min=0, max=65535)] = 0,
    database: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIABLE",
            help="An environment variable that holds the address of a database, whose tables are records too. Repeat for more.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Open a page on this machine, in the browser: describe a file, ask, approve, release, read.

    Before a release no record is read. Nobody else reaches the page: it listens on
    this machine alone, and opens for whoever has the link that is printed, once.
    Ctrl-C ends it; a release that is being made is finished first.

    Tables of SQLite and DuckDB files in the folder are records like files; those of a
    database on a server are, where a variable holds its address:

    CLINIC=postgresql://user@host/clinic confide studio survey/ --database CLINIC

    Example:

    confide studio survey/
    """
    session: Session = ctx.obj
    try:
        import_module("python_multipart")
        from confide.studio import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "python_multipart"):
            raise
        raise PlanError("the studio needs three more packages: pip install 'confide[studio]'") from None
    session.step, session.private = "running the studio", True

    def tell(link: str) -> None:
        session.say(words.format(link))
        session.answer({"link": link})

    words = "Open this link; it works once, in one browser:\n\n    {}\n\nCtrl-C ends the studio."
    try:
        serve(folder, port, tell, database or ())
    except OSError as error:
        raise Refused(f"port {port} cannot be had ({error.strerror}); leave --port out for a free one") from None
