"""`confide table | test | interval | describe | regress`: plan, release and infer in one go.

The settings of the methods that a command asks are its options, made of the fields of their classes; `--param` gives those of any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import confide as cf
from confide import engine
from confide._helpers import near_match
from confide.ask import tests
from confide.ask.intervals import VERBS, interval_method
from confide.cli.commands.analysis import TestArguments, known_test, not_of_a_release
from confide.cli.commands.derived_quantities import DerivedOptions
from confide.cli.engine import OneStepRequest, at_once, make, open_ledger
from confide.cli.files import load_schema
from confide.cli.messages import table_of
from confide.cli.options import RECORDS, Data, Fields, SchemaFile, fields_of, spread
from confide.cli.session import Refused, Session
from confide.core import Method, parameters_of
from confide.core.plan import TARGETS_ALLOWED
from confide.errors import ConfideError, together
from confide.schema.formulas.expression import unknown_in

_DESCRIBE, _LINE = cf.tables.TableOne, cf.regression.LeastSquares
_TABLES: dict[str, type[Method]] = {
    method.name: method
    for name in dir(cf.tables)
    if isinstance(method := getattr(cf.tables, name), type) and issubclass(method, Method) and method is not _DESCRIBE
}
#: Other words for a kind of table that do not look like it.
_ALSO = dict.fromkeys(("median", "medians", "percentiles", "histogram"), cf.tables.Quantiles.name)
_REGRESSIONS = (_LINE, cf.regression.Logistic, cf.regression.Poisson, cf.regression.Within, cf.regression.SSP)
_INTERVALS = (cf.intervals.MeanAndVariance, cf.intervals.Proportion, cf.intervals.Difference, cf.intervals.Slope)


#: What a release in one go needs beside schema and formula: how it is called, what is allowed, and how it is given.
_NEEDS = {
    "inference": ("--inference is required: what are the intervals about?", TARGETS_ALLOWED, "--inference population"),
    "privacy": ("a cost is required", "--mu, --rho, --epsilon (with --delta), or --margin", "--mu 0.5"),
    "ledger": ("a ledger is required", "--ledger LEDGER, or --unaccounted to charge none", "--ledger ledger.db"),
}


def _check_complete(
    ctx: typer.Context, once: OneStepRequest, formula: str, schema: Path, settings: Mapping[str, Any] | None = None
) -> None:
    """Refuse a command without a cost or a ledger, naming all that is missing or wrong. settings: of a method that needs an inference."""
    missing = {
        "inference": settings is not None and "inference" not in settings,
        "privacy": not once.privacy.given,
        "ledger": once.account.ledger is None and not once.account.unaccounted,
    }
    lacks = [name for name, on in missing.items() if on]
    if not lacks:
        return
    parts: list[ConfideError] = [
        Refused(*_NEEDS[name][:1], allowed=_NEEDS[name][1], name=f"{name}_missing") for name in lacks
    ]
    wrong: ConfideError | None
    try:
        wrong = unknown_in(formula, load_schema(schema))
    except ConfideError as error:
        wrong = error
    instead = None if wrong is None else wrong.instead
    more = " ".join(_NEEDS[name][2] for name in lacks)
    works = ctx.obj.command(instead=instead or ("", ""), more=more) if wrong is None or instead else f"add {more}"
    raise together([*filter(None, [wrong]), *parts], "this command", works)


@partial(spread, own=fields_of(*_TABLES.values()))
def table(
    ctx: typer.Context,
    formula: Annotated[
        str, typer.Argument(metavar="FORMULA", help='For instance "region * smoker", or "income ~ region" for means.')
    ],
    data: Data,
    schema: SchemaFile,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help=f"One of {', '.join(_TABLES)}; left out, counts, or means if the formula has a left side, or ratios if that is a / b.",
        ),
    ] = None,
    *,
    own: Fields,
    once: OneStepRequest,
) -> None:
    """Release a table by group: counts, shares, means, quantiles, ...

    "a * b" crosses two columns and adds the totals, "a:b" has no totals, "a + b" has
    one table for each column; cut(age, 18, 65) makes classes of a numeric column. The
    table may be published. Without -o the release is not kept.

    Example:

    confide table "happy ~ region" survey.csv --schema schema.toml --mu 0.3 \\
      --inference population --ledger ledger.db
    """
    name = kind or table_of(formula)
    if name not in _TABLES:
        meant = near_match(_ALSO.get(name, name), tuple(_TABLES))
        raise Refused(f"--kind must be one of {', '.join(_TABLES)}, got {name!r}{meant}")
    settings = once.parameters.settings(**own.given())
    _check_complete(ctx, once, formula, schema, settings)
    at_once(ctx.obj, once, data, schema, partial(make, name, formula, settings))


@partial(spread, own=fields_of(cf.tables.Means, cf.tests.Correlation, names=("weights", "term_bounds")))
def test(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="TEST", help=f"One of {', '.join(tests.METHODS)}.", show_default=False, is_eager=True),
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
    effect: Annotated[
        float | None,
        typer.Option(help="Print the power for this effect size (Cohen's d, f, w or r) at --n records first."),
    ] = None,
    *,
    own: Fields,
    asked: TestArguments,
    once: OneStepRequest,
) -> None:
    """Release a test under its name in scipy.stats.

    P-values account for sampling and noise. What is printed may be published. With --n, a public number of records, the power
    is printed first. If a table is released already, confide infer --test prints its
    tests without a further charge.

    Example:

    confide test f_oneway "happy ~ region" survey.csv --schema schema.toml \\
      --mu 0.3 --ledger ledger.db
    """
    known_test(name, lambda meant: f"confide test {meant} ...")
    session: Session = ctx.obj
    wanted, ask = tests.asked_of(name, formula, **asked.given())
    settings = once.parameters.settings(**own.given())
    _check_complete(ctx, once, formula, schema)
    with session.doing("plan"):
        tests.check_weights(name, settings)
        kind = tests.METHODS[name]
        inference = {"inference": "population"} if "inference" in parameters_of(kind) else {}
        method = make(kind.name, wanted, settings | inference)
        tests.check_groups(name, method, load_schema(schema))
    if (effect is not None or once.n is not None) and not once.privacy.targets:
        with session.doing("plan"):
            public: dict[str, Any] = {"p": asked.p, "level": asked.level}
            made = tests.plan(
                name,
                formula,
                load_schema(schema),
                once.privacy.guarantee(),
                n=once.n,
                effect=effect,
                settings=settings,
                **{key: value for key, value in public.items() if value is not None},
            )
        for note in made.notes:
            if "power" in note:
                session.say(note)
    with engine.asking(ask):
        at_once(session, once, data, schema, lambda: method, lambda done: ask(engine.infer(done)))


@partial(spread, own=fields_of(*_INTERVALS, but=("show",)))
def interval(
    ctx: typer.Context,
    verb: Annotated[str, typer.Argument(metavar="KIND", help=f"What the interval is for: {', '.join(VERBS)}.")],
    data: Data,
    column: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help='The column; for a slope or a difference a formula, "y ~ x".', show_default=False
        ),
    ],
    schema: SchemaFile,
    *,
    own: Fields,
    once: OneStepRequest,
) -> None:
    """Release an interval for a mean, share, difference or slope.

    Under the relation substitute, where n is public, it is a posterior or confidence
    interval. Under the relation add-remove it comes from the release of a table.

    Example:

    confide interval proportion survey.csv --column smoker --schema schema.toml \\
      --mu 0.5 --ledger ledger.db --plot smoker.png
    """
    session: Session = ctx.obj
    settings = once.parameters.settings(**own.given())
    _check_complete(ctx, once, column, schema)
    once.account.check(once.simulate)
    with session.doing("plan"):
        found = load_schema(schema)
        book = open_ledger(once.account.ledger, once.account.dataset, found.dataset)
        relation = None if book is None else book.relation
        answer = interval_method(verb, column, found, once.privacy.guarantee(), relation=relation, **settings)
    at_once(session, once, data, schema, lambda: answer.method, answer.read)


@partial(spread, own=fields_of(_DESCRIBE))
def describe(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help='For instance "age + bmi + smoker ~ arm".')],
    data: Data,
    schema: SchemaFile,
    *,
    own: Fields,
    once: OneStepRequest,
) -> None:
    """Release Table 1 of a study: sample characteristics by group.

    It has means with SDs or quartiles of numeric columns, numbers and shares of each
    level, and standardized differences, with intervals. The table may be published.
    Without -o the release is not kept.

    Example:

    confide describe "age + happy ~ region" survey.csv --schema schema.toml \\
      --mu 0.5 --inference population --medians age --ledger ledger.db
    """
    settings = once.parameters.settings(**own.given())
    _check_complete(ctx, once, formula, schema, settings)
    at_once(ctx.obj, once, data, schema, partial(make, _DESCRIBE.name, formula, settings))


@partial(spread, own=fields_of(*_REGRESSIONS))
def regress(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help='For instance "happy ~ age + children".')],
    data: Data,
    schema: SchemaFile,
    method: Annotated[
        str,
        typer.Option(
            help="The regression: least_squares, logistic (also probit, with --link), poisson, or within (fixed effects)."
        ),
    ] = _LINE.name,
    *,
    own: Fields,
    beyond: DerivedOptions,
    once: OneStepRequest,
) -> None:
    """Release a linear, logistic, Poisson or fixed-effects regression.

    The table may be published. Without -o the release is not kept, and another table
    of it is charged again.

    Example:

    confide regress "happy ~ age" survey.csv --schema schema.toml --mu 0.5 \\
      --ledger ledger.db -o age.json
    """
    beyond.check()
    settings = once.parameters.settings(**own.given())
    _check_complete(ctx, once, formula, schema)
    read = lambda release: beyond.shown(engine.infer(release))  # noqa: E731
    at_once(ctx.obj, once, data, schema, partial(make, method, formula, settings), read, beyond)
