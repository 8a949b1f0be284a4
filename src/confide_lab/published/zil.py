"""Lu, Chen, Qiu 2026: their protected rows, and the functionals of one column of section 7.1 with exact errors of every estimator.

Noise is in double precision and from a seeded generator: nothing here protects anybody; `cf.local.protect` does.

A functional is the mean of h(X), X uniform on (0, 1). What is published is X1 = X + (1 - keep) S, S Laplace of standard deviation lam, keep
with probability zeta; X2 = X1 + S', S' Laplace of standard deviation sqrt(zeta) lam. Each estimator is the mean over rows of a weight:

    SL                     h(X2) - lam^2/2 h''(X2), h'' almost everywhere, as the paper must have taken it
    DR                     h(X1)/zeta + (1 - 1/zeta) h(X2)
    RB                     h(X1)/zeta + (1 - 1/zeta) (G h)(X1), G the mean under S'
    RB, known support      RB of h(clip(x)) for ReLU and indicator, of h set to 0 outside for the sine
    optimal                the unbiased weight of least variance where X is uniform, unbiased whatever X on (0, 1) is
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from confide.local.estimates import optimal_weights

__all__ = ["FUNCTIONALS", "WEIGHTS", "Functional", "exact_rmse", "protected", "weights"]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

WEIGHTS = ("oracle", "SL", "DR", "RB", "RB, known support", "optimal")


def protected(x: Array, lam: float, zeta: float, generator: np.random.Generator) -> tuple[Array, Array]:
    """(X1, X2) of rows (n,) or (n, d), one exponential radius for each row and noise, continuous."""
    rows = np.atleast_2d(x.T).T

    def noise(share: float) -> Array:
        radius = np.sqrt(share * generator.standard_exponential(len(rows)))
        return np.asarray(lam * radius[:, None] * generator.standard_normal(rows.shape))

    kept = generator.random(len(rows)) < zeta
    first = rows + np.where(kept[:, None], 0.0, noise(1.0))
    return first.reshape(x.shape), (first + noise(zeta)).reshape(x.shape)


@dataclass(frozen=True)
class Functional:
    """h with its mean and mean square under the uniform distribution, the SL weight, and h as it may be set outside (0, 1).

    smoothed and clipped_smoothed: (x, s) -> the mean of h(x + L), of clipped(x + L), L Laplace of scale s.
    """

    h: Function
    mean: float
    square: float
    sl: Callable[[Array, float], Array]
    smoothed: Callable[[Array, float], Array]
    clipped: Function
    clipped_smoothed: Callable[[Array, float], Array]


def _step(x: Array) -> Array:
    """The distribution function of a standard Laplace."""
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def _ramp(x: Array, s: float) -> Array:
    return np.maximum(x, 0) + s / 2 * np.exp(-np.abs(x) / s)


def _indicator(x: Array) -> Array:
    return ((x >= 0.5) & (x <= 1)).astype(float)


def _sine(x: Array) -> Array:
    return np.abs(np.sin(2 * pi * x))


def _sine_smoothed(x: Array, s: float) -> Array:
    """G with G - s^2 G'' = |sin|: on a half wave the sine over 1 + (2 pi s)^2 and the even exponential that makes G' vanish at its ends."""
    w, away = 2 * pi, x % 0.5 - 0.25
    damped = 1 / (1 + (w * s) ** 2)
    even = np.exp((np.abs(away) - 0.25) / s) + np.exp((-np.abs(away) - 0.25) / s)
    return np.asarray(damped * (np.cos(w * away) + s * w * even / -np.expm1(-0.5 / s)))


def _bump_smoothed(x: Array, s: float) -> Array:
    """|sin 2 pi x| on (0, 1) and 0 elsewhere, under Laplace noise: sine times exponential on each half, integrated."""
    w = 2 * pi

    def part(low: Array, high: Array, a: float, x: Array) -> Array:
        """The integral of sin(w u) e^{a (u - x)} from low to high."""

        def at(u: Array) -> Array:
            return np.exp(a * (u - x)) * (a * np.sin(w * u) - w * np.cos(w * u)) / (a**2 + w**2)

        return np.where(high > low, at(np.maximum(high, low)) - at(low), 0.0)

    total = np.zeros_like(x)
    for low, high, sign in ((0.0, 0.5, 1.0), (0.5, 1.0, -1.0)):
        middle = np.clip(x, low, high)
        total += sign * (part(np.full_like(x, low), middle, 1 / s, x) + part(middle, np.full_like(x, high), -1 / s, x))
    return total / (2 * s)


FUNCTIONALS = {
    "ReLU": Functional(
        lambda x: np.maximum(x, 0),
        1 / 2,
        1 / 3,
        lambda x, lam: np.maximum(x, 0),
        _ramp,
        lambda x: np.clip(x, 0, 1),
        lambda x, s: _ramp(x, s) - _ramp(x - 1, s),
    ),
    "indicator": Functional(
        _indicator,
        1 / 2,
        1 / 2,
        lambda x, lam: _indicator(x),
        lambda x, s: _step((x - 0.5) / s) - _step((x - 1) / s),
        lambda x: (x >= 0.5).astype(float),
        lambda x, s: _step((x - 0.5) / s),
    ),
    "sine": Functional(
        _sine,
        2 / pi,
        1 / 2,
        lambda x, lam: _sine(x) * (1 + lam**2 / 2 * (2 * pi) ** 2),
        _sine_smoothed,
        lambda x: np.where((x >= 0) & (x <= 1), _sine(x), 0.0),
        _bump_smoothed,
    ),
}


def weights(name: str, functional: str, x: Array, x1: Array, x2: Array, lam: float, zeta: float) -> Array:
    """The weight of each row, whose mean is the estimate. name: one of `WEIGHTS`; the oracle alone sees x."""
    one, s = FUNCTIONALS[functional], lam * sqrt(zeta / 2)
    match name:
        case "oracle":
            return one.h(x)
        case "SL":
            return one.sl(x2, lam)
        case "DR":
            return one.h(x1) / zeta + (1 - 1 / zeta) * one.h(x2)
        case "RB":
            return one.h(x1) / zeta + (1 - 1 / zeta) * one.smoothed(x1, s)
        case "RB, known support":
            return one.clipped(x1) / zeta + (1 - 1 / zeta) * one.clipped_smoothed(x1, s)
    edges, kernel, _ = _optimal(functional, lam, zeta)
    return np.asarray(kernel[np.clip(np.searchsorted(edges, x1, side="right") - 1, 0, len(kernel) - 1)])


@cache
def exact_rmse(name: str, functional: str, lam: float, zeta: float, n: int) -> float:
    """The root mean square error of an estimator from n rows, by integration: no simulation error.

    >>> round(exact_rmse("SL", "ReLU", 1.2, 0.05, 500), 3)
    0.252
    """
    one = FUNCTIONALS[functional]
    if name == "oracle":
        return sqrt((one.square - one.mean**2) / n)
    if name == "optimal":
        return sqrt((_optimal(functional, lam, zeta)[2] - one.mean**2) / n)
    mean, square = _moments(name, functional, lam, zeta)
    return sqrt((mean - one.mean) ** 2 + (square - mean**2) / n)


def _moments(name: str, functional: str, lam: float, zeta: float) -> tuple[float, float]:
    """Mean and mean square of a weight."""
    one, s = FUNCTIONALS[functional], lam * sqrt(zeta / 2)
    x, dx = _nodes(lam / sqrt(2))
    inside = ((x > 0) & (x < 1)).astype(float)
    last = _uniform_with_noise(x, lam / sqrt(2)) * dx  # of X2
    first = zeta * inside * dx + (1 - zeta) * last  # of X1
    if name == "SL":
        value = one.sl(x, lam)
        return float(last @ value), float(last @ value**2)
    if name == "DR":
        h, mean_after, rest = one.h(x), one.smoothed(x, s), 1 - 1 / zeta
        mean = float(first @ h) / zeta + rest * float(last @ h)
        cross = float(first @ (h * mean_after))
        return mean, float(first @ h**2) / zeta**2 + 2 * rest / zeta * cross + rest**2 * float(last @ h**2)
    value = weights(name, functional, x, x, x, lam, zeta)
    return float(first @ value), float(first @ value**2)


def _nodes(scale: float) -> tuple[Array, Array]:
    """Gauss-Legendre on pieces of a quarter, where every kink lies on an edge, as far as the noise reaches."""
    points, each = np.polynomial.legendre.leggauss(16)
    reach = np.ceil(36 * scale)
    low = np.arange(-reach, 1 + reach, 0.125)
    return (low[:, None] + 0.0625 * (points + 1)).ravel(), np.tile(0.0625 * each, len(low))


def _uniform_with_noise(x: Array, scale: float) -> Array:
    """The density of a uniform variable with Laplace noise."""
    return _step(x / scale) - _step((x - 1) / scale)


@cache
def _optimal(functional: str, lam: float, zeta: float) -> tuple[Array, Array, float]:
    """(edges of cells, weight of each cell, its mean square under the uniform distribution)."""
    return optimal_weights(FUNCTIONALS[functional].h, lam, zeta)
