"""What comparisons, joint intervals, tests and pictures need of a table: the least that they know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.margins import Margins
from confide.schema.formulas.names import column_named

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cells", "Means", "Numbers", "cell_name", "cells_of", "margin_word"]


# What stands in the place of a level in a margin.
_ALL = "All"


def margin_word(levels: Sequence[str]) -> str:
    """What stands in the place of a level in a margin: a word that is none of the levels. Code tells a margin by its place alone.

    >>> margin_word(["N", "S"]), margin_word(["None", "All"])
    ('All', '(All)')
    """
    word = _ALL
    while word in levels:
        word = f"({word})"
    return word


class Numbers(Protocol):
    """The numbers of a table (`numbers.CellNumbers`)."""

    @property
    def layout(self) -> Layout: ...
    @property
    def margins(self) -> Margins: ...
    @property
    def kind(self) -> str: ...
    @property
    def reading(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def requested(self) -> Guarantee: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def drawn_sha256(self) -> str: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def facts(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def measured(self) -> tuple[str, ...]: ...
    @property
    def marginals(self) -> tuple[Axes, ...]: ...
    @property
    def size(self) -> float: ...
    @property
    def part(self) -> float: ...
    def column(self, of: str | None) -> int: ...
    def counts(self, axes: Axes) -> Array: ...
    def count_variance(self, axes: Axes) -> Any: ...
    def points(self, axes: Axes, column: int) -> tuple[Array, Array]: ...
    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]: ...
    def compared(self, axes: Axes, column: int, z: float) -> tuple[Array, Array, Array]: ...
    def weak(self, axes: Axes, column: int) -> NDArray[np.bool_]: ...
    def bounds(self, column: int) -> tuple[float, float]: ...
    def sampled(self, axes: Axes, column: int, z: float, *, apart: bool = False) -> tuple[Array, Array]: ...
    def quantile(self, alpha: float, simultaneous: bool = False) -> float: ...
    def deviations(self, generator: np.random.Generator, draws: int) -> Iterator[Array]: ...


class Cells(Numbers, Protocol):
    """A table of cells, as it is shown (`result.CellTable`)."""

    @property
    def noun(self) -> str: ...
    @property
    def drawn_column(self) -> Any: ...
    @property
    def as_map(self) -> bool: ...
    @property
    def levels(self) -> NDArray[np.int64]: ...
    @property
    def quiet(self) -> Cells: ...
    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float: ...
    def to_frame(self, alpha: float | None = None) -> pd.DataFrame: ...
    def crosstab(self, *, of: str | None = None) -> pd.DataFrame: ...


class Means(Cells, Protocol):
    """A table of means (`means.MeanTable`)."""

    @property
    def rows(self) -> Any: ...
    @property
    def _scale(self) -> Any: ...
    def sums(self, axes: Axes, column: int) -> Any: ...


def cells_of(table: Cells, cell: Any) -> tuple[Axes, int]:
    """(marginal, position) of a cell: a mapping of attributes to levels, or its name; `PlanError` for one that is not there."""
    crossing = table.layout.crossing
    if isinstance(cell, str):
        return _named(table, cell)
    if not isinstance(cell, Mapping):
        raise PlanError(f"a cell is named by its levels, got {cell!r}; write {{'region': 'N', 'smoker': 'yes'}}")
    titles = [own.name for own in crossing.attributes]
    cell = {column_named(str(name), titles): level for name, level in cell.items()}
    axes = table.layout.axes(tuple(cell))
    if axes not in table.marginals:
        asked = ", ".join(crossing.title(own) for own in table.marginals)
        raise PlanError(f"the table has no marginal {crossing.title(axes)}; it has: {asked}")
    position = 0
    for axis in axes:
        own = crossing.attributes[axis]
        label = str(cell[own.name])
        if label not in own.labels:
            raise PlanError(f"{own.name!r} has no level {label!r}; it has: {', '.join(own.labels)}")
        position = position * own.size + own.labels.index(label)
    return axes, position


def _named(table: Cells, name: str) -> tuple[Axes, int]:
    """The cell of a name, as the rows of a table have it; two cells may have one name, where levels hold commas and equals signs."""
    found = [
        (axes, cell)
        for axes in table.marginals
        for cell in range(table.layout.crossing.cells(axes))
        if cell_name(table.layout, axes, cell) == name
    ]
    if len(found) != 1:
        given = "several cells are" if found else "no cell is"
        raise PlanError(f"{given} called {name!r}; name one by its levels: {{'region': 'N', 'smoker': 'yes'}}")
    return found[0]


def cell_name(layout: Layout, axes: Axes, cell: int) -> str:
    """A cell by its levels: "region=N, smoker=yes"; "total" without any."""
    owns = [layout.crossing.attributes[axis] for axis in axes]
    levels = np.unravel_index(cell, layout.crossing.shape(axes)) if axes else ()
    return ", ".join(f"{own.name}={own.labels[level]}" for own, level in zip(owns, levels, strict=True)) or "total"
