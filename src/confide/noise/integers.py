"""The four laws on integers, from standard draws: exact, whatever the rounding of floats does, at any scales.

t = scale * z for a standard half normal or exponential z. The grid laws round t to the nearest integer, the discrete
Laplace takes its floor, which is a geometric variable, and rejects one of the two zeros. The discrete Gaussian
rejects from a discrete Laplace (Canonne, Kamath, Steinke 2020, Algorithm 3).

How t is rounded. z = (c + r) / 16 with R = floor(2^64 r), and K = floor(2^32 scale / 16). In units of 2^-32,
    t = (c + r) K + (c + r) theta,  0 <= theta < 1,  and the sampler has  L = c K + floor-ish(K R / 2^64).
K R / 2^64 is taken by limbs, K = (k2, k1, k0), R = (r1, r0) in base 2^32:
    r1 k2 2^32 + r1 k1 + r0 k2 + floor(r1 k0 / 2^32) + floor(r0 k1 / 2^32), short by less than 3 (without r0 k0);
with theta by less than c + 1, with the digits of r after the 64th by K / 2^64 < (k2 + 1): L <= 2^32 t < L + gap,
gap = 512 + 3 + k2 + 1. No sum leaves 64 bits: c <= 511, k2 <= 2^21. When [L, L + gap) holds a boundary, the draw is
settled. That is one draw in 2^23 up to scales of 2^36 and one in 2^11 at 2^57. It compares scale^2 z^2, or scale z,
against the boundary in integers, with more digits of r until it is clear.

The scales of the noise: which numbers are taken, at which exact value, and the fixed point the sampler needs of them.

The variance of each law, for inference.

The plain draws from words: uniform integers, coin flips of any rational bias, a uniform number digit by digit.

Cauchy noise rounded to integers, exactly: rint(s X/Y) for a uniform point (X, Y) of the half disc.

The direction of a uniform point of the disc is uniform, so that X/Y is a standard Cauchy number (Devroye 1986,
chapter II.4). X and Y are taken in the quarter disc, with a sign apart. Their binary digits are drawn as they are
needed. Whether the point lies in the disc and which integer s X/Y rounds to is settled on intervals of rationals, and
more digits are drawn while both ends do not agree. 192 digits are drawn at once, with which less than one draw in
2^100 needs more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from confide.core import events
from confide.errors import PrivacyError
from confide.noise.standard import (
    TABLE_CELLS,
    WHOLES,
    Draws,
    StandardLaw,
    WordArray,
    Words,
    below,
    exp_bounds,
    exp_wide,
    standard_law,
)

IntArray = npt.NDArray[np.int64]

MAX_SCALE_BITS = 57  # scale < 2^57: a draw leaves int64 only beyond 64 scales (probability e^-64; sampler.py)
FRACTION_BITS = 32
LOW_WORD = 2**32 - 1
CELL_BITS = 4  # the standard laws count in 16ths (standard.py)


def exact_rational(number: object) -> Fraction | None:
    """`number` as the exact rational that it is: int, Fraction, float (finite) and their NumPy kin; None for all else.

    >>> exact_rational(0.5), exact_rational(float("nan"))
    (Fraction(1, 2), None)
    """
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


def exact_variance(sigma2: object) -> Fraction:
    """`sigma2` as the exact positive rational that it is; int, Fraction and float are taken at their exact value.

    Errors: PrivacyError when it is not a positive finite number, or its square root is 2^57 steps or more.

    >>> exact_variance(0.1) == Fraction(0.1)
    True
    """
    return _positive(
        sigma2, "sigma2", "variance", "squared grid steps", 2 * MAX_SCALE_BITS, "grid_gaussian(Fraction(9, 4), 100)"
    )


def exact_scale(scale: object) -> Fraction:
    """`scale` of a Laplace law as the exact positive rational that it is, in grid steps.

    Errors: PrivacyError when it is not a positive finite number, or 2^57 steps or more.

    >>> exact_scale(3)
    Fraction(3, 1)
    """
    return _positive(scale, "scale", "scale", "grid steps", MAX_SCALE_BITS, "grid_laplace(Fraction(5, 2), 100)")


def _positive(number: object, name: str, what: str, unit: str, bits: int, call: str) -> Fraction:
    value = exact_rational(number)
    if value is None or value <= 0:
        raise PrivacyError(
            f"{name} is {described(number)}, but the {what} of the noise, in {unit}, must be a positive finite number: "
            f"an int, a float or a fractions.Fraction, as in {call}."
        )
    if value >= 2**bits:
        raise PrivacyError(
            f"{name} is at least 2^{_floor_log2(value)} {unit}, but it must be below 2^{bits} for the noise to fit "
            "64-bit integers: use fewer grid steps."
        )
    return value


def whole(value: object, name: str, call: str, least: int = 0) -> int:
    """`value` as an int of `least` or more.

    Errors: PrivacyError that shows `call`, when it is not an integer or too small.

    >>> whole(3, "size", "bernoulli(p, 100)")
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        given = f"a {type(value).__name__}"
    elif value >= least:
        return int(value)
    else:
        given = described(value)
    raise PrivacyError(f"{name} is {given}, but it must be an integer of {least} or more, as in {call}.")


def described(number: object) -> str:
    """What was given, short even where its digits or its elements would fill a page."""
    if isinstance(number, float):
        return repr(float(number))
    value = exact_rational(number)
    if value is None:
        return f"a {type(number).__name__}"
    if max(abs(value.numerator), value.denominator) < 10**20:
        return str(value)
    return "negative" if value < 0 else "positive"


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


class Scales:
    """The scale of each of `size` draws: one for all, or one each; squared when they are given as variances.

    `values`: the distinct ones, exact. `index`: which of them each draw has, int64, or None when it is one for all.
    fixed: floor(2^32 scale / 16) <= 2^85 of each, as uint64 limbs (k2, k1, k0) in base 2^32. That number is all that
    the sampler precomputes; a distribution needs no separate table.
    """

    def __init__(self, values: list[Fraction], index: IntArray | None, *, squared: bool) -> None:
        self.values = values
        self.index = index
        self.squared = squared
        fixed = [_fixed(value, squared) for value in values]
        limbs = zip(*((number >> 64, number >> 32 & LOW_WORD, number & LOW_WORD) for number in fixed), strict=True)
        self.fixed = tuple(np.array(limb, dtype=np.uint64) for limb in limbs)
        if not values:
            self.fixed = (np.empty(0, dtype=np.uint64),) * 3

    @classmethod
    def read(cls, given: object, size: int, *, squared: bool) -> Scales:
        """One rational, or a list, tuple or array of `size` of them.

        Errors: PrivacyError as `exact_variance` and `exact_scale`, and when the number of scales is not `size`.
        """
        exact = exact_variance if squared else exact_scale
        if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
            return cls([exact(given)], None, squared=squared)
        values, index = _distinct(given, size, "sigma2" if squared else "scale")
        return cls(list(map(exact, values)), index, squared=squared)

    def map(self, function: Callable[[Fraction], Fraction], *, squared: bool) -> Scales:
        """The scales `function(value)`, for the same draws."""
        return Scales([function(value) for value in self.values], self.index, squared=squared)

    def at(self, draws: IntArray) -> IntArray:
        """Where in `values` the scales of these draws stand; shape (1,) when it is one for all."""
        return np.zeros(1, dtype=np.int64) if self.index is None else self.index[draws]

    def of(self, draw: int) -> Fraction:
        """The exact scale, or variance, of one draw."""
        return self.values[0 if self.index is None else int(self.index[draw])]


def _fixed(value: Fraction, squared: bool) -> int:
    bits = FRACTION_BITS - CELL_BITS
    if squared:
        return math.isqrt((value.numerator << 2 * bits) // value.denominator)
    return (value.numerator << bits) // value.denominator


def _distinct(given: Sequence[object] | npt.NDArray[np.generic], size: int, name: str) -> tuple[list[object], IntArray]:
    """The distinct scales, and the number of the scale for each draw; equal objects need not be found equal."""
    if isinstance(given, np.ndarray) and given.ndim != 1:
        _refuse_shape(name, f"an array of {given.ndim} dimensions")
    if len(given) != size:
        _refuse_shape(name, f"a sequence of {len(given)} for {size} draws")
    if isinstance(given, np.ndarray) and given.dtype.kind in "iuf":
        values, index = np.unique(given, return_inverse=True)
        return list(values), index.astype(np.int64, copy=False).reshape(-1)
    items = list(given)
    # By identity: a Fraction is slow to hash. `items` keeps the objects alive, so that no two share an id.
    by_id = {id(item): item for item in items}
    place = {key: position for position, key in enumerate(by_id)}
    index = np.fromiter((place[id(item)] for item in items), dtype=np.int64, count=size)
    return list(by_id.values()), index


def _refuse_shape(name: str, given: str) -> NoReturn:
    call = "grid_gaussian([4, Fraction(9, 4)], 2)" if name == "sigma2" else "grid_laplace([4, Fraction(9, 4)], 2)"
    raise PrivacyError(
        f"{name} is {given}, but it must be one number, or a sequence of one for each draw, as in {call}."
    )


def variance(sigma2: object) -> float:
    """The variance of N(0, sigma2) rounded to the nearest integer (`grid_gaussian`), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.grid_gaussian`.

    >>> round(variance(1), 9)
    1.083333322
    """
    return events.rounded_gaussian(exact_variance(sigma2))


def laplace_variance(scale: object) -> float:
    """The variance of a Laplace of this scale rounded to the nearest integer (`grid_laplace`), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.grid_laplace`.

    >>> round(laplace_variance(1), 6), round(laplace_variance(1000), 3)
    (2.076351, 2000000.083)
    """
    return events.rounded_laplace(exact_scale(scale))


def discrete_laplace_variance(scale: object) -> float:
    """The variance of the discrete Laplace, P(k) proportional to e^(-|k|/scale), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.discrete_laplace`.

    >>> round(discrete_laplace_variance(1), 6)
    1.841347
    """
    return events.discrete_laplace(exact_scale(scale))


def discrete_gaussian_variance(sigma2: object) -> float:
    """The variance of the discrete Gaussian, P(k) proportional to e^(-k^2 / (2 sigma2)), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.discrete_gaussian`.

    >>> round(discrete_gaussian_variance(1), 9)
    0.999999789
    """
    return events.discrete_gaussian(exact_variance(sigma2))


WORD_BITS = 64
BLOCK = 65_536  # words taken at a time


class LazyUniform:
    """A uniform number U in [0, 1) whose binary digits are drawn when they are asked for.

    `digits` is an integer of `length` binary digits: digits / 2^length <= U < (digits + 1) / 2^length, and the digits
    that follow are uniform and independent of those at hand. Code that compares U with a number known only to an
    interval calls `extend` until the two intervals are apart.

    >>> from confide.noise.standard import SimulatedWords
    >>> LazyUniform(SimulatedWords(7)).below(Fraction(1))
    True
    """

    def __init__(self, words: Words, digits: int = 0, length: int = 0) -> None:
        self._words = words
        self.digits = digits
        self.length = length

    def extend(self, words: int = 1) -> None:
        """Draw the next 64 digits, or 64 for each of `words`."""
        for word in self._words.take(words).tolist():
            self.digits = self.digits << WORD_BITS | word
        self.length += WORD_BITS * words

    def below(self, p: Fraction) -> bool:
        """Whether U < p, exact for every rational p; draws digits until it is certain."""
        while True:
            # The digits of p: U < p for certain iff digits + 1 <= 2^length p, and U >= p iff digits >= 2^length p.
            scaled = p.numerator << self.length
            if (self.digits + 1) * p.denominator <= scaled:
                return True
            if self.digits * p.denominator >= scaled:
                return False
            self.extend()


def bernoulli(words: Words, p: Fraction, size: int) -> npt.NDArray[np.bool_]:
    """`size` independent coins, True with probability exactly `p`, 0 <= p <= 1; bool, shape (size,).

    One word each against floor(2^64 p); a word equal to it, one in 2^64, is continued digit by digit.
    """
    threshold, rest = divmod(p.numerator << WORD_BITS, p.denominator)
    out = np.ones(size, dtype=np.bool_)
    for start in range(0, size, BLOCK):
        block = words.take(min(BLOCK, size - start))
        if threshold >> WORD_BITS:  # p = 1: the words are taken all the same
            continue
        out[start : start + len(block)] = block < np.uint64(threshold)
        for index in np.flatnonzero(block == np.uint64(threshold)).tolist():
            out[start + index] = LazyUniform(words).below(Fraction(rest, p.denominator))
    return out


def uniform_integers(words: Words, m: int, size: int) -> npt.NDArray[np.int64]:
    """`size` independent uniform integers 0, ..., m - 1, for 1 <= m <= 2^63; int64, shape (size,).

    The top bits of a word, as many as m - 1 has; those of m or more are rejected, fewer than half. How many are
    rejected is independent of the integers accepted.
    """
    bits = (m - 1).bit_length()
    out = np.zeros(size, dtype=np.int64)
    filled = 0 if bits else size
    while filled < size:
        missing = size - filled
        tries = min(BLOCK, (missing << bits) // m + missing // 16 + 16)
        block = (words.take(tries) >> np.uint64(WORD_BITS - bits)).view(np.int64)
        kept = block[block <= np.int64(m - 1)][:missing]
        out[filled : filled + len(kept)] = kept
        filled += len(kept)
    return out


BoolArray = npt.NDArray[np.bool_]
Accept = Callable[[Words, IntArray, IntArray], BoolArray]

DRAWS_BLOCK = 15_360  # draws; with the tries that they take, a block of standard.py
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
    for start in range(0, size, DRAWS_BLOCK):
        pending = np.arange(start, min(start + DRAWS_BLOCK, size))
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


_WORDS = 3


def grid_cauchy(words: Words, scales: Scales, size: int) -> npt.NDArray[np.object_]:
    """`size` independent draws, Python integers in an object array: the tails are too long for 64 bits."""
    out = np.empty(size, dtype=object)
    for i in range(size):
        scale = scales.values[0 if scales.index is None else int(scales.index[i])]
        out[i] = _one(words, scale.numerator, scale.denominator)
    return out


def _one(words: Words, top: int, bottom: int) -> int:
    """One draw at the scale top/bottom."""
    while True:
        x, y = LazyUniform(words), LazyUniform(words)
        while True:
            x.extend(_WORDS)
            y.extend(_WORDS)
            inside = _inside(x, y)
            if inside is False:
                break
            # |s X/Y| rounds to floor((2 s X + Y) / (2 Y)); X/Y is between x/(y + 1) and (x + 1)/y in the last digit
            if inside and y.digits:
                low = _nearest(top * x.digits, bottom * (y.digits + 1))
                if low == _nearest(top * (x.digits + 1), bottom * y.digits):
                    return low if int(words.take(1)[0]) & 1 else -low


def _inside(x: LazyUniform, y: LazyUniform) -> bool | None:
    """Whether X^2 + Y^2 < 1; None while the digits do not tell."""
    whole = 1 << 2 * x.length
    if (x.digits + 1) ** 2 + (y.digits + 1) ** 2 <= whole:
        return True
    return False if x.digits**2 + y.digits**2 >= whole else None


def _nearest(top: int, bottom: int) -> int:
    return (2 * top + bottom) // (2 * bottom)
