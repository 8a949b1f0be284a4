"""Poisson regression: the logarithm of a mean count as a linear function, by Fisher scoring in noisy coordinates.

Estimates log E[y] = z'theta: the coefficients at which sum z (y - exp(z'theta)) vanishes over the population, y clipped to its declared
bounds and nothing else. Where counts are Poisson, these are the maximum-likelihood coefficients. They are the coefficients of the
mean's logarithm whatever the variance of counts: zeros in excess and overdispersion move the standard errors, not the coefficients
(Gourieroux, Monfort, Trognon 1984).

Guarantee: mu-GDP, add-remove or substitute (`confide.methods.regression.glm.draw`). Noise costs in proportion to c, the largest count
that has full weight. A noisy histogram (2% of the budget) says beyond which count none is seen. The largest count c lies above it where
the records that noise may hide at the declared bound move the coefficients by little (`confide.methods.regression.glm.clipping`). In
most designs it is the declared bound. Intervals include what clipping may move, and the table names the assumption and its price. A
bound far above the counts costs width, or the table, whose reason then names the bound to declare.

Interval: Student t with a sandwich covariance of sampling and privacy noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from confide.core import Allowance, MenuEntry, Meter, Plan, Release, ResultOptions, Source
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.regression.glm.fisher_families import Counts
from confide.methods.regression.glm.method import FisherLine, checked_target, no_weighted_reference
from confide.methods.regression.glm.results import PoissonEstimates
from confide.methods.regression.reference import likeliest_line
from confide.schema import Categorical, CodedFrame, ModelMatrix, Schema
from confide.schema.columns import MAX_STEPS
from confide.schema.formulas.formula import cut, parse_formula
from confide.sums.coding import outcome_pairs
from confide.sums.ranges import RangedMethod, Width


@dataclass(frozen=True)
class Poisson(RangedMethod):
    """Poisson regression of a count from 0 to a declared bound.

    The estimand is the coefficients of the logarithm of the mean count in the
    population, by maximum likelihood. The variance of counts may have any
    size.

    Parameters
    ----------
    formula : str
        R-style formula, such as ``"visits ~ age + region"``. Counts are of one
        unit of time or exposure each: there is no offset.
    target : {"mle", "weighted"}, default "mle"
        "mle" is maximum likelihood in the population. "weighted" down-weights
        records whose features are extreme, and says so in the title.

    See Also
    --------
    confide.regression.PoissonEstimates : The result.
    confide.logistic_regression : A binary response.

    Notes
    -----
    Guarantee: mu-GDP under add-remove or substitution. Each step of noisy
    Fisher scoring is a Gaussian mechanism on exact integers, composed
    adaptively. The noise is proportional to the largest count that has full
    weight.

    References
    ----------
    Gourieroux, Monfort and Trognon (1984), Pseudo maximum likelihood methods,
    Econometrica 52.
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "visits": cf.Integer(0, 12)})
    >>> plan = Poisson("visits ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.target
    (1.0, 'Poisson regression of visits on x, maximum likelihood')
    """

    formula: str
    target: str = "mle"
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "poisson"
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = "noisy Fisher scoring in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022)"
    intervals: ClassVar[str] = (
        "the population's maximum-likelihood coefficients of the mean's logarithm; sampling, privacy noise, a variance of any size"
    )
    outcome: ClassVar[str] = "count"
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "Rates of a count",
        "{count} ~ {label} | {count} ~ {other}",
        "Poisson regression of a bounded count.",
        command='regress "{}" --method poisson',
        place=3,
    )
    task: ClassVar[str] = "poisson_regression"
    targets: ClassVar[Mapping[str, Any] | None] = {}

    def __post_init__(self) -> None:
        checked_target("Poisson", self.target)

    def width(self, plan: Plan, name: str) -> Width:
        own = super().width(plan, name)
        # a count keeps its zeros, and none of its large values is trimmed
        return replace(own, whole=name in self._design(plan.declared).response.columns)

    def _line(self, schema: Any) -> FisherLine:
        design = self._design(Schema.of(schema))
        high = float(design.response.high)
        return FisherLine(design.schema, design, None, Counts(high, high), self.target == "weighted")

    def _design(self, schema: Schema) -> ModelMatrix:
        design = ModelMatrix.of(self.formula, schema, term_bounds=self.term_bounds)
        low, high = float(design.response.low), float(design.response.high)
        if low != 0.0 or isinstance(schema.columns.get(design.response.name), Categorical):
            few = high < MAX_STEPS
            raise PlanError(
                f"the outcome {design.response.name!r} of {cut(self.formula)!r} lies between {low:g} and {high:g}, a count begins at 0",
                f"declare it as {design.response.name!r}: "
                + (f"Integer(0, {max(high, 1):.0f})" if few else "Numeric(low=0)"),
            )
        return design

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The charge, from public facts. Raises `PlanError` for a formula or setting that cannot work."""
        line = self._line(schema)
        allowance = Allowance.of(privacy, self, schema)
        planned = line.plan(allowance, n)
        notes = parse_formula(line.design.formula, line.design.schema).notes
        planned["warnings"] = (*notes, *planned["warnings"])
        return Plan.of(self, schema, allowance, planned.pop("event"), planned.pop("statistics"), n=n, **planned)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The sums of each step, in the order of the plan."""
        return self._line(source.schema).draw(source, plan, meter)

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> PoissonEstimates:
        """The table of log-rates in the units of the data. There are no options: `PlanError`."""
        options = options or ResultOptions()
        options.only()
        return cast(PoissonEstimates, self._line(release.plan.declared).table(release, options))

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The likeliest Poisson model of the clipped counts. `PlanError` for target="weighted"."""
        no_weighted_reference(self.target)
        design = self._design(CodedFrame.checked(frame).schema)
        high = float(design.response.high)
        return likeliest_line(frame, design, Counts(high, high))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in two corners of the public box with no count and the largest one."""
        if schema is None:
            return
        design = self._design(schema)
        yield from outcome_pairs(design, schema)
