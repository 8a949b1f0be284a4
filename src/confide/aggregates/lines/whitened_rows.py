"""Records in whitened coordinates: the maps under repeated releases of residual moments.

A round measures a record as u = T'z and r = clip((t - z'theta)/rho, -1, 1), with weight w = min(1, R2/|u|^2). T, theta, rho, R2 and the
box of z come from earlier noisy outputs, and for ANY of them every record obeys

    w |u|^2 <= R2,   w r^2 <= 1,   w^2 r^2 |u|^2 <= R2,

so that the integers obey |m|^2 <= 2^40 (`aggregates.rows`), whose floats do not even matter: a row that breaks it is cut. The plan
holds each map with its sensitivity before the numbers are known; `at(frame, ...)` gives the map of one round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, sqrt
from typing import ClassVar, Self

import numpy as np

from confide._arrays import Array
from confide.aggregates.cells.histogram import Histogram
from confide.aggregates.lines.coordinates import Frame, Located, LocatedRows
from confide.aggregates.lines.rows import (
    BITS,
    BOUND,
    aligned,
    lengths,
    only,
    round_within,
    shares,
    steps,
)

__all__ = ["Frame", "LeverageCells", "LeverageIndices", "WhitenedRows"]


@dataclass(frozen=True)
class WhitenedRows(LocatedRows):
    """One record as sqrt(w) (u, r) in integer steps: p features with |m_u|^2 <= 2^40 and a response with m_r^2 <= 2^40."""

    cap: float = 1.0
    kind: ClassVar[str] = "whitened rows"

    def at(self, frame: Frame, cap: float = 1.0) -> Self:
        """The map of one round. cap: R2."""
        return replace(self, frame=frame, cap=float(cap))

    @property
    def l2_squared(self) -> int:
        return 2 * BOUND

    @property
    def width(self) -> int:
        return self.features + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of u."""
        return steps(sqrt(self.cap), self.width)

    #: Integer steps in one unit of r.
    response_steps: ClassVar[int] = (1 << BITS) - 2

    @property
    def l1(self) -> int:
        return floor(sqrt(self.width - 1) * (1 << BITS)) + 1 + (1 << BITS)

    def of(self, records: Located) -> Array:
        rows = aligned(self.width, len(records.r))
        u, r = rows[:-1], rows[-1]
        with np.errstate(all="ignore"):
            root = only(shares(records.length, sqrt(self.cap)), records.keep)
            np.divide(records.r, self.rho, out=r)
            np.clip(r, -1.0, 1.0, out=r)
            r *= root
            r *= float(self.response_steps)
            root *= float(self.steps)
            np.multiply(records.v, root, out=u)
            round_within(u, length=lengths(records.square) * root)
            round_within(rows[-1:])
        return rows


@dataclass(frozen=True)
class LeverageIndices(LocatedRows):
    """The cell of |u|^2 among public edges p 2^(j/2), j = -4..6: 1 to 12, and 0 for a record that is dropped."""

    kind: ClassVar[str] = "leverage cells"
    width: ClassVar[int] = 1
    cells: ClassVar[int] = 12
    l1: ClassVar[int] = 12
    l2_squared: ClassVar[int] = 144

    def at(self, frame: Frame) -> Self:
        """The map in the coordinates of a frame."""
        return replace(self, frame=frame)

    @property
    def edges(self) -> Array:
        """The eleven edges."""
        return np.asarray(self.features * 2.0 ** (np.arange(-4, 7) / 2))

    def of(self, records: Located) -> Array:
        # what is no number counts as infinitely far out
        square = np.nan_to_num(records.square, nan=np.inf, posinf=np.inf)
        cell = 1.0 + np.searchsorted(self.edges, square, side="left")
        return only(cell, records.keep)[None, :]


@dataclass(frozen=True)
class LeverageCells(Histogram):
    """How many records lie in each cell of |u|^2, shape (12,): one record moves one count by 1."""

    map: LeverageIndices

    def at(self, frame: Frame) -> LeverageCells:
        """The statistic in the coordinates of a frame."""
        return LeverageCells(self.map.at(frame))
