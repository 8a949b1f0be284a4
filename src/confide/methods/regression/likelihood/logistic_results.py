"""What a logistic regression gives its user beyond a table of coefficients: odds ratios, probabilities, predicted levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide._lazy import later
from confide._special import expit, ndtr
from confide.aggregates.scores.fisher_families import PROBIT
from confide.errors import NoResult, PlanError
from confide.guarantees.validation import is_number
from confide.methods.regression.likelihood.model_results import ModelEstimates
from confide.results.inference import student

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["LogisticEstimates"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LogisticEstimates(ModelEstimates):
    """Log-odds coefficients in the units of the data: log(P/(1 - P)) = intercept + sum of coefficient x term, P = P(second level).

    A coefficient is the change of the log-odds per unit of the column; exp of it is an odds ratio (`odds_ratios`). With link "probit" it is
    the change of the normal quantile of P, and there are no odds ratios. `levels` are the two outcomes, the base first.
    """

    levels: tuple[str, str] = ("0", "1")
    link: str = "logit"

    def more(self, alpha: float) -> dict[str, Any]:
        """`Estimates.more` with the levels and the odds ratios."""
        link = {"link": self.link} if self.link == "probit" else {}
        return {**super().more(alpha), "levels": self.levels, **link}

    @property
    def _ratio(self) -> str:  # type: ignore[override]
        return "" if self.link == "probit" else "odds_ratio"

    @property
    def _per(self) -> str:  # type: ignore[override]
        return f" of the {'normal quantile' if self.link == 'probit' else 'log-odds'} per unit of the column"

    def odds_ratios(self, alpha: float = 0.05) -> pd.DataFrame:
        """exp of the coefficients and of their intervals: odds_ratio, low, high. The intercept's is the odds where all terms are 0.

        Raises `NoResult` for the probit, whose coefficients are no log-odds.
        """
        if self.link == "probit":
            raise NoResult(
                'a probit has no odds ratios; write link="logit" for a new release, or read get_prediction(frame)'
            )
        return self._ratios(alpha)

    def predict_proba(self, frame: Any) -> pd.DataFrame:
        """Probabilities of the two levels at the rows of a public frame (pandas, or a mapping of arrays): one column for each.

        A row with a missing value gives NaN, and so does, at status "partial", a row that an unanswered coefficient counts in. Raises
        `NoResult` when the release holds no reply, or its status says that the estimates mean nothing ("not_identified").
        """
        share = self._mean(student.weighted(self._rows(frame), self.estimates))
        return pd.DataFrame({self.levels[0]: 1 - share, self.levels[1]: share})

    def _mean(self, eta: Array) -> Array:
        return np.asarray(ndtr(eta) if self.link == "probit" else expit(eta))

    def _slope(self, eta: Array) -> Array:
        mean = self._mean(eta)
        return PROBIT.slope(eta) if self.link == "probit" else mean * (1 - mean)

    @property
    def _no_mean_slope(self) -> str:
        if self.link == "probit":
            return "what a probit releases is not its mean slope; predictions at given rows have intervals (get_prediction)"
        return super()._no_mean_slope

    def predict(self, frame: Any, threshold: float = 0.5) -> pd.Series[Any]:
        """The level whose probability is larger; threshold: from which probability on it is the second one. None at missing values.

        Raises `NoResult` when the release holds no reply, `PlanError` for a threshold outside (0, 1).
        """
        if not is_number(threshold) or not 0 < threshold < 1:
            raise PlanError(f"threshold must be a number between 0 and 1, got {threshold!r}; write threshold=0.5")
        share = self.predict_proba(frame)[self.levels[1]].to_numpy()
        labels = np.array([*self.levels, None], dtype=object)
        return pd.Series(labels[np.where(np.isnan(share), 2, share >= threshold).astype(int)], name=self.response)
