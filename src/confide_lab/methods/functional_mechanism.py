"""The functional mechanism: least squares whose objective has Laplace noise on every coefficient.

Estimates the line E[y|x] = intercept + x'beta. In scaled units z = (1, x~), t of the public bounds the objective sum (t - z'theta)^2/2
= theta'A theta/2 - b'theta + const. gets independent Laplace noise on the entries of A (upper triangle) and b. Its minimiser need not
exist, so A~ is raised by `ridge` standard deviations of the noise on its diagonal, and directions in which it still is not positive are
left at 0 (regularisation and spectral trimming of the source). Both only see the noisy coefficients.

Guarantee: PureDP(epsilon), add-remove or substitute. Laplace noise of scale D/epsilon on integers that move by at most D in the l1 norm
(Dwork, McSherry, Nissim, Smith 2006; rounding is post-processing); with p = d + 1, D = p (p + 3)/2 under add-remove and d^2 + 4 d + 2 under
substitute, in units of a coefficient: proofs in `confide_lab.aggregates.coefficients`. Source: Zhang, Zhang, Xiao, Yang, Winslett 2012,
whose D counts every product twice and the constant too, and whose normalisation has no intercept.

Interval: no interval. Ridge and trimming bias the line by an amount that is not released.
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

from confide.core import Allowance, FormulaMethod, Plan, Release, ResultOptions
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.regression.evidence.normal_equations import line_of
from confide.methods.regression.evidence.sparse_levels import unseen_levels
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.methods.regression.reference import least_squares
from confide.schema import Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide_lab.aggregates.coefficients import CoefficientTotal, QuadraticCoefficients
from confide_lab.aggregates.points import point_estimates

__all__ = ["FunctionalMechanism"]

Array = NDArray[np.float64]

# A coefficient beyond this many half-ranges of the response says nothing.
_FAR = 1e6
# A direction with less than this part of the largest eigenvalue is trimmed: a quotient by it would be rounding.
_FLAT = 1e-9
_TRIMMED = "the noise outweighs the records in some direction, which was left at the middle; ask for fewer terms or a larger budget"


@dataclass(frozen=True)
class FunctionalMechanism(FormulaMethod):
    """Linear regression by Laplace noise on the coefficients of its objective: pure differential privacy, a line, no interval.

    formula: "y ~ a + b"; ridge: what is added to the diagonal of the noisy matrix, in standard deviations of its noise (default 4, as in
    the source; 0 leaves it to trimming alone); term_bounds: public bounds of derived terms that have none. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = FunctionalMechanism("y ~ x").plan(schema, cf.PureDP(1.0))
    >>> plan.guarantee.epsilon, float(plan.spend("coefficients").sensitivity * plan.spend("coefficients").step / 2**20)
    (1.0, 5.0)
    """

    formula: str
    ridge: float = 4.0
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "functional_mechanism"
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = "functional mechanism (Zhang et al. 2012), sensitivity counted exactly"
    native: ClassVar[str] = "PureDP"

    def __post_init__(self) -> None:
        ridge = self.ridge
        if not (is_finite(ridge) and 0 <= ridge <= 1e6):
            raise PlanError(
                f"ridge must be a number from 0 to 1e6, got {ridge!r}; leave it out for 4 sds of the noise, as in the source"
            )

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One noisy sum of coefficients. Raises `PlanError` for a formula that cannot work."""
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        coefficients = CoefficientTotal(QuadraticCoefficients(design))
        return Plan.of(
            self,
            schema,
            allowance,
            allowance.spend("coefficients", coefficients, Fraction(1)),
            {"coefficients": coefficients},
            n=n,
            constants={"ridge": float(self.ridge)},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for="no interval: ridge and trimming bias the line by an amount that is not released",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The coefficients in the units of the data, without standard errors. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design = self._design(release.plan.declared)
        noisy, coefficients = release["coefficients"], QuadraticCoefficients(design)
        gram, cross = coefficients.decode(noisy.decode())
        sd = sqrt(noisy.variance) / coefficients.unit
        line = line_of(design)
        theta, trimmed = _minimiser(gram, cross, self.ridge * sd, line.offset, line.basis)
        return point_estimates(
            self,
            release,
            design,
            theta,
            reason="ridge and trimming bias the line by an amount that is not released",
            facts=(
                ("Records (noisy)", f"{gram[0, 0]:,.0f} ± {_reach(sd):,.0f}"),
                ("Directions trimmed", f"{trimmed} of {line.basis.shape[1]}"),
            ),
            weak=_TRIMMED if trimmed else "",
            # each number of the matrix has noise of its own, of one size
            unseen=unseen_levels(design, (gram[:, 0], sd**2 * np.eye(len(gram))), laplace=True),
            nobs=float(gram[0, 0]),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in corners, where every coefficient is 1 or -1: any corner attains the sensitivity under add-remove.

        None with derived or categorical terms.
        """
        return () if schema is None else corner_pairs(self._design(schema), schema)


def _reach(sd: float) -> float:
    """Half of a 95 % interval of one Laplace draw with this standard deviation."""
    return float(stats.laplace.ppf(0.975)) * sd / sqrt(2)


def _minimiser(gram: Array, cross: Array, ridge: float, offset: Array, basis: Array) -> tuple[Array, int]:
    """The minimiser of theta'(A + ridge I) theta/2 - b'theta on the line's affine set, and how many directions were trimmed."""
    inner = basis.T @ (gram + ridge * np.eye(len(gram))) @ basis
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    moment = vectors.T @ (basis.T @ (cross - gram @ offset))
    kept = values > max(float(values[-1]), 0.0) * _FLAT
    step = np.divide(moment, values, out=np.zeros_like(moment), where=kept)
    return np.clip(offset + basis @ (vectors @ step), -_FAR, _FAR), int((~kept).sum())
