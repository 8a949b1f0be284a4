"""Accuracy first: the smallest budget whose forecast is as sharp as asked, and what each budget buys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.errors import PlanError
from confide.methods.intervals.quantile import Quantile
from confide.noise import SimulatedNoise

SCHEMA = cf.Schema(
    {
        "age": cf.Integer(0, 100),
        "region": cf.Categorical(["N", "S", "E"]),
        "x": cf.Numeric(0, 1),
        "y": cf.Numeric(-1, 3),
    }
)
COUNTS = cf.tables.Counts("region", covers="dataset")
MEANS = cf.tables.Means("y ~ region", covers="population")


def expected(plan: Any, name: str) -> float:
    (key,) = [key for key in plan.forecast if key[0].isdigit()]
    cell = plan.forecast[key][name]
    return float(max(cell) if isinstance(cell, tuple) else cell)


@pytest.mark.parametrize(
    ("method", "accuracy"),
    [
        (COUNTS, {"region": 5.0}),
        (MEANS, {"region": 0.03, "total": 0.02}),
        (replace(MEANS, where="age >= 65"), {"region": 0.05}),
        (cf.regression.LeastSquares("y ~ region"), {"region[T.S]": 0.5}),
    ],
)
def test_the_budget_is_the_smallest_whose_forecast_is_as_sharp(method: Any, accuracy: dict[str, float]) -> None:
    plan = cf.plan(method, SCHEMA, accuracy=accuracy, n=5000)
    assert all(expected(plan, name) <= error for name, error in accuracy.items())
    below = cf.plan(method, SCHEMA, cf.GDP(plan.guarantee.mu / 1.02), n=5000)
    assert any(expected(below, name) > error for name, error in accuracy.items())
    assert plan == cf.plan(method, SCHEMA, cf.GDP(plan.guarantee.mu)), "n stands in no plan"
    assert any("counts as public" in note for note in plan.notes)


def test_the_accuracy_is_reached() -> None:
    plan = cf.plan(COUNTS, SCHEMA, accuracy={"region": 5.0}, n=5000)
    source = cf.read(SCHEMA.sample(5000, 1), SCHEMA)
    truth = np.array([(SCHEMA.sample(5000, 1)["region"] == level).sum() for level in ("N", "S", "E")])
    errors = []
    for seed in range(100):
        done = cf.release(COUNTS, source, plan.requested, ledger=None, noise=SimulatedNoise(seed))
        frame: Any = cf.infer(done).to_frame()
        errors.append(frame["estimate"].to_numpy()[-3:] - truth)
    # 300 errors of sd at most 5: a root mean square above 5.8 has a chance below 1e-4
    assert 4.2 < np.sqrt(np.mean(np.square(errors))) < 5.8


@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        (COUNTS, {"accuracy": {"regoin": 5}, "n": 5000}, "did you mean 'region'"),
        (COUNTS, {"accuracy": {"region": 5}}, "needs n"),
        (COUNTS, {"accuracy": {"region": 0}, "n": 5000}, "above 0"),
        (COUNTS, {"accuracy": {}, "n": 5000}, "above 0"),
        (COUNTS, {"accuracy": {"region": 5}, "n": 5000, "privacy": cf.GDP(1.0)}, "give one of them"),
        (MEANS, {"accuracy": {"region": 0.003}, "n": 5000}, "records would do"),
        (Quantile("x"), {"accuracy": {"x": 0.1}, "n": 5000}, "forecasts no standard errors"),
    ],
)
def test_what_cannot_be_had_is_said(method: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        cf.plan(method, SCHEMA, **given)


def test_the_number_of_records_that_would_do_does() -> None:
    with pytest.raises(PlanError) as found:
        cf.plan(MEANS, SCHEMA, accuracy={"region": 0.003}, n=5000)
    needed = int(str(found.value).partition("about ")[2].partition(" records")[0].replace(",", ""))
    assert cf.plan(MEANS, SCHEMA, accuracy={"region": 0.00305}, n=needed).guarantee.mu < 64


def test_precision_against_budget_is_the_forecast_of_each_plan() -> None:
    found = cf.precision(MEANS, SCHEMA, n=2000, levels=(0.2, 1.0))
    for level in (0.2, 1.0):
        plan = cf.plan(MEANS, SCHEMA, cf.GDP(level), n=2000)
        assert found.to_frame().loc[level, ("region", "high")] == expected(plan, "region")
    assert "2,000 records" in found.summary()
    axes = found.plot()
    assert len(axes.lines) == 2 and axes.get_xscale() == "log"
