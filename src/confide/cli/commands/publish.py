"""`confide publish | synthesize | refit`: publications, and synthetic data with its release."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._helpers import later
from confide.cli.engine import (
    Delivery,
    OneStepRequest,
    at_once,
    begin,
    paid_facts,
    plan_and_pay,
    say_charged,
    show_once,
)
from confide.cli.files import Drawings, Output, answer_result, check_places, load_schema, reserve, show_result
from confide.cli.options import (
    AllowPartial,
    Alpha,
    Charged,
    Csv,
    Data,
    Keep,
    Parameters,
    Report,
    SchemaFile,
    Written,
    spread,
)
from confide.cli.session import Refused, Session

if TYPE_CHECKING:
    from confide import engine
    from confide.core import Plan, Release
    from confide.ledger import Ledger
    from confide.schema import Schema
else:
    engine = later("confide.engine")


def is_publication(path: str | Path) -> bool:
    """Whether an argument names a publication's TOML file, where a model or a plan could stand too."""
    return str(path).lower().endswith(".toml")


def asked_in(path: str | Path) -> Any:
    """The analyses in a file, and its other settings."""
    from confide.methods.publication import PublicationFile

    return PublicationFile.from_toml(path)


def plan_in(path: Path) -> Plan:
    """The plan of a publication's file that names its schema and its privacy."""
    asked = asked_in(path)
    if asked.schema is None or not asked.priced:
        raise Refused(
            f"{str(path)!r} names no {'schema' if asked.schema is None else 'privacy'}, which a release needs",
            "write it into the file "
            '(schema = "schema.toml", privacy = { mu = 0.5 }), or plan first: confide plan publication.toml --schema ... --mu ...',
        )
    return engine.plan(asked.publication, load_schema(asked.schema), n=asked.n, **asked.terms())


@spread
def publish(
    ctx: typer.Context,
    publication: Annotated[
        Path, typer.Argument(metavar="PUBLICATION", help="A TOML file with one table for each analysis.")
    ],
    data: Data,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The schema file (TOML), if the publication names none.")
    ] = None,
    *,
    charged: Charged,
    output: Keep = None,
    report: Report = None,
    csv: Csv = None,
    allow_partial: AllowPartial = False,
) -> None:
    """Release several analyses with one plan, one charge, one file.

    The file has a table for each analysis, with its method and parameters, and may
    name the schema and the cost:

    \b
    schema = "schema.toml"
    privacy = { mu = 0.5 }
    \\[analyses.model]
    method = "least_squares"
    formula = "happy ~ age"
    share = 2

    Example:

    confide publish publication.toml survey.csv --ledger ledger.db \\
      -o release.json --report index.html
    """
    session: Session = ctx.obj
    with session.doing("reading the publication"):
        asked = asked_in(publication)
    where = schema or asked.schema
    if where is None:
        raise Refused("the publication's file names no schema", 'write --schema FILE, or schema = "schema.toml" in it')
    own = charged.privacy.given or not asked.priced
    with session.doing("plan"):
        terms = asked.terms(charged.privacy.guarantee() if own else None)
    at_once(
        session,
        OneStepRequest(
            **{**vars(charged), "n": charged.n or asked.n},
            parameters=Parameters(),
            output=output,
            drawings=Drawings(report, None, csv),
        ),
        data,
        where,
        lambda: asked.publication,
        terms=terms,
        inputs={"the publication": publication},
        allow_partial=allow_partial,
    )


_TABLE_ENDINGS = (".parquet", ".csv")
_TRIED = 100_000  # rows of a rehearsal at most


@spread
def synthesize(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help='For instance "happy ~ age + children".')],
    data: Data,
    schema: SchemaFile,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the synthetic rows to this .parquet or .csv file, with a sidecar.",
        ),
    ],
    *,
    charged: Charged,
    rows: Annotated[
        int | None, typer.Option(help="Number of rows; left out, the released number of records.", show_default=False)
    ] = None,
    files: Annotated[int, typer.Option(help="Number of files, FILE-1 and so on, which confide refit combines.")] = 1,
    generator: Annotated[
        str, typer.Option(metavar="calibrated|binagg", help="How rows are made from the release.")
    ] = "calibrated",
    bounded: Annotated[
        bool,
        typer.Option(
            "--bounded",
            help="Keep the response within its bounds; a regression on the rows then differs, as the sidecar says.",
        ),
    ] = False,
    release: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the release to this file.")] = None,
) -> None:
    """Release synthetic rows and the regression that they reproduce.

    Ordinary least squares on the rows returns the released coefficients. The rows contain no record and give no valid interval. The sidecar
    FILE.confide.json holds the release, from which confide refit prints intervals.
    All files may be published.

    Example:

    confide synthesize "happy ~ age" survey.csv --schema schema.toml --mu 1 \\
      --ledger ledger.db -o happy.parquet
    """
    session: Session = ctx.obj
    requested = charged.privacy.guarantee()
    if output.suffix.lower() not in _TABLE_ENDINGS:
        raise Refused(f"-o {output} must end in {', '.join(_TABLE_ENDINGS)}")
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
        from confide.methods.synthesis.model import Options
        from confide.methods.synthesis.table import SyntheticTable

        method = SyntheticTable(formula, generator=generator)

        def plan_of(found: Schema, book: Ledger | None) -> Plan:
            Options(rows, bounded).check(method.design_of(found))
            return engine.plan(method, found, requested, n=charged.n, ledger=book)

        def show(session: Session, done: Release, drawn: Mapping[str, Output]) -> dict[str, Any]:
            many = min(rows, _TRIED) if rows is not None and session.mute else rows
            with session.doing("making the rows"):
                made = method.build(done, rows=many, files=files, bounded=bounded)
            with session.doing("writing the rows"):
                _write(made, places, list(drawn.values()))
            return {"text": made.summary(), "facts": made.to_dict()}

        result = Delivery(kept, drawn, show)
        paid = plan_and_pay(session, charged, data, schema, plan_of, result)
        made = show_once(session, paid.release, result)
    session.kept = str(places[0])
    session.say(made["text"])
    for path in places[::2]:
        session.say(f"Wrote {path} and its sidecar {path.name}.confide.json")
    say_charged(session, paid)
    session.say(f"Next       confide refit {places[0]}    (intervals)")
    session.answer(
        {**made["facts"], **paid_facts(paid), "wrote": [str(path) for path in places], "release_file": release}
        if session.json
        else {}
    )


def _places(output: Path, files: int) -> list[Path]:
    """Every table and its sidecar, one after the other."""
    from confide.methods.synthesis.files import file_names, sidecar_path

    return [place for table in file_names(output, files) for place in (table, sidecar_path(table))]


def _write(made: Any, places: list[Path], outputs: list[Output]) -> None:
    from confide.methods.synthesis.files import table_bytes

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
        ),
    ],
    treatment: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Print the effects of this treatment of a trial instead: each arm less the control."
        ),
    ] = None,
    control: Annotated[
        str | None, typer.Option(metavar="ARM", help="The arm that --treatment compares with; left out, the first.")
    ] = None,
    alpha: Alpha = None,
    *,
    drawings: Drawings,
    written: Written,
) -> None:
    """Print the regression table of a synthetic file.

    The sidecar, or the metadata of a Parquet file, holds the public release; the rows
    are checked against it. Several files of one release are combined.

    Example:

    confide refit happy.parquet "happy ~ age" --report refit.html

    confide refit trial.parquet --treatment arm --control placebo
    """
    session: Session = ctx.obj
    table, formula = _tables_and_formula(words)
    check_places(drawings.places, {f"the table {path}": path for path in table})
    if control is not None and treatment is None:
        raise Refused(
            "--control is an arm of a --treatment", f"add --treatment COLUMN, or leave --control {control} out"
        )
    if treatment is not None and len(table) > 1:
        raise Refused("--treatment takes one table, because every file of a release has it", f"give {table[0]} alone")
    from confide.ask.synthesis import refit, treatment_effects

    with drawings.reserved(force=written.force) as drawn:
        with session.doing("refit"):
            if treatment is None:
                result = refit(table[0] if len(table) == 1 else list(table), formula)
            else:
                result = treatment_effects(table[0], treatment, control=control, formula=formula)
        show_result(session, result, alpha, drawn, drawings=drawings)
    answer_result(session, result, alpha, drawings)


def _tables_and_formula(words: list[str]) -> tuple[list[Path], str | None]:
    """The tables, and the last word when it is a formula: when it has a ~ and no ending of a table."""
    from confide.schema.formulas.names import sides  # here, because schemas are slow to load

    last = words[-1]
    formula = last if len(sides(last)) > 1 and not last.lower().endswith(_TABLE_ENDINGS) else None
    tables = [Path(word) for word in (words if formula is None else words[:-1])]
    if not tables:
        raise Refused(f"which table? write: confide refit table.parquet {last!r}")
    return tables, formula
