"""The Gaussian privacy curve: against 100-digit arithmetic, frozen values, inverses, shape."""

from __future__ import annotations

import random
from math import exp, inf, isfinite, log, log10

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from tests.guarantees.guarantees_accuracy import random_points, reference_delta, relative, worst_errors

from confide.guarantees import gaussian_delta, gaussian_epsilon, gaussian_mu, log_gaussian_delta
from confide.guarantees.mechanisms.gaussian import _mills_drop, bracket

MUS = st.floats(-4, log10(50)).map(lambda power: 10**power)
EPSILONS = st.floats(0, 60)


@pytest.mark.parametrize("points", [40, pytest.param(400, marks=pytest.mark.long)])
def test_relative_error_at_random_points(points):
    worst = worst_errors(random_points(points, seed=20))
    assert max(worst.values()) < 2e-12, worst  # asked: 1e-9; the slack of statements is 1e-11


@pytest.mark.parametrize("mu", [1e-4, 1e-2, 1.0, 7.0, 50.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-150, 1e-40, 1e-9, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-9])
def test_relative_error_at_the_corners(mu, delta):
    epsilon = gaussian_epsilon(delta, mu)
    truth = reference_delta(epsilon, mu)
    assert relative(gaussian_delta(epsilon, mu), truth) < 1e-12
    assert relative(delta, truth) < 2e-12


@pytest.mark.parametrize("ratio", [-1.001, -1.0, -0.999, -0.3, 0.0, 0.3, 3.0, 15.99, 16.0, 16.01, 30.0])
@pytest.mark.parametrize("mu", [1e-4, 0.05, 0.6, 2.0, 20.0, 50.0])
def test_the_forms_of_the_difference_join(ratio, mu):
    """a = epsilon/mu - mu/2 on both sides of every switch between forms."""
    epsilon = max(0.0, mu * (ratio + mu / 2))
    assert relative(gaussian_delta(epsilon, mu), reference_delta(epsilon, mu)) < 1e-12


# Computed apart from the library, from the textbook formula and a root search at 50 digits.
@pytest.mark.parametrize(
    ("epsilon", "mu", "delta"),
    [
        (1.0, 1.0, 0.1269367375066439458008296),
        (0.0, 1.0, 0.3829249225480262072754092),
        (0.5, 0.1, 6.856582455838737143596058e-9),
        (-1.0, 1.0, 0.6788179748866279159456204),
        (10.0, 3.0, 0.01858951431585780605752244),
    ],
)
def test_frozen_delta(epsilon, mu, delta):
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-14, abs=0)


def test_frozen_inverses():
    assert gaussian_epsilon(1e-6, 1.0) == pytest.approx(4.886554117462211996370499, rel=1e-14, abs=0)
    assert gaussian_mu(1.0, 1e-6) == pytest.approx(0.2367043806634357096481234, rel=1e-14, abs=0)
    assert gaussian_mu(1.0, 1e-5) == pytest.approx(0.2680511232112942179030356, rel=1e-14, abs=0)
    assert gaussian_mu(8.0, 1e-6) == pytest.approx(1.53154511756614512851759, rel=1e-14, abs=0)
    assert log_gaussian_delta(100.0, 1.0) == pytest.approx(-4960.254553817420744340826, rel=1e-14, abs=0)


@pytest.mark.parametrize(("epsilon", "mu"), [(60.0, 50.0), (1.0, 45.0), (-3.0, 20.0), (-30.0, 1.0), (-0.5, 30.0)])
def test_log_delta_keeps_its_digits_near_one(epsilon, mu):
    with mpmath.workdps(400):  # 1 - delta is down to e^-314
        truth = mpmath.log(reference_delta(epsilon, mu))
    assert relative(log_gaussian_delta(epsilon, mu), truth) < 1e-12


@pytest.mark.parametrize(("epsilon", "mu"), [(-1e-9, 1e-7), (-1e-7, 1e-7), (-1e-3, 1e-2), (-0.1, 1.0), (-2.0, 1e-4)])
def test_negative_epsilon_keeps_its_digits(epsilon, mu):
    assert relative(gaussian_delta(epsilon, mu), reference_delta(epsilon, mu)) < 1e-12


@pytest.mark.parametrize("x", [-1.0, 0.0, 1.0, 8.0, 15.999, 16.0, 17.0, 40.0, 1e3, 1e6, 3e8])
def test_the_slope_of_mills_ratio_at_one_point(x):
    """Without its series the integrand would be noise, even negative, from about 1e8 on."""
    with mpmath.workdps(60):
        m = mpmath.mpf(x)
        mills = mpmath.sqrt(mpmath.pi / 2) * (
            mpmath.erfc(m / mpmath.sqrt(2)) * mpmath.exp(m * m / 2)
            if x < 100
            else (1 - 1 / m**2 + 3 / m**4 - 15 / m**6 + 105 / m**8 - 945 / m**10) / m / mpmath.sqrt(mpmath.pi / 2)
        )
        assert relative(float(_mills_drop(np.array([x]))[0]), 1 - m * mills) < 5e-13


@pytest.mark.parametrize("points", [60, pytest.param(1_000, marks=pytest.mark.long)])
def test_delta_to_epsilon_and_back_at_random_points(points):
    generator = random.Random(7)
    for _ in range(points):
        mu, delta = 10 ** generator.uniform(-4, log10(50)), exp(-generator.uniform(1e-3, 690.7))
        assert gaussian_delta(gaussian_epsilon(delta, mu), mu) == pytest.approx(delta, rel=2e-12, abs=0)


@pytest.mark.long
def test_mu_to_delta_and_back_at_1000_random_points():
    generator = random.Random(8)
    for _ in range(1_000):
        mu = 10 ** generator.uniform(-4, log10(50))
        epsilon = max(0.0, mu * (mu / 2 + generator.uniform(-5, 30)))
        assert gaussian_mu(epsilon, gaussian_delta(epsilon, mu)) == pytest.approx(mu, rel=1e-12, abs=0)


@settings(deadline=None)
@given(MUS, EPSILONS, st.floats(1e-6, 10))
def test_delta_falls_in_epsilon_and_rises_in_mu(mu, epsilon, more):
    here = log_gaussian_delta(epsilon, mu)
    slack = 1e-12 * max(1.0, abs(here))
    assert log_gaussian_delta(epsilon + more, mu) <= here + slack
    assert log_gaussian_delta(epsilon, mu * (1 + more)) >= here - slack


@settings(deadline=None)
@given(MUS, st.floats(-5, 20), st.floats(0.01, 2), st.floats(0.01, 2))
def test_delta_is_convex_in_the_exponential_of_epsilon(mu, low, first, second):
    """delta is the hockey-stick divergence of order e^epsilon, which is convex in that order."""
    middle, high = low + first, low + first + second
    weight = (exp(high) - exp(middle)) / (exp(high) - exp(low))
    chord = weight * gaussian_delta(low, mu) + (1 - weight) * gaussian_delta(high, mu)
    assert gaussian_delta(middle, mu) <= chord * (1 + 1e-10)


@settings(deadline=None)
@given(MUS, st.floats(-30, 30))
def test_both_orders_of_the_neighbours_agree(mu, epsilon):
    """1 - delta(-e) = e^-e (1 - delta(e)): the Gaussian trade-off function is symmetric."""
    left = 1 - gaussian_delta(-epsilon, mu)
    right = exp(-epsilon) * (1 - gaussian_delta(epsilon, mu))
    assert left == pytest.approx(right, rel=1e-9, abs=1e-15 * (1 + exp(-epsilon)))


@settings(deadline=None)
@given(st.floats(-300, 300), st.floats(-300, 300))
def test_no_nan_anywhere(log_epsilon, log_mu):
    value = log_gaussian_delta(10**log_epsilon, 10**log_mu)
    assert value <= 0 and (isfinite(value) or value == -inf)


@settings(deadline=None)
@given(st.floats(-250, 100), st.floats(-700, -1e-9))
def test_mu_is_found_over_the_whole_range(log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, exp(log_delta)
    assume(0 < delta < 1)
    mu = gaussian_mu(epsilon, delta)
    assert log_gaussian_delta(epsilon, mu * (1 + 1e-11)) >= log(delta) >= log_gaussian_delta(epsilon, mu * (1 - 1e-11))


def test_epsilon_is_negative_above_the_total_variation():
    total_variation = gaussian_delta(0.0, 1.0)
    assert gaussian_epsilon(total_variation, 1.0) == pytest.approx(0.0, abs=1e-15)
    assert gaussian_epsilon(0.9, 1.0) < 0 < gaussian_epsilon(0.3, 1.0)
    assert gaussian_delta(gaussian_epsilon(0.9, 1.0), 1.0) == pytest.approx(0.9, rel=1e-14, abs=0)


def test_bracket_ends_are_neighbouring_floats_around_the_root():
    low, high = bracket(lambda x: x**3 - 5, start=1e9)
    assert low**3 < 5 <= high**3 and high - low <= 4.5e-16
