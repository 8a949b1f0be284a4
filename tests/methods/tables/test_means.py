"""Means and totals: contract, exactness, free moments, intervals of skewed columns, standardised means, missing values, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses
from tests.simulated import simulated

import confide as cf
from confide import registry
from confide.errors import PlanError
from confide.methods.tables.intervals import MeanSums
from confide.methods.tables.means import Means, Totals
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method

pytestmark = pytest.mark.usefixtures("declared")

SCHEMA = cf.Schema(
    {
        "region": cf.Categorical(["N", "S", "W"]),
        "income": cf.Numeric(0, 100),
        "bmi": cf.Numeric(10, 60),
        "age": cf.Numeric(0, 100),
    }
)
_Z = 1.959964


@pytest.fixture(autouse=True)
def registered() -> None:
    registry.register(Means)
    registry.register(Totals)


def records(n: int, seed: int = 1) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    region = g.choice(3, n, p=[0.6, 0.3, 0.1])
    return pd.DataFrame(
        {
            "region": np.array(["N", "S", "W"])[region],
            "income": np.clip(20 + 10 * region + 8 * g.gamma(2.0, 1.0, n), 0, 100),
            "bmi": np.clip(g.normal(26, 4, n), 10, 60),
            "age": g.uniform(0, 100, n),
        }
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(Means("income + log(bmi) ~ region", inference="population"), marks=pytest.mark.long),
        Totals("income ~ region", inference="dataset"),
    ],
)
def test_contract(method: Means | Totals) -> None:
    assert check_method(method, SCHEMA, replications=8).ok


def exact(method: Means | Totals, frame: pd.DataFrame) -> object:
    # a budget at which every sd stands above the noise that there might have been
    return cf.infer(cf.release(method, cf.read(frame, SCHEMA), cf.GDP(10.0), ledger=None, noise=ZeroNoise()))


def test_without_noise_they_are_the_moments_of_scipy() -> None:
    frame = records(3_000)
    found = exact(Means("income + bmi ~ region", inference="population"), frame)
    groups = frame.groupby("region")
    for name in ("income", "bmi"):
        shape = found.shape().query("variable == @name and region != 'Total'").set_index("region")
        np.testing.assert_allclose(shape["mean"], groups[name].mean(), rtol=1e-5)
        np.testing.assert_allclose(shape["sd"], groups[name].std(ddof=0), rtol=1e-4)
        np.testing.assert_allclose(shape["skewness"], groups[name].apply(lambda v: v.skew()), rtol=0.05, atol=0.02)
        np.testing.assert_allclose(shape["kurtosis"], groups[name].apply(lambda v: v.kurt()), rtol=0.1, atol=0.05)
    totals = exact(Totals("income ~ region", inference="dataset"), frame)
    assert totals.params["income"] == pytest.approx(frame.income.sum(), rel=1e-6)


def test_moments_cost_what_the_mean_costs() -> None:
    plan = Means("income ~ 1", inference="dataset").plan(SCHEMA, cf.GDP(1.0))
    spend = plan.spend("(total)")
    # T^2 + S^2 with T^2 = S^2/2: the four moments are one
    assert float(spend.sensitivity * spend.step) ** 2 == pytest.approx(1.5 * 2**40, rel=1e-6)


def noisy(u: np.ndarray, mu: float, g: np.random.Generator) -> MeanSums:
    """Sums of runs (runs, n) with the noise of one column under add-remove."""
    runs, n = u.shape
    v = u * u
    v0, v1 = 3 / mu**2, 1.5 / mu**2
    exact = [np.full(runs, float(n)), u.sum(1), (1 - v).sum(1), (u * (1 - v)).sum(1), (v * (1 - v)).sum(1)]
    parts = [own + np.sqrt(v0 if k == 0 else v1) * g.standard_normal(runs) for k, own in enumerate(exact)]
    return MeanSums(*parts, np.full(runs, v0), np.full(runs, v1))


@pytest.mark.parametrize(("n", "mu"), [(50, 1.0), (200, 0.3), (1000, 0.3)])
def test_intervals_of_means_cover_and_those_without_noise_do_not(n: int, mu: float) -> None:
    g = np.random.default_rng(7)
    u = np.clip(0.2 + 0.25 * g.standard_normal((2_500, n)), -1, 1)
    sums = noisy(u, mu, g)
    low, high = sums.interval(_Z)
    assert 0.94 <= ((low <= 0.2) & (high >= 0.2)).mean() <= 0.98
    half = _Z * np.sqrt(sums.variance / sums.size)
    assert (np.abs(sums.mean - 0.2) <= half).mean() < 0.93


@pytest.mark.parametrize(("n", "mu", "least"), [(50, 10.0, 0.84), (100, 3.0, 0.905), (500, 10.0, 0.938)])
def test_intervals_of_rare_events_follow_the_skewness(n: int, mu: float, least: float) -> None:
    g = np.random.default_rng(8)
    sums = noisy(np.where(g.random((2_500, n)) < 0.01, 1.0, -1.0), mu, g)
    low, high = sums.interval(_Z)
    assert ((low <= -0.98) & (high >= -0.98)).mean() > least - 0.02
    if (n, mu) == (50, 10.0):
        assert (
            sums.n < 3 * sums.skewness**2
        ).mean() > 0.35  # flagged where an event is seen; three runs in five have none


def test_intervals_of_standard_deviations_cover_off_centre() -> None:
    g = np.random.default_rng(9)
    u = np.clip(0.6 + 0.15 * g.standard_normal((2_500, 400)), -1, 1)
    truth = float(np.clip(0.6 + 0.15 * g.standard_normal(400_000), -1, 1).std())
    _, _, low, high = noisy(u, 2.0, g).spread_interval(_Z)
    assert 0.93 <= ((low <= truth) & (truth <= high)).mean() <= 0.99


def test_an_interval_that_says_nothing_is_the_whole_range() -> None:
    # 28 of 40 releases are of this status
    of, data = Means("income ~ region", inference="population"), cf.read(records(30), SCHEMA)
    every = (simulated(of, data, cf.GDP(0.01), seed) for seed in range(20))
    found = next(one for one in every if one.status == "no_information")
    assert found.params.isna().all()
    assert "whole_range" in found.to_frame()["flags"].iloc[0]


def test_standardised_means_weigh_the_strata() -> None:
    found = exact(Means("income ~ region", inference="population"), records(3_000))
    groups = records(3_000).groupby("region").income.mean()
    own = found.standardise({"N": 0.2, "S": 0.3, "W": 0.5}, "region")
    assert own.estimate.iloc[0] == pytest.approx(0.2 * groups["N"] + 0.3 * groups["S"] + 0.5 * groups["W"], rel=1e-5)
    assert own.status.iloc[0] == "valid"
    with refuses(PlanError):
        found.standardise({"N": 1.0}, "region")


def test_each_column_has_its_own_missing_values() -> None:
    frame = records(2_000)
    frame.loc[::4, "bmi"] = np.nan
    both = exact(Means("income + bmi ~ region", inference="dataset"), frame)
    assert both.params["income"] == pytest.approx(frame.income.mean(), rel=1e-5)
    assert both.params["bmi"] == pytest.approx(frame.bmi.mean(), rel=1e-5)


def test_a_difference_of_means_and_a_ratio_that_is_refused() -> None:
    found = simulated(Means("income ~ region", inference="population"), cf.read(records(4_000), SCHEMA), cf.GDP(1.0), 1)
    own = found.diff({"region": "S"}, {"region": "N"})
    assert own.ci_low.iloc[0] < 10 < own.ci_high.iloc[0]
    assert found.ratio("region").shape == (2, 4) and set(own["flags"]) == {""}
    schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "gain": cf.Numeric(-5, 5)})
    gains = simulated(
        Means("gain ~ region", inference="population"), cf.read(schema.sample(500, 1), schema), cf.GDP(1.0), 1
    )
    with refuses(PlanError):
        gains.ratio("region")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Means("~ region", inference="population").about(SCHEMA),
        lambda: Means("income + income ~ region", inference="population").about(SCHEMA),
        lambda: Means("region ~ 1", inference="population").about(SCHEMA),
        lambda: Means("log(income) ~ region", inference="population").about(SCHEMA),
        lambda: Means("income ~ region"),
    ],
)
def test_bad_input_names_what_works(make: object) -> None:
    with refuses(PlanError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(("law", "n"), [("exponential", 200), ("spikes", 1000), ("two values", 200)])
def test_intervals_of_standard_deviations_follow_the_skewness_of_squares(law: str, n: int) -> None:
    g = np.random.default_rng(7)

    def drawn(size: int) -> np.ndarray:
        if law == "exponential":
            return np.clip(-1 + 0.2 * g.exponential(1, size), -1, 1)
        if law == "spikes":
            return np.where(g.random(size) < 0.005, 0.9, 0.0) + 0.03 * g.normal(size=size)
        return np.where(g.random(size) < 0.05, 1.0, -1.0)

    truth = drawn(1_000_000).std()
    _, _, low, high = noisy(np.stack([drawn(n) for _ in range(200)]), 5.0, g).spread_interval(_Z)
    covered = int(((low <= truth) & (truth <= high)).sum())
    # 99.9 % of 200 runs at .92 lie above 170
    assert covered >= 170, covered


def test_a_spread_that_few_extremes_rule_is_flagged() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1)})
    rare = pd.DataFrame({"x": (np.arange(400) < 2).astype(float)})
    even = pd.DataFrame({"x": np.linspace(0, 1, 400)})
    for frame, flag in ((rare, "skewed_few_records"), (even, "")):
        release = cf.release(
            Means("x ~ 1", inference="population"), cf.read(frame, schema), cf.GDP(20.0), ledger=None, noise=ZeroNoise()
        )
        assert cf.infer(release).sd()["flags"].tolist() == [flag]


@pytest.mark.parametrize("mu", [1.0, 100.0])
def test_an_sd_below_its_noise_is_no_estimate_and_its_interval_starts_at_nothing(mu: float) -> None:
    """The sd .01 in bounds of 10: the floor of .05 was handed out with [.025, .069]; an empty cell had an sd without a flag."""
    g, n = np.random.default_rng(1), 100_000
    schema = cf.Schema({"x": cf.Numeric(0, 10), "h": cf.Categorical(["a", "b", "nobody"])})
    data = cf.read(pd.DataFrame({"x": 3 + 0.01 * g.normal(size=n), "h": g.choice(["a", "b"], n)}), schema)
    covered = 0
    for seed in range(6):
        release = cf.release(
            Means("x ~ h", inference="population"), data, cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed)
        )
        sd = cf.infer(release).sd()
        covered += int(((sd["ci_low"] <= 0.01) & (sd["ci_high"] >= 0.01))[:3].sum())
        unknown = sd["estimate"].isna()
        assert (sd["flags"] == "count_below_noise").equals(unknown) and (sd["ci_low"][unknown] == 0).all()
        assert unknown.tolist()[:3] == [True] * 3 or mu > 1
        assert unknown.iloc[3]
        assert (cf.infer(release).shape()["sd"].isna() == unknown).all()
        told = sd["estimate"][~unknown]
        assert (told < 0.02).all()
    assert covered >= 13  # of 18 at .95, but for one file in a thousand


@pytest.mark.parametrize("levels", [["a", "b"], ["A", "B"]])
def test_where_next_to_nobody_was_counted_the_reason_is_the_labels(levels: list[str]) -> None:
    """Labels that the schema does not know are the first thing to look at; with labels that it knows the reason does not speak of them."""
    schema = cf.Schema({"x": cf.Numeric(0, 1), "g": cf.Categorical(levels)})
    frame = pd.DataFrame({"x": np.linspace(0, 1, 400), "g": ["a", "b"] * 200})
    found = simulated(Means("x ~ g", inference="population"), cf.read(frame, schema), cf.GDP(0.5), 1)
    assert ("not a level" in found.reason) == (levels == ["A", "B"]) == (found.status != "valid")
