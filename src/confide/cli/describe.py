"""`confide describe`: Table One, what a study's records are like by group, in one go."""

from __future__ import annotations

from typing import Annotated

import typer

from confide.cli import options
from confide.cli.analysis import Once, at_once
from confide.cli.files import Drawings
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
    privacy,
)
from confide.cli.table import Covers, Keep, needs_covers

__all__ = ["describe"]


def describe(
    ctx: typer.Context,
    formula: Annotated[
        str,
        typer.Argument(metavar="FORMULA", help='For instance "age + bmi + smoker ~ arm".', show_default=False),
    ],
    data: Data,
    schema: SchemaFile,
    covers: Covers = None,
    medians: Annotated[
        str | None, typer.Option("--medians", metavar="A,B", help="Columns to describe by their quartiles.")
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
    setting: Settings = None,
    where: Where = None,
    alpha: Alpha = None,
    output: Keep = None,
    report: Report = None,
    plot: Plot = None,
    csv: Csv = None,
    delimiter: Delimiter = ",",
    simulate: Seed = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Plan, release and infer Table One in one go: what the records are like, by group.

    Mean (sd) or quartiles of numeric columns, number (share) of each level,
    standardised differences between groups, with intervals. The table may be
    published; without -o the release is not kept, and another table costs again.

    Example:

    confide describe "age + happy ~ region" survey.csv --schema schema.toml \\
      --mu .5 --covers population --medians age --ledger book.db
    """
    settings = options.settings(setting, where)
    needs_covers(settings, covers)
    if medians is not None:
        settings["medians"] = tuple(part.strip() for part in medians.split(","))
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
    at_once(ctx.obj, once, "table_one", formula, settings)
