"""Counts of records by cell: every table of which one record moves one cell by 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.protocol import Beginning, RecordMap, Statistic

__all__ = ["CellMap", "CellNumber", "Histogram", "WholeSums"]


class CellMap(RecordMap, Protocol):
    """A map of one record to the cell that it lies in, from 1 on, 0 for none."""

    @property
    def cells(self) -> int: ...


class CellNumber(RecordMap):
    """The bounds of a map to one of `cells` cells, whose number is all that it gives."""

    width: ClassVar[int] = 1

    if TYPE_CHECKING:

        @property
        def cells(self) -> int: ...

    @property
    def l1(self) -> int:
        return self.cells

    @property
    def l2_squared(self) -> int:
        return self.cells**2


class WholeSums(Statistic):
    """What tables of sums share: int64 states that begin at zeros and merge by adding."""

    norm: ClassVar[str] = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def zero(self) -> NDArray[Any]:
        return np.zeros(self.shape, dtype=np.int64)

    def merge(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(a + b)

    def value(self, state: NDArray[Any]) -> NDArray[Any]:
        return state.copy()


@dataclass(frozen=True)
class Histogram(WholeSums):
    """How many records lie in each cell of a map, shape (cells,): one record moves one count by 1, two when it is replaced."""

    map: CellMap
    norm: ClassVar[str] = "cells"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.cells,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    @property
    def begins(self) -> Beginning | None:
        """The map's beginning, where it has one."""
        return self.map.begins

    def update(self, state: NDArray[np.int64], codes: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.add(state, self.map(codes))

    def take(self, state: NDArray[np.int64], begun: Any) -> NDArray[np.int64]:
        """`update`, from the map's beginning on."""
        return self.add(state, self.map.of(begun))  # type: ignore[attr-defined]

    def add(self, state: NDArray[np.int64], rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count cells of the map."""
        state += np.bincount(rows[0].astype(np.int64), minlength=self.map.cells + 1)[1:]
        return state
