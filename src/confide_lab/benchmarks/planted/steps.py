"""Planted faults of the methods that step, sketch or perturb: each a small slip in a proof or in a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from confide.core import Meter, Plan, Total
from confide.guarantees import ApproxDP
from confide.sums.coding import scaled
from confide_lab.aggregates.coefficients import CoefficientTotal, QuadraticCoefficients
from confide_lab.aggregates.scores import ClippedScores
from confide_lab.benchmarks.planted.kinds import mechanism, method
from confide_lab.benchmarks.planted.toy import LINE_SCHEMA
from confide_lab.methods.functional_mechanism import FunctionalMechanism
from confide_lab.methods.gradient_descent import GradientDescent
from confide_lab.methods.johnson_lindenstrauss import sketch_ratio
from confide_lab.methods.output_perturbation import OutputPerturbation

__all__ = ["STEPS"]


@dataclass(frozen=True)
class _EachCoordinate(ClippedScores):
    """Scores whose coordinates are clipped one by one, with the bound of the whole."""

    def __call__(self, codes: Any) -> Any:
        rows, _ = scaled(self.design, codes)
        error = rows[-1] - sum((row * w for row, w in zip(rows, self.theta, strict=False)), np.zeros(rows.shape[1]))
        return np.rint(np.clip(np.nan_to_num(rows[:-1] * error), -self.clip, self.clip) * self.unit)


@dataclass(frozen=True)
class _Coordinates(GradientDescent):
    """A descent on scores that are clipped coordinate by coordinate."""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        scores = made.statistics["step 1"].map
        assert isinstance(scores, ClippedScores)
        wrong = Total(_EachCoordinate(scores.design, scores.clip))
        return replace(made, statistics={k: s if k == "count" else wrong for k, s in made.statistics.items()})


@dataclass(frozen=True)
class _ExactSteps(GradientDescent):
    """A descent whose second step is taken at the line before noise; it publishes the noisy one."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        design = self._design(source.schema)
        _, rate, clip = self._settings(design)
        (present,) = source.aggregate(plan.statistic("count"))
        size = rate / max(float(meter.draw("count", present).decode()[0]), 1.0)
        scores = ClippedScores(design, clip)
        (first,) = source.aggregate(Total(scores))
        noisy = meter.draw("step 1", first).decode() * size / scores.unit
        exact = first.astype(float) * size / scores.unit
        (second,) = source.aggregate(Total(scores.at(exact)))
        theta = noisy + meter.draw("step 2", second).decode() * size / scores.unit
        return {"theta": theta}


@dataclass(frozen=True)
class _Triangle(CoefficientTotal):
    """The coefficients with a sensitivity that forgets the products with the response."""

    def sensitivity_l1(self, relation: str) -> Fraction:
        coefficients = self.map
        assert isinstance(coefficients, QuadraticCoefficients)
        return super().sensitivity_l1(relation) - coefficients.p * coefficients.unit


@dataclass(frozen=True)
class _Forgetful(FunctionalMechanism):
    """A functional mechanism with noise for the features' products alone."""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        wrong = _Triangle(made.statistics["coefficients"].map)
        right = made.statistics["coefficients"]
        less = wrong.sensitivity_l1(made.relation) / right.sensitivity_l1(made.relation)
        spend = made.spend("coefficients")
        event = replace(spend, sensitivity=spend.sensitivity * less, scale=spend.scale * less)
        return replace(made, event=event, statistics={"coefficients": wrong})


@dataclass(frozen=True)
class _ExactCount(OutputPerturbation):
    """Output perturbation whose penalty follows from the exact number of records."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        minimiser = self._minimiser(self._design(source.schema))
        (present,) = source.aggregate(plan.statistic("count"))
        meter.draw("count", present)
        penalty = self._penalty(float(present[0]), plan, minimiser)
        (line,) = source.aggregate(minimiser.at(penalty))
        meter.draw("minimiser", line)
        return {"penalty": np.array([penalty])}


_ROWS, _SKETCH = 20, ApproxDP(1.0, 0.01)


def _sketch(rows: int) -> Any:
    """The sum of squares of a sketch of 20 rows along one record, with w^2 of a sketch of `rows` rows: without and with the record."""
    ratio = sketch_ratio(_SKETCH.epsilon, _SKETCH.delta, rows)
    return lambda g, x, k: g.chisquare(_ROWS, size=k) * (1 + ratio * np.asarray(x))


STEPS = [
    method(
        "scores clipped coordinate by coordinate",
        "each entry of a score is cut at the clip, the noise is that of the whole score",
        _Coordinates("y ~ a", iterations=2, clip=0.3),
        GradientDescent("y ~ a", iterations=2, clip=0.3),
        LINE_SCHEMA,
    ),
    method(
        "step at the exact line",
        "a second step is taken at the line before noise",
        _ExactSteps("y ~ a", iterations=2),
        GradientDescent("y ~ a", iterations=2),
        LINE_SCHEMA,
    ),
    method(
        "products with the response forgotten",
        "the functional mechanism's sensitivity counts the features' products alone",
        _Forgetful("y ~ a"),
        FunctionalMechanism("y ~ a"),
        LINE_SCHEMA,
    ),
    method(
        "penalty from the exact count",
        "output perturbation's penalty follows from the exact number of records",
        _ExactCount("y ~ a"),
        OutputPerturbation("y ~ a"),
        LINE_SCHEMA,
    ),
    mechanism(
        "sketch calibrated for one row",
        "w^2 of a sketch of one row, for a sketch of 20",
        _sketch(1),
        _sketch(_ROWS),
        _SKETCH,
    ),
]
