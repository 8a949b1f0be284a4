"""Interval arithmetic: contains every value, as exact numbers and as computed in float64; and is no wider than needed."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from confide.schema import Numeric, Schema
from confide.schema.formulas.expression import parse_expression
from confide.schema.formulas.interval_arithmetic import EMPTY, Interval, repeated_product

INF = math.inf
ENDS = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1e-300, 1e300, -1e300])


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted(draw(st.tuples(ENDS, ENDS)))
    return Interval(low + 0.0, high + 0.0)


def within(draw: st.DataObject, interval: Interval) -> float:
    return draw.draw(st.floats(interval.low, interval.high) | st.sampled_from([interval.low, interval.high]))


@settings(deadline=None, max_examples=300)
@given(intervals(), intervals(), st.data())
def test_exact_results_and_their_roundings_are_inside(a: Interval, b: Interval, data: st.DataObject) -> None:
    x, y = within(data, a), within(data, b)
    fx, fy = Fraction(x), Fraction(y)
    cases = [
        (a + b, fx + fy, x + y),
        (a - b, fx - fy, x - y),
        (a * b, fx * fy, x * y),
        (-a, -fx, -x),
        (abs(a), abs(fx), abs(x)),
    ]
    if y != 0:
        with np.errstate(all="ignore"):
            cases.append((a / b, fx / fy, float(np.float64(x) / np.float64(y))))
    for found, exact, computed in cases:
        assert found.low <= exact <= found.high
        assert computed in found


@settings(deadline=None, max_examples=300)
@given(intervals(), intervals())
def test_sums_and_products_are_as_narrow_as_doubles_allow(a: Interval, b: Interval) -> None:
    for found, ends in (
        (a + b, [Fraction(a.low) + Fraction(b.low), Fraction(a.high) + Fraction(b.high)]),
        (a * b, [Fraction(x) * Fraction(y) for x in (a.low, a.high) for y in (b.low, b.high)]),
    ):
        assume(found.finite)
        assert Fraction(math.nextafter(found.low, INF)) > min(ends) >= Fraction(found.low)
        assert Fraction(math.nextafter(found.high, -INF)) < max(ends) <= Fraction(found.high)


@settings(deadline=None, max_examples=200)
@given(intervals(), st.data(), st.sampled_from(["log", "log1p", "sqrt", "exp"]))
def test_functions(a: Interval, data: st.DataObject, name: str) -> None:
    found = getattr(a, name)()
    least = {"log": 0.0, "log1p": -1.0, "sqrt": 0.0, "exp": -INF}[name]
    if a.high < least:
        assert found.empty
        return
    x = within(data, Interval(max(a.low, least), a.high))
    with np.errstate(all="ignore"):
        assert float(getattr(np, name)(np.full(16, x))[3]) in found
    with mpmath.workprec(2200):
        if (x == 0 and name == "log") or (x == -1 and name == "log1p"):
            assert found.low == -INF
        elif x < 700:
            exact = {"log": mpmath.log, "log1p": lambda v: mpmath.log(1 + v), "sqrt": mpmath.sqrt, "exp": mpmath.exp}[
                name
            ](mpmath.mpf(x))
            assert mpmath.mpf(found.low) <= exact
            assert found.high == INF or exact <= mpmath.mpf(found.high)


@settings(deadline=None, max_examples=200)
@given(intervals(), st.data(), st.integers(-9, 12) | st.sampled_from([64, -64, 0.5, 1.5, -0.5, 0.37, 0.0]))
def test_powers(a: Interval, data: st.DataObject, exponent: float) -> None:
    found = a.power(exponent)
    x = within(data, a)
    schema = Schema({"x": Numeric(0, 1)})
    computed = float(parse_expression(f"x ** {exponent}", schema, "").evaluate({"x": np.full(16, x)})[3])
    if math.isnan(computed) or (math.isinf(computed) and x == 0):
        return
    assert computed in found
    if exponent == int(exponent) and not (x == 0 and exponent <= 0):
        assert found.low <= Fraction(x) ** int(exponent) <= found.high


def test_known_intervals() -> None:
    assert Interval(0, 5).power(2) == Interval(0.0, 25.0)
    assert Interval(-3, 2).power(2) == Interval(0.0, 9.0)
    assert Interval(-3, 2).power(3) == Interval(-27.0, 8.0)
    assert Interval(0, 50_000) / Interval(1000, 1000) == Interval(0.0, 50.0)
    assert Interval(-1, 4).sqrt() == Interval(0.0, 2.0)
    assert Interval(0, 0).exp() == Interval(1.0, 1.0)
    assert Interval(-2, 5).__abs__() == Interval(0.0, 5.0)
    assert Interval(0, 1).log() == Interval(-INF, 0.0)
    assert Interval(0, 1) * Interval(2, 3) == Interval(0.0, 3.0)
    assert Interval(1, 2) / Interval(0, 4) == Interval(0.25, INF)
    assert Interval(1, 2) / Interval(-4, 0) == Interval(-INF, -0.25)
    assert Interval(1, 2) / Interval(-4, 4) == Interval(-INF, INF)
    assert Interval(0, 0) / Interval(-4, 4) == Interval(0.0, 0.0)
    assert Interval(-2, -1).power(0.5).empty
    assert Interval(0, 2000).exp().high == INF


def test_infinite_ends_and_nothing_at_all() -> None:
    whole = Interval(-INF, INF)
    assert whole + Interval(1, 2) == whole
    assert whole * Interval(0, 0) == Interval(0.0, 0.0)
    assert Interval(1, INF) * Interval(-1, 2) == Interval(-INF, INF)
    assert Interval(1, 1) / Interval(1, INF) == Interval(0.0, 1.0)
    assert Interval(-1e308, 1e308) + Interval(-1e308, 1e308) == whole
    assert not (Interval(0, 1e200) * Interval(0, 1e200)).finite
    for found in (
        EMPTY + whole,
        whole - EMPTY,
        EMPTY * whole,
        EMPTY / whole,
        whole / EMPTY,
        abs(EMPTY),
        EMPTY.log(),
        EMPTY.power(2),
        EMPTY.power(0),
        whole / Interval(0, 0),
    ):
        assert found.empty


@pytest.mark.parametrize("exponent", range(1, 65))
def test_repeated_products_have_the_same_bits_for_numbers_and_arrays(exponent: int) -> None:
    values = np.random.default_rng(exponent).uniform(-2, 2, 33)
    assert repeated_product(values, exponent).tolist() == [repeated_product(float(v), exponent) for v in values]
    assert repeated_product(3.0, exponent % 30 + 1) == float(3 ** (exponent % 30 + 1))


FORMULAS = [
    "a * b - a", "I(a * (1 - a))", "log(a + 4)", "exp(-a / 2)", "sqrt(abs(b))", "a ** 3 - 2 * b ** 2", "1 / (a + 4)",
    "log1p(exp(b)) - b", "abs(a - b) ** 1.5", "(a + 0.1) * (b - 0.3) / 7", "a ** -2 * 0 + b", "exp(exp(a))",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_bounds_of_expressions_contain_what_is_computed(text: str) -> None:
    schema = Schema({"a": Numeric(-3, 2), "b": Numeric(0.1, 5)})
    expression = parse_expression(text, schema, text)
    found = expression.interval({"a": Interval(-3.0, 2.0), "b": Interval(0.1, 5.0)})
    corners = np.array([-3.0, 2.0, 0.0, -0.0, -1.0, 1.0])
    generator = np.random.default_rng(5)
    a = np.concatenate([np.repeat(corners, 3), generator.uniform(-3, 2, 4000)])
    b = np.concatenate([np.tile([0.1, 5.0, 1.0], 6), generator.uniform(0.1, 5, 4000)])
    values = expression.evaluate({"a": a, "b": b})
    finite = values[np.isfinite(values)]
    assert ((finite >= found.low) & (finite <= found.high)).all()
