"""Tests of means whose groups the schema already shows to be wrong are refused before anything is charged."""

from __future__ import annotations

import pytest

import confide as cf


@pytest.mark.parametrize(("formula", "words"), [("y ~ g", "'g' has 3"), ("y ~ g * h", "one column")])
def test_groups_that_a_t_test_cannot_compare_are_not_charged(tmp_path, formula, words):
    columns = {"g": cf.Categorical(["a", "b", "c"]), "h": cf.Categorical(["a", "b"]), "y": cf.Numeric(0, 1)}
    schema = cf.Schema(columns, dataset="d")
    ledger = cf.Ledger.create(tmp_path / "book.db", dataset="d", budget=cf.GDP(2.0))
    with pytest.raises(cf.PlanError, match=words):
        cf.tests.ttest_ind(formula, cf.read(schema.sample(50, seed=1), schema), privacy=cf.GDP(1.0), ledger=ledger)
    assert [row.kind for row in ledger.show().rows] == ["open"]


def test_examples_leave_out_how_the_sample_was_drawn():
    from confide.faces.questions import QUESTIONS

    columns = {
        "s": cf.Categorical(["a", "b"]),
        "g": cf.Categorical(["a", "b"]),
        "y": cf.Numeric(0, 5),
        "w": cf.Numeric(0, 3),
    }
    schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w", strata="s"))
    asked = {one.name: one.asked_of(schema) for one in QUESTIONS}
    assert asked["means"] == "y ~ g"
