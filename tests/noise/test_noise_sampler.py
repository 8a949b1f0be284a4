"""From standard draws to integers: the product by limbs against rationals, each draw against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses
from tests.noise.exact import LAWS, parameter, take

from confide.errors import PrivacyError
from confide.noise import SimulatedNoise, integers
from confide.noise.integers import LazyUniform, Scales
from confide.noise.standard import EXP_WIDE_ERROR, Draws, SimulatedWords, StandardLaw, exp_bounds, standard_law

Script = Callable[[list[int]], object]
SCALES = [Fraction(1, 10**9), Fraction(1, 2), Fraction(3), Fraction(1000), Fraction(10) ** 9, Fraction(3, 2) ** 90]
SCALES += [Fraction(2**57) - Fraction(1, 3), Fraction(2**36), Fraction(2**36) - Fraction(1, 2**60)]


class NoWords:
    def take(self, count: int) -> np.ndarray:
        raise AssertionError("more words were asked for")


@settings(max_examples=400, deadline=None)
@given(
    scale=st.sampled_from(SCALES) | st.fractions(Fraction(1, 1000), 2**57 - 1),
    squared=st.booleans(),
    cell=st.integers(0, 511),
    place=st.integers(0, 2**64 - 1) | st.sampled_from([0, 2**64 - 1, 2**32 - 1, 2**32, 2**63]),
)
def test_the_product_by_limbs_is_short_by_less_than_the_gap(
    scale: Fraction, squared: bool, cell: int, place: int
) -> None:
    scales = Scales([scale**2 if squared else scale], None, squared=squared)
    draws = Draws(np.array([cell], np.uint64), np.array([place], np.uint64), np.array([False]), {})
    steps, fraction = integers.product(draws, scales.fixed, 0)
    found = Fraction((int(steps[0]) << 32) + int(fraction[0]), 2**32)
    gap = Fraction(int(integers.gap(scales.fixed, 64)[0]), 2**32)
    lowest = scale * (cell + Fraction(place, 2**64)) / 16
    highest = scale * (cell + Fraction(place + 1, 2**64)) / 16
    assert found <= lowest
    assert highest < found + gap
    assert gap < Fraction(1, 2**22) or scale > 2**35


@pytest.mark.parametrize("law", ["grid_gaussian", "grid_laplace", "discrete_laplace"])
@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_every_magnitude_is_that_of_exact_arithmetic(law: str, scale: Fraction) -> None:
    standard = standard_law("half normal" if law == "grid_gaussian" else "exponential")
    drawn = standard.draw(SimulatedWords(21), 2_000)
    scales = Scales.read(parameter(law, scale), 2_000, squared=law == "grid_gaussian")
    half = 0 if law == "discrete_laplace" else integers.HALF
    found = integers._magnitudes(SimulatedWords(22), drawn, scales, np.arange(2_000), 64, half)
    checked = 0
    for index, magnitude in enumerate(found.tolist()):
        exact = scale * Fraction(drawn.digits(index, 64)[0], 2**68)
        nearest = math.floor(exact + (Fraction(1, 2) if half else 0))
        end = scale * Fraction(drawn.digits(index, 64)[0] + 1, 2**68)
        if nearest == math.floor(end + (Fraction(1, 2) if half else 0)):
            assert magnitude == nearest
            checked += 1
        else:  # the digits to come decide
            assert magnitude in (nearest, nearest + 1)
    assert checked > 1_990


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("scale", [Fraction(16), Fraction(15, 7), Fraction(2) ** 40, Fraction(7, 5) ** 50], ids=float)
def test_a_draw_on_a_boundary_is_settled_by_the_next_digits(
    squared: bool, rounded: bool, scale: Fraction, scripted: Script
) -> None:
    """The digits of a boundary itself, and the words that put the draw just under and just over it."""
    given_scale = scale**2 if squared else scale
    boundary = 5 + (Fraction(1, 2) if rounded else 0)
    long = math.floor(boundary * 16 / scale * 2**192)  # 16 z at the boundary
    for step in (-1, 1):
        digits = long + 2 * step
        script = scripted([(digits >> 64) % 2**64, digits % 2**64])
        value = integers.settle(script, digits >> 128, 64, given_scale, squared, rounded)  # type: ignore[arg-type]
        below = 5 if rounded else 4
        assert value == (below if step < 0 else below + 1)
        # A dyadic boundary is told from below it by one word, and from above it by none.
        assert len(script.asked) == 2 or scale in (16, 2**40)  # type: ignore[attr-defined]


@settings(max_examples=300, deadline=None)
@given(
    scale=st.fractions(Fraction(1, 1000), 2**57 - 1),
    digits=st.integers(0, 2**80),
    squared=st.booleans(),
    rounded=st.booleans(),
)
def test_settling_agrees_with_rational_arithmetic(scale: Fraction, digits: int, squared: bool, rounded: bool) -> None:
    value = integers.settle(SimulatedWords(3), digits, 72, scale**2 if squared else scale, squared, rounded)
    half = Fraction(1, 2) if rounded else 0
    assert math.floor(scale * digits / 2**76 + half) <= value <= math.floor(scale * (digits + 1) / 2**76 + half)


def test_settled_digits_go_into_the_rounding() -> None:
    """A try that was settled by more digits of r is rounded by all of them, not by the first 64 and new ones."""
    drawn = Draws(np.array([3], np.uint64), np.array([0], np.uint64), np.array([False]), {0: (3, 2**99, 100)})
    scales = Scales.read(16, 1, squared=False)
    assert drawn.digits(0, 64) == ((3 << 100) + 2**99, 100)
    assert integers._magnitudes(NoWords(), drawn, scales, np.arange(1), 64, integers.HALF).tolist() == [4]
    assert integers._magnitudes(NoWords(), drawn, scales, np.arange(1), 64, 0).tolist() == [3]


def test_a_draw_beyond_64_bits_is_refused_and_never_wrapped() -> None:
    far = Draws(np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.array([False]), {0: (16 * 65, 0, 64)})
    scales = Scales.read(2**57 - 1, 1, squared=False)
    with refuses(PrivacyError):
        integers._magnitudes(NoWords(), far, scales, np.arange(1), 64, 0)
    near = Draws(np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.array([False]), {0: (16 * 63, 0, 64)})
    assert integers._magnitudes(NoWords(), near, scales, np.arange(1), 64, 0).tolist() == [63 * (2**57 - 1)]


@pytest.mark.parametrize(
    "sigma2", [Fraction(1, 10**400), Fraction(1, 9), Fraction(1), Fraction(10), Fraction(10**6, 7), Fraction(10) ** 30]
)
def test_the_gaussian_test_decides_as_exact_arithmetic_does(sigma2: Fraction) -> None:
    scales = Scales.read(sigma2, 3_000, squared=True)
    proposal = scales.map(lambda s2: Fraction(math.isqrt(math.floor(s2)) + 1), squared=False)
    magnitudes = np.abs(SimulatedNoise(4).grid_laplace(proposal.values[0], 3_000))
    accept = integers._GaussianAccept(scales, proposal, 31)(SimulatedWords(6), magnitudes, np.arange(3_000))
    uniforms = (SimulatedWords(6).take(3_000) >> np.uint64(33)).tolist()
    for magnitude, uniform, decided in zip(magnitudes.tolist(), uniforms, accept.tolist(), strict=True):
        exponent = integers.gaussian_exponent(magnitude, sigma2, proposal.values[0])
        assert integers.settle_accept(LazyUniform(SimulatedWords(1), uniform, 31), exponent) == decided


def test_the_error_of_the_float_in_the_gaussian_test_is_below_its_bound() -> None:
    """|e - e^-x| < 9.4 * 2^-53, over sigma and |Y|, x by the same operations."""
    from confide.noise.standard import exp_wide

    rng = np.random.default_rng(8)
    worst = Fraction(0)
    for _ in range(1_500):
        sigma2 = Fraction(float(10 ** rng.uniform(-2, 30)))
        proposal = Fraction(math.isqrt(math.floor(sigma2)) + 1)
        y = int(rng.exponential() * proposal)
        exact = integers.gaussian_exponent(y, sigma2, proposal)
        if exact > 30:
            continue
        x = np.array([y], dtype=np.int64) - float(sigma2 / proposal)
        x *= x
        x *= float(1 / (2 * sigma2))
        low, high = exp_bounds(exact, 160)
        e = Fraction(float(exp_wide(x)[0]))
        worst = max(worst, abs(e - Fraction(low, 2**160)), abs(e - Fraction(high, 2**160)))
    assert EXP_WIDE_ERROR / 20 < worst < Fraction(94, 10) / 2**53 < Fraction(1, 2**49)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [0, 1, 2, 100, 15_360, 50_000])
def test_draws_have_the_size_asked_and_blocks_are_bounded(law: str, size: int) -> None:
    asked: list[int] = []

    class Counted(SimulatedWords):
        def take(self, count: int) -> np.ndarray:
            asked.append(count)
            return super().take(count)

    scales = Scales.read(9, size, squared=law.endswith("gaussian"))
    draws = getattr(integers, law)(Counted(3), scales, size)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64
    assert all(count <= 2 * 16_384 for count in asked)


@pytest.mark.parametrize("law", ["grid_gaussian", "grid_laplace"])
def test_how_many_words_are_taken_does_not_depend_on_the_scale(law: str) -> None:
    """The standard draw is the same for every scale: only the place of the binary point differs."""
    draws = [take(SimulatedNoise(4), law, Fraction(2) ** j, 40_000) for j in (4, 30, 50)]
    assert (np.abs(draws[1] - (draws[2] >> 20)) <= 1).all()
    assert (np.abs(draws[0] - (draws[1] >> 26)) <= 1).all()


@pytest.mark.parametrize("law", ["grid_gaussian", "grid_laplace"])
def test_an_array_of_scales_takes_the_words_that_one_scale_takes(law: str) -> None:
    scales = [Fraction(1, 3), Fraction(10) ** 12, Fraction(5)] * 10_000
    each = getattr(SimulatedNoise(4), law)([parameter(law, s) for s in scales], 30_000)
    for scale, column in zip(scales, range(3), strict=False):
        alone = take(SimulatedNoise(4), law, scale, 30_000)
        assert each[column::3].tolist() == alone[column::3].tolist()


def test_a_law_for_tests_with_few_bits_is_the_law_of_the_library_with_all() -> None:
    full = StandardLaw("exponential", cell_bits=32, accept_bits=31, place_bits=64)
    ours = integers.grid_laplace(SimulatedWords(2), Scales.read(50, 1_000, squared=False), 1_000)
    same = integers.grid_laplace(SimulatedWords(2), Scales.read(50, 1_000, squared=False), 1_000, full)
    assert ours.tolist() == same.tolist()
