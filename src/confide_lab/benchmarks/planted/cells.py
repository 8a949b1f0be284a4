"""Planted faults of cells, old and new: units, relations and depths that are charged wrongly, small cells, what a table remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

import confide as cf
from confide.core import Allowance, Branches, BudgetItem, Composed, Meter, Plan, Source
from confide.core.exact import digest
from confide.methods.synthesis import bins as table_bins
from confide.methods.synthesis.table import SyntheticTable
from confide.testing import checks, contract as hidden, contract as side_doors
from confide_lab.aggregates import bins
from confide_lab.aggregates.cell_sums import CellCounts, CellRows, CellSums
from confide_lab.benchmarks.planted.kinds import contract, neighbors
from confide_lab.benchmarks.planted.toy import LINE_SCHEMA
from confide_lab.methods.binagg import BinAgg

__all__ = ["CELLS"]

# BinAgg ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Alternatives(BinAgg):
    """A record is in one cell of a depth, so the depths are taken for disjoint and only the dearest is charged."""

    name: ClassVar[str] = "planted_binagg"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        assert isinstance(made.event, Composed)
        *levels, cells, clipping = made.event.parts
        return replace(made, event=Composed((Branches(tuple(levels)), cells, clipping)))


@dataclass(frozen=True)
class _OneRelation(BinAgg):
    """Rows whose count may be short, as under add-remove, with the bound of those made for substitute."""

    name: ClassVar[str] = "planted_binagg"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        table = made.statistics["cells"]
        assert isinstance(table, CellSums)
        return replace(
            made, statistics={**made.statistics, "cells": _Twice(replace(table.map, replaced=False), table.size)}
        )


class _Twice(CellSums):
    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.l2_squared * (2 if relation == "substitute" else 1))


@dataclass(frozen=True)
class _OneRow(BinAgg):
    """PrivTree's decisions with the noise of one row, whatever a unit holds."""

    name: ClassVar[str] = "planted_binagg"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        own = bins._scale
        with patch.object(bins, "_scale", lambda guarantee, rows: own(guarantee, 1)):
            return super().draw(source, plan, meter)


@dataclass(frozen=True)
class _ExactDecisions(BinAgg):
    """PrivTree's noise is drawn, and the cells are cut at the exact counts."""

    name: ClassVar[str] = "planted_binagg"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        own = bins.private_decisions

        def quiet(paths: Any, counts: Any, noise: Any, *rest: Any) -> Any:
            return own(paths, counts, np.zeros_like(noise), *rest)

        with patch.object(bins, "private_decisions", quiet):
            return super().draw(source, plan, meter)


class _Suppressed(CellCounts):
    """Counts below ten are set to 0 before the noise, as a disclosure rule asks for tables that are published exactly."""

    def value(self, state: Any) -> Any:
        return np.where(state < 10, 0, state)


@dataclass(frozen=True)
class _SmallCells(BinAgg):
    """Small cells are suppressed before the noise."""

    name: ClassVar[str] = "planted_binagg"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        counts = {n: _Suppressed(one.map) for n, one in plan.statistics.items() if isinstance(one, CellCounts)}
        return super().draw(source, replace(plan, statistics={**plan.statistics, **counts}), meter)


@dataclass(frozen=True)
class _Nameless(CellRows):
    """Rows whose digest forgets the relation that they are made for."""

    @property
    def digest(self) -> str:
        return digest(["rows of cells", self.design.to_dict()])


@dataclass(frozen=True)
class _ForgottenRelation(BinAgg):
    """The digest of the rows forgets a parameter."""

    name: ClassVar[str] = "planted_binagg"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        table = made.statistics["cells"]
        assert isinstance(table, CellSums)
        rows = CellSums(_Nameless(table.map.design, table.map.replaced), table.size)
        assert isinstance(made.event, Composed)
        parts = tuple(
            replace(part, map=rows.map.digest) if isinstance(part, BudgetItem) and part.name == "cells" else part
            for part in made.event.parts
        )
        return replace(made, event=Composed(parts), statistics={**made.statistics, "cells": rows})


# synthetic tables -----------------------------------------------------------------------------------------------------

_SCHEMA = cf.Schema({"a": cf.Integer(0, 7), "y": cf.Numeric(0, 1)})


@dataclass(frozen=True)
class _Table(SyntheticTable):
    """A table from bins alone with one fault, or none."""

    generator: str = "binagg"
    cells: int = 8
    fault: str = ""
    kept: list[int] = field(default_factory=list, compare=False, repr=False)

    name: ClassVar[str] = "planted_table"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        if self.fault != "one row":
            return made
        design, allowance = self.design_of(schema), Allowance.of(privacy, self, schema)
        event, statistics = table_bins.plan_bins(
            design, replace(allowance, rows_per_unit=1), Fraction(1), cells=self.cells, label=True
        )
        return replace(made, event=event, statistics=statistics)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = dict(super().draw(source, plan, meter))
        design = self.design_of(source.schema)
        (count,) = source.aggregate(table_bins.Counts(table_bins.InBins(design), 1))
        match self.fault:
            case "name":
                public[f"leaves of {int(count[0])} records"] = np.zeros(1)
            case "residual":
                noisy = meter.drawn("leaves").decode()[:, 0].sum()
                public["noise"] = np.array([noisy - float(count[0]) * table_bins._unit(plan.spend("leaves").shape[1])])
            case "memory":
                self.kept[:] = [int(count[0])]
        return public

    def infer(self, release: Any, question: Any = None) -> Any:
        return self.build(release, rows=max(self.kept[0], 1) if self.kept else None)


@dataclass(frozen=True)
class _SameNoise(SyntheticTable):
    """The second level leaves once more, with the noise of the first, which is said to make the two agree."""

    generator: str = "binagg"
    cells: int = 8

    name: ClassVar[str] = "planted_table"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = dict(super().draw(source, plan, meter))
        first, second = (plan.statistic(name) for name in ("bins 1", "bins 2"))
        parts = source.aggregate(first, second)
        noise = meter.drawn("bins 1").decode() - parts[0].astype(float)
        return {**public, "agreed": parts[1].astype(float) + np.resize(noise, len(parts[1]))}


_PAIR = _SCHEMA.sample(12, 1), _SCHEMA.sample(12, 1).iloc[1:]
_LEVEL = cf.GDP(1.0)
_TREE: dict[str, Any] = {"tree": "privtree", "depth": 4}

CELLS = [
    contract(
        "depths charged as alternatives",
        "a record is in one cell of each depth, so the depths are taken for disjoint and one of them is paid",
        checks._reads_back,
        _Alternatives("y ~ a"),
        BinAgg("y ~ a"),
        LINE_SCHEMA,
        _LEVEL,
    ),
    contract(
        "rows of add-remove under substitute",
        "two records of one bin are apart by twice a row, the bound says sqrt(2)",
        checks._bounds_hold,
        _OneRelation("y ~ a"),
        BinAgg("y ~ a"),
        LINE_SCHEMA,
        _LEVEL,
    ),
    contract(
        "decisions for a single row",
        "the noise of PrivTree's decisions forgets the rows of a unit",
        side_doors.a_unit_of_more_rows_gets_more_noise,
        _OneRow("y ~ a", **_TREE),
        BinAgg("y ~ a", **_TREE),
        LINE_SCHEMA,
        cf.GDP(3.0),
    ),
    contract(
        "decisions at exact counts",
        "PrivTree's noise is drawn and thrown away",
        side_doors.opaque_numbers_change_with_their_noise,
        _ExactDecisions("y ~ a", **_TREE),
        BinAgg("y ~ a", **_TREE),
        LINE_SCHEMA,
        cf.GDP(3.0),
    ),
    contract(
        "small cells suppressed",
        "counts below ten are set to 0 before the noise: the tenth record moves a count by ten",
        side_doors.small_counts_are_treated_like_large_ones,
        _SmallCells("y ~ a"),
        BinAgg("y ~ a"),
        LINE_SCHEMA,
        _LEVEL,
    ),
    contract(
        "a digest without the relation",
        "rows that are made for one relation or the other have one digest",
        side_doors.digests_name_the_whole_map,
        _ForgottenRelation("y ~ a"),
        BinAgg("y ~ a"),
        LINE_SCHEMA,
        _LEVEL,
    ),
    *(
        neighbors(name, what, faulty, _Table("y ~ a"), _SCHEMA, _LEVEL, _PAIR)
        for name, what, faulty in (
            (
                "the count in a name",
                "a public array is named after the exact number of records",
                _Table("y ~ a", fault="name"),
            ),
            (
                "noise published",
                "the noise that was drawn stands in the release, to show that its variance is right",
                _Table("y ~ a", fault="residual"),
            ),
            (
                "two levels with one noise",
                "the second level leaves once more with the noise of the first",
                _SameNoise("y ~ a"),
            ),
        )
    ),
    contract(
        "a file as long as the data",
        "the method remembers the exact number of records and makes the file that long",
        hidden.infer_reads_the_release_alone,
        _Table("y ~ a", fault="memory"),
        _Table("y ~ a"),
        _SCHEMA,
        _LEVEL,
    ),
    contract(
        "a table for a single row",
        "bins are charged as if a unit had one row",
        side_doors.a_unit_of_more_rows_gets_more_noise,
        _Table("y ~ a", fault="one row"),
        _Table("y ~ a"),
        _SCHEMA,
        _LEVEL,
    ),
]
