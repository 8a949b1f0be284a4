"""What `confide explore` offers is what the verbs accept: both are asked, for schemas of many shapes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from string import Formatter
from typing import Any

import pytest

import confide as cf
from confide.ask import menu

N, C, I = cf.Numeric, cf.Categorical, cf.Integer  # noqa: E741
SCHEMAS: dict[str, dict[str, Any]] = {
    "ratio in the order of the file": {"income": N(0, 100), "size": N(1, 5), "sex": C(["a", "b"])},
    "ratio in the other order": {"size": N(1, 5), "income": N(0, 100), "sex": C(["a", "b"])},
    "no bounds": {"income": N(), "size": N(), "sex": C(["a", "b", "c"])},
    "whole numbers": {"visits": I(0, 20), "ill": I(0, 1), "age": I(18, 90), "land": C(["n", "s", "w"])},
    "labels alone": {"a": C(["n", "s"]), "b": C(["x", "y", "z"])},
    "one number": {"x": N(0, 1)},
    "one label": {"x": C(["a", "b"])},
    "a number and a label": {"x": N(0, 9), "g": C(["a", "b"])},
}


def _fillings(one: menu.Question, schema: cf.Schema) -> Iterator[str]:
    """Every way to write columns into the patterns of a question."""
    for pattern in one.pattern.split(" | "):
        roles = list(dict.fromkeys(role for _, role, _, _ in Formatter().parse(pattern) if role is not None))
        for names in permutations(schema.names, len(roles)):
            filled = dict(zip(roles, names, strict=True))
            if "event" in filled:
                column = schema[filled["event"]]
                if not isinstance(column, cf.Categorical):
                    continue
                filled["event"] = f"{filled['event']} == {column.levels[-1]!r}"
            yield pattern.format(**filled)


@pytest.mark.parametrize("unit", ["record", cf.Unit("pid")], ids=["record", "person"])
@pytest.mark.parametrize("columns", SCHEMAS.values(), ids=SCHEMAS)
def test_what_is_offered_is_accepted_and_what_is_accepted_is_offered(columns: dict[str, Any], unit: Any) -> None:
    schema = cf.Schema(columns, unit=unit, dataset="d")
    for one in menu.questions():
        formula = one.asked_of(schema)
        if formula is not None:
            assert one.planned(formula, schema), (one.name, formula)
        else:
            accepted = [other for other in _fillings(one, schema) if one.planned(other, schema)]
            assert not accepted, (one.name, accepted[:3])
