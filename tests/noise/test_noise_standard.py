"""The standard half normal and exponential: tables against mpmath, float64 against exact arithmetic, settlement."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.messages import refuses

from confide.noise.standard import (
    EXP_SMALL_ERROR,
    RATES,
    TABLE_CELLS,
    CellTable,
    SimulatedWords,
    StandardLaw,
    cell_table,
    exp_bounds,
    standard_law,
    tries_for,
)

Script = Callable[[list[int]], object]
KINDS = ("half normal", "exponential")
kinds = pytest.mark.parametrize("kind", KINDS)
TOP = 2**64


def exact_cumulative(kind: str, cells: int) -> list[mpmath.mpf]:
    """F(0), F(1), ... from mpmath alone: the normalisers in closed form, not by our sum."""
    rate = mpmath.mpf(1) / (512 if kind == "half normal" else 16)
    if kind == "exponential":
        return [1 - mpmath.exp(-rate * (c + 1)) for c in range(cells)]
    total = (1 + mpmath.jtheta(3, 0, mpmath.exp(-rate))) / 2
    sums, running = [], mpmath.mpf(0)
    for c in range(cells):
        running += mpmath.exp(-rate * c * c)
        sums.append(running / total)
    return sums


@kinds
@pytest.mark.parametrize("bits", [32, 16, 12])
def test_thresholds_are_the_floors_of_the_cumulative_probabilities(kind: str, bits: int) -> None:
    law = StandardLaw(kind, cell_bits=bits)  # type: ignore[arg-type]
    with mpmath.workprec(400):
        sums = exact_cumulative(kind, len(law.thresholds))
        assert [int(mpmath.floor(s * 2**bits)) for s in sums] == law.thresholds
    assert law.thresholds[-1] == 2**bits - 1 > law.thresholds[-2]


@kinds
@pytest.mark.parametrize("bits", [96, 160, 256])
def test_cell_table_bounds_hold_and_are_close(kind: str, bits: int) -> None:
    table = CellTable(kind, bits)  # type: ignore[arg-type]
    with mpmath.workprec(600):
        for low, high, exact in zip(table.low, table.high, exact_cumulative(kind, len(table.low)), strict=True):
            assert low <= exact * 2**bits <= high
            assert high - low < 2**26


@kinds
@pytest.mark.parametrize("c", [0, 5, 90])
def test_a_cell_is_named_only_when_its_bounds_are_clear_of_the_digits(kind: str, c: int) -> None:
    """Digits as long as the bounds themselves: between the two bounds of F(c) nothing is certain."""
    table = CellTable(kind, 192)  # type: ignore[arg-type]
    low, high = table.low[c], table.high[c]
    assert high - low >= 2
    expected = {low - 1: c, low: None, low + 1: None, high - 1: None, high: c + 1}
    assert {digits: table.cell(digits, 192) for digits in expected} == expected
    assert table.cell(2**192 - 1, 192) is None


@kinds
@pytest.mark.parametrize("bits", [32, 16, 12])
def test_the_guide_names_the_cell_of_every_word_or_calls_it_open(kind: str, bits: int) -> None:
    """All words of 16 bits or fewer; of 32 bits, those around every threshold and at random."""
    law = StandardLaw(kind, cell_bits=bits)  # type: ignore[arg-type]
    if bits == 32:
        near = np.array(law.thresholds)[:, None] + np.arange(-3, 4)
        random = np.random.default_rng(1).integers(0, 2**32, 200_000)
        slots = 2**32 - np.unique(np.concatenate([2 ** np.arange(33), 129 * 2 ** np.arange(25)]))
        words = np.clip(np.concatenate([near.ravel(), random, slots, slots - 1]), 0, 2**32 - 1)
    else:
        words = np.arange(2**bits)
    cells, open_cells = law._cells(words.astype(np.uint64) << np.uint64(64 - bits))
    expected = np.searchsorted(law.thresholds, words, side="right")
    settled = np.isin(words, law.thresholds)
    assert np.flatnonzero(settled).tolist() == open_cells.tolist()
    assert (cells[~settled] == expected[~settled]).all()


def test_too_coarse_a_guide_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.noise.standard.SLOT_BITS", 3)
    with refuses(AssertionError):
        StandardLaw("half normal")


@kinds
def test_the_error_budget_holds_in_the_table(kind: str) -> None:
    """x < .40 and slope < .40 are what the error analysis rests on."""
    law = standard_law(kind)  # type: ignore[arg-type]
    last = len(law.thresholds) - 1  # the largest cell that float64 decides
    assert last < TABLE_CELLS
    rate = RATES[kind]  # type: ignore[index]
    assert float(rate) == rate
    slope, x = (2 * rate * (last + 1), rate * (1 + 2 * last)) if kind == "half normal" else (rate, rate)
    assert max(slope, x) < Fraction(40, 100)
    total = slope / 2**53 + Fraction(201, 100) * x / 2**53 + EXP_SMALL_ERROR
    assert total < Fraction(5, 2**53) < Fraction(1, 2**50)
    assert law.margin == 2
    assert StandardLaw(kind, accept_bits=14, place_bits=10).margin == 2**4 + 2  # type: ignore[arg-type]


@kinds
def test_the_error_of_the_float_acceptance_is_below_its_bound(kind: str) -> None:
    """|e - e^-x| < 5 * 2^-53 at the real r that the 64 bits begin, at both ends, over all cells of the table."""
    law = StandardLaw(kind, cell_bits=1, accept_bits=62)  # type: ignore[arg-type]
    number = len(standard_law(kind).thresholds)  # type: ignore[arg-type]
    rng = np.random.default_rng(3)
    cells = np.concatenate([np.arange(number), rng.integers(0, number, 1_200)]).astype(np.uint16)
    place = rng.integers(0, TOP, len(cells), dtype=np.uint64)
    place[:number:2] = TOP - 1
    place[-20:-10] = TOP - 1
    place[-10:] = 0
    # floor(2^62 e), found as the u at which acceptance ends, by bisection: only through what `_accept` answers.
    low, high = np.zeros(len(cells), dtype=np.uint64), np.full(len(cells), 2**62, dtype=np.uint64)
    for _ in range(63):
        middle = low + (high - low) // np.uint64(2)
        accepted, _ = law._accept(cells, middle << np.uint64(1), place)
        low, high = np.where(accepted, middle, low), np.where(accepted, high, middle)
    worst = 0.0
    for cell, bits, floor in zip(cells.tolist(), place.tolist(), high.tolist(), strict=True):
        for end in (bits, bits + 1):
            lowest, highest = exp_bounds(law.exponent(cell, end, 64), 128)
            worst = max(worst, abs(floor - lowest / 2**66), abs(floor - highest / 2**66))
    # The comparison of a float with the 62 bits of u is itself rounded, by 2^-53 of 2^62.
    assert worst < 6 * 2**9 + 1
    assert worst > 2**6  # float64 is at work here


class _Once:
    """One block, and then nothing: a try that asked for more words would fail."""

    def __init__(self, block: np.ndarray) -> None:
        self.block = block

    def take(self, count: int) -> np.ndarray:
        assert count == len(self.block), "more words were asked for"
        return self.block


@kinds
def test_float64_decides_every_try_as_exact_arithmetic_does(kind: str) -> None:
    law = standard_law(kind)  # type: ignore[arg-type]
    tries = 4_000
    block = SimulatedWords(5).take(2 * tries)
    whole = law._block(_Once(block), tries, tries)
    first, place = block.reshape(2, tries).tolist()
    one_by_one = [law.settle(_Once(np.empty(0)), a, b) for a, b in zip(first, place, strict=True)]
    kept = [(outcome, a & 1) for outcome, a in zip(one_by_one, first, strict=True) if outcome is not None]
    assert [(c, p, 64) for c, p in zip(whole.cells.tolist(), whole.places.tolist(), strict=True)] == [
        k for k, _ in kept
    ]
    assert whole.negative.tolist() == [bool(sign) for _, sign in kept]
    assert 0.96 < len(kept) / tries < 0.985
    assert not whole.settled


@kinds
@pytest.mark.parametrize("bits", [(32, 31, 64), (16, 14, 64), (12, 4, 64), (16, 14, 9)])
def test_however_few_bits_decide_the_same_digits_give_the_same_draw(
    kind: str, bits: tuple[int, int, int], scripted: Script
) -> None:
    """A law that decides by fewer bits, given the digits of the full words as its further words, must agree with it."""
    full = StandardLaw(kind)  # type: ignore[arg-type]
    a, b, p = bits
    short = StandardLaw(kind, cell_bits=a, accept_bits=b, place_bits=p)  # type: ignore[arg-type]
    for first, place in SimulatedWords(8).take(2 * 400).reshape(400, 2).tolist():
        expected = full.settle(scripted([]), first, place)  # type: ignore[arg-type]
        cell_digits, uniform = first >> 32, (first >> 1) % 2**31
        short_first = (cell_digits >> (32 - a)) << (64 - a) | (uniform >> (31 - b)) << (64 - a - b)
        rest_of_cell = (cell_digits << (a + 32)) % TOP
        rest_of_uniform = (uniform << (33 + b)) % TOP
        rest_of_place = (place << p) % TOP if p < 64 else 0
        needed = cell_table(kind, a + 128).cell(cell_digits >> (32 - a), a) is None  # type: ignore[arg-type]
        script = scripted([*([rest_of_cell] if needed else []), rest_of_place, rest_of_uniform, 0, 0])
        got = short.settle(script, short_first, place)  # type: ignore[arg-type]
        assert (got is None) == (expected is None)
        if got is not None and expected is not None:
            assert got[0] == expected[0]
            assert (got[1] << 64 >> got[2]) == (expected[1] << 64 >> expected[2]) >> (64 - min(64, got[2])) << (
                64 - min(64, got[2])
            )


def first_draw(law: StandardLaw, script: Script, first: int, place: int, more: list[int]) -> tuple[object, int]:
    """(cell, place, sign, settled) of the first draw when the first try has the given words and the others are 0."""
    tries = tries_for(1)
    words = script([first, *[0] * (tries - 1), place, *[0] * (tries - 1), *more])
    drawn = law.draw(words, 1)  # type: ignore[arg-type]
    outcome = (int(drawn.cells[0]), int(drawn.places[0]), bool(drawn.negative[0]), drawn.settled.get(0))
    return outcome, sum(words.asked[1:])  # type: ignore[attr-defined]


REJECTED = (0, 0, False, None)  # the next try of the script


@kinds
@pytest.mark.parametrize("cell", [0, 1, 20, 90])
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_a_cell_word_on_a_threshold_is_settled_by_the_next_words(
    kind: str, cell: int, step: int, scripted: Script
) -> None:
    law = standard_law(kind)  # type: ignore[arg-type]
    with mpmath.workprec(500):
        digits = int(mpmath.floor(exact_cumulative(kind, cell + 1)[cell] * 2**160))
    word, second, third = digits >> 128, (digits >> 64) % TOP, digits % TOP
    assert word == law.thresholds[cell]
    more = [second + step] if step else [second, third + 1]
    outcome, taken = first_draw(law, scripted, word << 32 | 1, 5 << 50, more)
    expected = cell if step < 0 else cell + 1
    assert outcome == (expected, 5 << 50, True, (expected, 5 << 50, 64))
    assert taken == len(more)


@kinds
def test_one_beside_a_threshold_is_not_settled(kind: str, scripted: Script) -> None:
    law = standard_law(kind)  # type: ignore[arg-type]
    for cell in (0, 3, 80):
        for step in (-1, 1):
            outcome, taken = first_draw(law, scripted, (law.thresholds[cell] + step) << 32, 7, [])
            assert (outcome, taken) == ((cell if step < 0 else cell + 1, 7, False, None), 0)


@kinds
def test_cells_beyond_the_table_are_drawn_with_their_probability(kind: str, scripted: Script) -> None:
    law = standard_law(kind)  # type: ignore[arg-type]
    last = len(law.thresholds)
    with mpmath.workprec(700):
        sums = exact_cumulative(kind, last + 300)
        for cell in (last + 1, last + 50, last + (290 if kind == "exponential" else 120)):
            between = int(mpmath.floor((sums[cell - 1] + sums[cell]) / 2 * 2**416))
            assert between >> 384 == 2**32 - 1
            more = [(between >> shift) % TOP for shift in (320, 256, 192, 128, 64, 0)]
            outcome, taken = first_draw(law, scripted, (2**32 - 1) << 32, 1 << 20, more)
            assert outcome[3][0] == cell  # type: ignore[index]
            assert 1 <= taken <= 6


@kinds
@pytest.mark.parametrize("cell", [0, 1, 40, 90])
@pytest.mark.parametrize("place", [1 << 30, 12345 << 40, TOP - 1])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_uniform_on_the_boundary_takes_two_more_words(
    kind: str, cell: int, place: int, step: int, scripted: Script
) -> None:
    """r and U get 64 more bits each; U is put just under and just over e^-x at that longer r."""
    law = standard_law(kind)  # type: ignore[arg-type]
    longer = place << 64 | TOP // 3
    low, high = exp_bounds(law.exponent(cell, longer, 128), 400)
    uniform = (low >> (400 - 95)) + 2 * step
    assert high >> (400 - 95) == low >> (400 - 95)
    first = (law.thresholds[cell] - 1) << 32 | (uniform >> 64) << 1
    outcome, taken = first_draw(law, scripted, first, place, [longer % TOP, uniform % TOP])
    assert taken in (0, 2)
    assert taken == 2 or cell == 0 or place < 1 << 40  # where e^-x is 1 to 31 bits, one word may say it
    assert outcome == ((cell, place, False, (cell, longer, 128)) if step < 0 else REJECTED)


@kinds
@pytest.mark.parametrize("size", [0, 1, 2, 100, 15_360, 50_000])
def test_words_are_taken_two_per_try_and_in_blocks_that_fit_the_size(kind: str, size: int) -> None:
    asked: list[int] = []

    class Counted(SimulatedWords):
        def take(self, count: int) -> np.ndarray:
            asked.append(count)
            return super().take(count)

    drawn = standard_law(kind).draw(Counted(3), size)  # type: ignore[arg-type]
    assert len(drawn.cells) == len(drawn.places) == len(drawn.negative) == size
    assert all(count % 2 == 0 for count in asked)
    assert sum(asked) / 2 < 1.06 * size + 40
    assert asked[0] == 2 * min(16_384, tries_for(size))
