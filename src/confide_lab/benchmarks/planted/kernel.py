"""Faults of kernel regression: Kernel and EfficientPTRKernel with one wrong line, replayed on the worst neighbors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.audit.verdict import Audit
from confide.core import Allowance, Plan, Test
from confide.methods.curves.efficient_ptr import EfficientPTRKernel
from confide.methods.curves.kernel import Kernel
from confide.methods.curves.sums import (
    UNIT,
    WEIGHT,
    Axis,
    KernelRows,
    KernelSafety,
    KernelSums,
    PointCurve,
    ResidualRows,
)
from confide_lab.benchmarks.planted.kinds import Fault, replayed

__all__ = ["KERNEL", "FaultyCurve", "FaultyPoints"]

_SCHEMA = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})


@dataclass(frozen=True)
class _Tall(Axis):
    """A kernel of height K0 = 4 whose features are taken for those of a kernel of height 1: the square root of K0 is missing."""

    @cached_property
    def table(self) -> Any:
        return 2 * super().table


@dataclass(frozen=True)
class _Signed(Axis):
    """A kernel that turns negative far away, with the constant of a nonnegative one."""

    @cached_property
    def table(self) -> Any:
        own = super().table.copy()
        # the last third looks at the nodes of the first third with the other sign
        third = len(own) // 3
        own[-third:] = -own[:third]
        return own


@dataclass(frozen=True)
class _AddRemove(KernelSums):
    """The sensitivity of a record that is added, for one that is replaced."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return super().sensitivity_squared("add-remove")


@dataclass(frozen=True)
class _Unclipped(ResidualRows):
    """Residuals beyond tau count in full."""

    def placed(self, codes: Any) -> Any:
        cell, _ = super().placed(codes)
        _, value, present = self.base.placed(codes)
        return cell, np.rint((value / UNIT / self.tau) ** 2 * UNIT * present)


@dataclass(frozen=True)
class FaultyCurve(Kernel):
    """Kernel with one fault: "height", "sign", "relation", "residual", or none."""

    fault: str = ""

    def _rows(self, design: Any, h: float) -> tuple[KernelRows, ResidualRows]:
        base, residuals = super()._rows(design, h)
        kinds = {"height": _Tall, "sign": _Signed}
        if self.fault in kinds:
            own = base.axis
            base = KernelRows(design, kinds[self.fault](own.low, own.high, own.steps, own.h, own.cells))
            return base, replace(residuals, base=base)
        if self.fault == "residual":
            return base, _Unclipped(base, residuals.axis, residuals.tau)
        return base, residuals

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Mapping[str, Any] | None = None) -> Plan:
        plan = super().plan(schema, privacy, n=n, public=public)
        if self.fault != "relation":
            return plan
        wrong = _AddRemove(plan.statistic("curve").map)  # type: ignore[arg-type]
        spend = Allowance.of(privacy, self, schema).spend("curve", wrong, Fraction(9, 10))
        event: Any = plan.event
        return replace(
            plan, event=replace(event, parts=(spend, event.parts[1])), statistics={**plan.statistics, "curve": wrong}
        )


@dataclass(frozen=True)
class _OnePoint(PointCurve):
    """alpha of one point for all of them: the whole budget is spent on each query."""

    @property
    def reach(self) -> int:
        return WEIGHT**2


@dataclass(frozen=True)
class _Half(PointCurve):
    """R B/d0 in place of 2 R B/d0."""

    @property
    def reach(self) -> int:
        return super().reach // 4


@dataclass(frozen=True)
class _Twice(KernelSafety):
    """A safety in units of half of what one record moves."""

    def of(self, total: Any) -> Any:
        return 2 * super().of(total)


@dataclass(frozen=True)
class FaultyPoints(EfficientPTRKernel):
    """EfficientPTRKernel with one fault: "queries", "half", "lipschitz", or none."""

    fault: str = ""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Mapping[str, Any] | None = None) -> Plan:
        plan = super().plan(schema, privacy, n=n, public=public)
        curve, safety = plan.statistic("curve"), plan.statistic("safety")
        assert isinstance(curve, PointCurve) and isinstance(safety, KernelSafety) and isinstance(plan.event, Test)
        kinds: dict[str, Any] = {"queries": _OnePoint, "half": _Half}
        if self.fault in kinds:
            return replace(plan, statistics={**plan.statistics, "curve": kinds[self.fault](curve.map, curve.d0)})
        if self.fault == "lipschitz":
            return replace(plan, statistics={**plan.statistics, "safety": _Twice(safety.map, safety.d0)})
        return plan


# neighbors -----------------------------------------------------------------------------------------------------------


def _frame(*parts: tuple[int, float, float]) -> pd.DataFrame:
    """So many records (x, y) each."""
    return pd.DataFrame([row[1:] for row in parts for _ in range(row[0])], columns=["x", "y"])


_COMPANY = (400, 0.2, 0.3)
_OPPOSITE = _frame(_COMPANY, (1, 0.2, 1.0)), _frame(_COMPANY, (1, 0.2, -1.0))
_FAR = _frame(_COMPANY, (1, 0.2, 1.0)), _frame(_COMPANY, (1, 0.2, 0.3))
_APART = _frame(_COMPANY, (1, 0.05, 1.0)), _frame(_COMPANY, (1, 0.95, 1.0))
# the mirror image of .05 in the last third of the cells
_MIRRORED = _frame(_COMPANY, (1, 0.1, 1.0)), _frame(_COMPANY, (1, 0.1 + 2 / 3, 1.0))
_CLOSE = _frame((420, 0.5, -1.0), (1, 0.5, 1.0)), _frame((420, 0.5, -1.0), (1, 0.5, -1.0))
_EDGE = _frame((420, 0.5, -1.0), (1, 0.5, 1.0)), _frame((420, 0.5, -1.0), (1, 0.0, 1.0))


def _curve(name: str, what: str, fault: str, pair: Any, **settings: Any) -> Fault:
    def build(wrong: bool, runs: int, seed: int) -> Audit:
        method = FaultyCurve("y ~ x", bandwidth=0.1, **settings, fault=fault if wrong else "")
        return replayed(method, cf.GDP(1.0, relation="substitute"), _SCHEMA, pair, seed)

    return Fault(name, what, "record and replay on the worst neighbors", build)


def _points(name: str, what: str, fault: str, pair: Any) -> Fault:
    def build(wrong: bool, runs: int, seed: int) -> Audit:
        settings: dict[str, Any] = {"least": 400.0, "gamma_plan": 15.0, "fault": fault if wrong else ""}
        method = FaultyPoints("y ~ x", (0.49, 0.5, 0.51), 0.2, **settings)
        return replayed(method, cf.GDP(3.0, 1e-3, relation="substitute"), _SCHEMA, pair, seed)

    return Fault(name, what, "record and replay on the worst neighbors", build)


KERNEL = [
    _curve(
        "the root of K0 is missing",
        "the noise is made for a kernel of height 1, the kernel has height 4",
        "height",
        _OPPOSITE,
    ),
    _curve(
        "a signed kernel",
        "inner products of two records are negative, and the constant is that of a nonnegative kernel",
        "sign",
        _MIRRORED,
    ),
    _curve("added for replaced", "two records are far apart, and the noise is made for one", "relation", _APART),
    _curve("residuals that are not clipped", "tau bounds nothing", "residual", _FAR, residual_bound=0.5),
    _points("the whole budget for each query", "alpha of one point for three", "queries", _CLOSE),
    _points("half of alpha", "a response can move by twice its bound", "half", _CLOSE),
    _points("half of the Lipschitz constant", "the safety moves by two when a record leaves", "lipschitz", _EDGE),
]
