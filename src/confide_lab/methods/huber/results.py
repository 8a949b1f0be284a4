"""The table of a Huber-type line: with the bias-aware intervals of a weak fit, and predictions within the response's bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from confide._arrays import Array
from confide._special import stdtrit
from confide.methods.regression.linear_estimates import SharedEstimates
from confide.results import check_alpha
from confide_lab.methods.huber.bias_aware import BiasAware

__all__ = ["HuberEstimates"]


@dataclass(frozen=True, eq=False, repr=False)
class HuberEstimates(SharedEstimates):
    """Coefficients of a Huber-type line in the units of the data.

    `bias_aware` holds the intervals of a "imprecise" fit, which are not of the form estimate +- quantile x error; `within`: predictions are
    moved into these bounds.
    """

    bias_aware: BiasAware | None = None
    within: tuple[float, float] | None = None

    @property
    def predicts_the_line(self) -> bool:
        return self.within is None

    @property
    def has_intervals(self) -> bool:
        """Whether `conf_int` gives numbers."""
        return self.bias_aware is not None or super().has_intervals

    def _limits(self, alpha: float) -> tuple[Array, Array]:
        """Both ends of the intervals at level 1 - alpha; at status "imprecise" of the bias-aware ones, where there are any."""
        if self.bias_aware is None:
            return super()._limits(alpha)
        quantile = float(stdtrit(self.bias_aware.df, 1 - check_alpha(alpha) / 2))
        return self.bias_aware.limits(quantile, self.estimates)

    def predict(self, frame: Any) -> pd.Series[float]:
        """The line at the rows of a public frame; where the fit was made for prediction, moved into the response's declared bounds."""
        values = super().predict(frame)
        return values if self.within is None else pd.Series(np.clip(values.to_numpy(), *self.within), name=values.name)
