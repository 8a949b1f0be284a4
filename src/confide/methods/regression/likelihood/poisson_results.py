"""What a Poisson regression gives its user beyond a table of coefficients: rate ratios and predicted means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide.methods.regression.likelihood.model_results import ModelEstimates
from confide.results.inference import student

__all__ = ["PoissonEstimates"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PoissonEstimates(ModelEstimates):
    """Log-rate coefficients in the units of the data: log E[count] = intercept + sum of coefficient x term.

    A coefficient is the change of the log of the mean per unit of the column; exp of it is a rate ratio (`rate_ratios`).
    """

    _per: ClassVar[str] = " of the log mean per unit of the column"
    _ratio: ClassVar[str] = "rate_ratio"

    def rate_ratios(self, alpha: float = 0.05) -> pd.DataFrame:
        """exp of the coefficients and of their intervals: rate_ratio, low, high. The intercept's is the mean where all terms are 0.

        Incidence-rate ratios, where a record's count is of one unit of time or of exposure.
        """
        return self._ratios(alpha)

    def predict(self, frame: Any) -> pd.Series[Any]:
        """Mean counts at the rows of a public frame (pandas, or a mapping of arrays); NaN where a value is missing or, at status "partial",
        an unanswered coefficient counts in.

        Raises `NoResult` when the release holds no reply, or its status says that the estimates mean nothing.
        """
        return pd.Series(self._mean(student.weighted(self._rows(frame), self.estimates)), name=self.response)

    def _mean(self, eta: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(eta))

    def _slope(self, eta: Array) -> Array:
        return self._mean(eta)
