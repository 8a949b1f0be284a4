"""SSP: linear regression from leverage-weighted sufficient statistics, with noise-aware intervals.

Estimates the line E[y|x] = intercept + x'beta. Rows are weighted by w = min(1, R2/|z|^2), z = (1, x~) with x~ scaled to [-1, 1]
by the public bounds; under a linear model weighting costs no bias, and it cuts the sensitivity from 1 + d to R2.

Guarantee: mu-GDP, add-remove, or substitute with sqrt(2) times the noise. With v = (z, sqrt(g2) t) the first release is the Gram
matrix sum w v v' plus symmetric Gaussian noise; |w v v'|_F = w (|z|^2 + g2 t^2) <= R2 + g2. The meat sum w^2 r^2 z z' has
|.|_F <= R2, the count of clipped responses moves by 1. All three are Gaussian mechanisms on exact integers with rounded Gaussian
noise; they compose adaptively by adding mu^2. Under substitute two positive semi-definite matrices differ by at most sqrt(2)
times their bound. Sources: Dwork, Talwar, Thakurta, Zhang 2014 (noisy Gram matrix); Dong, Roth, Su 2022, Theorem 2 and
Corollary 2 (Gaussian mechanism, composition).

Interval: Student t, from a covariance that contains the sampling of records and the privacy noise; covers the coefficients of the
population's line for responses clipped to the declared bounds. cov="robust" (default) allows unequal residual variances,
"classical" assumes equal ones. If the line is only an approximation, the target is the w-weighted linear projection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.mechanisms import ClippedResponse, ResidualRows, WeightedRows
from confide.noise import keyed_generator
from confide.protocol import Allowance, Gram, Meter, Noise, Plan, Question, Release, Source, Statistic, Together, Total
from confide.regression.linear import LinearEstimates, kept, legend
from confide.regression.normal_equations import Fit, Line, Meat, NoisyMoments, fit, identified
from confide.regression.r_squared import r_squared, r_squared_interval
from confide.regression.scaling import PRIOR, coefficient_names, forecast, line_of, to_units
from confide.results.table import DASH
from confide.schema import Categorical, Design, Schema
from confide.schema.formula import parse_formula

__all__ = ["SSP"]

Array = NDArray[np.float64]

# Shares of mu^2. One per cent buys the diagnostic of clipped responses; of the rest a robust covariance takes 15 %.
_CLIPPING_SHARE = Fraction(1, 100)
_MEAT_SHARE = Fraction(15, 100)
# Fewer degrees of freedom than this say that a noisy meat is no estimate of a variance.
_FEW = 10.0
# A starting point of the residuals beyond this many half-ranges of y is useless; it is replaced by 0.
_FAR = 1e6
# The y_clipping flag is raised when the lower 95 % bound of the clipped share is above this.
_TOLERATED_CLIPPING = 0.005


@dataclass(frozen=True)
class SSP:
    """Linear regression by noisy weighted sufficient statistics: one release answers many questions.

    formula: "y ~ a + b"; cov: "robust" or "classical"; leverage_cap: R2 >= 1 (default 1 + d/3 for d terms); clipping_check: pay 1 %
    of mu^2 for a noisy count of responses outside their bounds; term_bounds: public bounds of derived terms that have none.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = SSP("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation
    (1.0, 'add-remove')
    """

    formula: str
    cov: str = "robust"
    leverage_cap: float | None = None
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "ssp"
    family: ClassVar[str] = "regression"
    version: ClassVar[str] = "1"
    source: ClassVar[str] = (
        "leverage-weighted noisy Gram matrix (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    )
    relations: ClassVar[tuple[str, ...]] = ("add-remove", "substitute")
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "coefficients of the population's line; sampling, privacy noise, unequal variances"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if self.cov not in ("robust", "classical"):
            raise PlanError(f'cov must be "robust" or "classical", got {self.cov!r}; write SSP(formula, cov="robust")')
        cap = self.leverage_cap
        if cap is not None and not (
            isinstance(cap, (int, float)) and not isinstance(cap, bool) and isfinite(cap) and cap >= 1
        ):
            raise PlanError(
                f"leverage_cap must be a finite number of at least 1, got {cap!r}; leave it out for 1 + d/3"
            )
        if not isinstance(self.clipping_check, bool):
            raise PlanError(f"clipping_check must be True or False, got {self.clipping_check!r}")

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The spends, the guarantee and predicted standard errors, from public facts.

        Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for an impossible guarantee.
        """
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        statistics, shares = self._statistics(design)
        spends = {name: allowance.spend(name, statistic, shares[name]) for name, statistic in statistics.items()}
        event = Together(tuple(spends.values()))
        moments = self._noise(spends["moments"].scale, design)
        response = design.response.name
        return Plan.of(
            self,
            schema,
            allowance,
            event,
            statistics,
            n=n,
            passes=2 if self.cov == "robust" else 1,
            constants={"leverage_cap": self._cap(design), "g2": self._g2(design)},
            target=f"linear regression of {response} on {', '.join(design.names)}",
            covers=self._covers(design),
            forecast=forecast(design, schema, self._cap(design), moments, n),
            warnings=(
                *parse_formula(self.formula, schema).notes,
                *(
                    ()
                    if self.clipping_check
                    else ("responses outside their bounds are clipped and not counted: clipping_check=False",)
                ),
            ),
        )

    def _design(self, schema: Any) -> Design:
        whole = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        return Design.of(self.formula, whole, term_bounds=self.term_bounds)

    def _cap(self, design: Design) -> float:
        return 1 + len(design.terms) / 3 if self.leverage_cap is None else float(self.leverage_cap)

    def _g2(self, design: Design) -> float:
        # argmin over g2 of (R2 + g2)^2 (1/g2 + c): noise variance of one coefficient against the scale given to the response
        return (sqrt(1 + 8 * PRIOR * self._cap(design)) - 1) / (4 * PRIOR)

    def _statistics(self, design: Design) -> tuple[dict[str, Statistic], dict[str, Fraction]]:
        cap = self._cap(design)
        statistics: dict[str, Statistic] = {"moments": Gram(WeightedRows(design, cap, self._g2(design)))}
        rest = Fraction(1)
        shares = {}
        if self.clipping_check:
            statistics["clipping"] = Total(
                ClippedResponse(design, cap, edges=design.response.name in (self.term_bounds or {})), nonnegative=True
            )
            shares["clipping"] = _CLIPPING_SHARE
            rest -= _CLIPPING_SHARE
        if self.cov == "robust":
            statistics["meat"] = Gram(ResidualRows(design, cap))
            shares["meat"] = rest * _MEAT_SHARE
            rest *= 1 - _MEAT_SHARE
        shares["moments"] = rest
        return statistics, shares

    def _covers(self, design: Design) -> str:
        variances = "unequal residual variances allowed" if self.cov == "robust" else "equal residual variances assumed"
        return (
            f"coefficients of the population's line for {design.response.name} clipped to its declared bounds; "
            f"sampling of records and privacy noise, {variances}, independent records; "
            "if the relation is not linear, the leverage-weighted linear projection; R squared: of the weighted records, "
            "its interval for features and errors not far from normal"
        )

    # release --------------------------------------------------------------------------------------------------------

    def release(self, source: Source, plan: Plan, noise: Noise) -> Release:
        """Noisy moments in one pass; for a robust covariance a second pass at the noisy line."""
        with Meter(plan, noise) as meter:
            first = [name for name in plan.statistics if name != "meat"]
            drawn = [
                meter.draw(name, total)
                for name, total in zip(first, source.aggregate(*map(plan.statistic, first)), strict=True)
            ]
            public = {}
            if self.cov == "robust":
                design = self._design(source.schema)
                rows = plan.statistic("meat").map
                assert isinstance(rows, ResidualRows)
                public["theta"] = self._starting_line(design, self._moments(drawn[0].decode(), drawn[0].scale, design))
                (meat,) = source.aggregate(Gram(rows.at(public["theta"])))
                meter.draw("meat", meat)
        return meter.release(public=public)

    def _starting_line(self, design: Design, moments: NoisyMoments) -> Array:
        """The noisy line, or 0 where it is singular, not finite or absurd: the residuals must stay numbers."""
        try:
            theta = fit(moments, line_of(design)).theta
        except np.linalg.LinAlgError:
            theta = np.full(len(moments.cross), nan)
        return theta if (np.abs(theta) <= _FAR).all() else np.zeros(len(theta))

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, question: Question | None = None) -> LinearEstimates:
        """The regression table. A question may name a subset of coefficients: `Question(subset=("age", "educ"))`.

        A subset's covariance assumes equal residual variances in the smaller model, whatever `cov` is: the released meat belongs
        to the full one. Raises `PlanError` for a name that is no coefficient.
        """
        question = question or Question()
        question.only("subset")
        design = self._design(release.plan.schema)
        keep = kept(design, question)
        moments = self._moments(release["moments"].decode(), release["moments"].scale, design)
        line = line_of(design, keep)
        subset = len(keep) < len(design.terms)
        meat = self._meat(release, design) if self.cov == "robust" and not subset else None
        return self._estimates(release, question, design, line, keep, moments, meat, identified(moments, line))

    def _noise(self, scale: Fraction, design: Design) -> NoisyMoments:
        """The noise of the moments alone, with zeros in place of the values."""
        return self._moments(np.zeros((len(design.terms) + 2,) * 2), scale, design)

    def _moments(self, values: Array, scale: Fraction, design: Design) -> NoisyMoments:
        """From integers in steps to A, b, q in scaled units: a row was S sqrt(w) (z, sqrt(g2) t)."""
        rows = WeightedRows(design, self._cap(design), self._g2(design))
        unit, g = float(rows.steps) ** 2, sqrt(rows.g2)
        sd = sqrt(float(scale) + 1 / 12) / unit
        return NoisyMoments(
            gram=values[:-1, :-1] / unit,
            cross=values[:-1, -1] / (unit * g),
            square=float(values[-1, -1] / (unit * g * g)),
            sd_gram=sd,
            sd_cross=sd / (sqrt(2) * g),
            sd_square=sd / (g * g),
        )

    def _meat(self, release: Release, design: Design) -> Meat:
        unit = float(ResidualRows(design, self._cap(design)).steps) ** 2
        return Meat(release["meat"].decode() / unit, sqrt(release["meat"].variance) / unit)

    def _estimates(
        self,
        release: Release,
        question: Question,
        design: Design,
        line: Line,
        keep: list[int],
        moments: NoisyMoments,
        meat: Meat | None,
        state: tuple[str, str],
    ) -> LinearEstimates:
        names = coefficient_names(design, keep)
        matrix, shift = to_units(design, keep)
        numbers = _Numbers.unknown(len(names))
        try:
            fitted = fit(moments, line)
        except np.linalg.LinAlgError:
            pass
        else:
            numbers = replace(numbers, estimates=matrix @ fitted.theta + shift)
            if state[0] == "ok":
                meat = None if meat is None else meat.unclipped(fitted.weighted_residuals(self._cap(design)))
                shown, df = _trusted(fitted, matrix, meat)
                numbers = replace(
                    numbers,
                    covariance=matrix @ fitted.covariance(shown) @ matrix.T,
                    joint=_joint(fitted, matrix, meat),
                    noise=np.diag(matrix @ fitted.noise_part @ matrix.T),
                    df=df,
                    flags=("upper_bound",) if shown is not meat else (),
                    rsquared=r_squared(moments, line),
                    interval=r_squared_interval(moments, line, keyed_generator(release.sha256, question.sha256)),
                )
        flags, clipped = _clipping(release, moments.count) if self.clipping_check else _UNCHECKED
        return LinearEstimates(
            method=f"{self.name} {self.version}",
            response=design.response.name,
            names=names,
            estimates=numbers.estimates,
            covariance=numbers.covariance,
            df=numbers.df,
            noise_variance=numbers.noise,
            status=state[0],
            reason=state[1],
            flags=(*flags, *numbers.flags, *_remarks(moments, subset=self.cov == "robust" and meat is None)),
            requested=release.plan.requested,
            guarantee=release.charged,
            target=f"linear regression of {design.response.name} on {', '.join(names)}",
            covers=release.plan.covers if len(keep) == len(design.terms) else _SUBSET_COVERS,
            release_sha256=release.sha256,
            facts=(
                ("Cov. type", "classical" if meat is None else "robust"),
                ("Weighted count (noisy)", f"{moments.count:,.0f} ± {stats.norm.ppf(0.975) * moments.sd_gram:,.0f}"),
                (
                    "R-squared (weighted)",
                    f"{numbers.rsquared:.3f} [{numbers.interval[0]:.3f}, {numbers.interval[1]:.3f}]"
                    if state[0] == "ok"
                    else DASH,
                ),
                ("Clipped responses", DASH if self.clipping_check and state[0] == "not_identified" else clipped),
            ),
            legend=legend(design, release.plan.schema),
            simulated=release.simulated,
            joint_covariance=numbers.joint,
            design=design,
            nobs=moments.count,
            rsquared=numbers.rsquared,
            rsquared_interval=numbers.interval,
        )

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two records that attain the moments' sensitivity R2 + g2: |z|^2 = R2 (no weight below 1) and |t| = 1.

        Every other feature is mirrored in the second, which makes their rows v nearly orthogonal: the worst under substitute. None
        without a schema or with derived terms.
        """
        design = None if schema is None else self._design(schema)
        names = [] if design is None else [term.plain for term in (*design.terms, design.response)]
        if design is None or schema is None or None in names:
            return
        reach = min(sqrt((self._cap(design) - 1) / max(len(design.terms), 1)), 1.0)
        pair: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for j, name in enumerate(names):
            column = schema[str(name)]
            assert not isinstance(column, Categorical)
            for record, sign in zip(pair, (1, -1), strict=True):
                place = sign if j == len(design.terms) else reach * sign ** (j + 1)
                record[str(name)] = (column.low + column.high) / 2 + place * (column.high - column.low) / 2
        yield pair


@dataclass(frozen=True, eq=False)
class _Numbers:
    """What a table holds, NaN where the status forbids it."""

    estimates: Array
    covariance: Array
    noise: Array
    joint: Array | None = None
    df: float = 1.0
    flags: tuple[str, ...] = ()
    rsquared: float = nan
    interval: tuple[float, float] = (nan, nan)

    @classmethod
    def unknown(cls, k: int) -> _Numbers:
        return cls(np.full(k, nan), np.full((k, k), nan), np.full(k, nan))


def _remarks(moments: NoisyMoments, *, subset: bool) -> tuple[str, ...]:
    """Flags that depend on the question and on noisy numbers: a count within three sds of 0 hints at records that all dropped."""
    few = moments.count < 3 * moments.sd_gram
    return (*(("subset_classical",) if subset else ()), *(("few_records",) if few else ()))


def _trusted(fitted: Fit, matrix: Array, meat: Meat | None) -> tuple[Meat | None, float]:
    """The meat to use for intervals, and their degrees of freedom.

    Below `_FEW` degrees the noise of the meat outweighs the meat; then each variance is replaced by its upper 95 % bound.
    """
    df = fitted.degrees_of_freedom(matrix, meat)
    if meat is None or df >= min(_FEW, fitted.df):
        return meat, df
    return meat.raised(float(stats.norm.ppf(0.95))), fitted.df


def _joint(fitted: Fit, matrix: Array, meat: Meat | None) -> Array | None:
    """The covariance for joint tests: some direction of a noisy meat is far too small, so its noise norm is added."""
    if meat is None:
        return None
    return matrix @ fitted.covariance(meat.raised(sqrt(2 * len(meat.values)))) @ matrix.T


_UNCHECKED = (("clipping_unchecked",), "not checked (clipping_check=False)")
_SUBSET_COVERS = (
    "the weighted linear projection on these columns alone; sampling of records and privacy noise, equal residual variances "
    "in the smaller model assumed, independent records"
)


def _clipping(release: Release, count: float) -> tuple[tuple[str, ...], str]:
    """Flag and text of the paid diagnostic: which weighted share of responses lay outside their declared bounds."""
    noisy = release["clipping"]
    share = float(noisy.decode()[0]) / ClippedResponse.unit / max(count, 1.0)
    error = sqrt(noisy.variance) / ClippedResponse.unit / max(count, 1.0)
    flagged = share - stats.norm.ppf(0.95) * error > _TOLERATED_CLIPPING
    text = f"{max(share, 0.0):.2%} ± {stats.norm.ppf(0.975) * error:.2%}"
    return (("y_clipping",) if flagged else ()), text
