"""Nested models from one release: F, AIC and BIC of a smaller model against the full one, with the noise that is in each.

All of it follows from the released sums A, b and q. Write theta for the full line, B = A^-1 on its line, R theta + r for the dropped
coefficients, h for their estimates and W = (R B R')^-1. The smaller line is theta_s = theta - d, d = B R' W h, and

    a = RSS_s - RSS = h'W h,    r = RSS,    F = (a/q)/(r/(n - p)),    n log(1 + a/r) = what the log-likelihood loses, twice.

Noise enters a and r in first order by da = 2 d'db + <S, dA>, S = theta_s theta_s' - theta theta', and dr = dq - 2 theta'db +
theta'dA theta. In second order it enters by h, whose noise adds tr(W V) to a on average, V = R B G B R', and 2 tr((W V)^2) to its
variance. The mean is taken off. What d is by noise alone is in the first-order part too, twice over: 2 tr((W V)^2) is taken from it, and
the variance is at least that. Given the records h'W h is a sum of squares of normals, about v times a noncentral chi-square of k degrees,
k = tr(W V)/v. Its noncentrality gives the interval of a. v is such that the variance is that of h'W h, which depends on where h lies: a
rare level among idle terms has far more noise than they have. With h'W V W h less tr((W V)^2) for what the records have of it,
v = (2 tr((W V)^2) + 4 (h'W V W h - tr((W V)^2))_+)/(2 tr(W V) + 4 a). It is stretched by what S adds to the first order.
Margins of a and r add up in squares (MOVER: Zou, Donner 2008). So does that of n, whose noise is one of A's entries: BIC has q log n. Where
an end of a is 0, the least that records can have, the margin of n is added as it is, because the end itself moves with n.

The standard deviation of the noise and the interval say how far one release is from what the same records give without privacy. The
sampling of records is not in them: it is in the test, whose null distribution is `results.inference.simulated_null`. Source: Lin,
Slavkovic, Bhoomireddy 2025, section 6, proposes the three statistics; these formulas are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, log1p, sqrt

import numpy as np

from confide._arrays import Array
from confide._special import chndtrinc, ndtri
from confide.methods.regression.evidence.normal_equations import Fit
from confide.methods.regression.evidence.sandwich import Sandwich

# A residual sum of squares below so many sds of its noise says nothing of a ratio to it: its own 95% interval reaches 0 then. A higher
# number would keep those that noise has made large, and intervals would be too short for them.
_TOLD = 2.0

#: The criteria, in their order.
CRITERIA = ("f", "aic", "bic")


@dataclass(frozen=True, eq=False)
class Gap:
    """What a smaller model's residual sum of squares is above the full one's, with its noise.

    `square` is h'W h, `mean` what noise adds to it, `unit` and `degrees` v, stretched, and k. `covariance` (2, 2) is of the noise of a and
    r. `rss` is r, `count` and `coefficients` n and p, `left_out` q, `sd_count` the SD of the noise of n.
    """

    square: float
    mean: float
    unit: float
    degrees: float
    covariance: Array
    rss: float
    count: float
    coefficients: int
    left_out: int
    sd_count: float = 0.0

    @property
    def told(self) -> bool:
        """Whether the residual sum of squares is more than its noise."""
        return self.rss > _TOLD * sqrt(float(self.covariance[1, 1]))

    @property
    def _above(self) -> float:
        """a, which no records have below 0."""
        return max(self.square - self.mean, 0.0)

    def value(self, criterion: str) -> float:
        """F, or AIC or BIC less that of the full model."""
        return self._at(criterion, self._above, self.rss)

    def noise_sd(self, criterion: str) -> float:
        """The standard deviation of the privacy noise in `value`."""
        a, r = self._above, self.rss
        if criterion == "f":
            scale = self._spare / self.left_out / r
            gradient = np.array([scale, -scale * a / r])
        else:
            gradient = self.count * np.array([1, -a / r]) / (r + a)
        by_count = self._by_count(criterion) * self.sd_count
        return sqrt(max(float(gradient @ self.covariance @ gradient), 0.0) + by_count**2)

    def _by_count(self, criterion: str) -> float:
        """What the criterion changes by per record of n, where a/r stays."""
        part = self._above / self.rss
        if criterion == "f":
            return part / self.left_out
        return log1p(part) - (0.0 if criterion == "aic" else self.left_out / max(self.count, 1.0))

    def interval(self, criterion: str, alpha: float) -> tuple[float, float]:
        """What the criterion of the records may be, for privacy noise alone."""
        middle, a, r = self.value(criterion), self._above, self.rss
        normal = -float(ndtri(alpha / 2))
        off, by_count = normal * sqrt(float(self.covariance[1, 1])), normal * self._by_count(criterion) * self.sd_count
        # how far noise of n moves the criterion of models that fit alike: BIC's alone
        moved = normal * self.left_out * self.sd_count / max(self.count, 1.0) if criterion == "bic" else 0.0
        ends = []
        for share, side in ((1 - alpha / 2, 1), (alpha / 2, -1)):
            found = self._noncentral(share)
            end = self._at(criterion, found, r)
            # where r may be 0, a ratio to it has no upper end
            rest = self._at(criterion, a, r + side * off) - middle if a == 0 or r + side * off > 0 else np.inf
            end -= side * (float(np.linalg.norm([end - middle, rest, by_count])) - abs(end - middle))
            ends.append(end if found else end - side * moved)
        # no records have less than this
        return max(ends[0], self._at(criterion, 0.0, r) - moved), ends[1]

    def _noncentral(self, share: float) -> float:
        """The a at which so large a square has this probability of not being exceeded; 0 where it is less likely at any."""
        found = float(chndtrinc(self.square / self.unit, self.degrees, share))
        return self.unit * found if np.isfinite(found) and found > 1e-3 else 0.0

    @property
    def _spare(self) -> float:
        return max(self.count - self.coefficients, 1.0)

    def _at(self, criterion: str, a: float, r: float) -> float:
        if criterion == "f":
            return a / self.left_out / (r / self._spare)
        lost = self.count * log1p(a / r)
        return lost - self.left_out * (2 if criterion == "aic" else log(max(self.count, 1.0)))


@dataclass(frozen=True, eq=False)
class ModelSums:
    """A full model's line in released sums.

    `theta` (p,), `bread` (p, p), and `noise` (p, p), which is G. `rows` (k, p) and `estimates` (k,) are of the coefficients, in the data's
    units. `rss` is the residual sum of squares, corrected for noise, `count` the number of records; sd_gram, sd_cross, sd_square: of the
    noise.
    """

    theta: Array
    bread: Array
    noise: Array
    rows: Array
    estimates: Array
    rss: float
    count: float
    sd_gram: float
    sd_cross: float
    sd_square: float

    @classmethod
    def of_fit(cls, fitted: Fit, rows: Array, estimates: Array) -> ModelSums:
        """Of noisy normal equations."""
        own, moments = fitted, fitted.moments
        sds = moments.sd_gram, moments.sd_cross, moments.sd_square
        return cls(own.theta, own.bread, own.noise, rows, estimates, own.s2 * own.df, moments.count, *sds)

    @classmethod
    def of_sandwich(cls, s: Sandwich) -> ModelSums:
        """Of sums about the line of earlier rounds, which is an offset that the noise does not move."""
        sds, noise = (s.sd_gram, s.sd_cross, s.sd_square), s.noise(s.delta)
        return cls(s.delta, s.bread, noise, s.rows, s.estimates, sum(s.residual_sum), s.count, *sds)

    def without(self, places: list[int]) -> Gap:
        """Of the model without the coefficients at these places."""
        rows, h = self.rows[places], self.estimates[places]
        inner = rows @ self.bread
        weight = np.linalg.inv(inner @ rows.T)
        d, spread = inner.T @ weight @ h, inner @ self.noise @ inner.T
        moved = weight @ spread
        mean, twice = float(np.trace(moved)), float(np.trace(moved @ moved))
        smaller = self.theta - d
        gap = np.outer(smaller, smaller) - self._outer
        half = self.sd_gram**2
        first = 4 * self.sd_cross**2 * float(d @ d) + half * float((gap**2).sum())
        by_h = 4 * float(h @ weight @ spread @ weight @ h)
        together = half * float((gap * self._outer).sum()) - 4 * self.sd_cross**2 * float(d @ self.theta)
        size, square = float(self.theta @ self.theta), float(h @ weight @ h)
        unit = (2 * twice + max(by_h - 4 * twice, 0.0)) / (2 * mean + 4 * max(square - mean, 0.0))
        of_rss = self.sd_square**2 + 4 * self.sd_cross**2 * size + half * size**2
        return Gap(
            square=square,
            mean=mean,
            unit=unit * max(first / max(by_h, 1e-300), 1.0),
            degrees=mean / unit,
            covariance=np.array([[max(first - 2 * twice, 2 * twice), together], [together, of_rss]]),
            rss=self.rss,
            count=self.count,
            coefficients=len(self.theta),
            left_out=len(places),
            sd_count=self.sd_gram,
        )

    @cached_property
    def _outer(self) -> Array:
        return np.outer(self.theta, self.theta)
