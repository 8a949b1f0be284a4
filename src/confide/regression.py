"""Regression: the default line, moments for many questions, logistic regression, curves, propose-test-release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.methods.curves.efficient_ptr_kernel import EfficientPTRKernel
    from confide.methods.curves.kernel_curve import KernelCurve
    from confide.methods.regression.certified.efficient_ptr import EfficientPTR
    from confide.methods.regression.likelihood.logistic import Logistic
    from confide.methods.regression.likelihood.logistic_results import LogisticEstimates
    from confide.methods.regression.likelihood.poisson import Poisson
    from confide.methods.regression.likelihood.poisson_results import PoissonEstimates
    from confide.methods.regression.linear import LinearEstimates
    from confide.methods.regression.moments.ssp import SSP
    from confide.methods.regression.shared_estimates import SharedEstimates
    from confide.methods.regression.ssp2 import SSP2
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "EfficientPTR": "confide.methods.regression.certified.efficient_ptr",
            "EfficientPTRKernel": "confide.methods.curves.efficient_ptr_kernel",
            "KernelCurve": "confide.methods.curves.kernel_curve",
            "LinearEstimates": "confide.methods.regression.linear",
            "Logistic": "confide.methods.regression.likelihood.logistic",
            "LogisticEstimates": "confide.methods.regression.likelihood.logistic_results",
            "Poisson": "confide.methods.regression.likelihood.poisson",
            "PoissonEstimates": "confide.methods.regression.likelihood.poisson_results",
            "SSP": "confide.methods.regression.moments.ssp",
            "SSP2": "confide.methods.regression.ssp2",
            "SharedEstimates": "confide.methods.regression.shared_estimates",
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
