"""SSP2: linear regression from rounds of noisy moments of scores. The default for one regression.

Estimates the population's least-squares line of the response, each of the columns as declared (clipped to its public bounds). Which way
leads there follows from the formula: of one factor, or of factors alone, exact sums by level (`FactorMeans`); of others, rounds of noisy
moments in whitened coordinates (`LeastSquares`). `target="robust"` is another line under its own name (`RobustLine`), and
`objective="prediction"` a shrunken one without intervals. For releases that answer many questions there is `SSP`.

Guarantee: mu-GDP, add-remove or substitute; what is drawn, its sensitivity and its source stand with each way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.regression.factors.factor_means import FactorMeans
from confide.methods.regression.huber.line_path import LinePath
from confide.methods.regression.huber.robust_line import RobustLine
from confide.methods.regression.least_squares.least_squares import LeastSquares
from confide.methods.regression.scaling import to_units
from confide.methods.regression.shared_estimates import SharedEstimates
from confide.protocol import Allowance, Meter, Method, Plan, Question, Release, Source
from confide.schema import Design, Practice, Schema
from confide.schema.formula import parse_formula

__all__ = ["SSP2"]

_OBJECTIVES = ("inference", "prediction")
_TARGETS = ("ols", "robust")
_LIMITS = ("auto", "none")


@dataclass(frozen=True)
class SSP2(Method):
    """Linear regression by adaptive rounds of noisy moments: the population's least-squares line.

    formula: "y ~ a + b"; objective: "inference" (intervals) or "prediction" (a shrunken line, no interval); target: "ols" (least squares)
    or "robust" (a Huber-type line of leverage-weighted records with limited residuals); limit: "auto" limits scores far beyond what
    the noisy histograms see, "none" limits nothing, whatever the price; slope_bound: B for intervals of the robust line at
    status "weak", which assume that no slope moves the response by more than B half-ranges for one half-width of its feature (2 when
    half-widths are private ranges; else there is no default and no interval); clipping_check: pay 1 % of mu^2 for a noisy count of
    responses outside their bounds (inference); term_bounds: public bounds of derived terms that have none.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = SSP2("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation, plan.passes
    (1.0, 'add-remove', 6)
    """

    formula: str
    objective: str = "inference"
    target: str = "ols"
    limit: str = "auto"
    slope_bound: float | None = None
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "ssp2"
    family: ClassVar[str] = "regression"
    version: ClassVar[str] = "3"
    source: ClassVar[str] = (
        "rounds of noisy moments in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    )
    intervals: ClassVar[str] = "the population's least-squares line; sampling, privacy noise, unequal variances"

    def __post_init__(self) -> None:
        if self.target == "projection":
            raise PlanError(
                'target="projection" is gone: it was a weighted line with limited residuals, not least squares; write target="ols" '
                '(the least-squares line, the default) or target="robust" (the line that it was)'
            )
        for name, value, allowed in (
            ("objective", self.objective, _OBJECTIVES),
            ("target", self.target, _TARGETS),
            ("limit", self.limit, _LIMITS),
        ):
            if value not in allowed:
                raise PlanError(
                    f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}; write SSP2(formula, {name}={allowed[0]!r})"
                )
        if self.objective == "prediction" and self.target != type(self).target:
            raise PlanError(
                f'target="{self.target}" says which line an interval covers, and objective="prediction" has none; leave target out'
            )
        if self.limit == "none" and (self.target == "robust" or self.objective == "prediction"):
            raise PlanError('limit="none" belongs to the least-squares line; write SSP2(formula, limit="none")')
        bound = self.slope_bound
        if bound is not None and not (is_finite(bound) and bound > 0):
            raise PlanError(f"slope_bound must be a finite number above 0, got {bound!r}; leave it out, or write 2.0")
        if bound is not None and self.target != "robust":
            raise PlanError(
                f"slope_bound={bound!r} is about intervals of the robust line and has no effect on least squares; leave it out, or write "
                f'SSP2(formula, target="robust", slope_bound={bound!r})'
            )
        if not isinstance(self.clipping_check, bool):
            raise PlanError(f"clipping_check must be True or False, got {self.clipping_check!r}")

    def about(self, schema: Any) -> LinePath:
        """The way to the line, from public facts."""
        whole = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        design = self._design(whole)
        to_units(design, [])  # refuses bounds in whose units no variance can be computed
        label = f"{self.name} {self.version}"
        if self.objective == "prediction" or self.target == "robust":
            return RobustLine(
                label, whole, design, self.objective == "inference", self.slope_bound, self.clipping_check
            )
        factors = FactorMeans.of(label, whole, design, self.clipping_check)
        return factors or LeastSquares(whole, design, self.limit, self.clipping_check)

    def _design(self, schema: Any) -> Design:
        """The terms of the formula; a private score among several methods asks for it too."""
        whole = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        return Design.of(self.formula, whole, term_bounds=self.term_bounds)

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The spends of all branches, and the guarantee, from public facts.

        Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for an impossible guarantee.
        """
        path = self.about(schema)
        allowance = Allowance.of(privacy, self, schema)
        facts = path.plan(allowance, n)
        event, statistics = facts.pop("event"), facts.pop("statistics")
        warnings = (*parse_formula(self.formula, schema).notes, *facts.pop("warnings", ()))
        return Plan.of(self, schema, allowance, event, statistics, n=n, warnings=warnings, **facts)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; earlier noisy numbers choose the branch."""
        return self.about(source.schema).draw(source, plan, meter)

    def infer(self, release: Release, question: Question | None = None) -> SharedEstimates:
        """The regression table. A question may name a subset of coefficients: `Question(subset=("age", "educ"))`.

        Raises `PlanError` for a name that is no coefficient, and where the release cannot answer for a smaller model.
        """
        question = question or Question()
        question.only("subset")
        return self.about(release.plan.schema).table(release, question)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The same line without privacy, on practice records as the schema reads them; `PlanError` where only a release determines it."""
        return self.about(Practice.checked(frame).schema).reference(frame)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records where one moves the statistics most; none without a schema."""
        return () if schema is None else self.about(schema).worst_pairs()
