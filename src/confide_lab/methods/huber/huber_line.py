"""A Huber-type line under its own name: leverage-weighted records with limited residuals; not least squares.

Its target is the line of the released leverage weights whose residuals count at most at the released scale; where errors are skewed or the
mean is curved that is not the least-squares line, which `LeastSquares` gives. With `objective="prediction"` the line is shrunken and has no
interval.

Guarantee: mu-GDP, add-remove or substitute; what is drawn, its sensitivity and its source stand with `HuberPath`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from confide.errors import PlanError
from confide.guarantees.validation import is_finite
from confide.methods.regression.least_squares.method import LineMethod, LinePath
from confide.schema import ModelMatrix, Schema
from confide_lab.methods.huber.robust_line import HuberPath

__all__ = ["HuberLine"]

_OBJECTIVES = ("inference", "prediction")


@dataclass(frozen=True)
class HuberLine(LineMethod):
    """Linear regression by rounds of noisy moments with limited residuals and leverages: another line than least squares.

    formula: "y ~ a + b"; objective: "inference" (intervals) or "prediction" (a shrunken line, no interval); slope_bound: B for intervals
    at status "imprecise", which assume that no slope moves the response by more than B half-ranges for one half-width of its feature (2
    when half-widths are private ranges; else there is no default and no interval); clipping_check: pay 1 % of mu^2 for a noisy count of
    responses outside their bounds (inference); term_bounds: public bounds of derived terms that have none.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = HuberLine("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation, plan.passes
    (1.0, 'add-remove', 7)
    """

    formula: str
    objective: str = "inference"
    slope_bound: float | None = None
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "huber_line"
    source: ClassVar[str] = (
        "rounds of noisy moments with limited residuals (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    )
    intervals: ClassVar[str] = "a Huber-type line of released weights; sampling, privacy noise, unequal variances"
    # it counts clipped responses itself
    counts_lost: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.objective not in _OBJECTIVES:
            raise PlanError(
                f"objective must be {' or '.join(map(repr, _OBJECTIVES))}, got {self.objective!r}",
                "write HuberLine(formula, objective='inference')",
            )
        bound = self.slope_bound
        if bound is not None and not (is_finite(bound) and bound > 0):
            raise PlanError(f"slope_bound must be a finite number above 0, got {bound!r}; leave it out, or write 2.0")
        if bound is not None and self.objective == "prediction":
            raise PlanError(
                f'slope_bound={bound!r} is about intervals, and objective="prediction" has none; leave one of them out'
            )
        super().__post_init__()

    def _way(self, schema: Schema, design: ModelMatrix, label: str) -> LinePath:
        return HuberPath(label, schema, design, self.objective == "inference", self.slope_bound, self.clipping_check)
