"""The intercept of a quantile line, which smoothing moves: solved on its own from the distribution of residuals."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np

from confide._arrays import Array
from confide.local.fits.fitting import Fitted, residual_sd
from confide.local.fits.losses import Check
from confide.local.fits.terms import Model

__all__ = ["RECORDS", "beyond", "own_intercept"]


_POINTS, _REACH, _STEP = 401, 2.5, 0.15

_UNKNOWN = "the intercept of a quantile line needs rows that went without noise, or errors known to be symmetric; slopes are answered"


# Where intervals of quantile lines were counted (docs/local.md), and held: from so many records, up to so much noise of a term.
RECORDS, _NOISE = 5_000, 2.0


def beyond(done: Fitted, method: str) -> str:
    """Why no interval of a quantile line is promised here, empty where one is: fewer records, or a term with more noise than errors."""
    rows = done.corrected.rows
    if len(rows) < RECORDS:
        return f"intervals of quantile lines hold from {RECORDS:,} records on, and the table has {len(rows):,}"
    spread = residual_sd(rows, done.theta, method)
    if (np.abs(rows.lam * done.theta) > _NOISE * spread).any():
        return (
            f"noise moves one term's part of the line by more than {_NOISE:g} residual standard deviations, where intervals of quantile "
            "lines do not hold; protect with less noise"
        )
    return ""


def own_intercept(
    model: Model, loss: Check, method: str, done: Fitted, estimates: Array, covariance: Array
) -> tuple[str, str, Array, Array]:
    """(status, reason, estimates, covariance) with the intercept of the response itself, not of the smoothed one.

    a0 solves mean F_i(a) = tau, F_i(a) = 1{r_i <= a} / zeta + (1 - 1 / zeta) Lap((a - r_i) / s): the corrected indicator, whose mean is
    the distribution function of the true residuals; on 401 points, sorted first, since a corrected mean need not be monotone. Its
    variance joins its score to those of the slopes. Without rows that kept their value no such correction exists, and the intercept is
    not answered.
    """
    at, zeta = model.intercept, model.rows.zeta
    assert at is not None
    if zeta == 0 or method != "RB":
        return ("partial", _UNKNOWN, *_without(estimates, covariance, at))
    theta, rows = done.theta, model.rows
    slopes = np.where(np.arange(len(theta)) == at, 0.0, theta)
    q = done.corrected.noise(theta)[0]
    scale = sqrt(max(zeta * q / 2, 1e-12))
    spread = residual_sd(rows, theta, method)

    def scores(a: float, b: Array) -> Array:
        away = a - (rows.y - rows.x @ b)
        return np.where(away >= 0, 1.0, 0.0) / zeta + (1 - 1 / zeta) * _laplace(away / scale) - loss.tau

    grid = theta[at] + np.linspace(-_REACH, _REACH, _POINTS) * spread
    values = np.sort([rows.mean(scores(a, slopes)) for a in grid])
    if not values[0] < 0 < values[-1]:
        return ("partial", _UNKNOWN, *_without(estimates, covariance, at))
    a0 = float(np.interp(0.0, values, grid))
    step = _STEP * spread
    last = np.zeros(len(theta) + 1)
    for k in range(len(theta)):
        if k != at:
            move = np.zeros(len(theta))
            move[k] = step
            last[k] = rows.mean(scores(a0, slopes + move) - scores(a0, slopes - move)) / (2 * step)
    last[-1] = rows.mean(scores(a0 + step, slopes) - scores(a0 - step, slopes)) / (2 * step)
    if last[-1] <= 0:
        return ("partial", _UNKNOWN, *_without(estimates, covariance, at))
    curvature = np.zeros((len(theta) + 1, len(theta) + 1))
    curvature[:-1, :-1], curvature[-1] = done.curvature, last
    stacked = np.column_stack([done.scores, rows.by_record(scores(a0, slopes))])
    whole = done.sandwich(curvature, stacked)
    # the smoothed intercept leaves, the own one takes its place
    keep = np.array([k if k != at else len(theta) for k in range(len(theta))])
    own = theta.copy()
    own[at] = a0
    moved, spread_of = model.in_units(own, whole[np.ix_(keep, keep)])
    return "ok", "", moved, spread_of


def _laplace(x: Array) -> Array:
    """The distribution function of a standard Laplace."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _without(estimates: Array, covariance: Array, at: int) -> tuple[Array, Array]:
    estimates, covariance = estimates.copy(), covariance.copy()
    estimates[at] = nan
    covariance[at, :] = covariance[:, at] = nan
    return estimates, covariance
