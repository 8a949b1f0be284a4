"""`confide explore`: what may be asked of a schema, with the call for each question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.files import load_schema
from confide.cli.options import Json
from confide.cli.session import Session
from confide.cli.tables import table
from confide.cli.whose import unit_options

if TYPE_CHECKING:
    from confide.schema import Schema

__all__ = ["explore"]


def explore(
    ctx: typer.Context,
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).", show_default=False)],
    json: Json = False,
) -> None:
    """List the questions that may be asked of a schema, with a command for each, and a file of several.

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

    fitting = [(one, formula) for one in QUESTIONS if (formula := one.asked_of(found)) is not None]
    asked = [(one, formula) for one, formula in fitting if not _refused(one, formula, found)]
    rows = [(one.words, one.says, f"confide {one.command.format(formula)}") for one, formula in asked]
    table(session, ("question", "what comes back", "for instance"), rows)
    session.say(
        f"\nadd to each: survey.csv --schema {schema} --mu .5 --ledger book.db (the records, a budget, the ledger);\n"
        "table and describe also take --covers population, or dataset"
    )
    session.say(f"a ledger for these records: {_opening(found)}")
    many = _publication(asked[:3], schema)
    session.say(
        "\nmany at once, with one plan, one charge and one report: confide publish publication.toml survey.csv --ledger book.db,"
    )
    session.say(f"publication.toml being\n\n{many}")
    left = [one.words for one in QUESTIONS if one.asked_of(found) is None]
    if left:
        session.say(f"\nno column fits: {'; '.join(left)}")
    refused = [one.words for one, formula in fitting if (one, formula) not in asked]
    if refused:
        session.say(f"\nnot of records that are drawn, or counted, as this schema says: {'; '.join(refused)}")
    questions = [
        {"question": one.name, "formula": formula, "command": command[2]}
        for (one, formula), command in zip(asked, rows, strict=True)
    ]
    session.answer({"questions": questions, "publication": many, "no_column_fits": left, "refused": refused})


def _refused(one: Any, formula: str, found: Schema) -> bool:
    """Whether the plan of a question refuses the schema: its design, its clusters, or how its units count."""
    from confide import gate
    from confide.errors import ConfideError
    from confide.faces import tests
    from confide.faces.questions import method_of
    from confide.guarantees import GDP
    from confide.schema import Unit

    if found.design is None and found.cluster is None and not isinstance(found.unit, Unit):
        return False  # what fits the columns is answered, and plans take their time
    try:
        made = method_of({"kind": one.name, "formula": formula, "covers": "population"})
        if one.test:
            tests.check_groups(one.method, made, found)
        gate.plan(made, found, GDP(1.0))
    except ConfideError:
        return True
    return False


def _opening(found: Schema) -> str:
    """The command that opens a ledger of the schema's own data set and unit."""
    own = join(unit_options(found))
    return f"confide ledger init book.db --dataset {quote(found.dataset or 'NAME')} {own} --mu 2"


def _publication(asked: Sequence[tuple[Any, str]], schema: Path) -> str:
    """The file of a publication of some questions."""
    from confide.faces.questions import method_of
    from confide.protocol.plan import method_parameters
    from confide.schema.toml import key, value

    lines = [f"schema = {value(str(schema))}", "privacy = { mu = 0.5 }"]
    for one, formula in asked:
        made = method_of({"kind": one.name, "formula": formula, "covers": "population"})
        own = {name: entry for name, entry in method_parameters(made).items() if isinstance(entry, str)}
        lines += ["", f"[questions.{key(one.name)}]", f"method = {value(made.name)}"]
        lines += [f"{name} = {value(entry)}" for name, entry in own.items()]
    return "\n".join(lines)
