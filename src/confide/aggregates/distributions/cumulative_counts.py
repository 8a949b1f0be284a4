r"""What noisy cumulative counts say of quantiles: sums that do not fall, and the bins that a quantile may lie in.

P_k is the released number of records below edge k (least squares of the strategy), N = P_m, V(c) the noise variance of a functional c.
For the quantile x in bin j, P_(j-1) is about the records below x and P_j about those up to x, atoms or not. So the set is the hull of the
bins with

    P_(j-1) - q N <= u_(j-1)   and   P_j - q N >= l_j,      u, l = +- z s + (z^2 - 1) k / (6 s^2),   s^2 = part N q (1 - q) + V(P - q N),

the second term (Cornish, Fisher 1938) for the skewness of a binomial, k = part N q (1 - q)(1 - 2 q); P_0 = 0 exactly. part: 1 for a
population, 0 for these very records. An atom is one bin, where the hull is that bin. q is public, so that nothing is estimated but N. Any
distribution, whole bins; noise is taken as normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil, floor, inf, sqrt

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide.aggregates.distributions.cumulative_strategy import Strategy

__all__ = ["CumulativeCounts", "monotone"]


# Below so many noise standard deviations of its number of records a group says nothing.
_FEWEST = 3.0
# Beyond the ends of the 95 % interval.
_TAIL = 0.025


def monotone(sums: Array) -> Array:
    """Cumulative counts (..., m) that do not fall and are at least 0: the mean of running maximum and running minimum from the right.

    >>> monotone(np.array([3.0, 1.0, 5.0])).tolist()
    [2.0, 2.0, 5.0]
    """
    up = np.maximum.accumulate(sums, axis=-1)
    down = np.minimum.accumulate(sums[..., ::-1], axis=-1)[..., ::-1]
    return np.maximum((up + down) / 2, 0.0)


class CumulativeCounts:
    """Base of readings of one group. counts (m,): noisy, of bins; unit: their noise variance in units of the strategy's; part: as above."""

    counts: Array
    unit: float
    strategy: Strategy
    part: float

    @cached_property
    def sums(self) -> Array:
        """P, (m + 1,): noisy numbers below each edge."""
        return np.concatenate([[0.0], np.cumsum(self.counts)])

    @property
    def sds(self) -> Array:
        """Standard deviations of the noise of P, (m + 1,)."""
        return np.sqrt(np.maximum(self.unit * self.strategy.upto, 0.0))

    @property
    def size(self) -> float:
        """N."""
        return float(self.sums[-1])

    @property
    def size_sd(self) -> float:
        """The standard deviation of its noise."""
        return sqrt(self.unit * self.strategy.total)

    @property
    def below_noise(self) -> bool:
        """Whether the group is too small beside the noise to say anything."""
        return self.size < _FEWEST * self.size_sd

    @cached_property
    def rising(self) -> Array:
        """Monotone cumulative counts at the upper edges, (m,)."""
        return monotone(self.sums[1:])

    def hull(self, q: float, alpha: float) -> tuple[int, int]:
        """The first and the last bin that the quantile may lie in, at level 1 - alpha."""
        z = float(-special.ndtri(alpha / 2))
        shift, upper, lower = self._reach(q, z)
        inside = np.flatnonzero((shift[:-1] <= upper[:-1]) & (shift[1:] >= lower[1:]))
        if self.below_noise or not len(inside):
            return 0, len(self.counts) - 1
        return int(inside[0]), int(inside[-1])

    def unbacked(self, q: float, alpha: float) -> tuple[bool, bool]:
        """Whether no records may lie below the low end's bin, and none above the high end's: noise alone would put these ends there.

        Of a quantile that can be in the outermost bin alone, that end is known: nothing is beyond.
        """
        first, last = self.hull(q, alpha)
        _, upper, lower = self._reach(q, float(-special.ndtri(alpha / 2)))
        low, high = -q * self.size >= lower[first + 1], (1 - q) * self.size <= upper[last]
        if self.below_noise:
            return True, True
        return bool(low and (high or last > 0)), bool(high and (low or first < len(self.counts) - 1))

    def backing(self, q: float, high: bool, alpha: float = 0.05) -> tuple[float, float]:
        """About how many records, and how many times the budget (infinite where none does), would back the low or the high end."""
        z, r = float(-special.ndtri(alpha / 2)), 1 - q if high else q
        first, last = self.hull(q, alpha)
        variance = self.unit * float(self.strategy.centred(q)[last if high else first + 1])
        # r n = z sqrt(n q (1 - q) + variance), solved for n and for the variance
        half = z * z * q * (1 - q) / 2
        records = (half + sqrt(half * half + (z * r) ** 2 * variance)) / r**2
        size = max(self.size, 0.0)
        room = (r * size) ** 2 / z**2 - size * q * (1 - q)
        return records, sqrt(variance / room) if room > 0 else inf

    def widths(self, q: float, edges: Sequence[float], step: float = 0.0) -> tuple[float, float]:
        """(how wide the 95 % interval of the quantile is, how wide it would be by sampling alone).

        edges (m + 1,): of the bins; step: of whole values.
        In units of the edges, between which the counts are read; a set of one bin, which may be an atom, in numbers of records.
        """
        z, last = float(-special.ndtri(_TAIL)), len(self.counts) - 1
        sides, hull = self.unbacked(q, 2 * _TAIL), self.hull(q, 2 * _TAIL)
        first, final = 0 if sides[0] else hull[0], last if sides[1] else hull[1]
        binomial = self.part * max(self.size, 0.0) * q * (1 - q)
        if first == final:
            noise = self.unit * float(np.min(self.strategy.centred(q)[[first, first + 1]]))
            return 2 * z * sqrt(binomial + max(noise, 0.0)), 2 * z * sqrt(binomial)
        ranks = np.clip(np.array([-1.0, 1.0]) * z * sqrt(binomial) + q * self.size, 0.0, float(self.rising[-1]))
        low, high = np.interp(ranks, [0.0, *self.rising], edges)
        if step:
            low, high = (
                edges[0] + step * floor((low - edges[0]) / step),
                edges[0] + step * ceil((high - edges[0]) / step),
            )
        return float(edges[final + 1] - edges[first]), float(high - low)

    def _reach(self, q: float, z: float) -> tuple[Array, Array, Array]:
        """P - q N at each edge, and how far it may be above and below 0 there."""
        binomial = self.part * max(self.size, 0.0) * q * (1 - q)
        square = binomial + self.unit * self.strategy.centred(q)
        half = z * np.sqrt(square)
        with np.errstate(all="ignore"):
            skewed = (z * z - 1) / 6 * binomial * (1 - 2 * q) / square
        skewed = np.where(np.isfinite(skewed), skewed, 0.0)
        upper, lower = half + skewed, -half + skewed
        upper[0] = max(upper[0], 0.0)  # nothing lies below the first edge, whatever N is
        return self.sums - q * self.size, upper, lower
