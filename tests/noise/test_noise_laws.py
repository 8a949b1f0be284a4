"""Scales: which numbers are taken, at which exact value, one or one each, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses
from tests.noise.exact import LAWS, ks_p_value

from confide.errors import PrivacyError
from confide.noise import (
    SimulatedNoise,
    discrete_gaussian_variance,
    discrete_laplace_variance,
    laplace_variance,
    variance,
)
from confide.noise.integers import Scales, exact_scale, exact_variance, whole

laws = pytest.mark.parametrize("law", LAWS)
VARIANCE_CALLS: tuple[Callable[[object], object], ...] = (exact_variance, variance, discrete_gaussian_variance)
SCALE_CALLS: tuple[Callable[[object], object], ...] = (exact_scale, laplace_variance, discrete_laplace_variance)


def calls(law: str) -> list[Callable[[object], object]]:
    """Everything that takes the parameter of a law."""
    ways = VARIANCE_CALLS if law.endswith("gaussian") else SCALE_CALLS
    return [
        *ways,
        lambda s: getattr(SimulatedNoise(1), law)(s, 3),
        lambda s: getattr(SimulatedNoise(1), law)([1, s, 2], 3),
    ]


BAD = [
    *(0, 0.0, -0.0, -1, -0.5, Fraction(-1, 3), -(10**6000), -5e-324),
    *(math.nan, -math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf")),
    *(np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\x7f")[0],),  # a NaN with a payload
    *(True, False, np.True_, None, "1", Decimal(1), 1j),
]


@laws
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_a_bad_scale_is_refused_with_the_call_that_works(law: str, bad: object) -> None:
    for call in calls(law):
        with refuses(PrivacyError):
            call(bad)


@laws
@pytest.mark.parametrize("kind", [int, Fraction, float])
def test_a_scale_of_2_to_the_57_is_refused_and_less_is_not(law: str, kind: Callable[[int], object]) -> None:
    power = 114 if law.endswith("gaussian") else 57
    for call in calls(law):
        for bad in (kind(2**power), kind(2 ** (power + 900))):
            with refuses(PrivacyError):
                call(bad)
    draws = getattr(SimulatedNoise(1), law)(2**power - 1, 100_000).astype(float)
    assert ks_p_value(law, draws, float(2**57)) > 1e-8
    assert np.abs(draws).max() < 2**62


@laws
@pytest.mark.parametrize("tiny", [5e-324, 2.2e-308, Fraction(1, 10**400), 1e-18])
def test_a_tiny_scale_gives_zeros(law: str, tiny: object) -> None:
    assert not getattr(SimulatedNoise(1), law)(tiny, 1_000).any()
    assert not getattr(SimulatedNoise(1), law)([tiny] * 1_000, 1_000).any()


@pytest.mark.parametrize(
    ("given_value", "exact"),
    [
        (3, Fraction(3)),
        (np.int64(3), Fraction(3)),
        (0.1, Fraction(3602879701896397, 2**55)),
        (np.float64(0.1), Fraction(3602879701896397, 2**55)),
        (np.float32(0.1), Fraction(13421773, 2**27)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Fraction(np.int64(2**62), np.int64(3)), Fraction(2**62, 3)),
        (5e-324, Fraction(1, 2**1074)),
    ],
)
def test_a_scale_is_taken_at_its_exact_value(given_value: object, exact: Fraction) -> None:
    if exact < 2**57:
        assert exact_scale(given_value) == exact
    taken = exact_variance(given_value)
    assert taken == exact
    assert type(taken.numerator) is int


@laws
def test_a_float_means_its_exact_value(law: str) -> None:
    """1e15 steps apart, .1 and its exact value would differ in the last digits of a draw."""
    big = 0.1 * 2**50
    draws = [getattr(SimulatedNoise(5), law)(s, 2_000).tolist() for s in (big, Fraction(big), np.float64(big))]
    assert draws[0] == draws[1] == draws[2]
    assert draws[0] != getattr(SimulatedNoise(5), law)(Fraction(2**50, 10), 2_000).tolist() or law.endswith("gaussian")


ARRAYS = [
    [4, 9.0, Fraction(1, 4)],
    (4, 9.0, Fraction(1, 4)),
    np.array([4, 9.0, 0.25]),
    np.array([4, 9.0, 0.25], dtype=np.float32),
    np.array([4, Fraction(9), 0.25], dtype=object),
]


@laws
@pytest.mark.parametrize("scales", ARRAYS, ids=lambda s: f"{type(s).__name__}-{getattr(s, 'dtype', '')}")
def test_lists_tuples_and_arrays_of_equal_numbers_are_one_law(law: str, scales: object) -> None:
    assert getattr(SimulatedNoise(6), law)(scales, 3).tolist() == getattr(SimulatedNoise(6), law)(ARRAYS[0], 3).tolist()
    assert getattr(SimulatedNoise(6), law)([], 0).shape == (0,)


@laws
@pytest.mark.parametrize(
    "scales",
    [
        [1, 2],
        [],
        np.ones((3, 1)),
        np.array(1.0),
    ],
)
def test_as_many_scales_as_draws(law: str, scales: object) -> None:
    with refuses(PrivacyError):
        getattr(SimulatedNoise(1), law)(scales, 3)


def test_equal_scales_are_precomputed_once() -> None:
    one, other = Fraction(7, 3), Fraction(5)
    assert len(Scales.read([one, other] * 500, 1_000, squared=True).values) == 2
    assert len(Scales.read(np.repeat([1.0, 2.0, 0.5], 100), 300, squared=False).values) == 3
    assert Scales.read([one, other, one], 3, squared=True).of(2) == one


@settings(max_examples=300, deadline=None)
@given(value=st.fractions(Fraction(1, 10**12), 2**57 - 1), squared=st.booleans())
def test_the_fixed_point_is_the_floor_of_the_scale(value: Fraction, squared: bool) -> None:
    scales = Scales([value**2 if squared else value], None, squared=squared)
    k2, k1, k0 = (int(limb[0]) for limb in scales.fixed)
    assert (k2 << 64) + (k1 << 32) + k0 == math.floor(value * 2**28)
    assert k2 <= 2**21
    assert max(k1, k0) < 2**32


@pytest.mark.parametrize("bad", [-1, 1.0, True, None, "3", (2, 3), np.float64(2)])
def test_a_bad_whole_number_is_refused(bad: object) -> None:
    with refuses(PrivacyError):
        whole(bad, "size", "f(3)")
    with refuses(PrivacyError):
        whole(0, "m", "f(3)", least=1)
    assert whole(np.int32(3), "size", "f(3)") == 3
