"""`confide plan | release | infer | regress`: the three steps, and all of them in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.facts import ledger_facts, plan_facts, result_facts, show_result
from confide.cli.files import (
    Drawings,
    check_places,
    keep,
    ledger_file,
    load_plan,
    load_release,
    load_schema,
    put,
    reserve,
)
from confide.cli.gate import (
    Once,
    after,
    at_once,
    begin,
    check_relation,
    make,
    open_ledger,
    paid_facts,
    pay,
    remember,
    source_of,
)
from confide.cli.hints import for_command_line
from confide.cli.options import (
    Account,
    Alpha,
    Data,
    Dataset,
    Delimiter,
    Executor,
    KeepOthers,
    Nominal,
    Parameters,
    Privacy,
    SchemaFile,
    Seed,
    Written,
)
from confide.cli.questions.anew import Anew
from confide.cli.questions.ask import Asked
from confide.cli.questions.beyond import Beyond
from confide.cli.questions.calibrated import Calibrated
from confide.cli.questions.publish import asked_in, is_publication, plan_in
from confide.cli.session import Refused, Session
from confide.cli.spread import spread

__all__ = ["infer", "plan", "regress", "release"]


@spread
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
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="The schema (TOML): what is public about the data. A publication's file may name it itself.",
        ),
    ] = None,
    *,
    privacy: Privacy,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="A name that `confide methods` lists: least_squares (a line), logistic (an outcome of two values), poisson (counts), "
            "kernel (a curve), ...",
        ),
    ] = "least_squares",
    parameters: Parameters,
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
    written: Written,
) -> None:
    """Show what an analysis will spend and what it will give, before anything is spent.

    Reads the schema alone: no record is touched, nothing is charged, and all that
    is printed is public.

    Example:

    confide plan "happy ~ age + children" --schema schema.toml --mu 1 -o plan.json

    confide plan publication.toml
    """
    session: Session = ctx.obj
    asked = None
    if is_publication(model):
        with session.doing("reading the publication"):
            asked = asked_in(model)
        schema, n = schema or asked.schema, n or asked.n
    if schema is None:
        named = ', or schema = "schema.toml" in the publication\'s file' if asked is not None else ""
        raise Refused(f"a plan needs the schema; write --schema FILE{named}")
    with session.doing("plan"):
        if asked is None:
            terms = privacy.terms()
        else:
            own = privacy.given or not asked.priced
            terms = asked.terms(privacy.guarantee() if own else None)
    settings = parameters.settings()
    if dataset is not None and ledger is None:
        raise Refused("--dataset names an account in a ledger: it goes with --ledger")
    check_places({"-o": output}, {"the schema": schema, "the ledger": ledger_file(ledger)})
    session.ledger = ledger
    with reserve(output, force=written.force) as place:
        from confide import gate

        with session.doing("plan"):
            found = load_schema(schema)
            book = open_ledger(ledger, dataset, found.dataset)
            chosen = make(method, model, settings) if asked is None else asked.publication
            check_relation(chosen, book)
            planned = gate.plan(chosen, found, n=n, ledger=book, **terms)
        remember(session, planned, schema, Account(ledger, dataset=dataset))
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
    session.answer({**plan_facts(planned), "ledger": ledger_facts(book), "wrote": output})


@spread
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
    *,
    account: Account,
    delimiter: Delimiter = ",",
    executor: Executor = None,
    keep_others: KeepOthers = False,
    simulate: Seed = None,
    written: Written,
) -> None:
    """Charge the ledger, then draw the noise, then write the release: once, and it cannot be had again.

    The file may be published: noisy numbers, the plan and its guarantee. Exit code
    6 says that it failed after the charge, which stays. If the file cannot be
    written then, the release is printed on stdout.

    Example:

    confide release plan.json survey.csv --ledger book.db -o release.json
    """
    session: Session = ctx.obj
    begin(session, account, simulate, {"-o": output}, {"the plan": plan}, data)
    with session.doing("reading the plan"):
        from confide import gate, registry
        from confide.schema import Schema

        planned = plan_in(plan) if is_publication(plan) else load_plan(plan)
        schema = Schema.from_dict(planned.schema)
        # made anew, because a price is said of it: nothing that a file states is believed
        planned = gate.plan(planned, schema)
    with reserve(output, force=written.force) as place:
        with session.doing("opening the ledger"):
            book = open_ledger(account.ledger, account.dataset, schema.dataset)
            check_relation(registry.get(planned.method.name), book)
        with session.doing("opening the data", private=True):
            source = source_of(data, schema, delimiter, executor)
        remember(session, planned, None, account)
        paid = pay(session, planned, source, book, account, simulate, keep_others=keep_others, place=place)
        keep(session, place, paid.release)
    after(session, paid, output)
    session.say(f"infer with: confide infer {output}")
    session.answer({**paid_facts(paid), "wrote": output})


@spread
def infer(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.", show_default=False)],
    formula: Annotated[
        str | None,
        typer.Argument(
            metavar="[FORMULA]", help='Of --test: its columns, "income ~ sex"; one test needs none.', show_default=False
        ),
    ] = None,
    *,
    anew: Anew,
    asked: Asked,
    beyond: Beyond,
    calibrated: Calibrated,
    alpha: Alpha = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the release again with these results in its file, for R and other readers without confide.",
            show_default=False,
        ),
    ] = None,
    drawings: Drawings,
    written: Written,
) -> None:
    """Print the table of a release: estimates, intervals, tests.

    Needs the published file alone, as often as you like: the same numbers each
    time, nothing is spent, and all that is printed is public.

    Examples:

    confide infer release.json --subset age --report report.html

    confide infer share.json --kind confidence

    confide infer incomes.json "income ~ sex" --test ttest_ind

    confide infer visits.json --ratios --effects --predict persons.csv

    confide infer incomes.json --poststratify sex=persons.csv

    confide infer release.json -o for-R.json
    """
    session: Session = ctx.obj
    asked.check(formula, {**anew.given(), "-o": output})
    beyond.check()
    calibrated.check()
    read = {"the release": release, "--predict": beyond.predict, **calibrated.files}
    check_places({"-o": output, **drawings.places}, read)
    from confide import gate
    from confide.faces.calls.results_file import with_results

    with drawings.reserved(force=written.force) as drawn, reserve(output, force=written.force) as place:
        with session.doing("reading the release"):
            loaded = load_release(release)
        with session.doing("infer"):
            result = asked.of(gate.infer(loaded, anew.question()), release, formula)
        moved = calibrated.moved(session, result, alpha)
        frames = beyond.computed(session, result, alpha)
        show_result(session, result, alpha, drawn, tuple(moved.tables.values()))
        if place is not None:
            with session.doing("writing the results"):
                put(place, with_results(loaded, result_facts(result, alpha)))
            session.say(f"wrote {output}: the release with these results")
    more = beyond.show(session, result, frames) | moved.show(session)
    wrote = {} if output is None else {"wrote": output}
    session.answer({"result": result_facts(result, alpha), **more, **wrote, **vars(drawings)} if session.json else {})


@spread
def regress(
    ctx: typer.Context,
    formula: Annotated[
        str, typer.Argument(metavar="FORMULA", help='For instance "happy ~ age + children".', show_default=False)
    ],
    data: Data,
    schema: SchemaFile,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="A regression that `confide methods` lists: least_squares (a line), logistic (and --set link=probit), poisson (counts), "
            "within (fixed effects of persons).",
        ),
    ] = "least_squares",
    no_clipping_check: Annotated[
        bool,
        typer.Option(
            "--no-clipping-check",
            help="Do not pay 1 % of the budget to learn how many responses lie outside their bounds.",
        ),
    ] = False,
    *,
    beyond: Beyond,
    once: Once,
) -> None:
    """Plan, release and infer a regression in one go, for a steward who is also the analyst.

    Charges the ledger once and prints the table, which may be published. Without
    -o the release is not kept, and another table of it costs the budget again.

    Examples:

    confide regress "happy ~ age" survey.csv --schema schema.toml --mu .5 \\
      --ledger book.db -o age.json

    confide regress "visits ~ age" survey.csv --schema schema.toml --mu 1 \\
      --ledger book.db --method poisson

    confide regress "smoker ~ age" survey.csv --schema schema.toml --mu 1 \\
      --ledger book.db --method logistic --ratios
    """
    beyond.check()
    settings = once.parameters.settings(clipping_check=False if no_clipping_check else None)
    at_once(ctx.obj, once, data, schema, method, formula, settings, beyond=beyond)
