"""e^-x: integer bounds against mpmath, the float's error against its proved bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from confide.noise.standard import (
    _COEFFICIENTS,
    _EXP_TABLE,
    _EXP_WHOLES,
    EXP_SMALL_ERROR,
    EXP_WIDE_ERROR,
    exp_bounds,
    exp_small,
    exp_wide,
)

UNIT = Fraction(1, 2**53)


def exact_exp(x: Fraction, bits: int) -> mpmath.mpf:
    with mpmath.workprec(bits):
        return mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)


def as_fraction(x: mpmath.mpf) -> Fraction:
    mantissa, exponent = x.man_exp
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@settings(max_examples=200, deadline=None)
@given(
    x=st.fractions(0, 2) | st.fractions(0, 10**6) | st.integers(0, 200).map(lambda j: Fraction(1, 2**j)),
    bits=st.sampled_from([8, 64, 126, 192, 320]),
)
def test_integer_bounds_hold_e_to_the_minus_x_and_are_close(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    with mpmath.workprec(bits + 200):
        scaled = exact_exp(x, bits + 200) * 2**bits
        assert low <= scaled <= high
    assert 0 <= low <= high <= 1 << bits
    assert high - low <= 2


def test_table_holds_the_nearest_doubles() -> None:
    assert (len(_EXP_TABLE), len(_EXP_WHOLES)) == (64, 32)
    entries = [(Fraction(q, 64), entry) for q, entry in enumerate(_EXP_TABLE)]
    for x, entry in [*entries, *((Fraction(q), entry) for q, entry in enumerate(_EXP_WHOLES))]:
        exact = as_fraction(exact_exp(x, 300))
        distance = abs(Fraction(float(entry)) - exact)
        assert distance <= abs(Fraction(float(np.nextafter(entry, 2.0))) - exact)
        assert distance <= abs(Fraction(float(np.nextafter(entry, 0.0))) - exact)


def test_coefficients_are_those_of_the_series() -> None:
    assert tuple((-1) ** j / math.factorial(j) for j in range(7)) == _COEFFICIENTS


def test_the_error_budget_of_exp_small_adds_up_in_rational_arithmetic() -> None:
    """Any rounding within a relative 2^-53 per operation, constants included: more than round-to-nearest ever does."""
    r = Fraction(1, 64)
    terms = [Fraction(1, factorial) for factorial in (1, 1, 2, 6, 24, 120, 720)]
    error = UNIT * terms[6]
    for j in range(5, -1, -1):
        # An alternating sum is at most its first term: terms[j + 1] bounds the partial value that r multiplies.
        product = r * error + UNIT * r * (terms[j + 1] + error)
        constant = UNIT * terms[j] if j > 2 else 0  # 1, 1 and 1/2 are doubles
        error = product + constant
        error += UNIT * (terms[j] + error)
    smallest = 1 - r
    horner, series = error / smallest, r**7 / 5040 / smallest
    assert horner < Fraction(105, 100) * UNIT
    assert series < Fraction(42, 100) * UNIT
    # Table entry and last product: (1 + series + horner)(1 + u)(1 + u) - 1.
    assert (1 + series + horner) * (1 + UNIT) ** 2 - 1 < EXP_SMALL_ERROR
    assert (1 + EXP_SMALL_ERROR) * (1 + UNIT) ** 2 - 1 < EXP_WIDE_ERROR


@pytest.mark.parametrize("top", [2.0**-40, 2.0**-6, 0.58, 1.0])
def test_exp_small_keeps_its_error_bound(top: float) -> None:
    worst = worst_error(exp_small, top, 1)
    assert UNIT / 4 < worst < EXP_SMALL_ERROR  # the comparison is not with itself


@pytest.mark.parametrize("top", [1.0, 31.0])
def test_exp_wide_keeps_its_error_bound(top: float) -> None:
    assert UNIT / 4 < worst_error(exp_wide, top, 31) < EXP_WIDE_ERROR


def worst_error(function: Callable[[np.ndarray], np.ndarray], top: float, end: int) -> Fraction:
    x = np.random.default_rng(11).uniform(0, top, 4_000)
    edges = np.arange(64 * end) / 64
    x = np.concatenate([x, edges, np.nextafter(edges[1:], 0), np.nextafter(edges, 40)])
    x = x[x < end]
    return max(
        abs(Fraction(e) / as_fraction(exact_exp(Fraction(v), 150)) - 1)
        for v, e in zip(x.tolist(), function(x).tolist(), strict=True)
    )


@pytest.mark.parametrize("function", [exp_small, exp_wide])
def test_arguments_are_left_alone_and_the_value_at_zero_is_one(function: Callable[[np.ndarray], np.ndarray]) -> None:
    x = np.array([0.0, 0.25])
    assert function(x)[0] == 1.0
    assert x.tolist() == [0.0, 0.25]
