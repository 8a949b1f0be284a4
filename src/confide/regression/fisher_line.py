"""The way to a logistic line by Fisher scoring in private coordinates: the default of `Logistic`.

Estimates the population's plain maximum-likelihood coefficients, whether or not the model holds. Private ranges and a noisy linear fit
give coordinates and a start; each step releases the information A and the score g of records at the line so far, which one record moves
by at most D together (`mechanisms.fisher_rows`), and the last one is solved without shrinkage. Nothing is assumed of a solver, and there is
no ridge.

Guarantee: mu-GDP, add-remove or substitute (`regression.fisher_rounds`).

Interval: Student t with a sandwich covariance of sampling and privacy noise. Records with far-out features count less; the bias that they
may cause is bounded by a paid count and is in the intervals, or the coefficient is not answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confide.errors import PlanError
from confide.protocol import Allowance, Meter, Plan, Question, Release, Source
from confide.regression.fisher_reading import FisherReading
from confide.regression.fisher_rounds import PASSES, FisherRounds
from confide.regression.forecast import Forecast
from confide.regression.logistic_results import LogisticEstimates
from confide.regression.outcome_forecast import OutcomeForecast
from confide.regression.scaling import to_units
from confide.schema import Design, Schema

__all__ = ["FisherLine"]

# Of practice records that a forecast runs the rounds on, for one number of records and for three.
_SHAPES, _SHAPES_OF_THREE = 32, 24


@dataclass(frozen=True)
class FisherLine:
    """The way of one design with an outcome of two values, over a schema; levels: of the outcome, the base first; share: of the second one,
    where the schema states it, for forecasts alone.
    """

    schema: Schema
    design: Design
    levels: tuple[str, str]
    share: float | None = None

    def __post_init__(self) -> None:
        if not self.design.intercept:
            raise PlanError(
                f'{self.design.formula!r} has no intercept; write the formula with it, or mechanism="objective", which needs none'
            )
        to_units(self.design, [])  # refuses bounds in whose units no variance can be computed

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of all branches, as keywords of `Plan.of`."""
        event, statistics = FisherRounds(self.design).plan(allowance)
        forecast = OutcomeForecast.of(self.design, self.schema, event, statistics, self.share)
        return {
            "event": event,
            "statistics": statistics,
            "passes": PASSES,
            "target": (
                f"logistic regression of {self.design.response.name} = {self.levels[1]} on {', '.join(self.design.names)}, "
                "maximum likelihood"
            ),
            "covers": (
                "the population's plain maximum-likelihood coefficients, whether or not the model holds; sampling of records and privacy "
                "noise, independent records"
            ),
            "forecast": Forecast(
                self.design,
                self.schema,
                n,
                forecast.expect,
                bare=forecast.bare,
                most=_SHAPES if n else _SHAPES_OF_THREE,
            ),
        }

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; the noisy count chooses the branch."""
        return FisherRounds(self.design).draw(source, plan, meter)

    def table(self, release: Release, question: Question) -> LogisticEstimates:
        """The table of log-odds."""
        return FisherReading(release, question, self.design, self.levels).table()
