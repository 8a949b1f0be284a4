"""The exponential mechanism: the exact law at small sizes, forced settlement, extremes, a million candidates, refusals."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.few import few
from tests.messages import refuses
from tests.pace import quick

from confide.errors import PrivacyError
from confide.noise import SimulatedNoise
from confide.noise.exponential_mechanism import _bounds, _cumulated, _settled, exponential_mechanism
from confide.noise.integers import LazyUniform
from confide.noise.standard import SimulatedWords, exp_bounds, exp_far

# Fixed beforehand: a p-value below this fails; 50 tests, so a false alarm in 4 * 10^6 runs.
ALARM = 5e-9
SCORES = np.array([5, 3, 3, 0, -2, 5])
LENGTHS = np.array([1, 2, 0, 4, 100, 1])
DRAWS = 6_000


def law(scores: np.ndarray, rate: float, lengths: np.ndarray) -> np.ndarray:
    weights = lengths * np.exp(-rate * (scores.max() - scores))
    return weights / weights.sum()


def p_value(counts: np.ndarray, chances: np.ndarray) -> float:
    kept = chances > 0
    assert counts[~kept].sum() == 0
    return float(stats.chisquare(counts[kept], counts.sum() * chances[kept]).pvalue)


def counted(
    scores: np.ndarray, epsilon: object, sensitivity: object, lengths: object, digits: int, seed: int
) -> np.ndarray:
    words = SimulatedWords(seed)
    found = [exponential_mechanism(words, scores, epsilon, sensitivity, lengths, digits=digits) for _ in range(DRAWS)]
    return np.bincount(found, minlength=len(scores))


# 3 digits settle nearly every draw, 64 none; those between only with the benchmarks
@pytest.mark.parametrize("digits", [64, pytest.param(8, marks=pytest.mark.long), 3])
@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), few([(1, 1), (Fraction(1, 10), 1), (3, Fraction(1, 2)), (1e-6, 1)], 1, 2)
)
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_the_exact_law_also_when_most_draws_are_settled(
    digits: int, epsilon: float, sensitivity: float, lengths: np.ndarray | None
) -> None:
    counts = counted(SCORES, epsilon, sensitivity, lengths, digits, 11)
    sizes = np.ones(len(SCORES)) if lengths is None else lengths
    assert p_value(counts, law(SCORES, float(epsilon) / (2 * float(sensitivity)), sizes)) > ALARM


def test_another_epsilon_is_rejected() -> None:
    """The same counts against a law whose epsilon is off by a tenth: the test can fail."""
    scores = np.arange(-12, 1)
    words = SimulatedWords(3)
    counts = np.bincount([exponential_mechanism(words, scores, 1, 1) for _ in range(20_000)], minlength=13)
    assert p_value(counts, law(scores, 0.5, np.ones(13))) > ALARM
    for wrong in (0.9, 1.1):
        assert p_value(counts, law(scores, 0.5 * wrong, np.ones(13))) < ALARM


def test_a_tiny_weight_with_an_enormous_length() -> None:
    words, chance = SimulatedWords(5), 2.0**62 * np.exp(-40.0)
    hits = sum(
        exponential_mechanism(words, np.array([0, -400]), Fraction(1, 5), 1, np.array([1, 2**62])) for _ in range(3000)
    )
    assert stats.binomtest(int(hits), 3000, chance / (1 + chance)).pvalue > ALARM


@pytest.mark.parametrize("digits", [64, 4])
def test_weights_far_below_any_float(digits: int) -> None:
    """Lengths that make up for weights of 2^-288, and choices where every weight is 2^-5771 of the best score's."""
    words, enormous = SimulatedWords(6), 2**288
    with refuses(PrivacyError):
        exponential_mechanism(words, [0, -1], 2, 1, [1, 2**301])
    scores, lengths = [0, -200, -201], [1, enormous, enormous]
    found = np.bincount(
        [exponential_mechanism(words, scores, 2, 1, lengths, digits=digits) for _ in range(2000)], minlength=3
    )
    weights = np.array([1.0, enormous * np.exp(-200.0), enormous * np.exp(-201.0)])
    assert p_value(found, weights / weights.sum()) > ALARM
    far = [0, -4000, -4000, -4001]
    found = np.bincount(
        [exponential_mechanism(words, far, 2, 1, [0, 3, 1, 2], digits=digits) for _ in range(2000)], minlength=4
    )
    assert p_value(found, np.array([0, 3, 1, 2 / np.exp(1)]) / (4 + 2 / np.exp(1))) > ALARM


def test_weights_that_floats_take_as_nothing_are_settled() -> None:
    """A weight of e^-207 = 2^-298.6 against a length of 2^299; and one of e^-800, which floats take as 0, in a margin that knows it."""
    words = SimulatedWords(8)
    found = [exponential_mechanism(words, [0, -207], 2, 1, [1, 2**299]) for _ in range(2000)]
    weight = float(Fraction(exp_bounds(Fraction(207), 400)[0], 2**101))
    assert stats.binomtest(int(sum(found)), 2000, weight / (1 + weight)).pvalue > ALARM
    cumulated, margin = _cumulated(
        Fraction(1), np.array([0, 800], dtype=np.uint64), np.array([1, 2**299], dtype=object)
    )
    assert cumulated[1] == 1
    assert margin[1] > 2.0**299 * np.exp(-700.0) > 0


def test_scores_beyond_64_bits() -> None:
    words = SimulatedWords(9)
    scores = [2**70 + 1, 2**70, -(2**70)]
    found = np.bincount([exponential_mechanism(words, scores, 2, 1) for _ in range(3000)], minlength=3)
    assert p_value(found, np.array([1, np.exp(-1.0), 0]) / (1 + np.exp(-1.0))) > ALARM
    unsigned = np.array([2**64 - 1, 2**64 - 2, 0], dtype=np.uint64)
    found = np.bincount([exponential_mechanism(words, unsigned, 2, 1) for _ in range(3000)], minlength=3)
    assert p_value(found, np.array([1, np.exp(-1.0), 0]) / (1 + np.exp(-1.0))) > ALARM


def test_a_better_candidate_of_no_length_changes_nothing() -> None:
    """The best is over the candidates that can be chosen, also at the far end of 64 bits."""
    words = SimulatedWords(10)
    scores = np.array([2**63 - 1, -(2**63), -(2**63) + 1])
    found = np.bincount([exponential_mechanism(words, scores, 2, 1, [0, 1, 1]) for _ in range(3000)], minlength=3)
    assert p_value(found, np.array([0, np.exp(-1.0), 1]) / (1 + np.exp(-1.0))) > ALARM


def test_the_ends_of_64_bits() -> None:
    words = SimulatedWords(7)
    ends = np.array([-(2**63), 2**63 - 1])
    assert {exponential_mechanism(words, ends, 1, 1) for _ in range(50)} == {1}
    hits = sum(exponential_mechanism(words, ends, Fraction(1, 2**63), 1) for _ in range(3000))
    assert stats.binomtest(int(hits), 3000, 1 / (1 + np.exp(-1.0))).pvalue > ALARM
    assert exponential_mechanism(words, np.array([3]), 10**400, 1) == 0
    assert exponential_mechanism(words, np.array([3, 4]), Fraction(1, 10**400), 10**400) in (0, 1)


def test_margins_hold_against_exact_integers() -> None:
    """Every boundary computed in floats lies within its margin of the exact one, for gaps and lengths of many sizes."""
    generator = np.random.default_rng(2)
    for rate in (Fraction(1, 3), Fraction(1, 1000), Fraction(355, 113)):
        gaps = np.unique(generator.integers(0, 2000, 400)).astype(np.uint64)
        gaps[0] = 0
        totals = generator.integers(1, 2**40, len(gaps))
        cumulated, margin = _cumulated(rate, gaps, totals)
        lows, highs = _bounds(rate, gaps, totals, 256)
        for value, slack, low, high in zip(cumulated, margin, lows, highs, strict=True):
            assert Fraction(value) - Fraction(slack) <= Fraction(low, 2**256)
            assert Fraction(high, 2**256) <= Fraction(value) + Fraction(slack) + Fraction(1, 2**900)
            assert slack < 1e-11 * value


def test_the_wide_exponential_keeps_its_bound() -> None:
    for x in np.random.default_rng(4).uniform(0, 703, 300):
        low, high = exp_bounds(Fraction(float(x)), 1200)
        exact = Fraction(low + high, 2**1201)
        assert abs(Fraction(float(exp_far(np.array([x]))[0])) - exact) < exact * Fraction(78, 10) / 2**53


def test_settling_agrees_with_the_float_path() -> None:
    generator = np.random.default_rng(5)
    gaps, totals = generator.permutation(np.arange(0, 60, 3)).astype(np.uint64), generator.integers(0, 9, 20)
    rate = Fraction(1, 9)
    cumulated, _ = _cumulated(rate, gaps, totals)
    for digits in range(1, 2**16, 997):
        expected = int(np.searchsorted(cumulated, (digits + 0.5) / 2**16 * cumulated[-1]))
        uniform = LazyUniform(SimulatedWords(digits), digits, 16)
        assert _settled(uniform, rate, gaps, totals) == expected


def test_a_draw_at_a_boundary_is_settled(scripted: Callable[[list[int]], Any]) -> None:
    """U = 1/2 + 2^-64 x with two equal candidates: the float path cannot tell, the next words do."""
    for word, winner in ((2**63, 1), (2**63 - 1, 0)):
        words = scripted([word, 5, 7])
        assert exponential_mechanism(words, [4, 4], 1, 1) == winner
        assert words.left == []
    words = scripted([2**62])
    assert exponential_mechanism(words, [4, 4], 1, 1) == 0


def test_a_million_candidates() -> None:
    """CPU time with a million distinct scores, in any order, and with few: .04 to .07 s on the machine they were written on."""
    noise = SimulatedNoise(1)
    generator = np.random.default_rng(1)
    for scores in (np.arange(10**6), generator.permutation(10**6), generator.integers(0, 1000, 10**6)):
        quick(0.6, partial(noise.exponential_mechanism, scores, Fraction(1, 1000), 1))


def test_settling_a_million_candidates_is_possible() -> None:
    scores = -np.abs(np.arange(200_000) - 70_000)
    found = exponential_mechanism(SimulatedWords(4), scores, Fraction(1, 100), 1, digits=12)
    assert abs(found - 70_000) < 20_000


def test_the_same_work_whoever_wins(scripted: Callable[[list[int]], Any]) -> None:
    """The function calls of a draw, Python's and NumPy's, are the same for every U that is not settled, and it takes one word."""
    scores, lengths = np.array([0, 3, 1, 2, 5, 5, -4]), np.array([12, 3, 8, 5, 1, 1, 90])

    def work(word: int) -> tuple[int, list[tuple[str, str]]]:
        words, calls = scripted([word]), []

        def note(frame: Any, event: str, argument: Any) -> None:
            calls.append((event, getattr(argument, "__name__", frame.f_code.co_name)))

        gc.disable()  # callbacks of the collector would be counted
        sys.setprofile(note)
        try:
            winner = exponential_mechanism(words, scores, 1, 1, lengths)
        finally:
            sys.setprofile(None)
            gc.enable()
        assert words.asked == [1]
        return winner, calls

    work(1)  # once for the caches of abstract types
    seen = [work(int(word)) for word in np.linspace(2**56, 2**64 - 2**56, 97).astype(np.uint64)]
    assert {winner for winner, _ in seen} == set(range(7))
    assert all(calls == seen[0][1] for _, calls in seen)


@pytest.mark.parametrize(
    "arguments",
    [
        ([], 1, 1),
        ([[1, 2]], 1, 1),
        ([0.5, 1.0], 1, 1),
        (["a"], 1, 1),
        ([True, False], 1, 1),
        ([1, 2], 0, 1),
        ([1, 2], float("nan"), 1),
        ([1, 2], 1, -1),
        ([1, 2], 1, "1"),
        ([1, 2], 1, 1, [1]),
        ([1, 2], 1, 1, [0, 0]),
        ([1, 2], 1, 1, [1, -1]),
        ([1, 2], 1, 1, [0.5, 0.5]),
        ([1, 2], 1, 1, 3),
        ([1, 2], 1, 1, "12"),
        (3, 1, 1),
    ],
)
def test_impossible_arguments(arguments: tuple[object, ...]) -> None:
    with refuses(PrivacyError):
        SimulatedNoise(1).exponential_mechanism(*arguments)


def test_one_seed_one_choice() -> None:
    first, second = (
        [SimulatedNoise(seed).exponential_mechanism(np.arange(100), Fraction(1, 10), 1) for seed in range(20)]
        for _ in range(2)
    )
    assert first == second
    assert any(a != b for a, b in pairwise(first))
