"""Whether the draws follow the law: statistics with false-alarm rates fixed beforehand, and proof that they can fail.

The words are seeded, so a run is deterministic; the rates say how unlikely it was that a right sampler was caught by
these seeds. All tests that must pass share 10^-6: there are fewer than 60 of them, each at `ALPHA`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from confide.noise import SecureNoise, SimulatedNoise, sampler, variance
from confide.noise.laws import GaussianLaw
from confide.noise.words import SimulatedWords

Statistic = Callable[[np.ndarray, float], float]

ALPHA = 1e-6 / 60
SMALL = [Fraction(1, 5), Fraction(3, 10), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(31)]
LARGE = [Fraction(10) ** 3, Fraction(10) ** 6, Fraction(10) ** 9, Fraction(10) ** 15]
HUGE = [Fraction(10) ** 6, Fraction(10) ** 9, Fraction(10) ** 15, Fraction(10) ** 17]
DRAWS = 4_000_000


def pmf_p_value(draws: np.ndarray, sigma: float) -> float:
    """Chi-square against the exact probabilities of the integers, tails pooled to an expected 25."""
    reach = int(np.ceil(9 * sigma)) + 1
    integers = np.arange(-reach, reach + 1)
    # Differences of the nearer tail: no cancellation.
    near, far = (np.abs(integers) - 0.5) / sigma, (np.abs(integers) + 0.5) / sigma
    expected = len(draws) * (special.ndtr(-near) - special.ndtr(-far))
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(integers))
    kept = np.flatnonzero(expected >= 25)
    left, right = kept[0], kept[-1]

    def pooled(values: np.ndarray) -> np.ndarray:
        body = values[left : right + 1].astype(float)
        tails = np.array([values[:left].sum(), values[right + 1 :].sum()])
        if tails.sum() == 0 or expected[:left].sum() < 5:
            body[0] += tails[0]
            body[-1] += tails[1]
            return body
        return np.concatenate([tails[:1], body, tails[1:]])

    seen, due = pooled(counts), pooled(expected)
    return float(special.chdtrc(len(due) - 1, ((seen - due) ** 2 / due).sum()))


def ks_p_value(draws: np.ndarray, sigma: float) -> float:
    """Kolmogorov-Smirnov at the steps of the distribution function, where rounding changes nothing."""
    values, counts = np.unique(draws, return_counts=True)
    empirical = np.cumsum(counts) / len(draws)
    upper = special.ndtr((values + 0.5) / sigma)
    lower = special.ndtr((values - 0.5) / sigma)
    distance = max(np.abs(empirical - upper).max(), np.abs(np.concatenate([[0.0], empirical[:-1]]) - lower).max())
    return float(special.kolmogorov(np.sqrt(len(draws)) * distance))


def bins_p_value(draws: np.ndarray, sigma: float) -> float:
    """Chi-square over 2,000 bins of equal probability: the shape within a cell, which the other hardly sees."""
    slots = np.minimum((special.ndtr(draws / sigma) * 2_000).astype(int), 1_999)
    return equal_p_value(slots, 2_000)


def equal_p_value(slots: np.ndarray, number: int) -> float:
    counts = np.bincount(slots, minlength=number)
    due = len(slots) / number
    return float(special.chdtrc(number - 1, ((counts - due) ** 2).sum() / due))


# 2,000 bins need a lattice much finer than sigma / 2,000 to have equal probabilities.
LARGE_CASES = [
    pytest.param(p_value, sigma, id=f"{p_value.__name__}-{float(sigma):g}")
    for p_value, sigmas in ((ks_p_value, LARGE), (bins_p_value, HUGE))
    for sigma in sigmas
]


def forced(sigma: Fraction, seed: int, size: int, bits: tuple[int, int] = (16, 14)) -> np.ndarray:
    law = GaussianLaw(sigma**2, cell_bits=bits[0], accept_bits=bits[1])
    return sampler.draw(law, SimulatedWords(seed), size)


@pytest.mark.parametrize("sigma", SMALL, ids=float)
def test_small_scales_follow_the_exact_probabilities(sigma: Fraction) -> None:
    assert pmf_p_value(SimulatedNoise(101).grid_gaussian(sigma**2, DRAWS), float(sigma)) > ALPHA


@pytest.mark.parametrize(("p_value", "sigma"), LARGE_CASES)
def test_large_scales_follow_the_normal(p_value: Statistic, sigma: Fraction) -> None:
    assert p_value(SimulatedNoise(102).grid_gaussian(sigma**2, DRAWS), float(sigma)) > ALPHA


@pytest.mark.parametrize("wrong", [1.03, 1 / 1.03])
@pytest.mark.parametrize("sigma", SMALL, ids=float)
def test_the_chi_square_rejects_a_scale_wrong_by_3_percent(sigma: Fraction, wrong: float) -> None:
    assert pmf_p_value(SimulatedNoise(101).grid_gaussian((sigma * Fraction(wrong)) ** 2, DRAWS), float(sigma)) < ALPHA


@pytest.mark.parametrize("wrong", [1.03, 1 / 1.03])
@pytest.mark.parametrize(("p_value", "sigma"), LARGE_CASES)
def test_the_statistics_of_large_scales_reject_a_scale_wrong_by_3_percent(
    p_value: Statistic, sigma: Fraction, wrong: float
) -> None:
    draws = SimulatedNoise(102).grid_gaussian((sigma * Fraction(wrong)) ** 2, DRAWS)
    assert p_value(draws, float(sigma)) < ALPHA


@pytest.mark.parametrize("sigma", LARGE[1:], ids=float)
def test_last_digits_are_uniform(sigma: Fraction) -> None:
    draws = SimulatedNoise(103).grid_gaussian(sigma**2, DRAWS)
    assert equal_p_value(draws & 1023, 1024) > ALPHA


@pytest.mark.parametrize("sigma", [Fraction(7, 3), Fraction(10) ** 9], ids=float)
@pytest.mark.parametrize("lag", [1, 2])
def test_successive_draws_are_independent(sigma: Fraction, lag: int) -> None:
    draws = SimulatedNoise(104).grid_gaussian(sigma**2, DRAWS)
    edges = np.array([-1.2, -0.7, -0.3, 0.0, 0.3, 0.7, 1.2]) * float(sigma)
    slots = np.searchsorted(edges, draws)
    slots = np.unique(slots, return_inverse=True)[1]  # without those that hold no integer
    number = slots.max() + 1
    table = np.bincount(slots[:-lag] * number + slots[lag:], minlength=number**2).reshape(number, number)
    due = np.outer(table.sum(1), table.sum(0)) / table.sum()
    assert special.chdtrc((number - 1) ** 2, ((table - due) ** 2 / due).sum()) > ALPHA


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(5), Fraction(100), Fraction(10) ** 9], ids=float)
def test_the_variance_is_the_stated_one(sigma: Fraction) -> None:
    draws = SimulatedNoise(105).grid_gaussian(sigma**2, DRAWS).astype(float)
    squares = draws**2
    z = (squares.mean() - variance(sigma**2)) / (squares.std() / np.sqrt(DRAWS))
    assert abs(z) < special.ndtri(1 - ALPHA / 2)
    assert abs(draws.mean() / draws.std() * np.sqrt(DRAWS)) < special.ndtri(1 - ALPHA / 2)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3), Fraction(31), Fraction(10) ** 9], ids=float)
def test_the_law_holds_where_settlement_is_forced(sigma: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = _count_settled(monkeypatch)
    draws = forced(sigma, 106, 400_000)
    p_value = pmf_p_value(draws, float(sigma)) if sigma < 100 else bins_p_value(draws, float(sigma))
    assert p_value > ALPHA
    assert 400 < len(settled) < 1_200  # 3e-4 in accept, 1e-3 in cell


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3), Fraction(31)], ids=float)
def test_the_law_holds_where_a_good_part_is_settled(sigma: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = _count_settled(monkeypatch)
    assert pmf_p_value(forced(sigma, 107, 20_000, bits=(12, 5)), float(sigma)) > ALPHA
    assert len(settled) > 2_000


def _count_settled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    settled: list[int] = []
    settle = sampler.settle

    def counted(law: GaussianLaw, words: SimulatedWords, first: int, place: int, last: int) -> int | None:
        settled.append(1)
        return settle(law, words, first, place, last)

    monkeypatch.setattr(sampler, "settle", counted)
    return settled


@pytest.mark.parametrize("wrong", ["accept", "cell"])
def test_a_faulty_settlement_is_caught(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, cell = sampler._settle_accept, sampler._settle_cell
    if wrong == "accept":
        monkeypatch.setattr(sampler, "_settle_accept", lambda *given: not accept(*given))
    else:
        monkeypatch.setattr(sampler, "_settle_cell", lambda *given: cell(*given) // 2)
    assert pmf_p_value(forced(Fraction(31), 107, 100_000, bits=(12, 5)), 31.0) < ALPHA


Rule = Callable[..., object]


def _all_accepted(right: Rule) -> Rule:
    return lambda law, cells, place, last: (np.ones(len(cells), dtype=bool), right(law, cells, place, last)[1])


def _one_word_for_two(right: Rule) -> Rule:
    return lambda law, cells, place, last: right(law, cells, place, place)


def _one_cell_too_far(right: Rule) -> Rule:
    return lambda law, first: (right(law, first)[0] + 1, right(law, first)[1])


def _no_sign(right: Rule) -> Rule:
    return lambda *given: np.abs(right(*given))


FAULTS = [
    ("_accept", _all_accepted),
    ("_accept", _one_word_for_two),
    ("_cells", _one_cell_too_far),
    ("_values", _no_sign),
]


@pytest.mark.parametrize(("name", "breaking"), FAULTS, ids=lambda part: getattr(part, "__name__", part))
def test_a_fault_in_the_sampler_is_caught(
    name: str, breaking: Callable[[Rule], Rule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, name, breaking(getattr(sampler, name)))
    draws = SimulatedNoise(102).grid_gaussian(10**18, DRAWS)
    assert min(ks_p_value(draws, 1e9), bins_p_value(draws, 1e9)) < ALPHA


def test_truncation_in_place_of_rounding_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GaussianLaw, "magnitude", lambda law, cell, place: cell >> -law.shift)
    draws = sampler.draw(GaussianLaw(Fraction(9)), SimulatedWords(101), DRAWS)
    assert pmf_p_value(draws, 3.0) < ALPHA


def test_secure_noise_follows_the_same_law() -> None:
    """Not seeded: this one may fail once in 1 / ALPHA = 6e7 runs."""
    noise = SecureNoise()
    assert pmf_p_value(noise.grid_gaussian(9, 200_000), 3.0) > ALPHA / 2
    assert ks_p_value(noise.grid_gaussian(10**12, 200_000), 1e6) > ALPHA / 2
