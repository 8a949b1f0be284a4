"""`confide publish publication.toml`: many questions, one charge, one release, one report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.facts import result_facts, show_result
from confide.cli.files import Drawings, Output, load_schema, reserve
from confide.cli.gate import after, begin, paid_facts, plan_and_pay, show_once
from confide.cli.options import Charged, Csv, Data, Keep, KeepOthers, Report
from confide.cli.session import Refused, Session
from confide.cli.spread import spread

if TYPE_CHECKING:
    from confide.ledger import Ledger
    from confide.protocol import Plan, Release
    from confide.schema import Schema

__all__ = ["asked_in", "is_publication", "plan_in", "publish"]


def is_publication(path: str | Path) -> bool:
    """Whether an argument names a publication's TOML file, where a model or a plan could stand too."""
    return str(path).lower().endswith(".toml")


def asked_in(path: str | Path) -> Any:
    """The questions in a file, and what else it says."""
    from confide.publication import Asked

    return Asked.from_toml(path)


def plan_in(path: Path) -> Plan:
    """The plan of a publication's file that names its schema and its privacy."""
    from confide import gate

    asked = asked_in(path)
    if asked.schema is None or not asked.priced:
        raise Refused(
            f"{str(path)!r} names no {'schema' if asked.schema is None else 'privacy'}, which a release needs; write it into the file "
            '(schema = "schema.toml", privacy = { mu = 0.5 }), or plan first: confide plan publication.toml --schema ... --mu ...'
        )
    return gate.plan(asked.publication, load_schema(asked.schema), n=asked.n, **asked.terms())


@spread
def publish(
    ctx: typer.Context,
    publication: Annotated[
        Path,
        typer.Argument(metavar="PUBLICATION", help="The questions: a TOML file, one table each.", show_default=False),
    ],
    data: Data,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="The schema (TOML), where the publication's file names none."),
    ] = None,
    *,
    charged: Charged,
    output: Keep = None,
    report: Report = None,
    csv: Csv = None,
    keep_others: KeepOthers = False,
) -> None:
    """Ask many questions at once: one plan, one charge, one file, one report.

    The file has a table for each question, with its method and parameters, and may
    name the schema and the privacy:

    \b
    schema = "schema.toml"
    privacy = { mu = 0.5 }
    \\[questions.model]
    method = "least_squares"
    formula = "happy ~ age"
    share = 2

    Example:

    confide publish publication.toml survey.csv --ledger book.db -o release.json --report index.html
    """
    session: Session = ctx.obj
    drawings = Drawings(report, None, csv)
    with session.doing("reading the publication"):
        asked = asked_in(publication)
    where = schema or asked.schema
    inputs = {"the publication": publication, "the schema": where}
    begin(session, charged.account, charged.simulate, {"-o": output, **drawings.places}, inputs, data)
    if where is None:
        raise Refused('the publication\'s file names no schema; write --schema FILE, or schema = "schema.toml" in it')
    own = charged.privacy.given or not asked.priced
    with session.doing("plan"):
        terms = asked.terms(charged.privacy.guarantee() if own else None)
    force = charged.written.force
    with drawings.reserved(force=force) as drawn, reserve(output, force=force) as place:
        from confide import gate

        def plan_of(found: Schema, book: Ledger | None) -> Plan:
            return gate.plan(asked.publication, found, n=charged.n or asked.n, ledger=book, **terms)

        def show(session: Session, done: Release, drawn: Mapping[str, Output]) -> dict[str, Any]:
            with session.doing("infer"):
                result = gate.infer(done)
            show_result(session, result, None, drawn)
            return {"result": result_facts(result, None)} if session.json else {}

        paid = plan_and_pay(
            session, charged, data, where, plan_of, keep_others=keep_others, place=place, drawn=drawn, show=show
        )
        shown = show_once(session, place, paid.release, drawn, show)
    after(session, paid, output)
    if session.json:
        session.answer(
            {
                **shown,
                **paid_facts(paid),
                "statuses": paid.release.statuses,
                "wrote": output,
                **vars(drawings),
            }
        )
