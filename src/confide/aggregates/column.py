"""Count, sum and sum of squares of one column: the record map under means and variances."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.protocol import RecordMap
from confide.protocol.exact import digest
from confide.schema import Categorical, Schema

__all__ = ["ColumnMoments"]

_UNIT = 1 << 20


@dataclass(frozen=True)
class OfColumn(RecordMap):
    """What maps of one column share: its name in the schema, and a digest of all that the column declares."""

    schema: Schema
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def _need_numbers(self, what: str) -> None:
        if isinstance(self.schema[self.column], Categorical):
            raise PlanError(f"{self.column!r} is categorical and has no {what}; name a numeric or integer column")

    def _digest(self, kind: str, *stated: object) -> str:
        return digest([kind, self.schema[self.column].to_dict(), self.column, *stated])


@dataclass(frozen=True)
class ColumnMoments(OfColumn):
    """One record as (2^20, u, u^2) in steps of 2^-20, u = its place between the bounds of a numeric column, in [0, 1].

    `decode` turns a noisy sum of it into (count, mean of u, mean of u^2); `to_units` turns u into the column's own units.

    >>> import confide as cf
    >>> ColumnMoments(cf.Schema({"age": cf.Numeric(0, 100)}), "age").width
    3
    """

    width: int = field(default=3, init=False)
    l1: int = field(default=3 * _UNIT, init=False)
    l2_squared: int = field(default=3 * _UNIT**2, init=False)

    def __post_init__(self) -> None:
        self._need_numbers("moments")

    @property
    def digest(self) -> str:
        return self._digest("column moments")

    def __call__(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        place = codes[0] / (self.schema[self.column].steps - 1)
        rows = np.stack([np.ones_like(place), place, place * place])
        rows *= np.where(codes[0] >= 0, float(_UNIT), 0.0)
        return np.asarray(np.clip(np.rint(rows), 0, _UNIT))

    @staticmethod
    def decode(values: NDArray[np.float64]) -> tuple[float, float, float]:
        """(count, mean of u, mean of u^2) of a sum; the count is at least 1."""
        count = max(float(values[0]) / _UNIT, 1.0)
        return count, float(values[1]) / _UNIT / count, float(values[2]) / _UNIT / count

    def to_units(self, place: float) -> float:
        """A place between the bounds, in the column's units."""
        column = self.schema[self.column]
        assert not isinstance(column, Categorical)
        return float(column.low + (column.high - column.low) * place)
