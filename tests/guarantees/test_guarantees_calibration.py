"""How little noise meets a request: met at 60 digits, and not met with one part in 1e9 more."""

from __future__ import annotations

import random
from fractions import Fraction
from math import exp, inf, nextafter

import mpmath
import pytest
from hypothesis import given, settings, strategies as st
from tests.few import few
from tests.guarantees.guarantees_accuracy import reference_delta
from tests.messages import refuses

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    PureDP,
    calibrate_gaussian,
    calibrate_laplace,
    calibrate_pure,
    gaussian_mu,
    laplace_epsilon,
    laplace_mu,
    laplace_renyi,
)
from confide.guarantees.mechanisms.classical import DEFAULT_ORDERS


def laplace_profile(at, epsilon):
    """delta of the Laplace mechanism at 0 <= at, from its two laws."""
    return max(mpmath.mpf(0), 1 - mpmath.exp((mpmath.mpf(at) - mpmath.mpf(epsilon)) / 2))


def gaussian_profile(at, mu):
    e, m = mpmath.mpf(at), mpmath.mpf(mu)
    return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


# -------------------------------------------------------------------------------------------------------------- Laplace


def test_approx_is_met_exactly():
    generator = random.Random(21)
    for _ in range(200):
        at, delta = 10 ** generator.uniform(-3, 2), exp(-generator.uniform(0.01, 600))
        epsilon = calibrate_laplace(ApproxDP(at, delta))
        assert epsilon >= at
        with mpmath.workdps(320):
            assert laplace_profile(at, epsilon) <= mpmath.mpf(delta)
        assert laplace_profile(at, epsilon * (1 + 1e-10)) > mpmath.mpf(delta) or delta < 1e-9 * at


# at mu = 40, in 400 digits, 3 s each: one of the four with a delta here
@pytest.mark.parametrize(
    ("delta", "mu"),
    [
        pytest.param(delta, mu, marks=[pytest.mark.long] if mu == 40.0 and delta > 0 else [])
        for delta in (0.0, 1e-12, 1e-6, 1e-2, 0.3)
        for mu in (1e-4, 1e-2, 0.09, 0.11, 0.99, 1.0, 1.01, 3.0, 10.0, 40.0)
    ],
)
def test_gdp_is_met_on_the_whole_curve_and_touched(mu, delta):
    """Dominance at many epsilons in 60 digits; with 1e-9 more it fails somewhere."""
    epsilon = calibrate_laplace(GDP(mu, delta))
    with mpmath.workdps(60 if mu <= 10 else 400):  # 1 - delta is down to e^-200
        count = 200 if mu <= 10 else 10
        points = [mpmath.mpf(epsilon) * j / count for j in range(count)]

        def gap(at, size):
            return gaussian_profile(at, mu) + mpmath.mpf(delta) - laplace_profile(at, size)

        assert all(gap(at, epsilon) >= 0 for at in points)
        more = mpmath.mpf(epsilon) * (1 + mpmath.mpf("1e-9"))
        if delta == 0:
            assert gap(0, more) < 0
        else:
            # where the two curves come closest: Phi(x - m) - e^at Phi(-x - m) = delta
            m = mpmath.mpf(mu) / 2
            low, high = mpmath.mpf(0), mpmath.mpf(epsilon)
            for _ in range(80 if mu <= 10 else 60):
                at = (low + high) / 2
                left = mpmath.ncdf(at / mu - m) - mpmath.exp(at) * mpmath.ncdf(-at / mu - m)
                low, high = (at, high) if left < delta else (low, at)
            assert gap(low, epsilon) >= 0 > gap(low, mpmath.mpf(epsilon) * (1 + mpmath.mpf("1e-7")))


def test_gdp_of_laplace_is_better_than_that_of_any_pure_mechanism():
    for mu in (0.1, 1.0, 3.0):
        assert calibrate_laplace(GDP(mu)) > calibrate_pure(GDP(mu))
    assert calibrate_laplace(GDP(1.0)) == pytest.approx(float(-2 * mpmath.log(2 * mpmath.ncdf(-0.5))), rel=2e-11)


@settings(deadline=None)
@given(st.floats(1e-3, 20), st.just(0.0) | st.floats(1e-12, 0.3))
def test_the_two_directions_of_laplace_and_gaussian_are_inverse(mu, delta):
    assert laplace_mu(laplace_epsilon(mu, delta), delta) == pytest.approx(mu, rel=1e-9)
    assert laplace_mu(0.1, 0.2) == 0.0


@settings(deadline=None)
@given(st.floats(1e-3, 10), st.floats(0, 0.2), st.floats(1.001, 3))
def test_laplace_calibration_is_monotone(size, delta, more):
    assert calibrate_laplace(GDP(size * more, delta)) > calibrate_laplace(GDP(size, delta))
    assert calibrate_laplace(GDP(size, delta)) >= calibrate_laplace(GDP(size)) * (1 - 1e-10)
    assert calibrate_laplace(ZCDP(size * more)) > calibrate_laplace(ZCDP(size))
    assert calibrate_laplace(PureDP(size)) == size


@pytest.mark.parametrize("k", [1, 3, 10])
def test_rdp_is_met_at_each_order(k):
    request = GDP(0.7).to_rdp()
    epsilon = calibrate_laplace(request, releases=k)
    assert all(
        k * laplace_renyi(a, epsilon) <= e * (1 + 1e-12) for a, e in zip(DEFAULT_ORDERS, request.epsilons, strict=True)
    )
    assert any(
        k * laplace_renyi(a, epsilon * (1 + 1e-9)) > e for a, e in zip(DEFAULT_ORDERS, request.epsilons, strict=True)
    )


def twice(at, size):
    """delta of two Laplace releases in 30 digits, from the mixed law of the first loss."""
    at, size = mpmath.mpf(at), mpmath.mpf(size)

    def profile(e):
        return laplace_profile(e, size) if e >= 0 else 1 - mpmath.exp(e) * (1 - laplace_profile(-e, size))

    knots = sorted({-size, size, *(x for x in (at - size, at, at + size) if -size < x < size)})
    inner = mpmath.quad(lambda x: profile(at - x) * mpmath.exp((x - size) / 2) / 4, knots)
    return profile(at - size) / 2 + profile(at + size) * mpmath.exp(-size) / 2 + inner


@pytest.mark.parametrize("delta", few([1e-2, 1e-4, 1e-6], 0))
def test_two_laplace_releases_meet_an_approx_request_together(delta):
    epsilon = calibrate_laplace(ApproxDP(1.0, delta), releases=2)
    with mpmath.workdps(30):
        assert twice(1.0, epsilon) <= mpmath.mpf(delta)
        assert twice(1.0, epsilon * (1 + 1e-6) + 2e-7) > mpmath.mpf(delta)


@pytest.mark.parametrize("k", [10, pytest.param(50, marks=pytest.mark.long)])
def test_many_laplace_releases(k):
    epsilon = calibrate_laplace(ApproxDP(1.0, 1e-6), releases=k)
    simple = calibrate_laplace(GDP(calibrate_gaussian(ApproxDP(1.0, 1e-6))), releases=k)
    assert max(1.0 / k, simple) < epsilon < calibrate_laplace(ApproxDP(1.0, 1e-6))
    assert calibrate_laplace(ApproxDP(1.0, 1e-300), releases=4) == 0.25
    assert Fraction(calibrate_laplace(PureDP(1.0), releases=3)) * 3 <= 1


# ------------------------------------------------------------------------------------------------------------- Gaussian


def test_distance_to_safety_values():
    """1/mu at (epsilon, delta): frozen to three places from an independent computation."""
    for epsilon, delta, scale in ((1.0, 0.01, 1.878), (4.0, 0.01, 0.669), (1.0, 1e-6, 4.225)):
        assert 1 / gaussian_mu(epsilon, delta) == pytest.approx(scale, abs=1e-3)
        mu = calibrate_gaussian(ApproxDP(epsilon, delta))
        assert 1 / mu == pytest.approx(scale, abs=1e-3)
        assert mpmath.mpf("0.999999") * delta <= reference_delta(epsilon, mu) <= mpmath.mpf(delta)


@settings(deadline=None)
@given(st.floats(1e-3, 20), st.integers(1, 10_000))
def test_equal_gaussian_releases_share_a_request(size, k):
    mu = calibrate_gaussian(GDP(size), releases=k)
    assert k * Fraction(mu) ** 2 <= Fraction(size) ** 2 < k * Fraction(nextafter(mu, inf)) ** 2
    rho = calibrate_gaussian(ZCDP(size), releases=k)
    assert k * Fraction(rho) ** 2 / 2 <= Fraction(size)


def test_gaussian_meets_an_rdp_request_exactly():
    request = RDP((2, 8), (0.1, 0.2))
    mu = calibrate_gaussian(request, releases=5)
    assert 5 * 8 * Fraction(mu) ** 2 / 2 <= Fraction(0.2) < 5 * 8 * Fraction(nextafter(mu, inf)) ** 2 / 2


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("calibrate", [calibrate_gaussian, calibrate_laplace])
@pytest.mark.parametrize("releases", [0, -1, 1.5, True, None])
def test_a_number_of_releases_is_a_whole_number(calibrate, releases):
    with refuses(PrivacyError):
        calibrate(GDP(1.0), releases=releases)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: calibrate_laplace(1.0), PrivacyError),
        (lambda: calibrate_laplace(RDP((2, 3), (0, 1))), PrivacyError),
        (lambda: calibrate_gaussian(RDP((2, 3), (0, 1))), PrivacyError),
        (lambda: calibrate_gaussian(PureDP(1.0)), NoConversion),
    ],
)
def test_requests_that_are_refused(call, error):
    with refuses(error):
        call()
