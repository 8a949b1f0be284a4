"""Posteriors and confidence limits of shares, from noisy counts out of a public number of records.

Posterior of one share p with prior Beta(a, b), n public, y = k + noise:

    p | y  =  sum_k w_k Beta(a + k, b + n - k),    log w_k = log C(n, k) + log B(a + k, b + n - k) + log P(y | k),

exactly. y is not moved into 0..n: the likelihood alone says what k may be. One of J categories whose counts are all noisy: the others hold
n - k records, and their noisy numbers add up to that and to the noise of J - 1 numbers, so that w_k has a second factor, the probability of
that sum. How the others divide n - k is left out: what a prior says of many small levels, each at least 0, would draw down the share of a
large one where noise is as large as they are. Several categories with prior Dirichlet(a_1, ..., a_J) and all
counts noisy, n = sum k_j public: the joint weight of the counts is prod_j h_j(k_j) on sum k_j = n, h_j(k) = Gamma(a_j + k)/k! P(y_j | k),
so that the marginal of k_j is h_j(k_j) times the convolution of the other h's at n - k_j: exact for any J.

Confidence: equal tails of the exact distribution of y: the p with P_p(Y >= y) = alpha/2 and P_p(Y <= y) = alpha/2, 0 or 1 where there is
none. For J categories each count by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.methods.intervals.posteriors.laws import NoiseLaw
from confide.methods.intervals.posteriors.marginals import BetaMixture

__all__ = ["Cells", "confidence_limits", "level_posterior", "share_posterior"]

Array = NDArray[np.float64]

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
    """The posterior of the share of level j with prior Beta(a, b), from its own noisy count and the sum of all others'.

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
        """Joint draws of the counts behind the noise, (size, J)."""
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
    """The shares that equal tails of the exact distribution of the noisy count do not reject at level alpha.

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
