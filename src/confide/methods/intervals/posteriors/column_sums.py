"""Mean and variance of a bounded column of any distribution, from noisy sums of its first four moments; n public.

y = sums of (z, q, z q, z^2 q), q = 1 - z^2, of numbers z in [-1, 1], and noise: moments of any order up to four follow. They say what an
interval needs and no model gives: the variance of the records, which way and how far the mean is skewed, and how much the variance varies.

An estimate that noise takes beyond what the bounds allow is moved to them, and its interval with it, which only makes it hold more.

Mean: all theta that the noisy sum does not reject at alpha/2 on either side, with the sampling variance n max(s^2, s^2 + f r (theta - m)),
r = third central moment/s^2, f = 2/3 + 1/(3 z^2): to first order that of a skewed mean at theta (as in the tables, where n is noisy).
Variance: s^2 less, and more, what (z - m)^2 varies by, m4 - s^4, on the upper side with the skewness of (z - m)^2; 0 where the release
does not reject it. The central limit theorem of n records is assumed; `skewed` and `extreme` say where it is not to be relied on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide.methods.intervals.posteriors.clipped import ColumnShape
from confide.methods.intervals.posteriors.laws import NoiseLaw

__all__ = ["ColumnSums"]

# Of numbers in [-1, 1]: the least variance that is divided by.
_LEAST = 1e-9
# The least of a shape's excess, which columns of two values do not have: a ridge as narrow as theirs has no grid.
_FLAT = 0.25
_HALVINGS = 50


@dataclass(frozen=True)
class ColumnSums:
    """The noisy sums of n records, and the law of each one's noise.

    >>> exact = NoiseLaw("normal", 1e-9)
    >>> z = np.array([-1.0, -0.5, 0.0, 0.5] * 25)
    >>> q = 1 - z * z
    >>> own = ColumnSums(100, (z.sum(), q.sum(), (z * q).sum(), (z * z * q).sum()), (exact,) * 4)
    >>> own.mean, own.variance(0.0), [round(v, 3) for v in own.mean_interval(0.05)]
    (-0.25, 0.3125, [-0.36, -0.14])
    """

    n: int
    sums: tuple[float, float, float, float]
    laws: tuple[NoiseLaw, NoiseLaw, NoiseLaw, NoiseLaw]

    @cached_property
    def _shares(self) -> tuple[float, ...]:
        return tuple(one / self.n for one in self.sums)

    @cached_property
    def _noises(self) -> tuple[float, ...]:
        """Of each sum over n, the variance of its noise."""
        return tuple(law.variance / self.n**2 for law in self.laws)

    @cached_property
    def mean(self) -> float:
        return float(np.clip(self._shares[0], -1.0, 1.0))

    @cached_property
    def variance_noise(self) -> float:
        """Of s^2, by the delta method, as those below."""
        first, second, *_ = self._noises
        return second + 4 * self.mean**2 * first

    def variance(self, more: float) -> float:
        """s^2 and so many standard deviations of its noise, within what the bounds allow."""
        m = self.mean
        found = 1.0 - self._shares[1] - m * m + more * sqrt(self.variance_noise)
        return float(np.clip(found, 0.0, 1.0 - m * m))

    @cached_property
    def _third(self) -> tuple[float, float]:
        """(third central moment, sd of its noise)."""
        m, (s, q, c, _), (v1, v2, v3, _) = self.mean, self._shares, self._noises
        by_first = 1.0 - 3 * (1.0 - q) + 6 * m * m
        return (s - c) - 3 * m * (1.0 - q) + 2 * m**3, sqrt(by_first**2 * v1 + 9 * m * m * v2 + v3)

    @cached_property
    def _fourth(self) -> tuple[float, float]:
        """(fourth central moment, sd of its noise)."""
        m, (s, q, c, d), (v1, v2, v3, v4) = self.mean, self._shares, self._noises
        cube, square = s - c, 1.0 - q
        by_first = -4 * cube - 4 * m + 12 * m * square - 12 * m**3
        by_second = -1.0 - 6 * m * m
        found = (square - d) - 4 * m * cube + 6 * m * m * square - 3 * m**4
        return found, sqrt(by_first**2 * v1 + by_second**2 * v2 + 16 * m * m * v3 + v4)

    @cached_property
    def _spread(self) -> float:
        """s^2 as intervals take it: one that is too small by noise costs more coverage than one that is too large costs width."""
        return max(self.variance(0.5), _LEAST)

    @cached_property
    def skewed(self) -> bool:
        """Whether the mean's interval may be short on one side: fewer records than three squared skewnesses, as far as these stand above
        their noise, each times the cube of the share that sampling has of the mean's variance: noise is not skewed.
        """
        third, noise = self._third
        sampling = self.n * self._spread
        part = sampling / (sampling + self.laws[0].variance)
        return self.n < 3 * max(abs(third) - noise, 0.0) ** 2 / self._spread**3 * part**3

    @cached_property
    def extreme(self) -> bool:
        """Whether a few extremes rule the variance: fewer records than 3 (kurtosis - 1), likewise."""
        fourth, noise = self._fourth
        varies = max(fourth - noise - self._spread**2, 0.0)
        part = varies / (varies + self.n * self.variance_noise)
        return self.n < 3 * varies / self._spread**2 * part**3

    @cached_property
    def lean(self) -> float:
        """The third central moment over s^2, moved towards the far bound by half a standard deviation of its noise."""
        third, noise = self._third
        return float(np.clip((third - np.sign(self.mean) * noise / 2) / self._spread, -1 - self.mean, 1 - self.mean))

    @cached_property
    def _varies(self) -> float:
        """m4 - s^4, n times the sampling variance of s^2, with half a standard deviation of its noise, within what the bounds allow."""
        fourth, noise = self._fourth
        square = self._spread
        return max(min(fourth + noise / 2, (1 + abs(self.mean)) ** 2 * square) - square**2, 0.0)

    @cached_property
    def alone(self) -> Array:
        """n times the sampling variances of mean and s^2, without what intervals allow for, (2,): each at least half a sd of its noise,
        as a smaller one is hidden and may be about so large.
        """
        fourth, noise = self._fourth
        square = max(self.variance(0.0), min(sqrt(self.variance_noise) / 2, 1.0 - self.mean**2), _LEAST)
        within = (1 + abs(self.mean)) ** 2 * square - square**2
        return np.array([square, max(min(max(fourth - square**2, noise / 2), within), 0.0)])

    @cached_property
    def shape(self) -> ColumnShape:
        """For a posterior of mean and standard deviation."""
        square = self._spread
        return ColumnShape(self.lean, max(self._varies / square**2 - self.lean**2 / square, _FLAT))

    def mean_interval(self, alpha: float) -> tuple[float, float]:
        """(low, high) in [-1, 1]."""
        z = float(special.ndtri(1 - alpha / 2))
        tilt, square, law = self.lean * (2 / 3 + 1 / (3 * z * z)), self._spread, self.laws[0]

        def allowed(theta: float, own: float) -> bool:
            sampling = self.n * max(square + own * (theta - self.mean), square)
            return bool(law.tail_beside(sampling, self.n * abs(self.mean - theta)) >= alpha / 2)

        low = _end(lambda theta: allowed(theta, min(tilt, 0.0)), self.mean, -1.0)
        return low, _end(lambda theta: allowed(theta, max(tilt, 0.0)), self.mean, 1.0)

    def variance_interval(self, alpha: float) -> tuple[float, float]:
        """(low, high) in [0, 1].

        The noise of s^2, a sum of two, is taken as one of the same law and variance: of Laplace noise its quantiles are up to 3 % larger.
        """
        z = float(special.ndtri(1 - alpha / 2))
        square, n = self._spread, self.n
        found = self.variance(0.0)
        scale = n * sqrt(self.variance_noise)
        law = NoiseLaw("normal", scale) if self.laws[0].name == "normal" else NoiseLaw("laplace", scale / sqrt(2))
        most = max((1 + abs(self.mean)) ** 2 - square, 0.0)
        tilt = min(2 * self._varies / square, most) * (2 / 3 + 1 / (3 * z * z))

        def allowed(value: float, own: float) -> bool:
            sampling = n * (self._varies + own * max(value - found, 0.0))
            return bool(law.tail_beside(sampling, n * abs(found - value)) >= alpha / 2)

        return _end(lambda value: allowed(value, 0.0), found, 0.0), _end(lambda value: allowed(value, tilt), found, 1.0)


def _end(allowed: Callable[[float], bool], start: float, bound: float) -> float:
    """The last value that is allowed on the way from an estimate to a bound; the estimate where it is not."""
    if allowed(bound):
        return bound
    inside, outside = start, bound
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if allowed(middle) else (inside, middle)
    return inside
