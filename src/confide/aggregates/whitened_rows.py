"""Records in whitened coordinates: the maps under repeated releases of residual moments.

A round measures a record as u = T'z and r = clip((t - z'theta)/rho, -1, 1), with weight w = min(1, R2/|u|^2). T, theta, rho, R2 and the
box of z come from earlier noisy outputs, and for ANY of them every record obeys

    w |u|^2 <= R2,   w r^2 <= 1,   w^2 r^2 |u|^2 <= R2,

so that the integers obey |m|^2 <= 2^40 (`aggregates.rows`), whose floats do not even matter: a row that breaks it is cut. The plan
holds each map with its sensitivity before the numbers are known; `at(frame, ...)` gives the map of one round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, sqrt
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.histogram import Histogram
from confide.aggregates.rows import (
    BITS,
    BOUND,
    Box,
    CodedRows,
    DesignRows,
    IndicatorRows,
    leverage,
    residual,
    round_within,
    scaled,
    steps,
    weights,
)
from confide.schema import Design

__all__ = ["FarResiduals", "Frame", "LeverageCells", "LeverageIndices", "ScoreRows", "WhitenedRows"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """Where a round stands: the box of z, T (p, p) row by row, the line theta (p,) so far, and the scale rho of its residuals."""

    box: Box
    transform: tuple[tuple[float, ...], ...]
    theta: tuple[float, ...]
    rho: float

    @classmethod
    def start(cls, box: Box) -> Frame:
        """T = I, theta = 0, rho = 1: the first round."""
        p = len(box.middle) + 1
        return cls(box, tuple(tuple(float(i == j) for j in range(p)) for i in range(p)), (0.0,) * p, 1.0)

    @classmethod
    def of(cls, box: Box, transform: Array, theta: Array, rho: float) -> Frame:
        """From arrays."""
        return cls(
            box, tuple(tuple(map(float, row)) for row in np.asarray(transform)), tuple(map(float, theta)), float(rho)
        )

    @property
    def matrix(self) -> Array:
        """T as an array, shape (p, p)."""
        return np.array(self.transform, dtype=np.float64)

    @property
    def line(self) -> Array:
        """theta as an array, shape (p,)."""
        return np.array(self.theta, dtype=np.float64)

    @cached_property
    def plain(self) -> bool:
        """Whether T = I, as in the first round: then u is z itself."""
        return all(weight == float(i == j) for i, row in enumerate(self.transform) for j, weight in enumerate(row))

    def whitened(self, z: Array) -> Array:
        """u = T'z, shape (p, records), one multiplication after the other: a matrix product would depend on the batch."""
        u = np.zeros_like(z)
        product = np.empty(z.shape[1])
        for source, row in zip(z, self.transform, strict=True):
            for target, weight in zip(u, row, strict=True):
                if weight == 1.0:
                    target += source
                elif weight != 0.0:
                    np.multiply(source, weight, out=product)
                    target += product
        return u

    def residual(self, z: Array, t: Array) -> Array:
        """(t - z'theta)/rho, shape (records,), not clipped."""
        r = residual(z, t, self.theta)
        r /= self.rho
        return r


@dataclass(frozen=True)
class FramedRows(DesignRows):
    """What maps in the coordinates of a frame share; without one the public box, T = I, theta = 0.

    The frame and all limits are left out of the digest: the bounds hold for any, and the plan does not know them yet.
    """

    design: Design
    frame: Frame | None = None

    def at(self, frame: Frame) -> Self:
        """The map in the coordinates of a frame."""
        return replace(self, frame=frame)

    def _framed(self, codes: Array) -> tuple[Frame, Array, Array, NDArray[np.bool_] | None]:
        """The frame, z (p, records), t (records,), and which records count."""
        frame = self.frame or Frame.start(Box.of(self.design))
        rows, keep = scaled(self.design, codes, frame.box)
        return frame, rows[:-1], rows[-1], keep


@dataclass(frozen=True)
class WhitenedRows(FramedRows, CodedRows):
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
        return len(self.design.terms) + 2

    @property
    def steps(self) -> int:
        """Integer steps in one unit of u."""
        return steps(sqrt(self.cap), self.width)

    #: Integer steps in one unit of r.
    response_steps: ClassVar[int] = (1 << BITS) - 2

    @property
    def l1(self) -> int:
        return floor(sqrt(self.width - 1) * (1 << BITS)) + 1 + (1 << BITS)

    def __call__(self, codes: Array) -> Array:
        frame = self.frame or Frame.start(Box.of(self.design))
        rows, keep = scaled(self.design, codes, frame.box)
        with np.errstate(all="ignore"):
            r = frame.residual(rows[:-1], rows[-1])
            if not frame.plain:
                rows[:-1] = frame.whitened(rows[:-1])
            u, rows[-1] = rows[:-1], r
            r = rows[-1]
            np.clip(r, -1.0, 1.0, out=r)
            root = np.sqrt(weights(u, self.cap))
            if keep is not None:
                root *= keep
            r *= root
            r *= float(self.response_steps)
            root *= float(self.steps)
            u *= root
            round_within(u)
            round_within(rows[-1:])
            return rows


@dataclass(frozen=True)
class ScoreRows(FramedRows, CodedRows):
    """One record as w r u / reach in integer steps, r clipped at reach <= 1: its Gram matrix is the meat of a robust covariance.

    |w u| <= sqrt(R2) and |r| <= reach, so that the row is at most sqrt(R2).
    """

    cap: float = 1.0
    theta: tuple[float, ...] = ()
    reach: float = 1.0
    kind: ClassVar[str] = "score rows"

    def at(self, frame: Frame, cap: float = 1.0, theta: Sequence[float] | Array = (), reach: float = 1.0) -> Self:
        """The map at a line theta; reach: where residuals in units of the frame's rho are clipped."""
        return replace(self, frame=frame, cap=float(cap), theta=tuple(map(float, theta)), reach=float(reach))

    @property
    def width(self) -> int:
        return len(self.design.terms) + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of w r u / reach."""
        return steps(sqrt(self.cap), self.width)

    def __call__(self, codes: Array) -> Array:
        frame, z, t, keep = self._framed(codes)
        with np.errstate(all="ignore"):
            u = frame.whitened(z)
            r = replace(frame, theta=self.theta or frame.theta).residual(z, t)
            r /= self.reach
            np.clip(r, -1.0, 1.0, out=r)
            r *= weights(u, self.cap)
            r *= float(self.steps)
            if keep is not None:
                r *= keep
            u *= r
            return round_within(u)


@dataclass(frozen=True)
class FarResiduals(FramedRows, IndicatorRows):
    """1 for a complete record whose residual is clipped, |t - z'theta| > rho, and 0 for any other."""

    kind: ClassVar[str] = "far residuals"

    def __call__(self, codes: Array) -> Array:
        frame, z, t, keep = self._framed(codes)
        with np.errstate(all="ignore"):
            # what is no number counts as far
            far = 1.0 - (np.abs(frame.residual(z, t)) <= 1.0)
        if keep is not None:
            far *= keep
        return np.asarray(far[None, :])


@dataclass(frozen=True)
class LeverageIndices(FramedRows):
    """The cell of |u|^2 among public edges p 2^(j/2), j = -4..6: 1 to 12, and 0 for a record that is dropped."""

    kind: ClassVar[str] = "leverage cells"
    width: ClassVar[int] = 1
    cells: ClassVar[int] = 12
    l1: ClassVar[int] = 12
    l2_squared: ClassVar[int] = 144

    @property
    def edges(self) -> Array:
        """The eleven edges."""
        return np.asarray((len(self.design.terms) + 1) * 2.0 ** (np.arange(-4, 7) / 2))

    def __call__(self, codes: Array) -> Array:
        frame, z, _, keep = self._framed(codes)
        with np.errstate(all="ignore"):
            square = leverage(frame.whitened(z))
        # what is no number counts as infinitely far out
        cell = 1.0 + np.searchsorted(self.edges, np.nan_to_num(square, nan=np.inf, posinf=np.inf), side="left")
        if keep is not None:
            cell *= keep
        return np.asarray(cell[None, :])


@dataclass(frozen=True)
class LeverageCells(Histogram):
    """How many records lie in each cell of |u|^2, shape (12,): one record moves one count by 1."""

    map: LeverageIndices

    def at(self, frame: Frame) -> LeverageCells:
        """The statistic in the coordinates of a frame."""
        return LeverageCells(self.map.at(frame))
