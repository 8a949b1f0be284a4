"""Estimates from protected records: the fit of a formula with a sandwich covariance, as a table that states what had no protection.

Shares of the levels of a column that went through randomized response: corrected counts, with intervals that are valid at any size.

The mean of a function of one protected column: E h(X), from rows whose noise is Laplace, with its interval.

The column's bounds are public, so that h counts on them alone and may be continued outside as helps most:

- SL: h(x1) - lam^2/2 h''(x1), with h continued by straight lines, which leave no atom in h''. For h with a second derivative.
- RB: h(x1)/zeta + (1 - 1/zeta) (G h)(x1), with h continued by its values at the bounds and G the mean under the second noise. For any
  h.
- optimal: the weight k of least variance where X is even on its bounds, among all that are unbiased whatever X is. With K the
  probabilities of cells of X1 given cells of X and p1 those of X1, k = K'm / p1, (K diag(1/p1) K') m = h.

One column of symmetric Laplace noise is Laplace noise of the same standard deviation, whatever the other columns carry. Source: Lu,
Chen, Qiu 2026, sections 4 and 7.1 (SL, DR). RB, the continuations and the optimal weight are derived here: errata, the section on
protected records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from scipy.stats import beta

from confide._arrays import Array
from confide.errors import PlanError, ReleaseError
from confide.local.files import read_protected
from confide.local.fits.fitting import FIRM, SMOOTHING, Fitted, Model, beyond, fitted, own_intercept
from confide.local.fits.losses import METHODS, Check, Huber, Loss, loss_named
from confide.local.noise_levels import Noised, ProtectedColumn, Protection
from confide.local.parameter_bounds import Bounds, checked_bounds, of_intercept, on_edge, scaled_bounds
from confide.results.estimates import Estimates
from confide.results.pages.content import Column, check_alpha

#: Records beyond the coefficients from which on normal intervals are given.
FEW = 20
# Smoothings of a kinked loss where no row is without noise, in residual standard deviations; the first that holds counts.
_WIDER = (1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ProtectedEstimates(Estimates):
    """Coefficients from protected rows, with standard errors and intervals.

    Parameters
    ----------
    h : float, default 0.0
        Smoothing of a loss with a kink, in units of the response. Zero for
        other losses.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5), "y": cf.Numeric(-1, 3)})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(
    ...     schema.sample(2_000, seed=1), schema, place, columns=["x"], public=["y"], noise=0.1, ledger=None)
    >>> cf.local.fit(place, "y ~ x").params.index.tolist()
    ['Intercept', 'x']
    """

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
    bounds: Bounds | None = None,
    seed: int = 0,
) -> ProtectedEstimates:
    """Fit a formula to a table of protected rows.

    Estimates the coefficients that minimize the mean loss over the population,
    of columns clipped to their bounds. The loss is corrected, so that its mean
    under the noise is that of the true rows.

    Parameters
    ----------
    data : str, Path or DataFrame
        File that `confide local protect` wrote, or a frame read from one.
    formula : str
        R-style formula, such as ``"y ~ x"``.
    loss : str or Loss, default "squared"
        "squared", "logistic", "poisson", "quantile" (with `tau`), "absolute",
        "huber" (with `k`), "hinge", or a `Loss`.
    method : {"auto", "naive", "DR", "SDR", "SL", "RB"}, default "auto"
        Correction of the loss (`confide.local.fits.losses`). "auto" is "RB"
        where some rows went without noise, otherwise "SL".
    tau : float, optional
        Quantile of the loss "quantile".
    k : float, optional
        Corner of the loss "huber", in units of the response.
    bounds : (float, float) or mapping of str to (float, float), optional
        Public bounds of the coefficients, in units of the data: one pair for
        all, or a pair by name. The rest lies within 10 of zero in units of the
        declared bounds.
    seed : int, default 0
        Seed of the starting values, and of the draw that DR and SL add where
        zeta is above 0. Nothing secret rests on it.

    Returns
    -------
    ProtectedEstimates
        Coefficients with normal intervals that account for sampling and for the
        noise of the protection. The status is "imprecise" where the curvature
        is not clearly above zero. It is "not_identified" where the corrected
        loss has no interior minimum, or has it on the edge of `bounds`. It is
        "partial" where the intercept of a quantile regression is unknown.

    Raises
    ------
    PlanError
        The formula or a parameter is invalid.
    ReleaseError
        The table does not state how it was protected, or was changed since.

    See Also
    --------
    mean : Mean of a function of one column.
    shares : Shares of the levels of a column.

    References
    ----------
    Lu, Chen, Qiu 2026, Theorems 5.3 and 6.1, with the corrections of the
    errata.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5), "y": cf.Numeric(-1, 3)})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(
    ...     schema.sample(2_000, seed=1), schema, place, columns=["x"], public=["y"], noise=0.1, ledger=None)
    >>> cf.local.fit(place, "y ~ x").status
    'valid'
    """
    frame, told, digest = read_protected(data)
    chosen, within = loss_named(loss, tau, k), checked_bounds(bounds)
    how = _method(method, told)
    model = Model.of(frame, told, formula, chosen, centred=not of_intercept(within))
    ends = scaled_bounds(within, model)
    done = _firmest(chosen, how, model, seed, ends)
    return _table(model, told, digest, chosen, how, done, formula, on_edge(done, ends, model))


def _method(method: str, told: Protection) -> str:
    if method == "auto":
        return "RB" if told.zeta > 0 else "SL"
    if method not in METHODS:
        raise PlanError(f"method must be 'auto' or one of {', '.join(METHODS)}, got {method!r}", "write method='auto'")
    return method


def scaled(loss: Loss, model: Model) -> Loss:
    """A loss whose corner is in units of the response, in those of the fit."""
    if isinstance(loss, Huber):
        return Huber(loss.k / model.width)
    return loss


def _firmest(loss: Loss, method: str, model: Model, seed: int, ends: tuple[Array, Array] | None) -> Fitted:
    """The fit; where no row is without noise, a kinked loss at the least smoothing whose curvature is firm."""
    own = scaled(loss, model)
    first = fitted(own, method, model.rows, seed=seed, bounds=ends)
    if not loss.kinked or model.rows.zeta > 0 or method == "naive":
        return first
    unit = first.h / SMOOTHING
    done = first
    for wider in _WIDER:
        if done.identified and done.firm >= FIRM:
            break
        done = fitted(own, method, model.rows, seed=seed, h=wider * SMOOTHING * unit, bounds=ends)
    return done


def _table(
    model: Model, told: Protection, digest: str, loss: Loss, method: str, done: Fitted, formula: str, edge: str
) -> ProtectedEstimates:
    p = len(model.names)
    status, reason = ("not_identified", edge) if edge else _status(done, loss, method)
    estimates, covariance = np.full(p, nan), np.full((p, p), nan)
    if status != "not_identified":
        estimates, covariance = model.in_units(done.theta, done.covariance)
    if status == "valid" and isinstance(loss, Check) and model.intercept is not None:
        status, reason, estimates, covariance = own_intercept(model, loss, method, done, estimates, covariance)
    if status not in ("valid", "partial"):
        covariance = np.full((p, p), nan)
    noise = np.where(np.isnan(np.diag(covariance)), nan, 0.0)
    agree = (("Starts that agree", f"{done.starts[0]} of {done.starts[1]}"),) if done.starts[1] > 1 else ()
    bases = "; ".join(f"{name}: {level}" for name, level in model.bases)
    based = (("Compared with", bases),) if bases else ()
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
        intervals_for="sampling and the noise of the protection",
        h=done.h * model.width,
        **stated(told, digest, len(model.rows), more=(*based, *agree)),
    )


def _status(done: Fitted, loss: Loss, method: str) -> tuple[str, str]:
    if method == "naive":
        return (
            "imprecise",
            "method='naive' takes noise for data, and no interval of it covers the population; write method='auto'",
        )
    if not done.identified:
        return "not_identified", (
            "the corrected loss has no interior minimum on these records; more records, less noise or fewer protected terms would give one"
        )
    if done.corrected.noise(done.theta)[0] >= loss.widest:
        return (
            "imprecise",
            "the noise of the index is so wide that the corrected score of this loss has no variance; protect with less noise",
        )
    if isinstance(loss, Check) and (why := beyond(done, method)):
        return "imprecise", why
    spare = len(done.corrected.rows) - len(done.theta)
    if spare < FEW:
        return "imprecise", (
            f"the table has {len(done.corrected.rows):,} records for {len(done.theta)} coefficients, and normal intervals need {FEW} more"
        )
    if done.firm < FIRM:
        return "imprecise", (
            f"the curvature of the corrected loss is {done.firm:.1f} of its standard errors above zero, less than {FIRM:g}, so that no "
            "normal interval is valid; more records or less noise would do"
        )
    return "valid", ""


def _smoothed(loss: Loss, h: float) -> str:
    """What is fitted instead of a loss with a corner. A quantile regression has slopes alone; its intercept has a separate correction."""
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
    """What every result of protected records says of them, as keywords. statement: the guarantee; that of one attribute by default."""
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
    """What every result from protected records states: both levels side by side, and the columns without protection."""
    attribute, record = told.guarantee("attribute"), told.guarantee("record")
    bare = ", ".join(told.public) or "none"
    return (
        ("One attribute replaced", f"{attribute.curve}; detection at 5% false alarms {_detected(attribute)}"),
        ("A whole record replaced", f"{record.curve}; detection at 5% false alarms {_detected(record)}"),
        ("No protection at all", bare),
        *((("Rows without noise", f"each with probability {told.zeta:g}"),) if told.zeta else ()),
        ("n", f"{rows:,}"),
    )


def _detected(statement: Any) -> str:
    return f"{1 - float(statement.curve.f(0.05)):.0%}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ProtectedShares(ProtectedEstimates):
    """Shares of the levels of a protected column, with exact intervals.

    A level of share p is told with probability q = keep p + (1 - keep) / k for
    k levels. The estimate is (told / n - (1 - keep) / k) / keep, which is
    unbiased and so may lie below 0. The interval is that of Clopper and Pearson
    for q, transformed and clipped to (0, 1).

    Parameters
    ----------
    told : tuple of int, default ()
        How often each level was told.
    keep : float, default 1.0
        Probability of a true answer.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"], on_missing="f")})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(schema.sample(2_000, seed=1), schema, place, levels={"sex": 1.0}, ledger=None)
    >>> cf.local.shares(place, "sex").conf_int().shape
    (2, 2)
    """

    told: tuple[int, ...] = ()
    keep: float = 1.0

    family = "shares of protected records"
    rows_are = "level"

    @property
    def title(self) -> str:
        return f"Shares of protected records: {self.response}"

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Confidence intervals, for each share separately.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        DataFrame
            Columns 0 (low) and 1 (high).
        """
        half = check_alpha(alpha) / 2
        seen, n = np.array(self.told, dtype=np.float64), sum(self.told)
        low = np.where(seen > 0, beta.ppf(half, seen, n - seen + 1), 0.0)
        high = np.where(seen < n, beta.ppf(1 - half, seen + 1, n - seen), 1.0)
        other = (1 - self.keep) / len(self.told)
        ends = np.clip((np.stack([low, high], axis=1) - other) / self.keep, 0, 1)
        return pd.DataFrame(ends, index=list(self.names))

    def columns(self, alpha: float) -> tuple[Column, ...]:
        # whether a share is zero is no question that a normal test answers
        return tuple(one for one in super().columns(alpha) if one.name not in ("t", "p"))


def shares(data: Any, column: str) -> ProtectedShares:
    """Estimate the shares of the levels of a protected column.

    Estimates the population's shares of the levels of a column that was
    protected by randomized response. They add up to 1.

    Parameters
    ----------
    data : str, Path or DataFrame
        File that `confide local protect` wrote, or a frame read from one.
    column : str
        Name of the column.

    Returns
    -------
    ProtectedShares
        Shares with intervals for each share separately. They are valid at every
        size and for the rarest level, without a normal approximation.

    Raises
    ------
    PlanError
        The column was not protected by randomized response.
    ReleaseError
        The table does not state how it was protected, or was changed since.

    References
    ----------
    Warner 1965; Clopper, Pearson 1934.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"], on_missing="f")})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(schema.sample(2_000, seed=1), schema, place, levels={"sex": 1.0}, ledger=None)
    >>> found = cf.local.shares(place, "sex")
    >>> round(float(found.params.sum()), 9), found.status
    (1.0, 'valid')
    """
    frame, told, digest = read_protected(data)
    if column not in told.levels:
        known = ", ".join(told.levels) or "no such column"
        raise PlanError(f"{column!r} did not go through randomized response; the table has: {known}")
    one: ProtectedColumn = told.levels[column]
    counts = frame[column].value_counts()
    seen = np.array([int(counts.get(level, 0)) for level in one.levels])
    n, keep = int(seen.sum()), float(one.keep)
    if n < len(frame):
        raise ReleaseError(
            f"the table has cells of {column!r} that are none of its levels", "ask for it as it was protected"
        )
    q = seen / n if n else np.full(len(seen), nan)
    covariance = (np.diag(q) - np.outer(q, q)) / max(n, 1) / keep**2
    found = (q - (1 - keep) / len(one.levels)) / keep
    alone = np.clip(found, 0.0, 1.0)
    # the level alone changes: that of the other columns stands in the facts
    statement = replace(told, columns={}, levels={column: one}, zeta=0.0).guarantee("attribute")
    return ProtectedShares(
        method="local shares",
        response=column,
        names=one.levels,
        estimates=found,
        covariance=covariance,
        # rows that told the truth would have given the variance of a share
        noise_variance=np.maximum(np.diag(covariance) - alone * (1 - alone) / max(n, 1), 0.0),
        status="valid" if n else "imprecise",
        reason="" if n else "the table has no rows",
        target=f"the population's shares of the levels of {column}",
        intervals_for="sampling and the randomized response, exactly",
        told=tuple(int(count) for count in seen),
        keep=keep,
        **stated(told, digest, n, statement),
    )


Function = Callable[[Array], Array]

#: Cells of the optimal weight on the bounds, and on each side of them.
POINTS, OUTSIDE = 400, 320
# Cells on which the mean under the second noise is added up exactly, of the width; differences for h''.
_CELLS, _STEP = 2**16, 1e-4
# Fewer rows without noise than these, and their 1/zeta is no normal mean.
_FEW = 50
_METHODS = ("auto", "SL", "RB", "optimal")


def mean(
    data: Any, column: str, function: Function | None = None, *, method: str = "auto", name: str = ""
) -> ProtectedEstimates:
    """Estimate the mean of a function of one protected column.

    Estimates the population's mean of the function, of the column clipped to
    its bounds.

    Parameters
    ----------
    data : str, Path or DataFrame
        File that `confide local protect` wrote, or a frame read from one.
    column : str
        Name of the column.
    function : callable, optional
        Function of an array of values within the column's bounds, such as
        ``lambda x: x**2`` or ``lambda x: x > 30``. By default the column
        itself.
    method : {"auto", "RB", "SL", "optimal"}, default "auto"
        How the function is corrected. "RB" needs some rows without noise, "SL"
        a second derivative, and "optimal" has the least variance. "auto" is the
        first of "RB" and "SL" that applies.
    name : str, default ""
        Name of the function in the table.

    Returns
    -------
    ProtectedEstimates
        The mean with an interval that accounts for sampling and noise.

    Raises
    ------
    PlanError
        The function or a parameter is invalid.
    ReleaseError
        The table does not state how it was protected, or was changed since.

    References
    ----------
    Lu, Chen, Qiu 2026, sections 4 and 7.1.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(schema.sample(4_000, seed=1), schema, place, columns=["x"], noise=0.5, ledger=None)
    >>> found = cf.local.mean(place, "x", lambda x: x**2)
    >>> found.status, bool(abs(found.params.iloc[0] - 1 / 3) < 5 * found.bse.iloc[0])
    ('valid', True)
    """
    frame, told, digest = read_protected(data)
    noised = told.column(column)
    if noised is None:
        raise PlanError(f"{column!r} was published as it is, and its mean needs no correction: data[{column!r}].mean()")
    if frame.empty:
        raise PlanError("the table has no records, and nothing has a mean in it", "give one that has some")
    h = (lambda x: x) if function is None else function
    called = name or (column if function is None else f"a function of {column}")
    how = _estimation_method(method, told)
    weights = _weights(how, h, noised, told.zeta, np.asarray(frame[column], dtype=np.float64))
    n = len(weights)
    spread = float(weights.var(ddof=1)) / n if n > 1 else nan
    status, reason = "valid", ""
    if told.zeta and how != "SL" and n * told.zeta < _FEW:
        status, reason = (
            "imprecise",
            (
                f"about {n * told.zeta:.0f} rows went without noise, and their weights of 1/zeta have no normal mean below {_FEW}; more "
                "records would do"
            ),
        )
    elif n <= FEW:
        status, reason = "imprecise", f"the table has {n:,} records, and a normal interval needs more than {FEW}"
    variance = spread if status == "valid" else nan
    return ProtectedEstimates(
        method=f"local mean {how}",
        response=column,
        heading=f"mean of {called}",
        names=(f"mean({called})",),
        estimates=np.array([weights.mean()]),
        covariance=np.array([[variance]]),
        noise_variance=np.array([nan if variance != variance else 0.0]),
        status=status,
        reason=reason,
        target=f"the population's mean of {called}, {column} clipped to its public bounds",
        intervals_for="sampling and the noise of the protection",
        **stated(told, digest, n),
    )


def _estimation_method(method: str, told: Protection) -> str:
    if method not in _METHODS:
        raise PlanError(f"method must be one of {', '.join(_METHODS)}, got {method!r}", "write method='auto'")
    if method == "RB" and not told.zeta:
        raise PlanError(
            "RB weighs rows by 1 / zeta, and these records were protected with zeta = 0", "write method='SL'"
        )
    if method == "auto":
        return "RB" if told.zeta else "SL"
    return method


def _weights(how: str, function: Function, noised: Noised, zeta: float, x: Array) -> Array:
    """The weight of each row, whose mean is the estimate. On (0, 1): the column in units of its width."""
    width = noised.high - noised.low

    def h(u: Array) -> Array:
        found = np.asarray(function(noised.low + width * u), dtype=np.float64)
        if found.shape != u.shape or not np.isfinite(found).all():
            raise PlanError(
                "function takes an array of the column's values to one finite number for each", "write lambda x: x**2"
            )
        return found

    u, lam = (x - noised.low) / width, noised.sd / width
    if how == "SL":
        # a further draw makes rows with and without noise alike
        again = np.random.default_rng(0)
        more = sqrt(zeta) * lam * again.laplace(scale=sqrt(0.5), size=len(u)) if zeta else 0.0
        return _bent(h, lam, u + more)
    if how == "RB":
        return h(np.clip(u, 0, 1)) / zeta + (1 - 1 / zeta) * _smoothed_function(h, lam * sqrt(zeta / 2), u)
    edges, kernel, _ = optimal_weights(h, lam, zeta)
    return np.asarray(kernel[np.clip(np.searchsorted(edges, u, side="right") - 1, 0, len(kernel) - 1)])


def _bent(h: Function, lam: float, u: Array) -> Array:
    """h - lam^2/2 h'', continued by straight lines. A corner shows where a finer difference does not come closer to a limit."""
    ends = h(np.array([0.0, _STEP, 1 - _STEP, 1.0]))
    slopes = (ends[1] - ends[0]) / _STEP, (ends[3] - ends[2]) / _STEP
    grid = np.linspace(2 * _STEP, 1 - 2 * _STEP, 20_001)
    coarse, fine = (np.abs(_second(h, grid, step)).max() for step in (_STEP, _STEP / 4))
    if fine > 2 * coarse + 1e-3 * (1 + np.abs(h(grid)).max()):
        raise PlanError(
            "the function has a corner or a jump, which noise on every row hides",
            "write method='optimal' for its least variance, or protect with zeta, which leaves some rows without noise",
        )
    inside = np.clip(u, _STEP, 1 - _STEP)
    value = h(np.clip(u, 0, 1)) + slopes[0] * np.minimum(u, 0) + slopes[1] * np.maximum(u - 1, 0)
    return np.asarray(value - lam**2 / 2 * np.where((u > 0) & (u < 1), _second(h, inside, _STEP), 0.0))


def _second(h: Function, u: Array, step: float) -> Array:
    return np.asarray((h(u + step) - 2 * h(u) + h(u - step)) / step**2)


def _smoothed_function(h: Function, s: float, u: Array) -> Array:
    """The mean of h(clip(u + L)), L Laplace of scale s: h constant on fine cells, added up exactly from both sides."""
    r = np.exp(-1 / (_CELLS * s))
    values = h((np.arange(_CELLS) + 0.5) / _CELLS)
    first, last = (float(end) for end in h(np.array([0.0, 1.0])))
    from_left = lfilter([0, 1], [1, -r], np.append(values * (1 - r) / 2, 0.0), zi=[first / 2])[0]
    from_right = lfilter([0, 1], [1, -r], np.append(values[::-1] * (1 - r) / 2, 0.0), zi=[last / 2])[0][::-1]
    inner = np.interp(u, np.arange(_CELLS + 1) / _CELLS, from_left + from_right)
    below, above = np.exp(np.minimum(u, 0) / s), np.exp(np.minimum(1 - u, 0) / s)
    low = first * (1 - below / 2) + from_right[0] * below
    high = last * (1 - above / 2) + from_left[-1] * above
    return np.asarray(np.where(u < 0, low, np.where(u > 1, high, inner)))


def optimal_weights(h: Function, lam: float, zeta: float) -> tuple[Array, Array, float]:
    """(edges of cells, weight of each cell, its mean square where X is even on (0, 1)), of the module's `optimal`.

    h: a function on (0, 1); lam: the SD of the noise in units of the width. X counts as the middle of one of 400 cells.
    """
    edges, chance, first = _cells(lam, zeta)
    middle = (np.arange(POINTS) + 0.5) / POINTS
    kernel = chance.T @ np.linalg.solve((chance / first) @ chance.T, h(middle)) / first
    return edges, kernel, float(first @ kernel**2)


@lru_cache(maxsize=8)
def _cells(lam: float, zeta: float) -> tuple[Array, Array, Array]:
    """(edges, probabilities of cells of X1 given cells of X, those of X1 where X is even)."""
    scale = lam / sqrt(2)
    inner = np.linspace(0, 1, POINTS + 1)
    outer = np.geomspace(1 / POINTS, 25 * scale, OUTSIDE)
    edges = np.concatenate([-outer[::-1], inner, 1 + outer])
    middle = (inner[1:] + inner[:-1]) / 2
    away = (edges[None, :] - middle[:, None]) / scale
    tail = np.exp(-np.abs(away)) / 2
    reached = np.where(away < 0, tail, 1 - tail)
    reached[:, 0], reached[:, -1] = 0, 1
    chance = (1 - zeta) * np.diff(reached, axis=1)
    chance[np.arange(POINTS), OUTSIDE + np.arange(POINTS)] += zeta
    return edges, chance, chance.mean(axis=0)
