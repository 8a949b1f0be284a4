"""The multivariate symmetric Laplace law in polar coordinates: its density along a radius, and masses of level sets.

S = sqrt(W) N with W ~ Exp(1) and N ~ N(0, I_d) has density 2 (2 pi)^(-d/2) (r^2/2)^(-v/2) K_v(sqrt(2) r), v = (d-2)/2, K_v the
modified Bessel function. In s = log r its logarithm h is decreasing and concave, with slope -x K_(v+1)(x)/K_v(x), x = sqrt(2) r.

Two such laws a distance c apart are told apart by the likelihood ratio, and on the sphere |x| = r it is above e^t where x lies within
R = g^-1(e^t g(r)) of the other centre: a cap whose share of the sphere is a regularised incomplete beta function. What is left is an
integral over r.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, pi, sqrt

import numpy as np

from confide._lazy import later
from confide._special import betainc, kve
from confide.guarantees.curves.curve import Floats

__all__ = ["Radial", "radial"]

optimize = later("scipy.optimize")

_LOW, _HIGH = -32.0, 8.0  # of s = log r; the mass within e^-32 is below 1e-25 for d >= 2
_NO_OVERFLOW = 600.0  # of the logarithm of a float
_NODES = 64  # of each piece; twice as many change nothing above 1e-12 (tests)


class Radial:
    """The law in d >= 2 dimensions, with a table of its log density for inversion."""

    def __init__(self, d: int) -> None:
        self.d = d
        self.order = (d - 2) / 2
        self._constant = log(2) - d / 2 * log(2 * pi)
        self._pole = lgamma(self.order) + self.order * log(2) / 2 if self.order else 0.0
        self._area = log(2) + d / 2 * log(pi) - lgamma(d / 2)  # log of the sphere's
        self._table = np.concatenate([np.linspace(_LOW, -4, 3000), np.linspace(-4, _HIGH, 12000)[1:]])
        self._heights = self.log_density(self._table)
        # the radius beyond which the density of the radius is below e^-48 and falls faster than e^-r
        thick = self._table[self._area + (d - 1) * self._table + self._heights > -48]
        self.edge = float(np.exp(thick[-1]))

    def log_density(self, s: Floats) -> Floats:
        """h(s) = log density at radius e^s, any shape."""
        return self._constant - self.order * (s - log(2) / 2) + _log_bessel(self.order, sqrt(2) * np.exp(s))

    def at(self, radius: float) -> float:
        """The same at one radius above 0."""
        s = log(max(radius, 1e-300))
        # K_v(x) <= Gamma(v)/2 (2/x)^v is no overflow: what arrays are made for takes most of the time of one number
        if self._pole - self.order * s < _NO_OVERFLOW:
            x = sqrt(2) * np.exp(s)
            return float(self._constant - self.order * (s - log(2) / 2) + (np.log(kve(self.order, x)) - x))
        return float(self.log_density(np.array([s]))[0])

    def inverse(self, heights: Floats) -> Floats:
        """s with h(s) = heights, at least -32. The table is right to 1e-6, and each Newton step squares that."""
        s: Floats = np.interp(heights, self._heights[::-1], self._table[::-1])
        for _ in range(2):
            x = sqrt(2) * np.exp(s)
            bessel = _log_bessel(self.order, x)
            slope = -x * np.exp(_log_bessel(self.order + 1, x) - bessel)
            reached = self._constant - self.order * (s - log(2) / 2) + bessel
            s = np.clip(s - (reached - heights) / slope, _LOW, _HIGH)
        return s

    def log_pole(self, c: float, height: float) -> float:
        """log of a bound on the mass near the centre where the log density is above `height`; 0 if that reaches beyond c/2.

        r^(d-1) g(r) rises near 0, hence mass <= sphere area * r^d g(r) at the radius r where g is that high.
        """
        if self.d == 2:  # K_0(x) = -log(x/2) - Euler's constant, and x^2 log x beyond it
            depth = exp(min(height - self._constant, 700.0))
            s = log(sqrt(2)) - depth - np.euler_gamma
        else:
            s = log(2) / 2 - (height - self._constant - lgamma(self.order) + log(2)) / (2 * self.order)
            # K_v(x) <= Gamma(v)/2 (2/x)^v: the radius is at most this one
        if s > log(c / 2) or s > -3:
            return 0.0
        return self._area + self.d * s + height

    def errors(self, c: float, t: float, nodes: int = _NODES) -> tuple[float, float]:
        """(alpha, power) of the test that rejects when log likelihood ratio > t >= 0, for centres a distance c apart.

        alpha = P(LLR > t); power = Q(LLR > t) = P(LLR <= -t) by symmetry.
        """
        lower, upper = self.cap(c, t)
        alpha = self._integral(c, t, lower, upper, nodes, above=True)
        whole, end = self._complement(c, t)
        power = self.ball(whole, nodes) + self._integral(c, -t, whole, end, nodes, above=False)
        return alpha, power

    def cap(self, c: float, t: float) -> tuple[float, float]:
        """The radii between which the axis through the other centre has LLR > t."""

        def excess(r: float) -> float:
            return self.at(abs(r - c)) - self.at(r) - t

        # LLR rises from 0 at c/2 to infinity at c, and falls again towards sqrt(2) c
        near = c * (1 - 1e-13)
        far = c * (1 + 1e-13)
        lower = c / 2 if t == 0 else _root(excess, c / 2, near, c)
        return lower, self.edge if excess(self.edge) > 0 else _root(excess, far, self.edge, c)

    def _complement(self, c: float, t: float) -> tuple[float, float]:
        """The radius up to which a whole ball has LLR <= -t, and the one from which nothing has."""

        def ahead(r: float) -> float:
            return self.at(abs(c - r)) - self.at(r) + t

        def behind(r: float) -> float:
            return self.at(r + c) - self.at(r) + t

        tiny = 1e-14
        whole = c / 2 if t == 0 else _root(ahead, tiny, c / 2, 0.0)
        return whole, self.edge if behind(self.edge) < 0 else _root(behind, tiny, self.edge, 0.0)

    def _pieces(self, c: float, low: float, high: float, nodes: int) -> tuple[Floats, Floats]:
        """Nodes and weights from low to high, split where the integrand bends; sin^2 tames the ends."""
        inner = {c / 2, c, 2 * c, 4.0, 10.0, 20.0, 40.0, 80.0, 160.0}
        ends = np.array([low, *sorted(x for x in inner if low < x < high), high])
        place, weight = _rule(nodes)
        widths = np.diff(ends)[:, None]
        return (ends[:-1, None] + widths * place).ravel(), (widths * weight).ravel()

    def _density(self, s: Floats, heights: Floats) -> Floats:
        """Density of the radius: sphere area times r^(d-1) g(r)."""
        return np.exp(self._area + (self.d - 1) * s + heights)

    def ball(self, radius: float, nodes: int = _NODES) -> float:
        """The mass within a radius."""
        if radius <= 0:
            return 0.0
        r, weights = self._pieces(1.0, 0.0, radius, nodes)
        s = np.log(r)
        return float(weights @ self._density(s, self.log_density(s)))

    def _integral(self, c: float, t: float, low: float, high: float, nodes: int, *, above: bool) -> float:
        """Mass where LLR > t, or where LLR <= t, between two radii."""
        if high <= low:
            return 0.0
        r, weights = self._pieces(c, low, high, nodes)
        s = np.log(r)
        heights = self.log_density(s)
        other = self.inverse(heights + t)
        reach = np.exp(other)
        # (1 - cos)/2 at the edge of the cap, by squares that do not cancel, and 1 minus it
        inside = (reach - (r - c)) * (reach + (r - c)) if above else ((r + c) - reach) * ((r + c) + reach)
        share = np.where(other <= _LOW + 1, 0.0, inside / (4 * r * c)) if above else inside / (4 * r * c)
        half = (self.d - 1) / 2
        return float(weights @ (self._density(s, heights) * betainc(half, half, np.clip(share, 0.0, 1.0))))


def _root(function: object, low: float, high: float, otherwise: float) -> float:
    """A sign change between low and high, else `otherwise`: a region too small for floats is empty."""
    assert callable(function)
    if function(low) * function(high) >= 0:
        return otherwise
    return float(optimize.brentq(function, low, high, xtol=1e-15, rtol=1e-14))


def _log_bessel(order: float, x: Floats) -> Floats:
    """log K_order(x), also where K overflows: there x is so small that two terms of its series suffice."""
    with np.errstate(over="ignore", divide="ignore"):
        value = kve(order, x)
        logs = np.log(value) - x
    far = ~np.isfinite(value)
    if far.any():
        small = x[far]
        bend = 1 + small**2 / (4 * (1 - order)) if order > 1 else 1.0
        logs[far] = lgamma(order) - log(2) + order * np.log(2 / small) + np.log(bend)
    return np.asarray(logs)


@lru_cache(maxsize=4)
def _rule(nodes: int) -> tuple[Floats, Floats]:
    place, weight = np.polynomial.legendre.leggauss(nodes)
    angle = (place + 1) * pi / 4
    return np.sin(angle) ** 2, weight * pi / 2 * np.sin(angle) * np.cos(angle)


@lru_cache(maxsize=128)
def radial(d: int) -> Radial:
    """The law in d dimensions; its table (about 10 ms) is made once."""
    return Radial(d)
