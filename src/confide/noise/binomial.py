"""Exact draws of Bin(n, 1/2) for an array of n: as many heads as n fair coins show, without tossing them individually.

n = l + 64 (c_0 + 16 c_1 + 16^2 c_2 + ...), l < 64: the l coins are bits of one word, counted. The 64 * 16^i * c_i
coins of each digit are one draw from a table of the cumulative probabilities of Bin(64 * 16^i * c, 1/2), c = 1, ...,
15. Every n takes the same words and the same look-ups, as many as the caller's bound on n needs, whatever it is; only
an n beyond that bound takes more.

A table holds floor(2^60 F(j)), from integer intervals. The 60 leading bits of a word decide. The exception is a word
equal to one of them (one in 2^48 or fewer), which is then settled with more digits against intervals of F.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from confide.noise.integers import LazyUniform
from confide.noise.standard import WordArray, Words

IntArray = npt.NDArray[np.int64]

LOW_BITS = 6
DIGIT_BITS = 4
KEY_BITS = 60
COINS = (1 << LOW_BITS) - 1
DIGIT = (1 << DIGIT_BITS) - 1


class BinomialTable:
    """F(j) = P(Bin(n, 1/2) <= j) for even n, each between two integers over 2^bits, where it is neither below 2^-bits
    nor above its complement. `first` is the first j of the table.

    The weights C(n, n/2 + k) / C(n, n/2) follow from one another, w_{k+1} = w_k (n/2 - k) / (n/2 + k + 1), rounded outwards; their sum
    is the normalizer.
    """

    def __init__(self, n: int, bits: int) -> None:
        self.bits = bits
        half = n // 2
        low = high = 1 << bits
        lows, highs = [low], [high]
        # weights of high end 1 can stick there, so the stop is well above
        for k in range(half):
            if high <= 1 << 8:
                break
            low = low * (half - k) // (half + k + 1)
            high = -(-high * (half - k) // (half + k + 1))
            lows.append(low)
            highs.append(high)
        k = len(lows) - 1
        # what is left out beyond k: the ratios fall, so at most high (ratio + ratio^2 + ...)
        tail = 0 if k == half else -(-high * (half - k) // (2 * k + 1))
        least = 2 * sum(lows) - lows[0]
        most = 2 * sum(highs) - highs[0] + 2 * tail
        self.first = half - k
        self.low, self.high = [], []
        sum_low, sum_high = 0, tail
        for place in (*range(k, 0, -1), *range(k + 1)):
            sum_low += lows[place]
            sum_high += highs[place]
            self.low.append((sum_low << bits) // most)
            self.high.append(min(1 << bits, -((-sum_high << bits) // least)))

    def place(self, digits: int, length: int) -> int | None:
        """The j of every U in [digits, digits + 1) / 2^length; None when that interval is not clear of some F(j)."""
        start, end = digits << (self.bits - length), (digits + 1) << (self.bits - length)
        index = bisect_right(self.high, start)  # F(index - 1) <= start, for certain
        certain = index < len(self.low) and end <= self.low[index]
        # before the first entry stands an F that is not in the table, unless it is 0
        return self.first + index if certain and (index or not self.first) else None

    def thresholds(self, bits: int) -> tuple[int, list[int]] | None:
        """The first j with floor(2^bits F(j)) >= 1, and these numbers from there to the first that is 2^bits - 1; None when some F(j) is
        not known well enough."""
        found: list[int] = []
        start = self.first
        for low, high in zip(self.low, self.high, strict=True):
            threshold = min(low >> (self.bits - bits), (1 << bits) - 1)
            if threshold != min(high >> (self.bits - bits), (1 << bits) - 1):
                return None
            if not found and not threshold:
                start += 1
                continue
            found.append(threshold)
            if threshold == (1 << bits) - 1:
                break
        return start, found


@lru_cache(maxsize=16)
def _binomial_table(n: int, bits: int) -> BinomialTable:
    return BinomialTable(n, bits)


class _Level:
    """The tables of Bin(unit c, 1/2), c = 1, ..., 15, as one sorted array of keys c 2^bits + threshold."""

    def __init__(self, level: int, bits: int) -> None:
        self.unit = 1 << (LOW_BITS + DIGIT_BITS * level)
        self.bits = bits
        keys: list[int] = []
        # the number that a key's place is turned into, j = place - shift[c]
        self.shift = np.zeros(1 << DIGIT_BITS, dtype=np.int64)
        for digit in range(1, 1 << DIGIT_BITS):
            start, thresholds = self._thresholds(digit)
            self.shift[digit] = len(keys) - start
            keys += [digit << bits | threshold for threshold in thresholds]
        self.keys = np.array(keys, dtype=np.uint64)

    def _thresholds(self, digit: int) -> tuple[int, list[int]]:
        bits = self.bits + 64
        while (found := BinomialTable(self.unit * digit, bits).thresholds(self.bits)) is None:
            bits += 64
        return found

    def draw(self, words: Words, digits: IntArray) -> IntArray:
        """Bin(unit * digit, 1/2) for each digit, one word each."""
        leading = words.take(len(digits)) >> np.uint64(64 - self.bits)
        keys = digits.view(np.uint64) << np.uint64(self.bits)
        keys |= leading
        place = np.searchsorted(self.keys, keys)
        values = place - self.shift[digits]
        near = self.keys[np.minimum(place, len(self.keys) - 1)] == keys
        near |= leading == 0
        near &= digits > 0
        values[digits == 0] = 0
        for index in np.flatnonzero(near).tolist():
            values[index] = self._settled(words, int(digits[index]), int(leading[index]))
        return values

    def _settled(self, words: Words, digit: int, leading: int) -> int:
        uniform = LazyUniform(words, leading, self.bits)
        while (
            found := _binomial_table(self.unit * digit, uniform.length + 128).place(uniform.digits, uniform.length)
        ) is None:
            uniform.extend()
        return found


@lru_cache(maxsize=16)
def _level(level: int, bits: int) -> _Level:
    """Public numbers, made once in a process: 0.01 s for n below 2^14, 0.1 s below 2^18, 2 s below 2^26."""
    return _Level(level, bits)


def halves(words: Words, n: IntArray, bound: int, *, bits: int = KEY_BITS) -> IntArray:
    """Bin(n_i, 1/2), exactly and independently; int64, shape of n. `bound`: a public number that n_i hardly ever exceeds.

    n_i >= 0. bits: how many digits of a word decide at first; the tests choose few.

    >>> from confide.noise.standard import SimulatedWords
    >>> halves(SimulatedWords(7), np.array([0, 1000]), 1000)[0]
    np.int64(0)
    """
    coins = words.take(len(n)) & ((np.uint64(1) << (n & COINS).view(np.uint64)) - np.uint64(1))
    heads = _ones(coins)
    rest, left, level = n >> LOW_BITS, bound >> LOW_BITS, 0
    while left or rest.any():
        heads += _level(level, bits).draw(words, rest & DIGIT)
        rest, left, level = rest >> DIGIT_BITS, left >> DIGIT_BITS, level + 1
    return heads


def _ones(words: WordArray) -> IntArray:
    """How many bits of each word are 1: sums of neighbors of 1, 2 and 4 bits, then of the eight bytes."""
    pairs, fours, bytes_ = (np.uint64(mask) for mask in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
    count = words - (words >> np.uint64(1) & pairs)
    count = (count & fours) + (count >> np.uint64(2) & fours)
    count = (count + (count >> np.uint64(4))) & bytes_
    return np.asarray((count * np.uint64(0x0101010101010101) >> np.uint64(56)).view(np.int64))
