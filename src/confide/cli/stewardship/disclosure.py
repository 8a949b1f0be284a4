"""`confide disclosure`: the record of a release for those who check outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.files import check_places, ledger_file, load_release, put, reserve
from confide.cli.gate import open_ledger
from confide.cli.options import Dataset, Written
from confide.cli.session import Session
from confide.cli.spread import spread

__all__ = ["disclosure"]


@spread
def disclosure(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.", show_default=False)],
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="LEDGER", help="The ledger that it was charged to.", show_default=False),
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

    confide disclosure release.json --ledger book.db -o record.json
    """
    session: Session = ctx.obj
    check_places({"-o": output}, {"the release": release, "the ledger": ledger_file(ledger)})
    from confide.disclosures import disclosure as record_of

    with session.doing("reading the release"):
        loaded = load_release(release)
    with session.doing("making the record"):
        book = open_ledger(ledger, dataset, loaded.plan.schema.get("dataset"))
        found = record_of(loaded, book)
    with reserve(output, force=written.force) as place:
        session.say(found.summary())
        if place is not None:
            put(place, found.to_json())
            session.say(f"wrote {output}")
    facts = found.to_dict()
    session.answer({"record": facts, "wrote": output})
    if facts["ledger"] is not None and not facts["ledger"]["agrees"]:
        raise typer.Exit(1)
