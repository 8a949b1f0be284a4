"""Regression: the default line, moments for many questions, logistic regression, curves, propose-test-release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.regression.efficient_ptr import EfficientPTR
    from confide.regression.efficient_ptr_kernel import EfficientPTRKernel
    from confide.regression.kernel_curve import KernelCurve
    from confide.regression.linear import LinearEstimates
    from confide.regression.logistic import Logistic
    from confide.regression.logistic_results import LogisticEstimates
    from confide.regression.poisson import Poisson
    from confide.regression.poisson_results import PoissonEstimates
    from confide.regression.shared_estimates import SharedEstimates
    from confide.regression.ssp import SSP
    from confide.regression.ssp2 import SSP2
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "EfficientPTR": "confide.regression.efficient_ptr",
            "EfficientPTRKernel": "confide.regression.efficient_ptr_kernel",
            "KernelCurve": "confide.regression.kernel_curve",
            "LinearEstimates": "confide.regression.linear",
            "Logistic": "confide.regression.logistic",
            "LogisticEstimates": "confide.regression.logistic_results",
            "Poisson": "confide.regression.poisson",
            "PoissonEstimates": "confide.regression.poisson_results",
            "SSP": "confide.regression.ssp",
            "SSP2": "confide.regression.ssp2",
            "SharedEstimates": "confide.regression.shared_estimates",
        },
    )

__all__ = [
    "SSP",
    "SSP2",
    "EfficientPTR",
    "EfficientPTRKernel",
    "KernelCurve",
    "LinearEstimates",
    "Logistic",
    "LogisticEstimates",
    "Poisson",
    "PoissonEstimates",
    "SharedEstimates",
]
