"""The form of a schema: one row a column, and the facts of the whole file; as a schema, or as words of what is wrong in it.

What stands in it beforehand is metadata: names, types, variable labels, value labels and codes of missing values. No record is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from confide.ask.menu import number
from confide.ask.typed import stated_levels, typed_bounds, typed_codes, typed_format, typed_levels
from confide.errors import ConfideError, PlanError
from confide.schema import Schema, Unit
from confide.schema.draft import Field
from confide.schema.formulas.names import bare
from confide.schema.layout import FileLayout
from confide.schema.missing import code_text
from confide.schema.toml import UNFILLED, column_from_settings, definition
from confide.studio.forms import Form

_T = TypeVar("_T")

KINDS = {"numeric": "number", "integer": "whole number", "date": "date", "categorical": "labels"}
_ROW = ("kind", "values", "codes", "missing", "from")
#: Entries of ``[file]`` that the form asks for, with the words and the example of each.
LAYOUT = {
    "delimiter": ("Delimiter", ","),
    "decimal": ("Decimal mark", "."),
    "thousands": ("Thousands", "none"),
    "encoding": ("Encoding", "utf-8"),
    "skip": ("Lines above header", "0"),
    "sheet": ("Sheet", "its name or number"),
    "not_records": ("Lines to ignore", "Total, Sum"),
}
_EXAMPLES = {
    "numeric": "18-90, or empty",
    "integer": "18-90",
    "date": "1900-01-01 to 2006-12-31",
    "categorical": "male, female or 1=male, 2=female",
}
# More problems than these are told by the next answer.
_TOLD = 5


@dataclass(frozen=True)
class Row:
    """A column as the form shows it. begun: values and source as they stood in it; stated: value labels of the file as one types them."""

    at: int
    name: str
    type: str
    label: str
    kind: str
    values: str
    codes: str
    missing: str
    source: str
    example: str
    begun: tuple[str, str]
    stated: str

    @classmethod
    def of(cls, at: int, own: Field, form: Form) -> Row:
        kind = {"boolean": "integer", UNFILLED: ""}.get(own.kind, own.kind)
        stated = stated_levels(own.labels, own.missing) if own.kind == "categorical" and len(own.labels) > 1 else ""
        begun = {
            "kind": kind,
            "values": "0-1" if own.kind == "boolean" else stated,
            "codes": ", ".join(map(code_text, own.missing)),
            "from": "type of the column" if own.kind == "boolean" else "",
        }
        given = {key: form.get(f"{key}{at}", begun.get(key, "")) for key in _ROW}
        return cls(
            at=at,
            name=own.name,
            type=_type(own),
            label=" ".join(own.label.split()),
            kind=given["kind"],
            values=given["values"],
            codes=given["codes"],
            missing=given["missing"],
            source=given["from"],
            example=_EXAMPLES.get(given["kind"], "18-90, or male, female"),
            begun=(begun["values"], begun["from"]),
            stated=stated,
        )


def rows(fields: Sequence[Field], form: Form) -> list[Row]:
    """The rows of the form, with what was typed."""
    own = placed(fields, form)
    return [Row.of(at, field, own) for at, field in enumerate(fields)]


def placed(fields: Sequence[Field], form: Form) -> dict[str, str]:
    """The form with the rows at the places of the fields: another layout, or another file, may have them elsewhere.

    A form that does not name its rows has them in the fields' order.
    """
    named = {value: key.removeprefix("column") for key, value in form.items() if re.fullmatch("column[0-9]{1,4}", key)}
    if not named:
        return dict(form)
    own = {key: value for key, value in form.items() if not re.fullmatch(f"({'|'.join(_ROW)}|column)[0-9]{{1,4}}", key)}
    for at, field in enumerate(fields):
        old = named.get(field.name)
        own |= {f"{key}{at}": form[f"{key}{old}"] for key in _ROW if old is not None and f"{key}{old}" in form}
    return own


def layout_of(form: Form) -> FileLayout:
    """How the file is laid out, by the form. Raises `SchemaError`, or `PlanError` for text instead of a number."""
    given = {name: form.get(f"file_{name}", "").strip() for name in LAYOUT}
    entries: dict[str, Any] = {name: text for name, text in given.items() if text}
    if form.get("file_thousands") == " ":
        entries["thousands"] = " "
    if given["delimiter"].lower() in ("tab", "\\t") or form.get("file_delimiter") == "\t":
        entries["delimiter"] = "\t"
    if given["skip"]:
        lines = number(given["skip"], "the number of lines above the header")
        entries["skip"] = int(lines) if lines == int(lines) else lines
    if given["not_records"]:
        entries["not_records"] = _listed(given["not_records"])
    if given["sheet"].isdecimal():
        entries["sheet"] = int(given["sheet"])
    return FileLayout().with_entries(entries)


def layout_shown(layout: FileLayout, form: Form) -> dict[str, str]:
    """What the fields of the layout hold: what was typed, else what was found."""
    settings = layout.to_settings()
    texts = {name: settings.get(name, "") for name in LAYOUT}
    texts["not_records"] = ", ".join(texts["not_records"])
    texts["delimiter"] = "tab" if texts["delimiter"] == "\t" else texts["delimiter"]
    return {name: form.get(f"file_{name}") or str(text) for name, text in texts.items()}


def schema_of(fields: Sequence[Field], layout: FileLayout, form: Form, file: str | None = None) -> Schema:
    """The schema that a filled form describes; all that is wrong in it is told at once.

    fields: of the records; layout: in which they were found; file: the name of the records.
    """
    problems: list[str] = []

    def kept(made: Callable[[], _T]) -> _T | None:
        try:
            return made()
        except ConfideError as error:
            problems.append(str(error))
            return None

    unit: Any = form.get("unit", "").strip()
    if not unit:
        problems.append(
            "say who is protected: one row, or one person with all rows, by the column that tells persons apart"
        )
    columns: dict[str, Any] = {}
    for row in rows(fields, form):
        # the id of persons is read as one, whatever its type
        if row.name == unit:
            continue
        made = kept(lambda row=row: _column(row, form))  # type: ignore[misc]
        if made is not None:
            columns[row.name] = made
    missing = kept(lambda: typed_codes(form.get("codes", "")))
    derived = kept(lambda: _derived(form.get("derived", "")))
    if problems:
        raise PlanError("\n".join([*problems[:_TOLD], *(["and more below"] if len(problems) > _TOLD else [])]))
    if file is not None:
        layout = layout.with_entries({"name": file})
    dataset = form.get("dataset", "").strip() or None
    protects = "record" if unit == "record" else Unit(unit)
    return Schema(columns, dataset=dataset, unit=protects, file=layout, missing=missing or None, derive=derived or None)


def _column(row: Row, form: Form) -> Any:
    """A column of the schema; None where the form has no kind for it."""
    values, source = row.values.strip(), row.source.strip()
    if not row.kind:
        if values not in ("", row.begun[0]) or source not in ("", row.begun[1]):
            raise PlanError(f"column {row.name!r}: choose its kind, or clear its fields to leave it out")
        return None
    if row.kind not in KINDS:
        raise PlanError(f"column {row.name!r}: choose one of the kinds in the list")
    table: dict[str, Any] = {"kind": row.kind}
    source = source or form.get("source", "").strip()
    try:
        table |= _values(row.kind, values, form)
        if row.codes.strip():
            table["missing"] = [] if row.codes.strip() == "-" else typed_codes(row.codes)
        table["on_missing"] = _rule(row.missing.strip(), row.kind)
    except ConfideError as error:
        raise PlanError(f"column {row.name!r}: {error}") from None
    if values and not source:
        raise PlanError(
            f"column {row.name!r}: say where its bounds or levels are known from (an answer scale, a law, a yearbook)"
        )
    if row.stated and values == row.stated and form.get("codebook") != "yes":
        raise PlanError(
            f"column {row.name!r}: these are the labels of the file, and some programs make them from the records",
            "compare them with the codebook, then tick the box below the table",
        )
    return column_from_settings(row.name, {**table, "provenance": {"kind": "public", "text": source}})


def _values(kind: str, text: str, form: Form) -> dict[str, Any]:
    """The entries for bounds, or levels. A number without bounds has kind "numeric": each release finds its range."""
    if kind == "categorical":
        levels = typed_levels(text)
        if not levels["levels"]:
            raise PlanError("list its levels, such as male, female or 1=male, 2=female, or leave it out")
        return levels
    if kind == "date":
        if not text:
            raise PlanError("give its first and last day, such as 1900-01-01 to 2006-12-31, or leave it out")
        written = form.get("dates", "").strip()
        return typed_bounds(text, kind) | (typed_format(written) if written else {})
    return typed_bounds(text, kind) if text else {"kind": "numeric"}


def _derived(text: str) -> dict[str, Any]:
    """The entries of ``[derive]``, one a line: a name, = and its definition, as text or as a table of TOML."""
    found: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, sign, given = (part.strip() for part in line.partition("="))
        try:
            found[bare(name)] = definition(given) if given.startswith(("{", '"')) else given
        except ValueError:
            given = ""
        if not (name and sign and given):
            raise PlanError(
                f"{line!r} does not define a column", "write one a line, as in age = years_between(birth, '2024-07-01')"
            )
    return found


def _rule(text: str, kind: str) -> str | float | int:
    """What a missing value or an undeclared label counts as: nothing, a level, a value within the bounds."""
    if kind in ("categorical", "date") or text in ("", "drop", "midpoint"):
        return text or "drop"
    value = number(text, "what a missing value counts as")
    return int(value) if kind == "integer" and value == int(value) else value


def _type(own: Field) -> str:
    """The physical type, where the file states it."""
    name, mark, more = own.note.partition(" in the data")
    if not own.kind:
        return f"cannot be used: {own.note}"
    return f"{name}{more if more.startswith(', shown') else ''}" if mark else ""


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]
