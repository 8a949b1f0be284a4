"""The rounds of Fisher scoring under a survey's design: weights, the public PSUs, and the meat of persons or PSUs.

Before the rounds a noisy histogram of weights says where these are cut (`weight_cap`). Then a person's part of every sum of scores and
information is omega = min(w, W)/W times what it would be (`fisher_rows`), moments are those of records scaled by the root of omega
(`weighted_rows`), and the meat is that of `psu_meat`: scores of persons are cut at D times the root of E omega^2/E omega, sums of PSUs at
three standard deviations, or as far beyond as their noise allows (`psu_limits`).

Guarantee: mu-GDP, add-remove or substitute: that of `fisher_rounds`, whose bounds hold for any omega in [0, 1]; one cell of the histogram
moves by 1; the meat states its own. Weights, strata and PSUs are taken to follow from the person's own record, which plans and results
print. Sources: those of `fisher_rounds`; Binder 1983.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.weight_cap import CELLS, WeightCells, moments_of_omega
from confide.aggregates.clusters.cluster_meat import unit_caps
from confide.aggregates.clusters.psu_limits import Limits, Sampled
from confide.aggregates.clusters.psu_meat import PersonMeat, PsuMeat
from confide.aggregates.lines.coordinates import LocatedRows
from confide.aggregates.lines.rows import BOUND
from confide.aggregates.scores.fisher_families import Family
from confide.aggregates.scores.fisher_rows import FisherRows, InformationIndices, LongFisherScores
from confide.aggregates.scores.fisher_sums import Excess, SumAndExcess
from confide.aggregates.scores.weighted_rows import ByWeight
from confide.methods.regression.likelihood.fisher.fisher_rounds import AtLine, FisherRounds, Weighing, drawn_rounds
from confide.methods.regression.surveyed import WEIGHED, WEIGHTS, Drawn, Surveyed, meat_fineness, of_records
from confide.protocol import Meter, Plan, Source, Statistic
from confide.schema import Design, Schema

__all__ = ["SurveyRounds"]


@dataclass(frozen=True)
class SurveyRounds(FisherRounds):
    """drawn: how the sample was drawn; bits: how fine the meat is; during a draw mu: of the meat, over what one person moves it by, and
    weighing. Made by `SurveyRounds.of`.
    """

    drawn: Drawn = field(kw_only=True)
    bits: int = field(default=40, kw_only=True)
    mu: float = field(default=1.0, kw_only=True)
    weighing: Weighing = field(default=Weighing(), kw_only=True)

    # sampling variances differ from the model's; without noise steps go to the root itself
    sampled: ClassVar[float] = 0.0

    @classmethod
    def of(cls, schema: Schema, design: Design, family: Family) -> SurveyRounds:
        """From a schema with a design."""
        return cls(of_records(schema, design), family, drawn=Drawn.of(schema))

    def within(self, amount: Fraction) -> SurveyRounds:
        """The same with a meat as fine as mu^2 allows."""
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
            PersonMeat(scores, self.bits)
            if own.design.psu is None
            else PsuMeat(scores, own.listed, self.bits, caps=(1, 1))
        )

    def surveyed(self, statistic: Any) -> Statistic:
        """A statistic of records as one of persons by weight, in listed PSUs. A meat has its weights already; ranges and cells of N^2 count
        persons whole.
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
        weighing = Weighing(mean, second / mean)
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
        if isinstance(planned, PsuMeat):
            made: PersonMeat | PsuMeat = planned.at(
                scores, whole / person, limits.centred, unit_caps(own.design, sampled.persons)
            )
        else:
            assert isinstance(planned, PersonMeat)
            made = planned.at(scores)
        facts = {"meat_form": np.array([float(made.longest), float(limits.centred), whole, person])}
        return made, facts | ({"meat_beyond": made.ruler} if isinstance(made, PsuMeat) else {})
