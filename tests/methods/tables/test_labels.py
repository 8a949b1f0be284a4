"""Levels may have any text and columns any name that no table has for itself: a row is told by its place."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.few import few
from tests.messages import refuses

import confide as cf
from confide.errors import PlanError
from confide.methods.tables.mean_table import MeasuredTable
from confide.methods.tables.method import TableMethod
from confide.methods.tables.results import CellTable
from confide.results.curve import Curve

# words that tables print themselves, and levels that look like several
HOSTILE = ["Total", "(Total)", "total", "Missing", "Other", "(none)", "overall", "a", "a, g=Total", "a, g=u", "u"]
SCHEMA = cf.Schema(
    {
        "f": cf.Categorical(HOSTILE),
        "g": cf.Categorical(["u", "Total"]),
        "variable": cf.Categorical(["Total", "b"]),
        "x": cf.Numeric(0, 10),
        "y": cf.Numeric(1, 9),
    }
)
ASKED: list[tuple[str, TableMethod]] = [
    ("counts", cf.tables.Counts("f * g", inference="dataset")),
    ("shares", cf.tables.Shares("f * g", within="g", inference="population")),
    ("means", cf.tables.Means("x + y ~ f * g", inference="population")),
    ("totals", cf.tables.Totals("x ~ f + g", inference="dataset")),
    ("ratios", cf.tables.Ratios("x / y ~ f + g", inference="population")),
]


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    data = cf.read(SCHEMA.sample(3_000, seed=1), SCHEMA)
    return {name: cf.infer(cf.release(one, data, cf.GDP(5.0), ledger=None)) for name, one in ASKED}


@pytest.mark.parametrize("name", few([name for name, _ in ASKED], 0, 1))
def test_every_rendering_takes_any_level(name: str, tables: dict[str, Any], tmp_path: Path) -> None:
    table = tables[name]
    frame, rows = table.to_frame(), len(table.names)
    # the cells of a margin are told by their place, and their word is no level
    for own, levels in zip(table.layout.crossing.attributes, table.levels, strict=True):
        over = levels == own.size
        assert (frame[own.name].astype(object).to_numpy()[~over] == np.array(own.labels)[levels[~over]]).all()
        assert not set(frame[own.name][over]) & set(own.labels)
    assert set(frame["g"][table.levels[-1] == 2]) == {"(Total)"}
    found = list(csv.reader(io.StringIO(table.to_csv())))
    assert len(found) == rows + 1 and len(set(found[0])) == len(found[0])
    assert json.loads(table.to_json())["labels"]["f"] == frame["f"].astype(object).tolist()
    assert "(Total)" in table.summary() and "(Total)" in table.to_latex() and "(Total)" in table.to_markdown()
    assert "(Total)" in table.report(tmp_path / "page.html").read_text()
    both = cf.results.compare({"one": table, "other": table}).to_frame()
    assert len(both) == rows and (both["one"].fillna(0) == both["other"].fillna(0)).all(axis=None)
    assert len(table.plot().get_yticklabels()) > 1


def test_a_wide_table_keeps_levels_and_margins_apart(tables: dict[str, Any]) -> None:
    wide = tables["counts"].crosstab()
    assert wide.shape == (len(HOSTILE) + 1, 3) and list(wide.columns) == ["u", "Total", "(Total)"]
    assert list(wide.index) == [*HOSTILE, "((Total))"]
    inner = wide.loc[HOSTILE, ["u", "Total"]].to_numpy()
    assert wide.loc["((Total))", "(Total)"] == pytest.approx(inner.sum(), abs=1e-6)


def test_comparisons_hold_every_pair_whatever_its_name(tables: dict[str, Any]) -> None:
    table = tables["shares"]
    every = table.diff("g")
    assert len(every) == len(HOSTILE)
    one = table.diff({"f": "Total", "g": "Total"}, {"f": "Total", "g": "u"})
    assert one.iloc[0]["estimate"] == every.iloc[0]["estimate"]
    # "a, g=u" without g is called as "a" in g=u is: a name of two cells names none
    counts = tables["counts"]
    assert counts.diff("f=total", "f=(none)").shape == (1, 4)
    with refuses(PlanError):
        counts.diff("f=a, g=u", "f=Other, g=u")
    with refuses(PlanError):
        counts.diff("f=b", "f=a")


def test_a_name_of_a_cut_names_its_cell() -> None:
    schema = cf.Schema({"age": cf.Numeric(0, 100), "sex": cf.Categorical(["f", "m"])})
    data = cf.read(schema.sample(500, seed=1), schema)
    table = cf.tables.counts("cut(age, 18, 65)", data, inference="dataset", privacy=cf.GDP(5.0), ledger=None)
    assert table.diff("cut(age, 18, 65)=[18, 65)", "cut(age, 18, 65)=<18").shape == (1, 4)


def test_a_difference_is_of_the_level_and_of_no_longer_one() -> None:
    schema = cf.Schema({"s": cf.Categorical(["no", "yes", "yes, often"]), "g": cf.Categorical(["u", "v", "w"])})
    data = cf.read(schema.sample(2_000, seed=1), schema)
    found = cf.intervals.difference(data, "s ~ g", level="yes", privacy=cf.GDP(5.0, relation="add-remove"), ledger=None)
    assert list(found.names) == ["(g=v) - (g=u)", "(g=w) - (g=u)"]


def test_a_column_called_variable_is_a_column() -> None:
    data = cf.read(SCHEMA.sample(500, seed=1), SCHEMA)
    table = cf.tables.counts("variable * g", data, inference="dataset", privacy=cf.GDP(5.0), ledger=None)
    assert list(table.to_frame().columns[:2]) == ["variable", "g"] and table.crosstab().shape == (3, 3)


def test_standardised_differences_of_rows_with_one_name_are_all_there() -> None:
    schema = cf.Schema(
        {"arm": cf.Categorical(["a", "b"]), "q": cf.Categorical(["r: s", "t"]), "q: r": cf.Categorical(["s", "u"])}
    )
    data = cf.read(schema.sample(500, seed=1), schema)
    table = cf.tables.table_one("q + `q: r` ~ arm", data, inference="population", privacy=cf.GDP(5.0), ledger=None)
    assert len(table.differences()) == len(table.rows)


# names that are taken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, _ in ASKED])
def test_the_taken_names_are_the_columns_that_a_table_has(name: str, tables: dict[str, Any]) -> None:
    table, method = tables[name], dict(ASKED)[name]
    user = {own.name for own in table.layout.crossing.attributes}
    found = {*table.to_frame().columns, *(table.shape().columns if hasattr(table, "shape") else ())}
    assert found - user <= set(method.shown_as.own_columns), "a column of a frame that is not on the list"
    # the table of ratios is that of a design's means too, which alone print n
    shown = {"variable"} if method.verb != "ratios" else {"variable", "n"}
    assert set(method.shown_as.own_columns) - shown <= found


@pytest.mark.parametrize("taken", sorted({*MeasuredTable.own_columns, *CellTable.own_columns}))
def test_a_grouping_column_with_a_taken_name_is_refused_in_the_plan(taken: str) -> None:
    schema = cf.Schema({taken: cf.Categorical(["a", "b"]), "g": cf.Categorical(["u", "v"]), "x": cf.Numeric(1, 9)})
    asked = [
        cf.tables.Means(f"x ~ {taken}", inference="dataset"),
        cf.tables.Totals(f"x ~ g * {taken}", inference="dataset"),
    ]
    if taken in CellTable.own_columns:
        asked += [
            cf.tables.Counts(f"{taken} * g", inference="dataset"),
            cf.tables.Shares(taken, inference="dataset"),
            cf.tables.Ratios(f"x / log(x) ~ {taken}", inference="dataset"),
        ]
    for method in asked:
        with refuses(PlanError):
            cf.plan(method, schema, cf.GDP(1.0))
    with refuses(PlanError):
        cf.plan(cf.Publication({"q": asked[0]}), schema, cf.GDP(1.0))


@pytest.mark.parametrize("taken", Curve.own_columns)
def test_a_curve_over_a_column_with_a_taken_name_is_refused_in_the_plan(taken: str) -> None:
    schema = cf.Schema({taken: cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    with refuses(PlanError):
        cf.plan(cf.curves.Kernel(f"y ~ {taken}"), schema, cf.GDP(1.0), n=1_000)


def test_a_term_that_is_called_as_the_constant_is_refused() -> None:
    schema = cf.Schema({"Intercept": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    for formula in ("y ~ Intercept", "y ~ 0 + Intercept"):
        with refuses(PlanError):
            cf.plan(cf.regression.LeastSquares(formula), schema, cf.GDP(1.0))


def test_two_numbers_of_classes_with_one_name_are_refused_in_the_plan() -> None:
    schema = cf.Schema({"k": cf.Categorical(["x | a", "a)"]), "P(x": cf.Numeric(0, 1)})
    with refuses(PlanError):
        cf.plan(cf.classification.ClassMeans("k ~ `P(x`"), schema, cf.GDP(1.0))


def test_a_column_called_as_a_cut_of_another_is_told_apart() -> None:
    schema = cf.Schema({"age": cf.Numeric(0, 100), "cut(age, 40)": cf.Categorical(["a", "b", "c"])})
    with refuses(PlanError):
        cf.plan(cf.tables.Counts("cut(age, 40) + `cut(age, 40)`", inference="dataset"), schema, cf.GDP(1.0))
