"""`confide explore`: what may be asked of a schema, with the call for each question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.files import load_schema
from confide.cli.options import Json
from confide.cli.session import Session
from confide.cli.tables import table

__all__ = ["explore"]


def explore(
    ctx: typer.Context,
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).", show_default=False)],
    json: Json = False,
) -> None:
    """List the questions that may be asked of a schema, with a command for each.

    Reads the schema alone: no record is touched, and nothing is spent. Add to each
    command DATA, --schema, a budget (--mu .5) and --ledger; tables also take
    --covers population or dataset.

    Example:

    confide explore schema.toml
    """
    session: Session = ctx.obj
    with session.doing("reading the schema"):
        found = load_schema(schema)
    from confide.faces.questions import QUESTIONS

    asked = [(one, formula) for one in QUESTIONS if (formula := one.asked_of(found)) is not None]
    rows = [(one.words, one.says, f"confide {one.command.format(formula)}") for one, formula in asked]
    table(session, ("question", "what comes back", "for instance"), rows)
    session.say(
        f"\nadd to each: survey.csv --schema {schema} --mu .5 --ledger book.db (the records, a budget, the ledger);\n"
        "table and describe also take --covers population, or dataset"
    )
    left = [one.words for one in QUESTIONS if one.asked_of(found) is None]
    if left:
        session.say(f"\nno column fits: {'; '.join(left)}")
    questions = [
        {"question": one.name, "formula": formula, "command": command[2]}
        for (one, formula), command in zip(asked, rows, strict=True)
    ]
    session.answer({"questions": questions, "no_column_fits": left})
