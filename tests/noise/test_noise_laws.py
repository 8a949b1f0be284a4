"""The tables of a law against mpmath, its parameters, its variance."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import PrivacyError
from confide.noise import SimulatedNoise, variance
from confide.noise.laws import UNDECIDED, CellTable, GaussianLaw, exact_variance, gaussian_law

SIGMA2 = [
    Fraction(1, 4),
    Fraction(1),
    Fraction(100),
    Fraction(1000) ** 2,
    Fraction(10) ** 30,
    Fraction(2) ** 113,
    Fraction(1, 10**9),
    Fraction(0.1),
    Fraction(355, 113),
    Fraction(4**57 * 3**200 - 1, 3**200),
]


def mp_cumulative(law: GaussianLaw, cells: int) -> list[mpmath.mpf]:
    """F(0), F(1), ... from mpmath alone: the normaliser by its theta function, not by our sum."""
    rate = mpmath.mpf(law.rate.numerator) / law.rate.denominator
    total = (1 + mpmath.jtheta(3, 0, mpmath.exp(-rate))) / 2
    sums, running = [], mpmath.mpf(0)
    for c in range(cells):
        running += mpmath.exp(-rate * c * c)
        sums.append(running / total)
    return sums


@pytest.mark.parametrize("sigma2", SIGMA2, ids=float)
@pytest.mark.parametrize("bits", [64, 16])
def test_thresholds_are_the_floors_of_the_cumulative_probabilities(sigma2: Fraction, bits: int) -> None:
    law = GaussianLaw(sigma2, cell_bits=bits)
    with mpmath.workprec(400):
        sums = mp_cumulative(law, len(law.thresholds))
        assert [int(mpmath.floor(s * 2**bits)) for s in sums] == law.thresholds.tolist()
    assert law.thresholds[-1] == 2**bits - 1
    assert len(law.thresholds) < 2 or law.thresholds[-2] < 2**bits - 1


@pytest.mark.parametrize("bits", [96, 144, 192, 256])
def test_cell_table_bounds_hold_and_are_close(bits: int) -> None:
    table = CellTable(GaussianLaw(Fraction(7)).rate, bits)
    with mpmath.workprec(600):
        for low, high, exact in zip(
            table.low, table.high, mp_cumulative(GaussianLaw(Fraction(7)), len(table.low)), strict=True
        ):
            assert low <= exact * 2**bits <= high
            assert high - low < 2**24


@pytest.mark.parametrize("c", [0, 5, 90])
def test_a_cell_is_named_only_when_its_bounds_are_clear_of_the_digits(c: int) -> None:
    """Digits as long as the bounds themselves: between the two bounds of F(c) nothing is certain."""
    table = CellTable(GaussianLaw(Fraction(7)).rate, 192)
    low, high = table.low[c], table.high[c]
    assert high - low >= 2
    expected = {low - 1: c, low: None, low + 1: None, high - 1: None, high: c + 1}
    assert {digits: table.cell(digits, 192) for digits in expected} == expected
    assert table.cell(2**192 - 1, 192) is None


@pytest.mark.parametrize("sigma2", SIGMA2, ids=float)
def test_guide_agrees_with_counting_thresholds(sigma2: Fraction) -> None:
    law = GaussianLaw(sigma2)
    for slot, cell in enumerate(law.guide.tolist()):
        first, last = slot << 52, ((slot + 1) << 52) - 1
        counts = {sum(t <= w for t in law.thresholds.tolist()) for w in (first, last)}
        inside = any(t >> 52 == slot for t in law.thresholds.tolist())
        assert (cell == UNDECIDED) == inside
        assert inside or counts == {cell}


def test_cells_are_between_a_16th_and_a_32nd_of_the_scale_and_the_error_budget_holds_in_the_table() -> None:
    """2 A (c + 1) < .58 and x < .58 are what the error analysis of sampler.py rests on; all mantissas of sigma."""
    worst_cut = worst_x = Fraction(0)
    most_cells = 0
    for step in range(301):
        ratio = Fraction(16) + Fraction(16 * step, 301)
        law = GaussianLaw(ratio**2)
        assert law.shift == 0
        assert Fraction(1, 2048) < law.rate <= Fraction(1, 512)
        last = len(law.thresholds) - 1  # the largest cell that float64 decides
        worst_cut = max(worst_cut, 2 * law.rate * (last + 1))
        worst_x = max(worst_x, law.rate * (1 + 2 * last))
        most_cells = max(most_cells, last)
    assert Fraction(55, 100) < worst_x < worst_cut < Fraction(58, 100)
    assert 290 <= most_cells <= 293
    total = Fraction(58, 100) + Fraction(401, 100) * Fraction(58, 100) + Fraction(36, 10)
    assert total < Fraction(66, 10)
    assert Fraction(66, 10) / 2**53 < Fraction(1, 2**50)
    assert GaussianLaw(Fraction(1)).margin == 2**14 + 1
    assert GaussianLaw(Fraction(1), accept_bits=14).margin == 2


@settings(max_examples=200, deadline=None)
@given(
    j=st.integers(-60, 56),
    bump=st.sampled_from([Fraction(0), Fraction(1, 2**200), -Fraction(1, 2**200), Fraction(1, 3)]),
)
def test_width_is_exact_at_the_powers_of_two(j: int, bump: Fraction) -> None:
    sigma2 = Fraction(4) ** j * (1 + bump)
    law = GaussianLaw(sigma2)
    width2 = Fraction(4) ** law.shift
    assert 256 <= sigma2 / width2 < 1024


@settings(max_examples=300, deadline=None)
@given(k=st.integers(-70, 52), cell=st.integers(0, 400), place=st.integers(0, 2**64 - 1))
def test_magnitude_is_the_nearest_integer(k: int, cell: int, place: int) -> None:
    law = GaussianLaw(Fraction(4) ** (k + 4))
    assert law.shift == k
    position = (cell + (place + Fraction(1, 2)) / 2**64) * Fraction(2) ** k
    assert law.magnitude(cell, place) == math.floor(position + Fraction(1, 2))


@pytest.mark.parametrize(
    "bad",
    [
        *(0, 0.0, -1, -0.5, Fraction(-1, 3), -(10**6000)),
        *(math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf")),
        *(True, False, np.True_, None, "1", Decimal(1), 1j, np.array([1.0])),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_a_bad_sigma2_is_refused_with_the_call_that_works(bad: object) -> None:
    for call in (exact_variance, variance, lambda s: SimulatedNoise(1).grid_gaussian(s, 3)):
        with pytest.raises(PrivacyError, match=r"positive finite number.*grid_gaussian\("):
            call(bad)


@pytest.mark.parametrize(
    "bad", [4**57, Fraction(4**57), float(4**57), 1e300, Fraction(10**6000)], ids=lambda b: type(b).__name__
)
def test_a_scale_of_2_to_the_57_is_refused_and_less_is_not(bad: object) -> None:
    for call in (exact_variance, variance, lambda s: SimulatedNoise(1).grid_gaussian(s, 3)):
        with pytest.raises(PrivacyError, match="use fewer grid steps"):
            call(bad)
    draws = SimulatedNoise(1).grid_gaussian(4**57 - 1, 1_000)
    assert 2**56 < np.std(draws.astype(float)) < 2**58


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
def test_sigma2_is_taken_at_its_exact_value(given_value: object, exact: Fraction) -> None:
    taken = exact_variance(given_value)
    assert taken == exact
    assert type(taken.numerator) is int


def test_a_law_is_made_once_per_sigma2_and_cannot_be_written_to() -> None:
    assert gaussian_law(Fraction(5, 2)) is gaussian_law(Fraction(5, 2))
    with pytest.raises(ValueError, match="read-only"):
        gaussian_law(Fraction(5, 2)).thresholds[0] = 0


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.3, 0.45, 0.4999, 0.5, 0.6, 1.0, 1.7, 3.0, 10.0])
def test_variance_is_that_of_the_rounded_gaussian(sigma: float) -> None:
    with mpmath.workprec(200):
        root = mpmath.sqrt(mpmath.mpf(sigma) ** 2 * 2)
        reach = int(40 * sigma) + 40
        exact = sum((2 * k - 1) * mpmath.erfc((k - mpmath.mpf(1) / 2) / root) for k in range(1, reach))
        # erfc is ill-conditioned far out: a relative 1e-16 in its argument z costs 2 z^2 of them.
        tolerance = 1e-14 * max(1.0, 1 / sigma**2)
        assert abs(variance(Fraction(sigma) ** 2) / exact - 1) < tolerance


def test_variance_at_the_ends() -> None:
    assert variance(Fraction(1, 10**400)) == 0.0
    assert variance(10**30) == 1e30
    assert abs(variance(1) - (1 + 1 / 12)) < 2e-8
    assert variance(1) != 1 + 1 / 12
