"""R squared and the residual standard deviation from noisy second moments, with intervals that assume nothing of tails.

RSS = q - 2 theta'b + theta'A theta and ESS = v'A v, v the line about its mean. Their errors have three parts:

- the noise of A, b and q, known;
- the error of theta, which moves ESS by 4 v'A V A v + 2 tr((VA)^2) and RSS in second order only;
- the sampling of e^2 and of (f - mean)^2, whose fourth moments are at most the largest square that bounds allow times RSS and ESS.

Errors of ESS and of RSS move log(1 - R squared) separately, and the squares of these margins add up (MOVER: Zou, Donner 2008). So an
error far larger than RSS is allowed for, too. A dash is printed where every value remains possible.

R squared and the residual standard deviation of a least-squares line, each with an interval.

R squared is ESS/(ESS + RSS), T = ESS + RSS. ESS = c'A c is the sum of squares of the line about its mean, c'v, less what noise and
sampling add to it on average. RSS is that of residuals, limited at sizes up to which their scores are counted (`limits`). Errors:

sampling : a record moves R squared by g/T, g = (1 - R^2) y^2 - r^2, y the response about its mean, r its residual.
    It moves R by h/T, h = g/(2 R), which stays what it is where R is 0. Sums of h^2 are released (`sums/scores.Influences`), so that no
    distribution of residuals or features is assumed.
noise : of A and b by ESS, 4 (Ac)'V(Ac) + the noise of c'A c, of RSS separately.
limits : what RSS may have lost beyond its limit, at most, if tails fall as fast as those of scores are assumed to.
both : in second order 2 tr((AV)^2), V the covariance of c: all that there is where R is 0.

Each part moves log(1 - R^2) separately, and the squares of these margins add up (MOVER: Zou, Donner 2008), so that noise far larger
than RSS is allowed for, too. Of a correlation, the signed R of one feature, it is the arc tangent (Fisher 1915). Sources: the influence
of a correlation (Devlin, Gnanadesikan, Kettenring 1975), here of the line of several features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import atanh, exp, isnan, log, nan, sqrt, tanh
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.core import Release
from confide.methods.regression.evidence.normal_equations import Fit, Line
from confide.methods.regression.evidence.sandwich import Sandwich
from confide.methods.regression.least_squares.sums import Layout, Limits, Metric, line_range
from confide.methods.regression.sums.whitened_rows import Frame
from confide.results.pages.table import DASH, with_interval
from confide.schema import ModelMatrix
from confide.sums.coding import BOUND

_SDS = 1.959963984540054
# 1 - R^2 is never taken to be below this; a share as near to 1 as that is all.
_LEAST = 1e-9


@dataclass(frozen=True)
class ResidualVariance:
    """R squared with its interval, NaN where that says nothing; and the residual standard deviation with its interval, in half-ranges.

    The standard deviation is NaN where its interval reaches 0 or what it may be at most, 1.
    """

    share: float = nan
    interval: tuple[float, float] = (nan, nan)
    residual_sd: float = nan
    sd_interval: tuple[float, float] = (nan, nan)


def explained(fitted: Fit, line: Line, covariance: Array, low: Array, high: Array, cap: float) -> ResidualVariance:
    """R squared from a fit and the covariance of theta (p, p).

    low, high (p - 1,): from where to where x~ goes; cap: the largest |z|^2 that has full weight. R squared is about the mean with an
    intercept, about the line y = 0 without (as in statsmodels).
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


def _bounded(line: tuple[float, float], rest: tuple[float, float], count: float) -> ResidualVariance:
    (ess, up), (rss, off) = line, rest
    least, most = max(rss - off, 0.0), max(rss + off, 1e-12)
    share, interval = share_of(ess, up, rss, (off, off))
    if least <= 0 or most >= count:
        return ResidualVariance(share, interval)
    return ResidualVariance(share, interval, sqrt(max(rss, 0.0) / count), (sqrt(least / count), sqrt(most / count)))


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
    ('0.300 [0.251, 0.345]', 'n/a [0.000, 0.010]', 'n/a (noise hides it)')
    """
    if isnan(low):
        return f"{DASH} (noise hides it)"
    return f"{DASH if isnan(share) else f'{share:.3f}'} [{low:.3f}, {high:.3f}]"


_Z = 1.959963984540054
# Where influences are limited: the noise of their squares as a part of them; sds of residual and line.
_NOISE, _FAR_SDS = 0.25, 3.5
# A share as near to 1 as this is all; instead of 0 under a logarithm.
_ALL, _NONE = 1 - 1e-9, 1e-300


@dataclass(frozen=True)
class Influence:
    """How influences on R are measured.

    line : tuple of float
        c in v.
    share : float
        R^2, to the extent that it is known.
    reach : float
        Beyond which |h| is limited; of a unit, the sum over its rows.
    lost : float
        About what the reach of q takes from it.
    """

    line: tuple[float, ...]
    share: float
    reach: float
    lost: float = 0.0

    @classmethod
    def of(cls, design: ModelMatrix, frame: Frame, metric: Metric, gram: Array, rss: float) -> Influence:
        """At the line of a frame, from the noisy A and the noisy sum of squared residuals; |h| as large as the public box allows."""
        matrix, kept = metric.matrix, len(gram)
        axis, line = np.linalg.solve(matrix.T, np.eye(len(matrix))[0]), np.linalg.solve(matrix.T, frame.line)
        at = axis[:kept] @ gram
        mean = float(at @ line[:kept]) / max(float(at @ axis[:kept]), 1.0)
        centred = line - axis * mean
        ess = max(float(centred[:kept] @ gram @ centred[:kept]), 0.0)
        share = float(np.clip(ess / max(ess + max(rss, 0.0), _LEAST), _LEAST, 1 - _LEAST))
        low, high = line_range(design, Layout.of(design), frame)
        return cls(
            tuple(map(float, centred)),
            share,
            _largest(share, (low - mean, high - mean), (-1.0 - mean, 1.0 - mean)) / (2 * sqrt(share)),
        )

    def limited(self, limits: Limits, count: float, mu: float, rows: int) -> Influence:
        """With a reach where the noise of their squares is a quarter of those of normal records, or residual and line are 3.5 SDs out.

        mu: of the sum, for one record; rows: of a unit.
        """
        far = max(_FAR_SDS**2 * (sqrt(self.share) + sqrt(1 - self.share)), sqrt(_NOISE * mu * count))
        reach = max(far * limits.scale**2, _LEAST)
        return replace(self, reach=rows * min(reach, self.reach), lost=limits.lost)

    @property
    def public(self) -> dict[str, Array]:
        """What a reading needs, by name."""
        return {"influence": np.array([self.share, self.reach, self.lost])}


def _largest(share: float, line: tuple[float, float], response: tuple[float, float]) -> float:
    """The largest |-s y^2 + 2 f y - f^2| for f and y in these ranges: at corners, or where it is flat along an edge."""
    places = [(f, y) for f in line for y in response]
    places += [(f, min(max(f / share, response[0]), response[1])) for f in line]
    places += [(min(max(y, line[0]), line[1]), y) for y in response]
    return max(max(abs(-share * y * y + 2 * f * y - f * f) for f, y in places), _LEAST)


@dataclass(frozen=True)
class RSquared:
    """R squared, its 95% interval (NaN where it has none), and the facts that a table prints; r: what a correlation is read from."""

    share: float
    interval: tuple[float, float]
    facts: tuple[tuple[str, str], ...]
    r: Signed | None = None

    @classmethod
    def nothing(cls, why: str) -> RSquared:
        """A dash for both, with the reason."""
        return cls(nan, (nan, nan), (("R-squared", f"{DASH} ({why})"), ("Residual sd", f"{DASH} ({why})")))

    @classmethod
    def of(cls, s: Sandwich, release: Release, public: Mapping[str, Any], *, unit: float) -> RSquared:
        """From sums whose A is positive definite. unit: half the width of the response's bounds."""
        share, reach, lost = map(float, np.asarray(public["influence"]))
        line = np.linalg.solve(np.asarray(public["metric"]).T, np.asarray(public["meat_line"]))[: len(s.gram)]
        residual = float(np.asarray(public["square_limit"])[0])
        noisy, steps = release["influence"], reach**2 / BOUND
        # half a noise sd more: a variance that noise makes too small costs more than one that it makes too large
        sampling = max(float(noisy.decode()[0]), 0.0) * steps + sqrt(noisy.variance) * steps / 2
        ess = _LinePart.of(s, line, float(np.asarray(public["kappa"])[0]))
        rss = sum(s.residual_sum)
        own = Signed(sqrt(ess.raw), ess.root_error, rss, s.sd_square, lost, sqrt(sampling))
        # what the population's line leaves more than the sample's
        rss += float(np.trace(s.bread @ s.meat))
        error = sqrt(s.sd_square**2 + residual**2 * max(rss, 0.0))
        sds = [unit * sqrt(max(end, 0.0) / s.count) for end in (rss, rss - _Z * error, rss + _Z * error + lost)]
        facts = (("Residual sd", with_interval(*sds) if rss > 0 else f"{DASH} (noise hides it)"),)
        off = _Z * s.sd_square
        whole = max(ess.corrected, 0.0) + max(rss, 0.0)
        more = _Z * 2 * sqrt(share * sampling) / max(whole, _NONE)
        squared, (low, high) = share_of(ess.corrected, _Z * ess.error, rss, (off, off + lost), more)
        return cls(squared, (low, high), (("R-squared", share_text(squared, low, high)), *facts), own)


@dataclass(frozen=True)
class Signed:
    """R of one feature: the line's part B of the response, sqrt(ESS), with the SD of its noise, and RSS with the SD of its noise.

    lost: what the limit of RSS took; of_records: the sampling SD of h.
    """

    line: float
    of_line: float
    rss: float
    of_rss: float
    lost: float
    of_records: float

    @property
    def r(self) -> float:
        """The estimate of |r|."""
        return self._at(self.line, self.rss)

    def interval(self, z: float) -> tuple[float, float]:
        """Of r, at this normal quantile: each part of the error moves the arc tangent separately, and squares add up (MOVER)."""
        middle = atanh(self.r)
        own = z * self.of_records / max(self.line**2 + max(self.rss, 0.0), _NONE) / (1 - self.r**2)

        def end(side: int) -> float:
            parts = (
                atanh(self._at(self.line + side * z * self.of_line, self.rss)) - middle,
                atanh(self._at(self.line, self.rss - side * z * self.of_rss + (self.lost if side < 0 else 0.0)))
                - middle,
                own,
            )
            return tanh(middle + side * sqrt(sum(part**2 for part in parts)))

        return end(-1), end(1)

    @staticmethod
    def _at(line: float, rss: float) -> float:
        found = line / max(sqrt(line**2 + max(rss, 0.0)), _NONE)
        return min(max(found, -_ALL), _ALL)


@dataclass(frozen=True)
class _LinePart:
    """ESS as it is released, and corrected for what the line took from noise and sampling; its errors.

    error: of ESS, but for first-order sampling; root_error: of its root, by noise alone. What the cap of A took is put back, evenly
    over all directions, and may be none or twice as much (1.96 SDs).
    """

    raw: float
    corrected: float
    error: float
    root_error: float

    @classmethod
    def of(cls, s: Sandwich, line: Array, kappa: float) -> _LinePart:
        """line: theta in the whitened features; kappa: the share of A that its cap took, at most."""
        centred = line - s.axis * float(s.axis @ s.gram @ line) / s.count
        slope = s.gram @ centred
        raw = max(float(centred @ slope), _NONE) * (1 + kappa)
        noise = s.bread @ s.noise(s.delta) @ s.bread
        moved = s.gram @ (noise + s.bread @ s.meat @ s.bread)
        first = (
            4 * max(float(slope @ noise @ slope), 0.0)
            + (s.sd_gram * float(centred @ centred)) ** 2
            + (kappa * raw / _Z) ** 2
        )
        second = 2 * max(float(np.trace(moved @ moved)), 0.0)
        return cls(raw, raw - float(np.trace(moved)), sqrt(first + second), sqrt(first / raw) / 2)
