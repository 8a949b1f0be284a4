"""Records in the coordinates of a least-squares line: the maps under its sums, each an exact bound for any metric and any line.

A record has v = M z and r = t - z'theta, not clipped; M, theta and all limits came out of earlier noisy numbers. What is coded is cut
to its bound in integers, so that no sensitivity rests on floats, on M or on theta:

    LimitedFeatures   sqrt(w) v, w = min(1, cap/|v|^2)            |m|^2 <= 2^40   its Gram matrix is A
    LimitedScores     limit(v r, R), limit(s, R) = s min(1, R/|s|)   |m|^2 <= 2^40   its total is b, its Gram matrix the meat
    SquareOf          min(r^2, reach^2)                           0 <= m <= 2^40  its total is q
    SizeIndices       the cell of |v| or of |v r|            one count moves by 1

Sensitivities: A and the meat 2^40 in the Frobenius norm, under substitute sqrt(2) times that, since Gram matrices are positive
(`protocol.Gram`); b 2^20 in the Euclidean norm and TWICE that under substitute, which scores of opposite sign attain (`protocol.Total`);
q 2^40 under both, as it is one number that is never negative; a histogram 1, under substitute sqrt(2).

Records in cells that were left out, by their own levels alone, count as nothing, like incomplete ones (`PartialFrame`).

The coordinates of a record are one linear map of its codes. Rounded to integers that keep every sum below 2^53 it is one exact matrix
product, so that no number depends on the batch, on the order or on the machine; all further float steps are elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.rows import BITS, BOUND, Box, CodedRows, leverage, round_within, steps
from confide.aggregates.whitened_rows import Frame
from confide.protocol.exact import digest
from confide.schema import Design

__all__ = [
    "LEVERAGE_CELLS",
    "SCORE_CELLS",
    "Coordinates",
    "InCoordinates",
    "LimitedFeatures",
    "LimitedScores",
    "PartialFrame",
    "SizeIndices",
    "SquareOf",
    "cell_among",
]

Array = NDArray[np.float64]

#: Cells of a histogram of sizes at most: of |v r|, whose tail may be long, and of |v|. Where fewer edges are asked for the last ones stay
#: empty.
SCORE_CELLS, LEVERAGE_CELLS = 26, 9
# Sums of products stay below this, with room for the rounding of the map.
_ROOM = 2.0**52
# Records that one product of a matrix with codes is worth its call for.
_SHORTEST = 512


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

    def __call__(self, codes: Array, out: Array | None = None) -> Array:
        """Rows (v, r), shape (p + 1, records), from the terms' codes; into `out` where it is given."""
        with np.errstate(all="ignore"):
            if _products_are_exact():
                out = _in_stretches(self._scaled, codes, out)
            else:
                out = _whole_product(self.matrix, codes, out)
                out *= self.scale[:, None]
            for row, shift in zip(out, self.shift.tolist(), strict=True):
                row += shift
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


def _in_stretches(matrix: Array, codes: Array, out: Array | None) -> Array:
    """matrix @ codes. BLAS has a way for products of at most 10^6 terms that is faster where the matrix is small."""
    most = 1_000_000 // matrix.size
    if codes.shape[1] <= most or most < _SHORTEST:
        return np.matmul(matrix, codes, out=out)
    if out is None:
        out = np.empty((len(matrix), codes.shape[1]))
    step = most // 8 * 8
    for start in range(0, codes.shape[1], step):
        np.matmul(matrix, codes[:, start : start + step], out=out[:, start : start + step])
    return out


def _whole_product(matrix: Array, codes: Array, out: Array | None) -> Array:
    """matrix @ codes in integers."""
    whole = np.einsum("ij,jk->ik", matrix.astype(np.int64), codes.astype(np.int64))
    if out is None:
        return np.asarray(whole, dtype=np.float64)
    out[:] = whole
    return out


@lru_cache(maxsize=1)
def _products_are_exact() -> bool:
    """Whether this machine's product of doubles is exact up to 2^53: some products split or emulate doubles."""
    index = np.arange(64 * 96, dtype=np.int64).reshape(64, 96)
    left = (1 << 26) - (index[:6, :64].T * 2654435761 % 1009).T
    left[1::2] *= -1
    right = (1 << 20) - index * 40503 % 977
    exact = np.einsum("ij,jk->ik", left, right)
    found = left.astype(np.float64) @ right.astype(np.float64)
    return bool((found.astype(np.int64) == exact).all())


def _length(v: Array) -> Array:
    """|v|, coordinate by coordinate."""
    total = leverage(v)
    return np.sqrt(total, out=total)


def cell_among(edges: Sequence[float], size: Array) -> Array:
    """1 + the number of edges below each size, as doubles; what is no number counts as infinitely far out.

    Edge by edge over all records, which for two dozen edges is four times as fast as a search for each record.
    """
    within = np.empty(len(size), dtype=np.bool_)
    # at most two dozen edges: one byte holds the count
    beyond = np.full(len(size), 1 + len(edges), dtype=np.int8)
    for edge in edges:
        np.less_equal(size, edge, out=within)
        beyond -= within.view(np.int8)
    return beyond.astype(np.float64)


@dataclass(frozen=True)
class InCoordinates(CodedRows):
    """What maps in whitened coordinates share: a design, and the frame of one release; without one the public box, M = I, theta = 0.

    The frame and all limits are left out of the digest: the bounds hold for any, and the plan does not know them yet.
    """

    design: Design
    frame: Frame | None = None

    @property
    def features(self) -> int:
        """p: the terms and the intercept."""
        return len(self.design.terms) + 1

    @cached_property
    def coordinates(self) -> Coordinates:
        """Of the frame, computed once."""
        return Coordinates.of(self.design, self.frame or Frame.start(Box.of(self.design)))

    def rows(self, codes: Array) -> tuple[Array, Array, NDArray[np.bool_] | None]:
        """v (p, records), r (records,), and which records count."""
        terms, keep = self.design.codes(codes)
        if isinstance(self.frame, PartialFrame):
            outside = self.frame.outside(terms)
            keep = outside if keep is None else keep & outside
        rows = self.coordinates(terms)
        return rows[:-1], rows[-1], keep


@dataclass(frozen=True)
class LimitedFeatures(InCoordinates):
    """One record as sqrt(w) v in integer steps, w = min(1, cap/|v|^2): |m|^2 <= 2^40."""

    cap: float = 1.0
    kind: ClassVar[str] = "limited features"

    def at(self, frame: Frame, cap: float) -> LimitedFeatures:
        """The map in the coordinates of a frame. cap: R_A."""
        return replace(self, frame=frame, cap=float(cap))

    @property
    def width(self) -> int:
        return self.features

    @property
    def steps(self) -> int:
        """Integer steps in one unit of v."""
        return steps(sqrt(self.cap), self.width)

    def __call__(self, codes: Array) -> Array:
        v, _, keep = self.rows(codes)
        with np.errstate(all="ignore"):
            longest = sqrt(self.cap)
            factor = _length(v)
            np.maximum(factor, longest, out=factor)
            np.divide(longest * self.steps, factor, out=factor)
            if keep is not None:
                factor *= keep
            v *= factor
            return round_within(v)


@dataclass(frozen=True)
class LimitedScores(InCoordinates):
    """One record as limit(v r, R)/R in integer steps: |m|^2 <= 2^40."""

    limit: float = 1.0
    kind: ClassVar[str] = "limited scores"

    def at(self, frame: Frame, limit: float) -> LimitedScores:
        """The map in the coordinates and at the line of a frame. limit: R."""
        return replace(self, frame=frame, limit=float(limit))

    @property
    def width(self) -> int:
        return self.features

    @property
    def steps(self) -> float:
        """Integer steps in one unit of a score."""
        return steps(1.0, self.width) / self.limit

    def __call__(self, codes: Array) -> Array:
        v, r, keep = self.rows(codes)
        with np.errstate(all="ignore"):
            size = _length(v)
            size *= np.abs(r)
            np.maximum(size, self.limit, out=size)
            np.divide(r, size, out=size)
            size *= float(steps(1.0, self.width))
            if keep is not None:
                size *= keep
            v *= size
            return round_within(v)


@dataclass(frozen=True)
class SquareOf(InCoordinates):
    """min(r^2/reach^2, 1) of a complete record in steps of 2^-40, 0 for any other."""

    reach: float = 1.0
    kind: ClassVar[str] = "limited square"
    width: ClassVar[int] = 1
    l1: ClassVar[int] = BOUND
    l2_squared: ClassVar[int] = BOUND**2

    def at(self, frame: Frame, reach: float) -> SquareOf:
        """The map at the line of a frame."""
        return replace(self, frame=frame, reach=float(reach))

    def __call__(self, codes: Array) -> Array:
        _, r, keep = self.rows(codes)
        with np.errstate(all="ignore"):
            share = r / self.reach
            np.multiply(share, share, out=share)
            # fmin: what is no number counts as far out
            np.fmin(share, 1.0, out=share)
            share *= float(BOUND)
            np.rint(share, out=share)
            if keep is not None:
                share *= keep
        return share[None, :]


@dataclass(frozen=True)
class SizeIndices(InCoordinates):
    """The cell of a record's size among rising edges, from 1 on, and 0 for a record that is dropped.

    scores: the size is |v r|, else |v|. The plan fixes the number of cells; the edges follow from noisy numbers.
    """

    edges: tuple[float, ...] = ()
    scores: bool = field(kw_only=True)
    width: ClassVar[int] = 1

    @property
    def cells(self) -> int:
        """How many cells there are: one more than edges."""
        return SCORE_CELLS if self.scores else LEVERAGE_CELLS

    @property
    def l1(self) -> int:
        return self.cells

    @property
    def l2_squared(self) -> int:
        return self.cells**2

    def at(self, frame: Frame, edges: tuple[float, ...]) -> SizeIndices:
        """The map in the coordinates and at the line of a frame; edges in order, as a search among others would depend on the batch."""
        return replace(self, frame=frame, edges=tuple(map(float, np.sort(edges[: self.cells - 1]))))

    @property
    def digest(self) -> str:
        return digest(["size cells", self.scores, self.cells, self.design.to_dict()])

    def __call__(self, codes: Array) -> Array:
        v, r, keep = self.rows(codes)
        with np.errstate(all="ignore"):
            size = _length(v)
            if self.scores:
                size *= np.abs(r)
        cell = cell_among(self.edges or tuple(float(k) for k in range(1, self.cells)), size)
        if keep is not None:
            cell *= keep
        return np.asarray(cell[None, :])
