"""Estimates from protected records: the fit of a formula with a sandwich covariance, as a table that says what had no protection."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from confide.errors import PlanError
from confide.local.fits.corrected import METHODS
from confide.local.fits.fitting import FIRM, SMOOTHING, Fitted, fitted
from confide.local.fits.losses import Check, Huber, Loss, loss_named
from confide.local.fits.quantile import beyond, own_intercept
from confide.local.fits.terms import Model
from confide.local.protection import Protection
from confide.local.table import read_protected
from confide.results.base import Column
from confide.results.estimates import Estimates

__all__ = ["FEW", "ProtectedEstimates", "fit", "scaled", "stated"]


#: Records beyond the coefficients from which on normal intervals are given.
FEW = 20
# Smoothings of a kinked loss where no row is without noise, in residual standard deviations; the first that holds counts.
_WIDER = (1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ProtectedEstimates(Estimates):
    """Coefficients from a protected table. h: smoothing of a loss with a kink, in units of the response; zero for others."""

    h: float = 0.0

    family = "fit of protected records"

    @property
    def title(self) -> str:
        what = f"Fit of protected records: {self.response}"
        return f"{what}: {self.heading}" if self.heading else what

    def columns(self, alpha: float) -> tuple[Column, ...]:
        # the part of a variance that is noise of the protection is not known apart from sampling
        return tuple(one for one in super().columns(alpha) if one.name != "privacy_share")


def fit(
    data: Any,
    formula: str,
    *,
    loss: str | Loss = "squared",
    method: str = "auto",
    tau: float | None = None,
    k: float | None = None,
    seed: int = 0,
) -> ProtectedEstimates:
    """Coefficients of a formula from a protected table, with a loss whose mean under the noise is that of the true rows.

    data: a file that `confide protect` wrote, or a frame read from one. loss: "squared", "logistic", "poisson", "quantile" (with tau),
    "absolute", "huber" (with k in units of the response), "hinge", or a `Loss`. method: "auto" is "RB" where some rows went without noise,
    else "SL"; or one of "naive", "DR", "SDR", "SL", "RB" (`confide.local.fits.corrected`). seed: of starts, and of the draw that DR and SL
    add where zeta > 0; nothing secret rests on it.

    Intervals cover the coefficients of the protected table's own population, of columns clipped to their bounds: sampling and the noise
    of the protection, under 1 - alpha normal quantiles. Status "weak": the curvature is not firmly above zero, so that Wald's interval
    is none; "not_identified": the corrected loss has no interior minimum; "partial": the intercept of a quantile line is not known.
    Raises `PlanError` and `ReleaseError` about the request and the file.
    Source: Lu, Chen, Qiu 2026, Theorems 5.3 and 6.1, with the corrections of the errata.
    """
    frame, told, digest = read_protected(data)
    chosen = loss_named(loss, tau, k)
    how = _method(method, told)
    model = Model.of(frame, told, formula, chosen)
    done = _firmest(chosen, how, model, seed)
    return _table(model, told, digest, chosen, how, done, formula)


def _method(method: str, told: Protection) -> str:
    if method == "auto":
        return "RB" if told.zeta > 0 else "SL"
    if method not in METHODS:
        raise PlanError(f"method must be 'auto' or one of {', '.join(METHODS)}, got {method!r}; write method='auto'")
    return method


def scaled(loss: Loss, model: Model) -> Loss:
    """A loss whose corner is in units of the response, in those of the fit."""
    if isinstance(loss, Huber):
        return Huber(loss.k / model.width)
    return loss


def _firmest(loss: Loss, method: str, model: Model, seed: int) -> Fitted:
    """The fit; where no row is without noise, a kinked loss at the least smoothing whose curvature is firm."""
    own = scaled(loss, model)
    first = fitted(own, method, model.rows, seed=seed)
    if not loss.kinked or model.rows.zeta > 0 or method == "naive":
        return first
    unit = first.h / SMOOTHING
    done = first
    for wider in _WIDER:
        if done.identified and done.firm >= FIRM:
            break
        done = fitted(own, method, model.rows, seed=seed, h=wider * SMOOTHING * unit)
    return done


def _table(
    model: Model, told: Protection, digest: str, loss: Loss, method: str, done: Fitted, formula: str
) -> ProtectedEstimates:
    p = len(model.names)
    status, reason = _status(done, loss, method)
    estimates, covariance = np.full(p, nan), np.full((p, p), nan)
    if status != "not_identified":
        estimates, covariance = model.in_units(done.theta, done.covariance)
    if status == "ok" and isinstance(loss, Check) and model.intercept is not None:
        status, reason, estimates, covariance = own_intercept(model, loss, method, done, estimates, covariance)
    if status not in ("ok", "partial"):
        covariance = np.full((p, p), nan)
    noise = np.where(np.isnan(np.diag(covariance)), nan, 0.0)
    agree = (("Starts that agree", f"{done.starts[0]} of {done.starts[1]}"),) if done.starts[1] > 1 else ()
    based = tuple((f"Base of {name}", level) for name, level in model.bases)
    return ProtectedEstimates(
        method=f"local {loss.name} {method}",
        response=model.response,
        heading=f"{loss.target[0].lower()}{loss.target[1:]} of the population{_smoothed(loss, done.h * model.width)}",
        names=model.names,
        estimates=estimates,
        covariance=covariance,
        noise_variance=noise,
        status=status,
        reason=reason,
        target=_target(loss, done.h * model.width, formula),
        covers="sampling and the noise of the protection",
        h=done.h * model.width,
        **stated(told, digest, len(model.rows), more=(*based, *agree)),
    )


def _status(done: Fitted, loss: Loss, method: str) -> tuple[str, str]:
    if method == "naive":
        return (
            "weak",
            "method='naive' takes noise for data, and no interval of it covers the population; write method='auto'",
        )
    if not done.identified:
        return "not_identified", (
            "the corrected loss has no interior minimum on these records; more records, less noise or fewer protected terms would give one"
        )
    if done.corrected.noise(done.theta)[0] >= loss.widest:
        return (
            "weak",
            "the noise of the index is so wide that the corrected score of this loss has no variance; protect with less noise",
        )
    if isinstance(loss, Check) and (why := beyond(done, method)):
        return "weak", why
    spare = len(done.corrected.rows) - len(done.theta)
    if spare < FEW:
        return "weak", (
            f"the table has {len(done.corrected.rows):,} records for {len(done.theta)} coefficients, and normal intervals need {FEW} more"
        )
    if done.firm < FIRM:
        return "weak", (
            f"the curvature of the corrected loss is {done.firm:.1f} of its standard errors above zero, less than {FIRM:g}, so that no "
            "normal interval holds; more records or less noise would do"
        )
    return "ok", ""


def _smoothed(loss: Loss, h: float) -> str:
    """What is fitted in place of a loss with a corner; of a quantile line the slopes alone, whose intercept has a correction of its own."""
    whose = "slopes those" if isinstance(loss, Check) else "that"
    return "" if h == 0 else f", {whose} of the response under normal noise of standard deviation {h:.3g}"


def _target(loss: Loss, h: float, formula: str) -> str:
    slopes = ""
    if isinstance(loss, Check) and h > 0:
        symmetric = ", or are symmetric given them" if loss.tau == 0.5 else ""
        slopes = f"; these are the slopes themselves where errors do not depend on the terms{symmetric}"
    return f"{loss.target} of {formula}, columns clipped to their public bounds{_smoothed(loss, h)}{slopes}"


def stated(
    told: Protection, digest: str, rows: int, statement: Any = None, more: tuple[tuple[str, str], ...] = ()
) -> dict[str, Any]:
    """What every result of protected records says of them, as keywords. statement: the guarantee, of one attribute when left out."""
    guarantee = told.guarantee("attribute") if statement is None else statement
    return {
        "requested": guarantee,
        "guarantee": guarantee,
        "release_sha256": digest,
        "facts": (*_protection_facts(told, rows), *more),
        "simulated": told.simulated,
        "df": inf,
    }


def _protection_facts(told: Protection, rows: int) -> tuple[tuple[str, str], ...]:
    """What every result from protected records states: both levels side by side, and the columns that had no protection."""
    attribute, record = told.guarantee("attribute"), told.guarantee("record")
    bare = ", ".join(told.public) or "none"
    return (
        ("One attribute replaced", f"{attribute.curve}; detection at 5 % false alarms {_detected(attribute)}"),
        ("A whole record replaced", f"{record.curve}; detection at 5 % false alarms {_detected(record)}"),
        ("No protection at all", bare),
        *((("Rows without noise", f"each with probability {told.zeta:g}"),) if told.zeta else ()),
        ("No. Observations", f"{rows:,}"),
    )


def _detected(statement: Any) -> str:
    return f"{1 - float(statement.curve.f(0.05)):.0%}"
