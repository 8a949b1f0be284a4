"""Planted faults of bins: cells that overlap, noise that forgets a coordinate, exact counts, budget that is spent twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from confide.core import Meter, Plan
from confide_lab.aggregates.bins import draw_bins
from confide_lab.aggregates.cell_sums import CellRows, CellSums
from confide_lab.benchmarks.planted.kinds import method
from confide_lab.benchmarks.planted.toy import LINE_SCHEMA
from confide_lab.methods.binagg import BinAgg

__all__ = ["BINS"]


@dataclass(frozen=True)
class _Closed(CellSums):
    """The table with cells closed at both ends: a record where a cell begins is in the one before it too (E9)."""

    def update(self, state: Any, codes: Any) -> Any:
        state = super().update(state, codes)
        found = self.map.found
        terms, _ = self.map.design.codes(codes)
        cell, rows = self.map.placed(codes)
        for k in range(1, len(found)):
            edge = (cell == k) & (terms[0] == found.low[k, 0])
            state[k - 1] += rows[:, edge].sum(axis=1).astype(np.int64)
        return state


@dataclass(frozen=True)
class _Wide(CellRows):
    """Rows in which each entry alone is held to the bound of the whole: sqrt(terms + 2) too long (E1)."""

    @cached_property
    def unit(self) -> Any:
        right = CellRows(self.design, self.replaced, self.bins).unit
        return np.floor(right * sqrt(self.width))

    def placed(self, codes: Any) -> Any:
        whole = CellRows(self.design, self.replaced, self.bins)
        cell, rows = whole.placed(codes)
        return cell, np.rint(rows * sqrt(self.width))


def _with_table(plan: Plan, table: CellSums) -> Plan:
    return replace(plan, statistics={**plan.statistics, "cells": table})


@dataclass(frozen=True)
class _ClosedCells(BinAgg):
    """Cells closed at both ends."""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        table = made.statistics["cells"]
        assert isinstance(table, CellSums)
        return _with_table(made, _Closed(table.map, table.size))


@dataclass(frozen=True)
class _EachEntry(BinAgg):
    """Noise for one entry of a row, on all of them."""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        table = made.statistics["cells"]
        assert isinstance(table, CellSums)
        rows = table.map
        return _with_table(made, CellSums(_Wide(rows.design, rows.replaced), table.size))


@dataclass(frozen=True)
class _ExactTotal(BinAgg):
    """A public number that scales the noisy counts to the exact number of records (E10)."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        draw_bins(meter, source, plan, beside=("clipping",) if self.clipping_check else ())
        (exact,) = source.aggregate(plan.statistic("level 1"))
        factor = float(exact.sum()) / max(float(meter.drawn("level 1").decode().sum()), 1.0)
        return {"factor": np.array([factor])}


@dataclass(frozen=True)
class _TreeTwice(BinAgg):
    """The tree's counts are drawn a second time and leave with the first."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        draw_bins(meter, source, plan, beside=("clipping",) if self.clipping_check else ())
        (exact,) = source.aggregate(plan.statistic("level 1"))
        spend = plan.spend("level 1")
        again = np.asarray(exact, dtype=object) * int(1 / spend.step) + meter._noise.grid_gaussian(
            spend.scale, len(exact)
        )
        return {"again": again.astype(np.float64)}


@dataclass(frozen=True)
class _Saved(CellSums):
    """A leaf that stopped early is given back what its path did not spend, though every depth was released whole."""

    def update(self, state: Any, codes: Any) -> Any:
        state = super().update(state, codes)
        found = self.map.found
        early = found.depths < found.paths.depth
        cell, rows = self.map.placed(codes)
        for k in np.flatnonzero(early):
            state[k] += np.rint(0.2 * rows[:, cell == k]).sum(axis=1).astype(np.int64)
        return state


@dataclass(frozen=True)
class _UsedTwice(BinAgg):
    """The unspent part of a leaf's path goes to its sums a second time."""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        table = made.statistics["cells"]
        assert isinstance(table, CellSums)
        return _with_table(made, _Saved(table.map, table.size))


_CLEAN = BinAgg("y ~ a")

BINS = [
    method(
        "closed cells", "a record on the edge of a cell is counted in two", _ClosedCells("y ~ a"), _CLEAN, LINE_SCHEMA
    ),
    method(
        "each entry by itself",
        "the rows' entries are bounded one by one, the noise is that of one of them: sqrt(terms + 2) too small",
        _EachEntry("y ~ a"),
        _CLEAN,
        LINE_SCHEMA,
    ),
    method(
        "counts scaled to the exact number",
        "a factor that leads from the noisy counts to the exact number of records leaves",
        _ExactTotal("y ~ a"),
        _CLEAN,
        LINE_SCHEMA,
    ),
    method(
        "tree drawn twice",
        "the first depth of the tree is drawn a second time, and paid once",
        _TreeTwice("y ~ a"),
        _CLEAN,
        LINE_SCHEMA,
    ),
    method(
        "unspent budget used twice",
        "a leaf that stopped early adds to its rows what its path has not spent",
        _UsedTwice("y ~ a"),
        _CLEAN,
        LINE_SCHEMA,
    ),
]
