"""Propose-test-release: estimators of unbounded sensitivity, released where the data are certified to be safe.

A safety bound of ten lines makes any estimator private: `SafetyBound`, the combinators `scale`, `all_of` and `after`, the bounds that are
shipped with their proofs, and `safe_release`.
"""

from __future__ import annotations

from typing import Any

from confide import gate
from confide.aggregates.safety_formulas import rounded_safety
from confide.errors import PlanError
from confide.faces.one_call import LEFT_OUT, checked_ledger
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.ptr.classic_ptr import DistanceTest, FirstPassing, PrivateLocalBound, StableRelease
from confide.methods.ptr.generalized_ptr import LossTest, UniformBound, generalized_guarantee, generalized_rdp
from confide.methods.ptr.safe_release import SafeRelease
from confide.methods.ptr.safety import CertifiedBound, SafetyBound, after, all_of, bound_name, checked_bound, scale
from confide.methods.ptr.safety_bounds.class_means import ClassMeans
from confide.methods.ptr.safety_bounds.eigenvector import LeadingEigenvector
from confide.methods.ptr.safety_bounds.kernel import KernelRegression
from confide.methods.ptr.safety_bounds.least_squares import LeastSquares
from confide.methods.ptr.safety_bounds.likelihood import BallLikelihood
from confide.methods.ptr.safety_bounds.order_statistic import OrderStatistic
from confide.protocol import Noise, Source
from confide.results import Estimates

__all__ = [
    "BallLikelihood",
    "CertifiedBound",
    "ClassMeans",
    "DistanceTest",
    "FirstPassing",
    "KernelRegression",
    "LeadingEigenvector",
    "LeastSquares",
    "LossTest",
    "OrderStatistic",
    "PrivateLocalBound",
    "SafeRelease",
    "SafetyBound",
    "StableRelease",
    "UniformBound",
    "after",
    "all_of",
    "generalized_guarantee",
    "generalized_rdp",
    "rounded_safety",
    "safe_release",
    "scale",
]


def safe_release(
    bound: SafetyBound,
    data: Source,
    *,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    mode: str = "gdp",
    gamma_plan: float | None = None,
    beta: float = 1e-3,
    columns: tuple[str, ...] | None = None,
    n: int | None = None,
    report: Any = None,
    noise: Noise | None = None,
) -> Estimates:
    """Plan, release and infer `SafeRelease(bound, ...)` in one call; privacy and ledger have no default.

    report: what `confide.audit.falsify_safety_bound(bound, ...)` found; it must not have broken the bound, and the guarantee then says
    on how many pairs it was tried. n: the public number of records, where the bound does not say it. Other arguments: `SafeRelease`.
    The release itself is not kept: to publish it call `confide.release(SafeRelease(...), ...)`. Errors are those of both.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> median = cf.ptr.OrderStatistic(500, 0.0, 1.0, alpha=0.05)
    >>> safe_release(median, data, privacy=cf.ApproxDP(1.0, 1e-6), ledger=None, gamma_plan=40, n=1_000).names
    ('x_(500)',)
    """
    checked_ledger(ledger)
    tried = 0
    if report is not None:
        if getattr(report, "verdict", "") != "holds":
            raise PlanError(
                f"the report on the bound says {getattr(report, 'verdict', 'nothing')!r}: a bound that is broken, or was never tried on "
                "safe data, releases nothing; print(report) shows the neighbours"
            )
        if report.name != bound_name(bound):
            raise PlanError(
                f"the report is on {report.name!r}, the bound is {bound_name(bound)!r}; attack the bound that is released with"
            )
        if mode != "adaptive" and report.bound != float(checked_bound(bound).alpha):
            raise PlanError(
                f"the report is on alpha = {report.bound:g}, the bound has {float(bound.alpha):g}; attack the bound that is released with"
            )
        tried = int(report.tried)
    method = SafeRelease(bound, columns, mode, gamma_plan, beta, tried)
    return method.infer(gate.release(method, data, privacy, ledger=ledger, noise=noise, n=n))
