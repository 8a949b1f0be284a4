"""`cf.ptr.safe_release`: an estimator behind a safety bound in one call, and what a report on the bound must say for it."""

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
        said = getattr(report, "verdict", "nothing")
        if said != "holds":
            raise PlanError(
                f"the report on the bound says {said!r}: a bound that is broken, or was never tried on "
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
    return method.infer(engine.release(method, data, privacy, ledger=ledger, noise=noise, n=n))
