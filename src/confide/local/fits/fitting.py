"""The fit of a corrected loss: its closed form where there is one, else the lowest interior minimum from several starts.

A formula over a table of protected rows: its terms, their noise, and the units in which a fit is done.

The intercept of a quantile line, which smoothing moves: solved on its own from the distribution of residuals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, log, nan, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError, ReleaseError
from confide.local.fits.losses import Check, Corrected, Loss, Rows, Squared
from confide.local.noise_levels import ProtectedColumn, Protection
from confide.schema.formulas.names import column_named, hidden, restored, sides

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
class Box:
    """Where minima are sought, low and high (p,). closed: whether a point on its edge is an answer, too."""

    low: Array
    high: Array
    closed: bool

    @classmethod
    def of(cls, bounds: tuple[Array, Array] | None, p: int) -> Box:
        """The bounds asked for, closed; without any, `BOX` on either side, whose edge is not an answer."""
        if bounds is None:
            return cls(np.full(p, -BOX), np.full(p, BOX), False)
        low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), p) for side in bounds)
        return cls(low, high, True)

    def clip(self, theta: Array) -> Array:
        """The nearest point of it."""
        return np.clip(theta, self.low, self.high)

    def within(self, theta: Array) -> bool:
        """Whether a point lies inside, off the edge by a millionth of the half width."""
        off = 5e-7 * (self.high - self.low)
        return bool((theta > self.low + off).all() and (theta < self.high - off).all())


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit in units of the declared domains.

    - theta (p,): the parameters; curvature (p, p): symmetric.
    - h: smoothing of a kinked loss; step: of the differences that the curvature is made of.
    - starts: how many of the starts led here, of how many; identified: whether there is an interior minimum.
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

        Tables whose noise makes the curvature large are answered more often than others, and scores go with it. The part of the scores
        that is linear in the curvature along its least eigenvector moves the parameters in one direction. In that direction the
        sandwich grows by `selected`. The rest does not depend on whether there was an answer.
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
    """By how much the curvature's part of a standard error grows, where answers are given from `FIRM` on.

    Let f be the curvature in its standard errors, normal about f0. An estimate that is off by its curvature alone is f0 / f of the
    truth, and Wald's interval ends at 1 + z / f of the estimate. The other end never fails. Consider those f0 for which f, given an
    answer, would be as large as observed with probability at most 0.05. They end at `_least`, and the interval has to reach f / _least
    of the estimate. So it covers 95% of the tables that are answered at every f0 from 2 on; below, one in 44 is answered. No bounded
    interval covers at every f0 (Gleser, Hwang 1987).

    >>> [round(selected(f), 2) for f in (4.0, 5.0, 6.0, 8.0, 40.0)]
    [2.04, 3.83, 1.46, 1.06, 1.0]
    """
    return max(1.0, firm * (firm / _least(firm) - 1) / _Z)


@lru_cache(maxsize=256)
def _least(firm: float) -> float:
    """The f0 at which an f from `FIRM` on is `firm` or more with probability 0.05, at least 2."""

    def beyond(f0: float) -> float:
        return float(norm.logsf(firm - f0) - norm.logsf(FIRM - f0)) - log(0.05)

    return _LEAST if beyond(_LEAST) >= 0 else float(brentq(beyond, _LEAST, firm))


def fitted(
    loss: Loss,
    method: str,
    rows: Rows,
    *,
    seed: int = 0,
    h: float | None = None,
    bounds: tuple[Array, Array] | None = None,
) -> Fitted:
    """Fit `loss` to protected rows by `method` (`losses.METHODS`).

    The mean corrected loss is not convex, and for some samples has no minimum, because its bend is weighed negatively. So it is
    minimized within a box, from the naive fit, from the corrected least-squares fit and from points around them. The lowest minimum
    counts that is interior and has a positive definite curvature. Where there is none, `identified` is False and theta NaN. h:
    smoothing of a kinked loss in units of the response; by default 0.8 residual standard deviations (`_smoothing`).

    bounds: (low, high), each (p,), the compact set that theory asks for. Its edge then belongs to it: where the lowest minimum lies on
    the edge, theta is that point and `identified` False, as no curvature stands for it.
    """
    box = Box.of(bounds, rows.x.shape[1])
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
        found_line = _described(problem, line, (1, 1), h or 0.0, box)
        if found_line.identified or not box.closed:
            return found_line
    starts = _starts(problem, line, rows, again, np.random.default_rng(seed + 1), box)
    found = _minima(problem, starts, box)
    if not found:
        return _described(problem, np.full(rows.x.shape[1], nan), (0, len(starts)), h or 0.0, box)
    best, led = min(found, key=lambda one: one[0][0])
    done = _described(problem, best[1], (led, len(starts)), h or 0.0, box)
    return _settled(done, box) if box.closed and done.identified else done


def _settled(done: Fitted, box: Box) -> Fitted:
    """A minimum of a closed box, led to where its gradient is zero.

    Where terms nearly follow from each other the loss hardly falls along a valley, and a descent may stop in it before it comes to the
    edge. A Newton step is what is missing; where it leads beyond the edge, the minimum is on the edge.
    """
    theta = done.theta - np.linalg.solve(done.curvature, done.corrected.value(done.theta)[1])
    if not np.isfinite(theta).all():
        return done
    if not box.within(theta):
        return _described(done.corrected, box.clip(theta), done.starts, done.h, box)
    if done.corrected.value(theta)[0] > done.corrected.value(done.theta)[0]:
        return done
    moved = _described(done.corrected, theta, done.starts, done.h, box)
    return moved if moved.identified else done


def closed_form(method: str, rows: Rows, again: Rows) -> Array:
    """The least-squares fit of each correction, shape (p,): linear in corrected moments."""
    gram, cross = _moments(method, rows, again)
    try:
        return np.asarray(np.linalg.solve(gram, cross))
    except np.linalg.LinAlgError:
        return np.full(len(cross), nan)


def residual_sd(rows: Rows, line: Array, method: str) -> float:
    """The standard deviation of the true residuals about a line, what noise adds taken away, at least 0.22 of that of what is seen."""
    rows = rows.as_told() if method == "naive" else rows
    squares = np.square(rows.y - rows.x @ line)
    seen = rows.mean(squares)
    added = float(np.square(rows.lam) @ np.square(line)) + rows.lam_y**2
    share = 0.0 if method == "naive" else 1 - rows.zeta
    return sqrt(max(seen - share * added, 0.05 * float(squares.mean())))


def _smoothing(loss: Loss, method: str, rows: Rows, again: Rows, line: Array, box: Box) -> float:
    """0.8 residual standard deviations, about the corrected fit, or about fits that start from the naive one where those are less.

    The mean squared residual about any fixed fit is at least that about the population's. Where much noise leaves the corrected Gram
    matrix close to singular, the corrected fit is far from all records. The naive one is not, and the fits that follow, each smoothed
    by the one before, come closer.
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
    problem: Corrected, line: Array, rows: Rows, again: Rows, generator: np.random.Generator, box: Box
) -> list[Array]:
    """The naive fit, the corrected least-squares fit, and what five points around lead to.

    RB is the dearest of the corrections and SDR estimates the same: the points around are led to their minima by SDR first, and equal
    minima count once.
    """
    p = rows.x.shape[1]
    if problem.method == "naive" and problem.loss.convex and np.isfinite(line).all():
        return [box.clip(line)]  # the only minimum
    naive = _minimum(replace(problem, method="naive"), box.clip(np.zeros(p)), box)
    seeds = [] if naive is None else [naive[1]]
    seeds += [_floored(problem.method, rows, again)] + ([line] if np.isfinite(line).all() else [])
    seeds += [seeds[0] + _JITTER * generator.standard_normal(p) for _ in range(_JITTERED)]
    seeds = [box.clip(one) for one in seeds]
    if problem.method != "RB":
        return seeds
    apart = [] if problem.loss.flat else [one[1] for one, _ in _minima(replace(problem, method="SDR"), seeds, box)]
    return [*apart, *seeds[: 2 if apart else len(seeds)]]


def _minima(problem: Corrected, starts: Sequence[Array], box: Box) -> list[tuple[Minimum, int]]:
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


def _minimum(problem: Corrected, start: Array, box: Box, known: Sequence[Minimum] = ()) -> Minimum | None:
    """The minimum that a start leads to, None for the edge of an open box; one of `known` as soon as it is near."""
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
            bounds=list(zip(box.low, box.high, strict=True)),
            callback=look if known else None,
            options={"gtol": 1e-8, "ftol": 1e-13},
        )
    if near:
        return near[0]
    if not np.isfinite(found.fun) or not (box.closed or box.within(found.x)):
        return None
    return float(found.fun), np.asarray(found.x)


def _described(problem: Corrected, theta: Array, starts: tuple[int, int], h: float, box: Box) -> Fitted:
    p = problem.rows.x.shape[1]
    nothing = Fitted(theta, np.full((p, p), nan), problem, h, nan, starts, False)
    if not np.isfinite(theta).all() or not box.within(theta):
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


if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# Combinations of protected levels in one formula: each record stands so many times.
_MOST_COPIES = 200


@dataclass(frozen=True, eq=False)
class Model:
    """A formula's rows in units of the declared domains, and the way back.

    - names (p,): of the terms; rows: scaled.
    - to_units (p, p) and shift (p,): coefficients in the data's units are to_units @ theta + shift.
    - response: its name; intercept: its position, None without one; width: what the response was divided by.
    - bases: the reference level of each factor, the first one declared.
    """

    names: tuple[str, ...]
    rows: Rows
    to_units: Array
    shift: Array
    response: str
    intercept: int | None
    width: float
    bases: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, told: Protection, formula: str, loss: Loss, *, centred: bool = True) -> Model:
        """The model matrix by formulaic. A protected column enters as it stands, because noise under a function has another correction.

        `centred`: whether terms are measured from the middle of their domains where there is an intercept.

        Protected levels may interact with each other and with public columns: each record stands once with each level
        (`confide.local.fits.losses`). As the response, a protected column of two levels is the share of the second.

        Raises `PlanError` for unknown columns and for functions and products of protected numbers. It also raises for a response of
        other than two levels, and for a protected response of a loss that is not one of y - t.
        """
        left, written = _sides(formula)
        if frame.empty:
            raise PlanError("the table has no records, and nothing can be fitted to it", "give one that has some")
        known = tuple(map(str, frame.columns))
        left = column_named(left, known)
        right, called = hidden(written, known)
        terms = _variables(right, formula, called, told)
        unknown = [name for name in called.values() if name not in known]
        if unknown:
            raise PlanError(f"the table has no column {unknown[0]!r}; it has: {', '.join(known)}")
        if left in terms:
            raise PlanError(
                f"{left!r} is the response and a term of {formula!r}, with one noise in both", "take one of them out"
            )
        named = {left, *terms}
        _complete(frame, told, named)
        frame = _in_order(frame, {name: own for name, own in told.order.items() if name in named})
        frame, weights, copies = _over_levels(frame, {k: one for k, one in told.levels.items() if k in named})
        y, lam_y, middle_y, width_y = _response(frame, told, left, loss)
        matrix, variables, based = _matrix(frame, right, formula, called)
        names = tuple(str(name) for name in matrix.columns)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise PlanError(f"two coefficients of {formula!r} are called {twice!r}", "rename a column")
        x = matrix.to_numpy(dtype=np.float64)
        at = next((k for k, name in enumerate(names) if name == "Intercept"), None)
        lam, middle, width = (np.zeros(len(names)) for _ in range(3))
        for k, name in enumerate(names):
            lam[k], middle[k], width[k] = _units(name, variables[name], x[:, k], told)
        if at is None or not centred:
            middle[:] = 0.0
            middle_y = 0.0
        scaled = Rows(
            (x - middle) / width, (y - middle_y) / width_y, lam / width, lam_y / width_y, told.zeta, weights, copies
        )
        to_units, shift = np.diag(width_y / width), np.zeros(len(names))
        if at is not None:
            to_units[at, :] -= width_y * middle / width
            shift[at] = middle_y
        response = f"{left}[{told.levels[left].levels[1]}]" if left in told.levels else left
        return cls(names, scaled, to_units, shift, response, at, width_y, based)

    def in_units(self, theta: Array, covariance: Array) -> tuple[Array, Array]:
        """Coefficients and their covariance in the data's units."""
        moved = self.to_units @ covariance @ self.to_units.T
        return self.to_units @ theta + self.shift, (moved + moved.T) / 2


def _sides(formula: str) -> tuple[str, str]:
    both = sides(formula)
    if len(both) != 2 or not all(both):
        raise PlanError(f"a formula has a response and terms, got {formula!r}", "write 'y ~ x1 + x2'")
    return both[0], both[1]


def _codes(column: pd.Series[Any], levels: tuple[str, ...]) -> NDArray[np.int64]:
    """The places of labels among the declared levels."""
    codes = pd.Index(levels).get_indexer(pd.Index(column))
    if (codes < 0).any():
        raise ReleaseError(
            f"the table has cells of {column.name!r} that are none of its levels", "ask for it as it was protected"
        )
    return np.asarray(codes, dtype=np.int64)


def _in_order(frame: pd.DataFrame, order: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    """Public labels in the declared order of those that occur: the first one is the base, as in every other table."""
    found = {}
    for name, levels in order.items():
        codes = _codes(frame[name], levels)
        found[name] = pd.Categorical.from_codes(codes, categories=pd.Index(levels)).remove_unused_categories()
    return frame.assign(**found) if found else frame


def _complete(frame: pd.DataFrame, told: Protection, named: set[str]) -> None:
    """Raise `PlanError` where a public column of the formula has no value, or none that is finite, in some rows of the file."""
    for name in sorted(named.intersection(told.public)):
        column = frame[name]
        numbers = pd.api.types.is_numeric_dtype(column)
        gone = int((~np.isfinite(column.to_numpy(dtype=np.float64)) if numbers else column.isna()).sum())
        if gone:
            there = f"np.isfinite(frame[{name!r}])" if numbers else f"frame[{name!r}].notna()"
            raise PlanError(
                f"the public column {name!r} has no value, or none that is finite, in {gone:,} of {len(frame):,} rows",
                f"leave these out: frame = cf.local.read(path); cf.local.fit(frame[{there}], ...)",
            )


def _response(frame: pd.DataFrame, told: Protection, name: str, loss: Loss) -> tuple[Array, float, float, float]:
    """(values, SD of the noise, middle, width): the last two 0 and 1 where the loss is not one of y - t."""
    if name in told.levels:
        y = _two_sided(frame[name], told.levels[name].levels, loss)
        return y, 0.0, *_around(y, loss)
    noised = told.column(name)
    y = _numbers(frame[name], name, loss)
    if noised is None:
        loss.checked(y)
        return y, 0.0, *_around(y, loss)
    if not loss.location:
        raise PlanError(
            f"the response {name!r} is protected, and loss={loss.name!r} needs its true values; publish it as it is when the table is "
            "protected, or write loss='squared', 'quantile' or 'huber'"
        )
    return y, noised.sd, (noised.low + noised.high) / 2, noised.high - noised.low


def _around(y: Array, loss: Loss) -> tuple[float, float]:
    """(middle, width) of a response without noise."""
    return (float(y.mean()), float(y.std()) or 1.0) if loss.location else (0.0, 1.0)


def _numbers(column: pd.Series, name: str, loss: Loss) -> Array:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise published_levels(name, loss) from None


def published_levels(name: str, loss: Loss) -> PlanError:
    """The refusal of a response that is levels in the open."""
    low, high = loss.sides
    return PlanError(
        f"the response {name!r} is published as levels, and a response is a number",
        f"publish it as {low:g} and {high:g}, or protect its two levels, with levels={{{name!r}: 1.0}}",
    )


def _two_sided(column: pd.Series, levels: tuple[str, ...], loss: Loss) -> Array:
    if len(levels) != 2:
        raise PlanError(
            f"the response {column.name!r} has {len(levels)} levels, and a response has two; its shares are known: write "
            f"cf.local.shares(data, {column.name!r})"
        )
    return np.asarray(np.where(column.cat.codes == 1, loss.sides[1], loss.sides[0]), dtype=np.float64)


def _over_levels(frame: pd.DataFrame, levels: Mapping[str, ProtectedColumn]) -> tuple[pd.DataFrame, Array | None, int]:
    """(frame, weights, copies): each record once with every combination of these levels, as it was told first."""
    if not levels:
        return frame, None, 1
    copies = prod(len(one.levels) for one in levels.values())
    if copies > _MOST_COPIES:
        raise PlanError(
            f"the levels of {', '.join(levels)} make {copies:,} combinations, and a formula takes {_MOST_COPIES}",
            "take fewer of them",
        )
    records = np.arange(len(frame))
    wide = frame.take(np.repeat(records, copies)).reset_index(drop=True)
    weights, apart = np.ones(copies), copies
    for name, one in levels.items():
        count, keep = len(one.levels), float(one.keep)
        apart //= count
        away = np.arange(copies) // apart % count  # from the level that was told
        codes = ((_codes(frame[name], one.levels)[:, None] + away) % count).ravel()
        wide[name] = pd.Categorical.from_codes(codes, categories=pd.Index(one.levels))
        weights = weights * ((away == 0) - (1 - keep) / count) / keep
    return wide, np.tile(weights, len(frame)), copies


def _variables(right: str, formula: str, called: Mapping[str, str], told: Protection) -> set[str]:
    """The columns that the right side names; `PlanError` where a protected number is in a function, before that is computed.

    called: what the placeholders of the right side stand for (`hidden`): formulaic reads names as Python does, which changes some.
    """
    from formulaic import Formula, SimpleFormula

    try:
        whole = Formula(right)
        if isinstance(whole, SimpleFormula):
            found = {
                restored(str(term), called, str): {
                    called[str(v)] for v in Formula([term]).required_variables if str(v) in called
                }
                for term in whole
            }
    except Exception as error:
        raise _unreadable(formula, error, called) from None
    if not isinstance(whole, SimpleFormula):
        raise PlanError(
            f"the formula {formula!r} has several parts on its right side, and a fit has one", "write 'y ~ x1 + x2'"
        )
    for term, variables in found.items():
        _check_plain(term, variables, told)
    return set().union(*found.values())


def _check_plain(term: str, variables: set[str], told: Protection) -> None:
    protected = sorted(variables & set(told.columns))
    if protected and term != protected[0]:
        raise PlanError(
            f"the term {term!r} is a function of the protected {', '.join(protected)}, whose noise this correction does not know",
            f"write {protected[0]} without a function, or protect the function itself as a column",
        )


def _unreadable(formula: str, error: Exception, called: Mapping[str, str]) -> PlanError:
    why = restored(str(error), called, str)
    return PlanError(f"the formula {formula!r} cannot be read on this table: {why}", "write 'y ~ x1 + x2'")


def _matrix(
    frame: pd.DataFrame, right: str, formula: str, called: Mapping[str, str]
) -> tuple[pd.DataFrame, dict[str, set[str]], tuple[tuple[str, str], ...]]:
    """The model matrix, the columns behind each of its columns, and the reference level of each factor that has all levels but one."""
    from formulaic import model_matrix  # here, because its whole is slow to load

    held = pd.DataFrame({placeholder: frame[name] for placeholder, name in called.items()}, index=frame.index)
    try:
        made: Any = model_matrix(right, held, na_action="raise")
    except Exception as error:
        raise _unreadable(formula, error, called) from None
    spec = made.model_spec
    variables: dict[str, set[str]] = {}
    based: dict[str, str] = {}
    for part in spec.structure:
        factors = [one for scoped in part.scoped_terms for one in scoped.factors if one.reduced]
        for name in (called[str(one.factor)] for one in factors if str(one.factor) in called):
            based[name] = str(pd.Categorical(frame[name]).categories[0])
        known = {called[str(v)] for v in spec.term_variables.get(part.term, ()) if str(v) in called}
        for column in part.columns:
            variables[_called(str(column), called)] = known
    made.columns = [_called(str(column), called) for column in made.columns]
    return made, variables, tuple(based.items())


def _called(name: str, called: Mapping[str, str]) -> str:
    """A term by the names of its columns: as they are where they are factors, as a formula has them inside of a function."""
    if not called:
        return name
    alone = rf"(?:^|(?<=:))({'|'.join(called)})(?=$|[:\[])"
    return restored(re.sub(alone, lambda found: called[found[1]], name), called)


def _units(name: str, variables: set[str], values: Array, told: Protection) -> tuple[float, float, float]:
    """(SD of the noise, middle, width) of one term."""
    _check_plain(name, variables, told)
    if name not in told.columns:
        spread = float(values.std())
        return 0.0, (float(values.mean()) if spread else 0.0), spread or 1.0
    one = told.columns[name]
    return one.sd, (one.low + one.high) / 2, one.high - one.low


_POINTS, _REACH, _QUANTILE_STEP = 401, 2.5, 0.15

_UNKNOWN = "the intercept of a quantile line needs rows that went without noise, or errors known to be symmetric; slopes are answered"


# Where intervals of quantile lines were counted (evidence/methods/local.md), and held: from so many records, up to so much noise of a term.
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

    a0 solves mean F_i(a) = tau, with the corrected indicator F_i(a) = 1{r_i <= a} / zeta + (1 - 1 / zeta) Lap((a - r_i) / s). Its mean
    is the distribution function of the true residuals. It is solved on 401 points, sorted first, because a corrected mean need not be
    monotone. Its variance joins its score to those of the slopes. Without rows that kept their value no correction of this kind exists,
    and the intercept is not answered.
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
    step = _QUANTILE_STEP * spread
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
    return "valid", "", moved, spread_of


def _laplace(x: Array) -> Array:
    """The distribution function of a standard Laplace."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _without(estimates: Array, covariance: Array, at: int) -> tuple[Array, Array]:
    estimates, covariance = estimates.copy(), covariance.copy()
    estimates[at] = nan
    covariance[at, :] = covariance[:, at] = nan
    return estimates, covariance
