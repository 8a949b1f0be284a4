"""Faults of efficient propose-test-release for least squares: EfficientPTR with one wrong line, replayed on the worst neighbors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import cos, sin, sqrt
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.audit.verdict import Audit
from confide.core import SAFETY_STEPS, Allowance, Plan, Test
from confide.methods.regression.certified.efficient_line import EfficientPTR
from confide.methods.regression.certified.reading import CertifiedLine, JointRows, LeastEigenvalue, Safety
from confide.sums.coding import round_within, scaled
from confide.sums.safety_bounds import kappa
from confide_lab.benchmarks.planted.kinds import Fault, replayed

__all__ = ["EPTR_OLS", "FaultyPTR"]

_SCHEMA = cf.Schema({name: cf.Numeric(-1, 1) for name in ("a", "b", "y")})
_LEVEL = cf.GDP(3.0, 1e-3, relation="substitute")
_SAFE: dict[str, Any] = {"mode": "safe", "leverage_cap": 1.0, "gamma_plan": 50.0}
# the least eigenvalue of the company, in squared lengths of the longest row: large, so that one record more or less is small beside it
_MANY = 400


@dataclass(frozen=True)
class _SmallKappa(CertifiedLine):
    """alpha with 1.3 in place of kappa."""

    @property
    def alpha(self) -> float:
        x, y = self.map.bounds
        return super().alpha * 1.3 / kappa(y / (x * self.radius))


@dataclass(frozen=True)
class _Unprojected(CertifiedLine):
    """The line as it is, with the alpha of a line that was projected."""

    def of(self, gram: Any) -> Any:
        long = CertifiedLine(self.map, radius=1e3, lam=self.lam)
        values = long.of(gram).astype(float) * (long.alpha / self.alpha)
        return np.array([int(v) for v in np.rint(values)], dtype=object)


@dataclass(frozen=True)
class _Appended(JointRows):
    """Features are shortened to the bound, and the intercept's 1 is appended after it."""

    def __call__(self, codes: Any) -> Any:
        rows, _ = scaled(self.design, codes)
        length = np.sqrt((rows[1:-1] ** 2).sum(axis=0))
        rows[1:-1] *= np.minimum(1.0, sqrt(self.cap) / np.maximum(length, 1e-9))
        rows *= float(self.steps)
        return round_within(rows)


@dataclass(frozen=True)
class _Halved(LeastEigenvalue):
    """The eigenvalue with half of its sensitivity."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return super().sensitivity_squared(relation) / 4


@dataclass(frozen=True)
class FaultyPTR(EfficientPTR):
    """EfficientPTR with one fault: "kappa", "projection", "intercept", "lipschitz", "shift", or none."""

    fault: str = ""

    def _line(self, design: Any) -> CertifiedLine:
        line = super()._line(design)
        settings: dict[str, Any] = {"radius": line.radius, "lam": line.lam}
        if self.fault == "kappa":
            return _SmallKappa(line.map, **settings)
        if self.fault == "projection":
            return _Unprojected(line.map, **settings)
        if self.fault == "intercept":
            return CertifiedLine(_Appended(design, line.map.cap), **settings)
        return line

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Mapping[str, Any] | None = None) -> Plan:
        plan = super().plan(schema, privacy, n=n, public=public)
        if self.fault != "lipschitz":
            return plan
        event, allowance = plan.event, Allowance.of(privacy, self, schema, failure=Fraction(1, 2))
        assert isinstance(event, Test)
        halved = _Halved(plan.statistic("line").map)  # type: ignore[arg-type]
        on = allowance.spend("eigenvalue", halved, Fraction(1, 10))
        return replace(plan, event=replace(event, on=on), statistics={**plan.statistics, "eigenvalue": halved})

    def _replied(self, meter: Any, plan: Plan, line: CertifiedLine, gram: Any) -> tuple[bool, float]:
        if self.fault != "shift":
            return super()._replied(meter, plan, line, gram)
        safety = plan.statistic("safety")
        assert isinstance(safety, Safety)
        steps = safety.of(gram)
        return meter.test("safety", steps + SAFETY_STEPS * (steps > 0)), line.lam


# neighbors -----------------------------------------------------------------------------------------------------------


def _frame(*parts: tuple[int, float, float, float]) -> pd.DataFrame:
    """So many records (a, b, y) each."""
    return pd.DataFrame([row[1:] for row in parts for _ in range(row[0])], columns=["a", "b", "y"])


def _worst(radius: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The least eigenvalue lies along a, the line along b with length 1; two records at equal angles to a move it the most."""
    # sin t = (sqrt(q^2 + 8) - q)/4 for q = 1/|line|, or 1/radius where that is shorter
    q = 1 / min(radius, 1.0) if radius >= 1 else 1.0
    sine = (sqrt(q * q + 8) - q) / 4
    cosine = sqrt(1 - sine * sine)
    company = [(_MANY, 1.0, 0.0, 0.0), (20 * _MANY, 0.0, 1.0, 1.0)]
    return _frame(*company, (1, cosine, sine, -1.0)), _frame(*company, (1, cosine, -sine, 1.0))


def _edge() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Least eigenvalues half a record above and half a record below where data become safe."""
    company = [(_MANY, 1.0, 0.0, 0.0), (2 * _MANY, 0.0, 1.0, 0.5)]
    return _frame(*company, (1, cos(0.1), sin(0.1), 0.0)), _frame(*company, (1, 0.0, 1.0, 0.0))


def _long() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A record in the corner, and one with features in the middle, beside records that are long elsewhere."""
    company = [(40, -1.0, 1.0, 0.0), (40, -1.0, -1.0, 0.0), (3, 1.0, 0.0, 0.0)]
    return _frame(*company, (1, 1.0, 0.0, 0.0)), _frame(*company, (1, -1.0, 1.0, 0.0))


def _fault(name: str, what: str, fault: str, pair: Any, formula: str = "y ~ 0 + a + b", **settings: Any) -> Fault:
    def build(wrong: bool, runs: int, seed: int) -> Audit:
        return replayed(FaultyPTR(formula, **settings, fault=fault if wrong else ""), _LEVEL, _SCHEMA, pair, seed)

    return Fault(name, what, "record and replay on the worst neighbors", build)


EPTR_OLS = [
    _fault("kappa of 1.3", "half of what a line can move", "kappa", _worst(1.0), **_SAFE, lam0=_MANY - 2.0, radius=1.0),
    _fault(
        "a line that is not projected",
        "alpha rests on a length that only the projected line has",
        "projection",
        _worst(0.25),
        **_SAFE,
        lam0=_MANY - 2.0,
        radius=0.25,
    ),
    _fault(
        "an intercept after the clip",
        "rows are longer than the bound by the constant that is appended",
        "intercept",
        _long(),
        "y ~ a + b",
        leverage_cap=1.2,
    ),
    _fault("half of Weyl's bound", "the eigenvalue moves by a whole record", "lipschitz", _edge(), leverage_cap=1.0),
    _fault("a test without its shift", "safety up to 1 passes too often", "shift", _edge(), **_SAFE, lam0=_MANY - 0.5),
]
