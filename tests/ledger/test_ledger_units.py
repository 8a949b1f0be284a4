"""Rounding: a charge up, a limit down, exactly."""

from __future__ import annotations

from fractions import Fraction
from math import nextafter

import pytest
from hypothesis import given, strategies as st

from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.ledger.currencies import currency_of
from confide.ledger.currency import AMOUNT_BITS, DELTA_BITS, Price, root_down, root_up, units_down, units_up

positive = st.floats(min_value=1e-12, max_value=2000.0)
budgets = st.one_of(
    st.builds(GDP, st.floats(1e-3, 100), st.floats(0, 0.1)).filter(lambda g: g.delta == 0 or g.delta > 1e-17),
    st.builds(ZCDP, st.floats(1e-3, 100)),
    st.builds(PureDP, st.floats(1e-3, 100)),
)


@given(positive, st.sampled_from([AMOUNT_BITS, DELTA_BITS]))
def test_units_enclose_the_exact_value_by_less_than_one_unit(value: float, bits: int) -> None:
    exact = Fraction(value) * 2**bits
    low, high = units_down(value, bits), units_up(value, bits)
    assert low <= exact <= high
    assert high - exact < 1
    assert exact - low < 1


@given(st.integers(0, 2**62), st.sampled_from([AMOUNT_BITS, DELTA_BITS]))
def test_whole_units_are_kept(units: int, bits: int) -> None:
    exact = Fraction(units, 2**bits)
    assert units_down(exact, bits) == units == units_up(exact, bits)


@given(st.integers(1, 2**62))
def test_roots_enclose_tightly(units: int) -> None:
    value = Fraction(units, 2**AMOUNT_BITS)
    low, high = root_down(value), root_up(value)
    assert Fraction(low) ** 2 <= value <= Fraction(high) ** 2
    assert high <= nextafter(low, float("inf"))


@given(budgets)
def test_a_limit_is_never_above_and_a_price_never_below_the_same_guarantee(budget: Guarantee) -> None:
    currency = currency_of(budget)
    amount, delta = currency.cost(budget)
    limit, price = currency.limit(budget), currency.price(budget)
    assert Fraction(limit.amount, 2**40) <= amount <= Fraction(price.amount, 2**40)
    assert Fraction(limit.delta, 2**60) <= delta <= Fraction(price.delta, 2**60)
    assert 0 <= price.amount - limit.amount <= 1
    assert 0 <= price.delta - limit.delta <= 1


@pytest.mark.parametrize(
    ("statement", "price"),
    [
        (GDP(1.0), Price(2**40, 0)),
        (GDP(2.0**-20), Price(1, 0)),
        (GDP(2.0**-21), Price(1, 0)),  # a quarter of a unit costs one
        (GDP(1.0, 2.0**-60), Price(2**40, 1)),
        (GDP(1.0, 2.0**-80), Price(2**40, 1)),
        (GDP(nextafter(1.0, 2.0)), Price(2**40 + 1, 0)),
        (GDP(nextafter(1.0, 0.0)), Price(2**40, 0)),
        (ZCDP(2.0**-40), Price(1, 0)),
        (PureDP(1.5 * 2.0**-40), Price(2, 0)),
    ],
)
def test_prices_to_the_unit(statement: Guarantee, price: Price) -> None:
    assert currency_of(statement).price(statement) == price


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (GDP(nextafter(1.0, 2.0)), Price(2**40, 0)),
        (GDP(nextafter(1.0, 0.0)), Price(2**40 - 1, 0)),
        (GDP(1.0, 1.5 * 2.0**-60), Price(2**40, 1)),
        (ZCDP(0.5), Price(2**39, 0)),
        (ApproxDP(1.0, 2.0**-20), Price(2**40, 2**40)),
        (ApproxDP(nextafter(1.0, 0.0), 2.0**-20), Price(2**40 - 1, 2**40)),
    ],
)
def test_limits_to_the_unit(budget: Guarantee, limit: Price) -> None:
    assert currency_of(budget).limit(budget) == limit
