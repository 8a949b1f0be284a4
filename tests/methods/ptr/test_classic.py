"""Classic propose-test-release: exact thresholds, exact divergences of small instances, and each block's law."""

from __future__ import annotations

from itertools import pairwise
from math import exp, inf, log

import numpy as np
import pytest
from scipy import stats
from tests.messages import refuses

from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP
from confide.methods.ptr.classic import geometric_threshold, laplace_threshold, majorant
from confide.noise import SimulatedNoise
from confide.ptr import DistanceTest, FirstPassing, PrivateLocalBound, StableRelease

GRID = [(0.1, 1e-6), (0.5, 0.01), (1.0, 1e-5), (3.0, 0.2), (8.0, 1e-9)]


def tail(epsilon: float, m: int) -> float:
    """P(N >= m) of two-sided geometric noise."""
    a = exp(-epsilon)
    return a**m / (1 + a) if m >= 1 else 1 - a ** (1 - m) / (1 + a)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_thresholds_are_the_least_that_hold(epsilon: float, delta: float) -> None:
    least = geometric_threshold(epsilon, delta)
    assert tail(epsilon, least + 1) <= delta
    assert least == 0 or tail(epsilon, least) > delta
    real = laplace_threshold(epsilon, delta)
    assert stats.laplace.sf(real, scale=1 / epsilon) == pytest.approx(delta, rel=1e-9)
    # the printed log(1/delta)/epsilon passes half as often
    assert stats.laplace.sf(log(1 / delta) / epsilon, scale=1 / epsilon) == pytest.approx(delta / 2, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_the_distance_test_is_private_and_passes_as_it_says(epsilon: float, delta: float) -> None:
    test = DistanceTest(epsilon, delta, 0.1, PureDP(1.0))
    p = [test.probability(d) for d in range(2 * test.threshold + 40)]
    assert p[0] <= delta and all(a <= b for a, b in pairwise(p))
    for d, value in enumerate(p):
        assert value == pytest.approx(tail(epsilon, test.threshold + 1 - d), rel=1e-12)
    for a, b in pairwise(p):
        # a pure epsilon test, in both outcomes and directions; near 1 the rounding of 1 - p is left alone
        assert b <= exp(epsilon) * a * (1 + 1e-9) and 1 - a <= exp(epsilon) * (1 - b) + 1e-12


def test_the_whole_of_test_and_laplace_release_on_an_exact_instance() -> None:
    """Good data (D = 1, values b apart) next to bad ones (D = 0, values far apart): the exact divergence is at most delta."""
    epsilon, delta, e2 = 1.0, 0.01, 0.5
    test = DistanceTest(epsilon, delta, 1.0, PureDP(e2))
    claim = test.guarantee
    x = np.linspace(-60, 60, 240_001)
    law = lambda p, shift: p * stats.laplace.pdf(x, shift, 1 / e2)  # noqa: E731
    for (p, a), (q, b) in (
        ((test.probability(1), 0.0), (test.probability(0), 1.0)),
        ((test.probability(0), 1.0), (test.probability(1), 0.0)),
        ((test.probability(0), 0.0), (test.probability(0), 50.0)),
        ((test.probability(6), 0.0), (test.probability(5), 1.0)),
        ((test.probability(5), 1.0), (test.probability(6), 0.0)),
    ):
        silent = max(1 - p - exp(claim.epsilon) * (1 - q), 0)
        spoken = np.maximum(law(p, a) - exp(claim.epsilon) * law(q, b), 0).sum() * (x[1] - x[0])
        assert silent + spoken <= claim.delta * (1 + 1e-6)


def test_sampled_passes_agree_with_their_probability() -> None:
    test, noise, runs = DistanceTest(1.0, 0.05, 0.1, PureDP(1.0)), SimulatedNoise(1), 700
    for d in (0, 2, 5):
        passed = sum(test.passes(d, noise) for _ in range(runs))
        low, high = stats.beta.ppf([0.0005, 0.9995], [passed, passed + 1], [runs - passed + 1, runs - passed])
        assert low <= test.probability(d) <= high


def test_guarantees_add_epsilons_and_take_the_larger_delta() -> None:
    assert DistanceTest(1.0, 1e-6, 0.1, PureDP(0.5)).guarantee == ApproxDP(1.5, 1e-6)
    assert DistanceTest(1.0, 1e-6, 0.1, ApproxDP(0.5, 1e-5)).guarantee == ApproxDP(1.5, 1e-5)
    gaussian = DistanceTest(1.0, 1e-6, 0.1, GDP(0.5)).guarantee
    assert gaussian.epsilon == pytest.approx(1 + GDP(0.5).to_approx(delta=1e-6).epsilon) and gaussian.delta == 1e-6
    assert StableRelease(1.0, 1e-6).guarantee == ApproxDP(1.0, 1e-6)
    assert PrivateLocalBound(1.0, 1e-6, 0.1, 0.5).guarantee == ApproxDP(1.5, 1e-6)
    first = FirstPassing((0.1, 0.2), 1.0, 1e-6, ApproxDP(0.5, 1e-5)).guarantee
    assert first.epsilon == 1.5 and first.delta == pytest.approx(1.1e-5) and first.delta >= 1.1e-5


def test_released_values_have_the_noise_that_their_price_asks_for() -> None:
    noise = SimulatedNoise(2)
    laplace = [DistanceTest(1.0, 1e-3, 0.2, PureDP(0.5))(200, 3.0, noise)[0] - 3 for _ in range(400)]  # type: ignore[index]
    assert np.mean(np.abs(laplace)) == pytest.approx(0.4, rel=0.2)
    gaussian = [DistanceTest(1.0, 1e-3, 0.2, GDP(0.5))(200, [3.0, 1.0], noise) for _ in range(400)]
    assert np.std([v[0] - 3 for v in gaussian if v is not None]) == pytest.approx(0.4, rel=0.15)
    assert DistanceTest(1.0, 1e-3, 0.2, PureDP(0.5))(200, float("nan"), noise) is not None


def test_a_stable_value_is_released_as_it_is_or_not_at_all() -> None:
    block, noise = StableRelease(1.0, 1e-3), SimulatedNoise(3)
    assert block(60, ("a", 1), noise) == ("a", 1)
    assert sum(block(0, "a", noise) is not None for _ in range(500)) <= stats.binom.ppf(0.9995, 500, 1e-3)


def test_a_private_local_bound_is_above_the_local_sensitivity() -> None:
    block, noise, runs = PrivateLocalBound(1.0, 0.05, 0.1, 1.0), SimulatedNoise(4), 600
    below = sum(block(0.7, 0.0, noise)[0] < 0.7 for _ in range(runs))
    low, high = stats.beta.ppf([0.0005, 0.9995], [below, below + 1], [runs - below + 1, runs - below])
    assert low <= 0.05 <= high + 0.002
    assert block(0.0, 1.0, noise)[0] > 0
    # the least majorant that moves by at most g
    local = lambda d: min(0.2 * (d + 1), 1.0)  # noqa: E731
    assert majorant(local, 0.05, 20) == pytest.approx(0.8) and majorant(local, 0.5, 20) == pytest.approx(0.2)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_tail_of_sparse_vector_is_exact(epsilon: float) -> None:
    test = FirstPassing((0.1, 0.2, 0.3), epsilon, 1e-3, PureDP(1.0))
    a, b = exp(-epsilon / 4096), exp(-epsilon / 2048)
    reach = int(40 / (epsilon / 4096))
    rho = np.arange(-reach, reach + 1)
    mass = (1 - b) / (1 + b) * b ** np.abs(rho).astype(float)
    for steps in (1, 700, test.threshold):
        m = (steps + rho).astype(float)
        upper = np.where(m >= 1, a ** np.maximum(m, 1) / (1 + a), 1 - a ** np.maximum(1 - m, 0) / (1 + a))
        assert test.exceeds(steps) == pytest.approx(float((mass * upper).sum()), rel=1e-6)
    assert test.exceeds(test.threshold) <= 1e-3 / 3 < test.exceeds(test.threshold - 20)


def test_sparse_vector_takes_the_first_that_passes() -> None:
    test, noise = FirstPassing((0.1, 0.2, 0.4), 1.0, 1e-3, PureDP(1.0)), SimulatedNoise(5)
    assert test.first((0, 200, 900), noise) == 1 and test.first((500, 600, 900), noise) == 0
    found = test((0, 0, 300), 2.0, noise)
    assert found is not None and found[0] == 2
    passed = sum(test.first((0, 0, 0), noise) is not None for _ in range(300))
    assert passed <= stats.binom.ppf(0.9995, 300, 1e-3)
    with refuses(PlanError):
        test.first((0, 1), noise)


def test_parameters_out_of_range() -> None:
    for make in (
        lambda: DistanceTest(0.0, 1e-6, 0.1, PureDP(1.0)),
        lambda: DistanceTest(1.0, 0.5, 0.1, PureDP(1.0)),
        lambda: DistanceTest(1.0, 1e-6, 0.0, PureDP(1.0)),
        lambda: DistanceTest(1.0, 1e-6, 0.1, GDP(1.0, 1e-6)),
        lambda: DistanceTest(1.0, 1e-6, 0.1, 1.0),  # type: ignore[arg-type]
        lambda: StableRelease(inf, 1e-6),
        lambda: PrivateLocalBound(1.0, 1e-6, 0.0, 1.0),
        lambda: FirstPassing((0.2, 0.1), 1.0, 1e-6, PureDP(1.0)),
        lambda: FirstPassing((), 1.0, 1e-6, PureDP(1.0)),
    ):
        with pytest.raises((PlanError, PrivacyError)):
            make()
