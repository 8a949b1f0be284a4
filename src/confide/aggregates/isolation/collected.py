"""The coded records themselves, for computations that are no sum: likelihoods, order statistics, distances.

What comes of it is private and never drawn. The rows stand in an order that depends on their content alone, so that sums of doubles over
them, and everything that follows, are the same for any order, batch and thread of the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.protocol import RecordMap, Statistic

__all__ = ["Collected"]

# Odd multipliers of a mix of 64 bits; they decide an order, nothing else.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ROUND = np.uint64(0xBF58476D1CE4E5B9)
# For rows of at most 2^20 in size: factors below 2^28, of which 31 sums stay below 2^53.
_SMALL = float(1 << 20)
_FACTORS = np.array([(0x9E3779B97F4A7C15 * (j + 1) >> 20) % (1 << 28) | 1 for j in range(31)], dtype=np.float64)


@dataclass(frozen=True)
class Collected(Statistic):
    """All rows of a record map, shape (width, n), float64 integers in a canonical order. Memory grows with the number of records.

    It has no sensitivity: a plan cannot spend on it.
    """

    map: RecordMap
    norm: str = field(default="none", init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        raise PlanError("records that are collected have no sensitivity; spend on a bounded function of them")

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def zero(self) -> list[NDArray[np.float64]]:
        return []

    def update(self, state: list[NDArray[np.float64]], codes: Any) -> list[NDArray[np.float64]]:
        state.append(np.array(self.map(codes), dtype=np.float64))  # a copy: codes are borrowed
        return state

    def merge(self, a: list[NDArray[np.float64]], b: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        return a + b

    def value(self, state: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        if not state:
            return np.zeros((self.map.width, 0))
        rows = np.concatenate(state, axis=1)
        return np.take(rows, _order(rows), axis=1)


def _order(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions in the order of a mix of each row's numbers; rows that share a mix, in the order of the numbers.

    Which of two rows stands first hangs on these two alone: one record more leaves all others in the order that they had, so that no block
    but its own is another one to code that looks at the order of its rows.
    """
    key = _mixed(rows)
    order = np.argsort(key)
    return order if _told_apart(rows, key, order) else np.asarray(np.lexsort((*rows, key)))


def _mixed(rows: NDArray[np.float64]) -> NDArray[Any]:
    """One number for each row, the same among any others."""
    if len(rows) <= len(_FACTORS):
        if not rows.size or np.abs(rows).max() <= _SMALL:
            # whole numbers below 2^53 all the way, so that the sums are exact in any order
            return np.asarray(_FACTORS[: len(rows)] @ rows)
        # the same sums, modulo 2^64
        key = np.zeros(rows.shape[1], dtype=np.int64)
        for factor, row in zip(_FACTORS.astype(np.int64), rows.astype(np.int64), strict=False):
            key += factor * row
        return key
    mixed = np.zeros(rows.shape[1], dtype=np.uint64)
    for row in rows.astype(np.int64).view(np.uint64):
        mixed = (mixed ^ row) * _MIX
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _ROUND
    return mixed


def _told_apart(rows: NDArray[np.float64], key: NDArray[Any], order: NDArray[np.int64]) -> bool:
    """Whether neighbours in the order that share a key are equal rows, whose order does not matter."""
    same = key[order[1:]] == key[order[:-1]]
    return not bool((rows[:, order[1:][same]] != rows[:, order[:-1][same]]).any())
