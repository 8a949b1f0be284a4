"""Posterior distributions of one number: a mixture of betas, a density on a grid, a mixture of Student's t.

Each gives density, distribution function, quantiles, mean, standard deviation and draws, and says what support it has. Quantiles are
found on the distribution function itself, by steps that cannot leave the bracket.

The law of released noise, alone and added to normal sampling: densities and tails, exact to the last digits that matter.

Laplace and normal together, in one coordinate: with r = s/b and x >= 0,

    log f(x) = -x^2/(2 s^2) + log(erfcx((r - x/s)/sqrt 2) + erfcx((r + x/s)/sqrt 2)) - log 4b,

which is r^2/2 - x/b - log 2b to the last digit where r - x/s < -9.

In two coordinates the first Laplace is written as a mixture of normals (Andrews, Mallows 1974), the second stays as above:

    f(r1, r2) = int_0^inf e^-v N(r1; 0, V1) g(r2 - C12 r1/V1; sqrt(C22 - C12^2/V1), b2) dv,  V1 = C11 + 2 b1^2 v,

by the trapezoid in t = log v, whose weight e^(t - e^t) falls off at both ends. Both forms were compared with arithmetic of many digits;
the tests hold them to 1e-10 and 1e-6 in log density.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, inf, log, pi, sqrt
from typing import Any, Protocol

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide.core import Noisy

# A component of a mixture below this share of the largest is left out.
_SMALL = 1e-12
_STEPS = 60
# Degrees of freedom from which on a normal number stands for Student's; the golden section, whose multiples spread evenly.
_MANY, _GOLDEN = 50, 0.6180339887498949


class Marginal(Protocol):
    """The distribution of one number."""

    @property
    def mean(self) -> float: ...
    @property
    def sd(self) -> float: ...
    @property
    def span(self) -> tuple[float, float]:
        """Where nearly all of it lies, for pictures."""
        ...

    def density(self, x: Any) -> Array: ...
    def cdf(self, x: Any) -> Array: ...
    def quantile(self, p: Any) -> Array: ...
    def draws(self, generator: np.random.Generator, size: int) -> Array: ...


def _inverted(
    p: Array, cdf: Callable[[Array], Array], density: Callable[[Array], Array], low: Array, high: Array, start: Array
) -> Array:
    """Newton's steps on a distribution function, halving the bracket wherever one would leave it."""
    x = np.clip(start, low, high)
    for _ in range(_STEPS):
        off = cdf(x) - p
        low, high = np.where(off < 0, x, low), np.where(off < 0, high, x)
        with np.errstate(all="ignore"):
            step = x - off / density(x)
        inside = (step >= low) & (step <= high)
        moved = np.where(inside, step, (low + high) / 2)
        done = np.abs(moved - x) <= 1e-12 + 1e-10 * np.abs(moved)
        x = moved
        if done.all() or bool((np.abs(off) < 1e-13).all()):
            break
    return x


@dataclass(frozen=True, eq=False)
class BetaMixture:
    """sum_k w_k Beta(a_k, b_k); weights add up to 1."""

    weights: Array
    a: Array
    b: Array

    @classmethod
    def of(cls, log_weights: Array, a: Array, b: Array) -> BetaMixture:
        """From unnormalized log weights; components below 1e-12 of the largest are excluded."""
        kept = log_weights > log_weights.max() + np.log(_SMALL)
        w = np.exp(log_weights[kept] - log_weights.max())
        return cls(w / w.sum(), a[kept], b[kept])

    @property
    def mean(self) -> float:
        return float(self.weights @ (self.a / (self.a + self.b)))

    @property
    def sd(self) -> float:
        whole = self.a + self.b
        own = self.a / whole
        square = own * (self.a + 1) / (whole + 1)
        return sqrt(max(float(self.weights @ square) - self.mean**2, 0.0))

    @property
    def span(self) -> tuple[float, float]:
        low, high = self.quantile(np.array([0.0005, 0.9995]))
        room = 0.1 * (high - low)
        return max(float(low) - room, 0.0), min(float(high) + room, 1.0)

    def density(self, x: Any) -> Array:
        x = np.asarray(x, dtype=np.float64)[..., None]
        with np.errstate(all="ignore"):
            log_own = special.xlogy(self.a - 1, x) + special.xlog1py(self.b - 1, -x) - self._log_beta
        return np.asarray(np.exp(log_own) @ self.weights)

    @property
    def _log_beta(self) -> Array:
        return np.asarray(special.gammaln(self.a) + special.gammaln(self.b) - special.gammaln(self.a + self.b))

    def cdf(self, x: Any) -> Array:
        x = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
        return np.asarray(special.betainc(self.a, self.b, x[..., None]) @ self.weights)

    def quantile(self, p: Any) -> Array:
        p = np.asarray(p, dtype=np.float64)
        flat = np.atleast_1d(p).astype(np.float64)
        start = self.mean + self.sd * special.ndtri(np.clip(flat, 1e-9, 1 - 1e-9))
        zeros, ones = np.zeros_like(flat), np.ones_like(flat)
        found = _inverted(flat, self.cdf, self.density, zeros, ones, np.clip(start, 1e-9, 1 - 1e-9))
        return np.asarray(found.reshape(p.shape))

    def draws(self, generator: np.random.Generator, size: int) -> Array:
        own = generator.choice(len(self.weights), size=size, p=self.weights)
        return np.asarray(generator.beta(self.a[own], self.b[own]))


def cumulated(points: Array, values: Array) -> Array:
    """The integral of a density (..., g) up to each of its points: trapezoid rule with its first correction."""
    slope, h = np.gradient(values, points, axis=-1), np.diff(points)
    parts = h * (values[..., 1:] + values[..., :-1]) / 2 - h * h * (slope[..., 1:] - slope[..., :-1]) / 12
    sums = np.cumsum(np.maximum(parts, 0.0), axis=-1)
    return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)


def risen(x: Array, points: Array, values: Array, whole: Array) -> Array:
    """That integral (..., g) at x (..., k), between the points: Hermite's cubic, kept within its ends."""
    place = np.clip(np.searchsorted(points, x, side="right") - 1, 0, len(points) - 2)
    h = points[place + 1] - points[place]
    t = np.clip((x - points[place]) / h, 0.0, 1.0)
    own = (whole, values)
    c0, c1, d0, d1 = (
        of[at] if of.ndim == 1 else np.take_along_axis(of, at, -1) for of in own for at in (place, place + 1)
    )
    return np.asarray(np.clip(_cubic(t, c0, c1, d0 * h, d1 * h), c0, c1))


def _cubic(t: Array, c0: Array, c1: Array, d0: Array, d1: Array) -> Array:
    """From c0 at 0, with slope d0, to c1 at 1, with slope d1."""
    return np.asarray(c0 + t * (d0 + t * (3 * (c1 - c0) - 2 * d0 - d1 + t * (2 * (c0 - c1) + d0 + d1))))


@dataclass(frozen=True, eq=False)
class GridMarginal:
    """A density on rising points, in between as its distribution function is: monotone and smooth (corrected trapezoid)."""

    points: Array
    values: Array  # density, up to a factor

    @classmethod
    def of(cls, points: Array, log_density: Array) -> GridMarginal:
        """From an unnormalized log density."""
        return cls(np.asarray(points), np.exp(log_density - np.max(log_density)))

    @cached_property
    def _cumulated(self) -> Array:
        return cumulated(self.points, self.values)

    @property
    def _mass(self) -> float:
        return float(self._cumulated[-1])

    @property
    def mean(self) -> float:
        return self._moment(self.points)

    @property
    def sd(self) -> float:
        return sqrt(max(self._moment((self.points - self.mean) ** 2), 0.0))

    def _moment(self, of: Array) -> float:
        return float(np.trapezoid(of * self.values, self.points) / np.trapezoid(self.values, self.points))

    @property
    def span(self) -> tuple[float, float]:
        low, high = self.quantile(np.array([0.0005, 0.9995]))
        room = 0.1 * (high - low)
        return max(float(low) - room, float(self.points[0])), min(float(high) + room, float(self.points[-1]))

    def density(self, x: Any) -> Array:
        return np.asarray(np.interp(x, self.points, self.values, left=0.0, right=0.0) / self._mass)

    def cdf(self, x: Any) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return risen(x, self.points, self.values, self._cumulated) / self._mass

    def quantile(self, p: Any) -> Array:
        p = np.asarray(p, dtype=np.float64)
        whole = self._cumulated / self._mass
        place = np.clip(np.searchsorted(whole, p, side="left") - 1, 0, len(whole) - 2)
        start, h = self.points[place], self.points[place + 1] - self.points[place]
        ends = whole[place], whole[place + 1], *(self.values[at] * h / self._mass for at in (place, place + 1))
        low, high = np.zeros(place.shape), np.ones(place.shape)
        for _ in range(40):
            middle = (low + high) / 2
            above = _cubic(middle, *ends) >= p
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.asarray(start + h * (low + high) / 2)

    def draws(self, generator: np.random.Generator, size: int) -> Array:
        return self.quantile(generator.random(size))


def _normal_score(t: Array, df: float) -> Array:
    """The normal number with the probabilities of t (Hill 1970), which is many times faster; to 1e-12 in probability from 50 df on."""
    a = df - 0.5
    b = 48 * a * a
    z = np.copysign(np.sqrt(a * np.log1p(t * t / df)), t)
    square = z * z
    rest = ((4 * square + 33) * square + 240) * square + 855
    return np.asarray(z + z * (square + 3) / b - z * rest / (10 * b * (b + 0.8 * square * square + 100)))


@dataclass(frozen=True, eq=False)
class StudentMixture:
    """The mean of Student's t distributions of one number of degrees of freedom: a conjugate posterior averaged over draws."""

    centres: Array
    scales: Array
    df: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.centres))

    @property
    def sd(self) -> float:
        inner = self.df / (self.df - 2) if self.df > 2 else inf
        return sqrt(float(np.var(self.centres) + inner * np.mean(self.scales**2)))

    @property
    def span(self) -> tuple[float, float]:
        low, high = self.quantile(np.array([0.001, 0.999]))
        return float(low), float(high)

    def density(self, x: Any) -> Array:
        x = np.asarray(x, dtype=np.float64)
        t = (x[..., None] - self.centres) / self.scales
        constant = special.gammaln((self.df + 1) / 2) - special.gammaln(self.df / 2) - np.log(self.df * np.pi) / 2
        return np.asarray(
            np.mean(np.exp(constant - (self.df + 1) / 2 * np.log1p(t * t / self.df)) / self.scales, axis=-1)
        )

    def cdf(self, x: Any) -> Array:
        x = np.asarray(x, dtype=np.float64)
        t = (x[..., None] - self.centres) / self.scales
        own = special.ndtr(_normal_score(t, self.df)) if self.df > _MANY else special.stdtr(self.df, t)
        return np.asarray(np.mean(own, axis=-1))

    def quantile(self, p: Any) -> Array:
        p = np.asarray(p, dtype=np.float64)
        flat = np.atleast_1d(p).astype(np.float64)
        # one value of each component, at places spread evenly between 0 and 1
        spread = (np.arange(len(self.centres)) * _GOLDEN + 0.5) % 1.0
        start = np.quantile(self.centres + self.scales * special.ndtri(spread), flat)
        far = float(np.max(np.abs(self.centres)) + 60 * np.max(self.scales)) * 100
        found = _inverted(flat, self.cdf, self.density, np.full_like(flat, -far), np.full_like(flat, far), start)
        return np.asarray(found.reshape(p.shape))

    def draws(self, generator: np.random.Generator, size: int) -> Array:
        own = generator.integers(0, len(self.centres), size)
        return np.asarray(self.centres[own] + self.scales[own] * generator.standard_t(self.df, size))


@dataclass(frozen=True, eq=False)
class SampledMarginal:
    """A distribution as sorted draws; its density is a kernel estimate, for pictures alone."""

    values: Array

    @classmethod
    def of(cls, values: Array) -> SampledMarginal:
        return cls(np.sort(np.asarray(values, dtype=np.float64)))

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def sd(self) -> float:
        return float(self.values.std())

    @property
    def span(self) -> tuple[float, float]:
        low, high = np.quantile(self.values, [0.0005, 0.9995])
        return float(low), float(high)

    def density(self, x: Any) -> Array:
        x = np.asarray(x, dtype=np.float64)
        width = max(1.06 * self.sd * len(self.values) ** -0.2, 1e-12)
        z = (x[..., None] - self.values[:: max(len(self.values) // 2_000, 1)]) / width
        return np.asarray(np.exp(-z * z / 2).mean(axis=-1) / (width * sqrt(2 * np.pi)))

    def cdf(self, x: Any) -> Array:
        return np.asarray(np.searchsorted(self.values, x, side="right") / len(self.values))

    def quantile(self, p: Any) -> Array:
        return np.asarray(np.quantile(self.values, p))

    def draws(self, generator: np.random.Generator, size: int) -> Array:
        return np.asarray(generator.choice(self.values, size))


_ROOT = sqrt(2.0)
# Below it Phi(-u) is 1 to the last digit, and so is what the other side of the Laplace adds beside it.
_LEAST = -9.0
# Noise beyond so many scales has probability below e^-37, which is 1e-16.
_FAR = 37.0
# Sums of noise below it are held.
_HELD = 1 << 16
# Of log v, below where the mixture's variance is hardly that of its normal part.
_BELOW = 9.0
# Of its trapezoid, where nothing lies beyond a scale.
_STEP = 0.4
# Numbers that are worked on in one go.
_AT_ONCE = 4096


def normal_laplace(x: Any, sd: Any, scale: Any) -> Array:
    """Log density of N(0, SD^2) + Laplace(scale) at x; arrays broadcast.

    >>> float(normal_laplace(0.0, 1e-6, 1.0).round(6))  # almost Laplace alone: log 1/2
    -0.693148
    """
    x, sd, scale = (np.asarray(v, dtype=np.float64) for v in (np.abs(x), sd, scale))
    ratio, at = sd / scale, x / sd
    with np.errstate(all="ignore"):
        found = _unscaled(ratio, at)
    return np.asarray(found - np.log(4 * scale))


def _unscaled(ratio: Array, at: Array) -> Array:
    """log 4b f, with ratio = s/b and at = x/s >= 0; to be asked where NumPy's errors are ignored."""
    u = ratio - at
    own = np.log(special.erfcx(u / _ROOT) + special.erfcx((ratio + at) / _ROOT)) - at * at / 2
    far = u < _LEAST
    return np.where(far, ratio * (ratio / 2 - at) + log(2), own) if far.any() else np.asarray(own)


def normal_laplace_tail(x: Any, sd: Any, scale: Any) -> Array:
    """P(N(0, SD^2) + Laplace(scale) >= x).

    Phi(-x/s) + (e^(r^2/2 - x/b) Phi(x/s - r) - e^(r^2/2 + x/b) Phi(-x/s - r))/2.
    """
    x, sd, scale = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (x, sd, scale)))
    ratio, at = sd / scale, x / sd
    up = np.exp(ratio**2 / 2 - x / scale + special.log_ndtr(at - ratio))
    down = np.exp(ratio**2 / 2 + x / scale + special.log_ndtr(-at - ratio))
    return np.asarray(np.clip(special.ndtr(-at) + (up - down) / 2, 0.0, 1.0))


def two_normal_laplace(r1: Array, r2: Array, c11: Array, c12: Array, c22: Array, b1: float, b2: float) -> Array:
    """Log density of N(0, C) + (Laplace(b1), Laplace(b2)), independent, at (r1, r2); arrays of one shape.

    Either Laplace may be the mixture: at each point the one that is less narrow in log v. Where the residuals are many scales it is narrow,
    and such points have their own, finer trapezoid.
    """
    far1, far2 = (np.abs(r1) + np.abs(c12 * r2) / c22) / b1, (np.abs(r2) + np.abs(c12 * r1) / c11) / b2
    far = np.minimum(far1, far2)
    finer = np.maximum(np.ceil(2 * np.log2(np.sqrt(1.0 + far) * _STEP)), 0.0) / 2
    found = np.empty(np.shape(r1))
    for times in np.unique(finer):
        for first in (True, False):
            of = (finer == times) & ((far1 <= far2) == first)
            if of.any():
                one, other = (r1[of], c11[of], b1), (r2[of], c22[of], b2)
                (x1, v1, s1), (x2, v2, s2) = (one, other) if first else (other, one)
                found[of] = _mixed(x1, x2, v1, c12[of], v2, s1, s2, _STEP / 2**times, float(far[of].max()))
    return found


def _mixed(
    r1: Array, r2: Array, c11: Array, c12: Array, c22: Array, b1: float, b2: float, step: float, far: float
) -> Array:
    """The trapezoid in t = log v, from where the variance is C11 but for e^-9; what lies below is geometric, in the first weight."""
    start = log(min(1.0, float(np.min(c11)) / (2 * b1 * b1))) - _BELOW
    nodes = np.arange(start, log(_FAR + far) + step, step)
    log_weights = nodes - np.exp(nodes)
    log_weights[0] -= log(-np.expm1(-step))
    found: Array = np.full(np.shape(r1), -np.inf)
    square, both, shared, spreads = r1 * r1, c12 * r1, c12 * c12, 2 * b1 * b1 * np.exp(nodes)
    # points are few, so that many nodes are asked for at once; they are added up one by one, in their order
    many = max(1, _AT_ONCE // max(1, found.size))
    with np.errstate(all="ignore"):
        for k in range(0, len(nodes), many):
            variance = c11 + spreads[k : k + many, None]
            rest = np.sqrt(np.maximum(c22 - shared / variance, 1e-300))
            own = _unscaled(rest / b2, np.abs(r2 - both / variance) / rest)
            terms = own + log_weights[k : k + many, None] - square / (2 * variance) - np.log(variance) / 2
            for term in terms:
                found = np.logaddexp(found, term)
    return np.asarray(found + log(step / (4 * b2)) - log(2 * pi) / 2)


@dataclass(frozen=True)
class NoiseLaw:
    """The law of one released number's noise, in the statistic's own units: "normal", "laplace", or "geometric" (on whole numbers).

    scale: standard deviation of the normal, b of the Laplace (density e^(-|z|/b)/2b), b of the geometric (tanh(1/2b) e^(-|z|/b)).
    """

    name: str
    scale: float

    @classmethod
    def of(cls, noisy: Noisy, unit: float = 1.0) -> NoiseLaw:
        """Of a released statistic; unit: how many of its integers make one unit of what is modeled."""
        step = float(noisy.step) / unit
        if noisy.law == "grid_gaussian":
            return cls("normal", sqrt(float(noisy.scale)) * step)
        return cls("laplace" if noisy.law == "grid_laplace" else "geometric", float(noisy.scale) * step)

    @property
    def variance(self) -> float:
        if self.name == "normal":
            return self.scale**2
        if self.name == "laplace":
            return 2 * self.scale**2
        return float(2 * np.exp(-1 / self.scale) / np.expm1(-1 / self.scale) ** 2)

    @property
    def fourth_cumulant(self) -> float:
        """E z^4 - 3 (E z^2)^2.

        >>> NoiseLaw("laplace", 1.0).fourth_cumulant
        12.0
        """
        if self.name == "normal":
            return 0.0
        if self.name == "laplace":
            return 12 * self.scale**4
        q = np.exp(-1 / self.scale)
        return float(2 * q * (1 + 4 * q + q * q) / np.expm1(-1 / self.scale) ** 4)

    @property
    def reach(self) -> float:
        """Beyond it lies less than 1e-15 of the noise."""
        return 8.3 * self.scale if self.name == "normal" else _FAR * self.scale

    def logpdf(self, z: Any) -> Array:
        """Log density, of the geometric law the log probability."""
        z = np.abs(np.asarray(z, dtype=np.float64))
        if self.name == "normal":
            return np.asarray(-z * z / (2 * self.scale**2) - log(self.scale * sqrt(2 * pi)))
        top = 1 / (2 * self.scale) if self.name == "laplace" else np.tanh(1 / (2 * self.scale))
        return np.asarray(-z / self.scale + np.log(top))

    def logpdf_of_sum(self, many: int, z: Any) -> Array:
        """Log probability, or density, of the sum of so many independent draws, of the normal and the geometric law.

        Of the geometric one, with q = e^(-1/b), it is a difference of two negative binomials; Pfaff's transformation makes its series one
        of `many` terms, all above 0:

            P(z) = tanh(1/2b)^m q^z sum_(i < m) Gamma(m + z) Gamma(m + i) / (Gamma(m) Gamma(m - i) Gamma(z + 1 + i) i!) (q^2/(1 - q^2))^i.

        >>> float(NoiseLaw("geometric", 2.0).logpdf_of_sum(1, 3.0) - NoiseLaw("geometric", 2.0).logpdf(3.0))
        0.0
        """
        if self.name == "normal":
            return NoiseLaw("normal", self.scale * sqrt(many)).logpdf(z)
        z = np.abs(np.asarray(z, dtype=np.float64))
        most = float(z.max(initial=0.0))
        if most >= _HELD:
            return _geometric_sums(self.scale, many, z)
        return np.asarray(_held_sums(self.scale, many, 1 << int(most).bit_length())[z.astype(np.int64)])

    def allows(self, y: float, least: float, most: float, alpha: float) -> tuple[bool, bool]:
        """Whether y could be the least, and the most, that there can be, plus noise: neither is rejected at alpha/2.

        >>> NoiseLaw("normal", 1.0).allows(1.5, 0.0, 100.0, 0.05)
        (True, False)
        """
        return bool(self.tail(y - least) >= alpha / 2), bool(self.tail(most - y) >= alpha / 2)

    def tail(self, z: Any) -> Array:
        """P(Z >= z); of the geometric law at whole z."""
        z = np.asarray(z, dtype=np.float64)
        if self.name == "normal":
            return np.asarray(special.ndtr(-z / self.scale))
        if self.name == "laplace":
            half = np.exp(-np.abs(z) / self.scale) / 2
            return np.asarray(np.where(z >= 0, half, 1 - half))
        z, q = np.ceil(z - 1e-9), np.exp(-1 / self.scale)
        # P(Z >= k) = q^k/(1 + q) for k >= 0, and 1 - P(Z >= 1 - k) for k <= 0
        up, down = np.exp(-np.maximum(z, 0.0) / self.scale), np.exp(-np.maximum(1 - z, 0.0) / self.scale)
        return np.asarray(np.where(z >= 1, up / (1 + q), 1 - down / (1 + q)))

    def quantile(self, level: float) -> float:
        """The least z >= 0 that the noise exceeds with probability at most `level`.

        >>> NoiseLaw("geometric", 0.1).quantile(0.01), NoiseLaw("geometric", 1.0).quantile(0.01)
        (0.0, 4.0)
        """
        if self.name == "normal":
            return max(float(special.ndtri(1 - level)), 0.0) * self.scale
        if self.name == "laplace":
            return max(-log(2 * level), 0.0) * self.scale
        # P(Z > k) = q^(k + 1)/(1 + q)
        return float(max(ceil(-self.scale * log(level * (1 + np.exp(-1 / self.scale)))) - 1, 0))

    def tail_with(self, other: NoiseLaw, z: float) -> float:
        """P(Z + W >= z) of independent noise of this law and of another, both normal or both Laplace.

        >>> NoiseLaw("laplace", 1.0).tail_with(NoiseLaw("laplace", 2.0), 0.0)
        0.5
        """
        if self.name == "normal":
            return float(special.ndtr(-z / sqrt(self.variance + other.variance)))
        a, b = max(self.scale, other.scale), min(self.scale, other.scale)
        b = min(b, a * (1 - 1e-6))
        x = abs(z)
        far = (a * a * np.exp(-x / a) - (b * b * np.exp(-x / b) if b > 0 else 0.0)) / (2 * (a * a - b * b))
        return float(far if z >= 0 else 1 - far)

    def tail_beside(self, variance: Any, z: Any) -> Array:
        """P(Z + N >= z), N normal with a variance: of the normal and the Laplace law, and for the geometric one as if it were Laplace."""
        if self.name == "normal":
            return np.asarray(special.ndtr(-np.asarray(z) / np.sqrt(variance + self.variance)))
        return normal_laplace_tail(z, np.sqrt(np.asarray(variance) + 1e-24), self.scale)

    def draws(self, generator: np.random.Generator, shape: Any) -> Array:
        """Draws for what infer computes, never for a release."""
        if self.name == "normal":
            return np.asarray(generator.standard_normal(shape) * self.scale)
        if self.name == "laplace":
            return np.asarray(generator.laplace(0.0, self.scale, shape))
        p = -np.expm1(-1 / self.scale)
        return np.asarray(generator.geometric(p, shape) - generator.geometric(p, shape), dtype=np.float64)

    def words(self) -> str:
        """In words, with the standard deviation."""
        shown = {"normal": "Gaussian", "laplace": "Laplace", "geometric": "two-sided geometric"}[self.name]
        return f"{shown}, SD {sqrt(self.variance):.4g}"


def _geometric_sums(scale: float, many: int, z: Array) -> Array:
    """Log probabilities of sums of two-sided geometric numbers at z >= 0: `NoiseLaw.logpdf_of_sum` has the formula."""
    found: Array = np.full(z.shape, -np.inf)
    odds = -log(np.expm1(2 / scale))
    for i in range(many):
        fixed = special.gammaln(many + i) - special.gammaln(many) - special.gammaln(many - i) - special.gammaln(i + 1)
        found = np.logaddexp(found, fixed + i * odds - special.gammaln(z + 1 + i))
    found += special.gammaln(many + z) + many * np.log(np.tanh(1 / (2 * scale)))
    return np.asarray(found - z / scale)


@lru_cache(maxsize=4)
def _held_sums(scale: float, many: int, size: int) -> Array:
    """The same at 0, 1, ..., size: the levels of one column ask for them one after the other."""
    found = _geometric_sums(scale, many, np.arange(size + 1.0))
    found.setflags(write=False)
    return found
