"""What a hostile review found in propose-test-release; each test says what must hold."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.few import few
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import BudgetItem, Composed, OpaqueRelease, Test
from confide.core.release import statements_hold
from confide.errors import ConfideError, PlanError
from confide.methods.ptr.safety import bound_from, pack_bound
from confide.noise import SimulatedNoise
from confide_lab.methods import PosteriorSampling


def test_a_loss_beyond_every_limit_does_not_pass() -> None:
    """Losses are cut to 2^52 steps, the limit is not: where epsilon > 2^32 moves every loss passes, an infinite one too."""
    test = cf.ptr.LossTest(1.0, 1e-6, moves=1e-10, test_epsilon=0.5, false_pass=1e-6)
    assert not any(test(loss, SimulatedNoise(seed)) for seed in range(20) for loss in (1.5, 50.0, inf))


@pytest.mark.parametrize(("moves", "loss"), [(1e-11, 1.0), (1e-6, 1e6), (0.01, inf)])
def test_a_uniform_bound_is_above_the_loss(moves: float, loss: float) -> None:
    bound = cf.ptr.UniformBound(moves=moves, test_epsilon=0.5, failure=1e-6)
    assert all(bound(loss, SimulatedNoise(seed)) >= loss for seed in range(20))


def test_a_negative_failure_probability_pays_for_nothing() -> None:
    """A method that writes delta = -1/2 into a shown test takes it off the delta of another release."""

    def spend(name: str) -> BudgetItem:
        return BudgetItem(name, "grid_gaussian", Fraction(1), "l2", Fraction(4), Fraction(1), (1,))

    other = OpaqueRelease("other", cf.GDP(0.1, 0.5, relation="substitute"), "proof")
    event = Composed((other, Test(spend("a"), spend("b"), Fraction(-1, 2))))
    with contextlib.suppress(PlanError):
        assert not statements_hold(event, (cf.GDP(1.0, relation="substitute"),))


@pytest.mark.parametrize("share", few([0.05, 0.2], 0))
def test_slopes_of_two_valued_responses_are_covered(share: float) -> None:
    """y is 0 or 1, its bounds, whatever x is: equal variances, a linear relation, nothing clipped. Residuals of up to 1.9 half-ranges are
    cut to 1, so that sigma2 is up to 4 times too small (.80 and .88 of 300 at 95 %)."""
    schema = cf.Schema({"x": cf.Numeric(-1, 1), "y": cf.Numeric(0, 1)})
    method, runs, covered = cf.regression.EfficientPTR("y ~ x"), 120, 0
    for seed in range(runs):
        draw = np.random.default_rng(seed)
        data = pd.DataFrame({"x": draw.uniform(-1, 1, 20_000), "y": (draw.random(20_000) < share) * 1.0})
        noise = SimulatedNoise(seed)
        found = method.infer(cf.release(method, cf.read(data, schema), cf.GDP(2.0, 1e-6), ledger=None, noise=noise))
        assert found.status == "valid"
        covered += abs(found.estimates[1]) <= stats.t.ppf(0.975, found.df) * np.sqrt(found.covariance[1, 1])
    assert stats.binom.cdf(covered, runs, 0.95) > 0.001


class FarAway(cf.ptr.SafetyBound):
    """A number of any size, safe wherever it is asked for."""

    dim = 1
    alpha = 0.3

    def gamma(self, data: Any) -> int:
        return len(data)

    def estimate(self, data: Any) -> float:
        return float(data[0, 0])


def test_an_estimate_that_was_cut_is_no_plain_answer() -> None:
    """2^52 steps are 2^32 alpha: 1.75e9 with alpha = .3 comes out as 1.288e9."""
    schema = cf.Schema({"t": cf.Numeric(1.7e9, 1.8e9, on_missing="midpoint")})
    data = cf.read(pd.DataFrame({"t": np.full(1001, 1.75e9)}), schema)
    asked = {
        "privacy": cf.ApproxDP(2.0, 1e-6),
        "ledger": None,
        "gamma_plan": 400,
        "n": 1001,
        "noise": SimulatedNoise(1),
    }
    found = cf.ptr.safe_release(FarAway(), data, **asked)
    assert found.status == "imprecise" and "2^32 alphas" in found.reason
    near = cf.Schema({"t": cf.Numeric(17.0, 18.0, on_missing="midpoint")})
    assert (
        cf.ptr.safe_release(FarAway(), cf.read(pd.DataFrame({"t": np.full(1001, 17.5)}), near), **asked).status
        == "valid"
    )
    with refuses(PlanError):
        cf.ptr.OrderStatistic(501, 1.7e9, 1.8e9, alpha=0.3)


@pytest.mark.parametrize("mu", [0.05, 0.5])
def test_a_balanced_preset_without_a_sample_is_refused_before_the_charge_or_declines(mu: float) -> None:
    """Whether a sample is possible follows from public numbers alone, and no branch of the plan is empty."""
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    method = PosteriorSampling("y ~ x", penalty=0.01, preset="balanced", most_records=1000)
    data = cf.read(schema.sample(500, seed=2), schema)
    try:
        release = cf.release(method, data, cf.GDP(mu, 1e-9), ledger=None)
    except PlanError:
        return
    except ConfideError as error:
        pytest.fail(f"failed after the charge: {error}")
    assert release.status == "declined"


def test_a_report_on_another_alpha_is_not_quoted() -> None:
    class Own(cf.ptr.OrderStatistic):
        pass

    schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")})
    report = cf.audit.falsify_safety_bound(Own(8, 0.0, 1.0, alpha=0.9), [(0, 1)], n=15, restarts=2)
    with pytest.raises(PlanError):
        cf.ptr.safe_release(
            Own(50, 0.0, 1.0, alpha=0.01),
            cf.read(schema.sample(101, seed=1), schema),
            privacy=cf.GDP(2.0, 1e-4),
            ledger=None,
            gamma_plan=20,
            n=101,
            report=report,
            noise=SimulatedNoise(1),
        )


def _own(version: int, name: str) -> Any:
    @dataclass(frozen=True)
    class Own(cf.ptr.SafetyBound):
        alpha: float = 0.1
        dim = 1
        number = version

        def gamma(self, prepared: Any) -> float:
            return float(version)

        def estimate(self, prepared: Any) -> Any:
            return np.zeros(1)

    Own.__qualname__ = name
    return Own


def test_a_plan_of_a_class_that_was_defined_twice_is_refused_or_takes_the_last() -> None:
    """A notebook cell that is run again leaves the old class among the subclasses; a set picks any of them."""
    for name in ("First", "Second", "Third", "Fourth", "Fifth", "Sixth"):
        kept = [_own(version, name) for version in range(6)]
        with contextlib.suppress(PlanError):
            assert type(bound_from(pack_bound(kept[-1]()))) is kept[-1]
