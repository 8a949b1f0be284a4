"""R squared from noisy second moments, and its interval by a parametric bootstrap of the released statistics.

The bootstrap draws second moments of jointly normal records around the released ones (Wishart, with the noisy count as its
degrees of freedom) and adds the release's own noise, so that the sampling of records and the privacy noise are both in it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from confide.regression.normal_equations import Line, NoisyMoments

__all__ = ["explained_share", "r_squared", "r_squared_interval"]

Array = NDArray[np.float64]
_DRAWS = 1000


def r_squared(moments: NoisyMoments, line: Line) -> float:
    """1 - s2 n / total in [0, 1]: total about the mean with an intercept, about y = 0 without (as in statsmodels)."""
    return float(_statistic(_stack(moments), line, moments)[0].clip(0.0, 1.0))


def r_squared_interval(
    moments: NoisyMoments, line: Line, generator: np.random.Generator, alpha: float = 0.05
) -> tuple[float, float]:
    """Percentile interval for the weighted population's R squared, within [0, 1].

    Percentiles, not the basic bootstrap: the spread of the estimate grows with R squared, so the distribution must not be
    mirrored (simulated in benchmarks/r_squared.py, where the basic interval falls to .70 and the percentile one stays near .95).
    """
    draws = _statistic(_draw(_centre(moments), generator), line, moments)
    low, high = np.quantile(draws[np.isfinite(draws)], [alpha / 2, 1 - alpha / 2])
    return float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))


def explained_share(
    explained: tuple[float, float], residual: tuple[float, float], count: float, generator: np.random.Generator
) -> tuple[float, tuple[float, float]]:
    """R squared and its 95 % percentile interval from a line's variance and a residual variance that were released apart.

    explained, residual: each an estimate and the sd of its privacy noise; count: a noisy number of records. Records are taken to be not
    far from normal, so that either variance has 2 V^2 / n of sampling.
    """
    size = max(count, 2.0)

    def draws(estimate: float, sd: float) -> Array:
        noisy = max(estimate, 0.0) * generator.chisquare(size, _DRAWS) / size + sd * generator.standard_normal(_DRAWS)
        return np.asarray(np.maximum(noisy, 0.0))

    line, rest = draws(*explained), draws(*residual)
    shares = line / np.maximum(line + rest, 1e-12)
    low, high = np.quantile(shares, [0.025, 0.975])
    parts = max(explained[0], 0.0), max(residual[0], 0.0)
    return parts[0] / max(sum(parts), 1e-12), (float(low), float(high))


def _stack(moments: NoisyMoments) -> Array:
    """[[A, b], [b', q]] as a stack of one, shape (1, p+1, p+1)."""
    whole = np.empty((1, len(moments.cross) + 1, len(moments.cross) + 1))
    whole[0, :-1, :-1] = moments.gram
    whole[0, :-1, -1] = whole[0, -1, :-1] = moments.cross
    whole[0, -1, -1] = moments.square
    return whole


def _statistic(whole: Array, line: Line, noise: NoisyMoments) -> Array:
    """R squared of a stack of moments (m, p+1, p+1); `noise` gives the sds for the correction of s2 (normal_equations.fit)."""
    gram, cross, square = whole[:, :-1, :-1], whole[:, :-1, -1], whole[:, -1, -1]
    basis, offset = line.basis, line.offset
    inverse = np.linalg.inv(basis.T @ gram @ basis)
    theta = offset + (inverse @ ((cross - gram @ offset) @ basis)[..., None])[..., 0] @ basis.T
    spread = basis @ inverse @ basis.T
    half = noise.sd_gram**2 / 2
    trace = (noise.sd_cross**2 + half * (theta**2).sum(axis=1)) * np.trace(spread, axis1=1, axis2=2) + half * _form(
        spread, theta
    )
    count = gram[:, 0, 0]
    rss = square - 2 * (theta * cross).sum(axis=1) + _form(gram, theta) + trace
    s2 = rss / np.maximum(count - basis.shape[1], 1.0)
    # without an intercept the line lies in offset + span(basis), and offset alone is the line y = 0
    total = (
        square - cross[:, 0] ** 2 / count
        if _has_intercept(line)
        else square - 2 * cross @ offset + _form(gram, np.broadcast_to(offset, theta.shape))
    )
    return np.asarray(1 - s2 * count / total)


def _form(matrices: Array, vectors: Array) -> Array:
    return np.asarray((vectors[:, None, :] @ matrices @ vectors[:, :, None])[:, 0, 0])


def _has_intercept(line: Line) -> bool:
    return bool(line.basis[0, 0] == 1.0 and not line.basis[1:, 0].any())


def _centre(moments: NoisyMoments) -> NoisyMoments:
    """The released moments with the covariance of (x~, t) made positive semi-definite: where the bootstrap draws from."""
    whole = _stack(moments)[0]
    count = max(whole[0, 0], 2.0)
    mean = whole[0, 1:] / count
    covariance = whole[1:, 1:] / count - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    covariance = (vectors * np.maximum(values, 1e-12)) @ vectors.T
    rebuilt = count * (covariance + np.outer(mean, mean))
    gram = moments.gram.copy()
    gram[0, 0] = count
    gram[1:, 1:] = rebuilt[:-1, :-1]
    return replace(
        moments, gram=gram, cross=np.append(moments.cross[0], rebuilt[:-1, -1]), square=float(rebuilt[-1, -1])
    )


def _draw(centre: NoisyMoments, generator: np.random.Generator) -> Array:
    """A stack of bootstrap moments around the centre: normal records, then the release's noise."""
    whole = _stack(centre)[0]
    size = len(whole)
    count = whole[0, 0]
    mean = whole[0, 1:] / count
    root = np.linalg.cholesky(whole[1:, 1:] / count - np.outer(mean, mean) + 1e-12 * np.eye(size - 1))
    triangle = np.tril(generator.standard_normal((_DRAWS, size - 1, size - 1)), -1)
    diagonal = np.arange(size - 1)
    triangle[:, diagonal, diagonal] = np.sqrt(
        generator.chisquare(np.maximum(count - 1 - diagonal, 1.0), (_DRAWS, size - 1))
    )
    half = root @ triangle
    means = mean + generator.standard_normal((_DRAWS, size - 1)) @ root.T / np.sqrt(count)
    drawn = np.empty((_DRAWS, size, size))
    drawn[:, 0, 0] = count
    drawn[:, 0, 1:] = drawn[:, 1:, 0] = count * means
    drawn[:, 1:, 1:] = half @ half.transpose(0, 2, 1) + count * means[:, :, None] * means[:, None, :]
    return drawn + _noise(centre, size, generator)


def _noise(moments: NoisyMoments, size: int, generator: np.random.Generator) -> Array:
    scale = np.full((size, size), moments.sd_gram / np.sqrt(2))
    np.fill_diagonal(scale, moments.sd_gram)
    scale[-1, :] = scale[:, -1] = moments.sd_cross
    scale[-1, -1] = moments.sd_square
    upper = np.triu(generator.standard_normal((_DRAWS, size, size)) * scale)
    return np.asarray(upper + np.triu(upper, 1).transpose(0, 2, 1))
