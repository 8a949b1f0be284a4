"""Sums by cell in which each unit counts once in the whole table, spread over the cells in which its rows lie.

A unit with m usable rows, m_c of them in cell c, has the weight omega_c = m_c/m there, and u_c, the mean of its values there. With m(u) the
block that a record gives to its cell (a number of 2^20 for counts, free moments for means), it gives

    (omega_c m(u_c), omega_c (1 - omega_c) m(u_c))

to each of its cells, cut towards zero to whole numbers. omega^2 (1 + (1 - omega)^2) <= omega on [0, 1] (their quotient has the derivative
2 - 4 omega + 3 omega^2 > 0, and is 1 at 1), so that a unit's squared length is at most L sum omega_c = L, L the bound of m. The sums of
omega_c and omega_c u_c add up from cell to margin; those of omega_c^2 m(u_c), first half less second, are each cell's sampling variance by
units, and do not.

    add-remove  L.
    substitute  <F, F'> = sum over cells of g <m, m'>, 0 <= g = omega omega' + omega (1 - omega) omega' (1 - omega'), sum g <= 1 by
                Cauchy's inequality, and <m, m'> >= T^2 - 2^40 for blocks (T, S phi): |F - F'|^2 <= 2 L + 2 (2^40 - T^2)+ and what the
                cut adds, less than 1 for each number.

u_c does not depend on the order of the rows: values are rounded to 2^-32 before they are added. Where each unit has one row, first halves
are the integers of records and second halves 0. Source: derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from confide._arrays import Array, Whole
from confide.aggregates.cells.free_moments import MomentRows, free_moments
from confide.aggregates.cells.weighted_cells import DoubledRows
from confide.aggregates.lines.rows import BOUND, round_within
from confide.protocol.exact import digest
from confide.protocol.units.whose import WHOLE_ROW
from confide.schema.unit import MOST

__all__ = ["UnitCells", "UnitWeight"]


_FINE = 2.0**32


@dataclass(frozen=True)
class UnitWeight:
    """What a row of a unit weighs in a table: 1 over the unit's usable rows. column: of the ids."""

    column: str

    @property
    def name(self) -> str:
        return f"each {self.column} once"


@dataclass(frozen=True)
class UnitCells(DoubledRows):
    """One unit as its blocks in the cells of its rows; of one record by itself the record's block.

    >>> import confide as cf
    >>> from confide.aggregates.cells.crossing import Crossing
    >>> from confide.aggregates.cells.weighted_cells import CountRows
    >>> crossing = Crossing.of(("f",), cf.Schema({"f": cf.Categorical(["a", "b"])}))
    >>> own = UnitCells(crossing, (0,), CountRows(crossing, (0,)))
    >>> codes = np.array([[0.0, 1.0, 1.0, 1.0, 0.0], [2.0, -1.0, -1.0, -1.0, 0.0]])  # a person with four rows, one with one
    >>> (own(codes) / 2**20).tolist()
    [[0.25, 1.0], [0.75, 0.0], [0.1875, 0.0], [0.1875, 0.0]]
    """

    @property
    def together(self) -> int:
        measured = isinstance(self.inner, MomentRows)
        opposed = max(0, BOUND - self.inner.count**2) if measured else 0
        # a unit has no more cells than rows
        cells, longest = min(self.cells, MOST), isqrt(self.l2_squared) + 1
        cut = 2 * (isqrt(self.block) + 1) * (isqrt(cells) + 1) * longest + cells * self.block
        return 2 * self.l2_squared + 2 * opposed + 2 * cut

    @property
    def l1(self) -> int:
        """omega + omega (1 - omega) <= 2 omega in each cell."""
        return 2 * self.inner.l1

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.inner.columns, WHOLE_ROW)

    @property
    def digest(self) -> str:
        return digest(["by units", self.inner.digest])

    def rows(self, codes: Array) -> tuple[Whole, Array]:
        """The cell of each pair of a unit and a cell in which it has rows, and its block, shape (block, pairs)."""
        _, place, out = self._pairs(codes)
        return place, out

    def __call__(self, codes: Array) -> Array:
        """One column for each unit."""
        unit, place, rows = self._pairs(codes)
        units = int((codes[-1] >= 0).sum())
        out = np.zeros((self.block, self.cells, units))
        out[:, place, unit] = rows
        return np.asarray(out.reshape(self.width, units))

    def _pairs(self, codes: Array) -> tuple[Whole, Whole, Array]:
        """(unit, cell, block) of each unit in each of its cells."""
        own = codes[:-1]
        place, blocks = self.inner.rows(own)
        there = np.flatnonzero(place < self.cells)
        unit = (np.cumsum(codes[-1] >= 0) - 1)[there]
        pairs, first, pair, numbers = np.unique(
            unit * self.cells + place[there], return_index=True, return_inverse=True, return_counts=True
        )
        unit_of, cell = np.divmod(pairs, self.cells)
        omega = numbers / np.bincount(unit, minlength=1)[unit_of]
        # of a single row its own block
        found = blocks[:, there[first]]
        if isinstance(self.inner, MomentRows) and (numbers > 1).any():
            several = numbers > 1
            values, _ = self.inner.placed(own, 0)
            sums = np.bincount(pair, weights=np.rint(values[there] * _FINE), minlength=len(pairs))
            means = sums[several] / (numbers[several] * _FINE)
            moments = free_moments(means)
            moments *= float(self.inner.steps)
            found[1:5, several] = round_within(moments)
        return unit_of, cell, np.trunc(self.doubled(found, omega))
