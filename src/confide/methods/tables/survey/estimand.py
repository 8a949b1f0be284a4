"""What a survey's table estimates: ratios of weighted sums by cell, or such sums, as linear functions of released marginals.

An estimate is k Y_c/X_b(c), or k Y_c, of sums Y = sum omega y and X = sum omega x in marginals that least squares put together:

    means       Y of the column in c      X = sum omega in c              k = 1
    ratios      Y of the first column     X of the second one in c        k = 1
    shares      sum omega in c            sum omega in the base of c      k = 1
    totals      Y in c                    sum omega of all persons        k = N, public
    counts      sum omega in c            sum omega of all persons        k = N, public
    without N   totals and counts are     W Y, W the weight that omega = 1 stands for
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.methods.tables.draw import Margins
from confide.methods.tables.layout import Layout
from confide.sums.cells.cell_sums import Axes
from confide.sums.cells.moments import Measure, MomentRows

#: The methods that a design reads, by name.
KINDS = ("counts", "shares", "means", "totals", "ratios")

# A linear function of the numbers of a marginal's cells: (coefficient, number in the block).
_Parts = tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Estimand:
    """One column of a table over one marginal. column: of the measures; within: attributes that shares are within; size: the public N."""

    kind: str
    layout: Layout
    axes: Axes
    column: int = 0
    within: Axes = ()
    size: int | None = None

    @property
    def numerator(self) -> Measure | None:
        """y, None for 1."""
        return self.layout.measures[self.column] if self.kind in ("means", "totals", "ratios") else None

    @property
    def denominator(self) -> Measure | None:
        """x, None for 1."""
        return self.layout.measures[1] if self.kind == "ratios" else None

    @property
    def base(self) -> Axes | None:
        """The marginal that cells are divided by; None for sums that are not."""
        if self.kind in ("means", "ratios"):
            return self.axes
        if self.kind == "shares":
            return tuple(axis for axis in self.axes if axis in self.within)
        return () if self.size is not None else None

    @property
    def factor(self) -> float:
        """k."""
        if self.base is None:
            return self.layout.heaviest
        return float(self.size) if self.size is not None and self.kind in ("totals", "counts") else 1.0

    @property
    def overall(self) -> Estimand:
        """The same of all persons."""
        return Estimand(self.kind, self.layout, (), self.column, (), self.size)

    @property
    def dense(self) -> bool:
        """Whether a person is in the scores of other cells than her own."""
        return self.base is not None and self.base != self.axes

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which an estimate lies by public facts."""
        if self.kind == "means":
            own = self.layout.measures[self.column]
            return own.middle - own.half, own.middle + own.half
        least = 0.0 if self.kind in ("counts", "shares") else -np.inf
        return least, 1.0 if self.kind == "shares" else np.inf

    @property
    def name(self) -> str:
        """Of what is measured, for titles."""
        if self.kind == "ratios":
            return " / ".join(own.name for own in self.layout.measures)
        return self.layout.measures[self.column].name if self.numerator is not None else ""


@dataclass(frozen=True, eq=False)
class Sums:
    """Released sums as an estimand reads them. rows: the map behind sums of moments, None for counts.

    one: the steps that a person of omega = 1 adds to a count.
    """

    of: Estimand
    margins: Margins
    rows: MomentRows | None
    one: float

    @property
    def overall(self) -> Sums:
        """The same of all persons."""
        return replace(self, of=self.of.overall)

    def _counts(self, column: int | None) -> _Parts:
        """sum omega, of those with a value where a column may be missing."""
        if self.rows is None:
            return ((1.0 / self.one, 0),)
        own: _Parts = ((1.0 / self.rows.count, 0),)
        # those of ratios have both values, so that none is missing
        if column is not None and self.rows.counts_missing(column) and self.of.kind != "ratios":
            own = (*own, (-1.0 / (1 << 20), self.rows.starts[column] + 4))
        return own

    def _values(self, column: int) -> _Parts:
        """sum omega y in the column's units."""
        assert self.rows is not None
        own = self.of.layout.measures[column]
        counts = tuple((own.middle * part, number) for part, number in self._counts(column))
        return (*counts, (own.half / self.rows.steps, self.rows.starts[column]))

    @property
    def _top(self) -> _Parts:
        return self._counts(None) if self.of.numerator is None else self._values(self.of.column)

    @property
    def _below(self) -> _Parts:
        if self.of.denominator is not None:
            return self._values(1)
        return self._counts(self.of.column if self.rows is not None else None)

    @property
    def one_by_one(self) -> Array:
        """sum omega^2 (y - theta x)^2 of each cell, not of ratios of columns: the variance of Y - theta X with independent persons."""
        theta = self.y / np.maximum(self.x, 1e-9) if self.of.base is not None else np.zeros(self._cells)
        count = self._counts(None if self.of.numerator is None else self.of.column)
        square = count
        if self.of.numerator is not None:
            assert self.rows is not None
            middle, half = self.of.numerator.middle, self.of.numerator.half
            start, step = self.rows.starts[self.of.column], 1.0 / self.rows.steps
            # y^2 = middle^2 + 2 middle half u + half^2 (1 - (1 - u^2))
            square = tuple(((middle**2 + half**2) * part, number) for part, number in count)
            square = (*square, (2 * middle * half * step, start), (-(half**2) * step, start + 1))
        found = self._squared(square, self.of.axes) - 2 * theta * self._squared(self._top, self.of.axes)
        if self.of.base is not None:
            found = found + theta**2 * self._squared(count, self.of.base)[self.base_of]
        return np.asarray(np.maximum(found, 0.0))

    def _squared(self, parts: _Parts, axes: Axes) -> Array:
        """Sums of omega^2 f: those of omega f less those of omega (1 - omega) f, which stand behind them."""
        own = self._at(parts, axes)
        if self.of.layout.weight is None:
            return own
        behind = len(self.margins.table(axes)) // 2
        return own - self._at(tuple((part, number + behind) for part, number in parts), axes)

    def _at(self, parts: _Parts, axes: Axes) -> Array:
        table = self.margins.table(axes)
        table = table.reshape(len(table), -1)
        return np.asarray(sum(part * table[number] for part, number in parts))

    @property
    def persons(self) -> Array:
        """sum omega of each cell, of those with a value."""
        return self._at(self._counts(self.of.column if self.rows is not None else None), self.of.axes)

    @property
    def y(self) -> Array:
        """Y of each cell."""
        return self._at(self._top, self.of.axes)

    @property
    def x(self) -> Array:
        """X of each cell's base; ones without."""
        return np.ones(self._cells) if self.of.base is None else self._at(self._below, self.of.base)[self.base_of]

    @property
    def _cells(self) -> int:
        return self.of.layout.crossing.cells(self.of.axes)

    @property
    def base_of(self) -> NDArray[np.int64]:
        """The cell of the base that each cell is divided by."""
        return self.of.layout.crossing.coarser(self.of.axes, self.of.base or ())

    def noise(self) -> tuple[Array, Array, Array]:
        """(var Y, cov(Y, X), var X) of the noise, by cell."""
        axes, base, ones = self.of.axes, self.of.base, np.ones(self._cells)
        # the noise is the same in each cell of a marginal
        vy = ones * self._covariance(self._top, axes, 0, self._top, axes, 0)
        if base is None:
            return vy, 0.0 * ones, 0.0 * ones
        vyx = self._covariance(self._top, axes, 0, self._below, base, int(self.base_of[0]))
        vx = self._covariance(self._below, base, 0, self._below, base, 0)
        return vy, vyx * ones, vx * ones

    def noise_between(self, theta: Array, one: int, other: int) -> float:
        """The noise covariance of Y - theta X at two cells."""
        axes, base, below = self.of.axes, self.of.base, self.base_of
        found = self._covariance(self._top, axes, one, self._top, axes, other)
        if base is None:
            return found
        first, second = int(below[one]), int(below[other])
        found -= theta[other] * self._covariance(self._top, axes, one, self._below, base, second)
        found -= theta[one] * self._covariance(self._below, base, first, self._top, axes, other)
        both = self._covariance(self._below, base, first, self._below, base, second)
        return float(found + theta[one] * theta[other] * both)

    def _covariance(self, first: _Parts, axes: Axes, one: int, second: _Parts, others: Axes, other: int) -> float:
        """Numbers of a block are independent of each other and of one variance."""
        common = sum(a * b for a, i in first for b, j in second if i == j)
        shared: Any = self.margins.covariance(self._place(axes, one), self._place(others, other))
        return float(common * shared)

    def _place(self, axes: Axes, cell: int) -> tuple[Axes, Sequence[int]]:
        shape = self.of.layout.crossing.shape(axes)
        return axes, [int(v) for v in np.unravel_index(cell, shape)] if axes else []
