"""Records in the coordinates of a least-squares regression: the maps under its sums, each an exact bound for any metric and any fit.

A record has v = M z and r = t - z'theta, not clipped; M, theta and all limits came out of earlier noisy numbers. What is coded is
limited to its bound in integers, so that no sensitivity rests on floats, on M or on theta:

- LimitedFeatures: sqrt(w) v, w = min(1, cap/|v|^2), |m|^2 <= 2^40. Its Gram matrix is A.
- LimitedScores: limit(v r, R), limit(s, R) = s min(1, R/|s|), |m|^2 <= 2^40. Its total is b, its Gram matrix the meat.
- SquareOf: min(r^2, reach^2), 0 <= m <= 2^40. Its total is q.
- Influences: min(h^2, reach^2), h = ((1 - s) y^2 - r^2)/(2 sqrt s), y = c'v + r, 0 <= m <= 2^40. Their total says how well
  R is known: h times 1/(n V) is what a record moves R by, s = R^2, V the variance of y.
- SizeIndices: the cell of |v| or of |v r|. One count moves by 1.

Sensitivities:

- A and the meat 2^40 in the Frobenius norm, under substitution sqrt(2) times that, since Gram matrices are positive (`core.Gram`);
- b 2^20 in the Euclidean norm and TWICE that under substitution, which scores of opposite sign attain (`core.Total`);
- q, and the total of influences, 2^40 under both, as each is one number that is never negative;
- a histogram 1, under substitution sqrt(2).

Records in excluded cells, by their own levels alone, count as nothing, like incomplete ones (`PartialFrame`).

Scores of units: the sum over a unit's rows of their weighted scores, limited and rounded as one.

A unit with m usable rows counts each with the weight v = min(1, k/m), where its rows are bounded by weight; kept rows, at most k of
them, count 1 each. Its score is g = sum v s, s the score of a row. Maps give one column of integers for each unit:

- UnitScores: limit(g, R) in integer steps, |m|^2 <= 2^40. Its total is b, its Gram matrix the meat.
- UnitSizes: the cell of |g|. One count moves by 1.
- UnitInfluences: the square of sum v h, limited, 0 <= m <= 2^40. Its total says how well R is known.

Sensitivities are as in `scores`, of ONE unit, whatever k and m are: the limit is on the unit's sum. The meat counts units, and rows of
a unit may depend on each other in any way. Source: cluster-robust covariances (Liang, Zeger 1986); the limit and its integers here.

The sum does not depend on the order of the rows. Each row's score is rounded first, to 2^-12 of the step in which g is coded (2^-20 of
the first edge, for cells), and limited to 2^46. So 2^16 rows add up in 64-bit integers. What one row alone gives is what the map of
records gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import RecordMap
from confide.core.exact import digest
from confide.core.units.privacy_unit import rows_in_units, usable
from confide.methods.regression.glm.fisher_rows import FisherScores
from confide.methods.regression.sums.whitened_rows import Frame, InCoordinates, Located, LocatedRows
from confide.sums.cells.cell_sums import CellNumber
from confide.sums.clusters.cluster_covariance import Counting, limited, summed_by_unit
from confide.sums.coding import BITS, BOUND, cell_among, lengths, leverage, only, round_within, steps

#: Cells of a histogram of sizes at most: of |v r|, whose tail may be long, and of |v|. Where fewer edges are asked for the last ones stay
#: empty.
SCORE_CELLS, LEVERAGE_CELLS = 26, 9


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
        """The square of a part of the reach, of 2^20 steps, at most all; what is not a number counts as extreme."""
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


_FINER = float(1 << 12)


@dataclass(frozen=True)
class _OfUnits(InCoordinates):
    """What maps of units share: the row of codes that says where units begin, after those of the design."""

    counting: Counting = field(kw_only=True)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.design.columns, self.counting.row)

    @property
    def stated(self) -> tuple[Any, ...]:
        return (self.counting.rows, self.counting.row)

    def row_scores(self, codes: Array) -> Array:
        """v r of each row, 0 for one that is dropped, from the codes of the design's columns."""
        found = self._locating(codes)
        return found.v * (found.r if found.keep is None else found.r * found.keep)

    def by_unit(
        self,
        codes: Array,
        unit: float,
        alone: Callable[[Array], Array],
        together: Callable[[Array, NDArray[np.intp]], Array],
    ) -> Array:
        """One column for each unit: of `alone` where one row is usable, else `together` of the unit's summed scores.

        unit: what scores are rounded in; together: is handed the sums (width, units) and the numbers of usable rows.
        """
        own, first = codes[:-1], codes[-1]
        there = usable(cast(RecordMap, self), own)
        starts, sizes = rows_in_units(first, there)
        if len(starts) == len(first):
            return alone(own)
        with np.errstate(all="ignore"):
            rows = self.row_scores(own)
            rows *= unit
            rows[:, ~there] = 0.0
            out = together(summed_by_unit(rows, starts) * self.counting.weights(sizes), sizes)
        one = np.flatnonzero(sizes == 1)
        if len(one):
            # the only usable row of a unit is the next usable one from its beginning on
            used = np.flatnonzero(there)
            out[:, one] = alone(np.ascontiguousarray(own[:, used[np.searchsorted(used, starts[one])]]))
        return out


@dataclass(frozen=True)
class UnitScores(_OfUnits, LimitedScores):
    """One unit as limit(g, R)/R in integer steps, g the sum of its rows' weighted scores: |m|^2 <= 2^40."""

    kind: ClassVar[str] = "limited scores of units"

    def __call__(self, codes: Array) -> Array:
        longest = float(steps(1.0, self.width))
        return self.by_unit(
            codes,
            self.steps * _FINER,
            lambda own: LimitedScores.__call__(self, own),
            lambda sums, _: limited(sums / _FINER, longest),
        )


@dataclass(frozen=True)
class UnitInfluences(_OfUnits, Influences):
    """One unit as the square of the sum of its rows' weighted influences on R, limited: 0 <= m <= 2^40."""

    kind: ClassVar[str] = "limited influence of units"

    def row_scores(self, codes: Array) -> Array:
        """h of each row."""
        return self.influence(self.located(codes))[None, :]

    def __call__(self, codes: Array) -> Array:
        unit = _FINER * (1 << BITS)
        return self.by_unit(
            codes,
            unit / self.reach,
            lambda own: Influences.__call__(self, own),
            lambda sums, _: self.squared(sums / unit),
        )


@dataclass(frozen=True)
class UnitSizes(_OfUnits, SizeIndices):
    """The cell of |g| among rising edges, from 1 on, and 0 for a unit without a usable row."""

    @property
    def digest(self) -> str:
        return digest(["size cells of units", self.scores, self.cells, self.design.to_dict(), *self.stated])

    def __call__(self, codes: Array) -> Array:
        edges = self.edges or tuple(float(k) for k in range(1, self.cells))
        unit = (1 << BITS) / max(edges[0], 1e-300)

        def cells(sums: Array, sizes: NDArray[np.intp]) -> Array:
            found = cell_among(edges, np.sqrt(leverage(sums)) / unit)
            return np.asarray((found * (sizes > 0))[None, :])

        return self.by_unit(codes, unit, lambda own: SizeIndices.__call__(self, own), cells)


@dataclass(frozen=True)
class UnitFisherScores(_OfUnits, FisherScores):
    """One unit as the sum of its rows' weighted scores w r u, limited to `spread` times the bound of one: |b|^2 <= 2^40 in its steps."""

    @property
    def digest(self) -> str:
        return digest(["scores of units", super().digest, *self.stated])

    @property
    def steps(self) -> float:
        """Integer steps in one unit of w r u."""
        return self.reach / self.bound / self.counting.spread

    def row_scores(self, codes: Array) -> Array:
        parts = self.parts(codes)
        r = parts.residual
        r *= self.counted(parts)[1]
        return np.asarray(parts.u * only(r, parts.keep))

    def __call__(self, codes: Array) -> Array:
        return self.by_unit(
            codes,
            self.steps * _FINER,
            lambda own: FisherScores.__call__(self, own),
            lambda sums, _: limited(sums / _FINER, self.reach),
        )
