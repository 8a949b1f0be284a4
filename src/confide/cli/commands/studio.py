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
            help="An environment variable with the address of a database whose tables hold records; repeat for more.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Open the studio, a page in the browser for all steps.

    Before a release no record is read, and only public facts are shown. The page is reachable from this machine
    only, by a link that works once. Ctrl-C ends it, after a running release.

    Tables of SQLite and DuckDB files in the folder count as files of records. For a
    database on a server, give --database VARIABLE with its address.

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
        raise Refused(f"port {port} cannot be had ({error.strerror})", "leave --port out for a free one") from None
