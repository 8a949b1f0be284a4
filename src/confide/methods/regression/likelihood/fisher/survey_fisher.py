"""A logistic or probit line of a population from a sample with a design: weights, strata and PSUs.

Estimates the root of sum over the population of z (y - P(z'theta)): its plain maximum-likelihood coefficients, whether or not the model
holds, from records that count by their weights. With capped weights it is the line of these, off by A^-1 sum (w - W)+ z r, to first order
at most by e/(1 - e) times the sum of omega times `DISTANCE` root mean squares of a score, e the lost share of weight with what may hide in
noise (`weight_cap`); every interval is widened by that.

Guarantee: mu-GDP, add-remove or substitute (`survey_rounds`).

Interval: Student t with a sandwich covariance whose meat is that of persons, or of PSUs, within strata over public lists: R's `svyglm`
without noise. Degrees of freedom are at most PSUs less strata less slopes. What records far out in their features may move is treated as
without a design (`fisher_line`). Source: Binder 1983; the cap as for `cf.tables.means`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.clusters.psu_limits import OUTCOME
from confide.aggregates.scores.fisher_rows import LongFisherScores
from confide.errors import PlanError
from confide.methods.regression.likelihood.fisher.answers.fisher_effects import MeanSlope
from confide.methods.regression.likelihood.fisher.answers.fisher_levels import AGAINST, QuietLevel
from confide.methods.regression.likelihood.fisher.answers.fisher_reading import FisherReading
from confide.methods.regression.likelihood.fisher.answers.fisher_sandwich import FisherSandwich
from confide.methods.regression.likelihood.fisher.fisher_line import FisherLine, has_numbers
from confide.methods.regression.likelihood.fisher.fisher_rounds import PASSES
from confide.methods.regression.likelihood.fisher.survey_rounds import SurveyRounds
from confide.methods.regression.likelihood.logistic_results import LogisticEstimates
from confide.methods.regression.likelihood.model_results import ModelEstimates
from confide.methods.regression.surveyed import (
    FLOOR,
    HIDDEN,
    WEIGHTS,
    Hidden,
    OfPopulation,
    OfUnits,
    SurveyRead,
    needs_terms,
)
from confide.protocol import Allowance, Meter, Plan, Question, Release, Source, Spend
from confide.protocol.events import leaves

__all__ = ["SurveyFisherLine", "SurveyLogisticEstimates"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SurveyFisherLine(FisherLine):
    """The way to a line of an outcome of two values under the design of a schema."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weighted:
            raise PlanError(
                "target='weighted' is the line of records that count less where their features lie far out, and under a design records "
                "count by their weights; leave target out"
            )
        needs_terms(self.design, "share")

    @cached_property
    def _survey(self) -> SurveyRounds:
        return SurveyRounds.of(self.schema, self.design, self.family)

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of all branches, as keywords of `Plan.of`."""
        rounds = self._survey.within(allowance.amount)
        event, statistics = rounds.plan(allowance)
        meat = next(one for one in leaves(event) if isinstance(one, Spend) and one.name == "meat")
        told, far = (sqrt(meat.mu_squared), len(self.design.terms) + 1), OUTCOME[has_numbers(self.design)]
        return {
            "event": event,
            "statistics": statistics,
            "passes": PASSES + (WEIGHTS in statistics),
            "target": f"{self._model}, maximum likelihood, {rounds.drawn.design.words}",
            "covers": (
                "the population's plain maximum-likelihood coefficients, whether or not the model holds; linearised variances; "
                f"{rounds.drawn.alike}; privacy noise"
            ),
            "warnings": tuple(rounds.drawn.warnings(*told, outcome=far)),
            "notes": rounds.drawn.notes(*told, n, outcome=far),
        }

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        """The histogram of weights and the rounds."""
        return self._survey.draw(source, plan, meter)

    def table(self, release: Release, question: Question) -> ModelEstimates:
        """The table of coefficients."""
        return SurveyFisherReading(release, question, self._survey.design, self.levels, self.family).table()


@dataclass(frozen=True, eq=False, repr=False)
class SurveyLogisticEstimates(OfPopulation, LogisticEstimates):
    """Coefficients of a population's line of log-odds, or of normal quantiles. drawn: the design in words."""

    drawn: str = ""

    @property
    def _no_mean_slope(self) -> str:
        return (
            "under a design the sum of the weights is not released as finely as a mean slope needs; predictions at given rows have "
            "intervals (get_prediction)"
        )


@dataclass(frozen=True, eq=False)
class SurveySandwich(OfUnits, FisherSandwich):
    """A sandwich over C PSUs, or persons, in H strata. free: C - H - slopes."""

    @cached_property
    def middle(self) -> Array:
        values, vectors = self._eigen
        if not len(values):
            return np.zeros((len(vectors), len(vectors)))
        root, inverse = vectors * np.sqrt(values), vectors / np.sqrt(values)
        whole = self.factor * self.scale * (inverse.T @ self.meat @ inverse)
        sizes, axes = np.linalg.eigh((whole + whole.T) / 2)
        # noise may leave almost nothing of a meat in some direction
        noise = self.factor * self.scale * self.sd_meat * ((inverse @ axes) ** 2).sum(axis=0)
        sizes = np.maximum(sizes, np.minimum(FLOOR * self.light, np.maximum(sizes, 0.0) + HIDDEN * noise))
        return np.asarray(root @ (axes * sizes) @ axes.T @ root.T / self.scale)

    def alone(self, factor: float = 1.0, light: float = 1.0) -> Array:
        return super().alone(self.factor, self.light)

    @property
    def sampling_df(self) -> float:
        return min(super().sampling_df, max(self.free, 1.0))

    @property
    def df(self) -> Array:
        return np.minimum(super().df, max(self.free, 1.0))


@dataclass(frozen=True, eq=False)
class SurveyFisherReading(SurveyRead, FisherReading):
    """A release of weighted sums."""

    @cached_property
    def counting(self) -> None:
        """Records count by themselves."""
        return None

    @property
    def _mass(self) -> float:
        return max(self._records * self.survey.omega[0], 1.0)

    @property
    def _few_units(self) -> str:
        return self.survey.few

    @cached_property
    def _whole(self) -> SurveySandwich:
        base, noisy = super()._whole, self.release["meat"]
        longest, _, _, limit = self._public("meat_form")
        bound = float(self._public("bound")[0])
        steps = LongFisherScores(self.design, bound=bound, longest=int(longest), limit=float(limit)).steps
        count, free, factor = self.survey.independent(self.survey.centred)
        own = {each.name: getattr(base, each.name) for each in fields(base)}
        kept = len(base.last.gram)
        own |= {
            "meat": noisy.decode()[:kept, :kept] / steps**2,
            "sd_meat": sqrt(noisy.variance) / steps**2,
            "units": count,
        }
        light, free = self.survey.light, free - len(self.design.terms)
        return SurveySandwich(**own, factor=factor * self.survey.scale, free=free, light=light)

    @cached_property
    def _cut(self) -> Hidden | None:
        s = self.sandwich
        return self.survey.hidden(s.rows @ s.bread, s.meat, s.last.gram / s.scale, self._mass)

    @cached_property
    def bias(self) -> Array:
        """As without a design, and from the cut of weights."""
        return np.asarray(super().bias + (0.0 if self._cut is None else self._cut.lengths))

    @cached_property
    def _covariance(self) -> Array:
        return super()._covariance + (0.0 if self._cut is None else self._cut.error)

    @cached_property
    def quiet(self) -> list[QuietLevel]:
        """Levels with next to no records of one outcome, by weight; counts are told in records of the mean weight."""
        each = self._mass / self._records
        own = super().quiet
        return [
            one  # counted in records
            if one.outcome == AGAINST
            else replace(one, count=replace(one.count, count=one.count.count / each, sd=one.count.sd / each))
            for one in own
        ]

    # how it is told ---------------------------------------------------------------------------------------------------

    @property
    def _effects(self) -> Callable[[], MeanSlope | None] | None:
        return None

    @property
    def _kind(self) -> Any:
        return SurveyLogisticEstimates

    def _made(self, **more: Any) -> ModelEstimates:
        more["reason"] = self.survey.reason(more["status"], more.get("reason", ""))
        return super()._made(**more, drawn=self.survey.design.words)
