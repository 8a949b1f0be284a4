"""Faults of noisy second moments and of what is solved with them: AdaSSP, Boosted AdaSSP, Analyze Gauss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import confide as cf
from confide.core import Meter, Plan
from confide.guarantees import ApproxDP, calibrate_gaussian
from confide.methods.regression.certified.sums import BoundedRows, Part, moments, smallest_eigenvalue
from confide_lab.benchmarks.planted.kinds import mechanism, method, query
from confide_lab.methods.adassp import AdaSSP
from confide_lab.methods.boosted_adassp import BoostedAdaSSP

__all__ = ["MOMENTS"]

SCHEMA = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})

# mechanisms -----------------------------------------------------------------------------------------------------------

_ASKED = ApproxDP(1.0, 1e-6)
_MEANT = calibrate_gaussian(_ASKED)
_ROUNDS = 10
_CORNER = np.ones(8) / math.sqrt(8)  # a record of length 1


def _square(x: Any, k: int) -> Any:
    """sum of x x' of one record or none, repeated."""
    return np.broadcast_to(np.outer(x, x).ravel(), (k, 64))


def _triangle() -> float:
    """The norm of the upper triangle of x x' at the corner, which is below |x x'|_F = 1."""
    return float(np.linalg.norm(np.outer(_CORNER, _CORNER)[np.triu_indices(8)]))


def _both_triangles(sensitivity: float) -> Callable[..., Any]:
    """Noise of its own on every entry, for mu = 1 at this sensitivity."""
    return lambda g, x, k: _square(x, k) + g.normal(size=(k, 64)) * sensitivity


def _releases(sd: float) -> Callable[..., Any]:
    """2 + T numbers of sensitivity 1, each with noise of this sd."""
    return lambda g, x, k: np.asarray(x) + g.normal(size=(k, 2 + _ROUNDS)) * sd


_MECHANISMS = [
    mechanism(
        "asymmetric noise on a Gram matrix",
        "both triangles with noise of their own, scaled to the sensitivity of one",
        _both_triangles(_triangle()),
        _both_triangles(1.0),
        cf.GDP(1.0),
        data=np.zeros(8),
        neighbor=_CORNER,
    ),
    mechanism(
        "boosting: mu taken for the noise",
        "noise sd mu in each of 2 + T releases, as in the authors' code",
        _releases(_MEANT),
        _releases(math.sqrt(2 + _ROUNDS) / _MEANT),
        _ASKED,
        data=np.zeros(2 + _ROUNDS),
        neighbor=np.ones(2 + _ROUNDS),
    ),
    mechanism(
        "boosting: T rounds, one charge",
        "moments, eigenvalue and every round each get a third of mu^2",
        _releases(math.sqrt(3)),
        _releases(math.sqrt(2 + _ROUNDS)),
        cf.GDP(1.0),
        data=np.zeros(2 + _ROUNDS),
        neighbor=np.ones(2 + _ROUNDS),
    ),
]

# queries --------------------------------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    """Records of length at most 1, from pairs of numbers."""
    clean = np.clip(np.nan_to_num(np.asarray(x, dtype=float)), -1.0, 1.0).reshape(-1, 2)
    return clean / math.sqrt(2)


def _exact_eigenvalue(x: Any) -> int:
    m = np.trunc(_rows(x) * (1 << 10)).astype(int).astype(object)
    return smallest_eigenvalue(m.T @ m, 1 << 10)


def _positive_eigenvalue(x: Any) -> int:
    """The smallest eigenvalue above 0: of a singular matrix the next one, in steps of 2^10."""
    m = np.trunc(_rows(x) * (1 << 10))
    values = np.linalg.eigvalsh(m.T @ m)
    above = values[values > 1e-6 * max(float(values[-1]), 1.0)]
    return int(above[0]) >> 10 if len(above) else 0


_PLANE = [(-1.0, 1.0), (-1.0, 1.0)]

_QUERIES = [
    query(
        "smallest eigenvalue above 0",
        "of a singular matrix the next eigenvalue is taken",
        _positive_eigenvalue,
        _exact_eigenvalue,
        _PLANE,
        1 << 10,
    ),
]

# methods --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExactRidge(AdaSSP):
    """AdaSSP that publishes the ridge of the exact eigenvalue."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        rows = plan.statistic("features").map
        assert isinstance(rows, BoundedRows)
        (whole,) = source.aggregate(moments(rows))
        for name in ("features", "response", "eigenvalue"):
            meter.draw(name, Part(rows, name).of(whole))
        exact = float(Part(rows, "eigenvalue").of(whole)[0]) / Part(rows, "eigenvalue").unit
        return {"ridge": np.array([max(0.0, 20.0 - exact)])}


@dataclass(frozen=True)
class _LongRows(BoundedRows):
    """Rows of up to twice the length that is charged."""

    def __call__(self, codes: Any) -> Any:
        rows = super().__call__(codes)
        rows[:-1] *= 2.0
        return rows


@dataclass(frozen=True)
class LooseClip(AdaSSP):
    """AdaSSP whose rows are clipped at twice the length that is charged."""

    def plan(self, schema: Any, privacy: Any, **facts: Any) -> Plan:
        plan = super().plan(schema, privacy, **facts)
        rows = plan.statistic("features").map
        assert isinstance(rows, BoundedRows)
        long = _LongRows(rows.design, rows.length)
        return replace(plan, statistics={name: Part(long, name) for name in plan.statistics})


@dataclass(frozen=True)
class ExactRound(BoostedAdaSSP):
    """Boosted AdaSSP that publishes lines which step along the exact scores of the last round."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = super().draw(source, plan, meter)
        scores = plan.statistic("round 1").map.at(public["lines"][-1])  # type: ignore[attr-defined]
        (total,) = source.aggregate(type(plan.statistic("round 1"))(scores))
        lines = np.vstack([public["lines"], total.astype(float) / scores.unit])
        return {**public, "lines": lines}


_METHODS = [
    method(
        "ridge of the exact eigenvalue",
        "the ridge is computed before the eigenvalue gets its noise",
        ExactRidge("y ~ a + b"),
        AdaSSP("y ~ a + b"),
        SCHEMA,
    ),
    method(
        "rows clipped at twice their bound",
        "a record's row may be twice as long as what is charged",
        LooseClip("y ~ a + b"),
        AdaSSP("y ~ a + b"),
        SCHEMA,
    ),
    method(
        "a round without noise",
        "the last line steps along exact scores",
        ExactRound("y ~ a + b", rounds=1),
        BoostedAdaSSP("y ~ a + b", rounds=1),
        SCHEMA,
    ),
]

MOMENTS = [*_QUERIES, *_MECHANISMS, *_METHODS]
