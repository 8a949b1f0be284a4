"""Records in whitened coordinates: the maps under repeated releases of residual moments.

A round measures a record as u = T'z and r = clip((t - z'theta)/rho, -1, 1), with weight w = min(1, R2/|u|^2). T, theta, rho, R2 and the
box of z come from earlier noisy outputs, and for ANY of them every record obeys

    w |u|^2 <= R2,   w r^2 <= 1,   w^2 r^2 |u|^2 <= R2,

so that the integers obey |m|^2 <= 2^40 (`aggregates.rows`), whose floats do not even matter: a row that breaks it is cut. The plan
holds each map with its sensitivity before the numbers are known; `at(frame, ...)` gives the map of one round.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import floor, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.rows import BITS, BOUND, Box, CodedRows, round_within, scaled, steps
from confide.protocol.exact import digest
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
        r = t.copy()
        product = np.empty_like(r)
        for row, weight in zip(z, self.theta, strict=True):
            if weight != 0.0:
                np.multiply(row, weight, out=product)
                r -= product
        r /= self.rho
        return r


def _square(u: Array) -> Array:
    """|u|^2, coordinate by coordinate."""
    total = np.zeros(u.shape[1])
    square = np.empty(u.shape[1])
    for row in u:
        np.multiply(row, row, out=square)
        total += square
    return total


def _weight(u: Array, cap: float) -> Array:
    """min(1, cap/|u|^2); 1 where u is 0, NaN where it is no number."""
    weight = _square(u)
    np.divide(cap, weight, out=weight)
    return np.minimum(weight, 1.0, out=weight)


@dataclass(frozen=True)
class WhitenedRows(CodedRows):
    """One record as sqrt(w) (u, r) in integer steps: p features with |m_u|^2 <= 2^40 and a response with m_r^2 <= 2^40."""

    design: Design
    frame: Frame | None = None
    cap: float = 1.0
    l2_squared: int = field(default=2 * BOUND, init=False)

    def at(self, frame: Frame, cap: float) -> WhitenedRows:
        """The map of one round. cap: R2."""
        return replace(self, frame=frame, cap=float(cap))

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

    @property
    def digest(self) -> str:
        # the frame and the cap are left out: the bounds hold for any, and the plan does not know them yet
        return digest(["whitened rows", self.design.to_dict()])

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
            root = np.sqrt(_weight(u, self.cap))
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
class ScoreRows(CodedRows):
    """One record as w r u / reach in integer steps, r clipped at reach <= 1: its Gram matrix is the meat of a robust covariance.

    |w u| <= sqrt(R2) and |r| <= reach, so that the row is at most sqrt(R2).
    """

    design: Design
    frame: Frame | None = None
    cap: float = 1.0
    theta: tuple[float, ...] = ()
    reach: float = 1.0
    l2_squared: int = field(default=BOUND, init=False)

    def at(self, frame: Frame, cap: float, theta: Array, reach: float) -> ScoreRows:
        """The map at a line theta; reach: where residuals in units of the frame's rho are clipped."""
        return replace(self, frame=frame, cap=float(cap), theta=tuple(map(float, theta)), reach=float(reach))

    @property
    def width(self) -> int:
        return len(self.design.terms) + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of w r u / reach."""
        return steps(sqrt(self.cap), self.width)

    @property
    def digest(self) -> str:
        return digest(["score rows", self.design.to_dict()])

    def __call__(self, codes: Array) -> Array:
        frame = self.frame or Frame.start(Box.of(self.design))
        rows, keep = scaled(self.design, codes, frame.box)
        with np.errstate(all="ignore"):
            u = frame.whitened(rows[:-1])
            r = replace(frame, theta=self.theta or frame.theta).residual(rows[:-1], rows[-1])
            r /= self.reach
            np.clip(r, -1.0, 1.0, out=r)
            r *= _weight(u, self.cap)
            r *= float(self.steps)
            if keep is not None:
                r *= keep
            u *= r
            return round_within(u)


@dataclass(frozen=True)
class FarResiduals:
    """1 for a complete record whose residual is clipped, |t - z'theta| > rho, and 0 for any other."""

    design: Design
    frame: Frame | None = None
    width: int = field(default=1, init=False)
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)

    def at(self, frame: Frame) -> FarResiduals:
        """The map in the coordinates of a frame."""
        return replace(self, frame=frame)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def digest(self) -> str:
        return digest(["far residuals", self.design.to_dict()])

    def __call__(self, codes: Array) -> Array:
        frame = self.frame or Frame.start(Box.of(self.design))
        rows, keep = scaled(self.design, codes, frame.box)
        with np.errstate(all="ignore"):
            # what is no number counts as far
            far = 1.0 - (np.abs(frame.residual(rows[:-1], rows[-1])) <= 1.0)
        if keep is not None:
            far *= keep
        return np.asarray(far[None, :])


@dataclass(frozen=True)
class LeverageIndices:
    """The cell of |u|^2 among public edges p 2^(j/2), j = -4..6: 1 to 12, and 0 for a record that is dropped."""

    design: Design
    frame: Frame | None = None
    width: int = field(default=1, init=False)
    l1: int = field(default=12, init=False)
    l2_squared: int = field(default=144, init=False)

    def at(self, frame: Frame) -> LeverageIndices:
        """The map in the coordinates of a frame."""
        return replace(self, frame=frame)

    @property
    def edges(self) -> Array:
        """The eleven edges."""
        return np.asarray((len(self.design.terms) + 1) * 2.0 ** (np.arange(-4, 7) / 2))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def digest(self) -> str:
        return digest(["leverage cells", self.design.to_dict()])

    def __call__(self, codes: Array) -> Array:
        frame = self.frame or Frame.start(Box.of(self.design))
        rows, keep = scaled(self.design, codes, frame.box)
        with np.errstate(all="ignore"):
            square = _square(frame.whitened(rows[:-1]))
        # what is no number counts as infinitely far out
        cell = 1.0 + np.searchsorted(self.edges, np.nan_to_num(square, nan=np.inf, posinf=np.inf), side="left")
        if keep is not None:
            cell *= keep
        return np.asarray(cell[None, :])


@dataclass(frozen=True)
class LeverageCells:
    """How many records lie in each cell of |u|^2, shape (12,): one record moves one count by 1."""

    map: LeverageIndices
    shape: tuple[int] = field(default=(12,), init=False)
    norm: str = field(default="cells", init=False)

    def at(self, frame: Frame) -> LeverageCells:
        """The statistic in the coordinates of a frame."""
        return LeverageCells(self.map.at(frame))

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def zero(self) -> NDArray[np.int64]:
        return np.zeros(13, dtype=np.int64)

    def update(self, state: NDArray[np.int64], codes: Array) -> NDArray[np.int64]:
        state += np.bincount(self.map(codes)[0].astype(np.int64), minlength=13)
        return state

    def merge(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        return a + b

    def value(self, state: NDArray[np.int64]) -> NDArray[Any]:
        return state[1:].copy()
