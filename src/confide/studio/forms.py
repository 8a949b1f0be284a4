"""What forms hold: a question, a publication of many; as values, or as words of what is wrong in them; and what pages say of a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from confide import engine
from confide.ask import tests
from confide.ask.menu import PUBLICATION, TESTS, asked_in, method_of_form, named_in, privacy_of
from confide.core import Plan
from confide.errors import PlanError
from confide.methods.publication import Publication
from confide.schema import Categorical, Schema

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
    rules = {}
    for name in schema.names:
        column = schema[name]
        rule = column.on_missing
        said = str(rule) if isinstance(column, Categorical) or isinstance(rule, str) else column.said(rule)
        rules[name] = "excluded" if rule == "drop" else said
    return rules


def columns_of(schema: Schema) -> Iterator[tuple[str, str, str]]:
    """(name, kind, values) of each column."""
    for name in schema.names:
        column = schema[name]
        if isinstance(column, Categorical):
            yield name, "categorical", ", ".join(map(str, column.levels))
        elif not any(column.declared):
            yield name, column.kind, "no bounds: each release finds its own"
        else:
            yield name, column.kind, f"{column.said(column.low)} to {column.said(column.high)}"


def _whole(text: str) -> int:
    try:
        return int(text.replace(",", "").replace(" ", ""))
    except ValueError:
        raise PlanError(f"the number of records must be a whole number, got {text!r}") from None
