"""Posteriors and confidence limits of shares, from noisy counts out of a public number of records.

Posterior of one share p with prior Beta(a, b), a public number n, y = k + noise:

    p | y  =  sum_k w_k Beta(a + k, b + n - k),    log w_k = log C(n, k) + log B(a + k, b + n - k) + log P(y | k),

exactly. y is not clipped to 0..n: the likelihood alone says what k may be. Of J categories whose counts are all noisy, the others hold
n - k records. Their noisy numbers add up to that and to the noise of J - 1 numbers, so that w_k has a second factor, the probability of
that sum. How the others divide n - k is ignored. Otherwise a prior on many small levels, each at least 0, would draw down the share of a
large one where noise is as large as they are. Several categories with prior Dirichlet(a_1, ..., a_J) and all
counts noisy, n = sum k_j public: the joint weight of the counts is prod_j h_j(k_j) on sum k_j = n, h_j(k) = Gamma(a_j + k)/k! P(y_j | k),
so that the marginal of k_j is h_j(k_j) times the convolution of the other h's at n - k_j: exact for any J.

Confidence: equal tails of the exact distribution of y: the p with P_p(Y >= y) = alpha/2 and P_p(Y <= y) = alpha/2, 0 or 1 where there is
none. For J categories each count separately.

Confidence limits of two shares and of their difference, from the noisy counts of a 2 x 2 table whose sum n is public.

Within a group of N records, N not public, a = (1 - p) y_1 - p y_0 has mean 0 at its share p. This holds whatever N is, and however little
of the two counts exceeds their noise. No share is divided by a size that noise may take to 0 (as Fieller's ratio). Its variance is
N p (1 - p) + s^2 (p^2 + (1 - p)^2), s^2 the noise's. A difference d is judged by the profile

    Q(d) = min over p of a_1(p)^2 / var_1(p) + a_2(p + d)^2 / var_2(p + d),      R(d) = sign * sqrt(Q(d) - Q_0),

Q_0 the least of each group separately: 0, but where noise takes a share beyond 0 or 1, whose excess says nothing of d. The interval is of
all d with R(d) between the quantiles of a standard normal. The quantiles are moved by the third and fourth cumulants of records and noise
(Cornish, Fisher 1938; Laplace noise has longer tails). N is estimated by the counts of both groups and n. One share alone: the same without
the other.

Exact moments of a normal and of a Poisson number that is clipped to public bounds: what clipping does is modeled, not ignored.

A normal with mean m and standard deviation s is clipped to [-1, 1], and t = (z - m)/s to [a, b] = [(-1 - m)/s, (1 - m)/s]. Then
E t^k = a^k Phi(a) + I_k + b^k Phi(-b), I_k the integral of t^k phi(t) between a and b. Variances of z and z^2 follow from central moments
of t, so that nothing is lost where s is small beside m.

Posterior of a Poisson rate, from the noisy sum of counts that are clipped to 0..U.

y = S + noise, S the sum of n numbers min(X, U), X ~ Poisson(rate). The distribution of S is exact (`ClippedPoisson.expected`), so that the
likelihood P(y | rate) = sum_s P(S = s | rate) P(noise = y - s) is. The posterior is on a grid of rates in (0, U], first found with normal
sums, then computed exactly where its mass is.

Prior: "uniform" on (0, U] (default), "jeffreys" of the noisy release |dm/d rate|/sqrt(v + noise), or "gamma(shape, rate)".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.methods.intervals.marginals import BetaMixture, GridMarginal, NoiseLaw, normal_laplace

_TINY = 1e-300
# Numbers that are held at once.
_HELD = 1 << 20


def _window(y: float, n: int, law: NoiseLaw) -> Array:
    """The counts that matter: within the noise's reach of y, or, where y is out of range, of the nearest count."""
    middle = min(max(y, 0.0), float(n))
    return np.arange(max(floor(middle - law.reach), 0), min(ceil(middle + law.reach), n) + 1, dtype=np.float64)


def share_posterior(y: float, n: int, law: NoiseLaw, a: float = 0.5, b: float = 0.5) -> BetaMixture:
    """The posterior of a share p with prior Beta(a, b), from y = k + noise, k ~ Bin(n, p).

    >>> mixture = share_posterior(30.2, 100, NoiseLaw("normal", 2.0))
    >>> [round(float(v), 3) for v in mixture.quantile([0.025, 0.5, 0.975])]
    [0.211, 0.302, 0.405]
    """
    k = _window(y, n, law)
    log_binomial = -special.gammaln(k + 1) - special.gammaln(n - k + 1)
    log_beta = special.gammaln(a + k) + special.gammaln(b + n - k)
    return BetaMixture.of(log_binomial + log_beta + law.logpdf(y - k), a + k, b + n - k)


def level_posterior(y: Array, j: int, n: int, law: NoiseLaw, a: float = 0.5, b: float = 0.5) -> BetaMixture:
    """The posterior of the share of level j with prior Beta(a, b), from its noisy number and the sum of all others'.

    >>> mixture = level_posterior(np.array([30.0, 52.0, 21.0]), 0, 100, NoiseLaw("geometric", 4.0))
    >>> [round(float(v), 3) for v in mixture.quantile([0.025, 0.5, 0.975])]
    [0.178, 0.29, 0.409]
    """
    own = float(y[j])
    others = float(np.sum(y)) - own
    ends = np.clip([own, n - others], 0.0, float(n))
    k = np.arange(max(floor(ends.min() - law.reach), 0), min(ceil(ends.max() + law.reach), n) + 1, dtype=np.float64)
    log_binomial = -special.gammaln(k + 1) - special.gammaln(n - k + 1)
    log_beta = special.gammaln(a + k) + special.gammaln(b + n - k)
    log_noise = law.logpdf(own - k) + law.logpdf_of_sum(len(y) - 1, others - (n - k))
    return BetaMixture.of(log_binomial + log_beta + log_noise, a + k, b + n - k)


class Cells:
    """The joint posterior of several shares that add up to 1, from noisy counts y (J,) with noise of one law.

    priors: (J,) of the Dirichlet. `marginal(j)` is exact; `draws` gives joint draws of all shares, (size, J).
    """

    def __init__(self, y: Array, n: int, law: NoiseLaw, priors: Array) -> None:
        self.y, self.n, self.law, self.priors = (
            np.asarray(y, dtype=np.float64),
            n,
            law,
            np.asarray(priors, dtype=np.float64),
        )
        self._starts, self._weights = self._own()
        self._after = self._suffixes()

    def _own(self) -> tuple[list[int], list[Array]]:
        """h_j on the counts within the noise's reach of the released one, moved so that they can add up to n."""
        shift = (self.n - self.y.sum()) / len(self.y)
        starts, weights = [], []
        for y, a in zip(self.y, self.priors, strict=True):
            reach = self.law.reach + abs(shift) * len(self.y)
            k = np.arange(
                min(max(floor(y - reach), 0), self.n), max(min(ceil(y + reach), self.n), 0) + 1, dtype=np.float64
            )
            log_own = special.gammaln(a + k) - special.gammaln(k + 1) + self.law.logpdf(y - k)
            starts.append(int(k[0]))
            weights.append(np.exp(log_own - log_own.max()))
        return starts, weights

    def _suffixes(self) -> list[tuple[int, Array]]:
        """The convolutions of h_j, ..., h_J for each j, as (first sum, weights)."""
        found = [(self._starts[-1], self._weights[-1])]
        for start, own in zip(self._starts[-2::-1], self._weights[-2::-1], strict=True):
            found.append(_convolved((start, own), found[-1]))
        return found[::-1]

    def marginal(self, j: int) -> BetaMixture:
        """The posterior of share j."""
        others: tuple[int, Array] | None = None
        for i, part in enumerate(zip(self._starts, self._weights, strict=True)):
            if i != j:
                others = part if others is None else _convolved(others, part)
        assert others is not None
        k = self._starts[j] + np.arange(len(self._weights[j]))
        rest = _at(others, self.n - k)
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.maximum(self._weights[j], _TINY)) + np.log(np.maximum(rest, _TINY))
        a, whole = self.priors[j], self.priors.sum()
        return BetaMixture.of(log_weights, a + k, whole - a + self.n - k)

    def counts(self, generator: np.random.Generator, size: int) -> Array:
        """Joint draws of the exact counts, (size, J)."""
        found, left = np.zeros((size, len(self.y))), np.full(size, self.n)
        for j in range(len(self.y) - 1):
            k = self._starts[j] + np.arange(len(self._weights[j]))
            rests, rest = np.unique(left, return_inverse=True)
            u, place = generator.random(size), np.zeros(size, dtype=np.int64)
            step = max(_HELD // len(k), 1)
            for first in range(0, len(rests), step):
                own = (rest >= first) & (rest < first + step)
                p = self._weights[j] * _at(self._after[j + 1], rests[first : first + step, None] - k)
                p[p.sum(axis=1) <= 0] = 1.0
                place[own] = _inverted(np.cumsum(p, axis=1), rest[own] - first, u[own])
            found[:, j] = k[place]
            left = left - k[place]
        found[:, -1] = np.maximum(left, 0)
        return found

    def draws(self, generator: np.random.Generator, size: int) -> Array:
        """Joint draws of the shares, (size, J)."""
        gammas = generator.standard_gamma(self.counts(generator, size) + self.priors)
        return np.asarray(gammas / gammas.sum(axis=1, keepdims=True))


def _inverted(sums: Array, row: NDArray[np.int64], u: Array) -> NDArray[np.int64]:
    """Of running sums (rows, K) the place where a row's share u of the whole is reached, of many (row, u) at once."""
    many, width = sums.shape
    scaled = sums / sums[:, -1:] + np.arange(many)[:, None]
    place = np.searchsorted(scaled.ravel(), u + row, side="right") - row * width
    return np.asarray(np.clip(place, 0, width - 1))


def _convolved(one: tuple[int, Array], other: tuple[int, Array]) -> tuple[int, Array]:
    size = len(one[1]) + len(other[1]) - 1
    whole = 1 << (size - 1).bit_length()
    found = np.fft.irfft(np.fft.rfft(one[1], whole) * np.fft.rfft(other[1], whole), whole)[:size]
    found = np.maximum(found, 0.0)
    return one[0] + other[0], found / found.max()


def _at(part: tuple[int, Array], sums: Any) -> Array:
    """Weights of a convolution at given sums, 0 outside."""
    place = np.asarray(sums) - part[0]
    inside = (place >= 0) & (place < len(part[1]))
    return np.where(inside, part[1][np.clip(place, 0, len(part[1]) - 1)], 0.0)


def confidence_limits(y: float, n: int, law: NoiseLaw, alpha: float) -> tuple[float, float]:
    """The shares that equal tails of the exact distribution of the noisy number do not reject at level alpha.

    >>> [round(v, 3) for v in confidence_limits(0.05, 20, NoiseLaw("normal", 0.01), 0.05)]  # the upper one is Clopper and Pearson's for 0
    [0.001, 0.168]
    """
    own = _Tails(y, n, law)
    low = _solved(own.above, alpha / 2, rising=True)
    high = _solved(own.below, alpha / 2, rising=False)
    return (0.0 if low is None else low), (1.0 if high is None else high)


class _Tails:
    """P_p(Y >= y) and P_p(Y <= y) as functions of p."""

    def __init__(self, y: float, n: int, law: NoiseLaw) -> None:
        self.y, self.n, self.law = y, n, law

    def _counts(self, p: float) -> tuple[Array, Array]:
        spread = 12 * (self.n * p * (1 - p)) ** 0.5 + 40
        k = np.arange(max(floor(self.n * p - spread), 0), min(ceil(self.n * p + spread), self.n) + 1, dtype=np.float64)
        log_p = special.gammaln(self.n + 1) - special.gammaln(k + 1) - special.gammaln(self.n - k + 1)
        return k, np.exp(log_p + special.xlogy(k, p) + special.xlog1py(self.n - k, -p))

    def above(self, p: float) -> float:
        k, own = self._counts(p)
        return float(own @ self.law.tail(self.y - k))

    def below(self, p: float) -> float:
        k, own = self._counts(p)
        # the noise is symmetric
        return float(own @ self.law.tail(k - self.y))


def _solved(tail: Callable[[float], float], level: float, *, rising: bool) -> float | None:
    """The p at which a monotone tail meets a level; None where it never comes down to it."""
    low, high = 0.0, 1.0
    at_end = tail(0.0 if rising else 1.0)
    if at_end >= level:
        return None
    if tail(1.0 if rising else 0.0) <= level:
        return high if rising else low
    f_low, f_high = tail(low) - level, tail(high) - level
    for step in range(100):
        # regula falsi with a bisection every third step
        middle = (low + high) / 2 if step % 3 == 2 else (low * f_high - high * f_low) / (f_high - f_low)
        value = tail(middle) - level
        if (value < 0) == (f_low < 0):
            low, f_low = middle, value
        else:
            high, f_high = middle, value
        if high - low < 1e-9 or value == 0.0:
            break
    return (low + high) / 2


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
    """Noisy counts (without, with) in the first group, then in the second, (4,); n is public.

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

        At -1 and 1 no share is free and two counts are noise alone, and Q has up to two squares. These ends are excluded only where
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

    noise: what the noise adds to the excess, unlimited as less and less of it differs from 0. It moves no quantile out by more than `most`,
    and none in. Below levels of 92% that takes off more than whole numbers allow.
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


# Where phi is 0 to the last digit.
_FAR = 38.0


@dataclass(frozen=True, eq=False)
class ClippedNormal:
    """Moments of clip(N(m, s^2), -1, 1): mean, square = E z^2, and the covariance of (z, z^2). Arrays of one shape."""

    mean: Array
    square: Array
    c11: Array
    c12: Array
    c22: Array

    @classmethod
    def of(cls, m: Array, s: Array) -> ClippedNormal:
        """m: means, s: standard deviations above 0."""
        m, s = np.broadcast_arrays(np.asarray(m, dtype=np.float64), np.asarray(s, dtype=np.float64))
        a, b = np.clip((-1 - m) / s, -_FAR, _FAR), np.clip((1 - m) / s, -_FAR, _FAR)
        below, above = special.ndtr(a), special.ndtr(-b)
        fa, fb = (np.exp(-v * v / 2) / sqrt(2 * np.pi) for v in (a, b))
        # the integrals of t^k phi(t) between a and b
        i0 = 1 - below - above
        i1 = fa - fb
        i2 = i0 + a * fa - b * fb
        a2, b2 = a * a, b * b
        i3 = 2 * i1 + a2 * fa - b2 * fb
        i4 = 3 * i2 + a * a2 * fa - b * b2 * fb
        t1, t2 = a * below + i1 + b * above, a2 * below + i2 + b2 * above
        t3, t4 = a * a2 * below + i3 + b * b2 * above, a2 * a2 * below + i4 + b2 * b2 * above
        v11 = np.maximum(t2 - t1 * t1, 0.0)
        v12 = t3 - t1 * t2
        v22 = np.maximum(t4 - t2 * t2, 0.0)
        square = m * m + 2 * m * s * t1 + s * s * t2
        c11 = s * s * v11
        c12 = 2 * m * c11 + s**3 * v12
        c22 = 4 * m * m * c11 + 4 * m * s**3 * v12 + s**4 * v22
        return cls(m + s * t1, square, c11, c12, np.maximum(c22, 0.0))


@dataclass(frozen=True)
class ColumnShape:
    """Of numbers in [-1, 1] of any distribution: what their standard deviation s does not say.

    lean: the third central moment over s^2. excess: what the fourth central moment is above s^4 and lean^2 s^2 (Pearson: at least 0), over
    s^4. They are 2 and 0 of a normal.
    """

    lean: float
    excess: float

    def moments(self, m: Array, s: Array) -> ClippedNormal:
        """Of numbers of this shape with means m and standard deviations s; numbers in [-1, 1] have s^2 <= 1 - m^2.

        The third moment is the shape's within what the bounds allow. With a = 1 + m, E (z + 1)^3 is at least (a^2 + s^2)^2/a (Cauchy and
        Schwarz). So E (z - m)^3 is at least g s^2, g = s^2/a - a, and likewise from above. Where s is larger than the distance of m
        from a bound, as of a column that is at one but for a few, numbers are skewed whatever was released. A mean farther on the side of
        the longer tail has a larger s, which makes its interval longer on that side.
        """
        m, s = np.broadcast_arrays(np.asarray(m, dtype=np.float64), np.asarray(s, dtype=np.float64))
        own = s * s
        below, above = np.maximum(1 + m, 1e-12), np.maximum(1 - m, 1e-12)
        least, most = own / below - below, above - own / above
        # on the edge s^2 = 1 - m^2 both are -2 m, and beyond it there are no such numbers
        third = np.where(least < most, np.clip(self.lean, least, np.maximum(least, most)), -2 * m)
        slope = 2 * m + third
        rest = np.minimum(self.excess * own, (1 + np.abs(m)) ** 2) * own
        return ClippedNormal(m, m * m + own, own, slope * own, slope * slope * own + rest)


@dataclass(frozen=True, eq=False)
class ClippedPoisson:
    """min(X, cap), X Poisson with each rate (g,): probabilities (g, cap + 1), mean and variance (g,)."""

    rates: Array
    cap: int

    @property
    def probabilities(self) -> Array:
        k = np.arange(self.cap, dtype=np.float64)
        log_p = special.xlogy(k, self.rates[:, None]) - self.rates[:, None] - special.gammaln(k + 1)
        own = np.exp(log_p)
        rest = special.gammainc(float(self.cap), np.maximum(self.rates, 1e-300))
        return np.concatenate([own, rest[:, None]], axis=1)

    @property
    def moments(self) -> tuple[Array, Array]:
        """(mean, variance)."""
        k, own = np.arange(self.cap + 1, dtype=np.float64), self.probabilities
        mean = own @ k
        return mean, np.maximum(((k - mean[:, None]) ** 2 * own).sum(axis=1), 0.0)

    def reach(self, n: int) -> tuple[int, int]:
        """Whole numbers between which the sum of n of them lies, for every rate, but for 1e-30."""
        mean, variance = self.moments
        room = 13 * sqrt(n * float(variance.max())) + 4 * self.cap + 32
        return max(floor(n * float(mean.min()) - room), 0), min(ceil(n * float(mean.max()) + room), n * self.cap)

    def expected(self, n: int, function: Callable[[Array], Array]) -> Array:
        """E function(S) for each rate, S the sum of n of them, exact to about 1e-14 of the function's largest value there; (g,).

        function: of whole numbers. The n-th power of the characteristic function at M frequencies is the distribution of S modulo M. M
        covers where all rates' sums lie but for 1e-30. Frequencies at which it is below e^-42 are excluded.
        """
        _, variance = self.moments
        first, last = self.reach(n)
        size = 1 << max((last - first + 1).bit_length(), 4)
        weights = np.fft.rfft(function(first + np.arange(size, dtype=np.float64)), size) / size
        weights[1:-1] *= 2
        k, own = np.arange(self.cap + 1), self.probabilities
        used = self._frequencies(own[int(np.argmin(variance))], n, size)
        angles = 2 * np.pi * np.arange(used) / size
        logs = np.log((np.exp(1j * np.outer(angles, k)) @ own.T.astype(np.complex128)) + 1e-300)
        terms = np.exp(n * logs - 1j * angles[:, None] * first)
        # P(S = s) = sum_f phi(f)^n e^(-i f s)/M: phi^n meets the transform of the function
        return np.asarray((terms.T @ weights[:used]).real)

    @staticmethod
    def _frequencies(own: Array, n: int, size: int) -> int:
        """How many of the frequencies matter for the narrowest of the distributions, and so for all."""
        whole, k = size // 2 + 1, np.arange(len(own))
        tried = min(64, whole)
        while tried < whole:
            at = 2 * np.pi * (tried - 1) / size
            if n * np.log(abs(np.exp(1j * at * k) @ own) + 1e-300) < -42:
                break
            tried = min(tried * 2, whole)
        return tried


_SIDE, _ZOOMS, _RATES = 401, 4, 241
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
    rates = np.linspace(low, high, _RATES)
    blocks = np.array_split(rates, 8)
    log_density = np.concatenate([sums.exact(block) for block in blocks]) + sums.log_prior(prior, rates)
    return GridMarginal.of(rates, log_density)
