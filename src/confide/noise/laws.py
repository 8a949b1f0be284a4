"""The rounded Gaussian: which integers the sampler needs for a scale, and the variance that inference needs.

The half line is cut into cells of width w = 2^k, sigma/w in [16, 32). A try picks cell c with probability proportional
to the density at its left end and a uniform place r in it, and is accepted with probability e^(-A r (r + 2c)), where
A = w^2 / (2 sigma^2). Everything here is a public function of sigma^2 alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational, Real

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError
from confide.noise.exponential import exp_bounds

__all__ = ["CellTable", "GaussianLaw", "exact_variance", "gaussian_law", "variance"]

IntArray = npt.NDArray[np.int64]

# scale < 2^57, so k <= 52: a draw leaves int64 only from cell 2^11 on, whose probability is below e^-2048.
MAX_SCALE_BITS = 57
TABLE_BITS = 192
GUIDE_BITS = 12
UNDECIDED = -1


def exact_variance(sigma2: object) -> Fraction:
    """`sigma2` as the exact positive rational that it is; int, Fraction and float are taken at their exact value.

    Errors: PrivacyError when it is not a positive finite number, or its square root is 2^57 steps or more.

    >>> exact_variance(0.1) == Fraction(0.1)
    True
    """
    value = _exact(sigma2)
    if value is None or value <= 0:
        raise PrivacyError(
            f"sigma2 is {_described(sigma2, value)}, but the variance of the noise, in squared grid steps, must be a "
            "positive finite number: an int, a float or a fractions.Fraction, as in grid_gaussian(Fraction(9, 4), 100)."
        )
    if value >= 4**MAX_SCALE_BITS:
        raise PrivacyError(
            f"sigma2 is at least 2^{_floor_log2(value)} squared grid steps, but it must be below "
            f"2^{2 * MAX_SCALE_BITS} for the noise to fit 64-bit integers: use fewer grid steps."
        )
    return value


def _exact(number: object) -> Fraction | None:
    if isinstance(number, bool | np.bool_):
        return None
    if isinstance(number, Integral):
        return Fraction(int(number))
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    if isinstance(number, Real):
        nearest = float(number)
        # A wider float that a double cannot hold, and nan, differ from `nearest`.
        return Fraction(nearest) if math.isfinite(nearest) and nearest == number else None
    return None


def _described(sigma2: object, value: Fraction | None) -> str:
    """What was given, short even where its digits or its elements would fill a page."""
    if isinstance(sigma2, float):
        return repr(float(sigma2))
    if value is None:
        return f"a {type(sigma2).__name__}"
    return "0" if value == 0 else "negative"


def variance(sigma2: object) -> float:
    """The variance of N(0, sigma2) rounded to the nearest integer, in squared grid steps.

    sigma2 + 1/12 plus a series that is below 2e-8 from sigma = 1 on.
    Errors: PrivacyError, as `SecureNoise.grid_gaussian`.

    >>> round(variance(1), 9)
    1.083333322
    """
    exact = exact_variance(sigma2)
    if exact < Fraction(1, 4):
        return _variance_by_tails(math.sqrt(exact))
    four_s = 4 * math.pi**2 * float(exact)
    # From sigma = 1/2 on the terms fall faster than e^(-4.9 j^2): the fourth is below 1e-33.
    series = sum((-1) ** j * (1 / j**2 + four_s) * math.exp(-four_s * j * j / 2) for j in (1, 2, 3))
    return float(exact + Fraction(1, 12)) + series / math.pi**2


def _variance_by_tails(sigma: float) -> float:
    """The sum of (2k - 1) P(|X| >= k - 1/2): for small sigma, where the series cancels against sigma2 + 1/12."""
    # Below sigma = 1/2 what follows k = 5 is below 1e-22 of the first term.
    reach = 1 / (sigma * math.sqrt(2)) if sigma > 1e-9 else math.inf
    return sum((2 * k - 1) * math.erfc((k - 0.5) * reach) for k in (5, 4, 3, 2, 1))


class CellTable:
    """The cumulative probabilities F(c) of the cells, each between two integers over 2^bits.

    P(c) = e^(-A c^2) / Z, by P(c+1) = P(c) e^(-A) (e^(-2A))^c with every product rounded outwards.
    """

    def __init__(self, rate: Fraction, bits: int) -> None:
        self.bits = bits
        self._one = 1 << bits
        ratio = exp_bounds(rate, bits)
        shrink = exp_bounds(2 * rate, bits)
        weight = (self._one, self._one)
        sums = [weight]
        # Until the tail is a few units; weights of high end 1 or 2 can stick there, so the stop is well above.
        while weight[1] > 1 << 16:
            weight, ratio = self._product(weight, ratio), self._product(ratio, shrink)
            sums.append((sums[-1][0] + weight[0], sums[-1][1] + weight[1]))
        # What is left out: at most weight * (ratio + ratio^2 + ...), as the ratios fall.
        tail = -(-weight[1] * ratio[1] // (self._one - ratio[1]))
        total_low, total_high = sums[-1][0], sums[-1][1] + tail
        self.low = [(low << bits) // total_high for low, _ in sums]
        self.high = [min(self._one, -((-high << bits) // total_low)) for _, high in sums]

    def _product(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] * b[0] >> self.bits, -(-a[1] * b[1] >> self.bits)

    def thresholds(self, bits: int) -> list[int] | None:
        """T_c = floor(2^bits F(c)) up to the first that is 2^bits - 1; None when some F(c) is not known well enough."""
        found: list[int] = []
        for low, high in zip(self.low, self.high, strict=True):
            threshold = low >> (self.bits - bits)
            if high >> (self.bits - bits) != threshold:
                return None
            found.append(threshold)
            if threshold == (1 << bits) - 1:
                return found
        return None

    def cell(self, digits: int, length: int) -> int | None:
        """The cell of every U in [digits, digits + 1) / 2^length; None when that interval is not clear of some F(c)."""
        start, end = digits << (self.bits - length), (digits + 1) << (self.bits - length)
        c = bisect_right(self.high, start)  # F(c - 1) <= start, for certain
        if c < len(self.low) and end <= self.low[c]:
            return c
        return None


class GaussianLaw:
    """N(0, sigma2) rounded to the nearest integer, as tables for the sampler.

    `cell_bits` and `accept_bits` are how many bits of a try's first and last word decide before more are drawn. The
    law is the same for every choice; the tests choose few, so that tries that need more are common.
    """

    def __init__(self, sigma2: Fraction, *, cell_bits: int = 64, accept_bits: int = 62) -> None:
        self.sigma2 = sigma2
        self.cell_bits = cell_bits
        self.accept_bits = accept_bits
        self.shift = _floor_log2(sigma2) // 2 - 4  # k; floor(log2 sigma) = floor(floor(log2 sigma2) / 2)
        self.rate = Fraction(4) ** self.shift / (2 * sigma2)  # A, in (1/2048, 1/512]
        self.rate_float = float(self.rate)
        # The float64 e^-x is off by less than 2^-50.2 (sampler.py); allowed for are 2^-48, and one unit for its floor.
        self.margin = (1 << max(0, accept_bits - 48)) + 1
        self.thresholds = self._thresholds()
        self.guide = self._guide()
        self.magnitudes = np.array([self.magnitude(c, 0) for c in range(len(self.thresholds))], dtype=np.int64)
        for array in (self.thresholds, self.guide, self.magnitudes):
            array.flags.writeable = False

    def _thresholds(self) -> npt.NDArray[np.uint64]:
        bits = TABLE_BITS
        while (found := CellTable(self.rate, bits).thresholds(self.cell_bits)) is None:
            bits += 64
        return np.array(found, dtype=np.uint64)

    def _guide(self) -> IntArray:
        """For each value of the cell word's top 12 bits: the cell, or `UNDECIDED` if a threshold starts with them."""
        starts = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(self.cell_bits - GUIDE_BITS)
        guide = np.searchsorted(self.thresholds, starts, side="right").astype(np.int64)
        guide[(self.thresholds >> np.uint64(self.cell_bits - GUIDE_BITS)).astype(np.int64)] = UNDECIDED
        return guide

    def magnitude(self, cell: int, place: int) -> int:
        """|y| = (cell + place / 2^64) 2^k rounded to the nearest integer; ties have probability 0."""
        k = self.shift
        if k < 0:
            return (cell + (1 << (-k - 1))) >> -k
        return (cell << k) + (((place >> (63 - k)) + 1) >> 1)

    def settle_cell(self, digits: int, length: int) -> int | None:
        """The cell that `length` binary digits of a uniform decide, or None when they do not."""
        return _cell_table(self.rate, length + 128).cell(digits, length)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


@lru_cache(maxsize=16)
def _cell_table(rate: Fraction, bits: int) -> CellTable:
    return CellTable(rate, bits)


@lru_cache(maxsize=256)
def gaussian_law(sigma2: Fraction) -> GaussianLaw:
    """The tables for `sigma2` (exact, see `exact_variance`), about 40 kB, kept for the next draw of the same scale."""
    return GaussianLaw(sigma2)
