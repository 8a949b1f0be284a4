r"""What two rounds say of ranks: group means of scores, and how far sampling and noise may move them.

Round 1 gives each group's distribution function F_g, noisily; scores are u = 2 H - 1 at the middle of each bin, H the distribution
function of their SUM alone: under equal laws labels are exchangeable given it, so that a poor H costs power and not size. Round 2 gives the
groups' numbers of records, sums of u and of 1 - u^2.

Two groups. (m_1 - m_2)/2 estimates P(Y1 > Y2) + P(Y1 = Y2)/2 - 1/2. Noise in H shortens scores: the estimate is put back to the scale on
which ranks of the pooled records have the variance (1 - sum p^3)/12, p the shares of ties. Variance (Brunner, Munzel 2000):

    Var F_2(Y1)/n_1 + Var F_1(Y2)/n_2.

It is taken two ways, and the larger one counts. (i) From F_1 and F_2 of round 1, less what noise adds on average if laws are equal, in
draws, shrunken by what it adds at random. (ii) From the spreads of scores of round 2, r_g = s_g/s: were F_1(Y) and F_2(Y) on a line, which
they nearly are for laws that differ in place and scale, sd F_2(Y1) = (r_1 - w_1)/(w_2 sqrt(12)), w_g = n_g/n. To that come the noise of
round 2 and, where the laws differ, of H: D'C D times its size, D = F_1 - F_2, C the covariance of noisy counts, less its average
under equal laws.

One sample. The mean of sign(d) H(|d|) is P(d + d' > 0) - 1/2, d' another record; its variance 4 Var F(-d)/n likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.distributions.cumulative_counts import monotone
from confide.aggregates.distributions.cumulative_strategy import Strategy

__all__ = ["Scored", "Shape", "mid", "monotone_cdf", "scores_of"]


# Draws of round 1's noise under equal laws.
_DRAWS = 200
# Variances of scores in [-1, 1] lie between these; a group counts at least this many sds of its noisy number.
_LEAST, _MOST = 0.02, 1.0
# A bin with this share of the records is too coarse for them.
_HEAVY = 0.1
# Noise sds by which that has to be seen.
_SEEN = 3.0


def monotone_cdf(counts: Array) -> Array:
    """F at the upper edges, (..., m), from noisy counts: their monotone sums over the last of them."""
    rising = monotone(np.cumsum(counts, axis=-1))
    return np.asarray(np.clip(rising / np.maximum(rising[..., -1:], 1.0), 0.0, 1.0))


def mid(f: Array) -> Array:
    """A distribution function in the middle of each bin: ties count half."""
    return np.asarray(f - np.diff(f, axis=-1, prepend=0.0) / 2)


def scores_of(counts: Array) -> Array:
    """u = 2 H - 1 of each bin, from the noisy counts of the pooled records."""
    return np.asarray(2.0 * mid(monotone_cdf(counts)) - 1.0)


@dataclass(frozen=True, eq=False)
class Shape:
    """Round 1: noisy counts (k, m) of k groups in m bins, their noise variance in units of the strategy's; alone: bins of one value."""

    counts: Array
    unit: float
    strategy: Strategy
    alone: NDArray[np.bool_]

    @cached_property
    def pooled(self) -> Array:
        """H at the upper edges."""
        return monotone_cdf(self.counts.sum(axis=0))

    @cached_property
    def groups(self) -> Array:
        """F_g at the upper edges, (k, m)."""
        return monotone_cdf(self.counts)

    @property
    def size_variance(self) -> float:
        """Noise variance of a group's number of records."""
        return self.unit * self.strategy.total

    def level(self, size: float) -> float:
        """The noise sd of H in the middle, for so many records in all: scores are poor where it is large."""
        return sqrt(len(self.counts) * self.unit * float(self.strategy.centred(0.5).max())) / max(size, 1.0)

    def noisy(self, shares: Array, sizes: Array, generator: np.random.Generator) -> Array:
        """Draws of noisy counts (r, k, m) of groups of these sizes if all have the pooled law."""
        k, m = self.counts.shape
        noise = generator.standard_normal((_DRAWS, k, m)) @ self.strategy.root.T
        return np.asarray(sizes[:, None] * shares + sqrt(self.unit) * noise)

    def lumped(self, size: float) -> float:
        """How many of the pairs of records lie in one heavy bin of several values, where ranks do not tell them apart: sum p^2 over bins
        that hold a tenth of the records, by three standard deviations of their noise: fewer would be found among 128 bins where there are
        none. Within lighter ones a law is taken to be smooth.
        """
        p = self.counts.sum(axis=0) / max(size, 1.0)
        variance = len(self.counts) * self.unit * np.diag(self.strategy.covariance) / max(size, 1.0) ** 2
        heavy = ~self.alone & (p - _SEEN * np.sqrt(variance) > _HEAVY)
        return float(np.clip((p * p - variance)[heavy].sum(), 0.0, 1.0))

    def ties(self, size: float) -> float:
        """sum p^3 over bins, less what noise adds, and one sd of that: 0 unless atoms are seen."""
        p = self.counts.sum(axis=0) / max(size, 1.0)
        variance = len(self.counts) * self.unit * np.diag(self.strategy.covariance) / max(size, 1.0) ** 2
        found = float((p**3 - 3 * p * variance).sum())
        sd = sqrt(float((15 * variance**3 + 36 * np.maximum(p, 0.0) ** 2 * variance**2).sum()))
        # bins themselves are ties to the ranks, and are so in the scores as well
        return float(np.clip(found - sd, 0.0, 0.95))


@dataclass(frozen=True, eq=False)
class Scored:
    """Round 2 of k groups: n, s = sum u, q = sum (1 - u^2), (k,), noise variances v0 of n, round 1's joined in, and v1."""

    n: Array
    s: Array
    q: Array
    v0: float
    v1: float

    @classmethod
    def joined(
        cls, shape_sizes: Array, shape_variance: float, n: Array, s: Array, q: Array, v0: float, v1: float
    ) -> Scored:
        """With the numbers of records of both rounds, weighted by their precision."""
        weight = shape_variance / (shape_variance + v0)
        both = weight * n + (1 - weight) * shape_sizes
        variance = v0 * weight
        return cls(np.maximum(both, sqrt(variance)), s, q, variance, v1)

    @property
    def all(self) -> float:
        return float(self.n.sum())

    @cached_property
    def weights(self) -> Array:
        return np.asarray(self.n / self.all)

    @cached_property
    def means(self) -> Array:
        return np.asarray(self.s / self.n)

    @cached_property
    def centre(self) -> float:
        """The mean score of all records."""
        return float(np.clip(self.s.sum() / self.all, -1.0, 1.0))

    @cached_property
    def spread(self) -> float:
        """The variance of scores of all records."""
        return float(np.clip(1.0 - self.q.sum() / self.all - self.centre**2, _LEAST, _MOST))

    @cached_property
    def spreads(self) -> Array:
        """The variance of scores within each group."""
        return np.clip(1.0 - self.q / self.n - self.means**2, _LEAST, _MOST)

    @cached_property
    def noise(self) -> Array:
        """Noise variance of a group's mean score less the common centre, (k,)."""
        return np.asarray((self.v1 + self.centre**2 * self.v0) / self.n**2)

    @property
    def told(self) -> NDArray[np.bool_]:
        """Groups that the noise tells from empty, (k,)."""
        return np.asarray(self.n >= 3 * sqrt(self.v0))

    def of(self, kept: NDArray[np.bool_]) -> Scored:
        """Some of the groups."""
        return replace(self, n=self.n[kept], s=self.s[kept], q=self.q[kept])
