"""Posterior distributions of one number: a mixture of betas, a density on a grid, a mixture of Student's t.

Each gives density, distribution function, quantiles, mean, standard deviation and draws, and says what support it has. Quantiles are
found on the distribution function itself, by steps that cannot leave the bracket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide import _special as special

__all__ = ["BetaMixture", "GridMarginal", "Marginal", "SampledMarginal", "StudentMixture", "cumulated", "risen"]

Array = NDArray[np.float64]

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
        """From unnormalised log weights; components below 1e-12 of the largest are left out."""
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
        """From an unnormalised log density."""
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
