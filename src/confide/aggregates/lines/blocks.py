"""The Gram matrix of features and a response with a free split of the budget between its blocks.

A record map gives m = (m_u, m_r): p features with |m_u|^2 <= 2^40 and one response with m_r^2 <= 2^40. Released are the features' Gram
matrix, the products of features and response, and the response's square, times the public integers (a, b, c):

    M = sum [[a m_u m_u', b m_u m_r], [b m_r m_u', c m_r^2]]

with one symmetric Gaussian noise. The larger a block's number, the smaller its noise: with noise of variance s^2 on the diagonal the
blocks cost mu^2 = 2^80 a^2/s^2, 2^81 b^2/s^2 and 2^80 c^2/s^2.

Sensitivity in the Frobenius norm: one record gives a^2 |m_u|^4 + 2 b^2 |m_u|^2 m_r^2 + c^2 m_r^4 <= 2^80 (a^2 + 2 b^2 + c^2). Replacing
a record by another gives the sum of both less twice their inner product a^2 S^2 + 2 b^2 S R + c^2 R^2, S = m_u'm_u* and R = m_r m_r*,
both of size at most 2^40; so the square is at most 2^81 ((a^2 + 2 b^2 + c^2) - min over [-1, 1]^2 of a^2 S^2 + 2 b^2 S R + c^2 R^2). The
minimum is 0 when b^2 <= a c, and else lies on the square's edge.

Several responses (m_1, ..., m_k each with m_j^2 <= 2^40) share the features, and their products m_i m_j are left out: with B = 2^40

    a^2 |m_z|^4 + 2 b^2 |m_z|^2 sum_k m_k^2 + c^2 sum_k m_k^4 <= B^2 (a^2 + 2 m b^2 + m c^2).

Under substitute a change has the square of both parts less twice their inner product; with S = m_z'm_z*/B and R_k = m_k m_k*/B in [-1, 1]
that product is B^2 (a^2 S^2 + 2 b^2 S sum_k R_k + c^2 sum_k R_k^2). It is NOT >= 0 for m > 1 (the products t_j t_k that would make the
matrix positive semi-definite are missing); its least value over the cube is found exactly: every R_k = clip(-b^2 S/c^2) and then S.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.function_of import FunctionOf
from confide.aggregates.lines.rows import BITS, BOUND
from confide.protocol import Gram, RecordMap

__all__ = ["BlockGram", "block_numbers", "least", "multipliers"]

# The largest of the public integers (a, b, c): small ones leave room for large noise.
_DIGITS = 1 << 6


def multipliers(features: Fraction, cross: Fraction, square: Fraction) -> tuple[int, int, int]:
    """The integers (a, b, c) under which the three blocks cost about in the ratio features : cross : square; the largest is 64.

    Small integers leave room for large noise; the ratio is met to about 2 %, and the cost of what is drawn is exact all the same.

    >>> multipliers(Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)), multipliers(Fraction(1, 4), Fraction(7, 10), Fraction(1, 20))
    ((64, 64, 64), (54, 64, 24))
    """
    largest = max(features, cross / 2, square)
    a, b, c = (
        max(round(sqrt(share / largest) * _DIGITS), 1) for share in (Fraction(features), cross / 2, Fraction(square))
    )
    return a, b, c


def block_numbers(cap: float, g2: float) -> tuple[int, int, int]:
    """Public integers (a, b, c) near the ratio R2 : sqrt(R2 g2) : g2, with b^2 <= a c.

    >>> block_numbers(4.0, 1.0)
    (64, 32, 16)
    """
    top = max(cap, g2)
    a, c = (max(round(_DIGITS * part / top), 1) for part in (cap, g2))
    return a, max(isqrt(a * c), 1), c


@dataclass(frozen=True)
class BlockGram(FunctionOf):
    """The Gram matrix of a map whose last rows are the responses, its blocks times (a, b, c); shape (width, width).

    responses: how many; 0 stands in place of the products of two different ones.
    """

    map: RecordMap
    blocks: tuple[int, int, int]
    responses: int = 1
    norm: ClassVar[str] = "frobenius"

    @property
    def behind(self) -> Gram:
        return Gram(self.map, entry_bits=BITS)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.map.width, self.map.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        m = self.responses
        a2, b2, c2 = (Fraction(x) ** 2 for x in self.blocks)
        whole = a2 + 2 * m * b2 + m * c2
        if relation != "substitute":
            return BOUND**2 * whole
        return BOUND**2 * 2 * (whole - least(a2, b2, c2, m))

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= width |M|_F, and isqrt rounds down
        return Fraction(self.map.width * (isqrt(int(self.sensitivity_squared(relation))) + 1))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared changes in the Frobenius norm when the record with the row `own` gives way to each of `rows`."""
        a2, b2, c2 = (x * x for x in self.blocks)
        p = self.map.width - self.responses

        def inner(one: Any, other: Any) -> Any:
            features = (one[:p] * other[:p]).sum(axis=0)
            responses = one[p:] * other[p:]
            return a2 * features**2 + 2 * b2 * features * responses.sum(axis=0) + c2 * (responses**2).sum(axis=0)

        own = own[:, None]
        return inner(rows, rows) + inner(own, own) - 2 * inner(own, rows)

    def of(self, sums: NDArray[Any]) -> NDArray[Any]:
        whole = sums.copy()
        a, b, c = self.blocks
        p = self.map.width - self.responses
        whole[:p, :p] *= a
        whole[:p, p:] *= b
        whole[p:, :p] *= b
        whole[p:, p:] = np.diag(np.diag(whole)[p:] * c)
        return whole


def least(a2: Fraction, b2: Fraction, c2: Fraction, m: int) -> Fraction:
    """The minimum of a^2 S^2 + 2 b^2 S sum R_k + c^2 sum R_k^2 over |S|, |R_k| <= 1, exactly.

    For a given S every R_k is best at -b^2 S/c^2, cut to [-1, 1]. So on |S| <= s0 = min(1, c^2/b^2) the value is S^2 times a number,
    least at an end; beyond it a^2 S^2 + m (c^2 - 2 b^2 |S|), least at m b^2/a^2 or an end.

    >>> least(Fraction(4), Fraction(2), Fraction(1), 1), least(Fraction(4), Fraction(2), Fraction(1), 2)
    (Fraction(0, 1), Fraction(-2, 1))
    """

    def at(s: Fraction) -> Fraction:
        r = min(b2 * s / c2, Fraction(1))
        return a2 * s * s + m * (c2 * r * r - 2 * b2 * s * r)

    turn = min(c2 / b2, Fraction(1))
    return min(Fraction(0), at(turn), at(min(max(m * b2 / a2, turn), Fraction(1))), at(Fraction(1)))
