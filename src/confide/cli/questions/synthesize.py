"""`confide synthesize | refit`: a file of synthetic rows with its release, and the table of a release from such a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.facts import result_facts, show_result
from confide.cli.files import Drawings, Output, check_places, reserve
from confide.cli.gate import begin, paid_facts, plan_and_pay, say_charged, show_once
from confide.cli.options import Alpha, Charged, Data, SchemaFile, Written
from confide.cli.session import Refused, Session
from confide.cli.spread import spread

if TYPE_CHECKING:
    from confide.ledger import Ledger
    from confide.protocol import Plan, Release
    from confide.schema import Schema

__all__ = ["refit", "synthesize"]

_ENDINGS = (".parquet", ".csv")
_TRIED = 100_000  # rows of a rehearsal at most


@spread
def synthesize(
    ctx: typer.Context,
    formula: Annotated[
        str, typer.Argument(metavar="FORMULA", help='For instance "happy ~ age + children".', show_default=False)
    ],
    data: Data,
    schema: SchemaFile,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The synthetic table: .parquet or .csv; its sidecar goes beside it."
        ),
    ],
    *,
    charged: Charged,
    rows: Annotated[
        int | None,
        typer.Option("--rows", help="How many rows; the noisy number of records when left out.", show_default=False),
    ] = None,
    files: Annotated[
        int,
        typer.Option("--files", help="Several files, FILE-1 and so on, each on a line of its own (see confide refit)."),
    ] = 1,
    generator: Annotated[
        str, typer.Option("--generator", metavar="calibrated|binagg", help="How rows are made from the release.")
    ] = "calibrated",
    bounded: Annotated[
        bool,
        typer.Option(
            "--bounded", help="Keep the response in its bounds; OLS on the file is then off, the sidecar says how far."
        ),
    ] = False,
    release: Annotated[
        Path | None, typer.Option("--release", metavar="FILE", help="Keep the release in a file of its own as well.")
    ] = None,
) -> None:
    """Make a file of synthetic rows on which plain OLS returns a private line.

    Charges the ledger once. The rows are no records and carry no interval: the
    sidecar FILE.confide.json holds the release, from which `confide refit` reads it.
    All that is written may be published.

    Example:

    confide synthesize "happy ~ age" survey.csv --schema schema.toml --mu 1 \\
      --ledger book.db -o happy.parquet
    """
    session: Session = ctx.obj
    requested = charged.privacy.guarantee()
    if output.suffix.lower() not in _ENDINGS:
        raise Refused(f"-o {output} must end in {', '.join(_ENDINGS)}")
    if not 1 <= files <= 1_000:
        raise Refused(f"--files takes a number from 1 to 1000, got {files}")
    places = _places(output, files)
    outputs = {"--release": release, **{f"-o ({path.name})": path for path in places}}
    begin(session, charged.account, charged.simulate, outputs, {"the schema": schema}, data)
    force = charged.written.force
    with ExitStack() as stack:
        kept = stack.enter_context(reserve(release, force=force))
        reserved = {str(path): stack.enter_context(reserve(path, force=force)) for path in places}
        drawn = {name: output for name, output in reserved.items() if output is not None}
        from confide import gate
        from confide.methods.synthesis.build import Options
        from confide.synthesis import SyntheticTable

        method = SyntheticTable(formula, generator=generator)

        def plan_of(found: Schema, book: Ledger | None) -> Plan:
            Options(rows, bounded).check(method.design_of(found))
            return gate.plan(method, found, requested, n=charged.n, ledger=book)

        def show(session: Session, done: Release, drawn: Mapping[str, Output]) -> dict[str, Any]:
            many = min(rows, _TRIED) if rows is not None and session.mute else rows
            with session.doing("making the rows"):
                made = method.build(done, rows=many, files=files, bounded=bounded)
            with session.doing("writing the rows"):
                _write(made, places, list(drawn.values()))
            return {"text": made.summary(), "facts": made.to_dict()}

        paid = plan_and_pay(session, charged, data, schema, plan_of, place=kept, drawn=drawn, show=show)
        made = show_once(session, kept, paid.release, drawn, show)
    session.kept = str(places[0])
    session.say(made["text"])
    for path in places[::2]:
        session.say(f"wrote {path} with its sidecar {path.name}.confide.json")
    say_charged(session, paid)
    session.say(f"for intervals: confide refit {places[0]}")
    session.answer(
        {
            **made["facts"],
            **paid_facts(paid),
            "wrote": [str(path) for path in places],
            "release_file": release,
        }
        if session.json
        else {}
    )


def _places(output: Path, files: int) -> list[Path]:
    """Every table and its sidecar, one after the other."""
    from confide.methods.synthesis.sidecar import file_names, sidecar_path

    return [place for table in file_names(output, files) for place in (table, sidecar_path(table))]


def _write(made: Any, places: list[Path], outputs: list[Output]) -> None:
    from confide.methods.synthesis.sidecar import table_bytes

    for number, (table, text) in enumerate(made.texts()):
        for output, content in zip(
            outputs[2 * number : 2 * number + 2], (table_bytes(table, text, places[2 * number]), text), strict=True
        ):
            output.write(content)


@spread
def refit(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE... [FORMULA]",
            help="A synthetic table with its sidecar, or several of one release; then the released formula, or one with fewer terms.",
            show_default=False,
        ),
    ],
    alpha: Alpha = None,
    *,
    drawings: Drawings,
    written: Written,
) -> None:
    """Print the regression table of a synthetic file from its published release, never from its rows.

    The sidecar, or the metadata of a Parquet file, holds the release; the rows'
    content is checked against it. Several files of one release are combined.

    Example:

    confide refit happy.parquet "happy ~ age" --report refit.html
    """
    session: Session = ctx.obj
    table, formula = _tables_and_formula(words)
    check_places(drawings.places, {f"the table {path}": path for path in table})
    from confide.faces.synthesis import refit

    with drawings.reserved(force=written.force) as drawn:
        with session.doing("refit"):
            result = refit(table[0] if len(table) == 1 else list(table), formula)
        show_result(session, result, alpha, drawn)
    session.answer({"result": result_facts(result, alpha), **vars(drawings)} if session.json else {})


def _tables_and_formula(words: list[str]) -> tuple[list[Path], str | None]:
    """The tables, and the last word when it is a formula: when it has a ~ and no ending of a table."""
    from confide.schema.formulas.names import sides  # here, because schemas are slow to load

    last = words[-1]
    formula = last if len(sides(last)) > 1 and not last.lower().endswith(_ENDINGS) else None
    tables = [Path(word) for word in (words if formula is None else words[:-1])]
    if not tables:
        raise Refused(f"which table? write: confide refit table.parquet {last!r}")
    return tables, formula
