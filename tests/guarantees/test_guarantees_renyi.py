"""RDP: the value, its conversions in both directions, against 60 digits, the definition and dp-accounting."""

from __future__ import annotations

import json
import pickle
import random
from fractions import Fraction
from math import exp, inf, log

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings, strategies as st
from tests.few import few
from tests.messages import refuses

import confide.guarantees as guarantees
from confide.errors import NoConversion, PrivacyError
from confide.guarantees import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    PureDP,
    compose,
    gaussian_delta,
    group,
    guarantee_from_dict,
    laplace_renyi,
    pure_renyi,
)
from confide.guarantees.mechanisms.classical import DEFAULT_ORDERS

LABELS = {"relation": "substitute", "unit": "household", "trust": "local", "assumptions": ("float64 sampling",)}
ORDERS = st.lists(st.floats(1.01, 1e4), min_size=1, max_size=6, unique=True).map(sorted)


@st.composite
def curves(draw):
    orders = draw(ORDERS)
    epsilons = draw(st.lists(st.floats(0, 1e3), min_size=len(orders), max_size=len(orders)))
    return RDP(orders, epsilons, relation=draw(st.sampled_from([None, "add-remove", "substitute"])))


# ----------------------------------------------------------------------------------------------------------- the value


@settings(deadline=None)
@given(curves())
def test_json_repr_pickle_to_the_bit(g):
    back = guarantee_from_dict(json.loads(json.dumps(g.to_dict())))
    assert back == g == eval(repr(g), dict(vars(guarantees))) == pickle.loads(pickle.dumps(g))
    assert repr(back) == repr(g) and hash(back) == hash(g)
    assert g.describe().endswith(".") and 0.05 <= g.detection_limit(0.05) <= 1


@settings(deadline=None)
@given(curves())
def test_a_divergence_rises_with_its_order(g):
    assert list(g.epsilons) == sorted(g.epsilons)
    assert RDP(g.orders, g.epsilons, relation=g.relation) == g


def test_normalised_compared_matched_printed():
    g = RDP((2, 4, 8), (1.0, 3, 2), relation="add-remove")
    assert g.epsilons == (1.0, 2.0, 2.0) and all(type(a) is float for a in (*g.orders, *g.epsilons))
    assert g == RDP(np.array([2, 4, 8]), [1, 2, 2], relation="add-remove") != RDP((2, 4, 8), (1, 2, 2))
    assert str(g) == "RDP(3 orders from 2 to 8, add-remove)"
    match g:
        case RDP(orders, epsilons):
            assert (orders, epsilons) == ((2.0, 4.0, 8.0), (1.0, 2.0, 2.0))


@pytest.mark.parametrize(
    ("orders", "epsilons"),
    [
        ((), ()),
        ((1.0, 2.0), (1, 1)),
        ((2, 2), (1, 1)),
        ((3, 2), (1, 1)),
        ((2, inf), (1, 1)),
        ((2, "3"), (1, 1)),
        ("23", (1, 1)),
        (2.0, (1,)),
        ((2, 3), (1,)),
        ((2, 3), (1, -1)),
        ((2, 3), (1, inf)),
        ((2, 3), (1, np.nan)),
        ((2, 3), "11"),
        ((2, 3), 1.0),
    ],
)
def test_numbers_that_are_refused(orders, epsilons):
    with refuses(PrivacyError):
        RDP(orders, epsilons)


@pytest.mark.parametrize(
    "changes",
    [
        {"orders": "0x1p1"},
        {"orders": ["2.0"]},
        {"epsilons": [1.0]},
        {"epsilons": []},
    ],
)
def test_files_that_are_refused(changes):
    with refuses(PrivacyError):
        guarantee_from_dict({**RDP((2,), (1,)).to_dict(), **changes})


# ------------------------------------------------------------------------------------------------------ to RDP, from RDP


@pytest.mark.parametrize("order", [1.001, 1.1, 2.0, 5.0, 64.0, 1024.0])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.003, 0.1, 0.24, 0.26, 0.5, 1.0, 2.0, 10.0, 100.0])
def test_divergences_against_60_digits(order, epsilon):
    with mpmath.workdps(60):
        a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
        b = a - 1
        laplace = mpmath.log((a * mpmath.exp(b * e) + b * mpmath.exp(-a * e)) / (a + b)) / b
        coin = mpmath.log((mpmath.exp(a * e) + mpmath.exp(-b * e)) / (1 + mpmath.exp(e))) / b
        assert abs(laplace_renyi(order, epsilon) / laplace - 1) < 1e-12
        assert abs(pure_renyi(order, epsilon) / coin - 1) < 1e-12
        assert laplace <= coin <= a * e**2 / 2
        stated = PureDP(epsilon).to_rdp((order,)).epsilons[0]
        assert coin <= mpmath.mpf(stated) <= coin * (1 + mpmath.mpf("2e-11"))


def test_the_laplace_divergence_is_its_integral():
    a, e = mpmath.mpf("3.5"), mpmath.mpf("0.8")
    ratio = lambda x: mpmath.exp(a * -abs(x) + (1 - a) * -abs(x - e)) / 2  # noqa: E731
    integral = mpmath.quad(ratio, [-60, -10, 0, e, 10, 60])
    assert laplace_renyi(3.5, 0.8) == pytest.approx(float(mpmath.log(integral) / (a - 1)), rel=1e-12)


@settings(deadline=None)
@given(st.floats(1e-6, 50), ORDERS)
def test_gaussian_and_zcdp_curves_are_exact_and_rounded_up(size, orders):
    for g, exact in (
        (GDP(size), lambda a: Fraction(a) * Fraction(size) ** 2 / 2),
        (ZCDP(size), lambda a: Fraction(a) * Fraction(size)),
    ):
        for a, stated in zip(orders, g.to_rdp(orders).epsilons, strict=True):
            assert exact(a) <= Fraction(stated) <= exact(a) * (1 + Fraction(1, 2**51))


def test_to_approx_is_the_printed_bound_at_the_best_order():
    generator = random.Random(12)
    with mpmath.workdps(60):
        for _ in range(60):
            orders = sorted({1 + 10 ** generator.uniform(-2, 3) for _ in range(8)})
            g = RDP(orders, [a * generator.uniform(0.01, 1) for a in orders])

            def bound(epsilon, g=g):
                pairs = [(mpmath.mpf(a), mpmath.mpf(e)) for a, e in zip(g.orders, g.epsilons, strict=True)]
                return min(
                    mpmath.exp((a - 1) * (e - mpmath.mpf(epsilon))) / a * (1 - 1 / a) ** (a - 1) for a, e in pairs
                )

            delta = exp(-generator.uniform(1, 400))
            epsilon = g.to_approx(delta=delta).epsilon
            assert bound(epsilon) <= mpmath.mpf(delta)
            assert bound(epsilon - 1e-8 * (1 + epsilon)) > mpmath.mpf(delta)
            back = g.to_approx(epsilon=epsilon).delta
            assert bound(epsilon) <= mpmath.mpf(back) <= bound(epsilon) * (1 + mpmath.mpf("1e-10"))


def test_a_fine_curve_of_zcdp_is_as_good_as_zcdp():
    zcdp = ZCDP(0.5)
    fine = zcdp.to_rdp(np.linspace(1.01, 20, 4_000))
    for delta in (1e-3, 1e-6, 1e-12):
        assert zcdp.to_approx(delta=delta).epsilon <= fine.to_approx(delta=delta).epsilon * (1 + 1e-12)
        assert fine.to_approx(delta=delta).epsilon == pytest.approx(zcdp.to_approx(delta=delta).epsilon, rel=1e-5)


@pytest.mark.parametrize(
    ("event", "g", "k"),
    few(
        [
            (GaussianDpEvent(10.0), GDP(0.1), 100),
            (GaussianDpEvent(1.0), GDP(1.0), 3),
            (LaplaceDpEvent(2.0), None, 10),
            (LaplaceDpEvent(10.0), None, 1_000),
        ],
        0,
    ),
)
def test_agreement_with_the_accountant_of_dp_accounting(event, g, k):
    other = RdpAccountant(orders=DEFAULT_ORDERS)
    other.compose(SelfComposedDpEvent(event, k))
    one = (
        g.to_rdp() if g else RDP(DEFAULT_ORDERS, [laplace_renyi(a, 1 / event.noise_multiplier) for a in DEFAULT_ORDERS])
    )
    mine = compose(*[one] * k)
    for delta in (1e-3, 1e-6, 1e-12):
        assert mine.to_approx(delta=delta).epsilon == pytest.approx(other.get_epsilon(delta), rel=1e-6)
    for epsilon in (2.0, 5.0):
        assert mine.to_approx(epsilon=epsilon).delta == pytest.approx(other.get_delta(epsilon), rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(st.floats(0.05, 3), st.floats(0.1, 10))
def test_no_conversion_of_a_gaussian_is_below_its_own_curve(mu, epsilon):
    try:
        stated = GDP(mu).to_rdp().to_approx(epsilon=epsilon).delta
    except PrivacyError:
        return
    assert stated >= gaussian_delta(epsilon, mu)


@settings(deadline=None)
@given(st.floats(0.05, 3), st.floats(1e-4, 0.5))
def test_detection_limits_are_ordered(mu, rate):
    exact = GDP(mu).detection_limit(rate)
    assert exact <= GDP(mu).to_rdp().detection_limit(rate) + 1e-12
    zcdp = ZCDP(mu).detection_limit(rate)
    assert zcdp <= ZCDP(mu).to_rdp(np.linspace(1.01, 50, 500)).detection_limit(rate) + 1e-12


def test_orders_are_kept_or_cut_down():
    g = GDP(1.0, **LABELS).to_rdp((2, 4, 8))
    assert g.to_rdp() is g and g.to_rdp((2, 8)) == RDP((2, 8), (1, 4), **LABELS)
    assert PureDP(1.0).to_rdp().orders == DEFAULT_ORDERS
    with refuses(NoConversion):
        g.to_rdp((3,))


@pytest.mark.parametrize(
    "call",
    [
        lambda: GDP(1.0, 1e-6).to_rdp(),
        lambda: ApproxDP(1.0, 1e-6).to_rdp(),
        lambda: RDP((2,), (1,)).to_zcdp(),
        lambda: RDP((2,), (1,)).to_gdp(),
        lambda: RDP((2,), (1,)).to_pure(),
        lambda: ZCDP(1.0).to_pure(),
        lambda: GDP(1.0).to_pure(),
        lambda: ApproxDP(1.0, 1e-6).to_pure(),
        lambda: group(RDP((2,), (1,)), 2),
    ],
)
def test_directions_that_do_not_exist(call):
    with refuses(NoConversion):
        call()


def test_a_delta_is_refused_where_a_kind_has_its_own():
    with refuses(PrivacyError):
        PureDP(1.0).to_gdp(delta=1e-6)
    assert PureDP(1.0).to_pure() == PureDP(1.0)


# --------------------------------------------------------------------------------------------------------- composition


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=8))
def test_composition_adds_order_by_order(levels):
    parts = [RDP((2, 5), (level / 2, level)) for level in levels]
    total = compose(*parts)
    exact = sum(map(Fraction, levels))
    assert total.orders == (2.0, 5.0)
    assert exact <= Fraction(total.epsilons[1]) <= exact * (1 + Fraction(1, 2**52))
    assert compose(*reversed(parts)) == total


@pytest.mark.parametrize(
    "parts",
    [
        (RDP((2,), (1,)), RDP((3,), (1,))),
        (RDP((2,), (1,)), GDP(1.0)),
        (RDP((2,), (1,)), RDP((2,), (1,), trust="local")),
        (RDP((2,), (1,)), RDP((2,), (1,), unit="attribute")),
        (RDP((2,), (1,), relation="add-remove"), RDP((2,), (1,), relation="substitute")),
    ],
)
def test_compositions_that_are_refused(parts):
    with refuses(PrivacyError):
        compose(*parts)


def test_labels_are_kept():
    g = RDP((2,), (1,), **LABELS)
    for other in (compose(g, g), g.to_approx(delta=1e-6), ZCDP(1.0, **LABELS).to_rdp(), PureDP(1.0, **LABELS).to_rdp()):
        assert {name: getattr(other, name) for name in LABELS} == LABELS
    assert log(g.to_approx(epsilon=9.0).delta) == pytest.approx(1 - 9 - log(4), abs=1e-10)
