"""Posterior and confidence set of a normal mean and standard deviation, from noisy sums of z and z^2 of clipped records.

y = (sum z, sum z^2) + noise, z = clip((x - c)/R, -1, 1), x ~ N(., .). Given (m, s) in units of R the two sums are normal with the exact
moments of the clipped normal (`clipped`) times n. This is the only approximation (central limit theorem), noise is exact. Of a column of
any distribution m and s are the clipped numbers' own, and n m and n (m^2 + s^2) what the sums are expected to be. The posterior is
likelihood times prior on a grid in (m, log s), zoomed to where its mass is. On the way there the expected sums within a
cell count as further noise. Otherwise a peak that is narrower than the cells would lie between their points, unseen.

Prior, as a density in (mean, SD): "uniform" over the public box (default), "reference" 1/SD^2 in (mean, SD^2), or "jeffreys", of the noisy
release, |dE/d(m, s)|/sqrt(det(covariance with noise)).

Confidence set: all (m, s) for which sum z^2 lies within the middle 1 - beta of its distribution and sum z within the middle
1 - (alpha - beta), beta = alpha/10. This region holds the truth with probability at least 1 - alpha, whatever it is, because the two parts
of alpha add up. Its shadow on the mean is the interval.

The posterior of a normal linear model from a noisy matrix of second moments: S = sum a a', a = ([1,] x_1, ..., x_p, y) in [-1, 1].

With S = [[Q, c], [c', t]] the model says exactly c ~ N(Q b, s^2 Q) and r = t - c'Q^-1 c ~ s^2 chi^2 with n - d degrees of freedom, d
coefficients. So with the prior ds^2 db (flat) and |Q| for the design, S given the release is the noise's distribution centered at the
release, on positive definite matrices. Then, given S, s^2 = r/chi^2_{n-d-2}, b ~ N(Q^-1 c, s^2 Q^-1). Each coefficient's posterior is the
mean, over draws of S, of Student's t with n - d - 2 degrees of freedom.

Draws of S: the release plus fresh noise, kept where positive definite. Where fewer than 2% are, single entries are drawn in turn, row by
row, from the noise's distribution on the interval that keeps S positive definite (Gibbs). It is judged by rank-normalized R-hat. Draws of
two sweeps are all but independent, so that many chains are short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.methods.intervals.count_posteriors import ClippedNormal, ColumnShape
from confide.methods.intervals.marginals import (
    GridMarginal,
    NoiseLaw,
    StudentMixture,
    cumulated,
    normal_laplace,
    risen,
    two_normal_laplace,
)

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
        """Whether all records may be one number m, not rejected at alpha/2: sum z^2 is then (sum z)^2/n.

        The excess of the noisy sums over that is the noise of the second less 2 m times that of the first. The square of the first over n
        is omitted."""
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
        """Log densities of each noisy sum alone, under Laplace noise."""
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

        Of a column s^2 <= 1 - m^2 is not required. A column of values at its bounds lies on that edge, where s could not follow the
        second sum. That would narrow m by a correlation that the column does not have.
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
    """The larger of the steps to the neighbors along an axis, and the mean of both; at an end the only one."""
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
    """(m, s, accepted (m, s)): the (m, s) that neither of the two sums rejects, on a grid over all cells that have one."""
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


_KEPT, _BATCH, _TRIED, _LEAST_SHARE = 4_000, 4_000, 10_000, 0.02
_CHAINS, _SWEEPS, _BURN = 32, 125, 75
#: Chains whose R-hat is below it agree.
AGREED = 1.01


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """The released matrix S (D, D) and the law of each entry's noise: `off` the diagonal, `square` on it.

    fixed: whether S[0, 0] = n is public and has no noise.
    """

    matrix: Array
    off: NoiseLaw
    square: NoiseLaw
    n: int
    fixed: bool


@dataclass(frozen=True, eq=False)
class LinePosterior:
    """Posterior of the coefficients b: centers (draws, d), scales (draws, d) and df of each draw's Student t, factor (draws, d, d).

    sampler: "direct" or "gibbs"; rhat: the largest one, 1 for direct draws; acceptance: share of positive definite draws.

    spread: the share of draws in which the terms' own part of S is, without the response.
    """

    centres: Array
    scales: Array
    df: float
    factors: Array
    sampler: str
    rhat: float
    acceptance: float
    spread: float

    def marginal(self, weights: Array, shift: float = 0.0) -> StudentMixture:
        """Of shift + weights'b."""
        centre = self.centres @ weights + shift
        scale = np.linalg.norm(np.einsum("kji,j->ki", self.factors, weights), axis=1)
        return StudentMixture(centre, np.maximum(scale, 1e-300), self.df)


def line_posterior(noisy: NoisyMoments, generator: np.random.Generator, kept: int = _KEPT) -> LinePosterior:
    """Draws of S given the release, and the conjugate posterior of each."""
    size = len(noisy.matrix)
    found: list[Array] = []
    tried, spread = 0, 0
    while sum(map(len, found)) < kept:
        drawn = noisy.matrix + _noise(noisy, generator, _BATCH)
        good = _positive(drawn)
        found.append(drawn[good])
        spread += int(_positive(drawn[:, : size - 1, : size - 1]).sum())
        tried += _BATCH
        if tried >= _TRIED and sum(map(len, found)) < _LEAST_SHARE * tried:
            break
    matrices = np.concatenate(found)
    acceptance = len(matrices) / tried
    sampler, rhat = "direct", 1.0
    if len(matrices) < kept:
        matrices, rhat = _gibbs(noisy, generator)
        sampler = "gibbs"
    matrices = matrices[:kept] if sampler == "direct" else matrices
    d = size - 1
    q, c, t = matrices[:, :d, :d], matrices[:, :d, d], matrices[:, d, d]
    centres = np.linalg.solve(q, c[..., None])[..., 0]
    rest = np.maximum(t - np.einsum("ki,ki->k", c, centres), 0.0)
    df = noisy.n - d - 2
    inverse = np.linalg.inv(q)
    inverse = (inverse + inverse.transpose(0, 2, 1)) / 2
    values, vectors = np.linalg.eigh(inverse)
    factors = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :] * np.sqrt(rest / df)[:, None, None]
    scales = np.sqrt(np.maximum(np.einsum("kii->ki", inverse), 0.0) * (rest / df)[:, None])
    return LinePosterior(
        np.asarray(centres),
        np.asarray(scales),
        float(df),
        np.asarray(factors),
        sampler,
        rhat,
        acceptance,
        spread / tried,
    )


def _noise(noisy: NoisyMoments, generator: np.random.Generator, draws: int) -> Array:
    size = len(noisy.matrix)
    rows, columns = np.triu_indices(size, 1)
    found = np.zeros((draws, size, size))
    found[:, rows, columns] = noisy.off.draws(generator, (draws, len(rows)))
    found += found.transpose(0, 2, 1)
    squares = noisy.square.draws(generator, (draws, size))
    if noisy.fixed:
        squares[:, 0] = 0.0
    found[:, np.arange(size), np.arange(size)] = squares
    return found


def _positive(matrices: Array) -> NDArray[np.bool_]:
    """Which of many symmetric matrices are positive definite: all leading minors above 0 (Sylvester), by elimination."""
    left = matrices.copy()
    good = np.ones(len(left), dtype=np.bool_)
    for k in range(left.shape[1]):
        pivot = left[:, k, k]
        good &= pivot > 0
        safe = np.where(good, pivot, 1.0)
        left[:, k + 1 :, k + 1 :] -= left[:, k + 1 :, k, None] * left[:, None, k, k + 1 :] / safe[:, None, None]
    return good


def _gibbs(noisy: NoisyMoments, generator: np.random.Generator) -> tuple[Array, float]:
    """Draws of S row by row in many chains, and the largest R-hat of the coefficients and the residual variance.

    Chains that do not agree after the first sweeps go on four times, then sixteen times as long before they are given up.
    """
    size = len(noisy.matrix)
    states = np.stack([_start(noisy, generator) for _ in range(_CHAINS)])
    for _ in range(_BURN):
        _sweep(states, noisy, generator)
    d, rhat = size - 1, np.inf
    found = np.empty((_CHAINS, 0, size, size))
    for sweeps in (_SWEEPS, 3 * _SWEEPS, 12 * _SWEEPS):
        more = np.empty((_CHAINS, sweeps, size, size))
        for sweep in range(sweeps):
            _sweep(states, noisy, generator)
            more[:, sweep] = states
        found = np.concatenate([found, more], axis=1)
        b = np.linalg.solve(found[..., :d, :d], found[..., :d, d][..., None])[..., 0]
        rest = found[..., d, d] - np.einsum("csi,csi->cs", found[..., :d, d], b)
        rhat = max(_rank_rhat(series) for series in (*np.moveaxis(b, -1, 0), rest))
        if rhat < AGREED:
            break
    thin = found.shape[1] // _SWEEPS
    return found[:, ::thin].reshape(-1, size, size), rhat


def _start(noisy: NoisyMoments, generator: np.random.Generator) -> Array:
    """A positive definite matrix near the release."""
    own = noisy.matrix + _noise(noisy, generator, 1)[0]
    least = max(noisy.square.scale, 1.0)
    diagonal = np.maximum(np.diag(own), least)
    if noisy.fixed:
        diagonal[0] = noisy.n
    off = own - np.diag(np.diag(own))
    for shrink in 0.5 ** np.arange(60.0):
        made = shrink * off + np.diag(diagonal)
        if np.linalg.eigvalsh(made)[0] > 1e-9 * diagonal.max():
            return np.asarray(made)
    return np.asarray(np.diag(diagonal))


def _sweep(states: Array, noisy: NoisyMoments, generator: np.random.Generator) -> None:
    """Each row of each chain's S (chains, D, D), entry by entry from the noise's distribution where S stays positive definite, in place.

    With the other rows' block A held, B = A^-1, r the row beside its diagonal d, S is positive definite where r'B r < d. In one entry of r
    that is an interval about the zero of its derivative, and in d a half-line, so that one inverse serves a whole row.
    """
    size = states.shape[1]
    u = generator.random((size, size, len(states)))
    for i in range(size):
        others = [k for k in range(size) if k != i]
        inverse = np.linalg.inv(states[:, others][:, :, others])
        row, d = states[:, i, others], states[:, i, i]
        slope = np.matmul(inverse, row[..., None])[..., 0]
        reached = np.einsum("ck,ck->c", slope, row)
        for k, j in enumerate(others):
            curve, old = inverse[:, k, k], row[:, k]
            middle = old - slope[:, k] / curve
            # strictly inside: the ends are singular
            room = np.sqrt(np.maximum(slope[:, k] ** 2 + curve * (d - reached), 0.0)) / curve * (1 - 1e-10)
            centre = noisy.matrix[i, j]
            drawn = centre + _truncated(noisy.off, middle - room - centre, middle + room - centre, u[i, k])
            drawn = np.minimum(np.maximum(drawn, middle - room), middle + room)
            step = drawn - old
            reached = reached + step * (2 * slope[:, k] + step * curve)
            slope = slope + step[:, None] * inverse[:, :, k]
            row[:, k] = drawn
        states[:, i, others] = states[:, others, i] = row
        if not (noisy.fixed and i == 0):
            least = np.einsum("ck,ckl,cl->c", row, inverse, row)
            centre = noisy.matrix[i, i]
            drawn = centre + _truncated(noisy.square, least - centre, np.full(len(d), np.inf), u[i, -1])
            states[:, i, i] = np.maximum(drawn, least + 1e-12 * np.maximum(least, noisy.square.scale))


def _truncated(law: NoiseLaw, low: Array, high: Array, u: Array) -> Array:
    """Draws of the noise between low and high from uniform ones, by its distribution function from whichever side is nearer."""
    flip = low > 0
    a, b = np.where(flip, low, -high), np.where(flip, high, -low)
    # by symmetry an interval [a, b] whose far end is on the right; tails keep their digits
    upper, lower = law.tail(a), law.tail(b)
    tail = np.minimum(np.maximum(lower + u * (upper - lower), 1e-300), 1.0)
    if law.name == "normal":
        z = -law.scale * special.ndtri(tail)
    else:
        z = np.where(tail <= 0.5, -law.scale * np.log(2 * tail), law.scale * np.log(np.maximum(2 * (1 - tail), 1e-300)))
    z = np.minimum(np.maximum(z, a), b)
    return np.asarray(np.where(flip, z, -z))


def _rank_rhat(chains: Array) -> float:
    """Rank-normalized split R-hat, of the values and of their distance from the median, the larger (Vehtari et al. 2021)."""
    folded = np.abs(chains - np.median(chains))
    return max(_split_rhat(chains), _split_rhat(folded))


def _split_rhat(chains: Array) -> float:
    half = chains.shape[1] // 2
    split = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    ranks = np.argsort(np.argsort(split.ravel())).reshape(split.shape) + 1.0
    z = special.ndtri((ranks - 0.375) / (split.size + 0.25))
    within = float(z.var(axis=1, ddof=1).mean())
    between = float(z.mean(axis=1).var(ddof=1)) * half
    return float(np.sqrt(((half - 1) / half * within + between / half) / within))
