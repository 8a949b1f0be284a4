"""`confide explore | advise | methods | curve`: analyses of a schema, a choice of methods, the meaning of guarantees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from math import isfinite
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._helpers import later, progress_bar
from confide.cli.engine import unit_options
from confide.cli.files import Drawings, check_places, load_schema, write_output
from confide.cli.options import Force, Json, Plot, Privacy, SchemaFile, spread
from confide.cli.session import Refused, Session
from confide.cli.tables import facts, table
from confide.errors import PrivacyError

if TYPE_CHECKING:
    from confide import engine, registry
    from confide.ask import menu, tests
    from confide.registry import MethodInfo
    from confide.schema import Schema
else:
    engine, menu, registry, tests = (
        later("confide.engine"),
        later("confide.ask.menu"),
        later("confide.registry"),
        later("confide.ask.tests"),
    )


def explore(
    ctx: typer.Context,
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).")],
    json: Json = False,
) -> None:
    """List the analyses that a schema allows, with a command for each.

    Reads the schema only, which is public, and charges nothing. Add to each command DATA, --schema, a
    cost (--mu 0.5) and --ledger; tables also need --inference population or dataset.

    Example:

    confide explore schema.toml
    """
    session: Session = ctx.obj
    with session.doing("reading the schema"):
        found = load_schema(schema)
    fitting = [(one, one.asked_of(found)) for one in menu.questions()]
    asked = [(one, formula) for one, formula in fitting if formula is not None]
    rows = [(one.words, one.says, f"confide {one.command.format(formula)}") for one, formula in asked]
    session.say("\n".join(f"{words}: {says}\n  {command}" for words, says, command in rows))
    session.say(
        f"\nAdd to each: survey.csv --schema {schema} --mu 0.5 --ledger ledger.db\n"
        "The commands table and describe also need --inference population, or dataset."
    )
    if any(one.command.startswith("plan ") for one, _ in asked):
        session.say("The command plan takes no records; confide release and confide infer follow it.")
    session.say(f"A ledger for these records: {_opening(found)}")
    many = _publication(asked[:3], schema)
    session.say(
        "\nSeveral analyses with one charge and one report: confide publish publication.toml survey.csv --ledger ledger.db"
    )
    session.say(f"with this publication.toml:\n\n{many}")
    rest = [one for one, formula in fitting if formula is None]
    refused = [one.words for one in rest if one.asked_of(_plainly(found)) is not None]
    left = [one.words for one in rest if one.words not in refused]
    if left:
        session.say(f"\nNo column fits: {'; '.join(left)}")
    if refused:
        session.say(f"\nNot available for the survey design or the privacy unit of this schema: {'; '.join(refused)}")
    questions = [
        {"question": one.name, "formula": formula, "command": command[2]}
        for (one, formula), command in zip(asked, rows, strict=True)
    ]
    session.answer({"questions": questions, menu.PUBLICATION: many, "no_column_fits": left, "refused": refused})


def _plainly(found: Schema) -> Schema:
    """The columns alone, each row a person's: what a design, clusters or an id column refuse, these would not."""
    from confide.schema import Schema

    return found if found.plain else Schema(found.columns)


def _opening(found: Schema) -> str:
    """The command that opens a ledger for the dataset and unit of the schema."""
    own = join(unit_options(found))
    return f"confide ledger init ledger.db --dataset {quote(found.dataset or 'NAME')} {own} --mu 2"


def _publication(asked: Sequence[tuple[Any, str]], schema: Path) -> str:
    """The file of a publication of some analyses."""
    from confide.core.plan import method_parameters
    from confide.schema.toml import key, value

    lines = [f"schema = {value(str(schema))}", "privacy = { mu = 0.5 }"]
    for one, formula in asked:
        made = menu.method_of_form({"kind": one.name, "formula": formula, "inference": "population"})
        own = {name: entry for name, entry in method_parameters(made).items() if isinstance(entry, str)}
        lines += ["", f"[analyses.{key(one.name)}]", f"method = {value(made.name)}"]
        lines += [f"{name} = {value(entry)}" for name, entry in own.items()]
    return "\n".join(lines)


_READ = (
    "\nCompared are errors at this number of records on these simulated records; only methods with intervals are\n"
    "recommended. It says nothing of other records, for which least_squares stays the default."
)


@spread
def advise(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="A formula of the task's methods.")],
    schema: SchemaFile,
    n: Annotated[int, typer.Option(metavar="N", help="Number of records, or a guess of it.")],
    task: Annotated[
        str,
        typer.Option(
            help="linear_regression, logistic_regression, poisson_regression, classification or kernel_regression."
        ),
    ] = "linear_regression",
    *,
    privacy: Privacy,
    similar_data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A public dataset of the same kind, instead of simulated scenarios."),
    ] = None,
    replications: Annotated[int, typer.Option(metavar="R", help="Number of runs of each method.")] = 48,
    json: Json = False,
) -> None:
    """Recommend a method for a task, by forecasts of standard errors.

    Every method of the task runs with simulated noise on the scenarios of a forecast,
    or on a similar public dataset (--similar-data). It reads no protected record and
    charges nothing.

    Example:

    confide advise "happy ~ age" --schema schema.toml --n 1000 --mu 1 --delta 1e-6
    """
    session: Session = ctx.obj
    requested = privacy.guarantee()
    check_places({}, {"the schema": schema})
    with session.doing("loading the methods"):
        from confide import advise as verb

        known = load_schema(schema)
    with progress_bar("advise") as step:
        found = verb(
            task, formula, known, n, requested, similar_data=similar_data, replications=replications, progress=step
        )
    session.say(str(found))
    if task == "linear_regression":
        session.say(_READ)
    session.answer(found.to_dict())


def methods(ctx: typer.Context, json: Json = False) -> None:
    """List every method with its guarantee, relations and parameters.

    By family, in the order in which people ask, then those of other packages. The
    first parameter is the MODEL of `confide plan`; --param gives the others. All of
    it is public.

    Example:

    confide methods
    """
    session: Session = ctx.obj
    with session.doing("loading the methods"):
        found = registry.list_methods()
    own = [method for method in found if method.package == "confide"]
    for family in registry.FAMILIES:
        session.say(f"== {family.words} ({family.command}; cf.{family.place}) ==\n")
        _said(session, [method for method in own if method.family == family.name])
    if others := [method for method in found if method not in own]:
        session.say("== Of other packages ==\n")
        _said(session, others)
    session.answer(
        {"families": [vars(family) for family in registry.FAMILIES], "methods": [vars(method) for method in found]}
    )


def _said(session: Session, found: Sequence[MethodInfo]) -> None:
    for method in found:
        session.say(f"{method.name} (version {method.version})")
        facts(
            session,
            [
                ("  family", method.family),
                ("  guarantee", method.native),
                ("  relations", ", ".join(method.relations)),
                ("  parameters", ", ".join(method.parameters)),
                ("  intervals", method.intervals),
                ("  source", method.source),
                *([] if method.package == "confide" else [("  package", f"{method.package} (not confide's own)")]),
            ],
        )
        session.say()


_ALPHAS = (0.01, 0.05, 0.1)
_EPSILONS = (0.0, 0.5, 1.0, 2.0)
_DELTAS = (1e-3, 1e-6)


def curve(
    ctx: typer.Context,
    guarantees: Annotated[
        list[str], typer.Argument(metavar="GUARANTEE...", help="One guarantee or several, in quotes.")
    ],
    alpha: Annotated[
        list[float] | None,
        typer.Option(help="A rate of false alarms; repeat for more; left out, 0.01, 0.05 and 0.1.", show_default=False),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            help="An epsilon for which to print delta; repeat for more; left out, 0, 0.5, 1 and 2.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(
            help="A delta for which to print epsilon; repeat for more; left out, 0.001 and 1e-6.", show_default=False
        ),
    ] = None,
    plot: Plot = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="tradeoff|profile",
            help="The picture: missed detections against false alarms, or delta against epsilon.",
        ),
    ] = "tradeoff",
    force: Force = False,
    json: Json = False,
) -> None:
    """Tabulate and draw the most that an attacker can detect.

    A GUARANTEE is one of GDP, PureDP, ApproxDP or ZCDP with its parameters, or a curve:
    gaussian(mu), laplace(epsilon), symmetric_laplace(d, c), zero_inflated(zeta, ...).
    The symmetric Laplace curve is in d dimensions (or inf) at a shift of c SDs of the
    noise; the zero-inflated one has probability zeta of no noise. A * B composes two releases, A ** k composes
    k. Everything here is public; nothing is charged.

    Example:

    confide curve "GDP(1)" "laplace(1)" "laplace(0.1) ** 10" --plot curves.png
    """
    session: Session = ctx.obj
    if kind not in ("tradeoff", "profile"):
        raise Refused(f"--kind is tradeoff or profile, got {kind!r}")
    with Drawings(plot=plot).reserved(force=force) as drawn:
        with session.doing("computing the curves"):
            from confide.guarantees import parse_curve

            curves = {text: _parsed(parse_curve, text) for text in guarantees}
            alphas = [_within(a, "--alpha", 0, 1) for a in alpha or _ALPHAS]
            epsilons = [_within(e, "--epsilon", 0, float("inf")) for e in epsilon or _EPSILONS]
            deltas = [_within(d, "--delta", 0, 1) for d in delta or _DELTAS]
            found = [_facts(text, one, alphas, epsilons, deltas) for text, one in curves.items()]
        _print(session, found, alphas, epsilons, deltas)
        if drawn:
            with session.doing("drawing"):
                from confide.guarantees import plot_curves

                figure = plot_curves(curves, kind=kind)
                write_output(drawn["--plot"], lambda path: figure.savefig(path, bbox_inches="tight", dpi=150))
            session.say(f"\nplot: {plot}")
        session.answer({"curves": found, "plot": str(plot) if plot else None})


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """The curve of a text. What is wrong with it is said in its own notation, which no option stands for here."""
    try:
        return parse(text)
    except PrivacyError as error:
        raise Refused(str(error)) from None


def _within(value: float, name: str, low: float, high: float) -> float:
    if not (isfinite(value) and low <= value <= high):
        raise Refused(f"{name} must be a number from {low} to {high}, got {value}")
    return value


def _facts(text: str, one: Any, alphas: list[float], epsilons: list[float], deltas: list[float]) -> dict[str, Any]:
    return {
        "guarantee": text,
        "tradeoff": [{"alpha": a, "beta": float(one.f(a)), "detection": 1 - float(one.f(a))} for a in alphas],
        "profile": [{"epsilon": e, "delta": float(one.delta(e))} for e in epsilons],
        "inverse": [{"delta": d, "epsilon": float(one.epsilon(d))} for d in deltas],
    }


def _print(
    session: Session, found: list[dict[str, Any]], alphas: list[float], epsilons: list[float], deltas: list[float]
) -> None:
    session.say("Largest detection rate of any test, at a false-alarm rate of alpha, rounded up:\n")
    heads = ["guarantee", *(f"alpha = {a:g}" for a in alphas)]
    table(
        session,
        heads,
        [[f["guarantee"], *(f"{_up(100 * p['detection'])}%" for p in f["tradeoff"])] for f in found],
        right=heads[1:],
    )
    session.say("\nThe same as (epsilon, delta): delta at an epsilon, and epsilon at a delta, both rounded up:\n")
    heads = ["guarantee", *(f"delta({e:g})" for e in epsilons), *(f"epsilon({d:g})" for d in deltas)]
    table(
        session,
        heads,
        [
            [
                f["guarantee"],
                *(_up(p["delta"]) for p in f["profile"]),
                *(_up(p["epsilon"]) if isfinite(p["epsilon"]) else "infinite" for p in f["inverse"]),
            ]
            for f in found
        ],
        right=heads[1:],
    )


def _up(number: float) -> str:
    """Four digits, never below the number."""
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).plus(Decimal(number))):.4g}"
