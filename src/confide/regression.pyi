"""Regression: linear, logistic, Poisson and fixed-effects regression, shared moments, and propose-test-release."""

from confide.methods.regression.certified.efficient_line import EfficientPTR as EfficientPTR
from confide.methods.regression.comparing import ModelComparison as ModelComparison, compare_models as compare_models
from confide.methods.regression.glm.logistic import Logistic as Logistic
from confide.methods.regression.glm.poisson import Poisson as Poisson
from confide.methods.regression.glm.results import (
    LogisticEstimates as LogisticEstimates,
    PoissonEstimates as PoissonEstimates,
)
from confide.methods.regression.least_squares.method import LeastSquares as LeastSquares
from confide.methods.regression.linear_estimates import (
    LinearEstimates as LinearEstimates,
    SharedEstimates as SharedEstimates,
)
from confide.methods.regression.ssp.method import SSP as SSP
from confide.methods.regression.within.method import Within as Within, WithinEstimates as WithinEstimates
