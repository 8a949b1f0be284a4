"""Faults of rounds in whitened coordinates: HuberLine with one wrong line, audited in the long branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import confide as cf
from confide.audit.methods import audit
from confide.audit.verdict import Audit
from confide.core import Allowance, Branches, BudgetItem, Composed, Event, Gram, Meter, Plan, Source
from confide.methods.regression.sums.linear_rows import BlockGram, RangeCells
from confide.methods.regression.sums.whitened_rows import LeverageCells, WhitenedRows
from confide.schema import ModelMatrix
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.methods.huber.huber_line import HuberLine

__all__ = ["ROUNDS", "FaultyHuberLine"]

_SCHEMA = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
# at this level a dozen records are enough for the long branch
_LEVEL = cf.GDP(30.0)


@dataclass(frozen=True)
class _OneFeature(RangeCells):
    """Histograms of several features with the sensitivity of one."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return super().sensitivity_squared(relation) / self.map.width


@dataclass(frozen=True)
class _RootTwo(BlockGram):
    """A replaced record at sqrt(2) times an added one, whatever the split."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return super().sensitivity_squared("add-remove") * (2 if relation == "substitute" else 1)


@dataclass(frozen=True)
class _LongRows(WhitenedRows):
    """Rows of up to twice the length that is charged."""

    def __call__(self, codes: Any) -> Any:
        rows = super().__call__(codes)
        rows[:-1] *= 2.0
        return rows


@dataclass(frozen=True)
class FaultyHuberLine(HuberLine):
    """HuberLine with one fault: "ranges", "substitute", "long rows", "exact whitening", "exact leverages", "exact count", or none."""

    fault: str = ""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Mapping[str, Any] | None = None) -> Plan:
        plan = super().plan(schema, privacy, n=n, public=public)
        swapped = {name: self._swapped(one) for name, one in plan.statistics.items()}
        allowance = Allowance.of(privacy, self, schema)
        event = self._respent(plan.event, swapped, allowance)
        return replace(plan, statistics=swapped, event=event)

    def _swapped(self, one: Any) -> Any:
        if self.fault == "ranges" and isinstance(one, RangeCells):
            return _OneFeature(one.map)
        if self.fault == "substitute" and isinstance(one, BlockGram):
            return _RootTwo(one.map, (48, 64, 11))
        if self.fault == "long rows" and isinstance(one, BlockGram):
            return BlockGram(_LongRows(one.map.design), one.blocks)  # type: ignore[attr-defined]
        return one

    def _respent(self, event: Event, swapped: Mapping[str, Any], allowance: Allowance) -> Event:
        """The same shares, for the statistics as they are now."""
        match event:
            case BudgetItem():
                return allowance.spend(event.name, swapped[event.name], event.mu_squared / allowance.amount)
            case Composed(parts):
                return Composed(tuple(self._respent(part, swapped, allowance) for part in parts))
            case Branches(branches):
                return Branches(tuple(self._respent(branch, swapped, allowance) for branch in branches))
        return event

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = dict(super().draw(source, plan, meter))
        design = ModelMatrix.of(self.formula, source.schema)
        if self.fault == "exact whitening":
            (gram,) = source.aggregate(Gram(WhitenedRows(design), entry_bits=20))
            public["transform"] = np.linalg.pinv(np.asarray(gram[:-1, :-1], dtype=float))
        elif self.fault == "exact leverages" and "leverage" in plan.statistics:
            statistic = plan.statistic("leverage")
            assert isinstance(statistic, LeverageCells)
            (cells,) = source.aggregate(statistic)
            public["cap"] = np.asarray(cells, dtype=float)
        elif self.fault == "exact count":
            (count,) = source.aggregate(plan.statistic("count"))
            public["rho"] = np.asarray(count, dtype=float)
        return public


def _fault(name: str, what: str, fault: str, relation: str = "add-remove") -> Fault:
    def build(wrong: bool, runs: int, seed: int) -> Audit:
        method = FaultyHuberLine("y ~ a + b", fault=fault if wrong else "")
        return audit(method, _SCHEMA, privacy=_LEVEL, relation=relation, runs=0, seed=seed, confidence=1 - 1e-6)

    return Fault(name, what, "audit of the method", build)


ROUNDS = [
    _fault("ranges charged as one feature", "a record lies in one cell of every feature", "ranges"),
    _fault("a replaced record at sqrt(2)", "the split of the blocks makes it 1.67", "substitute", "substitute"),
    _fault("rounds with rows twice as long", "the weight is applied to half of the row", "long rows"),
    _fault("whitening by the exact Gram matrix", "the transform of a round follows from records", "exact whitening"),
    _fault("a cap from exact leverages", "the histogram of leverages is read before its noise", "exact leverages"),
    _fault(
        "the scale of residuals from the exact count", "the number of records stands in a public array", "exact count"
    ),
]
