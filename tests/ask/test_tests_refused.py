"""Tests of means whose groups the schema already shows to be wrong are refused before anything is charged."""

from __future__ import annotations

import pytest
from tests.messages import refuses

import confide as cf


@pytest.mark.parametrize("formula", ["y ~ g", "y ~ g * h"])
def test_groups_that_a_t_test_cannot_compare_are_not_charged(tmp_path, formula):
    columns = {"g": cf.Categorical(["a", "b", "c"]), "h": cf.Categorical(["a", "b"]), "y": cf.Numeric(0, 1)}
    schema = cf.Schema(columns, dataset="d")
    ledger = cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(2.0))
    with refuses(cf.errors.PlanError):
        cf.tests.ttest_ind(formula, cf.read(schema.sample(50, seed=1), schema), privacy=cf.GDP(1.0), ledger=ledger)
    assert [row.kind for row in ledger.show().rows] == ["open"]


RECORDS = {
    "clusters": {"cluster": cf.Clusters("id", size=5)},
    "weights": {"design": cf.SurveyDesign(weight="w")},
    "each level": {"unit": cf.Unit("id", per="h")},
    "by weight": {"unit": cf.Unit("id", rule="weight")},
}


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("ttest_ind", "y ~ h"),
        ("f_oneway", "y ~ g"),
        ("ttest_rel", "y - w"),
        ("chi2_contingency", "g * h"),
        ("chisquare", "g"),
    ],
)
def test_records_of_which_no_test_holds_are_refused_before_the_charge(tmp_path, kind, name, formula):
    columns = {"g": cf.Categorical(["a", "b", "c"]), "h": cf.Categorical(["a", "b"])}
    schema = cf.Schema(columns | {"y": cf.Numeric(0, 1), "w": cf.Numeric(0, 2)}, dataset="d", **RECORDS[kind])
    frame = schema.sample(50, seed=1).assign(id=[k // 5 for k in range(50)])
    unit = "id" if "unit" in RECORDS[kind] else None
    ledger = cf.Ledger.create(
        tmp_path / "ledger.db", dataset="d", budget=cf.GDP(2.0), **({"unit": unit} if unit else {})
    )
    with pytest.raises(cf.errors.PlanError):
        getattr(cf.tests, name)(formula, cf.read(frame, schema), privacy=cf.GDP(1.0), ledger=ledger)
    assert [row.kind for row in ledger.show().rows] == ["open"]


def test_a_table_of_a_design_says_what_answers_in_place_of_a_test():
    schema = cf.Schema({"h": cf.Categorical(["a", "b"]), "y": cf.Numeric(0, 1)}, cluster=cf.Clusters("id", size=5))
    frame = schema.sample(500, seed=1).assign(id=[k // 5 for k in range(500)])
    data = cf.read(frame, schema)
    table = cf.tables.means("y ~ h", data, inference="population", privacy=cf.GDP(1.0), ledger=None)
    with refuses(cf.errors.PlanError):
        table.test("t", "h")


def test_examples_leave_out_how_the_sample_was_drawn():
    from confide.ask.menu import questions

    columns = {
        "s": cf.Categorical(["a", "b"]),
        "g": cf.Categorical(["a", "b"]),
        "y": cf.Numeric(0, 5),
        "w": cf.Numeric(0, 3),
    }
    schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w", strata="s"))
    asked = {one.name: one.asked_of(schema) for one in questions()}
    assert asked["means"] == "y ~ g"
