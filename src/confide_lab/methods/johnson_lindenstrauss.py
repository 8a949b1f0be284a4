"""A Gaussian sketch: the line of R [A; w I], of which the release holds the sketch's Gram matrix.

Estimates the line E[y|x] = intercept + x'beta. A has the rows sqrt(v) (z, sqrt(g2) t) of SSP in scaled units, v = min(1, R2/|z|^2), of
length at most B^2 = R2 + g2. With R of r rows of standard normal numbers the sketch has r independent rows N(0, M), M = A'A + w^2 I, and
leaves as W = R-sketch's Gram matrix, a Wishart matrix of mean r M. W/r - w^2 I is an unbiased A'A, from which the line follows; the
literature keeps w^2 in it, as a ridge. Its entries have sds of about w^2/sqrt(r) for privacy, which falls to the noise of a Gaussian
mechanism on A'A as r grows, and |A'A|/sqrt(r) for the sketch, as if there were r records.

Guarantee: ApproxDP(epsilon, delta), add-remove, proved here. A record adds u u' to M, |u| <= B; on M^(-1/2) Y the laws are r rows N(0, I)
and N(0, I + c e e'), e a unit vector, c = u'M^(-1)u <= B^2/w^2 because M >= w^2 I. Only the r numbers along e tell them apart, and those by
S = their sum of squares: chi-square with r degrees under one law, (1 + c) times that under the other, with log-likelihood ratio
S c/(2 (1 + c)) - r log(1 + c)/2, rising in S. So, with F the distribution function of chi-square and a = r log(1 + c)/2,

    delta(epsilon) = max( 1 - F(s/(1 + c)) - e^epsilon (1 - F(s)), s = 2 (epsilon + a)(1 + c)/c ;
                          F(s) - e^epsilon F(s/(1 + c)), s = 2 (a - epsilon)(1 + c)/c ).

It rises with c: adding N(0, q) to each number turns c into c/(1 + q), by post-processing. Hence the c that is found for (epsilon, delta)
makes w^2 = B^2/c, and the bound is attained where there are no other records. No test of the records' eigenvalues is made. What
follows is in floats: the normal numbers are integers of an exact sampler over 2^40, the rest is float64, which the statement says as
an assumption. Rounding W to a public grid, no finer than 2^-20 of the least sd of an entry, is post-processing: the lattice of
the normal numbers moves an entry by about 2^-21 |A'A|/w^2 of that grid, doubles by about 2^-33 sqrt(r) |A'A|/w^2 of it.
Sources: Blocki, Blum, Datta, Sheffet 2012; Sheffet 2017 (w^2 = 8 B^2/epsilon (sqrt(2 r ln(8/delta)) + 2 ln(8/delta)), 15 to 27 times as
much, and a test on the least eigenvalue); Lev, Srinivasan, Shenfeld, Ligett, Sekhari, Wilson 2025 (Renyi analysis).

Interval: no interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, frexp, log, log1p, nextafter, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from confide.core import FormulaMethod, Gram, Meter, OpaqueRelease, Plan, Proved, Release, ResultOptions, Source
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_whole
from confide.methods.regression.evidence.normal_equations import PRIOR, line_of
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.methods.regression.reference import least_squares
from confide.methods.regression.sums.linear_rows import LinearRows
from confide.schema import Categorical, ModelMatrix, Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide_lab.aggregates.points import point_estimates, ridge_line

__all__ = ["JohnsonLindenstrauss", "sketch_delta", "sketch_ratio"]

Array = NDArray[np.float64]

_ROWS = 10_000
# Standard normal numbers as integers of the exact sampler: steps in one unit.
_FINE = 1 << 40
# The released Gram matrix is rounded to about 2^-20 of its noise's size, never finer (`Meter.opaque`).
_GRID = 20
# What the distribution functions may be wrong by, relative.
_ACCURACY = 1e-6


def sketch_delta(epsilon: float, rows: int, ratio: float) -> float:
    """The least delta at which a sketch of `rows` rows is (epsilon, delta)-DP when one record adds at most `ratio` = B^2/w^2 (add-remove).

    >>> round(sketch_delta(1.0, 100, 0.1), 5)
    0.04207
    """
    shape, spread = rows / 2, rows / 2 * log1p(ratio)
    upper = (epsilon + spread) * (1 + ratio) / ratio
    grown = _above(shape, upper / (1 + ratio)) - _scaled(epsilon, _above(shape, upper))
    lower = (spread - epsilon) * (1 + ratio) / ratio
    if lower <= 0:
        return float(max(grown, 0.0))
    shrunk = float(special.gammainc(shape, lower)) - _scaled(epsilon, special.gammainc(shape, lower / (1 + ratio)))
    return float(max(grown, shrunk, 0.0))


def _above(shape: float, x: float) -> float:
    return float(special.gammaincc(shape, x))


def _scaled(epsilon: float, probability: float) -> float:
    return exp(epsilon + log(probability)) if probability > 0 else 0.0


def sketch_ratio(epsilon: float, delta: float, rows: int) -> float:
    """The largest B^2/w^2 at which a sketch of `rows` rows is (epsilon, delta)-DP, rounded down.

    >>> round(1 / sketch_ratio(1.0, 1e-6, 20), 2)
    19.22
    """
    low, high = 0.0, 1.0
    while sketch_delta(epsilon, rows, high) * (1 + _ACCURACY) <= delta and high < 2.0**40:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if sketch_delta(epsilon, rows, middle) * (1 + _ACCURACY) > delta else (middle, high)
    return nextafter(low * (1 - 1e-9), 0.0)


@dataclass(frozen=True)
class JohnsonLindenstrauss(FormulaMethod):
    """Linear regression from a Gaussian sketch of the records, w^2 always added and calibrated exactly: a line, no interval.

    formula: "y ~ a + b"; rows: of the sketch, public (default 10,000); term_bounds: public bounds of derived terms that have none. The
    request must be an `ApproxDP`: a sketch has no Gaussian guarantee, its tails are longer. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = JohnsonLindenstrauss("y ~ x").plan(schema, cf.ApproxDP(1.0, 1e-6))
    >>> plan.guarantee.assumptions
    ('float64 sampling',)
    """

    formula: str
    rows: int = _ROWS
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "johnson_lindenstrauss"
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = "Gaussian sketch (Blocki et al. 2012; Sheffet 2017), exact calibration without a test"
    relations: ClassVar[tuple[str, ...]] = ("add-remove",)
    native: ClassVar[str] = "ApproxDP"
    needs: ClassVar[frozenset[str]] = frozenset({"opaque"})

    def __post_init__(self) -> None:
        if not is_whole(self.rows, 2, 1_000_000):
            raise PlanError(
                f"rows must be a whole number from 2 to 1,000,000, got {self.rows!r}; 10,000 is the default"
            )

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One sketch. Raises `PlanError` for a formula that cannot work, `PrivacyError` for a request that is no `ApproxDP`."""
        design = self._design(schema)
        if self.rows < len(design.terms) + 2:
            raise PlanError(
                f"a sketch of {self.rows} rows is singular for {len(design.terms)} terms; write rows=10_000"
            )
        proved = Proved.of(
            privacy,
            self,
            schema,
            assumptions=("float64 sampling",),
            who="a sketch",
            instead="take AnalyzeGauss, which a sketch of many rows comes near",
        )
        ratio = sketch_ratio(proved.level.epsilon, proved.approx.delta, self.rows)
        return Plan.of(
            self,
            schema,
            proved,
            OpaqueRelease("sketch", proved.level, _PROOF),
            {"moments": Gram(self._map(design))},
            n=n,
            constants={"rows": self.rows, "ratio": ratio},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for="no interval: the law of a sketch's line is not worked out",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _map(self, design: ModelMatrix) -> LinearRows:
        cap = 1 + len(design.terms) / 3
        return LinearRows(design, cap, (sqrt(1 + 8 * PRIOR * cap) - 1) / (4 * PRIOR))

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The Gram matrix of the sketch, from the exact one and standard normal numbers."""
        rows = self._map(self._design(source.schema))
        ridge = rows.l2_squared / plan.constants["ratio"]
        (gram,) = source.aggregate(plan.statistic("moments"))
        whole = np.array([[float(v) for v in row] for row in gram.tolist()])
        root = np.linalg.cholesky(whole + ridge * np.eye(len(whole)))
        drawn = meter.noise("sketch").grid_gaussian(Fraction(_FINE**2), self.rows * len(whole))
        normal = np.asarray(drawn, dtype=np.float64).reshape(self.rows, len(whole)) / _FINE
        sketch = root @ (normal.T @ normal) @ root.T
        # an entry of a Wishart matrix of r rows has a variance of at least r w^4, as M >= w^2 I
        noise_sd = ridge * sqrt(self.rows)
        meter.opaque("sketch", (sketch + sketch.T) / 2, _step(noise_sd), noise_sd)
        return {}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The coefficients in the units of the data, without standard errors. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design = self._design(release.plan.declared)
        rows = self._map(design)
        unit, g = float(rows.steps) ** 2, sqrt(rows.g2)
        ridge = rows.l2_squared / release.plan.constants["ratio"]
        moments = (release["sketch"].decode() / self.rows - ridge * np.eye(rows.width)) / unit
        gram, cross = moments[:-1, :-1], moments[:-1, -1] / g
        # about the operator norm of the noise: where the least eigenvalue is below it, that much of w^2 stays in, as a ridge
        edge = ridge / unit * sqrt(2 * len(gram) / self.rows)
        least = float(np.linalg.eigvalsh(gram)[0])
        weak = least < edge
        return point_estimates(
            self,
            release,
            design,
            ridge_line(gram, cross, line_of(design), max(edge - least, 0.0) if weak else 0.0),
            reason="the law of a sketch's line is not worked out",
            facts=(
                ("Sketch", f"{self.rows:,} rows, w^2 = {ridge / unit:.4g}"),
                ("Weighted count (noisy)", f"{gram[0, 0]:,.0f}"),
            ),
            weak=_WEAK if weak else "",
            nobs=float(gram[0, 0]),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A record whose weighted row is as long as the bound, |z|^2 = R2 and |t| = 1: alone in its table it attains delta.

        None with derived terms.
        """
        design = None if schema is None else self._design(schema)
        names = [] if design is None else [term.plain for term in (*design.terms, design.response)]
        if design is None or schema is None or None in names:
            return
        reach = min(sqrt((self._map(design).cap - 1) / max(len(design.terms), 1)), 1.0)
        record = {}
        for j, name in enumerate(map(str, names)):
            column = schema[name]
            assert not isinstance(column, Categorical)
            place = 1.0 if j == len(design.terms) else reach
            record[name] = (column.low + column.high) / 2 + place * (column.high - column.low) / 2
        yield (record,)


_PROOF = "one record changes the covariance of r normal rows by a matrix of rank one, at most B^2/w^2 against w^2 I; chi-square tails"
_WEAK = "the noise outweighs the records in some direction, where a ridge stays in; ask for fewer terms, more records or a larger budget"


def _step(noise_sd: float) -> Fraction:
    """The grid of the released Gram matrix: a power of two from 2^-20 of its noise's least sd up to twice that, or 1."""
    return Fraction(2) ** max(frexp(noise_sd)[1] - _GRID, 0)
