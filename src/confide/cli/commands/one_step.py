"""`confide table | describe | regress`: plan, release and infer in one go. What `test` and `interval` share with them.

The settings of the methods that a command asks are its options, made of the fields of their classes, which an index names; `--param` gives
those of any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import confide as cf
from confide._helpers import later, near_match
from confide.cli.commands.derived_quantities import DerivedOptions
from confide.cli.engine import OneStepRequest, at_once, make
from confide.cli.files import load_schema
from confide.cli.messages import table_of
from confide.cli.options import Data, Fields, SchemaFile, fields_of, spread
from confide.cli.session import Refused
from confide.core.plan import TARGETS_ALLOWED
from confide.errors import ConfideError, together
from confide.registry import name_of, named

if TYPE_CHECKING:
    from confide import engine
    from confide.schema.formulas import expression
else:
    engine, expression = later("confide.engine"), later("confide.schema.formulas.expression")

_DESCRIBE, _LINE = name_of("TableOne"), name_of("LeastSquares")
#: Kinds of tables: the methods in `cf.tables`, but for Table 1. None is loaded to name it.
TABLES = tuple(name for name in map(named, dir(cf.tables)) if name is not None and name != _DESCRIBE)
#: Other words for a kind of table that do not look like it.
_ALSO = dict.fromkeys(("median", "medians", "percentiles", "histogram"), name_of("Quantiles"))
_REGRESSIONS = (_LINE, *map(name_of, ("Logistic", "Poisson", "Within", "SSP")))


#: What a release in one go needs beside schema and formula: how it is called, what is allowed, and how it is given.
_NEEDS = {
    "inference": ("--inference is required: what are the intervals about?", TARGETS_ALLOWED, "--inference population"),
    "privacy": ("a cost is required", "--mu, --rho, --epsilon (with --delta), or --margin", "--mu 0.5"),
    "ledger": ("a ledger is required", "--ledger LEDGER, or --unaccounted to charge none", "--ledger ledger.db"),
}


def check_complete(
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
        wrong = expression.unknown_in(formula, load_schema(schema))
    except ConfideError as error:
        wrong = error
    instead = None if wrong is None else wrong.instead
    more = " ".join(_NEEDS[name][2] for name in lacks)
    works = ctx.obj.command(instead=instead or ("", ""), more=more) if wrong is None or instead else f"add {more}"
    raise together([*filter(None, [wrong]), *parts], "this command", works)


@partial(spread, own=fields_of(*TABLES))
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
            help=f"One of {', '.join(TABLES)}; left out, counts, or means if the formula has a left side, or ratios if that is a / b.",
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
    if name not in TABLES:
        meant = near_match(_ALSO.get(name, name), tuple(TABLES))
        raise Refused(f"--kind must be one of {', '.join(TABLES)}, got {name!r}{meant}")
    settings = once.parameters.settings(**own.given())
    check_complete(ctx, once, formula, schema, settings)
    at_once(ctx.obj, once, data, schema, partial(make, name, formula, settings))


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
    check_complete(ctx, once, formula, schema, settings)
    at_once(ctx.obj, once, data, schema, partial(make, _DESCRIBE, formula, settings))


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
    ] = _LINE,
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
    check_complete(ctx, once, formula, schema)
    read = lambda release: beyond.shown(engine.infer(release))  # noqa: E731
    at_once(ctx.obj, once, data, schema, partial(make, method, formula, settings), read, beyond)
