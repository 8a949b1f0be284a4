"""What a linear regression gives its user beyond a table of coefficients: R squared with its interval, and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._lazy import later
from confide.aggregates.scores.metric import factor_name
from confide.errors import NoResult, PlanError
from confide.protocol import Question
from confide.results import Estimates, check_alpha
from confide.results.inference import student
from confide.results.pages.words import WITHOUT_NUMBERS, base_words, missing_words
from confide.schema import Design, Schema

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["DesignEstimates", "LinearEstimates", "kept", "legend"]


Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class DesignEstimates(Estimates):
    """Coefficients of intercept + sum of coefficient x term of `design`, read at rows of public data."""

    design: Design | None = None

    @property
    def title(self) -> str:
        """The heading of every rendering, with the clusters that intervals count."""
        cluster = None if self.design is None else self.design.schema.cluster
        return super().title + ("" if cluster is None else f", clusters {cluster.column}")

    def _line(self, frame: Any, alpha: float) -> tuple[Vector, Vector, Vector]:
        """The line at the rows of a public frame, its standard error, and the half-width of its interval at level 1 - alpha.

        NaN where a value is missing or, at status "partial", an unanswered coefficient counts in.
        """
        alpha, rows = check_alpha(alpha), self._rows(frame)
        line = student.weighted(rows, self.estimates)
        kept = np.where(np.isnan(self.covariance) & ~np.isnan(self.covariance).all(), 0.0, self.covariance)
        error = np.where(np.isnan(line), np.nan, np.sqrt(np.einsum("ij,jk,ik->i", rows, kept, rows)))
        half = student.quantile(alpha / 2, student.fewest(rows, self.df)) * error
        if self.bias is not None:
            half = half + student.weighted(np.abs(rows), self.bias)
        return line, error, half

    def _rows(self, frame: Any) -> Vector:
        """The terms of the estimates' names at the rows of a public frame."""
        if self.design is None or self.status == "no_reply":
            raise NoResult("the release holds no reply, so there is no line to predict from; ask for a new release")
        if self.status in WITHOUT_NUMBERS:
            raise NoResult(f"the release gave no line to predict from, its status is {self.status!r}: {self.reason}")
        matrix = self.design.matrix(frame)
        return matrix[:, [self.design.names.index(name) for name in self.names]]


@dataclass(frozen=True, eq=False, repr=False)
class LinearEstimates(DesignEstimates):
    """Coefficients of a line in the units of the data, with predictions and R squared.

    `nobs` is the noisy weighted count of records, `rsquared` the share of the response's variance on the line (about zero
    without an intercept), `rsquared_interval` its 95 % interval, NaN outside status "ok".
    """

    nobs: float = nan
    rsquared: float = nan
    rsquared_interval: tuple[float, float] = (nan, nan)

    _per: ClassVar[str] = " per unit of the column"

    @property
    def predicts_the_line(self) -> bool:
        """Whether a prediction is the line itself. Override where predictions are moved, as into the response's bounds."""
        return True

    @property
    def _unpublished(self) -> bool:
        return isnan(self.nobs)

    def more(self, alpha: float) -> dict[str, Any]:
        """`Estimates.more` with the noisy count and R squared."""
        low, high = self.rsquared_interval
        own = {"nobs_noisy": self.nobs, "rsquared": self.rsquared, "rsquared_low": low, "rsquared_high": high}
        return {**super().more(alpha), **own}

    def predict(self, frame: Any) -> pd.Series[float]:
        """The line at the rows of a public frame (pandas, or a mapping of arrays), in the response's units.

        At status "weak" it is the line of the rough estimates; at "partial" a row that an unanswered coefficient counts in gives NaN.
        Raises `NoResult` when the release holds no reply, or its status says that the estimates mean nothing ("not_identified").
        """
        values = student.weighted(self._rows(frame), self.estimates)
        return pd.Series(values, name=self.response)

    def get_prediction(self, frame: Any, alpha: float = 0.05) -> pd.DataFrame:
        """Mean, standard error and interval of the line at the rows of a public frame: columns as in statsmodels.

        mean, mean_se, mean_ci_lower, mean_ci_upper; the interval covers the line at that point, not a new response.
        """
        mean, error, half = self._line(frame, alpha)
        return pd.DataFrame(
            {"mean": mean, "mean_se": error, "mean_ci_lower": mean - half, "mean_ci_upper": mean + half}
        )


def kept(design: Design, question: Question) -> list[int]:
    """Indices of the terms that a question keeps."""
    if question.subset is None:
        return list(range(len(design.terms)))
    names = [term.name for term in design.terms]
    factors = [factor_name(term) for term in design.terms]
    unknown = [name for name in question.subset if name not in (*names, *factors, "Intercept")]
    if unknown:
        whole = dict.fromkeys(name for name in factors if name not in names)
        raise PlanError(
            f"subset names {', '.join(map(repr, unknown))}, which the release does not hold; it holds: {', '.join(names)}"
            + (f"; all levels of a factor at once: {', '.join(whole)}" if whole else "")
        )
    return [j for j, name in enumerate(names) if name in question.subset or factors[j] in question.subset]


def legend(design: Design, schema: Schema) -> tuple[tuple[str, str], ...]:
    """What the noisy count counts, and what the schema does with missing values of the columns in use: public facts."""
    columns = schema.columns
    bases = base_words(columns, design)
    return (
        (
            "Weighted count",
            "the sum of the leverage weights of the complete records, each at most 1, with privacy noise; it is not "
            "the number of records",
        ),
        ("Missing", missing_words(columns, design)),
        *([("Compared with", bases)] if bases else []),
    )
