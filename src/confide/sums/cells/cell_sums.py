"""Sums by cell of a marginal, as exact integers: counts, and blocks of numbers in the cell of their record.

Counts. A record adds 1 to one cell. Squared sensitivity 1 under add-remove; under substitution 2, two records in different cells.

Blocks. A record adds a block m of integers with |m|^2 <= L to the numbers of its cell. Squared sensitivity L under add-remove.
Under substitution two records in different cells do not overlap, |m|^2 + |m'|^2 <= 2 L. Two in one cell differ by |m - m'|^2, which the
map of the block bounds (`together`). Either may also give way to a record in no cell, which is the case of add-remove.

Marginals are counted individually: noise, and with it the budget, is the marginal's own.

Crossings: into which cell of which marginal a record falls, from public columns and public cuts.

An attribute puts a record into one of its public levels. It is a categorical column, an integer column of few values, or a numeric
column cut at public points. A crossing is a list of attributes. A marginal is a set of them (their positions), its cells the
combinations of their levels in C order, the first attribute changing slowest. The empty marginal has one cell, the total.

Missing values follow the columns' `on_missing`. A record that still has a missing value in any attribute is in no cell of any marginal,
so that all marginals are about the same records and add up.

Counts of records by cell: every table of which one record moves one cell by 1.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise, product
from math import isqrt, prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide._helpers import near_match
from confide.core import Beginning, RecordMap, Statistic
from confide.core.exact import digest
from confide.errors import PlanError, SchemaError
from confide.schema import Categorical, Integer, Schema
from confide.schema.formulas.names import age_of

#: Positions of the attributes of a marginal, increasing.
Axes = tuple[int, ...]

# An integer column with more values is cut first.
_MOST_VALUES = 256


@dataclass(frozen=True)
class Attribute:
    """One way to put a record into a level. Made by `Attribute.of` and `Attribute.cut`.

    name: as in a formula; column: the schema column behind it; labels: of the levels; starts: the first code of each level.

    >>> import confide as cf
    >>> schema = cf.Schema({"age": cf.Numeric(0, 100), "k": cf.Categorical(["a", "b"])})
    >>> Attribute.of("k", schema).labels
    ('a', 'b')
    >>> Attribute.cut("age", (18, 65), schema).labels
    ('<18', '[18, 65)', '>=65')
    >>> Attribute.cut("age", (0, 50, 100), schema).labels
    ('[0, 50)', '[50, 100]')
    """

    name: str
    column: str
    labels: tuple[str, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, name: str, schema: Schema) -> Attribute:
        """A column whose values are its levels; `PlanError` for a numeric one, with the call of `cut` to write."""
        column = _column(name, schema)
        if isinstance(column, Categorical):
            labels = column.levels
        elif isinstance(column, Integer) and column.steps <= _MOST_VALUES:
            labels = tuple(_level(column, int(column.low) + k) for k in range(column.steps))
        else:
            middle = _constant(column, column.low + (column.high - column.low) / 2)
            kind = "a date" if column.kind == "date" else "numeric"
            raise PlanError(
                f"{name!r} is {kind}, so its values are not levels of a table; cut it at public points, as in "
                f"cut({name}, {middle}), or declare it as a Categorical or as an Integer of at most {_MOST_VALUES} values"
            )
        return cls(name, name, labels, tuple(range(len(labels))))

    @classmethod
    def cut(cls, name: str, points: Iterable[Any], schema: Schema) -> Attribute:
        """A numeric column cut at public points, intervals closed on the left, the last one at the upper bound closed on both sides.

        What lies below the first or above the last point is a separate level, unless the bounds end there. A point is moved to the
        column's grid as values are; of dates it is a text. Raises `SchemaError` for points outside the bounds, and `PlanError` for
        others that cannot be used.
        """
        column, given = _column(name, schema), tuple(points)
        if isinstance(column, Categorical):
            raise PlanError(f"{name!r} is categorical; cut takes a numeric column, write {name} alone")
        at = tuple(point for point in map(column.point, given) if point is not None)
        if len(at) < len(given):
            example = "a column of dates and dates in quotes" if column.kind == "date" else "a column and numbers"
            middle = _constant(column, column.low + (column.high - column.low) / 2)
            age = age_of(schema) if column.kind == "date" else ""
            got = ", ".join(f"{point:g}" if isinstance(point, float) else str(point) for point in given)
            more = f", or for an age {age} in the schema and cut(age, 30)" if age else ""
            raise PlanError(f"cut({name}, ...) takes {example}, got {got}", f"write cut({name}, {middle}){more}")
        if not at or list(at) != sorted(set(at)):
            raise PlanError(f"cut({name}, ...) takes increasing points, got {at}", f"write cut({name}, 18, 65)")
        if at[0] < column.low or at[-1] > column.high:
            beyond = at[0] if at[0] < column.low else at[-1]
            near = column.low if at[0] < column.low else column.high
            raise SchemaError(
                f"cut({name}, ...) has the point {column.said(beyond)} outside the bounds of {name!r}, {column.said(column.low)} to "
                f"{column.said(column.high)}",
                f"write {_constant(column, near)} or widen the bounds in the schema",
            )
        inner = [point for point in at if column.low < point < column.high]
        codes = [0, *(int(column.code([point])[0]) for point in inner)]
        title = f"cut({name}, {', '.join(_constant(column, point) for point in at)})"
        if len(codes) < 2 or len(set(codes)) < len(codes):
            raise PlanError(
                f"{title} makes fewer levels than it names on the grid of {name!r}",
                "give points inside of the bounds, further apart than a step of the grid",
            )
        return cls(title, name, _intervals(column, at, inner), tuple(codes))

    @property
    def size(self) -> int:
        """How many levels there are."""
        return len(self.labels)

    @cached_property
    def coded(self) -> bool:
        """Whether a code of the column is the level itself."""
        return self.starts == tuple(range(len(self.starts))) and not self.name.startswith("cut(")

    def levels(self, codes: Array) -> Whole:
        """The level of each code; of a missing one it means nothing."""
        if self.coded:
            return codes.astype(np.int64)
        return np.searchsorted(self._starts, codes, side="right") - 1

    @cached_property
    def _starts(self) -> Array:
        return np.array(self.starts, dtype=np.float64)


def cut_point(text: str) -> float | str:
    """A point of a cut as a formula has it: a number, or a date in quotes, whose text it gives. `ValueError` for anything else.

    >>> cut_point("18"), cut_point("'1990-01-01'")
    (18.0, '1990-01-01')
    """
    date = re.fullmatch(r"(['\"])([0-9-]+)\1", text)
    return date[2] if date else float(text)


def _constant(column: Any, value: float) -> str:
    """A value as a formula has it: a date stands in quotes."""
    return repr(column.said(value)) if column.kind == "date" else f"{value:g}"


def _level(column: Any, value: int) -> str:
    return str(column.said(value)) if column.kind == "date" else str(value)


def _column(name: str, schema: Schema) -> Any:
    if name not in schema:
        raise SchemaError(
            f"the schema has no column {name!r}{near_match(name, schema.names)}; it has: {', '.join(schema.names)}"
        )
    return schema[name]


def _intervals(column: Any, points: tuple[float, ...], inner: list[float]) -> tuple[str, ...]:
    edges = [column.low, *inner, column.high]
    said = column.said
    labels = [f"[{said(low)}, {said(high)})" for low, high in pairwise(edges)]
    if points[0] > column.low:
        labels[0] = f"<{said(inner[0])}"
    labels[-1] = f"[{said(inner[-1])}, {said(column.high)}]" if points[-1] == column.high else f">={said(inner[-1])}"
    return tuple(labels)


@dataclass(frozen=True)
class Crossing:
    """Attributes over a schema, and where records lie in their marginals.

    >>> import confide as cf
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b"]), "g": cf.Categorical(["u", "v", "w"])})
    >>> own = Crossing.of(("f", "g"), schema)
    >>> own.sizes, own.cells((0, 1)), own.cells(()), own.title((0, 1))
    ((2, 3), 6, 1, 'f:g')
    >>> own.places(np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]]), (0, 1)).tolist()
    [2, 3, 6]
    """

    attributes: tuple[Attribute, ...]
    schema: Schema
    #: Whether a record lies in the cell of a marginal that holds its cell in a finer one.
    additive: ClassVar[bool] = True

    @classmethod
    def of(cls, names: Iterable[str], schema: Schema) -> Crossing:
        """The crossing of columns whose values are their levels."""
        return cls(tuple(Attribute.of(name, schema) for name in names), schema)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The schema columns behind the attributes, each once."""
        return tuple(dict.fromkeys(own.column for own in self.attributes))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each attribute."""
        return tuple(own.size for own in self.attributes)

    def shape(self, axes: Axes) -> tuple[int, ...]:
        """Levels of the attributes of a marginal."""
        return tuple(self.sizes[axis] for axis in axes)

    def cells(self, axes: Axes) -> int:
        """How many cells a marginal has."""
        return prod(self.shape(axes))

    def coarser(self, axes: Axes, base: Axes) -> Whole:
        """The cell of a marginal of some of the attributes that each cell of a marginal lies in."""
        if not base:
            return np.zeros(self.cells(axes), dtype=np.int64)
        levels = dict(zip(axes, np.unravel_index(np.arange(self.cells(axes)), self.shape(axes)), strict=True))
        return np.asarray(np.ravel_multi_index([levels[axis] for axis in base], self.shape(base)))

    def title(self, axes: Axes) -> str:
        """A marginal as in a formula: "f:g", "total" for the empty one."""
        return ":".join(self.attributes[axis].name for axis in axes) or "total"

    def labels(self, axes: Axes) -> list[tuple[str, ...]]:
        """The labels of the cells of a marginal, in order."""
        return list(product(*(self.attributes[axis].labels for axis in axes)))

    def separated(self, axes: Axes) -> tuple[str, ...]:
        """The columns whose different values lie in different cells of a marginal."""
        return tuple(own.column for own in (self.attributes[axis] for axis in axes) if own.coded)

    @property
    def drops(self) -> bool:
        """Whether a record may be in no cell: some column drops missing values."""
        return any(self.schema[name].on_missing == "drop" for name in self.columns)

    @cached_property
    def digest(self) -> str:
        """Of all that decides where a record lies."""
        own = [[one.column, list(one.starts)] for one in self.attributes]
        return digest(["crossing", own, [self.schema[name].to_dict() for name in self.columns]])

    def places(self, codes: Array, axes: Axes) -> Whole:
        """The cell of each record, (rows,); the number of cells for a record that is in none. codes: (columns, rows)."""
        at = {name: row for row, name in enumerate(self.columns)}
        place: Whole | None = None
        for axis in axes:
            own = self.attributes[axis]
            level = own.levels(codes[at[own.column]])
            if place is None:
                place = level
            else:
                place *= own.size
                place += level
        if place is None:
            place = np.zeros(codes.shape[1], dtype=np.int64)
        if codes.size and codes[: len(self.columns)].min() < 0:
            place[(codes[: len(self.columns)] < 0).any(axis=0)] = self.cells(axes)
        return place


class CellMap(RecordMap, Protocol):
    """A map of one record to the cell that it lies in, from 1 on, 0 for none."""

    @property
    def cells(self) -> int: ...


class CellNumber(RecordMap):
    """The bounds of a map to one of `cells` cells, whose number is all that it gives."""

    width: ClassVar[int] = 1

    if TYPE_CHECKING:

        @property
        def cells(self) -> int: ...

    @property
    def l1(self) -> int:
        return self.cells

    @property
    def l2_squared(self) -> int:
        return self.cells**2


class WholeSums(Statistic):
    """What tables of sums share: int64 states that begin at zeros and merge by adding."""

    norm: ClassVar[str] = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def zero(self) -> NDArray[Any]:
        return np.zeros(self.shape, dtype=np.int64)

    def merge(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(a + b)

    def value(self, state: NDArray[Any]) -> NDArray[Any]:
        return state.copy()


@dataclass(frozen=True)
class Histogram(WholeSums):
    """How many records lie in each cell of a map, shape (cells,): one record moves one count by 1, two when it is replaced."""

    map: CellMap
    norm: ClassVar[str] = "cells"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.cells,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    @property
    def begins(self) -> Beginning | None:
        """The map's beginning, where it has one."""
        return self.map.begins

    def update(self, state: NDArray[np.int64], codes: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.add(state, self.map(codes))

    def take(self, state: NDArray[np.int64], begun: Any) -> NDArray[np.int64]:
        """`update`, from the map's beginning on."""
        return self.add(state, self.map.of(begun))  # type: ignore[attr-defined]

    def add(self, state: NDArray[np.int64], rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count cells of the map."""
        state += np.bincount(rows[0].astype(np.int64), minlength=self.map.cells + 1)[1:]
        return state


# Rows that are added at once: 2^20 entries of at most 2^30 are exact in doubles.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class CellIndex(CellNumber):
    """The cell of a record in a marginal, from 1 on; 0 for a record that is in none.

    >>> import confide as cf
    >>> own = Crossing.of(("f", "g"), cf.Schema({"f": cf.Categorical(["a", "b"]), "g": cf.Categorical(["u", "v"])}))
    >>> CellIndex(own, (0, 1))(np.array([[0.0, 1.0, -1.0], [1.0, 1.0, 0.0]])).tolist()
    [[2.0, 4.0, 0.0]]
    """

    crossing: Crossing
    axes: Axes

    @property
    def cells(self) -> int:
        return self.crossing.cells(self.axes)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.crossing.columns

    @property
    def separates(self) -> tuple[str, ...]:
        return self.crossing.separated(self.axes)

    @property
    def additive(self) -> bool:
        return self.crossing.additive

    @cached_property
    def digest(self) -> str:
        return digest(["cell", self.crossing.digest, list(self.axes)])

    def __call__(self, codes: Array) -> Array:
        place = self.crossing.places(codes, self.axes) + 1
        place[place > self.cells] = 0
        return np.asarray(place[None, :], dtype=np.float64)


class _Added(WholeSums):
    """What sums by cell share: int64 states that begin at zeros and merge by adding; cells stand last in them, before what is in none."""

    map: Any

    def zero(self) -> Whole:
        return np.zeros(self._state, dtype=np.int64)

    @property
    def _state(self) -> tuple[int, ...]:
        raise NotImplementedError

    def value(self, state: Whole) -> NDArray[Any]:
        return state.ravel().astype(object)

    def marginal_of(self, other: Any) -> Callable[[Whole], Whole] | None:
        """`Marginal`: each cell is the sum of the cells of a finer marginal that lie in it, and what is in none is in none of either."""
        if type(other) is not type(self) or not self.map.additive:
            return None
        own, finer = self.map, other.map
        if len(own.axes) >= len(finer.axes) or own.axes != tuple(axis for axis in finer.axes if axis in own.axes):
            return None
        if own.crossing != finer.crossing or replace(own, axes=finer.axes) != finer:
            return None
        return partial(self._folded, finer.axes)

    def _folded(self, finer: Axes, state: Whole) -> Whole:
        crossing, own = self.map.crossing, self.map.axes
        cells = crossing.cells(finer)
        parts = state[..., :cells].reshape(*state.shape[:-1], *crossing.shape(finer))
        out = tuple(axis - len(finer) for axis, name in enumerate(finer) if name not in own)
        kept = parts.sum(axis=out).reshape(*state.shape[:-1], crossing.cells(own))
        return np.concatenate([kept, state[..., cells:]], axis=-1)


@dataclass(frozen=True)
class CellCounts(_Added):
    """How many records lie in each cell, shape (cells,): one record moves one count by 1, a substitute two."""

    map: CellIndex
    norm: ClassVar[str] = "cells"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.cells,)

    @property
    def _state(self) -> tuple[int, ...]:
        return (self.map.cells + 1,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        alone = self.map.cells == 1  # a substitute is in the same cell, or in none
        return Fraction(2 if relation == "substitute" and not alone else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def update(self, state: Whole, codes: Array) -> Whole:
        # those in no cell are counted behind the last one
        place = self.map.crossing.places(codes, self.map.axes)
        if len(state) > 4 * len(place):
            np.add.at(state, place, 1)
        else:
            state += np.bincount(place, minlength=len(state))
        return state

    def value(self, state: Whole) -> NDArray[Any]:
        return state[:-1].astype(object)


@dataclass(frozen=True)
class CellRows(RecordMap, ABC):
    """One record as a block of integers in the numbers of its cell: entry i of cell c stands at i cells + c, all others are 0.

    A subclass gives the block (`block`, `rows`) and its bounds, `l2_squared`, `l1` and `together`.
    """

    crossing: Crossing
    axes: Axes
    #: Whether a record's block is the same in every marginal, so that coarser ones are sums of finer ones.
    additive: ClassVar[bool] = False

    @property
    def cells(self) -> int:
        return self.crossing.cells(self.axes)

    @property
    def separates(self) -> tuple[str, ...]:
        """The columns whose different values lie in separate numbers (`core.units.privacy_unit`)."""
        return self.crossing.separated(self.axes)

    @property
    @abstractmethod
    def block(self) -> int:
        """Numbers of a record."""

    @property
    @abstractmethod
    def together(self) -> int:
        """A bound on |m - m'|^2 for two records in one cell."""

    @property
    @abstractmethod
    def l2_squared(self) -> int: ...

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def digest(self) -> str: ...

    @abstractmethod
    def rows(self, codes: Array) -> tuple[Whole, Array]:
        """The cell of each record (the number of cells for one in none) and its block, shape (block, rows)."""

    @property
    def l1(self) -> int:
        return isqrt(self.block * self.l2_squared) + 1

    @property
    def width(self) -> int:
        return self.block * self.cells

    def __call__(self, codes: Array) -> Array:
        place, rows = self.rows(codes)
        out = np.zeros((self.block, self.cells + 1, codes.shape[1]))
        out[:, place, np.arange(codes.shape[1])] = rows
        return np.asarray(out[:, :-1].reshape(self.width, codes.shape[1]))


@dataclass(frozen=True)
class CellTotals(_Added):
    """The blocks of all records added up by cell, shape (block cells,), with the exact sensitivity of both relations."""

    map: CellRows
    norm: ClassVar[str] = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    @property
    def _state(self) -> tuple[int, ...]:
        return (self.map.block, self.map.cells)

    def sensitivity_squared(self, relation: str) -> Fraction:
        alone = self.map.l2_squared
        if relation != "substitute":
            return Fraction(alone)
        apart = 2 * alone if self.map.cells > 1 else alone
        return Fraction(max(self.map.together, apart))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" else 1))

    def update(self, state: Whole, codes: Array) -> Whole:
        place, rows = self.map.rows(codes)
        cells = self.map.cells
        for start in range(0, len(place), _CHUNK):
            own = place[start : start + _CHUNK]
            for total, row in zip(state, rows[:, start : start + _CHUNK], strict=True):
                total += np.bincount(own, weights=row, minlength=cells + 1)[:cells].astype(np.int64)
        return state
