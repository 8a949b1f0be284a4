"""Posterior of a Poisson rate, from the noisy sum of counts that are moved into 0..U.

y = S + noise, S the sum of n numbers min(X, U), X ~ Poisson(rate). The distribution of S is exact (`ClippedPoisson.expected`), so that the
likelihood P(y | rate) = sum_s P(S = s | rate) P(noise = y - s) is. The posterior is on a grid of rates in (0, U], first found with normal
sums, then computed exactly where its mass is.

Prior: "uniform" on (0, U] (default), "jeffreys" of the noisy release |dm/d rate|/sqrt(v + noise), or "gamma(shape, rate)".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.methods.intervals.posteriors.clipped import ClippedPoisson
from confide.methods.intervals.posteriors.laws import NoiseLaw, normal_laplace
from confide.methods.intervals.posteriors.marginals import GridMarginal

__all__ = ["PoissonSum", "rate_posterior"]

Array = NDArray[np.float64]

_SIDE, _ZOOMS, _FINE = 401, 4, 241
_EDGE = 1e-9
_LEAST = 1e-6


@dataclass(frozen=True)
class PoissonSum:
    """The noisy sum of n clipped counts, its noise, the cap."""

    n: int
    y: float
    law: NoiseLaw
    cap: int

    def rough(self, rates: Array) -> Array:
        """Log likelihood with normal sums."""
        mean, variance = ClippedPoisson(rates, self.cap).moments
        rest, spread = self.y - self.n * mean, self.n * variance
        if self.law.name == "normal":
            whole = spread + self.law.variance
            return np.asarray(-rest * rest / (2 * whole) - np.log(whole) / 2)
        return normal_laplace(rest, np.sqrt(spread + 1e-12), self.law.scale)

    def exact(self, rates: Array) -> Array:
        """Log likelihood."""
        own = ClippedPoisson(rates, self.cap)
        # the noise's largest density where the sums can lie is divided out, so that nothing underflows
        ends = own.reach(self.n)
        top = float(self.law.logpdf(max(ends[0] - self.y, self.y - ends[1], 0.0)))
        found = own.expected(self.n, lambda s: np.exp(np.minimum(self.law.logpdf(self.y - s) - top, 0.0)))
        return np.asarray(np.log(np.maximum(found, 1e-300)) + top)

    def tail(self, rate: float, side: float) -> float:
        """P(Y >= y) at a rate, or P(Y <= y) where the side is below 0."""
        own = ClippedPoisson(np.array([rate]), self.cap)
        return float(own.expected(self.n, lambda s: self.law.tail(side * (self.y - s)))[0])

    def log_prior(self, prior: str | tuple[float, float], rates: Array) -> Array:
        """Log density of the prior."""
        if isinstance(prior, tuple):
            shape, rate = prior
            return np.asarray(special.xlogy(shape - 1, rates) - rate * rates)
        if prior == "uniform":
            return np.zeros_like(rates)
        _, variance = ClippedPoisson(rates, self.cap).moments
        # d/d rate of E min(X, U) is P(X < U)
        slope = 1 - ClippedPoisson(rates, self.cap).probabilities[:, -1]
        return np.asarray(np.log(self.n * slope + 1e-300) - np.log(self.n * variance + self.law.variance) / 2)


def rate_posterior(sums: PoissonSum, prior: str | tuple[float, float] = "uniform") -> GridMarginal:
    """The posterior of the rate on (0, U].

    >>> found = rate_posterior(PoissonSum(1000, 10_020.0, NoiseLaw("geometric", 25.0), 25))
    >>> [round(float(v), 2) for v in found.quantile([0.025, 0.975])]
    [9.81, 10.23]
    """
    low, high = _LEAST * sums.cap, float(sums.cap)
    for _ in range(_ZOOMS):
        rates = np.linspace(low, high, _SIDE)
        weights = sums.rough(rates) + sums.log_prior(prior, rates)
        kept = np.flatnonzero(weights > weights.max() + np.log(_EDGE))
        # a cell more on either side, and a tenth of the width, since sums are not quite normal
        room = 0.1 * (rates[kept[-1]] - rates[kept[0]])
        new = max(rates[max(kept[0] - 1, 0)] - room, low), min(rates[min(kept[-1] + 1, _SIDE - 1)] + room, high)
        if new[1] - new[0] > 0.5 * (high - low):
            low, high = new
            break
        low, high = new
    rates = np.linspace(low, high, _FINE)
    blocks = np.array_split(rates, 8)
    log_density = np.concatenate([sums.exact(block) for block in blocks]) + sums.log_prior(prior, rates)
    return GridMarginal.of(rates, log_density)
