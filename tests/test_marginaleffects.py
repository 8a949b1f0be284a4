"""`marginaleffects` on released regressions: its own verbs, against the results' own predictions and the delta method by hand."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import confide as cf
from confide.noise import SimulatedNoise

me = pytest.importorskip("marginaleffects", reason="marginaleffects is not installed (extra marginaleffects)")
if version("marginaleffects").startswith("0.6.") and not pl.__version__.startswith("1."):
    pytest.skip("marginaleffects 0.6 does not work with polars 2", allow_module_level=True)

from confide.marginaleffects import adapt  # noqa: E402

SCHEMA = cf.Schema(
    {
        "age": cf.Numeric(18, 90),
        "treated": cf.Integer(0, 1),
        "region": cf.Categorical(["north", "east", "south"]),
        "ill": cf.Categorical(["no", "yes"]),
        "visits": cf.Integer(0, 12),
        "income": cf.Numeric(0, 100),
    }
)
PUBLIC = SCHEMA.sample(300, seed=9)
METHODS = {
    "logit": cf.regression.Logistic("ill ~ age * treated + region"),
    "probit": cf.regression.Logistic("ill ~ age + region", link="probit"),
    "poisson": cf.regression.Poisson("visits ~ age + treated"),
    "line": cf.regression.LeastSquares("income ~ age * treated + region"),
}


def _records() -> pd.DataFrame:
    """Records with effects to find."""
    frame = SCHEMA.sample(6_000, seed=1)
    rng = np.random.default_rng(4)
    line = -2.0 + 0.03 * frame["age"] + 0.5 * frame["treated"] + 0.4 * (frame["region"] == "east")
    frame["ill"] = np.where(rng.random(len(frame)) < 1 / (1 + np.exp(-line)), "yes", "no")
    frame["visits"] = np.minimum(rng.poisson(np.exp(0.2 + 0.01 * frame["age"])), 12)
    frame["income"] = np.clip(20 + 0.4 * frame["age"] + 10 * frame["treated"] + rng.normal(0, 10, len(frame)), 0, 100)
    return frame


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    source = cf.read(_records(), SCHEMA)
    return {
        name: cf.infer(cf.release(method, source, cf.GDP(4.0), ledger=None, noise=SimulatedNoise(3)))
        for name, method in METHODS.items()
    }


@pytest.mark.parametrize("name", METHODS)
def test_predictions_are_those_of_the_result(results: dict[str, Any], name: str) -> None:
    result = results[name]
    assert result.status == "valid"
    found = me.predictions(adapt(result, PUBLIC))
    own = result.get_prediction(PUBLIC)
    np.testing.assert_allclose(found["estimate"].to_numpy(), own["mean"], rtol=1e-12)
    np.testing.assert_allclose(found["std_error"].to_numpy(), own["mean_se"], rtol=1e-9)


def test_slopes_of_a_line_are_its_coefficients(results: dict[str, Any]) -> None:
    result = results["line"]
    model = adapt(result, PUBLIC)
    # a line is linear in its coefficients, so that one long step for all of them is exact
    found = me.slopes(
        model, variables="age", newdata=me.datagrid(model, treated=[0, 1]), eps=model.step("age"), eps_vcov=1e-4
    )
    weights = np.array([[name == "age", name == "age:treated"] for name in result.names], dtype=float)
    for row, chosen in enumerate((weights[:, 0], weights.sum(axis=1))):
        np.testing.assert_allclose(found["estimate"][row], chosen @ result.estimates, rtol=1e-6)
        np.testing.assert_allclose(found["std_error"][row], np.sqrt(chosen @ result.covariance @ chosen), rtol=1e-6)


@pytest.mark.parametrize("high", [1.0, 1e3, 1e6])
def test_slopes_along_columns_of_any_size(high: float) -> None:
    """Standard errors are the delta method's by hand, in dollars as in millions of dollars."""
    schema = cf.Schema({"income": cf.Numeric(0, high), "ill": cf.Categorical(["no", "yes"])})
    rng = np.random.default_rng(1)
    share = rng.random(6_000)
    ill = np.where(rng.random(6_000) < 1 / (1 + np.exp(1 - 1.5 * share)), "yes", "no")
    source = cf.read(pd.DataFrame({"income": share * high, "ill": ill}), schema)
    result = cf.infer(
        cf.release(cf.regression.Logistic("ill ~ income"), source, cf.GDP(4.0), ledger=None, noise=SimulatedNoise(2))
    )
    public = pd.DataFrame({"income": np.linspace(0, high, 41)})
    model = adapt(result, public)
    found = me.avg_slopes(model, variables="income", eps=model.step("income"))
    x, (intercept, slope) = public["income"].to_numpy(), result.estimates
    p = 1 / (1 + np.exp(-(intercept + slope * x)))
    first, second = p * (1 - p), p * (1 - p) * (1 - 2 * p)
    gradient = np.array([(second * slope).mean(), (second * slope * x + first).mean()])
    np.testing.assert_allclose(found["estimate"][0], (first * slope).mean(), rtol=1e-6)
    np.testing.assert_allclose(found["std_error"][0], np.sqrt(gradient @ result.covariance @ gradient), rtol=2e-4)
    with pytest.raises(cf.errors.PlanError, match="numeric column of the terms"):
        model.step("ill")


@pytest.mark.parametrize("name", ["logit", "poisson"])
def test_average_comparisons_by_the_delta_method(results: dict[str, Any], name: str) -> None:
    result = results[name]
    found = me.avg_comparisons(adapt(result, PUBLIC), variables={"treated": [0, 1]})

    def average(estimates: np.ndarray) -> float:
        ends = []
        for value in (0, 1):
            line = result.design.matrix(PUBLIC.assign(treated=value)) @ estimates
            ends.append(np.mean(1 / (1 + np.exp(-line)) if name == "logit" else np.exp(line)))
        return float(ends[1] - ends[0])

    steps = np.eye(len(result.names)) * 1e-5
    gradient = np.array(
        [(average(result.estimates + step) - average(result.estimates - step)) / 2e-5 for step in steps]
    )
    np.testing.assert_allclose(found["estimate"][0], average(result.estimates), rtol=1e-12)
    error = np.sqrt(gradient @ result.covariance @ gradient)
    np.testing.assert_allclose(found["std_error"][0], error, rtol=1e-6)
    # Student's t with the fewest degrees of freedom of any coefficient
    half = (found["conf_high"][0] - found["conf_low"][0]) / 2
    from scipy import stats

    np.testing.assert_allclose(half, stats.t.ppf(0.975, result.fewest_df) * error, rtol=1e-6)


def test_hypotheses_are_those_of_the_result(results: dict[str, Any]) -> None:
    result = results["logit"]
    model = adapt(result, PUBLIC)
    places = [result.names.index("region[T.east]"), result.names.index("region[T.south]")]
    found = me.hypotheses(model, f"b{places[0]} = b{places[1]}")
    weights = np.zeros(len(result.names))
    weights[places] = 1.0, -1.0
    np.testing.assert_allclose(found["estimate"][0], weights @ result.estimates, rtol=1e-9)
    np.testing.assert_allclose(found["std_error"][0], np.sqrt(weights @ result.covariance @ weights), rtol=1e-6)


def test_the_verbs_of_the_package_run_on_a_logistic_regression(results: dict[str, Any]) -> None:
    model = adapt(results["logit"], PUBLIC)
    assert me.avg_predictions(model, by="region").shape[0] == 3
    assert me.slopes(model).shape[0] == 4 * len(PUBLIC)  # age, treated, two regions against the first
    assert me.avg_slopes(model, variables="age")["estimate"][0] > 0
    assert me.comparisons(model, variables="region").shape[0] == 2 * len(PUBLIC)
    assert me.avg_comparisons(model, variables={"age": 10}, by="region").shape[0] == 3
    assert me.avg_comparisons(model, variables="treated", comparison="lnor").shape[0] == 1
    assert me.predictions(model, newdata=me.datagrid(model, age=[20, 40], region=["north", "south"])).shape[0] == 4
    assert me.predictions(model, newdata="mean").shape[0] == 1
    assert me.predictions(model, newdata="balanced").shape[0] > 1
    assert me.predictions(model, newdata=adapt(results["logit"], PUBLIC.head(7)).get_modeldata()).shape[0] == 7
    assert me.hypotheses(model, "age = 0").shape[0] == 1


@pytest.mark.parametrize("data", ["records", "short", "level", "missing"])
def test_what_is_no_public_data_is_refused(results: dict[str, Any], data: str) -> None:
    wrong, words = {
        "records": (cf.read(_records(), SCHEMA), "these are the records"),
        "short": (PUBLIC[["age"]], "have no column 'treated'"),
        "level": (PUBLIC.assign(region="west"), "whose levels are north, east, south"),
        "missing": (PUBLIC.assign(age=np.nan), "no missing value"),
    }[data]
    with pytest.raises(cf.errors.PlanError, match=re.escape(words)):
        adapt(results["logit"], wrong)


def test_what_has_no_valid_covariance_is_refused(results: dict[str, Any]) -> None:
    few = cf.read(SCHEMA.sample(60, seed=2), SCHEMA)
    weak = cf.infer(cf.release(METHODS["logit"], few, cf.GDP(0.2), ledger=None, noise=SimulatedNoise(3)))
    assert weak.status != "valid"
    with pytest.raises(cf.NoResult, match="have no margins"):
        adapt(weak, PUBLIC)
    table = cf.infer(
        cf.release(
            cf.tables.Means("age", inference="population"), few, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(3)
        )
    )
    with pytest.raises(cf.errors.PlanError, match="adapt takes the result"):
        adapt(table, PUBLIC)
    with pytest.raises(cf.errors.PlanError, match="would need the records"):
        me.predictions(adapt(results["line"], PUBLIC), vcov="HC3")


def test_columns_of_no_term_can_be_named_in_by(results: dict[str, Any]) -> None:
    """Averages by them are those of the rows with that label."""
    model = adapt(results["probit"], PUBLIC)
    found = me.avg_predictions(model, by="treated").sort("treated")
    own = results["probit"].get_prediction(PUBLIC)["mean"]
    for row, value in enumerate((0, 1)):
        np.testing.assert_allclose(
            found["estimate"][row], own[(PUBLIC["treated"] == value).to_numpy()].mean(), rtol=1e-9
        )
    assert me.avg_predictions(model, by="ill").shape[0] == 2
    assert results["probit"].summary() == model.summary()


def test_intervals_are_t_times_the_standard_error(results: dict[str, Any]) -> None:
    """Averages over public rows need no mean slope of the records: nothing is added to the delta method's."""
    from scipy import stats

    model = adapt(results["logit"], PUBLIC)
    found = me.avg_slopes(model, variables="age", eps=model.step("age"))
    half = (found["conf_high"][0] - found["conf_low"][0]) / 2
    np.testing.assert_allclose(half / found["std_error"][0], stats.t.ppf(0.975, results["logit"].fewest_df), rtol=1e-6)
