"""Features whose bounds reach far beyond their values: answered for where the tail that can be counted is short, and not otherwise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.simulated import simulated

import confide as cf
from confide.methods.regression.evidence.sample_size_advice import far, short_tail
from confide.regression import LeastSquares


def histogram(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.histogram(values, 64, (low, high))[0].astype(float)


def test_a_short_tail_is_told_from_a_long_one_without_noise() -> None:
    generator = np.random.default_rng(1)
    even, long = generator.normal(size=20_000), np.exp(generator.normal(size=20_000))
    for values, expected in ((even, True), (long, False)):
        bounds = (float(values.mean() - 50 * values.std()), float(values.mean() + 50 * values.std()))
        counts = histogram(values, *bounds)
        found = short_tail(counts, 1e-9, len(values), bounds, float(values.mean()), float(values.std()))
        assert found is expected


def test_noise_counts_against_a_tail() -> None:
    even = np.random.default_rng(1).normal(size=2_000)
    counts = histogram(even, -50.0, 50.0)
    assert short_tail(counts, 0.5, 2_000, (-50.0, 50.0), 0.0, 1.0)
    assert not short_tail(counts, 20.0, 2_000, (-50.0, 50.0), 0.0, 1.0)


@pytest.mark.parametrize("n", [2_000, 5_000])
def test_a_curved_mean_of_a_long_tailed_feature_gets_no_interval_but_a_right_one(n: int) -> None:
    """y = 3 log(1 + x), x lognormal in bounds that reach 46 sds: with limits as for light tails intervals miss the line far too often."""
    schema = cf.Schema({"x": cf.Numeric(0, 100), "y": cf.Numeric(-20, 40)})
    points = np.exp(np.random.default_rng(1).normal(size=2_000_000)).clip(0, 100)
    known = np.cov(points, 3 * np.log1p(points))
    slope, answered = known[0, 1] / known[0, 0], 0
    for seed in range(6):
        generator = np.random.default_rng((7, n, seed))
        x = np.exp(generator.normal(size=n))
        frame = pd.DataFrame({"x": x, "y": 3 * np.log1p(x) + generator.normal(size=n)})
        data = cf.read(frame, schema)
        result = simulated(LeastSquares("y ~ x"), data, cf.GDP(1.0), seed)
        if result.status == "valid":
            answered += 1
            low, high = result.conf_int().loc["x"]
            assert low <= slope <= high
        else:
            assert result.status == "imprecise" and "bounds of x" in result.reason
    assert answered <= 3


def test_a_feature_of_an_endless_tail_is_not_answered_for_however_far_out_its_limits_are() -> None:
    """x lognormal(0, 1.5) with bounds at 103 sds or more: limits are so far out that a residual of four sds at the bounds passes them."""
    schema = cf.Schema({"x": cf.Numeric(0, 500), "y": cf.Numeric(-10, 30)})
    for seed in range(3):
        generator = np.random.default_rng((9, seed))
        x = np.exp(1.5 * generator.normal(size=10_000))
        frame = pd.DataFrame({"x": x, "y": 3 * np.log1p(x) + generator.normal(size=10_000)})
        data = cf.read(frame, schema)
        result = cf.infer(
            cf.release(LeastSquares("y ~ x"), data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(seed))
        )
        assert result.status == "imprecise" and "bounds of x" in result.reason


def test_bounds_are_not_far_where_a_large_residual_there_is_not_limited() -> None:
    assert far(50.0, 30.0, False) and not far(50.0, 60.0, False)
    assert far(120.0, 30.0, True) and far(120.0, 130.0, True)


def test_a_feature_with_a_short_tail_in_wide_bounds_is_answered_for_and_the_assumption_is_named() -> None:
    schema = cf.Schema({"x": cf.Numeric(-50, 50), "y": cf.Numeric(-10, 10)})
    answered = 0
    for seed in range(6):
        generator = np.random.default_rng((8, seed))
        x = generator.normal(size=10_000)
        frame = pd.DataFrame({"x": x, "y": x + generator.normal(size=10_000)})
        data = cf.read(frame, schema)
        result = simulated(LeastSquares("y ~ x"), data, cf.GDP(1.0), seed)
        answered += result.status == "valid" and "is extreme within the bounds of x" in result.intervals_for
    assert answered >= 5


def test_a_plan_warns_of_bounds_far_beyond_what_is_typical() -> None:
    response = cf.Numeric(0, 50, typical=cf.Typical(10, 40, own=0.5))
    schema = cf.Schema({"x": cf.Numeric(0, 1e6, typical=(5e3, 9e4)), "y": response})
    plan = cf.plan(cf.regression.LeastSquares("y ~ x"), schema, cf.GDP(1.0), n=4_000)
    (note,) = [note for note in plan.notes if "typical standard deviations" in note]
    assert "the bounds of x reach 44" in note and "declare it within [0, 2.6e+05]" in note
    assert "unless DP counts show a short tail" in note and note not in plan.to_json()
    wider = cf.Schema({"x": cf.Numeric(0, 1e7, typical=(5e3, 9e4)), "y": response})
    plan = cf.plan(cf.regression.LeastSquares("y ~ x"), wider, cf.GDP(1.0), n=4_000)
    assert any("it will go unanswered" in note for note in plan.notes) and plan.forecast["valid"]["4,000"] == 0
    quiet = cf.regression.LeastSquares("y ~ x", limit="none")
    assert not any("typical" in note for note in cf.plan(quiet, schema, cf.GDP(1.0)).notes)
