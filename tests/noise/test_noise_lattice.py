"""Fair coins by the number and the Laplace law of the lattice: exact laws, forced settlement, mutants, constant work."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats
from tests.messages import refuses
from tests.noise.multivariate_laws import ALARM, cf_p_value, chi_square
from tests.pace import quick

from confide.errors import PrivacyError
from confide.noise.binomial import BinomialTable, _level, _ones, halves
from confide.noise.standard import SimulatedWords, StandardLaw, standard_law
from confide.noise.symmetric_laplace import _geometric, lattice_laplace, log_bounds

ROWS = 200_000


# Fair coins ----------------------------------------------------------------------------------------------------------


def test_ones_are_counted() -> None:
    words = np.append(SimulatedWords(50).take(1000), np.array([0, 2**64 - 1], dtype=np.uint64))
    assert _ones(words).tolist() == [int(word).bit_count() for word in words]


@pytest.mark.parametrize("n", [64, 64 * 15, 1024 * 2])
def test_tables_are_the_floors_of_exact_probabilities(n: int) -> None:
    found = BinomialTable(n, 192).thresholds(60)
    assert found is not None
    start, thresholds = found
    upto = sum(comb(n, j) for j in range(start))
    assert upto << 60 < 1 << n
    for offset, threshold in enumerate(thresholds):
        upto += comb(n, start + offset)
        assert threshold == min((upto << 60) >> n, 2**60 - 1)
    assert thresholds[-1] == 2**60 - 1


@pytest.mark.parametrize("n", [1, 5, 63, 64, 100, 1023, 1025, 70_003])
@pytest.mark.parametrize("bits", [60, 5])
def test_heads_are_binomial_also_when_many_are_settled(n: int, bits: int) -> None:
    size = 100_000 if bits == 60 else 3_000
    heads = halves(SimulatedWords(n), np.full(size, n), n, bits=bits)
    pmf = stats.binom.pmf(np.arange(n + 1), n, 0.5) * size
    kept = pmf >= 20
    seen, due = np.bincount(heads, minlength=n + 1)[kept], pmf[kept]
    rest = size - due.sum()
    statistic = ((seen - due) ** 2 / due).sum() + ((size - seen.sum() - rest) ** 2 / rest if rest > 5 else 0)
    assert special.chdtrc(max(kept.sum() - 1 + (rest > 5), 1), statistic) > ALARM


def test_heads_of_every_number_at_once_and_beyond_the_bound() -> None:
    n = np.arange(3_000).repeat(20)
    heads = halves(SimulatedWords(51), n, 100)
    assert (heads >= 0).all()
    assert (heads <= n).all()
    score = ((heads - n / 2)[n > 0] ** 2 / (n[n > 0] / 4)).sum()
    # each term has mean 1 and variance 2 - 2/n
    assert abs(score - (n > 0).sum()) < 6.5 * sqrt(2 * (n > 0).sum())


def test_the_same_words_whatever_the_numbers() -> None:
    def asked(n: np.ndarray) -> list[int]:
        words, taken = SimulatedWords(52), []
        take = words.take
        words.take = lambda count: (taken.append(count), take(count))[1]  # type: ignore[method-assign]
        halves(words, n, 10_000)
        return taken

    assert asked(np.zeros(100, dtype=np.int64)) == asked(np.full(100, 9_999)) == [100] * 3


def test_a_word_at_a_threshold_is_settled() -> None:
    level = _level(0, 60)

    class Given(SimulatedWords):
        def __init__(self, first: int) -> None:
            super().__init__(3)
            self.first: list[int] = [first]

        def take(self, count: int) -> np.ndarray:
            return np.array([self.first.pop()], dtype=np.uint64) if self.first else super().take(count)

    # key 1 2^60 + T of Bin(64, 1/2): 32 heads or fewer have F = .5497; the word equal to the threshold may be either side
    place = 32 + int(level.shift[1])
    threshold = int(level.keys[place]) - (1 << 60)
    found = {int(level.draw(Given(threshold << 4), np.array([1]))[0]) for _ in range(3)}
    assert found <= {32, 33}
    assert int(level.draw(Given((threshold - 1) << 4), np.array([1]))[0]) == 32
    assert int(level.draw(Given((threshold + 1) << 4), np.array([1]))[0]) == 33


# The lattice law -----------------------------------------------------------------------------------------------------


def lattice_pmf(a: float, d: int, reach: int, zeta: float = 0.0) -> np.ndarray:
    """The law on [-reach, reach]^d by the FFT of its characteristic function on a torus so large that nothing wraps."""
    side = 4096 if d == 1 else 512
    v = a * (2 - 2 * np.cos(2 * np.pi * np.arange(side) / side))
    grid = v if d == 1 else v[:, None] + v[None, :]
    pmf = np.fft.fftshift(np.real(np.fft.fftn((1 + zeta * grid) / (1 + grid))) / side**d)
    middle = slice(side // 2 - reach, side // 2 + reach + 1)
    return np.asarray(pmf[(middle,) * d])


def geometric_ratio(a: float) -> float:
    """q with q / (1 - q)^2 = a."""
    return (1 + 2 * a - sqrt(1 + 4 * a)) / (2 * a)


@pytest.mark.parametrize("a", [Fraction(1, 10), Fraction(1, 2), 3, 50])
def test_one_dimension_is_the_double_geometric_law(a: Fraction) -> None:
    q = geometric_ratio(float(a))
    k = np.arange(-60, 61)
    pmf = (1 - q) / (1 + q) * q ** np.abs(k)
    np.testing.assert_allclose(pmf, lattice_pmf(float(a), 1, 60), atol=1e-12)
    draws = lattice_laplace(SimulatedWords(60), a, 1, ROWS)
    assert chi_square(draws, 60, pmf) > ALARM
    # exactly PureDP(log(1/q)) for a shift of 1: the ratio of neighbouring probabilities is never above 1/q
    ratio = pmf[1:] / pmf[:-1]
    assert max(ratio.max(), (1 / ratio).max()) == pytest.approx(1 / q)


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("zeta", [0, Fraction(1, 5)])
@pytest.mark.parametrize("a", [Fraction(1, 2), 2])
def test_two_dimensions_against_the_transform(a: Fraction, zeta: Fraction, forced: bool) -> None:
    options: dict[str, Any] = {"law": StandardLaw("exponential", place_bits=4), "bits": 4} if forced else {}
    draws = lattice_laplace(SimulatedWords(61), a, 2, 20_000 if forced else ROWS, zeta, **options)
    assert chi_square(draws, 12, lattice_pmf(float(a), 2, 12, float(zeta))) > ALARM


def test_pairs_of_more_dimensions_have_the_law_of_two() -> None:
    """d = 5 walks in 8 dimensions of which 3 are dropped: every pair has the law of d = 2, from either side of the tree."""
    draws = lattice_laplace(SimulatedWords(62), 2, 5, ROWS)
    pmf = lattice_pmf(2, 2, 12)
    for pair in ((0, 1), (1, 2), (3, 4), (0, 4)):
        assert chi_square(draws[:, pair], 12, pmf) > ALARM


@pytest.mark.parametrize("wrong", ["own W for each coordinate", "a too large by a tenth", "steps shared unfairly"])
def test_mutants_of_the_lattice_law_are_rejected(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = SimulatedWords(63)
    match wrong:
        case "own W for each coordinate":
            draws = np.concatenate([lattice_laplace(words, 2, 1, ROWS) for _ in range(2)], axis=1)
        case "a too large by a tenth":
            draws = lattice_laplace(words, 2.2, 2, ROWS)
        case _:
            monkeypatch.setattr("confide.noise.symmetric_laplace._half", lambda words, steps, bound, bits: steps // 2)
            draws = lattice_laplace(words, 2, 2, ROWS)
    assert chi_square(draws, 12, lattice_pmf(2, 2, 12)) < ALARM


@pytest.mark.parametrize(("a", "d"), [(1250, 1), (50, 3), (5000, 2)])
def test_large_lattices_by_their_transform_and_variance(a: int, d: int) -> None:
    draws = lattice_laplace(SimulatedWords(64), a, d, ROWS)
    # t of about 1 / sd, where 2 - 2 cos t is t^2 up to 10^-4 of it
    assert cf_p_value(draws, [sqrt(2 * a)] * d) > ALARM
    assert np.abs(draws.var(axis=0) / (2 * a) - 1).max() < 6.5 * sqrt(5 / ROWS)


@pytest.mark.parametrize(("part", "holds"), [(Fraction(1, 5), True), (1, False), (Fraction(1, 25), False)])
def test_the_lattice_law_in_two_parts(part: Fraction, holds: bool) -> None:
    first = lattice_laplace(SimulatedWords(65), 2, 2, ROWS, Fraction(1, 5))
    total = first + lattice_laplace(SimulatedWords(66), 2 * part, 2, ROWS)
    assert (chi_square(total, 12, lattice_pmf(2, 2, 12)) > ALARM) == holds


def test_the_continuous_trade_off_is_no_bound_on_the_lattice() -> None:
    """d = 2, a = 2, shift (1, 0) has delta(.8) = .0508, above the .0410 of the continuous law at the same c = .5."""
    side = 1024
    v = 2.0 * (2 - 2 * np.cos(2 * np.pi * np.arange(side) / side))
    pmf = np.real(np.fft.fft2(1 / (1 + v[:, None] + v[None, :]))) / side**2
    delta = np.maximum(pmf - np.exp(0.8) * np.roll(pmf, 1, axis=0), 0).sum()
    assert delta == pytest.approx(0.0508, abs=1e-4)


def test_steps_are_geometric() -> None:
    for mean in (Fraction(1, 50), Fraction(7, 3), Fraction(1000)):
        for law in (standard_law("exponential"), StandardLaw("exponential", place_bits=3)):
            size = 20_000
            steps = _geometric(SimulatedWords(67), mean, size, law)
            top = 200 if mean == 1000 else 20  # width 20 slots for the largest mean
            slots = steps // 20 if mean == 1000 else steps
            ratio = float(mean / (1 + mean)) ** (20 if mean == 1000 else 1)
            due = size * (1 - ratio) * ratio ** np.arange(top)
            kept = due >= 20
            seen = np.bincount(slots, minlength=top)[:top][kept]
            rest = size - due[kept].sum()
            statistic = ((seen - due[kept]) ** 2 / due[kept]).sum() + (size - seen.sum() - rest) ** 2 / max(rest, 1)
            assert special.chdtrc(kept.sum(), statistic) > ALARM


def test_logarithms_are_between_their_bounds() -> None:
    with mpmath.workdps(120):
        for x in (
            Fraction(2),
            Fraction(3, 2),
            1 + Fraction(1, 10**9),
            Fraction(10**40),
            Fraction(355, 113),
            Fraction(2**70 - 1, 2**70 - 2),
        ):
            low, high = log_bounds(x, 256)
            exact = mpmath.log(mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** 256
            assert low <= exact <= high
            assert high - low <= 4


def test_rows_are_fast() -> None:
    """CPU time; .02 and .4 s on the machine they were written on, after the tables are made."""
    words = SimulatedWords(70)
    for draw, most in (
        (lambda: lattice_laplace(words, 1250, 1, 100_000), 0.5),
        (lambda: lattice_laplace(words, 1250, 10, 100_000), 5.0),
    ):
        draw()
        quick(most, draw)


@pytest.mark.parametrize(
    "call",
    [
        lambda w: lattice_laplace(w, 0, 1, 3),
        lambda w: lattice_laplace(w, float("inf"), 1, 3),
        lambda w: lattice_laplace(w, 2**19 + 1, 1, 3),
        lambda w: lattice_laplace(w, 2**17 + 1, 3, 3),
        lambda w: lattice_laplace(w, 1, 0, 3),
        lambda w: lattice_laplace(w, 1, 1.5, 3),
        lambda w: lattice_laplace(w, 1, 1, 3, 1),
    ],
)
def test_impossible_arguments(call: Any) -> None:
    with refuses(PrivacyError):
        call(SimulatedWords(1))
