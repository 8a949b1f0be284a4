"""Weighted sums by cell: a record counts by its bounded weight, and the squares that its variance needs cost nothing.

omega = w/W in [0, 1], W the public upper bound of the weights. With m the block that a record without weight gives to its cell (a number of
2^20 for counts, free moments for means), its weighted block is

    (omega m, omega (1 - omega) m),      squared length omega^2 (1 + (1 - omega)^2) |m|^2 <= |m|^2,

because omega^2 (1 + (1 - omega)^2) has the derivative 2 omega (2 omega^2 - 3 omega + 2) > 0 (its discriminant is -7) and is 1 at omega = 1.
The first half adds up to weighted sums; less the second half they are the sums of omega^2 m, from which linearised variances follow.

    add-remove  the squared sensitivity is that of m.
    substitute  two records in one cell: <F, F'> = (omega omega' + omega (1 - omega) omega' (1 - omega')) <m, m'>, a factor in [0, 2], so
                that |F - F'|^2 <= 2 L + 4 (-<m, m'>)+ and what rounding adds; the blocks here have <m, m'> >= -4 sqrt(k) 2^20. For
                counts m = m', and with d = |omega - omega'|, t = |1 - omega - omega'| <= 1 - d the squared distance is
                L d^2 (1 + t^2) <= L (1 - t)^2 (1 + t^2) <= L: one record of the largest weight more or less, as under add-remove.

A weight is a function of the person's own record, by assumption: a weight that was raked or adjusted on this very sample depends on others.
Source: the bound is derived here; the variance is the usual linearised one of a ratio (Kish 1965).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.cell_sums import CellRows
from confide.aggregates.cells.free_moments import Measure, MomentRows
from confide.aggregates.column_codes import codes_of, columns_of
from confide.aggregates.lines.rows import BITS, BOUND
from confide.protocol.exact import digest
from confide.schema import Schema
from confide.schema.formulas.names import quoted

__all__ = ["CappedWeight", "CountRows", "DoubledRows", "WeightedRows", "places_of_weights"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_ONE = 1 << BITS


@dataclass(frozen=True)
class CappedWeight(Measure):
    """A column of weights of which larger ones count as `cap`; the cap may come from earlier noisy numbers, as omega is in [0, 1] anyway.

    >>> import confide as cf
    >>> own = CappedWeight(Measure.of("w", cf.Schema({"w": cf.Numeric(0, 8, steps=9)})).design)
    >>> places_of_weights(own.at(2.0), np.array([[0.0, 1.0, 2.0, 8.0]]))[0].tolist()
    [0.0, 0.5, 1.0, 1.0]
    """

    cap: float | None = None

    @classmethod
    def named(cls, column: str, schema: Schema) -> CappedWeight:
        """The weights of a design, uncapped; the design has checked the column."""
        return cls(Measure.of(quoted(column), schema, formula=f"weights={column}").design)

    def at(self, cap: float | None) -> CappedWeight:
        """The same with another cap."""
        return CappedWeight(self.design, cap)

    @property
    def heaviest(self) -> float:
        """What the largest weights count as."""
        return float(self.term.high) if self.cap is None else self.cap


def places_of_weights(weight: Measure, codes: Array) -> tuple[Array, NDArray[np.bool_] | None]:
    """(omega = min(w, W)/W in [0, 1], which records have a weight, None for all), from the codes of the weight's columns."""
    u, keep = weight.places(codes)
    most = weight.heaviest if isinstance(weight, CappedWeight) else weight.term.high
    omega = u * (weight.half / most)
    omega += weight.middle / most
    return np.clip(omega, 0.0, 1.0), keep


@dataclass(frozen=True)
class CountRows(CellRows):
    """One record as 2^20 in its cell: a count in steps, as its weighted version has it."""

    block = 1
    count = _ONE
    l2_squared = BOUND
    together = BOUND
    additive = True

    @property
    def columns(self) -> tuple[str, ...]:
        return self.crossing.columns

    @property
    def digest(self) -> str:
        return digest(["counts in steps", self.crossing.digest, list(self.axes)])

    def rows(self, codes: Array) -> tuple[Whole, Array]:
        place = self.crossing.places(codes, self.axes)
        return place, np.full((1, codes.shape[1]), float(_ONE))


@dataclass(frozen=True)
class DoubledRows(CellRows):
    """Base of blocks m that count by omega in [0, 1], as (omega m, omega (1 - omega) m)."""

    inner: CountRows | MomentRows

    @property
    def block(self) -> int:
        return 2 * self.inner.block

    @property
    def l2_squared(self) -> int:
        return self.inner.l2_squared

    @staticmethod
    def doubled(blocks: Array, omega: Array) -> Array:
        """Both halves, before they are whole numbers."""
        half = len(blocks)
        out = np.empty((2 * half, blocks.shape[1]))
        np.multiply(blocks, omega, out=out[:half])
        np.multiply(out[:half], 1.0 - omega, out=out[half:])
        return out


@dataclass(frozen=True)
class WeightedRows(DoubledRows):
    """The block m of a record as (omega m, omega (1 - omega) m); a record without a weight is in no cell.

    >>> import confide as cf
    >>> from confide.aggregates.cells.crossing import Crossing
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b"]), "w": cf.Numeric(0, 4, steps=5)})
    >>> crossing = Crossing.of(("f",), schema)
    >>> own = WeightedRows(crossing, (0,), CountRows(crossing, (0,)), Measure.of("w", schema))
    >>> (own.rows(np.array([[0.0, 1.0], [4.0, 1.0]]))[1] / 2**20).tolist()
    [[1.0, 0.25], [0.0, 0.1875]]
    """

    weight: Measure

    @property
    def together(self) -> int:
        rounding = 2 * ceil(sqrt(self.l2_squared) + 1) * ceil(sqrt(self.block) + 1) + self.block
        if isinstance(self.inner, CountRows):
            # each of the two numbers is off by at most half a step, in both records
            return self.l2_squared + rounding
        # <m, m'> >= T^2 - k S^2, and what a number of T^2 = k 2^40 loses by rounding
        opposed = max(0, len(self.inner.measures) * BOUND - self.inner.count**2)
        return 2 * self.l2_squared + 4 * opposed + 2 * rounding

    @property
    def l1(self) -> int:
        """omega + omega (1 - omega) <= 1, and half a step for each number."""
        return self.inner.l1 + self.block

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.inner, self.weight)

    @property
    def digest(self) -> str:
        return digest(["weighted", self.inner.digest, self.weight.digest])

    def rows(self, codes: Array) -> tuple[Whole, Array]:
        own = self.inner.columns
        place, inner = self.inner.rows(codes[: len(own)])
        omega, keep = places_of_weights(self.weight, codes_of(self.weight, self.columns, codes))
        if keep is not None:
            place[~keep] = self.cells
        real = self.doubled(inner, omega)
        out = np.rint(real)
        # rounding may carry a weight just below the largest over the bound: towards zero it cannot
        over = ~(np.einsum("ij,ij->j", out, out) <= self.l2_squared)
        if over.any():
            out[:, over] = np.trunc(real[:, over])
            out[:, ~(np.einsum("ij,ij->j", out, out) <= self.l2_squared)] = 0.0
        return place, out
