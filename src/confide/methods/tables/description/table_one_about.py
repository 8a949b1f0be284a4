"""What Table One is about: its groups, its rows, and the exact sums behind each."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from confide.aggregates.cells.cell_sums import CellCounts, CellIndex, CellTotals
from confide.aggregates.cells.crossing import Attribute, Crossing
from confide.aggregates.cells.free_moments import Measure, MomentRows, count_steps
from confide.aggregates.cells.weighted_cells import CountRows, WeightedRows
from confide.aggregates.lines.rows import BITS, BOUND
from confide.methods.quantiles.draw import CumulativeRounds
from confide.protocol import Statistic
from confide.schema import Schema

__all__ = ["STEPS", "TableOneAbout"]

#: Integer steps of a record of the largest weight, and of a missing value.
STEPS = float(1 << BITS)


@dataclass(frozen=True)
class TableOneAbout:
    """What the rows are about. groups: the crossing right of ~, or none; order: the columns as they were named."""

    schema: Schema
    groups: Crossing
    order: tuple[str, ...]
    measures: tuple[Measure, ...]
    levels: tuple[Attribute, ...]
    medians: tuple[CumulativeRounds, ...]
    weight: Measure | None = None

    @property
    def heaviest(self) -> float:
        """What the largest weights count as; 1 without weights."""
        return 1.0 if self.weight is None else float(self.weight.term.high)

    @property
    def step(self) -> float:
        """Integer steps of a record of the largest weight in counts."""
        return 1.0 if self.weight is None else STEPS

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(len(self.groups.attributes)))

    @property
    def cells(self) -> int:
        return self.groups.cells(self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the groups."""
        titles = [own.name for own in self.groups.attributes]
        return tuple(
            ", ".join(f"{title}={label}" for title, label in zip(titles, labels, strict=True))
            for labels in self.groups.labels(self.axes)
        )

    @property
    def rows(self) -> int:
        return len(self.measures) + len(self.levels) + len(self.medians)

    def moments(self, relation: str) -> MomentRows:
        """All numeric columns by group; T^2 : S^2 is a tenth to the share of a row, and k : 1 under substitute, where it is free."""
        if self.apart:
            return MomentRows(self.groups, self.axes, self.measures, count_steps(1, relation))
        squared = len(self.measures) * BOUND if relation == "substitute" else self.rows * BOUND // 9
        return MomentRows(self.groups, self.axes, self.measures, isqrt(squared))

    @property
    def apart(self) -> bool:
        """Whether the groups' numbers of records are a release of their own."""
        return not self.measures or (len(self.measures) == 1 and self.measures[0].drops)

    def counted(self, attribute: Attribute | None = None) -> Statistic:
        """Numbers of records by group, and within the groups by a categorical column."""
        crossing = self.groups if attribute is None else Crossing((*self.groups.attributes, attribute), self.schema)
        axes = tuple(range(len(crossing.attributes)))
        if self.weight is None:
            return CellCounts(CellIndex(crossing, axes))
        return CellTotals(WeightedRows(crossing, axes, CountRows(crossing, axes), self.weight))

    def summed(self, relation: str) -> Statistic:
        """The numeric columns by group."""
        rows = self.moments(relation)
        return CellTotals(rows if self.weight is None else WeightedRows(self.groups, self.axes, rows, self.weight))
