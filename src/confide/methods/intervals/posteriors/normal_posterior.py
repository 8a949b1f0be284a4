"""Posterior and confidence set of a normal mean and standard deviation, from noisy sums of z and z^2 of clipped records.

y = (sum z, sum z^2) + noise, z = clip((x - c)/R, -1, 1), x ~ N(., .). Given (m, s) in units of R the two sums are normal with the exact
moments of the clipped normal (`clipped`) times n: this is the only approximation (central limit theorem), noise is exact. Of a column of
any distribution m and s are the clipped numbers' own, and n m and n (m^2 + s^2) what the sums are expected to be. The posterior is
likelihood times prior on a grid in (m, log s), zoomed to where its mass is. On the way there what the sums are expected to be within a
cell counts as further noise: a peak that is narrow beside the cells would lie between their points, unseen.

Prior, as a density in (mean, sd): "uniform" over the public box (default), "reference" 1/sd^2 in (mean, sd^2), or "jeffreys", of the noisy
release, |dE/d(m, s)|/sqrt(det(covariance with noise)).

Confidence set: all (m, s) for which sum z^2 lies within the middle 1 - beta of its distribution and sum z within the middle
1 - (alpha - beta), beta = alpha/10: a region that holds the truth with probability at least 1 - alpha, whatever it is, as the two parts of
alpha add up. Its shadow on the mean is the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.methods.intervals.posteriors.clipped import ClippedNormal, ColumnShape
from confide.methods.intervals.posteriors.laws import NoiseLaw, normal_laplace, two_normal_laplace
from confide.methods.intervals.posteriors.marginals import GridMarginal, cumulated, risen

__all__ = ["PRIORS", "NormalGrid", "NormalSums", "confidence_region", "normal_posterior"]

Array = NDArray[np.float64]

PRIORS = ("uniform", "reference", "jeffreys")
# Sides of the grids, each over where the one before had its mass, until it fills most of one; the first one is rough.
_SIDE, _LAST, _ZOOMS, _SETTLED = 41, 61, 20, 0.7
# Cells whose share of a marginal is below this, against its largest, are outside the next grid.
_EDGE, _ROUGH = 1e-7, 1e-9
# A log density of so much less than the largest weighs nothing.
_NOTHING = 26.0
_POINTS = 401


@dataclass(frozen=True)
class NormalSums:
    """Noisy (sum z, sum z^2) of n records, their noise, and the public box: |m| <= 1, low <= s <= high.

    column: the shape of the clipped numbers, where m and s are theirs, and not those of a normal before clipping.
    """

    n: int
    first: float
    second: float
    law1: NoiseLaw
    law2: NoiseLaw
    low: float
    high: float
    column: ColumnShape | None = None

    def may_be_alike(self, alpha: float) -> bool:
        """Whether all records may be one number m: sum z^2 is then (sum z)^2/n, and the excess of the noisy sums over that is the noise of
        the second less 2 m times that of the first, and less the square of the first over n, which is left out; not rejected at alpha/2."""
        m = float(np.clip(self.first / self.n, -1.0, 1.0))
        other = NoiseLaw(self.law1.name, 2 * abs(m) * self.law1.scale)
        return self.law2.tail_with(other, self.second - self.n * m * m) >= alpha / 2

    def moments(self, m: Array, s: Array) -> ClippedNormal:
        """Of one clipped record at a grid of (m, s)."""
        return ClippedNormal.of(m, s) if self.column is None else self.column.moments(m, s)

    def log_likelihood(self, m: Array, s: Array, *, cells: bool = False) -> Array:
        """At a grid of (m, s), or of its cells; under Laplace noise where it is next to nothing a bound from above, next to nothing too."""
        own = self.moments(m, s)
        n = self.n
        r1, r2 = self.first - n * own.mean, self.second - n * own.square
        c11, c12, c22 = n * own.c11, n * own.c12, n * own.c22
        if cells:
            c11, c12, c22 = (one + more for one, more in zip((c11, c12, c22), self._within(own), strict=True))
        if self.law1.name == "normal":
            return _normal(r1, r2, c11 + self.law1.variance, c12, c22 + self.law2.variance)
        b1, b2 = self.law1.scale, self.law2.scale
        first, second = self._alone(r1, r2, c11, c22)
        # given one sum the other's density is nowhere above that of its noise
        found = np.asarray(np.minimum(first - log(2 * b2), second - log(2 * b1)))
        parts = r1, r2, c11 + 1e-12 * b1 * b1, c12, c22 + 1e-12 * b2 * b2
        best = np.unravel_index([int(np.argmax(first + second))], found.shape)
        kept = found > self._exact(parts, best)[0] - _NOTHING
        found[kept] = self._exact(parts, kept)
        return found

    def _within(self, own: ClippedNormal) -> tuple[Array, Array, Array]:
        """Covariance of the two expected sums over each cell of a grid, with the larger of the steps to either side."""
        of11, of12, of22 = (np.zeros_like(own.mean) for _ in range(3))
        for axis in (0, 1):
            (largest1, step1), (largest2, step2) = (_steps(values, axis) for values in (own.mean, own.square))
            of11 += largest1**2
            of12 += step1 * step2
            of22 += largest2**2
        return tuple(self.n**2 / 12 * one for one in (of11, of12, of22))  # type: ignore[return-value]

    def _exact(self, parts: Sequence[Array], at: Any) -> Array:
        r1, r2, c11, c12, c22 = (part[at] for part in parts)
        return two_normal_laplace(r1, r2, c11, c12, c22, self.law1.scale, self.law2.scale)

    def _alone(self, r1: Array, r2: Array, c11: Array, c22: Array) -> tuple[Array, Array]:
        """Log densities of each noisy sum by itself, under Laplace noise."""
        return tuple(
            normal_laplace(rest, np.sqrt(own + 1e-24), law.scale)
            for rest, own, law in ((r1, c11, self.law1), (r2, c22, self.law2))
        )  # type: ignore[return-value]

    def rough(self, m: Array, s: Array) -> Array:
        """Of cells, from the two sums as if they were independent: where to look first, down to lower weights."""
        if self.law1.name == "normal":
            return self.log_likelihood(m, s, cells=True)
        own = self.moments(m, s)
        n = self.n
        within1, _, within2 = self._within(own)
        rests = self.first - n * own.mean, self.second - n * own.square
        return sum(self._alone(*rests, n * own.c11 + within1, n * own.c22 + within2))  # type: ignore[return-value]

    def log_prior(self, prior: str, m: Array, s: Array) -> Array:
        """Density in (m, log s): that in (m, s) times s.

        Of a column s^2 <= 1 - m^2 is not asked for: a column of values at its bounds lies on that edge, where s could not follow the
        second sum, which would narrow m by a correlation that such a column does not have.
        """
        if prior == "flat":
            return np.zeros_like(s)
        if prior == "uniform":
            return np.log(s)
        if prior == "reference":
            return -2 * np.log(s)
        own = self.moments(m, s)
        # derivatives of (E z, E z^2) in (m, log s) by small steps: the exact ones of the clipped moments say no more here
        h = 1e-5
        left, right = self.moments(m - h * s, s), self.moments(m + h * s, s)
        less, more = self.moments(m, s * (1 - h)), self.moments(m, s * (1 + h))
        d11, d21 = (right.mean - left.mean) / s, (right.square - left.square) / s
        d12, d22 = more.mean - less.mean, more.square - less.square
        determinant = np.abs(d11 * d22 - d12 * d21) / (4 * h * h)
        v11, v22 = self.n * own.c11 + self.law1.variance, self.n * own.c22 + self.law2.variance
        return np.asarray(np.log(determinant + 1e-300) - np.log(v11 * v22 - (self.n * own.c12) ** 2) / 2)


def _steps(values: Array, axis: int) -> tuple[Array, Array]:
    """The larger of the steps to the neighbours along an axis, and the mean of both; at an end the only one."""
    steps = np.diff(values, axis=axis)
    first, last = (steps.take([at], axis=axis) for at in (0, -1))
    before, after = np.concatenate([first, steps], axis=axis), np.concatenate([steps, last], axis=axis)
    return np.maximum(np.abs(before), np.abs(after)), (before + after) / 2


def _normal(r1: Array, r2: Array, v11: Array, v12: Array, v22: Array) -> Array:
    determinant = v11 * v22 - v12 * v12
    form = (v22 * r1 * r1 - 2 * v12 * r1 * r2 + v11 * r2 * r2) / determinant
    return np.asarray(-form / 2 - np.log(determinant) / 2 - log(2 * pi))


@dataclass(frozen=True, eq=False)
class NormalGrid:
    """A posterior on a grid: m (g,), log s (h,), weights (g, h) that are densities in (m, log s), up to a factor."""

    m: Array
    log_s: Array
    weights: Array
    edge: bool

    @property
    def mean(self) -> GridMarginal:
        """Of m."""
        return GridMarginal(self.m, self.weights @ _widths(self.log_s))

    @property
    def sd(self) -> GridMarginal:
        """Of s."""
        density = _widths(self.m) @ self.weights
        return GridMarginal(np.exp(self.log_s), density / np.exp(self.log_s))

    def draws(self, generator: np.random.Generator, size: int) -> tuple[Array, Array]:
        """Joint draws of (m, s): a cell by its weight, a place in it at random."""
        shares = self.weights * _widths(self.m)[:, None] * _widths(self.log_s)[None, :]
        flat = generator.choice(shares.size, size=size, p=(shares / shares.sum()).ravel())
        at_m, at_s = np.unravel_index(flat, shares.shape)
        m = self.m[at_m] + (generator.random(size) - 0.5) * (self.m[1] - self.m[0])
        log_s = self.log_s[at_s] + (generator.random(size) - 0.5) * (self.log_s[1] - self.log_s[0])
        return np.clip(m, self.m[0], self.m[-1]), np.exp(np.clip(log_s, self.log_s[0], self.log_s[-1]))

    def of(self, function: Callable[[Array, Array], Array], along: str) -> GridMarginal:
        """Of a function of (m, s) that rises along "m" (given s) or along "s" (given m): its exact distribution, read at many points."""
        m, s = self.m[:, None], np.exp(self.log_s)[None, :]
        values = np.broadcast_to(function(m + 0 * s, s + 0 * m), self.weights.shape)
        axis, other = (self.m, self.log_s) if along == "m" else (self.log_s, self.m)
        rows = (values.T, self.weights.T) if along == "m" else (values, self.weights)
        shares = _widths(other)
        points = _spread(rows[0], rows[1] * shares[:, None], _POINTS)
        held = shares * rows[1].max(axis=1) > 0
        values, density, shares = rows[0][held], rows[1][held], shares[held]
        sums = cumulated(axis, density)
        at = np.array([np.interp(points, own, axis) for own in np.maximum.accumulate(values, axis=1)])
        inside = np.where(points < values[:, :1], 0.0, risen(at, axis, density, sums))
        total = shares @ inside
        density = np.maximum(np.gradient(total, points), 0.0)
        return GridMarginal(points, density)


def _widths(x: Array) -> Array:
    """Weights of the trapezoid rule."""
    h = np.diff(x)
    return np.concatenate([[h[0] / 2], (h[1:] + h[:-1]) / 2, [h[-1] / 2]])


def _spread(values: Array, weights: Array, count: int) -> Array:
    """Even points over where the values with weight lie."""
    kept = values[weights > 1e-9 * weights.max()]
    low, high = float(kept.min()), float(kept.max())
    room = 1e-9 * max(abs(low), abs(high), 1e-12) if high == low else 0.0
    return np.linspace(low - room, high + room, count)


def normal_posterior(sums: NormalSums, prior: str = "uniform") -> NormalGrid:
    """The posterior of (m, log s), on a grid over where its mass is."""
    ends_m, ends_s = (-1.0, 1.0), (log(sums.low), log(sums.high))
    whole = (*ends_m, *ends_s)
    for level in range(_ZOOMS):
        m, log_s, weights = _weighed(sums, prior, ends_m, ends_s, _SIDE, "rough" if level == 0 else "cells")
        edge = _ROUGH if level == 0 else _EDGE
        new_m, new_s = _kept(m, weights.sum(axis=1), edge), _kept(log_s, weights.sum(axis=0), edge)
        settled = level > 0 and _share(new_m, ends_m) > _SETTLED and _share(new_s, ends_s) > _SETTLED
        ends_m, ends_s = new_m, new_s
        if settled:
            break
    m, log_s, weights = _weighed(sums, prior, ends_m, ends_s, _LAST)
    found = NormalGrid(m, log_s, weights, False)
    return NormalGrid(m, log_s, weights, _at_edge(found, whole))


def _weighed(
    sums: NormalSums,
    prior: str,
    ends_m: tuple[float, float],
    ends_s: tuple[float, float],
    side: int,
    of: str = "points",
) -> tuple[Array, Array, Array]:
    """(m, log s, weights) on an even grid, of its points, its cells or, roughly, its cells."""
    m, log_s = np.linspace(*ends_m, side), np.linspace(*ends_s, side)
    grid = m[:, None], np.exp(log_s)[None, :]
    found = sums.rough(*grid) if of == "rough" else sums.log_likelihood(*grid, cells=of == "cells")
    log_weights = found + sums.log_prior(prior, *grid)
    return m, log_s, np.exp(log_weights - log_weights.max())


def _share(new: tuple[float, float], old: tuple[float, float]) -> float:
    """How much of an axis is kept."""
    return (new[1] - new[0]) / (old[1] - old[0])


def _kept(axis: Array, marginal: Array, edge: float) -> tuple[float, float]:
    """The part of an axis that holds the mass, a cell wider on either side."""
    held = np.flatnonzero(marginal > edge * marginal.max())
    return float(axis[max(held[0] - 1, 0)]), float(axis[min(held[-1] + 1, len(axis) - 1)])


def _at_edge(grid: NormalGrid, whole: tuple[float, float, float, float]) -> bool:
    """Whether half of the mass of a marginal lies at an edge of the box."""
    m, s = grid.weights.sum(axis=1), grid.weights.sum(axis=0)
    at = (grid.m[0] == whole[0], m[:3]), (grid.m[-1] == whole[1], m[-3:]), (grid.log_s[-1] == whole[3], s[-3:])
    total = float(grid.weights.sum())
    return any(touches and float(part.sum()) > total / 2 for touches, part in at)


def confidence_region(sums: NormalSums, alpha: float, side: int = 161) -> tuple[Array, Array, NDArray[np.bool_]]:
    """(m, s, accepted (m, s)): the (m, s) that neither of the two sums rejects, on a grid over all cells with such a place."""
    ends_m, ends_s = (-1.0, 1.0), (log(sums.low), log(sums.high))
    for _ in range(_ZOOMS):
        m, log_s = np.linspace(*ends_m, side), np.linspace(*ends_s, side)
        own = sums.moments(m[:, None], np.exp(log_s)[None, :])
        cells = _accepted(sums, own, alpha, cells=True)
        if not cells.any():
            return m, np.exp(log_s), cells
        new_m, new_s = _kept(m, cells.mean(axis=1), 0.0), _kept(log_s, cells.mean(axis=0), 0.0)
        if _share(new_m, ends_m) > _SETTLED and _share(new_s, ends_s) > _SETTLED:
            break
        ends_m, ends_s = new_m, new_s
    points = _accepted(sums, own, alpha)
    return m, np.exp(log_s), points if points.any() else cells


def _accepted(sums: NormalSums, own: ClippedNormal, alpha: float, *, cells: bool = False) -> NDArray[np.bool_]:
    """Points of a grid; or cells, in which each sum may be as near to what is expected, and as variable, as it is anywhere there."""
    beta, n = alpha / 10, sums.n
    both = (sums.first, own.mean, own.c11, sums.law1, alpha - beta), (sums.second, own.square, own.c22, sums.law2, beta)
    found = []
    for y, expected, variance, law, part in both:
        near, more = (_half(expected), _half(variance)) if cells else (0.0, 0.0)
        rest = np.maximum(np.abs(y - n * expected) - n * near, 0.0)
        found.append(_middle(rest, n * (variance + more), law, part))
    return found[0] & found[1]


def _half(values: Array) -> Array:
    """How far values go from a grid's points to the corners of their cells."""
    return np.asarray((_steps(values, 0)[0] + _steps(values, 1)[0]) / 2)


def _middle(rest: Array, variance: Array, law: NoiseLaw, alpha: float) -> NDArray[np.bool_]:
    """Whether a noisy sum lies within the middle 1 - alpha of its distribution."""
    return np.asarray(law.tail_beside(variance, np.abs(rest)) >= alpha / 2)
