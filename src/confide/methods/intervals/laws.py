r"""The law of released noise, alone and added to normal sampling: densities and tails, exact to the last digits that matter.

Laplace and normal together, in one coordinate: with r = s/b and x >= 0,

    log f(x) = logaddexp(T(r - x/s, -x/b), T(r + x/s, x/b)) - log 2b,
    T(u, l) = -x^2/(2 s^2) + log(erfcx(u/sqrt 2)/2)  for u > -4,  else  r^2/2 + l + log Phi(-u).

In two coordinates the first Laplace is written as a mixture of normals (Andrews, Mallows 1974), the second stays as above:

    f(r1, r2) = int_0^inf e^-v N(r1; 0, V1) g(r2 - C12 r1/V1; sqrt(C22 - C12^2/V1), b2) dv,  V1 = C11 + 2 b1^2 v,

by the trapezoid in t = log v, whose weight e^(t - e^t) falls off at both ends. Both forms were compared with arithmetic of many digits;
the tests hold them to 1e-10 and 1e-6 in log density.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.protocol import Noisy

__all__ = ["NoiseLaw", "normal_laplace", "normal_laplace_tail", "two_normal_laplace"]

Array = NDArray[np.float64]

_ROOT = sqrt(2.0)
# Where erfcx alone still holds every digit.
_NEAR = -4.0
# Noise beyond so many scales has probability below e^-37, which is 1e-16.
_FAR = 37.0


def normal_laplace(x: Any, sd: Any, scale: Any) -> Array:
    """Log density of N(0, sd^2) + Laplace(scale) at x; arrays broadcast.

    >>> float(normal_laplace(0.0, 1e-6, 1.0).round(6))  # almost Laplace alone: log 1/2
    -0.693148
    """
    x, sd, scale = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (np.abs(x), sd, scale)))
    ratio, at = sd / scale, x / sd
    return np.asarray(
        np.logaddexp(_part(ratio - at, -x / scale, ratio, at), _part(ratio + at, x / scale, ratio, at))
        - np.log(2 * scale)
    )


def _part(u: Array, log_far: Array, ratio: Array, at: Array) -> Array:
    """T(u, l)."""
    near = u > _NEAR
    with np.errstate(all="ignore"):
        found = -at * at / 2 + np.log(special.erfcx(np.where(near, u, 0.0) / _ROOT) / 2)
        if not near.all():
            far = ~near
            found = np.array(found)
            found[far] = ratio[far] ** 2 / 2 + log_far[far] + special.log_ndtr(-u[far])
    return np.asarray(found)


def normal_laplace_tail(x: Any, sd: Any, scale: Any) -> Array:
    """P(N(0, sd^2) + Laplace(scale) >= x).

    Phi(-x/s) + (e^(r^2/2 - x/b) Phi(x/s - r) - e^(r^2/2 + x/b) Phi(-x/s - r))/2.
    """
    x, sd, scale = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (x, sd, scale)))
    ratio, at = sd / scale, x / sd
    up = np.exp(ratio**2 / 2 - x / scale + special.log_ndtr(at - ratio))
    down = np.exp(ratio**2 / 2 + x / scale + special.log_ndtr(-at - ratio))
    return np.asarray(np.clip(special.ndtr(-at) + (up - down) / 2, 0.0, 1.0))


def two_normal_laplace(r1: Array, r2: Array, c11: Array, c12: Array, c22: Array, b1: float, b2: float) -> Array:
    """Log density of N(0, C) + (Laplace(b1), Laplace(b2)), independent, at (r1, r2); arrays of one shape."""
    far = float(np.max((np.abs(r1) + np.abs(c12 * r2) / c22) / b1))
    start = log(min(1.0, float(np.min(c11)) / (2 * b1 * b1))) - 23.0
    stop, step = log(_FAR + far), min(0.4, 1.0 / sqrt(1.0 + far))
    nodes = np.arange(start, stop + step, step)
    found = np.full(np.shape(r1), -np.inf)
    for t in nodes:
        v = np.exp(t)
        variance = c11 + 2 * b1 * b1 * v
        rest = np.sqrt(np.maximum(c22 - c12 * c12 / variance, 1e-300))
        own = normal_laplace(r2 - c12 * r1 / variance, rest, b2)
        own = own - r1 * r1 / (2 * variance) - np.log(2 * pi * variance) / 2 + (t - v)
        np.logaddexp(found, own, out=found)
    return np.asarray(found + log(step))


@dataclass(frozen=True)
class NoiseLaw:
    """The law of one released number's noise, in the statistic's own units: "normal", "laplace", or "geometric" (on whole numbers).

    scale: standard deviation of the normal, b of the Laplace (density e^(-|z|/b)/2b), b of the geometric (tanh(1/2b) e^(-|z|/b)).
    """

    name: str
    scale: float

    @classmethod
    def of(cls, noisy: Noisy, unit: float = 1.0) -> NoiseLaw:
        """Of a released statistic; unit: how many of its integers make one unit of what is modelled."""
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
        return f"{shown}, sd {sqrt(self.variance):.4g}"
