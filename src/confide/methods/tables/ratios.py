"""Ratios of two totals over a crossing, such as income per hour: sum y/sum x, not the mean of the ratios.

Guarantee: mu-GDP, add-remove or substitute; what is drawn and its sensitivity stand with `survey.path`: sums of both columns in one
vector of free moments, and the meat of the linearised scores y - theta x.

Interval: linearised sampling variance, of persons or of the PSUs of the schema's design, and privacy noise (Cochran 1977; Binder 1983).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.errors import PlanError
from confide.methods.tables.cells.layout import Layout, both_sides
from confide.methods.tables.cells.margins import Margins
from confide.methods.tables.cells.numbers import cell_names
from confide.methods.tables.cells.result import CellTable
from confide.methods.tables.means import MomentMethod
from confide.methods.tables.method import tabulated
from confide.methods.tables.survey.result import SurveyTable
from confide.protocol import Release
from confide.schema import Practice, Schema
from confide.schema.formulas.design import checked_bounds
from confide.schema.formulas.names import parted, sides

__all__ = ["Ratios"]


_CALL = 'write cf.tables.ratios("income / hours ~ region", ...)'


@dataclass(frozen=True)
class Ratios(MomentMethod):
    """Ratios of totals of two columns over a crossing.

    formula: "income / hours ~ region", or "income / hours" for all records; numeric columns or derived terms; a record
    that misses one of the two is left out. covers, term_bounds, weights: as for `Means`. Two passes, three with weights.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "income": cf.Numeric(0, 100), "hours": cf.Numeric(1, 80)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> table = cf.infer(cf.release(Ratios("income / hours ~ region", covers="population"), data, cf.GDP(1.0), ledger=None))
    >>> list(table.params.index), table.status
    (['income / hours', 'income / hours | region=N', 'income / hours | region=S'], 'ok')
    """

    formula: str
    covers: str | None = None
    population_size: int | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None
    weights: str | None = None

    name: ClassVar[str] = "ratios"
    # 1 of several rows per unit was charged too little; under a design both cut weights and PSU sums otherwise; the numbers mean the same
    source: ClassVar[str] = (
        "linearised ratios of totals (Cochran 1977; Binder 1983); sums and meats of integers derived in confide"
    )
    intervals: ClassVar[str] = "ratios of totals of clipped columns, of a population or of the data set"
    verb: ClassVar[str] = "ratios"
    example: ClassVar[str] = '"income / hours ~ region"'
    shown_as: ClassVar[type[CellTable]] = SurveyTable

    def about(self, schema: Any) -> Layout:
        whole = Schema.of(schema)
        if not isinstance(self.formula, str):
            raise PlanError(f"a table's formula is text, got {self.formula!r}; {_CALL}")
        left, right = both_sides(self.formula if len(sides(self.formula)) > 1 else f"{self.formula} ~ 1")
        parts = parted(left, "/")
        if len(parts) != 2 or not all(parts):
            raise PlanError(f"a ratio is one column over another, got {left.strip()!r}; {_CALL}")
        bounds = checked_bounds(self.term_bounds)
        return Layout.of(
            f"{parts[0]} + {parts[1]} ~ {right}", whole, term_bounds=bounds, most=1 << 20, weights=self.weights
        )

    def facts(self, about: Layout) -> Mapping[str, Any]:
        return {
            "target": f"ratios of totals, {self.formula}{about.weighed}, of values moved into their bounds",
            "covers": self.intervals,
        }

    def expected(self, layout: Layout, axes: Any, count: float, noise: float, relation: str) -> float:
        raise PlanError("a forecast of ratios hangs on both columns; ask for one of each mean")

    def table_of(self, release: Release, layout: Layout, margins: Margins, reading: str) -> CellTable:
        raise PlanError("ratios are read as a survey's table")

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The ratios of practice records; NaN where the lower total is 0."""
        practice = Practice.checked(frame)
        layout = self.about(practice.schema)
        (y, complete), (x, there) = self._practised(layout, practice)
        complete *= there
        pairs = [[tabulated(layout, practice, axes, own * complete) for own in (y, x)] for axes in layout.shown]
        found = np.concatenate([self._summary(*pair) for pair in pairs])
        title = " / ".join(own.name for own in layout.measures)
        return dict(zip(cell_names(layout, layout.shown, (title,)), found.tolist(), strict=True))

    def _summary(self, total: Array, count: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(total / count)
