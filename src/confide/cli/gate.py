"""The way through the gate that commands share: the method, the ledger, the charge, how results are shown."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from confide.cli.facts import ledger_facts, release_facts, result_facts, show_result
from confide.cli.files import Drawings, Output, check_places, keep, ledger_file, load_schema, reserve
from confide.cli.hints import for_command_line, plan_command
from confide.cli.options import Account, Alpha, Charged, Keep, Parameters, delimiter_of
from confide.cli.session import Refused, Session
from confide.errors import ConfideError, NoResult, PlanError

if TYPE_CHECKING:
    from confide.cli.questions.beyond import Beyond
    from confide.ledger import Ledger
    from confide.protocol import Noise, Plan, Release, Source
    from confide.schema import Schema

__all__ = [
    "Once",
    "Paid",
    "after",
    "at_once",
    "begin",
    "charging",
    "check_relation",
    "make",
    "open_ledger",
    "paid_facts",
    "pay",
    "plan_and_pay",
    "remember",
    "show_once",
    "source_of",
]

_DIGEST = re.compile(r"[0-9a-f]{64}")
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
    from confide import registry
    from confide.protocol import parameters_of

    first = parameters_of(registry.get(name))[0]
    if first == "where":
        raise PlanError(f"method {name!r} takes no parameter, so there is nothing that {model!r} could be")
    if first in settings:
        raise Refused(f"--set {first}=... and the argument {model!r} are the same parameter of {name!r}; give it once")
    return registry.make(name, **{first: model}, **settings)


def open_ledger(path: str | Path | None, dataset: str | None, named: str | None) -> Ledger | None:
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


def source_of(data: Sequence[Path], schema: Any, delimiter: str, executor: str | None = None) -> Source:
    """The records in one file or several, behind the schema's coding."""
    from confide.sources import read

    found = data[0] if len(data) == 1 else list(data)
    return read(found, schema, delimiter=delimiter_of(delimiter), executor=executor)


@dataclass(frozen=True)
class Paid:
    """A release that was drawn, and the ledger that was charged; earlier: the SHA-256 of former releases of the same plan."""

    release: Release
    ledger: Ledger | None
    earlier: list[str]


def begin(
    session: Session,
    account: Account,
    simulate: int | None,
    outputs: Mapping[str, Path | None],
    inputs: Mapping[str, Path | None],
    data: Sequence[Path],
) -> None:
    """What is checked of a command that charges, before it reads anything."""
    session.charging, session.ledger = True, account.ledger
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
    *,
    keep_others: bool = False,
    kept: bool = True,
    place: Output | None,
    drawn: Mapping[str, Output],
    show: Show,
) -> Paid:
    """Plan from the schema and the ledger, open the data, say the price, rehearse, charge, draw; see `pay`."""
    account = asked.account
    with session.doing("plan"):
        found = load_schema(schema)
        book = open_ledger(account.ledger, account.dataset, found.dataset)
        planned = plan_of(found, book)
    with session.doing("opening the data", private=True):
        source = source_of(data, found, asked.delimiter, asked.executor)
    _tell_lacking(session, source, found, data)
    remember(session, planned, schema, account)
    return pay(
        session,
        planned,
        source,
        book,
        account,
        asked.simulate,
        keep_others=keep_others,
        kept=kept,
        place=place,
        drawn=drawn,
        show=show,
    )


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
    *,
    keep_others: bool = False,
    kept: bool = True,
    place: Output | None,
    drawn: Mapping[str, Output] = MappingProxyType({}),
    show: Show | None = None,
) -> Paid:
    """Through the gate: the price, rehearsal, charge, draw, receipt.

    kept: whether the release goes into a file, which is place, or one of drawn; show: what is done with the release afterwards, in the
    places drawn.
    """
    from confide import gate

    earlier = _say_cost(session, plan, book, account)
    if book is not None:
        if not kept and not session.json:
            session.note("note: without -o the table is shown and the release itself is not kept")
        _rehearse(session, plan, source, book, place, drawn, show)
    with charging(session, book, seed) as noise:
        done = gate.release(plan, source, ledger=book, noise=noise, keep_others=keep_others, **account.counted)
    return Paid(done, book, earlier)


def _rehearse(
    session: Session,
    plan: Plan,
    source: Source,
    book: Ledger,
    place: Output | None,
    drawn: Mapping[str, Output],
    show: Show | None,
) -> None:
    """Do, without a word, what is to come after the charge with a release of simulated rows, and take room for what it writes.

    What fails there fails for public facts, since no record was seen, and is told in full. That a release has no result may depend on its
    numbers, and refuses nothing. A plan that cannot be released is refused by the gate, in its own order.
    """
    from confide import gate

    try:
        done = gate.rehearsed(plan, source, book)
    except Exception:
        return
    with TemporaryDirectory() as folder:
        trial = {
            name: Output(Path(folder, f"trial{number}{output.path.suffix}"), force=False)
            for number, (name, output) in enumerate(drawn.items())
        }
        try:
            with warnings.catch_warnings(action="ignore"):
                if show is not None:
                    show(Session(json=session.json, mute=True), done, trial)
        except NoResult:
            pass
        except (ConfideError, Refused):
            raise
        except Exception as error:
            raise PlanError(
                f"the result could not be shown: on simulated rows of the schema that raises {type(error).__name__}: {error}; no record "
                "was seen; nothing was charged"
            ) from error
        for name, output in drawn.items():
            output.take(2 * trial[name].path.stat().st_size + _MORE)
    if place is not None:
        place.take(2 * len(done.to_json()) + _MORE)


@contextmanager
def charging(session: Session, book: Ledger | None, seed: int | None, step: str = "release") -> Iterator[Noise | None]:
    """Round whatever goes through the gate, with the noise of --simulate."""
    from confide.noise import SimulatedNoise

    if seed is not None:
        session.note(BANNER)
    with session.paying(step, ledger=book is not None):
        yield None if seed is None else SimulatedNoise(seed)


def after(session: Session, paid: Paid, output: Path | None) -> None:
    """What a release did, once it is safe."""
    if paid.release.status == "no_reply":
        session.say("the mechanism gave no reply; that is a result, and it costs the same as a reply")
    if output is not None:
        session.say(f"wrote {output} (sha256 {paid.release.sha256})")
    say_charged(session, paid)


def remember(session: Session, planned: Plan, schema: Path | None, account: Account) -> None:
    """How to ask for the same at another price, should the ledger refuse this one."""
    ledger, dataset = account.ledger, account.dataset
    session.cheaper = lambda options: plan_command(planned, options, schema=schema, ledger=ledger, dataset=dataset)


# what is shown --------------------------------------------------------------------------------------------------------


def _say_cost(session: Session, plan: Plan, book: Ledger | None, account: Account) -> list[str]:
    """Say what will be charged to whom, before anything happens, and whether this very plan was paid for before.

    Returns the SHA-256 of its earlier releases, which stand in the ledger and are public.
    """
    if book is None:
        session.say(f"will charge no ledger (--no-ledger); guarantee of the release: {plan.guarantee}")
        return []
    state = book.show()
    _say_price(session, book, plan, account)
    from confide.gate import as_charged

    charged = as_charged(plan, book).sha256
    same = [row for row in state.rows if row.plan_sha256 == charged]
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


def _say_price(session: Session, book: Ledger, plan: Plan, account: Account) -> None:
    """What a plan would take from a ledger, in the ledger's own currency, and what would be left."""
    to = f"to dataset {book.dataset!r} of {book.place}"
    try:
        found = book.preview(plan.guarantees, **account.counted)
    except ConfideError:  # the gate says why, with what is left
        session.say(f"will ask to charge {plan.guarantee} {to}; left before: {book.show().remaining}")
        return
    after = "nothing: this release takes all that is left" if found.last else found.after
    session.say(
        f"will charge {found.statement} {to}, counted as {found.price}; left before: {found.before}; left after: {after}"
    )
    if found.note:
        session.note(f"note: {for_command_line(found.note)}")


def say_charged(session: Session, paid: Paid) -> None:
    """What was charged, or that nothing was, once the release is safe: reading the ledger may fail, and nothing may be lost by it."""
    done, book = paid.release, paid.ledger
    if book is None:
        stated = "none: simulated noise" if done.simulated else str(done.charged)
        session.say(f"not charged: no ledger (--no-ledger); guarantee of the release: {stated}")
        return
    receipt = book.find(done.sha256)
    # a release may be charged as another of its statements than its first
    entry = f", entry {receipt.charge_seq}" if receipt is not None else ""
    charged = done.charged if receipt is None else receipt.guarantee
    session.say(f"charged {charged} to dataset {book.dataset!r}{entry}; left: {book.show().remaining}")


def paid_facts(paid: Paid) -> dict[str, Any]:
    """What a release that was drawn says of itself, and where the ledger stands."""
    return {
        **release_facts(paid.release),
        "released_before": paid.earlier,
        "ledger": ledger_facts(paid.ledger),
    }


@dataclass(frozen=True, kw_only=True)
class Once(Charged):
    """What a command is told that plans, releases and infers in one go, beside method and formula."""

    parameters: Parameters
    alpha: Alpha = None
    output: Keep = None
    drawings: Drawings


def at_once(
    session: Session,
    once: Once,
    data: list[Path],
    schema: Path,
    method: str,
    formula: str,
    settings: dict[str, Any],
    read: Callable[[Release], Any] | None = None,
    beyond: Beyond | None = None,
) -> None:
    """Plan, release and infer, charged once: the path from the options of a command to the parameters of any method.

    formula: the method's first parameter. read: what is shown of the release, the method's table when left out; beyond: what is shown
    beside it.
    """
    terms = once.privacy.terms()
    drawings, force = once.drawings, once.written.force
    outputs = {"-o": once.output, **drawings.places}
    begin(session, once.account, once.simulate, outputs, {"the schema": schema}, data)
    with drawings.reserved(force=force) as drawn, reserve(once.output, force=force) as place:
        from confide import gate

        def plan_of(found: Schema, book: Ledger | None) -> Plan:
            chosen = make(method, formula, settings)
            check_relation(chosen, book)
            return gate.plan(chosen, found, n=once.n, ledger=book, **terms)

        def show(session: Session, done: Release, drawn: Mapping[str, Output]) -> dict[str, Any]:
            with session.doing("infer"):
                result = gate.infer(done) if read is None else read(done)
            show_result(session, result, once.alpha, drawn)
            more = {} if beyond is None else beyond.show(session, result, beyond.computed(session, result, once.alpha))
            return {"result": result_facts(result, once.alpha), **more} if session.json else {}

        kept = place is not None
        paid = plan_and_pay(session, once, data, schema, plan_of, kept=kept, place=place, drawn=drawn, show=show)
        shown = show_once(session, place, paid.release, drawn, show)
    after(session, paid, once.output)
    if session.json:
        session.answer(
            {
                **shown,
                **paid_facts(paid),
                "wrote": once.output,
                "release": json.loads(paid.release.to_json()) if once.output is None else None,
                **vars(drawings),
            }
        )


def show_once(
    session: Session, place: Output | None, done: Release, drawn: Mapping[str, Output], show: Show
) -> dict[str, Any]:
    """Keep and show a release that was just drawn; one without a file is printed if it cannot be shown: it was paid."""
    keep(session, place, done)
    try:
        return show(session, done, drawn)
    except BaseException:
        if place is None and session.charge == "made":
            session.last_resort(done.to_json())
        raise
