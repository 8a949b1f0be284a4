"""Logistic regression: the log-odds of a binary outcome, by noisy Fisher scoring.

Estimates log(P/(1 - P)) = z'theta: the population's maximum-likelihood coefficients, without a ridge
(`confide.methods.regression.glm.method`). With link="probit" P = F(z'theta), F the normal distribution function. With target="weighted"
the estimand down-weights records whose features are extreme, and has its title. Under the design of a survey the estimand is weighted
(`confide.methods.regression.glm.survey`).

Guarantee: mu-GDP, add-remove or substitute; `confide.methods.regression.glm.method` states what is drawn, its sensitivity and its
interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from confide.core import Allowance, MenuEntry, Meter, Plan, Release, ResultOptions, Source
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.regression.glm.coefficients import binary_design
from confide.methods.regression.glm.fisher_families import LOGIT, PROBIT, Family
from confide.methods.regression.glm.method import FisherLine, checked_target, no_weighted_reference
from confide.methods.regression.glm.results import LogisticEstimates
from confide.methods.regression.glm.survey import SurveyFisherLine
from confide.methods.regression.reference import likeliest_line, log_odds_line
from confide.methods.regression.survey_scores import SampleDesign
from confide.schema import CodedFrame, ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.clusters.cluster_covariance import Counting
from confide.sums.coding import outcome_pairs
from confide.sums.ranges import RangedMethod

_LINKS: Mapping[str, Family] = {"logit": LOGIT, "probit": PROBIT}


@dataclass(frozen=True)
class Logistic(RangedMethod):
    """Logistic regression of a 0/1 or two-level column.

    The estimand is the maximum-likelihood coefficients in the population, as
    log-odds and odds ratios. The model need not be true.

    Parameters
    ----------
    formula : str
        R-style formula, such as ``"smoker ~ age + region"``.
    link : {"logit", "probit"}, default "logit"
        Link function of the probability.
    target : {"mle", "weighted"}, default "mle"
        "mle" is maximum likelihood in the population. "weighted" down-weights
        records whose features are extreme, and says so in the title.

    See Also
    --------
    confide.regression.LogisticEstimates : The result.
    confide.linear_regression : A numeric response.
    confide.poisson_regression : A count.

    Notes
    -----
    Guarantee: mu-GDP under add-remove or substitution. Each step of noisy
    Fisher scoring is a Gaussian mechanism on exact integers, composed
    adaptively. Intervals are given where the signal exceeds the noise.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang (2014), Analyze Gauss, STOC.
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
    >>> plan = Logistic("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.passes
    (1.0, 10)
    """

    formula: str
    term_bounds: Mapping[str, tuple[float, float]] | None = None
    link: str = "logit"
    target: str = "mle"

    name: ClassVar[str] = "logistic"
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = "noisy Fisher scoring in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022)"
    intervals: ClassVar[str] = (
        "the population's maximum-likelihood coefficients; sampling, privacy noise, a model that need not hold"
    )

    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    unit_meat: ClassVar[bool] = True
    designs: ClassVar[bool] = True
    outcome: ClassVar[str] = "two"
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "Odds of a binary outcome",
        "{outcome} ~ {number} | {pair} ~ {number} | {pair} ~ {second}",
        "Logistic regression.",
        command='regress "{}" --method logistic',
        place=2,
    )
    task: ClassVar[str] = "logistic_regression"
    targets: ClassVar[Mapping[str, Any] | None] = {}

    def rules(self, schema: Any) -> tuple[str, ...]:
        """By weight where sums of scores are released; a survey takes one row of each unit."""
        return self.units if schema.design is None else ("keep",)

    def __post_init__(self) -> None:
        checked_target("Logistic", self.target)
        if not isinstance(self.link, str) or self.link not in _LINKS:
            raise PlanError(
                f"link must be 'logit' or 'probit', got {self.link!r}",
                'write cf.regression.Logistic(formula, link="probit")',
            )

    def summed(self, schema: Schema) -> tuple[str, ...]:
        design, _ = self._design(schema)
        return tuple(name for name in design.columns if name not in design.response.columns)

    def _fisher(self, schema: Any) -> FisherLine:
        design, levels = self._design(schema)
        whole = Schema.of(schema)
        if whole.design is not None:
            return SurveyFisherLine(whole, design, levels, _LINKS[self.link], self.target == "weighted")
        counting = Counting.of(design.schema)
        return FisherLine(design.schema, design, levels, _LINKS[self.link], self.target == "weighted", counting)

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The charge, from public facts. Raises `PlanError` for a formula or setting that cannot work."""
        line = self._fisher(schema)
        notes = parse_formula(line.design.formula, line.design.schema).notes
        allowance = Allowance.of(privacy, self, schema)
        planned = line.plan(allowance, n)
        warnings = (*notes, *planned.pop("warnings", ()))
        return Plan.of(
            self,
            schema,
            allowance,
            planned.pop("event"),
            planned.pop("statistics"),
            n=n,
            warnings=warnings,
            **planned,
        )

    def _design(self, schema: Any) -> tuple[ModelMatrix, tuple[str, str]]:
        whole = Schema.of(schema)
        return binary_design(self.formula, whole, self.term_bounds)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The sums of each step."""
        return self._fisher(source.schema).draw(source, plan, meter)

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LogisticEstimates:
        """The table of log-odds in the units of the data. There are no options: `PlanError`."""
        options = options or ResultOptions()
        options.only()
        return cast(LogisticEstimates, self._fisher(release.plan.declared).table(release, options))

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The likeliest model of the link. `PlanError` for target="weighted"."""
        no_weighted_reference(self.target)
        schema = CodedFrame.checked(frame).schema
        design, _ = self._design(schema)
        if schema.design is not None:
            own = SampleDesign.of(schema)
            by = None if own.weight is None else own.weight.term
            return likeliest_line(own.practice(frame), design, _LINKS[self.link], by=by)
        return log_odds_line(frame, design) if self.link == "logit" else likeliest_line(frame, design, PROBIT)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in two corners of the public box with opposite outcomes, which pull theta as much as the bound allows."""
        if schema is None:
            return
        design, _ = self._design(schema)
        yield from outcome_pairs(design, schema)
