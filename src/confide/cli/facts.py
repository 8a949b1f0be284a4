"""What commands say of plans, releases, ledgers and results: as text, as files, as strict JSON."""

from __future__ import annotations

import csv
import inspect
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.files import Output, put
from confide.cli.session import Session
from confide.errors import PlanError

if TYPE_CHECKING:
    import pandas as pd

    from confide.ledger import Ledger
    from confide.protocol import Plan, Release, Spend
    from confide.results.pages.written import Document

__all__ = ["Further", "ledger_facts", "plan_facts", "release_facts", "result_facts", "show_result"]


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


def ledger_facts(book: Ledger | None) -> dict[str, Any] | None:
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


@dataclass(frozen=True)
class Further:
    """Estimates that follow from a result and stand below its table: frame with estimate, std_err, df, low and high; labels of its rows
    where they stand among others.
    """

    title: str
    frame: pd.DataFrame
    labels: Sequence[str]
    note: str


def show_result(
    session: Session, result: Any, alpha: float | None, drawn: Mapping[str, Output], further: Sequence[Further] = ()
) -> None:
    """The table on stdout; the report, the plot and the table as CSV in their places, with further tables below it in all but the plot.

    drawn: the places by their options (`Drawings.reserved`).
    """
    with session.doing("showing the result"):
        text = result.summary(**_level(result.summary, alpha))
    session.say(text)
    ways: dict[str, tuple[str, Callable[[Path], object]]] = {
        "--report": ("writing the report", lambda path: _save_report(result, path, alpha, further)),
        "--plot": ("drawing the plot", lambda path: _save_plot(result.plot(**_level(result.plot, alpha)), path)),
        "--csv": ("writing the table", lambda path: _save_table(result, path, alpha, further)),
    }
    for name, output in drawn.items():
        step, write = ways[name]
        with session.doing(step):
            put(output, write)
        session.say(f"wrote {output.path}")


def _save_report(result: Any, path: Path, alpha: float | None, further: Sequence[Further]) -> None:
    from confide.results.pages.written import save

    save(result, path, lambda verb: _level(verb, alpha), tuple(_below(one, result) for one in further))


def _save_table(result: Any, path: Path, alpha: float | None, further: Sequence[Further]) -> None:
    """The table as CSV, with all digits; a third party's result has a frame alone. Further estimates are rows of their own, with what
    they have in the columns of the table.
    """
    from confide.results.pages.spreadsheet import csv_text, shielded

    if hasattr(result, "to_csv"):
        result.to_csv(path, **_level(result.to_csv, alpha))
        if not further:
            return
        text = path.read_text(encoding="utf-8")
    else:
        text = csv_text(result.to_frame(**_level(result.to_frame, alpha)), index_label="name")
    held = io.StringIO()
    written = csv.writer(held, lineterminator="\n")
    heads = next(csv.reader([text.partition("\n")[0]]))
    for one in further:
        for label, row in zip(one.labels, one.frame.to_dict("records"), strict=True):
            # the standard error of a coefficient is called "se"
            own = {**row, "se": row["std_err"]}
            written.writerow([shielded(label), *(repr(float(own[name])) if name in own else "" for name in heads[1:])])
    try:
        path.write_text(text + held.getvalue(), encoding="utf-8", newline="")
    except OSError as error:
        raise PlanError(
            f"the table cannot be written to {str(path)!r}: {error.strerror}; give a file in a folder that exists"
        ) from None


def _below(one: Further, result: Any) -> Document:
    """A further table as it stands in a report, with the result's own note where the page has none."""
    from confide.cli.questions.beyond import fine
    from confide.results.pages.words import SIMULATED, clean
    from confide.results.pages.written import Document

    shown = fine(one.frame)
    rows = tuple((clean(label), *map(str, cells)) for label, cells in zip(one.labels, shown.to_numpy(), strict=True))
    protected = SIMULATED if result.simulated else f"Differential privacy: {result.guarantee}"
    note = f"{protected}. {one.note[:1].upper()}{one.note[1:]}. Release {result.release_sha256}."
    return Document(clean(one.title), rows, ("name", *map(str, shown.columns)), clean(note))


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
