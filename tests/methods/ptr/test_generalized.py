"""Generalized propose-test-release: one-sided losses, bounds that hold under both neighbours, the Renyi theorem and its counterexamples."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, log

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from tests.messages import refuses

from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP
from confide.noise import SimulatedNoise
from confide.ptr import LossTest, UniformBound, generalized_guarantee, generalized_rdp
from confide_lab.published import generalized_ptr as published


def test_the_deltas_of_test_and_mechanism_do_not_add() -> None:
    found = generalized_guarantee(epsilon=1.0, delta=1e-6, test_epsilon=0.5, false_pass=3e-6, test_delta=1e-7)
    # rounded up where floats fall below the exact sum
    assert found.epsilon == 1.5 and Fraction(3e-6) + Fraction(1e-7) <= Fraction(found.delta) < 3.1e-6 * (1 + 1e-12)
    for wrong in ({"epsilon": 0.0}, {"test_epsilon": inf}, {"delta": 1.0}, {"false_pass": -0.1}):
        with pytest.raises(PrivacyError):
            generalized_guarantee(**{"epsilon": 1.0, "delta": 1e-6, "test_epsilon": 0.5, "false_pass": 1e-6, **wrong})


def test_the_theorem_on_exact_small_instances() -> None:
    """All pairs of a test (t, t') and a mechanism with three outcomes, drawn at random: the exact divergence keeps within the claim, and
    comes near it."""
    generator, nearest = np.random.default_rng(1), 0.0
    for _ in range(4_000):
        e_test, e, delta, false_pass = generator.uniform(0.1, 2), generator.uniform(0.1, 2), 0.05, 0.05
        m, other = generator.dirichlet([0.5] * 3, 2)
        loss_ok = np.maximum(m - exp(e) * other, 0).sum() <= delta  # one direction alone
        t = generator.random() if loss_ok else generator.random() * false_pass
        low = max(t * exp(-e_test), 1 - exp(e_test) * (1 - t), 0.0)
        high = min(t * exp(e_test), 1 - exp(-e_test) * (1 - t), 1.0)
        t_other = generator.uniform(low, high)
        whole = (
            max(1 - t - exp(e + e_test) * (1 - t_other), 0)
            + np.maximum(t * m - exp(e + e_test) * t_other * other, 0).sum()
        )
        claim = generalized_guarantee(epsilon=e, delta=delta, test_epsilon=e_test, false_pass=false_pass)
        assert whole <= claim.delta + 1e-12
        nearest = max(nearest, whole / claim.delta)
    assert nearest > 0.7


@pytest.mark.parametrize("loss", [1.0 + 1e-9, 1.2])
def test_a_loss_above_the_proposal_passes_as_rarely_as_stated(loss: float) -> None:
    test, noise, runs = LossTest(1.0, 1e-6, moves=0.1, test_epsilon=1.0, false_pass=0.05), SimulatedNoise(1), 500
    passed = sum(test(loss, noise) for _ in range(runs))
    assert passed <= stats.binom.ppf(0.9995, runs, 0.05)
    if loss < 1.1:
        assert passed >= stats.binom.ppf(0.0005, runs, 0.049)
    assert test.guarantee == ApproxDP(2.0, 0.05)
    assert test(1.0 - 2 * test.margin() - 1.5, noise) and not test(inf, noise) and not test(float("nan"), noise)


def test_a_uniform_bound_holds_for_both_neighbours() -> None:
    """loss' = loss + moves: the bound drawn from either must cover the larger one."""
    block, noise, runs = UniformBound(moves=0.1, test_epsilon=1.0, failure=0.05), SimulatedNoise(2), 500
    for own in (0.5, 0.6):
        wrong = sum(block(own, noise) < 0.6 - 1e-9 for _ in range(runs))
        assert wrong <= stats.binom.ppf(0.9995, runs, 0.05)
        if own == 0.5:
            assert wrong >= stats.binom.ppf(0.0005, runs, 0.045)
    total = block.guarantee(1.0, 1e-3)
    assert total.epsilon == 2.0 and total.delta == pytest.approx(0.051)


def actual(order: float, t: float, other: float, overall: float) -> float:
    """The exact Renyi divergence of a refused or passed test followed by a mechanism of loss e~ at that order."""
    a = order
    spoken = a * log(t) + (1 - a) * log(other) + (a - 1) * overall
    silent = a * np.log1p(-t) + (1 - a) * np.log1p(-other)
    return float(np.logaddexp(silent, spoken)) / (a - 1)


def bernoulli_renyi(order: float, t: float, other: float) -> float:
    return actual(order, t, other, 0.0)


def test_the_published_theorem_is_false() -> None:
    t = 1e-3
    other = brentq(lambda q: bernoulli_renyi(2.0, t, q) - 0.5, 1e-6, 1e-3)
    assert other == pytest.approx(1.54e-6, rel=0.01)
    claimed = published.printed_rdp(2.0, conditional=0.1, overall=5.0, test=0.5, false_pass=t)
    assert claimed == pytest.approx(0.7251, abs=1e-4)
    assert actual(2.0, t, other, 5.0) == pytest.approx(4.5806, abs=2e-4)
    corrected = generalized_rdp(
        2.0, conditional=0.1, overall=5.0, test=lambda a: bernoulli_renyi(a, t, other), false_pass=t
    )
    assert corrected >= actual(2.0, t, other, 5.0)
    # an ordinary Gaussian test (a threshold of N(0, 1), shift .5) before a Gaussian mechanism of mu = 1
    t, other = stats.norm.sf(3.0), stats.norm.sf(3.5)
    claimed = published.printed_rdp(8.0, conditional=0.01, overall=4.0, test=8 * 0.125, false_pass=t)
    assert claimed == pytest.approx(4.056, abs=1e-3)
    assert actual(8.0, t, other, 4.0) == pytest.approx(4.814, abs=1e-3)


def test_the_corrected_theorem_holds_where_the_published_one_fails() -> None:
    broken = cells = 0
    for order in (2.0, 8.0, 32.0):
        for shift in (0.25, 0.5, 1.0):
            for limit in (2.0, 3.0, 4.0, 5.0):
                t, other = stats.norm.sf(limit), stats.norm.sf(limit + shift)
                settings = {"conditional": 0.01, "overall": order / 2, "false_pass": t}
                exact = actual(order, t, other, order / 2)
                cells += 1
                broken += exact > published.printed_rdp(order, test=order * shift**2 / 2, **settings) * (1 + 1e-12)
                for test in (GDP(shift), ZCDP(shift**2 / 2)):
                    assert exact <= generalized_rdp(order, test=test, **settings) * (1 + 1e-12)
                pure = float(np.log(t / other))
                assert exact <= generalized_rdp(order, test=PureDP(pure), **settings) * (1 + 1e-12)
    assert cells == 36 and broken == 12


def test_a_small_false_pass_makes_the_overall_loss_harmless() -> None:
    values = [
        generalized_rdp(4.0, conditional=0.1, overall=3.0, test=ZCDP(0.01), false_pass=10.0**-k) for k in (1, 4, 8, 16)
    ]
    assert values == sorted(values, reverse=True) and values[-1] == pytest.approx(0.14, abs=1e-6)


def test_the_published_algorithms_run_and_carry_no_guarantee() -> None:
    rng = np.random.default_rng(1)
    for one in (
        published.classic_ptr,
        published.generalized_ptr,
        published.hyperparameter_selection,
        published.uniform_bound,
    ):
        assert one.guarantee is None and one.claim and one.errata
    assert not published.classic_ptr(1.0, 0, rng, epsilon=1.0, delta=1e-9, bound=0.1)["reply"]
    assert published.classic_ptr(1.0, 99, rng, epsilon=1.0, delta=1e-3, bound=0.1)["reply"]
    run = lambda data, c, r: published.generalized_ptr(data, r, test=lambda d, r: c > 1, mechanism=lambda d, r: c)  # noqa: E731
    found = published.hyperparameter_selection(
        0, rng, candidates=[0, 1, 2, 3], run=run, score=float, tau=0.01, delta_2=1e-6
    )
    assert found["output"] == 3 and found["runs"] >= 1
    chosen = published.uniform_bound(
        0, rng, bound=lambda d, r: lambda c: 1.0 / c, candidates=[0.5, 2.0], mechanism=lambda d, c, r: c, epsilon=1.0
    )
    assert chosen == {"reply": True, "candidate": 2.0, "output": 2.0}


def test_parameters_out_of_range() -> None:
    for wrong in (
        {"order": 1.0},
        {"conditional": -1.0},
        {"overall": inf},
        {"false_pass": 0.0},
        {"test": GDP(1.0, 1e-3)},
    ):
        settings = {"order": 2.0, "conditional": 0.1, "overall": 1.0, "test": PureDP(0.5), "false_pass": 1e-3, **wrong}
        with pytest.raises(PrivacyError):
            generalized_rdp(settings.pop("order"), **settings)  # type: ignore[arg-type]
    with refuses(PlanError):
        LossTest(1.0, 1e-6, moves=0.0, test_epsilon=1.0, false_pass=0.05)
    with refuses(PlanError):
        UniformBound(moves=inf, test_epsilon=1.0, failure=0.05)
