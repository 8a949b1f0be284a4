"""The symmetric Laplace on the integer lattice: a random walk in d dimensions that runs for one exponential time; exact.

Every coordinate steps up and down at rate a, S_j = Pois(a W) - Pois(a W), with one W for all. The number N of steps is geometric,
P(N >= n) = (m / (1 + m))^n with m = 2 a d, and each step is uniform on the 2 d directions. The characteristic function is
1 / (1 + a sum (2 - 2 cos t_j)), and the variance of a coordinate is 2 a.

The walk is drawn in D = 2^h >= d dimensions, of which the first d are kept: their law is the same, as t_j = 0 for the others shows. The
steps of a set of directions then go to its two halves by a fair coin each, so that all that is needed besides N is Bin(n, 1/2), exact in
`halving.py`, at every node of a binary tree down to the two directions of one coordinate. The steps of a node with k dimensions are
geometric with mean 2 a k, which bounds n in advance; so every row takes the same words and the same look-ups.

N = floor(E / log(1 + 1/m)) for a standard exponential E, whose digits `standard.py` draws as they are asked for. In float64 the quotient
is off by at most 5 * 2^-53 of it (E twice, the logarithm twice, the quotient) and by 2^-68 / log(1 + 1/m) for the digits that are not
known; what comes nearer to an integer is settled in integers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError
from confide.noise.laws import described, exact_rational, whole
from confide.noise.samplers.halving import KEY_BITS, halves
from confide.noise.samplers.multivariate import checked_share
from confide.noise.samplers.standard import CELL_BITS, StandardLaw, standard_law
from confide.noise.samplers.uniform import LazyUniform, bernoulli
from confide.noise.words import Words

__all__ = ["lattice_laplace", "log_bounds"]

IntArray = npt.NDArray[np.int64]

MOST_STEPS = 1 << 20
BLOCK = 15_360


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

    a: an exact rational above 0; the variance of a coordinate is 2 a (1 - zeta). zeta: an exact rational, 0 <= zeta < 1, the share of
    rows of zeros; everything is drawn for every row, kept or not. 2 a D is at most 2^20, D the power of 2 from d on: coarser grids need
    smaller a. law, bits: for the tests.
    Adding an independent row of `lattice_laplace(zeta a, d)` gives the law of `lattice_laplace(a, d)`, exactly, on the lattice.
    Guarantee: d = 1 and zeta = 0 is the double geometric law, P(k) proportional to q^|k| with q / (1 - q)^2 = a: integers that one
    record moves by at most k are PureDP(k log(1/q)), exactly. In several dimensions the law is not spherical and
    `confide.guarantees.symmetric_laplace` is NOT a bound for it (d = 2, a = 2, shift (1, 0): delta(.8) = .0508 against .0410); an exact
    statement needs the profile of each shift. zeta > 0: no statement without a delta of at least zeta exists.
    Errors: PrivacyError for other arguments.
    Source: Ghosh, Roughgarden, Sundararajan 2012 (d = 1); the walk is derived above.

    >>> from confide.noise.words import SimulatedWords
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
            f"a is {described(a)}, but half the variance, in squared grid steps, must be an int, a float or a fractions.Fraction "
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
