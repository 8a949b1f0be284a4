"""The steps that commands share: the method, the ledger and its privacy unit, the charge, the printed result."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._helpers import later
from confide.cli.files import (
    Drawings,
    Output,
    check_places,
    keep,
    ledger_facts,
    ledger_file,
    load_schema,
    release_facts,
    reserve,
    result_facts,
    show_result,
)
from confide.cli.options import Account, Alpha, Charged, FileOptions, Keep, Parameters, PreflightOptions
from confide.cli.session import Refused, Session, Stopped
from confide.errors import ConfideError, NoResult, PlanError

if TYPE_CHECKING:
    from confide import engine, registry
    from confide.cli.commands.derived_quantities import DerivedOptions
    from confide.core import Noise, Plan, Release, Source
    from confide.ledger import Ledger, LedgerState
    from confide.schema import Schema
else:
    engine, registry = later("confide.engine"), later("confide.registry")


# Of an output's room: as much again as the rehearsal wrote, and some more for longer numbers and more rows.
_MORE = 1 << 16

#: What a command does with a release that was drawn, into these places by their options; what it says under --json.
Show = Callable[[Session, "Release", Mapping[str, Output]], dict[str, Any]]

BANNER = """\
!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!
!!  SIMULATED NOISE (--simulate): this release protects NOBODY.        !!
!!  Anyone who has the seed can take the noise off. Do not publish it. !!
!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"""


def make(name: str, model: str, settings: dict[str, Any]) -> Any:
    """A registered method; `model` is the value of its first parameter."""
    from confide.core import parameters_of

    first = parameters_of(registry.get(name))[0]
    if first == "where":
        raise PlanError(f"method {name!r} takes no parameter, so there is nothing that {model!r} could be")
    if first in settings:
        raise Refused(
            f"--param {first}=... and the argument {model!r} are the same parameter of {name!r}", "give it once"
        )
    return registry.make(name, **{first: model}, **settings)


def open_ledger(path: str | Path | None, dataset: str | None, named: str | None) -> Ledger | None:
    """The ledger of the dataset that was asked for, else of the one that the schema names, else the only one there."""
    if path is None:
        return None
    from confide.ledger import Ledger, same_name

    held = () if dataset is not None or named is None else Ledger.datasets(path)
    if dataset is None and named is not None and not any(same_name(named, name) for name in held):
        raise PlanError(
            f"the schema names dataset {named!r}, and the ledger holds {', '.join(map(repr, held)) or 'none'}",
            f"open a budget: Ledger.create(path, dataset={named!r}, budget=...), or correct the schema",
        )
    return Ledger.open(path, dataset=dataset or named)


def check_relation(method: Any, book: Ledger | None) -> None:
    """Refuse a ledger under a relation that the method does not have: no --relation would help, so name what does."""
    if book is None:
        return
    has, own = tuple(method.relations), book.show().relation
    if own not in has:
        raise PlanError(
            f"dataset {book.dataset!r} counts releases under {own}, and method {method.name} has {' and '.join(has)} alone",
            "take a method "
            f"that has {own} (confide methods lists them), or a ledger that was opened with --relation {has[0]}",
        )


def source_of(data: Sequence[Path], schema: Any, file: FileOptions, executor: str | None = None) -> Source:
    """The records in one file or several, behind the schema's coding."""
    from confide.sources import read

    found = data[0] if len(data) == 1 else list(data)
    return read(found, schema, file=file.entries(), executor=executor)


@dataclass(frozen=True)
class Delivery:
    """What becomes of a release that is drawn.

    kept: whether it goes into a file, which is place, or one of drawn; show: what is done with it after that, in the places drawn.
    """

    place: Output | None
    drawn: Mapping[str, Output] = field(default_factory=dict)
    show: Show | None = None
    kept: bool = True
    allow_partial: bool = False


@dataclass(frozen=True)
class PaidRelease:
    """A release that was drawn, and the ledger that was charged.

    earlier: the IDs of former releases of the same plan; notes: what to say of the charge once it is made.
    """

    release: Release
    ledger: Ledger | None
    earlier: list[str]
    notes: list[str]


def begin(
    session: Session,
    account: Account,
    simulate: int | None,
    outputs: Mapping[str, Path | None],
    inputs: Mapping[str, Path | None],
    data: Sequence[Path],
) -> None:
    """Check a command that charges, before it reads anything."""
    session.ledger = account.ledger
    account.check(simulate)
    read = {**inputs, "the ledger": ledger_file(account.ledger), **{f"the data {path}": path for path in data}}
    check_places(outputs, read)
    if account.ledger is not None and all(path is None for name, path in outputs.items() if name.startswith("-o")):
        session.check_heard()


def plan_and_pay(
    session: Session,
    asked: Charged,
    data: Sequence[Path],
    schema: Path,
    plan_of: Callable[[Schema, Ledger | None], Plan],
    result: Delivery,
) -> PaidRelease:
    """Plan from the schema and the ledger, open the data, rehearse, charge, draw; see `pay`."""
    account = asked.account
    with session.doing("plan"):
        found = load_schema(schema)
        book = open_ledger(account.ledger, account.dataset, found.dataset)
        planned = plan_of(found, book)
    with session.doing("opening the data", private=True):
        source = source_of(data, found, asked.file, asked.executor)
    _tell_lacking(session, source, found, data)
    return pay(session, planned, source, book, account, asked.simulate, result, asked.preflight)


def _tell_lacking(session: Session, source: Any, schema: Schema, data: Sequence[Path]) -> None:
    """Say, before anything is charged, which columns of the schema the data lack: they may be another file's. From metadata alone."""
    lacking = source.lacks(schema.names)
    if lacking:
        named = ", ".join(map(repr, lacking[:5])) + (", ..." if len(lacking) > 5 else "")
        session.note(
            f"note: {', '.join(map(str, data))} lacks {len(lacking)} of the {len(schema.names)} columns that the schema describes "
            f"({named}); is it the file that the schema is of?"
        )


def pay(
    session: Session,
    plan: Plan,
    source: Source,
    book: Ledger | None,
    account: Account,
    seed: int | None,
    result: Delivery,
    asked: PreflightOptions,
) -> PaidRelease:
    """Rehearse, count how the records are read, charge, draw, write the receipt.

    Nothing is printed before the charge but these counts, on stderr.
    """
    session.dataset = None if book is None else book.dataset
    earlier, notes = ([], []) if book is None else _before(session, plan, book, account)
    if book is not None:
        _rehearse(session, plan, source, book, result)
    if book is None or _granted(plan, book, account):
        look(session, source, plan, asked)
    with charging(session, book, seed) as noise:
        done = engine.release(
            plan, source, ledger=book, noise=noise, allow_partial=result.allow_partial, **account.counted
        )
    return PaidRelease(done, book, earlier, notes)


def _granted(plan: Plan, book: Ledger, account: Account) -> bool:
    """Whether the budget is enough: where it is not, the charge says so, and no record is looked at."""
    try:
        book.preview(plan.guarantees, **account.counted)
    except ConfideError:
        return False
    return True


def look(session: Session, source: Any, plan: Plan | Sequence[str], asked: PreflightOptions) -> None:
    """Show how the columns of a plan are read, on stderr, to the steward alone; at a terminal, ask where anything is odd.

    Nothing else depends on it, and no exit code but that of the steward's own "no".
    """
    from confide.core import Plan
    from confide.sources.preflight import is_read_here, planned_columns, preflight

    if asked.no_preflight:
        return
    if not is_read_here(source):
        session.note("note: with --executor no preflight is made, because this process does not read the records")
        # the same words whatever the records are
        session.note(
            "note: workers take up to twice the CPU of one process, which reads 100 million records in some minutes; "
            "for fewer, leave --executor out"
        )
        return
    with session.doing("the preflight", private=True):
        columns = planned_columns(source, plan.statistics.values()) if isinstance(plan, Plan) else plan
        found = preflight(source, columns)
    with suppress(OSError):  # nobody may read stderr
        session.note(str(found))
    if found.odd and not asked.yes and not session.asks("Go on?"):
        raise Stopped("stopped after the preflight")


def _rehearse(session: Session, plan: Plan, source: Source, book: Ledger, result: Delivery) -> None:
    """Do silently, with a release of simulated rows, all that comes after the charge, and take room for its files.

    What fails there fails for public facts, since no record was seen, and is told in full. That a release has no result may depend on its
    numbers, and refuses nothing. A plan that cannot be released is refused by the gate, in its own order.
    """
    try:
        done = engine.rehearsed(plan, source, book)
    except Exception:
        return
    with TemporaryDirectory() as folder:
        trial = {
            name: Output(Path(folder, f"trial{number}{output.path.suffix}"), force=False)
            for number, (name, output) in enumerate(result.drawn.items())
        }
        try:
            with warnings.catch_warnings(action="ignore"):
                if result.show is not None:
                    result.show(Session(json=session.json, mute=True), done, trial)
        except NoResult:
            pass
        except ConfideError:
            raise
        except Exception as error:
            raise PlanError(
                f"the result could not be shown: on simulated rows of the schema that raises {type(error).__name__}: {error}; no record "
                "was seen; nothing was charged"
            ) from error
        for name, output in result.drawn.items():
            output.take(2 * trial[name].path.stat().st_size + _MORE)
    if result.place is not None:
        result.place.take(2 * len(done.to_json()) + _MORE)


@contextmanager
def charging(session: Session, book: Ledger | None, seed: int | None, step: str = "release") -> Iterator[Noise | None]:
    """Round whatever goes through the gate, with the noise of --simulate."""
    from confide.noise import SimulatedNoise

    if seed is not None:
        session.note(BANNER)
    with session.paying(step, ledger=book is not None):
        yield None if seed is None else SimulatedNoise(seed)


def after(session: Session, paid: PaidRelease, output: Path | None) -> None:
    """Where a release is and what it charged, once it is safe."""
    if paid.release.status == "declined":
        session.say("The mechanism declined to answer. That is a result, and the charge stays.")
    session.say(f"Wrote {output} (release ID {paid.release.sha256[:8]})")
    say_charged(session, paid)


# what is shown --------------------------------------------------------------------------------------------------------


def _before(session: Session, plan: Plan, book: Ledger, account: Account) -> tuple[list[str], list[str]]:
    """The IDs of earlier releases of this plan, and what to say of the charge: that it is not the first, that it converts the ledger."""
    from confide.engine import as_charged

    charged = as_charged(plan, book).sha256
    same = [row for row in book.show().rows if row.kind == "charge" and row.plan_sha256 == charged]
    earlier = [row for row in same if row.release_sha256]
    notes = []
    if earlier:
        notes.append(
            f"this plan was released before (release ID {earlier[-1].release_sha256[:8]}, entry {earlier[-1].seq}) and was charged again; "
            "further results of that release cost nothing: confide infer RELEASE"
        )
    elif same:
        notes.append(f"this plan was charged before (entry {same[-1].seq}, without a release) and was charged again")
    with suppress(ConfideError):  # the charge says why, with what is left
        if note := book.preview(plan.guarantees, **account.counted).note:
            notes.append(session.worded(note))
    return [row.release_sha256 for row in earlier], notes


def say_charged(session: Session, paid: PaidRelease, *further: str) -> None:
    """What was charged, or that nothing was, once the release is safe: reading the ledger may fail, and nothing may be lost by it.

    further: sentences that end the line.
    """
    done, book = paid.release, paid.ledger
    if book is None:
        said = "Charged to no ledger (simulated noise protects no one)" if done.simulated else "Charged to no ledger"
    else:
        receipt, state = book.find(done.sha256), book.show()
        share = 0.0 if receipt is None else state.rows[receipt.charge_seq - 1].share
        said = charged_words(state, share)
    session.say(". ".join([said, *further]))
    for note in paid.notes:
        session.note(f"note: {note}")


def charged_words(state: LedgerState, share: float) -> str:
    """The share of a budget that was charged, and what is left."""
    from confide.ledger.printing import left, percent

    return f"Charged {percent(share)} of the budget of {state.dataset!r}; {left(state.used)} is left"


def paid_facts(paid: PaidRelease) -> dict[str, Any]:
    """What a release that was drawn says of itself, and where the ledger stands."""
    return {**release_facts(paid.release), "released_before": paid.earlier, "ledger": ledger_facts(paid.ledger)}


@dataclass(frozen=True, kw_only=True)
class OneStepRequest(Charged):
    """What a command is told that plans, releases and infers in one go, beside method and formula."""

    parameters: Parameters
    alpha: Alpha = None
    output: Keep = None
    drawings: Drawings


def at_once(
    session: Session,
    once: OneStepRequest,
    data: list[Path],
    schema: Path,
    method: Callable[[], Any],
    read: Callable[[Release], Any] | None = None,
    beyond: DerivedOptions | None = None,
    *,
    terms: dict[str, Any] | None = None,
    inputs: Mapping[str, Path | None] = MappingProxyType({}),
    allow_partial: bool = False,
) -> None:
    """Plan, release and infer, charged once: the path from the options of a command to any method.

    method: makes it. read: makes the printed result of the release; left out, the method's table. beyond: quantities to print as well.
    terms: the cost or precision, if not that of the command line. inputs: further files that are read. allow_partial: of a publication.
    """
    terms = once.privacy.terms() if terms is None else terms
    drawings, force = once.drawings, once.written.force
    outputs = {"-o": once.output, **drawings.places}
    session.uncharged = once.account.unaccounted
    begin(session, once.account, once.simulate, outputs, {**inputs, "the schema": schema}, data)
    with drawings.reserved(force=force) as drawn, reserve(once.output, force=force) as place:

        def plan_of(found: Schema, book: Ledger | None) -> Plan:
            chosen = method()
            check_relation(chosen, book)
            return engine.plan(chosen, found, n=once.n, ledger=book, **terms)

        def show(session: Session, done: Release, drawn: Mapping[str, Output]) -> dict[str, Any]:
            with session.doing("infer"):
                result = engine.infer(done) if read is None else read(done)
            show_result(session, result, once.alpha, drawn, drawings=drawings)
            more = {} if beyond is None else beyond.show(session, result, beyond.computed(session, result, once.alpha))
            return {"result": result_facts(result, once.alpha), **more} if session.json else {}

        result = Delivery(place, drawn, show, kept=place is not None, allow_partial=allow_partial)
        paid = plan_and_pay(session, once, data, schema, plan_of, result)
        shown = show_once(session, paid.release, result)
    if paid.release.status == "declined":
        session.say("The mechanism declined to answer. That is a result, and the charge stays.")
    session.say()
    say_charged(session, paid, "Not kept: use -o FILE" if once.output is None else f"Wrote {once.output}")
    if session.json:
        session.answer(
            {
                **shown,
                **paid_facts(paid),
                **({"statuses": paid.release.statuses} if paid.release.statuses else {}),
                "wrote": once.output,
                "release": json.loads(paid.release.to_json()) if once.output is None else None,
                **vars(drawings),
            }
        )


def show_once(session: Session, done: Release, result: Delivery) -> dict[str, Any]:
    """Keep and show a release that was just drawn; one without a file is printed if it cannot be shown: it was paid."""
    keep(session, result.place, done)
    assert result.show is not None
    try:
        return result.show(session, done, result.drawn)
    except BaseException:
        if result.place is None and session.charge == "made":
            session.last_resort(done.to_json())
        raise


# Files that are looked at for a schema: a folder of a survey has a few.
_MOST = 50


def unit_options(schema: Schema) -> list[str]:
    """The options of `confide ledger init` that say whom a schema protects.

    >>> import confide as cf
    >>> unit_options(cf.Schema({"x": cf.Numeric(0, 1)}, unit=cf.Unit("person_id")))
    ['--unit', 'person_id']
    >>> unit_options(cf.Schema({"x": cf.Numeric(0, 1)}, unit="person", rows_per_unit=4))
    ['--unit', 'person', '--rows-per-unit', '4']
    """
    from confide.schema import Unit

    if isinstance(schema.unit, Unit):
        return ["--unit", schema.unit.column]
    rows = [] if schema.rows_per_unit == 1 else ["--rows-per-unit", str(schema.rows_per_unit)]
    return ["--unit", schema.unit, *rows]


def _has_account(book: str, dataset: str) -> bool:
    """Whether an existing ledger has a budget of this dataset."""
    from confide.ledger import Ledger

    try:
        Ledger.open(book, dataset=dataset)
    except ConfideError:
        return False
    return True


@dataclass(frozen=True)
class PrivacyUnitOptions:
    """Whom a budget protects: said, or read from a schema."""

    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the dataset and the unit from this schema.")
    ] = None
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="The dataset that the budget is for.")] = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The privacy unit: the id column of the schema; left out, record.",
        ),
    ] = None
    rows_per_unit: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most rows of a unit that the schema declares and nothing enforces."),
    ] = None

    def said(self, book: str, options: str, *, look: bool) -> tuple[str, str, int | None]:
        """(dataset, unit, rows per unit). book: the ledger; options: of its budget, for the call that works; look: for a schema near it.

        `Refused` if no dataset is named, or if no unit is given and a schema of that dataset near the ledger has one.
        """
        if self.schema is not None:
            return self._of(load_schema(self.schema))
        if self.dataset is None:
            raise Refused(
                "the dataset is missing", "give --dataset NAME, or --schema FILE, which names dataset and unit"
            )
        if self.unit is None and self.rows_per_unit is None and look:
            self._check_beside(book, options)
        return self.dataset, self.unit or "record", self.rows_per_unit

    def _of(self, schema: Schema) -> tuple[str, str, int | None]:
        dataset = self.dataset or schema.dataset
        if dataset is None:
            raise Refused(f"{self.schema} names no dataset", 'write dataset = "NAME" in it, or give --dataset NAME')
        words = unit_options(schema)
        rows = int(words[3]) if len(words) > 2 else None
        for option, given, own in (("--unit", self.unit, words[1]), ("--rows-per-unit", self.rows_per_unit, rows)):
            if given is not None and given != own:
                raise Refused(
                    f"{option} {given} is not what {self.schema} says ({shlex.join(words)})", f"leave out {option}"
                )
        return dataset, words[1], rows

    def _check_beside(self, book: str, options: str) -> None:
        """Refuse the unit record if a schema of this dataset, near the ledger or here, has another unit."""
        from confide.ledger.names import same_name

        if _has_account(book, self.dataset or ""):
            return  # which the ledger itself refuses to open again
        folder = getattr(ledger_file(book), "parent", Path())
        places = dict.fromkeys([*sorted(folder.glob("*.toml"))[:_MOST], *sorted(Path().glob("*.toml"))[:_MOST]])
        for place in places:
            try:
                found = load_schema(place)
            except ConfideError:  # another program's file
                continue
            whose = unit_options(found)
            if whose[1:] != ["record"] and (found.dataset is None or same_name(found.dataset, self.dataset or "")):
                call = f"confide ledger init {'LEDGER' if '://' in book else shlex.quote(book)}"
                own = shlex.join(["--dataset", self.dataset or "", *whose])
                raise Refused(
                    f"{place} protects one {whose[1]}, and a budget without --unit protects single records",
                    f"{call} {own} {options}\nor, which refuses releases by {place}: --unit record",
                )
