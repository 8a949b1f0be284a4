"""Propose-test-release: estimators of unbounded sensitivity, released where the data are certified to be safe.

A safety bound of ten lines makes any estimator private: `SafetyBound`, the combinators `scale`, `all_of` and `after`, the bounds that are
shipped with their proofs, and `safe_release`.
"""

from confide.aggregates.safety_formulas import rounded_safety as rounded_safety
from confide.ask.ptr import safe_release as safe_release
from confide.methods.ptr.classic_ptr import (
    DistanceTest as DistanceTest,
    FirstPassing as FirstPassing,
    PrivateLocalBound as PrivateLocalBound,
    StableRelease as StableRelease,
)
from confide.methods.ptr.generalized_ptr import (
    LossTest as LossTest,
    UniformBound as UniformBound,
    generalized_guarantee as generalized_guarantee,
    generalized_rdp as generalized_rdp,
)
from confide.methods.ptr.safe_release import SafeRelease as SafeRelease
from confide.methods.ptr.safety import (
    CertifiedBound as CertifiedBound,
    SafetyBound as SafetyBound,
    after as after,
    all_of as all_of,
    scale as scale,
)
from confide.methods.ptr.safety_bounds.class_means import ClassMeans as ClassMeans
from confide.methods.ptr.safety_bounds.eigenvector import LeadingEigenvector as LeadingEigenvector
from confide.methods.ptr.safety_bounds.kernel import KernelRegression as KernelRegression
from confide.methods.ptr.safety_bounds.least_squares import LeastSquares as LeastSquares
from confide.methods.ptr.safety_bounds.likelihood import BallLikelihood as BallLikelihood
from confide.methods.ptr.safety_bounds.order_statistic import OrderStatistic as OrderStatistic
