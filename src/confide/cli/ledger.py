"""`confide ledger init | show | verify | amend` and `confide verify`: the budget book and what was charged to it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.door import open_book
from confide.cli.files import load_release
from confide.cli.options import Dataset, Delta, Epsilon, Json, Mu, Relation, Rho, privacy
from confide.cli.session import Session
from confide.cli.tables import facts, table

if TYPE_CHECKING:
    from confide.ledger import Entry, Ledger, LedgerState

__all__ = ["app", "verify_release"]

app = typer.Typer(no_args_is_help=True, help="The budget book: what may be spent on a dataset, and what was.")

_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")

# Text and not a Path, which would turn the // of a URL into /. What is shown is `place`, which has no password in it.
_Book = Annotated[
    str, typer.Argument(metavar="BOOK", help="The book's file, or its postgresql:// URL.", show_default=False)
]
_Named = Annotated[str, typer.Option("--dataset", metavar="NAME", help="The dataset whose budget it is.")]


@app.command()
def init(
    ctx: typer.Context,
    book: _Book,
    dataset: _Named,
    mu: Mu = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Kept in the first entry, for instance who decided.")
    ] = "",
    json: Json = False,
) -> None:
    """Open a budget for a dataset, in a new book or an existing one.

    A bare budget means: relation add-remove, unit record, trust central. A book
    holds public numbers alone, nothing that comes from a record.

    Example:

    confide ledger init book.db --dataset survey --mu 2
    """
    session: Session = ctx.obj
    budget = privacy(mu, rho, epsilon, delta, relation)
    from confide.ledger import Ledger

    with session.doing("opening the book"):
        opened = Ledger.create(book, dataset=dataset, budget=budget, note=note)
    session.say(f"opened a budget for dataset {opened.dataset!r} in {opened.place}")
    default = "" if relation is not None else " (the default: a bare budget means this; --relation says otherwise)"
    facts(
        session,
        [
            ("budget", opened.budget),
            ("relation", f"{opened.relation}{default}"),
            ("unit", f"{opened.unit}: what is protected is one {opened.unit}"),
            ("trust", f"{opened.trust}: the keeper of the records adds the noise"),
        ],
    )
    session.answer(_state(opened.show()) | {"book": opened.place})


@app.command()
def show(ctx: typer.Context, book: _Book, dataset: Dataset = None, json: Json = False) -> None:
    """A statement of account: budget, spent, left, and every entry.

    Reads the book alone, which is public. Without --dataset all datasets are shown.

    Example:

    confide ledger show book.db
    """
    session: Session = ctx.obj
    with session.doing("reading the book"):
        books = _opened(book, dataset)
        states = [opened.show() for opened in books]
    for place, state in enumerate(states):
        if place:
            session.say()
        _say_state(session, state)
    session.answer(
        {"book": next((opened.place for opened in books), ""), "datasets": [_state(state) for state in states]}
    )


@app.command()
def verify(ctx: typer.Context, book: _Book, dataset: Dataset = None, json: Json = False) -> None:
    """Recompute the book's chain, totals and limits; exit code 1 when something does not hold.

    Reads the book alone, which is public. That cannot show newest entries cut off
    or an older copy put back: `confide verify RELEASE --ledger BOOK` looks for it.

    Example:

    confide ledger verify book.db
    """
    session: Session = ctx.obj
    with session.doing("verifying the book"):
        books = _opened(book, dataset)
        found = [(opened.dataset, opened.verify()) for opened in books]
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
                    "head": outcome.head,
                }
                for name, outcome in found
            ],
        }
    )
    if not ok:
        raise typer.Exit(1)


@app.command()
def amend(
    ctx: typer.Context,
    book: _Book,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept in the book.")],
    mu: Mu = None,
    rho: Rho = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    dataset: Dataset = None,
    json: Json = False,
) -> None:
    """Give a dataset a new budget by a new entry; what was spent stays spent.

    The privacy options give the whole new budget, not what is added. The entry is
    as public as the book.

    Example:

    confide ledger amend book.db --dataset survey --mu 3 --reason "decision of 4 May"
    """
    session: Session = ctx.obj
    budget = privacy(mu, rho, epsilon, delta, relation)
    with session.doing("amending the book"):
        opened = open_book(book, dataset, None)
        assert opened is not None
        opened.amend(budget, reason=reason)
        state = opened.show()
    facts(
        session,
        [("dataset", state.dataset), ("budget", state.budget), ("spent", state.spent), ("left", state.remaining)],
    )
    session.answer(_state(state) | {"book": opened.place})


def verify_release(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.", show_default=False)],
    ledger: Annotated[str, typer.Option("--ledger", metavar="BOOK", help="The book that it was charged to.")],
    dataset: Dataset = None,
    json: Json = False,
) -> None:
    """Check a published release against the book it was charged to; exit code 1 when something does not hold.

    Reads the release and the book, which are public: receipt, plan, chain.

    Example:

    confide verify release.json --ledger book.db
    """
    session: Session = ctx.obj
    from confide import gate

    with session.doing("reading the release"):
        loaded = load_release(release)
    with session.doing("verifying the release"):
        book = open_book(ledger, dataset, loaded.plan.schema.get("dataset"))
        assert book is not None
        found = gate.verify(loaded, book)
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


def _opened(path: str, dataset: str | None) -> list[Ledger]:
    from confide.ledger import Ledger

    names = (dataset,) if dataset is not None else Ledger.datasets(path)
    return [Ledger.open(path, dataset=name) for name in names]


def _say_state(session: Session, state: LedgerState) -> None:
    facts(
        session,
        [
            ("dataset", state.dataset),
            ("budget", state.budget),
            ("means", f"relation {state.relation}, unit {state.unit}, trust {state.trust}"),
            ("spent", state.spent),
            ("left", state.remaining),
            ("unfinished", f"{state.unfinished} (charged, but no release was recorded; never refunded)"),
            ("head", state.head),
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
    return {
        "dataset": state.dataset,
        "currency": state.currency,
        "relation": state.relation,
        "unit": state.unit,
        "trust": state.trust,
        "budget": state.budget,
        "spent": state.spent,
        "remaining": state.remaining,
        "units": state.units,
        "unfinished": state.unfinished,
        "head": state.head,
        "rows": [vars(row) for row in state.rows],
    }
