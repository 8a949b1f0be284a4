"""The posterior of a normal linear model from a noisy matrix of second moments: S = sum a a', a = ([1,] x_1, ..., x_p, y) in [-1, 1].

With S = [[Q, c], [c', t]] the model says exactly c ~ N(Q b, s^2 Q) and r = t - c'Q^-1 c ~ s^2 chi^2 with n - d degrees of freedom, d
coefficients, so that with the prior ds^2 db (flat) and |Q| for the design, S given the release is the noise's distribution centred at the
release, on positive definite matrices. Then, given S, s^2 = r/chi^2_{n-d-2}, b ~ N(Q^-1 c, s^2 Q^-1): each coefficient's posterior is the
mean, over draws of S, of Student's t with n - d - 2 degrees of freedom.

Draws of S: the release plus fresh noise, kept where positive definite. Where fewer than 2 % are, single entries are drawn in turn, row by
row, from the noise's distribution on the interval that keeps S positive definite (Gibbs); it is judged by rank-normalised R-hat. Draws of
two sweeps are all but independent, so that many chains are short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.methods.intervals.posteriors.laws import NoiseLaw
from confide.methods.intervals.posteriors.marginals import StudentMixture

__all__ = ["AGREED", "LinePosterior", "NoisyMoments", "line_posterior"]

Array = NDArray[np.float64]

_KEPT, _BATCH, _TRIED, _LEAST_SHARE = 4_000, 4_000, 10_000, 0.02
_CHAINS, _SWEEPS, _BURN = 32, 125, 75
#: Chains whose R-hat is below it agree.
AGREED = 1.01


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """The released matrix S (D, D) and the law of each entry's noise: `off` beside the diagonal, `square` on it.

    fixed: whether S[0, 0] = n is public and has no noise.
    """

    matrix: Array
    off: NoiseLaw
    square: NoiseLaw
    n: int
    fixed: bool


@dataclass(frozen=True, eq=False)
class LinePosterior:
    """Posterior of the coefficients b: centres (draws, d), scales (draws, d) and df of each draw's Student t, factor (draws, d, d).

    sampler: "direct" or "gibbs"; rhat: the largest one, 1 for direct draws; acceptance: share of positive definite draws; spread: the share
    of draws in which the terms' own part of S is, without the response.
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
    """Rank-normalised split R-hat, of the values and of their distance from the median, the larger (Vehtari et al. 2021)."""
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
