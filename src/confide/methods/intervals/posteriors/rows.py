"""Record maps behind intervals for one parameter, with the exact bound on what replacing one record moves.

All of them are for a public number of records: neighbours differ in the values of one record ("substitute"), and no record is left out.

    counts of J levels   one 1 moves from one place to another: l1 = 2, l2 = sqrt 2, for all J at once; a single level alone: 1
    moments of z         (z, a q, b z q, c z^2 q), q = 1 - z^2, z in [-1, 1]. With t = |z - z'| and |z + z'| <= 2 - t each of the last
                         three, without its weight, moves by at most t (2 - t): |q - q'| = t |z + z'|;
                         |z q - z'q'| = t |1 - (z^2 + z z' + z'^2)|, where the sum is from t^2/4 to 3 - 3 t + t^2;
                         |z^2 q - z'^2 q'| = t |z + z'| |1 - z^2 - z'^2|. So
                         l1 <= t (1 + (a + b + c)(2 - t)) <= 2 for a + b + c <= 1/2 (it rises up to t = 2), and
                         l2^2 <= t^2 (1 + (a^2 + b^2 + c^2)(2 - t)^2) <= 4 for a^2 + b^2 + c^2 <= (11 + 5 sqrt 5)/8, where the largest value
                         besides t = 2 is reached at t = sqrt 5 - 1. So the moments of order two to four cost the mean nothing.
    products a_i a_j     a in [-1, 1]^D, i <= j, squares times w. aa' - bb' = ((a + b)(a - b)' + (a - b)(a + b)')/2, so that its entries add
                         up to at most |a + b|_1 |a - b|_1 <= D^2, and off-diagonals stand in it twice: l1 <= D^2/2 for w <= 1/2. Half the
                         squared Frobenius norm is (|a|^4 + |b|^4)/2 - (a'b)^2 <= D^2: l2 <= D for w <= 1/sqrt 2. With a constant 1 among
                         them, whose square is public, and D odd: l2 <= sqrt(D^2 - 1), for the form is convex in every coordinate, its
                         maximum at corners, where a'b is odd.

Numbers are coded in 2^20 steps and rounded; replaced records differ by at most one step more in each number, which the bounds include.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, isqrt, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.column import OfColumn
from confide.aggregates.lines.rows import DesignRows
from confide.errors import PlanError
from confide.protocol import RecordMap, Total
from confide.protocol.exact import digest
from confide.schema import Categorical, Design, Integer, Numeric, Schema

__all__ = [
    "STEP",
    "LevelRows",
    "MomentRows",
    "PairRows",
    "ProductRows",
    "Records",
    "Replaced",
    "fixed_columns",
    "squares_weight",
]

Codes = NDArray[np.float64]

#: Integer steps in one unit.
STEP = 1 << 20


@dataclass(frozen=True)
class Replaced(Total):
    """An exact sum whose map says what one replaced record moves it by: `moved_l1` and `moved_l2_squared`, in its integers."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        if relation != "substitute":
            return super().sensitivity_squared(relation)
        return Fraction(self.map.moved_l2_squared)  # type: ignore[attr-defined]

    def sensitivity_l1(self, relation: str) -> Fraction:
        if relation != "substitute":
            return super().sensitivity_l1(relation)
        return Fraction(self.map.moved_l1)  # type: ignore[attr-defined]


def fixed_columns(schema: Schema, columns: tuple[str, ...], who: str) -> None:
    """Refuse columns under which a record may be left out: the number of records is public, and must not depend on their values."""
    for name in columns:
        column = schema[name]
        if column.on_missing == "drop":
            what = f"{list(column.levels)}" if isinstance(column, Categorical) else f"{column.low:g}, {column.high:g}"
            rule = column.levels[0] if isinstance(column, Categorical) else "midpoint"
            raise PlanError(
                f"{who} takes the number of records as public, and a record with a missing {name!r} is left out; say in the schema what "
                f'a missing value counts as: write {name!r}: cf.{type(column).__name__}({what}, on_missing="{rule}")'
            )


def numeric(schema: Schema, name: str, who: str) -> Numeric | Integer:
    """A numeric column, by name; `PlanError` for labels."""
    column = schema[name]
    if isinstance(column, Categorical):
        raise PlanError(
            f"{who} is of a numeric column, and {name!r} has labels; for shares write cf.intervals.proportion"
        )
    return column


@dataclass(frozen=True)
class Records(OfColumn):
    """1 for every record: the public number of records, summed in the same pass."""

    width: int = field(default=1, init=False)
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)

    @property
    def digest(self) -> str:
        return digest(["records", self.column])

    def __call__(self, codes: Codes) -> Codes:
        return np.ones((1, codes.shape[1]))


@dataclass(frozen=True)
class LevelRows(OfColumn):
    """One record as 1 in the place of its level, 0 elsewhere. levels: codes of the levels that are counted, (J,)."""

    levels: tuple[int, ...]
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)

    @property
    def width(self) -> int:
        return len(self.levels)

    @property
    def moved_l1(self) -> int:
        return 1 if self.width == 1 else 2

    @property
    def moved_l2_squared(self) -> int:
        return 1 if self.width == 1 else 2

    @property
    def digest(self) -> str:
        return self._digest("levels", list(self.levels))

    def __call__(self, codes: Codes) -> Codes:
        return np.asarray(codes[0][None, :] == np.array(self.levels, dtype=np.float64)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class PairRows(RecordMap):
    """One record as 1 in the place of its pair (level of the first column, level of the second), the second running faster."""

    schema: Schema
    first: str
    second: str
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)
    moved_l1: int = field(default=2, init=False)
    moved_l2_squared: int = field(default=2, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        return self.schema[self.first].steps, self.schema[self.second].steps

    @property
    def width(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.first, self.second)

    @property
    def digest(self) -> str:
        return digest(["pairs", *(self.schema[name].to_dict() for name in self.columns), *self.columns])

    def __call__(self, codes: Codes) -> Codes:
        place = codes[0] * self.shape[1] + codes[1]
        return np.asarray(place[None, :] == np.arange(self.width, dtype=np.float64)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class MomentRows(OfColumn):
    """One record as (z, a q, b z q, c z^2 q) in 2^20 steps, z in [-1, 1] its place between the bounds. pure: weights for the l1 norm."""

    pure: bool
    width: int = field(default=4, init=False)

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """(1, a, b, c): a + b + c = 1/2 in l1; in l2 a^2 + b^2 + c^2 = 2.76375, below (11 + 5 sqrt 5)/8."""
        return (1.0, 0.4, 0.05, 0.05) if self.pure else (1.0, 1.45, 0.575, 0.575)

    @property
    def l1(self) -> int:
        return ceil(sum(self.weights) * STEP) + 5

    @property
    def l2_squared(self) -> int:
        return (isqrt(ceil(sum(weight**2 for weight in self.weights) * STEP * STEP)) + 3) ** 2

    @property
    def moved_l1(self) -> int:
        return 2 * STEP + 5 if self.pure else 2 * self.l1

    @property
    def moved_l2_squared(self) -> int:
        return (2 * STEP + 3) ** 2

    @property
    def digest(self) -> str:
        return self._digest("four moments", self.pure)

    def __call__(self, codes: Codes) -> Codes:
        z = 2.0 * codes[0] / (self.schema[self.column].steps - 1) - 1.0
        square = z * z
        left = 1.0 - square
        rows = np.stack([z, left, z * left, square * left])
        limits = np.array(self.weights)[:, None] * STEP
        rows *= limits
        np.rint(rows, out=rows)
        np.ceil(limits, out=limits)
        return np.asarray(np.clip(np.nan_to_num(rows), -limits, limits))


def squares_weight(pure: bool) -> float:
    """w of the squares among products: 1/2 in l1, 1/sqrt 2 in l2, rounded down."""
    return 0.5 if pure else 0.70710678


@dataclass(frozen=True)
class ProductRows(DesignRows):
    """One record as a_i a_j, i <= j, in 2^20 steps, squares times w; a = ([1,] x_1, ..., x_p, y) in [-1, 1], without the constant's square.

    With an intercept terms are measured from the middle of their bounds; without one from 0, in units of the bound that is farther off.
    """

    design: Design
    pure: bool
    kind: ClassVar[str] = "products"

    @property
    def size(self) -> int:
        """D."""
        return len(self.design.terms) + 1 + self.design.intercept

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        start = [(i, j) for i in range(self.size) for j in range(i, self.size)]
        return tuple(pair for pair in start if not (self.design.intercept and pair == (0, 0)))

    @property
    def width(self) -> int:
        return len(self.pairs)

    @property
    def scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(centre, unit) of each term and the response, in their own units."""
        ends = [(float(term.low), float(term.high)) for term in (*self.design.terms, self.design.response)]
        if self.design.intercept:
            return np.array([low + (high - low) / 2 for low, high in ends]), np.array(
                [(high - low) / 2 for low, high in ends]
            )
        return np.zeros(len(ends)), np.array([max(abs(low), abs(high)) for low, high in ends])

    @property
    def l1(self) -> int:
        return self.width * STEP

    @property
    def l2_squared(self) -> int:
        return self.width * STEP * STEP

    @property
    def moved_l1(self) -> int:
        return self.size**2 * STEP // 2 + 1 + self.width if self.pure else 2 * self.l1

    @property
    def moved_l2_squared(self) -> int:
        odd = self.design.intercept and self.size % 2 == 1
        square = (self.size**2 - odd) * STEP * STEP
        return (isqrt(square) + 1 + ceil(sqrt(self.width))) ** 2

    @property
    def stated(self) -> tuple[bool]:
        return (self.pure,)

    def __call__(self, codes: Codes) -> Codes:
        terms, _ = self.design.codes(codes)
        centre, unit = self.scaling
        rows = [np.ones(terms.shape[1])] if self.design.intercept else []
        for own, term, c, u in zip(terms, (*self.design.terms, self.design.response), centre, unit, strict=True):
            if self.design.intercept:
                rows.append(np.clip(2.0 * own / (term.steps - 1) - 1.0, -1.0, 1.0))
            else:
                rows.append(np.clip((term.grid.decode(own) - c) / u, -1.0, 1.0))
        weight = squares_weight(self.pure)
        found = np.empty((self.width, terms.shape[1]))
        for row, (i, j) in zip(found, self.pairs, strict=True):
            np.multiply(rows[i], rows[j], out=row)
            row *= STEP * (weight if i == j else 1.0)
        np.rint(found, out=found)
        return np.asarray(np.clip(np.nan_to_num(found), -STEP, STEP))

    def decode(self, values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        """The symmetric matrix S of a released sum, in units; the constant's square is n."""
        found = np.zeros((self.size, self.size))
        weight = squares_weight(self.pure)
        for value, (i, j) in zip(values, self.pairs, strict=True):
            found[i, j] = found[j, i] = value / STEP / (weight if i == j else 1.0)
        if self.design.intercept:
            found[0, 0] = n
        return found
