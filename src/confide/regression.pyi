"""Regression: the default line, moments for many questions, logistic and Poisson regression, propose-test-release."""

from confide.methods.regression.certified.efficient_ptr import EfficientPTR as EfficientPTR
from confide.methods.regression.least_squares.line import LeastSquares as LeastSquares
from confide.methods.regression.least_squares.within import Within as Within, WithinEstimates as WithinEstimates
from confide.methods.regression.likelihood.logistic import Logistic as Logistic
from confide.methods.regression.likelihood.logistic_results import LogisticEstimates as LogisticEstimates
from confide.methods.regression.likelihood.poisson import Poisson as Poisson
from confide.methods.regression.likelihood.poisson_results import PoissonEstimates as PoissonEstimates
from confide.methods.regression.linear import LinearEstimates as LinearEstimates
from confide.methods.regression.moments.ssp import SSP as SSP
from confide.methods.regression.shared_estimates import SharedEstimates as SharedEstimates
