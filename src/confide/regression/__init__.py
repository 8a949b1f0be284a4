"""Regression: the default line SSP2, SSP for releases that many questions share, logistic regression, curves, propose-test-release."""

from confide.regression.efficient_ptr import EfficientPTR
from confide.regression.efficient_ptr_kernel import EfficientPTRKernel
from confide.regression.kernel_curve import KernelCurve
from confide.regression.linear import LinearEstimates
from confide.regression.logistic import Logistic
from confide.regression.logistic_results import LogisticEstimates
from confide.regression.shared_estimates import SharedEstimates
from confide.regression.ssp import SSP
from confide.regression.ssp2 import SSP2

__all__ = [
    "SSP",
    "SSP2",
    "EfficientPTR",
    "EfficientPTRKernel",
    "KernelCurve",
    "LinearEstimates",
    "Logistic",
    "LogisticEstimates",
    "SharedEstimates",
]
