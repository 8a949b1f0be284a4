"""`confide curve`: what guarantees mean, side by side: a table, a picture, JSON."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from confide.cli.options import Force, Json
from confide.cli.session import Refused, Session
from confide.cli.tables import table

__all__ = ["curve"]

_ALPHAS = (0.01, 0.05, 0.1)
_EPSILONS = (0.0, 0.5, 1.0, 2.0)
_DELTAS = (1e-3, 1e-6)
_SUFFIXES = (".png", ".svg", ".pdf")


def curve(
    ctx: typer.Context,
    guarantees: Annotated[
        list[str], typer.Argument(metavar="GUARANTEE...", help="One or more, in quotes.", show_default=False)
    ],
    alpha: Annotated[
        list[float] | None,
        typer.Option(
            "--alpha",
            help="A false-alarm rate to tabulate; repeat for more; .01, .05, .1 when left out.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            "--epsilon",
            help="An epsilon at which to give delta; repeat for more; 0, .5, 1, 2 when left out.",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(
            "--delta",
            help="A delta at which to give epsilon; repeat for more; .001, 1e-6 when left out.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curves: .png, .svg or .pdf.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="tradeoff|profile",
            help="What to draw: missed detections against false alarms, or delta against epsilon.",
        ),
    ] = "tradeoff",
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw and tabulate guarantees: what someone who sees a release can find out at most.

    A GUARANTEE is GDP(mu), PureDP(epsilon), ApproxDP(epsilon, delta), ZCDP(rho),
    gaussian(mu), laplace(epsilon), symmetric_laplace(d, c) in d dimensions (or
    inf) at a shift of c noise standard deviations, or zero_inflated(zeta, ...)
    with a chance zeta of no noise. A * B composes two releases, A ** k composes
    k. Everything here is public; nothing is charged.

    Example:

    confide curve "GDP(1)" "laplace(1)" "laplace(0.1) ** 10" --plot curves.png
    """
    session: Session = ctx.obj
    if kind not in ("tradeoff", "profile"):
        raise Refused(f"--kind is tradeoff or profile, got {kind!r}")
    if plot is not None and plot.suffix not in _SUFFIXES:
        raise Refused(f"--plot takes a file that ends in {', '.join(_SUFFIXES)}, got {plot.name!r}")
    if plot is not None and not plot.resolve().parent.is_dir():
        raise Refused(f"--plot {plot}: there is no folder {str(plot.parent)!r}; make it first, or give another path")
    if plot is not None and plot.exists() and not force:
        raise Refused(f"{plot} exists; give --force to replace it, or another path")
    with session.doing("computing the curves"):
        from confide.guarantees import parse_curve

        curves = {text: _parsed(parse_curve, text) for text in guarantees}
        alphas = [_within(a, "--alpha", 0, 1) for a in alpha or _ALPHAS]
        epsilons = [_within(e, "--epsilon", 0, float("inf")) for e in epsilon or _EPSILONS]
        deltas = [_within(d, "--delta", 0, 1) for d in delta or _DELTAS]
        found = [_facts(text, one, alphas, epsilons, deltas) for text, one in curves.items()]
    _print(session, found, alphas, epsilons, deltas)
    if plot is not None:
        with session.doing("drawing"):
            from confide.guarantees import plot_curves

            figure = plot_curves(curves, kind=kind)
            try:
                figure.savefig(plot, bbox_inches="tight", dpi=150)
            except OSError as error:
                raise Refused(
                    f"--plot {plot} cannot be written: {error.strerror}; give a path that you may write to"
                ) from None
        session.say(f"\nplot: {plot}")
    session.answer({"curves": found, "plot": str(plot) if plot else None})


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """The curve of a text. What is wrong with it is said in its own notation, which no option stands for here."""
    from confide.errors import PrivacyError

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
    session.say("Largest detection rate of any test, at a false-alarm rate of alpha:\n")
    heads = ["guarantee", *(f"alpha = {a:g}" for a in alphas)]
    table(
        session,
        heads,
        [[f["guarantee"], *(f"{100 * p['detection']:.2f} %" for p in f["tradeoff"])] for f in found],
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
    from decimal import ROUND_CEILING, Context, Decimal

    return f"{float(Context(prec=4, rounding=ROUND_CEILING).plus(Decimal(number))):.4g}"
