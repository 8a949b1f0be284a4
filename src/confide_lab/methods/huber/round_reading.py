"""A release of rounds read as a regression table: the line of the last round, its sandwich covariance, the bias-aware interval.

delta = A^{-1} b solves the noisy normal equations of the last round in whitened coordinates; the line in the data's units is affine in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.core import Release, ResultOptions
from confide.methods.regression.evidence.normal_equations import (
    Fit,
    Line,
    MiddleMatrix,
    NoisyMoments,
    allowed_lines,
    coefficient_names,
    fit,
    floored,
    identified,
    line_of,
    noisy_middle_matrix,
    records_behind,
    to_units,
    trusted,
)
from confide.methods.regression.evidence.sample_size_advice import (
    count_text,
    few_records,
    hidden_words,
)
from confide.methods.regression.evidence.sparse_levels import totals_of_gram, unseen_levels
from confide.methods.regression.linear_estimates import legend
from confide.methods.regression.sums.linear_rows import found_ranges, ranged
from confide.methods.regression.sums.whitened_rows import Round
from confide.noise import keyed_generator
from confide.results.inference.simulated_null import JointLaw
from confide.results.pages.content import Flag
from confide.results.pages.table import DASH
from confide.schema import ModelMatrix
from confide.sums.coding import Box
from confide_lab.methods.clipped_responses import clipped_responses, clipped_share
from confide_lab.methods.huber.bias_aware import BiasAware, bias_aware
from confide_lab.methods.huber.released_rounds import first_round, last_round
from confide_lab.methods.huber.residual_rows import ScoreRows
from confide_lab.methods.huber.results import HuberEstimates
from confide_lab.methods.huber.round_lines import RoundLines

__all__ = ["TARGET_WORDS", "RoundReading", "box_of", "slope_bound"]

_BIAS_AWARE_FLAG = Flag(
    "bias_aware",
    "the intervals hold the privacy noise and the worst bias of a shrunken estimate; they assume that no slope is "
    "beyond the bound stated here, and they are no multiples of a standard error",
)

_RESIDUAL_CLIPPING = Flag(
    "residuals_clipped",
    "a noticeable share of the residuals is larger than the released scale and counts at that scale; if errors are "
    "skewed or the relation is curved, the line differs from the least-squares one, which LeastSquares gives",
)


# No slope beyond this many half-ranges of the response for one half-width of a feature, once half-widths are private ranges.
_SLOPE_BOUND = 2.0


TARGET_WORDS = "a Huber-type line (leverage-weighted, residuals limited), not the least-squares line"
#: The same in the title of every rendering.
HEADING = "a Huber-type line, not least squares"


def box_of(release: Release) -> Box:
    """Where z was measured from."""
    middle, half = np.asarray(release.public["box"], dtype=np.float64)
    return Box(tuple(map(float, middle)), tuple(map(float, half)))


def slope_bound(declared: float | None, design: ModelMatrix, *, private: bool) -> float | None:
    """B: as declared; else 2 where every half-width is a private range or a binary feature's, and none elsewhere."""
    if declared is not None:
        return float(declared)
    return _SLOPE_BOUND if private or not ranged(design) else None


@dataclass(frozen=True, eq=False)
class RoundReading:
    """One release read with one question: the line in corrections delta of the last round, and back in the data's units."""

    label: str
    declared: float | None
    release: Release
    options: ResultOptions
    design: ModelMatrix
    keep: list[int]

    def table(self) -> HuberEstimates:
        """The regression table."""
        done = last_round(self.design, self.release.statistics, self.release.public, str(self.release.charged.relation))
        box = done.frame.box
        moments = NoisyMoments(
            done.gram, done.cross, done.square, done.sd_gram, done.sd_cross, done.sd_square, axis=done.axis
        )
        whole = line_of(self.design, self.keep, box)
        subset = len(self.keep) < len(self.design.terms)
        meat = None if subset else self._meat(done)
        inner = RoundLines.of(done, whole.offset, whole.basis)
        line = Line(inner.offset, inner.basis)
        to_coefficients, shift = to_units(self.design, self.keep, box)
        matrix = done.frame.rho * to_coefficients @ done.frame.matrix
        shift = shift + to_coefficients @ done.frame.line
        back = np.linalg.inv(done.frame.matrix)
        hides = (
            hidden_words([term.name for term in self.design.terms], back.T @ done.gram @ back)
            if self.design.terms
            else ""
        )
        status, reason = identified(moments, line, hides)
        names = coefficient_names(self.design, self.keep)
        unknown = np.full((len(names),) * 2, nan)
        numbers: dict[str, Any] = {
            "covariance": unknown,
            "df": nan,
            "noise_variance": unknown[0],
            "joint": None,
        }
        generator = keyed_generator(self.release.drawn_sha256, "points")
        flags: tuple[str, ...] = ()
        try:
            fitted: Fit | None = fit(moments, line, done.largest)
        except np.linalg.LinAlgError:
            fitted, status = None, "not_identified" if status == "valid" else status
        if status == "valid" and fitted is not None:
            meat = None if meat is None else floored(fitted, meat)
            shown, df = trusted(fitted, matrix, meat)
            covariance = matrix @ fitted.covariance(shown) @ matrix.T
            explained = self._explained(done, fitted, shown, generator)
            numbers = {
                "covariance": (covariance + covariance.T) / 2,
                "df": df,
                "sampling_df": fitted.df,
                "noise_variance": np.maximum(np.diag(covariance) - fitted.alone(matrix, meat), 0.0),
                "joint": self._law(done, fitted, matrix, meat),
                "rsquared": explained[0],
                "rsquared_interval": explained[1],
            }
            estimates = matrix @ fitted.theta + shift
            flags = ("se_upper_bound",) if shown is not meat else ()
        else:
            estimates = matrix @ inner.shrunken(done, generator)[0] + shift
            bounds = self._bias_aware(done, moments, inner, matrix, shift, meat, fitted)
            numbers["bias_aware"] = bounds
            if bounds is not None:
                # a valid interval, whichever way the Gram matrix drowned
                status, flags, reason = "imprecise", (_BIAS_AWARE_FLAG,), _BIAS_AWARE
            else:
                reason += "; a declared slope_bound gives bias-aware intervals"
        return self._result(done, names, estimates, numbers, status, reason, (*flags, *self._remarks(subset)), meat)

    def _law(self, done: Round, fitted: Fit, matrix: Array, meat: MiddleMatrix | None) -> JointLaw:
        """What the release says of the errors of all coefficients together; records are weighed in the coordinates of the last round."""
        anywhere = np.full(len(done.cross) - 1, 1e100)
        return JointLaw(
            units=matrix @ fitted.bread,
            noise=fitted.noise,
            meats=(noisy_middle_matrix(fitted, meat, done.cap),),
            records=records_behind(fitted, matrix, -anywhere, anywhere, done.cap),
            key=(self.release.drawn_sha256,),
        )

    def _meat(self, done: Round) -> MiddleMatrix:
        """The meat in units of rho^2, with the usual factor for fitted coefficients."""
        noisy, reach = self.release["meat"], float(np.asarray(self.release.public["reach"])[0])
        rows = ScoreRows(self.design, done.frame, done.cap)
        unit = reach**2 / float(rows.steps) ** 2
        unit *= done.count / max(done.count - len(done.cross), 1.0)
        return MiddleMatrix(noisy.decode() * unit, sqrt(noisy.variance) * unit)

    def _bias_aware(
        self,
        done: Round,
        moments: NoisyMoments,
        inner: RoundLines,
        matrix: Array,
        shift: Array,
        meat: MiddleMatrix | None,
        fitted: Fit | None,
    ) -> BiasAware | None:
        bound = slope_bound(self.declared, self.design, private=self._ranges_found())
        if bound is None:
            return None
        df = max(done.count - len(inner.start), 1.0)
        s2 = done.largest if fitted is None else fitted.s2
        return bias_aware(
            moments, Line(inner.offset, inner.basis), inner.back, inner.start, matrix, shift, meat, s2, df, bound
        )

    def _ranges_found(self) -> bool:
        """Whether every range that was sought stood above its noise; the others kept their public half-widths."""
        if "ranges" not in self.release.statistics:
            return False
        noisy = self.release["ranges"]
        return all(found_ranges(noisy.decode(), sqrt(noisy.variance)))

    def _explained(
        self, done: Round, fitted: Fit, meat: MiddleMatrix | None, generator: np.random.Generator
    ) -> tuple[float, tuple[float, float]]:
        """R squared: the line's variance over the records of the last round, against residuals of the first.

        The last round's residuals are clipped at a few of their own standard deviations; those of the first round only by the bounds of
        the response. That the line is uncertain moves its variance, which is also too large by tr(A cov) / n on average; the residual
        sum of squares it moves in second order only.
        """
        theta = done.frame.line + done.frame.rho * done.frame.matrix @ fitted.theta
        # z'theta = u'v; about the mean with an intercept, about y = 0 without
        origin, _ = allowed_lines(self.design, box=done.frame.box)
        v = np.linalg.solve(done.frame.matrix, theta - origin)
        line = float(v @ done.gram @ v)
        if self.design.intercept:
            line -= float(done.axis @ done.gram @ v) ** 2 / done.count
            v = v - done.axis * float(done.axis @ done.gram @ v) / done.count
        spread = done.frame.rho**2 * fitted.covariance(meat)
        slope = done.gram @ v
        uncertain = 4 * float(slope @ spread @ slope) + (done.sd_gram * float(v @ v)) ** 2
        explained = ((line - float(np.sum(done.gram * spread))) / done.count, sqrt(max(uncertain, 0.0)) / done.count)
        first = first_round(
            self.design, self.release.statistics, self.release.public, str(self.release.charged.relation)
        )
        rss = first.square - 2 * float(theta @ first.cross) + float(theta @ first.gram @ theta)
        size = float(theta @ theta)
        noise = sqrt(first.sd_square**2 + 4 * first.sd_cross**2 * size + first.sd_gram**2 * size**2)
        return explained_share(explained, (rss / first.count, noise / first.count), done.count, generator)

    def _unseen(self) -> str:
        """What follows in the reason on levels whose noisy count is nothing: from the first round, where a weight depends on no count."""
        first = first_round(
            self.design, self.release.statistics, self.release.public, str(self.release.charged.relation)
        )
        return unseen_levels(
            self.design,
            totals_of_gram(first.gram, first.sd_gram, first.frame.matrix),
            box=first.frame.box,
            keep=self.keep,
            counted="noisy weighted count",
        )

    def _remarks(self, subset: bool) -> tuple[str, ...]:
        return (*(("submodel_classical",) if subset else ()), *few_records(self.release["count"]))

    def _limit(self, done: Round) -> float:
        """Where residuals of the last round are limited, in the units of the response."""
        response = self.design.response
        return done.frame.rho * float(response.high - response.low) / 2

    def _clipped(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Flags and facts of the paid diagnostics: which shares of responses and of residuals were clipped."""
        records = float(self.release["count"].decode()[0])
        flags, facts = clipped_responses(self.release, self.design.response.columns, records)
        if "residuals" in self.release.statistics:
            seen, text = clipped_share(self.release["residuals"], records)
            flags, facts = (*flags, *((_RESIDUAL_CLIPPING,) if seen else ())), (*facts, ("Clipped residuals", text))
        return flags, facts

    def _result(
        self,
        done: Round,
        names: tuple[str, ...],
        estimates: Array,
        numbers: Mapping[str, Any],
        status: str,
        reason: str,
        flags: tuple[str, ...],
        meat: MiddleMatrix | None,
    ) -> HuberEstimates:
        plan, count = self.release.plan, self.release["count"]
        clipping, clipped = self._clipped()
        ok = status == "valid"
        bounds = numbers.get("bias_aware")
        share, interval = numbers.get("rsquared", nan), numbers.get("rsquared_interval", (nan, nan))
        intervals_for = plan.intervals_for if meat is not None else _SUBSET_INTERVALS_FOR
        if bounds is not None:
            most = f"{bounds.bound:g} half-ranges per half-range of its feature"
            intervals_for += f"; assumed: no slope moves the response by more than {most}"
        return HuberEstimates(
            heading=HEADING,
            method=self.label,
            response=self.design.response.name,
            names=names,
            estimates=estimates,
            status=status,
            reason="" if ok else reason + self._unseen(),
            flags=(*clipping, *flags),
            requested=plan.requested,
            guarantee=self.release.charged,
            target=f"Huber-type line of {self.design.response.name} on {', '.join(names)} (leverage-weighted, residuals limited at "
            f"{self._limit(done):.4g}), not the least-squares line",
            intervals_for=intervals_for,
            release_sha256=self.release.sha256,
            facts=(
                ("Cov. type", "classical" if meat is None else "robust"),
                ("Count (noisy)", count_text(count)),
                (
                    "R-squared (weighted)" if self.design.intercept else "R-squared (about 0)",
                    f"{share:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]" if ok else DASH,
                ),
                *clipped,
                *((("Slope bound", f"{bounds.bound:g}"),) if bounds is not None else ()),
            ),
            legend=legend(self.design, plan.declared)[1:],
            simulated=self.release.simulated,
            design=self.design,
            nobs=float(count.decode()[0]),
            **numbers,
        )


_BIAS_AWARE = (
    "the released Gram matrix does not stand above its noise in every direction, so normal intervals are not valid; ask for fewer "
    "terms, tighter bounds, more records or a larger budget"
)
_SUBSET_INTERVALS_FOR = (
    "the weighted linear projection on these columns alone; sampling of records and privacy noise, equal residual variances "
    "in the smaller model assumed, independent records"
)


_DRAWS = 1000


def explained_share(
    explained: tuple[float, float], residual: tuple[float, float], count: float, generator: np.random.Generator
) -> tuple[float, tuple[float, float]]:
    """R squared and its 95 % percentile interval from a line's variance and a residual variance that were released apart.

    explained, residual: each an estimate and the sd of its privacy noise; count: a noisy number of records. Records are taken to be not
    far from normal, so that either variance has 2 V^2 / n of sampling.
    """
    size = max(count, 2.0)

    def draws(estimate: float, sd: float) -> Array:
        noisy = max(estimate, 0.0) * generator.chisquare(size, _DRAWS) / size + sd * generator.standard_normal(_DRAWS)
        return np.asarray(np.maximum(noisy, 0.0))

    line, rest = draws(*explained), draws(*residual)
    shares = line / np.maximum(line + rest, 1e-12)
    low, high = np.quantile(shares, [0.025, 0.975])
    parts = max(explained[0], 0.0), max(residual[0], 0.0)
    return parts[0] / max(sum(parts), 1e-12), (float(low), float(high))
