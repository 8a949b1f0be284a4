"""Output perturbation: the ridge line of weighted records over a ball, with noise on the line itself.

Estimates the line E[y|x] = intercept + x'beta. In scaled units z = (1, x~), t of the public bounds, with w = min(1, R2/|z|^2) as in SSP,

    theta = argmin over |theta| <= radius of sum w (t - z'theta)^2 / 2 + lam |theta|^2 / 2.

The sum is not divided by the number of records, which is secret under add-remove: lam follows from a noisy count n~ as
sqrt(n~ G sqrt(p)/(2 m)), which balances shrinkage against noise for lines of length near 1 (m^2: the line's share of mu^2). Without an
intercept theta is sought among the lines through y = 0 at x = 0, the ball lies around the one nearest 0, and the penalty pulls there.

Guarantee: mu-GDP, add-remove or substitute. The count takes 1 % of mu^2. lam theta moves by at most G = beta^2 (R + sqrt(R^2 + 1/g2))/2
when a record is added or removed, by 2 G when one is replaced, for any lam > 0 and any number of records; it is rounded to a public grid
of step G/1024, 2 sqrt(p) steps are added to its sensitivity for the rounding and the solver, and it gets Gaussian noise (Dong, Roth,
Su 2022, Theorem 2). Proof in `confide_lab.aggregates.minimiser`, after Chaudhuri, Monteleoni, Sarwate 2011, whose losses have bounded
slopes and whose number of records is public.

Interval: no interval. The shrinkage is not released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.core import (
    Allowance,
    Composed,
    FormulaMethod,
    Meter,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Total,
)
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.regression.evidence.normal_equations import line_of
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.methods.regression.reference import least_squares
from confide.methods.regression.sums.linear_rows import LinearRows, Present
from confide.schema import ModelMatrix, Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide_lab.aggregates.minimiser import BallMinimiser
from confide_lab.aggregates.points import point_estimates

__all__ = ["OutputPerturbation"]

Array = NDArray[np.float64]

_COUNT_SHARE = Fraction(1, 100)
_FEW = "the noisy number of records is below three for each coefficient; ask for fewer terms, more records or a larger budget"


@dataclass(frozen=True)
class OutputPerturbation(FormulaMethod):
    """Linear regression by noise on the minimiser of a ridge objective: a line, no interval.

    formula: "y ~ a + b"; radius: bound on the length of theta in half-ranges of the response, from the middle of its range;
    penalty: a public lam > 0, left out: from the noisy count; term_bounds: public bounds of derived terms that have none.
    One pass for the count, one for the moments.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = OutputPerturbation("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, [leaf.name for leaf in plan.event.parts]
    (1.0, ['count', 'minimiser'])
    """

    formula: str
    radius: float = 1.0
    penalty: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "output_perturbation"
    family: ClassVar[str] = "regression"
    task: ClassVar[str] = "linear_regression"
    source: ClassVar[str] = "output perturbation (Chaudhuri, Monteleoni, Sarwate 2011) for ridge regression over a ball"

    def __post_init__(self) -> None:
        for name, value, largest in (("radius", self.radius, 1e3), ("penalty", self.penalty, 1e12)):
            if value is None and name == "penalty":
                continue
            number = is_finite(value)
            if not (number and 1e-3 <= float(value or 0) <= largest):
                raise PlanError(
                    f"{name} must be a number from 0.001 to {largest:g}, got {value!r}; leave it out for the default"
                )

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The count and the minimiser. Raises `PlanError` for a formula or setting that cannot work."""
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        count: Statistic = Total(Present(design), nonnegative=True)
        minimiser = self._minimiser(design)
        spends = (
            allowance.spend("count", count, _COUNT_SHARE),
            allowance.spend("minimiser", minimiser, 1 - _COUNT_SHARE),
        )
        return Plan.of(
            self,
            schema,
            allowance,
            Composed(spends),
            {"count": count, "minimiser": minimiser},
            n=n,
            passes=2,
            constants={"radius": float(self.radius), "slope": minimiser.slope},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for="no interval: the line is pulled towards the middle by an amount that is not released",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _minimiser(self, design: ModelMatrix) -> BallMinimiser:
        line = line_of(design)
        basis = line.basis if design.intercept else np.linalg.qr(line.basis)[0]
        start = line.offset - basis @ (basis.T @ line.offset)
        cap = 1 + len(design.terms) / 3
        reach = sqrt(self.radius**2 + float(start @ start))
        # the g2 at which the bound on a gradient is attained at |u|^2 = cap and |t| = 1
        rows = LinearRows(design, cap, cap / (2 * reach * sqrt(cap) + 1))
        return BallMinimiser(
            rows,
            float(self.radius),
            tuple(float(v) for v in start),
            tuple(tuple(float(v) for v in row) for row in basis),
        )

    def _penalty(self, count: float, plan: Plan, minimiser: BallMinimiser) -> float:
        if self.penalty is not None:
            return float(self.penalty)
        spend = plan.spend("minimiser")
        noise = sqrt(float(spend.scale)) * float(spend.step) * minimiser.step
        return sqrt(max(count, 1.0) * noise * sqrt(len(minimiser.start)) / 2)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The noisy count, then the minimiser at the penalty that follows from it."""
        minimiser = plan.statistic("minimiser")
        assert isinstance(minimiser, BallMinimiser)
        (present,) = source.aggregate(plan.statistic("count"))
        count = float(meter.draw("count", present).decode()[0])
        penalty = self._penalty(count, plan, minimiser)
        (line,) = source.aggregate(minimiser.at(penalty))
        meter.draw("minimiser", line)
        return {"penalty": np.array([penalty])}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The coefficients in the units of the data, without standard errors. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design = self._design(release.plan.declared)
        noisy, penalty = release["count"], float(release.public["penalty"][0])
        minimiser = self._minimiser(design).at(penalty)
        count, half = float(noisy.decode()[0]), stats.norm.ppf(0.975) * sqrt(noisy.variance)
        return point_estimates(
            self,
            release,
            design,
            minimiser.decode(release["minimiser"].decode()),
            reason="the line is pulled towards the middle by an amount that is not released",
            facts=(
                ("Records (noisy)", f"{count:,.0f} ± {half:,.0f}"),
                ("Penalty", f"{penalty:.4g}"),
            ),
            weak="" if count >= 3 * (len(design.terms) + 1) else _FEW,
            nobs=count,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in corners, whose slopes are the largest wherever the line is. None with derived or categorical terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)
