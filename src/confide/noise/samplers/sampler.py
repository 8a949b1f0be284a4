"""The four laws on integers, from standard draws: exact, whatever the rounding of floats does, at any scales.

t = scale * z for a standard half normal or exponential z; the grid laws round t to the nearest integer, the discrete
Laplace takes its floor, which is a geometric variable, and rejects one of the two zeros. The discrete Gaussian rejects
from a discrete Laplace (Canonne, Kamath, Steinke 2020, Algorithm 3).

How t is rounded. z = (c + r) / 16 with R = floor(2^64 r), and K = floor(2^32 scale / 16). In units of 2^-32,
    t = (c + r) K + (c + r) theta,  0 <= theta < 1,  and the sampler has  L = c K + floor-ish(K R / 2^64).
K R / 2^64 is taken by limbs, K = (k2, k1, k0), R = (r1, r0) in base 2^32:
    r1 k2 2^32 + r1 k1 + r0 k2 + floor(r1 k0 / 2^32) + floor(r0 k1 / 2^32), short by less than 3 (r0 k0 is left out);
with theta by less than c + 1, with the digits of r after the 64th by K / 2^64 < (k2 + 1): L <= 2^32 t < L + gap,
gap = 512 + 3 + k2 + 1. No sum leaves 64 bits: c <= 511, k2 <= 2^21. When [L, L + gap) holds a boundary, one draw in
2^23 up to scales of 2^36 and one in 2^11 at 2^57, the draw is settled: scale^2 z^2, or scale z, against the boundary in
integers, with more digits of r until it is clear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError
from confide.noise.laws import FRACTION_BITS, Scales
from confide.noise.samplers.exponential import WHOLES, exp_bounds, exp_wide
from confide.noise.samplers.standard import CELL_BITS, TABLE_CELLS, Draws, StandardLaw, below, standard_law
from confide.noise.samplers.uniform import LazyUniform
from confide.noise.words import WordArray, Words

__all__ = ["discrete_gaussian", "discrete_laplace", "grid_gaussian", "grid_laplace"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Accept = Callable[[Words, IntArray, IntArray], BoolArray]

BLOCK = 15_360  # draws; with the tries that they take, a block of standard.py
HALF = 1 << (FRACTION_BITS - 1)
FRACTION = np.uint64(FRACTION_BITS)
LOW = np.uint64(2**32 - 1)


def grid_gaussian(words: Words, scales: Scales, size: int, law: StandardLaw | None = None) -> IntArray:
    """N(0, sigma2) rounded to the nearest integer; int64, shape (size,)."""
    return _draw(words, scales, size, law or standard_law("half normal"), HALF, None)


def grid_laplace(words: Words, scales: Scales, size: int, law: StandardLaw | None = None) -> IntArray:
    """A Laplace rounded to the nearest integer; int64, shape (size,)."""
    return _draw(words, scales, size, law or standard_law("exponential"), HALF, None)


def discrete_laplace(words: Words, scales: Scales, size: int, law: StandardLaw | None = None) -> IntArray:
    """P(k) proportional to e^(-|k|/scale); int64, shape (size,)."""

    def always(words: Words, magnitudes: IntArray, draws: IntArray) -> BoolArray:
        return np.ones(len(draws), dtype=np.bool_)

    return _draw(words, scales, size, law or standard_law("exponential"), 0, always)


def discrete_gaussian(words: Words, scales: Scales, size: int, law: StandardLaw | None = None) -> IntArray:
    """P(k) proportional to e^(-k^2/(2 sigma2)); int64, shape (size,)."""
    # Any scale of the proposal gives the same law; this one, floor(sigma) + 1, accepts .76 of the proposals at large
    # sigma and .44 at worst (sigma = .3).
    proposal = scales.map(lambda sigma2: Fraction(math.isqrt(math.floor(sigma2)) + 1), squared=False)
    law = law or standard_law("exponential")
    return _draw(words, proposal, size, law, 0, _GaussianAccept(scales, proposal, law.accept_bits))


def _draw(words: Words, scales: Scales, size: int, law: StandardLaw, half: int, accept: Accept | None) -> IntArray:
    """`size` draws of the signed, rounded magnitude; with `accept`, redrawn while it or the second zero refuses."""
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, BLOCK):
        pending = np.arange(start, min(start + BLOCK, size))
        while len(pending):
            standard = law.draw(words, len(pending))
            magnitudes = _magnitudes(words, standard, scales, pending, law.place_bits, half)
            flip = -standard.negative.view(np.int8).astype(np.int64)
            values = (magnitudes ^ flip) - flip
            if accept is None:
                out[pending[0] : pending[-1] + 1] = values
                break
            kept = accept(words, magnitudes, pending)
            kept &= (magnitudes > 0) | ~standard.negative
            out[pending[kept]] = values[kept]
            pending = pending[~kept]
    return out


def _magnitudes(words: Words, standard: Draws, scales: Scales, draws: IntArray, place_bits: int, half: int) -> IntArray:
    """floor(scale z + half / 2^32) for the standard draws z."""
    which = scales.at(draws)
    limbs = tuple(limb[which] for limb in scales.fixed)
    magnitudes, fraction = product(standard, limbs, half)
    near = np.flatnonzero(fraction + gap(limbs, place_bits) > np.uint64(1 << FRACTION_BITS))
    for index in sorted({*near.tolist(), *standard.settled}):
        digits, length = standard.digits(index, place_bits)
        settled = settle(words, digits, length, scales.of(int(draws[index])), scales.squared, half > 0)
        magnitudes[index] = _fits(settled)
    return magnitudes


def product(standard: Draws, limbs: tuple[WordArray, ...], half: int) -> tuple[IntArray, WordArray]:
    """L + half of the module's docstring: its whole steps, and the rest in units of 2^-32 steps."""
    k2, k1, k0 = limbs
    c, r0, r1 = standard.cells, standard.places & LOW, standard.places >> FRACTION
    low = r1 * k0
    low >>= FRACTION
    part = r0 * k1
    part >>= FRACTION
    low += part
    low += r0 * k2
    low += c * k0
    low += np.uint64(half)
    part = r1 * k1
    low += part & LOW
    part >>= FRACTION
    part += r1 * k2
    part += c * ((k2 << FRACTION) + k1)
    part += low >> FRACTION
    low &= LOW
    return part.view(np.int64), low


def gap(limbs: tuple[WordArray, ...], place_bits: int) -> WordArray:
    """What may be missing in `product`, in units of 2^-32 steps."""
    k2, k1, _ = limbs
    missing = k2 + np.uint64(TABLE_CELLS + 4)
    if place_bits < 64:  # 32 or fewer, in tests: K / 2^place_bits more, at most a whole step
        one, known = np.uint64(1), np.uint64(place_bits)
        missing += np.minimum((k2 << FRACTION) + k1 + one, one << known) << (FRACTION - known)
    return missing


def settle(words: Words, digits: int, length: int, scale: Fraction, squared: bool, rounded: bool) -> int:
    """floor(t), or t rounded, in exact arithmetic: 16 t / scale lies in [digits, digits + 1) / 2^length."""
    place = LazyUniform(words, digits, length)
    while True:
        # Doubled, so that the boundaries of the rounding are integers as well: the odd ones.
        bits = place.length + CELL_BITS - 1
        if squared:
            bits, factor = 2 * bits, scale
            doubled = math.isqrt((place.digits**2 * scale.numerator) // (scale.denominator << bits))
        else:
            factor = scale
            doubled = (place.digits * scale.numerator) // (scale.denominator << bits)
        value = (doubled + 1) // 2 if rounded else doubled // 2
        boundary = 2 * value + (1 if rounded else 2)
        end = place.digits + 1
        if squared:
            boundary, end = boundary**2, end**2
        if end * factor.numerator <= boundary * (factor.denominator << bits):
            return value
        place.extend()


def _fits(magnitude: int) -> int:
    if magnitude >= 2**63:
        raise PrivacyError(
            "a draw left the 64-bit integers, which happens to fewer than one draw in 10^27, independently of the "
            "data, at the largest scales only: use fewer grid steps."
        )
    return magnitude


class _GaussianAccept:
    """Accept Y from the discrete Laplace of scale T with probability e^-x, x = (|Y| - sigma2 / T)^2 / (2 sigma2).

    The error of the float64 x, with m = sigma2 / T < sigma, g = (|Y| - m) / sigma and u = 2^-53: |Y|, m and their
    difference are rounded, |Y| <= (|g| + 1) sigma, so g is off by less than (2 |g| + 2) u; square and product by 1 / (2
    sigma2) add three roundings of x = g^2 / 2. Together dx < (3.5 g^2 + 2 |g|) u, and e^-x dx < 3.6 u. exp_wide adds 5.7
    u: below 9.4 u < 2^-49, as `StandardLaw.margin` allows. x is cut at 31, where e^-x < 2^-44 is far below the last
    accept bit: U of that size is settled.
    """

    def __init__(self, target: Scales, proposal: Scales, accept_bits: int) -> None:
        self.target = target
        self.proposal = proposal
        self.bits = accept_bits
        pairs = list(zip(target.values, proposal.values, strict=True))
        # Quotients of integers are correctly rounded.
        self.centre = np.array([s.numerator / (s.denominator * t.numerator) for s, t in pairs])
        self.half = np.array([_half_inverse(sigma2) for sigma2, _ in pairs])

    def __call__(self, words: Words, magnitudes: IntArray, draws: IntArray) -> BoolArray:
        which = self.target.at(draws)
        x = magnitudes - self.centre[which]
        x *= x
        x *= self.half[which]
        np.minimum(x, WHOLES - 1.0, out=x)
        uniform = words.take(len(draws)) >> np.uint64(64 - self.bits)
        accept, near = below(uniform, exp_wide(x), self.bits, 2)
        for index in near.tolist():
            draw = int(draws[index])
            accept[index] = settle_accept(
                LazyUniform(words, int(uniform[index]), self.bits),
                gaussian_exponent(int(magnitudes[index]), self.target.of(draw), self.proposal.of(draw)),
            )
        return accept


def _half_inverse(sigma2: Fraction) -> float:
    # Cut at 2^200: any |Y| >= 1 is rejected there for certain, and 0 accepted, as with the true one.
    wide = sigma2.denominator.bit_length() > sigma2.numerator.bit_length() + 200
    return 2.0**200 if wide else sigma2.denominator / (2 * sigma2.numerator)


def gaussian_exponent(magnitude: int, sigma2: Fraction, scale: Fraction) -> Fraction:
    """x of the accept test for the discrete Gaussian."""
    return (magnitude - sigma2 / scale) ** 2 / (2 * sigma2)


def settle_accept(uniform: LazyUniform, x: Fraction) -> bool:
    """U < e^-x, for certain."""
    while True:
        low, high = exp_bounds(x, uniform.length + 64)
        if (uniform.digits + 1) << 64 <= low:
            return True
        if uniform.digits << 64 >= high:
            return False
        uniform.extend()
