"""`confide plan | release | infer | regress`: the three steps, and all of them in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json import loads as parse
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli import options
from confide.cli.beyond import Beyond, Effects, Predict, Ratios
from confide.cli.door import (
    book_facts,
    check_relation,
    draw,
    make,
    open_book,
    plan_facts,
    question,
    release_facts,
    result_facts,
    say_charged,
    say_cost,
    show_result,
    source_of,
)
from confide.cli.files import (
    Drawings,
    Output,
    book_file,
    check_places,
    keep,
    load_plan,
    load_release,
    load_schema,
    put,
    reserve,
)
from confide.cli.hints import for_command_line, plan_command
from confide.cli.options import (
    Alpha,
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
    Plot,
    Relation,
    Report,
    Rho,
    SchemaFile,
    Seed,
    Settings,
    Where,
    check_ledger,
    delimiter_of,
    privacy,
)
from confide.cli.publish import KeepOthers, asked_in, is_publication, plan_in
from confide.cli.session import Refused, Session

if TYPE_CHECKING:
    from confide.guarantees import Guarantee
    from confide.ledger import Ledger
    from confide.protocol import Plan, Release

__all__ = ["Once", "after", "at_once", "infer", "plan", "regress", "release", "remember", "show_once"]


def plan(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="The method's first parameter: a formula for a regression; or a publication's TOML file.",
            show_default=False,
        ),
    ],
    schema: SchemaFile,
    mu: Mu = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="A name that `confide methods` lists: least_squares (a line), logistic (an outcome of two values), poisson (counts), "
            "kernel (a curve), ...",
        ),
    ] = "least_squares",
    setting: Settings = None,
    where: Where = None,
    n: Nominal = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="LEDGER", help="Take an open relation from this ledger, and see whether it fits."
        ),
    ] = None,
    dataset: Dataset = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to write the plan that `confide release` takes."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show what an analysis will spend and what it will give, before anything is spent.

    Reads the schema alone: no record is touched, nothing is charged, and all that
    is printed is public.

    Example:

    confide plan "happy ~ age + children" --schema schema.toml --mu 1 -o plan.json
    """
    session: Session = ctx.obj
    requested = privacy(mu, rho, epsilon, delta, relation)
    settings = options.settings(setting, where)
    if dataset is not None and ledger is None:
        raise Refused("--dataset names an account in a ledger: it goes with --ledger")
    check_places({"-o": output}, {"the schema": schema, "the ledger": book_file(ledger)})
    session.book = ledger
    with reserve(output, force=force) as place:
        from confide import gate

        with session.doing("plan"):
            found = load_schema(schema)
            book = open_book(ledger, dataset, found.dataset)
            chosen = asked_in(model).publication if is_publication(model) else make(method, model, settings)
            check_relation(chosen, book)
            planned = gate.plan(chosen, found, requested, n=n, ledger=book)
        remember(session, planned, schema, ledger, dataset)
        session.say(planned.summary())
        if book is not None:
            quote = book.preview(planned.guarantees)
            session.say(f"fits what is left in dataset {book.dataset!r}: {quote}")
            if quote.note:
                session.note(f"note: {for_command_line(quote.note)}")
        if place is not None:
            put(place, planned.to_json())
            session.say(
                f"wrote {output}: release it with: confide release {output} DATA --ledger LEDGER -o release.json"
            )
    session.answer({**plan_facts(planned), "ledger": book_facts(book), "wrote": output})


def release(
    ctx: typer.Context,
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="A plan's file; the schema is in it. Or a publication's TOML file that names schema and privacy.",
            show_default=False,
        ),
    ],
    data: Data,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the release, which may be published.")
    ],
    ledger: Book = None,
    no_ledger: NoLedger = False,
    charge_delta: ChargeDelta = None,
    convert: Convert = False,
    dataset: Dataset = None,
    delimiter: Delimiter = ",",
    keep_others: KeepOthers = False,
    simulate: Seed = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Charge the ledger, then draw the noise, then write the release: once, and it cannot be had again.

    The file may be published: noisy numbers, the plan and its guarantee. Exit code
    6 says that it failed after the charge, which stays. If the file cannot be
    written then, the release is printed on stdout.

    Example:

    confide release plan.json survey.csv --ledger book.db -o release.json
    """
    session: Session = ctx.obj
    session.charging, session.book = True, ledger
    check_ledger(ledger, no_ledger, dataset, simulate)
    check_places(
        {"-o": output},
        {"the plan": plan, "the ledger": book_file(ledger), **{f"the data {path}": path for path in data}},
    )
    with session.doing("reading the plan"):
        from confide import registry
        from confide.schema import Schema

        planned = plan_in(plan) if is_publication(plan) else load_plan(plan)
        schema = Schema.from_dict(planned.schema)
    with reserve(output, force=force) as place:
        with session.doing("opening the ledger"):
            book = open_book(ledger, dataset, schema.dataset)
            check_relation(registry.get(planned.method.name), book)
        with session.doing("opening the data", private=True):
            source = source_of(data, schema, delimiter_of(delimiter))
        remember(session, planned, None, ledger, dataset)
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
        keep(session, place, done)
    after(session, done, book, output)
    session.say(f"infer with: confide infer {output}")
    session.answer({**release_facts(done), "released_before": earlier, "wrote": output, "ledger": book_facts(book)})


def infer(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.", show_default=False)],
    subset: Annotated[
        str | None,
        typer.Option(
            "--subset",
            metavar="A,B",
            help="Keep these coefficients only, by name or by factor; the intercept stays. Beside numeric columns the default "
            "line's smaller models have no intervals; those of --method ssp have.",
        ),
    ] = None,
    predict: Predict = None,
    effects: Effects = False,
    ratios: Ratios = False,
    alpha: Alpha = None,
    report: Report = None,
    plot: Plot = None,
    csv: Csv = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Print the table of a release: estimates, intervals, tests.

    Needs the published file alone, as often as you like: the same numbers each
    time, nothing is spent, and all that is printed is public.

    Examples:

    confide infer release.json --subset age --report report.html

    confide infer visits.json --ratios --effects --predict persons.csv
    """
    session: Session = ctx.obj
    beyond = Beyond(predict, effects, ratios)
    beyond.check()
    drawings = Drawings(report, plot, csv)
    check_places(drawings.places, {"the release": release, "--predict": predict})
    drawings.check(force=force)
    from confide import gate

    with session.doing("reading the release"):
        loaded = load_release(release)
    with session.doing("infer"):
        result = gate.infer(loaded, question(subset))
    show_result(session, result, alpha, drawings)
    more = beyond.show(session, result, alpha)
    session.answer({"result": result_facts(result, alpha), **more, **vars(drawings)} if session.json else {})


def regress(
    ctx: typer.Context,
    formula: Annotated[
        str, typer.Argument(metavar="FORMULA", help='For instance "happy ~ age + children".', show_default=False)
    ],
    data: Data,
    schema: SchemaFile,
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
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="A regression that `confide methods` lists: least_squares (a line), logistic (and --set link=probit), poisson (counts).",
        ),
    ] = "least_squares",
    setting: Settings = None,
    where: Where = None,
    no_clipping_check: Annotated[
        bool,
        typer.Option(
            "--no-clipping-check",
            help="Do not pay 1 % of the budget to learn how many responses lie outside their bounds.",
        ),
    ] = False,
    alpha: Alpha = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Keep the release in this file.")
    ] = None,
    report: Report = None,
    plot: Plot = None,
    csv: Csv = None,
    delimiter: Delimiter = ",",
    simulate: Seed = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Plan, release and infer a regression in one go, for a steward who is also the analyst.

    Charges the ledger once and prints the table, which may be published. Without
    -o the release is not kept, and another table of it costs the budget again.

    Examples:

    confide regress "happy ~ age" survey.csv --schema schema.toml --mu .5 \\
      --ledger book.db -o age.json

    confide regress "visits ~ age" survey.csv --schema schema.toml --mu 1 \\
      --ledger book.db --method poisson
    """
    session: Session = ctx.obj
    settings = options.settings(setting, where) | ({"clipping_check": False} if no_clipping_check else {})
    once = Once(
        data=data,
        schema=schema,
        requested=privacy(mu, rho, epsilon, delta, relation),
        ledger=ledger,
        no_ledger=no_ledger,
        charge_delta=charge_delta,
        convert=convert,
        dataset=dataset,
        n=n,
        output=output,
        drawings=Drawings(report, plot, csv),
        delimiter=delimiter,
        simulate=simulate,
        force=force,
        alpha=alpha,
    )
    at_once(session, once, method, formula, settings)


@dataclass(frozen=True, kw_only=True)
class Once:
    """What the commands that plan, release and infer in one go are told, beside method and formula."""

    data: Sequence[Path]
    schema: Path
    requested: Guarantee
    ledger: str | None
    no_ledger: bool
    charge_delta: float | None
    convert: bool
    dataset: str | None
    n: int | None
    output: Path | None
    drawings: Drawings
    delimiter: str
    simulate: int | None
    force: bool
    alpha: float | None


def at_once(
    session: Session,
    once: Once,
    method: str,
    formula: str,
    settings: dict[str, Any],
    read: Callable[[Release], Any] | None = None,
) -> None:
    """Plan, release and infer, charged once. read: what is shown of the release, the method's table when left out."""
    session.charging, session.book = True, once.ledger
    check_ledger(once.ledger, once.no_ledger, once.dataset, once.simulate)
    inputs = {"the schema": once.schema, "the ledger": book_file(once.ledger)}
    check_places(
        {"-o": once.output, **once.drawings.places}, {**inputs, **{f"the data {path}": path for path in once.data}}
    )
    once.drawings.check(force=once.force)
    with reserve(once.output, force=once.force) as place:
        from confide import gate

        reading = gate.infer if read is None else read
        with session.doing("plan"):
            found = load_schema(once.schema)
            book = open_book(once.ledger, once.dataset, found.dataset)
            chosen = make(method, formula, settings)
            check_relation(chosen, book)
            planned = gate.plan(chosen, found, once.requested, n=once.n, ledger=book)
        with session.doing("opening the data", private=True):
            source = source_of(once.data, found, delimiter_of(once.delimiter))
        remember(session, planned, once.schema, once.ledger, once.dataset)
        earlier = say_cost(session, planned, book, charge_delta=once.charge_delta, convert=once.convert)
        if place is None and book is not None and not session.json:
            session.note("note: without -o the table is shown and the release itself is not kept")
        done = draw(session, planned, source, book, once.simulate, charge_delta=once.charge_delta, convert=once.convert)
        show_once(session, place, done, once.alpha, once.drawings, reading)
    after(session, done, book, once.output)
    if session.json:
        session.answer(
            {
                "result": result_facts(reading(done), once.alpha),
                **release_facts(done),
                "wrote": once.output,
                "release": parse(done.to_json()) if once.output is None else None,
                "released_before": earlier,
                **vars(once.drawings),
                "ledger": book_facts(book),
            }
        )


def show_once(
    session: Session,
    place: Output | None,
    done: Release,
    alpha: float | None,
    drawings: Drawings,
    read: Callable[[Release], Any] | None = None,
) -> None:
    """Keep and show a release that was just drawn; one without a file is printed if it cannot be shown: it was paid."""
    from confide import gate

    keep(session, place, done)
    try:
        with session.doing("infer"):
            result = gate.infer(done) if read is None else read(done)
        show_result(session, result, alpha, drawings)
    except BaseException:
        if place is None and session.charge == "made":
            session.last_resort(done.to_json())
        raise


def after(session: Session, done: Release, book: Ledger | None, output: Path | None) -> None:
    """What a release did, once it is safe."""
    if done.status == "no_reply":
        session.say("the mechanism gave no reply; that is a result, and it costs the same as a reply")
    if output is not None:
        session.say(f"wrote {output} (sha256 {done.sha256})")
    say_charged(session, done, book)


def remember(session: Session, planned: Plan, schema: Path | None, ledger: str | None, dataset: str | None) -> None:
    """How to ask for the same at another price, should the ledger refuse this one."""
    session.cheaper = lambda options: plan_command(planned, options, schema=schema, book=ledger, dataset=dataset)
