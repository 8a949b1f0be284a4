"""What comparisons, joint intervals, tests and pictures need of a table: the least that they know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.margins import Margins

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ALL", "Cells", "Groups", "Means", "Numbers", "cells_of"]


#: What stands in the place of a level in a margin.
ALL = "All"


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
    def release_sha256(self) -> str: ...
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
    def points(self, axes: Axes, column: int) -> tuple[Array, Array, Array]: ...
    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]: ...
    def compared(self, axes: Axes, column: int, z: float) -> tuple[Array, Array, Array]: ...
    def weak(self, axes: Axes, column: int) -> NDArray[np.bool_]: ...
    def bounds(self, column: int) -> tuple[float, float]: ...
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
    def to_frame(self, alpha: float | None = None) -> pd.DataFrame: ...
    def crosstab(self, *, of: str | None = None) -> pd.DataFrame: ...


class Means(Cells, Protocol):
    """A table of means (`means.MeanTable`)."""

    @property
    def rows(self) -> Any: ...
    @property
    def _scale(self) -> Any: ...
    def sums(self, axes: Axes, column: int) -> Any: ...


class Groups(Protocol):
    """Distributions by group (`distribution_result.DistributionResult`)."""

    @property
    def response(self) -> str: ...
    @property
    def groups(self) -> Any: ...
    @property
    def cdf(self) -> Any: ...
    @property
    def histogram(self) -> Any: ...


def cells_of(table: Cells, cell: Any) -> tuple[Axes, int]:
    """(marginal, position) of a cell: a mapping of attributes to levels, or its name; `PlanError` for one that is not there."""
    crossing = table.layout.crossing
    if isinstance(cell, str):
        cell = dict(part.split("=", 1) for part in cell.split(", ") if "=" in part) if cell != "total" else {}
    if not isinstance(cell, Mapping):
        raise PlanError(f"a cell is named by its levels, got {cell!r}; write {{'region': 'N', 'smoker': 'yes'}}")
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
