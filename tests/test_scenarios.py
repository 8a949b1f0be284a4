"""The family of simulated datasets: they obey the schema, what is rare has little weight, and outcomes and counts are as said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.scenarios import Columns, Scenario, _values, scenario_frame, scenarios, unstated, whole

TOLD = cf.Schema(
    {
        "a": cf.Numeric(0, 100, typical=cf.Typical(20, 60, own=1.0)),
        "b": cf.Numeric(-5, 5, typical=cf.Typical(-2, 2, own=1.0)),
        "g": cf.Categorical(["u", "v", "w"], typical=[0.7, 0.25, 0.05]),
        "y": cf.Numeric(0, 50, typical=cf.Typical(10, 40, own=0.5)),
    }
)


def of(*features: str, response: str = "y", outcome: str = "") -> Columns:
    return Columns(features, (response,), outcome)


def test_records_are_as_the_schema_states() -> None:
    for k in range(4):
        records = scenario_frame(TOLD, of("a", "b", "g"), 40_000, k)
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
        records = scenario_frame(schema, of(*columns), 20_000, k)
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


def test_rare_records_have_little_weight() -> None:
    schema = cf.Schema({"x": cf.Numeric(-100, 100, typical=(-2, 2)), "y": cf.Numeric(0, 1)})
    for one in scenarios(schema, of("x"), 6):
        x, w = schema["x"].decode(one.codes["x"]), one.weights / one.weights.sum()
        assert abs(w[np.abs(x) > 2].sum() - 0.05) < 0.03
        assert w[np.argmax(np.abs(x))] < 0.5 / len(w)
    schema = cf.Schema({"g": cf.Categorical(["u", "v", "w"], typical=[0.98, 0.019, 0.001]), "y": cf.Numeric(0, 1)})
    one = scenarios(schema, of("g"), 1)[0]
    rare = one.codes["g"] == 2
    assert rare.sum() >= 8
    assert one.weights[rare].sum() / one.weights.sum() == pytest.approx(0.001, rel=0.2)


def test_levels_next_to_empty_occur_until_shares_are_stated() -> None:
    def least(typical: list[float] | None) -> list[float]:
        schema = cf.Schema({"g": cf.Categorical(list("abcdef"), typical=typical), "y": cf.Numeric(0, 1)})
        found = []
        for one in scenarios(schema, of("g"), 48):
            own = np.bincount(one.codes["g"].astype(int), one.weights, 6) / one.weights.sum()
            assert own.sum() == pytest.approx(1.0)
            found.append(float(own.min()))
        return found

    # four levels, each with a chance of .1: .34 of the scenarios; 99.9 % of 48 draws of it
    assert 5 <= sum(one <= 0.0105 for one in least(None)) <= 29
    assert min(least([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])) > 0.08


def test_bounds_lie_far_out_now_and_then() -> None:
    schema = cf.Schema({"a": cf.Numeric(0, 100), "b": cf.Integer(0, 10_000), "y": cf.Numeric(0, 1)})
    part = {name: [] for name in ("a", "b")}
    for one in scenarios(schema, of("a", "b"), 400):
        order = {name: np.sort(one.codes[name].repeat(np.rint(4 * one.weights).astype(int))) for name in part}
        for name, own in part.items():
            low, high = np.quantile(order[name], [0.025, 0.975])
            own.append((high - low) / (schema[name].steps - 1))
    # 99.9 % of 400 draws of .05 and of .02; a quantile of weighted records is off by a few per cent
    far = {name: np.mean(np.array(own) < 0.045) for name, own in part.items()}
    assert 0.02 <= far["a"] <= 0.095 and 0.0025 <= far["b"] <= 0.05, far
    assert min(part["a"]) < 0.02


@pytest.mark.parametrize(
    "column", [cf.Categorical(["no", "yes"], typical=[0.8, 0.2]), cf.Categorical(["no", "yes"]), cf.Integer(0, 1)]
)
def test_an_outcome_of_two_values_follows_log_odds(column: Any) -> None:
    schema = cf.Schema({"a": cf.Numeric(0, 100, typical=(20, 60)), "y": column})
    shares, steep = [], []
    for one in scenarios(schema, of("a"), 24):
        shares.append(float(one.weights @ one.codes["y"] / one.weights.sum()))
        half = len(one.weights) // 2
        assert set(one.codes["y"][:half]) == {0.0} and set(one.codes["y"][half:]) == {1.0}
        assert np.array_equal(one.codes["a"][:half], one.codes["a"][half:])
        each = one.weights[:half] + one.weights[half:]
        odds = np.log(one.weights[half:] / one.weights[:half])
        steep.append(np.sqrt(np.average((odds - np.average(odds, weights=each)) ** 2, weights=each)))
    # what is cut off far out takes a little of the sd
    assert min(steep) > 0.25 and max(steep) < 2.05 and np.median(steep) == pytest.approx(1.15, abs=0.4)
    if getattr(column, "shares", None) is not None:
        assert np.allclose(shares, 0.2, atol=1e-6)
    else:
        assert 0.05 <= min(shares) < 0.3 and 0.7 < max(shares) <= 0.95


def test_counts_are_events_in_every_second_scenario_where_they_are_asked_for() -> None:
    schema = cf.Schema({"a": cf.Numeric(0, 1), "y": cf.Integer(0, 40)})
    plain, counts = scenarios(schema, of("a"), 24), scenarios(schema, of("a", outcome="count"), 24)
    spread = []
    for k, (one, own) in enumerate(zip(plain, counts, strict=True)):
        if k % 2:
            assert np.array_equal(one.codes["y"], own.codes["y"])
            continue
        assert len(own.weights) == 5 * len(one.weights)
        y, w = own.codes["y"], own.weights / own.weights.sum()
        mean = float(w @ y)
        assert 0.3 <= mean <= 20.5
        spread.append((float(w @ (y - mean) ** 2) / mean, k))
    # Poisson counts along a line vary as their mean, or a little more; those with zeros in excess much more
    assert np.median([one for one, k in spread if k % 8 == 0]) < 3 < np.median([one for one, k in spread if k % 8 == 6])
    told = cf.Schema({"a": cf.Numeric(0, 1), "y": cf.Integer(0, 2_000, typical=(0, 8))})
    for own in scenarios(told, of("a", outcome="count"), 8)[::2]:
        assert float(own.weights @ own.codes["y"]) / own.weights.sum() < 8


def test_public_records_are_a_scenario_of_their_own() -> None:
    frame = {"a": [10.0, 20.0, 200.0], "b": [0.0, 1.0, -1.0], "g": ["u", "w", "v"], "y": [1.0, 2.0, 3.0]}
    one = Scenario.of_records(frame, TOLD)
    assert one.weights.tolist() == [1, 1, 1] and one.codes["g"].tolist() == [0, 2, 1]
    assert one.practice(6)["a"].round(3).tolist() == [10.0, 10.0, 20.0, 20.0, 100.0, 100.0]


def test_what_is_stated_is_known() -> None:
    names = ("a", "g", "y")
    assert not unstated(TOLD, names) and whole(TOLD, names)
    assert unstated(TOLD.bare, names) and not whole(TOLD.bare, names)
    assert scenarios(TOLD, of("a"), 3) is scenarios(TOLD, of("a"), 3)
