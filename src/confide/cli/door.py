"""What `plan`, `release`, `infer` and `regress` share: the book, the way through the door, how results are shown."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.options import value_of
from confide.cli.session import Refused, Session
from confide.errors import ConfideError, PlanError

if TYPE_CHECKING:
    from confide.ledger import Ledger
    from confide.protocol import Plan, Release, Source, Spend

__all__ = [
    "book_facts",
    "draw",
    "make",
    "open_book",
    "plan_facts",
    "question",
    "release_facts",
    "result_facts",
    "say_cost",
    "show_result",
    "source_of",
]

BANNER = """\
!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!
!!  SIMULATED NOISE (--simulate): this release protects NOBODY.        !!
!!  Anyone who has the seed can take the noise off. Do not publish it. !!
!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"""


def make(name: str, model: str, settings: dict[str, Any]) -> Any:
    """A registered method; `model` is the value of its first parameter."""
    from dataclasses import fields

    from confide import registry

    first = next((f.name for f in fields(registry.get(name)) if f.init), None)
    if first is None:
        raise PlanError(f"method {name!r} takes no parameter, so there is nothing that {model!r} could be")
    if first in settings:
        raise Refused(f"--set {first}=... and the argument {model!r} are the same parameter of {name!r}; give it once")
    return registry.make(name, **{first: model}, **settings)


def open_book(path: Path | None, dataset: str | None, named: str | None) -> Ledger | None:
    """The book of the dataset that was asked for, else of the one that the schema names, else the only one there."""
    if path is None:
        return None
    from confide.ledger import Ledger

    if dataset is None and named is not None and named not in (held := Ledger.datasets(path)):
        raise PlanError(
            f"the schema names dataset {named!r}, and {path} holds {', '.join(map(repr, held)) or 'none'}; open a budget: "
            f"confide ledger init {path} --dataset {named} --mu ..., or correct the schema"
        )
    return Ledger.open(path, dataset=dataset or named)


def source_of(data: Sequence[Path], schema: Any) -> Source:
    """The records in one file or several, behind the schema's coding."""
    from confide.sources import read

    return read(data[0] if len(data) == 1 else list(data), schema)


def draw(session: Session, plan: Plan, source: Source, book: Ledger | None, seed: int | None) -> Release:
    """Through the door: charge, draw, receipt. From here on the session knows that a charge may have been made."""
    from confide import gate
    from confide.noise import SimulatedNoise

    if seed is not None:
        session.note(BANNER)
    noise = None if seed is None else SimulatedNoise(seed)
    try:
        with session.doing("release", private=True):
            if book is not None:
                session.charge = "possible"
            done = gate.release(plan, source, ledger=book, noise=noise)
    except ConfideError:
        # its class says whether a charge was made, and its words say what became of it
        session.charge = "none"
        raise
    session.charge = "none" if book is None else "made"
    return done


def question(subset: str | None) -> Any:
    """The question of a subset: names separated by commas, or a JSON list when a name has a comma in it."""
    from confide.protocol import Question

    if subset is None:
        return None
    names = value_of(subset)
    if isinstance(names, tuple) and names and all(isinstance(name, str) for name in names):
        return Question(subset=names)
    return Question(subset=tuple(name.strip() for name in subset.split(",") if name.strip()))


# what is shown --------------------------------------------------------------------------------------------------------


def say_cost(session: Session, plan: Plan, book: Ledger | None) -> None:
    """One line on what the release costs and who is charged, before anything happens."""
    if book is None:
        session.say(f"cost: {plan.guarantee}, charged to no ledger")
    else:
        left = book.show().remaining
        session.say(f"cost: {plan.guarantee}, charged to dataset {book.dataset!r} of {book.path}; left before: {left}")


def plan_facts(plan: Plan) -> dict[str, Any]:
    """A plan as plain numbers and text."""
    from confide.protocol import Spend, leaves

    return {
        "method": plan.method.name,
        "version": plan.method.version,
        "parameters": plan.method.parameters,
        "plan_sha256": plan.sha256,
        "target": plan.target,
        "covers": plan.covers,
        "relation": plan.relation,
        "requested": plan.requested,
        "guarantees": plan.guarantees,
        "spends": [
            _spend_facts(leaf) if isinstance(leaf, Spend) else {"name": leaf.name, "guarantee": leaf.guarantee}
            for leaf in leaves(plan.event)
        ],
        "passes": plan.passes,
        "n": plan.n,
        "n_nominal": plan.n_nominal,
        "rows_per_unit": plan.schema.get("rows_per_unit", 1),
        "forecast": plan.forecast,
        "warnings": plan.warnings,
    }


def _spend_facts(spend: Spend) -> dict[str, Any]:
    return {
        "name": spend.name,
        "law": spend.law,
        "shape": spend.shape,
        "mu": spend.cost,
        "sensitivity": float(spend.sensitivity * spend.step),
        "sd": float(spend.scale * spend.step**2) ** 0.5,
    }


def release_facts(release: Release) -> dict[str, Any]:
    """What a release says of itself, without its numbers."""
    return {
        "status": release.status,
        "release_sha256": release.sha256,
        "plan_sha256": release.plan.sha256,
        "method": release.plan.method.name,
        "version": release.plan.method.version,
        "target": release.plan.target,
        "requested": release.plan.requested,
        "guarantee": release.charged,
        "simulated": release.simulated,
    }


def book_facts(book: Ledger | None) -> dict[str, Any] | None:
    """Where a book stands, without its entries."""
    if book is None:
        return None
    state = book.show()
    return {
        "book": book.path,
        "dataset": state.dataset,
        "budget": state.budget,
        "spent": state.spent,
        "remaining": state.remaining,
    }


def result_facts(result: Any, alpha: float | None) -> dict[str, Any]:
    """A result as strict JSON; a stranger's NaN becomes null."""
    found = json.loads(result.to_json(**_level(result.to_json, alpha)))
    return found if isinstance(found, dict) else {"value": found}


def show_result(session: Session, result: Any, alpha: float | None, report: Path | None, plot: Path | None) -> None:
    """The table on stdout, the report and the plot in their files."""
    with session.doing("showing the result"):
        text = result.summary(**_level(result.summary, alpha))
    session.say(text)
    if report is not None:
        with session.doing("writing the report"):
            result.report(report, **_level(result.report, alpha))
        session.say(f"wrote {report}")
    if plot is not None:
        with session.doing("drawing the plot"):
            _save_plot(result.plot(**_level(result.plot, alpha)), plot)
        session.say(f"wrote {plot}")


def _save_plot(drawn: Any, path: Path) -> None:
    """Save what `plot` gave: axes, which know their figure, or a figure."""
    figure = getattr(drawn, "figure", None) or drawn
    try:
        figure.savefig(path, bbox_inches="tight")
    except OSError as error:
        raise PlanError(
            f"the plot cannot be written to {str(path)!r}: {error.strerror}; give a file in a folder that exists"
        ) from None


def _level(verb: Any, alpha: float | None) -> dict[str, Any]:
    """alpha for a verb that takes one. The protocol of results does not ask for it: a stranger's may have none."""
    if alpha is None:
        return {}
    if "alpha" not in inspect.signature(verb).parameters:
        raise PlanError("the results of this method have no level to choose: leave --alpha out")
    return {"alpha": alpha}
