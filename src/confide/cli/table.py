"""`confide table | test`: what an office asks first, each in one go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.gate import Once, at_once
from confide.cli.options import Covers, Data, SchemaFile, Within, named
from confide.cli.session import Refused
from confide.cli.spread import spread

if TYPE_CHECKING:
    from confide.protocol import Release

__all__ = ["needs_covers", "table", "test"]

_KINDS = ("counts", "shares", "means", "totals", "distribution")


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
            help="Left out: counts, or means where the formula has a left side. distribution: medians and other quantiles by group.",
        ),
    ] = None,
    within: Within = None,
    *,
    once: Once,
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
    settings = once.parameters.settings(covers=covers, within=named(within))
    needs_covers(settings)
    at_once(ctx.obj, once, data, schema, name, formula, settings)


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


@spread
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
    *,
    once: Once,
) -> None:
    """Plan, release and test in one go, under the names of scipy.stats; p-values account for sampling and noise.

    What is printed may be published.

    Example:

    confide test f_oneway "happy ~ region" survey.csv --schema schema.toml \\
      --mu .3 --ledger book.db
    """
    if name not in _TESTS:
        raise Refused(f"there is no test {name!r}; there are: {', '.join(_TESTS)}")
    method = _TESTS[name]
    covers = {"covers": "population"} if method in ("means", "counts") else {}
    settings = once.parameters.settings() | covers
    asked, ask = _question(name, formula, p, level, expected)

    def read(done: Release) -> Any:
        from confide import gate

        return ask(gate.infer(done))

    at_once(ctx.obj, once, data, schema, method, asked, settings, read)


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
