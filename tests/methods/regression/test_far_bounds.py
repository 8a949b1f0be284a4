"""Features whose declared bounds reach far beyond their values are not answered for; where ranges are found, they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.simulated import simulated

import confide as cf
from confide.methods.regression.evidence.sample_size_advice import REACH
from confide.regression import LeastSquares, Logistic

_WORDS = "could move its coefficient unseen; leave bounds='declared' out, and the range is found"


def curved(n: int, seed: int, size: float = 1.0) -> pd.DataFrame:
    generator = np.random.default_rng((7, n, seed))
    x = np.exp(size * generator.normal(size=n))
    return pd.DataFrame({"x": x, "y": 3 * np.log1p(x) + generator.normal(size=n)})


@pytest.mark.parametrize("n", [2_000, 5_000])
def test_a_curved_mean_of_a_long_tailed_feature_gets_no_interval_but_a_right_one(n: int) -> None:
    """y = 3 log(1 + x), x lognormal in bounds that reach 46 sds: with limits as for light tails intervals miss the line far too often."""
    schema = cf.Schema({"x": cf.Numeric(0, 100), "y": cf.Numeric(-20, 40)})
    points = np.exp(np.random.default_rng(1).normal(size=2_000_000)).clip(0, 100)
    known = np.cov(points, 3 * np.log1p(points))
    slope, answered = known[0, 1] / known[0, 0], 0
    for seed in range(6):
        data = cf.read(curved(n, seed), schema)
        result = simulated(LeastSquares("y ~ x", bounds="declared"), data, cf.GDP(1.0), seed)
        if result.status == "valid":
            answered += 1
            low, high = result.conf_int().loc["x"]
            assert low <= slope <= high
        else:
            assert result.status == "imprecise" and "bounds of x" in result.reason and _WORDS in result.reason
    assert answered <= 3


def test_a_feature_of_an_endless_tail_is_not_answered_for_however_far_out_its_limits_are() -> None:
    """x lognormal(0, 1.5) with bounds at 103 sds or more: limits are so far out that a residual of four sds at the bounds passes them."""
    schema = cf.Schema({"x": cf.Numeric(0, 500), "y": cf.Numeric(-10, 30)})
    for seed in range(3):
        data = cf.read(curved(10_000, seed, 1.5), schema)
        result = simulated(LeastSquares("y ~ x", bounds="declared"), data, cf.GDP(1.0), seed)
        assert result.status == "imprecise" and "bounds of x" in result.reason


@pytest.mark.parametrize(
    ("method", "outcome"),
    [
        (LeastSquares, lambda x, g: x + g.normal(size=len(x))),
        (Logistic, lambda x, g: (x + g.logistic(size=len(x)) > 0) * 1),
    ],
)
def test_of_far_bounds_a_range_that_is_found_answers(method: Any, outcome: Callable[..., Any]) -> None:
    generator = np.random.default_rng(8)
    x = generator.normal(size=10_000)
    frame = pd.DataFrame({"x": x, "z": generator.normal(size=10_000), "y": outcome(x, generator)})
    response = cf.Numeric(-10, 10) if method is LeastSquares else cf.Integer(0, 1)
    schema = cf.Schema({"x": cf.Numeric(-50, 50), "z": cf.Numeric(-4, 4), "y": response})
    data = cf.read(frame, schema)
    for seed in range(3):
        asked = [method("y ~ x + z", bounds=bounds) for bounds in ("auto", "declared")]
        found, declared = (simulated(one, data, cf.GDP(1.0), seed) for one in asked)
        assert found.status == "valid" and found.conf_int().loc["x", :].between(0.8, 1.2).all()
        shown = declared.conf_int()
        assert declared.status == "partial" and _WORDS in declared.reason
        assert np.isnan(shown.loc["x"]).all() and np.isfinite(shown.loc["z"]).all()
        release = cf.release(asked[1], data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(seed))
        assert release.ranges == {}


def test_without_limits_far_bounds_only_add_noise() -> None:
    generator = np.random.default_rng(8)
    x = generator.normal(size=20_000)
    frame = pd.DataFrame({"x": x, "y": x + generator.normal(size=20_000)})
    data = cf.read(frame, cf.Schema({"x": cf.Numeric(-30, 30), "y": cf.Numeric(-10, 10)}))
    result = simulated(LeastSquares("y ~ x", limit="none", bounds="declared"), data, cf.GDP(3.0), 1)
    assert result.status == "valid" and result.conf_int().loc["x"].between(0.8, 1.2).all()


def test_a_square_reaches_farther_than_its_column_and_is_answered_where_the_range_is_found() -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_t(3, size=10_000)
    frame = pd.DataFrame({"x": x, "y": x + generator.normal(size=10_000)})
    data = cf.read(frame, cf.Schema({"x": cf.Numeric(-1e4, 1e4), "y": cf.Numeric(-1e4, 1e4)}))
    method = LeastSquares("y ~ x + I(x**2)", bounds="auto")
    release = cf.release(method, data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    assert cf.infer(release).status == "valid"
    low, high = release.ranges["x"].low, release.ranges["x"].high
    squares = np.clip(x, low, high) ** 2
    assert (max(high, -low) ** 2 - squares.mean()) / squares.std() > REACH / 2
