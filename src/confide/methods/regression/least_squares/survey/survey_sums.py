"""The rounds of a least-squares line under a survey's design: weights, the public PSUs, and the meat of persons or PSUs.

Before the rounds a noisy histogram of weights says where these are cut (`weight_cap`); then every sum of the rounds is over records that
are scaled by the root of omega = min(w, W)/W (`weighted_rows`), and the meat is that of `psu_meat`, at limits that begin at three standard
deviations and grow as far as its noise allows (`psu_limits`), until nobody is cut.

Guarantee: mu-GDP, add-remove or substitute: that of `score_sums`, whose bounds hold for any coordinates and residuals, hence for scaled
ones; one cell of the histogram moves by 1; the meat states its own. Weights, strata and PSUs are taken to follow from the person's own
record, which plans and results print. Sources: those of `score_sums`; Binder 1983.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.weight_cap import CELLS, WeightCells, hides, moments_of_omega
from confide.aggregates.clusters.cluster_meat import unit_caps
from confide.aggregates.clusters.psu_limits import LEAST, Limits as PsuLimits, Sampled
from confide.aggregates.clusters.psu_meat import PersonMeat, PsuMeat
from confide.aggregates.lines.coordinates import LocatedRows
from confide.aggregates.lines.whitened_rows import Frame
from confide.aggregates.scores.limits import Limits
from confide.aggregates.scores.weighted_rows import ByWeight, LongFeatures, LongScores
from confide.methods.regression.least_squares.score_sums import MeatAt, ScoreSums, Weighing, run_rounds
from confide.methods.regression.least_squares.standing import Standing
from confide.methods.regression.surveyed import WEIGHED, WEIGHTS, Drawn, Surveyed, meat_fineness, of_records
from confide.protocol import Gram, Meter, Plan, Source, Statistic, Total
from confide.schema import Design, Schema

__all__ = ["FINE_FEATURES", "FINE_SCORES", "SurveySums"]

#: Steps of the rows of A, whose products are exact in short blocks, and of b.
FINE_FEATURES, FINE_SCORES = 1 << 23, 1 << 26


@dataclass(frozen=True)
class Known:
    """What a draw knows before its rounds. mu: of the meat, over what one person moves it by."""

    weighing: Weighing = field(default_factory=Weighing)
    mu: float = 1.0


@dataclass(frozen=True)
class SurveySums(ScoreSums):
    """drawn: how the sample was drawn; bits: how fine the meat is; known: during a draw. Made by `SurveySums.of`."""

    drawn: Drawn = field(kw_only=True)
    bits: int = field(default=40, kw_only=True)
    known: Known = field(default=Known(), kw_only=True)

    @classmethod
    def of(cls, schema: Schema, design: Design, limit: str, clipping: bool) -> SurveySums:
        """From a schema with a design."""
        return cls(of_records(schema, design), limit, clipping, drawn=Drawn.of(schema))

    def within(self, amount: Fraction) -> SurveySums:
        """The same with a meat as fine as mu^2 allows."""
        return replace(self, bits=self.drawn.bits(amount))

    # plan -----------------------------------------------------------------------------------------------------------

    def _shares(self) -> tuple[dict[str, Fraction], dict[str, Fraction], dict[str, Fraction]]:
        common, long, short = super()._shares()
        first = {} if self.drawn.weight is None else {WEIGHTS: WEIGHED}
        rest = (1 - self.drawn.meat_share - sum(first.values())) / (1 - common.pop("meat"))
        scaled = [{name: rest * share for name, share in own.items()} for own in (common, long, short)]
        return {**first, **scaled[0], "meat": self.drawn.meat_share}, scaled[1], scaled[2]

    def _statistics(self, relation: str) -> dict[str, Statistic]:
        made = self._records(relation)
        found = {} if self.drawn.weight is None else {WEIGHTS: self.drawn.weights()}
        found |= {name: self.surveyed(one) for name, one in made.items()}
        return found | {"meat": self.drawn.inside(self._meat())}

    def _records(self, relation: str) -> dict[str, Statistic]:
        """What the rounds ask, of records, but the meat."""
        made = {name: one for name, one in super()._statistics(relation).items() if name != "meat"}
        made |= dict.fromkeys(("gram", "short gram"), Gram(LongFeatures(self.design, longest=FINE_FEATURES)))
        return made | dict.fromkeys(("cross", "short cross"), Total(LongScores(self.design, longest=FINE_SCORES)))

    def _explaining(self) -> dict[str, Statistic]:
        return {}

    def _meat(self) -> PersonMeat | PsuMeat:
        own = self.drawn
        scores = ByWeight(LongScores(self.design), own.weight)
        return (
            PersonMeat(scores, self.bits)
            if own.design.psu is None
            else PsuMeat(scores, own.listed, self.bits, caps=(1, 1))
        )

    def surveyed(self, statistic: Any) -> Statistic:
        """A statistic of records as one of persons by weight, in listed PSUs; a meat has its weights already."""
        if isinstance(statistic, PersonMeat | PsuMeat) or not isinstance(statistic.map, LocatedRows):
            return self.drawn.inside(statistic)
        return self.drawn.inside(replace(statistic, map=ByWeight(statistic.map, self.drawn.weight)))

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        own = self._planned(plan)
        plan = replace(plan, statistics=own._records(plan.relation) | {"meat": own._meat()})
        weight = self.drawn.weight
        if weight is None:
            return run_rounds(own, Surveyed(source, own), plan, meter, Weighing())
        (total,) = source.aggregate(self.drawn.weights())
        noisy = meter.draw(WEIGHTS, total)
        counts, sd = noisy.decode(), sqrt(noisy.variance)
        spend = plan.spend("cross")
        assert spend.noise_sd is not None
        level = float(spend.sensitivity * spend.step) / spend.noise_sd
        cap = own.drawn.cap(counts, sd, level, own.known.mu, len(self.design.terms) + 1)
        mean, second = moments_of_omega(
            counts, sd, WeightCells(weight, CELLS).edges, float(weight.term.low), cap.weight
        )
        # the few that may lie beyond what is seen count whole, or the limit of scores would cut what the cap left
        weighing = Weighing(mean, second / mean, LEAST if hides(counts, sd) else 0.0)
        own = replace(own, drawn=own.drawn.cut(cap.weight), known=replace(own.known, weighing=weighing))
        found = run_rounds(own, Surveyed(source, own), plan, meter, weighing)
        return found | {
            "cap": np.array([cap.weight, cap.lost, cap.persons, cap.over, cap.error]),
            "omega": np.array([mean, second]),
        }

    def _planned(self, plan: Plan) -> SurveySums:
        """With a meat as fine as the plan says."""
        bits, mu = meat_fineness(plan)
        return replace(self, bits=bits, known=Known(mu=mu))

    def meat_level(self, sd: float) -> float:
        wide = 1.0 if self.drawn.design.psu is None else 2 * self._sampled(1.0).spread(0.0)
        return 2.0**self.bits / sd / max(wide, 1.0)

    def _sampled(self, count: float) -> Sampled:
        """count: the noisy sum of omega."""
        own = self.known.weighing
        return Sampled(max(count / own.mean, 1.0), own.mean, own.mean * own.heavy, 1, self.drawn.design)

    def meat_at(self, planned: Statistic, frame: Frame, limits: Limits, standing: Standing, top: float) -> MeatAt:
        assert isinstance(planned, PersonMeat | PsuMeat)
        unit = limits.scale * sqrt(standing.metric.size)
        p = len(standing.metric.weights)
        own = PsuLimits.of(
            self._sampled(standing.count),
            self.known.mu / p,
            longest=max(top / unit, 1.0),
            centred=self.drawn.listed is not None,
        )
        person = top if own.whole else min(max(limits.meat, own.person * unit), top)
        whole = max(own.psu * unit, person)
        scores = ByWeight(LongScores(self.design).at(frame, person), self.drawn.weight)
        if isinstance(planned, PsuMeat):
            statistic: PersonMeat | PsuMeat = planned.at(
                scores, whole / person, own.centred, unit_caps(self.drawn.design, self._sampled(standing.count).persons)
            )
        else:
            statistic = planned.at(scores)
        facts = {"meat_form": np.array([float(statistic.longest), float(own.centred), whole])}
        if isinstance(statistic, PsuMeat):
            facts["meat_beyond"] = statistic.ruler
        limits = replace(limits, meat=person, cut=0.0 if own.whole else limits.cut)
        return MeatAt(statistic, limits, facts)
