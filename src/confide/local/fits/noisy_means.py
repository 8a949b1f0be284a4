"""Means of the parts of losses under noise: Gaussian, Laplace, and both; closed forms, and quadrature for the logistic loss.

h: standard deviation of the Gaussian; v: the square of the Laplace scale. Derived here, checked against quadrature in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import sqrt
from typing import Self

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import erfc, erfcx, ndtr

from confide._arrays import Array

_ROOT_2PI = sqrt(2 * np.pi)
#: Below this scale, in units of the index, Laplace noise is a second derivative: differences would lose all digits.
NEXT_TO_NOTHING = 1e-4
# Laplace scales of a log-odds index beyond which Gauss-Laguerre loses digits, where log(1 + e^-|t|) ends, weights that add nothing.
_WIDEST, _REACH, _TINY = 5.0, 40.0, 1e-14
# Knots of a spline through the mean of a log-odds loss: its fourth derivative is at most 1/8, so that the spline is off by 2e-9 at most.
_KNOT = 1 / 32


@dataclass(frozen=True)
class Tail:
    """h N + L at r, L Laplace of scale sqrt(v): its density g and slope g', computed from its two exponential halves.

    With phi the density of h N:  g'' = (g - phi) / v,  F = Phi + v g'.  For two Laplace variables instead of one: g2 = g / 2 + h^2 (phi
    - g) / (2 v) - r g' / 2 and F2 = F - (h^2 g' + r g) / 2.
    """

    v: float
    density: Array
    slope: Array

    @classmethod
    def of(cls, r: Array, h: float, v: float) -> Self:
        scale = max(sqrt(v), NEXT_TO_NOTHING)
        left, right = _exponential(r, h, scale), _exponential(-r, h, scale)
        return cls(scale**2, (left + right) / 2, (right - left) / (2 * scale))

    def distribution(self, r: Array, h: float) -> Array:
        return (1 + sign(r, h)) / 2 + self.v * self.slope

    def density_of_two(self, r: Array, h: float) -> Array:
        curved = h * h * (density(r, h) - self.density) / (2 * self.v) if h else 0.0
        return self.density / 2 + curved - r * self.slope / 2

    def distribution_of_two(self, r: Array, h: float) -> Array:
        return self.distribution(r, h) - (h * h * self.slope + r * self.density) / 2


def _exponential(r: Array, h: float, scale: float) -> Array:
    """The density at r of h N plus an exponential variable of this scale."""
    if h == 0:
        return np.where(r < 0, 0.0, np.exp(-np.maximum(r, 0) / scale) / scale * np.where(r == 0, 0.5, 1.0))
    z = (h / scale - r / h) / sqrt(2)
    near = erfcx(np.maximum(z, 0)) * np.exp(-np.square(r / h) / 2)
    far = np.exp(np.minimum(h * h / (2 * scale**2) - r / scale, 0)) * erfc(np.minimum(z, 0))
    return np.asarray(np.where(z >= 0, near, far) / (2 * scale))


def density(r: Array, h: float) -> Array:
    """Of h N; zero everywhere without noise, where the second derivative is an atom."""
    return np.exp(-np.square(r / h) / 2) / (h * _ROOT_2PI) if h else np.zeros_like(r)


def sign(r: Array, h: float) -> Array:
    """E sign(r + h N)."""
    return 2 * np.asarray(ndtr(r / h)) - 1 if h else np.sign(r)


def absolute(r: Array, h: float) -> Array:
    """E |r + h N|."""
    return r * sign(r, h) + 2 * h * h * density(r, h) if h else np.abs(r)


def signed_square(r: Array, h: float) -> Array:
    """E (r + h N) |r + h N|."""
    return (r * r + h * h) * sign(r, h) + 2 * r * h * h * density(r, h) if h else r * np.abs(r)


@cache
def laguerre(count: int) -> tuple[Array, Array]:
    """Points and weights of Gauss-Laguerre quadrature."""
    return np.polynomial.laguerre.laggauss(count)


def log_odds_smoothed(t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
    """(G, dG/dt, dG/dv) of the logistic loss under Laplace noise: Gauss-Laguerre on both sides.

    20 nodes up to scale 1 (error 1e-7), 64 up to 5 (2e-5). Beyond that log(1 + e^t) = max(t, 0) + log(1 + e^-|t|). The first part has a
    closed form. The second is small and short, and is integrated by Gauss-Legendre on pieces between its kink and that of the Laplace
    density. Many rows share a spline through the values at knots: the index is one number, and the response enters by a product alone.
    As log(1 + e^t) is t more than log(1 + e^-t), its mean at -t is known from that at t, and knots are needed on one side of 0 alone.
    """
    away = np.abs(t)
    low, high = (float(away.min()), float(away.max())) if t.size else (0.0, 0.0)
    if not 4 * (high - low) / _KNOT < t.size - 32:
        return _log_odds_at(t, y, v)
    knots = low + _KNOT * np.arange(-2, (high - low) / _KNOT + 3)
    mean, slope, grown = CubicSpline(knots, np.stack(_log_odds_at(knots, np.zeros(1), v), axis=1))(away).T
    return mean + np.minimum(t, 0) - y * t, np.where(t < 0, 1 - slope, slope) - y, grown


def _log_odds_at(t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
    scale = max(sqrt(v), NEXT_TO_NOTHING)
    if scale > _WIDEST:
        return _wide(t, y, scale)
    points, weights = laguerre(20 if scale <= 1 else 64)
    mean, slope, grown = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
    for u, w in zip(scale * points, weights / 2, strict=True):
        if w < _TINY:
            continue
        (upper, above), (lower, below) = log_odds(t + u), log_odds(t - u)
        mean += w * (upper + lower)
        slope += w * (above + below)
        grown += w * (u / scale) * (above - below)
    return mean - y * t, slope - y, grown / (2 * scale)


def log_odds(t: Array) -> tuple[Array, Array]:
    """log(1 + e^t) and its slope, by one exponential."""
    small = np.exp(-np.abs(t))
    whole = 1 + small
    return np.maximum(t, 0) + np.log(whole), np.where(t > 0, 1.0, small) / whole


def _wide(t: Array, y: Array, scale: float) -> tuple[Array, Array, Array]:
    far = np.exp(-np.abs(t) / scale)
    mean = np.maximum(t, 0) + scale / 2 * far
    slope = (1 + np.sign(t) * (1 - far)) / 2
    grown = far * (1 + np.abs(t) / scale) / (4 * scale)
    points, weights = np.polynomial.legendre.leggauss(40)
    inner = np.clip(t, -_REACH, _REACH)
    cuts = [np.full_like(t, -_REACH), np.minimum(inner, 0), np.maximum(inner, 0), np.full_like(t, _REACH)]
    for low, high in pairwise(cuts):
        for u, w in zip(points, weights, strict=True):
            x = low + (high - low) * (u + 1) / 2
            away = np.abs(x - t) / scale
            mass = w * (high - low) / 2 * np.log1p(np.exp(-np.abs(x))) * np.exp(-away) / (2 * scale)
            mean += mass
            slope += mass * np.sign(x - t) / scale
            grown += mass * (away - 1) / (2 * scale**2)
    return mean - y * t, slope - y, grown
