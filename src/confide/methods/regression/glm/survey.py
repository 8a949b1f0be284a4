"""Logistic or probit coefficients of a population from a sample with a design: weights, strata and PSUs.

Estimates the root of sum over the population of z (y - P(z'theta)): its plain maximum-likelihood coefficients, whether or not the model
holds, from records that count by their weights. With trimmed weights it is the root of these, off by A^-1 sum (w - W)+ z r. To first
order that is at most e/(1 - e) times the sum of omega times `DISTANCE` root mean squares of a score. There e is the lost share of
weight with what noise may hide (`cells/weighted_cells`). Every interval is widened by that.

Guarantee: mu-GDP, add-remove or substitute (`survey`).

Interval: Student t with a sandwich covariance whose meat is that of persons, or of PSUs, within strata over public lists: R's `svyglm`
without noise. Degrees of freedom are at most PSUs less strata less slopes. What records with extreme features may move is treated as
without a design (`method`). Source: Binder 1983; the trimming as for `cf.tables.means`.

The rounds of Fisher scoring under a survey's design: weights, the public PSUs, and the meat of persons or PSUs.

Before the rounds a noisy histogram of weights says where these are trimmed (`cells/weighted_cells`). Then a person's part of every sum
of scores and information is omega = min(w, W)/W times what it would be (`fisher_rows`). Moments are over records scaled by the root of
omega (`least_squares/survey`), and the meat is that of `clusters/psu_covariance`. Scores of persons are limited at D times the root of
E omega^2/E omega. Sums of PSUs are limited at three standard deviations, or beyond where their noise allows
(`clusters/cluster_covariance`).

Guarantee: mu-GDP, add-remove or substitute: that of `draw`, whose bounds hold for any omega in [0, 1]; one cell of the histogram moves
by 1; the meat states its own. Weights, strata and PSUs are assumed to follow from the person's own record, which plans and results
print. Sources: the sources of `draw`; Binder 1983.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Allowance, BudgetItem, Meter, Plan, Release, ResultOptions, Source, Statistic
from confide.core.events import leaves
from confide.errors import PlanError
from confide.methods.regression.glm.coefficients import FisherSandwich
from confide.methods.regression.glm.draw import PASSES, AtLine, FisherRounds, FisherWeights, drawn_rounds
from confide.methods.regression.glm.fisher_families import Family
from confide.methods.regression.glm.fisher_rows import FisherRows, InformationIndices, LongFisherScores
from confide.methods.regression.glm.method import FisherLine, has_numbers
from confide.methods.regression.glm.reading import AGAINST, FisherReading, SparseLevel
from confide.methods.regression.glm.results import LogisticEstimates, MeanSlope, ModelEstimates
from confide.methods.regression.glm.sums import Excess, SumAndExcess
from confide.methods.regression.least_squares.survey import ByWeight
from confide.methods.regression.sums.whitened_rows import LocatedRows
from confide.methods.regression.survey_scores import (
    FLOOR,
    HIDDEN,
    WEIGHED,
    WEIGHTS,
    Hidden,
    OfPopulation,
    OfUnits,
    SampleDesign,
    Surveyed,
    SurveyRead,
    meat_fineness,
    needs_terms,
    of_records,
)
from confide.schema import ModelMatrix, Schema
from confide.sums.cells.weighted_cells import CELLS, WeightCells, moments_of_omega
from confide.sums.clusters.cluster_covariance import PSU_OUTCOME, Limits, Sampled, unit_caps
from confide.sums.clusters.psu_covariance import PersonCovariance, PsuCovariance
from confide.sums.coding import BOUND


@dataclass(frozen=True)
class SurveyRounds(FisherRounds):
    """drawn: how the sample was drawn; bits: how fine the meat is; during a draw mu: of the meat, over what one person moves it by, and
    weighing. Made by `SurveyRounds.of`.
    """

    drawn: SampleDesign = field(kw_only=True)
    bits: int = field(default=40, kw_only=True)
    mu: float = field(default=1.0, kw_only=True)
    weighing: FisherWeights = field(default=FisherWeights(), kw_only=True)

    # sampling variances differ from the model's; without noise steps go to the root itself
    sampled: ClassVar[float] = 0.0

    @classmethod
    def of(cls, schema: Schema, design: ModelMatrix, family: Family) -> SurveyRounds:
        """From a schema with a design."""
        return cls(of_records(schema, design), family, drawn=SampleDesign.of(schema))

    def within(self, amount: Fraction) -> SurveyRounds:
        """The same with a meat as fine as the budget allows."""
        return replace(self, bits=self.drawn.bits(amount))

    # plan -----------------------------------------------------------------------------------------------------------

    @property
    def _common(self) -> Mapping[str, int]:
        first = {} if self.drawn.weight is None else {WEIGHTS: int(100 * WEIGHED)}
        return {**first, **super()._common, "meat": int(100 * self.drawn.meat_share)}

    def _statistics(self) -> dict[str, Statistic]:
        found = {} if self.drawn.weight is None else {WEIGHTS: self.drawn.weights()}
        return found | {name: self.surveyed(one) for name, one in super()._statistics().items()}

    @property
    def meat(self) -> Statistic:
        own = self.drawn
        scores = LongFisherScores(self.design, family=self.family, weight=own.weight)
        return (
            PersonCovariance(scores, self.bits)
            if own.design.psu is None
            else PsuCovariance(scores, own.listed, self.bits, caps=(1, 1))
        )

    def surveyed(self, statistic: Any) -> Statistic:
        """A statistic of records as one of persons by weight, in listed PSUs. A meat has its weights already; cells of N^2 count persons
        whole.
        """
        weight = self.drawn.weight
        if isinstance(statistic, SumAndExcess):
            rows, excess = replace(statistic.sums.map, weight=weight), replace(statistic.excess, weight=weight)
            statistic = SumAndExcess(replace(statistic.sums, map=rows), excess)
        elif isinstance(statistic.map, FisherRows | Excess | InformationIndices):
            statistic = replace(statistic, map=replace(statistic.map, weight=weight))
        elif isinstance(statistic.map, LocatedRows):
            statistic = replace(statistic, map=ByWeight(statistic.map, weight))
        return self.drawn.inside(statistic)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        bits, mu = meat_fineness(plan)
        own, weight = replace(self, bits=bits, mu=mu), self.drawn.weight
        # the rounds hold the statistics of records; the source makes them those of the survey
        plan = replace(plan, statistics=FisherRounds._statistics(own))
        if weight is None:
            return drawn_rounds(own, Surveyed(source, own), plan, meter)
        (total,) = source.aggregate(self.drawn.weights())
        noisy = meter.draw(WEIGHTS, total)
        counts, sd = noisy.decode(), sqrt(noisy.variance)
        noise = plan.spend("last").noise_sd
        assert noise is not None
        cap = own.drawn.cap(counts, sd, BOUND / noise, mu, len(self.design.terms) + 1)
        edges = WeightCells(weight, CELLS).edges
        mean, second = moments_of_omega(counts, sd, edges, float(weight.term.low), cap.weight)
        weighing = FisherWeights(mean, second / mean)
        own = replace(own, drawn=own.drawn.cut(cap.weight), weighing=weighing)
        found = drawn_rounds(own, Surveyed(source, own), plan, meter, weighing)
        return found | {
            "cap": np.array([cap.weight, cap.lost, cap.persons, cap.over, cap.error]),
            "omega": np.array([mean, second]),
        }

    def meat_at(self, planned: Statistic, at: AtLine) -> tuple[Statistic, dict[str, NDArray[Any]]]:
        own, p, weighing = self.drawn, len(at.gram), self.weighing
        # the sd of a person's score of the whole weight, where the model holds
        unit = sqrt(max(float(np.trace(at.gram)) / at.family.scale / at.records, 1e-12))
        sampled = Sampled(
            max(at.records / weighing.mean, 1.0), weighing.mean, weighing.mean * weighing.heavy, 1, own.design
        )
        longest = max(at.bound / unit, 1.0)
        # few are near omega = 1 where weights are uneven, and an outcome that is rare has no score of three sds but D's length
        limits = Limits.of(sampled, self.mu / p, longest=longest, centred=own.listed is not None, first=longest)
        person = min(limits.person * unit, at.bound)
        whole = max(limits.psu * unit, person)
        scores = LongFisherScores(self.design, family=at.family, weight=own.weight, limit=person)
        scores = scores.at(at.frame, at.alpha, at.bound)
        if isinstance(planned, PsuCovariance):
            made: PersonCovariance | PsuCovariance = planned.at(
                scores, whole / person, limits.centred, unit_caps(own.design, sampled.persons)
            )
        else:
            assert isinstance(planned, PersonCovariance)
            made = planned.at(scores)
        facts = {"meat_form": np.array([float(made.longest), float(limits.centred), whole, person])}
        return made, facts | ({"meat_beyond": made.ruler} if isinstance(made, PsuCovariance) else {})


@dataclass(frozen=True)
class SurveyFisherLine(FisherLine):
    """The way to a line of an outcome of two values under the design of a schema."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weighted:
            raise PlanError(
                "target='weighted' down-weights records with extreme features, and under a design records "
                "count by their weights",
                "leave target out",
            )
        needs_terms(self.design, "share")

    @cached_property
    def _survey(self) -> SurveyRounds:
        return SurveyRounds.of(self.schema, self.design, self.family)

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of all branches, as keywords of `Plan.of`."""
        rounds = self._survey.within(allowance.amount)
        event, statistics = rounds.plan(allowance)
        meat = next(one for one in leaves(event) if isinstance(one, BudgetItem) and one.name == "meat")
        told, far = (sqrt(meat.mu_squared), len(self.design.terms) + 1), PSU_OUTCOME[has_numbers(self.design)]
        return {
            "event": event,
            "statistics": statistics,
            "passes": PASSES + (WEIGHTS in statistics),
            "target": f"{self._model}, maximum likelihood, {rounds.drawn.design.words}",
            "intervals_for": (
                "the population's plain maximum-likelihood coefficients, whether or not the model holds; linearized variances; "
                f"{rounds.drawn.alike}; privacy noise"
            ),
            "warnings": tuple(rounds.drawn.warnings(*told, outcome=far)),
            "notes": rounds.drawn.notes(*told, n, outcome=far),
        }

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        """The histogram of weights and the rounds."""
        return self._survey.draw(source, plan, meter)

    def table(self, release: Release, options: ResultOptions) -> ModelEstimates:
        """The table of coefficients."""
        return SurveyFisherReading(release, options, self._survey.design, self.levels, self.family).table()


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
        """Records count individually."""
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
    def quiet(self) -> list[SparseLevel]:
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
