"""`confide table | test | interval | describe`: plan, release and infer in one go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._helpers import later, near_match
from confide.cli.commands.analysis import TESTS, TestArguments, known_test, not_of_a_release
from confide.cli.engine import OneStepRequest, at_once, open_ledger
from confide.cli.files import load_schema
from confide.cli.options import RECORDS, Covers, Data, Medians, SchemaFile, Weights, Within, parse_names, spread
from confide.cli.session import Refused, Session

if TYPE_CHECKING:
    from confide import engine
    from confide.ask import tests
    from confide.core import Release
else:
    engine, tests = later("confide.engine"), later("confide.ask.tests")


_KINDS = ("counts", "shares", "means", "totals", "ratios", "quantiles", "person_counts", "person_shares")


def needs_covers(settings: dict[str, Any]) -> None:
    """Refuse where nobody said what intervals are about."""
    if "covers" not in settings:
        raise Refused(
            "say what intervals are about: --covers population where the records are a sample of those that the question is about, "
            "--covers dataset for these very records"
        )


@spread
def table(
    ctx: typer.Context,
    formula: Annotated[
        str,
        typer.Argument(
            metavar="FORMULA",
            help='For instance "region * smoker", or "income ~ region" for means.',
            show_default=False,
        ),
    ],
    data: Data,
    schema: SchemaFile,
    covers: Covers = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="|".join(_KINDS),
            help="Left out: counts; means where the formula has a left side, ratios where that is a / b. quantiles: medians and other "
            "quantiles by group. person_counts, person_shares: persons by all their rows.",
        ),
    ] = None,
    within: Within = None,
    weights: Weights = None,
    *,
    once: OneStepRequest,
) -> None:
    """Plan, release and infer a table in one go: counts, shares, means or totals by cell, with intervals.

    "a * b" is a crossing with all its margins, "a:b" the crossing alone, "a + b"
    one-way margins; cut(age, 18, 65) makes levels of a numeric column. The table may
    be published; without -o the release is not kept, and another table costs again.

    Examples:

    confide table "region * cut(age, 40)" survey.csv --schema schema.toml --mu .3 \\
      --covers population --ledger book.db

    confide table "happy ~ region" survey.csv --schema schema.toml --mu .3 \\
      --covers dataset --no-ledger

    confide table "income ~ region" survey.csv --kind quantiles ...    (medians)

    confide table "happy ~ region" survey.csv --schema schema.toml --covers population \
      --accuracy mean=.1 --n 5000 --ledger book.db    (the least mu for this half-width)
    """
    from confide.schema.formulas.names import (
        parted,  # here, because schemas are slow to load
        sides,
    )

    left = sides(formula)[0] if len(sides(formula)) > 1 else ""
    name = kind or ("ratios" if len(parted(left, "/")) > 1 else "means" if left else "counts")
    if name not in _KINDS:
        raise Refused(f"--kind must be one of {', '.join(_KINDS)}, got {name!r}{near_match(name, _KINDS)}")
    settings = once.parameters.settings(covers=covers, within=parse_names(within), weights=weights)
    needs_covers(settings)
    at_once(ctx.obj, once, data, schema, name, formula, settings)


@spread
def test(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="TEST", help=f"One of {', '.join(TESTS)}.", show_default=False, is_eager=True)
    ],
    formula: Annotated[
        str,
        typer.Argument(
            metavar="FORMULA",
            help='For instance "income ~ sex", "smoker * region", "x + y".',
            show_default=False,
            is_eager=True,
            callback=not_of_a_release,
        ),
    ],
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA...", help=RECORDS, show_default=False, is_eager=True, callback=not_of_a_release),
    ],
    schema: SchemaFile,
    weights: Weights = None,
    effect: Annotated[
        float | None,
        typer.Option("--effect", help="Print the power for this effect (Cohen's d, f, w or r) at --n records first."),
    ] = None,
    *,
    own: TestArguments,
    once: OneStepRequest,
) -> None:
    """Plan, release and test in one go, under the names of scipy.stats; p-values account for sampling and noise.

    What is printed may be published. With --n, a number of records that is public,
    the power is printed before anything is spent; see `confide plan` for more.
    A table that was released answers its tests for nothing: confide infer --test.

    Example:

    confide test f_oneway "happy ~ region" survey.csv --schema schema.toml \\
      --mu .3 --ledger book.db
    """
    known_test(name, lambda meant: f"confide test {meant} ...")
    given = own.given()
    asked, ask = tests.asked_of(name, formula, **given)
    method, settings = _behind(name, once.parameters.settings(weights=weights))
    _check_groups(ctx.obj, schema, name, asked, settings)
    if effect is not None or once.n is not None:
        _say_power(ctx.obj, once, schema, name, formula, effect, settings, p=own.p, level=own.level)

    def read(done: Release) -> Any:
        return ask(engine.infer(done))

    at_once(ctx.obj, once, data, schema, method, asked, settings, read)


def _behind(name: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(the method whose release answers a test, its parameters beside the formula); refused where the null law would not hold."""
    tests.check_weights(name, settings)
    covers = {"covers": "population"} if tests.METHODS[name].name in tests.POPULATION_TESTS else {}
    return tests.METHODS[name].name, settings | covers


def _check_groups(session: Session, schema: Path, name: str, formula: str, settings: dict[str, Any]) -> None:
    """Refuse groups that a test cannot compare, before anything is charged."""
    with session.doing("plan"):
        own = {key: value for key, value in settings.items() if key != "covers"}
        tests.check_groups(name, tests.method_of_test(name, formula, own), load_schema(schema))


def _say_power(
    session: Session,
    once: OneStepRequest,
    schema: Path,
    name: str,
    formula: str,
    effect: float | None,
    settings: dict[str, Any],
    **given: Any,
) -> None:
    """Print the power of a test at the number of records that was given."""
    if once.privacy.targets:
        return
    with session.doing("plan"):
        own = {key: value for key, value in given.items() if value is not None}
        rest = {key: value for key, value in settings.items() if key != "covers"}
        made = tests.plan(
            name, formula, load_schema(schema), once.privacy.guarantee(), n=once.n, effect=effect, settings=rest, **own
        )
    for note in made.notes:
        if "power" in note:
            session.say(note)


@spread
def interval(
    ctx: typer.Context,
    verb: Annotated[
        str,
        typer.Argument(
            metavar="proportion|mean|variance|slope|difference", help="What the interval is for.", show_default=False
        ),
    ],
    data: Data,
    column: Annotated[
        str,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help='The column; for slope and difference a formula, "y ~ x".',
            show_default=False,
        ),
    ],
    schema: SchemaFile,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="credible|confidence|poisson",
            help="A posterior, or confidence limits, of the same release; poisson, of a mean: the rate of counts whose variance is "
            "their mean.",
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option("--level", metavar="LEVEL", help="Which level counts, where a column has more than two."),
    ] = None,
    prior: Annotated[str | None, typer.Option("--prior", metavar="PRIOR", help='Such as "beta(2, 5)".')] = None,
    *,
    once: OneStepRequest,
) -> None:
    """Plan, release and infer an interval for one parameter in one go.

    Where the number of records is public (substitute) it is a posterior or
    confidence limits, else (add-remove) it is read from the release of a table.

    Step by step: confide plan COLUMN --method proportion, mean_and_variance ...

    Examples:

    confide interval proportion survey.csv --column smoker --schema schema.toml \\
      --mu .5 --ledger ledger.db --plot smoker.png
    """
    session: Session = ctx.obj
    given = {name: value for name, value in {"level": level, "prior": prior}.items() if value is not None}
    given |= once.parameters.settings()
    once.account.check(once.simulate)
    with session.doing("plan"):
        answer = _answer(verb, column, schema, once, kind, given)
        method, settings = _made_of(answer.method)
    first = next(iter(settings))
    at_once(session, once, data, schema, method, settings.pop(first), settings, answer.read)


def _answer(verb: str, column: str, schema: Path, once: OneStepRequest, kind: str | None, given: dict[str, Any]) -> Any:
    from confide.ask.intervals import interval_method

    found = load_schema(schema)
    book = open_ledger(once.account.ledger, once.account.dataset, found.dataset)
    return interval_method(
        verb,
        column,
        found,
        once.privacy.guarantee(),
        relation=None if book is None else book.relation,
        kind=kind,
        **given,
    )


def _made_of(method: Any) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of a method, its first one first."""
    from confide.core import method_parameters, parameters_of

    own = method_parameters(method)
    return method.name, {name: own[name] for name in parameters_of(type(method)) if name in own}


@spread
def describe(
    ctx: typer.Context,
    formula: Annotated[
        str,
        typer.Argument(metavar="FORMULA", help='For instance "age + bmi + smoker ~ arm".', show_default=False),
    ],
    data: Data,
    schema: SchemaFile,
    covers: Covers = None,
    medians: Medians = None,
    weights: Weights = None,
    *,
    once: OneStepRequest,
) -> None:
    """Plan, release and infer Table One in one go: what the records are like, by group.

    Mean (sd) or quartiles of numeric columns, number (share) of each level,
    standardised differences between groups, with intervals. The table may be
    published; without -o the release is not kept, and another table costs again.

    Example:

    confide describe "age + happy ~ region" survey.csv --schema schema.toml \\
      --mu .5 --covers population --medians age --ledger book.db
    """
    settings = once.parameters.settings(covers=covers, medians=parse_names(medians), weights=weights)
    needs_covers(settings)
    at_once(ctx.obj, once, data, schema, "table_one", formula, settings)
