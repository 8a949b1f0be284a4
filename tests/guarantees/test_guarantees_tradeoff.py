"""TradeOff: the value that holds a curve, its conversions in both directions, and numeric composition of any kinds."""

from __future__ import annotations

import json
import pickle
from math import exp, inf

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as theirs
from hypothesis import given, settings, strategies as st
from tests.guarantees.guarantees_accuracy import reference_delta
from tests.messages import refuses

import confide.guarantees as guarantees
from confide.errors import NoConversion, PrivacyError
from confide.guarantees import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    PureDP,
    TradeOff,
    approx_dp,
    calibrate_gaussian,
    calibrate_laplace,
    compose,
    gaussian,
    gaussian_delta,
    group,
    guarantee_from_dict,
    laplace,
    symmetric_laplace,
    zero_inflated,
)

LABELS = {"relation": "substitute", "unit": "household", "trust": "local", "assumptions": ("float64 sampling",)}
LEVELS = st.floats(0.05, 4)
CURVES = st.one_of(
    LEVELS.map(laplace),
    LEVELS.map(gaussian),
    st.builds(approx_dp, LEVELS, st.floats(1e-9, 0.2)),
    LEVELS.map(lambda c: symmetric_laplace(inf, c)),
    LEVELS.map(lambda c: zero_inflated(0.05, symmetric_laplace(1, c))),
)


# ----------------------------------------------------------------------------------------------------------- the value


@settings(deadline=None, max_examples=40)
@given(CURVES, st.sampled_from([None, "add-remove", "substitute"]))
def test_json_repr_pickle_to_the_bit(curve, relation):
    g = TradeOff(curve, relation=relation)
    back = guarantee_from_dict(json.loads(json.dumps(g.to_dict())))
    assert back == g == eval(repr(g), {**vars(guarantees), "inf": inf}) == pickle.loads(pickle.dumps(g))
    assert repr(back) == repr(g) and hash(back) == hash(g)
    assert g.describe().startswith("Someone who sees ") and g.describe().endswith(".")
    assert 0.05 <= g.detection_limit(0.05) <= 1


def test_compared_matched_resolved():
    g = TradeOff(laplace(0.5))
    assert g == TradeOff(laplace(0.5)) != TradeOff(laplace(0.6)) and g != TradeOff(laplace(0.5), trust="local")
    assert g.resolve("substitute") == TradeOff(laplace(0.5), relation="substitute")
    assert str(g.resolve("substitute")).startswith("TradeOff(") and "substitute" in str(g.resolve("substitute"))
    match g:
        case TradeOff(curve):
            assert curve == laplace(0.5)


@pytest.mark.parametrize("value", [1.0, None, "laplace(0.5)", GDP(1.0)])
def test_what_is_no_curve_is_refused(value):
    with refuses(PrivacyError):
        TradeOff(value)


def test_files_that_are_refused():
    with refuses(PrivacyError):
        guarantee_from_dict({**TradeOff(laplace(0.5)).to_dict(), "curve": "laplace"})


@settings(deadline=None, max_examples=40)
@given(st.floats(0.05, 4), st.floats(1e-3, 0.5))
def test_detection_is_one_less_the_trade_off_function(mu, rate):
    assert TradeOff(gaussian(mu)).detection_limit(rate) == pytest.approx(GDP(mu).detection_limit(rate), rel=1e-6)
    assert TradeOff(laplace(mu)).detection_limit(rate) <= PureDP(mu).detection_limit(rate) * (1 + 1e-6)


# --------------------------------------------------------------------------------------------------------- conversions


@settings(deadline=None, max_examples=20)
@given(st.floats(0.05, 10), st.floats(0.01, 5), st.floats(1, 500))
def test_gaussian_round_trip(mu, epsilon, surprise):
    g = GDP(mu, **LABELS).to_tradeoff()
    stated = g.to_approx(epsilon=epsilon)
    truth = max(reference_delta(epsilon, mu), mpmath.mpf(1e-300))  # the smallest delta that is stated
    assert truth <= mpmath.mpf(stated.delta) <= truth * mpmath.mpf(1 + 1e-9)
    assert mu <= g.to_gdp(delta=0.0).mu <= mu * (1 + 1e-9)
    assert {name: getattr(g, name) for name in LABELS} == LABELS == {n: getattr(stated, n) for n in LABELS}
    delta = exp(-surprise)
    if gaussian_delta(0.0, mu) > delta:
        there = g.to_approx(delta=delta).epsilon
        assert reference_delta(there, mu) <= mpmath.mpf(delta)
        assert there == pytest.approx(GDP(mu).to_approx(delta=delta).epsilon, rel=1e-8)


@settings(deadline=None, max_examples=30)
@given(st.floats(0.05, 8), st.floats(1e-9, 0.3), st.floats(0, 10))
def test_the_curve_of_a_statement_says_what_the_statement_says(epsilon, delta, at):
    for g in (PureDP(epsilon), ApproxDP(epsilon, delta), GDP(epsilon, delta)):
        try:
            direct = g.to_approx(epsilon=max(at, 1e-3)).delta
        except PrivacyError:
            continue
        assert g.to_tradeoff().to_approx(epsilon=max(at, 1e-3)).delta == pytest.approx(direct, rel=1e-8, abs=1e-290)


@settings(deadline=None, max_examples=4)
@given(st.floats(0.3, 3), st.floats(1e-9, 0.1), st.floats(0, 6))
def test_gdp_at_a_delta_is_above_the_curve(c, delta, at):
    """And the curve is exact where a single (epsilon, delta) pair would cost many times as much."""
    for curve in (laplace(c), symmetric_laplace(1, c)):
        g = TradeOff(curve).to_gdp(delta=delta)
        assert g.delta == delta
        assert gaussian_delta(at, g.mu) + delta >= curve.delta(at) * (1 - 1e-9)


def test_gdp_of_the_laplace_curve_is_the_calibration_the_other_way_round():
    for mu, delta in ((1.0, 0.0), (0.3, 1e-6), (2.0, 1e-3)):
        epsilon = calibrate_laplace(GDP(mu, delta))
        assert mu <= TradeOff(laplace(epsilon)).to_gdp(delta=delta).mu * (1 + 1e-9) <= mu * (1 + 2e-3)


def test_pure_of_a_bounded_loss():
    assert TradeOff(laplace(0.5), **LABELS).to_pure() == PureDP(0.5, **LABELS)
    assert PureDP(0.7).to_tradeoff().to_pure().epsilon == pytest.approx(0.7, rel=1e-10)
    for curve in (gaussian(1.0), approx_dp(1.0, 1e-6), symmetric_laplace(inf, 0.5)):
        with refuses(NoConversion):
            TradeOff(curve).to_pure()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: TradeOff(laplace(1.0)).to_gdp(), NoConversion),
        (lambda: TradeOff(laplace(1.0)).to_gdp(delta=1.0), PrivacyError),
        (lambda: TradeOff(laplace(1.0)).to_gdp(delta=-0.1), PrivacyError),
        (lambda: TradeOff(laplace(1.0)).to_zcdp(), NoConversion),
        (lambda: TradeOff(laplace(1.0)).to_rdp(), NoConversion),
        (lambda: TradeOff(gaussian(1.0)).to_zcdp(), NoConversion),
        (lambda: TradeOff(symmetric_laplace(inf, 0.5)).to_gdp(delta=0.0), NoConversion),
        (lambda: TradeOff(zero_inflated(0.05, laplace(0.5))).to_gdp(delta=0.01), NoConversion),
        (lambda: TradeOff(laplace(0.1)).to_gdp(delta=0.5), PrivacyError),
        (lambda: TradeOff(approx_dp(1.0, 0.1)).to_approx(delta=0.01), PrivacyError),
        (lambda: TradeOff(laplace(0.1)).to_approx(delta=0.5), PrivacyError),
        (lambda: group(TradeOff(laplace(1.0)), 2), NoConversion),
        (lambda: calibrate_gaussian(TradeOff(laplace(1.0))), NoConversion),
        (lambda: calibrate_laplace(TradeOff(laplace(1.0))), NoConversion),
        (lambda: TradeOff(laplace(1.0), relation="add-remove").resolve("substitute"), PrivacyError),
    ],
)
def test_directions_that_do_not_exist(call, error):
    with refuses(error):
        call()


# --------------------------------------------------------------------------------------------------------- composition


def test_a_thousand_gaussians_stay_symbolic():
    assert compose(*[TradeOff(gaussian(0.1))] * 1_000).to_gdp(delta=0.0).mu == pytest.approx(0.1 * 1_000**0.5, rel=1e-9)


def test_equal_curves_are_one_power():
    both = compose(*[TradeOff(laplace(0.1), relation="add-remove")] * 100)
    other = theirs.from_laplace_mechanism(10.0, value_discretization_interval=1e-4).self_compose(100)
    assert both.relation == "add-remove"
    for delta in (1e-3, 1e-6, 1e-9):
        assert both.to_approx(delta=delta).epsilon == pytest.approx(other.get_epsilon_for_delta(delta), rel=1e-6)


def test_numeric_composition_of_approx_is_tighter_than_the_sum():
    parts = [ApproxDP(0.1, 1e-8)] * 100
    basic, numeric = compose(*parts), compose(*parts, numeric=True)
    assert isinstance(basic, ApproxDP) and isinstance(numeric, TradeOff)
    other = theirs.from_privacy_parameters(
        theirs.common.DifferentialPrivacyParameters(0.1, 1e-8), value_discretization_interval=1e-4
    ).self_compose(100)
    found = numeric.to_approx(delta=1e-5).epsilon
    assert found < basic.epsilon / 2
    assert found == pytest.approx(other.get_epsilon_for_delta(1e-5), rel=1e-6)


def test_kinds_meet_in_numeric_composition():
    with refuses(PrivacyError):
        compose(PureDP(0.5), GDP(1.0))
    mixed = compose(PureDP(0.5, **LABELS), GDP(1.0, **LABELS), numeric=True)
    likely = 1 / (1 + exp(-0.5))
    through_gdp = compose(PureDP(0.5).to_gdp(), GDP(1.0))
    for at in (1.0, 3.0, 5.0):
        truth = likely * reference_delta(at - 0.5, 1.0) + (1 - likely) * reference_delta(at + 0.5, 1.0)
        assert truth <= mpmath.mpf(mixed.to_approx(epsilon=at).delta) <= truth * mpmath.mpf(1 + 1e-5)
        assert truth < through_gdp.to_approx(epsilon=at).delta / 1.01
    assert {name: getattr(mixed, name) for name in LABELS} == LABELS


def test_what_adds_exactly_is_added_before_it_becomes_a_curve():
    numeric = compose(ZCDP(0.1), ZCDP(0.4), numeric=True)
    assert numeric.to_approx(delta=1e-6).epsilon == pytest.approx(ZCDP(0.5).to_approx(delta=1e-6).epsilon, rel=1e-6)
    lines = compose(*[RDP((2, 8), (0.1, 0.4))] * 2, numeric=True)
    exact = RDP((2, 8), (0.2, 0.8)).to_approx(delta=1e-6).epsilon
    assert lines.to_approx(delta=1e-6).epsilon == pytest.approx(exact, rel=1e-6)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=4), st.floats(0.01, 3))
def test_order_does_not_matter_and_more_is_more(levels, at):
    parts = [PureDP(level) for level in levels]
    there, back = compose(*parts, numeric=True), compose(*reversed(parts), numeric=True)
    assert there.curve.delta(at) == pytest.approx(back.curve.delta(at), rel=1e-6, abs=1e-12)
    assert there.curve.delta(at) >= parts[0].to_tradeoff().curve.delta(at) * (1 - 1e-9)
    # atoms that do not divide one another are spread over a step of about 5e-4 of the largest
    assert there.curve.delta(sum(levels)) <= 2e-4


def test_labels_must_agree():
    with refuses(PrivacyError):
        compose(PureDP(1.0, relation="add-remove"), GDP(1.0, relation="substitute"), numeric=True)
    with refuses(PrivacyError):
        compose(TradeOff(laplace(1.0)), TradeOff(laplace(1.0), unit="attribute"))
    with refuses(PrivacyError):
        compose(TradeOff(laplace(1.0)), TradeOff(laplace(1.0), trust="local"))
    with refuses(PrivacyError):
        compose(TradeOff(laplace(1.0)), GDP(1.0))
