"""The rounded multivariate Laplace: characteristic functions, joint laws at small scales, forced settlement, mutants."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats
from tests.few import few
from tests.messages import refuses
from tests.noise.multivariate_laws import ALARM, cf_p_value, chi_square
from tests.pace import quick

from confide.errors import PrivacyError
from confide.noise import SecureNoise, SimulatedNoise
from confide.noise.integers import LazyUniform
from confide.noise.standard import Draws, SimulatedWords, StandardLaw, standard_law
from confide.noise.symmetric_laplace import _Block, symmetric_laplace, zero_inflated_laplace

ROWS = 200_000
LAM = {1: [300], 2: [300, 100], 6: [300, 100, 250, 400, 120, Fraction(601, 2)]}
TENTH = Fraction(1, 10)


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


@pytest.mark.parametrize("bits", few([64, 12], 1))
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
        monkeypatch.setattr("confide.noise.symmetric_laplace._gap", lambda law: 2.0**-200)
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


def test_both_sources_offer_the_laws() -> None:
    for noise in (SecureNoise(), SimulatedNoise(3)):
        assert noise.symmetric_laplace([10**6, 50.5], 4).shape == (4, 2)
        assert noise.zero_inflated_laplace([10**6, 50.5], TENTH, 4).shape == (4, 2)
        assert noise.lattice_laplace(50, 3, 4, TENTH).shape == (4, 3)
    one, other = (SimulatedNoise(3).symmetric_laplace([10**6], 50) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert (one != SecureNoise().symmetric_laplace([10**6], 50)).any()


def test_rows_are_fast() -> None:
    """CPU time; .05 s on the machine it was written on."""
    words = SimulatedWords(70)
    quick(1.5, lambda: symmetric_laplace(words, [1e6, 1e3], 500_000))


@pytest.mark.parametrize(
    "call",
    [
        lambda w: symmetric_laplace(w, [], 3),
        lambda w: symmetric_laplace(w, 3, 3),
        lambda w: symmetric_laplace(w, "12", 3),
        lambda w: symmetric_laplace(w, [[1]], 3),
        lambda w: symmetric_laplace(w, [1, 0], 3),
        lambda w: symmetric_laplace(w, [1, -2.0], 3),
        lambda w: symmetric_laplace(w, [1, float("nan")], 3),
        lambda w: symmetric_laplace(w, [1, None], 3),
        lambda w: symmetric_laplace(w, [2**57], 3),
        lambda w: symmetric_laplace(w, [1], -1),
        lambda w: symmetric_laplace(w, [1], 1.0),
        lambda w: zero_inflated_laplace(w, [1], 1, 3),
        lambda w: zero_inflated_laplace(w, [1], -0.1, 3),
        lambda w: zero_inflated_laplace(w, [1], "0", 3),
    ],
)
def test_impossible_arguments(call: Any) -> None:
    with refuses(PrivacyError):
        call(SimulatedWords(1))
