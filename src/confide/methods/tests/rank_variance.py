"""Variances of rank statistics from two noisy rounds (`rank_reading` says what they are)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from confide._arrays import Array
from confide.methods.tests.rank_reading import Scored, Shape, mid, monotone_cdf

__all__ = ["Contrast", "one_sample", "several_groups", "two_groups"]


@dataclass(frozen=True, eq=False)
class Contrast:
    """An estimate with 0 as its null value: its variances by sampling and by noise, and degrees of freedom."""

    estimate: float
    sampling: float
    noise: float
    df: float

    @property
    def se(self) -> float:
        return sqrt(self.sampling + self.noise)


def _shrunken(found: float, null: Array) -> float:
    """What is found beyond its average under equal laws, shrunken by what it varies there (James, Stein)."""
    beyond, sd = found - float(null.mean()), float(null.std())
    return max(0.0, 1.0 - sd * sd / beyond**2) * beyond if beyond else 0.0


def _variance(values: Array, shares: Array) -> Array:
    """Of values over bins with these shares, over the last axis."""
    mean = (values * shares).sum(axis=-1)
    return np.asarray((values * values * shares).sum(axis=-1) - mean * mean)


def _through_scores(masses: Array, shape: Shape, size: float) -> Array:
    """Noise variance of the integral of H over masses (..., m): an error of a count moves H above it."""
    tails = np.cumsum(masses[..., ::-1], axis=-1)[..., ::-1] - masses / 2
    k = len(shape.counts)
    return np.asarray(k * shape.unit / max(size, 1.0) ** 2 * ((tails @ shape.strategy.covariance) * tails).sum(axis=-1))


def two_groups(shape: Shape, scored: Scored, generator: np.random.Generator) -> Contrast:
    """P(Y1 > Y2) + P(Y1 = Y2)/2 - 1/2."""
    n, w = scored.n, scored.weights
    scale = _scale(shape, scored)
    estimate = float(scale * (scored.means[0] - scored.means[1]) / 2)
    equal = scale**2 * scored.spread / 4
    ratio = np.sqrt(scored.spreads / scored.spread)
    own = equal * (np.maximum(ratio - w, 0.0) / w[::-1]) ** 2
    shares = np.diff(shape.pooled, prepend=0.0)
    null = monotone_cdf(shape.noisy(shares, n, generator))
    parts, through = _pair(shape.groups, n, shape, scored.all)
    null_parts, null_through = _pair(null, n, shape, scored.all)
    by_shape = equal * float((1 / n).sum()) + _shrunken(float(parts.sum()), null_parts.sum(axis=-1))
    by_spread = own / n
    sampling = max(float(by_spread.sum()), by_shape)
    noise = scale**2 * float(scored.noise.sum()) / 4 + max(_shrunken(float(through), null_through), 0.0)
    noise += (shape.lumped(scored.all) * estimate) ** 2
    return Contrast(estimate, sampling, noise, _welch(by_spread, n, sampling + noise))


def _scale(shape: Shape, scored: Scored) -> float:
    """What noise in H has shortened scores by."""
    ideal = (1.0 - shape.ties(scored.all)) / 3
    return float(np.clip(sqrt(ideal / scored.spread), 1.0, 2.0))


def _pair(f: Array, n: Array, shape: Shape, size: float) -> tuple[Array, Array]:
    """(Var F_2(Y1)/n_1, Var F_1(Y2)/n_2), (..., 2), and the variance by noise of H, of distribution functions (..., 2, m)."""
    shares, middle = np.diff(f, axis=-1, prepend=0.0), mid(f)
    parts = _variance(middle[..., ::-1, :], shares) / n
    return parts, _through_scores(shares[..., 0, :] - shares[..., 1, :], shape, size)


def _welch(parts: Array, n: Array, total: float) -> float:
    """Degrees of freedom by Satterthwaite; noise of known size has infinitely many."""
    below = float((parts**2 / np.maximum(n - 1.0, 1.0)).sum())
    return max(total**2 / below, 1.0) if below > 0 else inf


def one_sample(shape: Shape, scored: Scored, generator: np.random.Generator) -> Contrast:
    """P(d + d' > 0) + P(d + d' = 0)/2 - 1/2. shape: of sizes |d|, below 0 and above; scored: all records, s the sum of signed scores."""
    n = scored.all
    # scores are H(|d|) in [0, 1], whose square has the mean 1/3 less what ties take
    ideal = (1.0 - shape.ties(n)) / 3
    square = float(np.clip(1.0 - scored.q.sum() / n, 0.02, 1.0))
    scale = float(np.clip(sqrt(ideal / square), 1.0, 2.0))
    estimate = float(scale * scored.s.sum() / n)
    equal = scale**2 * square / n
    shares = np.diff(shape.pooled, prepend=0.0)
    sizes = np.array([n / 2, n / 2])
    found, through = _signed(shape.counts, shape, n)
    null, null_through = _signed(shape.noisy(shares, sizes, generator), shape, n)
    sampling = max(equal + _shrunken(float(found), null), equal / 4)
    noise = scale**2 * (scored.v1 + estimate**2 * scored.v0) / n**2 + max(_shrunken(float(through), null_through), 0.0)
    noise += (shape.lumped(n) * estimate) ** 2
    return Contrast(estimate, sampling, noise, max(n - 1.0, 1.0))


def _signed(counts: Array, shape: Shape, size: float) -> tuple[Array, Array]:
    """4 Var F(-d)/n and the variance by noise of H, from noisy counts (..., 2, m) of sizes below 0 and above."""
    sizes = np.maximum(counts.sum(axis=-1), 0.0)
    masses = (
        np.diff(monotone_cdf(counts), axis=-1, prepend=0.0)
        * (sizes / np.maximum(sizes.sum(axis=-1, keepdims=True), 1.0))[..., None]
    )
    below, above = masses[..., 0, :].copy(), masses[..., 1, :].copy()
    # the law of d from the largest size below 0 to the largest above; what is 0 stands half on either side
    below[..., 0] = above[..., 0] = (below[..., 0] + above[..., 0]) / 2
    law = np.concatenate([below[..., ::-1], above], axis=-1)
    middle = np.cumsum(law, axis=-1) - law / 2
    variance = 4 * _variance(middle[..., ::-1], law) / max(size, 1.0)
    return variance, _through_scores(above - below, shape, size)


def several_groups(shape: Shape, scored: Scored, generator: np.random.Generator) -> tuple[float, tuple[float, float]]:
    """F of mean scores weighted by the inverse of their variances, and its degrees of freedom, of the groups that are told from empty.

    A group's scores have the pooled variance under equal laws; one that is seen to be larger, by more than a noise sd, counts, so that
    unequal spreads are found by little more than the level where sizes are unequal, too. The noise of H counts as in `two_groups`.
    """
    # all groups made the scores, whose noise is therefore theirs
    kept, own = scored.told, scored.of(scored.told)
    seen = own.spreads - np.sqrt(own.v1 * (1 + 4 * own.means**2)) / own.n
    shares = np.diff(shape.pooled, prepend=0.0)
    null = monotone_cdf(shape.noisy(shares, scored.n, generator))
    through, null_through = (
        _through_scores(np.diff(f, axis=-1, prepend=0.0) - shares, shape, scored.all) for f in (shape.groups, null)
    )
    pairs = zip(through[kept], null_through.T[kept], strict=True)
    rough = np.array([_shrunken(float(found), drawn) for found, drawn in pairs])
    variances = np.maximum(own.spread, seen) / own.n + own.noise + 4 * np.maximum(rough, 0.0)
    weights = 1 / variances
    middle = float((weights * own.means).sum() / weights.sum())
    k = len(own.n)
    return float((weights * (own.means - middle) ** 2).sum() / (k - 1)), (k - 1.0, max(own.all - k, 1.0))
