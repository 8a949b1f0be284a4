"""Faults of classifiers: class sums, Bayes counts and propose-test-release with one wrong line, replayed on the worst neighbors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.audit.verdict import Audit
from confide.classification import ClassMeans, EfficientPTRBayes
from confide.core import SAFETY_STEPS, Allowance, Composed, Plan, Test, Total
from confide.methods.classification.efficient_ptr import ClassSafety, SafeMeans
from confide.methods.classification.sums import ClassRows, ClassTotal
from confide_lab.benchmarks.planted.kinds import Fault, replayed
from confide_lab.methods import NaiveBayes

__all__ = ["CLASSES", "FaultyBayes", "FaultyPTRBayes", "FaultySums"]

_SCHEMA = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-1, 1), "z": cf.Numeric(-1, 1)})
_LEAST = 60
_FORMULA = "kind ~ x + z"


# methods --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RootTwo(ClassTotal):
    """A replaced record at sqrt(2) times an added one, as for rows that never point against each other."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.l2_squared) * (2 if relation == "substitute" else 1) * Fraction(4, 5)


@dataclass(frozen=True)
class _Long(ClassRows):
    """Rows that are not moved into the ball."""

    @property
    def steps(self) -> int:
        return super().steps * 2

    def sparse_of(self, begun: Any) -> Any:
        for place, half in ClassRows(self.own, self.radius, self.per_count).sparse_of(begun):
            features = place < len(self.own.classes) * self.block
            yield place, np.where(features, 2.0 * half, half)


@dataclass(frozen=True)
class FaultySums(ClassMeans):
    """ClassMeans with one fault: "substitute", "long rows", or none."""

    fault: str = ""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Mapping[str, Any] | None = None) -> Plan:
        plan = super().plan(schema, privacy, n=n)
        if not self.fault:
            return plan
        rows = plan.statistic("sums").map
        assert isinstance(rows, ClassRows)
        wrong: Any = (
            _RootTwo(rows) if self.fault == "substitute" else ClassTotal(_Long(rows.own, rows.radius, rows.per_count))
        )
        allowance = Allowance.of(privacy, self, schema)
        event = Composed((allowance.spend("sums", wrong, Fraction(1)),))
        event, statistics = allowance.with_ranges(event, {"sums": wrong})
        return replace(plan, event=event, statistics=statistics)


@dataclass(frozen=True)
class _OneCount(Total):
    """Counts of which a record is said to move one when it is replaced."""

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True)
class FaultyBayes(NaiveBayes):
    """NaiveBayes with the fault "one count", or none."""

    fault: str = ""

    def _statistics(self, own: Any) -> Any:
        statistics, shares = super()._statistics(own)
        if self.fault:
            statistics["counts"] = _OneCount(statistics["counts"].map, nonnegative=True)
        return statistics, shares


@dataclass(frozen=True)
class _OneClass(SafeMeans):
    """alpha of one mean that a record joins."""

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return 2 * self.map.longest / (self.least + 1)


@dataclass(frozen=True)
class _HeavyCounts(SafeMeans):
    """Counts with four times the weight that alpha has room for."""

    @property
    def weight(self) -> float:  # type: ignore[override]
        return 4 * super().weight

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return SafeMeans(self.map, self.least).alpha


@dataclass(frozen=True)
class _Present(ClassSafety):
    """The smallest class among those that have a record."""

    def of(self, total: Any) -> Any:
        counts, _ = self._parts(total)
        least = min([n for n in counts if n] or [0])
        return np.array([SAFETY_STEPS * max(least - (self.least - 1), 0)], dtype=object)


@dataclass(frozen=True)
class FaultyPTRBayes(EfficientPTRBayes):
    """EfficientPTRBayes with one fault: "one class", "heavy counts", "present classes", or none."""

    fault: str = ""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Mapping[str, Any] | None = None) -> Plan:
        plan = super().plan(schema, privacy, n=n)
        if not self.fault:
            return plan
        rows = plan.statistic("means").map
        assert isinstance(rows, ClassRows) and isinstance(plan.event, Test)
        kinds: dict[str, Any] = {"one class": _OneClass, "heavy counts": _HeavyCounts}
        means = kinds.get(self.fault, SafeMeans)(rows, _LEAST)
        safety = (_Present if self.fault == "present classes" else ClassSafety)(rows, _LEAST)
        return replace(plan, statistics={"safety": safety, "means": means})


# neighbors -----------------------------------------------------------------------------------------------------------


def _frame(*parts: tuple[int, str, float]) -> pd.DataFrame:
    """So many records of a class, with both features at a place."""
    return pd.DataFrame([(kind, at, at) for count, kind, at in parts for _ in range(count)], columns=["kind", "x", "z"])


_WITHIN = (_frame((9, "a", -1.0), (1, "a", 1.0)), _frame((10, "a", -1.0)))
_ACROSS = (_frame((9, "a", -1.0), (1, "a", 1.0)), _frame((9, "a", -1.0), (1, "b", 1.0)))
# both data sets are safe: one record more than L in the class that it leaves
_SAFE = (
    _frame((_LEAST, "a", -1.0), (1, "a", 1.0), (_LEAST, "b", -1.0)),
    _frame((_LEAST, "a", -1.0), (1, "b", 1.0), (_LEAST, "b", -1.0)),
)
_ABSENT = (_frame((2 * _LEAST, "a", 0.0), (1, "a", 1.0)), _frame((2 * _LEAST, "a", 0.0), (1, "b", 1.0)))


def _fault(name: str, what: str, kind: Any, fault: str, pair: Any, privacy: Any, **settings: Any) -> Fault:
    def build(wrong: bool, runs: int, seed: int) -> Audit:
        method = kind(_FORMULA, variance="identity", **settings, fault=fault if wrong else "")
        return replayed(method, replace(privacy, relation="substitute"), _SCHEMA, pair, seed)

    return Fault(name, what, "record and replay on the worst neighbors", build)


_TESTED = {"least": _LEAST, "gamma_plan": 50.0}

CLASSES = [
    _fault(
        "class sums as if never opposite",
        "a record that is replaced within its class turns its row around",
        FaultySums,
        "substitute",
        _WITHIN,
        cf.GDP(1.0),
    ),
    _fault("class rows outside the ball", "rows of twice the length", FaultySums, "long rows", _WITHIN, cf.GDP(1.0)),
    _fault(
        "one class count",
        "a record that changes its class moves two counts",
        FaultyBayes,
        "one count",
        _ACROSS,
        cf.PureDP(1.0),
    ),
    _fault(
        "alpha of one class mean",
        "2R/(L + 1) where two means move",
        FaultyPTRBayes,
        "one class",
        _SAFE,
        cf.GDP(3.0, 1e-3),
        **_TESTED,
    ),
    _fault(
        "weight of the counts",
        "counts weigh more than alpha says",
        FaultyPTRBayes,
        "heavy counts",
        _SAFE,
        cf.GDP(3.0, 1e-3),
        **_TESTED,
    ),
    _fault(
        "safety of present classes",
        "an absent class has size 0, and its mean jumps with its first record",
        FaultyPTRBayes,
        "present classes",
        _ABSENT,
        cf.GDP(3.0, 1e-3),
        **_TESTED,
    ),
]
