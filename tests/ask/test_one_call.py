"""A one-call function is made of the method's class: its parameters, its help, its refusals, its answer."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from tests.messages import refuses

import confide as cf
from confide import _docs
from confide.ask.one_call import one_call
from confide.core import parameters_of

MADE = {
    **{f"tables.{one.name}": one for one in (cf.tables.Counts, cf.tables.Shares, cf.tables.Means, cf.tables.Totals)},
    "reduction.pca": cf.reduction.PCA,
    "voting.plurality": cf.voting.Plurality,
    "linear_regression": cf.regression.LeastSquares,
    "tests.wilcoxon": cf.tests.Wilcoxon,
}


def verb(name: str) -> object:
    room, _, own = name.rpartition(".")
    return getattr(getattr(cf, room) if room else cf, own)


@pytest.fixture
def data() -> object:
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    return cf.read(schema.sample(500, seed=1), schema)


@pytest.mark.parametrize("name", MADE)
def test_its_parameters_are_those_of_the_class(name: str) -> None:
    method = MADE[name]
    shown = inspect.signature(verb(name)).parameters
    first, *settings = parameters_of(method)
    assert list(shown) == [first, "data", "privacy", "ledger", "noise", "n", *settings]
    defaults = {one.name: one.default for one in fields(method)}
    assert all(shown[one].default == defaults[one] for one in settings)
    assert shown["privacy"].default is shown["ledger"].default is inspect.Parameter.empty


@pytest.mark.parametrize("name", MADE)
def test_its_help_is_that_of_the_class_and_says_what_a_call_takes(name: str) -> None:
    own, shown = (_docs.sections(inspect.getdoc(one)) for one in (MADE[name], verb(name)))
    assert all(shown[title] == own[title] for title in own if title != "Parameters")
    told, called = _docs.parameters(inspect.getdoc(MADE[name])), _docs.parameters(inspect.getdoc(verb(name)))
    assert told.items() <= called.items() and {"data", "privacy", "ledger", "noise", "n"} <= called.keys()
    assert "charged" in shown["Raises"] and shown["Returns"]


def test_the_answer_is_that_of_the_three_steps(data: object) -> None:
    asked = {"ledger": None, "noise": cf.noise.SimulatedNoise(3)}
    whole = cf.linear_regression("y ~ x", data, privacy=cf.GDP(1.0), limit="none", **asked)
    asked["noise"] = cf.noise.SimulatedNoise(3)
    apart = cf.infer(cf.release(cf.regression.LeastSquares("y ~ x", limit="none"), data, cf.GDP(1.0), **asked))
    assert str(whole) == str(apart)


def test_the_first_parameter_and_the_data_may_be_named(data: object) -> None:
    asked = {"privacy": cf.GDP(1.0), "ledger": None}
    first = cf.linear_regression(formula="y ~ x", data=data, noise=cf.noise.SimulatedNoise(3), **asked)
    second = cf.linear_regression("y ~ x", data, noise=cf.noise.SimulatedNoise(3), **asked)
    assert str(first) == str(second)
    with refuses(cf.errors.PlanError):
        cf.linear_regression("y ~ x", **asked)
    with pytest.raises(TypeError, match="formula"):
        cf.linear_regression("y ~ x", data, formula="y ~ x", **asked)


@pytest.mark.parametrize(
    "given",
    [
        {"intervals_for": None},
        {"privacy": None},
        {"ledger": ...},
        {"cover": "dataset"},
    ],
)
def test_a_call_without_what_has_no_default_is_refused(data: object, given: dict[str, object]) -> None:
    asked = {"inference": "dataset", "privacy": cf.GDP(1.0), "ledger": None, **given}
    asked = {name: value for name, value in asked.items() if value is not ...}
    with refuses(cf.ConfideError):
        cf.tables.means("y ~ 1", data, **asked)


def test_several_parameters_may_come_before_the_data() -> None:
    assert list(inspect.signature(one_call(cf.selection.Select, "cf.select", 2)).parameters)[:3] == [
        "candidates",
        "score",
        "data",
    ]


def test_the_ledger_keeps_the_title_of_a_test(tmp_path: Path) -> None:
    """Its release is a table, whose title says nothing of the test."""
    schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "smoker": cf.Categorical(["no", "yes"])}, dataset="d")
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(2.0))
    data = cf.read(schema.sample(500, seed=1), schema)
    found = cf.tests.chi2_contingency("smoker * sex", data, privacy=cf.GDP(1.0), ledger=book)
    assert [row.title for row in book.show().rows if row.kind == "charge"] == [found.title]
