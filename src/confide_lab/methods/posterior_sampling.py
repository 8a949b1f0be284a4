"""Posterior sampling: one draw from the posterior of a ridge regression, as precise as the records allow.

Estimates the line E[y|x] = intercept + x'beta. In scaled units z = (1, x~), t of the public bounds, rows are u = sqrt(w) z and responses
sqrt(w) t with w = min(1, R2/|z|^2), as in SSP: |u| <= B, |t| <= 1. With G = sum u u', c = sum u t, H = G + lam I, released is

    theta ~ N(H^-1 c, (gamma H)^-1).

First a lower bound of G's smallest eigenvalue is released, then an upper bound r of every residual (`aggregates.posterior`), each good
for the smaller of two neighbours but for a probability of delta/4; lam follows from the first. With lev = B^2/(lam + eigenvalue) the
largest shift m* at which a pair of posteriors is within what is left (`guarantees.posterior_pair`) gives gamma = (m*/r)^2 (1 + lev)/lev.

Guarantee: GDP(mu, delta), add-remove, single records. Each of the two bounds takes 9 % of mu^2 as a Gaussian
mechanism on an exact integer, of sensitivity B^2 (Weyl 1912) and log(1 + lev). Where both hold, which fails with at most delta/2 in all
under either neighbour, the sample is mu_c-GDP with slack delta/2 for what is left of mu^2: the pair of posteriors is exactly two normal
laws on a line, N(0, 1) and N(m, 1/(1 + lev)), whose curve is compared with the Gaussian one at every epsilon. The bounds are functions of
released numbers; the failures and the slack add up to delta. Released are the sample's integers in a public step and rounded Gaussian
noise, which takes mu^2/1024 and hides in what way the computed sample differs from the ideal one: mu_c^2 is what is left after both
bounds and it (proof: `aggregates.posterior`). It is below 2^-40 of 1/sqrt(gamma (lam + eigenvalue)) for mu >= .1 and 20 terms.
preset="balanced": no bounds from records, lower = 0 and r from a public number of records at most, which the statement then assumes.
Sources: Redberg, Zhu, Wang 2023 (propose-test-release for posterior sampling), Wang 2018 (OPS-Balanced), Dong, Roth, Su 2022; their
calibrations do not hold as printed (evidence/errata.md) and are replaced by the exact pair.

Interval: none for the population's line, since H is not released. target="ridge": for the ridge line of these very records, from
H >= (lam + eigenvalue) I.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf, isfinite, log, nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.core import (
    Allowance,
    Event,
    FormulaMethod,
    Meter,
    Noise,
    OpaqueRelease,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
)
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, Guarantee
from confide.guarantees.validation import is_number, is_whole, sqrt_down
from confide.methods.regression.certified.sums import Part, moments
from confide.methods.regression.evidence.normal_equations import PRIOR, line_of, to_units
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.results.pages.content import Flag
from confide.schema import ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide_lab.aggregates.points import point_estimates
from confide_lab.aggregates.posterior import (
    LeverageRows,
    LogResidual,
    Odds,
    Posterior,
    apart,
    chosen_penalty,
    normal_steps,
    quantile_of,
    reach_of,
    sample_step,
)
from confide_lab.aggregates.posterior_pair import largest_shift

__all__ = ["PosteriorMethod", "PosteriorSampling"]

_RIDGE_LINE = Flag(
    "ridge_line",
    "the intervals are about the ridge line of these very records: they hold the privacy noise alone, no sampling "
    "error, and say nothing of the population's coefficients",
)

Array = NDArray[np.float64]

_QUARTER = Fraction(1, 4)
# The share of mu^2 of the noise that hides how the sample was computed.
_HIDING = Fraction(1, 1 << 10)
# exp of more than this is no bound that anything could be drawn from: steps and numbers of a file would be beyond 10^100.
_HUGE = 200.0
_NO_REPLY = (
    "at this penalty no posterior sample is within the privacy that is left, or the bound on residuals is too large to be used; leave the "
    "penalty to the method, or ask for a larger budget"
)
_WEAK = "the sample's noise may be larger than the half-range of the response; ask for fewer terms, more records or a larger budget"
_REASON = "the line is drawn around a ridge line from a covariance that is not released"


class PosteriorMethod(FormulaMethod):
    """What methods of posterior sampling share: the plan, the release with its two certificates, the table.

    A method gives `formula`, `leverage_cap`, `term_bounds` and `penalty`, and may set `shares` of mu^2 for the two bounds and `tail`.
    """

    formula: str
    penalty: float | str
    leverage_cap: float | None
    term_bounds: Mapping[str, tuple[float, float]] | None
    target: str | None

    name: ClassVar[str]
    family: ClassVar[str] = "regression"
    relations: ClassVar[tuple[str, ...]] = ("add-remove",)
    needs: ClassVar[frozenset[str]] = frozenset({"opaque"})
    shares: ClassVar[tuple[Fraction, Fraction]] = (Fraction(9, 100), Fraction(9, 100))

    # settings that a preset changes ----------------------------------------------------------------------------------

    def _most(self) -> int | None:
        """A public bound on the number of records, which replaces the two certificates; None: they are released."""
        return None

    def _tail(self, dimension: int) -> float:
        """What the choice of the penalty counts the sample's noise with, in its means d/gamma."""
        return 1.0

    def _check(self) -> None:
        cap = self.leverage_cap
        number = is_number(cap)
        if cap is not None and not (number and isfinite(cap) and cap >= 1):
            raise PlanError(
                f"leverage_cap must be a finite number of at least 1, got {cap!r}; leave it out for 1 + d/3"
            )
        lam = self.penalty
        given = is_number(lam) and 1e-2 <= lam <= 1e9
        if lam != "auto" and not given:
            raise PlanError(
                f'penalty must be "auto" or a number from 0.01 to 1e9, in units of one record\'s z\'z, got {lam!r}; leave it out for "auto"'
            )
        if self.target == "population":
            raise PlanError(
                "a posterior sample has no interval for the population's line, because its covariance is not released; write "
                f"SSP({self.formula!r}) for one, or target='ridge' for the ridge line of the records themselves"
            )
        if self.target not in (None, "ridge"):
            raise PlanError(f"target must be 'ridge' or left out for no interval, got {self.target!r}")

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The certificates and the sample. Raises `PlanError` for what cannot be planned, `PrivacyError` without a delta."""
        design = self._design(schema)
        if schema.rows_per_unit != 1:
            raise PrivacyError(
                f"{self.name} protects single records, got rows_per_unit={schema.rows_per_unit}; leave it at 1, or take SSP"
            )
        most = self._most()
        assumed = () if most is None else (f"at most {most} records",)
        allowance = Allowance.of(privacy, self, schema, failure=Fraction(1, 10), assumptions=assumed)
        statistics: dict[str, Statistic] = {}
        rows = self._rows(design)
        odds, size = self._odds(allowance), self._lines(design)[1].shape[1]
        level = allowance.level
        sample = OpaqueRelease(
            "line",
            GDP(odds.sample, odds.slack, relation=allowance.relation, unit=level.unit, assumptions=level.assumptions),
            _PROOF,
            allowance.hiding("line", apart(size), _HIDING, (size,)),
        )
        event: Event = sample
        if most is None:
            statistics = {"eigenvalue": Part(rows, "eigenvalue"), "residual": self._residual(design)}
            first, second = (
                allowance.spend(name, statistic, share)
                for (name, statistic), share in zip(statistics.items(), self.shares, strict=True)
            )
            event = allowance.certify(first, allowance.certify(second, sample, failure=_QUARTER), failure=_QUARTER)
        else:
            statistics = {"moments": moments(rows)}
            if self._public(design, odds)[1] == 0:
                raise PlanError(
                    f"no sample is within {privacy} at penalty={self.penalty!r}, whatever the records are; ask for a larger budget or a "
                    'larger penalty, or take preset="released"'
                )
        return Plan.of(
            self,
            schema,
            allowance,
            event,
            statistics,
            n=n,
            constants={"leverage_cap": rows.length**2},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for=self._intervals_for(),
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _intervals_for(self) -> str:
        if self.target is None:
            return f"no interval: {_REASON}"
        return (
            "the ridge line of these records, weighted, at the released penalty; not the population's line. Privacy noise alone, at "
            "least at the stated level less delta/4"
        )

    def _rows(self, design: ModelMatrix) -> LeverageRows:
        terms = len(design.terms)
        cap = 1 + terms / 3 if self.leverage_cap is None else float(self.leverage_cap)
        return LeverageRows(design, sqrt(min(cap, 1 + terms)))

    @staticmethod
    def _lines(design: ModelMatrix) -> tuple[Array, Array]:
        """(start, basis) of the lines that the formula allows, the basis orthonormal and orthogonal to the start."""
        line = line_of(design)
        basis = line.basis if design.intercept else np.linalg.qr(line.basis)[0]
        return line.offset - basis @ (basis.T @ line.offset), basis

    def _residual(self, design: ModelMatrix) -> LogResidual:
        start, basis = self._lines(design)
        return LogResidual(self._rows(design), tuple(map(float, start)), tuple(tuple(map(float, r)) for r in basis))

    def _odds(self, allowance: Allowance) -> Odds:
        delta = float(allowance.delta)
        if self._most() is not None:
            return Odds(0.0, 0.0, sqrt_down(allowance.amount * (1 - _HIDING)), 0.0, delta)
        a, b = self.shares
        return Odds(
            sqrt_down(allowance.amount * a),
            sqrt_down(allowance.amount * b),
            sqrt_down(allowance.amount * (1 - a - b - _HIDING)),
            delta / 4,
            delta / 2,
        )

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the exact Gram matrix; the bounds, and where a sample is within what is left, the sample."""
        design = self._design(source.schema)
        rows, (start, basis) = self._rows(design), self._lines(design)
        level = plan.guarantee
        assert isinstance(level, GDP)
        odds = self._odds(Allowance(plan.requested, level, 1))
        (whole,) = source.aggregate(moments(rows))
        posterior = Posterior.of(rows, whole, start, basis)
        lower, lam, log_r = self._bounds(meter, plan, posterior, whole, design, odds)
        gamma = _precision(rows.bound, lower, lam, log_r, odds)
        public: dict[str, Array] = {
            "eigenvalue": np.array([lower]),
            "penalty": np.array([lam]),
            "log_residual": np.array([log_r]),
        }
        if gamma > 0:
            meter.opaque("line", *self._sampled(posterior, meter.noise("line"), lam, gamma, lower))
            public["precision"] = np.array([gamma])
        else:
            meter.decline()
        return public

    @staticmethod
    def _sampled(
        posterior: Posterior, noise: Noise, lam: float, gamma: float, lower: float
    ) -> tuple[NDArray[Any], Fraction]:
        """The sample in whole steps, and the step: what the meter hides."""
        size = len(posterior.moments)
        step = sample_step(gamma, lam + lower, size)
        return posterior.steps(lam, gamma, normal_steps(noise, size), step), step

    def _bounds(
        self, meter: Meter, plan: Plan, posterior: Posterior, whole: Any, design: ModelMatrix, odds: Odds
    ) -> tuple[float, float, float]:
        """(lower bound of the eigenvalue, penalty, log of the bound on residuals): public numbers, from released ones."""
        rows, (start, basis) = self._rows(design), self._lines(design)
        bound, reach = reach_of(rows, start)
        k = basis.shape[1]
        odds = replace(odds, tail=self._tail(k))
        if self._most() is not None:
            return self._public(design, odds)[0]
        failure = Fraction(odds.failure)
        part, own = plan.statistic("eigenvalue"), self._residual(design)
        assert isinstance(part, Part)
        noisy = meter.draw("eigenvalue", part.of(whole)).decode()[0]
        steps = noisy - quantile_of(plan.spend("eigenvalue"), failure)
        # a little less, so that the rounding of doubles is on the safe side
        lower = max(0.0, steps / part.unit - bound**2) * (1 - 2.0**-40)
        lam = self._penalty(odds, lower, k, bound, reach, None)
        own = own.at(lam, lower)
        noisy = meter.draw("residual", own.of(posterior)).decode()[0]
        return lower, lam, own.bound(noisy, quantile_of(plan.spend("residual"), failure))

    def _public(self, design: ModelMatrix, odds: Odds) -> tuple[tuple[float, float, float], float]:
        """The bounds of the balanced preset, which are public, and its precision: 0 where no sample is within the budget."""
        most = self._most()
        assert most is not None
        rows, (start, basis) = self._rows(design), self._lines(design)
        bound, reach = reach_of(rows, start)
        k = basis.shape[1]
        odds = replace(odds, tail=self._tail(k))
        lam = self._penalty(odds, 0.0, k, bound, reach, lambda at: reach + bound * _longest(most, bound, reach, at))
        bounds = (0.0, lam, log(reach + bound * _longest(most, bound, reach, lam)))
        return bounds, _precision(rows.bound, *bounds, odds)

    def _penalty(self, odds: Odds, lower: float, k: int, bound: float, reach: float, residual: Any) -> float:
        if self.penalty != "auto":
            return float(self.penalty)
        return chosen_penalty(odds, lower, k, bound, reach, sqrt(PRIOR), residual)

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The sample in the units of the data; with target="ridge" intervals for the ridge line. A question has nothing to ask."""
        (options or ResultOptions()).only()
        design = self._design(release.plan.declared)
        start, basis = self._lines(design)
        public = {name: float(value[0]) for name, value in release.public.items()}
        replied = release.status == "released"
        theta = start + basis @ release["line"].decode() if replied else np.full(len(start), nan)
        total = public["penalty"] + public["eigenvalue"]
        widest = 1 / sqrt(public["precision"] * total) if replied else inf
        found = point_estimates(
            self,
            release,
            design,
            theta,
            reason=_REASON,
            facts=(
                ("Penalty", f"{public['penalty']:.4g}"),
                ("Least eigenvalue, at least", f"{public['eigenvalue']:.4g}"),
                ("Residual, at most", f"{exp(min(public['log_residual'], _HUGE)):.4g} half-ranges"),
            ),
            weak=_WEAK if widest > 1 else "",
        )
        if not replied:
            return replace(found, status="declined", reason=_NO_REPLY)
        if self.target is None or found.status != "valid":
            return replace(found, intervals_for=self._intervals_for())
        matrix, _ = to_units(design, list(range(len(design.terms))))
        units = matrix @ basis * widest
        covariance = units @ units.T
        return replace(
            found,
            covariance=covariance,
            df=inf,
            noise_variance=np.diag(covariance).copy(),
            flags=(_RIDGE_LINE,),
            intervals_for=self._intervals_for(),
            target=f"the ridge line of these records, {found.target}",
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """None: an interval covers the ridge line of a release's own records, at the penalty that the release chose."""
        raise PlanError(
            "intervals of target='ridge' cover the ridge line of the very records of a release, at the penalty that it chose: there "
            f"is no reference without it; write LeastSquares({self.formula!r}) for the population's line"
        )

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in corners of the box, the longest rows with the largest responses. None with derived or categorical terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)


def _precision(bound: float, lower: float, lam: float, log_residual: float, odds: Odds) -> float:
    """gamma = (m*/r)^2 (1 + lev)/lev; 0 where there is none."""
    lev = bound**2 / (lam + lower)
    shift = largest_shift(lev, odds.sample, odds.slack)
    if shift == 0 or log_residual > _HUGE:
        return 0.0
    return (shift * exp(-log_residual)) ** 2 * (1 + lev) / lev * (1 - 2.0**-40)


def _longest(most: int, bound: float, reach: float, lam: float) -> float:
    """|theta| at most, for at most that many records: H^-1 c by the largest of s/(s^2 + lam), and by |c|/lam."""
    return min(sqrt(most) * reach / (2 * sqrt(lam)), most * bound * reach / lam) * (1 + 2.0**-40)


_PROOF = "a pair of posteriors is N(0, 1) and N(m, 1/(1 + lev)), compared with the Gaussian curve at every epsilon"


@dataclass(frozen=True)
class PosteriorSampling(PosteriorMethod):
    """Linear regression by one sample from a ridge posterior whose precision follows from two released bounds: a line.

    formula: "y ~ a + b"; penalty: "auto" (from the released eigenvalue) or a public lam, in units of one record's z'z; leverage_cap: R2
    (default 1 + d/3 for d terms); target: None, or "ridge" for intervals around the ridge line of these records; preset: "released"
    bounds, or "balanced": none, from most_records, a public bound on the number of records that the guarantee then assumes; term_bounds:
    public bounds of derived terms that have none. The request needs a delta. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = PosteriorSampling("y ~ x").plan(schema, cf.GDP(1.0, 1e-6))
    >>> plan.guarantee.delta, [leaf.name for leaf in cf.core.leaves(plan.event)]
    (1e-06, ['eigenvalue', 'residual', 'line'])
    """

    formula: str
    penalty: float | str = "auto"
    leverage_cap: float | None = None
    target: str | None = None
    preset: str = "released"
    most_records: int | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "posterior_sampling"
    task: ClassVar[str] = "linear_regression"
    source: ClassVar[str] = (
        "one posterior sample with released certificates (Redberg, Zhu, Wang 2023), exact privacy of the pair"
    )
    intervals: ClassVar[str] = "no interval; target='ridge': the ridge line of the records, privacy noise alone"

    def __post_init__(self) -> None:
        self._check()
        if self.preset not in ("released", "balanced"):
            raise PlanError(
                f'preset must be "released" or "balanced", got {self.preset!r}; leave it out for "released"'
            )
        most = self.most_records
        whole = is_whole(most, 1, 10**12)
        if (self.preset == "balanced") != (most is not None) or (most is not None and not whole):
            raise PlanError(
                f"most_records goes with preset='balanced', a whole number from 1 to 1e12, got {most!r} with {self.preset!r}; write "
                f"PosteriorSampling({self.formula!r}, preset='balanced', most_records=100_000)"
            )

    def _most(self) -> int | None:
        return self.most_records
