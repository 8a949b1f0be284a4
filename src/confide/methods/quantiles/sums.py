"""Noisy trees of counts: numbers of records of bins, and of ever larger nodes of neighboring bins, for pure DP.

A record lies in one fine bin of its column, so in one of m bins that are whole runs of fine ones. It lies in one node of each of h levels
above and including the bins. Released are numbers of records of all nodes.

Sensitivity: one record more or fewer moves one node of each level by 1, h in l1; one replaced moves two by 1 in each, 2 h. Both hold
wherever the bins start, and so for starts that follow from noisy numbers: epsilons of adaptive rounds add up (Dwork, Rothblum, Vadhan
2010). Least squares makes counts of the bins that add up (Hay, Rastogi, Miklau, Suciu 2010). "Up to x" is the sum of a few nodes of each
level, where bins alone would add up hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Whole
from confide.methods.quantiles.fitted_bins import Fine
from confide.sums.cells.cell_sums import CellNumber, WholeSums
from confide.sums.coding import BITS
from confide.sums.columns import OfColumn
from confide.sums.distributions.cumulative import Strategy


@dataclass(frozen=True)
class FinePlace(OfColumn, CellNumber):
    """One record as its fine bin, counted from 1; 0 for one that is excluded."""

    fine: Fine

    @property
    def cells(self) -> int:
        """Number of fine bins."""
        return self.fine.size

    @property
    def digest(self) -> str:
        return self._digest("fine place", self.fine.width)

    def __call__(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        there = codes[:1] >= 0
        return np.asarray(np.where(there, self.fine.at(np.where(there, codes[:1], 0.0)) + 1.0, 0.0))


@dataclass(frozen=True)
class TreeCounts(WholeSums):
    """Numbers of records in all nodes, level by level, shape (nodes,).

    tree: children of a node, level by level; starts: the fine bins at which the bins start, as many as the tree has or fewer, whose other
    bins are empty.
    """

    map: FinePlace
    tree: tuple[int, ...]
    starts: tuple[int, ...]
    norm: ClassVar[str] = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(self._sizes),)

    @property
    def _sizes(self) -> list[int]:
        """Number of nodes of each level."""
        return [prod(self.tree[: level + 1]) for level in range(len(self.tree))]

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(len(self.tree) * (2 if relation == "substitute" else 1))

    sensitivity_l1 = sensitivity_squared

    def zero(self) -> Whole:
        return np.zeros(self._sizes[-1], dtype=np.int64)

    def update(self, state: Whole, codes: NDArray[np.float64]) -> Whole:
        state += np.bincount(self._bins(self.map(codes)[0]), minlength=len(state) + 1)[1:]
        return state

    def value(self, state: Whole) -> NDArray[Any]:
        return np.concatenate([state.reshape(size, -1).sum(axis=1) for size in self._sizes]).astype(object)

    def of_fine(self, counts: Whole, starts: Whole) -> NDArray[Any]:
        """The numbers of all nodes, from those of the fine bins, for bins that start at `starts`."""
        own = replace(self, starts=tuple(starts.tolist()))
        state = own.zero()
        state[: len(starts)] = np.add.reduceat(counts, starts)
        return own.value(state)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Nodes that differ, where a record gives way to each of others."""
        one, others = self._bins(own), self._bins(rows)
        found = 0
        for size in self._sizes:
            wide = self._sizes[-1] // size
            a, b = -(-one // wide), -(-others // wide)
            found = found + ((b != a[:, None]) * ((b > 0) * 1 + (a > 0)[:, None] * 1)).sum(axis=0)
        return found

    def _bins(self, places: Any) -> Whole:
        """Bins of records, from 1, 0 for none."""
        return np.searchsorted(np.array(self.starts), np.asarray(places).astype(np.int64) - 1, side="right")


@lru_cache(maxsize=8)
def tree_strategy(tree: tuple[int, ...], bins: int) -> Strategy:
    """Least squares of a tree of counts whose first so many bins may hold records, in units where noise has variance 1.

    >>> own = tree_strategy((16, 16), 256)
    >>> [round(float(own.centred(q)[int(256 * q)]), 1) for q in (0.1, 0.5)]
    [5.0, 3.8]
    """
    size, levels = prod(tree), []
    for children in tree:
        size //= children
        levels.append(np.kron(np.eye(prod(tree) // size, dtype=np.int64), np.ones((1, size), dtype=np.int64)))
    return Strategy(np.concatenate(levels)[:, :bins] << BITS, len(tree))
