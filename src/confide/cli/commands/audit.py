"""`confide audit`: attempts to break the guarantee of a method by experiment."""

from __future__ import annotations

import importlib
import sys
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._helpers import later, progress_bar
from confide.cli.engine import make
from confide.cli.files import check_places, load_schema, reserve, write_output
from confide.cli.options import Parameters, Privacy, Settings, Written, spread
from confide.cli.session import Refused, Session
from confide.cli.tables import table
from confide.errors import PlanError

if TYPE_CHECKING:
    from confide import registry
    from confide.audit.verdict import Audit, Finding
else:
    registry = later("confide.registry")


@spread
def audit(
    ctx: typer.Context,
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD", help="A method that confide methods lists, or module:attribute of your method."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]", help="The method's first parameter: a formula for a regression.", show_default=False
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A schema with the columns; left out, made from MODEL.")
    ] = None,
    setting: Settings = None,
    *,
    privacy: Privacy,
    runs: Annotated[
        int, typer.Option(help="Draws of each sampled row on each neighbor; 0 for exact rows only.")
    ] = 100_000,
    confidence: Annotated[float, typer.Option(help="The probability that no true claim is called violated.")] = 0.99,
    seed: Annotated[int | None, typer.Option(metavar="SEED", help="A seed, which makes the table repeatable.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the table as JSON.")
    ] = None,
    written: Written,
) -> None:
    """Audit the guarantee of a method by experiment.

    A pass is evidence and no proof. It prints one row for each budget item and attack: the claim, the least that it
    costs, the confidence, and whether the claim holds, is violated or was not tested.
    Left out, the cost is mu = 1, or more if the attacks run the whole method. It reads
    no record and charges nothing.

    Exit code 0 if every claim holds, 1 if a claim is violated, 7 if none is and
    something was not tested.

    Example:

    confide audit ssp "y ~ a + b" --runs 5000
    """
    session: Session = ctx.obj
    if runs < 0 or 0 < runs < 40:
        raise Refused(f"--runs is 0 or at least 40, got {runs}")
    if not 0 < confidence < 1:
        raise Refused(f"--confidence lies between 0 and 1, got {confidence}")
    relation = privacy.relation
    requested = replace(privacy, relation=None).guarantee() if privacy.given else None
    check_places({"-o": output}, {"the schema": schema})
    with reserve(output, force=written.force) as place:
        with session.doing("loading the method"):
            target = _target(method, model, Parameters(setting).settings())
            known = None if schema is None else load_schema(schema)
        found = _run(
            session, target, known, privacy=requested, relation=relation, runs=runs, confidence=confidence, seed=seed
        )
        _show(session, found)
        if place is not None:
            write_output(place, found.json() + "\n")
            session.say(f"wrote {output}")
    session.answer({**found.to_dict(), "wrote": output})
    if not found.ok:
        raise typer.Exit(_CODES[found.verdict])


def _target(name: str, model: str | None, settings: dict[str, Any]) -> Any:
    """A registered method, or whatever module:attribute leads to."""

    if ":" not in name:
        try:
            kind = registry.get(name)
        except PlanError as error:
            raise PlanError(f"{error}; a method of your own is named module:attribute, as in my_methods:Mean") from None
        if model is not None:
            return make(name, model, settings)
        missing = _required(kind, settings)
        if missing:
            example = _EXAMPLES.get(missing[0], missing[0].upper())
            raise PlanError(
                f"{name} needs {' and '.join(missing)}", f"write for instance: confide audit {name} {example}"
            )
        return registry.make(name, **settings)
    found = _attribute(name)
    if isinstance(found, type):
        if not is_dataclass(found):
            raise PlanError(f"{name} is a class that is no dataclass", "name an instance of it, as in my_module:method")
        first = [] if model is None else [model]
        unknown = set(settings) - {f.name for f in fields(found)}
        if unknown:
            raise PlanError(f"{name} has no parameter {', '.join(sorted(unknown))}")
        return found(*first, **settings)
    if model is not None or settings:
        raise Refused(f"{name} is made already: leave MODEL and --param out, or name its class")
    return found


#: 7 and not 1: a script that stops at what is refuted may go on where something was not tested, and the other way round.
_CODES = {"violated": 1, "untested": 7}

_EXAMPLES = {"formula": '"y ~ a + b"', "column": "income"}


def _required(kind: Any, settings: dict[str, Any]) -> list[str]:
    """The parameters that have no default and are not given."""
    return [
        f.name
        for f in fields(kind)
        if f.init and f.default is MISSING and f.default_factory is MISSING and f.name not in settings
    ]


def _attribute(name: str) -> Any:

    module, _, path = name.partition(":")
    # a user's own module is where the user stands, as with `python -m`
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        what = f"there is no module {error.name!r}" if isinstance(error, ModuleNotFoundError) else type(error).__name__
        raise PlanError(
            f"{name!r} cannot be loaded ({what}; looked in the current folder and on PYTHONPATH)",
            "write module:attribute, as in my_methods:Mean",
        ) from None
    return found


def _run(session: Session, target: Any, schema: Any, **settings: Any) -> Audit:
    from confide.audit.methods import audit as run
    from confide.audit.verdict import Audit
    from confide.core import Method

    with progress_bar("audit") as progress:
        session.step, session.private = "audit", False
        if isinstance(target, Method) or (isinstance(target, type) and issubclass(target, Method)):
            return run(target, schema, progress=progress, **settings)
        found = target() if callable(target) else target
    if not isinstance(found, Audit):
        raise PlanError(
            "module:attribute must be a method, its class, or a function without arguments that returns an Audit: "
            "def check(): return confide.audit.audit(mechanism, data=..., neighbor=..., claim=...)"
        )
    return found


_HEADS = ("audited", "relation", "claim", "lower bound", "confidence", "draws", "attack", "verdict")


def _show(session: Session, found: Audit) -> None:
    """The table, its notes, the verdict in one line, and one for each spend that does not hold."""
    if found.title:
        session.say(found.title)
    table(session, _HEADS, [_cells(finding) for finding in found], right=("draws",))
    for note in dict.fromkeys(f"{one.name}, {one.relation or '-'}: {one.note}" for one in found if one.note):
        session.say(note)
    for line in found.summary():
        session.say(line)


def _cells(one: Finding) -> list[str]:
    """One row as texts; the claim without its relation, which has a column."""
    from confide.audit.verdict import said

    claim = "-" if one.claim is None else said(one.claim).replace(f", {one.relation}", "")
    bound = "-" if one.lower_bound != one.lower_bound else f"{one.quantity} >= {one.lower_bound:.4g}"
    exact = one.confidence == 1 and not one.draws
    confidence = "exact" if exact else f"{one.confidence:.6g}"
    return [
        one.name,
        one.relation or "-",
        claim,
        bound,
        confidence,
        f"{one.draws:,}" if one.draws else "-",
        one.attack,
        one.verdict,
    ]
