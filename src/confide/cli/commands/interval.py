"""`confide interval`: an interval for one number, planned, released and read in one go."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from confide.ask.intervals import VERBS, interval_method
from confide.cli.commands.one_step import check_complete
from confide.cli.engine import OneStepRequest, at_once, open_ledger
from confide.cli.files import load_schema
from confide.cli.options import Data, Fields, SchemaFile, fields_of, spread
from confide.cli.session import Session
from confide.registry import name_of

_INTERVALS = map(name_of, ("MeanAndVariance", "Proportion", "Difference", "Slope"))


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
    check_complete(ctx, once, column, schema)
    once.account.check(once.simulate)
    with session.doing("plan"):
        found = load_schema(schema)
        book = open_ledger(once.account.ledger, once.account.dataset, found.dataset)
        relation = None if book is None else book.relation
        answer = interval_method(verb, column, found, once.privacy.guarantee(), relation=relation, **settings)
    at_once(session, once, data, schema, lambda: answer.method, answer.read)
