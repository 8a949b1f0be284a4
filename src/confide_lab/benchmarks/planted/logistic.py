"""Planted faults of logistic regression: slips in the curve of objective perturbation, in sensitivities, and in the solver's time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
from scipy import special, stats

import confide as cf
from confide.audit.verdict import Finding
from confide.guarantees import gaussian_delta
from confide.guarantees.mechanisms.objective_perturbation import logistic_delta
from confide_lab.benchmarks.planted.fisher import FISHER_FAULTS
from confide_lab.benchmarks.planted.fisher_draws import FISHER_DRAWS
from confide_lab.benchmarks.planted.kinds import Fault, law
from confide_lab.methods.logistic import logistic_minimiser as solver
from confide_lab.methods.logistic.labelled_rows import LabelledRows
from confide_lab.methods.logistic.logistic_minimiser import LeastCurvature, PenalizedLoss, RoundedMinimiser

__all__ = ["LOGISTIC", "divergence", "evaluations"]

_SCHEMA = cf.Schema({"a": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
_PAIR = cf.Schema({"a": cf.Numeric(-1, 1), "b": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})


# the curve -----------------------------------------------------------------------------------------------------------


def divergence(one: Any, other: Any, epsilon: float, ridge: float, sd: float) -> float:
    """The hockey-stick divergence of two exact releases in one dimension; rows are y x."""

    def density(theta: Any, rows: Any) -> Any:
        p = special.expit(-np.outer(theta, rows))
        tilt = (p * rows).sum(axis=1) - ridge * theta
        return stats.norm.pdf(tilt, scale=sd) * ((p * (1 - p) * rows**2).sum(axis=1) + ridge)

    far = (max(np.abs(one).sum(), np.abs(other).sum()) + 12 * sd) / ridge
    theta = np.linspace(-far, far, 20_001)
    gap = density(theta, one) - exp(epsilon) * density(theta, other)
    return float(np.maximum(gap, 0).sum() * (theta[1] - theta[0]))


def _curve(name: str, claimed: Callable[[float, float, float], float]) -> Finding:
    """The claimed delta against exact releases over random small data sets: the largest excess."""
    g = np.random.default_rng(1)
    worst = 0.0
    for _ in range(60):
        epsilon, sd, ridge = g.uniform(0.02, 1.0), g.uniform(0.5, 4), exp(g.uniform(-2.5, 1.0))
        rows = g.uniform(-1, 1, g.integers(0, 2))
        more = np.append(rows, 1.0)
        found = max(divergence(more, rows, epsilon, ridge, sd), divergence(rows, more, epsilon, ridge, sd))
        worst = max(worst, found / max(claimed(epsilon, sd, ridge), 1e-9))
    return _said(name, worst, 1 + 1e-6)


def _said(name: str, value: float, most: float) -> Finding:
    verdict = "violated" if value > most else "holds"
    return Finding(
        name=name,
        quantity="ratio",
        claim=most,
        lower_bound=value,
        verdict=verdict,
        attack="exact law",
        relation="add-remove",
        note="",
    )


# sensitivities -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Means(RoundedMinimiser):
    """The minimiser of the mean loss, with the bound of the sum."""

    def of(self, rows: Any) -> Any:
        whole = replace(self.objective, ridge=self.ridge * max(rows.shape[1], 1) / 40)
        theta = whole.minimiser(rows, np.zeros(len(rows)), self.step * self.ridge / 64)
        return np.array([int(v) for v in np.rint(theta / self.step)], dtype=object)


@dataclass(frozen=True)
class _Unweighted(RoundedMinimiser):
    """Long rows count in full."""

    @property
    def objective(self) -> PenalizedLoss:
        return PenalizedLoss(float(self.map.steps), 1e3, self.ridge)


@dataclass(frozen=True)
class _Single(RoundedMinimiser):
    """A replaced record is taken for one that is added."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return super().sensitivity_squared("add-remove")


@dataclass(frozen=True)
class _Impatient(RoundedMinimiser):
    """The solver stops at a gradient that is no longer than a record's."""

    def of(self, rows: Any) -> Any:
        search = solver._Search(self.objective, rows, np.zeros(len(rows)))
        for _ in range(10):
            if np.linalg.norm(search.gradient()) <= 1.2 * self.slope:
                break
            search.advance()
        return np.array([int(v) for v in np.rint(search.theta / self.step)], dtype=object)


def _moved(kind: type[RoundedMinimiser], relation: str = "add-remove") -> Finding:
    """How far the rounded minimiser moves between neighbors, over its stated sensitivity: the worst of a few pairs of small tables.

    Rows are y z in two features, without an intercept: one or three records of one corner, a record of twice the bound, and two records
    that both misfit a slope that many others hold.
    """
    labelled = LabelledRows(cf.schema.ModelMatrix.of("y ~ 0 + a + b", _PAIR))
    held = [(0.0, -1.0)] * 400
    pairs = [
        ([], [(0.7, 0.7)]),
        ([(0.7, 0.7)] * 2, [(0.7, 0.7)] * 3),
        ([], [(1.0, 1.0)]),
        (held, [*held, (0.95, 0.3)]),
        ([*held, (-0.95, 0.3)], [*held, (0.95, 0.3)]),
    ]
    worst = 0.0
    for one, other in pairs:
        if relation == "add-remove" and len(one) == len(other):
            continue
        for ridge, cut in ((3.0, 0.5), (3.0, 1.0), (0.5, 1.0)):
            statistic = kind(labelled, cut, ridge)
            values = [statistic.of(np.rint(np.array(part).reshape(-1, 2).T * labelled.steps)) for part in (one, other)]
            far = float(np.linalg.norm((values[0] - values[1]).astype(float)))
            worst = max(worst, far / float(statistic.sensitivity_squared(relation)) ** 0.5)
    return _said("minimiser", worst, 1.0)


def _minimiser(name: str, what: str, kind: type[RoundedMinimiser], relation: str = "add-remove") -> Fault:
    return law(name, what, lambda: _moved(kind, relation), lambda: _moved(RoundedMinimiser, relation))


# time ----------------------------------------------------------------------------------------------------------------


def evaluations(minimise: Callable[[Any, Any, Any], Any]) -> set[int]:
    """How many Newton steps a solver takes on data sets of one size: easy, separable, all alike, a rare outcome."""
    g = np.random.default_rng(2)
    x = g.uniform(-1, 1, (2, 400))
    labelled = LabelledRows(cf.schema.ModelMatrix.of("y ~ a", _SCHEMA))
    signs = (np.sign(g.uniform(-1, 1, 400)), np.sign(x[1]), np.ones(400), np.where(np.arange(400) < 2, 1.0, -1.0))
    seen = set()
    for sign in signs:
        rows = np.rint(np.vstack([np.ones(400), x[1]]) * sign * labelled.steps)
        objective = PenalizedLoss(float(labelled.steps), 1.2, 1.0)
        count = 0
        plain = solver._Search.advance

        def counted(self: Any, plain: Any = plain, **how: Any) -> None:
            nonlocal count
            count += 1
            plain(self, **how)

        solver._Search.advance = counted  # type: ignore[method-assign, assignment]
        try:
            minimise(objective, rows, np.zeros(2))
        finally:
            solver._Search.advance = plain  # type: ignore[method-assign]
        seen.add(count)
    return seen


def _until(objective: PenalizedLoss, rows: Any, tilt: Any) -> Any:
    search = solver._Search(objective, rows, tilt)
    while np.linalg.norm(search.gradient()) > 1e-9:
        search.advance()
    return search.theta


def _time(minimise: Callable[[Any, Any, Any], Any]) -> Finding:
    return _said("Newton steps", float(len(evaluations(minimise))), 1.0)


@dataclass(frozen=True)
class _Quarter(LeastCurvature):
    """The eigenvalue moves with the record's own curvature alone, the minimiser stays where it is."""

    @property
    def reach(self) -> float:
        return self.map.longest * self.slope / 4


def _eigenvalue(kind: type[LeastCurvature]) -> Finding:
    """The largest change of the statistic over small data sets and one record more, over its stated sensitivity."""
    g = np.random.default_rng(3)
    labelled = LabelledRows(cf.schema.ModelMatrix.of("y ~ a", _SCHEMA))
    statistic = kind(labelled, 1.0, 2 * labelled.longest * (1 + 2.0**-20))
    stated = float(statistic.sensitivity_squared("add-remove")) ** 0.5
    worst = 0.0
    for _ in range(60):
        n = int(g.integers(20, 60))
        rows = np.vstack([np.ones(n), np.where(g.random(n) < 0.5, 1, -1) * 1.0]) * np.where(g.random(n) < 0.95, 1, -1)
        rows = np.rint(rows * labelled.steps / labelled.longest * 2**0.5 * 0.999)
        values = [int(statistic.of(part)[0]) for part in (rows, rows[:, 1:])]
        worst = max(worst, abs(values[0] - values[1]) / stated)
    return _said("least eigenvalue", worst, 1.0)


LOGISTIC = [
    law(
        "log term dropped",
        "the curve of objective perturbation leaves out the change of the determinant",
        lambda: _curve("objective perturbation", lambda e, s, lam: gaussian_delta(e, 1 / s)),
        lambda: _curve("objective perturbation", logistic_delta),
    ),
    law(
        "factor two reversed",
        "the curve of one sign is halved in the place of doubling it for two",
        lambda: _curve("objective perturbation", lambda e, s, lam: logistic_delta(e, s, lam) / 2),
        lambda: _curve("objective perturbation", logistic_delta),
    ),
    _minimiser("ridge times the records", "the ridge of a mean, with the bound of a sum", _Means),
    _minimiser("rows of any length", "no weight takes long rows back, the bound is that of short ones", _Unweighted),
    _minimiser(
        "one slope for two records", "a replaced record moves the minimiser by one bound", _Single, "substitute"
    ),
    _minimiser("solver without patience", "the solver stops at a gradient of a record's length", _Impatient),
    law(
        "stop on convergence",
        "the number of Newton steps follows from the records",
        lambda: _time(_until),
        lambda: _time(lambda objective, rows, tilt: objective.minimiser(rows, tilt, 1e-6)),
    ),
    law(
        "eigenvalue at a fixed point",
        "the minimiser's own way is forgotten in the sensitivity of the least eigenvalue",
        lambda: _eigenvalue(_Quarter),
        lambda: _eigenvalue(LeastCurvature),
    ),
    *FISHER_FAULTS,
    *FISHER_DRAWS,
]
