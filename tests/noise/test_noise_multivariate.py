"""Multivariate Laplace laws: characteristic functions, joint laws at small scales, forced settlement, mutants, the lattice law."""

from __future__ import annotations

import time
from fractions import Fraction
from math import comb, isqrt, sqrt
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

from confide.errors import PrivacyError
from confide.noise.halving import BinomialTable, _level, _ones, halves
from confide.noise.lattice import _geometric, lattice_laplace, log_bounds
from confide.noise.multivariate import _Block, symmetric_laplace, zero_inflated_laplace
from confide.noise.standard import Draws, StandardLaw, standard_law
from confide.noise.uniform import LazyUniform
from confide.noise.words import SimulatedWords

# Fixed beforehand: a p-value below this fails. Some 60 statistical tests, hence a false alarm in 10^7 runs.
ALARM = 1e-9
ROWS = 200_000
LAM = {1: [300], 2: [300, 100], 6: [300, 100, 250, 400, 120, Fraction(601, 2)]}
TENTH = Fraction(1, 10)


def characteristic(t: np.ndarray, lam: Any, zeta: float = 0.0) -> np.ndarray:
    half = ((t * np.array([float(v) for v in lam])) ** 2).sum(axis=1) / 2
    return (1 + zeta * half) / (1 + half)


def cf_p_value(draws: np.ndarray, lam: Any, zeta: float = 0.0) -> float:
    """20 random frequencies of about 1 / lam: the worst standardised difference, Bonferroni. Rounding moves it by 10^-5."""
    generator = np.random.default_rng(20)
    t = generator.normal(size=(20, draws.shape[1])) / np.array([float(v) for v in lam])
    due = characteristic(t, lam, zeta)
    spread = np.sqrt(((1 + characteristic(2 * t, lam, zeta)) / 2 - due**2) / len(draws))
    angles = draws @ t.T
    worst = np.abs((np.cos(angles).mean(axis=0) - due) / spread).max()
    # the law is symmetric: the sines must vanish
    sines = np.sqrt((1 - characteristic(2 * t, lam, zeta)) / 2 / len(draws))
    worst = max(worst, np.abs(np.sin(angles).mean(axis=0) / sines).max())
    return float(min(1.0, 80 * special.ndtr(-worst)))


def chi_square(draws: np.ndarray, reach: int, pmf: np.ndarray) -> float:
    """Joint chi-square on the cells of [-reach, reach]^d with 20 expected or more, all others together; pmf of that shape."""
    d = draws.shape[1]
    inside = (np.abs(draws) <= reach).all(axis=1)
    cells = np.ravel_multi_index(tuple((draws[inside] + reach).T), (2 * reach + 1,) * d)
    counts, due = np.bincount(cells, minlength=pmf.size), len(draws) * pmf.ravel()
    kept = due >= 20
    seen, expected = counts[kept].astype(float), due[kept]
    rest = len(draws) - expected.sum()
    if rest >= 20:
        seen, expected = np.append(seen, len(draws) - seen.sum()), np.append(expected, rest)
    return float(special.chdtrc(len(seen) - (rest >= 20), ((seen - expected) ** 2 / expected).sum()))


def rounded_pmf(lam: list[float], reach: int) -> np.ndarray:
    """P(round(sqrt(W) lam N) = k) on [-reach, reach]^2 by quadrature over W = v^2."""
    edges = np.arange(-reach, reach + 2) - 0.5

    def at(v: float) -> np.ndarray:
        parts = [np.diff(special.ndtr(edges / (v * scale))) for scale in lam]
        return np.outer(*parts) * 2 * v * np.exp(-v * v)

    return np.asarray(integrate.quad_vec(at, 0, 7, epsabs=1e-9)[0])


def laws(bits: int | None) -> dict[str, StandardLaw]:
    if bits is None:
        return {}
    return {
        "radius": StandardLaw("exponential", place_bits=bits),
        "normal": StandardLaw("half normal", place_bits=bits),
    }


# The rounded continuous law ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", LAM)
def test_characteristic_functions(d: int) -> None:
    lam = LAM[d]
    draws = symmetric_laplace(SimulatedWords(d), lam, ROWS)
    assert draws.dtype == np.int64
    assert cf_p_value(draws, lam) > ALARM
    inflated = zero_inflated_laplace(SimulatedWords(10 + d), lam, TENTH, ROWS)
    assert cf_p_value(inflated, lam, 0.1) > ALARM
    # covariance: variances have kurtosis 6, products E S1^2 S2^2 = 2 lam1^2 lam2^2
    sizes = np.array([float(v) for v in lam])
    second = (draws / sizes).T @ (draws / sizes) / ROWS
    spread = np.sqrt(np.where(np.eye(d) > 0, 5.0, 2.0) / ROWS)
    assert np.abs((second - np.eye(d)) / spread).max() < 6.5


@pytest.mark.parametrize(
    "wrong", ["own W for each coordinate", "lam too small by 3 %", "no W", "lam squared over", "W twice"]
)
def test_mutants_of_the_law_are_rejected(wrong: str) -> None:
    lam = LAM[2]
    words, generator = SimulatedWords(5), np.random.default_rng(5)
    normal = generator.normal(size=(ROWS, 2)) * np.array(lam)
    match wrong:
        case "own W for each coordinate":
            draws = np.concatenate([symmetric_laplace(words, [v], ROWS) for v in lam], axis=1)
        case "lam too small by 3 %":
            draws = symmetric_laplace(words, [0.97 * v for v in lam], ROWS)
        case "no W":
            draws = np.rint(normal)
        case "lam squared over":
            draws = symmetric_laplace(words, lam[::-1], ROWS)
        case _:
            draws = np.rint(normal * generator.exponential(size=(ROWS, 1)) / sqrt(2))
    assert cf_p_value(draws, lam) < ALARM


@pytest.mark.parametrize("bits", [None, 6, 2])
def test_the_joint_law_at_small_scales_also_when_nearly_all_is_settled(bits: int | None) -> None:
    """With 6 or 2 known digits of 64 most coordinates need more, of W for both coordinates together."""
    size = ROWS if bits is None else 40_000
    draws = symmetric_laplace(SimulatedWords(30), [Fraction(3, 2), 0.75], size, **laws(bits))
    assert chi_square(draws, 6, rounded_pmf([1.5, 0.75], 6)) > ALARM


def test_the_joint_law_rejects_a_w_for_each_coordinate() -> None:
    draws = np.concatenate(
        [symmetric_laplace(SimulatedWords(s), [v], 40_000) for s, v in ((1, 1.5), (2, 0.75))], axis=1
    )
    assert chi_square(draws, 6, rounded_pmf([1.5, 0.75], 6)) < ALARM


def test_projections_are_laplace() -> None:
    lam, generator = LAM[6], np.random.default_rng(2)
    draws = symmetric_laplace(SimulatedWords(31), [1000 * v for v in lam], ROWS)
    for _ in range(4):
        a = generator.normal(size=6)
        scale = sqrt(sum((x * 1000 * float(v)) ** 2 for x, v in zip(a, lam, strict=True)) / 2)
        assert stats.kstest(draws @ a, stats.laplace(scale=scale).cdf).pvalue > ALARM


@pytest.mark.parametrize("lam", [1, 10**6, 2**40])
def test_floats_decide_only_what_integers_confirm(lam: int) -> None:
    """Every coordinate again in integers: the same number wherever float64 decided."""
    words, d, count = SimulatedWords(33), 2, 5_000
    radius, normal = standard_law("exponential"), standard_law("half normal")
    squares, normals = radius.draw(words, count), normal.draw(words, d * count)
    block = _Block(squares, normals, [Fraction(lam), Fraction(lam, 3)], radius, normal)
    values = np.abs(block.rounded(words)).ravel()
    exact = [
        block._settled(words, LazyUniform(words, *squares.digits(i // d, 64)), i)
        for i in range(d * count)
    ]  # fmt: skip
    # at 2^40 steps one coordinate in 2^8 is settled, each time from digits of its own here: one step apart at most
    differing = np.abs(values - np.array(exact))
    assert (differing > 0).sum() <= (0 if lam < 2**40 else 20)
    assert differing.max() <= 1


@pytest.mark.parametrize("bits", [64, 12])
def test_magnitudes_are_within_their_margins(bits: int) -> None:
    """10^5 coordinates against integers: both ends of what their known digits allow lie within the margin of the float."""
    words, count = SimulatedWords(37), 25_000
    radius, normal = (StandardLaw(kind, place_bits=bits) for kind in ("exponential", "half normal"))
    squares, normals = radius.draw(words, count), normal.draw(words, 2 * count)
    # the smallest W and N there are, by hand
    squares.cells[:8], squares.places[:8] = (
        0,
        np.uint64(1) << np.arange(64 - bits, 64, max(bits // 8, 1), dtype=np.uint64)[:8],
    )
    normals.cells[:4], normals.places[:4] = 0, 0
    lam = [Fraction(10**7, 3), Fraction(1, 7)]
    shifted, margin = _Block(squares, normals, lam, radius, normal).bounded()
    for index, (value, slack) in enumerate(zip(shifted.ravel().tolist(), margin.ravel().tolist(), strict=True)):
        row, column = divmod(index, 2)
        if row in squares.settled or index in normals.settled:
            continue
        (square, length), (size, own) = squares.digits(row, bits), normals.digits(index, bits)
        for end in (0, 1):
            # (lam 2^80)^2 W N^2 with 16 W and 16 N at the ends of their intervals; the root's floor is off by 2^-80 lam at most
            exact = isqrt(((square + end) * (size + end) ** 2 << 160 - 12) >> (length + 2 * own))
            assert (
                abs(lam[column] * exact / 2**80 + Fraction(1, 2) - Fraction(value))
                <= Fraction(slack) + lam[column] / 2**80
            )


@pytest.mark.parametrize("faulty", [False, True])
def test_floats_that_decide_what_they_cannot_know_are_found_out(faulty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: no margin for unknown digits. With 3 known ones of 64 a whole 1/128 of the normals then ends at 0."""
    if faulty:
        monkeypatch.setattr("confide.noise.multivariate._gap", lambda law: 2.0**-200)
    draws = symmetric_laplace(SimulatedWords(35), [2000], 10_000, **laws(3))
    p_value = stats.binomtest(int((draws == 0).sum()), 10_000, -np.expm1(-sqrt(2) / 4000)).pvalue
    assert (p_value < ALARM) == faulty


def test_settled_coordinates_of_a_row_share_the_digits_of_w() -> None:
    """Two equal normals and one W of which 8 digits are known: the two must come out alike to all the digits of the normals."""

    def draws(places: list[int]) -> Draws:
        size = len(places)
        return Draws(
            np.full(size, 16, dtype=np.uint64), np.array(places, dtype=np.uint64), np.zeros(size, dtype=np.bool_), {}
        )

    radius, normal = StandardLaw("exponential", place_bits=8), standard_law("half normal")
    lam = Fraction(2**50)
    block = _Block(draws([5 << 56]), draws([1 << 63, 1 << 63]), [lam, lam], radius, normal)
    for seed in range(5):
        one, other = block.rounded(SimulatedWords(seed))[0].tolist()
        assert abs(one - other) <= 2
        # and the digits that were drawn are there
        assert 0 < one / 2**50 - 16.5 / 16 * sqrt(1 + 5 / 2**12) < 2**-12


def test_largest_scales_and_sizes() -> None:
    draws = symmetric_laplace(SimulatedWords(36), [2.0**55, Fraction(1, 10**300)], 300)
    assert 2**53 < np.abs(draws[:, 0]).mean() < 2**57
    assert not draws[:, 1].any()
    assert symmetric_laplace(SimulatedWords(1), [3, 4, 5], 0).shape == (0, 3)
    assert symmetric_laplace(SimulatedWords(1), np.full(20_000, 7.0), 2).shape == (2, 20_000)


# Zero inflation ------------------------------------------------------------------------------------------------------


def test_zero_rows_have_their_share_and_the_same_words_are_taken_whatever_it_is() -> None:
    def asked(zeta: object) -> tuple[list[int], np.ndarray]:
        words, taken = SimulatedWords(40), []
        take = words.take
        words.take = lambda count: (taken.append(count), take(count))[1]  # type: ignore[method-assign]
        return taken, zero_inflated_laplace(words, [1e6, 1e7], zeta, 50_000)

    (none, full), (some, part), (most, little) = asked(0), asked(Fraction(1, 3)), asked(0.999)
    assert none == some == most
    assert full.all()
    empty = ~part.any(axis=1)
    assert stats.binomtest(int(empty.sum()), 50_000, 1 / 3).pvalue > ALARM
    np.testing.assert_array_equal(part[~empty], full[~empty])
    assert little.any(axis=1).sum() < 150


@pytest.mark.parametrize(("factor", "holds"), [(sqrt(0.1), True), (1.0, False), (0.1, False)])
def test_noise_in_two_parts_adds_up(factor: float, holds: bool) -> None:
    """Zero-inflated plus covariance zeta lam^2 is the whole; covariance lam^2 or zeta^2 lam^2 is not."""
    lam = [3000, 1000]
    first = zero_inflated_laplace(SimulatedWords(41), lam, TENTH, ROWS)
    total = first + symmetric_laplace(SimulatedWords(42), [factor * v for v in lam], ROWS)
    assert (cf_p_value(total, lam) > ALARM) == holds


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
            monkeypatch.setattr("confide.noise.lattice._half", lambda words, steps, bound, bits: steps // 2)
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
    """CPU time; .1, .01 and .6 s on the machine they were written on, after the tables are made."""
    words = SimulatedWords(70)
    for draw, most in (
        (lambda: symmetric_laplace(words, [1e6, 1e3], 500_000), 1.5),
        (lambda: lattice_laplace(words, 1250, 1, 100_000), 0.5),
        (lambda: lattice_laplace(words, 1250, 10, 100_000), 5.0),
    ):
        draw()
        start = time.process_time()
        draw()
        assert time.process_time() - start < most


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda w: symmetric_laplace(w, [], 3), "lam"),
        (lambda w: symmetric_laplace(w, 3, 3), "lam"),
        (lambda w: symmetric_laplace(w, "12", 3), "lam"),
        (lambda w: symmetric_laplace(w, [[1]], 3), "lam"),
        (lambda w: symmetric_laplace(w, [1, 0], 3), "lam"),
        (lambda w: symmetric_laplace(w, [1, -2.0], 3), "lam"),
        (lambda w: symmetric_laplace(w, [1, float("nan")], 3), "lam"),
        (lambda w: symmetric_laplace(w, [1, None], 3), "lam"),
        (lambda w: symmetric_laplace(w, [2**57], 3), "lam"),
        (lambda w: symmetric_laplace(w, [1], -1), "rows"),
        (lambda w: symmetric_laplace(w, [1], 1.0), "rows"),
        (lambda w: zero_inflated_laplace(w, [1], 1, 3), "zeta"),
        (lambda w: zero_inflated_laplace(w, [1], -0.1, 3), "zeta"),
        (lambda w: zero_inflated_laplace(w, [1], "0", 3), "zeta"),
        (lambda w: lattice_laplace(w, 0, 1, 3), "a is"),
        (lambda w: lattice_laplace(w, float("inf"), 1, 3), "a is"),
        (lambda w: lattice_laplace(w, 2**19 + 1, 1, 3), "a is"),
        (lambda w: lattice_laplace(w, 2**17 + 1, 3, 3), "a is"),
        (lambda w: lattice_laplace(w, 1, 0, 3), "d is"),
        (lambda w: lattice_laplace(w, 1, 1.5, 3), "d is"),
        (lambda w: lattice_laplace(w, 1, 1, 3, 1), "zeta"),
    ],
)
def test_impossible_arguments(call: Any, named: str) -> None:
    with pytest.raises(PrivacyError, match=named):
        call(SimulatedWords(1))
