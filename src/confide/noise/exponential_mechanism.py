"""The exponential mechanism over any number of candidates, exact: one private choice.

P(i) is proportional to the weight l_i e^(-x_i), x_i = epsilon (best - score_i) / (2 D), with l_i the length of candidate i. One uniform
U picks the candidate whose part of the cumulated weights holds U times their total. Float64 decides it from proved operations
(`noise/standard.py`) with a margin for every boundary; u = 2^-53:

    rate, gap and their product rounded: 3.1 u x in the exponent     the exponential: 7.8 u
    a length as a float: u                                           the product: u          hence (11 + 3.1 x) u of each weight
    sums in blocks of 1,024, then over blocks: at most (1,024 + number of blocks + 8) u of the sum
    weights with x of 700 or more count as 0: e^-699 times their lengths, in every margin

A draw nearer to a boundary of the candidate found than its margin, one in 10^6 for a million candidates of like
weight, is settled. Then every weight is between two integers over 2^bits, by powers from one gap to the next, with
more digits of U and more bits until they decide. So the law is exact whatever the size of the weights: none is ever
taken as 0 in the end.

Time. Every draw computes and cumulates every candidate, in their given order and without sorting, and the search
takes the same number of steps for each. A million candidates take 0.04 s. Who wins shows in the time only through a
settled draw, which says that U came near to some boundary. How often that is depends on the scores, as just said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError
from confide.noise.integers import LazyUniform, exact_rational
from confide.noise.standard import Words, exp_bounds, exp_far

FloatArray = npt.NDArray[np.float64]
Integers = npt.NDArray[Any]  # an integer dtype, or Python integers as objects

_UNIT = 2.0**-53
_BLOCK = 1024
_FAR = 700.0  # e^-700 is a normal float, with room for any length
_MOST = 1 << 300  # of the sum of lengths: floats hold it, and its product with the least weight
_BITS = 192


def exponential_mechanism(
    words: Words, scores: object, epsilon: object, sensitivity: object, lengths: object = None, *, digits: int = 64
) -> int:
    """The index of one candidate: P(i) proportional to lengths_i exp(-epsilon (max - score_i) / (2 sensitivity)), exactly.

    `scores`: integers, shape (candidates,), an array or a sequence; max is over the candidates whose length is not 0.
    `epsilon`, `sensitivity`: exact rationals above 0. `lengths`: integers of the same shape, at least 0, not all 0,
    with a sum up to 2^300; None: all 1. `digits`: how many digits of U decide at first; the tests choose few.
    Guarantee: PureDP(epsilon) under the relation for which one record moves every score by at most `sensitivity`: the
    numerator and the normalizer each change by at most a factor e^(epsilon / 2). Lengths are a base measure and must
    not depend on records; lengths that do, such as those of the intervals between data points, are NOT covered by
    this. Real scores are the caller's to round down to a public grid of steps h. In these steps one record then moves
    them by at most D / h + 1, which is the sensitivity to give. Errors: PrivacyError for other arguments. Source:
    McSherry, Talwar 2007, Theorem 6.

    >>> from confide.noise.standard import SimulatedWords
    >>> exponential_mechanism(SimulatedWords(7), [0, 1000, 3], 1, 1)
    1
    """
    values, sizes = _checked(scores, lengths)
    rate = _positive(epsilon, "epsilon") / (2 * _positive(sensitivity, "sensitivity"))
    gaps = _gaps(values, None if sizes is None else sizes > 0)
    uniform = LazyUniform(words)
    uniform.extend()
    if digits < 64:  # for the tests: the digits beyond stay undrawn
        uniform = LazyUniform(words, uniform.digits >> (64 - digits), digits)
    cumulated, margin = _cumulated(rate, gaps, sizes)
    total, slack = cumulated[-1], margin[-1]
    # U times the total lies in [low, high]; both with the error of the total, and one rounding for each operation
    low = uniform.digits / 2**uniform.length * (total - slack) * (1 - 4 * _UNIT)
    high = (uniform.digits + 1) / 2**uniform.length * (total + slack) * (1 + 4 * _UNIT)
    found = min(int(np.searchsorted(cumulated, low, side="right")), len(cumulated) - 1)
    before = cumulated[found - 1] + margin[found - 1] if found else 0.0
    if before <= low and high <= cumulated[found] - margin[found]:
        return found
    return _settled(uniform, rate, gaps, sizes)


def _checked(scores: object, lengths: object) -> tuple[Integers, Integers | None]:
    values = _integers(scores)
    if values is None or not len(values):
        raise PrivacyError(
            "scores must be a one-dimensional array or sequence of integers with at least one candidate. Real scores are first rounded "
            "down to a public grid, and the sensitivity then grows by one step: exponential_mechanism([3, 5], 1, 1)"
        )
    if lengths is None:
        return values, None
    sizes = _integers(lengths)
    if sizes is None or len(sizes) != len(values):
        raise PrivacyError("lengths must be integers, one for each score, or None for equal ones")
    if sizes.min() < 0 or not sizes.any() or (sizes.dtype == object and sum(sizes) > _MOST):
        raise PrivacyError("lengths must be at least 0, not all 0, and add up to at most 2^300")
    return values, sizes


def _integers(given: object) -> Integers | None:
    """A one-dimensional array of integers, by 64 bits or as objects; None for anything else."""
    if not isinstance(given, np.ndarray):
        if not isinstance(given, Sequence) or isinstance(given, str | bytes):
            return None
        # as objects first: NumPy would turn a mixture beyond 64 bits into floats
        given = np.fromiter(given, dtype=object, count=len(given))
    if given.ndim != 1:
        return None
    if given.dtype == object:
        if not all(isinstance(value, Integral) and not isinstance(value, bool) for value in given):
            return None
        whole = [int(value) for value in given]
        small = all(-(2**63) <= value < 2**63 for value in whole)
        given = np.array(whole, dtype=np.int64 if small else object)
    return given if given.dtype.kind in "iuO" else None


def _positive(value: object, name: str) -> Fraction:
    exact = exact_rational(value)
    if exact is None or exact <= 0:
        raise PrivacyError(
            f"{name} must be a positive finite number: an int, a float or a fractions.Fraction, as in "
            "exponential_mechanism([3, 5], 1, 1)"
        )
    return exact


def _gaps(values: Integers, allowed: npt.NDArray[np.bool_] | None) -> Integers:
    """By how much each score is below the best that is allowed, exact and at least 0; 0 where the length is 0."""
    best = values.max() if allowed is None else values[allowed].max()
    if values.dtype == object:
        return np.array([max(best - value, 0) for value in values], dtype=object)
    # as unsigned numbers the difference of any two of 64 bits is exact
    kind = np.uint64 if values.dtype.kind == "u" else np.int64
    gaps: Integers = np.array(best, dtype=kind).view(np.uint64) - values.astype(kind, copy=False).view(np.uint64)
    if allowed is not None:
        gaps[~allowed] = 0
    return gaps


def _cumulated(rate: Fraction, gaps: Integers, sizes: Integers | None) -> tuple[FloatArray, FloatArray]:
    """Cumulated weights and a bound on the error of each."""
    if gaps.dtype == object:  # exact products: the gaps have no bound
        x = np.array([float(min(rate * gap, Fraction(2 * _FAR))) for gap in gaps.tolist()])
    else:
        x = gaps.astype(np.float64)
        x *= _nearest(rate)
    beyond = x >= _FAR
    far = bool(beyond.any())
    if far:
        np.minimum(x, _FAR, out=x)
    weights = exp_far(x)
    lost = 0.0
    if sizes is not None:
        lengths = sizes.astype(np.float64)
        lost = float(lengths.sum())
        weights *= lengths
    elif far:
        lost = float(len(x))
    if far:
        weights[beyond] = 0.0
    cumulated = _sums(weights)
    blocks = -(-len(weights) // _BLOCK)
    x *= 3.1
    x += 11.0
    x *= weights
    margin = _sums(x)
    # twice, as the sum of the margins is itself computed in floats
    margin *= 2 * _UNIT
    margin += (_BLOCK + blocks + 8) * _UNIT * cumulated
    if far:
        margin += 2.0**-1000 * lost
    return cumulated, margin


def _nearest(rate: Fraction) -> float:
    """The rate as a float; one below the normal floats times any gap of 64 bits is below 2^-900, whatever its rounding."""
    try:
        return float(rate)
    except OverflowError:
        return float(2**1000)  # any gap of 1 is then beyond e^-700


def _sums(values: FloatArray) -> FloatArray:
    """Cumulated sums, in blocks, so that errors grow with the block and not with the length."""
    if len(values) <= _BLOCK:
        return np.cumsum(values)
    blocks = -(-len(values) // _BLOCK)
    padded = np.zeros(blocks * _BLOCK)
    padded[: len(values)] = values
    inner = np.cumsum(padded.reshape(blocks, _BLOCK), axis=1)
    inner[1:] += np.cumsum(inner[:, -1])[:-1, None]
    return inner.ravel()[: len(values)]


def _settled(uniform: LazyUniform, rate: Fraction, gaps: Integers, sizes: Integers | None) -> int:
    """The same candidate from integer intervals, with more digits and more bits until they decide."""
    bits = _BITS
    while True:
        while uniform.length < bits:
            uniform.extend()
        lows, highs = _bounds(rate, gaps, sizes, bits)
        # U in [digits, digits + 1] / 2^length, so U Z in [digits least, (digits + 1) most] / 2^length
        low = uniform.digits * lows[-1] >> uniform.length
        high = -((-(uniform.digits + 1) * highs[-1]) >> uniform.length)
        found = bisect_right(highs, low)
        if found < len(lows) and high <= lows[found]:
            return found
        bits *= 2


def _bounds(rate: Fraction, gaps: Integers, sizes: Integers | None, bits: int) -> tuple[list[int], list[int]]:
    """Cumulated weights between integers over 2^bits: one gap's from the last one's, by the exponential of the difference."""
    distinct, places = np.unique(gaps, return_inverse=True)
    known: dict[int, tuple[int, int]] = {}
    low = high = 1 << bits
    weights, past = [], 0
    for gap in distinct.tolist():
        if gap > past:
            if gap - past not in known:
                known[gap - past] = exp_bounds(rate * (gap - past), bits)
            step = known[gap - past]
            low, high = low * step[0] >> bits, -(-high * step[1] >> bits)
            past = gap
        weights.append((low, high))
    lows, highs = [], []
    sum_low = sum_high = 0
    for place, length in zip(places.tolist(), [1] * len(places) if sizes is None else sizes.tolist(), strict=True):
        low, high = weights[place]
        sum_low += low * length
        sum_high += high * length
        lows.append(sum_low)
        highs.append(sum_high)
    return lows, highs
