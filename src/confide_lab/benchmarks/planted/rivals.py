"""Planted faults of rival lines: clips, balls and proofs in the wrong place, and marks that exact matrices decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import confide as cf
from confide.core import Gram, Meter, Plan, Source, Total
from confide.methods.regression.certified.sums import BoundedRows
from confide.testing import checks, contract as side_doors
from confide_lab.aggregates import minimiser
from confide_lab.aggregates.coefficients import QuadraticCoefficients
from confide_lab.aggregates.minimiser import BallMinimiser
from confide_lab.aggregates.scores import ClippedScores
from confide_lab.benchmarks.planted.kinds import Fault, contract, neighbors
from confide_lab.methods.adassp import AdaSSP
from confide_lab.methods.analyze_gauss import AnalyzeGauss
from confide_lab.methods.boosted_adassp import BoostedAdaSSP
from confide_lab.methods.functional_mechanism import FunctionalMechanism
from confide_lab.methods.gradient_descent import GradientDescent
from confide_lab.methods.johnson_lindenstrauss import JohnsonLindenstrauss
from confide_lab.methods.output_perturbation import OutputPerturbation

__all__ = ["RIVALS"]

_SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})

# rivals ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Unclipped(ClippedScores):
    """Scores of a clip that none of them reaches, in the steps of the smaller one."""

    def __call__(self, codes: Any) -> Any:
        wide = ClippedScores(self.design, 100.0, self.theta, self.box)
        return np.rint(wide(codes) * (self.unit / wide.unit))


class _ClippedSum(Total):
    """The sum is clipped to the length that a single score may have."""

    def value(self, state: Any) -> Any:
        total = super().value(state)
        most = float(self.map.l2_squared) ** 0.5
        length = float(np.sqrt((np.asarray(total, dtype=float) ** 2).sum()))
        return total if length <= most else np.array([int(float(v) * most / length) for v in total], dtype=object)


@dataclass(frozen=True)
class _ClipsTheSum(GradientDescent):
    """The sum of the scores is clipped, the scores are not."""

    name: ClassVar[str] = "planted_descent"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        clip = self._settings(self._design(source.schema))[2]

        class Clipping:
            """The records, whose sums of scores are clipped."""

            schema = source.schema

            @staticmethod
            def aggregate(*statistics: Any) -> Any:
                changed = [
                    _ClippedSum(_Unclipped(one.map.design, clip, one.map.theta))
                    if isinstance(one.map, ClippedScores)
                    else one
                    for one in statistics
                ]
                return source.aggregate(*changed)

        return super().draw(Clipping, plan, meter)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _StopsWhenSmall(BoostedAdaSSP):
    """Rounds end when the exact score is small; the others are drawn around zero."""

    name: ClassVar[str] = "planted_boosting"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        stopped: list[bool] = []

        class Lazy:
            """The records, which are not read again once a score was small."""

            schema = source.schema

            @staticmethod
            def aggregate(*statistics: Any) -> Any:
                if stopped:
                    return tuple(np.zeros(one.shape, dtype=object) for one in statistics)
                found = source.aggregate(*statistics)
                if not isinstance(statistics[0], Gram) and max(abs(int(v)) for v in found[0]) < 1 << 20:
                    stopped.append(True)
                return found

        return super().draw(Lazy, plan, meter)  # type: ignore[arg-type]


class _NoBall(BallMinimiser):
    """The minimiser over the whole space."""

    def integers(self, gram: Any) -> Any:
        own = minimiser._in_ball
        try:
            minimiser._in_ball = lambda inner, moment, lam, radius: own(inner, moment, lam, 1e9)
            return super().integers(gram)
        finally:
            minimiser._in_ball = own


@dataclass(frozen=True)
class _Unbounded(OutputPerturbation):
    """The line is not kept in the ball that bounds its slope."""

    name: ClassVar[str] = "planted_output"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        own = made.statistics["minimiser"]
        assert isinstance(own, BallMinimiser)
        wrong = _NoBall(own.map, own.radius, own.start, own.basis)
        return replace(made, statistics={**made.statistics, "minimiser": wrong})


@dataclass(frozen=True)
class _SingleRows(JohnsonLindenstrauss):
    """A sketch whose proof is for single rows takes units of several."""

    name: ClassVar[str] = "planted_sketch"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        single = cf.Schema({name: schema[name] for name in schema.names})
        return super().plan(single, privacy, n=n, public=public)


class _Imputed(BoundedRows):
    """Rows whose missing features are taken from the other records of the batch."""

    def __call__(self, codes: Any) -> Any:
        filled = codes.copy()
        for row in filled[: len(self.design.terms)]:
            row[row < 0] = np.rint(row[row >= 0].mean()) if (row >= 0).any() else 0.0
        return super().__call__(filled)


@dataclass(frozen=True)
class _MeanForMissing(AnalyzeGauss):
    """A missing value gets the mean of the others."""

    name: ClassVar[str] = "planted_gauss"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        own = made.statistics["moments"].map
        assert isinstance(own, BoundedRows)
        return replace(made, statistics={"moments": Gram(_Imputed(own.design, own.length, joint=True))})


@dataclass(frozen=True)
class _SaysSingular(AdaSSP):
    """Whether the exact matrix is singular is said beside the noisy one."""

    name: ClassVar[str] = "planted_adassp"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = super().draw(source, plan, meter)
        (least,) = source.aggregate(plan.statistic("eigenvalue"))
        return {**public, "singular": np.array([int(least[0]) == 0])}


@dataclass(frozen=True)
class _CountsTrimmed(FunctionalMechanism):
    """How many directions are below the noise is counted on the exact matrix."""

    name: ClassVar[str] = "planted_functional"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = super().draw(source, plan, meter)
        own = QuadraticCoefficients(self._design(source.schema))
        (total,) = source.aggregate(plan.statistic("coefficients"))
        gram, _ = own.decode(np.asarray(total, dtype=float))
        sd = meter.drawn("coefficients").variance ** 0.5 / own.unit
        return {**public, "trimmed": np.array([int((np.linalg.eigvalsh(gram) < 4 * sd).sum())])}


# the list -------------------------------------------------------------------------------------------------------------


def _frame(*parts: tuple[int, float, float]) -> pd.DataFrame:
    """So many records (a, y) each."""
    return pd.DataFrame([row[1:] for row in parts for _ in range(row[0])], columns=["a", "y"], dtype=float)


_LEVEL = cf.GDP(1.0, relation="add-remove")
# the score of one record is below the limit, that of two is not
_FEW = _frame((1, 1.0, 1.0)), _frame((2, 1.0, 1.0))
_ACROSS = _frame((1, 0.0, 1.0)), _frame((1, 0.0, 1.0), (1, 1.0, -1.0))
# two clusters that are close together and far apart in y: a steep line, which one record more at the end moves
_STEEP = _frame((500, 0.03, 1.0), (500, -0.03, -1.0)), _frame((500, 0.03, 1.0), (500, -0.03, -1.0), (1, 1.0, -1.0))

RIVALS: list[Fault] = [
    neighbors(
        "clipped after summing",
        "the sum of the scores is clipped, the scores are not",
        _ClipsTheSum("y ~ a", iterations=1),
        GradientDescent("y ~ a", iterations=1),
        _SCHEMA,
        _LEVEL,
        _ACROSS,
    ),
    neighbors(
        "rounds until the score is small",
        "an exact score ends the rounds, so that the number of passes tells it",
        _StopsWhenSmall("y ~ a", rounds=3),
        BoostedAdaSSP("y ~ a", rounds=3),
        _SCHEMA,
        _LEVEL,
        _FEW,
    ),
    neighbors(
        "a minimiser without its ball",
        "the line has any length, and a residual is as large",
        _Unbounded("y ~ a", penalty=1.0),
        OutputPerturbation("y ~ a", penalty=1.0),
        _SCHEMA,
        _LEVEL,
        _STEEP,
    ),
    contract(
        "a sketch for a single row",
        "the proof is for single rows, and units of several are taken",
        side_doors.a_unit_of_more_rows_gets_more_noise,
        _SingleRows("y ~ a", rows=200),
        JohnsonLindenstrauss("y ~ a", rows=200),
        _SCHEMA,
        cf.ApproxDP(1.0, 1e-6),
    ),
    contract(
        "the mean for a missing value",
        "a missing value becomes the mean of the other records of the batch",
        checks._maps_one_record,
        _MeanForMissing("y ~ a"),
        AnalyzeGauss("y ~ a"),
        _SCHEMA,
        _LEVEL,
    ),
    contract(
        "singular is said of the exact matrix",
        "a mark beside the noisy matrix tells whether the exact one has an inverse",
        side_doors.what_stands_beside_follows_from_what_leaves,
        _SaysSingular("y ~ a"),
        AdaSSP("y ~ a"),
        _SCHEMA,
        _LEVEL,
    ),
    contract(
        "directions counted on the exact matrix",
        "how many directions are below the noise is counted before it is added",
        side_doors.what_stands_beside_follows_from_what_leaves,
        _CountsTrimmed("y ~ a"),
        FunctionalMechanism("y ~ a"),
        _SCHEMA,
        cf.PureDP(1.0, relation="add-remove"),
    ),
]
