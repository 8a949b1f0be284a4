"""What `plan`, `release`, `infer` and `regress` share: the ledger, the way through the gate, how results are shown."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from confide.cli.files import Drawings
from confide.cli.hints import for_command_line
from confide.cli.options import value_of
from confide.cli.session import Refused, Session
from confide.errors import ConfideError, PlanError

if TYPE_CHECKING:
    from confide.ledger import Ledger
    from confide.protocol import Plan, Release, Source, Spend

__all__ = [
    "book_facts",
    "check_relation",
    "draw",
    "make",
    "open_book",
    "plan_facts",
    "question",
    "release_facts",
    "result_facts",
    "say_charged",
    "say_cost",
    "say_price",
    "show_result",
    "source_of",
]

_DIGEST = re.compile(r"[0-9a-f]{64}")

BANNER = """\
!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!
!!  SIMULATED NOISE (--simulate): this release protects NOBODY.        !!
!!  Anyone who has the seed can take the noise off. Do not publish it. !!
!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"""


def make(name: str, model: str, settings: dict[str, Any]) -> Any:
    """A registered method; `model` is the value of its first parameter."""
    from confide import registry
    from confide.protocol import parameters_of

    first = parameters_of(registry.get(name))[0]
    if first == "where":
        raise PlanError(f"method {name!r} takes no parameter, so there is nothing that {model!r} could be")
    if first in settings:
        raise Refused(f"--set {first}=... and the argument {model!r} are the same parameter of {name!r}; give it once")
    made = registry.make(name, **{first: model}, **settings)
    if made.name != name:
        typer.echo(f"note: {name} is called {made.name} now", err=True)
    return made


def open_book(path: str | Path | None, dataset: str | None, named: str | None) -> Ledger | None:
    """The ledger of the dataset that was asked for, else of the one that the schema names, else the only one there."""
    if path is None:
        return None
    from confide.ledger import Ledger, same_name

    held = () if dataset is not None or named is None else Ledger.datasets(path)
    if dataset is None and named is not None and not any(same_name(named, name) for name in held):
        raise PlanError(
            f"the schema names dataset {named!r}, and the ledger holds {', '.join(map(repr, held)) or 'none'}; open a budget: "
            "Ledger.create(path, dataset=..., budget=...), or correct the schema"
        )
    return Ledger.open(path, dataset=dataset or named)


def check_relation(method: Any, book: Ledger | None) -> None:
    """Refuse a ledger under a relation that the method does not have: no --relation would help, so name what does."""
    if book is None:
        return
    has, own = tuple(method.relations), book.show().relation
    if own not in has:
        raise PlanError(
            f"dataset {book.dataset!r} counts releases under {own}, and method {method.name} has {' and '.join(has)} alone; take a method "
            f"that has {own} (confide methods lists them), or a ledger that was opened with --relation {has[0]}"
        )


def source_of(data: Sequence[Path], schema: Any, delimiter: str) -> Source:
    """The records in one file or several, behind the schema's coding."""
    from confide.sources import read

    return read(data[0] if len(data) == 1 else list(data), schema, delimiter=delimiter)


def draw(
    session: Session,
    plan: Plan,
    source: Source,
    book: Ledger | None,
    seed: int | None,
    *,
    charge_delta: float | None = None,
    convert: bool = False,
    keep_others: bool = False,
) -> Release:
    """Through the gate: charge, draw, receipt. From here on the session knows that a charge may have been made."""
    from confide import gate
    from confide.noise import SimulatedNoise

    if seed is not None:
        session.note(BANNER)
    noise = None if seed is None else SimulatedNoise(seed)
    try:
        with session.doing("release", private=True):
            if book is not None:
                session.charge = "possible"
            done = gate.release(
                plan,
                source,
                ledger=book,
                noise=noise,
                charge_delta=charge_delta,
                convert=convert,
                keep_others=keep_others,
            )
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


def say_cost(
    session: Session,
    plan: Plan,
    book: Ledger | None,
    *,
    charge_delta: float | None = None,
    convert: bool = False,
) -> list[str]:
    """Say what will be charged to whom, before anything happens, and whether this very plan was paid for before.

    Returns the SHA-256 of its earlier releases, which stand in the ledger and are public.
    """
    if book is None:
        session.say(f"will charge no ledger (--no-ledger); guarantee of the release: {plan.guarantee}")
        return []
    state = book.show()
    say_price(session, book, plan, charge_delta=charge_delta, convert=convert)
    same = [row for row in state.rows if row.plan_sha256 == plan.sha256]
    earlier = [(found[0], row.seq) for row in same if row.kind == "receipt" and (found := _DIGEST.search(row.note))]
    if earlier:
        session.note(
            f"note: this plan was released before: release {earlier[-1][0]}, entry {earlier[-1][1]}; another release of "
            "it is charged again (further tables of the old one cost nothing: confide infer)"
        )
    elif same:
        session.note(
            f"note: this plan was charged before, as entry {same[-1].seq}, and no release of it was recorded; it is "
            "charged again"
        )
    return [release for release, _ in earlier]


def say_price(
    session: Session, book: Ledger, plan: Plan, *, charge_delta: float | None = None, convert: bool = False
) -> None:
    """What a plan would take from a ledger, in the ledger's own currency, and what would be left."""
    to = f"to dataset {book.dataset!r} of {book.place}"
    try:
        found = book.preview(plan.guarantees, charge_delta=charge_delta, convert=convert)
    except ConfideError:  # the gate says why, with what is left
        session.say(f"will ask to charge {plan.guarantee} {to}; left before: {book.show().remaining}")
        return
    after = "nothing: this release takes all that is left" if found.last else found.after
    session.say(
        f"will charge {found.statement} {to}, counted as {found.price}; left before: {found.before}; left after: {after}"
    )
    if found.note:
        session.note(f"note: {for_command_line(found.note)}")


def say_charged(session: Session, done: Release, book: Ledger | None) -> None:
    """What was charged, or that nothing was, once the release is safe: reading the ledger may fail, and nothing may be lost by it."""
    if book is None:
        stated = "none: simulated noise" if done.simulated else str(done.charged)
        session.say(f"not charged: no ledger (--no-ledger); guarantee of the release: {stated}")
        return
    receipt = book.find(done.sha256)
    # a release may be charged as another of its statements than its first
    entry = f", entry {receipt.charge_seq}" if receipt is not None else ""
    charged = done.charged if receipt is None else receipt.guarantee
    session.say(f"charged {charged} to dataset {book.dataset!r}{entry}; left: {book.show().remaining}")


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
            _spend_facts(leaf, plan.relation)
            if isinstance(leaf, Spend)
            else {"name": leaf.name, "guarantee": leaf.guarantee}
            for leaf in leaves(plan.event)
        ],
        "passes": plan.passes,
        "n": plan.n,
        "planned_n": plan.planned_n,
        "rows_per_unit": plan.schema.get("rows_per_unit", 1),
        "forecast": dict(plan.forecast),
        "warnings": plan.warnings,
        "notes": plan.notes,
    }


def _spend_facts(spend: Spend, relation: str) -> dict[str, Any]:
    return {
        "name": spend.name,
        "law": spend.law,
        "shape": spend.shape,
        "guarantee": spend.exact_cost.guarantee(relation),
        "sensitivity": float(spend.sensitivity * spend.step),
        "sd": spend.noise_sd,
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
    """Where a ledger stands, without its entries."""
    if book is None:
        return None
    state = book.show()
    return {
        "book": book.place,
        "dataset": state.dataset,
        "budget": state.budget,
        "spent": state.spent,
        "remaining": state.remaining,
    }


def result_facts(result: Any, alpha: float | None) -> dict[str, Any]:
    """A result as strict JSON; a third party's NaN becomes null."""
    found = json.loads(result.to_json(**_level(result.to_json, alpha)))
    return found if isinstance(found, dict) else {"value": found}


def show_result(session: Session, result: Any, alpha: float | None, drawings: Drawings) -> None:
    """The table on stdout; the report, the plot and the table as CSV in their files."""
    with session.doing("showing the result"):
        text = result.summary(**_level(result.summary, alpha))
    session.say(text)
    if drawings.report is not None:
        with session.doing("writing the report"):
            result.report(drawings.report, **_level(result.report, alpha))
        session.say(f"wrote {drawings.report}")
    if drawings.plot is not None:
        with session.doing("drawing the plot"):
            _save_plot(result.plot(**_level(result.plot, alpha)), drawings.plot)
        session.say(f"wrote {drawings.plot}")
    if drawings.csv is not None:
        with session.doing("writing the table"):
            _save_table(result, drawings.csv, alpha)
        session.say(f"wrote {drawings.csv}")


def _save_table(result: Any, path: Path, alpha: float | None) -> None:
    """The table as CSV, with all digits; a third party's result has a frame alone."""
    if hasattr(result, "to_csv"):
        result.to_csv(path, **_level(result.to_csv, alpha))
        return
    from confide.results.spreadsheet import csv_text

    frame = result.to_frame(**_level(result.to_frame, alpha))
    try:
        path.write_text(csv_text(frame, index_label="name"), encoding="utf-8", newline="")
    except OSError as error:
        raise PlanError(
            f"the table cannot be written to {str(path)!r}: {error.strerror}; give a file in a folder that exists"
        ) from None


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
    """alpha for a verb that takes one. The protocol of results does not ask for it: a third party's may have none."""
    if alpha is None:
        return {}
    fixed = getattr(getattr(verb, "__self__", None), "level", None)
    if isinstance(fixed, float):
        if abs(1 - alpha - fixed) > 1e-9:
            raise PlanError(
                f"the level of these intervals was fixed in the plan at {fixed:g}, got --alpha {alpha:g}; leave --alpha out, or plan "
                f"another release with --set level={1 - alpha:g}"
            )
        return {}
    if "alpha" not in inspect.signature(verb).parameters:
        raise PlanError("the results of this method have no level to choose: leave --alpha out")
    return {"alpha": alpha}
