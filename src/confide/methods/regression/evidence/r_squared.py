"""R squared and the residual standard deviation from noisy second moments, with intervals that suppose nothing of tails.

RSS = q - 2 theta'b + theta'A theta and ESS = v'A v, v the line about its mean. Their errors have three parts: the noise of A, b and q,
known; the error of theta, which moves ESS by 4 v'A V A v + 2 tr((VA)^2) and RSS in second order only; and the sampling of e^2 and of (f
- mean)^2, whose fourth moments are at most the largest square that bounds allow times RSS and ESS. Errors of ESS and of RSS move log(1 - R
squared) each by itself, and the squares of these margins add up (MOVER: Zou, Donner 2008), so that an error far larger than RSS is allowed
for, too. A dash stands where that leaves every value possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isnan, log, nan, sqrt

import numpy as np

from confide._arrays import Array
from confide.methods.regression.evidence.normal_equations import Fit, Line
from confide.results.pages.table import DASH

__all__ = ["Explained", "explained", "share_of", "share_text"]

_SDS = 1.959963984540054
# 1 - R^2 is never taken to be below this; a share as near to 1 as that is all.
_LEAST = 1e-9


@dataclass(frozen=True)
class Explained:
    """R squared with its interval, NaN where that says nothing; and the residual standard deviation with its interval, in half-ranges.

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
    share, interval = share_of(ess, up, rss, (off, off))
    if least <= 0 or most >= count:
        return Explained(share, interval)
    return Explained(share, interval, sqrt(max(rss, 0.0) / count), (sqrt(least / count), sqrt(most / count)))


def share_of(
    line: float, of_line: float, rss: float, of_rss: tuple[float, float], more: float = 0.0
) -> tuple[float, tuple[float, float]]:
    """R squared, NaN where noise left nothing of ESS or of RSS, and its interval, NaN where it may be anything.

    line: ESS, of_line its margin; of_rss: by how much RSS may be less and more; more: by how much R squared may be off besides.

    >>> share, (low, high) = share_of(30.0, 6.0, 70.0, (7.0, 7.0))
    >>> round(share, 3), round(low, 3), round(high, 3)
    (0.3, 0.251, 0.345)
    >>> share_of(30.0, 60.0, 0.0, (700.0, 700.0))
    (nan, (nan, nan))
    """
    if not max(line, 0.0) + max(rss, 0.0) > 0:
        return nan, (nan, nan)

    def rest(line: float, rss: float) -> float:
        """log(1 - R^2)."""
        left, right = max(line, 0.0), max(rss, 0.0)
        return log(max(right / max(left + right, 1e-300), _LEAST))

    middle = rest(line, rss)

    def end(side: int) -> float:
        moved = line + side * of_line, rss - of_rss[0] if side > 0 else rss + of_rss[1]
        if line <= 0 or rss <= 0:  # at its floor one hides how far the other moves R squared: both move together
            return min(max(1 - exp(rest(*moved)) + side * more, 0.0), 1.0)
        parts = (rest(moved[0], rss) - middle, rest(line, moved[1]) - middle, more / exp(middle))
        return 1 - exp(min(middle - side * sqrt(sum(part**2 for part in parts)), 0.0))

    low, high = end(-1), end(1)
    if low <= 0 and high >= 1 - 2 * _LEAST:
        return nan, (nan, nan)
    return (1 - exp(middle) if line > 0 and rss > 0 else nan), (low, high)


def share_text(share: float, low: float, high: float) -> str:
    """R squared and its interval as a table prints them.

    >>> share_text(0.3, 0.251, 0.345), share_text(nan, 0.0, 0.01), share_text(nan, nan, nan)
    ('0.300 [0.251, 0.345]', '- [0.000, 0.010]', '- (noise hides it)')
    """
    if isnan(low):
        return f"{DASH} (noise hides it)"
    return f"{DASH if isnan(share) else f'{share:.3f}'} [{low:.3f}, {high:.3f}]"
