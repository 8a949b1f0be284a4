"""Records in the coordinates of a least-squares line: the maps under its sums, each an exact bound for any metric and any line.

A record has v = M z and r = t - z'theta, not clipped; M, theta and all limits came out of earlier noisy numbers. What is coded is cut
to its bound in integers, so that no sensitivity rests on floats, on M or on theta:

    LimitedFeatures   sqrt(w) v, w = min(1, cap/|v|^2)            |m|^2 <= 2^40   its Gram matrix is A
    LimitedScores     limit(v r, R), limit(s, R) = s min(1, R/|s|)   |m|^2 <= 2^40   its total is b, its Gram matrix the meat
    SquareOf          min(r^2, reach^2)                           0 <= m <= 2^40  its total is q
    Influences        min(h^2, reach^2), h = ((1 - s) y^2 - r^2)/(2 sqrt s), y = c'v + r   0 <= m <= 2^40  their total says how well
                      R is known: h times (n sd^2)^-1 is what a record moves R by, s = R^2
    SizeIndices       the cell of |v| or of |v r|            one count moves by 1

Sensitivities: A and the meat 2^40 in the Frobenius norm, under substitute sqrt(2) times that, since Gram matrices are positive
(`protocol.Gram`); b 2^20 in the Euclidean norm and TWICE that under substitute, which scores of opposite sign attain (`protocol.Total`);
q, and the total of influences, 2^40 under both, as each is one number that is never negative; a histogram 1, under substitute sqrt(2).

Records in cells that were left out, by their own levels alone, count as nothing, like incomplete ones (`PartialFrame`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.cells.histogram import CellNumber
from confide.aggregates.lines.coordinates import Coordinates, Frame, InCoordinates, Located, LocatedRows, PartialFrame
from confide.aggregates.lines.rows import BITS, BOUND, lengths, only, round_within, steps
from confide.protocol.exact import digest

__all__ = [
    "LEVERAGE_CELLS",
    "SCORE_CELLS",
    "Coordinates",
    "InCoordinates",
    "Influences",
    "LimitedFeatures",
    "LimitedScores",
    "PartialFrame",
    "SizeIndices",
    "SquareOf",
    "cell_among",
]


#: Cells of a histogram of sizes at most: of |v r|, whose tail may be long, and of |v|. Where fewer edges are asked for the last ones stay
#: empty.
SCORE_CELLS, LEVERAGE_CELLS = 26, 9


def cell_among(edges: Sequence[float], size: Array) -> Array:
    """1 + the number of edges below each size, as doubles; what is no number counts as infinitely far out.

    Edge by edge over all records, which for two dozen edges is faster than a search for each record.
    """
    within = np.empty(len(size), dtype=np.bool_)
    # at most two dozen edges: one byte holds the count
    beyond = np.full(len(size), 1 + len(edges), dtype=np.int8)
    for edge in edges:
        np.less_equal(size, edge, out=within)
        beyond -= within.view(np.int8)
    return beyond.astype(np.float64)


@dataclass(frozen=True)
class LimitedFeatures(LocatedRows):
    """One record as sqrt(w) v in integer steps, w = min(1, cap/|v|^2): |m|^2 <= 2^40."""

    cap: float = 1.0
    kind: ClassVar[str] = "limited features"
    stays: ClassVar[bool] = True

    def at(self, frame: Frame, cap: float) -> LimitedFeatures:
        """The map in the coordinates of a frame. cap: R_A."""
        return replace(self, frame=frame, cap=float(cap))

    @property
    def steps(self) -> int:
        """Integer steps in one unit of v."""
        return steps(sqrt(self.cap), self.width)

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            factor = self._factor(records)
            return round_within(records.v * factor, length=lengths(records.square) * factor)

    def _factor(self, records: Located) -> NDArray[np.float64]:
        """What v is taken times."""
        longest = sqrt(self.cap)
        factor = np.maximum(records.length, longest)
        np.divide(longest * self.steps, factor, out=factor)
        return only(factor, records.keep)


@dataclass(frozen=True)
class LimitedScores(LocatedRows):
    """One record as limit(v r, R)/R in integer steps: |m|^2 <= 2^40."""

    limit: float = 1.0
    kind: ClassVar[str] = "limited scores"
    stays: ClassVar[bool] = True

    def at(self, frame: Frame, limit: float) -> LimitedScores:
        """The map in the coordinates and at the line of a frame. limit: R."""
        return replace(self, frame=frame, limit=float(limit))

    @property
    def steps(self) -> float:
        """Integer steps in one unit of a score."""
        return steps(1.0, self.width) / self.limit

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            factor = self._factor(records, float(steps(1.0, self.width)))
            return round_within(records.v * factor, length=lengths(records.square) * np.abs(factor))

    def _factor(self, records: Located, whole: float) -> NDArray[np.float64]:
        """What v is taken times. whole: steps in the bound."""
        factor = records.length * np.abs(records.r)
        np.maximum(factor, self.limit, out=factor)
        np.divide(records.r, factor, out=factor)
        factor *= whole
        return only(factor, records.keep)


@dataclass(frozen=True)
class SquareOf(LocatedRows):
    """min(r^2/reach^2, 1) of a complete record in steps of 2^-40, 0 for any other."""

    reach: float = 1.0
    kind: ClassVar[str] = "limited square"
    stays: ClassVar[bool] = True
    width: ClassVar[int] = 1
    l1: ClassVar[int] = BOUND
    l2_squared: ClassVar[int] = BOUND**2

    def at(self, frame: Frame, reach: float) -> SquareOf:
        """The map at the line of a frame."""
        return replace(self, frame=frame, reach=float(reach))

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            share = records.r / self.reach
            np.multiply(share, share, out=share)
            # fmin: what is no number counts as far out
            np.fmin(share, 1.0, out=share)
            share *= float(BOUND)
            np.rint(share, out=share)
            return only(share, records.keep)[None, :]


@dataclass(frozen=True)
class Influences(LocatedRows):
    """The square of min(|h|/reach, 1) in steps of 2^-20 of a complete record, 0 for any other; h is its influence on R.

    line: c, the line about its mean is c'v; share: s.
    """

    line: tuple[float, ...] = ()
    share: float = 0.5
    reach: float = 0.25  # what h reaches at these and no line
    kind: ClassVar[str] = "limited influence"
    width: ClassVar[int] = 1
    l1: ClassVar[int] = BOUND
    l2_squared: ClassVar[int] = BOUND**2

    def at(self, frame: Frame, line: Sequence[float], share: float, reach: float) -> Influences:
        """The map at the line of a frame."""
        return replace(self, frame=frame, line=tuple(map(float, line)), share=float(share), reach=float(reach))

    def influence(self, records: Located) -> Array:
        """h, (records,), term by term; 0 for a record that does not count."""
        about = records.r.copy()
        for weight, v in zip(self.line, records.v, strict=False):
            about += weight * v
        found = ((1.0 - self.share) * (about * about) - records.r * records.r) / (2.0 * sqrt(self.share))
        return only(found, records.keep)

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            return self.squared(self.influence(records)[None, :] / self.reach)

    @staticmethod
    def squared(part: Array) -> Array:
        """The square of a part of the reach, of 2^20 steps, at most all; what is no number counts as far out."""
        part = np.fmin(np.abs(part), 1.0)
        part *= float(1 << BITS)
        np.rint(part, out=part)
        return np.asarray(part * part)


@dataclass(frozen=True)
class SizeIndices(CellNumber, LocatedRows):
    """The cell of a record's size among rising edges, from 1 on, and 0 for a record that is dropped.

    scores: the size is |v r|, else |v|. The plan fixes the number of cells; the edges follow from noisy numbers.
    """

    edges: tuple[float, ...] = ()
    scores: bool = field(kw_only=True)
    stays: ClassVar[bool] = True

    @property
    def cells(self) -> int:
        """How many cells there are: one more than edges."""
        return SCORE_CELLS if self.scores else LEVERAGE_CELLS

    def at(self, frame: Frame, edges: tuple[float, ...]) -> SizeIndices:
        """The map in the coordinates and at the line of a frame; edges in order, as a search among others would depend on the batch."""
        return replace(self, frame=frame, edges=tuple(map(float, np.sort(edges[: self.cells - 1]))))

    @property
    def digest(self) -> str:
        return digest(["size cells", self.scores, self.cells, self.design.to_dict()])

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            size = records.length * np.abs(records.r) if self.scores else records.length
        cell = cell_among(self.edges or tuple(float(k) for k in range(1, self.cells)), size)
        return only(cell, records.keep)[None, :]
