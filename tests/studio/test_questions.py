"""What may be asked of a schema: every formula that is proposed has a plan."""

from __future__ import annotations

import pytest
from tests.messages import refuses

import confide as cf
from confide.ask.menu import method_of_form, question, questions
from confide.errors import PlanError

FULL = cf.Schema(
    {
        "age": cf.Integer(18, 90),
        "odd name": cf.Categorical(["a", "b", "c"]),
        "sex": cf.Categorical(["f", "m"]),
        "works": cf.Integer(0, 1),
        "visits": cf.Integer(0, 20),
        "income": cf.Numeric(0, 9e4),
    }
)


PERSONS = cf.Schema({"sex": cf.Categorical(["f", "m"]), "ill": cf.Categorical(["no", "yes"])}, unit=cf.Unit("person"))


@pytest.mark.parametrize("asked", questions(), ids=lambda one: one.name)
def test_what_is_proposed_can_be_planned(asked):
    schema = PERSONS if asked.name == "persons" else FULL
    formula = asked.asked_of(schema)
    assert formula is not None
    made = cf.plan(
        method_of_form({"kind": asked.name, "formula": formula, "inference": "dataset"}), schema, cf.GDP(1.0)
    )
    assert made.method.name and asked.example


def test_fewer_columns_are_asked_less():
    few = cf.Schema({"age": cf.Integer(18, 90)})
    assert [one.name for one in questions() if one.asked_of(few)] == ["means", "totals", "medians"]
    assert question("means").asked_of(few) == "age ~ 1"
    assert (
        question("persons").asked_of(PERSONS) == "any(sex == 'm')"
        and question("ratios").asked_of(FULL) == "income / age ~ `odd name`"
    )
    labelled = cf.Schema({"age": cf.Integer(18, 90), "smoker": cf.Categorical(["no", "yes"])})
    assert question("logistic").asked_of(labelled) == "smoker ~ age" and question("logistic").asked_of(few) is None


def test_what_is_no_question():
    for form in ({"kind": "nonsense"}, {"kind": "means"}, {"kind": "means", "formula": "age ~ 1"}):
        with pytest.raises(PlanError):
            method_of_form(form)


@pytest.mark.parametrize("asked", questions(), ids=lambda one: one.name)
def test_what_intervals_are_about_is_never_guessed(asked):
    form = {"kind": asked.name, "formula": asked.asked_of(PERSONS if asked.name == "persons" else FULL)}
    for inference in ({}, {"inference": ""}, {"inference": "everybody"}):
        if asked.takes_inference:
            with refuses(PlanError):
                method_of_form(form | inference)
        else:
            method_of_form(form | inference)
