"""Cauchy noise on the integers: its law against the ideal one, any scale, and draws that need more digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.messages import refuses

from confide.errors import PrivacyError
from confide.noise import SimulatedNoise, integers


@pytest.mark.parametrize("scale", [Fraction(3, 7), 5, Fraction(1, 3)])
def test_small_scales_have_the_law_of_a_rounded_cauchy(scale: Fraction) -> None:
    draws = SimulatedNoise(1).grid_cauchy(scale, 20_000)
    edges = np.arange(-12, 14) - 0.5
    cdf = stats.cauchy.cdf(edges / float(scale))
    expected = np.r_[cdf[0], np.diff(cdf), 1 - cdf[-1]] * 20_000
    seen = np.bincount(np.clip([int(v) + 13 for v in draws], 0, 26), minlength=27)
    # beyond this once in 10^6
    assert stats.chisquare(seen, expected).statistic < stats.chi2.isf(1e-6, 26)


@pytest.mark.parametrize("scale", [10**6, 2**56, Fraction(10**25, 3**20)])
def test_large_scales_have_the_law_of_a_cauchy(scale: Fraction) -> None:
    draws = SimulatedNoise(2).grid_cauchy(scale, 10_000)
    assert stats.kstest([float(v / scale) for v in draws], "cauchy").pvalue > 1e-6
    assert all(isinstance(v, int) for v in draws)


def test_one_scale_for_each_draw() -> None:
    draws = SimulatedNoise(3).grid_cauchy([1, 10**9] * 500, 1_000)
    sizes = np.abs(np.array([float(v) for v in draws])).reshape(500, 2)
    assert np.median(sizes[:, 0]) <= 2 and 10**8 < np.median(sizes[:, 1]) < 10**10


class Given:
    """Words that are handed out in turn."""

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def take(self, count: int) -> np.ndarray:
        assert count <= len(self._words), "more digits than were given"
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.uint64)

    @property
    def left(self) -> int:
        return len(self._words)


def test_a_draw_that_192_digits_do_not_settle_takes_more() -> None:
    """Y begins with 192 zeros: nothing is known of X/Y then. X = 2^-1, Y = 2^-193, at scale 1/2: 2^191, and the sign."""
    zero, half = 0, 1 << 63
    x, y, more_x, more_y = (half, zero, zero), (zero,) * 3, (zero,) * 3, (half, zero, zero)
    words = Given(*x, *y, *more_x, *more_y, *(zero,) * 6, 1)
    assert integers._one(words, 1, 2) == 2**191 and words.left == 0  # type: ignore[arg-type]
    # half a step: X = 3/8, Y = 3/4 in all digits drawn, which rounds to 0 or 1 as the next digits say
    x, y = (3 << 61, zero, zero), (3 << 62, zero, zero)
    up = Given(*x, *y, half, zero, zero, zero, zero, zero, 1)
    down = Given(*x, *y, zero, zero, zero, half, zero, zero, 1)
    assert integers._one(up, 1, 1) == 1 and integers._one(down, 1, 1) == 0  # type: ignore[arg-type]


def test_points_outside_the_disc_are_thrown_away() -> None:
    most = (1 << 64) - 1
    words = Given(*(most,) * 6, 1 << 62, 0, 0, 1 << 63, 0, 0, 0)
    assert integers._one(words, 10, 1) == -5 and words.left == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1, float("nan"), "3", None])
def test_a_scale_that_is_none(bad: object) -> None:
    with refuses(PrivacyError):
        SimulatedNoise(1).grid_cauchy(bad, 3)
