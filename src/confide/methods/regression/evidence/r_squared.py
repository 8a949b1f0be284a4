"""R squared and the residual standard deviation from noisy second moments, with intervals that suppose nothing of tails.

RSS = q - 2 theta'b + theta'A theta and ESS = v'A v, v the line about its mean. Their errors have three parts: the noise of A, b and q,
known; the error of theta, which moves ESS by 4 v'A V A v + 2 tr((VA)^2) and RSS in second order only; and the sampling of e^2 and of (f
- mean)^2, whose fourth moments are at most the largest square that bounds allow times RSS and ESS. R squared is given at both ends of
1.96 sds of either, and only where that interval is at most .2 wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from confide._arrays import Array
from confide.methods.regression.evidence.normal_equations import Fit, Line

__all__ = ["Explained", "explained", "explained_share"]

_DRAWS = 1000
_SDS = 1.959963984540054
# An interval for R squared wider than this says nothing worth printing.
_WIDEST = 0.2


@dataclass(frozen=True)
class Explained:
    """R squared with its interval, NaN where that is too wide; and the residual standard deviation with its interval, in half-ranges.

    The standard deviation is NaN where its interval reaches 0 or what it may be at most, 1.
    """

    share: float = nan
    interval: tuple[float, float] = (nan, nan)
    residual_sd: float = nan
    sd_interval: tuple[float, float] = (nan, nan)


def explained(fitted: Fit, line: Line, covariance: Array, low: Array, high: Array, cap: float) -> Explained:
    """From a fit and the covariance of theta (p, p); low, high (p - 1,): from where to where x~ goes; cap: the largest |z|^2 that counts
    in full.

    R squared is about the mean with an intercept, about the line y = 0 without (as in statsmodels).
    """
    moments, theta = fitted.moments, fitted.theta
    count, gram = max(moments.count, 1.0), (moments.gram + moments.gram.T) / 2
    rss = moments.square - 2 * float(theta @ moments.cross) + float(theta @ gram @ theta)
    rss += float(np.trace(fitted.bread @ fitted.noise))
    size = float(theta @ theta)
    ends = theta[1:, None] * np.stack([low, high], axis=-1)
    longest = min(max(abs(theta[0] + ends.max(axis=1).sum()), abs(theta[0] + ends.min(axis=1).sum())), sqrt(cap * size))
    noise = moments.sd_square**2 + 4 * moments.sd_cross**2 * size + (moments.sd_gram * size) ** 2
    rss_error = _SDS * sqrt(noise + (1 + longest) ** 2 * max(rss, 0.0))
    middle = gram.copy()
    v = theta - line.offset
    if line.basis[0, 0] == 1.0 and not line.basis[1:, 0].any():
        middle -= np.outer(gram[0], gram[0]) / count
        v = np.concatenate([[0.0], theta[1:]])
    reach = min(float(np.abs(np.diff(ends, axis=1)).sum()) + abs(float(v[0])), 2 * sqrt(cap * float(v @ v)))
    slope = middle @ v
    ess = float(v @ slope) - float(np.sum(middle * covariance))
    moved = 4 * float(slope @ covariance @ slope) + 2 * float(np.sum((covariance @ middle) * (covariance @ middle).T))
    ess_error = _SDS * sqrt(max(moved, 0.0) + (moments.sd_gram * float(v @ v)) ** 2 + reach**2 * max(ess, 0.0))
    return _bounded((ess, ess_error), (rss, rss_error), count)


def _bounded(line: tuple[float, float], rest: tuple[float, float], count: float) -> Explained:
    (ess, up), (rss, off) = line, rest
    least, most = max(rss - off, 0.0), max(rss + off, 1e-12)
    low = max(ess - up, 0.0) / (max(ess - up, 0.0) + most)
    high = max(ess + up, 0.0) / max(max(ess + up, 0.0) + least, 1e-12)
    share, interval = max(ess, 0.0) / max(max(ess, 0.0) + max(rss, 0.0), 1e-12), (low, high)
    if not high - low <= _WIDEST:
        share, interval = nan, (nan, nan)
    if least <= 0 or most >= count:
        return Explained(share, interval)
    return Explained(share, interval, sqrt(max(rss, 0.0) / count), (sqrt(least / count), sqrt(most / count)))


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
