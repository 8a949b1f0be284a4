"""Accuracy first: the smallest budget whose forecast is as sharp as asked, and what each budget buys."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.accuracy import smallest
from confide.errors import PlanError
from confide.methods.intervals.quantile import Quantile
from confide.noise import SimulatedNoise
from confide.publication import Asked

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


def test_a_level_asks_for_half_widths() -> None:
    half = cf.plan(COUNTS, SCHEMA, accuracy={"count": 10.0}, n=5000, level=0.95)
    error = cf.plan(COUNTS, SCHEMA, accuracy={"region": 10.0 / 1.959964, "total": 10.0 / 1.959964}, n=5000)
    assert half.guarantee.mu == pytest.approx(error.guarantee.mu, rel=0.01)
    with pytest.raises(PlanError, match="level"):
        cf.plan(COUNTS, SCHEMA, accuracy={"count": 10.0}, n=5000, level=95)
    with pytest.raises(PlanError, match="half-width of 0"):
        cf.plan(MEANS, SCHEMA, accuracy={"mean": 0.003}, n=5000, level=0.95)


@pytest.mark.parametrize(
    ("method", "accuracy"),
    [
        (cf.tables.Distribution("y ~ region"), {"quantile": 0.06}),
        (cf.tables.TableOne("y + age ~ region", medians=("y",)), {"y: mean": 0.1, "y: median": 0.08}),
        (cf.regression.LeastSquares("y ~ x"), {"x": 3.0}),
    ],
)
def test_distributions_table_one_and_regressions_take_half_widths(method: Any, accuracy: dict[str, float]) -> None:
    plan = cf.plan(method, SCHEMA, accuracy=accuracy, n=5000, level=0.95)
    for name, half in accuracy.items():
        names = ("0.25", "0.5", "0.75") if name == "quantile" else (name,)
        assert all(1.959964 * expected(plan, own) <= half for own in names)


def test_a_kind_stands_for_the_numbers_of_its_kind_alone() -> None:
    one = cf.tables.TableOne("age + region ~ 1", medians=("age",))
    forecast = cf.plan(one, SCHEMA, accuracy={"mean": 0.8, "share": 0.03, "quantile": 0.02}, n=5_000)
    errors = [expected(forecast, name) for name in ("age: mean", "region", "age: median")]
    assert errors[0] <= 0.8 and errors[1] <= 0.03 and errors[2] <= 0.02
    by_name = cf.plan(one, SCHEMA, accuracy={"age: mean": 0.8, "region": 0.03, "age: median": 0.02}, n=5_000)
    assert forecast.guarantee == by_name.guarantee
    # a count that is known to .05 of a record costs mu = 31
    for method, kind, words in ((COUNTS, "share", "no share, but counts"), (MEANS, "count", "no count, but means")):
        with pytest.raises(PlanError, match=words):
            cf.plan(method, SCHEMA, accuracy={kind: 0.05}, n=5_000)


def test_the_half_width_of_a_mean_is_reached() -> None:
    # records as the forecast assumes them: a third of the half-width as sd, the mean half-way to a bound
    schema = cf.Schema({"y": cf.Numeric(-1, 1)})
    method = cf.tables.Means("y ~ 1", covers="population")
    plan = cf.plan(method, schema, accuracy={"mean": 0.03}, n=2000, level=0.95)
    y = np.clip(np.random.default_rng(1).normal(0.5, 1 / 3, 2000), -1, 1)
    done = cf.release(method, cf.read({"y": y}, schema), plan.requested, ledger=None, noise=SimulatedNoise(1))
    low, high = cf.infer(done).conf_int().loc["y"]
    assert (high - low) / 2 == pytest.approx(0.03, rel=0.08)


def test_a_publication_is_planned_for_the_accuracy_of_each_question(tmp_path: Any) -> None:
    both = cf.Publication({"counts": COUNTS, "means": MEANS})
    wishes = {"counts": {"count": 10.0}, "means": {"mean": 0.1}}
    plan = cf.plan(both, SCHEMA, accuracy=wishes, n=5000, level=0.95)
    for name, method in both.methods.items():
        alone = cf.plan(method, SCHEMA, accuracy=wishes[name], n=5000, level=0.95).guarantee.mu
        assert alone <= plan.children[name].guarantee.mu <= alone * 1.001
    with pytest.raises(PlanError, match="each question"):
        cf.plan(both, SCHEMA, accuracy={"counts": {"count": 10.0}}, n=5000)
    path = tmp_path / "publication.toml"
    path.write_text(
        "n = 5000\nlevel = 0.95\n[questions.counts]\nmethod = 'counts'\nformula = 'region'\ncovers = 'dataset'\n"
        "accuracy = { count = 10 }\n[questions.means]\nmethod = 'means'\nformula = 'y ~ region'\ncovers = 'population'\n"
        "accuracy = { mean = 0.1 }\n"
    )
    asked = Asked.from_toml(path)
    again = cf.plan(asked.publication, SCHEMA, n=asked.n, **asked.terms())
    assert again.guarantee.mu == plan.guarantee.mu


def test_a_budget_at_which_next_to_nothing_is_answered_is_no_answer():
    def plan_at(level: float) -> Any:
        forecast = {"4,000": {"b": 0.01}, "answered": {"4,000": 0.02 if level < 0.5 else 0.9}}
        return SimpleNamespace(method=SimpleNamespace(name="logistic"), forecast=forecast, level=level)

    assert smallest(plan_at, {"b": 0.05}).level == pytest.approx(0.5, rel=0.01)
    with pytest.raises(PlanError, match="no interval is expected"):
        smallest(lambda level: plan_at(0.1), {"b": 0.05})


def test_a_forecast_prints_as_its_table():
    schema = cf.Schema({"y": cf.Numeric(0, 1), "a": cf.Numeric(0, 1)})
    forecast = cf.plan(cf.regression.LeastSquares("y ~ a"), schema, cf.GDP(1.0), n=4_000).forecast
    assert repr(forecast) == repr(dict(forecast))
