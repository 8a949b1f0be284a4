"""Confidence limits of two shares and of their difference, from the noisy counts of a 2 x 2 table whose sum n is public.

Within a group of N records, N not public, a = (1 - p) y_1 - p y_0 has mean 0 at its share p, whatever N is and however little of the two
counts stands out of their noise: no share is divided by a size that noise may take to 0 (as Fieller's ratio). Its variance is
N p (1 - p) + s^2 (p^2 + (1 - p)^2), s^2 the noise's. A difference d is judged by the profile

    Q(d) = min over p of a_1(p)^2 / var_1(p) + a_2(p + d)^2 / var_2(p + d),      R(d) = sign * sqrt(Q(d) - Q_0),

Q_0 the least of each group by itself: 0, but where noise takes a share beyond 0 or 1, whose excess says nothing of d. The interval is of
all d with R(d) between the quantiles of a standard normal, moved by the third and fourth cumulants of records and noise (Cornish, Fisher
1938; Laplace noise has longer tails). N is estimated by the counts of both groups and n. A share by itself: the same without the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.methods.intervals.posteriors.laws import NoiseLaw

__all__ = ["NoisyTable"]

Array = NDArray[np.float64]

# Points of the profile's grid, and golden sections after it; points of the first grid for an end of an interval, of the finer ones, and how
# many of these there are.
_PROFILE, _GOLDEN = 81, 24
_COARSE, _FINE, _ROUNDS = 101, 41, 4
_RATIO = (5**0.5 - 1) / 2
# Of a count's noise, the least variance.
_NONE = 1e-12


@dataclass(frozen=True)
class _Group:
    """Noisy counts without and with the outcome, the estimate of the group's size, and second and fourth cumulants of the noise."""

    none: float
    some: float
    size: float
    second: float
    fourth: float

    def at(self, p: Array) -> tuple[Array, Array]:
        """a(p) and its variance."""
        return (1 - p) * self.some - p * self.none, self.size * p * (1 - p) + self.second * (p * p + (1 - p) ** 2)

    def above(self, p: Array) -> tuple[Array, Array, Array]:
        """The third and fourth cumulants of the records' part of a(p), and the fourth of the noise's."""
        own = self.size * p * (1 - p)
        return own * (1 - 2 * p), own * (1 - 6 * p * (1 - p)), self.fourth * (p**4 + (1 - p) ** 4)

    def squared(self, p: Array) -> Array:
        a, variance = self.at(p)
        return np.asarray(a * a / variance)

    @property
    def whole(self) -> float:
        return self.none + self.some

    @property
    def least(self) -> float:
        """The least of a^2/var over all shares."""
        if self.whole and 0 <= self.some / self.whole <= 1:
            return 0.0
        return float(self.squared(np.array([0.0, 1.0])).min())


class NoisyTable:
    """Noisy counts (without, with) in the first group, then in the second, (4,); n public.

    >>> table = NoisyTable(np.array([70.0, 30.0, 50.0, 50.0]), 200, NoiseLaw("normal", 1e-3))
    >>> [round(v, 2) for v in table.difference(0.05)], [round(v, 2) for v in table.share(0, 0.05)]
    ([0.06, 0.33], [0.22, 0.39])
    """

    def __init__(self, counts: Array, n: int, law: NoiseLaw) -> None:
        y = np.asarray(counts, dtype=np.float64)
        first = float(np.clip((y[0] + y[1] + n - y[2] - y[3]) / 2, 1.0, max(n - 1.0, 1.0)))
        # noise that is 0 to the last digit has no variance to divide by
        moments = max(law.variance, _NONE), law.fourth_cumulant
        self._law = law
        self._groups = (
            _Group(float(y[0]), float(y[1]), first, *moments),
            _Group(float(y[2]), float(y[3]), max(n - first, 1.0), *moments),
        )

    @property
    def estimates(self) -> tuple[float, float, float]:
        """(second - first, first, second); 1/2 of a group whose counts add up to nothing."""
        first, second = (float(np.clip(g.some / g.whole, 0.0, 1.0)) if g.whole > 0 else 0.5 for g in self._groups)
        return second - first, first, second

    def difference(self, alpha: float) -> tuple[float, float]:
        """Of the second group's share less the first's, level 1 - alpha.

        At -1 and 1 no share is free, both of two counts are noise alone, and Q has up to two squares: these ends are left out only where
        one of the two counts is rejected at alpha/4.
        """
        low, high = _interval(lambda d: self._scaled(d, alpha), -1.0, 1.0)
        one, two = self._groups
        low = -1.0 if self._noise(one.none, two.some, alpha) else low
        return low, 1.0 if self._noise(one.some, two.none, alpha) else high

    def _noise(self, one: float, other: float, alpha: float) -> bool:
        """Whether two counts may both be noise alone."""
        return bool(self._law.tail(max(one, other)) >= alpha / 4)

    def share(self, group: int, alpha: float) -> tuple[float, float]:
        """Of one group, 0 or 1."""
        return _interval(lambda p: self._share_scaled(group, p, alpha), 0.0, 1.0)

    def _share_scaled(self, group: int, p: Array, alpha: float) -> Array:
        """Of one group's shares (k,)."""
        own = self._groups[group]
        a, variance = own.at(p)
        root = np.sign(a) * np.sqrt(np.maximum(own.squared(p) - own.least, 0.0))
        third, fourth, noise = own.above(p)
        most = self._law.quantile(alpha / 16) / variance**0.5
        return _scaled(root, third / variance**1.5, fourth / variance**2, noise / variance**2, most, alpha)

    def _scaled(self, d: Array, alpha: float) -> Array:
        """Of differences (k,)."""
        one, two = self._groups
        p, q = self._profile(d)
        (a1, v1), (a2, v2) = one.at(p), two.at(p + d)
        w1, w2 = -1 / one.size, 1 / two.size
        (third1, fourth1, noise1), (third2, fourth2, noise2) = one.above(p), two.above(p + d)
        variance = w1 * w1 * v1 + w2 * w2 * v2
        root = np.sign(w1 * a1 + w2 * a2) * np.sqrt(np.maximum(q - one.least - two.least, 0.0))
        skew = (w1**3 * third1 + w2**3 * third2) / variance**1.5
        fourth, noise = w1**4 * fourth1 + w2**4 * fourth2, w1**4 * noise1 + w2**4 * noise2
        most = (w2 - w1) * self._law.quantile(alpha / 16) / variance**0.5
        return _scaled(root, skew, fourth / variance**2, noise / variance**2, most, alpha)

    def _profile(self, d: Array) -> tuple[Array, Array]:
        """The first group's share at which the differences (k,) fit best, and their Q: a grid, closer at its ends, and golden sections."""
        one, two = self._groups
        low, high = np.maximum(0.0, -d), np.minimum(1.0, 1 - d)

        def q(p: Array) -> Array:
            return np.asarray(one.squared(p) + two.squared(p + d))

        steps = (1 - np.cos(np.pi * np.arange(_PROFILE) / (_PROFILE - 1))) / 2
        grid = low + (high - low) * steps[:, None]
        best = np.argmin(one.squared(grid) + two.squared(grid + d), axis=0)
        each = np.arange(len(d))
        a, b = grid[np.maximum(best - 1, 0), each], grid[np.minimum(best + 1, _PROFILE - 1), each]
        for _ in range(_GOLDEN):
            left, right = b - _RATIO * (b - a), a + _RATIO * (b - a)
            nearer = q(left) < q(right)
            a, b = np.where(nearer, a, left), np.where(nearer, right, b)
        p, at = (a + b) / 2, grid[best, each]
        p = np.where(q(p) <= q(at), p, at)
        return p, q(p)


def _scaled(root: Array, skew: Array, excess: Array, noise: Array, most: Array, alpha: float) -> Array:
    """The root by the quantiles of a law with this skewness and excess kurtosis: between -1 and 1 where it lies between the two.

    noise: what the noise adds to the excess, endless as less and less of it differs from 0; it moves no quantile out by more than `most`,
    and none in: below levels of 92 % that takes off more than whole numbers allow.
    """
    z = float(special.ndtri(1 - alpha / 2))
    middle, bent = (z * z - 1) * skew / 6, (z**3 - 3 * z) / 24
    reach = z + bent * excess + np.clip(bent * noise, 0.0, most) - (2 * z**3 - 5 * z) * skew**2 / 36
    # an expansion that takes off half of the normal's quantile is none
    return np.asarray((root - middle) / np.maximum(reach, z / 2))


def _interval(scaled: Callable[[Array], Array], least: float, most: float) -> tuple[float, float]:
    """From the first value at which what falls is at most 1 to the last at which it is at least -1."""
    low = _first(lambda v: scaled(v) <= 1, least, most)
    return low, max(low, -_first(lambda v: scaled(-v) >= -1, -most, -least))


def _first(holds: Callable[[Array], NDArray[np.bool_]], least: float, most: float) -> float:
    """The first value at which it holds, on ever finer grids; `most` where it never does."""
    low, high = least, most
    for points in (_COARSE, *[_FINE] * _ROUNDS):
        grid = np.linspace(low, high, points)
        held = holds(grid)
        if not held.any():
            return most
        k = int(np.argmax(held))
        if k == 0:
            return float(grid[0])
        low, high = float(grid[k - 1]), float(grid[k])
    return high
