"""Sums by cell of a marginal, as exact integers: counts, and blocks of numbers that stand in the cell of their record.

Counts. A record adds 1 to one cell. Squared sensitivity 1 under add-remove; under substitute 2, two records in different cells.

Blocks. A record adds a block m of integers with |m|^2 <= L to the numbers of its own cell. Squared sensitivity L under add-remove. Under
substitute two records in different cells do not overlap, |m|^2 + |m'|^2 <= 2 L; two in one cell differ by |m - m'|^2, which the map of the
block bounds (`together`). Either may also give way to a record in no cell, which is the case of add-remove.

Marginals are counted one by one: noise, and with it the budget, is the marginal's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.aggregates.cells.crossing import Axes, Crossing
from confide.aggregates.cells.histogram import CellNumber, WholeSums
from confide.protocol import RecordMap
from confide.protocol.exact import digest

__all__ = ["CellCounts", "CellIndex", "CellRows", "CellTotals"]


# Rows that are added at once: 2^20 entries of at most 2^30 are exact in doubles.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class CellIndex(CellNumber):
    """The cell of a record in a marginal, from 1 on; 0 for a record that is in none.

    >>> import confide as cf
    >>> own = Crossing.of(("f", "g"), cf.Schema({"f": cf.Categorical(["a", "b"]), "g": cf.Categorical(["u", "v"])}))
    >>> CellIndex(own, (0, 1))(np.array([[0.0, 1.0, -1.0], [1.0, 1.0, 0.0]])).tolist()
    [[2.0, 4.0, 0.0]]
    """

    crossing: Crossing
    axes: Axes

    @property
    def cells(self) -> int:
        return self.crossing.cells(self.axes)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.crossing.columns

    @property
    def separates(self) -> tuple[str, ...]:
        return self.crossing.separated(self.axes)

    @property
    def additive(self) -> bool:
        return self.crossing.additive

    @cached_property
    def digest(self) -> str:
        return digest(["cell", self.crossing.digest, list(self.axes)])

    def __call__(self, codes: Array) -> Array:
        place = self.crossing.places(codes, self.axes) + 1
        place[place > self.cells] = 0
        return np.asarray(place[None, :], dtype=np.float64)


class _Added(WholeSums):
    """What sums by cell share: int64 states that begin at zeros and merge by adding; cells stand last in them, before what is in none."""

    map: Any

    def zero(self) -> Whole:
        return np.zeros(self._state, dtype=np.int64)

    @property
    def _state(self) -> tuple[int, ...]:
        raise NotImplementedError

    def value(self, state: Whole) -> NDArray[Any]:
        return state.ravel().astype(object)

    def marginal_of(self, other: Any) -> Callable[[Whole], Whole] | None:
        """`Marginal`: each cell is the sum of the cells of a finer marginal that lie in it, and what is in none is in none of either."""
        if type(other) is not type(self) or not self.map.additive:
            return None
        own, finer = self.map, other.map
        if len(own.axes) >= len(finer.axes) or own.axes != tuple(axis for axis in finer.axes if axis in own.axes):
            return None
        if own.crossing != finer.crossing or replace(own, axes=finer.axes) != finer:
            return None
        return partial(self._folded, finer.axes)

    def _folded(self, finer: Axes, state: Whole) -> Whole:
        crossing, own = self.map.crossing, self.map.axes
        cells = crossing.cells(finer)
        parts = state[..., :cells].reshape(*state.shape[:-1], *crossing.shape(finer))
        out = tuple(axis - len(finer) for axis, name in enumerate(finer) if name not in own)
        kept = parts.sum(axis=out).reshape(*state.shape[:-1], crossing.cells(own))
        return np.concatenate([kept, state[..., cells:]], axis=-1)


@dataclass(frozen=True)
class CellCounts(_Added):
    """How many records lie in each cell, shape (cells,): one record moves one count by 1, a substitute two."""

    map: CellIndex
    norm: ClassVar[str] = "cells"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.cells,)

    @property
    def _state(self) -> tuple[int, ...]:
        return (self.map.cells + 1,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        alone = self.map.cells == 1  # a substitute is in the same cell, or in none
        return Fraction(2 if relation == "substitute" and not alone else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def update(self, state: Whole, codes: Array) -> Whole:
        # those in no cell are counted behind the last one
        place = self.map.crossing.places(codes, self.map.axes)
        if len(state) > 4 * len(place):
            np.add.at(state, place, 1)
        else:
            state += np.bincount(place, minlength=len(state))
        return state

    def value(self, state: Whole) -> NDArray[Any]:
        return state[:-1].astype(object)


@dataclass(frozen=True)
class CellRows(RecordMap, ABC):
    """One record as a block of integers in the numbers of its cell: entry i of cell c stands at i cells + c, all others are 0.

    A subclass gives the block (`block`, `rows`) and its bounds, `l2_squared`, `l1` and `together`.
    """

    crossing: Crossing
    axes: Axes
    #: Whether a record's block is the same in every marginal, so that coarser ones are sums of finer ones.
    additive: ClassVar[bool] = False

    @property
    def cells(self) -> int:
        return self.crossing.cells(self.axes)

    @property
    def separates(self) -> tuple[str, ...]:
        """The columns whose different values lie in numbers of their own (`protocol.orthogonal`)."""
        return self.crossing.separated(self.axes)

    @property
    @abstractmethod
    def block(self) -> int:
        """Numbers of a record."""

    @property
    @abstractmethod
    def together(self) -> int:
        """A bound on |m - m'|^2 for two records in one cell."""

    @property
    @abstractmethod
    def l2_squared(self) -> int: ...

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def digest(self) -> str: ...

    @abstractmethod
    def rows(self, codes: Array) -> tuple[Whole, Array]:
        """The cell of each record (the number of cells for one in none) and its block, shape (block, rows)."""

    @property
    def l1(self) -> int:
        return isqrt(self.block * self.l2_squared) + 1

    @property
    def width(self) -> int:
        return self.block * self.cells

    def __call__(self, codes: Array) -> Array:
        place, rows = self.rows(codes)
        out = np.zeros((self.block, self.cells + 1, codes.shape[1]))
        out[:, place, np.arange(codes.shape[1])] = rows
        return np.asarray(out[:, :-1].reshape(self.width, codes.shape[1]))


@dataclass(frozen=True)
class CellTotals(_Added):
    """The blocks of all records added up by cell, shape (block cells,), with the exact sensitivity of both relations."""

    map: CellRows
    norm: ClassVar[str] = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    @property
    def _state(self) -> tuple[int, ...]:
        return (self.map.block, self.map.cells)

    def sensitivity_squared(self, relation: str) -> Fraction:
        alone = self.map.l2_squared
        if relation != "substitute":
            return Fraction(alone)
        apart = 2 * alone if self.map.cells > 1 else alone
        return Fraction(max(self.map.together, apart))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" else 1))

    def update(self, state: Whole, codes: Array) -> Whole:
        place, rows = self.map.rows(codes)
        cells = self.map.cells
        for start in range(0, len(place), _CHUNK):
            own = place[start : start + _CHUNK]
            for total, row in zip(state, rows[:, start : start + _CHUNK], strict=True):
                total += np.bincount(own, weights=row, minlength=cells + 1)[:cells].astype(np.int64)
        return state
