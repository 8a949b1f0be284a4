"""Logistic regression by noise on a penalized loss: on its objective, on its minimiser, or after a test of its curvature.

Estimates log(P/(1 - P)) = z'theta. In public units z = (1, x~) as in SSP, y = 1 or -1, and with w = min(1, B/|z|), which costs no
bias where the model holds (cutting z to length B would), R = max |z|, K = B R,

    theta = argmin sum w log(1 + exp(-y z'theta)) + lam |theta|^2/2 [+ b'theta]

`logistic_objective`: b ~ N(0, s^2 I). (epsilon, delta)-DP, add-remove or substitute, with s from the exact curve of the logistic loss,
whose slope and curvature are not extreme together (`confide.guarantees.mechanisms.objective_perturbation`): at lam = K/epsilon, the
default, s is within 0.1 % of that of one Gaussian mechanism of sensitivity B. What the solver leaves is hidden by a little noise on
theta (`perturbed_objective`, with the proof). No Gaussian statement is made.
`logistic_output`: mu-GDP. theta moves by at most B/lam (Chaudhuri, Monteleoni, Sarwate 2011); lam follows from a noisy count.
`logistic_ptr`: mu-GDP with failure delta. First the least eigenvalue of the Hessian, which moves by at most K/4 + 2 K for lam >= 2 K,
then theta, which moves by at most -log(1 - K/m)/R where m, the noisy eigenvalue less a quantile of its noise, is below the true one:
else with probability at most delta (evidence/errata.md: Redberg, Zhu, Wang 2023, C.11).
inference=True (`logistic_objective` and `logistic_ptr`): 15 % of mu^2 for the Hessian at the released theta, an exact integer Gram
matrix of rows of squared length at most K/4.

Interval: normal, for the coefficients of the population where the logistic model holds; sampling, privacy noise, and the ridge, whose
bias is taken off to first order (`logistic_reading`). None where the Hessian does not stand above its noise, and none from
`logistic_output`, whose ridge is too large for that. `cf.regression.Logistic` has none of these limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import (
    SAFETY_STEPS,
    Allowance,
    Composed,
    Event,
    Gram,
    Meter,
    Method,
    OpaqueRelease,
    Plan,
    Proved,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Total,
    threshold,
)
from confide.errors import PlanError, PrivacyError
from confide.guarantees import ApproxDP, Guarantee
from confide.guarantees.mechanisms.objective_perturbation import stable_sensitivity
from confide.guarantees.validation import is_finite
from confide.methods.regression.glm.coefficients import binary_design
from confide.methods.regression.glm.results import LogisticEstimates
from confide.methods.regression.linear_estimates import legend
from confide.methods.regression.reference import log_odds_line
from confide.methods.regression.sums.linear_rows import Present
from confide.schema import CodedFrame, ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.blocks.record_block import Collected
from confide.sums.coding import outcome_pairs
from confide_lab.methods.logistic.labelled_rows import CurvatureRows, LabelledRows, log_odds
from confide_lab.methods.logistic.logistic_minimiser import LeastCurvature, RoundedMinimiser
from confide_lab.methods.logistic.logistic_reading import Reading, read
from confide_lab.methods.logistic.perturbed_objective import PerturbedObjective

__all__ = ["LogisticObjective", "LogisticOutput", "LogisticPTR", "PerturbedLogistic"]

_CURVATURE_SHARE = Fraction(15, 100)
_COUNT_SHARE = Fraction(1, 100)
_SAFETY_SHARE = Fraction(20, 100)
_INTERVALS_FOR = (
    "coefficients of the logistic model of the population; sampling of records, privacy noise and the ridge, independent records; it is "
    "assumed that the model holds"
)
_PROOF = "density of the minimiser of a tilted logistic objective, exact curve; then Gaussian mechanisms"


@dataclass(frozen=True)
class PerturbedLogistic(Method):
    """What the three share: the penalized loss, its settings, and the table.

    formula: "y ~ a + b"; ridge: lam in scaled units, public, by a rule when left out; row_bound: B, default sqrt(1 + d/3) for d terms;
    term_bounds: public bounds of derived terms that have none. Memory grows with the records.
    """

    formula: str
    ridge: float | None = None
    row_bound: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    family: ClassVar[str] = "regression"
    task: ClassVar[str] = "logistic_regression"
    needs: ClassVar[frozenset[str]] = frozenset({"opaque"})
    outcome: ClassVar[str] = "two"
    #: In the table.
    mechanism: ClassVar[str]

    def __post_init__(self) -> None:
        for name, value, most in (("ridge", self.ridge, 1e12), ("row_bound", self.row_bound, 1e3)):
            if value is None:
                continue
            number = is_finite(value)
            if not (number and 1e-6 <= value <= most):
                raise PlanError(
                    f"{name} must be a number from 1e-06 to {most:g}, got {value!r}; leave it out for the default"
                )

    @property
    def _share(self) -> Fraction:
        """Of mu^2, for the Hessian."""
        return Fraction(0)

    @property
    def _no_interval(self) -> str:
        return "the Hessian was not released (inference=False)"

    def _facts(self, design: ModelMatrix, levels: tuple[str, str], n: int | None) -> dict[str, Any]:
        """What every plan says."""
        return {
            "n": n,
            "target": f"logistic regression of {design.response.name} = {levels[1]} on {', '.join(design.names)}",
            "intervals_for": _INTERVALS_FOR if self._share else f"no interval: {self._no_interval}",
            "warnings": parse_formula(design.formula, design.schema).notes,
        }

    def _design(self, schema: Any) -> tuple[ModelMatrix, tuple[str, str]]:
        whole = Schema.of(schema)
        return binary_design(self.formula, whole, self.term_bounds)

    def _cut(self, design: ModelMatrix) -> float:
        """B."""
        return float(self.row_bound or sqrt(int(design.intercept) + max(len(design.terms), 1) / 3))

    def infer(self, release: Release, options: ResultOptions | None = None) -> LogisticEstimates:
        """The table of log-odds in the units of the data. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design, levels = self._design(release.plan.declared)
        reading, ridge, noise = self._read(release, design)
        matrix = log_odds(design)
        p = len(reading.theta)
        status = "imprecise" if reading.weak else "valid"
        flags: tuple[str, ...] = ()
        covariance = matrix @ reading.covariance @ matrix.T
        if not self._share:
            status, flags, covariance = "valid", ("no_interval",), np.full((p, p), np.nan)
        own = np.full(p, np.nan) if status == "imprecise" or flags else np.diag(matrix @ reading.noise @ matrix.T)
        taken_off = ", its bias taken off" if status == "valid" and not flags else ""
        return LogisticEstimates.of(
            release,
            response=design.response.name,
            names=design.names,
            estimates=matrix @ reading.theta,
            covariance=(covariance + covariance.T) / 2,
            noise_variance=own,
            status=status,
            reason=reading.weak if status == "imprecise" else "",
            flags=flags,
            facts=(
                ("Outcome", f"{levels[1]} against {levels[0]}"),
                ("Mechanism", self.mechanism),
                ("Ridge", f"{ridge:.4g} in scaled units{taken_off}"),
                ("Noise", noise),
            ),
            legend=legend(design, release.plan.declared)[1:],
            design=design,
            levels=levels,
        )

    def _read(self, release: Release, design: ModelMatrix) -> tuple[Reading, float, str]:
        """The reading, lam, and the noise that decides, in words."""
        raise NotImplementedError

    def _unread(self, theta: Array) -> Reading:
        """Without a Hessian."""
        nothing = np.full((len(theta), len(theta)), np.nan)
        return Reading(theta, nothing, nothing, "")

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The likeliest model, without a ridge."""
        design, _ = self._design(CodedFrame.checked(frame).schema)
        return log_odds_line(frame, design)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in two corners of the public box with opposite outcomes, which pull theta as far as the bound allows."""
        if schema is None:
            return
        design, _ = self._design(schema)
        yield from outcome_pairs(design, schema)


def _symmetric(upper: Array, p: int) -> Array:
    """From the upper triangle."""
    whole = np.zeros((p, p))
    whole[np.triu_indices(p)] = upper
    whole.T[np.triu_indices(p)] = upper
    return whole


def _checked_inference(inference: Any) -> None:
    if not isinstance(inference, bool):
        raise PlanError(f"inference must be True or False, got {inference!r}")


@dataclass(frozen=True)
class LogisticObjective(PerturbedLogistic):
    """Logistic regression of a two-level categorical or 0/1 column by noise in the objective; asks for `ApproxDP`.

    inference: release the Hessian, too, and with it intervals; the rest as in `PerturbedLogistic`.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
    >>> plan = LogisticObjective("y ~ x").plan(schema, cf.ApproxDP(1.0, 1e-6))
    >>> plan.constants["ridge"] > 1
    True
    """

    inference: bool = True

    name: ClassVar[str] = "logistic_objective"
    source: ClassVar[str] = (
        "objective perturbation with the exact curve of the logistic loss (Chaudhuri et al. 2011; Kifer et al. 2012)"
    )
    native: ClassVar[str] = "ApproxDP"
    intervals: ClassVar[str] = "coefficients of the logistic model, where it holds; sampling, privacy noise, the ridge"
    mechanism: ClassVar[str] = "objective perturbation"

    def __post_init__(self) -> None:
        _checked_inference(self.inference)
        super().__post_init__()

    @property
    def _share(self) -> Fraction:
        return _CURVATURE_SHARE if self.inference else Fraction(0)

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """What is spent, from public facts. Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for a request
        or a ridge that the mechanism has no guarantee for.
        """
        design, levels = self._design(schema)
        facts = self._facts(design, levels, n)
        labelled, cut = LabelledRows(design), self._cut(design)
        proved = Proved.of(
            privacy,
            self,
            schema,
            assumptions=("float64 solver",),
            who="objective perturbation",
            instead="write cf.regression.Logistic(formula)",
        )
        perturbed = self._perturbed(design, proved.approx)
        proved = proved.by(perturbed.curve(proved.relation))
        return Plan.of(
            self,
            schema,
            proved,
            OpaqueRelease("logistic", proved.statement, _PROOF),
            {"rows": Total(labelled), "curvature": Gram(CurvatureRows(labelled, cut))},
            constants={"row bound": cut, "ridge": perturbed.ridge, "tilt sd": perturbed.sd},
            **facts,
        )

    def _perturbed(self, design: ModelMatrix, level: ApproxDP) -> PerturbedObjective:
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

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """theta, and the Hessian there."""
        design, _ = self._design(source.schema)
        level = plan.requested
        assert isinstance(level, ApproxDP)
        perturbed = self._perturbed(design, level)
        (rows,) = source.aggregate(Collected(perturbed.labelled))
        drawn = perturbed.draw(rows, meter.noise("logistic"))
        meter.opaque("logistic", perturbed.steps(drawn), perturbed.step)
        return {}

    def _read(self, release: Release, design: ModelMatrix) -> tuple[Reading, float, str]:
        level = release.plan.requested
        assert isinstance(level, ApproxDP)
        own = self._perturbed(design, level)
        drawn, p = release["logistic"].decode(), own.labelled.width
        words = f"sd {own.sd:.4g} on the gradient"
        if not self._share:
            return self._unread(drawn[:p]), own.ridge, words
        bent = _symmetric(drawn[p:], p)
        reading = read(drawn[:p], bent, ridge=own.ridge, tilt=own.sd, output=own.output_sd, spread=own.curvature_sd)
        return reading, own.ridge, words


class _Gaussian(PerturbedLogistic):
    """Noise on the minimiser, whose way from one record is bounded by a ridge."""

    #: Of mu^2, for what is drawn first: the name of the draw and its share.
    first: ClassVar[tuple[str, Fraction]]

    def _ridge(self, design: ModelMatrix, count: float = 1.0, noise: float = 0.0) -> float:
        """lam."""
        raise NotImplementedError

    def _statistics(self, design: ModelMatrix) -> dict[str, Statistic]:
        """What is drawn, in order."""
        labelled, cut = LabelledRows(design), self._cut(design)
        ridge = self._ridge(design)
        found: dict[str, Statistic] = {
            self.first[0]: self._first(design, ridge),
            "minimiser": RoundedMinimiser(labelled, cut, ridge),
        }
        return {**found, "curvature": Gram(CurvatureRows(labelled, cut))} if self._share else found

    def _first(self, design: ModelMatrix, ridge: float) -> Statistic:
        raise NotImplementedError

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """What is spent, from public facts. Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for a request
        or a ridge that the mechanism has no guarantee for.
        """
        design, levels = self._design(schema)
        facts = self._facts(design, levels, n)
        allowance = self._allowance(schema, privacy)
        bending, (name, first) = self._share, self.first
        statistics = self._statistics(design)
        shares = {name: first, "minimiser": 1 - first - bending, "curvature": bending}
        spends = {key: allowance.spend(key, one, shares[key]) for key, one in statistics.items()}
        event = self._event(schema, allowance, spends)
        constants = {"row bound": self._cut(design), **self._constants(design)}
        return Plan.of(self, schema, allowance, event, statistics, passes=len(statistics), constants=constants, **facts)

    def _allowance(self, schema: Schema, privacy: Guarantee) -> Allowance:
        return Allowance.of(privacy, self, schema, failure=None, assumptions=("float64 solver",))

    def _event(self, schema: Schema, allowance: Allowance, spends: dict[str, Any]) -> Event:
        return Composed(tuple(spends.values()))

    def _constants(self, design: ModelMatrix) -> Mapping[str, float]:
        return {}

    def _fitted(self, source: Source, meter: Meter, minimiser: RoundedMinimiser, plan: Plan) -> Mapping[str, Any]:
        """theta, and the Hessian there."""
        public = {"ridge": np.array([minimiser.ridge]), "step": np.array([minimiser.step])}
        (theta,) = source.aggregate(minimiser)
        drawn = meter.draw("minimiser", theta).decode() * minimiser.step
        if self._share:
            curvature = plan.statistic("curvature").map
            assert isinstance(curvature, CurvatureRows)
            (bent,) = source.aggregate(Gram(curvature.at(drawn)))
            meter.draw("curvature", bent)
        return public

    def _read(self, release: Release, design: ModelMatrix) -> tuple[Reading, float, str]:
        noisy, step = release["minimiser"], float(release.public["step"][0])
        theta, ridge = noisy.decode() * step, float(release.public["ridge"][0])
        output = sqrt(noisy.variance) * step
        words = f"sd {output:.4g} on theta"
        if not self._share:
            return self._unread(theta), ridge, words
        labelled, cut = LabelledRows(design), self._cut(design)
        p = labelled.width
        bent, unit = release["curvature"], CurvatureRows(labelled, cut).unit ** 2
        upper, spread = bent.decode()[np.triu_indices(p)] / unit, sqrt(bent.variance) / unit
        reading = read(theta, _symmetric(upper, p), ridge=ridge, tilt=0.0, output=output, spread=spread)
        return reading, ridge, words


@dataclass(frozen=True)
class LogisticOutput(_Gaussian):
    """Logistic regression of a two-level categorical or 0/1 column by noise on the minimiser: a line, no interval.

    Settings as in `PerturbedLogistic`.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
    >>> plan = LogisticOutput("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, [leaf.name for leaf in plan.event.parts]
    (1.0, ['count', 'minimiser'])
    """

    name: ClassVar[str] = "logistic_output"
    source: ClassVar[str] = "output perturbation (Chaudhuri, Monteleoni, Sarwate 2011)"
    mechanism: ClassVar[str] = "output perturbation"
    first: ClassVar[tuple[str, Fraction]] = ("count", _COUNT_SHARE)

    @property
    def _no_interval(self) -> str:
        return "the ridge pulls the coefficients by an amount that is not known"

    def _ridge(self, design: ModelMatrix, count: float = 1.0, noise: float = 0.0) -> float:
        """lam, from a noisy count.

        A ridge costs about lam^2 |theta|^2/(2 n a) of the log-likelihood, noise of sd s/lam n a p s^2/(2 lam^2), a near 1/10 the curvature
        of a record: least for lam^2 = n a s sqrt(p) at |theta| = 1. noise: s.
        """
        if self.ridge is not None:
            return float(self.ridge)
        return sqrt(max(count, 1.0) * max(noise, self._cut(design)) * sqrt(LabelledRows(design).width) / 10)

    def _first(self, design: ModelMatrix, ridge: float) -> Statistic:
        return Total(Present(design), nonnegative=True)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The count, then theta."""
        design, _ = self._design(source.schema)
        minimiser = plan.statistic("minimiser")
        assert isinstance(minimiser, RoundedMinimiser)
        (present,) = source.aggregate(plan.statistic("count"))
        count = float(meter.draw("count", present).decode()[0])
        spend = plan.spend("minimiser")
        noise_sd = sqrt(spend.scale) * float(spend.step) * minimiser.step * minimiser.ridge
        return self._fitted(source, meter, replace(minimiser, ridge=self._ridge(design, count, noise_sd)), plan)


@dataclass(frozen=True)
class LogisticPTR(_Gaussian):
    """Logistic regression of a two-level categorical or 0/1 column by noise on the minimiser after a test; asks for a delta.

    inference: release the Hessian, too, and with it intervals; the rest as in `PerturbedLogistic`.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
    >>> LogisticPTR("y ~ x").plan(schema, cf.GDP(1.0, 1e-6)).passes
    3
    """

    inference: bool = True

    name: ClassVar[str] = "logistic_ptr"
    source: ClassVar[str] = "output perturbation after a test of the Hessian (Redberg, Zhu, Wang 2023, corrected)"
    intervals: ClassVar[str] = "coefficients of the logistic model, where it holds; sampling, privacy noise, the ridge"
    mechanism: ClassVar[str] = "output perturbation with a certificate"
    first: ClassVar[tuple[str, Fraction]] = ("eigenvalue", _SAFETY_SHARE)

    def __post_init__(self) -> None:
        _checked_inference(self.inference)
        super().__post_init__()

    @property
    def _share(self) -> Fraction:
        return _CURVATURE_SHARE if self.inference else Fraction(0)

    def _ridge(self, design: ModelMatrix, count: float = 1.0, noise: float = 0.0) -> float:
        """lam, the least certified one."""
        if self.ridge is not None:
            return float(self.ridge)
        return 2 * self._cut(design) * LabelledRows(design).longest * (1 + 2.0**-20)

    def _first(self, design: ModelMatrix, ridge: float) -> Statistic:
        return LeastCurvature(LabelledRows(design), self._cut(design), ridge)

    def _allowance(self, schema: Schema, privacy: Guarantee) -> Allowance:
        return Allowance.of(privacy, self, schema, failure=Fraction(1, 2), assumptions=("float64 solver",))

    def _event(self, schema: Schema, allowance: Allowance, spends: dict[str, Any]) -> Event:
        if schema.rows_per_unit > 1:
            raise PrivacyError(
                f"logistic_ptr protects single records, got rows_per_unit={schema.rows_per_unit}; write logistic_output"
            )
        certificate = spends.pop("eigenvalue")
        return allowance.certify(certificate, Composed(tuple(spends.values())))

    def _constants(self, design: ModelMatrix) -> Mapping[str, float]:
        return {"ridge": self._ridge(design)}

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The eigenvalue, then theta, and the Hessian there."""
        minimiser = plan.statistic("minimiser")
        assert isinstance(minimiser, RoundedMinimiser)
        (least,) = source.aggregate(plan.statistic("eigenvalue"))
        meter.draw("eigenvalue", least)
        return self._fitted(source, meter, minimiser.moving(self._certified(plan, meter)), plan)

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
