"""Linear regression: the default SSP2, SSP for releases that many questions share, and the published methods beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.regression.adaops import AdaOPS
    from confide.regression.adassp import AdaSSP
    from confide.regression.analyze_gauss import AnalyzeGauss
    from confide.regression.binagg import BinAgg
    from confide.regression.boosted_adassp import BoostedAdaSSP
    from confide.regression.efficient_ptr import EfficientPTR
    from confide.regression.efficient_ptr_kernel import EfficientPTRKernel
    from confide.regression.functional_mechanism import FunctionalMechanism
    from confide.regression.gradient_descent import GradientDescent
    from confide.regression.johnson_lindenstrauss import JohnsonLindenstrauss
    from confide.regression.kernel_curve import KernelCurve
    from confide.regression.linear import LinearEstimates
    from confide.regression.logistic import Logistic
    from confide.regression.logistic_results import LogisticEstimates
    from confide.regression.output_perturbation import OutputPerturbation
    from confide.regression.poisson import Poisson
    from confide.regression.poisson_results import PoissonEstimates
    from confide.regression.posterior_sampling import PosteriorSampling
    from confide.regression.shared_estimates import SharedEstimates
    from confide.regression.ssp import SSP
    from confide.regression.ssp2 import SSP2
    from confide.regression.wavelet import Wavelet
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "AdaOPS": "confide.regression.adaops",
            "AdaSSP": "confide.regression.adassp",
            "AnalyzeGauss": "confide.regression.analyze_gauss",
            "BinAgg": "confide.regression.binagg",
            "BoostedAdaSSP": "confide.regression.boosted_adassp",
            "EfficientPTR": "confide.regression.efficient_ptr",
            "EfficientPTRKernel": "confide.regression.efficient_ptr_kernel",
            "FunctionalMechanism": "confide.regression.functional_mechanism",
            "GradientDescent": "confide.regression.gradient_descent",
            "JohnsonLindenstrauss": "confide.regression.johnson_lindenstrauss",
            "KernelCurve": "confide.regression.kernel_curve",
            "LinearEstimates": "confide.regression.linear",
            "Logistic": "confide.regression.logistic",
            "LogisticEstimates": "confide.regression.logistic_results",
            "OutputPerturbation": "confide.regression.output_perturbation",
            "Poisson": "confide.regression.poisson",
            "PoissonEstimates": "confide.regression.poisson_results",
            "PosteriorSampling": "confide.regression.posterior_sampling",
            "SSP": "confide.regression.ssp",
            "SSP2": "confide.regression.ssp2",
            "SharedEstimates": "confide.regression.shared_estimates",
            "Wavelet": "confide.regression.wavelet",
        },
    )

__all__ = [
    "SSP",
    "SSP2",
    "AdaOPS",
    "AdaSSP",
    "AnalyzeGauss",
    "BinAgg",
    "BoostedAdaSSP",
    "EfficientPTR",
    "EfficientPTRKernel",
    "FunctionalMechanism",
    "GradientDescent",
    "JohnsonLindenstrauss",
    "KernelCurve",
    "LinearEstimates",
    "Logistic",
    "LogisticEstimates",
    "OutputPerturbation",
    "Poisson",
    "PoissonEstimates",
    "PosteriorSampling",
    "SharedEstimates",
    "Wavelet",
]
