"""The columns of records as a plain table: for estimators that are not sums.

Count, sum and sum of squares of one column: the record map under means and variances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import RecordMap
from confide.core.exact import digest
from confide.errors import PlanError
from confide.schema import Categorical, CodedFrame, Schema


class _Reads(Protocol):
    """What reads columns."""

    @property
    def columns(self) -> tuple[str, ...]: ...


def columns_of(*parts: _Reads | None) -> tuple[str, ...]:
    """The columns that several parts read, each once, in their order."""
    return tuple(dict.fromkeys(name for part in parts if part is not None for name in part.columns))


def codes_of(part: _Reads, columns: Sequence[str], codes: Array) -> Array:
    """The rows that one part reads, in its order, of the codes of all `columns`."""
    places = [columns.index(name) for name in part.columns]
    first = places[0] if places else 0
    # neighbors in order need no copy
    return codes[first : first + len(places)] if places == [*range(first, first + len(places))] else codes[places]


def chosen_columns(schema: Schema, columns: tuple[str, ...] | None, who: str) -> tuple[str, ...]:
    """The named columns, all of the schema for None; `PlanError` where a missing value would drop a record.

    Under substitution the number of records is public and fixed; a record that may drop out would change it.
    """
    chosen = tuple(schema.names) if columns is None else tuple(columns)
    if not chosen or len(set(chosen)) < len(chosen):
        raise PlanError(f"columns must name at least one column, each once, got {chosen!r}")
    for name in chosen:
        if schema[name].on_missing == "drop":
            rule = "one of its levels" if isinstance(schema[name], Categorical) else '"midpoint" or a number'
            raise PlanError(
                f"{who} has a public number of records, and {name!r} drops those with a missing value",
                f"give it on_missing={rule}",
            )
    return chosen


def practice_codes(part: _Reads, practice: CodedFrame) -> Array:
    """The codes of simulated records that a part reads, (columns, records)."""
    own = [practice.codes[name] for name in part.columns]
    return np.stack(own) if own else np.zeros((0, len(practice)))


@dataclass(frozen=True)
class CodedColumns(RecordMap):
    """What maps of one record to codes of its columns share: no code is larger than its column's last."""

    schema: Schema
    columns: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def largest(self) -> list[int]:
        """The largest code of each column."""
        return [self.schema[name].steps - 1 for name in self.columns]

    @property
    def l1(self) -> int:
        return sum(self.largest)

    @property
    def l2_squared(self) -> int:
        return sum(code**2 for code in self.largest)


@dataclass(frozen=True)
class ColumnCodes(CodedColumns):
    """One record as the codes of its columns; `table` gives them in the columns' units.

    >>> import confide as cf
    >>> codes = ColumnCodes(cf.Schema({"x": cf.Numeric(0, 1, steps=11, on_missing="midpoint")}), ("x",))
    >>> codes.table(np.array([[0.0, 10.0]])).tolist(), codes.l2_squared
    ([[0.0], [1.0]], 100)
    """

    @property
    def digest(self) -> str:
        return digest(["columns", *([name, self.schema[name].to_dict()] for name in self.columns)])

    def __call__(self, codes: Array) -> Array:
        return np.maximum(codes, 0.0)

    def table(self, rows: Array) -> Array:
        """Codes (columns, n) as a table (n, columns): units of numeric columns, positions of levels."""
        whole = np.empty((rows.shape[1], len(self.columns)))
        for j, name in enumerate(self.columns):
            column = self.schema[name]
            whole[:, j] = rows[j] if isinstance(column, Categorical) else column.decode(rows[j])
        return whole

    def practice(self, n: int) -> Iterator[Array]:
        """Two tables of simulated records, which are public, and one of a single record again and again."""
        for seed in (1, 2):
            made = CodedFrame.of(self.schema.sample(n, seed=seed), self.schema).codes
            codes = np.stack([made[name] for name in self.columns])
            yield self.table(codes)
        yield self.table(np.repeat(codes[:, :1], n, axis=1))


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
            raise PlanError(f"{self.column!r} is categorical and has no {what}", "name a numeric or integer column")

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
