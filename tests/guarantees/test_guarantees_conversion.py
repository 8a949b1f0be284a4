"""Conversions, calibration and their safe side, at 60 digits or more."""

from __future__ import annotations

import random
from fractions import Fraction
from math import exp, inf, log, nextafter, sqrt

import mpmath
import pytest
from hypothesis import assume, given, settings, strategies as st
from tests.guarantees.guarantees_accuracy import reference_delta
from tests.messages import refuses

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP, calibrate_gaussian, gaussian_delta, pure_epsilon, pure_mu

LABELS = {"relation": "substitute", "unit": "household", "trust": "local", "assumptions": ("float64 sampling",)}


def reference_pure_mu(epsilon):
    return 2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon) / 2))


def reference_zcdp_log_delta(epsilon, rho, order):
    """The bound of Canonne, Kamath, Steinke 2020 as printed, for one order."""
    a, e, r = mpmath.mpf(order), mpmath.mpf(epsilon), mpmath.mpf(rho)
    return (a - 1) * (a * r - e) - mpmath.log(a - 1) + a * mpmath.log(1 - 1 / a)


# ------------------------------------------------------------------------------------------------------ calibration


def test_calibrated_mu_meets_the_request_and_wastes_nothing():
    generator = random.Random(3)
    for _ in range(150):
        epsilon, delta = 10 ** generator.uniform(-3, 2), exp(-generator.uniform(0.01, 600))
        mu = calibrate_gaussian(ApproxDP(epsilon, delta))
        assert reference_delta(epsilon, mu) <= mpmath.mpf(delta)
        assert reference_delta(epsilon, mu * (1 + 1e-10)) > mpmath.mpf(delta)


def test_calibrated_mu_of_zcdp_is_the_largest_float_in_fractions():
    generator = random.Random(4)
    for rho in [0.5, 2.0, 1e-300, 5e-324, 1e300, *(10 ** generator.uniform(-6, 3) for _ in range(300))]:
        mu = calibrate_gaussian(ZCDP(rho))
        assert Fraction(mu) ** 2 / 2 <= Fraction(rho) < Fraction(nextafter(mu, inf)) ** 2 / 2


def test_calibrated_mu_of_gdp_is_its_own():
    assert calibrate_gaussian(GDP(0.3)) == 0.3
    assert calibrate_gaussian(GDP(0.3, 1e-6)) == 0.3


def test_statement_and_calibration_differ():
    """Charging ApproxDP(1, 1e-6) by its own conversion costs 27 times the mu^2 of the release."""
    stated, calibrated = ApproxDP(1.0, 1e-6).to_gdp(), calibrate_gaussian(ApproxDP(1.0, 1e-6))
    assert stated.mu == pytest.approx(1.232035385344900972855673, rel=2e-11, abs=0)
    assert calibrated == pytest.approx(0.2367043806634357096481234, rel=2e-11, abs=0)
    assert 27 < (stated.mu / calibrated) ** 2 < 27.2


def test_no_gaussian_noise_for_pure():
    with refuses(NoConversion):
        calibrate_gaussian(PureDP(0.5))


# ------------------------------------------------------------------------------------------------------------ to GDP


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 0.99999, 1.0, 1.00001, 3.0, 10.0, 40.0])
def test_pure_to_gdp_is_rounded_up_and_tight(epsilon):
    mu, truth = PureDP(epsilon).to_gdp().mu, reference_pure_mu(epsilon)
    assert truth <= mpmath.mpf(mu) <= truth * (1 + mpmath.mpf("1.1e-11"))
    assert abs(mpmath.mpf(pure_mu(epsilon)) / truth - 1) < 1e-13


def test_frozen_pure_values():
    assert pure_mu(10.0) == pytest.approx(7.827914393621866543318303, rel=1e-14, abs=0)
    assert pure_mu(0.1) == pytest.approx(0.1253090122116075810649181, rel=1e-14, abs=0)
    assert pure_epsilon(1.0) == pytest.approx(0.8069653463049622158141135, rel=1e-14, abs=0)
    assert pure_epsilon(0.1) == pytest.approx(0.07979753995768146057112135, rel=1e-14, abs=0)
    assert pure_epsilon(10.0) == pytest.approx(15.06499810733711277232011, rel=1e-14, abs=0)


def test_pure_round_trips_at_1000_random_points():
    generator = random.Random(5)
    for _ in range(1_000):
        epsilon = 10 ** generator.uniform(-6, 2.5)
        assert pure_epsilon(pure_mu(epsilon)) == pytest.approx(epsilon, rel=1e-12, abs=0)


@settings(deadline=None)
@given(st.floats(0.01, 20), st.floats(1e-12, 0.5), st.floats(-5, 25))
def test_gdp_of_an_approx_statement_covers_its_worst_case(epsilon, delta, at):
    """Randomised response with a leak has this curve (Kairouz, Oh, Viswanath 2015), the GDP statement is above it."""
    likely = exp(epsilon) / (1 + exp(epsilon))
    worst = delta + (1 - delta) * (max(0.0, likely - exp(at) * (1 - likely)) + max(0.0, 1 - likely - exp(at) * likely))
    stated = ApproxDP(epsilon, delta).to_gdp()
    assert gaussian_delta(at, stated.mu) + stated.delta >= worst * (1 - 1e-12)


def test_zcdp_to_gdp_is_refused():
    with refuses(NoConversion):
        ZCDP(0.5).to_gdp()


def test_gdp_to_gdp_is_itself():
    g = GDP(1.0, 1e-6, **LABELS)
    assert g.to_gdp() is g


# ----------------------------------------------------------------------------------------------------------- to zCDP


@settings(deadline=None)
@given(st.floats(1e-3, 1e3))
def test_to_zcdp_is_rounded_up_by_less_than_one_float(size):
    for g in (GDP(size), PureDP(size)):
        rho = g.to_zcdp().rho
        assert Fraction(nextafter(rho, 0)) < Fraction(size) ** 2 / 2 <= Fraction(rho)


def test_calibration_and_statement_of_zcdp_are_consistent():
    for mu in (0.1, 0.7, 1.0, 3.3):
        assert calibrate_gaussian(GDP(mu).to_zcdp()) >= mu
        assert GDP(calibrate_gaussian(ZCDP(mu))).to_zcdp().rho <= mu


@pytest.mark.parametrize("g", [GDP(1.0, 1e-6), ApproxDP(1.0, 1e-6)])
def test_a_delta_is_in_the_way_of_zcdp(g):
    with refuses(NoConversion):
        g.to_zcdp()


def test_zcdp_to_itself():
    assert ZCDP(0.1).to_zcdp() == ZCDP(0.1)


# ------------------------------------------------------------------------------------------------------- to ApproxDP


def test_gdp_to_approx_is_on_the_safe_side():
    generator = random.Random(6)
    for _ in range(100):
        mu, own = 10 ** generator.uniform(-4, 1.7), generator.choice([0.0, 1e-9, 1e-3])
        delta = own + (1 - own) * exp(-generator.uniform(0.01, 600))
        try:
            stated = GDP(mu, own).to_approx(delta=delta)
        except PrivacyError:
            assert delta <= own or reference_delta(0.0, mu) + own <= delta * (1 + 1e-9)
            continue
        assert reference_delta(stated.epsilon, mu) + mpmath.mpf(own) <= mpmath.mpf(delta)
        assert reference_delta(stated.epsilon - 1e-9 * (stated.epsilon + mu), mu) + mpmath.mpf(own) > mpmath.mpf(delta)
        back = GDP(mu, own).to_approx(epsilon=stated.epsilon)
        assert reference_delta(stated.epsilon, mu) + mpmath.mpf(own) <= mpmath.mpf(back.delta)
        assert back.delta == pytest.approx(delta, rel=1e-7, abs=0)


def test_gdp_to_approx_never_states_a_delta_of_zero():
    assert GDP(0.01).to_approx(epsilon=10.0).delta == 1e-300


def test_zcdp_to_approx_is_the_best_order_of_the_printed_bound():
    generator = random.Random(8)
    for _ in range(40):
        rho = 10 ** generator.uniform(-4, 1)
        epsilon = rho + sqrt(rho) * generator.uniform(0.5, 20)
        stated = log(ZCDP(rho).to_approx(epsilon=epsilon).delta)
        centre = max((epsilon + rho) / (2 * rho), 1.0 + 1e-6)
        orders = [1 + (centre - 1) * 10 ** (step / 40) for step in range(-80, 81)]
        bounds = [float(reference_zcdp_log_delta(epsilon, rho, order)) for order in orders]
        assert min(bounds) * (1 if min(bounds) < 0 else -1) >= stated - 2e-11 - 1e-3 * abs(stated)
        assert stated <= min(bounds) + 2e-11


def test_zcdp_to_approx_is_on_the_safe_side():
    """The printed bound, at the order where its derivative vanishes, allows what is stated and not much less."""
    generator = random.Random(9)
    for _ in range(40):
        rho, surprise = mpmath.mpf(10 ** generator.uniform(-4, 1.5)), generator.uniform(1, 600)
        delta = mpmath.mpf(exp(-surprise))
        try:
            epsilon = ZCDP(float(rho)).to_approx(delta=float(delta)).epsilon
        except PrivacyError:
            continue
        t = mpmath.findroot(
            lambda t, r=rho, d=delta: t * t * r + mpmath.log1p(t) + mpmath.log(d), mpmath.sqrt(surprise / rho)
        )
        assert reference_zcdp_log_delta(epsilon, rho, 1 + t) <= mpmath.log(delta)
        assert reference_zcdp_log_delta(epsilon - 1e-9 * (epsilon + rho), rho, 1 + t) > mpmath.log(delta)
        back = ZCDP(float(rho)).to_approx(epsilon=epsilon).delta
        assert reference_zcdp_log_delta(epsilon, rho, 1 + t) <= mpmath.log(mpmath.mpf(back))


def test_frozen_zcdp_values():
    assert ZCDP(0.5).to_approx(epsilon=5.0).delta == pytest.approx(exp(-12.75213767778441358748766), rel=2e-11, abs=0)
    assert ZCDP(0.01).to_approx(epsilon=1.0).delta == pytest.approx(exp(-29.42431337284288372109979), rel=2e-11, abs=0)


@settings(deadline=None)
@given(st.floats(1e-4, 50), st.floats(0.1, 600))
def test_zcdp_epsilon_inverts_delta_and_beats_the_simple_bound(rho, surprise):
    delta = exp(-surprise)
    try:
        stated = ZCDP(rho).to_approx(delta=delta)
    except PrivacyError:
        assert ZCDP(rho).to_approx(epsilon=1e-9).delta <= delta * (1 + 1e-6)
        return
    assert stated.epsilon < rho + 2 * sqrt(rho * surprise)  # Bun, Steinke 2016, Proposition 1.3
    if stated.epsilon > 1e-3:
        assert ZCDP(rho).to_approx(epsilon=stated.epsilon).delta == pytest.approx(delta, rel=1e-6, abs=0)


@settings(deadline=None)
@given(st.floats(0.01, 10), st.floats(0.01, 30))
def test_zcdp_of_a_gaussian_is_never_below_its_own_curve(mu, epsilon):
    try:
        through_zcdp = GDP(mu).to_zcdp().to_approx(epsilon=epsilon).delta
    except PrivacyError:
        return
    assert through_zcdp >= gaussian_delta(epsilon, mu)


@settings(deadline=None)
@given(st.floats(0.05, 20), st.floats(0, 0.4), st.floats(0.001, 0.999))
def test_leak_curve_and_its_inverse(epsilon, own, fraction):
    g = ApproxDP(epsilon, own) if own > 1e-12 else PureDP(epsilon)

    def reference(at):
        d, e, a = mpmath.mpf(getattr(g, "delta", 0.0)), mpmath.mpf(epsilon), mpmath.mpf(at)
        return d + (1 - d) * (mpmath.exp(e) - mpmath.exp(a)) / (1 + mpmath.exp(e))

    at = epsilon * fraction
    try:
        stated = g.to_approx(epsilon=at)
        back = g.to_approx(delta=stated.delta)
    except PrivacyError:
        assert at < 1e-3 or reference(at) > 1 - 2e-11
        return
    assert reference(at) <= mpmath.mpf(stated.delta) <= reference(at) * (1 + mpmath.mpf("2e-11"))
    assert reference(back.epsilon) <= mpmath.mpf(stated.delta)
    assert back.epsilon <= epsilon
    assert reference(back.epsilon) > mpmath.mpf(stated.delta) - 1e-9


def test_approx_at_its_own_numbers_is_itself():
    g = ApproxDP(1.0, 1e-6)
    assert g.to_approx(epsilon=1.0) == g
    assert g.to_approx(delta=1e-6) == g
    assert g.to_approx(epsilon=2.0) == ApproxDP(2.0, 1e-6)
    assert PureDP(1.0).to_approx(delta=1e-300) == ApproxDP(1.0, 1e-300)


@pytest.mark.parametrize(
    ("g", "call"),
    [
        (GDP(1.0), {}),
        (GDP(1.0), {"epsilon": 1.0, "delta": 0.1}),
        (GDP(1.0), {"epsilon": 0.0}),
        (GDP(1.0), {"delta": 0.0}),
        (GDP(1.0), {"delta": 0.9}),
        (GDP(1.0, 1e-3), {"delta": 1e-6}),
        (GDP(1.0, 1e-3), {"delta": 1e-3}),
        (GDP(60.0), {"epsilon": 1.0}),
        (ZCDP(0.01), {"delta": 0.9}),
        (PureDP(1.0), {"epsilon": 2.0}),
        (PureDP(0.1), {"delta": 0.5}),
        (ApproxDP(1.0, 1e-3), {"delta": 1e-6}),
    ],
)
def test_to_approx_refusals(g, call):
    with refuses(PrivacyError):
        g.to_approx(**call)


@settings(deadline=None)
@given(st.sampled_from([GDP(1.0, **LABELS), PureDP(1.0, **LABELS), ApproxDP(1.0, 1e-6, **LABELS), ZCDP(0.5, **LABELS)]))
def test_conversions_keep_relation_unit_trust_and_assumptions(g):
    converted = [g.to_approx(delta=1e-3)]
    for convert in (g.to_gdp, g.to_zcdp):
        try:
            converted.append(convert())
        except NoConversion:
            assert not isinstance(g, (GDP, PureDP))
    for result in converted:
        assert {name: getattr(result, name) for name in LABELS} == LABELS


def test_from_approx_is_the_calibration_and_takes_labels():
    """A release at this level is (1, 1e-6)-private; what is known of any (1, 1e-6)-private release is `to_gdp`."""
    g = GDP.from_approx(1.0, 1e-6, **LABELS)
    assert g == GDP(calibrate_gaussian(ApproxDP(1.0, 1e-6)), **LABELS)
    assert g.to_approx(epsilon=1.0).delta <= 1e-6
    with refuses(PrivacyError):
        GDP.from_approx(1.0, 0.0)


@settings(deadline=None)
@given(st.floats(0.01, 5), st.floats(0.001, 1))
def test_every_conversion_is_monotone(size, more):
    assume(size + more > size * (1 + 1e-9))
    assert PureDP(size + more).to_gdp().mu > PureDP(size).to_gdp().mu
    assert GDP(size + more).to_zcdp().rho > GDP(size).to_zcdp().rho
    assert GDP(size + more).to_approx(delta=1e-6).epsilon > GDP(size).to_approx(delta=1e-6).epsilon
    assert ZCDP(size + more).to_approx(delta=1e-6).epsilon > ZCDP(size).to_approx(delta=1e-6).epsilon
    bigger, smaller = ApproxDP(size + more, 1e-6), ApproxDP(size, 1e-6)
    assert calibrate_gaussian(bigger) > calibrate_gaussian(smaller)
