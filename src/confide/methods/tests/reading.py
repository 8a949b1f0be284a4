"""What two rounds say of ranks: group means of scores, and how far sampling and noise may move them.

Round 1 gives each group's distribution function F_g, noisily. Scores are u = 2 H - 1 at the middle of each bin, H the distribution
function of their SUM alone. Under equal laws labels are exchangeable given it, so that a poor H costs power and not size. Round 2 gives the
groups' numbers of records, sums of u and of 1 - u^2.

Two groups. (m_1 - m_2)/2 estimates P(Y1 > Y2) + P(Y1 = Y2)/2 - 1/2. Noise in H shortens scores. The estimate is put back to the scale on
which ranks of the pooled records have the variance (1 - sum p^3)/12, p the shares of ties. Variance (Brunner, Munzel 2000):

    Var F_2(Y1)/n_1 + Var F_1(Y2)/n_2.

It is taken two ways, and the larger one counts. First, from F_1 and F_2 of round 1, less what noise adds on average if laws are equal, in
draws, shrunken by what it adds at random. Second, from the spreads of scores of round 2, r_g = s_g/s. Were F_1(Y) and F_2(Y) on a line, as
they nearly are for laws that differ in place and scale, SD F_2(Y1) = (r_1 - w_1)/(w_2 sqrt(12)), w_g = n_g/n. To that come the noise of
round 2 and, where the laws differ, of H. The latter is D'C D times its size, less its average under equal laws. D = F_1 - F_2, C the
covariance of noisy counts.

One sample. The mean of sign(d) H(|d|) is P(d + d' > 0) - 1/2, d' another record; its variance 4 Var F(-d)/n likewise.

Variances of rank statistics from two noisy rounds.

What a rank test will find, before anything is spent: its power at n records in groups of equal size.

The effect of one sample is P(d + d' > 0) - 1/2, that of groups P(Y1 > Y2) - 1/2 = e of one group and each of the others, which are alike.
Then the mean scores of k groups, of variance w = 1/(3 m) + noise/m^2 each at m records, differ by 2 e. The statistic is a chi-square
with k - 1 degrees of freedom and the non-centrality 4 e^2 (k - 1)/(k w). Of one sample e^2 n/(1/3 + noise/n) with one degree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.sums.distributions.cumulative import Strategy, monotone

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
        """The noise SD of H in the middle, for so many records in all: scores are poor where it is large."""
        return sqrt(len(self.counts) * self.unit * float(self.strategy.centred(0.5).max())) / max(size, 1.0)

    def noisy(self, shares: Array, sizes: Array, generator: np.random.Generator) -> Array:
        """Draws of noisy counts (r, k, m) of groups of these sizes if all have the pooled law."""
        k, m = self.counts.shape
        noise = generator.standard_normal((_DRAWS, k, m)) @ self.strategy.root.T
        return np.asarray(sizes[:, None] * shares + sqrt(self.unit) * noise)

    def lumped(self, size: float) -> float:
        """The share of pairs of records in one heavy bin of several values, where ranks do not tell them apart.

        It is sum p^2 over bins that hold a tenth of the records, by three standard deviations of their noise. Fewer would be found among
        128 bins where there are none. Within lighter ones a law is assumed to be smooth.
        """
        p = self.counts.sum(axis=0) / max(size, 1.0)
        variance = len(self.counts) * self.unit * np.diag(self.strategy.covariance) / max(size, 1.0) ** 2
        heavy = ~self.alone & (p - _SEEN * np.sqrt(variance) > _HEAVY)
        return float(np.clip((p * p - variance)[heavy].sum(), 0.0, 1.0))

    def ties(self, size: float) -> float:
        """sum p^3 over bins, less what noise adds, and one SD of that: 0 unless atoms are seen."""
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
        """Noise variance of a group's mean score less the common center, (k,)."""
        return np.asarray((self.v1 + self.centre**2 * self.v0) / self.n**2)

    @property
    def told(self) -> NDArray[np.bool_]:
        """Groups that the noise tells from empty, (k,)."""
        return np.asarray(self.n >= 3 * sqrt(self.v0))

    def of(self, kept: NDArray[np.bool_]) -> Scored:
        """Some of the groups."""
        return replace(self, n=self.n[kept], s=self.s[kept], q=self.q[kept])


@dataclass(frozen=True, eq=False)
class Contrast:
    """An estimate with 0 as its null value: its variances by sampling and by noise, and degrees of freedom."""

    estimate: float
    sampling: float
    noise: float
    df: float

    @property
    def se(self) -> float:
        return sqrt(self.sampling + self.noise)


def _shrunken(found: float, null: Array) -> float:
    """What is found beyond its average under equal laws, shrunken by what it varies there (James, Stein)."""
    beyond, sd = found - float(null.mean()), float(null.std())
    return max(0.0, 1.0 - sd * sd / beyond**2) * beyond if beyond else 0.0


def _variance(values: Array, shares: Array) -> Array:
    """Of values over bins with these shares, over the last axis."""
    mean = (values * shares).sum(axis=-1)
    return np.asarray((values * values * shares).sum(axis=-1) - mean * mean)


def _through_scores(masses: Array, shape: Shape, size: float) -> Array:
    """Noise variance of the integral of H over masses (..., m): an error of a count moves H above it."""
    tails = np.cumsum(masses[..., ::-1], axis=-1)[..., ::-1] - masses / 2
    k = len(shape.counts)
    return np.asarray(k * shape.unit / max(size, 1.0) ** 2 * ((tails @ shape.strategy.covariance) * tails).sum(axis=-1))


def two_groups(shape: Shape, scored: Scored, generator: np.random.Generator) -> Contrast:
    """P(Y1 > Y2) + P(Y1 = Y2)/2 - 1/2."""
    n, w = scored.n, scored.weights
    scale = _scale(shape, scored)
    estimate = float(scale * (scored.means[0] - scored.means[1]) / 2)
    equal = scale**2 * scored.spread / 4
    ratio = np.sqrt(scored.spreads / scored.spread)
    own = equal * (np.maximum(ratio - w, 0.0) / w[::-1]) ** 2
    shares = np.diff(shape.pooled, prepend=0.0)
    null = monotone_cdf(shape.noisy(shares, n, generator))
    parts, through = _pair(shape.groups, n, shape, scored.all)
    null_parts, null_through = _pair(null, n, shape, scored.all)
    by_shape = equal * float((1 / n).sum()) + _shrunken(float(parts.sum()), null_parts.sum(axis=-1))
    by_spread = own / n
    sampling = max(float(by_spread.sum()), by_shape)
    noise = scale**2 * float(scored.noise.sum()) / 4 + max(_shrunken(float(through), null_through), 0.0)
    noise += (shape.lumped(scored.all) * estimate) ** 2
    return Contrast(estimate, sampling, noise, _welch(by_spread, n, sampling + noise))


def _scale(shape: Shape, scored: Scored) -> float:
    """What noise in H has shortened scores by."""
    ideal = (1.0 - shape.ties(scored.all)) / 3
    return float(np.clip(sqrt(ideal / scored.spread), 1.0, 2.0))


def _pair(f: Array, n: Array, shape: Shape, size: float) -> tuple[Array, Array]:
    """(Var F_2(Y1)/n_1, Var F_1(Y2)/n_2), (..., 2), and the variance by noise of H, of distribution functions (..., 2, m)."""
    shares, middle = np.diff(f, axis=-1, prepend=0.0), mid(f)
    parts = _variance(middle[..., ::-1, :], shares) / n
    return parts, _through_scores(shares[..., 0, :] - shares[..., 1, :], shape, size)


def _welch(parts: Array, n: Array, total: float) -> float:
    """Degrees of freedom by Satterthwaite; noise of known size has infinitely many."""
    below = float((parts**2 / np.maximum(n - 1.0, 1.0)).sum())
    return max(total**2 / below, 1.0) if below > 0 else inf


def one_sample(shape: Shape, scored: Scored, generator: np.random.Generator) -> Contrast:
    """P(d + d' > 0) + P(d + d' = 0)/2 - 1/2. shape: of sizes |d|, below 0 and above; scored: all records, s the sum of signed scores."""
    n = scored.all
    # scores are H(|d|) in [0, 1], whose square has the mean 1/3 less what ties take
    ideal = (1.0 - shape.ties(n)) / 3
    square = float(np.clip(1.0 - scored.q.sum() / n, 0.02, 1.0))
    scale = float(np.clip(sqrt(ideal / square), 1.0, 2.0))
    estimate = float(scale * scored.s.sum() / n)
    equal = scale**2 * square / n
    shares = np.diff(shape.pooled, prepend=0.0)
    sizes = np.array([n / 2, n / 2])
    found, through = _signed(shape.counts, shape, n)
    null, null_through = _signed(shape.noisy(shares, sizes, generator), shape, n)
    sampling = max(equal + _shrunken(float(found), null), equal / 4)
    noise = scale**2 * (scored.v1 + estimate**2 * scored.v0) / n**2 + max(_shrunken(float(through), null_through), 0.0)
    noise += (shape.lumped(n) * estimate) ** 2
    return Contrast(estimate, sampling, noise, max(n - 1.0, 1.0))


def _signed(counts: Array, shape: Shape, size: float) -> tuple[Array, Array]:
    """4 Var F(-d)/n and the variance by noise of H, from noisy counts (..., 2, m) of sizes below 0 and above."""
    sizes = np.maximum(counts.sum(axis=-1), 0.0)
    masses = (
        np.diff(monotone_cdf(counts), axis=-1, prepend=0.0)
        * (sizes / np.maximum(sizes.sum(axis=-1, keepdims=True), 1.0))[..., None]
    )
    below, above = masses[..., 0, :].copy(), masses[..., 1, :].copy()
    # the law of d from the largest size below 0 to the largest above; what is 0 stands half on either side
    below[..., 0] = above[..., 0] = (below[..., 0] + above[..., 0]) / 2
    law = np.concatenate([below[..., ::-1], above], axis=-1)
    middle = np.cumsum(law, axis=-1) - law / 2
    variance = 4 * _variance(middle[..., ::-1], law) / max(size, 1.0)
    return variance, _through_scores(above - below, shape, size)


def several_groups(shape: Shape, scored: Scored, generator: np.random.Generator) -> tuple[float, tuple[float, float]]:
    """F of mean scores weighted by the inverse of their variances, and its degrees of freedom, of the groups that are told from empty.

    A group's scores have the pooled variance under equal laws. One that is seen to be larger, by more than a noise SD, counts. So unequal
    spreads are found by little more than the level where sizes are unequal, too. The noise of H counts as in `two_groups`.
    """
    # all groups made the scores, whose noise is therefore theirs
    kept, own = scored.told, scored.of(scored.told)
    seen = own.spreads - np.sqrt(own.v1 * (1 + 4 * own.means**2)) / own.n
    shares = np.diff(shape.pooled, prepend=0.0)
    null = monotone_cdf(shape.noisy(shares, scored.n, generator))
    through, null_through = (
        _through_scores(np.diff(f, axis=-1, prepend=0.0) - shares, shape, scored.all) for f in (shape.groups, null)
    )
    pairs = zip(through[kept], null_through.T[kept], strict=True)
    rough = np.array([_shrunken(float(found), drawn) for found, drawn in pairs])
    variances = np.maximum(own.spread, seen) / own.n + own.noise + 4 * np.maximum(rough, 0.0)
    weights = 1 / variances
    middle = float((weights * own.means).sum() / weights.sum())
    k = len(own.n)
    return float((weights * (own.means - middle) ** 2).sum() / (k - 1)), (k - 1.0, max(own.all - k, 1.0))


_LEVEL, _WANTED, _EFFECTS = 0.05, 0.8, (0.05, 0.1, 0.2)


def power_note(n: int, groups: int, noise: float) -> str:
    """For a plan: the power at three effects, and the effect that is found in 80 of 100 runs. noise: the variance of a sum of scores.

    >>> power_note(900, 3, 100.0).split("; ")[1]
    '80% at 0.09'
    """
    k, df = groups, max(groups - 1, 1)
    size = n / k
    variance = 1 / (3 * size) + noise / size**2
    scale = 1 / variance if k == 1 else 4 * (k - 1) / (k * variance)
    beyond = float(special.chdtri(df, _LEVEL))
    power = ", ".join(f"{1 - special.chndtr(beyond, df, scale * e * e):.0%} at {e:g}" for e in _EFFECTS)
    least = sqrt(float(special.chndtrinc(beyond, df, 1 - _WANTED)) / scale)
    of = {1: "P(d + d' > 0) - 1/2", 2: "P(Y1 > Y2) - 1/2 of its two groups"}
    what = of.get(k, "P(Y1 > Y2) - 1/2 of one group and each of the others, which are alike,")
    return (
        f"with {n:,} records{'' if k == 1 else ' in groups of equal size'} the power (5%, two sides) for an effect {what} is about "
        f"{power}; 80% at {least:.2g}"
    )
