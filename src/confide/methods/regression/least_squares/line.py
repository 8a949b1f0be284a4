"""The default for one regression: the population's least-squares line, from rounds of noisy moments of scores.

Estimates the population's least-squares line of the response, each of the columns as declared (clipped to its public bounds). Which way
leads there follows from the formula: of one factor, or of factors alone, exact sums by level (`FactorMeans`), where records, or kept rows
of units, are independent; of others, rounds of noisy moments in whitened coordinates (`ScorePath`). For releases that answer
many questions there is `SSP`. Under the design of a survey it is the population's line, weighted (`SurveyLine`).

Guarantee: mu-GDP, add-remove or substitute; what is drawn, its sensitivity and its source stand with each way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates.cells.factor_levels import FactorLevels
from confide.errors import PlanError
from confide.methods.regression.least_squares.least_squares import ScorePath
from confide.methods.regression.line_method import LineMethod
from confide.methods.regression.line_path import LinePath
from confide.schema import Design, Schema, Unit

__all__ = ["LeastSquares"]

_LIMITS = ("auto", "none")


@dataclass(frozen=True)
class LeastSquares(LineMethod):
    """Linear regression by adaptive rounds of noisy moments: the population's least-squares line.

    formula: "y ~ a + b"; limit: "auto" limits scores far beyond what the noisy histograms see, "none" limits nothing, whatever the price;
    clipping_check: pay 1 % of mu^2 for a noisy count of responses outside their bounds; term_bounds: public bounds of derived terms that
    have none.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = LeastSquares("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation, plan.passes
    (1.0, 'add-remove', 6)
    """

    formula: str
    limit: str = "auto"
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "least_squares"
    source: ClassVar[str] = (
        "rounds of noisy moments in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    )
    intervals: ClassVar[str] = "the population's least-squares line; sampling, privacy noise, unequal variances"
    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    unit_meat: ClassVar[bool] = True
    designs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.limit not in _LIMITS:
            raise PlanError(
                f"limit must be {' or '.join(map(repr, _LIMITS))}, got {self.limit!r}; "
                "write cf.regression.LeastSquares(formula, limit='auto')"
            )
        super().__post_init__()

    def rules(self, schema: Schema) -> tuple[str, ...]:
        """By weight where the line comes of scores; sums by level take one row of each unit, and so does a survey."""
        return self.units if isinstance(self.about(schema), ScorePath) else ("keep",)

    def _way(self, schema: Schema, design: Design, label: str) -> LinePath:
        # each way is loaded where it is taken: a plan must be quick
        if schema.design is not None:
            from confide.methods.regression.least_squares.survey.survey_line import SurveyLine

            return SurveyLine(schema, design, self.limit, self.clipping_check)
        unit = schema.unit if isinstance(schema.unit, Unit) else None
        several = schema.cluster is not None or (unit is not None and (unit.rows > 1 or unit.rule == "weight"))
        # sums by level take records as independent
        apart = several and design.intercept and bool(design.terms)
        levels = None if apart else FactorLevels.of(design)
        if levels is None:
            return ScorePath(schema, design, self.limit, self.clipping_check)
        from confide.methods.regression.factors.factor_means import FactorMeans

        return FactorMeans(label, schema, design, levels, self.clipping_check)
