"""The sampler, try by try: float64 against exact arithmetic, settlement against mpmath on words written for it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from confide.noise import sampler
from confide.noise.exponential import exp_bounds
from confide.noise.laws import GaussianLaw, gaussian_law
from confide.noise.words import SimulatedWords

Script = Callable[[list[int]], object]
TOP = 2**64
SCALES = [Fraction(1, 2), Fraction(3), Fraction(17), Fraction(1000), Fraction(10) ** 9, Fraction(3, 2) ** 90]


def law_parts(law: GaussianLaw, cells: int) -> tuple[mpmath.mpf, list[mpmath.mpf]]:
    rate = mpmath.mpf(law.rate.numerator) / law.rate.denominator
    total = (1 + mpmath.jtheta(3, 0, mpmath.exp(-rate))) / 2
    sums = [mpmath.exp(-rate) * 0]
    for c in range(cells):
        sums.append(sums[-1] + mpmath.exp(-rate * c * c) / total)
    return rate, sums[1:]


def digits(value: mpmath.mpf, bits: int) -> int:
    return int(mpmath.floor(value * mpmath.mpf(2) ** bits))


def acceptance(law: GaussianLaw, cell: int, place: int, place_bits: int) -> mpmath.mpf:
    rate = mpmath.mpf(law.rate.numerator) / law.rate.denominator
    r = mpmath.mpf(place) / mpmath.mpf(2) ** place_bits
    return mpmath.exp(-rate * r * (r + 2 * cell))


@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_float64_decides_every_try_as_exact_arithmetic_does(scale: Fraction) -> None:
    law = GaussianLaw(scale**2)
    tries = 3_000
    block = SimulatedWords(5).take(3 * tries)
    whole = sampler._block(law, _Once(block), tries)
    first, place, last = block.reshape(3, tries).tolist()
    one_by_one = [sampler.settle(law, _Once(np.empty(0)), a, b, c) for a, b, c in zip(first, place, last, strict=True)]
    assert whole.tolist() == [value for value in one_by_one if value is not None]
    assert 0.965 < len(whole) / tries < 0.995


class _Once:
    """One block, and then nothing: a try that asked for more words would fail."""

    def __init__(self, block: np.ndarray) -> None:
        self.block = block

    def take(self, count: int) -> np.ndarray:
        assert count == len(self.block)
        return self.block


@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_the_error_of_the_float_acceptance_is_below_its_bound(scale: Fraction) -> None:
    """|e - e^-x| < 6.6 * 2^-53 at the real r that the 64 bits begin, at both ends, over all cells of the table."""
    law = GaussianLaw(scale**2)
    rng = np.random.default_rng(3)
    cells = np.concatenate([np.arange(len(law.thresholds)), rng.integers(0, len(law.thresholds), 1_200)]).astype(
        np.int64
    )
    place = rng.integers(0, TOP, len(cells), dtype=np.uint64)
    place[: len(law.thresholds) : 2] = TOP - 1
    place[-20:-10] = TOP - 1
    place[-10:] = 0
    floors = _floors(law, cells, place)
    worst = 0.0
    for cell, bits, floor in zip(cells.tolist(), place.tolist(), floors.tolist(), strict=True):
        for end in (bits, bits + 1):
            low, high = exp_bounds(sampler._exponent(law, cell, end, 64), 128)
            worst = max(worst, abs(floor - low / 2**66), abs(floor - high / 2**66))
    assert worst < 6.6 * 2**9 + 1
    assert worst < law.margin / 4
    assert worst > 2**7  # float64 is at work here


def _floors(law: GaussianLaw, cells: np.ndarray, place: np.ndarray) -> np.ndarray:
    """floor(2^62 e), found as the u at which acceptance ends, by bisection: only through what `_accept` answers."""
    low, high = np.zeros(len(cells), dtype=np.uint64), np.full(len(cells), 2**62, dtype=np.uint64)
    for _ in range(63):
        middle = low + (high - low) // np.uint64(2)
        accepted, _ = sampler._accept(law, cells, place, middle << np.uint64(2))
        low, high = np.where(accepted, middle, low), np.where(accepted, high, middle)
    return high.astype(np.int64)


def first_draw(law: GaussianLaw, script: Script, first: int, place: int, last: int, more: list[int]) -> tuple[int, int]:
    """The first draw when the first try has the given words and all others give 0; how many further words it took."""
    tries = sampler.tries_for(1)
    words = script(
        [first, *[0] * (tries - 1), place, *[0] * (tries - 1), last, *[0] * (tries - 1), *more],
    )
    value = int(sampler.draw(law, words, 1)[0])  # type: ignore[arg-type]
    return value, sum(words.asked[1:])  # type: ignore[attr-defined]


BIG = Fraction(2) ** 80  # sigma = 2^40: k = 36, so that a draw shows its cell
REJECTED = 0  # the next try of the script gives 0


@pytest.mark.parametrize("cell", [0, 1, 20, 100, 130])
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_a_cell_word_on_a_threshold_is_settled_by_the_next_words(cell: int, step: int, scripted: Script) -> None:
    law = GaussianLaw(BIG)
    with mpmath.workprec(500):
        _, sums = law_parts(law, cell + 1)
        all_digits = digits(sums[cell], 192)
    word, second, third = all_digits >> 128, (all_digits >> 64) % TOP, all_digits % TOP
    assert word == int(law.thresholds[cell])
    place = 5 << 50
    if step:
        value, taken = first_draw(law, scripted, word, place, 0, [second + step])
        assert taken == 1
        expected_cell = cell if step < 0 else cell + 1
    else:  # the second word does not decide either
        value, taken = first_draw(law, scripted, word, place, 0, [second, third + 1])
        assert taken == 2
        expected_cell = cell + 1
    assert value == law.magnitude(expected_cell, place)
    assert value >> law.shift == expected_cell


def test_one_below_a_threshold_is_not_settled(scripted: Script) -> None:
    law = GaussianLaw(BIG)
    for cell in (0, 3, 80):
        for step in (-1, 1):
            value, taken = first_draw(law, scripted, int(law.thresholds[cell]) + step, 0, 0, [])
            assert (value >> law.shift, taken) == (cell if step < 0 else cell + 1, 0)


def test_cells_beyond_the_table_are_drawn_with_their_probability(scripted: Script) -> None:
    law = GaussianLaw(BIG)
    last = len(law.thresholds)
    with mpmath.workprec(700):
        _, sums = law_parts(law, last + 60)
        for cell in (last + 1, last + 50):
            between = digits((sums[cell - 1] + sums[cell]) / 2, 256)
            more = [(between >> 128) % TOP, (between >> 64) % TOP, between % TOP]
            assert between >> 192 == TOP - 1
            value, taken = first_draw(law, scripted, TOP - 1, 1 << 63, 1, more)  # odd last word: minus
            assert value == -law.magnitude(cell, 1 << 63)
            assert 1 <= taken <= 3


@pytest.mark.parametrize("cell", [0, 1, 40, 120])
@pytest.mark.parametrize("place", [1, 12345 << 40, TOP - 1])
@pytest.mark.parametrize("sign", [0, 1])
def test_a_uniform_near_the_boundary_is_settled(cell: int, place: int, sign: int, scripted: Script) -> None:
    law = GaussianLaw(BIG)
    word = int(law.thresholds[cell]) - 1
    value = -law.magnitude(cell, place) if sign else law.magnitude(cell, place)
    with mpmath.workprec(400):
        # r lies in [place, place + 1) / 2^64, over which 2^62 e^-x falls by less than 1.
        top = digits(acceptance(law, cell, place, 64), 62)
        bottom = digits(acceptance(law, cell, place + 1, 64), 62)
    for uniform, drawn in ((bottom - 3, value), (bottom - law.margin + 9, value), (top + 3, REJECTED)):
        if uniform < 2**62:
            assert first_draw(law, scripted, word, place, uniform << 2 | sign, []) == (drawn, 0)


@pytest.mark.parametrize("cell", [0, 1, 40, 120])
@pytest.mark.parametrize("place", [1 << 30, 12345 << 40, TOP - 1])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_uniform_on_the_boundary_takes_two_more_words(cell: int, place: int, step: int, scripted: Script) -> None:
    """r and U get 64 more bits each; U is put just under and just over e^-x at that longer r."""
    law = GaussianLaw(BIG)
    word = int(law.thresholds[cell]) - 1
    longer = place << 64 | TOP // 3
    with mpmath.workprec(500):
        exact = digits(acceptance(law, cell, longer, 128), 126)
    uniform = exact + 4 * step
    value, taken = first_draw(law, scripted, word, place, (uniform >> 64) << 2, [longer % TOP, uniform % TOP])
    assert taken == 2
    assert value == (law.magnitude(cell, place) if step < 0 else REJECTED)


def test_undecided_twice_takes_four_words(scripted: Script) -> None:
    law = GaussianLaw(BIG)
    cell, place = 30, 77 << 50
    longest = place << 128 | (TOP // 5) << 64 | TOP // 7
    with mpmath.workprec(700):
        exact = digits(acceptance(law, cell, longest, 192), 190)
    for step in (-9, 9):
        uniform = exact + step
        more = [(longest >> 64) % TOP, (uniform >> 64) % TOP, longest % TOP, uniform % TOP]
        value, taken = first_draw(law, scripted, int(law.thresholds[cell]) - 1, place, (uniform >> 128) << 2, more)
        assert taken == 4
        assert value == (law.magnitude(cell, place) if step < 0 else REJECTED)


@pytest.mark.parametrize("bits", [(64, 62), (16, 14), (12, 4)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2) ** 40])
def test_however_few_bits_decide_the_same_digits_give_the_same_draw(
    bits: tuple[int, int], scale: Fraction, scripted: Script
) -> None:
    """A law that decides by fewer bits, given the digits of the full words as its further words, must agree with it."""
    full, short = GaussianLaw(scale**2), GaussianLaw(scale**2, cell_bits=bits[0], accept_bits=bits[1])
    a, b = bits
    for first, place, last in SimulatedWords(8).take(3 * 400).reshape(400, 3).tolist():
        expected = sampler.settle(full, scripted([]), first, place, last)  # type: ignore[arg-type]
        # The short law reads the top bits of the first word; the rest of its digits come as further words.
        rest_of_first = (first << a) % TOP
        cell_words = [rest_of_first, 0] if short.settle_cell(first >> (64 - a), a) is None else []
        rest_of_uniform = ((last >> 2) << (2 + b)) % TOP
        script = scripted([*cell_words[:1], 1 << 63, rest_of_uniform])
        got = sampler.settle(short, script, first, place, last)  # type: ignore[arg-type]
        assert got == expected


@pytest.mark.parametrize("size", [0, 1, 2, 100, 16_000, 16_384, 50_000])
def test_words_are_taken_three_per_try_and_in_blocks_that_fit_the_size(size: int) -> None:
    asked: list[int] = []

    class Counted(SimulatedWords):
        def take(self, count: int) -> np.ndarray:
            asked.append(count)
            return super().take(count)

    draws = sampler.draw(gaussian_law(Fraction(10) ** 6), Counted(3), size)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64
    assert all(count % 3 == 0 and count <= 3 * sampler.BLOCK for count in asked)
    assert sum(asked) / 3 < 1.05 * size + 60
    if asked:
        assert asked[0] == 3 * sampler.tries_for(size)


def test_how_many_words_are_taken_does_not_depend_on_the_scale() -> None:
    """At equal mantissas of sigma: the place of the binary point is all that differs."""
    draws = [sampler.draw(GaussianLaw(Fraction(4) ** j), SimulatedWords(4), 40_000) for j in (4, 30, 50)]
    assert (np.abs(draws[1] - (draws[2] >> 20)) <= 1).all()
    assert (np.abs(draws[0] - (draws[1] >> 26)) <= 1).all()
