"""SSP2: linear regression from rounds of noisy residual moments in whitened coordinates. The default for one regression.

Estimates the line E[y|x] = intercept + x'beta. A first noisy fit pays for the range of the response and the box of the features; every
further round measures residuals from the line so far, at their own scale and in coordinates where the noisy Gram matrix is the identity
(`mechanisms.residual_rounds`), so that its noise is small beside them. For releases that answer many questions there is `SSP`.

Guarantee: mu-GDP, add-remove or substitute. Count, ranges, leverages, each round's moments and the meat are Gaussian mechanisms on exact
integers, adaptively composed; with a response clipped at one unit w |u|^2 <= R2 and w r^2 <= 1 for any whitening T, line theta and scale
that came out before, so that a round costs mu_A^2 + mu_b^2 + mu_q^2, and under substitute what `mechanisms.blocks` derives. Sources:
Dwork, Talwar, Thakurta, Zhang 2014; Dong, Roth, Su 2022, Theorem 2 and Corollary 2.

Interval: Student t with a sandwich covariance that contains sampling and privacy noise; unequal residual variances allowed. It covers the
coefficients of the population's line for responses clipped to their bounds; if the relation is not linear, the least-squares line with
the released weights, target="projection", or the plain one, target="ols", whose last round weighs no record and clips no residual and so
needs more noise. Where the released Gram matrix is below its noise: status "weak" and a bias-aware interval under a declared bound on the
slopes. objective="prediction" gives a shrunken line without interval, and for few records that of a noisy gradient descent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.mechanisms.residual_rounds import cross_noise, draw_line, plan_line
from confide.mechanisms.round_lines import RoundLines
from confide.mechanisms.rounds import last_round
from confide.noise import keyed_generator
from confide.protocol import Allowance, Event, Meter, Method, Plan, Question, Release, Source
from confide.regression.linear import kept, legend
from confide.regression.round_reading import TARGET_WORDS, RoundReading, box_of, count_text, few_records, slope_bound
from confide.regression.scaling import coefficient_names, forecast_table, line_of, to_units
from confide.regression.shared_estimates import SharedEstimates
from confide.schema import Categorical, Design, Schema
from confide.schema.formula import parse_formula

__all__ = ["SSP2"]

Array = NDArray[np.float64]

_OBJECTIVES = ("inference", "prediction")
_TARGETS = ("projection", "ols")


@dataclass(frozen=True)
class SSP2(Method):
    """Linear regression by adaptive rounds of noisy residual moments.

    formula: "y ~ a + b"; objective: "inference" (intervals) or "prediction" (a shrunken line, no interval); target: "projection" (the
    line of the released weights) or "ols"; slope_bound: B for intervals at status "weak", which assume that no slope moves the response
    by more than B half-ranges for one half-width of its feature (2 when half-widths are private ranges; else there is no default and no
    interval); clipping_check: pay 1 % of mu^2 for a noisy count of responses outside their bounds (inference); term_bounds: public
    bounds of derived terms that have none.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = SSP2("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation, plan.passes
    (1.0, 'add-remove', 6)
    """

    formula: str
    objective: str = "inference"
    target: str = "projection"
    slope_bound: float | None = None
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "ssp2"
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = (
        "rounds of noisy residual moments in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    )
    intervals: ClassVar[str] = "coefficients of the population's line; sampling, privacy noise, unequal variances"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("objective", self.objective, _OBJECTIVES),
            ("target", self.target, _TARGETS),
        ):
            if value not in allowed:
                raise PlanError(
                    f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}; write SSP2(formula, {name}={allowed[0]!r})"
                )
        if self.objective == "prediction" and self.target == "ols":
            raise PlanError(
                'target="ols" says which line an interval covers, and objective="prediction" has none; leave target out'
            )
        bound = self.slope_bound
        if bound is not None and not (
            isinstance(bound, (int, float)) and not isinstance(bound, bool) and isfinite(bound) and bound > 0
        ):
            raise PlanError(f"slope_bound must be a finite number above 0, got {bound!r}; leave it out, or write 2.0")
        if not isinstance(self.clipping_check, bool):
            raise PlanError(f"clipping_check must be True or False, got {self.clipping_check!r}")

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The spends of both branches, and the guarantee, from public facts.

        Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for an impossible guarantee.
        """
        design = self._design(schema)
        to_units(design, [])  # refuses bounds in whose units no variance can be computed
        allowance = Allowance.of(privacy, self, schema)
        event, statistics = plan_line(
            design, allowance, self.objective, clipping=self.clipping_check, unweighted=self.target == "ols"
        )
        response = design.response.name
        descent = self.objective == "prediction"
        return Plan.of(
            self,
            schema,
            allowance,
            event,
            statistics,
            n=n,
            # the longest branch: first sums, three rounds, leverages, meat; or first sums and the steps of a descent
            passes=31 if descent else 6,
            constants={} if descent else {"slope_bound": slope_bound(self.slope_bound, design, private=True) or 0.0},
            target=f"linear regression of {response} on {', '.join(design.names)}"
            + (", for prediction" if descent else f", {TARGET_WORDS[self.target]}"),
            covers=self._covers(design),
            forecast={} if descent else self._forecast(design, schema, allowance, event, n),
            warnings=(
                *parse_formula(self.formula, schema).notes,
                *(
                    ()
                    if self.clipping_check or descent
                    else ("responses outside their bounds are clipped and not counted: clipping_check=False",)
                ),
            ),
        )

    def _design(self, schema: Any) -> Design:
        whole = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        return Design.of(self.formula, whole, term_bounds=self.term_bounds)

    def _forecast(
        self, design: Design, schema: Schema, allowance: Allowance, event: Event, n: int | None
    ) -> dict[str, Any]:
        """What the last round of the long branch would give: its noise on residuals clipped at three sds, in whitened coordinates.

        Where the records are too few for it the number is that of a release that cannot be read: half the range of the response for
        each half-width of the feature.
        """
        line = line_of(design)
        cross = cross_noise(design, event)

        def covariance(scaled: Array, count: int) -> Array:
            p = scaled.shape[1]
            one = scaled.T @ scaled / len(scaled)
            spread = line.basis @ np.linalg.pinv(line.basis.T @ one @ line.basis) @ line.basis.T
            sampling, noise = 1 / (4 * count), 9 * 2**0.5 * p * (cross / count) ** 2 / 4
            if count < 60 * p * cross:
                return np.asarray(spread / np.abs(np.diag(spread)).max())
            return np.asarray((sampling + noise) * spread)

        return forecast_table(design, schema, n, covariance)

    def _covers(self, design: Design) -> str:
        if self.objective == "prediction":
            return "nothing: a line for prediction, without intervals"
        line = (
            "residuals beyond the released scale count at that scale; if the relation is not linear, the least-squares line with the "
            "released leverage weights and with residuals so limited"
            if self.target == "projection"
            else "if the relation is not linear, the least-squares line of all records"
        )
        return (
            f"coefficients of the population's line for {design.response.name} clipped to its declared bounds; sampling of records "
            f"and privacy noise, unequal residual variances allowed, independent records; {line}"
        )

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; the noisy count chooses the branch."""
        design = self._design(source.schema)
        return draw_line(design, meter, source, plan, unweighted=self.target == "ols")

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, question: Question | None = None) -> SharedEstimates:
        """The regression table. A question may name a subset of coefficients: `Question(subset=("age", "educ"))`.

        A subset's covariance assumes equal residual variances in the smaller model, as the released meat belongs to the full one; the end
        of a descent has no subsets. Raises `PlanError` for a name that is no coefficient.
        """
        question = question or Question()
        question.only("subset")
        design = self._design(release.plan.schema)
        keep = kept(design, question)
        if "meat" not in release.statistics:
            return self._points(release, question, design, keep)
        return RoundReading(
            f"{self.name} {self.version}", self.target, self.slope_bound, release, question, design, keep
        ).table()

    def _points(self, release: Release, question: Question, design: Design, keep: list[int]) -> SharedEstimates:
        """The table of a line for prediction: the shrunken line of the last round, or where a descent ended."""
        box = box_of(release)
        whole = line_of(design, keep, box)
        matrix, shift = to_units(design, keep, box)
        descent = "line" in release.public
        if descent:
            if len(keep) < len(design.terms):
                raise PlanError(
                    "this line for prediction came from a descent and has no subsets; release the smaller formula"
                )
            theta = np.asarray(release.public["line"], dtype=np.float64)
            # the nearest line that the formula allows; a free one is itself
            theta = whole.offset + whole.basis @ np.linalg.lstsq(whole.basis, theta - whole.offset, rcond=None)[0]
        else:
            done = last_round(design, release.statistics, release.public, str(release.charged.relation))
            generator = keyed_generator(release.sha256, question.sha256)
            delta, _ = RoundLines.of(done, whole.offset, whole.basis).shrunken(done, generator)
            theta = done.frame.line + done.frame.rho * done.frame.matrix @ delta
        names = coefficient_names(design, keep)
        count = release["count"]
        response = design.response
        return SharedEstimates(
            method=f"{self.name} {self.version}",
            response=response.name,
            names=names,
            estimates=matrix @ theta + shift,
            covariance=np.full((len(names),) * 2, nan),
            df=nan,
            noise_variance=np.full(len(names), nan),
            status="ok",
            reason="",
            flags=("no_interval", *few_records(count)),
            requested=release.plan.requested,
            guarantee=release.charged,
            target=f"linear regression of {response.name} on {', '.join(names)}, for prediction",
            covers=release.plan.covers,
            release_sha256=release.sha256,
            facts=(
                ("Line", "noisy gradient descent: few records" if descent else "shrunken, three rounds"),
                ("Count (noisy)", count_text(count)),
            ),
            legend=legend(design, release.plan.schema)[1:],
            simulated=release.simulated,
            design=design,
            nobs=float(count.decode()[0]),
            within=(float(response.low), float(response.high)),
        )

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records whose first round is largest, |z|^2 = R2 and |t| = 1: alike but for the end of the response, and mirrored.

        The former are the worst pair under substitute, where the products of features and response change sign. None without a schema
        or with derived terms.
        """
        design = None if schema is None else self._design(schema)
        names = [] if design is None else [term.plain for term in (*design.terms, design.response)]
        if design is None or schema is None or None in names:
            return
        reach = sqrt(1 / 3)  # of the way from the middle to the end: |z|^2 = 1 + d/3
        above: dict[str, Any] = {}
        below: dict[str, Any] = {}
        for name in names[:-1]:
            column = schema[str(name)]
            assert not isinstance(column, Categorical)
            middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
            above[str(name)], below[str(name)] = middle + reach * half, middle - reach * half
        response = schema[str(names[-1])]
        assert not isinstance(response, Categorical)
        low, high = {str(names[-1]): response.low}, {str(names[-1]): response.high}
        yield {**above, **high}, {**above, **low}
        yield {**above, **high}, {**below, **low}
