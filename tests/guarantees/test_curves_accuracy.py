"""Curves against second derivations: small shifts, far tails, the proof behind mu(delta), calibration, compositions far out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from math import exp, expm1, inf, sqrt

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from tests.few import few
from tests.guarantees.guarantees_accuracy import reference_delta
from tests.pace import quick

from confide.guarantees import GDP
from confide.guarantees.conversion import from_guarantee
from confide.guarantees.curves import (
    Curve,
    SymmetricLaplace,
    approx_dp,
    calibrate_symmetric_laplace,
    gaussian,
    laplace,
    symmetric_laplace,
    zero_inflated,
)
from confide.guarantees.curves.symmetric_laplace import radial, spherical_gap
from confide.guarantees.mechanisms.gaussian import gaussian_delta


def three_dimensions(c: float, epsilon: float) -> float:
    """delta at d = 3 in bipolar coordinates: r, R the distances from both centres, volume 2 pi r R dr dR / c.

    The density is exp(-sqrt(2) r) / (2 pi r), hence delta = 1/c * integral over R of the integral over r of (r e^(-sqrt(2) R) - e^epsilon R
    e^(-sqrt(2) r))+, r from |R - c| to R + c. The inner one is elementary; the sign changes where sqrt(2) r is Lambert's
    W(sqrt(2) R e^(epsilon + sqrt(2) R)).
    """
    with mp.workdps(40):
        shift, root, grown = mp.mpf(c), mp.sqrt(2), mp.exp(epsilon)

        def edge(radius: mp.mpf) -> mp.mpf:
            return mp.lambertw(root * radius * mp.exp(epsilon + root * radius)).real / root

        def inner(radius: mp.mpf) -> mp.mpf:
            low, high = max(abs(radius - shift), edge(radius)), radius + shift
            if low >= high:
                return mp.mpf(0)
            first = mp.exp(-root * radius) * (high**2 - low**2) / 2
            return first - grown * radius * (mp.exp(-root * low) - mp.exp(-root * high)) / root

        def crossing(sign: int, low: mp.mpf, high: mp.mpf) -> mp.mpf:
            """Where the edge meets radius + sign * shift, by bisection on the logarithm of the radius."""
            for _ in range(130):
                middle = mp.sqrt(low * high)
                beyond = edge(middle) >= (middle + shift if sign > 0 else shift - middle)
                low, high = (low, middle) if beyond else (middle, high)
            return high

        tiny = mp.mpf(10) ** -70
        end = mp.mpf(60) if edge(mp.mpf(60)) < 60 + shift else crossing(1, tiny, mp.mpf(60))
        whole = crossing(-1, tiny, shift / 2)
        cuts = sorted({mp.mpf(0), *(x for x in (whole, shift / 2, shift, 2 * shift, mp.mpf(5)) if x < end), end})
        return float(mp.quad(inner, cuts) / shift)


# ------------------------------------------------------------------------------------------------- one value of delta


@pytest.mark.parametrize("c", few([1e-6, 1e-4, 0.01, 0.5, 4.0], 1, 3))
@pytest.mark.parametrize("ratio", [0.1, 1.0, 6.0])
def test_three_dimensions_in_bipolar_coordinates(c: float, ratio: float) -> None:
    """What is stated is above the truth and within 3e-5 of it, for small shifts and in the tail alike."""
    curve = symmetric_laplace(3, c)
    truth = three_dimensions(c, ratio * c)
    assert truth <= curve.delta(ratio * c) <= truth * (1 + 3e-5)


@pytest.mark.parametrize(("c", "epsilon"), [(0.5, 8.0), (0.5, 20.0), (0.05, 5.0), (2.0, 30.0)])
def test_far_tails_in_three_dimensions(c: float, epsilon: float) -> None:
    truth = three_dimensions(c, epsilon)
    assert truth < 1e-7
    assert truth <= symmetric_laplace(3, c).delta(epsilon) <= truth * (1 + 3e-5)


@pytest.mark.parametrize("d", [2, 3, 6, 30, 100])
@pytest.mark.parametrize("c", [1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1.0])
def test_small_shifts_are_on_the_safe_side(d: int, c: float) -> None:
    """The total variation 1 - exp(-c / sqrt(2)) is known in every dimension."""
    truth = -expm1(-c / sqrt(2))
    assert truth <= symmetric_laplace(d, c).delta(0.0) <= truth * (1 + 3e-5)


@pytest.mark.parametrize("d", [2, 4, 8, 30, 100])
def test_the_sum_without_cancellation_agrees_with_the_difference(d: int) -> None:
    for c in (0.05, 0.5, 5.0):
        for epsilon in (0.0, 0.2, 1.0, 2.5):
            alpha, power = radial(d).errors(c, epsilon)
            difference = power - exp(epsilon) * alpha
            if difference > 1e-6:
                assert spherical_gap(radial(d), c, epsilon) == pytest.approx(difference, rel=1e-6)


def test_the_slope_of_the_profile_is_the_type_one_error() -> None:
    """d delta / d epsilon = -e^epsilon P(LLR > epsilon), which joins two numbers that are computed apart."""
    for d, c, epsilon in ((2, 0.5, 0.6), (6, 0.5, 2.0), (30, 1.0, 1.0)):
        h = 1e-3
        law = radial(d)
        slope = (spherical_gap(law, c, epsilon + h) - spherical_gap(law, c, epsilon - h)) / (2 * h)
        assert slope == pytest.approx(-exp(epsilon) * law.errors(c, epsilon)[0], rel=1e-4)


def test_tails_fall_as_the_dimension_says() -> None:
    """delta ~ exp(-2 epsilon / (d - 2)): measured between 20 and 30."""
    for d in (4, 6, 30):
        curve = symmetric_laplace(d, 0.5)
        slope = math.log(curve.delta(30.0 * (d - 2)) / curve.delta(20.0 * (d - 2))) / (10.0 * (d - 2))
        assert slope == pytest.approx(-2 / (d - 2), rel=0.02)
    assert symmetric_laplace(2, 0.5).delta(6.0) < 1e-100


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 8.0])
def test_gaussian_numbers_are_on_the_safe_side_at_sixty_digits(mu: float) -> None:
    for goal in (1e-300, 1e-100, 1e-12, 1e-3, 0.3):
        curve = gaussian(mu)
        epsilon = curve.epsilon(goal)
        exact = reference_delta(epsilon, mu)
        assert exact <= goal
        assert exact <= curve.delta(epsilon) <= exact * (1 + mp.mpf("3e-11"))


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 8.0), st.floats(0.0, 0.999999))
def test_bounded_losses_are_on_the_safe_side_at_forty_digits(level: float, share: float) -> None:
    epsilon = level * share
    with mp.workdps(40):
        double = 1 - mp.exp((mp.mpf(epsilon) - mp.mpf(level)) / 2)
        response = (mp.exp(level) - mp.exp(epsilon)) / (1 + mp.exp(level))
        for curve, exact in ((laplace(level), double), (approx_dp(level), response)):
            assert exact <= curve.delta(epsilon) <= exact * (1 + mp.mpf("3e-11"))
            goal = float(exact)
            found = curve.epsilon(goal)
            assert epsilon * (1 - 1e-12) - 1e-15 <= found <= epsilon + 1e-6 * level + 1e-9


def test_stated_values_stay_above_the_exact_ones() -> None:
    for d in (2, 5, 40):
        for c in (1e-5, 0.01, 0.7):
            curve = symmetric_laplace(d, c)
            assert isinstance(curve, SymmetricLaplace)
            for epsilon in (0.0, c / 3, 3 * c, 1.0):
                assert curve.delta(epsilon) > curve.exact_delta(epsilon)


# ------------------------------------------------------------------------------------------------------ mu for a delta

CHARGED: list[tuple[Curve, float]] = [
    (gaussian(1.0), 1e-3),
    (gaussian(3.0), 1e-12),
    (laplace(1.0), 1e-3),
    (approx_dp(1.0), 0.02),
    (symmetric_laplace(2, 0.5), 0.0),
    (symmetric_laplace(2, 0.05), 0.0),
    (symmetric_laplace(3, 0.5), 1e-6),
    (symmetric_laplace(6, 0.5), 1e-4),
    (symmetric_laplace(inf, 0.5), 1e-2),
    (zero_inflated(0.05, symmetric_laplace(6, 0.5)), 0.06),
    (zero_inflated(0.05, gaussian(1.0)), 0.05),
    (zero_inflated(0.05, symmetric_laplace(2, 0.5)), 0.05),
    (from_guarantee(GDP(1.0, 1e-3)), 2e-3),
    (laplace(0.3).power(4), 1e-4),
]


@pytest.mark.parametrize(("curve", "leak"), few(CHARGED, 0, 2, 4), ids=repr)
def test_what_is_charged_holds_everywhere_and_is_least(curve: Curve, leak: float) -> None:
    mu = curve.gdp(leak)
    top = min(curve.epsilon(leak) if leak > curve.mass_at_infinity else 20.0, 60.0)
    epsilons = np.concatenate([[0.0], np.geomspace(1e-4 * top, top, 150), np.linspace(0, top, 150)[1:]])
    # 1 - delta of a zero-inflated curve is one of its base times the rest: excess without cancelling
    bare = zero_inflated_excess(curve, leak)
    excess = bare(epsilons)
    stated = np.array([gaussian_delta(float(e), mu) for e in epsilons])
    lower = np.array([gaussian_delta(float(e), mu * (1 - 3e-4)) for e in epsilons])
    assert (excess <= stated * (1 + 1e-9) + 1e-300).all()
    assert (excess > lower).any()


def zero_inflated_excess(curve: Curve, leak: float) -> Callable[[np.ndarray], np.ndarray]:
    zeta = curve.mass_at_infinity
    base = getattr(curve, "base", None)
    if base is None or "zero_inflated" not in repr(curve):
        return lambda e: np.asarray(curve.delta(e)) - leak
    return lambda e: (1 - zeta) * np.asarray(base.delta(e)) - (leak - zeta)


def test_two_dimensions_and_small_shifts_need_more_than_the_total_variation_says() -> None:
    """At d = 2 the largest mu sits at epsilon = 0 only for c above about 1/4: near its pole the density is unbounded."""
    for c, at_zero, needed in ((0.1, 0.1713, 0.2763), (0.01, 0.01766, 0.1855)):
        assert -2 * stats.norm.ppf(exp(-c / sqrt(2)) / 2) == pytest.approx(at_zero, rel=1e-3)
        assert symmetric_laplace(2, c).gdp() == pytest.approx(needed, rel=1e-3)
        worst = max(spherical_gap(radial(2), c, e) / max(gaussian_delta(e, at_zero), 1e-300) for e in (0.5, 1.0, 1.5))
        assert worst > 10
    assert symmetric_laplace(2, 0.5).gdp() == pytest.approx(-2 * stats.norm.ppf(exp(-0.5 / sqrt(2)) / 2), rel=2e-4)


def test_a_charge_is_quick_and_never_above_the_curve_itself() -> None:
    asked = [(gaussian(1.0), 1e-300), (gaussian(1.0), 1e-3), (gaussian(20.0), 1e-9)]
    asked += [(symmetric_laplace(6, 0.5), 1e-9), (symmetric_laplace(inf, 0.5), 1e-13)]
    found = quick(10, lambda: [curve.gdp(delta) for curve, delta in asked])
    assert found[0] == pytest.approx(1.0, rel=1e-3) and 0.99 < found[1] < 1.0 and found[2] <= 20.0
    assert found[3] == pytest.approx(4.2517, rel=1e-3) and found[4] < inf


# ---------------------------------------------------------------------------------------------------------- calibration


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(st.sampled_from([1, 2, 3, 6, 40, 100, 1000, inf]), st.floats(-3, 1), st.floats(-12, -0.1), st.booleans())
def test_calibration_meets_its_request_closely(d: float, scale: float, digits: float, inflated: bool) -> None:
    epsilon, delta = 10.0**scale, 10.0**digits
    zeta = delta / 3 if inflated else 0.0
    c = calibrate_symmetric_laplace(epsilon, delta, d, zeta=zeta)
    assert zero_inflated(zeta, symmetric_laplace(d, c)).delta(epsilon) <= delta
    assert zero_inflated(zeta, symmetric_laplace(d, c * (1 + 1e-4) + 2e-7)).delta(epsilon) > delta


# ---------------------------------------------------------------------------------------------------------- composition


def twice(curve: SymmetricLaplace, epsilon: float) -> tuple[float, float]:
    """Bounds of the two-fold delta of a limit curve: E over the first loss l under Q of delta(epsilon - l), by lower and upper sums."""
    losses = np.sinh(np.linspace(-16, 16, 400_001))
    h = losses / curve.c
    s = np.sqrt(2 + h * h)
    with np.errstate(over="ignore"):
        lower_tail = np.where(h > 0, 1 / (s * (s + np.abs(h))), (s + np.abs(h)) / (2 * s)) * np.exp(
            -curve.c * np.where(h > 0, s + h, 2 / (s - h)) / 2
        )
    beta = lower_tail[::-1]  # Q(LLR <= t) is the type I error at -t
    masses = np.diff(beta)
    later = np.asarray(curve.delta(epsilon - losses))
    return float(masses @ later[:-1]), float(masses @ later[1:] + beta[0] + 1 - beta[-1])


@cache
def limit_pair() -> tuple[SymmetricLaplace, Curve]:
    """One release of the limit law and two, composed once."""
    curve = symmetric_laplace(inf, 0.5)
    assert isinstance(curve, SymmetricLaplace)
    return curve, curve.power(2)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 40.0, 150.0, 600.0])
def test_two_limit_releases_between_lower_and_upper_sums(epsilon: float) -> None:
    curve, both = limit_pair()
    low, high = twice(curve, epsilon)
    assert high - low < 2e-3 * high
    assert low <= both.delta(epsilon) <= high * 1.002


# 8 s at d = 100, which lies between the two others
@pytest.mark.parametrize("d", [6, pytest.param(100, marks=pytest.mark.long), inf])
def test_heavy_tails_compose_between_one_release_and_basic_composition(d: float) -> None:
    curve = symmetric_laplace(d, 0.5)
    both = curve.power(2)
    for delta in (1e-2, 1e-4, 1e-6, 1e-9):
        found = both.epsilon(delta)
        assert curve.epsilon(delta) <= found <= 2 * curve.epsilon(delta / 2) * (1 + 1e-9)
        assert both.delta(found) <= delta * (1 + 1e-9)


def test_bare_records_factor_out_of_any_composition() -> None:
    base, zeta = symmetric_laplace(3, 0.5), 0.05
    for k in (2, 5):
        bare, covered = zero_inflated(zeta, base).power(k), base.power(k)
        for epsilon in (0.0, 1.0, 5.0):
            assert bare.delta(epsilon) == pytest.approx(1 - (1 - zeta) ** k * (1 - covered.delta(epsilon)), rel=1e-9)
    mixed = zero_inflated(0.1, laplace(0.5)).compose(zero_inflated(0.2, gaussian(0.5)))
    assert mixed == zero_inflated(mixed.mass_at_infinity, laplace(0.5).compose(gaussian(0.5)))
    assert mixed.mass_at_infinity == pytest.approx(0.28)


@pytest.mark.long
def test_more_releases_say_more() -> None:
    epsilons = np.linspace(0, 8, 33)
    for curve in (laplace(0.4), symmetric_laplace(4, 0.4), approx_dp(0.3, 1e-3)):
        profiles = [curve.power(k).delta(epsilons) for k in (1, 2, 5)]
        assert (profiles[0] <= profiles[1] + 1e-6).all()
        assert (profiles[1] <= profiles[2] + 1e-6).all()


# ------------------------------------------------------------------------------------------------------------ attackers


def interval(hits: int, trials: int, false_alarm: float) -> tuple[float, float]:
    """Clopper and Pearson's."""
    low = stats.beta.ppf(false_alarm / 2, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.isf(false_alarm / 2, hits + 1, trials - hits) if hits < trials else 1.0
    return float(low), float(high)


@pytest.mark.parametrize(
    ("d", "fault"),
    few(
        [(d, fault) for d in (1, 2, 6) for fault in ("none", "variance instead of deviation")]
        + [(d, "one radius per coordinate") for d in (2, 6)],
        2,
        3,
        6,
    ),
)
def test_the_optimal_attacker_stands_on_the_curve(d: int, fault: str) -> None:
    """2e5 pairs, noise sd 1/2 on a shift of 1: rates inside Clopper-Pearson at 1e-7 each; a planted fault puts one outside."""
    pairs, scale = 200_000, 0.5
    generator = np.random.default_rng(100 + d)

    def noise() -> np.ndarray:
        radius = generator.exponential(size=(pairs, d if fault == "one radius per coordinate" else 1))
        spread = scale**2 if fault == "variance instead of deviation" else scale
        return spread * np.sqrt(radius) * generator.standard_normal((pairs, d))

    def ratio(x: np.ndarray) -> np.ndarray:
        """Log likelihood ratio of a centre at e_1 to one at 0, both with the claimed law."""
        moved = x.copy()
        moved[:, 0] -= 1.0
        near, far = (np.linalg.norm(y, axis=1) / scale for y in (moved, x))
        if d == 1:
            return np.asarray(sqrt(2) * (far - near))
        law = radial(d)
        return np.asarray(law.log_density(np.log(near)) - law.log_density(np.log(far)))

    own, other = ratio(noise()), ratio(noise() + np.eye(1, d)[0])
    curve = symmetric_laplace(d, 1 / scale)
    outside = 0
    for threshold in (0.0, 0.7, 1.5):
        alarms, misses = int((own > threshold).sum()), int((other <= threshold).sum())
        low, high = interval(alarms, pairs, 1e-7)
        least, most = interval(misses, pairs, 1e-7)
        outside += not curve.f(high) <= most  # more powerful than the curve allows
        outside += not curve.f(low) >= least  # less powerful than the best attacker should be
    assert (outside == 0) == (fault == "none"), outside
