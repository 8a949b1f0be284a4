"""`cf.ptr.safe_release`: an estimator behind a safety bound in one call, and the report on the bound that it may need."""

from __future__ import annotations

from typing import Any

from confide import engine
from confide.ask.one_call import LEFT_OUT, checked_ledger
from confide.core import Noise, Source
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.ptr.safe_release import SafeRelease
from confide.methods.ptr.safety import SafetyBound, bound_name, checked_bound
from confide.results import Estimates


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
    """Release an estimate behind a safety bound, by propose-test-release.

    Plans, charges, releases and infers `SafeRelease` in one call. The release
    itself is not kept; use `confide.release` when you need the file.

    Parameters
    ----------
    bound : SafetyBound
        Safety bound of the estimator.
    data : Source
        Records behind a schema, from `confide.read`.
    privacy : GDP or ApproxDP
        Cost of the release, with delta above 0. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    mode : {"gdp", "exact", "adaptive"}, default "gdp"
        "gdp" answers with Gaussian noise, "exact" with the best probabilities for
        one (epsilon, delta). "adaptive" is for a `CertifiedBound`, and releases a
        noisy level.
    gamma_plan : float, optional
        Safety that is planned on, from public facts. Required, except for
        "adaptive".
    beta : float, default 0.001
        Probability of no answer at the safety that is planned on.
    columns : tuple of str, optional
        Columns that the bound gets, in this order. By default all of the schema.
    n : int, optional
        Public number of records, where the bound does not have it.
    report : BoundReport, optional
        What `confide.audit.falsify_safety_bound` found. It must not have broken
        the bound, and the guarantee then states how many pairs were tried.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.

    Returns
    -------
    Estimates
        The estimates, or the status "declined" without estimates.

    Raises
    ------
    PlanError
        The report does not fit the bound, or a parameter is invalid. Nothing was
        charged.
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.

    See Also
    --------
    SafeRelease : The method behind this call, with its guarantee.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> median = cf.ptr.OrderStatistic(500, 0.0, 1.0, alpha=0.05)
    >>> cf.ptr.safe_release(median, data, privacy=cf.ApproxDP(1.0, 1e-6),
    ...                     ledger=None, gamma_plan=40, n=1_000).names
    ('x_(500)',)
    """
    checked_ledger(ledger)
    tried = 0
    if report is not None:
        said = getattr(report, "verdict", "nothing")
        if said != "holds":
            raise PlanError(
                f"the report on the bound says {said!r}: a bound that is broken, or was never tried on "
                "safe data, releases nothing",
                "print(report) shows the neighbors",
            )
        if report.name != bound_name(bound):
            raise PlanError(
                f"the report is on {report.name!r}, the bound is {bound_name(bound)!r}",
                "attack the bound that is released with",
            )
        if mode != "adaptive" and report.bound != float(checked_bound(bound).alpha):
            raise PlanError(
                f"the report is on alpha = {report.bound:g}, the bound has {float(bound.alpha):g}",
                "attack the bound that is released with",
            )
        tried = int(report.tried)
    method = SafeRelease(bound, columns, mode, gamma_plan, beta, tried)
    return method.infer(engine.release(method, data, privacy, ledger=ledger, noise=noise, n=n))
