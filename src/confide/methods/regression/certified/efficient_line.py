"""Efficient propose-test-release: a least-squares line with noise for its own data's least eigenvalue, not for the worst data's.

Estimates E[y|x] = intercept + x'beta by least squares of jointly weighted records, (z, t) times sqrt(w), w = min(1, cap/|z|^2). Units
are scaled by the public bounds, and the coefficients are projected to a ball |phi| <= radius. The guarantee may fail with a small
probability, so the request needs a delta.

Guarantee: mu-GDP but for delta, substitute. L is the smallest eigenvalue of the weighted Gram matrix, X and Y the bounds on a weighted
row and response, kappa as in `reading` (where the proofs are). L moves by at most X^2. Where L >= lam + X^2, the coefficients move by
at most alpha = X^2 radius kappa(Y/(X radius))/lam.

mode="adaptive" : L~ = L + N is released with 10% of the budget.
    lam = L~ - T - X^2, P(N >= T) <= delta, is a lower bound of L - X^2 but for probability delta. Where lam > X^2 the coefficients get
    noise for alpha(lam), else the method declines. Squares of mu and deltas add.
mode="safe" : lam = lam0 is public.
    The safety (L - lam0 - X^2)_+/X^2, moved by at most 1, must pass a hidden Gaussian test. Its share of the budget makes a safety of
    gamma_plan pass with probability 1 - beta. Two neighbors are either both safe (squares of mu add), or one replies with probability
    at most delta and the other never.

What follows the test: 5% of the budget for the residual variance and the count of records, and the rest for the coefficients. The
residual variance is a sum of squares at the released coefficients, moved by at most 4 in scaled units; the count is moved by 1. All are
Gaussian mechanisms on exact integers (Dong, Roth, Su 2022). Source: Shen, Tong, Wang 2026 (Algorithms 2 and 4), with corrected and
smaller constants, exact calibration, and a form without a threshold to choose.

Interval: Student t, from 2 sigma2/lam + s^2 for each scaled coefficient, s the SD of the noise. The bound lam is below the least
eigenvalue. A factor of 2 allows for unequal variances. The meat of
the sandwich, in the direction of a coefficient, may be twice that of equal variances, sigma2 A (the Gram matrix).
The interval covers the population's
weighted least-squares coefficients (public weights w, all 1 where the cap is never reached) for responses
clipped to the declared bounds, whatever the shape of the mean. It assumes that the radius bounds their length, and
holds given an answer, where `conditional_on_reply` is flagged. The noise is made for the worst direction of the features: wide, and
kept to compare with published work. `LeastSquares` has short intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import (
    Allowance,
    BudgetItem,
    Composed,
    FormulaMethod,
    Gram,
    Meter,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Test,
    Total,
    threshold,
)
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.mechanisms.ptr import GaussianReply
from confide.guarantees.validation import is_finite
from confide.methods.regression.certified.reading import (
    CertifiedLine,
    CertifiedReading,
    JointRows,
    LeastEigenvalue,
    ResidualSquares,
    Safety,
    intervals_for_of,
    target_of,
    weights_of,
)
from confide.methods.regression.evidence.normal_equations import to_units
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.methods.regression.reference import least_squares
from confide.methods.regression.sums.linear_rows import Present
from confide.schema import CodedFrame, ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs

_TEST, _RESIDUAL, _COUNT = Fraction(1, 10), Fraction(4, 100), Fraction(1, 100)
_MODES = ("adaptive", "safe")


@dataclass(frozen=True)
class EfficientPTR(FormulaMethod):
    """Linear regression by efficient propose-test-release.

    The estimand is the least-squares coefficients in the population, weighted
    by leverage. The method may decline to answer. It is kept to compare with
    published work: `LeastSquares` has shorter intervals and always answers.

    Parameters
    ----------
    formula : str
        R-style formula, such as ``"income ~ age + region"``.
    mode : {"adaptive", "safe"}, default "adaptive"
        "adaptive" releases a lower bound of the least eigenvalue. "safe" tests
        a public one, and needs `lam0` and `gamma_plan`.
    radius : float, default 2.0
        Bound on the length of the scaled coefficients. A fit that stays within
        the response's bounds for all features has length 1 at most.
    leverage_cap : float, optional
        Bound on a weighted row's squared length. Left out: 1 + d/3 for d
        terms, without an intercept d/3.
    lam0 : float, optional
        Least eigenvalue that the noise is made for, in mode "safe".
    gamma_plan : float, optional
        Safety that passes the test with probability 1 - beta, in mode "safe".
    beta : float, default 0.001
        Probability of declining at that safety.

    See Also
    --------
    confide.regression.LinearEstimates : The result.
    confide.linear_regression : Shorter intervals, no delta, always an answer.

    Notes
    -----
    Guarantee: Gaussian DP with a failure probability delta, under
    substitution. The noise is calibrated to a certified least eigenvalue of
    the weighted Gram matrix. Two passes over the records.

    References
    ----------
    Shen, Tong and Wang (2026), Algorithms 2 and 4, with corrected constants.
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = EfficientPTR("y ~ x").plan(schema, cf.ApproxDP(1.0, 1e-6))
    >>> plan.guarantee, [part.name for part in plan.event.then.parts]
    (GDP(0.22908694272598162, 5e-07, relation='substitute'), ['line', 'count', 'residual'])
    """

    formula: str
    mode: str = "adaptive"
    radius: float = 2.0
    leverage_cap: float | None = None
    lam0: float | None = None
    gamma_plan: float | None = None
    beta: float = 1e-3
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "efficient_ptr"
    family: ClassVar[str] = "regression"
    task: ClassVar[str] = "linear_regression"
    source: ClassVar[str] = (
        "efficient propose-test-release (Shen, Tong, Wang 2026), certified least eigenvalue, exact Gaussian accounting"
    )
    relations: ClassVar[tuple[str, ...]] = ("substitute",)
    intervals: ClassVar[str] = "the population's leverage-weighted line; sampling, privacy noise; wide, for comparison"

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise PlanError(f'mode must be "adaptive" or "safe", got {self.mode!r}', 'leave it out for "adaptive"')
        _number("radius", self.radius, 1e-3, 1e3, "2 is the default")
        _number("beta", self.beta, 1e-12, 0.5, "0.001 is the default")
        if self.leverage_cap is not None:
            _number("leverage_cap", self.leverage_cap, 1e-3, 1e6, "leave it out for 1 + d/3")
        if self.mode == "safe":
            words = 'mode="safe" needs it, from public facts; mode="adaptive" does not'
            _number("lam0", self.lam0, 1e-3, 1e15, words)
            _number("gamma_plan", self.gamma_plan, 1 + 1e-6, 1e15, f"it is above 1, and {words}")
        elif self.lam0 is not None or self.gamma_plan is not None:
            raise PlanError('lam0 and gamma_plan belong to mode="safe"', 'leave them out, or write mode="safe"')

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The test and what follows it, from public facts. n: the number of records, for the forecast.

        Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for a request without a delta.
        """
        design = self._design(schema)
        if n is not None and n < len(design.names):
            raise PlanError(
                f"n = {n} records cannot determine {len(design.names)} coefficients", "name fewer terms in the formula"
            )
        to_units(design, [])  # refuses bounds in whose units no variance can be computed
        allowance = Allowance.of(privacy, self, schema, failure=Fraction(1, 2))
        line = self._line(design)
        count: Statistic = Total(Present(design), nonnegative=True)
        statistics: dict[str, Statistic] = {
            "line": line,
            "count": count,
            "residual": Total(ResidualSquares(design), nonnegative=True),
        }
        law = None if self.gamma_plan is None else allowance.reply(self.gamma_plan, self.beta)
        share = _TEST if law is None else law.spent
        shares = {"line": 1 - share - _RESIDUAL - _COUNT, "count": _COUNT, "residual": _RESIDUAL}
        then = Composed(tuple(allowance.spend(name, statistics[name], shares[name]) for name in statistics))
        if self.mode == "adaptive":
            statistics["eigenvalue"] = LeastEigenvalue(line.map)
            event = allowance.certify(allowance.spend("eigenvalue", statistics["eigenvalue"], share), then)
        else:
            statistics["safety"] = Safety(line.map, lam0=float(self.lam0 or nan))
            event = allowance.test("safety", statistics["safety"], share, then)
        facts: dict[str, Any] = {
            "passes": 2,
            "constants": {
                "radius": float(self.radius),
                "leverage_cap": line.map.cap,
                "alpha lam": line.alpha * line.lam,
            }
            | ({} if law is None else {"planned reply": law.promised}),
            "target": target_of(line),
            "intervals_for": intervals_for_of(line),
            "warnings": (*parse_formula(self.formula, schema).notes, *self._warnings(law)),
        }
        return Plan.of(self, schema, allowance, event, statistics, n=n, **facts)

    def _line(self, design: ModelMatrix) -> CertifiedLine:
        """The line and its rows at lam0, or where lam is least (a weighted row's own squared length)."""
        cap = int(design.intercept) + len(design.terms) / 3 if self.leverage_cap is None else float(self.leverage_cap)
        if design.intercept and cap < 1:
            raise PlanError(
                f"leverage_cap must be at least 1, the squared length of the intercept's column, got {cap:g}",
                "leave it out for 1 + d/3",
            )
        rows = JointRows(design, cap)
        if self.lam0 is not None and self.lam0 < rows.least:
            raise PlanError(
                f"lam0 must be above the largest squared length of a weighted row, {cap:g}, got {self.lam0:g}; about half of the "
                "least eigenvalue to expect is a usual choice"
            )
        return CertifiedLine(rows, radius=float(self.radius), lam=float(self.lam0 or rows.least))

    def _warnings(self, law: GaussianReply | None) -> Iterable[str]:
        yield _WIDE
        if law is not None:
            yield from law.remarks("lower lam0, which raises the safety, or take mode='adaptive'")

    @staticmethod
    def _margin(test: Test, line: CertifiedLine) -> float:
        """How far below L~ the certified eigenvalue lies, in units of A: X^2 (of each row of a unit) and the quantile of the noise."""
        on, unit = test.on, LeastEigenvalue(line.map).unit
        assert isinstance(on, BudgetItem)
        # one step more than enough, for the floats
        return (float((on.sensitivity + threshold(on, test.delta)) * on.step) + 1) / unit

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the moments and the test, and after a reply a second one for the residuals at the released coefficients."""
        line, count, public = plan.statistic("line"), plan.statistic("count"), dict[str, Array]()
        assert isinstance(line, CertifiedLine)
        gram, present = source.aggregate(Gram(line.map), count)
        replied, level = self._replied(meter, plan, line, gram)
        public["level"] = np.array([level])
        at = line.at(max(level, line.map.least))
        # found whether there is a reply or not, so that both take about the same time
        integers = at.of(gram)
        if replied:
            phi = at.decode(meter.draw("line", integers).decode())
            meter.draw("count", present)
            (squares,) = source.aggregate(Total(ResidualSquares(line.map.design).at(phi), nonnegative=True))
            meter.draw("residual", squares)
            public["phi"] = phi
        else:
            meter.decline()
        return public

    def _replied(self, meter: Meter, plan: Plan, line: CertifiedLine, gram: NDArray[Any]) -> tuple[bool, float]:
        """Whether the coefficients may be drawn, and the eigenvalue that every neighbor has then."""
        if self.mode == "safe":
            safety = plan.statistic("safety")
            assert isinstance(safety, Safety)
            return meter.test("safety", safety.of(gram)), line.lam
        least = plan.statistic("eigenvalue")
        assert isinstance(least, LeastEigenvalue)
        seen = float(meter.draw("eigenvalue", least.of(gram)).decode()[0]) / least.unit
        assert isinstance(plan.event, Test)
        level = seen - self._margin(plan.event, line)
        return level > line.map.least, level

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The regression table, or a result with status "declined". There are no options: `PlanError`."""
        (options or ResultOptions()).only()
        line = self._line(self._design(release.plan.declared))
        return CertifiedReading(f"{self.name} {self.version}", release, line, self.mode == "adaptive").table()

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response on all records, each with its public weight."""
        design = self._design(CodedFrame.checked(frame).schema)
        return least_squares(frame, design, self.weights(design))

    def weights(self, design: ModelMatrix) -> Callable[[Array], Array]:
        """Rows of the terms, in the units of the data, (records, p) -> the public weights of their records."""
        return weights_of(self._line(design))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in corners, where rows and responses are the longest. None with derived or categorical terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)


_WIDE = (
    "EfficientPTR is kept to compare with published work. Its noise is made for the worst direction of the features, and intervals are "
    "wide (evidence/coverage.md). LeastSquares with the same formula has shorter ones, no delta and always an answer"
)


def _number(name: str, value: Any, least: float, most: float, help: str) -> None:
    if not (is_finite(value) and least <= value <= most):
        raise PlanError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}", f"{help}")
