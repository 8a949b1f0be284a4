"""Sums by cell in which each unit counts once in the whole table, spread over the cells in which its rows lie.

A unit with m usable rows, m_c of them in cell c, has the weight omega_c = m_c/m there, and u_c, the mean of its values there. With m(u) the
block that a record gives to its cell (a number of 2^20 for counts, free moments for means), it gives

    (omega_c m(u_c), omega_c (1 - omega_c) m(u_c))

to each of its cells, cut toward zero to whole numbers. omega^2 (1 + (1 - omega)^2) <= omega on [0, 1] (their quotient has the derivative
2 - 4 omega + 3 omega^2 > 0, and is 1 at 1), so that a unit's squared length is at most L sum omega_c = L, L the bound of m. The sums of
omega_c and omega_c u_c add up from cell to margin. Those of omega_c^2 m(u_c), first half less second, are each cell's sampling variance by
units, and do not.

    add-remove  L.
    substitute  <F, F'> = sum over cells of g <m, m'>, 0 <= g = omega omega' + omega (1 - omega) omega' (1 - omega'), sum g <= 1 by
                Cauchy's inequality, and <m, m'> >= T^2 - 2^40 for blocks (T, S phi): |F - F'|^2 <= 2 L + 2 (2^40 - T^2)+ and what the
                cut adds, less than 1 for each number.

u_c does not depend on the order of the rows: values are rounded to 2^-32 before they are added. Where each unit has one row, first halves
are the integers of records and second halves 0. Source: derived here.

Units by cell: attributes of a unit that follow from all its rows, and the one cell of a marginal that it lies in.

A unit's level of a column is that of most of its rows, the first of them in the order of levels where several have as many. A unit whose
rows have none is in no cell. A `RowNumber` is how many of a unit's rows satisfy a public condition, cut at public points. A row that
lacks a value of the condition does not satisfy it. Both are functions of the unit's own rows as a multiset, of which at most 65,536 count.

Guarantee: a unit lies in one cell of a marginal, or in none, whatever rows it has. So the sensitivities are as for records by cell
(`cell_sums.CellCounts`): 1 under add-remove, sqrt(2) under substitution, and not multiplied by the rows of a unit. Source: exact histogram.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.core.exact import digest
from confide.core.units.privacy_unit import WHOLE_ROW
from confide.errors import PlanError
from confide.schema import Schema
from confide.schema.formulas.conditions import Predicate, parse_predicate
from confide.schema.unit import MOST
from confide.sums.cells.cell_sums import Attribute, Axes, Crossing
from confide.sums.cells.moments import MomentRows, free_moments
from confide.sums.cells.weighted_cells import DoubledRows
from confide.sums.coding import BOUND, round_within

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
    """One unit as its blocks in the cells of its rows; of one record alone the record's block.

    >>> import confide as cf
    >>> from confide.sums.cells.cell_sums import Crossing
    >>> from confide.sums.cells.weighted_cells import CountRows
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


# Levels of a number of rows where no points are given.
_POINTS = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class RowNumber(Attribute):
    """How many rows of a unit satisfy a condition, as a level. Made by `RowNumber.number`, `RowNumber.at_least_one`.

    condition: None for all rows.

    >>> import confide as cf
    >>> schema = cf.Schema({"ill": cf.Categorical(["no", "yes"])})
    >>> RowNumber.number("number(ill == 'yes', 1, 2, 5)", "ill == 'yes'", (1, 2, 5), schema).labels
    ('0', '1', '2 to 4', '5 or more')
    >>> RowNumber.at_least_one("any(ill == 'yes')", "ill == 'yes'", schema).labels
    ('no', 'yes')
    """

    condition: Predicate | None = None

    @classmethod
    def number(cls, name: str, condition: str | None, points: tuple[int, ...], schema: Schema) -> RowNumber:
        """Cut at whole numbers, each the first of its level. `PlanError` for points that do not rise, or are not 1 to 65,536."""
        at = points or _POINTS
        if list(at) != sorted(set(at)) or at[0] < 1 or at[-1] > MOST:
            raise PlanError(
                f"{name} takes increasing whole numbers from 1 to {MOST:,}, got {', '.join(map(str, at))}",
                "write number(condition, 1, 2, 5) for none, 1, 2 to 4 and 5 or more rows",
            )
        # of all rows of a unit that counts there is at least one
        first = 0 if condition is not None else 1
        starts = at if at[0] == first else (first, *at)
        labels = [_between(low, high) for low, high in pairwise(starts)]
        return cls(name, name, (*labels, f"{starts[-1]} or more"), starts, _read(condition, schema))

    @classmethod
    def at_least_one(cls, name: str, condition: str, schema: Schema) -> RowNumber:
        """Whether any row satisfies the condition."""
        return cls(name, name, ("no", "yes"), (0, 1), _read(condition, schema))

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        return () if self.condition is None else self.condition.columns

    @property
    def told(self) -> object:
        """All that decides its levels, for digests."""
        return ["number", list(self.starts), None if self.condition is None else self.condition.to_list()]


def _read(condition: str | None, schema: Schema) -> Predicate | None:
    return None if condition is None else parse_predicate(condition, schema)


def _between(low: int, high: int) -> str:
    return str(low) if high == low + 1 else f"{low} to {high - 1}"


@dataclass(frozen=True)
class UnitCrossing(Crossing):
    """Attributes of units over a schema: `places` takes the codes of rows of whole units, and gives one cell for each unit.

    >>> import confide as cf
    >>> schema = cf.Schema({"g": cf.Categorical(["a", "b"])})
    >>> own = UnitCrossing((Attribute.of("g", schema), RowNumber.at_least_one("any(g == 'b')", "g == 'b'", schema)), schema)
    >>> rows = np.array([[0.0, 0.0, 1.0, 0.0, -1.0], [1.0, -1.0, -1.0, 0.0, 0.0]])
    >>> own.columns[:-1], own.places(rows, (0, 1)).tolist()
    (('g',), [1, 0, 4])
    """

    additive: ClassVar[bool] = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The schema columns behind the attributes, each once, and the row of codes that says where units begin."""
        return (*self.read, WHOLE_ROW)

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The schema columns alone."""
        own = (one.read if isinstance(one, RowNumber) else (one.column,) for one in self.attributes)
        return tuple(dict.fromkeys(name for names in own for name in names))

    @property
    def drops(self) -> bool:
        """Whether a unit may be in no cell."""
        own = (one.column for one in self.attributes if not isinstance(one, RowNumber))
        return any(self.schema[name].on_missing == "drop" for name in own)

    @cached_property
    def digest(self) -> str:
        own = [one.told if isinstance(one, RowNumber) else [one.column, list(one.starts)] for one in self.attributes]
        return digest(["crossing of units", own, [self.schema[name].to_dict() for name in self.read]])

    def separated(self, axes: Axes) -> tuple[str, ...]:
        """None: each unit is in one cell."""
        return ()

    def places(self, codes: Array, axes: Axes) -> Whole:
        """The cell of each unit, (units,); the number of cells for one that is in none. codes: of `columns`, (columns, rows)."""
        first = codes[-1] >= 0
        units, unit = int(first.sum()), np.cumsum(first) - 1
        place, outside = np.zeros(units, dtype=np.int64), np.zeros(units, dtype=np.bool_)
        at = {name: row for row, name in enumerate(self.columns)}
        for axis in axes:
            own = self.attributes[axis]
            if isinstance(own, RowNumber):
                level = self._numbers(own, codes, at, unit, units)
            else:
                level = _most_frequent(own, codes[at[own.column]], unit, units)
            outside |= level < 0
            place *= own.size
            place += level
        place[outside] = self.cells(axes)
        return place

    def _numbers(
        self, own: RowNumber, codes: Array, at: dict[str, int], unit: NDArray[np.intp], units: int
    ) -> NDArray[np.int64]:
        inside = slice(None) if own.condition is None else own.condition(codes[[at[name] for name in own.read]])
        number = np.bincount(unit[inside], minlength=units)
        return np.asarray(np.searchsorted(np.array(own.starts), number, side="right") - 1, dtype=np.int64)


def _most_frequent(own: Attribute, codes: Array, unit: NDArray[np.intp], units: int) -> NDArray[np.int64]:
    """The level that most rows of each unit have, the first of several; -1 where no row has one."""
    there = codes >= 0
    found = np.full(units, -1, dtype=np.int64)
    pairs, times = np.unique(unit[there] * own.size + own.levels(codes[there]), return_counts=True)
    of, level = np.divmod(pairs, own.size)
    order = np.lexsort((level, -times, of))
    kept = order[np.unique(of[order], return_index=True)[1]]
    found[of[kept]] = level[kept]
    return found
