"""The fit of a corrected loss: its closed form where there is one, else the lowest interior minimum from several starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, log, nan, sqrt

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from confide._arrays import Array
from confide.local.fits.corrected import Corrected, Rows
from confide.local.fits.losses import Loss, Squared

__all__ = ["Fitted", "fitted", "residual_sd", "selected"]

Minimum = tuple[float, Array]  # mean loss and parameters

#: Parameters lie within this of zero, in units of the declared domains: corrected losses may have no minimum at all beyond.
BOX = 10.0
#: The Gaussian smoothing of a loss with a kink, in residual standard deviations: where slopes cover and their error is least.
SMOOTHING = 0.8
_REFITS, _SETTLED = 6, 0.95
_JITTERED, _JITTER = 5, 0.5
# Minima nearer to each other than this, in every parameter, are one.
_SAME = 1e-2
_STEP = 1e-4
_FLOOR = 0.02  # of the mean eigenvalue of a corrected Gram matrix, for a start only
# An eigenvalue of the curvature below this many of its own standard errors may be zero: Wald's interval is then no interval.
FIRM = 4.0
_Z, _LEAST = 1.959963984540054, 2.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit in units of the declared domains.

    theta (p,); curvature (p, p), symmetric; h: smoothing of a kinked loss; step: of the differences that curvature is made of; starts: how
    many of the starts led here, of how many; identified: whether there is an interior minimum.
    """

    theta: Array
    curvature: Array
    corrected: Corrected
    h: float
    step: float
    starts: tuple[int, int]
    identified: bool

    @cached_property
    def scores(self) -> Array:
        """The gradient of each record's corrected loss, shape (n, p)."""
        if not np.isfinite(self.curvature).all():
            return np.full((len(self.corrected.rows), len(self.theta)), nan)
        return self.corrected.scores(self.theta)

    @cached_property
    def bends(self) -> Array:
        """The curvature of each record's corrected loss along the least eigenvector of the mean, shape (n,)."""
        along = np.linalg.eigh(self.curvature)[1][:, 0]
        ends = (self.corrected.scores(self.theta + move * along) for move in (self.step, -self.step))
        return np.asarray(np.subtract(*ends) @ along / (2 * self.step))

    @cached_property
    def firm(self) -> float:
        """The least eigenvalue of the curvature in its own standard errors; minus infinity where there is no curvature."""
        if not np.isfinite(self.curvature).all():
            return -inf
        least = float(np.linalg.eigvalsh(self.curvature)[0])
        return float(least / (self.bends.std(ddof=1) / sqrt(len(self.bends)) + np.finfo(float).tiny))

    @property
    def covariance(self) -> Array:
        """Of the parameters, shape (p, p)."""
        return self.sandwich(self.curvature, self.scores)

    def sandwich(self, curvature: Array, scores: Array) -> Array:
        """Inverse curvature (k, k), covariance of the scores (n, k), inverse curvature, over n; and what an answer from `FIRM` on costs.

        Tables whose noise makes the curvature large are answered more often than others, and scores go with it. Their part that is linear
        in the curvature along its least eigenvector moves the parameters in one direction, in which the sandwich grows by `selected`;
        what is left does not depend on whether there was an answer.
        """
        inverse = np.linalg.inv(curvature)
        rough = inverse @ np.atleast_2d(np.cov(scores, rowvar=False)) @ inverse.T / len(scores)
        if self.firm >= FIRM:
            away = self.bends - self.bends.mean()
            size = sqrt(float(away @ away) * (len(away) - 1) * len(away)) + np.finfo(float).tiny
            moved = inverse @ (scores.T @ away) / size
            rough += (selected(self.firm) ** 2 - 1) * np.outer(moved, moved)
        return np.asarray((rough + rough.T) / 2)


def selected(firm: float) -> float:
    """By how much the part of a standard error that is that of the curvature grows, where answers are given from `FIRM` on.

    With f the curvature in its standard errors, normal about f0, an estimate that is off by its curvature alone is f0 / f of the truth, and
    Wald's interval ends at 1 + z / f of the estimate; the other end never fails. Those f0 of which f, given an answer, would be as large as
    was seen with probability .05 at most end at `_least`, and the interval has to reach f / _least of the estimate. So it covers 95 % of
    the tables that are answered at every f0 from 2 on; below, one in 44 is answered. No bounded interval covers at every f0
    (Gleser, Hwang 1987).

    >>> [round(selected(f), 2) for f in (4.0, 5.0, 6.0, 8.0, 40.0)]
    [2.04, 3.83, 1.46, 1.06, 1.0]
    """
    return max(1.0, firm * (firm / _least(firm) - 1) / _Z)


@lru_cache(maxsize=256)
def _least(firm: float) -> float:
    """The f0 at which an f from `FIRM` on is `firm` or more with probability .05, at least 2."""

    def beyond(f0: float) -> float:
        return float(norm.logsf(firm - f0) - norm.logsf(FIRM - f0)) - log(0.05)

    return _LEAST if beyond(_LEAST) >= 0 else float(brentq(beyond, _LEAST, firm))


def fitted(loss: Loss, method: str, rows: Rows, *, seed: int = 0, h: float | None = None, box: float = BOX) -> Fitted:
    """Fit `loss` to protected rows by `method` (`corrected.METHODS`).

    The mean corrected loss is not convex, and for some samples has no minimum: its bend is weighed negatively. So it is minimised within
    a box from the naive fit, from the corrected least-squares fit and from points around them, and the lowest minimum counts that is
    interior and has a positive definite curvature. Where there is none, `identified` is False and theta NaN.
    h: smoothing of a kinked loss in units of the response; left out, .8 residual standard deviations (`_smoothing`).
    """
    again = rows.noised_again(np.random.default_rng(seed))
    problem = Corrected(loss, method, rows, again)  # refuses what has no correction, before anything is computed
    line = closed_form(method, rows, again)
    if loss.kinked:
        if h is None:
            # a loss whose slope does not jump is smooth enough for what asks no second derivative of it
            bare = not loss.cornered and method not in ("SL", "SDR")
            h = 0.0 if bare else _smoothing(loss, method, rows, again, line, box)
        problem = replace(problem, loss=loss.at(h))
    if isinstance(loss, Squared):
        return _described(problem, line, (1, 1), h or 0.0, box)
    starts = _starts(problem, line, rows, again, np.random.default_rng(seed + 1), box)
    found = _minima(problem, starts, box)
    if not found:
        return _described(problem, np.full(rows.x.shape[1], nan), (0, len(starts)), h or 0.0, box)
    best, led = min(found, key=lambda one: one[0][0])
    return _described(problem, best[1], (led, len(starts)), h or 0.0, box)


def closed_form(method: str, rows: Rows, again: Rows) -> Array:
    """The least-squares fit of each correction, shape (p,): linear in corrected moments."""
    gram, cross = _moments(method, rows, again)
    try:
        return np.asarray(np.linalg.solve(gram, cross))
    except np.linalg.LinAlgError:
        return np.full(len(cross), nan)


def residual_sd(rows: Rows, line: Array, method: str) -> float:
    """The standard deviation of the true residuals about a line, what noise adds taken away, at least .22 of that of what is seen."""
    rows = rows.as_told() if method == "naive" else rows
    squares = np.square(rows.y - rows.x @ line)
    seen = rows.mean(squares)
    added = float(np.square(rows.lam) @ np.square(line)) + rows.lam_y**2
    share = 0.0 if method == "naive" else 1 - rows.zeta
    return sqrt(max(seen - share * added, 0.05 * float(squares.mean())))


def _smoothing(loss: Loss, method: str, rows: Rows, again: Rows, line: Array, box: float) -> float:
    """.8 residual standard deviations, about the corrected line, or about fits that start from the naive one where those are less.

    The mean squared residual about any fixed line is at least that about the population's. Where much noise leaves the corrected Gram
    matrix next to singular, the corrected line is far from all records; the naive one is not, and the fits that follow, each smoothed by
    the one before, come nearer.
    """
    at = closed_form("naive", rows, rows)
    own = SMOOTHING * residual_sd(rows, line, method) if np.isfinite(line).all() else inf
    h = SMOOTHING * residual_sd(rows, at, method)
    if not h < own:
        return own
    for _ in range(_REFITS):
        found = _minimum(Corrected(loss.at(h), method, rows, again), at, box)
        if found is None:
            break
        nearer, at = SMOOTHING * residual_sd(rows, found[1], method), found[1]
        if nearer > _SETTLED * h:
            break
        h = nearer
    return h


def _moments(method: str, rows: Rows, again: Rows) -> tuple[Array, Array]:
    def of(one: Rows) -> tuple[Array, Array]:
        weighed = one.weighed(one.x)
        return weighed.T @ one.x / len(one), weighed.T @ one.y / len(one)

    noise, zeta = np.diag(np.square(rows.lam)), rows.zeta
    gram, cross = of({"SL": again, "naive": rows.as_told()}.get(method, rows))
    if method == "DR":
        second, cross_again = of(again)
        return gram / zeta + (1 - 1 / zeta) * second, cross / zeta + (1 - 1 / zeta) * cross_again
    share = {"naive": 0.0, "SL": 1.0}.get(method, 1 - zeta)
    return gram - share * noise, cross


def _floored(method: str, rows: Rows, again: Rows) -> Array:
    """The least-squares start: its Gram matrix with small eigenvalues raised.

    What noise adds to the trace may take all of it away; the floor is then a share of the trace of what is seen.
    """
    gram, cross = _moments(method, rows, again)
    seen = _moments("naive", rows, again)[0]
    values, vectors = np.linalg.eigh(gram)
    whole = max(float(np.trace(gram)), _FLOOR * float(np.trace(seen)), np.finfo(float).tiny)
    floor = _FLOOR * whole / len(gram)
    return np.asarray(vectors @ ((vectors.T @ cross) / np.maximum(values, floor)))


def _starts(
    problem: Corrected, line: Array, rows: Rows, again: Rows, generator: np.random.Generator, box: float
) -> list[Array]:
    """The naive fit, the corrected least-squares fit, and what five points around lead to.

    RB is the dearest of the corrections and SDR estimates the same: the points around are led to their minima by SDR first, and equal
    minima count once.
    """
    p = rows.x.shape[1]
    if problem.method == "naive" and problem.loss.convex and np.isfinite(line).all():
        return [np.clip(line, -box, box)]  # the only minimum
    naive = _minimum(replace(problem, method="naive"), np.zeros(p), box)
    seeds = [] if naive is None else [naive[1]]
    seeds += [_floored(problem.method, rows, again)] + ([line] if np.isfinite(line).all() else [])
    seeds += [seeds[0] + _JITTER * generator.standard_normal(p) for _ in range(_JITTERED)]
    seeds = [np.clip(one, -box, box) for one in seeds]
    if problem.method != "RB":
        return seeds
    apart = [] if problem.loss.flat else [one[1] for one, _ in _minima(replace(problem, method="SDR"), seeds, box)]
    return [*apart, *seeds[: 2 if apart else len(seeds)]]


def _minima(problem: Corrected, starts: Sequence[Array], box: float) -> list[tuple[Minimum, int]]:
    """The interior minima that the starts lead to, each with how many of them do.

    Once a minimum is known, a descent that comes near it ends there: it has nothing more to tell.
    """
    found: list[Minimum] = []
    led: list[int] = []
    for start in starts:
        one = _minimum(problem, start, box, found)
        if one is None:
            continue
        at = next((k for k, known in enumerate(found) if _same(one[1], known[1])), len(found))
        if at == len(found):
            found.append(one)
            led.append(0)
        led[at] += 1
    return list(zip(found, led, strict=True))


def _same(one: Array, other: Array) -> bool:
    return bool(np.abs(one - other).max() < _SAME)


def _minimum(problem: Corrected, start: Array, box: float, known: Sequence[Minimum] = ()) -> Minimum | None:
    """The interior minimum that a start leads to, None where it leads to the edge of the box; one of `known` as soon as it is near."""
    near: list[Minimum] = []

    def look(x: Array) -> None:
        near[:] = [one for one in known if _same(one[1], x)][:1]
        if near:
            raise StopIteration

    with np.errstate(over="ignore", invalid="ignore"):
        found = minimize(
            problem.value,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-box, box)] * len(start),
            callback=look if known else None,
            options={"gtol": 1e-8, "ftol": 1e-13},
        )
    if near:
        return near[0]
    if not np.isfinite(found.fun) or (np.abs(found.x) > box * (1 - 1e-6)).any():
        return None
    return float(found.fun), np.asarray(found.x)


def _described(problem: Corrected, theta: Array, starts: tuple[int, int], h: float, box: float) -> Fitted:
    p = problem.rows.x.shape[1]
    nothing = Fitted(theta, np.full((p, p), nan), problem, h, nan, starts, False)
    if not np.isfinite(theta).all() or (np.abs(theta) >= box).any():
        return nothing
    steps = _steps(problem, theta, h)
    curvature = problem.curvature(theta, steps)
    if not np.isfinite(curvature).all():
        return nothing
    least = float(np.linalg.eigvalsh(curvature)[0])
    return Fitted(theta, curvature, problem, h, float(steps.min()), starts, least > 0)


def _steps(problem: Corrected, theta: Array, h: float) -> Array:
    """Differences of 1e-4; of a tenth of a residual where the loss keeps its corner."""
    if not problem.loss.kinked or h > 0:
        return np.full(len(theta), _STEP)
    spread = residual_sd(problem.rows, theta, problem.method)
    return np.asarray(0.1 * spread / np.sqrt(np.mean(np.square(problem.rows.x), axis=0)))
