r"""What cumulative counts say: quantiles, the distribution function with its band, numbers between edges, of one group of records.

Quantiles are hulls of whole bins (`sums.distributions.cumulative`).

Band. Its margin of error is the 95% quantile of the largest error over the edges, of draws of a multinomial at the released distribution
and noise; never below Kolmogorov's. The monotone estimate is the mean of the running maximum and the running minimum from the right. It is
nowhere farther from a distribution function than the largest error of the noisy one is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.methods.tables.intervals import count_interval, difference, share_interval
from confide.results.pages.table import noise_share
from confide.sums.distributions.cumulative import Bins, CumulativeCounts, Strategy, strategy

#: Draws behind a band.
BAND_DRAWS = 2000
# Sds of its noise that the number of records beyond an edge stands above for records to be seen there, and that a variance stands above.
_SEEN, _STANDS = 4.0, 3.0
# Letter values go on while so many records, and noise sds of a cumulative count, are beyond them.
_BEYOND = 4.0


@dataclass(frozen=True, eq=False)
class GroupQuantiles:
    """Quantiles of one group, (k,) each: estimates, ends, and whether the interval is all that the bounds allow.

    bound (k, 2): whether the low and the high end are the declared bound alone.
    """

    q: Array
    estimates: Array
    low: Array
    high: Array
    open: NDArray[np.bool_]
    bound: NDArray[np.bool_]


def kolmogorov(alpha: float, size: float) -> float:
    """The margin of error of Kolmogorov's band for so many records, a little wider than the finite one."""
    return float(special.kolmogi(alpha)) / sqrt(max(size, 1.0))


@dataclass(frozen=True, eq=False)
class QuantileGroup(CumulativeCounts):
    """One group: noisy counts (m,) of bins, their noise variance in units of the strategy's, and which reading is asked for.

    name: as in the table; part: the share of the sampling variance that counts.
    """

    name: str
    counts: Array
    unit: float
    bins: Bins
    strategy: Strategy
    part: float = 1.0

    @cached_property
    def distribution(self) -> Array:
        """F at the upper edges, (m,), 1 at the last."""
        return np.minimum(self.rising / max(float(self.rising[-1]), 1.0), 1.0)

    @property
    def whole(self) -> tuple[float, float]:
        """What the bounds allow."""
        return float(self.bins.lows[0]), float(self.bins.highs[-1])

    @cached_property
    def sd(self) -> float:
        """The standard deviation of the records, each in the middle of its bin, those farther out than any are seen in the last one that
        is. NaN where the square does not exceed its noise.
        """
        # records beyond each edge, from either side
        above = np.sqrt(np.maximum(self.unit * self.strategy.centred(1.0), 0.0))
        below = self.sums[1:] > _SEEN * self.sds[1:]
        beyond = self.size - self.sums[:-1] > _SEEN * above[:-1]
        if self.below_noise or not below.any() or not beyond.any():
            return nan
        first, last = int(np.argmax(below)), int(np.flatnonzero(beyond)[-1])
        if last < first:
            return nan
        middle = ((np.array(self.bins.lows) + np.array(self.bins.highs)) / 2)[
            np.clip(np.arange(self.bins.size), first, last)
        ]
        squares = (middle - float(self.counts @ middle) / self.size) ** 2
        square = float(self.counts @ squares) / self.size
        rest = squares - square
        noise = sqrt(self.unit * float(rest @ self.strategy.covariance @ rest)) / self.size
        return sqrt(square) if square > _STANDS * noise else nan

    # quantiles --------------------------------------------------------------------------------------------------------

    def quantiles(self, q: Array, alpha: float) -> GroupQuantiles:
        """Estimates and intervals at level 1 - alpha."""
        last, ends, bound = self.bins.size - 1, [], []
        for one in q:
            (first, final), sides = self.hull(float(one), alpha), self.unbacked(float(one), alpha)
            ends.append((0 if sides[0] else first, last if sides[1] else final))
            bound.append(sides)
        low = np.array([self.bins.lows[first] for first, _ in ends])
        high = np.array([self.bins.highs[final] for _, final in ends])
        estimates = np.clip(np.array([self._point(float(one)) for one in q]), low, high)
        return GroupQuantiles(
            np.asarray(q), estimates, low, high, np.array([end == (0, last) for end in ends]), np.array(bound)
        )

    def noise_share(self, q: Array) -> Array:
        """Of the 95% intervals."""
        found = [self.widths(float(one), self.bins.edges, self.bins.step) for one in q]
        return noise_share([whole for whole, _ in found], [alone for _, alone in found])

    def _point(self, q: float) -> float:
        """Interpolated in the first bin whose cumulative count reaches q N."""
        target = q * float(self.rising[-1])
        j = int(np.searchsorted(self.rising, target, side="left"))
        before = float(self.rising[j - 1]) if j else 0.0
        inside = float(self.rising[j]) - before
        part = (target - before) / inside if inside > 0 else 0.0
        value = self.bins.lows[j] + part * (self.bins.edges[j + 1] - self.bins.edges[j])
        if self.bins.step:
            value = self.bins.lows[j] + np.floor((value - self.bins.lows[j]) / self.bins.step + 1e-9) * self.bins.step
        return float(min(value, self.bins.highs[j]))

    @property
    def width_at_median(self) -> float:
        """Of the bin that the median is in."""
        j = int(np.searchsorted(self.rising, 0.5 * float(self.rising[-1]), side="left"))
        return float(self.bins.edges[j + 1] - self.bins.edges[j])

    def gap(self, low: float, high: float, alpha: float) -> tuple[float, float, float]:
        """(estimate, low, high) of the distance between two quantiles: MOVER with the correlation of their cumulative counts."""
        both = self.quantiles(np.array([low, high]), alpha)
        one, other = ((both.estimates[k], both.low[k], both.high[k]) for k in (1, 0))
        found = difference(one, other, self._correlation(low, high))
        return float(found[0]), max(float(found[1]), 0.0), min(float(found[2]), self.whole[1] - self.whole[0])

    def _correlation(self, low: float, high: float) -> float:
        """Of P - q N at two quantiles."""
        edges = [int(np.searchsorted(self.rising, q * self.rising[-1])) + 1 for q in (low, high)]
        rows = np.zeros((2, self.bins.size))
        for row, edge, q in zip(rows, edges, (low, high), strict=True):
            row[:edge] = 1.0
            row -= q
        noise = self.unit * rows @ self.strategy.covariance @ rows.T
        records = self.part * max(self.size, 0.0)
        total = noise + records * np.array([[low * (1 - low), low * (1 - high)], [low * (1 - high), high * (1 - high)]])
        return float(np.clip(total[0, 1] / sqrt(total[0, 0] * total[1, 1]), 0.0, 0.99)) if total[0, 0] > 0 else 0.0

    def letters(self) -> list[tuple[str, float]]:
        """The letters and depths that enough records lie beyond: M 1/2, F 1/4, E 1/8, D 1/16, ..."""
        noise = sqrt(self.unit * float(np.max(self.strategy.centred(0.5))))
        found, depth = [("M", 0.5)], 0.25
        for letter in "FEDCBAZYXW":
            if self.size * depth < _BEYOND * max(1.0, noise):
                break
            found.append((letter, depth))
            depth /= 2
        return found

    # the distribution function ----------------------------------------------------------------------------------------

    def pointwise(self, alpha: float) -> tuple[Array, Array, Array]:
        """(standard errors, low, high) of F at each upper edge; the last one is always 1."""
        z, unit = float(-special.ndtri(alpha / 2)), self.unit
        base = np.full(self.bins.size, max(self.size, 0.0))
        upto, both = unit * self.strategy.upto[1:], unit * self.strategy.with_all[1:]
        low, high = share_interval(
            self.sums[1:], base, upto, np.full_like(base, unit * self.strategy.total), both, z, self.part
        )
        f = self.distribution
        variance = self.part * max(self.size, 0.0) * f * (1 - f) + unit * self.strategy.centred(f)
        se = np.sqrt(np.maximum(variance, 0.0)) / max(self.size, 1.0)
        low[-1] = high[-1] = 1.0
        se[-1] = 0.0
        low, high = np.minimum(low, f), np.maximum(high, f)
        return se, low, high

    def band(self, alpha: float, draws: Array, generator: np.random.Generator) -> float:
        """The margin of error of a band for F at every edge at once. draws (r, m): of the noise of counts, in the strategy's units."""
        if self.below_noise:
            return inf
        f = self.distribution
        size = max(round(self.size), 1)
        if self.part:
            chances = np.diff(f, prepend=0.0)
            sampled = generator.multinomial(size, chances / chances.sum(), size=len(draws)).astype(np.float64)
            sampled = size * chances + sqrt(self.part) * (sampled - size * chances)
        else:
            sampled = np.broadcast_to(size * np.diff(f, prepend=0.0), draws.shape)
        sums = np.cumsum(sampled + sqrt(self.unit) * draws, axis=1)
        errors = np.abs(sums / np.maximum(sums[:, -1:], 1.0) - f).max(axis=1)
        found = float(np.quantile(errors, 1 - alpha, method="higher"))
        return max(found, sqrt(self.part) * kolmogorov(alpha, self.size))

    # numbers between edges --------------------------------------------------------------------------------------------

    def between(self, at: NDArray[np.int64], alpha: float) -> tuple[Array, Array, Array]:
        """(counts, low, high) between edges, given by their positions."""
        z = float(-special.ndtri(alpha / 2))
        counts = np.add.reduceat(self.counts, at[:-1])
        blocks = np.add.reduceat(np.add.reduceat(self.strategy.covariance, at[:-1], axis=0), at[:-1], axis=1)
        low, high = count_interval(counts, self.unit * np.diag(blocks), z, self.part)
        return counts, low, high


def rank_error(q: float, size: float, unit: float, bins: int, part: float) -> float:
    """The standard error of the share of `size` records below their quantile q; unit: the noise variance of the strategy's numbers."""
    middle = float(strategy(bins).centred(q)[min(int(q * bins), bins - 1)])
    return sqrt(part * size * q * (1 - q) + unit * middle) / size
