"""`confide table | test`: what an office asks first, each in one go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._text import near_match
from confide.cli.gate import Once, at_once
from confide.cli.options import RECORDS, Covers, Data, SchemaFile, Weights, Within, named
from confide.cli.questions.ask import TESTS, TestsOwn, known_test, not_of_a_release
from confide.cli.session import Refused, Session
from confide.cli.spread import spread

if TYPE_CHECKING:
    from confide.protocol import Release

__all__ = ["needs_covers", "table", "test"]

_KINDS = ("counts", "shares", "means", "totals", "ratios", "distribution", "person_counts", "person_shares")


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
            help="Left out: counts; means where the formula has a left side, ratios where that is a / b. distribution: medians and other "
            "quantiles by group. person_counts, person_shares: persons by all their rows.",
        ),
    ] = None,
    within: Within = None,
    weights: Weights = None,
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

    confide table "happy ~ region" survey.csv --schema schema.toml --covers population \
      --accuracy mean=.1 --n 5000 --ledger book.db    (the least mu for this half-width)
    """
    from confide.schema.formulas.names import parted, sides  # here, because schemas are slow to load

    left = sides(formula)[0] if len(sides(formula)) > 1 else ""
    name = kind or ("ratios" if len(parted(left, "/")) > 1 else "means" if left else "counts")
    if name not in _KINDS:
        raise Refused(f"--kind must be one of {', '.join(_KINDS)}, got {name!r}{near_match(name, _KINDS)}")
    settings = once.parameters.settings(covers=covers, within=named(within), weights=weights)
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
    own: TestsOwn,
    once: Once,
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
    from confide.faces.tests import asked_of

    given = own.given()
    asked, ask = asked_of(name, formula, **given)
    method, settings = _behind(name, once.parameters.settings(weights=weights))
    _check_groups(ctx.obj, schema, name, asked, settings)
    if effect is not None or once.n is not None:
        _say_power(ctx.obj, once, schema, name, formula, effect, settings, p=own.p, level=own.level)

    def read(done: Release) -> Any:
        from confide import gate

        return ask(gate.infer(done))

    at_once(ctx.obj, once, data, schema, method, asked, settings, read)


def _behind(name: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(the method whose release answers a test, its parameters beside the formula); refused where the null law would not hold."""
    from confide.faces.tests import METHODS, POPULATION_TESTS, check_weights

    check_weights(name, settings)
    covers = {"covers": "population"} if METHODS[name].name in POPULATION_TESTS else {}
    return METHODS[name].name, settings | covers


def _check_groups(session: Session, schema: Path, name: str, formula: str, settings: dict[str, Any]) -> None:
    """Refuse groups that a test cannot compare, before anything is charged."""
    from confide.cli.files import load_schema
    from confide.faces.tests import check_groups, method_of

    with session.doing("plan"):
        own = {key: value for key, value in settings.items() if key != "covers"}
        check_groups(name, method_of(name, formula, own), load_schema(schema))


def _say_power(
    session: Session,
    once: Once,
    schema: Path,
    name: str,
    formula: str,
    effect: float | None,
    settings: dict[str, Any],
    **given: Any,
) -> None:
    """Print the power of a test at the number of records that was given."""
    from confide.cli.files import load_schema
    from confide.faces import tests

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
