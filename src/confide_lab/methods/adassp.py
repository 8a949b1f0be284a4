"""AdaSSP: ridge regression from noisy second moments, with a ridge that adapts to a noisy smallest eigenvalue.

Estimates the line E[y|x] = intercept + x'beta. In scaled units z = (1, x~), t of the public bounds it releases A = sum z z', b = sum z t
and lambda, the smallest eigenvalue of A, each with Gaussian noise, and solves (A~ + r I) theta = b~. The ridge r is what the noise of A~
may take from the smallest eigenvalue, less a lower bound of that eigenvalue; with many records it is 0.

Guarantee: add-remove or substitute, a record being clipped to |z| <= B. The three parts take equal shares:
    A       |z z'|_F <= B^2; replaced by another, positive matrices differ by at most sqrt(2) times that
    b       |z t| <= B; replaced by another, by at most 2 B
    lambda  one record moves it by at most B^2 under both relations (Weyl 1912); released in steps of B^2/2^20 found by exact arithmetic
All are Gaussian mechanisms on exact integers (`aggregates.bounded_rows`), whose mu^2 add up (Dong, Roth, Su 2022).
    accounting="gdp"        mu-GDP with each part at exactly mu/sqrt(3); r = max(0, sqrt(2p) s - max(0, lambda~ - 1.645 s)), s the sd of A~
    accounting="approx-dp"  the source's constants for (epsilon, delta): sd sqrt(L) B^2/(epsilon/3), L = ln(6/delta), and its ridge. They
                            spend mu = epsilon/sqrt(3 L), which is less than (epsilon, delta) allows: the plan states that mu and checks
                            that it implies the request. At (1, 1e-6) that is 1.6 times the noise of the exact accounting.
Source: Wang 2018 (UAI), Algorithm 2, with the symmetric noise of the author's code: variance 1 on the diagonal, 1/2 off it.

Interval: no interval. The ridge biases the line by an amount that depends on the unknown coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.core import (
    Allowance,
    Composed,
    FormulaMethod,
    Meter,
    Noisy,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
)
from confide.errors import PlanError
from confide.guarantees import GDP, ApproxDP, Guarantee
from confide.guarantees.validation import is_number
from confide.methods.regression.certified.sums import BoundedRows, Part, largest_length, moments
from confide.methods.regression.evidence.normal_equations import Line, line_of
from confide.methods.regression.evidence.sparse_levels import totals_of_gram, unseen_levels
from confide.methods.regression.linear_estimates import LinearEstimates, kept
from confide.methods.regression.reference import least_squares
from confide.schema import ModelMatrix, Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide_lab.aggregates.points import point_estimates, ridge_line, weakness

__all__ = ["AdaSSP", "NoisyParts"]

Array = NDArray[np.float64]

_ACCOUNTS = ("gdp", "approx-dp")
_THIRD = Fraction(1, 3)
#: Probability with which the source's ridge may be too small (its rho).
_FAILURE = 0.05
_REASON = "the ridge biases the line by an amount that depends on the unknown coefficients"


@dataclass(frozen=True)
class AdaSSP(FormulaMethod):
    """Linear regression by noisy second moments and an adaptive ridge: a line, no interval.

    formula: "y ~ a + b"; accounting: "gdp" (default) or "approx-dp", which needs a request in ApproxDP; row_bound: B, in scaled units,
    where a row (1, x~) has entries in [-1, 1]; left out it is sqrt(1 + d) and nothing is clipped (clipping biases the line); term_bounds:
    public bounds of derived terms that have none. One pass; a question may name a subset of coefficients.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = AdaSSP("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, sorted(plan.statistics)
    (1.0, ['eigenvalue', 'features', 'response'])
    >>> plan = AdaSSP("y ~ x", accounting="approx-dp").plan(schema, cf.ApproxDP(1.0, 1e-6))
    >>> round(plan.guarantee.mu, 4), round(AdaSSP("y ~ x").plan(schema, cf.ApproxDP(1.0, 1e-6)).guarantee.mu, 4)
    (0.1461, 0.2367)
    """

    formula: str
    accounting: str = "gdp"
    row_bound: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "adassp"
    family: ClassVar[str] = "regression"
    asks: ClassVar[tuple[str, ...]] = ("subset",)
    task: ClassVar[str] = "linear_regression"
    source: ClassVar[str] = "adaptive sufficient statistics perturbation (Wang 2018), exact Gaussian accounting"

    def __post_init__(self) -> None:
        if self.accounting not in _ACCOUNTS:
            raise PlanError(
                f'accounting must be "gdp" or "approx-dp", got {self.accounting!r}; leave it out for "gdp", which has less noise'
            )

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Three equal spends. Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for an impossible request."""
        design = self._design(schema)
        allowance = self._allowance(Allowance.of(privacy, self, schema))
        rows = bounded(design, self.row_bound)
        statistics: dict[str, Statistic] = {kind: Part(rows, kind) for kind in ("features", "response", "eigenvalue")}
        return Plan.of(
            self,
            schema,
            allowance,
            Composed(tuple(allowance.spend(name, statistic, _THIRD) for name, statistic in statistics.items())),
            statistics,
            n=n,
            constants={"row_bound": rows.length},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for=f"no interval: {_REASON}",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _allowance(self, allowance: Allowance) -> Allowance:
        """The allowance at the level that the source's constants spend, where they are asked for."""
        if self.accounting == "gdp":
            return allowance
        asked, level = allowance.requested, allowance.level
        if not isinstance(asked, ApproxDP) or not isinstance(level, GDP):
            raise PlanError(
                f'accounting="approx-dp" takes its noise from an epsilon and a delta, the request is {asked}; '
                "ask for cf.ApproxDP(1.0, 1e-6), or leave accounting out"
            )
        mu = float(asked.epsilon) / sqrt(3 * _length(asked))
        if mu > level.mu:
            raise PlanError(
                f"at {asked} the source's constants spend mu = {mu:.4g}, more than the {level.mu:.4g} that the request allows; "
                "leave accounting out"
            )
        return replace(allowance, level=GDP(mu, relation=level.relation, assumptions=level.assumptions))

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One exact Gram matrix, three noisy parts of it."""
        draw_parts(meter, source, plan, ("features", "response", "eigenvalue"))
        return {}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The coefficients in the units of the data, without standard errors.

        A question may name a subset of coefficients, `ResultOptions(subset=("age", "educ"))`: the same ridge serves it, because no
        eigenvalue of a part is below the smallest of the whole. Raises `PlanError` for a name that is no coefficient.
        """
        options = options or ResultOptions()
        options.only(*self.asks)
        design = self._design(release.plan.declared)
        keep = kept(design, options)
        parts = NoisyParts.of(release, bounded(design, self.row_bound))
        ridge = parts.ridge(*self._caution(release, len(design.terms) + 1))
        line = line_of(design, keep)
        theta = ridge_line(parts.gram, parts.cross, line, ridge)
        return point_estimates(
            self,
            release,
            design,
            theta,
            reason=_REASON,
            facts=(*parts.facts(largest_length(design)), ("Ridge", f"{ridge:,.1f}")),
            keep=keep,
            weak=parts.weakness(line),
            unseen=parts.unseen(design, release, keep),
            nobs=float(parts.gram[0, 0]),
        )

    def _caution(self, release: Release, p: int) -> tuple[float, float]:
        """In noise sds: how far the eigenvalue is lowered, and the least eigenvalue that A~ must have."""
        if self.accounting == "gdp":
            return float(stats.norm.ppf(0.95)), sqrt(2 * p)
        asked = release.plan.requested
        assert isinstance(asked, ApproxDP)
        return sqrt(_length(asked)), sqrt(p * log(2 * p**2 / _FAILURE))

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Corners of the box: |z|^2 = 1 + d and |t| = 1. None without a schema or with derived terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)


def _length(asked: ApproxDP) -> float:
    """L = ln(6/delta)."""
    return log(6 / float(asked.delta))


def bounded(design: ModelMatrix, row_bound: float | None) -> BoundedRows:
    """The rows of a method: clipped at `row_bound`, or not at all."""
    most = largest_length(design)
    if row_bound is not None and not is_number(row_bound):
        raise PlanError(f"row_bound must be a number above 0, got {row_bound!r}; leave it out and no row is clipped")
    return BoundedRows(design, most if row_bound is None else min(float(row_bound), most))


def draw_parts(meter: Meter, source: Source, plan: Plan, names: Iterable[str]) -> None:
    """One pass for the exact Gram matrix, then one noisy draw for each named part."""
    planned = {name: plan.statistic(name) for name in names}
    rows = next(iter(planned.values())).map
    assert isinstance(rows, BoundedRows)
    (whole,) = source.aggregate(moments(rows))
    for name, part in planned.items():
        assert isinstance(part, Part)
        meter.draw(name, part.of(whole))


@dataclass(frozen=True, eq=False)
class NoisyParts:
    """A~ (p, p), b~ (p,; zeros where it was not released), lambda~, in scaled units, and the noise sds of A~'s diagonal and of lambda~."""

    gram: Array
    cross: Array
    eigenvalue: float
    sd_gram: float
    sd_eigenvalue: float
    length: float

    @classmethod
    def of(cls, release: Release, rows: BoundedRows) -> NoisyParts:
        """From the integers of a release."""
        response = release["response"] if "response" in release.statistics else None
        return cls._decoded(rows, release["features"], release["eigenvalue"], response)

    @classmethod
    def drawn(cls, meter: Meter, rows: BoundedRows) -> NoisyParts:
        """From what a meter has drawn so far, without b~."""
        return cls._decoded(rows, meter.drawn("features"), meter.drawn("eigenvalue"), None)

    @classmethod
    def _decoded(cls, rows: BoundedRows, features: Noisy, eigenvalue: Noisy, response: Noisy | None) -> NoisyParts:
        matrix, number = Part(rows, "features"), Part(rows, "eigenvalue")
        gram = matrix.decode(features.decode())
        return cls(
            gram,
            np.zeros(len(gram)) if response is None else Part(rows, "response").decode(response.decode()),
            float(number.decode(eigenvalue.decode())[0]),
            sqrt(features.variance) / matrix.unit,
            sqrt(eigenvalue.variance) / number.unit,
            rows.length,
        )

    def ridge(self, lowered: float, wanted: float) -> float:
        """max(0, wanted sd(A~) - max(0, lambda~ - lowered sd(lambda~)))."""
        return max(0.0, wanted * self.sd_gram - max(0.0, self.eigenvalue - lowered * self.sd_eigenvalue))

    def weakness(self, line: Line) -> str:
        """Why the line is rough: A~ does not stand above its own noise in some direction; "" where it does."""
        return weakness(self.gram, self.sd_gram, line)

    def unseen(self, design: ModelMatrix, release: Release, keep: list[int] | None = None) -> str:
        """What follows in a reason on levels whose noisy count is nothing."""
        counted = "noisy count" if self.length >= largest_length(design) else "noisy weighted count"
        totals = totals_of_gram(self.gram, self.sd_gram)
        return unseen_levels(design, totals, keep=keep, counted=counted)

    def facts(self, most: float) -> tuple[tuple[str, str], ...]:
        """Lines for the head of a table; most: the length from which on no row was clipped."""
        reach = float(stats.norm.ppf(0.975))
        label = "Records (noisy)" if self.length >= most else "Records x squared clip factor (noisy)"
        return (
            (label, f"{self.gram[0, 0]:,.0f} ± {reach * self.sd_gram:,.0f}"),
            ("Least eigenvalue", f"{self.eigenvalue:,.1f} ± {reach * self.sd_eigenvalue:,.1f}"),
        )
