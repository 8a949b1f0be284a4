"""Coins and uniform integers: exact on words written for them, chi-square on many."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special
from tests.messages import refuses
from tests.noise.exact import equal_p_value

from confide.errors import PrivacyError
from confide.noise import SimulatedNoise
from confide.noise.integers import LazyUniform, bernoulli, uniform_integers
from confide.noise.standard import SimulatedWords

Script = Callable[[list[int]], object]
ALPHA = 1e-8
TOP = 2**64


@settings(max_examples=200, deadline=None)
@given(p=st.fractions(0, 1), words=st.lists(st.integers(0, TOP - 1), min_size=3, max_size=3))
def test_a_coin_is_true_where_the_digits_are_below_p(p: Fraction, words: list[int]) -> None:
    digits = words[0] << 128 | words[1] << 64 | words[2]
    uniform = LazyUniform(SimulatedWords(1), digits, 192)
    if not digits < p * 2**192 < digits + 1:
        assert uniform.below(p) == (Fraction(digits, 2**192) < p)
        assert uniform.length == 192


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(2, 7), Fraction(1, 10**18), 1 - Fraction(1, 10**18)])
def test_a_word_that_equals_the_digits_of_p_is_continued(p: Fraction, scripted: Script) -> None:
    digits = math.floor(p * 2**192)
    parts = [digits >> 128, (digits >> 64) % TOP, digits % TOP]
    for step, expected in ((-1, True), (1, False)):
        # The tie is settled at once, or only by the third word.
        assert bernoulli(scripted([parts[0], parts[1] + step]), p, 1).tolist() == [expected]  # type: ignore[arg-type]
        words = scripted([parts[0], parts[1], parts[2] + step])
        assert bernoulli(words, p, 1).tolist() == [expected]  # type: ignore[arg-type]
        assert words.left == []  # type: ignore[attr-defined]
    beside = bernoulli(scripted([min(TOP - 1, parts[0] + 1), max(0, parts[0] - 1)]), p, 2)  # type: ignore[arg-type]
    assert beside.tolist() == [False, True]


def test_dyadic_and_certain_coins_take_one_word_each(scripted: Script) -> None:
    words = [0, 1, TOP // 2 - 1, TOP // 2, TOP - 1]
    expected = {
        Fraction(0): [False] * 5,
        Fraction(1): [True] * 5,
        Fraction(1, 2): [True, True, True, False, False],
        Fraction(1, 2**64): [True, False, False, False, False],
        1 - Fraction(1, 2**64): [True, True, True, True, False],
    }
    for p, coins in expected.items():
        assert bernoulli(scripted(words), p, 5).tolist() == coins  # type: ignore[arg-type]


@pytest.mark.parametrize("p", ["1/3", "1/2", "9/10", "1/1000", "123/457"])
def test_coins_have_their_probability(p: str) -> None:
    size = 1_000_000
    heads = SimulatedNoise(31).bernoulli(Fraction(p), size).sum()

    def z(probability: float) -> float:
        return abs(heads - size * probability) / math.sqrt(size * probability * (1 - probability))

    limit = special.ndtri(1 - ALPHA / 2)
    assert z(float(Fraction(p))) < limit
    if p != "1/1000":  # 3 % of so rare an event take more draws
        assert z(float(Fraction(p)) * 1.03) > limit
        assert z(float(Fraction(p)) / 1.03) > limit


@pytest.mark.parametrize("m", [1, 2, 3, 6, 10, 64, 65, 1000])
def test_integers_are_uniform(m: int) -> None:
    draws = SimulatedNoise(32).uniform_integers(m, 500_000)
    assert draws.dtype == np.int64
    assert draws.min() == 0
    assert draws.max() == m - 1
    if m > 1:
        assert equal_p_value(draws, m) > ALPHA
        assert equal_p_value(draws // 1, m + 1) < ALPHA  # one value too many is seen


@pytest.mark.parametrize("m", [2**32 + 1, 3 * 2**40, 2**62 + 1, 2**63 - 1, 2**63])
def test_large_ranges_are_uniform(m: int) -> None:
    draws = SimulatedNoise(33).uniform_integers(m, 400_000)
    assert 0 <= draws.min() < m // 1_000
    assert m - m // 1_000 < draws.max() < m
    assert equal_p_value((draws.astype(float) / m * 1_000).astype(int), 1_000) > ALPHA
    assert equal_p_value(draws & 255, 256) > ALPHA


def test_integers_are_the_top_bits_that_are_below_m(scripted: Script) -> None:
    words = [5 << 61, 7 << 61, 6 << 61, 0, 4 << 61, *[1 << 61] * 20]
    draws = uniform_integers(scripted(words), 6, 3)  # type: ignore[arg-type]
    assert draws.tolist() == [5, 0, 4]
    assert uniform_integers(scripted([]), 1, 4).tolist() == [0] * 4  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-0.1, 1.0000001, 2, math.nan, math.inf, None, "1/2", True, -5e-324])
def test_a_bad_probability_is_refused(bad: object) -> None:
    with refuses(PrivacyError):
        SimulatedNoise(1).bernoulli(bad, 3)


@pytest.mark.parametrize("bad", [0, -1, 2**63 + 1, 1.5, True, None])
def test_a_bad_range_is_refused(bad: object) -> None:
    with refuses(PrivacyError):
        SimulatedNoise(1).uniform_integers(bad, 3)  # type: ignore[arg-type]


def test_sizes_are_checked_and_may_be_zero() -> None:
    noise = SimulatedNoise(1)
    assert noise.bernoulli(0.5, 0).shape == noise.uniform_integers(3, 0).shape == (0,)
    assert noise.bernoulli(0.5, 200_000).shape == (200_000,)
    for call in (lambda: noise.bernoulli(0.5, -1), lambda: noise.uniform_integers(3, 1.0)):  # type: ignore[arg-type]
        with refuses(PrivacyError):
            call()
