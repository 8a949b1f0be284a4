"""What forms hold: a schema's public facts, a question, a publication of many; as values, or as words of what is wrong in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confide import engine
from confide.ask import tests
from confide.ask.menu import PUBLICATION, TESTS, asked_in, method_of_form, named_in, number, privacy_of
from confide.core import Plan
from confide.errors import PlanError
from confide.methods.publication import Publication
from confide.schema import Categorical, Schema, Unit
from confide.schema.toml import column_from_settings

Form = Mapping[str, str]

# What is asked in a form of questions; it stands in the address, so that a page can be gone back to.
_ASKED = ("schema", "kind", "formula", "inference", "where", "mu", "n", "rows")
_OF_MANY = re.compile(r"(name|kind|formula|inference|where|share)[0-9]{1,2}")
_ROWS, _MOST_ROWS = 3, 40


def asked_of(given: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a question, or of a publication of many."""
    return {
        name: str(value)
        for name, value in given.items()
        if value and (name in _ASKED or (given.get("kind") == PUBLICATION and _OF_MANY.fullmatch(name)))
    }


def rows_of(form: Form) -> int:
    """How many rows of questions a form of many shows: those that it has, and as many as were asked for."""
    given = form.get("rows", "")
    filled = [row for row, _ in asked_in(form)]
    return min(
        max(_ROWS, int(given) if re.fullmatch("[0-9]{1,3}", given) else 0, *(row + 1 for row in filled), 0), _MOST_ROWS
    )


def plan_of(form: Form, schema: Schema) -> Plan:
    """The plan that a form asks for; of a test with its power at the number of records that the form guesses."""
    size, privacy = form.get("n", "").strip(), privacy_of(form)
    n = _whole(size) if size else None
    kind = form.get("kind", "")
    if kind in TESTS and form.get("formula", "").strip():
        where = form.get("where", "").strip()
        settings = {"where": where} if where else {}
        return tests.plan(TESTS[kind], form["formula"].strip(), schema, privacy, n=n, settings=settings)
    made = method_of_form(form)
    if isinstance(made, Publication):
        for name, own in named_in(form).items():
            if own["kind"] in TESTS:
                tests.check_groups(TESTS[own["kind"]], made.methods[name], schema)
    return engine.plan(made, schema, privacy, n=n)


def rules_of(schema: Schema) -> dict[str, str]:
    """What a missing value of each column, and a label that is no level, counts as."""
    rules = {name: schema[name].on_missing for name in schema.names}
    return {
        name: "excluded" if rule == "drop" else f"{rule:g}" if isinstance(rule, float) else str(rule)
        for name, rule in rules.items()
    }


def columns_of(schema: Schema) -> Iterator[tuple[str, str, str]]:
    """(name, kind, values) of each column."""
    for name in schema.names:
        column = schema[name]
        if isinstance(column, Categorical):
            yield name, "categorical", ", ".join(map(str, column.levels))
        else:
            yield name, type(column).__name__.lower(), f"{column.low:g} to {column.high:g}"


def schema_of(fields: Sequence[tuple[str, str, str]], form: Form) -> Schema:
    """The schema that a filled form describes. fields: of the records, in the form's order."""
    columns: dict[str, Any] = {}
    for at, (name, found, _) in enumerate(fields):
        own = {key: form.get(f"{key}{at}", "").strip() for key in ("kind", "low", "high", "levels", "missing", "from")}
        if not own["kind"]:
            # bounds of a boolean stand in the form from the beginning
            if any(own[key] for key in ("levels", "from", *(() if found == "boolean" else ("low", "high")))):
                raise PlanError(f"column {name!r}: choose its kind, or clear its fields to leave it out")
            continue
        table: dict[str, Any] = {"kind": own["kind"], "on_missing": _rule(own["missing"], name, own["kind"])}
        if own["kind"] == "categorical":
            table["levels"] = [one.strip() for one in own["levels"].split(",") if one.strip()]
        else:
            table |= {end: _bound(own[end], f"column {name!r}: {end}", own["kind"]) for end in ("low", "high")}
        if not own["from"]:
            raise PlanError(
                f"column {name!r}: say where its bounds or levels are known from (an answer scale, a law, a yearbook)"
            )
        columns[name] = column_from_settings(name, {**table, "provenance": {"kind": "public", "text": own["from"]}})
    unit: Any = form.get("unit", "").strip()
    if not unit:
        raise PlanError(
            "say who is protected: one row, or one person with all rows, by the column that tells persons apart"
        )
    return Schema(
        columns, dataset=form.get("dataset", "").strip() or None, unit="record" if unit == "record" else Unit(unit)
    )


def _rule(text: str, name: str, kind: str) -> str | float | int:
    """What a missing value counts as, and a label that is no level: nothing, a level, a number within the bounds."""
    if kind == "categorical" or text in ("", "drop", "midpoint"):
        return text or "drop"
    return _bound(text, f"column {name!r}: what a missing value counts as", kind)


def _bound(text: str, what: str, kind: str) -> float | int:
    value = number(text, what)
    return int(value) if kind == "integer" and value == int(value) else value


def _whole(text: str) -> int:
    try:
        return int(text.replace(",", "").replace(" ", ""))
    except ValueError:
        raise PlanError(f"the number of records must be a whole number, got {text!r}") from None
