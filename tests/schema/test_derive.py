"""Derived columns: what each function gives, its bounds, what is refused, files; and what they are in the rest of the package."""

from __future__ import annotations

import datetime
import pickle
from typing import Any

import numpy as np
import pytest
from dateutil.relativedelta import relativedelta
from tests.messages import refuses
from tests.sources.records import Plain

import confide as cf
from confide.errors import ConfideError, PlanError, SchemaError
from confide.schema import Categorical, CodedFrame, Integer, ModelMatrix, Numeric, Provenance
from confide.schema.derive import DEEPEST, MOST, named_in
from confide.schema.formulas.expression import _REFUSED, refusal
from confide.schema.schema import Schema
from confide.testing import check_method
from confide.testing.test_data import codes_of

EPOCH = datetime.date(1970, 1, 1).toordinal()
COLUMNS: dict[str, Any] = {
    "birth": cf.Date("1900-01-01", "2006-12-31"),
    "admitted": cf.Date("2015-01-01", "2024-12-31"),
    "discharged": cf.Date("2015-01-01", "2025-12-31"),
    "income": Numeric(0, 9_000),
    "k": Integer(0, 5),
    "m": Integer(1, 4),
    "g": Categorical(["01", "02", "03", "04"]),
    "odd name": Numeric(1, 2),
    "open": Numeric(),
}
DERIVE: dict[str, Any] = {
    "agegroup": {"cut": "age", "at": [18, 30, 65], "labels": ["0-17", "18-29", "30-64", "65+"]},
    "age": "years_between(birth, '2024-07-01')",
    "land": {"recode": "g", "to": {"north": ["01", "02"], "south": ["03"]}, "else": "missing"},
    "stay": "days_between(admitted, discharged)",
    "month": "month(admitted)",
    "weekday": {"weekday": "admitted", "levels": True},
    "log_income": {"log": "income", "at_least": 100},
    "rich": {"if": "income >= 5000 & land == 'north'"},
    "persons": "k + m",
    "each": "income / persons",
    "late": {"cut": "admitted", "at": ["2020-01-01"], "labels": ["before", "after"]},
}


def derived(definition: Any, **columns: Any) -> Schema:
    return Schema({**COLUMNS, **columns}, derive={"x": definition})


def coded(schema: Schema, frame: dict[str, Any]) -> CodedFrame:
    return CodedFrame.of(frame, schema)


def values(definition: Any, frame: dict[str, Any], **columns: Any) -> list[Any]:
    schema = derived(definition, **columns)
    return list(schema["x"].decode(coded(schema, frame).codes["x"]).tolist())


def bounds(definition: Any, **columns: Any) -> tuple[float, float]:
    column: Any = derived(definition, **columns)["x"]
    return column.low, column.high


# dates ---------------------------------------------------------------------------------------------------------------


def test_ages_on_birthdays() -> None:
    births = ["2000-07-01", "2000-07-02", "2000-06-30", "1999-12-31", "2000-02-29"]
    assert values("years_between(birth, '2024-07-01')", {"birth": births}) == [24.0, 23.0, 24.0, 24.0, 24.0]


def test_29_february_counts_as_1_march_in_other_years() -> None:
    for date, wanted in (
        ("2001-02-28", 0),
        ("2001-03-01", 1),
        ("2004-02-28", 3),
        ("2004-02-29", 4),
        ("2100-02-28", 99),
        ("2100-03-01", 100),
    ):
        assert values(f"years_between(birth, '{date}')", {"birth": ["2000-02-29"]}) == [wanted]


def test_years_agree_with_dateutil_on_many_dates() -> None:
    generator = np.random.default_rng(3)
    low = datetime.date(1904, 1, 1).toordinal()
    starts = [datetime.date.fromordinal(int(one)) for one in low + generator.integers(0, 37_000, 400)]
    ends = [one + relativedelta(years=int(more), days=int(off)) for one, more, off in zip(
        starts, generator.integers(0, 20, 400), generator.integers(-2, 3, 400), strict=True
    )]  # fmt: skip
    columns = {"birth": cf.Date("1900-01-01", "2049-12-31"), "admitted": cf.Date("1900-01-01", "2049-12-31")}
    found = values("years_between(birth, admitted)", {"birth": starts, "admitted": ends}, **columns)

    def years(start: datetime.date, end: datetime.date) -> int:
        # the largest whole number of years that can be added; 29 February is 1 March where there is none
        return max(k for k in range(-2, 30) if _moved(start, k) <= end)

    assert found == [years(a, b) for a, b in zip(starts, ends, strict=True)]


def _moved(start: datetime.date, years: int) -> datetime.date:
    try:
        return start.replace(year=start.year + years)
    except ValueError:
        return datetime.date(start.year + years, 3, 1)


def test_days_and_years_may_be_negative() -> None:
    both = {"admitted": ["2020-03-01", "2020-03-01"], "discharged": ["2020-03-04", "2020-02-28"]}
    assert values("days_between(admitted, discharged)", both) == [3.0, -2.0]
    assert values("years_between(admitted, discharged)", both) == [0.0, -1.0]


def test_parts_of_dates() -> None:
    frame = {"admitted": ["2024-02-29", "2015-12-31"]}
    for part, wanted in (
        ("year", [2024.0, 2015.0]),
        ("month", [2.0, 12.0]),
        ("quarter", [1.0, 4.0]),
        ("weekday", [4.0, 4.0]),
    ):
        assert values(f"{part}(admitted)", frame) == wanted
        assert values({part: "admitted"}, frame) == wanted
        assert values({part: "admitted", "levels": True}, frame) == [str(int(one)) for one in wanted]
        assert values(f"{part}(admitted, levels=true)", frame) == [str(int(one)) for one in wanted]
    days = [datetime.date(2024, 7, 1) + datetime.timedelta(days=k) for k in range(7)]
    assert values("weekday(admitted)", {"admitted": days}) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_bounds_of_dates_come_from_the_corners() -> None:
    assert bounds("years_between(birth, '2024-07-01')") == (17, 124)
    assert bounds("days_between(admitted, discharged)") == (-3652, 4017)
    assert bounds("years_between(birth, admitted)") == (8, 124)
    assert bounds("year(admitted)") == (2015, 2024)
    assert bounds("month(admitted)") == (1, 12)
    assert bounds("days_between('2024-12-31', admitted)") == (-3652, 0)


# numbers -------------------------------------------------------------------------------------------------------------


def test_whole_results_are_exact() -> None:
    schema = derived("k * m - abs(k - 3)")
    assert isinstance(schema["x"], Integer)
    assert values("k + m", {"k": [0, 5, 3], "m": [1, 4, 2]}) == [1.0, 9.0, 5.0]
    assert isinstance(derived("k / m")["x"], Numeric)
    assert isinstance(derived("k * 0.5")["x"], Numeric)
    assert isinstance(derived("k ** 0.5")["x"], Numeric)
    # more values than a grid of whole numbers has
    assert isinstance(derived("k ** 12")["x"], Numeric)


def test_other_results_lie_on_the_grid_of_the_column() -> None:
    column: Any = derived({"log": "income", "at_least": 100})["x"]
    (found,) = values({"log": "income", "at_least": 100}, {"income": [5_000.0]})
    assert abs(found - np.log(5_000)) < 2 / column.scale
    assert column.low <= np.log(100) <= np.nextafter(column.low, np.inf) + 1e-12
    assert values({"log": "income", "at_least": 100}, {"income": [0.0, 99.0]}) == [column.low, column.low]


def test_at_least_of_each_function() -> None:
    assert bounds({"sqrt": "income - 50", "at_least": 4}) == pytest.approx((2, np.sqrt(8_950)))
    assert bounds({"log1p": "income"}) == pytest.approx((0, np.log1p(9_000)))
    assert bounds({"abs": "k - 3"}) == (0, 3)


def test_names_in_backticks_and_dates_in_arithmetic() -> None:
    assert bounds("`odd name` * 2") == (2, 4)
    assert bounds("days_between(birth, admitted) / 365.25")[1] == pytest.approx(125, abs=0.1)
    assert values({"log": "`odd name`"}, {"odd name": [1.0]}) == [pytest.approx(0, abs=1e-5)]


# labels --------------------------------------------------------------------------------------------------------------


def test_cuts_are_closed_on_the_left() -> None:
    labels = ["a", "b", "c"]
    assert values({"cut": "k", "at": [2, 4], "labels": labels}, {"k": [0, 1, 2, 3, 4, 5]}) == list("aabbcc")
    # in whole numbers the first that is not below the point
    assert values({"cut": "k", "at": [1.5, 4.5], "labels": labels}, {"k": [1, 2, 4, 5]}) == list("abbc")
    assert values(
        {"cut": "income", "at": [100, 200], "labels": labels}, {"income": [99.9, 100.0, 199.9, 200.0]}
    ) == list("abbc")
    dates = {"cut": "admitted", "at": ["2020-01-01"], "labels": ["a", "b"]}
    assert values(dates, {"admitted": ["2019-12-31", "2020-01-01"]}) == ["a", "b"]


def test_recodes() -> None:
    to = {"north": ["01", "02"], "south": ["03"]}
    frame = {"g": ["01", "02", "03", "04", "05"]}
    assert values({"recode": "g", "to": to, "else": "missing"}, frame) == ["north", "north", "south", None, None]
    assert values({"recode": "g", "to": to, "else": "east"}, frame) == ["north", "north", "south", "east", None]
    assert values({"recode": "g", "to": to, "else": "north"}, frame) == ["north", "north", "south", "north", None]
    whole = {"a": ["01", "02"], "b": ["03", "04"]}
    assert derived({"recode": "g", "to": whole})["x"].levels == ("a", "b")  # type: ignore[union-attr]


def test_conditions() -> None:
    frame = {"income": [5_000.0, 4_999.0, None, 9_000.0], "k": [1, 1, 1, None]}
    assert values({"if": "income >= 5000 & k == 1"}, frame) == ["yes", "no", None, None]


# bounds, missing values and chains -------------------------------------------------------------------------------------


def test_inputs_are_moved_to_their_bounds_first() -> None:
    # a fault would take -50 or 100,000 and leave the bounds of the derived column
    assert values("income - 4500", {"income": [-50.0, 100_000.0]}) == [-4_500.0, 4_500.0]
    assert values({"cut": "k", "at": [3], "labels": ["a", "b"]}, {"k": [-7, 99]}) == ["a", "b"]
    assert values("years_between(birth, '2024-07-01')", {"birth": ["1850-01-01", "2024-01-01"]}) == [124.0, 17.0]
    # abs of what was read would be 50
    assert values({"abs": "income"}, {"income": [-50.0]}) == [0.0]


def test_on_missing_of_an_input_comes_first() -> None:
    given = {"income": Numeric(0, 9_000, on_missing=300)}
    column: Any = derived("income * 2", **given)["x"]
    assert values("income * 2", {"income": [None, 1.0]}, **given) == [
        pytest.approx(600, abs=0.01),
        pytest.approx(2, abs=0.01),
    ]
    assert values({"if": "income == 300"}, {"income": [None]}, **given) == ["yes"]
    # nothing is ever dropped, and methods that need that know it
    assert column.on_missing != "drop"
    assert derived("income * 2")["x"].on_missing == "drop"
    lost = {"recode": "g", "to": {"a": ["01"], "b": ["02"]}, "else": "missing"}
    assert derived(lost, g=Categorical(["01", "02", "03"], on_missing="01"))["x"].on_missing == "drop"


def test_codes_of_missing_values_come_before_all() -> None:
    schema = Schema({"k": Integer(0, 5, missing=[5])}, derive={"x": "k + 1"})
    source = cf.read({"k": [5, 4]}, schema)
    assert codes_of(source, Plain(("x",)))[0].tolist() == [-1.0, 4.0]


def test_derivations_of_derivations_in_any_order() -> None:
    schema = Schema(COLUMNS, derive=DERIVE)
    assert schema.names == (*COLUMNS, *DERIVE)
    assert schema.in_data == tuple(COLUMNS)
    assert schema.behind(["agegroup", "rich"]) == ("birth", "income", "g")
    found = coded(schema, {"birth": ["2000-01-01"], "income": [6_000.0], "g": ["02"]})
    assert (found["agegroup"][0], found["rich"][0], found["age"][0]) == ("18-29", "yes", 24.0)
    backwards = Schema(COLUMNS, derive=dict(reversed(DERIVE.items())))
    assert all(backwards[name] == schema[name] for name in DERIVE)


def test_chains_have_an_end() -> None:
    chain = {f"c{at}": f"c{at - 1} + 1" if at else "k + 1" for at in range(DEEPEST)}
    assert Schema(COLUMNS, derive=chain)[f"c{DEEPEST - 1}"].high == 5 + DEEPEST  # type: ignore[union-attr]
    with refuses(SchemaError):
        Schema(COLUMNS, derive={**chain, f"c{DEEPEST}": f"c{DEEPEST - 1} + 1"})
    many = {f"c{at}": "k + 1" for at in range(MOST)}
    assert len(Schema(COLUMNS, derive=many).derive) == MOST
    with refuses(SchemaError):
        Schema(COLUMNS, derive={**many, "more": "k + 1"})
    for circle in ({"a": "b + 1", "b": "a + 1"}, {"a": "a + 1"}, {"a": "b + 1", "b": "c + 1", "c": "b + k"}):
        with refuses(SchemaError):
            Schema(COLUMNS, derive=circle)


def test_bounds_of_private_origin_stay_private() -> None:
    where = Provenance("private", "release 1")
    assert derived("income * 2", income=Numeric(0, 9, provenance=where))["x"].provenance.kind == "private"
    assert derived("income * 2")["x"].provenance == Provenance("public", "derived: income * 2")


# what is refused -------------------------------------------------------------------------------------------------------

WRONG: list[Any] = [
    # of other records
    *(f"{name}(income)" for name in ("mean", "rank", "quantile", "scale", "lag", "cumsum", "count", "first", "last",
    "max", "std")),
    "income - mean(income)",
    {"mean": "income"},
    {"rank": "income"},
    # not the same in each run, other data, text, code
    "today()", "years_between(birth, today())", "random()", "row_number()", "join(g)", "lower(g)", "regex(g)",
    "__import__('os')", "income.__class__", "(lambda: 1)()", "[income]",
    "income if k else m", lambda record: 1, 5, None, [], {},
    # no bounds, or not defined for all values
    "log(income)", "sqrt(income - 5)", "1 / k", "income / k", "log1p(income - 1)", "k ** -1", "(income - 1) ** 0.5",
    "exp(income)",
    {"log": "income"}, {"log": "income", "at_least": -1}, {"log": "income", "at_least": "1"},
    {"log": "income", "at_least": float("nan")},
    "open * 2", {"if": "open > 3"}, {"cut": "open", "at": [5], "labels": ["a", "b"]},
    # one value, or nothing new
    "k * 0", "3 + 4", "income", "birth", "k * 0 + 2",
    {"if": "income >= 0"}, {"if": "income > 99999"},
    # wrong kinds
    "birth - admitted", "g + 1", "income >= 5", "year(income)", {"abs": "birth"}, {"abs": "income", "at_least": 1},
    {"log": "g"}, {"cut": "g", "at": [1], "labels": ["a", "b"]},
    "years_between(birth)", "years_between(birth, '2024-13-01')", "years_between(birth, 2024)",
    "years_between('2000-01-01', '2001-01-01')",
    "years_between(income, '2024-01-01')", "month(admitted, 3)", "month(admitted, levels=5)", "month('2024-01-01')",
    {"month": "admitted", "levels": 1},
    "cut(income, 5)", "recode(g)", {"recode": "k", "to": {"a": [1], "b": [2]}},
    # names
    "nobody * 2", "pid * 1", {"log": "pid"},
    {"recode": "nobody", "to": {}}, "x", "", "   ", "a\nb", "k +", "k" * 3_000, {"log": 3},
    # tables
    {"foo": "income"}, {"cut": "income"}, {"cut": "income", "at": [], "labels": []},
    {"cut": "income", "at": [5, 5], "labels": ["a", "b", "c"]},
    {"cut": "income", "at": [5], "labels": ["a"]}, {"cut": "income", "at": [5], "labels": ["a", "a"]},
    {"cut": "income", "at": [5], "labels": "ab"},
    {"cut": "income", "at": [-5], "labels": ["a", "b"]}, {"cut": "income", "at": [0], "labels": ["a", "b"]},
    {"cut": "income", "at": [9_001], "labels": ["a", "b"]},
    {"cut": "income", "at": ["5"], "labels": ["a", "b"]}, {"cut": "income", "att": [5], "labels": ["a", "b"]},
    {"cut": "k", "at": [1.2, 1.5], "labels": ["a", "b", "c"]},
    {"cut": "income", "at": 5, "labels": ["a", "b"]}, {"cut": "birth", "at": [1990], "labels": ["a", "b"]},
    {"cut": "income", "log": "income"},
    {"recode": "g"}, {"recode": "g", "to": {}}, {"recode": "g", "to": {"a": ["01"], "b": ["02"]}},
    {"recode": "g", "to": {"a": ["01", "02", "03", "04"]}},
    {"recode": "g", "to": {"a": ["01"], "b": ["09"]}, "else": "missing"},
    {"recode": "g", "to": {"a": ["01"], "b": ["01"]}, "else": "missing"},
    {"recode": "g", "to": {"a": ["01", "02"], "b": ["03", "04"]}, "else": "c"},
    {"recode": "g", "to": {"missing": ["01"], "b": ["02"]}, "else": "missing"},
    {"recode": "g", "to": {"a": 5, "b": None}}, {"recode": "g", "to": ["a"]},
    "(" * 300 + "income" + ")" * 300, "-" * 3_000 + "income", "k " + "+ k" * 3_000, "k ** 99",
]  # fmt: skip


@pytest.mark.parametrize("definition", WRONG, ids=range(len(WRONG)))
def test_what_is_no_function_of_one_record_with_bounds_is_refused(definition: Any) -> None:
    with refuses(SchemaError) as caught:
        Schema(COLUMNS, unit=cf.Unit("pid"), derive={"x": definition})
    assert len(str(caught.value)) < 3_000


def test_names_that_are_refused() -> None:
    for derive in (
        {"income": "k * 2"},
        {"`": "k * 2"},
        {"": "k * 2"},
        {5: "k * 2"},
        {"\ufb01": "k * 2", "fi": "k * 3"},
        ["x"],
        "x",
    ):
        with refuses(SchemaError):
            Schema(COLUMNS, derive=derive)  # type: ignore[arg-type]
    with refuses(SchemaError):
        Schema(COLUMNS, unit=cf.Unit("x"), derive={"x": "k * 2"})
    with refuses(SchemaError):
        Schema(COLUMNS, cluster=cf.Clusters("school", size=9), derive={"x": "school * 2"})


def test_every_refusal_says_what_to_write() -> None:
    for name in (*_REFUSED, "mean", "np.median", "today"):
        assert ";" in refusal(name) or "write" in refusal(name), name
    assert refusal("foo") == ""


# files and digests -----------------------------------------------------------------------------------------------------


def test_schemas_are_read_back_to_the_bit() -> None:
    schema = Schema(COLUMNS, dataset="d", derive=DERIVE)
    for again in (
        Schema.from_toml(schema.to_toml()),
        Schema.from_dict(schema.to_dict()),
        pickle.loads(pickle.dumps(schema)),
    ):
        assert again == schema
        assert again.digest == schema.digest
        assert again.names == schema.names
        assert dict(again.columns) == dict(schema.columns)
    assert "[derive]" in schema.to_toml()
    assert "agegroup" in repr(schema)


def test_definitions_are_in_the_digest_and_nothing_is_where_there_are_none() -> None:
    plain = Schema(COLUMNS)
    assert "derive" not in plain.to_dict()
    assert Schema(COLUMNS, derive={}).digest == plain.digest
    digests = {
        derived(one).digest
        for one in DERIVE.values()
        if "age" not in str(one) and "land" not in str(one) and "persons" not in str(one)
    }
    assert len(digests) == 8
    # however it is spelled
    assert derived("  k+m ").digest == derived("k + m").digest
    assert derived("month( admitted )").digest == derived({"month": "admitted"}).digest
    assert (
        derived({"cut": "k", "at": [2.0], "labels": ["a", "b"]}).digest
        == derived({"cut": "k", "at": [2], "labels": ["a", "b"]}).digest
    )
    # the order of levels is the order of the indicators
    one, other = (
        {"recode": "g", "to": to, "else": "missing"} for to in ({"a": ["01"], "b": ["02"]}, {"b": ["02"], "a": ["01"]})
    )
    assert derived(one).digest != derived(other).digest


def test_damaged_dictionaries_are_refused() -> None:
    good = Schema(COLUMNS, derive=DERIVE).to_dict()
    for damage in ([["x", "]"]], [["x"]], "x", [["x", '"mean(income)"']], [["income", '"k + 1"']], [[5, '"k + 1"']]):
        with pytest.raises(ConfideError):
            Schema.from_dict({**good, "derive": damage})


def test_facts_about_other_columns() -> None:
    schema = Schema(
        {"income": Numeric(0, 9_000), "z": Numeric(0, 1)}, derive={"twice": "income * 2", "four": "twice * 2"}
    )
    # ranges that were found: the others are what they were
    ranged = schema.with_columns({**schema.columns, "twice": Numeric(10, 500)})
    assert (list(ranged.derive), ranged.names) == ([], schema.names)
    assert (ranged["twice"].high, ranged["four"].high) == (500, 36_000)  # type: ignore[union-attr]
    assert schema.with_columns({**schema.columns, "z": Numeric(0, 2)}).derive.keys() == schema.derive.keys()
    assert schema.with_columns({**schema.columns, "income": Numeric(0, 5)})["twice"] == schema["twice"]
    # a user's schema with other bounds
    assert schema.with_data_columns({"income": Numeric(0, 5)})["four"].high == 20  # type: ignore[union-attr]
    assert schema.with_terms({"t": (0.0, 1.0)}).derive == schema.derive
    assert schema.with_file({"decimal": ","})["four"] == schema["four"]
    assert schema.bare == schema
    assert schema.closed is schema


# in the rest -----------------------------------------------------------------------------------------------------------


def test_a_sample_has_what_the_data_have() -> None:
    schema = Schema({name: column for name, column in COLUMNS.items() if name != "open"}, derive=DERIVE)
    frame = schema.sample(200, seed=1)
    assert tuple(frame.columns) == schema.in_data
    assert len(coded(schema, {name: frame[name] for name in frame})["agegroup"]) == 200


def test_formulas_use_them_like_others() -> None:
    schema = Schema(COLUMNS, derive=DERIVE)
    design = ModelMatrix.of("log_income ~ age + agegroup + I(age ** 2) + land:persons", schema)
    assert "agegroup[T.18-29]" in design.names
    # predictions derive from what the frame has, or take it as it is
    public = {"birth": ["2000-01-01"], "g": ["01"], "k": [1], "m": [1]}
    assert design.matrix(public)[0, design.names.index("age")] == 24.0
    assert design.matrix({**public, "age": [50.0]})[0, design.names.index("age")] == 50.0
    with refuses(PlanError):
        design.matrix({"birth": ["2000-01-01"]})


def test_what_a_question_names() -> None:
    schema = Schema(COLUMNS, derive=DERIVE)
    assert [own.name for own in named_in(schema, ({"formula": "income ~ agegroup", "k": 5}, "rich == 'yes'"))] == [
        "agegroup", "age", "land", "rich",
    ]  # fmt: skip


def test_summaries_show_definitions() -> None:
    schema = Schema({name: column for name, column in COLUMNS.items() if name != "open"}, derive=DERIVE)
    asked = {"privacy": cf.GDP(3.0), "ledger": None, "noise": cf.noise.SimulatedNoise(1), "inference": "dataset"}
    result = cf.tables.means("age ~ late", cf.read(schema.sample(2_000, seed=1), schema), **asked)
    assert "years_between(birth, '2024-07-01')" in result.summary()
    assert "agegroup" not in result.summary(verbose=True)
    plain = cf.tables.means("income ~ g", cf.read(schema.sample(2_000, seed=1), schema), **asked)
    assert "Derived" not in plain.summary(verbose=True)


def test_one_of_each_kind_goes_through_the_contract() -> None:
    columns = {name: COLUMNS[name] for name in ("birth", "admitted", "income", "g", "k")}
    derive = {name: DERIVE[name] for name in ("age", "land", "rich", "late")}
    derive["grown"] = {"cut": "age", "at": [60], "labels": ["no", "yes"]}
    check_method(cf.tables.Counts("late * rich + land + grown", inference="population"), Schema(columns, derive=derive))


@pytest.mark.long
def test_numbers_of_each_kind_go_through_the_contract() -> None:
    columns = {
        "birth": COLUMNS["birth"],
        "admitted": COLUMNS["admitted"],
        "g": COLUMNS["g"],
        "income": Numeric(0, 9_000, on_missing="midpoint"),
    }
    schema = Schema(
        columns,
        derive={
            "age": DERIVE["age"],
            "z": DERIVE["log_income"],
            "stay": "days_between(birth, admitted)",
            "land": DERIVE["land"],
        },
    )
    check_method(cf.regression.LeastSquares("z ~ age + land + stay"), schema)
    check_method(cf.tables.Means("z + age ~ land", inference="population"), schema)


@pytest.mark.parametrize(
    "right",
    [
        "cut(born, 30)",
        "cut(born, '1.1.1950')",
        "cut(age(born), 18, 65)",
        "cut(years_between(born, '2024-07-01'), 30)",
        "cut(Alter, 30)",
        "Alter",
        "age(born)",
        "sex * Alter",
    ],
)
def test_refusals_lead_to_an_age(right: str) -> None:
    """A schema with a date and without derived columns is told how an age is made, without names of the reader's own."""
    columns = {"y": Numeric(0, 9), "sex": Categorical(["f", "m"]), "born": cf.Date("1900-01-01", "2006-12-31")}
    line = "[derive] age = \"years_between(born, '2024-07-01')\""
    for made, told in ((Schema(columns), True), (Schema(columns, derive={"half": "y / 2"}), False)):
        with pytest.raises(cf.errors.ConfideError) as refused:
            cf.plan(cf.tables.Means(f"y ~ {right}", inference="population"), made, cf.GDP(1.0))
        assert (line in str(refused.value)) is told and "quoted_" not in str(refused.value)


def test_a_date_without_quotes_is_said_to_need_them() -> None:
    schema = Schema({"y": Numeric(0, 9), "born": cf.Date("1900-01-01", "2006-12-31")})
    with pytest.raises(cf.errors.PlanError, match="Dates stand in quotes") as refused:
        cf.plan(cf.tables.Means("y ~ cut(born, 1950-01-01)", inference="population"), schema, cf.GDP(1.0))
    assert "octal" not in str(refused.value) and "unknown>" not in str(refused.value)
    with pytest.raises(cf.errors.PlanError, match="'born' is a date"):
        cf.plan(cf.tables.Means("y ~ born", inference="population"), schema, cf.GDP(1.0))
