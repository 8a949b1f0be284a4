"""A release of a survey's line read as a table: the meat of persons or PSUs, the cut of weights, calibration to public margins.

Calibration. With public numbers of persons by the levels of every column of an additive formula, the mean of the response is
Xbar'beta, Xbar the population's mean row: the generalised regression estimator, whose variance is Xbar'V Xbar with the sandwich V about
the line's own residuals, as R's `calibrate` has it (raking is the same to first order). It costs nothing. Source: Deville, Sarndal 1992.

Xbar'beta is the intercept of the same line over columns less their population means, so that its variance and its degrees of freedom are
those of that coefficient: with u = A^-1 C' Xbar its sampling variance is u'Mu, the noise in it has the variance sd^2 |u|^4 (entries of M
have one noise sd on the diagonal, 1/sqrt(2) of it and twice off it), and Satterthwaite's df = 2 V^2/(that + 2 (u'Mu)^2/records).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._lazy import later
from confide.aggregates.column_codes import columns_of
from confide.aggregates.scores.score_rows import LimitedFeatures, LimitedScores
from confide.aggregates.scores.weighted_rows import LongFeatures, LongScores
from confide.errors import NoResult, PlanError
from confide.methods.regression.evidence.sandwich import Sandwich
from confide.methods.regression.least_squares.explained import Explained
from confide.methods.regression.least_squares.least_squares_reading import LeastSquaresReading
from confide.methods.regression.least_squares.survey.survey_sums import FINE_FEATURES, FINE_SCORES
from confide.methods.regression.shared_estimates import SharedEstimates
from confide.methods.regression.surveyed import FLOOR, HIDDEN, Hidden, OfPopulation, OfUnits, SurveyRead
from confide.results import check_alpha
from confide.results.inference import student
from confide.results.public_totals import CALLS, public_margins
from confide.schema import Categorical

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["SurveyEstimates", "SurveyReading"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class SurveyEstimates(OfPopulation, SharedEstimates):
    """Coefficients of a population's line; `calibrate` gives the response's mean at public margins.

    hidden: what the cut of weights may move a combination c of coefficients by is the root of the larger of c'H c, H of the two matrices;
    None where nothing was cut; unsure: the covariance with which that is known. sandwich: of the coefficients; kappa: the part of each that
    limits of scores may move it by, of what the last round did. drawn: the design in words.
    """

    hidden: tuple[Array, Array] | None = None
    unsure: Array | float = 0.0
    sandwich: Sandwich | None = None
    kappa: float = 0.0
    drawn: str = ""

    def calibrate(self, totals: Any, *, alpha: float = 0.05) -> pd.DataFrame:
        """The mean of the response and its total at public margins: estimate, std_err, df, low, high; rows "mean" and "total".

        totals: column -> level -> number of persons in the population, for every column of the formula, or a CSV file of column, level and
        number; numbers of each column add up to the same. Raises `PlanError` for a formula that is no sum of categorical columns, or other
        levels; `NoResult` where coefficients are not answered.
        """
        assert self.design is not None
        margins = public_margins(totals)
        row = _mean_row(self.design, margins)
        if self.status != "ok" or self.sandwich is None:
            raise NoResult(
                f"the status is {self.status!r}, and a calibrated mean needs every coefficient: {self.reason}"
            )
        # the coefficient that this combination is in recentred columns
        own = replace(self.sandwich, rows=row[None, :] @ self.sandwich.rows, shift=row[None, :] @ self.sandwich.shift)
        estimate, df = float(row @ self.estimates), float(own.df[0])
        error = sqrt(float(own.variances[0]) + float(np.sum(np.outer(row, row) * self.unsure)))
        half = float(student.quantile(check_alpha(alpha) / 2, df)) * error + self.kappa * abs(
            float((own.rows @ own.delta)[0])
        )
        if self.hidden is not None:
            half += sqrt(max(float(row @ each @ row) for each in self.hidden))
        size = sum(next(iter(margins.values())).values())
        mean = np.array([estimate, error, df, estimate - half, estimate + half])
        scale = np.array([1.0, 1.0, 1.0 / size, 1.0, 1.0]) * size
        named = ("estimate", "std_err", "df", "low", "high")
        return pd.DataFrame([mean, mean * scale], index=["mean", "total"], columns=list(named))


def _mean_row(design: Any, margins: Mapping[str, Mapping[str, float]]) -> Array:
    """The population's mean row of an additive formula of categorical columns, (coefficients,)."""
    used = columns_of(*design.terms)
    odd = [term.name for term in design.terms if len(term.columns) > 1]
    odd += [name for name in used if not isinstance(design.schema[name], Categorical)]
    if odd:
        raise PlanError(
            f"margins settle a sum of categorical columns, as in 'y ~ sex + region', and {design.formula!r} has {odd[0]!r}; release that "
            "formula, with an integer column declared as Categorical"
        )
    if set(used) != set(margins):
        raise PlanError(
            f"margins name the columns of {design.formula!r}, {', '.join(used)}, got {', '.join(margins)}; {CALLS}"
        )
    for name, own in margins.items():
        if set(own) != set(design.schema[name].levels):
            raise PlanError(
                f"margins of {name!r} name its levels, {', '.join(design.schema[name].levels)}, got {', '.join(own)}; {CALLS}"
            )
    first = {name: design.schema[name].levels[0] for name in used}
    base = design.matrix(pd.DataFrame([first]))[0]
    row = base.copy()
    for name, own in margins.items():
        size = sum(own.values())
        levels = pd.DataFrame([{**first, name: level} for level in own])
        row += np.array(list(own.values())) / size @ (design.matrix(levels) - base)
    return np.asarray(row)


@dataclass(frozen=True, eq=False)
class DesignSandwich(OfUnits, Sandwich):
    """A sandwich over C PSUs, or persons, in H strata. free: C - H."""

    @property
    def sampling(self) -> Array:
        k = self.spread
        robust = self.factor * np.einsum("ij,jk,ik->i", k, self.whole_meat, k)
        # noise may leave almost nothing of a meat in some direction
        least = self.floor * self.light * self.s2 * np.einsum("ij,jk,ik->i", k, self.gram, k)
        hidden = HIDDEN * self.factor * self.sd_meat * (k**2).sum(axis=1)
        return np.asarray(np.maximum(robust, np.minimum(least, np.maximum(robust, 0.0) + hidden)))

    def alone(self, factor: float | None = None, light: float = 1.0) -> Array:
        return super().alone(self.factor if factor is None else factor, self.light)

    @property
    def records(self) -> Array:
        return np.minimum(super().records, max(self.free, 1.0))


class SurveyReading(SurveyRead, LeastSquaresReading):
    """A release of weighted sums."""

    _what: ClassVar[str] = "linear regression"

    @property
    def _typical(self) -> float:
        return super()._typical * self.survey.light

    def _maps(self, cap: float, limit: float) -> tuple[LimitedFeatures, LimitedScores]:
        features = LongFeatures(self.design, cap=cap, longest=FINE_FEATURES)
        return features, LongScores(self.design, limit=limit, longest=FINE_SCORES)

    @property
    def _few_units(self) -> str:
        return self.survey.few

    @cached_property
    def sandwich(self) -> Sandwich:
        base = super().sandwich
        longest, centred, _ = self._public("meat_form")
        noisy, kept = self.release["meat"], len(base.gram)
        steps = LongScores(self.design, limit=self._number("meat_limit"), longest=int(longest)).steps
        count, free, factor = self.survey.independent(bool(centred))
        own = {each.name: getattr(base, each.name) for each in fields(base)}
        own |= {
            "meat": noisy.decode()[:kept, :kept] / steps**2,
            "sd_meat": sqrt(noisy.variance) / steps**2,
            "units": count,
            "floor": FLOOR,
        }
        return DesignSandwich(**own, factor=factor * self.survey.scale, free=free, light=self.survey.light)

    @cached_property
    def _cut(self) -> Hidden | None:
        s = self.sandwich
        return self.survey.hidden(s.spread, s.meat, s.s2 * s.gram, s.count)

    @property
    def _cut_weights(self) -> Array | float:
        return 0.0 if self._cut is None else self._cut.lengths

    @property
    def _unsure_cut(self) -> Array | float:
        return 0.0 if self._cut is None else self._cut.error

    @cached_property
    def explained(self) -> Explained:
        return Explained.nothing("not built under a design")

    # how it is told ---------------------------------------------------------------------------------------------------

    @property
    def _drawn_words(self) -> str:
        return f", {self.survey.design.words}"

    def _made(self, **more: Any) -> SharedEstimates:
        more["reason"] = self.survey.reason(more["status"], more.get("reason", ""))
        made = super()._made(**more)
        own = {each.name: getattr(made, each.name) for each in fields(made) if each.init}
        own["drawn"] = self.survey.design.words
        if more["status"] != "ok":
            return SurveyEstimates(**own)
        return SurveyEstimates(
            **own,
            hidden=None if self._cut is None else self._cut.squares,
            unsure=self._unsure_cut,
            kappa=self._number("kappa"),
            sandwich=self.sandwich,
        )
