"""What tables of counts and shares share: counts of cells, in records or in weight, and the tests that they answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.cells.crossing import Axes
from confide.aggregates.lines.rows import BITS
from confide.errors import PlanError
from confide.methods.tables.cells.per_level import check_one_test
from confide.methods.tables.cells.result import CellTable
from confide.methods.tables.cells.weighted import mean_weights
from confide.methods.tables.comparing import independence as tests
from confide.methods.tables.comparing.answers import refused
from confide.methods.tables.comparing.simultaneous import expected_cells, summed
from confide.results.hypothesis import HypothesisTests

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["OF_ROWS", "CountedTable"]

OF_ROWS = (
    "the null laws of these tests are of records that count alike, and here the rows of a unit count once together; plan the test with "
    'Unit(..., rule="keep"), one row of each'
)


# Integer steps of a record of the largest weight.
_STEPS = 1 << BITS


class CountedTable(CellTable):
    """What tables of counts and shares share: joint errors of counts, the weights behind them, tests of the population."""

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

    def test(self, kind: str, *attributes: str, given: Any = None, **settings: Any) -> HypothesisTests:
        """A test that counts answer, of the population; shares have the same counts behind them.

        test("independence", "smoker", "region", given="sex"): chi-square, noise-aware; test("fit", "region", expected=[.5, .3, .2]):
        public shares, equal ones when left out; test("trend", "case", "dose", scores=[0, 1, 5], level="yes"): whether a share changes with
        the dose; test("proportion", "smoker", p=.2, level="yes", alternative="less"): one share. `PlanError` for any other.
        """
        check_one_test(self.layout.crossing.schema)
        if self.layout.of_units:
            raise PlanError(OF_ROWS)
        if self.layout.weight is not None:
            raise PlanError(
                "the null laws of these tests are of records that count alike, and this table is weighted; ask cf.tables.shares(..., "
                f"weights={self.layout.weight.name!r}) for intervals and differences, or plan the test without weights"
            )
        if kind == "independence" and len(attributes) in (0, 2):
            first, second = attributes or (None, None)
            return tests.independence(self, first, second, given, **settings)
        if kind == "fit" and len(attributes) == 1:
            return tests.fit(self, attributes[0], settings.pop("expected", None), **settings)
        if kind == "trend" and len(attributes) == 2:
            return tests.trend(self, *attributes, settings.pop("scores", None), settings.pop("level", None), **settings)
        if kind == "proportion" and len(attributes) == 1 and "p" in settings:
            rest = (settings.pop("level", None), settings.pop("p"), settings.pop("alternative", "two-sided"))
            return tests.proportion(self, attributes[0], *rest, **settings)
        raise refused(self, kind, *attributes)
