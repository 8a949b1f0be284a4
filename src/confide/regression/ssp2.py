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
from scipy import stats

from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.mechanisms import ClippedResponse
from confide.mechanisms.ranges import ranged
from confide.mechanisms.residual_rounds import (
    Round,
    cross_noise,
    draw_line,
    first_variance,
    last_round,
    plan_line,
    shrunken,
)
from confide.mechanisms.rows import Box
from confide.mechanisms.whitened_rows import ScoreRows
from confide.noise import keyed_generator
from confide.protocol import Allowance, Event, Meter, Noise, Plan, Question, Release, Source
from confide.regression.bias_aware import BiasAware, bias_aware
from confide.regression.linear import kept, legend
from confide.regression.normal_equations import Fit, Line, Meat, NoisyMoments, fit, identified, joint, trusted
from confide.regression.r_squared import Chart, r_squared, r_squared_interval
from confide.regression.scaling import coefficient_names, forecast_table, line_of, to_units
from confide.regression.shared_estimates import SharedEstimates
from confide.results.table import DASH
from confide.schema import Categorical, Design, Schema
from confide.schema.formula import parse_formula

__all__ = ["SSP2"]

Array = NDArray[np.float64]

_OBJECTIVES = ("inference", "prediction")
_TARGETS = ("projection", "ols")
# No slope beyond this many half-ranges of the response for one half-width of a feature, once half-widths are private ranges.
_SLOPE_BOUND = 2.0
_TOLERATED_CLIPPING = 0.005


@dataclass(frozen=True)
class SSP2:
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
    version: ClassVar[str] = "1"
    source: ClassVar[str] = (
        "rounds of noisy residual moments in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    )
    relations: ClassVar[tuple[str, ...]] = ("add-remove", "substitute")
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "coefficients of the population's line; sampling, privacy noise, unequal variances"
    needs: ClassVar[frozenset[str]] = frozenset()

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
        event, statistics = plan_line(design, allowance, self.objective, clipping=self.clipping_check)
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
            constants={} if descent else {"slope_bound": self._bound(design) or 0.0},
            target=f"linear regression of {response} on {', '.join(design.names)}"
            + (", for prediction" if descent else f", {_TARGET_WORDS[self.target]}"),
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

    def _bound(self, design: Design, *, private: bool = True) -> float | None:
        """B: as declared; else 2 where every half-width is a private range or a binary feature's."""
        if self.slope_bound is not None:
            return float(self.slope_bound)
        return _SLOPE_BOUND if private or not ranged(design) else None

    def _covers(self, design: Design) -> str:
        if self.objective == "prediction":
            return "nothing: a line for prediction, without intervals"
        line = (
            "if the relation is not linear, the least-squares line with the released leverage weights"
            if self.target == "projection"
            else "if the relation is not linear, the least-squares line of all records"
        )
        return (
            f"coefficients of the population's line for {design.response.name} clipped to its declared bounds; sampling of records "
            f"and privacy noise, unequal residual variances allowed, independent records; {line}"
        )

    # release --------------------------------------------------------------------------------------------------------

    def release(self, source: Source, plan: Plan, noise: Noise) -> Release:
        """Noisy sums in the order of the plan; the noisy count chooses the branch."""
        design = self._design(source.schema)
        with Meter(plan, noise) as meter:
            public = draw_line(design, meter, source, plan, unweighted=self.target == "ols")
        return meter.release(public=public)

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, question: Question | None = None) -> SharedEstimates:
        """The regression table. A question may name a subset of coefficients: `Question(subset=("age", "educ"))`.

        A subset's covariance assumes equal residual variances in the smaller model, as the released meat belongs to the full one; a line
        for prediction has no subsets. Raises `PlanError` for a name that is no coefficient.
        """
        question = question or Question()
        question.only("subset")
        design = self._design(release.plan.schema)
        keep = kept(design, question)
        if "meat" not in release.statistics:
            return self._points(release, design, keep)
        return _Reading(self, release, question, design, keep).table()

    def _points(self, release: Release, design: Design, keep: list[int]) -> SharedEstimates:
        """The table of a line for prediction."""
        if len(keep) < len(design.terms):
            raise PlanError(
                'a line for prediction has no subsets; release the smaller formula, or one with objective="inference"'
            )
        box = _box_of(release)
        matrix, shift = to_units(design, keep, box)
        theta = np.asarray(release.public["line"], dtype=np.float64)
        if not design.intercept:
            line = line_of(design, keep, box)
            theta = line.offset + line.basis @ np.linalg.lstsq(line.basis, theta - line.offset, rcond=None)[0]
        names = coefficient_names(design, keep)
        count = release["count"]
        descent = "rho" not in release.public
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
            flags=("no_interval", *_few(count)),
            requested=release.plan.requested,
            guarantee=release.charged,
            target=release.plan.target,
            covers=release.plan.covers,
            release_sha256=release.sha256,
            facts=(
                ("Line", "noisy gradient descent: few records" if descent else "shrunken, three rounds"),
                ("Count (noisy)", _count_text(count)),
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


_TARGET_WORDS = {"projection": "weighted projection", "ols": "least squares of all records"}


def _box_of(release: Release) -> Box:
    middle, half = np.asarray(release.public["box"], dtype=np.float64)
    return Box(tuple(map(float, middle)), tuple(map(float, half)))


def _few(count: Any) -> tuple[str, ...]:
    """The flag of a noisy count within three sds of 0: a hint at records that all dropped."""
    return ("few_records",) if float(count.decode()[0]) < 3 * sqrt(count.variance) else ()


def _count_text(count: Any) -> str:
    return f"{float(count.decode()[0]):,.0f} ± {stats.norm.ppf(0.975) * sqrt(count.variance):,.0f}"


@dataclass(frozen=True, eq=False)
class _Reading:
    """One release read with one question: the line in corrections delta of the last round, and back in the data's units."""

    method: SSP2
    release: Release
    question: Question
    design: Design
    keep: list[int]

    def table(self) -> SharedEstimates:
        done = last_round(self.design, self.release.statistics, self.release.public, str(self.release.charged.relation))
        box = done.frame.box
        moments = NoisyMoments(
            done.gram, done.cross, done.square, done.sd_gram, done.sd_cross, done.sd_square, axis=done.axis
        )
        whole = line_of(self.design, self.keep, box)
        subset = len(self.keep) < len(self.design.terms)
        meat = None if subset else self._meat(done)
        inner = _InRound.of(done, whole)
        to_coefficients, shift = to_units(self.design, self.keep, box)
        matrix = done.frame.rho * to_coefficients @ done.frame.matrix
        shift = shift + to_coefficients @ done.frame.line
        status, reason = identified(moments, inner.line)
        names = coefficient_names(self.design, self.keep)
        unknown = np.full((len(names),) * 2, nan)
        numbers: dict[str, Any] = {
            "covariance": unknown,
            "df": nan,
            "noise_variance": unknown[0],
            "joint_covariance": None,
        }
        generator = keyed_generator(self.release.sha256, self.question.sha256)
        flags: tuple[str, ...] = ()
        try:
            fitted: Fit | None = fit(moments, inner.line)
        except np.linalg.LinAlgError:
            fitted, status = None, "not_identified" if status == "ok" else status
        if status == "ok" and fitted is not None:
            shown, df = trusted(fitted, matrix, meat)
            covariance = matrix @ fitted.covariance(shown) @ matrix.T
            chart = self._chart(done, whole)
            numbers = {
                "covariance": (covariance + covariance.T) / 2,
                "df": df,
                "noise_variance": np.diag(matrix @ fitted.noise_part @ matrix.T),
                "joint_covariance": joint(fitted, matrix, meat),
                "rsquared": r_squared(moments, inner.line, chart),
                "rsquared_interval": r_squared_interval(moments, inner.line, generator, chart=chart),
            }
            estimates = matrix @ fitted.theta + shift
            flags = ("upper_bound",) if shown is not meat else ()
        else:
            estimates = matrix @ self._shrunken(done, inner, generator) + shift
            bounds = self._bias_aware(done, moments, inner, matrix, shift, meat, fitted)
            numbers["bias_aware"] = bounds
            if bounds is not None:
                # a valid interval, whichever way the Gram matrix drowned
                status, flags, reason = "weak", ("bias_aware",), _BIAS_AWARE
            else:
                reason += "; a declared slope_bound gives bias-aware intervals"
        return self._result(done, names, estimates, numbers, status, reason, (*flags, *self._remarks(subset)), meat)

    def _meat(self, done: Round) -> Meat:
        """The meat in units of rho^2, with the usual factor for fitted coefficients."""
        noisy, reach = self.release["meat"], float(np.asarray(self.release.public["reach"])[0])
        rows = ScoreRows(self.design, done.frame, done.cap)
        unit = reach**2 / float(rows.steps) ** 2
        unit *= done.count / max(done.count - len(done.cross), 1.0)
        return Meat(noisy.decode() * unit, sqrt(noisy.variance) * unit)

    def _shrunken(self, done: Round, inner: _InRound, generator: np.random.Generator) -> Array:
        """The correction that a release for prediction would end with, from the same numbers."""
        basis, offset = inner.line.basis, inner.line.offset
        reduced = Round(
            basis.T @ done.gram @ basis,
            basis.T @ (done.cross - done.gram @ offset),
            done.square,
            done.sd_gram,
            done.sd_cross,
            done.sd_square,
            done.frame,
            done.cap,
        )
        delta, _ = shrunken(reduced.system(first_variance(done), free=False), done, generator, offset, basis)
        return delta

    def _bias_aware(
        self,
        done: Round,
        moments: NoisyMoments,
        inner: _InRound,
        matrix: Array,
        shift: Array,
        meat: Meat | None,
        fitted: Fit | None,
    ) -> BiasAware | None:
        bound = self.method._bound(self.design, private="ranges" in self.release.statistics)
        if bound is None:
            return None
        df = max(done.count - len(inner.start), 1.0)
        s2 = 1.0 if fitted is None else fitted.s2
        return bias_aware(moments, inner.line, inner.back, inner.start, matrix, shift, meat, s2, df, bound)

    def _chart(self, done: Round, whole: Line) -> Chart:
        """Where the total of R squared is counted from, and records (z, t) from (u, r)."""
        transform, rho, theta = done.frame.matrix, done.frame.rho, done.frame.line
        p = len(theta)
        inverse = np.linalg.inv(transform)
        base = np.zeros(p) if self.design.intercept else whole.offset
        records = np.zeros((p + 1, p + 1))
        records[:p, :p] = inverse.T
        records[p, :p] = inverse @ theta
        records[p, p] = rho
        return Chart(inverse @ (base - theta) / rho, self.design.intercept, records)

    def _remarks(self, subset: bool) -> tuple[str, ...]:
        return (*(("subset_classical",) if subset else ()), *_few(self.release["count"]))

    def _clipped(self) -> tuple[tuple[str, ...], str]:
        """Flag and text of the paid diagnostic: which share of responses lay outside their declared bounds."""
        if "clipping" not in self.release.statistics:
            return ("clipping_unchecked",), "not checked (clipping_check=False)"
        noisy, records = self.release["clipping"], max(float(self.release["count"].decode()[0]), 1.0)
        share = float(noisy.decode()[0]) / ClippedResponse.unit / records
        error = sqrt(noisy.variance) / ClippedResponse.unit / records
        flagged = share - stats.norm.ppf(0.95) * error > _TOLERATED_CLIPPING
        text = f"{max(share, 0.0):.2%} ± {stats.norm.ppf(0.975) * error:.2%}"
        return (("y_clipping",) if flagged else ()), text

    def _result(
        self,
        done: Round,
        names: tuple[str, ...],
        estimates: Array,
        numbers: Mapping[str, Any],
        status: str,
        reason: str,
        flags: tuple[str, ...],
        meat: Meat | None,
    ) -> SharedEstimates:
        plan, count = self.release.plan, self.release["count"]
        clipping, clipped = self._clipped()
        ok = status == "ok"
        bounds = numbers.get("bias_aware")
        share, interval = numbers.get("rsquared", nan), numbers.get("rsquared_interval", (nan, nan))
        covers = plan.covers if meat is not None else _SUBSET_COVERS
        if bounds is not None:
            covers += f"; assumed: no slope moves the response by more than {bounds.bound:g} half-ranges for one half-width of its feature"
        return SharedEstimates(
            method=f"{self.method.name} {self.method.version}",
            response=self.design.response.name,
            names=names,
            estimates=estimates,
            status=status,
            reason="" if ok else reason,
            flags=(*clipping, *flags),
            requested=plan.requested,
            guarantee=self.release.charged,
            target=f"linear regression of {self.design.response.name} on {', '.join(names)}, {_TARGET_WORDS[self.method.target]}",
            covers=covers,
            release_sha256=self.release.sha256,
            facts=(
                ("Cov. type", "classical" if meat is None else "robust"),
                ("Count (noisy)", _count_text(count)),
                (
                    "R-squared (weighted)" if self.method.target == "projection" else "R-squared",
                    f"{share:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]" if ok else DASH,
                ),
                ("Clipped responses", clipped),
                *((("Slope bound", f"{bounds.bound:g}"),) if bounds is not None else ()),
            ),
            legend=legend(self.design, plan.schema)[1:],
            simulated=self.release.simulated,
            design=self.design,
            nobs=float(count.decode()[0]),
            **numbers,
        )


_BIAS_AWARE = (
    "the released Gram matrix does not stand above its noise in every direction, so normal intervals are not valid; ask for fewer "
    "terms, tighter bounds, more records or a larger budget"
)
_SUBSET_COVERS = (
    "the weighted linear projection on these columns alone; sampling of records and privacy noise, equal residual variances "
    "in the smaller model assumed, independent records"
)


@dataclass(frozen=True, eq=False)
class _InRound:
    """A line theta = offset + P phi in the corrections of a round: delta = offset + Q psi, Q orthonormal, psi = back (phi - start)."""

    line: Line
    back: Array
    start: Array

    @classmethod
    def of(cls, done: Round, whole: Line) -> _InRound:
        theta, transform, rho = done.frame.line, done.frame.matrix, done.frame.rho
        # the point of the line that is nearest to where the round stood
        start = np.linalg.lstsq(whole.basis, theta - whole.offset, rcond=None)[0]
        away = whole.offset + whole.basis @ start - theta
        offset = np.linalg.solve(transform, away) / rho
        basis, back = np.linalg.qr(np.linalg.solve(transform, whole.basis) / rho)
        # no rounding residue for a free line, whose start is theta itself
        offset = offset if np.abs(away).max() > 1e-12 else np.zeros(len(theta))
        return cls(Line(np.asarray(offset, dtype=np.float64), basis), back, np.asarray(start, dtype=np.float64))
