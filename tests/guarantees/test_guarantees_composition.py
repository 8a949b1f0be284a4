"""compose and group: exact sums, rounded up once; what does not add is refused."""

from __future__ import annotations

import random
from fractions import Fraction
from math import exp, inf, nextafter

import mpmath
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP, compose, group
from confide.guarantees.validation import float_up, sqrt_down, sqrt_up

LEVELS = st.floats(1e-8, 1e6)


@settings(deadline=None)
@given(st.lists(LEVELS, min_size=1, max_size=12))
def test_gdp_composition_is_the_smallest_float_above_the_exact_one(mus):
    exact = sum(Fraction(mu) ** 2 for mu in mus)
    mu = compose(*map(GDP, mus)).mu
    assert Fraction(nextafter(mu, 0)) ** 2 < exact <= Fraction(mu) ** 2


@settings(deadline=None)
@given(st.lists(LEVELS, min_size=1, max_size=8), st.floats(0, 1e3), st.integers(0, 7))
def test_composition_is_monotone(mus, more, index):
    raised = list(mus)
    raised[index % len(mus)] += more
    assert compose(*map(GDP, raised)).mu >= compose(*map(GDP, mus)).mu
    assert compose(*map(GDP, [*mus, 1e-8])).mu >= compose(*map(GDP, mus)).mu
    assert compose(*map(ZCDP, raised)).rho >= compose(*map(ZCDP, mus)).rho


@settings(deadline=None)
@given(st.lists(LEVELS, min_size=2, max_size=8), st.randoms())
def test_the_order_does_not_show(mus, generator):
    shuffled = list(mus)
    generator.shuffle(shuffled)
    for kind in (GDP, ZCDP, PureDP):
        assert compose(*map(kind, mus)) == compose(*map(kind, shuffled))


@settings(deadline=None)
@given(LEVELS)
def test_one_alone_is_itself(level):
    assert compose(GDP(level, 1e-6, relation="substitute")) == GDP(level, 1e-6, relation="substitute")


def test_a_thousand():
    generator = random.Random(11)
    mus = [generator.uniform(1e-6, 10) for _ in range(1_000)]
    mu = compose(*map(GDP, mus)).mu
    exact = sum(Fraction(m) ** 2 for m in mus)
    assert Fraction(nextafter(mu, 0)) ** 2 < exact <= Fraction(mu) ** 2
    assert compose(*[GDP(0.1)] * 100).mu == pytest.approx(1.0, rel=1e-15, abs=0)


def test_known_sums():
    assert compose(GDP(3.0), GDP(4.0)) == GDP(5.0)
    assert compose(GDP(0.6, 1e-6), GDP(0.8, 2e-6)).delta == 3e-6
    assert compose(PureDP(0.25), PureDP(0.5)) == PureDP(0.75)
    assert compose(ZCDP(0.25), ZCDP(0.5)) == ZCDP(0.75)
    assert compose(ApproxDP(1.0, 0.125), ApproxDP(2.0, 0.25)) == ApproxDP(3.0, 0.375)


@settings(deadline=None)
@given(st.lists(st.floats(1e-12, 0.05), min_size=1, max_size=10))
def test_sums_are_rounded_up(deltas):
    exact = sum(map(Fraction, deltas))
    for total in (
        compose(*(GDP(1.0, delta) for delta in deltas)).delta,
        compose(*(ApproxDP(1.0, delta) for delta in deltas)).delta,
        compose(*map(PureDP, deltas)).epsilon,
        compose(*map(ZCDP, deltas)).rho,
    ):
        assert Fraction(nextafter(total, 0)) < exact <= Fraction(total)


def test_assumptions_are_united():
    together = compose(GDP(1.0, assumptions=("b", "a")), GDP(1.0), GDP(1.0, assumptions=("c", "a")))
    assert together.assumptions == ("a", "b", "c")


def test_labels_are_kept():
    labels = {"relation": "substitute", "unit": "attribute", "trust": "local"}
    together = compose(PureDP(1.0, **labels), PureDP(1.0, **labels))
    assert together == PureDP(2.0, **labels)
    assert group(together, 2) == PureDP(4.0, **labels)


ADD_REMOVE = {"relation": "add-remove"}
SUBSTITUTE = {"relation": "substitute"}


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (GDP(1.0), 1.0),
        (GDP(1.0), PureDP(1.0)),
        (GDP(1.0), ZCDP(1.0)),
        (GDP(1.5, **ADD_REMOVE), GDP(1.0, **SUBSTITUTE)),
        (GDP(1.0, **SUBSTITUTE), GDP(1.5, **ADD_REMOVE)),
        (ZCDP(0.5, **ADD_REMOVE), ZCDP(0.5, **SUBSTITUTE)),
        (GDP(1.0, 1e-6, **ADD_REMOVE), GDP(1.0, **SUBSTITUTE)),
        (GDP(1.0), GDP(1.0, **SUBSTITUTE)),
        (GDP(1.0, **ADD_REMOVE), GDP(1.0)),
        (GDP(1.0), GDP(1.0, unit="attribute")),
        (GDP(1.0), GDP(1.0, trust="local")),
        (ApproxDP(1.0, 0.5), ApproxDP(1.0, 0.5)),
        (GDP(1.0, 0.5), GDP(1.0, 0.75)),
        (GDP(1e308), GDP(1.7e308)),
    ],
)
def test_compose_refusals(parts):
    with refuses(PrivacyError):
        compose(*parts)


# ------------------------------------------------------------------------------------------------------------- groups


@settings(deadline=None)
@given(LEVELS, st.integers(1, 1_000))
def test_group_rounds_up(level, k):
    for g, exact, name in (
        (GDP(level), k * Fraction(level), "mu"),
        (PureDP(level), k * Fraction(level), "epsilon"),
        (ZCDP(level), k**2 * Fraction(level), "rho"),
    ):
        value = getattr(group(g, k), name)
        assert Fraction(nextafter(value, 0)) < exact <= Fraction(value)


def test_known_groups():
    assert group(GDP(0.5, **SUBSTITUTE), 4) == GDP(2.0, **SUBSTITUTE)
    assert group(ZCDP(0.5), 3) == ZCDP(4.5)
    assert group(PureDP(0.5), 3) == PureDP(1.5)
    for g in (GDP(1.0, 1e-6), ApproxDP(1.0, 1e-6), PureDP(1.0)):
        assert group(g, 1) is g


@settings(deadline=None)
@given(st.floats(1e-6, 5), st.floats(1e-60, 1e-20), st.integers(2, 8))
def test_group_of_approx_is_the_chain_of_k_steps(epsilon, delta, k):
    grown = group(ApproxDP(epsilon, delta), k)
    exact = mpmath.mpf(delta) * sum(mpmath.exp(i * mpmath.mpf(epsilon)) for i in range(k))
    assert grown.epsilon >= k * Fraction(epsilon)
    assert exact <= mpmath.mpf(grown.delta) <= exact * (1 + mpmath.mpf("2e-11"))


def test_group_of_approx_does_not_overflow_before_it_is_void():
    assert group(ApproxDP(360.0, 1e-300), 2).delta == pytest.approx(1e-300 * exp(360.0), rel=1e-10, abs=0)
    with refuses(PrivacyError):
        group(ApproxDP(400.0, 1e-300), 3)


@pytest.mark.parametrize(
    ("g", "k", "error"),
    [
        (GDP(1.0, 1e-6), 2, NoConversion),
        (ApproxDP(3.0, 0.1), 2, PrivacyError),
        (GDP(1.0), 0, PrivacyError),
        (GDP(1.0), -1, PrivacyError),
        (GDP(1.0), True, PrivacyError),
        (GDP(1.0), 2.0, PrivacyError),
        ("GDP", 2, PrivacyError),
        ("GDP", 1, PrivacyError),
    ],
)
def test_group_refusals(g, k, error):
    with refuses(error):
        group(g, k)


# ----------------------------------------------------------------------------------------------------------- rounding


@settings(deadline=None)
@given(st.integers(1, 10**60), st.integers(1, 10**60))
def test_directed_rounding(numerator, denominator):
    exact = Fraction(numerator, denominator)
    up, high, low = float_up(exact), sqrt_up(exact), sqrt_down(exact)
    assert Fraction(nextafter(up, 0)) < exact <= Fraction(up)
    assert Fraction(nextafter(high, 0)) ** 2 < exact <= Fraction(high) ** 2
    assert Fraction(low) ** 2 <= exact < Fraction(nextafter(low, inf)) ** 2


@pytest.mark.parametrize("root", [5e-324, 1e-200, 1e-20, 1e20, 1e200, 1.5e308])
def test_roots_over_the_whole_range(root):
    assert sqrt_up(Fraction(root) ** 2) == root == sqrt_down(Fraction(root) ** 2)
    assert sqrt_up(Fraction(root) ** 2 * (1 - Fraction(1, 10**30))) == root
    assert sqrt_down(Fraction(root) ** 2 * (1 + Fraction(1, 10**30))) == root


def test_operators_and_lists_say_how_to_compose():
    for wrong in (lambda: GDP(1.0) * GDP(2.0), lambda: GDP(1.0) ** 3, lambda: GDP(1.0) + GDP(2.0)):
        with refuses(PrivacyError):
            wrong()
    with refuses(PrivacyError):
        compose([GDP(1.0), GDP(2.0)])
    with refuses(PrivacyError):
        compose(GDP(1.0), PureDP(1.0))
