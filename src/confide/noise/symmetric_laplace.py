"""The symmetric Laplace on the integer lattice: a random walk in d dimensions that runs for one exponential time; exact.

Every coordinate steps up and down at rate a, S_j = Pois(a W) - Pois(a W), with one W for all. The number N of steps is geometric,
P(N >= n) = (m / (1 + m))^n with m = 2 a d, and each step is uniform on the 2 d directions. The characteristic function is
1 / (1 + a sum (2 - 2 cos t_j)), and the variance of a coordinate is 2 a.

The walk is drawn in D = 2^h >= d dimensions, of which the first d are kept: their law is the same, as t_j = 0 for the
others shows. The steps of a set of directions then go to its two halves by a fair coin each. So all that is needed
besides N is Bin(n, 1/2), exact in `binomial`, at every node of a binary tree down to the two directions of one
coordinate. The steps of a node with k dimensions are geometric with mean 2 a k, which bounds n in advance. So every
row takes the same words and the same look-ups.

N = floor(E / log(1 + 1/m)) for a standard exponential E, whose digits `standard.py` draws as they are asked for. In
float64 the quotient is off by at most 5 * 2^-53 of it (E twice, the logarithm twice, the quotient) and by 2^-68 /
log(1 + 1/m) for the digits that are not known. What comes nearer to an integer is settled in integers.

The symmetric multivariate Laplace rounded to the integer grid, and its zero-inflated version, by rows; exact.

S = sqrt(W) lam N, W a standard exponential (one for each row), N standard normals. Both come as standard draws of
`standard.py`: (c + r) / 16 with c and the first 64 binary digits of r known and the digits that follow uniform.
Float64 forms t = sqrt(W), n = |N| and s = lam t n with +, *, / and the square root alone, which IEEE 754 rounds
correctly. No other function of the C library is called.

The error of s, with u = 2^-53 and g = 2^-68 for the digits that are not known:
    W, |N|: c + r and its parts rounded, 2 u of each;  sqrt: half of W's, and u;  lam: u;  two products: 2 u.  Together 7 u s.
    digits: sqrt(W + g) - sqrt(W) <= g / max(t, sqrt(g)), so at most  lam g (t + (n + g) / max(t, sqrt(g)))
Allowed for are 8 u (s + 1/2), which covers the rounding of s + 1/2 too, and twice the second line. A coordinate that
comes nearer than that to a boundary of rounding, one in 2^48 for each step of its size, is settled. It compares
4 lam^2 W N^2 against the squares of odd numbers in integers, with more digits of W and of N until they decide. All
coordinates of a row see the same digits of W.

Hence the law is that of the real S rounded, exactly. What is drawn for a row, and when, never depends on whether it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError
from confide.noise.binomial import KEY_BITS, halves
from confide.noise.integers import MAX_SCALE_BITS, LazyUniform, bernoulli, described, exact_rational, whole
from confide.noise.standard import CELL_BITS, Draws, StandardLaw, Words, standard_law

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

BLOCK = 15_360  # numbers at a time


def symmetric_laplace(
    words: Words, lam: object, rows: object, *, radius: StandardLaw | None = None, normal: StandardLaw | None = None
) -> IntArray:
    """S = sqrt(W) lam N rounded to the nearest integers, one W for each row; int64, shape (rows, d), in grid steps.

    `lam`: d exact rationals above 0 and below 2^57, the standard deviation of each coordinate before rounding. Every
    projection a'S of the unrounded S is a Laplace of scale sqrt(sum (a_j lam_j)^2 / 2). `radius`, `normal`: other
    standard laws, for the tests. Guarantee: rows of integers of which one moves by at most w_j in coordinate j, each
    row with a separate draw added, have the trade-off function `confide.guarantees.symmetric_laplace(d, c)`, c =
    sqrt(sum (w_j / lam_j)^2), under substitution of one row at its place. This is exact, as x + round(S) = round(x +
    S) is post-processing of the real mechanism, and no rounding of floats enters the law. Errors: PrivacyError for
    other arguments. Source: Lu, Chen, Qiu 2025; Kotz, Kozubowski, Podgorski 2001, Chapter 5 (the law).

    >>> from confide.noise.standard import SimulatedWords
    >>> symmetric_laplace(SimulatedWords(7), [100, Fraction(5, 2)], 3).shape
    (3, 2)
    """
    scales = _checked_scales(lam)
    rows = whole(rows, "rows", "symmetric_laplace([100, 50], 3)")
    radius, normal = radius or standard_law("exponential"), normal or standard_law("half normal")
    out = np.empty((rows, len(scales)), dtype=np.int64)
    size = max(1, BLOCK // len(scales))
    for start in range(0, rows, size):
        count = min(size, rows - start)
        block = _Block(radius.draw(words, count), normal.draw(words, count * len(scales)), scales, radius, normal)
        out[start : start + count] = block.rounded(words)
    return out


def zero_inflated_laplace(
    words: Words,
    lam: object,
    zeta: object,
    rows: object,
    *,
    radius: StandardLaw | None = None,
    normal: StandardLaw | None = None,
) -> IntArray:
    """Rows of zeros with probability exactly zeta, and of `symmetric_laplace(lam)` otherwise; int64, shape (rows, d), in grid steps.

    `zeta`: an exact rational, 0 <= zeta < 1. Everything is drawn for every row, kept or not. Guarantee: as
    `symmetric_laplace`, with the trade-off function `zero_inflated(zeta, symmetric_laplace(d, c))`: a row that gets
    no noise is published as it is. So no statement without a delta of at least zeta exists. Errors: PrivacyError for
    other arguments. Source: Lu, Chen, Qiu 2025.

    >>> from confide.noise.standard import SimulatedWords
    >>> zero_inflated_laplace(SimulatedWords(7), [100, 50], Fraction(1, 10), 3).shape
    (3, 2)
    """
    share = checked_share(zeta)
    rows = whole(rows, "rows", "zero_inflated_laplace([100, 50], 0.1, 3)")
    _checked_scales(lam)  # before any word is drawn
    kept = bernoulli(words, share, rows)
    noise = symmetric_laplace(words, lam, rows, radius=radius, normal=normal)
    noise *= ~kept[:, None]
    return noise


def checked_share(zeta: object) -> Fraction:
    """zeta as the exact rational that it is, 0 <= zeta < 1; PrivacyError otherwise."""
    share = exact_rational(zeta)
    if share is None or not 0 <= share < 1:
        raise PrivacyError(
            f"zeta is {described(zeta)}. The share of rows without noise must be an int, a float or a fractions.Fraction, at least "
            "0 and below 1, as in zero_inflated_laplace([100, 50], Fraction(1, 10), 3)."
        )
    return share


def _checked_scales(lam: object) -> list[Fraction]:
    """lam as exact rationals; PrivacyError unless it is a sequence of numbers above 0 and below 2^57."""
    if not isinstance(lam, Sequence | np.ndarray) or isinstance(lam, str | bytes) or np.ndim(lam) != 1 or not len(lam):
        raise PrivacyError(
            "lam must be a sequence of one number for each column, at least one, as in symmetric_laplace([100, 50], 3)."
        )
    scales = []
    for number in lam:
        scale = exact_rational(number)
        if scale is None or not 0 < scale < 2**MAX_SCALE_BITS:
            raise PrivacyError(
                f"lam holds {described(number)}. Each standard deviation, in grid steps, must be an int, a float or a "
                f"fractions.Fraction above 0 and below 2^{MAX_SCALE_BITS}, as in symmetric_laplace([100, Fraction(5, 2)], 3): for larger "
                "noise use fewer grid steps."
            )
        scales.append(scale)
    return scales


class _Block:
    """Some rows: the standard draws behind them, and the rounding of what follows."""

    def __init__(
        self, squares: Draws, normals: Draws, scales: list[Fraction], radius: StandardLaw, normal: StandardLaw
    ) -> None:
        self.squares, self.normals, self.scales = squares, normals, scales
        self.radius, self.normal = radius, normal
        self.shape = (len(squares.cells), len(scales))

    def rounded(self, words: Words) -> IntArray:
        """The rows, int64."""
        shifted, margin = self.bounded()
        floor = np.floor(shifted)
        near = np.minimum(shifted - floor, floor + 1 - shifted) <= margin
        near.ravel()[list(self.normals.settled)] = True
        near[list(self.squares.settled)] = True
        near |= shifted > 2.0**62
        values = np.where(near, 0.0, floor).astype(np.int64)
        shared: dict[int, LazyUniform] = {}
        for row, column in np.argwhere(near).tolist():
            if row not in shared:
                shared[row] = LazyUniform(words, *self.squares.digits(row, self.radius.place_bits))
            values[row, column] = self._settled(words, shared[row], row * self.shape[1] + column)
        flip = -self.normals.negative.reshape(self.shape).view(np.int8).astype(np.int64)
        return np.asarray((values ^ flip) - flip)

    def bounded(self) -> tuple[FloatArray, FloatArray]:
        """The magnitudes before rounding, plus 1/2, and by how much each may be off."""
        lam = np.array([float(scale) for scale in self.scales])
        root = np.sqrt(_numbers(self.squares))[:, None]
        size = _numbers(self.normals).reshape(self.shape)
        shifted = lam * (root * size) + 0.5
        gap = max(_gap(self.radius), _gap(self.normal))
        margin = shifted * 2.0**-50 + (2 * gap) * lam * (root + (size + gap) / np.maximum(root, gap**0.5))
        return shifted, margin

    def _settled(self, words: Words, square: LazyUniform, index: int) -> int:
        """One magnitude in exact arithmetic: y with 2 y - 1 <= 2 lam sqrt(W) |N| < 2 y + 1."""
        scale = self.scales[index % self.shape[1]]
        normal = LazyUniform(words, *self.normals.digits(index, self.normal.place_bits))
        while True:
            # 16 W in [digits, digits + 1) / 2^length, and 16 |N| too: 4 lam^2 W N^2 = lam^2 (16 W) (16 N)^2 / 2^10
            below = scale.denominator**2 << (3 * CELL_BITS - 2 + square.length + 2 * normal.length)
            least = isqrt(scale.numerator**2 * square.digits * normal.digits**2 // below)
            most = isqrt(scale.numerator**2 * (square.digits + 1) * (normal.digits + 1) ** 2 // below)
            # a square root in [2 y - 1, 2 y + 1) has the floor 2 y - 1 or 2 y
            if (least + 1) // 2 == (most + 1) // 2:
                return _fits((least + 1) // 2)
            square.extend()
            normal.extend()


def _numbers(draws: Draws) -> FloatArray:
    """The known part of each draw, (c + r) / 16."""
    value = draws.places * 2.0**-64
    value += draws.cells
    value *= 2.0**-CELL_BITS
    return np.asarray(value)


def _gap(law: StandardLaw) -> float:
    """By how much a draw may be above its known part."""
    return float(2.0 ** -(law.place_bits + CELL_BITS))


def _fits(magnitude: int) -> int:
    if magnitude >= 2**63:
        raise PrivacyError(
            "a draw left the 64-bit integers, which happens to fewer than one draw in 10^27, independently of the data, at the largest "
            "scales only: use fewer grid steps."
        )
    return magnitude


MOST_STEPS = 1 << 20


def lattice_laplace(
    words: Words,
    a: object,
    d: object,
    rows: object,
    zeta: object = 0,
    *,
    law: StandardLaw | None = None,
    bits: int = KEY_BITS,
) -> IntArray:
    """Integer rows with characteristic function (1 + zeta v) / (1 + v), v = a sum (2 - 2 cos t_j); int64, shape (rows, d).

    `a`: an exact rational above 0; the variance of a coordinate is 2 a (1 - zeta). `zeta`: an exact rational, 0 <=
    zeta < 1, the share of rows of zeros; everything is drawn for every row, kept or not. 2 a D is at most 2^20, D the
    power of 2 from d on: coarser grids need smaller a. `law`, `bits`: for the tests. Adding an independent row of
    `lattice_laplace(zeta a, d)` gives the law of `lattice_laplace(a, d)`, exactly, on the lattice. Guarantee: d = 1
    and zeta = 0 is the double geometric law, P(k) proportional to q^|k| with q / (1 - q)^2 = a. Integers that one
    record moves by at most k are PureDP(k log(1/q)), exactly. In several dimensions the law is not spherical and
    `confide.guarantees.symmetric_laplace` is NOT a bound for it (d = 2, a = 2, shift (1, 0): delta(0.8) = 0.0508
    against 0.0410). An exact statement needs the profile of each shift. zeta > 0: no statement without a delta of at
    least zeta exists. Errors: PrivacyError for other arguments. Source: Ghosh, Roughgarden, Sundararajan 2012 (d =
    1); the walk is derived above.

    >>> from confide.noise.standard import SimulatedWords
    >>> lattice_laplace(SimulatedWords(7), Fraction(25, 2), 2, 3).shape
    (3, 2)
    """
    rate = exact_rational(a)
    d = whole(d, "d", "lattice_laplace(50, 2, 100)", least=1)
    rows = whole(rows, "rows", "lattice_laplace(50, 2, 100)")
    share = checked_share(zeta)
    height = (d - 1).bit_length()
    if rate is None or not 0 < rate * 2 ** (height + 1) <= MOST_STEPS:
        raise PrivacyError(
            f"a is {described(a)}. Half the variance, in squared grid steps, must be an int, a float or a fractions.Fraction "
            "above 0, and 2 a times the power of 2 from d on at most 2^20, as in lattice_laplace(50, 2, 100): for larger noise use "
            "fewer grid steps, or symmetric_laplace."
        )
    law = law or standard_law("exponential")
    kept = bernoulli(words, share, rows)
    out = np.empty((rows, d), dtype=np.int64)
    size = max(1, BLOCK // d)
    for start in range(0, rows, size):
        count = min(size, rows - start)
        mean = rate * 2 ** (height + 1)
        steps = _geometric(words, mean, count, law)[None, :]  # (nodes, rows)
        for level in range(height, 0, -1):
            steps = _split(words, steps, _bound(mean), bits)[: -(-d >> (level - 1))]
            mean /= 2
        out[start : start + count] = (2 * _half(words, steps, _bound(mean), bits) - steps).T
    out *= ~kept[:, None]
    return out


def _split(words: Words, steps: IntArray, bound: int, bits: int) -> IntArray:
    """The steps of the two halves of each node, side by side; shape (2 nodes, rows)."""
    first = _half(words, steps, bound, bits)
    return np.stack([first, steps - first], axis=1).reshape(-1, steps.shape[1])


def _half(words: Words, steps: IntArray, bound: int, bits: int) -> IntArray:
    return halves(words, steps.ravel(), bound, bits=bits).reshape(steps.shape)


def _bound(mean: Fraction) -> int:
    """A geometric number of this mean is above it with probability below 2^-64."""
    return int(64 * mean) + 64


def _geometric(words: Words, mean: Fraction, size: int, law: StandardLaw) -> IntArray:
    """P(N >= n) = (mean / (1 + mean))^n; int64, shape (size,)."""
    draws = law.draw(words, size)
    length = float(_nearest_log(mean))
    quotient = (draws.cells + draws.places * 2.0**-64) * 2.0**-CELL_BITS / length
    floor = np.floor(quotient)
    margin = quotient * 2.0**-50 + 2.0 ** (1 - law.place_bits - CELL_BITS) / length
    near = np.minimum(quotient - floor, floor + 1 - quotient) <= margin
    near[list(draws.settled)] = True
    steps = floor.astype(np.int64)
    for index in np.flatnonzero(near).tolist():
        steps[index] = _settled_quotient(LazyUniform(words, *draws.digits(index, law.place_bits)), mean)
    return steps


def _settled_quotient(number: LazyUniform, mean: Fraction) -> int:
    """floor(E / log(1 + 1/mean)) for the E with 16 E in [digits, digits + 1) / 2^length."""
    while True:
        bits = number.length + 64
        low, high = _log(mean, bits)
        shift = bits - CELL_BITS - number.length
        least, most = (number.digits << shift) // high, ((number.digits + 1) << shift) // low
        if least == most:
            return least
        number.extend()


@lru_cache(maxsize=64)
def _log(mean: Fraction, bits: int) -> tuple[int, int]:
    return log_bounds(1 + 1 / mean, bits)


@lru_cache(maxsize=64)
def _nearest_log(mean: Fraction) -> float:
    """The double next to log(1 + 1/mean), off by at most 2^-53 of it and a little more."""
    bits = 128 + max(mean.numerator.bit_length() - mean.denominator.bit_length(), 0)
    return float(Fraction(sum(_log(mean, bits)), 1 << (bits + 1)))


def log_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers `low <= 2^bits log(x) <= high`, x > 1 and exact; they differ by a few units more than the bits of log2(x).

    x = 2^k y, 1 <= y < 2:  log x = k log 2 + 2 atanh((y - 1) / (y + 1)),  log 2 = 2 atanh(1/3).

    >>> log_bounds(Fraction(2), 8)  # 256 log 2 = 177.4
    (177, 178)
    """
    k = x.numerator.bit_length() - x.denominator.bit_length()
    k -= Fraction(2) ** k > x
    y = x / Fraction(2) ** k
    wide = bits + 32 + k.bit_length()
    low, high = _atanh(Fraction(y - 1) / (y + 1), wide)
    two_low, two_high = _atanh(Fraction(1, 3), wide)
    return (2 * (low + k * two_low)) >> (wide - bits), -(-2 * (high + k * two_high) >> (wide - bits))


def _atanh(z: Fraction, wide: int) -> tuple[int, int]:
    """Bounds of 2^wide atanh(z), 0 <= z <= 1/3: the sum of z^(2j+1) / (2j+1), every floor short by less than 9/8 + 1."""
    power = (z.numerator << wide) // z.denominator
    square = power * z.numerator // z.denominator
    total, j = 0, 0
    while power:
        total += power // (2 * j + 1)
        power = power * square >> wide
        j += 1
    # j terms, each short by less than 3, and a remainder below 9/8 of a unit
    return total, total + 3 * j + 3
