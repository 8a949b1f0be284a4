"""Regression: the default line, moments for many questions, logistic and Poisson regression, propose-test-release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.methods.regression.certified.efficient_ptr import EfficientPTR
    from confide.methods.regression.least_squares.line import LeastSquares
    from confide.methods.regression.least_squares.within import Within, WithinEstimates
    from confide.methods.regression.likelihood.logistic import Logistic
    from confide.methods.regression.likelihood.logistic_results import LogisticEstimates
    from confide.methods.regression.likelihood.poisson import Poisson
    from confide.methods.regression.likelihood.poisson_results import PoissonEstimates
    from confide.methods.regression.linear import LinearEstimates
    from confide.methods.regression.moments.ssp import SSP
    from confide.methods.regression.shared_estimates import SharedEstimates
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "EfficientPTR": "confide.methods.regression.certified.efficient_ptr",
            "LeastSquares": "confide.methods.regression.least_squares.line",
            "LinearEstimates": "confide.methods.regression.linear",
            "Logistic": "confide.methods.regression.likelihood.logistic",
            "LogisticEstimates": "confide.methods.regression.likelihood.logistic_results",
            "Poisson": "confide.methods.regression.likelihood.poisson",
            "PoissonEstimates": "confide.methods.regression.likelihood.poisson_results",
            "SSP": "confide.methods.regression.moments.ssp",
            "Within": "confide.methods.regression.least_squares.within",
            "WithinEstimates": "confide.methods.regression.least_squares.within",
            "SharedEstimates": "confide.methods.regression.shared_estimates",
        },
    )

__all__ = [
    "SSP",
    "EfficientPTR",
    "LeastSquares",
    "LinearEstimates",
    "Logistic",
    "LogisticEstimates",
    "Poisson",
    "PoissonEstimates",
    "SharedEstimates",
    "Within",
    "WithinEstimates",
]
