"""`confide describe`: Table One, what a study's records are like by group, in one go."""

from __future__ import annotations

from typing import Annotated

import typer

from confide.cli.gate import Once, at_once
from confide.cli.options import Covers, Data, Medians, SchemaFile, Weights, named
from confide.cli.questions.table import needs_covers
from confide.cli.spread import spread

__all__ = ["describe"]


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
    once: Once,
) -> None:
    """Plan, release and infer Table One in one go: what the records are like, by group.

    Mean (sd) or quartiles of numeric columns, number (share) of each level,
    standardised differences between groups, with intervals. The table may be
    published; without -o the release is not kept, and another table costs again.

    Example:

    confide describe "age + happy ~ region" survey.csv --schema schema.toml \\
      --mu .5 --covers population --medians age --ledger book.db
    """
    settings = once.parameters.settings(covers=covers, medians=named(medians), weights=weights)
    needs_covers(settings)
    at_once(ctx.obj, once, data, schema, "table_one", formula, settings)
