"""What tables of counts and shares share: counts of cells, in records or in weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from confide._lazy import later
from confide.aggregates.cells.crossing import Axes
from confide.aggregates.rows import BITS
from confide.methods.tables.result import CellTable
from confide.methods.tables.simultaneous import expected_cells, summed
from confide.methods.tables.weighted import mean_weights

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["OF_ROWS", "CountedTable"]

OF_ROWS = (
    "the null laws of these tests are of records that count alike, and here the rows of a unit count once together; plan the test with "
    'Unit(..., rule="keep"), one row of each'
)

Array = NDArray[np.float64]

# Integer steps of a record of the largest weight.
_STEPS = 1 << BITS


class CountedTable(CellTable):
    """What tables of counts and shares share: joint errors of counts, and the weights behind them."""

    def counts(self, axes: Axes) -> Array:
        y = super().counts(axes)
        return y if self.layout.weight is None else y / _STEPS

    def count_variance(self, axes: Axes) -> float:
        return super().count_variance(axes) / (1.0 if self.layout.weight is None else float(_STEPS) ** 2)

    @cached_property
    def size(self) -> float:
        return float(self.counts(())[0])

    def mean_weight(self, axes: Axes) -> Array | float:
        """sum omega^2/sum omega of each cell; 1 without weights."""
        if self.layout.weight is None:
            return 1.0
        every, (n, rest) = self.margins.table(()).ravel() / _STEPS, self.margins.table(axes).reshape(2, -1) / _STEPS
        overall = min(max(float(every[0] - every[1]) / max(float(every[0]), 1.0), 0.01), 1.0)
        return mean_weights(n, n - rest, float(np.sqrt(self.count_variance(axes))), overall)

    def _errors(self, generator: np.random.Generator, draws: int) -> Iterator[tuple[Axes, Array]]:
        """Draws of the errors of counts, (draws, *levels) for each marginal shown and the total."""
        wanted = tuple(dict.fromkeys(((), *self.marginals, *self._bases())))
        noise = self.margins.noise(wanted, draws, generator, counts=True)
        crossed = expected_cells(self.layout, self.margins) if self.part else None
        sampling = None
        if crossed is not None:
            scale = np.sqrt(self.part * crossed[1])
            sampling = generator.standard_normal((draws, *crossed[1].shape)) * scale
        for axes, own in zip(wanted, noise, strict=True):
            yield axes, own if sampling is None else own + summed(sampling, axes)

    def _bases(self) -> tuple[Axes, ...]:
        return ()
