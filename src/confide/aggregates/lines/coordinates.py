"""Records in the coordinates of a frame: v = T'z and r = t - z'theta of each record, by one exact product of integers.

The coordinates of a record are one linear map of its codes. Rounded to integers that keep every sum below 2^53 it is one exact matrix
product, so that no number depends on the batch, on the order or on the machine; all further float steps are elementwise.

Rounding the map moves no bound: what is coded from v and r is cut to its bound whatever they are, and the map is the same for all records.
It moves v by at most 2^-28 of the largest |v_j| that the public box allows, far below a step of what is coded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.lines.rows import BITS, Box, CodedRows, leverage
from confide.protocol import Beginning
from confide.protocol.products import exact_products, product
from confide.schema import Design

__all__ = ["Coordinates", "Frame", "InCoordinates", "Located", "LocatedRows", "Locating", "PartialFrame"]


# Sums of products stay below this, with room for the rounding of the map.
_ROOM = 2.0**52
# Features from which on results stay: their memory grows with the features, what they spare with the square, and ten are about even.
_WIDE = 32


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


@dataclass(frozen=True)
class PartialFrame(Frame):
    """A frame for records outside some cells: (terms, present) is the cell where any of these 0/1 terms is 1, or where none is."""

    apart: tuple[tuple[tuple[int, ...], bool], ...] = ()

    def outside(self, terms: Array) -> NDArray[np.bool_]:
        """Which records lie in none of the cells, (records,), from the codes of the terms."""
        kept = np.ones(terms.shape[1], dtype=np.bool_)
        for places, present in self.apart:
            kept &= (terms[list(places)] > 0).any(axis=0) != present
        return kept


@dataclass(frozen=True)
class Coordinates:
    """v = M z and r = t - z'theta of records, from their codes: out = scale * (matrix @ codes) + shift, row r last.

    `matrix` holds integers, shape (p + 1, terms + 1), with sum |entry| |code| < 2^53 for any record.
    """

    matrix: Array
    scale: Array
    shift: Array

    @classmethod
    def of(cls, design: Design, frame: Frame) -> Coordinates:
        """The map of a frame: T' = M, theta; the frame's scale of residuals is not used."""
        slope, shift = _linear(design, frame)
        codes = np.array([max(term.steps - 1, 1) for term in (*design.terms, design.response)], dtype=np.float64)
        # columns of few values are brought to the size of the others, exactly, so that one scale serves a whole row
        lift = 2.0 ** np.maximum(BITS - np.ceil(np.log2(codes)), 0.0)
        slope = slope / lift
        largest = np.abs(slope) @ (codes * lift)
        largest = np.where(np.isfinite(largest) & (largest > 0), largest, 1.0)
        scale = 2.0 ** np.clip(np.floor(np.log2(_ROOM / largest)), -900, 900)
        whole = np.rint(np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0) * scale[:, None])
        # a hair of rounding may pass the bound only where numbers are beyond use; then the row is nothing
        whole[np.abs(whole) @ (codes * lift) >= 2 * _ROOM] = 0.0
        return cls(whole * lift, 1.0 / scale, shift)

    @cached_property
    def _scaled(self) -> Array:
        """scale * matrix. Each scale is a power of two, so that sums of the scaled integers are exact where those of the integers are."""
        return self.matrix * self.scale[:, None]

    @cached_property
    def _alone(self) -> NDArray[np.intp] | None:
        """The code that each row is a multiple of, where each is, as before anything is known of the columns; None elsewhere."""
        apart = (self.matrix != 0).sum(axis=1).max() <= 1
        return np.abs(self.matrix).argmax(axis=1) if apart else None

    @cached_property
    def last(self) -> Coordinates:
        """The map to r alone, to the bit."""
        return Coordinates(self.matrix[-1:], self.scale[-1:], self.shift[-1:])

    def __call__(self, codes: Array, out: Array | None = None) -> Array:
        """Rows (v, r), shape (p + 1, records), from the terms' codes; into `out` where it is given."""
        with np.errstate(all="ignore"):
            if self._alone is not None:
                if out is None:
                    out = np.empty((len(self.matrix), codes.shape[1]))
                # the products of a matrix of these rows, without its zeros: exact as they are
                for row, at, scaled in zip(out, self._alone, self._scaled, strict=True):
                    np.multiply(codes[at], scaled[at], out=row)
            elif exact_products():
                out = product(self._scaled, codes, out)
            else:
                out = _whole_product(self.matrix, codes, out)
                out *= self.scale[:, None]
            out += self.shift[:, None]
        return out


def _linear(design: Design, frame: Frame) -> tuple[Array, Array]:
    """(slopes (p + 1, terms + 1), shift (p + 1,)) of (v, r) in the codes of terms and response."""
    public_middle, public_half = Box.of(design).arrays
    middle, half = frame.box.arrays
    # z = start + stretch c, t = -1 + last c
    stretch = np.array([2.0 / max(term.steps - 1, 1) for term in (*design.terms, design.response)])
    last = stretch[-1]
    start = np.concatenate([[1.0], (public_middle - public_half - middle) / half])
    stretch = stretch[:-1] * public_half / half
    transform, theta = frame.matrix, frame.line
    p = len(theta)
    slope = np.zeros((p + 1, p))
    slope[:p, :-1] = (transform[1:] * stretch[:, None]).T
    slope[p, :-1] = -theta[1:] * stretch
    slope[p, -1] = last
    return slope, np.append(start @ transform, -1.0 - float(start @ theta))


def _whole_product(matrix: Array, codes: Array, out: Array | None) -> Array:
    """matrix @ codes in integers."""
    whole = np.einsum("ij,jk->ik", matrix.astype(np.int64), codes.astype(np.int64))
    if out is None:
        return np.asarray(whole, dtype=np.float64)
    out[:] = whole
    return out


@dataclass(frozen=True, eq=False)
class Located:
    """Records in the coordinates of a frame: v (p, records), r (records,), and which records count (None: all). Read only.

    room: where their squares and lengths are written, (2, records).
    """

    v: Array
    r: Array
    keep: NDArray[np.bool_] | None
    room: Array | None = None

    @cached_property
    def square(self) -> Array:
        """|v|^2, coordinate by coordinate, (records,)."""
        return leverage(self.v, None if self.room is None else self.room[0])

    @cached_property
    def length(self) -> Array:
        """|v|, (records,)."""
        return np.sqrt(self.square, out=None if self.room is None else self.room[1])

    def at(self, r: Array) -> Located:
        """The same records at another line."""
        found = Located(self.v, r, self.keep)
        found.__dict__.update(square=self.square, length=self.length)
        return found


@dataclass(frozen=True)
class Locating(Beginning):
    """What maps in the same coordinates compute alike: from the codes of a design's columns to `Located` records.

    stays: whether later passes ask for the same coordinates, at this line or at another (`protocol.Beginning`).
    """

    design: Design
    frame: Frame
    stays: bool = field(default=False, compare=False)

    @cached_property
    def coordinates(self) -> Coordinates:
        return Coordinates.of(self.design, self.frame)

    @property
    def rows(self) -> int:
        """Of the room for what it gives: v, r, |v|^2 and |v|."""
        return len(self.design.terms) + 4

    def __call__(self, codes: Array, room: Array | None = None) -> Located:
        terms, keep = self.design.codes(codes)
        if isinstance(self.frame, PartialFrame):
            outside = self.frame.outside(terms)
            keep = outside if keep is None else keep & outside
        if room is None:
            rows = self.coordinates(terms)
            return Located(rows[:-1], rows[-1], keep)
        rows = self.coordinates(terms, room[:-2])
        # lengths are written now, by one thread, and not when a later pass asks first
        found = Located(rows[:-1], rows[-1], keep, room[-2:]).at(rows[-1])
        # what a map wrote here would be in the sums of later passes
        for kept in (found.v, found.r, found.square, found.length):
            kept.flags.writeable = False
        return found

    def after(self, other: Beginning, begun: Any, codes: Array) -> Located | None:
        """What it gives, from what a beginning before it gave for the same records; None where that was in other coordinates."""
        if not isinstance(other, Locating) or not isinstance(begun, Located) or other.design != self.design:
            return None
        if other.frame == self.frame:
            return begun
        if replace(other.frame, theta=self.frame.theta) != self.frame:
            return None
        terms, _ = self.design.codes(codes)
        return begun.at(self.coordinates.last(terms)[0])


@dataclass(frozen=True)
class InCoordinates(CodedRows):
    """What maps in coordinates share: a design, and the frame of one release; without one the public box, T = I, theta = 0.

    The frame and all limits are left out of the digest: the bounds hold for any, and the plan does not know them yet.
    """

    design: Design
    frame: Frame | None = None
    stays: ClassVar[bool] = False

    @property
    def features(self) -> int:
        """p: the terms and the intercept."""
        return len(self.design.terms) + 1

    @property
    def width(self) -> int:
        return self.features

    @property
    def rho(self) -> float:
        """The frame's scale of residuals."""
        return self.frame.rho if self.frame else 1.0

    @cached_property
    def _locating(self) -> Locating:
        frame = self.frame or Frame.start(Box.of(self.design))
        return Locating(self.design, frame, self.stays and self.features >= _WIDE)

    @property
    def coordinates(self) -> Coordinates:
        """Of the frame, computed once."""
        return self._locating.coordinates

    def rows(self, codes: Array) -> tuple[Array, Array, NDArray[np.bool_] | None]:
        """v (p, records), r (records,), and which records count."""
        found = self._locating(codes)
        return found.v, found.r, found.keep


class LocatedRows(InCoordinates, ABC):
    """Maps that are a function `of` the located record, so that several of them share its coordinates (`protocol.Beginning`)."""

    @property
    def begins(self) -> Locating | None:
        """None for a map that is called in a way of its own."""
        return self._locating if type(self).__call__ is LocatedRows.__call__ else None

    @abstractmethod
    def of(self, records: Located) -> Array:
        """The integers of located records."""

    def located(self, codes: Array) -> Located:
        """Records in the map's coordinates."""
        return self._locating(codes)

    def __call__(self, codes: Array) -> Array:
        return self.of(self.located(codes))
