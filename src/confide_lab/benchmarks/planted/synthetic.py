"""Tables of synthetic records with one fault each: in their bins, in where they are cut, in what stands beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import confide as cf
from confide.core import Allowance, Meter, Plan, Source
from confide.methods.synthesis import bins
from confide.methods.synthesis.table import SyntheticTable
from confide_lab.benchmarks.planted.kinds import method

__all__ = ["SYNTHETIC", "FaultyTable"]

_SCHEMA = cf.Schema({"a": cf.Integer(0, 7), "y": cf.Numeric(0, 1)})


class _ClosedBins(bins.Counts):
    """Bins that are closed at both ends: a record on an edge is counted in two."""

    def update(self, state: Any, codes: Any) -> Any:
        state = super().update(state, codes)
        left = codes.copy()
        left[0] = np.maximum(left[0] - 1, 0)
        own, other = self.map.numbers(codes), self.map.numbers(left)
        np.add.at(state, other[(other != own) & (other >= 0)], 1)
        return state


@dataclass(frozen=True)
class FaultyTable(SyntheticTable):
    """A table from bins alone with one fault: "closed bins", "exact cuts", "rows of records", or none."""

    fault: str = ""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public: dict[str, Any] = {}
        bins.draw_bins(self._spoiled(meter, source), source, plan)
        if self.fault == "rows of records":
            (exact,) = source.aggregate(bins.Counts(bins.InBins(self.design_of(source.schema)), 1))
            public["rows"] = np.zeros(int(exact[0]))
        return public

    def _spoiled(self, meter: Meter, source: Source) -> Any:
        return _Exact(meter) if self.fault == "exact cuts" else meter

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        allowance = Allowance.of(privacy, self, schema)
        event, statistics = bins.plan_bins(self.design_of(schema), allowance, Fraction(1), cells=self.cells)
        if self.fault == "closed bins":
            statistics = {
                name: _ClosedBins(one.map, one.size) if isinstance(one, bins.Counts) else one
                for name, one in statistics.items()
            }
        return Plan.of(self, schema, allowance, event, statistics, n=n, passes=len(statistics))

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """The middle of the integers, where the first cut is, and an end."""
        yield {"a": 4, "y": 0.5}, {"a": 0, "y": 1.0}


class _Exact:
    """A meter that hands exact counts back to whoever cuts the bins."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def draw(self, name: str, integers: Any) -> Any:
        self._meter.draw(name, integers)
        return _Known(integers)


@dataclass
class _Known:
    values: Any

    def decode(self) -> Any:
        return np.asarray(self.values, dtype=np.float64)


def _table(fault: str) -> FaultyTable:
    return FaultyTable("y ~ a", cells=8, fault=fault)


SYNTHETIC = [
    method(
        "bins closed at both ends",
        "a record on an edge is counted in two bins of a level",
        _table("closed bins"),
        _table(""),
        _SCHEMA,
    ),
    method("cuts at exact counts", "exact counts decide which bins are cut", _table("exact cuts"), _table(""), _SCHEMA),
    method(
        "as many rows as records",
        "a public array has as many entries as there are records",
        _table("rows of records"),
        _table(""),
        _SCHEMA,
    ),
]
