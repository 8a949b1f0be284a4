"""The least-squares line of a population from a sample with a design: weights, strata and PSUs.

Estimates argmin sum over the population of (y - z'theta)^2, from records that count by their weights: sum w v r = 0. With capped weights
it is the line of these, which is off by A^-1 sum (w - W)+ v r: at most by e/(1 - e) times the sum of omega times `DISTANCE` root mean
squares of a score, e the lost share of weight with what may hide in noise (`weight_cap`); every interval is widened by that.

Guarantee: mu-GDP, add-remove or substitute (`survey_sums`).

Interval: Student t with a sandwich covariance whose meat is that of persons, or of PSUs, within strata over public lists: R's `svyglm`
without noise. Degrees of freedom are at most PSUs less strata. Source: Fuller 1975; Binder 1983; the cap as for `cf.tables.means`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import Any

from confide.aggregates.reference import least_squares
from confide.aggregates.scores.metric import Layout
from confide.methods.regression.evidence.left_out import least_level
from confide.methods.regression.least_squares.least_squares import ScorePath
from confide.methods.regression.least_squares.score_sums import PASSES
from confide.methods.regression.least_squares.survey.survey_reading import SurveyReading
from confide.methods.regression.least_squares.survey.survey_sums import SurveySums
from confide.methods.regression.linear import kept
from confide.methods.regression.shared_estimates import SharedEstimates
from confide.methods.regression.surveyed import WEIGHTS, needs_terms
from confide.protocol import Allowance, Event, Meter, Plan, Question, Release, Source, Spend
from confide.protocol.events import leaves
from confide.schema import Design, Schema, SurveyDesign

__all__ = ["SurveyLine"]

# Of as many records what a level needs hardly hangs on their number.
_MANY = 1e5


@dataclass(frozen=True)
class SurveyLine:
    """The way to a line under the design of a schema."""

    schema: Schema
    design: Design
    limit: str = "auto"
    clipping_check: bool = True

    def __post_init__(self) -> None:
        ScorePath(self.schema, self.design, self.limit, self.clipping_check)  # refuses a line without an intercept
        needs_terms(self.design, "mean")

    @property
    def drawn(self) -> SurveyDesign:
        """How the sample was drawn."""
        assert self.schema.design is not None
        return self.schema.design

    @cached_property
    def _sums(self) -> SurveySums:
        return SurveySums.of(self.schema, self.design, self.limit, self.clipping_check)

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of both branches."""
        sums = self._sums.within(allowance.amount)
        event, statistics = sums.plan(allowance)
        meat = next(one for one in leaves(event) if isinstance(one, Spend) and one.name == "meat")
        told = sqrt(meat.mu_squared), len(self.design.terms) + 1
        *first, limits = sums.drawn.warnings(*told)
        warned = [*first, *self._for_margins(event), limits]
        if not self.clipping_check:
            warned.append("responses outside their bounds are clipped and not counted: clipping_check=False")
        return {
            "event": event,
            "statistics": statistics,
            "passes": PASSES + (WEIGHTS in statistics),
            "target": (
                f"linear regression of {self.design.response.name} on {', '.join(self.design.names)}, least squares, {self.drawn.words}"
            ),
            "covers": (
                f"coefficients of the population's least-squares line for {self.design.response.name} clipped to its declared bounds, "
                f"linearised variances; {sums.drawn.alike}; privacy noise, unequal residual variances and curved means allowed"
            ),
            "warnings": tuple(warned),
            "notes": sums.drawn.notes(*told, n),
        }

    def _for_margins(self, event: Event) -> list[str]:
        """What every level needs before the line can be calibrated, where it has levels alone."""
        if any(len(term.columns) > 1 or not term.binary for term in self.design.terms):
            return []
        gram = next(one for one in leaves(event) if isinstance(one, Spend) and one.name == "gram")
        # twice that: whether a level is told follows from noisy counts
        least = ceil(2 * least_level(Layout.of(self.design), _MANY, sqrt(gram.mu_squared)))
        heavy = ", times the largest weight that counts over the mean one" if self.drawn.weight is not None else ""
        return [
            f"calibrate() needs every level told: about {least:,} records in each{heavy}; join rarer ones with others"
        ]

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The histogram of weights and the rounds."""
        return self._sums.draw(source, plan, meter)

    def table(self, release: Release, question: Question) -> SharedEstimates:
        """The table. A smaller model has point estimates alone."""
        return SurveyReading(release, question, self._sums.design, kept(self.design, question)).table()

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Least squares without privacy, of practice records in listed PSUs, by their weights."""
        own = self._sums.drawn
        return least_squares(own.practice(frame), self.design, by=None if own.weight is None else own.weight.term)

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """As of the line without a design."""
        return ScorePath(self.schema, self.design).worst_pairs()
