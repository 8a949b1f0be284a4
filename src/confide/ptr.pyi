"""Propose-test-release: estimators of unbounded sensitivity, released where the data are certified to be safe.

A safety bound makes any estimator private. There are `SafetyBound`, the combinators `scale`, `all_of` and `after`, bounds with their
proofs, and `safe_release`.
"""

from confide.ask.ptr import (
    generalized_release as generalized_release,
    safe_release as safe_release,
    select_features as select_features,
)
from confide.methods.ptr.classic import (
    DistanceTest as DistanceTest,
    FirstPassing as FirstPassing,
    PrivateLocalBound as PrivateLocalBound,
    StableRelease as StableRelease,
)
from confide.methods.ptr.feature_votes import SelectedFeatures as SelectedFeatures
from confide.methods.ptr.generalized import (
    LossTest as LossTest,
    UniformBound as UniformBound,
    generalized_guarantee as generalized_guarantee,
    generalized_rdp as generalized_rdp,
)
from confide.methods.ptr.generalized_release import GeneralizedRelease as GeneralizedRelease
from confide.methods.ptr.renyi_test import RenyiTest as RenyiTest
from confide.methods.ptr.safe_release import SafeRelease as SafeRelease
from confide.methods.ptr.safety import (
    CertifiedBound as CertifiedBound,
    SafetyBound as SafetyBound,
    after as after,
    all_of as all_of,
    scale as scale,
)
from confide.methods.ptr.safety_bounds import (
    BallLikelihood as BallLikelihood,
    ClassMeans as ClassMeans,
    KernelRegression as KernelRegression,
    LeadingEigenvector as LeadingEigenvector,
    LeastSquares as LeastSquares,
    OrderStatistic as OrderStatistic,
)
from confide.sums.safety_bounds import rounded_safety as rounded_safety
