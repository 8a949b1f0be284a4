"""`confide table | test`: what an office asks first, each in one go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from confide.cli.session import Refused, Session

if TYPE_CHECKING:
    from confide.protocol import Release

__all__ = ["Covers", "Keep", "needs_covers", "table", "test"]

_KINDS = ("counts", "shares", "means", "totals", "distribution")

Covers = Annotated[
    str | None,
    typer.Option(
        "--covers",
        metavar="population|dataset",
        help="population: the records are a sample, and intervals are about those they were drawn from; dataset: these records alone.",
    ),
]

Keep = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Keep the release in this file.")]


def needs_covers(settings: dict[str, Any], covers: str | None) -> None:
    """Put `covers` among the settings, or refuse where nobody said what intervals are about."""
    if covers is None and "covers" not in settings:
        raise Refused(
            "say what intervals are about: --covers population where the records are a sample of those that the question is about, "
            "--covers dataset for these very records"
        )
    settings |= {} if covers is None else {"covers": covers}


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
            help="Left out: counts, or means where the formula has a left side. distribution: medians and other quantiles by group.",
        ),
    ] = None,
    within: Annotated[
        str | None, typer.Option("--within", metavar="A,B", help="Shares within the levels of these columns.")
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
    """Plan, release and infer a table in one go: counts, shares, means or totals by cell, with intervals.

    "a * b" is a crossing with all its margins, "a:b" the crossing alone, "a + b"
    one-way margins; cut(age, 18, 65) makes levels of a numeric column. The table may
    be published; without -o the release is not kept, and another table costs again.

    Examples:

    confide table "region * cut(age, 40)" survey.csv --schema schema.toml --mu .3 \\
      --covers population --ledger book.db

    confide table "happy ~ region" survey.csv --schema schema.toml --mu .3 \\
      --covers dataset --no-ledger

    confide table "income ~ region" survey.csv --kind distribution ...    (medians)
    """
    name = kind or ("means" if "~" in formula else "counts")
    if name not in _KINDS:
        raise Refused(f"--kind must be one of {', '.join(_KINDS)}, got {name!r}")
    settings = options.settings(setting, where)
    needs_covers(settings, covers)
    if within is not None:
        settings["within"] = tuple(part.strip() for part in within.split(","))
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
    at_once(ctx.obj, once, name, formula, settings)


# verb -> (method, what the formula must have)
_TESTS = {
    "ttest_ind": "means",
    "ttest_rel": "means",
    "f_oneway": "means",
    "chi2_contingency": "counts",
    "chisquare": "counts",
    "binomtest": "counts",
    "trend": "counts",
    "pearsonr": "correlation",
    "mannwhitneyu": "mann_whitney",
    "kruskal": "kruskal",
    "wilcoxon": "wilcoxon",
}


def test(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TEST", help=f"One of {', '.join(_TESTS)}.", show_default=False)],
    formula: Annotated[
        str,
        typer.Argument(
            metavar="FORMULA", help='For instance "income ~ sex", "smoker * region", "x + y".', show_default=False
        ),
    ],
    data: Data,
    schema: SchemaFile,
    p: Annotated[float | None, typer.Option("--p", help="binomtest: the share to test.")] = None,
    level: Annotated[
        str | None,
        typer.Option("--level", help="binomtest, trend: the level whose share it is; left out, the last one."),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option("--expected", metavar="A,B,C", help="chisquare: public shares, in the order of the levels."),
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
    """Plan, release and test in one go, under the names of scipy.stats; p-values account for sampling and noise.

    What is printed may be published.

    Example:

    confide test f_oneway "happy ~ region" survey.csv --schema schema.toml \\
      --mu .3 --ledger book.db
    """
    session: Session = ctx.obj
    if name not in _TESTS:
        raise Refused(f"there is no test {name!r}; there are: {', '.join(_TESTS)}")
    settings = options.settings(setting, where)
    method = _TESTS[name]
    if method in ("means", "counts"):
        settings["covers"] = "population"
    asked, ask = _question(name, formula, p, level, expected)
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

    def read(done: Release) -> Any:
        from confide import gate

        return ask(gate.infer(done))

    at_once(session, once, method, asked, settings, read)


def _question(name: str, formula: str, p: float | None, level: str | None, expected: str | None) -> tuple[str, Any]:
    """(the formula of the release, the question to its table)."""
    from confide.faces.tests import asked_of

    shares = None
    if expected is not None:
        try:
            shares = [float(part) for part in expected.split(",")]
        except ValueError:
            raise Refused(f"--expected takes numbers, got {expected!r}; write --expected .5,.3,.2") from None
    given = {"p": p, "level": level, "f_exp": shares}
    return asked_of(name, formula, **{key: value for key, value in given.items() if value is not None})
