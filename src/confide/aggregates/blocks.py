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
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.rows import BITS, BOUND
from confide.protocol import Gram, RecordMap

__all__ = ["BlockGram", "multipliers"]

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


@dataclass(frozen=True)
class BlockGram:
    """The Gram matrix of a map whose last row is the response, its blocks times (a, b, c); shape (width, width)."""

    map: RecordMap
    blocks: tuple[int, int, int]
    norm: str = field(default="frobenius", init=False)

    @property
    def _gram(self) -> Gram:
        return Gram(self.map, entry_bits=BITS)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.map.width, self.map.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        a2, b2, c2 = (Fraction(x) ** 2 for x in self.blocks)
        whole = a2 + 2 * b2 + c2
        if relation != "substitute":
            return BOUND**2 * whole
        return BOUND**2 * 2 * (whole - _least(a2, b2, c2))

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= width |M|_F, and isqrt rounds down
        whole = self.sensitivity_squared(relation)
        return Fraction(self.map.width * (isqrt(int(whole)) + 1))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared changes in the Frobenius norm when the record with the row `own` gives way to each of `rows`."""
        a2, b2, c2 = (x * x for x in self.blocks)

        def inner(one: Any, other: Any) -> Any:
            features = (one[:-1] * other[:-1]).sum(axis=0)
            response = one[-1] * other[-1]
            return a2 * features**2 + 2 * b2 * features * response + c2 * response**2

        own = own[:, None]
        return inner(rows, rows) + inner(own, own) - 2 * inner(own, rows)

    def zero(self) -> Any:
        return self._gram.zero()

    def update(self, state: Any, codes: NDArray[np.float64]) -> Any:
        return self._gram.update(state, codes)

    def merge(self, a: Any, b: Any) -> Any:
        return self._gram.merge(a, b)

    def value(self, state: Any) -> NDArray[Any]:
        whole = self._gram.value(state).copy()
        a, b, c = self.blocks
        whole[:-1, :-1] *= a
        whole[:-1, -1] *= b
        whole[-1, :-1] *= b
        whole[-1, -1] *= c
        return whole


def _least(a2: Fraction, b2: Fraction, c2: Fraction) -> Fraction:
    """The minimum of a^2 S^2 + 2 b^2 S R + c^2 R^2 over |S|, |R| <= 1, exactly."""
    if b2 * b2 <= a2 * c2:
        return Fraction(0)
    edges = []
    for own, other in ((a2, c2), (c2, a2)):  # S free and R = -1, or the other way round
        at = min(b2 / own, Fraction(1))
        edges.append(own * at * at - 2 * b2 * at + other)
    return min(edges)
