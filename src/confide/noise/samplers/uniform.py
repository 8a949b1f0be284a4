"""The plain draws from words: uniform integers, coin flips of any rational bias, a uniform number digit by digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from confide.noise.words import Words

__all__ = ["LazyUniform", "bernoulli", "uniform_integers"]

WORD_BITS = 64
BLOCK = 65_536  # words taken at a time


class LazyUniform:
    """A uniform number U in [0, 1) whose binary digits are drawn when they are asked for.

    `digits` is an integer of `length` binary digits: digits / 2^length <= U < (digits + 1) / 2^length, and the digits
    that follow are uniform and independent of those at hand. Whoever compares U with a number known only to an
    interval calls `extend` until the two intervals are apart.

    >>> from confide.noise.words import SimulatedWords
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
