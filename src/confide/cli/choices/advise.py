"""`confide advise`: which method to expect most of, before anything is planned or spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.files import check_places, load_schema
from confide.cli.options import Json, Privacy, SchemaFile
from confide.cli.session import Session
from confide.cli.spread import spread
from confide.faces.calls.progress import progress_bar

__all__ = ["advise"]

_READ = (
    "\nCompared are errors at this number of records on these simulated records; only methods with intervals are\n"
    "recommended. It says nothing of other records, for which least_squares stays the default."
)


@spread
def advise(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="As the methods take it.", show_default=False)],
    schema: SchemaFile,
    n: Annotated[int, typer.Option("--n", metavar="N", help="Number of records, or a guess of it.")],
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help="linear_regression, logistic_regression, poisson_regression, classification or kernel_regression.",
        ),
    ] = "linear_regression",
    *,
    privacy: Privacy,
    like: Annotated[
        Path | None,
        typer.Option("--like", metavar="FILE", help="Public records that look like the private ones: CSV or Parquet."),
    ] = None,
    replications: Annotated[int, typer.Option("--replications", metavar="R", help="Runs of each method.")] = 48,
    json: Json = False,
) -> None:
    """Say which method to expect most of, with predicted standard errors, from public facts alone.

    Every method of the task runs, with simulated noise, on the scenarios of a
    plan's forecast, or on public records drawn again (--like). No private record is
    read and nothing is charged. A relation that is left open is add-remove.

    Example:

    confide advise "happy ~ age" --schema schema.toml --n 1000 --mu 1 --delta 1e-6
    """
    session: Session = ctx.obj
    requested = privacy.guarantee()
    check_places({}, {"the schema": schema})
    with session.doing("loading the methods"):
        from confide import advise as verb

        known = load_schema(schema)
    with progress_bar("advise") as step:
        found = verb(task, formula, known, n, requested, like=like, replications=replications, progress=step)
    session.say(str(found))
    if task == "linear_regression":
        session.say(_READ)
    session.answer(found.to_dict())
