"""Conditions on codes: what is in, what is out, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.errors import PlanError, SchemaError
from confide.schema import CodedFrame
from confide.schema.formulas.conditions import overlap, parse_predicate

SCHEMA = cf.Schema(
    {
        "age": cf.Integer(0, 100),
        "region": cf.Categorical(["N", "S", "E"]),
        "odd name": cf.Numeric(0, 10),
        "kept": cf.Numeric(0, 10, on_missing=9.0),
        "stage": cf.Categorical(["1", "2"]),
        "x": cf.Numeric(-5, 5, typical=(-1, 1)),
    }
)


def inside(text: str, **columns: list[object]) -> list[int]:
    """The numbers of the records that are in the subgroup."""
    frame = pd.DataFrame(columns).assign(number=range(len(next(iter(columns.values())))))
    schema = cf.Schema({**SCHEMA.columns, "number": cf.Integer(0, 1000)})
    return [int(v) for v in CodedFrame.of(frame, schema).where(text).present("number")]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("age >= 65", [1, 2, 4]),
        ("65 <= age", [1, 2, 4]),
        ("age > 65", [2, 4]),
        ("age > 64.5", [1, 2, 4]),
        ("age >= 64.5 & age <= 65.5", [1]),
        ("18 <= age < 66", [1, 3]),
        ("age >= 65 & region == 'N'", [1]),
        ("age >= 65 and region == 'N'", [1]),
        ("age == 18 | region == 'E'", [3, 4]),
        ("~(age >= 65) & region in ['N', 'S']", [0, 3]),
        ("not age >= 65", [0, 3]),
        ("region != 'S'", [0, 1, 4]),
        ("region not in ('S', 'E')", [0, 1]),
        ("age in [17, 18]", [0, 3]),
        ("(age >= 65 & region == 'N') | age == 17", [0, 1]),
    ],
)
def test_records_are_in_or_out_as_pandas_says(text: str, wanted: list[int]) -> None:
    columns = {"age": [17, 65, 90, 18, 66], "region": ["N", "N", "S", "S", "E"]}
    assert inside(text, **columns) == wanted
    if "not age" not in text:
        assert pd.DataFrame(columns).query(text).index.tolist() == wanted


def test_a_value_that_is_missing_puts_the_record_out_whatever_stands_beside_it() -> None:
    ages, regions = [70, None, 70, 20], ["N", "N", None, "N"]
    assert inside("age >= 65 | region == 'N'", age=ages, region=regions) == [0, 3]
    assert inside("~(age >= 65)", age=ages, region=regions) == [3]
    # after the column's own rule nothing is missing: 9 stands there
    assert inside("kept > 5", kept=[None, 1.0, 6.0]) == [0, 2]


def test_a_constant_on_the_boundary_is_coded_as_values_are() -> None:
    generator = np.random.default_rng(1)
    for value in generator.uniform(0, 10, 50).tolist():
        assert inside(f"`odd name` >= {value!r}", **{"odd name": [value]}) == [0]
        assert inside(f"`odd name` > {value!r}", **{"odd name": [value]}) == []
        assert inside(f"`odd name` == {value!r}", **{"odd name": [value]}) == [0]


def test_values_beyond_the_bounds_count_as_the_bounds() -> None:
    assert inside("age >= 65", age=[1e300, -1e300]) == [0]


def test_levels_are_found_as_the_schema_finds_labels() -> None:
    assert inside("stage == 2", stage=["1", "2"]) == inside("stage == '2'", stage=["1", "2"]) == [1]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("agee > 3", SchemaError, 'Try      "age > 3"'),
        ("region == 'n'", SchemaError, "did you mean 'N'"),
        ("age > 100", PlanError, "false for every value"),
        ("age >= 0", PlanError, "true for every value"),
        ("age == 3.5", PlanError, "false for every value"),
        ("age > 5 | age <= 5", PlanError, "all records; leave where out"),
        ("age > 5 & age < 3", PlanError, "nobody"),
        ("region > 'N'", PlanError, "orders the labels"),
        ("x == 'a'", PlanError, "finite number"),
        ("x > 1e999", PlanError, "finite number"),
        ("age == x", PlanError, "which is not a constant"),
        ("age = 5", PlanError, "equality is =="),
        ("age", PlanError, "stands alone"),
        ("f(age) > 3", PlanError, "names no column"),
        ("age + 1 > 3", PlanError, "names no column"),
        ("age in []", PlanError, "list of constants"),
        ("age is None", PlanError, "is not a known comparison"),
        ("((age > 5", PlanError, "cannot be read"),
        ("(" * 60 + "age > 5" + ")" * 60, PlanError, "brackets"),
        ("age > 5 " * 500, PlanError, "2000 characters"),
        ("  ", PlanError, "condition on columns"),
        ("age > 5\n", PlanError, "printable"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as found:
        parse_predicate(text, SCHEMA)
    assert words in str(found.value)


def test_a_share_is_guessed_from_public_facts_alone() -> None:
    assert parse_predicate("age >= 51", SCHEMA).share(SCHEMA) == pytest.approx(50 / 101)
    assert parse_predicate("age >= 51 & region == 'N'", SCHEMA).share(SCHEMA) == pytest.approx(50 / 303)
    assert parse_predicate("-1 < x <= 1", SCHEMA).share(SCHEMA) == pytest.approx(0.9545, abs=1e-3)


def test_subgroups_that_divide_the_records_are_found() -> None:
    read = [parse_predicate(f"region == {level!r}", SCHEMA) for level in "NSE"]
    assert overlap(read) == (True, True)
    assert overlap(read[:2]) == (True, False)
    assert overlap([parse_predicate("age < 30", SCHEMA), parse_predicate("age > 20", SCHEMA)]) == (False, True)


def test_equal_conditions_are_equal_however_they_are_written() -> None:
    one, other = parse_predicate("age >= 65", SCHEMA), parse_predicate(" 65<=age ", SCHEMA)
    assert one == other and one.to_list() == other.to_list()
    assert parse_predicate("age >= 66", SCHEMA) != one
