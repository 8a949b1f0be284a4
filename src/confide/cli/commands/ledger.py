"""`confide ledger | verify | statement`: budgets and charges, and the privacy statement of a release."""

from __future__ import annotations

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
from confide.guarantees.conversion import bare_words
from confide.ledger.printing import facts as fact_lines, head as head_lines, protects

if TYPE_CHECKING:
    from confide.guarantees import Guarantee
    from confide.ledger import Ledger, LedgerState


app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Open a budget; show, check and amend what was charged to it."
)

# Text and not a Path, which would turn the // of a URL into /. What is shown is `place`, which has no password in it.
_Ledger = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger's file, or its postgresql:// URL.")]
_TRUSTS = {
    "central": "central model: the steward adds the noise",
    "local": "local model: each record gets noise before anyone else sees it",
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
            help="Who adds the noise: central, the steward; local, each record before anyone else sees it (confide local protect).",
        ),
    ] = "central",
    grants: Annotated[
        str | None,
        typer.Option(metavar="gaussian", help="Convert an approximate DP budget to Gaussian DP at once, permanently."),
    ] = None,
    note: Annotated[
        str, typer.Option(metavar="TEXT", help="A remark that the first entry keeps, for example who decided.")
    ] = "",
    json: Json = False,
) -> None:
    """Open a budget for a dataset, in a new ledger or an existing one.

    Left out, the budget protects one record, added or removed, and the steward
    adds the noise. These terms are fixed: a release on other terms is refused. With
    --unit person_id it protects all rows of one person; --schema takes the unit from
    the schema. A ledger holds public numbers only, and nothing from a record.

    Example:

    confide ledger init ledger.db --schema schema.toml --mu 2
    """
    session: Session = ctx.obj
    session.ledger = str(book)
    if trust not in _TRUSTS:
        raise Refused(f"--trust is one of {', '.join(_TRUSTS)}, got {trust!r}")
    options = [privacy.words(), *([] if grants is None else ["--grants", grants])]
    with session.doing("reading the terms"):
        dataset, unit, rows_per_unit = whose.said(book, " ".join(options), look=trust == "central")
    session.dataset = dataset
    bare = unit if trust == "local" and unit in ("record", "attribute") else "record"
    budget = replace(privacy.guarantee(), trust=trust, unit=bare)
    from confide.ledger import Ledger

    with _weakness_said(session, "opening the ledger", budget):
        opened = Ledger.create(
            book, dataset=dataset, budget=budget, unit=unit, rows_per_unit=rows_per_unit, grants=grants, note=note
        )
    state, buys = opened.show(), opened.buys()
    relation = f"relation {state.relation}{'' if privacy.relation is not None else ', the default'}"
    printed = [
        ("Budget", bare_words(state.budget)),
        ("Meaning", state.meaning),
        ("Protects", f"{protects(state)} ({relation})"),
        ("Noise", _TRUSTS[state.trust]),
        ("Enough for", "; ".join(buys)),
        ("Tip hash", f"{state.tip[:8]}; keep all 64 digits outside the ledger: confide ledger tip"),
    ]
    session.say(f"Opened a budget for dataset {state.dataset!r} in {opened.place}")
    session.say("\n".join(fact_lines(printed)))
    session.answer(_state(state) | {"book": opened.place, "buys": buys})


@app.command()
def show(
    ctx: typer.Context,
    book: _Ledger,
    dataset: Dataset = None,
    beside: Annotated[
        str | None,
        typer.Option(
            "--with-ledger",
            metavar="LEDGER",
            help="A second ledger of the dataset, to add up one of records and one of its unit.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print every entry with its receipt, parameters and hashes.")
    ] = False,
    utc: Annotated[bool, typer.Option("--utc", help="Print times in UTC instead of local time.")] = False,
    json: Json = False,
) -> None:
    """Show the percentage of the budget used, what the budget means, and each charge.

    Reads the ledger only, which is public. Without --dataset all datasets are shown.
    With --with-ledger it also prints the guarantee of both ledgers together, for a
    person with 1, 5 and 50 rows.

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
            raise Refused(f"{beside} has no dataset that {book} has", "say which with --dataset NAME")
    for place, state in enumerate(states):
        if place:
            session.say()
        session.say(state.summary(verbose=verbose, utc=utc))
        for rows, found in both.get(state.dataset, {}).items():
            session.say(f"Both ledgers, a person with {rows} row{'s' if rows > 1 else ''}: {found}")
    session.answer(
        {"book": next((opened.place for opened in books), ""), "datasets": [_state(state) for state in states]}
    )


@app.command()
def tip(ctx: typer.Context, book: _Ledger, dataset: Dataset = None, json: Json = False) -> None:
    """Print the tip hash of a ledger, to be kept outside it.

    The tip hash is the hash of the last entry. Keep a copy, because it reveals that an
    older ledger was put back or that newest entries are missing: confide ledger verify
    LEDGER --tip HASH. A receipt or a published release does the same.

    Example:

    confide ledger tip ledger.db --dataset survey
    """
    session: Session = ctx.obj
    with session.doing("reading the ledger"):
        states = [opened.show() for opened in _opened(book, dataset)]
    for state in states:
        session.say_as_is(f"{state.tip}  dataset {state.dataset!r}, entry {len(state.rows)}")
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
            help="A tip hash or a release ID that was kept, at least its first 12 digits; repeat for more.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute the ledger's hash chain, totals and limits; exit code 1 if something does not hold.

    Reads the ledger only, which is public. Missing newest entries and an older copy
    do not show in it. For these, give a kept hash by --tip, or check a release:
    confide verify RELEASE --ledger LEDGER.

    Example:

    confide ledger verify ledger.db
    """
    session: Session = ctx.obj
    with session.doing("verifying the ledger"):
        books = _opened(book, dataset)
        if kept and len(books) > 1:
            raise Refused("--tip belongs to one dataset", "write --dataset NAME")
        found = [(opened.dataset, opened.verify(tips=kept or ())) for opened in books]
    for name, outcome in found:
        session.say(str(outcome))
        for one in kept or () if outcome.ok else ():
            session.say(f"pass  the chain holds {one[:12]}")
        verdict = f"PASS: dataset {name!r}, tip hash {outcome.tip[:8]}" if outcome.ok else f"FAIL: dataset {name!r}"
        session.say(f"\n{verdict}")
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
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason, which the ledger keeps.")],
    *,
    privacy: Privacy,
    dataset: Dataset = None,
    json: Json = False,
) -> None:
    """Replace the budget of a dataset by a new entry; charges stay.

    The privacy options give the whole new budget, not an addition. The entry is as
    public as the ledger.

    Example:

    confide ledger amend ledger.db --dataset survey --mu 3 \\
      --reason "decision of 4 May"
    """
    session: Session = ctx.obj
    budget = privacy.guarantee()
    with _weakness_said(session, "amending the ledger", budget):
        (opened,) = _opened(book, dataset, one=True)
        session.ledger, session.dataset = book, opened.dataset
        opened.amend(budget, reason=reason)
        state = opened.show()
    session.say(f"Amended the budget of {state.dataset!r}: {reason}")
    session.say("\n".join(head_lines(state)))
    session.answer(_state(state) | {"book": opened.place})


@app.command()
def convert(
    ctx: typer.Context,
    book: _Ledger,
    dataset: Dataset = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason, which the ledger keeps.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Convert without asking; required in a script.")] = False,
    json: Json = False,
) -> None:
    """Convert a budget of approximate DP to Gaussian DP, permanently.

    Many Gaussian or small releases then cost less, and a few of large epsilon cost
    more. It cannot be undone. The command first prints what the budget is enough
    for in both states, and then asks. Reads and writes the public ledger only.

    Example:

    confide ledger convert ledger.db --dataset survey \\
      --reason "many small tables" --yes
    """
    session: Session = ctx.obj
    with session.doing("converting the ledger"):
        (opened,) = _opened(book, dataset, one=True)
        before, choice = opened.show(), opened.buys()
    # a ledger that cannot be converted says so itself, and stays as it is
    if before.state == "pair" and len(choice) > 1:
        session.say("\n".join(fact_lines([("Left", before.remaining), ("Enough for", choice[0]), ("or", choice[1])])))
        if not yes and (session.json or not sys.stdin.isatty()):
            raise Refused("a conversion is permanent, and a script cannot be asked; to convert, add --yes")
        if not yes and not typer.confirm("Convert permanently?", err=True):
            raise Refused("not converted")
    with session.doing("converting the ledger"):
        opened.convert(reason=reason)
        state = opened.show()
    buys = opened.buys()
    session.say(f"Converted the budget of {state.dataset!r} to Gaussian DP")
    session.say("\n".join([*head_lines(state), *fact_lines([("Enough for", "; ".join(buys))])]))
    session.answer(_state(state) | {"book": opened.place, "buys": buys})


def verify_release(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.")],
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger that it was charged to.")],
    dataset: Dataset = None,
    json: Json = False,
) -> None:
    """Check a release against the ledger it was charged to.

    Reads the release and the ledger, which are public: receipt, charge, plan, hash
    chain. Exit code 1 if something does not hold.

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
    receipt = book.find(loaded.sha256)
    session.say(f"{found}\n")
    if found.ok and receipt is not None:
        session.say(f"PASS: {release} ({loaded.sha256[:8]}) is the release that entry {receipt.charge_seq} paid for")
    else:
        session.say(
            f"FAIL: {release} ({loaded.sha256[:8]}) does not agree with dataset {book.dataset!r} of {book.place}"
        )
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
    """A step in which a budget is given; that it protects no one is printed after it, in the words of the command line."""
    from confide.guarantees.values import weakness

    with session.doing(step), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*protects nobody")
        yield
    if weak := weakness(budget):
        session.note(f"warning: {weak}")


def _jointly(one: LedgerState, other: LedgerState) -> dict[int, str]:
    """The guarantee of two ledgers together, for persons with some numbers of rows."""
    from confide.ledger.scope import jointly

    return {rows: f"{jointly(one, other, rows)}" for rows in (1, 5, 50)}


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
        typer.Option("-o", "--output", metavar="FILE", help="Write the statement as JSON.", show_default=False),
    ] = None,
    *,
    dataset: Dataset = None,
    written: Written,
) -> None:
    """Write the privacy statement of a release, for output checkers.

    It says what the release holds, whom it protects, under which guarantee and by
    which method. With --ledger it checks that both agree (exit code 1 if not). It
    has no estimate, is public, and a JSON Schema fixes its form.

    Example:

    confide statement release.json --ledger ledger.db -o statement.json
    """
    session: Session = ctx.obj
    check_places({"-o": output}, {"the release": release, "the ledger": ledger_file(ledger)})
    from confide.disclosures import privacy_statement as record_of

    with session.doing("reading the release"):
        loaded = load_release(release)
    with session.doing("making the statement"):
        book = open_ledger(ledger, dataset, loaded.plan.schema.get("dataset"))
        found = record_of(loaded, book)
    with reserve(output, force=written.force) as place:
        session.say(found.summary())
        if place is not None:
            write_output(place, found.to_json())
            session.say(f"Wrote {output}")
    facts = found.to_dict()
    session.answer({"record": facts, "wrote": output})
    if facts["ledger"] is not None and not facts["ledger"]["agrees"]:
        raise typer.Exit(1)
