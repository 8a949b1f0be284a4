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
from math import log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.histogram import Histogram
from confide.aggregates.cells.weight_cap import CELLS, Cap, WeightCells, hides, moments_of_omega
from confide.aggregates.cells.weighted_cells import CappedWeight
from confide.aggregates.coordinates import LocatedRows
from confide.aggregates.psu_limits import LEAST, Sampled, hidden_part
from confide.aggregates.psu_limits import Limits as PsuLimits
from confide.aggregates.psu_meat import Listed, PersonMeat, PsuMeat, bits_for
from confide.aggregates.scores.limits import Limits
from confide.aggregates.scores.weighted_rows import ByWeight, LongFeatures, LongScores
from confide.aggregates.whitened_rows import Frame
from confide.methods.regression.least_squares.score_sums import (
    MeatAt,
    ScoreSums,
    Standing,
    Weighing,
    run_rounds,
)
from confide.protocol import Gram, Meter, Plan, Source, Statistic, Total
from confide.protocol.source import Behind
from confide.protocol.where import Subset
from confide.schema import Design, Schema, SurveyDesign

__all__ = ["FINE_FEATURES", "FINE_SCORES", "WEIGHTS", "SurveySums"]

#: The name of the histogram of weights.
WEIGHTS = "(weights)"

#: Steps of the rows of A, whose products are exact in short blocks, and of b.
FINE_FEATURES, FINE_SCORES = 1 << 23, 1 << 26

# Of mu^2: the histogram of weights; the meat of persons and of PSUs, of which `COMMON` has 8 % already.
_HISTOGRAM, _PERSONS, _PSUS = Fraction(4, 100), Fraction(8, 100), Fraction(20, 100)


class _Surveyed(Behind):
    """A source whose sums are those of a survey: what the rounds are handed."""

    def __init__(self, source: Source, sums: SurveySums) -> None:
        super().__init__(source)
        self._sums = sums

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        return self._source.aggregate(*(self._sums.surveyed(one) for one in statistics))


@dataclass(frozen=True)
class Known:
    """What a draw knows before its rounds. mu: of the meat, over what one person moves it by."""

    weighing: Weighing = field(default_factory=Weighing)
    mu: float = 1.0


@dataclass(frozen=True)
class SurveySums(ScoreSums):
    """drawn: the schema's design; weight, listed: its weights and public PSUs; bits: how fine the meat is; known: during a draw.

    Made by `SurveySums.of`.
    """

    drawn: SurveyDesign = field(kw_only=True)
    weight: CappedWeight | None = field(kw_only=True)
    listed: Listed | None = field(kw_only=True)
    bits: int = field(default=40, kw_only=True)
    known: Known = field(default=Known(), kw_only=True)

    @classmethod
    def of(cls, schema: Schema, design: Design, limit: str, clipping: bool) -> SurveySums:
        """From a schema with a design."""
        drawn = schema.design
        assert drawn is not None
        # the rounds know records alone: no units, clusters or design
        plain = Schema({name: schema[name] for name in schema.names}, dataset=schema.dataset)
        weight = None if drawn.weight is None else CappedWeight.named(drawn.weight, schema)
        return cls(
            replace(design, schema=plain),
            limit,
            clipping,
            drawn=drawn,
            weight=weight,
            listed=Listed.of(schema),
        )

    def within(self, amount: Fraction) -> SurveySums:
        """The same with a meat as fine as mu^2 allows."""
        return replace(self, bits=bits_for(sqrt(amount * self._meat_share)))

    @property
    def _meat_share(self) -> Fraction:
        return _PERSONS if self.drawn.psu is None else _PSUS

    # plan -----------------------------------------------------------------------------------------------------------

    def _shares(self) -> tuple[dict[str, Fraction], dict[str, Fraction], dict[str, Fraction]]:
        common, long, short = super()._shares()
        first = {} if self.weight is None else {WEIGHTS: _HISTOGRAM}
        rest = (1 - self._meat_share - sum(first.values())) / (1 - common.pop("meat"))
        scaled = [{name: rest * share for name, share in own.items()} for own in (common, long, short)]
        return {**first, **scaled[0], "meat": self._meat_share}, scaled[1], scaled[2]

    def _statistics(self, relation: str) -> dict[str, Statistic]:
        made = self._records(relation)
        found = {} if self.weight is None else {WEIGHTS: self.weights()}
        found |= {name: self.surveyed(one) for name, one in made.items()}
        return found | {"meat": self._inside(self._meat())}

    def _records(self, relation: str) -> dict[str, Statistic]:
        """What the rounds ask, of records, but the meat."""
        made = {name: one for name, one in super()._statistics(relation).items() if name != "meat"}
        made |= dict.fromkeys(("gram", "short gram"), Gram(LongFeatures(self.design, longest=FINE_FEATURES)))
        return made | dict.fromkeys(("cross", "short cross"), Total(LongScores(self.design, longest=FINE_SCORES)))

    def weights(self) -> Statistic:
        """The histogram of weights."""
        assert self.weight is not None
        return self._inside(Histogram(WeightCells(self.weight, CELLS)))

    def _meat(self) -> PersonMeat | PsuMeat:
        scores = ByWeight(LongScores(self.design), self.weight)
        return PersonMeat(scores, self.bits) if self.drawn.psu is None else PsuMeat(scores, self.listed, self.bits)

    def surveyed(self, statistic: Any) -> Statistic:
        """A statistic of records as one of persons by weight, in listed PSUs; a meat has its weights already."""
        if isinstance(statistic, PersonMeat | PsuMeat) or not isinstance(statistic.map, LocatedRows):
            return self._inside(statistic)
        return self._inside(replace(statistic, map=ByWeight(statistic.map, self.weight)))

    def _inside(self, statistic: Statistic) -> Statistic:
        return statistic if self.listed is None else Subset(statistic, self.listed)  # type: ignore[arg-type]

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        own = self._planned(plan)
        plan = replace(plan, statistics=own._records(plan.relation) | {"meat": own._meat()})
        if self.weight is None:
            return run_rounds(own, _Surveyed(source, own), plan, meter, Weighing())
        (total,) = source.aggregate(self.weights())
        noisy = meter.draw(WEIGHTS, total)
        counts, sd = noisy.decode(), sqrt(noisy.variance)
        cap = own._cap(counts, sd, plan)
        edges, low = WeightCells(self.weight, CELLS).edges, float(self.weight.term.low)
        mean, second = moments_of_omega(counts, sd, edges, low, cap.weight)
        # the few that may lie beyond what is seen count whole, or the limit of scores would cut what the cap left
        weighing = Weighing(mean, second / mean, LEAST if hides(counts, sd) else 0.0)
        own = replace(own, weight=self.weight.at(cap.weight), known=replace(own.known, weighing=weighing))
        found = run_rounds(own, _Surveyed(source, own), plan, meter, weighing)
        return found | {"cap": np.array([cap.weight, cap.lost, cap.persons]), "omega": np.array([mean, second])}

    def _planned(self, plan: Plan) -> SurveySums:
        """With a meat as fine as the plan says."""
        spend = plan.spend("meat")
        assert spend.noise_sd is not None
        moved = float(spend.sensitivity * spend.step) / (2 if plan.relation == "substitute" else 1)
        return replace(self, bits=round(log2(moved)), known=Known(mu=moved / spend.noise_sd))

    def _cap(self, counts: NDArray[Any], sd: float, plan: Plan) -> Cap:
        assert self.weight is not None
        edges = WeightCells(self.weight, CELLS).edges
        if self.drawn.cap == "full":
            return Cap(float(edges[0]), 0.0, max(float(counts.sum()), 1.0))
        spend = plan.spend("cross")
        assert spend.noise_sd is not None
        # of a coordinate of b, whose limit is a few sds of y in length; an sd is taken for a quarter of the half-range
        mu = float(spend.sensitivity * spend.step) / spend.noise_sd
        noise = len(self.design.terms) + 1, LEAST * 0.25 / mu
        meat = hidden_part(self.drawn, self.known.mu / noise[0])
        return Cap.chosen(counts, sd, edges, float(self.weight.term.low), noise[0] * noise[1] ** 2, 1, meat)

    def meat_level(self, sd: float) -> float:
        wide = 1.0 if self.drawn.psu is None else 2 * self._sampled(1.0).spread(0.0)
        return 2.0**self.bits / sd / max(wide, 1.0)

    def _sampled(self, count: float) -> Sampled:
        """count: the noisy sum of omega."""
        own = self.known.weighing
        return Sampled(max(count / own.mean, 1.0), own.mean, own.mean * own.heavy, 1, self.drawn)

    def meat_at(self, planned: Statistic, frame: Frame, limits: Limits, standing: Standing, top: float) -> MeatAt:
        assert isinstance(planned, PersonMeat | PsuMeat)
        unit = limits.scale * sqrt(standing.metric.size)
        p = len(standing.metric.weights)
        own = PsuLimits.of(
            self._sampled(standing.count),
            self.known.mu / p,
            longest=max(top / unit, 1.0),
            centred=self.listed is not None,
        )
        person = top if own.whole else min(max(limits.meat, own.person * unit), top)
        whole = max(own.psu * unit, person)
        scores = ByWeight(LongScores(self.design).at(frame, person), self.weight)
        if isinstance(planned, PsuMeat):
            statistic: PersonMeat | PsuMeat = planned.at(scores, whole / person, own.centred)
        else:
            statistic = planned.at(scores)
        facts = np.array([float(statistic.longest), float(own.centred), whole])
        limits = replace(limits, meat=person, cut=0.0 if own.whole else limits.cut)
        return MeatAt(statistic, limits, {"meat_form": facts})
