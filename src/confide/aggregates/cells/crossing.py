"""Crossings: into which cell of which marginal a record falls, from public columns and public cuts.

An attribute puts a record into one of its public levels: a categorical column, an integer column of few values, or a numeric column cut at
public points. A crossing is a list of attributes; a marginal is a set of them (their positions), its cells the combinations of their levels
in C order, the first attribute changing slowest. The empty marginal has one cell, the total.

Missing values follow the columns' `on_missing`; a record with a missing value left in any attribute is in no cell of any marginal, so that
all marginals are about the same records and add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array, Whole
from confide._text import near_match
from confide.errors import PlanError, SchemaError
from confide.protocol.exact import digest
from confide.schema import Categorical, Integer, Schema

__all__ = ["Attribute", "Axes", "Crossing"]

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
        """A column whose values are its levels; `PlanError` for a numeric one, with the cut to write."""
        column = _column(name, schema)
        if isinstance(column, Categorical):
            labels = column.levels
        elif isinstance(column, Integer) and column.steps <= _MOST_VALUES:
            labels = tuple(str(int(column.low) + k) for k in range(column.steps))
        else:
            middle = f"{column.low + (column.high - column.low) / 2:g}"
            raise PlanError(
                f"{name!r} is numeric, and its values are no levels of a table; cut it at public points, as in cut({name}, {middle}), or "
                f"declare it as a Categorical or as an Integer of at most {_MOST_VALUES} values"
            )
        return cls(name, name, labels, tuple(range(len(labels))))

    @classmethod
    def cut(cls, name: str, points: Iterable[float], schema: Schema) -> Attribute:
        """A numeric column cut at public points, intervals closed on the left, the last one at the upper bound closed on both sides.

        What lies below the first or above the last point is a level of its own, unless the bounds end there. A point is moved to the
        column's grid as values are. Raises `SchemaError` for points outside the bounds, `PlanError` for others that cannot be used.
        """
        column, at = _column(name, schema), tuple(float(point) for point in points)
        if isinstance(column, Categorical):
            raise PlanError(f"{name!r} is categorical; cut takes a numeric column, write {name} alone")
        if not at or list(at) != sorted(set(at)):
            raise PlanError(f"cut({name}, ...) takes increasing points, got {at}; write cut({name}, 18, 65)")
        if at[0] < column.low or at[-1] > column.high:
            beyond = at[0] if at[0] < column.low else at[-1]
            near = column.low if at[0] < column.low else column.high
            raise SchemaError(
                f"cut({name}, ...) has the point {beyond:g} outside the bounds of {name!r}, {column.low:g} to {column.high:g}; write "
                f"{near:g} or widen the bounds in the schema"
            )
        inner = [point for point in at if column.low < point < column.high]
        codes = [0, *(int(column.code([point])[0]) for point in inner)]
        if len(codes) < 2 or len(set(codes)) < len(codes):
            raise PlanError(
                f"cut({name}, {', '.join(f'{point:g}' for point in at)}) makes fewer levels than it names on the grid of {name!r}; give "
                "points inside of the bounds, further apart than a step of the grid"
            )
        title = f"cut({name}, {', '.join(f'{point:g}' for point in at)})"
        return cls(title, name, _intervals(column, at, inner), tuple(codes))

    @property
    def size(self) -> int:
        """How many levels there are."""
        return len(self.labels)

    @property
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


def _column(name: str, schema: Schema) -> Any:
    if name not in schema:
        raise SchemaError(
            f"the schema has no column {name!r}{near_match(name, schema.names)}; it has: {', '.join(schema.names)}"
        )
    return schema[name]


def _intervals(column: Any, points: tuple[float, ...], inner: list[float]) -> tuple[str, ...]:
    edges = [column.low, *inner, column.high]
    labels = [f"[{low:g}, {high:g})" for low, high in pairwise(edges)]
    if points[0] > column.low:
        labels[0] = f"<{inner[0]:g}"
    labels[-1] = f"[{inner[-1]:g}, {column.high:g}]" if points[-1] == column.high else f">={inner[-1]:g}"
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
