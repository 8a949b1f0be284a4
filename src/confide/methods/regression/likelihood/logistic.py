"""Logistic regression: the log-odds of a two-valued outcome, by Fisher scoring, a tilted objective, or noise on its minimiser.

Estimates log(P/(1 - P)) = z'theta.

mechanism="glm" (default): mu-GDP. The population's plain maximum-likelihood coefficients by noisy Fisher scoring, without a ridge
(`confide.methods.regression.likelihood.fisher.fisher_line`); link="probit": P = F(z'theta) with the normal distribution function F;
target="weighted": the line of
records as they count where those far out in their features count less, under its own title. Under the design of a survey it is the
population's line, weighted (`confide.methods.regression.likelihood.fisher.survey_fisher`).

The others minimise a penalised loss. In public units z = (1, x~) as in SSP, y = 1 or -1, and with w = min(1, B/|z|), which costs no bias
where the model holds (cutting z to length B would), R = max |z|, K = B R,

    theta = argmin sum w log(1 + exp(-y z'theta)) + lam |theta|^2/2 [+ b'theta]

mechanism="objective": b ~ N(0, s^2 I). (epsilon, delta)-DP, add-remove or substitute, with s from the exact curve of the logistic
loss, whose slope and curvature are not extreme together (`confide.guarantees.mechanisms.objective_perturbation`): at lam = K/epsilon, the
default, s is within 0.1 % of that of one Gaussian mechanism of sensitivity B. What the solver leaves is hidden by a little noise on theta
(`confide.methods.regression.likelihood.perturbed_objective`, with the proof). No Gaussian statement is made.
mechanism="output": mu-GDP. theta moves by at most B/lam (Chaudhuri, Monteleoni, Sarwate 2011); lam follows from a noisy count.
mechanism="ptr": mu-GDP with failure delta. First the least eigenvalue of the Hessian, which moves by at most K/4 + 2 K for
lam >= 2 K, then theta, which moves by at most -log(1 - K/m)/R where m, the noisy eigenvalue less a quantile of its noise, is below the true
one: else with probability at most delta (docs/errata.md: Redberg, Zhu, Wang 2023, C.11).
inference=True ("objective" and "ptr"): 15 % of mu^2 for the Hessian at the released theta, an exact integer Gram matrix of rows of
squared length at most K/4.

Interval of these: normal, for the coefficients of the population where the logistic model holds; sampling, privacy noise, and the ridge,
whose bias is taken off to first order (`confide.methods.regression.likelihood.logistic_reading`). None where the Hessian does not stand
above its noise, and
none from "output", whose ridge is too large for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.isolation.collected import Collected
from confide.aggregates.lines.corners import outcome_pairs
from confide.aggregates.lines.labelled_rows import CurvatureRows, LabelledRows
from confide.aggregates.lines.ranges import Present
from confide.aggregates.reference import likeliest_line, log_odds_line
from confide.aggregates.scores.fisher_families import LOGIT, PROBIT, Family
from confide.aggregates.scores.unit_scores import Counting
from confide.errors import PlanError, PrivacyError
from confide.guarantees import ApproxDP, Guarantee
from confide.guarantees.mechanisms.objective_perturbation import stable_sensitivity
from confide.guarantees.validation import is_finite
from confide.methods.regression.likelihood.fisher.fisher_line import FisherLine, checked_target, no_weighted_reference
from confide.methods.regression.likelihood.fisher.survey_fisher import SurveyFisherLine
from confide.methods.regression.likelihood.logistic_design import binary_design, stated_share
from confide.methods.regression.likelihood.logistic_minimiser import LeastCurvature, RoundedMinimiser
from confide.methods.regression.likelihood.logistic_perturbed import perturbed_table
from confide.methods.regression.likelihood.logistic_results import LogisticEstimates
from confide.methods.regression.likelihood.perturbed_objective import PerturbedObjective
from confide.methods.regression.surveyed import Drawn
from confide.protocol import (
    SAFETY_STEPS,
    Allowance,
    Event,
    Gram,
    Meter,
    Method,
    Opaque,
    Plan,
    Proved,
    Question,
    Release,
    Source,
    Statistic,
    Together,
    Total,
    threshold,
)
from confide.schema import Design, Practice, Schema
from confide.schema.formulas.formula import parse_formula

__all__ = ["Logistic"]

Array = NDArray[np.float64]

_MECHANISMS = ("glm", "objective", "output", "ptr")
_LINKS: Mapping[str, Family] = {"logit": LOGIT, "probit": PROBIT}
_CURVATURE_SHARE = Fraction(15, 100)
_COUNT_SHARE = Fraction(1, 100)
_SAFETY_SHARE = Fraction(20, 100)
_COVERS = (
    "coefficients of the logistic model of the population; sampling of records, privacy noise and the ridge, independent records; it is "
    "assumed that the model holds"
)
_NO_HESSIAN = (
    "the Hessian was not released (inference=False)",
    "the ridge pulls the coefficients by an amount that is not known",
)
_PROOF = (
    "density of the minimiser of a tilted logistic objective, exact curve; then Gaussian mechanisms: "
    "confide.methods.regression.likelihood.perturbed_objective"
)


@dataclass(frozen=True)
class Logistic(Method):
    """Logistic regression of a two-level categorical or 0/1 column, with intervals where the data stand above the noise.

    formula: "y ~ a + b"; mechanism: "glm" (any request), "objective" (asks for `ApproxDP`), "output" (any) or "ptr" (a delta);
    term_bounds: public bounds of derived terms that have none. For "glm": link: "logit" or "probit"; target: "mle", or "weighted", the line
    of records as they count where those far out in their features count less. For all but "glm": inference: release the Hessian, too, and
    with it intervals; ridge: lam in scaled units, public, by a rule when left out; row_bound: B, default sqrt(1 + d/3) for d terms; their
    memory grows with the records.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
    >>> plan = Logistic("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.passes
    (1.0, 9)
    """

    formula: str
    mechanism: str = "glm"
    inference: bool = True
    ridge: float | None = None
    row_bound: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None
    link: str = "logit"
    target: str = "mle"

    name: ClassVar[str] = "logistic"
    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("3",)  # its bounds were as far out as records are seen
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = (
        "noisy Fisher scoring in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022); or objective perturbation with the exact "
        "curve of the logistic loss (Chaudhuri et al. 2011; Kifer et al. 2012), or output perturbation"
    )
    intervals: ClassVar[str] = (
        "the population's maximum-likelihood coefficients; sampling, privacy noise, a model that need not hold"
    )

    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    unit_meat: ClassVar[bool] = True
    designs: ClassVar[bool] = True

    def rules(self, schema: Any) -> tuple[str, ...]:
        """By weight where sums of scores are released; the mechanisms of a penalised loss, and a survey, take one row of each unit."""
        return self.units if self.mechanism == "glm" and schema.design is None else ("keep",)

    def __post_init__(self) -> None:
        if self.mechanism not in _MECHANISMS:
            raise PlanError(
                f"mechanism must be one of {', '.join(map(repr, _MECHANISMS))}, got {self.mechanism!r}; "
                'write Logistic(formula, mechanism="glm")'
            )
        checked_target("Logistic", self.target)
        if not isinstance(self.link, str) or self.link not in _LINKS:
            raise PlanError(
                f"link must be 'logit' or 'probit', got {self.link!r}; write Logistic(formula, link=\"probit\")"
            )
        if self.mechanism != "glm" and (self.link != "logit" or self.target != "mle"):
            raise PlanError(
                f'mechanism={self.mechanism!r} is about the logit and has no other target; write Logistic(formula, mechanism="glm", '
                f"link={self.link!r}, target={self.target!r})"
            )
        if not isinstance(self.inference, bool):
            raise PlanError(f"inference must be True or False, got {self.inference!r}")
        others = {
            "inference": not self.inference,
            "ridge": self.ridge is not None,
            "row_bound": self.row_bound is not None,
        }
        if self.mechanism == "glm" and any(others.values()):
            name = next(name for name, given in others.items() if given)
            raise PlanError(
                f'{name} belongs to the mechanisms that minimise a penalised loss and has no effect on "glm"; leave it out, or write '
                'Logistic(formula, mechanism="objective", ...)'
            )
        for name, value, most in (("ridge", self.ridge, 1e12), ("row_bound", self.row_bound, 1e3)):
            if value is None:
                continue
            number = is_finite(value)
            if not (number and 1e-6 <= value <= most):
                raise PlanError(
                    f"{name} must be a number from 1e-06 to {most:g}, got {value!r}; leave it out for the default"
                )

    @property
    def needs(self) -> frozenset[str]:
        """Opaque releases, but for Fisher scoring, which adds up exact integers."""
        return frozenset() if self.mechanism == "glm" else frozenset({"opaque"})

    def _fisher(self, schema: Any) -> FisherLine:
        design, levels = self._design(schema)
        whole = Schema.of(schema)
        if whole.design is not None:
            return SurveyFisherLine(whole, design, levels, _LINKS[self.link], self.target == "weighted")
        share = stated_share(schema, design) if isinstance(schema, Schema) else None
        counting = Counting.of(design.schema)
        return FisherLine(design.schema, design, levels, _LINKS[self.link], self.target == "weighted", share, counting)

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """What is spent, from public facts. Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for a request
        or a ridge that the mechanism has no guarantee for.
        """
        if self.mechanism == "glm":
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
        if schema.design is not None:
            raise PlanError(
                f"mechanism={self.mechanism!r} takes records as drawn alike and one by one, and the schema has a design "
                f'({schema.design.words}); write Logistic(formula, mechanism="glm"), or take design out of the schema if the population '
                "does not matter"
            )
        if schema.cluster is not None and self._share:
            raise PlanError(
                f"intervals of mechanism={self.mechanism!r} take records as independent, and those of one {schema.cluster.column} are "
                'alike; write Logistic(formula, mechanism="glm"), which counts clusters, or take cluster out of the schema if that does '
                "not matter"
            )
        design, levels = self._design(schema)
        notes = parse_formula(design.formula, design.schema).notes
        labelled, cut = LabelledRows(design), self._cut(design)
        facts: dict[str, Any] = {
            "n": n,
            "target": f"logistic regression of {design.response.name} = {levels[1]} on {', '.join(design.names)}",
            "covers": _COVERS if self._share else f"no interval: {_NO_HESSIAN[self.mechanism == 'output']}",
            "warnings": notes,
        }
        curvature = Gram(CurvatureRows(labelled, cut))
        if self.mechanism == "objective":
            proved = Proved.of(
                privacy,
                self,
                schema,
                assumptions=("float64 solver",),
                who="objective perturbation",
                instead='write Logistic(formula, mechanism="glm")',
            )
            perturbed = self._perturbed(design, proved.approx)
            proved = proved.by(perturbed.curve(proved.relation))
            statistics: dict[str, Statistic] = {"rows": Total(labelled), "curvature": curvature}
            return Plan.of(
                self,
                schema,
                proved,
                Opaque("logistic", proved.statement, _PROOF),
                statistics,
                constants={"row bound": cut, "ridge": perturbed.ridge, "tilt sd": perturbed.sd},
                **facts,
            )
        failure = Fraction(1, 2) if self.mechanism == "ptr" else None
        allowance = Allowance.of(privacy, self, schema, failure=failure, assumptions=("float64 solver",))
        bending = self._share
        first = _SAFETY_SHARE if self.mechanism == "ptr" else _COUNT_SHARE
        statistics = self._statistics(design)
        if not self._share:
            del statistics["curvature"]
        shares = {"eigenvalue": first, "count": first, "minimiser": 1 - first - bending, "curvature": bending}
        spends = {name: allowance.spend(name, one, shares[name]) for name, one in statistics.items()}
        event: Event = Together(tuple(spends.values()))
        if self.mechanism == "ptr":
            if schema.rows_per_unit > 1:
                raise PrivacyError(
                    f'mechanism="ptr" protects single records, got rows_per_unit={schema.rows_per_unit}; write mechanism="output"'
                )
            certificate = spends.pop("eigenvalue")
            event = allowance.certify(certificate, Together(tuple(spends.values())))
        known: dict[str, Any] = {
            "passes": len(statistics),
            "constants": {"row bound": cut, **({"ridge": self._ridge(design)} if self.mechanism == "ptr" else {})},
        }
        return Plan.of(self, schema, allowance, event, statistics, **known, **facts)

    @property
    def _share(self) -> Fraction:
        """Of mu^2, for the Hessian."""
        return _CURVATURE_SHARE if self.inference and self.mechanism != "output" else Fraction(0)

    def _design(self, schema: Any) -> tuple[Design, tuple[str, str]]:
        whole = Schema.of(schema)
        return binary_design(self.formula, whole, self.term_bounds)

    def _cut(self, design: Design) -> float:
        """B."""
        return float(self.row_bound or sqrt(int(design.intercept) + max(len(design.terms), 1) / 3))

    def _ridge(self, design: Design, count: float = 1.0, noise: float = 0.0) -> float:
        """lam of the mechanisms that add noise to theta: the least certified one, or from a noisy count.

        A ridge costs about lam^2 |theta|^2/(2 n a) of the log-likelihood, noise of sd s/lam n a p s^2/(2 lam^2), a near 1/10 the curvature
        of a record: least for lam^2 = n a s sqrt(p) at |theta| = 1. noise: s.
        """
        if self.ridge is not None:
            return float(self.ridge)
        labelled, cut = LabelledRows(design), self._cut(design)
        if self.mechanism == "ptr":
            return 2 * cut * labelled.longest * (1 + 2.0**-20)
        return sqrt(max(count, 1.0) * max(noise, cut) * sqrt(labelled.width) / 10)

    def _statistics(self, design: Design, ridge: float | None = None) -> dict[str, Statistic]:
        """What a Gaussian mechanism draws, in order."""
        labelled, cut = LabelledRows(design), self._cut(design)
        ridge = self._ridge(design) if ridge is None else ridge
        first: Statistic = Total(Present(design), nonnegative=True)
        name = "count"
        if self.mechanism == "ptr":
            first, name = LeastCurvature(labelled, cut, ridge), "eigenvalue"
        minimiser = RoundedMinimiser(labelled, cut, ridge)
        return {name: first, "minimiser": minimiser, "curvature": Gram(CurvatureRows(labelled, cut))}

    def _perturbed(self, design: Design, level: ApproxDP) -> PerturbedObjective:
        labelled, cut = LabelledRows(design), self._cut(design)
        relation, curvature = str(level.relation), cut * labelled.longest
        usual = curvature / level.epsilon * (2 if relation == "substitute" else 1)
        ridge = usual if self.ridge is None else float(self.ridge)
        try:
            return PerturbedObjective.of(labelled, cut, ridge, level.epsilon, level.delta, relation, self._share)
        except PrivacyError:
            least = PerturbedObjective.least_ridge(curvature, level.epsilon, level.delta, relation, self._share)
            raise PrivacyError(
                f"objective perturbation at epsilon = {level.epsilon:g} needs a ridge above {least:.6g} for this formula, got {ridge:.6g}; "
                f"leave it out, which gives {usual:.6g}"
            ) from None

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """theta, and the Hessian there; of "glm" the sums of each step."""
        if self.mechanism == "glm":
            return self._fisher(source.schema).draw(source, plan, meter)
        design, _ = self._design(source.schema)
        public: dict[str, Array] = {}
        if self.mechanism == "objective":
            level = plan.requested
            assert isinstance(level, ApproxDP)
            perturbed = self._perturbed(design, level)
            (rows,) = source.aggregate(Collected(perturbed.labelled))
            drawn = perturbed.draw(rows, meter.noise("logistic"))
            meter.opaque("logistic", perturbed.steps(drawn), perturbed.step)
        else:
            minimiser = plan.statistic("minimiser")
            assert isinstance(minimiser, RoundedMinimiser)
            if self.mechanism == "ptr":
                (least,) = source.aggregate(plan.statistic("eigenvalue"))
                meter.draw("eigenvalue", least)
                minimiser = minimiser.moving(self._certified(plan, meter))
            else:
                (present,) = source.aggregate(plan.statistic("count"))
                count = float(meter.draw("count", present).decode()[0])
                spend = plan.spend("minimiser")
                noise_sd = sqrt(spend.scale) * float(spend.step) * minimiser.step * minimiser.ridge
                minimiser = replace(minimiser, ridge=self._ridge(design, count, noise_sd))
            public = {"ridge": np.array([minimiser.ridge]), "step": np.array([minimiser.step])}
            (theta,) = source.aggregate(minimiser)
            drawn = meter.draw("minimiser", theta).decode() * minimiser.step
            if self._share:
                curvature = plan.statistic("curvature").map
                assert isinstance(curvature, CurvatureRows)
                (bent,) = source.aggregate(Gram(curvature.at(drawn)))
                meter.draw("curvature", bent)
        return public

    def _certified(self, plan: Plan, meter: Meter) -> float:
        """How far one record moves theta, from the noisy eigenvalue less a quantile of its noise."""
        statistic, spend = plan.statistic("eigenvalue"), plan.spend("eigenvalue")
        assert isinstance(statistic, LeastCurvature)
        failing = threshold(spend, plan.event.delta)  # type: ignore[union-attr]
        steps = float(meter.drawn("eigenvalue").decode()[0]) - failing * float(spend.step) - 1
        # a replaced record: the bound is needed where it is left out, too
        steps -= SAFETY_STEPS if plan.relation == "substitute" else 0
        least = max(steps * statistic.reach / SAFETY_STEPS, statistic.ridge)
        return stable_sensitivity(least, statistic.ridge, statistic.slope, statistic.map.longest) * (1 + 2.0**-40)

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, question: Question | None = None) -> LogisticEstimates:
        """The table of log-odds in the units of the data. A question has nothing to ask: `PlanError`."""
        question = question or Question()
        question.only()
        if self.mechanism == "glm":
            return cast(LogisticEstimates, self._fisher(release.plan.schema).table(release, question))
        return perturbed_table(self, release)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The likeliest model of the link, without a ridge. `PlanError` for target="weighted"."""
        no_weighted_reference(self.target)
        schema = Practice.checked(frame).schema
        design, _ = self._design(schema)
        if schema.design is not None and self.mechanism == "glm":
            own = Drawn.of(schema)
            by = None if own.weight is None else own.weight.term
            return likeliest_line(own.practice(frame), design, _LINKS[self.link], by=by)
        return log_odds_line(frame, design) if self.link == "logit" else likeliest_line(frame, design, PROBIT)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in two corners of the public box with opposite outcomes, which pull theta as far as the bound allows."""
        if schema is None:
            return
        design, _ = self._design(schema)
        yield from outcome_pairs(design, schema)
