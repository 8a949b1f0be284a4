"""What a logistic regression gives its user beyond a table of coefficients: odds ratios, probabilities, predicted levels."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from confide._lazy import later
from confide.errors import NoResult, PlanError
from confide.results import Estimates, check_alpha, student
from confide.results.words import WITHOUT_NUMBERS
from confide.schema import Design

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["LogisticEstimates"]


@dataclass(frozen=True, eq=False, repr=False)
class LogisticEstimates(Estimates):
    """Log-odds coefficients in the units of the data: log(P/(1 - P)) = intercept + sum of coefficient x term, P = P(second level).

    A coefficient is the change of the log-odds per unit of the column; exp of it is an odds ratio (`odds_ratios`). `levels` are the two
    outcomes, the base first; `ridge` the penalty in the scaled units of the fit.
    """

    design: Design | None = None
    levels: tuple[str, str] = ("0", "1")
    ridge: float = nan

    _per: ClassVar[str] = " of the log-odds per unit of the column"

    def to_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """`Estimates.to_dict` with the levels and the odds ratios; what is not finite is None."""
        with np.errstate(over="ignore"):
            odds = [float(v) if np.isfinite(v) else None for v in np.exp(self.params.to_numpy())]
        return {**super().to_dict(alpha), "levels": list(self.levels), "odds_ratio": odds}

    def odds_ratios(self, alpha: float = 0.05) -> pd.DataFrame:
        """exp of the coefficients and of their intervals: odds_ratio, low, high. The intercept's is the odds where all terms are 0."""
        with np.errstate(over="ignore"):
            limits = np.exp(self.conf_int(alpha))
            return pd.DataFrame({"odds_ratio": np.exp(self.params), "low": limits[0], "high": limits[1]})

    def predict_proba(self, frame: Any) -> pd.DataFrame:
        """Probabilities of the two levels at the rows of a public frame (pandas, or a mapping of arrays): one column for each.

        A row with a missing value gives NaN, and so does, at status "partial", a row that an unanswered coefficient counts in. Raises
        `NoResult` when the release holds no reply, or its status says that the estimates mean nothing ("not_identified").
        """
        share = expit(student.weighted(self._rows(frame), self.estimates))
        return pd.DataFrame({self.levels[0]: 1 - share, self.levels[1]: share})

    def get_prediction(self, frame: Any, alpha: float = 0.05) -> pd.DataFrame:
        """Probability of the second level, standard error and interval at the rows of a public frame: columns as in statsmodels.

        mean, mean_se, mean_ci_lower, mean_ci_upper; the ends are those of the log-odds, carried over. The interval covers the probability
        that the population's line gives there. Without intervals all but the mean is NaN.
        """
        alpha, rows = check_alpha(alpha), self._rows(frame)
        log_odds = student.weighted(rows, self.estimates)
        kept = np.where(np.isnan(self.covariance) & ~np.isnan(self.covariance).all(), 0.0, self.covariance)
        error = np.where(np.isnan(log_odds), np.nan, np.sqrt(np.einsum("ij,jk,ik->i", rows, kept, rows)))
        half = student.quantile(alpha / 2, student.fewest(rows, self.df)) * error
        if self.bias is not None:
            half = half + student.weighted(np.abs(rows), self.bias)
        mean = expit(log_odds)
        return pd.DataFrame(
            {
                "mean": mean,
                "mean_se": mean * (1 - mean) * error,
                "mean_ci_lower": expit(log_odds - half),
                "mean_ci_upper": expit(log_odds + half),
            }
        )

    def _rows(self, frame: Any) -> NDArray[np.float64]:
        if self.design is None or self.status == "no_reply":
            raise NoResult("the release holds no reply, so there is nothing to predict from; ask for a new release")
        if self.status in WITHOUT_NUMBERS:
            raise NoResult(f"the release gave no line to predict from, its status is {self.status!r}: {self.reason}")
        matrix = self.design.matrix(frame)
        return matrix[:, [self.design.names.index(name) for name in self.names]]

    def predict(self, frame: Any, threshold: float = 0.5) -> pd.Series[Any]:
        """The level whose probability is larger; threshold: from which probability on it is the second one. None at missing values.

        Raises `NoResult` when the release holds no reply, `PlanError` for a threshold outside (0, 1).
        """
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 < threshold < 1:
            raise PlanError(f"threshold must be a number between 0 and 1, got {threshold!r}; write threshold=0.5")
        share = self.predict_proba(frame)[self.levels[1]].to_numpy()
        labels = np.array([*self.levels, None], dtype=object)
        return pd.Series(labels[np.where(np.isnan(share), 2, share >= threshold).astype(int)], name=self.response)
