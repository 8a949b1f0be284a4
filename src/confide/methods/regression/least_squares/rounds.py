"""Least squares of the response clipped to its bounds, from noisy sums whose limits grow with the records.

Estimates argmin E (y - z'theta)^2 over all complete records, y and the features clipped to their public bounds. There are no weights,
and no limit on residuals but where a noisy histogram says that hardly any record is beyond. A first noisy fit says about where the line
is. Then scores v r are summed, with r the residual from that fit and v = M z in the metric of least cost for all coefficients together.
Each score is limited at R in its length |v r| alone, because separate limits on |v| and on |r| would cost several times the noise.

Guarantee: mu-GDP, add-remove or substitute (`draw`).

Interval: Student t with a sandwich covariance of sampling and privacy noise, unequal variances and nonlinear means allowed; it covers
the population's least-squares coefficients. Beyond the last size that can be counted, the tails of scores are assumed to fall at least
like |s|^-3.5. The table says so with its price; with `limit="none"` nothing is assumed. A coefficient is not answered where noise hides
it, or where bounds that were declared reach so far that a few records out there could move it unseen. The status is then "partial", or
"imprecise" where that is most of them, and there is no interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from confide.core import Allowance, BudgetItem, Event, Meter, Plan, Release, ResultOptions, Source
from confide.core.events import leaves
from confide.core.units.privacy_unit import independent_words
from confide.errors import PlanError
from confide.methods.regression.least_squares.draw import PASSES, ScoreStatistics
from confide.methods.regression.least_squares.reading import LeastSquaresReading
from confide.methods.regression.linear_estimates import SharedEstimates, kept
from confide.methods.regression.reference import least_squares
from confide.schema import Categorical, ModelMatrix, Schema
from confide.schema.formulas.names import with_intercept
from confide.sums.clusters.cluster_covariance import too_few


@dataclass(frozen=True)
class LeastSquaresRounds:
    """The general way to a least-squares line, of a design with an intercept.

    limit: as in `LeastSquares`. Raises `PlanError` without an intercept.
    """

    schema: Schema
    design: ModelMatrix
    limit: str = "auto"

    def __post_init__(self) -> None:
        if not self.design.intercept:
            raise PlanError(
                f"{self.design.formula!r} has no intercept. Intervals without one are available for the levels of one factor alone, "
                "as in 'y ~ 0 + region'",
                f"write cf.regression.LeastSquares({with_intercept(self.design.formula)!r}), or "
                f"cf.regression.SSP({self.design.formula!r}), which needs no intercept",
            )

    @property
    def _sums(self) -> ScoreStatistics:
        return ScoreStatistics(self.design, self.limit)

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of both branches."""
        event, statistics = self._sums.plan(allowance)
        return {
            "event": event,
            "statistics": statistics,
            "passes": PASSES,
            "constants": {},
            "target": f"linear regression of {self.design.response.name} on {self.design.features}, least squares",
            "intervals_for": (
                f"coefficients of the population's least-squares line for {self.design.response.name} clipped to its bounds; "
                f"sampling of records and privacy noise, unequal residual variances and nonlinear means allowed, "
                f"{independent_words(self.schema)}"
            ),
            "notes": self._too_few(event, n) if n else (),
            "warnings": self._too_few(event),
        }

    def _too_few(self, event: Event, n: int | None = None) -> tuple[str, ...]:
        spend = next(leaf for leaf in leaves(event) if leaf.name == "meat")
        assert isinstance(spend, BudgetItem)
        return too_few(self.schema.cluster, len(self.design.terms) + 1, sqrt(spend.mu_squared), n)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; the estimated number of records chooses the branch."""
        return self._sums.draw(source, plan, meter)

    def table(self, release: Release, options: ResultOptions) -> SharedEstimates:
        """The table. A smaller model (`ResultOptions(subset=...)`) has no intervals: the released meat belongs to the full one."""
        return LeastSquaresReading(release, options, self.design, kept(self.design, options)).table()

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Least squares without privacy, of simulated records as the schema reads them."""
        return least_squares(frame, self.design)

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records at opposite corners of the box with the response at either end: scores of opposite sign. None with derived terms."""
        columns = [term.plain for term in (*self.design.terms, self.design.response)]
        if None in columns:
            return
        ends = []
        for name in columns:
            column = self.schema[str(name)]
            assert not isinstance(column, Categorical)
            ends.append((column.low, column.high))
        features, (low, high) = ends[:-1], ends[-1]
        above = {str(name): top for name, (_, top) in zip(columns, features, strict=False)}
        below = {str(name): bottom for name, (bottom, _) in zip(columns, features, strict=False)}
        name = str(columns[-1])
        yield {**above, name: high}, {**above, name: low}
        yield {**above, name: high}, {**below, name: low}
