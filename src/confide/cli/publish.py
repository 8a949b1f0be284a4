"""`confide publish publication.toml`: many questions, one charge, one release, one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.options import (
    Book,
    ChargeDelta,
    Convert,
    Csv,
    Data,
    Dataset,
    Delimiter,
    Delta,
    Epsilon,
    Force,
    Json,
    Mu,
    NoLedger,
    Nominal,
    Relation,
    Report,
    Rho,
    Seed,
    check_ledger,
    delimiter_of,
    privacy,
)
from confide.cli.session import Refused, Session

if TYPE_CHECKING:
    from confide.protocol import Plan

__all__ = ["KeepOthers", "asked_in", "is_publication", "plan_in", "publish"]

KeepOthers = Annotated[
    bool,
    typer.Option(
        "--keep-others",
        help="Write the release of a publication even if a question failed after the charge. That it failed may depend on the records, "
        "and no guarantee covers it.",
    ),
]


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
    from confide.cli.files import load_schema

    asked = asked_in(path)
    if asked.schema is None or asked.privacy is None:
        raise Refused(
            f"{str(path)!r} names no {'schema' if asked.schema is None else 'privacy'}, which a release needs; write it into the file "
            '(schema = "schema.toml", privacy = { mu = 0.5 }), or plan first: confide plan publication.toml --schema ... --mu ...'
        )
    return gate.plan(asked.publication, load_schema(asked.schema), asked.privacy, n=asked.n)


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
    mu: Mu = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    ledger: Book = None,
    no_ledger: NoLedger = False,
    charge_delta: ChargeDelta = None,
    convert: Convert = False,
    dataset: Dataset = None,
    n: Nominal = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Keep the release in this file.")
    ] = None,
    report: Report = None,
    csv: Csv = None,
    keep_others: KeepOthers = False,
    delimiter: Delimiter = ",",
    simulate: Seed = None,
    force: Force = False,
    json: Json = False,
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
    session.charging, session.book = True, ledger
    check_ledger(ledger, no_ledger, dataset, simulate)
    # here, because the command line shows its help without them
    from confide import gate
    from confide.cli import analysis
    from confide.cli.door import book_facts, draw, open_book, release_facts, result_facts, say_cost, source_of
    from confide.cli.files import Drawings, book_file, check_places, load_schema, reserve

    drawings = Drawings(report, None, csv)
    with session.doing("reading the publication"):
        asked = asked_in(publication)
    where = schema or asked.schema
    if where is None:
        raise Refused('the publication\'s file names no schema; write --schema FILE, or schema = "schema.toml" in it')
    named = any(value is not None for value in (mu, rho, epsilon, delta)) or asked.privacy is None
    requested = privacy(mu, rho, epsilon, delta, relation) if named else asked.privacy
    inputs = {"the publication": publication, "the schema": where, "the ledger": book_file(ledger)}
    check_places({"-o": output, **drawings.places}, inputs | {f"the data {path}": path for path in data})
    drawings.check(force=force)
    with reserve(output, force=force) as place:
        with session.doing("plan"):
            found = load_schema(where)
            book = open_book(ledger, dataset, found.dataset)
            planned = gate.plan(asked.publication, found, requested, n=n or asked.n, ledger=book)
        with session.doing("opening the data", private=True):
            source = source_of(data, found, delimiter_of(delimiter))
        analysis.remember(session, planned, where, ledger, dataset)
        earlier = say_cost(session, planned, book, charge_delta=charge_delta, convert=convert)
        done = draw(
            session,
            planned,
            source,
            book,
            simulate,
            charge_delta=charge_delta,
            convert=convert,
            keep_others=keep_others,
        )
        analysis.show_once(session, place, done, None, drawings)
    analysis.after(session, done, book, output)
    if session.json:
        session.answer(
            {
                "result": result_facts(gate.infer(done), None),
                **release_facts(done),
                "statuses": done.statuses,
                "wrote": output,
                "released_before": earlier,
                **vars(drawings),
                "ledger": book_facts(book),
            }
        )
