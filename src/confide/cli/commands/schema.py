"""`confide schema draft | check | sample | bounds`: the public description of the data."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from confide.cli.engine import PaidRelease, begin, charging, look, open_ledger, say_charged
from confide.cli.files import check_places, keep, load_schema, reserve, write_output
from confide.cli.options import (
    FILES,
    Account,
    FileOptions,
    Force,
    Json,
    PreflightOptions,
    Privacy,
    Seed,
    Written,
    spread,
)
from confide.cli.session import Refused, Session
from confide.cli.tables import facts, table
from confide.errors import SchemaError

if TYPE_CHECKING:
    import pandas as pd

    from confide.schema import Schema
    from confide.sources import RecordSource

# Bytes for the release of a column's bounds, several times what it takes.
_RELEASE = 1 << 16

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Write and check a schema, make test data, find bounds."
)

# A column with more levels shows the first few; `--json` and the file have all of them.
_LEVELS, _FIRST = 20, 10
_UNNAMED = (
    "not named. A ledger charges a named dataset: add a line such as\n"
    '               dataset = "survey"   at the top of the schema'
)
_SchemaArgument = Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).")]


@app.command()
@spread
def draft(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA", help=f"A file of {FILES}.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the schema to this file; left out, to stdout."),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for the public facts at the terminal, and write each answer at once.")
    ] = False,
    force: Force = False,
    json: Json = False,
    *,
    file: FileOptions,
) -> None:
    """Write a first schema from the names and types of a file; you fill in public facts.

    Reads metadata and no value. A CSV file and a sheet have no types, so fill in their
    kinds, too. Bounds must come from public knowledge (for example an answer scale), because
    bounds from the data disclose something about single persons. With --ask it asks for
    each of them.

    Example:

    confide schema draft survey.csv -o schema.toml
    """
    session: Session = ctx.obj
    check_places({"-o": output}, {"the data": data})
    if ask:
        from confide.cli.interview import conduct
        from confide.schema.layout import layout_from_settings
        from confide.sources.formats.databases import table_at

        conduct(session, table_at(data) or data, output, layout_from_settings(file.entries()))
        session.answer({"wrote": output})
        return
    with reserve(output, force=force) as place:
        from confide.schema import Schema

        with session.doing("drafting the schema", private=True):
            from confide.sources.formats.databases import table_at

            text = Schema.draft(table_at(data) or data, file=file.entries())
        if place is None:
            session.say(text.rstrip("\n"))
        else:
            write_output(place, text)
            session.say(f"Wrote {output}. Replace each '?' in it\nNext       confide schema check {output}")
    session.answer({"toml": text, "wrote": output})


@app.command()
@spread
def check(
    ctx: typer.Context,
    schema: _SchemaArgument,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also compare names and types with a file, and count how its records are read.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 where records are not read as declared; that code is private.")
    ] = False,
    tolerate: Annotated[
        float, typer.Option(metavar="SHARE", help="With --strict: the share of a column's cells that may be unread.")
    ] = 0.01,
    ids: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="A column of ids that should have one row each.")
    ] = None,
    json: Json = False,
    *,
    file: FileOptions,
) -> None:
    """Check a schema and print its columns.

    With --data it compares names and types, and counts how the records are read.
    Stdout is public. The counts go to stderr, exact and for the steward only: do not
    publish or log them. The exit code says nothing of them, but with --strict.

    Example:

    confide schema check schema.toml --data survey.csv
    """
    session: Session = ctx.obj
    if data is None and (strict or ids is not None):
        raise Refused(f"{'--strict' if strict else '--id'} is about records", "give --data FILE")
    if not 0 <= tolerate < 1:
        raise Refused(f"--tolerate takes a share from 0 to 1, got {tolerate:g}", "write --tolerate 0.01")
    with session.doing("reading the schema"):
        found = load_schema(schema)
    if data is not None:
        from confide.sources import read

        with session.doing("checking names and types", private=True):
            source = read(data, found, file=file.entries(), ids=ids)
            source.check(found.names)
    table(session, ("column", "kind", "values", "missing", "provenance"), _cells(found))
    spreads = _spreads(found)
    if spreads:
        session.say(
            "\nTypical values, for forecasts only: the range of about 95% of the values, and the share of each level:"
        )
        table(session, ("column", "typical", "own share", "provenance"), spreads)
    session.say()
    facts(
        session,
        [
            *_whose(found),
            ("dataset", found.dataset or _UNNAMED),
            *_as_written(found),
            ("schema sha256", found.digest),
            *([("data", f"{data}: {_fits(data)}")] if data is not None else []),
        ],
    )
    notes = [
        f"{code} lies within the bounds of {name}: cells of {code} are read as missing"
        for name, code in _covered(found)
    ]
    for note in notes:
        session.say(f"note: {note}")
    fails = data is not None and _preflighted(session, source, ids, tolerate) and strict
    session.answer(
        {
            "columns": [_column(name, found[name]) for name in found.names],
            "unit": found.to_dict()["unit"],
            "cluster": None if found.cluster is None else found.to_dict()["cluster"],
            "design": None if found.design is None else found.to_dict()["design"],
            "rows_per_unit": found.rows_per_unit,
            "dataset": found.dataset,
            "schema_sha256": found.digest,
            "data": data,
            "notes": notes,
        }
    )
    if fails:
        session.note(
            "--strict: a column has no value, a row another width, or too many cells are unread. The exit code 1 is private, as the counts "
            "are: keep it out of logs that others see"
        )
        raise typer.Exit(1)


def _whose(found: Schema) -> list[tuple[str, str]]:
    """Whom a release protects, whether that is enforced, and what intervals take as independent."""
    from confide.schema import Unit

    unit, rows = found.unit, found.rows_per_unit
    if isinstance(unit, Unit):
        rule = unit.rule or "by weight where a method can, else kept by key"
        told = [
            ("unit", f"{unit.column}, an id column: one value with all its rows is protected (enforced)"),
            (
                "rows per unit",
                f"{rows} row{'s' if rows > 1 else ''}' worth counts (enforced; {rule})".replace("row' ", "row's "),
            ),
        ]
    else:
        told = [
            ("unit", f"{unit}{'' if unit == 'record' and rows == 1 else ' (declared, not enforced)'}"),
            ("rows per unit", f"{rows}{' (declared, not enforced)' if rows > 1 else ''}"),
        ]
    if found.design is not None:
        told.append(("design", f"{found.design!r}"))
    elif found.cluster is not None:
        told.append(("clusters", f"{found.cluster!r}: intervals take its values as independent"))
    return told


@app.command()
def sample(
    ctx: typer.Context,
    schema: _SchemaArgument,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Write the test data to this .parquet or .csv file.")
    ],
    n: Annotated[int, typer.Option("-n", "--n", help="Number of rows.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="A seed; the same seed gives the same rows.")] = 1,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write test data for a rehearsal, drawn from the schema alone.

    Test data says nothing about the records and costs nothing.

    Example:

    confide schema sample schema.toml -n 1000 --seed 1 -o test.parquet
    """
    session: Session = ctx.obj
    if output.suffix.lower() not in (".parquet", ".csv"):
        raise Refused(f"-o {output} must end in .parquet or .csv")
    check_places({"-o": output}, {"the schema": schema})
    with reserve(output, force=force) as place:
        assert place is not None
        with session.doing("drawing test data"):
            practice = _file(load_schema(schema).sample(n, seed), output.suffix.lower())
        write_output(place, practice)
    session.say(f"Wrote {n:,} rows of test data to {output}")
    session.answer({"wrote": output, "records": n, "seed": seed})


@app.command()
@spread
def bounds(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA", help=f"A file of {FILES}.")],
    columns: Annotated[
        str, typer.Option(metavar="COLUMNS", help='Numeric columns, such as "income + age".', show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the release to this file.")
    ] = None,
    simulate: Seed = None,
    *,
    file: FileOptions,
    preflight: PreflightOptions,
    privacy: Privacy,
    account: Account,
    written: Written,
) -> None:
    """Find bounds of columns by a release, if none are public.

    Prints the entries for the schema, with the release that they come from. A column
    without bounds in the schema needs none: each release that adds it up finds its
    range for a tenth of the cost.

    Example:

    confide schema bounds survey.csv --columns "income + age" --mu 0.1 \\
      --ledger ledger.db
    """
    session: Session = ctx.obj
    begin(session, account, simulate, {"-o": output}, {}, [data])
    requested = privacy.guarantee()
    with reserve(output, force=written.force) as place:
        from confide.ask.bounds import find_bounds

        with session.doing("opening the ledger"):
            book = open_ledger(account.ledger, account.dataset, None)
            session.dataset = None if book is None else book.dataset
        if place is not None:
            place.take(_RELEASE)
        _look_at(session, data, columns, file, preflight)
        with charging(session, book, simulate, "finding the bounds") as noise:
            found = find_bounds(
                data,
                columns,
                privacy=requested,
                ledger=book,
                noise=noise,
                file=file.entries(),
                **account.counted,
            )
        keep(session, place, found.release)
    session.say(str(found).rstrip("\n"))
    session.say()
    session.say(found.to_toml())
    say_charged(
        session,
        PaidRelease(found.release, book, [], []),
        "Not kept: use -o FILE" if output is None else f"Wrote {output}",
    )
    session.answer(
        {
            **found.to_dict(),
            "toml": found.to_toml(),
            "wrote": output,
        }
    )


def _look_at(session: Session, data: Path, columns: str, file: FileOptions, asked: PreflightOptions) -> None:
    """The preflight of columns that have no bounds yet."""
    from confide.methods.quantiles.ranges import Ranges
    from confide.schema import Numeric, Schema
    from confide.sources import read

    with session.doing("opening the data", private=True):
        names = Ranges(columns).columns
        source = read(data, Schema({name: Numeric() for name in names}), file=file.entries())
    look(session, source, names, asked)


def _as_written(found: Schema) -> Iterator[tuple[str, str]]:
    """How values stand in the file: codes of missing values, and dates in text, each with its columns."""
    from confide.schema.missing import code_text

    columns: dict[str, Any] = {name: found[name] for name in found.in_data}
    codes = {name: ", ".join(map(code_text, column.missing or ())) for name, column in columns.items()}
    dates = {name: ", ".join(column.formats) for name, column in columns.items() if column.kind == "date"}
    for what, said in (("missing codes", codes), ("dates in text", dates)):
        for text in dict.fromkeys(filter(None, said.values())):
            own = [name for name, one in said.items() if one == text]
            yield what, text if len(own) == len(said) else f"{text} ({', '.join(own)})"


def _covered(found: Schema) -> Iterator[tuple[str, str]]:
    """Columns with a code of missing values that lies within their bounds, and the code."""
    from confide.schema.missing import code_ranges, code_text

    for name in found.names:
        column: Any = found[name]
        if column.kind in ("numeric", "integer") and any(column.declared):
            for code in column.missing or ():
                if any(column.low <= high and low <= column.high for low, high in code_ranges([code])):
                    yield name, code_text(code)


def _preflighted(session: Session, source: RecordSource, ids: str | None, tolerate: float) -> bool:
    """Show how the records are read, on stderr alone; whether --strict fails. No JSON depends on records."""
    from confide.sources.preflight import preflight

    with session.doing("the preflight", private=True):
        found = preflight(source, ids=ids)
    session.note(f"\n{found}")
    return found.fails(tolerate)


def _fits(data: Path) -> str:
    """What a check of a file's metadata can have found."""
    if data.name.lower().endswith((".csv", ".csv.gz")):
        return "names fit; a CSV file has no types, so kinds were not checked"
    return "names and types fit"


def _file(frame: pd.DataFrame, suffix: str) -> bytes:
    held = io.BytesIO()
    if suffix == ".csv":
        _check_cells(frame)
        frame.to_csv(held, index=False)
    else:
        frame.to_parquet(held, index=False)
    return held.getvalue()


def _check_cells(frame: pd.DataFrame) -> None:
    """Refuse labels that a spreadsheet would run: test data keeps labels as they are, without an apostrophe before them."""
    from confide.results.pages.export import shielded

    labels = [label for name in frame for label in frame[name].unique() if isinstance(label, str)]
    found = next((text for text in (*frame.columns, *labels) if shielded(text) != text), None)
    if found is not None:
        raise SchemaError(
            f"{found!r} is a formula to a spreadsheet, and a CSV file must hold the labels as they are",
            "write -o test.parquet",
        )


def _cells(schema: Schema) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in schema.names:
        facts = _column(name, schema[name])
        dates = facts["kind"] == "date"
        ends = f"{facts['low']} to {facts['high']}" if dates else _bounds(facts["low"], facts["high"])
        values = _some(facts["levels"]) if facts["levels"] else ends
        rows.append((name, facts["kind"], values, _text(facts["on_missing"]), _source(facts["provenance"])))
    return rows


def _bounds(low: float | None, high: float | None) -> str:
    """The declared bounds of a column; a release finds what is not declared."""
    if low is None or high is None:
        ends = [f"{word} {end:,.12g}" for word, end in (("from", low), ("to", high)) if end is not None]
        return " ".join([*ends, "range found"]) if ends else "range found by releases"
    return f"{low:,.12g} to {high:,.12g}"


def _some(levels: Sequence[str]) -> str:
    """The levels of a column, of many the first and how many there are."""
    if len(levels) <= _LEVELS:
        return ", ".join(levels)
    return f"{', '.join(levels[:_FIRST])}, ... ({len(levels)} levels)"


def _spreads(schema: Schema) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in schema.names:
        column: Any = schema[name]
        given = column.typical
        if given is None:
            continue
        where, own = _source(given.provenance.to_dict()), ""
        if column.kind == "categorical":
            said = ", ".join(f"{level} {share:.4g}" for level, share in zip(column.levels, given.each, strict=True))
        else:
            said = f"{given.low:.12g} to {given.high:.12g}"
            own = "" if given.own is None else f"{given.own:.4g}"
        rows.append((name, said, own, where))
    return rows


def _source(where: dict[str, str]) -> str:
    return where["kind"] + (f": {where['text']}" if where["text"] else "")


def _text(rule: str | float) -> str:
    return rule if isinstance(rule, str) else f"{rule:.12g}"


def _column(name: str, column: Any) -> dict[str, Any]:
    """The public facts of a column as plain numbers and text."""
    labels, dates, rule = column.kind == "categorical", column.kind == "date", column.on_missing
    return {
        "name": name,
        "kind": column.kind,
        "low": None if labels or not column.declared[0] else column.said(column.low) if dates else column.low,
        "high": None if labels or not column.declared[1] else column.said(column.high) if dates else column.high,
        "steps": column.steps,
        "levels": list(column.levels) if labels else None,
        "on_missing": column.said(rule) if dates and not isinstance(rule, str) else rule,
        "provenance": column.provenance.to_dict(),
        "typical": _typical(column),
    }


class _Shares(NamedTuple):
    """The typical spread of a column of levels."""

    shares: dict[str, float]
    provenance: dict[str, str]


def _typical(column: Any) -> dict[str, Any] | None:
    given = column.typical
    if given is None:
        return None
    where = given.provenance.to_dict()
    if column.kind == "categorical":
        return _Shares(dict(zip(column.levels, given.each, strict=True)), where)._asdict()
    return {"low": given.low, "high": given.high, "own": given.own, "provenance": where}
