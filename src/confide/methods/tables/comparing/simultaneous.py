"""Intervals that hold together: draws of the largest error over all cells, in units of its standard error.

The errors of cells are correlated, by margins that add up and by noise that they share, so that the quantile of the largest one is below
Sidak's. Draws are keyed by what was drawn: the same numbers each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from confide._arrays import Array
from confide.aggregates.cells.crossing import Axes
from confide.noise import keyed_generator

if TYPE_CHECKING:
    from confide.methods.tables.cells.layout import Layout
    from confide.methods.tables.cells.margins import Margins
    from confide.methods.tables.cells.shape import Numbers

__all__ = ["expected_cells", "largest_errors", "summed"]


_DRAWS, _AT_ONCE = 20_000, 1_000
# Numbers that are drawn at once, in memory: 1,000 draws of 4,096 cells are 33 MB for each kind.
_MOST_JOINT, _MOST_CROSSED = 4096, 1 << 14


def largest_errors(table: Numbers) -> Array | None:
    """(draws,) of the largest |error|/standard error; None above 4,096 numbers, of weighted records,
    or where the finest crossing is too large to draw."""
    crossing = table.layout.crossing
    numbers = sum(crossing.cells(axes) for axes in table.marginals) * len(table.measured)
    if table.layout.weight is not None:
        return None
    if numbers > _MOST_JOINT or (table.part > 0 and expected_cells(table.layout, table.margins) is None):
        return None
    generator = keyed_generator(table.drawn_sha256, f"simultaneous {table.kind} {table.reading}")
    found = []
    for _ in range(_DRAWS // _AT_ONCE):
        largest = np.zeros(_AT_ONCE)
        for errors in table.deviations(generator, _AT_ONCE):
            # a number without an error, such as a public total, is never missed
            np.maximum(largest, np.nan_to_num(np.abs(errors), nan=0.0).max(axis=1), out=largest)
        found.append(largest)
    return np.concatenate(found)


def expected_cells(layout: Layout, margins: Margins) -> tuple[Axes, Array] | None:
    """(attributes, expected numbers of records in their crossing), at least 0: released where the formula has one largest marginal, else as
    if attributes were independent, which only joint quantiles rest on. None where the crossing has more cells than are drawn.
    """
    every = tuple(range(len(layout.crossing.attributes)))
    if layout.crossing.cells(every) > _MOST_CROSSED:
        return None
    if margins.contains(every):
        return every, np.maximum(margins.table(every)[0], 0.0)
    size = max(float(margins.table(())[0]), 1.0)
    found = np.array(size)
    for axis in every:
        share = np.maximum(margins.table((axis,))[0], 0.0) / size
        found = np.multiply.outer(found, share / max(float(share.sum()), 1e-12))
    return every, found


def summed(values: Array, axes: Axes) -> Array:
    """Sums of (draws, *levels) over all attributes but those of a marginal."""
    others = tuple(1 + axis for axis in range(values.ndim - 1) if axis not in axes)
    return np.asarray(values.sum(axis=others) if others else values)
