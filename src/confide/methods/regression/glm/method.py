"""The way to a generalized linear model by Fisher scoring in noisy coordinates: the default of `Logistic`, and `Poisson`.

Estimates the population's plain maximum-likelihood coefficients, whether or not the model holds; of counts those of the mean's
logarithm, whatever their variance. A noisy linear fit gives coordinates and a start. Each step releases the information
A and the score g of records at the line so far, which one record moves by at most D together (`fisher_rows`). The last step is solved
without shrinkage. Nothing is assumed of a solver, and there is no ridge.

Guarantee: mu-GDP, add-remove or substitute (`draw`).

Interval: Student t with a sandwich covariance of sampling and privacy noise. Records with extreme features are down-weighted. The bias
that they may cause is bounded by a paid count and is in the intervals, or the coefficient is not answered. The weighted estimand
(`target="weighted"`), whose records are down-weighted by design, is another one where the model does not hold, and carries that in its
title: no bias is asked there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

from confide.core import Allowance, BudgetItem, Meter, Plan, Release, ResultOptions, Source
from confide.core.events import leaves
from confide.core.units.privacy_unit import independent_words
from confide.errors import PlanError
from confide.methods.regression.evidence.normal_equations import to_units
from confide.methods.regression.glm.draw import PASSES, FisherRounds
from confide.methods.regression.glm.fisher_families import LOGIT, Family
from confide.methods.regression.glm.reading import FisherReading
from confide.methods.regression.glm.results import ModelEstimates
from confide.schema import ModelMatrix, Schema
from confide.schema.formulas.names import with_intercept
from confide.sums.clusters.cluster_covariance import OUTCOME, Counting, too_few

_TARGETS = ("mle", "weighted")


def has_numbers(design: ModelMatrix) -> bool:
    """Whether a term has more than two values."""
    return not all(term.binary for term in design.terms)


def checked_target(method: str, target: Any) -> None:
    """Refuse what is not a target."""
    if target not in _TARGETS:
        raise PlanError(
            f"target must be 'mle' or 'weighted', got {target!r}",
            f"write {method}(formula), whose target is the population's plain maximum-likelihood coefficients",
        )


def no_weighted_reference(target: str) -> None:
    """Refuse a reference of the weighted line, whose weights follow from a release."""
    if target == "weighted":
        raise PlanError(
            'the weights of target="weighted" follow from a release, so it has no value without privacy',
            'write target="mle"',
        )


@dataclass(frozen=True)
class FisherLine:
    """The way of one design over a schema.

    levels: of an outcome of two values, the base first; None of counts; weighted: the estimand is that of the weighted records.

    counting: how rows of a unit count, where several do.
    """

    schema: Schema
    design: ModelMatrix
    levels: tuple[str, str] | None
    family: Family = LOGIT
    weighted: bool = False
    counting: Counting | None = None

    def __post_init__(self) -> None:
        if not self.design.intercept:
            formula, name = self.design.formula, "Poisson" if self.levels is None else "Logistic"
            link = "" if self.levels is None or self.family == LOGIT else ', link="probit"'
            raise PlanError(f"{formula!r} has no intercept", f"write {name}({with_intercept(formula)!r}{link})")
        to_units(self.design, [])  # refuses bounds in whose units no variance can be computed

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of all branches, as keywords of `Plan.of`."""
        event, statistics = self._rounds.plan(allowance)
        meat = next(one for one in leaves(event) if isinstance(one, BudgetItem) and one.name == "meat")
        far = OUTCOME[has_numbers(self.design)]
        few = partial(too_few, self.schema.cluster, len(self.design.terms) + 1, sqrt(meat.mu_squared), outcome=far)
        return {
            "event": event,
            "statistics": statistics,
            "passes": PASSES,
            "target": f"{'weighted line of ' if self.weighted else ''}{self._model}, maximum likelihood",
            "intervals_for": self._intervals_for,
            "warnings": few(),
            "notes": few(n=n) if n else (),
        }

    @property
    def _rounds(self) -> FisherRounds:
        return FisherRounds(self.design, self.family, self.counting)

    @property
    def _model(self) -> str:
        response, names = self.design.response.name, self.design.features
        if self.levels is None:
            return f"Poisson regression of {response} on {names}"
        kind = "logistic" if self.family == LOGIT else "probit"
        return f"{kind} regression of {response} = {self.levels[1]} on {names}"

    @property
    def _intervals_for(self) -> str:
        rest = f"sampling of records and privacy noise, {independent_words(self.schema)}"
        if self.weighted:
            weight = "weight min(1, D/N)" if self.levels else "a weight from min(1, D/N) to 1"
            return (
                f"the coefficients at which the score of the records vanishes, each with {weight}. N grows with extreme features "
                f"and D is an earlier DP number. These are the maximum-likelihood coefficients where the model holds, "
                f"others elsewhere; {rest}"
            )
        return f"the population's plain maximum-likelihood coefficients, whether or not the model holds; {rest}"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; the estimated number of records chooses the branch."""
        return self._rounds.draw(source, plan, meter)

    def table(self, release: Release, options: ResultOptions) -> ModelEstimates:
        """The table of coefficients."""
        return FisherReading(release, options, self.design, self.levels, self.family, self.weighted).table()
