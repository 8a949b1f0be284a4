"""Planted faults of class models: sizes that order, pad or name classes, rows and means that are charged or noised too little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd

import confide as cf
from confide.audit.verdict import Finding
from confide.classification import ClassMeans, EfficientPTRBayes
from confide.core import Meter, Plan, Source, Total
from confide.testing import contract as side_doors
from confide_lab.benchmarks.planted.kinds import Fault, bounded, contract, law, neighbors
from confide_lab.methods import NaiveBayes, SmoothNaiveBayes
from confide_lab.methods.smooth_naive_bayes import smooth_sensitivity

__all__ = ["CLASS_MODELS"]

_CLASSES = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-1, 1), "z": cf.Numeric(-1, 1)})
_FORMULA = "kind ~ x + z"

# class models ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ordered(ClassMeans):
    """Classes are listed in the order of their exact sizes."""

    name: ClassVar[str] = "planted_classes"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = super().draw(source, plan, meter)
        (total,) = source.aggregate(plan.statistic("sums"))
        counts = [int(v) for v in total[-2:]]
        return {**public, "order": np.argsort(counts, kind="stable")}


@dataclass(frozen=True)
class _NamesTheSmallest(EfficientPTRBayes):
    """Without a reply it says which class was too small."""

    name: ClassVar[str] = "planted_bayes"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = dict(super().draw(source, plan, meter))
        if not meter._drawn:
            (total,) = source.aggregate(Total(plan.statistic("means").map))
            public["too small"] = np.array([int(np.argmin([int(v) for v in total[-2:]]))])
        return public


class _Padded(Total):
    """A class without records gets ten, so that its share has a logarithm."""

    def value(self, state: Any) -> Any:
        return np.array([int(v) or 10 for v in super().value(state)], dtype=object)


@dataclass(frozen=True)
class _PadsEmpty(NaiveBayes):
    """Empty classes are padded before the noise."""

    name: ClassVar[str] = "planted_bayes"

    def _statistics(self, own: Any) -> Any:
        statistics, shares = super()._statistics(own)
        return {**statistics, "counts": _Padded(statistics["counts"].map, nonnegative=True)}, shares


class _SignedOnce(Total):
    """The bound of one row where a record is replaced, as for numbers that are never negative."""

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1)


@dataclass(frozen=True)
class _ReplacedOnce(NaiveBayes):
    """A replaced record moves a signed sum by two rows, and one is charged."""

    name: ClassVar[str] = "planted_bayes"

    def _statistics(self, own: Any) -> Any:
        statistics, shares = super()._statistics(own)
        return {**statistics, "sums": _SignedOnce(statistics["sums"].map)}, shares


@dataclass(frozen=True)
class _BareMean(SmoothNaiveBayes):
    """The last mean leaves without noise: a loop ends one short."""

    name: ClassVar[str] = "planted_smooth"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        (total,) = source.aggregate(plan.statistic("sums"))
        own = meter.opaque

        def opaque(name: str, value: Any, step: Any, *rest: Any, **more: Any) -> Any:
            short = np.array(value)
            exact = Fraction(int(total[-3]), max(int(total[-1]), 1) << 20)
            short[-1] = float(exact) if short.dtype.kind == "f" else round(exact / step)
            return own(name, short, step, *rest, **more)

        with patch.object(meter, "opaque", opaque):
            return super().draw(source, plan, meter)


def _smooth(bound: Any) -> Finding:
    """The largest S(n) e^-b/S(n + 1) and S(n + 1) e^-b/S(n) over sizes and b: at most 1 for a smooth bound."""
    worst = max(
        exp(-b) * max(bound(n, b) / bound(n + 1, b), bound(n + 1, b) / bound(n, b))
        for b in (0.01, 0.05, 0.2, 0.5)
        for n in range(1, 400)
    )
    return bounded("growth of the bound over e^b", 1.0 + 1e-12, worst, "all sizes up to 400", "add-remove")


# the list -------------------------------------------------------------------------------------------------------------


def _people(*parts: tuple[int, str]) -> pd.DataFrame:
    """So many records of a class."""
    return pd.DataFrame([(kind, 0.5, 0.5) for count, kind in parts for _ in range(count)], columns=["kind", "x", "z"])


_ADDED, _REPLACED = (cf.PureDP(1.0, relation=one) for one in ("add-remove", "substitute"))
_ORDERS = _people((3, "a"), (4, "b")), _people((4, "a"), (3, "b"))
_FIRST = _people((3, "a")), _people((3, "a"), (1, "b"))
_TESTED: dict[str, Any] = {"least": 60, "gamma_plan": 50.0}

CLASS_MODELS: list[Fault] = [
    contract(
        "classes in the order of their sizes",
        "the order in which classes are listed follows from their exact counts",
        side_doors.what_stands_beside_follows_from_what_leaves,
        _Ordered(_FORMULA),
        ClassMeans(_FORMULA),
        _CLASSES,
        cf.GDP(1.0),
    ),
    neighbors(
        "the class that was too small",
        "a refusal names the smallest class",
        _NamesTheSmallest(_FORMULA, **_TESTED),
        EfficientPTRBayes(_FORMULA, **_TESTED),
        _CLASSES,
        cf.GDP(3.0, 1e-3, relation="substitute"),
        _ORDERS,
    ),
    neighbors(
        "empty classes padded",
        "a class without records gets ten before the noise",
        _PadsEmpty(_FORMULA),
        NaiveBayes(_FORMULA),
        _CLASSES,
        _ADDED,
        _FIRST,
    ),
    contract(
        "a replaced row charged as one",
        "a signed sum with Laplace noise moves by two rows, in l1",
        side_doors.bounds_in_l1_hold,
        _ReplacedOnce(_FORMULA),
        NaiveBayes(_FORMULA),
        _CLASSES,
        _REPLACED,
    ),
    contract(
        "a mean without noise",
        "the last number of an opaque release gets none",
        side_doors.opaque_numbers_change_with_their_noise,
        _BareMean(_FORMULA),
        SmoothNaiveBayes(_FORMULA),
        _CLASSES,
        cf.PureDP(1.0),
    ),
    law(
        "local sensitivity",
        "noise for 2/n at the private n, which is not smooth in n",
        lambda: _smooth(lambda n, b: 2 / n),
        lambda: _smooth(smooth_sensitivity),
        of="smooth_naive_bayes",
        attack="growth of the bound over all sizes",
    ),
]
