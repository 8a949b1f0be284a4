"""Forecasts: the shapes that they are simulated on, what they promise, and that realised standard errors bear them out."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.methods.regression.forecast import Forecast
from confide.methods.regression.practice import _values, frame, shapes, stated
from confide.schema import Design

TOLD = cf.Schema(
    {
        "a": cf.Numeric(0, 100, typical=cf.Typical(20, 60, own=1.0)),
        "b": cf.Numeric(-5, 5, typical=cf.Typical(-2, 2, own=1.0)),
        "g": cf.Categorical(["u", "v", "w"], typical=[0.7, 0.25, 0.05]),
        "h": cf.Categorical(["no", "yes"], typical=[0.5, 0.5]),
        "y": cf.Numeric(0, 50, typical=cf.Typical(10, 40, own=0.5)),
    }
)
BARE = TOLD.without_typical
FORMULAS = ("y ~ a + b", "y ~ a + g", "y ~ g", "y ~ g + h", "y ~ 0 + g", "y ~ 1")


# shapes ---------------------------------------------------------------------------------------------------------------


def test_practice_records_are_as_the_schema_states() -> None:
    for k in range(4):
        records = frame(TOLD, ["a", "b", "g"], "y", 40_000, k)
        for name, (low, high) in {"a": (20, 60), "b": (-2, 2), "y": (10, 40)}.items():
            inside = (records[name] >= low) & (records[name] <= high)
            assert abs(inside.mean() - 0.95) < 0.01, name
        shares = [(records["g"] == level).mean() for level in ("u", "v", "w")]
        assert shares == pytest.approx([0.7, 0.25, 0.05], abs=0.01)


@pytest.mark.parametrize("own", [1.0, 0.5, 0.05])
def test_own_shares_are_what_the_other_columns_leave(own: float) -> None:
    columns: dict[str, Any] = {f"x{j}": cf.Numeric(0, 100, typical=cf.Typical(20, 60, own=own)) for j in range(6)}
    schema = cf.Schema({**columns, "y": cf.Numeric(0, 50, typical=cf.Typical(10, 40, own=0.3))})
    inflation, left = [], []
    for k in range(6):
        records = frame(schema, list(columns), "y", 20_000, k)
        x = np.column_stack([records[name] for name in columns])
        inflation.append(np.diag(np.linalg.inv(np.corrcoef(x.T))))
        x = np.column_stack([np.ones(len(x)), x])
        residuals = records["y"] - x @ np.linalg.lstsq(x, records["y"], rcond=None)[0]
        left.append(residuals.var() / records["y"].var())
    # five others tell the common factor with an error
    assert own * np.median(inflation) == pytest.approx(1, rel=0.4)
    # bounds and rounding take a little of it
    assert np.allclose(left, 0.3, atol=0.03), left


def test_long_tails_go_on_beyond_where_most_values_lie() -> None:
    column = cf.Numeric(-1e6, 1e6, typical=(-2, 2))
    scores = np.random.default_rng(1).normal(size=200_000)
    for seed in range(8):
        plain, long = (_values(column, scores, np.random.default_rng(seed), long=kind) for kind in (False, True))
        assert all(abs(np.mean(np.abs(values) > 2) - 0.05) < 0.005 for values in (plain, long))
        # a Pareto tail: twice as far out there are at least 2^-4 as many, until the last few
        beyond = [np.sum(np.abs(long) > far) for far in (2, 4, 8)]
        assert beyond[1] > 0.05 * beyond[0] / 2 and beyond[2] > 0.05 * beyond[1] / 2
        assert np.abs(long).max() > np.abs(plain).max()


def test_rare_records_have_little_weight() -> None:
    schema = cf.Schema({"x": cf.Numeric(-100, 100, typical=(-2, 2)), "y": cf.Numeric(0, 1)})
    for shape in shapes(Design.of("y ~ x", schema), schema, 6):
        x, w = shape.scaled[:, 1] * 100, shape.weights / shape.weights.sum()
        assert abs(w[np.abs(x) > 2].sum() - 0.05) < 0.03
        assert w[np.argmax(np.abs(x))] < 0.5 / len(w)


def test_rare_levels_have_records_of_little_weight() -> None:
    schema = cf.Schema({"g": cf.Categorical(["u", "v", "w"], typical=[0.98, 0.019, 0.001]), "y": cf.Numeric(0, 1)})
    shape = next(shapes(Design.of("y ~ g", schema), schema, 1))
    rare = shape.scaled[:, 2] > 0
    assert rare.sum() >= 8
    assert shape.weights[rare].sum() / shape.weights.sum() == pytest.approx(0.001, rel=0.2)


# tables ---------------------------------------------------------------------------------------------------------------


def _forecast(formula: str, schema: cf.Schema, n: int | None = 4_000, **settings: Any) -> Any:
    return cf.plan(cf.regression.LeastSquares(formula, **settings), schema, cf.GDP(1.0), n=n).forecast


def test_levels_next_to_empty_occur_until_shares_are_stated() -> None:
    def least(typical: list[float] | None) -> list[float]:
        schema = cf.Schema({"g": cf.Categorical(list("abcdef"), typical=typical), "y": cf.Numeric(0, 1)})
        found = []
        for shape in shapes(Design.of("y ~ 0 + g", schema), schema, 48):
            own = shape.weights @ (shape.scaled[:, 1:] > 0) / shape.weights.sum()
            assert own.sum() == pytest.approx(1.0)
            found.append(float(own.min()))
        return found

    # four levels, each with a chance of .1: .34 of the shapes; 99.9 % of 48 draws of it
    assert 5 <= sum(one <= 0.0105 for one in least(None)) <= 29
    assert min(least([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])) > 0.08


def test_bounds_lie_far_out_now_and_then_and_change_no_other_column() -> None:
    schema = cf.Schema({"a": cf.Numeric(0, 100), "b": cf.Integer(0, 10_000), "y": cf.Numeric(0, 1)})
    told = cf.Schema({"a": cf.Numeric(0, 100, typical=(20, 60)), "b": cf.Integer(0, 9), "y": cf.Numeric(0, 1)})
    found = {}
    for own in (schema, told):
        design = Design.of("y ~ a + b", own)
        parts = []
        for near, far in zip(shapes(design, own, 400), shapes(design, own, 400, far=True), strict=True):
            moved = [bool(np.any(near.scaled[:, j] != far.scaled[:, j])) for j in (1, 2)]
            for j in (1, 2):
                if moved[j - 1]:
                    low, high = np.quantile(far.scaled[:, j], [0.05, 0.95])
                    assert (high - low) / 2 < 0.05 or own is told
            parts.append(moved)
        found[own] = np.mean(parts, axis=0)
    # 99.9 % of 400 draws of .05 and of .02
    assert 0.02 <= found[schema][0] <= 0.095 and 0.0025 <= found[schema][1] <= 0.05
    assert found[told][0] == 0.0


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_number_where_all_is_stated_else_an_interval_that_is_wider_than_it(formula: str) -> None:
    design = Design.of(formula, TOLD)
    assert stated(design, TOLD) and not stated(Design.of(formula, BARE), BARE)
    point, wide = _forecast(formula, TOLD), _forecast(formula, BARE)
    assert "median" in point["assumes"] and "98% of those in" in wide["assumes"]
    assert set(point["4,000"]) == set(design.names)
    for name, number in point["4,000"].items():
        low, high = wide["4,000"][name]
        least, most = point["between"]["4,000"][name]
        assert least <= number <= most < 40 * least
        # the stated response lies in the middle of its bounds, where noise in counts costs least
        assert isinstance(number, float) and low / 1.25 <= number <= high and high > 3 * low


@pytest.mark.parametrize("formula", FORMULAS)
def test_realised_standard_errors_of_records_as_stated_are_the_predicted_ones(formula: str) -> None:
    method = cf.regression.LeastSquares(formula)
    point = _forecast(formula, TOLD)["4,000"]
    errors = []
    # of one release the width depends on what its noise shows: a median of a few is a matter of luck
    for k in range(12):
        records = frame(TOLD, [name for name in ("a", "b", "g", "h") if name in formula], "y", 4_000, k)
        done = cf.release(
            method, cf.read(cf_frame(records), TOLD), cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(k)
        )
        table = cf.infer(done)
        assert table.status in ("ok", "partial")
        errors.append(table.bse.to_numpy())
    ratio = np.nanmedian(errors, axis=0) / np.array(list(point.values()))
    assert (ratio > 1 / 1.5).all() and (ratio < 1.5).all(), ratio


def test_ssp_realises_what_it_predicts() -> None:
    method = cf.regression.SSP("y ~ a + b")
    point = cf.plan(method, TOLD, cf.GDP(1.0), n=4_000).forecast["4,000"]
    errors = []
    # caps differ between shapes by a factor of 5
    for k in range(12):
        source = cf.read(cf_frame(frame(TOLD, ["a", "b"], "y", 4_000, k)), TOLD)
        errors.append(
            cf.infer(cf.release(method, source, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(k))).bse
        )
    ratio = np.median(errors, axis=0) / np.array(list(point.values()))
    assert (ratio > 1 / 1.5).all() and (ratio < 1.5).all(), ratio


def cf_frame(records: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(records)


def test_more_records_and_more_budget_bring_smaller_errors_and_answers() -> None:
    table = _forecast("y ~ a + b", TOLD, None)
    sizes = [table[key]["a"] for key in ("1,000", "10,000", "100,000")]
    assert sizes[0] > 2.5 * sizes[1] > 5 * sizes[2]
    assert table["price"]["1,000"] > table["price"]["100,000"] >= 1.0
    poor = cf.plan(cf.regression.LeastSquares("y ~ a + b"), BARE, cf.GDP(0.05), n=200).forecast
    assert poor["ok"]["200"] <= 0.2
    said = " ".join(cf.plan(cf.regression.LeastSquares("y ~ a + b"), BARE, cf.GDP(0.05), n=200).summary().split())
    assert "weak likely" in said and "huber_line covers another line" in said
    assert "ok likely" in cf.plan(cf.regression.LeastSquares("y ~ a + b"), TOLD, cf.GDP(1.0), n=20_000).summary()


def test_columns_of_which_nothing_is_stated_share_one_interval_per_half_range() -> None:
    wide = _forecast("y ~ a + b", BARE)["4,000"]
    # half-ranges of 50 and 5; numbers are rounded to two digits
    for end in (0, 1):
        assert wide["a"][end] * 50 == pytest.approx(wide["b"][end] * 5, rel=0.06)
    some = cf.Schema({**BARE.columns, "a": TOLD["a"]})
    low, high = _forecast("y ~ a + b", some)["4,000"]["a"]
    assert high / low < wide["a"][1] / wide["a"][0]


@pytest.mark.parametrize("formula", ["y ~ a + b", "y ~ g + h"])
def test_an_interval_holds_so_many_of_other_shapes_of_the_family(formula: str) -> None:
    plan = cf.plan(cf.regression.LeastSquares(formula), BARE, cf.GDP(1.0), n=4_000)
    forecast, design = plan.forecast, Design.of(formula, BARE)
    held = []
    for shape in list(shapes(design, BARE, 120))[48:]:
        errors = forecast.expect(shape, 4_000).errors
        for name, error in zip(design.names, errors, strict=True):
            low, high = forecast["4,000"][name]
            held += [low / 1.03 <= error <= high * 1.03] if np.isfinite(error) else []
    # 98 % are promised; the coefficients of a shape go together, so that 72 shapes tell it to a few hundredths
    assert 0.93 <= np.mean(held) < 1.0, np.mean(held)


def test_even_columns_fill_their_interval() -> None:
    column, scores = cf.Numeric(0, 1), np.random.default_rng(1).normal(size=20_000)
    even = 0
    for seed in range(60):
        values = _values(column, scores, np.random.default_rng(seed), long=True)
        low, high = np.quantile(values, [0.025, 0.975])
        places = (values - low) / (high - low)
        even += abs(np.mean(places < 0.25) - 0.25) < 0.03 and abs(np.mean(places < 0.75) - 0.75) < 0.03
    assert 3 <= even <= 20
    told = cf.Numeric(0, 1, typical=(0.2, 0.4))
    values = [_values(told, scores, np.random.default_rng(seed), long=False) for seed in range(60)]
    assert all(np.max(v) > 0.45 for v in values)


def test_a_forecast_answers_what_a_release_of_such_records_answers() -> None:
    # 44 typical sds of room: answered where the histogram shows a short tail alone
    schema = cf.Schema(
        {"x": cf.Numeric(0, 1e6, typical=(5e3, 9e4)), "y": cf.Numeric(0, 50, typical=cf.Typical(10, 40, own=0.5))}
    )
    plan = cf.plan(cf.regression.LeastSquares("y ~ x"), schema, cf.GDP(1.0), n=8_000)
    agreed, said, came = 0, 0, 0
    # each shape has one draw of noise in the forecast and another in its release: where a count is near its limit they may differ
    for shape in shapes(plan.forecast.design, schema, 18):
        foretold = plan.forecast.expect(shape, 8_000).ok
        generator = np.random.default_rng(shape.number)
        rows = generator.choice(len(shape.response), 8_000, p=shape.weights / shape.weights.sum())
        records = cf_frame({"x": 5e5 * (1 + shape.scaled[rows, 1]), "y": 25 * (1 + shape.response[rows])})
        noise = cf.noise.SimulatedNoise(shape.number)
        done = cf.release(
            cf.regression.LeastSquares("y ~ x"), cf.read(records, schema), cf.GDP(1.0), ledger=None, noise=noise
        )
        ok = cf.infer(done).status == "ok"
        agreed, said, came = agreed + (ok == foretold), said + foretold, came + ok
    assert agreed >= 14 and abs(said - came) <= 4 and 4 <= came <= 14, (agreed, said, came)
    assert 0.3 < plan.forecast["ok"]["8,000"] < 0.95


def test_levels_share_one_number_until_their_shares_are_stated() -> None:
    columns = {**TOLD.columns, "g": BARE["g"]}
    alike = _forecast("y ~ a + g", cf.Schema(columns))["4,000"]
    assert alike["g[T.v]"] == alike["g[T.w]"]
    told = _forecast("y ~ a + g", TOLD)["4,000"]
    assert told["g[T.w]"] > 1.5 * told["g[T.v]"]


def test_a_forecast_is_simulated_when_it_is_looked_at_and_is_a_plain_table_in_a_file() -> None:
    shown = cf.plan(cf.regression.LeastSquares("y ~ a"), TOLD, cf.GDP(1.0), n=4_000)
    number, (low, high) = shown.forecast["4,000"]["a"], shown.forecast["between"]["4,000"]["a"]
    assert f"{number:.4g} ({low:.4g} to {high:.4g})" in shown.summary()
    # with spreads alone the number is not promised
    columns = {
        name: cf.Numeric(TOLD[name].low, TOLD[name].high, typical=(TOLD[name].spread.low, TOLD[name].spread.high))
        for name in "ay"
    }
    spreads = cf.plan(cf.regression.LeastSquares("y ~ a"), cf.Schema(columns), cf.GDP(1.0), n=4_000).summary()
    assert "what is in brackets is the forecast" in " ".join(spreads.split())
    assert "in brackets" not in " ".join(shown.summary().split())
    forecast = _forecast("y ~ a", TOLD)
    assert isinstance(forecast, Forecast) and "table" not in vars(forecast)
    kept = pickle.loads(pickle.dumps(forecast))
    assert type(kept) is dict and kept == dict(forecast)


def test_a_plan_warns_of_bounds_far_beyond_what_is_typical() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1e6, typical=(5e3, 9e4)), "y": TOLD["y"]})
    plan = cf.plan(cf.regression.LeastSquares("y ~ x"), schema, cf.GDP(1.0), n=4_000)
    (note,) = [note for note in plan.notes if "typical standard deviations" in note]
    assert "the bounds of x reach 44" in note and "declare it within [0, 2.6e+05]" in note
    assert "unless private counts show a short tail" in note and note not in plan.to_json()
    wider = cf.Schema({"x": cf.Numeric(0, 1e7, typical=(5e3, 9e4)), "y": TOLD["y"]})
    plan = cf.plan(cf.regression.LeastSquares("y ~ x"), wider, cf.GDP(1.0), n=4_000)
    assert any("it will go unanswered" in note for note in plan.notes) and plan.forecast["ok"]["4,000"] == 0
    for quiet in (cf.regression.LeastSquares("y ~ x", limit="none"), cf.regression.HuberLine("y ~ x")):
        assert not any("typical" in note for note in cf.plan(quiet, schema, cf.GDP(1.0)).notes)
