"""Analyze Gauss: linear regression from one noisy matrix of second moments, taken as it is.

Estimates the line E[y|x] = intercept + x'beta. In scaled units v = (1, x~, t) of the public bounds it releases M = sum v v' with symmetric
Gaussian noise and solves its normal equations. Nothing guards the solution: where the noise reaches the smallest eigenvalue of M the line
is wild. `SSP` weighs rows by leverage and gives intervals, `AdaSSP` adds a ridge; this is their common ancestor.

Guarantee: mu-GDP, add-remove, or substitute with sqrt(2) times the noise. A record is clipped to |v| <= B, so that |v v'|_F <= B^2;
replaced by another, two positive matrices differ by at most sqrt(2) B^2. Noise of variance s^2 on the diagonal and s^2/2 off it, s =
B^2/mu, on exact integers. Sources: Dwork, Talwar, Thakurta, Zhang 2014, Algorithm 1 (there with s = B^2 sqrt(2 ln(1.25/delta))/epsilon, a
theorem for epsilon up to 1, and the full variance off the diagonal too, which the Frobenius norm does not ask for); Dong, Roth, Su 2022,
Theorem 2.

Interval: no interval. Those of Sheffet 2017 are for Gaussian features, and were not confirmed for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

from scipy import stats

from confide.core import Allowance, FormulaMethod, Gram, Plan, Release, ResultOptions
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_number
from confide.methods.regression.certified.sums import BoundedRows
from confide.methods.regression.evidence.normal_equations import line_of
from confide.methods.regression.evidence.sparse_levels import totals_of_gram, unseen_levels
from confide.methods.regression.linear_estimates import LinearEstimates, kept
from confide.methods.regression.reference import least_squares
from confide.schema import ModelMatrix, Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import BITS, corner_pairs
from confide_lab.aggregates.points import point_estimates, ridge_line, weakness

__all__ = ["AnalyzeGauss"]

_REASON = "the published intervals are for Gaussian features; SSP has intervals from the same kind of release"


@dataclass(frozen=True)
class AnalyzeGauss(FormulaMethod):
    """Linear regression by one noisy second moment matrix (Analyze Gauss): a line, no interval.

    formula: "y ~ a + b"; row_bound: B, in scaled units, where a row (1, x~, t) has entries in [-1, 1]; left out it is sqrt(2 + d) and
    nothing is clipped; term_bounds: public bounds of derived terms that have none. A question may name a subset of coefficients.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = AnalyzeGauss("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.spend("moments").shape, plan.constants["row_bound"] ** 2
    (1.0, (3, 3), 2.9999999999999996)
    """

    formula: str
    row_bound: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "analyze_gauss"
    family: ClassVar[str] = "regression"
    asks: ClassVar[tuple[str, ...]] = ("subset",)
    source: ClassVar[str] = "noisy second moments (Dwork, Talwar, Thakurta, Zhang 2014), exact Gaussian noise"

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One noisy matrix. Raises `PlanError` for a formula or setting that cannot work."""
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        rows = self._rows(design)
        moments = Gram(rows, entry_bits=BITS)
        return Plan.of(
            self,
            schema,
            allowance,
            allowance.spend("moments", moments, Fraction(1)),
            {"moments": moments},
            n=n,
            constants={"row_bound": rows.length},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for=f"no interval: {_REASON}",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _rows(self, design: ModelMatrix) -> BoundedRows:
        most, bound = sqrt(2 + len(design.terms)), self.row_bound
        if bound is not None and not is_number(bound):
            raise PlanError(f"row_bound must be a number above 0, got {bound!r}; leave it out and no row is clipped")
        return BoundedRows(design, most if bound is None else min(float(bound), most), joint=True)

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The coefficients in the units of the data, without standard errors; status "imprecise" where the matrix is not above its noise.

        A question may name a subset of coefficients, `ResultOptions(subset=("age", "educ"))`. Raises `PlanError` for a name that is none.
        """
        options = options or ResultOptions()
        options.only(*self.asks)
        design = self._design(release.plan.declared)
        keep = kept(design, options)
        noisy, rows = release["moments"], self._rows(design)
        unit = float(rows.steps) ** 2
        values, sd = noisy.decode() / unit, sqrt(noisy.variance) / unit
        gram = values[:-1, :-1]
        line = line_of(design, keep)
        clipped = rows.length < sqrt(2 + len(design.terms))
        label = "Records x squared clip factor (noisy)" if clipped else "Records (noisy)"
        return point_estimates(
            self,
            release,
            design,
            ridge_line(gram, values[:-1, -1], line),
            reason=_REASON,
            facts=((label, f"{gram[0, 0]:,.0f} ± {stats.norm.ppf(0.975) * sd:,.0f}"),),
            keep=keep,
            weak=weakness(gram, sd, line),
            unseen=unseen_levels(
                design,
                totals_of_gram(gram, sd),
                keep=keep,
                counted="noisy weighted count" if clipped else "noisy count",
            ),
            nobs=float(gram[0, 0]),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Corners of the box: |v|^2 = 2 + d. None without a schema or with derived terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)
