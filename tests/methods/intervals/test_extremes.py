"""Records that are all alike, at a bound or beyond what the family allows: intervals hold them, or say that they may not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.few import few

import confide as cf
from confide.methods.intervals.count_posteriors import share_posterior
from confide.methods.intervals.marginals import NoiseLaw
from confide.noise import SimulatedNoise

I = cf.intervals  # noqa: E741

SCHEMA = cf.Schema(
    {
        "s": cf.Categorical(["no", "yes"], on_missing="no"),
        "g": cf.Categorical(["a", "b", "c"], on_missing="a"),
        "v": cf.Integer(0, 25, on_missing=0),
        "x": cf.Numeric(-80, 80, on_missing="midpoint"),
    }
)
BUDGETS = [cf.PureDP(1.0, relation="substitute"), cf.GDP(1.0, relation="substitute")]


def _alike(n: int, high: bool) -> Any:
    values = {"s": ["no", "yes"][high], "g": ["a", "c"][high], "v": 25.0 * high, "x": 80.0 if high else -80.0}
    return cf.read({name: [value] * n for name, value in values.items()}, SCHEMA)


@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
@pytest.mark.parametrize("kind", few(["credible", "confidence"], 1))
@pytest.mark.parametrize("high", [False, True])
def test_a_parameter_at_a_bound_is_held(privacy: Any, kind: str, high: bool) -> None:
    """20 draws of noise: shares of 0 and 1, a mean at its bound, a rate of 0. At .95 fewer than 14 of 20 hold once in 30,000."""
    held: dict[str, list[bool]] = {}
    data = _alike(400, high)
    for seed in range(20):
        asked = {"privacy": privacy, "ledger": None, "noise": SimulatedNoise(seed), "kind": kind}
        ends = I.proportion(data, "s", **asked).conf_int().to_numpy()[0]
        held.setdefault("share", []).append(bool(ends[int(high)] == high))
        ends = I.proportion(data, "g", **asked).conf_int().to_numpy()
        truth = np.array([0.0, 0.0, 1.0] if high else [1.0, 0.0, 0.0])
        held.setdefault("levels", []).append(bool(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() > 0.6))
        ends = I.mean(data, "x", **asked).conf_int().to_numpy()[0]
        held.setdefault("mean", []).append(bool(ends[int(high)] == (80 if high else -80)))
        if not high:
            asked = {**asked, "kind": "poisson"}
            held.setdefault("rate", []).append(I.mean(data, "v", **asked).conf_int().iloc[0, 0] == 0)
    assert all(sum(found) >= 14 for found in held.values()), {name: sum(found) for name, found in held.items()}


@pytest.mark.parametrize("privacy", few(BUDGETS, 1), ids=str)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_0_or_1_of_a_group_is_held(privacy: Any, share: float) -> None:
    """1,000 records, half in each group, none or all of the first with the outcome; 20 draws of noise, as above."""
    group = np.arange(1_000) % 2
    outcome = np.where(group == 0, share, np.arange(1_000) % 10 < 3)
    frame = {"s": np.where(outcome > 0.5, "yes", "no"), "t": np.where(group == 1, "m", "f")}
    schema = cf.Schema({"s": SCHEMA["s"], "t": cf.Categorical(["f", "m"], on_missing="f")})
    data, held, wide = cf.read(frame, schema), 0, 0
    for seed in range(20):
        ends = (
            I.difference(data, "s ~ t", privacy=privacy, ledger=None, noise=SimulatedNoise(seed)).conf_int().to_numpy()
        )
        held += bool(ends[1, int(share)] == share)
        wide += bool(ends[1, 1] - ends[1, 0] > 0.1 or ends[0, 1] - ends[0, 0] > 0.25)
    assert held >= 14 and wide <= 2


@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
@pytest.mark.parametrize("of", ["column", "normal"])
@pytest.mark.parametrize("spread", few([0.0, 0.4], 1))
def test_a_variance_far_below_the_noise_is_held(privacy: Any, of: str, spread: float) -> None:
    """Bounds 200 times the standard deviation apart: the released second moment says that the variance may be 0. 20 draws of noise."""
    values = 30 + spread * np.random.default_rng(1).normal(size=400)
    data = cf.read({"x": values}, cf.Schema({"x": SCHEMA["x"]}))
    variances, held = (float(values.var()), 0.16 * (spread > 0)), 0
    for seed in range(20):
        low, high = (
            I.variance(data, "x", privacy=privacy, ledger=None, noise=SimulatedNoise(seed), of=of)
            .conf_int()
            .to_numpy()[0]
        )
        held += bool(low <= min(variances) and max(variances) <= high)
    assert held >= 14
    ends = I.variance(
        data, "x", privacy=privacy, ledger=None, noise=SimulatedNoise(1), of=of, kind="confidence"
    ).conf_int()
    assert ends.iloc[0, 0] <= min(variances) <= ends.iloc[0, 1]


@pytest.mark.parametrize("privacy", [*BUDGETS, cf.GDP(20.0, relation="substitute")], ids=str)
def test_a_rate_beyond_the_largest_count_is_said(privacy: Any) -> None:
    """Rates of 40 and of 10 where 25 is the largest count: the first is beyond what is looked at, and no warning speaks of it."""
    for rate, status in ((40.0, "imprecise"), (10.0, "valid")):
        counts = np.minimum(np.random.default_rng(1).poisson(rate, 5_000), 25)
        data = cf.read({"v": counts}, cf.Schema({"v": SCHEMA["v"]}))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = I.mean(data, "v", privacy=privacy, ledger=None, noise=SimulatedNoise(1), kind="poisson")
        assert found.status == status and ("at_parameter_bound" in found.flags) is (status == "imprecise")
        ends = found.conf_int().to_numpy()
        assert np.isfinite(ends).all() and (status == "valid" or ends[0, 1] > 24.9)
    assert (
        "Declare a larger one"
        in I.mean(_alike(500, True), "v", privacy=privacy, ledger=None, noise=SimulatedNoise(1), kind="poisson").reason
    )


def test_no_release_is_ok_where_few_would_be() -> None:
    """100 records at epsilon .1: intervals of a share of .5 are wide but where noise moved the count to an end, and then hold it rarely."""
    values = {"s": ["no", "yes"] * 50, "g": ["a", "c"] * 50}
    data = cf.read(values, cf.Schema({name: SCHEMA[name] for name in values}))
    for epsilon, status in ((0.1, {"imprecise"}), (0.5, {"valid"})):
        asked = {"privacy": cf.PureDP(epsilon, relation="substitute"), "ledger": None}
        found = {I.proportion(data, "s", noise=SimulatedNoise(seed), **asked).status for seed in range(40)}
        assert found == status
    releases = (
        I.proportion(data, "g", noise=SimulatedNoise(seed), **{**asked, "privacy": BUDGETS[0]}) for seed in range(10)
    )
    assert {found.status for found in releases} == {"valid"}


def test_a_difference_of_a_group_that_noise_nearly_hides_is_not_ok() -> None:
    """25 of 500 records: the few releases that noise moved to an end were ok, and held the share rarely."""
    schema = cf.Schema({name: cf.Categorical(["no", "yes"], on_missing="no") for name in ("y", "small")})
    generator, small = np.random.default_rng(1), np.arange(500) < 25
    status = []
    for seed in range(40):
        y = generator.random(500) < np.where(small, 0.5, 0.3)
        data = cf.read({"y": np.where(y, "yes", "no"), "small": np.where(small, "yes", "no")}, schema)
        found = I.difference(
            data, "y ~ small", privacy=cf.PureDP(0.5, relation="substitute"), ledger=None, noise=SimulatedNoise(seed)
        )
        status.append(found.status)
    assert status.count("imprecise") >= 38


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ x - 1"])
@pytest.mark.parametrize(("spread", "status"), [(0.25, "valid"), (2.5, "imprecise")])
def test_a_line_of_responses_cut_by_their_bounds_is_not_ok(formula: str, spread: float, status: str) -> None:
    """Errors of sd 2.5 in bounds of -2 to 2: slopes of what is released are drawn to 0."""
    g = np.random.default_rng(2)
    x = g.uniform(-1, 1, 2_000)
    bounds = {"x": cf.Numeric(-1, 1, on_missing=0.0), "y": cf.Numeric(-2, 2, on_missing=0.0)}
    data = cf.read({"x": x, "y": 0.5 * x + g.normal(0, spread, 2_000)}, cf.Schema(bounds))
    found = I.slope(data, formula, privacy=cf.GDP(1.0, relation="substitute"), ledger=None, noise=SimulatedNoise(1))
    assert found.status == status and ("slope_attenuated" in found.flags) is (status == "imprecise")


@pytest.mark.parametrize(("share", "n", "epsilon"), [(0.3, 100, 0.1), (0.02, 100, 1.0), (0.0, 50, 0.5)])
def test_reaching_a_bound_that_is_not_rejected_costs_next_to_no_width(share: float, n: int, epsilon: float) -> None:
    """Summed over all releases: at most half a per cent wider; a share of 0, which equal tails never hold, is held at the level."""
    law = NoiseLaw("geometric", 1 / epsilon)
    z = np.arange(-int(25 / epsilon), int(25 / epsilon) + 1)
    chances = np.convolve(stats.binom.pmf(np.arange(n + 1), n, share), np.exp(law.logpdf(z)))
    widths, held = np.zeros(2), np.zeros(2)
    for y, chance in zip(np.arange(z[0], n + z[-1] + 1), chances, strict=True):
        if chance < 1e-6:
            continue
        low, high = share_posterior(float(y), n, law).quantile([0.025, 0.975])
        least, most = law.allows(float(y), 0, n, 0.05)
        for k, (a, b) in enumerate(((low, high), (0.0 if least else low, 1.0 if most else high))):
            widths[k] += chance * (b - a)
            held[k] += chance * (a <= share <= b)
    if share > 0:
        assert widths[1] <= 1.005 * widths[0] and held[1] >= held[0]
    else:
        assert held[0] == 0 and held[1] >= 0.95


@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
@pytest.mark.parametrize(
    ("half", "slope", "status"), [(0.02, 30.0, "imprecise"), (1.0, 0.5, "valid")], ids=["hidden", "seen"]
)
def test_a_line_whose_term_varies_by_less_than_noise_is_not_ok(
    privacy: Any, half: float, slope: float, status: str
) -> None:
    """Bounds of the term 50 times too wide: noise passes for its spread and draws the slope to 0, which next to no interval holds."""
    schema = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0), "y": cf.Numeric(-4, 4, on_missing=0.0)})
    for seed in range(8):
        generator = np.random.default_rng(seed)
        x = generator.uniform(-half, half, 2_000)
        data = cf.read({"x": x, "y": slope * x + generator.normal(0, 0.3, 2_000)}, schema)
        found = I.slope(data, "y ~ x", privacy=privacy, ledger=None, noise=SimulatedNoise(seed))
        assert found.status == status and ("noise may be all" in found.reason) == (status == "imprecise")
