"""Counts and sums of the cells of a tree, as exact integers.

A record in cell k gives a row of its own cell: C a_0 for the count, C a_j (x~_j - mid_kj) for each term and C a_t t for the response, with
x~, t in [-1, 1] by the public bounds and C = 2^20 less room for rounding. With h_kj half the cell's width |x~_j - mid_kj| <= h_kj, and
a_0^2 + sum a_j^2 h_kj^2 + a_t^2 = 1, so that the row's squared length is at most 2^40 in any cell; a row beyond is cut.
One noise of the same size on all entries is then noise of its own size for counts, sums and labels.

How the bound is shared out (a_j^2 h_j^2 = b_j h_j / sum of all): minimises sum b_j^2 var_j for public guesses b of what an error is worth
on the right-hand side of the regression: slopes of a whole range of the response over the range of a feature, so that a miscounted record
weighs as the cell's distance from the middle, at least a quarter.

Sensitivity, squared: 2^40 under add-remove. Under substitute two records of different cells move the table by at most 2 2^40, and two of
one cell by four times the squared part of the row without the count. Rows that are made for substitute give half of 2^40 to the count,
so that the second is at most 2 2^40 as well; any less for the count would only be more noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.methods.regression.sums.linear_rows import Present
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import WholeSums
from confide.sums.coding import BOUND, CodedRows, Codes, round_within, scaled, steps
from confide_lab.aggregates.trees import Bins, Paths

__all__ = ["CellCounts", "CellRows", "CellSums", "Depths"]

Whole = NDArray[np.int64]
Array = NDArray[np.float64]

# The least half-width of a cell that a share is worked out for: a cell of one code has none.
_LEAST = 2.0**-10
# What a miscounted record is worth at least, and one of the response's full range.
_COUNT = 0.25
# The count's entry under substitute: its square is at least half of 2^40.
_HALF = isqrt(BOUND // 2) + 1


@dataclass(frozen=True)
class CellRows(CodedRows):
    """One record's row in its cell, shape (terms + 2, records): count, centred terms, response; zeros for a dropped record.

    replaced: made for substitute; bins: the cells, one for the whole box before there are any. `unit[k]`: one unit of each entry in cell k.
    """

    design: ModelMatrix
    replaced: bool = False
    bins: Bins | None = field(default=None, compare=False)
    kind: ClassVar[str] = "rows of cells"

    @property
    def width(self) -> int:
        return len(self.design.terms) + 2

    @property
    def stated(self) -> list[object]:
        # the cells are left out: the bound holds for any, and the plan does not know them yet
        return [self.replaced]

    @cached_property
    def found(self) -> Bins:
        return self.bins or Paths.of(self.design, 0).bins([0], [0])

    @cached_property
    def middles(self) -> Array:
        """mid_k in [-1, 1], shape (K, terms): the mean of the first and the last code."""
        low, high = self.found.low.astype(np.float64), self.found.high.astype(np.float64)
        last = np.array([term.steps - 1.0 for term in self.design.terms])
        return np.asarray(np.clip((low + high - 1.0) / last - 1.0, -1.0, 1.0))

    @cached_property
    def halves(self) -> Array:
        """h_k, shape (K, terms), in the same units."""
        low, high = self.found.low.astype(np.float64), self.found.high.astype(np.float64)
        last = np.array([term.steps - 1.0 for term in self.design.terms])
        return np.asarray(np.maximum((high - low - 1.0) / last, 0.0))

    @cached_property
    def unit(self) -> Array:
        """C a, shape (K, terms + 2): the count's is a whole number."""
        wide = np.maximum(self.halves, _LEAST)
        reach = np.column_stack([np.ones(len(wide)), wide, np.ones(len(wide))])
        worth = np.full_like(reach, 0.5)
        worth[:, 0] = np.maximum(np.abs(self.middles).sum(axis=1) / 2, _COUNT)
        worth[:, -1] = 1.0
        if self.replaced:
            rest = BOUND - _HALF**2
            worth[:, 0] = 0.0
        shares = np.sqrt(worth * reach / (worth * reach).sum(axis=1, keepdims=True)) / reach
        if self.replaced:
            unit = shares * (sqrt(rest) - sqrt(self.width) / 2 - 1)
            unit[:, 0] = _HALF
        else:
            unit = shares * float(steps(1.0, self.width))
            unit[:, 0] = np.floor(unit[:, 0])
        return np.asarray(unit)

    def __call__(self, codes: Codes) -> Codes:
        return self.placed(codes)[1]

    def placed(self, codes: Codes) -> tuple[Whole, Codes]:
        """The cell of each record, K for one that is dropped, and the rows."""
        rows, keep = scaled(self.design, codes)
        terms, _ = self.design.codes(codes)
        cell = self.found.locate(terms)
        with np.errstate(all="ignore"):
            for j in range(1, len(rows) - 1):
                rows[j] -= self.middles[cell, j - 1]
            for j, row in enumerate(rows):
                row *= self.unit[cell, j]
            if keep is not None:
                rows *= keep
                cell = np.where(keep, cell, len(self.found))
            return cell, round_within(rows)


@dataclass(frozen=True)
class CellSums(WholeSums):
    """The rows of all cells added up, shape (size, terms + 2), rows beyond the last cell are zeros."""

    map: CellRows
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        return (self.size, self.map.width)

    def at(self, bins: Bins) -> CellSums:
        """The statistic over the cells that were found."""
        return replace(self, map=replace(self.map, bins=bins))

    def sensitivity_squared(self, relation: str) -> Fraction:
        if relation != "substitute":
            return Fraction(BOUND)
        return Fraction((2 if self.map.replaced else 4) * BOUND)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" else 1))

    def update(self, state: Whole, codes: Codes) -> Whole:
        cell, rows = self.map.placed(codes)
        for start in range(0, len(cell), 1 << 30):  # 2^30 entries below 2^21 add up exactly in doubles
            stop = start + (1 << 30)
            for j, row in enumerate(rows):
                sums = np.bincount(cell[start:stop], weights=row[start:stop], minlength=self.size + 1)
                state[:, j] += sums[: self.size].astype(np.int64)
        return state


@dataclass(frozen=True)
class Depths(Present):
    """1 for a record that counts, 0 for one that is dropped; and its cell at a depth of the public way down."""

    design: ModelMatrix
    paths: Paths
    depth: int
    kind: ClassVar[str] = "depth"

    @property
    def stated(self) -> list[object]:
        return [self.paths.depth, self.depth]

    def cells(self, codes: Codes) -> Whole:
        """The cell at this depth, 2^depth for a record that is dropped."""
        terms, keep = self.design.codes(codes)
        number = self.paths.of_codes(terms) >> (self.paths.depth - self.depth)
        return number if keep is None else np.where(keep, number, 1 << self.depth)


@dataclass(frozen=True)
class CellCounts(WholeSums):
    """How many records lie in each cell of one depth, shape (2^depth,): one record moves one count by 1."""

    map: Depths

    @property
    def shape(self) -> tuple[int]:
        return (1 << self.map.depth,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def update(self, state: Whole, codes: Codes) -> Whole:
        state += np.bincount(self.map.cells(codes), minlength=len(state) + 1)[: len(state)]
        return state
