"""`confide ledger | verify | disclosure`: what may be spent and was, and what to say of a release."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.engine import PrivacyUnitOptions, open_ledger
from confide.cli.files import check_places, ledger_file, load_release, reserve, write_output
from confide.cli.options import Dataset, Json, Privacy, Written, spread
from confide.cli.session import Refused, Session
from confide.cli.tables import facts, table

if TYPE_CHECKING:
    from confide.guarantees import Guarantee
    from confide.ledger import Entry, Ledger, LedgerState


app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="The ledger: what may be spent on a dataset, and what was."
)

_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")

# Text and not a Path, which would turn the // of a URL into /. What is shown is `place`, which has no password in it.
_Ledger = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger's file, or its postgresql:// URL.")]
_TRUSTS = {
    "central": "the keeper of the records adds the noise",
    "local": "each row carries its own noise before anyone sees it",
}


@app.command()
@spread
def init(
    ctx: typer.Context,
    book: _Ledger,
    *,
    whose: PrivacyUnitOptions,
    privacy: Privacy,
    trust: Annotated[
        str,
        typer.Option(
            metavar="central|local",
            help="central: the keeper of the records adds the noise; local: each row carries its own before anyone sees it (protect).",
        ),
    ] = "central",
    grants: Annotated[
        str | None,
        typer.Option(
            metavar="gaussian", help="Convert an (epsilon, delta) budget to a Gaussian one at once, for good."
        ),
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Kept in the first entry, for instance who decided.")] = "",
    json: Json = False,
) -> None:
    """Open a budget for a dataset, in a new ledger or an existing one.

    A bare budget means: relation add-remove (substitute under --trust local), unit
    record with one row, trust central. All of these are pinned: a release of anything else is refused. With
    --unit person_id all rows of one id are protected together, as schemas with
    unit = { column = "person_id" } enforce; --schema takes it from there. A ledger
    holds public numbers alone, nothing that comes from a record.

    Examples:

    confide ledger init ledger.db --dataset survey --mu 2

    confide ledger init ledger.db --schema schema.toml --mu 2
    """
    session: Session = ctx.obj
    session.ledger = str(book)
    if trust not in _TRUSTS:
        raise Refused(f"--trust is one of {', '.join(_TRUSTS)}, got {trust!r}")
    options = [privacy.words(), *([] if grants is None else ["--grants", grants])]
    with session.doing("reading whose budget it is"):
        dataset, unit, rows_per_unit = whose.said(book, " ".join(options), look=trust == "central")
    session.dataset = dataset
    bare = unit if trust == "local" and unit in ("record", "attribute") else "record"
    budget = replace(privacy.guarantee(), trust=trust, unit=bare)
    from confide.ledger import Ledger

    with _weakness_said(session, "opening the ledger", budget):
        opened = Ledger.create(
            book, dataset=dataset, budget=budget, unit=unit, rows_per_unit=rows_per_unit, grants=grants, note=note
        )
    session.say(f"opened a budget for dataset {opened.dataset!r} in {opened.place}")
    default = (
        "" if privacy.relation is not None else " (the default: a bare budget means this; --relation says otherwise)"
    )
    rows = f"of at most {opened.rows_per_unit} row{'s' if opened.rows_per_unit > 1 else ''}"
    rows = rows if opened.unit_key is None else "with all its rows (enforced)"
    buys = opened.buys()
    facts(
        session,
        [
            ("budget", opened.budget),
            ("relation", f"{opened.relation}{default}"),
            ("unit", f"{opened.unit}: what is protected is one {opened.unit}, {rows}"),
            ("trust", f"{opened.trust}: {_TRUSTS[opened.trust]}"),
            ("buys", "; ".join(buys)),
            ("tip", f"{opened.tip} (keep it elsewhere: an older copy put back is found by it alone)"),
        ],
    )
    session.answer(_state(opened.show()) | {"book": opened.place, "buys": buys})


@app.command()
def show(
    ctx: typer.Context,
    book: _Ledger,
    dataset: Dataset = None,
    beside: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="Another ledger of the same dataset, of records or of its unit."),
    ] = None,
    json: Json = False,
) -> None:
    """A statement of account: budget, spent, left, and every entry.

    Reads the ledger alone, which is public. Without --dataset all datasets are shown.
    With --with-ledger, of a ledger of records and one of an enforced unit, also what a
    person with 1, 5 and 50 rows has from both together.

    Example:

    confide ledger show ledger.db
    """
    session: Session = ctx.obj
    with session.doing("reading the ledger"):
        books = _opened(book, dataset)
        states = [opened.show() for opened in books]
        others = [] if beside is None else [opened.show() for opened in _opened(beside, dataset)]
        both = {
            f"{one.dataset}": _jointly(one, other) for one in states for other in others if one.dataset == other.dataset
        }
        if others and not both:
            raise Refused(f"{beside} has no dataset that {book} has; say which with --dataset NAME")
    for place, state in enumerate(states):
        if place:
            session.say()
        _say_state(session, state)
        for rows, found in both.get(state.dataset, {}).items():
            session.say(f"both ledgers, a person with {rows} row{'s' if rows > 1 else ''}: {found}")
    session.answer(
        {"book": next((opened.place for opened in books), ""), "datasets": [_state(state) for state in states]}
    )


@app.command()
def tip(ctx: typer.Context, book: _Ledger, dataset: Dataset = None, json: Json = False) -> None:
    """Print the hash of the last entry, to be kept elsewhere: on paper, in a mail, in another system.

    Reads the ledger alone, which is public. An older copy put back, or newest
    entries cut off, is found by a kept tip (or a receipt, or a published release)
    and by nothing else: confide ledger verify LEDGER --tip TIP.

    Example:

    confide ledger tip ledger.db --dataset survey
    """
    session: Session = ctx.obj
    with session.doing("reading the ledger"):
        states = [opened.show() for opened in _opened(book, dataset)]
    for state in states:
        session.say(f"{state.tip}  dataset {state.dataset!r}, entry {len(state.rows)}")
    session.answer(
        {"datasets": [{"dataset": state.dataset, "tip": state.tip, "entries": len(state.rows)} for state in states]}
    )


@app.command()
def verify(
    ctx: typer.Context,
    book: _Ledger,
    dataset: Dataset = None,
    kept: Annotated[
        list[str] | None,
        typer.Option(
            "--tip",
            metavar="HASH",
            help="A tip, or a release's SHA-256, that was kept elsewhere (or its first 12 digits); repeat for more.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute the ledger's chain, totals and limits; exit code 1 when something does not hold.

    Reads the ledger alone, which is public. That cannot show newest entries cut off
    or an older copy put back: --tip looks for what was kept elsewhere, and
    `confide verify RELEASE --ledger LEDGER` for a release.

    Example:

    confide ledger verify ledger.db
    """
    session: Session = ctx.obj
    with session.doing("verifying the ledger"):
        books = _opened(book, dataset)
        if kept and len(books) > 1:
            raise Refused("--tip is of one dataset's chain: say which with --dataset NAME")
        found = [(opened.dataset, opened.verify(tips=kept or ())) for opened in books]
    for name, outcome in found:
        session.say(f"dataset {name!r}: {outcome}")
    ok = all(outcome.ok for _, outcome in found)
    session.answer(
        {
            "ok": ok,
            "book": next((opened.place for opened in books), ""),
            "datasets": [
                {
                    "dataset": name,
                    "ok": outcome.ok,
                    "problems": outcome.problems,
                    "entries": outcome.rows,
                    "tip": outcome.tip,
                }
                for name, outcome in found
            ],
        }
    )
    if not ok:
        raise typer.Exit(1)


@app.command()
@spread
def amend(
    ctx: typer.Context,
    book: _Ledger,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the ledger.")],
    *,
    privacy: Privacy,
    dataset: Dataset = None,
    json: Json = False,
) -> None:
    """Give a dataset a new budget by a new entry; what was spent stays spent.

    The privacy options give the whole new budget, not what is added. The entry is
    as public as the ledger.

    Example:

    confide ledger amend ledger.db --dataset survey --mu 3 --reason "decision of 4 May"
    """
    session: Session = ctx.obj
    budget = privacy.guarantee()
    with _weakness_said(session, "amending the ledger", budget):
        (opened,) = _opened(book, dataset, one=True)
        session.ledger, session.dataset = book, opened.dataset
        opened.amend(budget, reason=reason)
        state = opened.show()
    facts(
        session,
        [("dataset", state.dataset), ("budget", state.budget), ("spent", state.spent), ("left", state.remaining)],
    )
    session.answer(_state(state) | {"book": opened.place})


@app.command()
def convert(
    ctx: typer.Context,
    book: _Ledger,
    dataset: Dataset = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the ledger.")] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Convert without asking; needed where nobody can be asked.")
    ] = False,
    json: Json = False,
) -> None:
    """Turn an (epsilon, delta) ledger into a Gaussian one, once and for good.

    What is left becomes mu^2 and a fiftieth of the delta. Many Gaussian or small
    releases then cost less; a few of large epsilon cost more. It cannot be undone.
    What the ledger buys in both states is printed first, and then asked.
    Reads and writes the ledger alone, which is public.

    Example:

    confide ledger convert ledger.db --dataset survey --reason "many small tables" --yes
    """
    session: Session = ctx.obj
    with session.doing("converting the ledger"):
        (opened,) = _opened(book, dataset, one=True)
        before, choice = opened.show(), opened.buys()
    # a ledger that cannot be converted says so itself, and stays as it is
    if before.state == "pair" and len(choice) > 1:
        facts(session, [("left", before.remaining), ("buys", choice[0]), ("or", choice[1])])
        if not yes and (session.json or not sys.stdin.isatty()):
            raise Refused("converting is once and for good, and nobody can be asked here; to do it add --yes")
        if not yes and not typer.confirm("Convert, once and for good?", err=True):
            raise Refused("not converted")
    with session.doing("converting the ledger"):
        opened.convert(reason=reason)
        state = opened.show()
    buys = opened.buys()
    facts(
        session,
        [
            ("dataset", state.dataset),
            ("budget", state.budget),
            ("left before", before.remaining),
            ("left", state.remaining),
            ("buys", "; ".join(buys)),
        ],
    )
    session.answer(_state(state) | {"book": opened.place, "buys": buys})


def verify_release(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.")],
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger that it was charged to.")],
    dataset: Dataset = None,
    json: Json = False,
) -> None:
    """Check a published release against the ledger it was charged to; exit code 1 when something does not hold.

    Reads the release and the ledger, which are public: receipt, plan, chain.

    Example:

    confide verify release.json --ledger ledger.db
    """
    session: Session = ctx.obj
    from confide import engine

    with session.doing("reading the release"):
        loaded = load_release(release)
    with session.doing("verifying the release"):
        book = open_ledger(ledger, dataset, loaded.plan.schema.get("dataset"))
        assert book is not None
        found = engine.verify(loaded, book)
    session.say(str(found))
    session.answer(
        {
            "ok": found.ok,
            "lines": found.lines,
            "release_sha256": loaded.sha256,
            "book": book.place,
            "dataset": book.dataset,
        }
    )
    if not found.ok:
        raise typer.Exit(1)


def _opened(path: str, dataset: str | None, *, one: bool = False) -> list[Ledger]:
    """The ledgers of a dataset, or of all; one: of the only one where none is named."""
    from confide.ledger import Ledger

    names = (dataset,) if one or dataset is not None else Ledger.datasets(path)
    return [Ledger.open(path, dataset=name) for name in names]


@contextmanager
def _weakness_said(session: Session, step: str, budget: Guarantee) -> Iterator[None]:
    """A step in which a budget is given; that it protects nobody is said after it, in the words of the command line."""
    from confide.guarantees.values import weakness

    with session.doing(step), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*protects nobody")
        yield
    if weak := weakness(budget):
        session.note(f"warning: {weak}")


def _jointly(one: LedgerState, other: LedgerState) -> dict[int, str]:
    """What persons of some numbers of rows have from two ledgers, in words."""
    from confide.ledger.scope import jointly

    return {rows: f"{jointly(one, other, rows)}" for rows in (1, 5, 50)}


def _say_state(session: Session, state: LedgerState) -> None:
    facts(
        session,
        [
            ("dataset", state.dataset),
            ("budget", state.budget),
            ("terms", f"relation {state.relation}, {state.whose}, trust {state.trust}"),
            ("spent", state.spent),
            ("left", state.remaining),
            ("unfinished", f"{state.unfinished} (charged, but no release was recorded; never refunded)"),
            ("tip", state.tip),
        ],
    )
    session.say()
    narrow = sys.stdout.isatty()  # whole guarantees and digests in a pipe, where nobody's line is too short
    rows = [
        (
            str(row.seq),
            f"{row.time[:19]}Z",
            row.kind,
            row.status,
            row.guarantee.replace(f", {state.relation}", "") if narrow else row.guarantee,
            _counted(row.amount),
            _what(row, narrow),
        )
        for row in state.rows
    ]
    table(session, ("seq", "time", "entry", "status", "guarantee", "counts as", "what"), rows, right=("seq",))
    if narrow and any(_DIGEST.search(row.note) for row in state.rows):
        session.say("digests are cut to 12 digits here; --json and a pipe have them whole")


def _what(row: Entry, narrow: bool) -> str:
    text = " ".join(filter(None, (row.method, row.note)))
    return _DIGEST.sub(r"\1...", text) if narrow else text


def _counted(amount: str) -> str:
    """What is added to the totals, without what can be read off it: a mu beside its square, a delta of 0.

    >>> _counted("mu = 2, mu^2 = 4, delta = 0"), _counted("rho = 0.5")
    ('mu^2 = 4', 'rho = 0.5')
    """
    return amount[amount.find("mu^2") :].removesuffix(", delta = 0") if "mu^2" in amount else amount


def _state(state: LedgerState) -> dict[str, Any]:
    return {**vars(state), "rows": [vars(row) for row in state.rows]}


@spread
def privacy_statement(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.")],
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="The ledger that it was charged to.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the record as JSON.", show_default=False),
    ] = None,
    *,
    dataset: Dataset = None,
    written: Written,
) -> None:
    """Say what was released, for whom it is protected, under which guarantee, by what: a record for output checkers.

    Reads the release, which is public, and with --ledger where it was charged and
    whether both agree (exit code 1 where not). No estimate is in the record, and its form is fixed by a
    JSON Schema.

    Example:

    confide statement release.json --ledger ledger.db -o record.json
    """
    session: Session = ctx.obj
    check_places({"-o": output}, {"the release": release, "the ledger": ledger_file(ledger)})
    from confide.disclosures import privacy_statement as record_of

    with session.doing("reading the release"):
        loaded = load_release(release)
    with session.doing("making the record"):
        book = open_ledger(ledger, dataset, loaded.plan.schema.get("dataset"))
        found = record_of(loaded, book)
    with reserve(output, force=written.force) as place:
        session.say(found.summary())
        if place is not None:
            write_output(place, found.to_json())
            session.say(f"wrote {output}")
    facts = found.to_dict()
    session.answer({"record": facts, "wrote": output})
    if facts["ledger"] is not None and not facts["ledger"]["agrees"]:
        raise typer.Exit(1)
