"""Functions of the table of all records as statistics: for estimators that are no sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.column_codes import ColumnCodes
from confide.aggregates.function_of import OfRecords
from confide.aggregates.safety_formulas import rounded_safety, up
from confide.methods.ptr.safety import CertifiedBound, SafetyBound
from confide.protocol import SAFETY_STEPS

__all__ = [
    "FAR",
    "FINE",
    "OfTable",
    "certificate",
    "level_of",
    "public_alpha",
    "safety_of",
    "vector_moves",
    "vector_of",
]


#: Steps of one unit of alpha, and of one move of a level.
FINE = 1 << 20
#: What a number is cut to before it becomes an integer: public, far beyond anything of use, and exact in doubles.
FAR = 1 << 52
_SAFE_ENOUGH = 1 << 40


@dataclass(frozen=True, eq=False)
class OfTable(OfRecords):
    """Integers that are a function of the whole table, with a stated bound on what one record moves: `integers(table)`."""

    map: ColumnCodes
    integers: Callable[[Array], NDArray[Any]]
    shape: tuple[int, ...]
    moved: int

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.moved) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.moved * ceil(sqrt(self.shape[0])))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        return np.full(rows.shape[1], self.moved**2, dtype=object)

    def of(self, sums: NDArray[Any]) -> NDArray[Any]:
        return self.integers(self.map.table(sums))


def safety_of(bound: SafetyBound, table: Array) -> NDArray[Any]:
    """floor(1024 gamma), shape (1,): above 0 only where gamma is, moved by at most 1024 by one record.

    A gamma that raises or is no number says "unsafe": data never raise.
    """
    gamma = _number(lambda: bound.gamma(bound.prepare(table.copy())))
    return np.array([floor(SAFETY_STEPS * min(max(gamma, 0.0), _SAFE_ENOUGH))], dtype=object)


def level_of(bound: CertifiedBound, table: Array) -> NDArray[Any]:
    """The level in 2^-20 of its move, rounded down, shape (1,); 0 where it raises or is no number."""

    def units() -> float:
        prepared = bound.prepare(table.copy())
        return rounded_safety(max(bound.level(prepared) / bound.moves, 0.0), bound.error(prepared))

    return np.array([floor(FINE * min(_number(units), _SAFE_ENOUGH))], dtype=object)


def certificate(bound: CertifiedBound, noisy: int, threshold: int, rows: int = 1) -> float:
    """t: with a noisy level in steps of which the noise reaches `threshold` rarely, L >= t + rows * moves but for that chance."""
    steps = noisy - threshold - rows * FINE
    # rounded toward 0, never up
    t = float(Fraction(steps, FINE) * Fraction(bound.moves))
    return t * (1 - 2.0**-50) if t > 0 else t


def vector_of(bound: SafetyBound, table: Array, alpha: float) -> NDArray[Any]:
    """rint(2^20 S estimate/alpha), shape (dim,), as Python integers: moves by `vector_moves` where the estimate moves by alpha.

    An estimate that raises, has another length or is no number becomes 0: where it may be asked for, none should.
    """
    try:
        found: Array = np.ravel(np.asarray(bound.estimate(bound.prepare(table.copy())), dtype=np.float64))
    except Exception:
        found = np.zeros(bound.dim)
    if found.shape != (bound.dim,):
        found = np.zeros(bound.dim)
    scaled = found * np.array(bound.shape or (1.0,) * bound.dim) * (FINE / alpha)
    steps = np.clip(np.nan_to_num(np.rint(scaled), nan=0.0, posinf=FAR, neginf=-FAR), -FAR, FAR)
    return np.array([int(v) for v in steps], dtype=object)


def vector_moves(dim: int) -> int:
    """2^20 + 2 ceil(sqrt(dim)) steps: alpha, half a step each way for rounding a coordinate, and as much again for floats."""
    return FINE + 2 * ceil(sqrt(dim))


def public_alpha(alpha: float) -> float:
    """alpha rounded up by one part in 10^11."""
    return up(float(alpha))


def _number(compute: Callable[[], Any]) -> float:
    try:
        value = float(compute())
    except Exception:
        return 0.0
    return value if isfinite(value) else (float(_SAFE_ENOUGH) if value > 0 else 0.0)
