"""In how many PSUs, or clusters, the records of each cell of a marginal lie, at least (`fewest`).

Guarantee. A record is in one PSU, and in one cell at most, so that one that comes or goes moves one number by 1 at most: sensitivity 1, in
the Euclidean norm and in that of sums. A record that is replaced leaves one number and enters another: sqrt(2), and 2. A unit of k rows, in
as many PSUs, comes or goes row by row: k times that. This holds whatever the caps are, which may come from earlier noisy numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.crossing import Axes, Crossing
from confide.aggregates.cells.free_moments import Measure
from confide.aggregates.cells.weighted_cells import CappedWeight, places_of_weights
from confide.aggregates.clusters.fewest import ramps_of
from confide.aggregates.clusters.psu_meat import Listed, PsuRows, PsuSums
from confide.aggregates.column_codes import codes_of, columns_of
from confide.protocol import RecordMap
from confide.protocol.exact import digest

__all__ = ["Contributing", "PresentIn"]

Array = NDArray[np.float64]
Caps = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class PresentIn(RecordMap):
    """1 in the cell that a record counts in: one with a level of each attribute, a value of `measure` and a weight above 0, where it has to
    have them.

    >>> import confide as cf
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b"])})
    >>> PresentIn(Crossing.of(("f",), schema), (0,))(np.array([[1.0, 0.0, -1.0]])).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """

    crossing: Crossing
    axes: Axes
    measure: Measure | None = None
    weight: CappedWeight | None = None

    l1: ClassVar[int] = 1
    l2_squared: ClassVar[int] = 1

    @property
    def width(self) -> int:
        return self.crossing.cells(self.axes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.crossing, self.measure, self.weight)

    @property
    def digest(self) -> str:
        parts = [None if own is None else own.digest for own in (self.measure, self.weight)]
        return digest(["present in", self.crossing.digest, list(self.axes), *parts])

    def __call__(self, codes: Array) -> Array:
        place = self.crossing.places(codes[: len(self.crossing.columns)], self.axes)
        there = place < self.width
        if self.measure is not None:
            _, keep = self.measure.places(codes_of(self.measure, self.columns, codes))
            there &= True if keep is None else keep
        if self.weight is not None:
            omega, keep = places_of_weights(self.weight, codes_of(self.weight, self.columns, codes))
            there &= (omega > 0) & (True if keep is None else keep)
        out = np.zeros((self.width, codes.shape[1]))
        out[place[there], np.flatnonzero(there)] = 1.0
        return out


@dataclass(frozen=True)
class Contributing(PsuSums):
    """(R_1, R_2), shape (2, cells). present: a map of records to 1 in their cell; listed: the public PSUs, None for those of an id column;
    caps: (m_1, m_2) by cell, 1 when left out.
    """

    present: RecordMap
    listed: Listed | None
    caps: Caps | None = None
    norm: str = "l2"

    def at(self, caps: NDArray[Any]) -> Contributing:
        """The same guarantee at other caps, (2, cells)."""
        low, high = caps.tolist()
        return replace(self, caps=(tuple(map(int, low)), tuple(map(int, high))))

    @cached_property
    def map(self) -> PsuRows:
        return PsuRows(self.present, self.listed)

    @property
    def shape(self) -> tuple[int, int]:
        return (2, self.present.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def value(self, state: dict[int, NDArray[np.int64]]) -> NDArray[Any]:
        caps = np.ones(self.shape, dtype=np.int64) if self.caps is None else np.array(self.caps, dtype=np.int64)
        return np.asarray(sum((ramps_of(own, caps) for own in state.values()), np.zeros(self.shape, dtype=np.int64)))
