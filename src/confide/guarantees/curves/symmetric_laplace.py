"""Multivariate symmetric Laplace noise: S = sqrt(W) N with one W ~ Exp(1) for the whole row, shifted by c noise standard deviations.

d = 1 is the Laplace mechanism with epsilon = sqrt(2) c. d = infinity is the limit in which W is revealed (a Gaussian with mu =
c / sqrt(W)), in closed form:

    delta(e) = 1 - exp(-c^2 / (sqrt(e^2 + 2 c^2) + e))
    type I error (1 - h/s) exp(-c (s + h)/2) / 2 and type II error the same at -h, s = sqrt(2 + h^2), threshold e = c h

In between the exact value is one integral over the radius (`radial.py`). The curves fall with d and with c, and for every d
delta(0) = 1 - exp(-c / sqrt(2)). For d > 100 the limit is used, which is safe. From d = 3 on the tail is heavier than any Gaussian's:
no mu with delta 0 and no rho exist. Source: Lu, Chen, Qiu 2026, sections 2 and 3, with exact finite d instead of its bounds.

The multivariate symmetric Laplace law in polar coordinates: its density along a radius, and masses of level sets.

S = sqrt(W) N with W ~ Exp(1) and N ~ N(0, I_d) has density 2 (2 pi)^(-d/2) (r^2/2)^(-v/2) K_v(sqrt(2) r), v = (d-2)/2, K_v the
modified Bessel function. In s = log r its logarithm h is decreasing and concave, with slope -x K_(v+1)(x)/K_v(x), x = sqrt(2) r.

Two such laws a distance c apart are told apart by the likelihood ratio. On the sphere |x| = r it is above e^t where x
lies within R = g^-1(e^t g(r)) of the other center. That is a cap whose share of the sphere is a regularized
incomplete beta function. What is left is an integral over r.

delta of the symmetric Laplace law without cancellation, for small shifts and far tails.

`radial.py` has delta as a difference of two probabilities, which is quick, and exact to about 1e-16/c + 1e-16. Where
that is not enough, delta = E_Q[(1 - e^(epsilon - LLR))+] is integrated directly. This is over the radius rho around
the neighbor's center, and over the angle theta there, at distance sqrt((rho - c)^2 + 4 rho c cos^2(theta/2)) from the
own center. All terms are positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, expm1, isinf, lgamma, log, pi, sqrt
from typing import Any

import numpy as np

from confide._helpers import later
from confide._special import betainc, kve
from confide.guarantees.curves.curve import Curve, Floats
from confide.guarantees.validation import SLACK

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
        """log of a bound on the mass near the center where the log density is above `height`; 0 if that reaches beyond c/2.

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
        """(alpha, power) of the test that rejects when log likelihood ratio > t >= 0, for centers a distance c apart.

        alpha = P(LLR > t); power = Q(LLR > t) = P(LLR <= -t) by symmetry.
        """
        lower, upper = self.cap(c, t)
        alpha = self._integral(c, t, lower, upper, nodes, above=True)
        whole, end = self._complement(c, t)
        power = self.ball(whole, nodes) + self._integral(c, -t, whole, end, nodes, above=False)
        return alpha, power

    def cap(self, c: float, t: float) -> tuple[float, float]:
        """The radii between which the axis through the other center has LLR > t."""

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


_DEEPEST = -60.0  # of log rho: what lies deeper holds less than e^-110 of the mass


def spherical_gap(law: Radial, c: float, epsilon: float, radii: int = 40, angles: int = 24) -> float:
    """delta(epsilon) for epsilon >= 0, within 1e-7 of itself; 0 where the neighbor is the likelier within e^-60 of it alone.

    >>> from confide.guarantees.curves.symmetric_laplace import radial
    >>> round(spherical_gap(radial(3), 0.5, 0.8), 5)
    0.06775
    """
    top, whole = _reach(law, c, epsilon)
    if top == 0:
        return 0.0
    inner = {whole, top / 2, c / 2, c, 2 * c, 4.0, 10.0, 20.0, 40.0, 80.0, 160.0}
    ends = np.array([0.0, *sorted(x for x in inner if 0 < x < top), top])
    place, weight = _rule(radii)
    widths = np.diff(ends)[:, None]
    rho, outer = (ends[:-1, None] + widths * place).ravel(), (widths * weight).ravel()
    s = np.log(rho)
    heights = law.log_density(s)
    far = np.exp(law.inverse(heights - epsilon)) if epsilon > 0 else rho
    # the neighbor is likelier by e^epsilon beyond the distance `far` from the own centre: for angles below `widest`
    widest = np.arccos(np.clip(((far - rho) * (far + rho) - c * c) / (2 * rho * c), -1.0, 1.0))
    total = np.zeros_like(rho)
    for low, high, nodes, sines in _angles(law.d, angles):
        end = np.minimum(high, widest)
        some = end > low
        if not some.any():
            continue
        if (end[some] == high).all():
            theta, inside = nodes[0], nodes[1]
        else:
            place, weight = _rule(angles)
            span = (end[some] - low)[:, None]
            theta, inside = low + span * place, span * weight
            sines = np.exp(_log_norm(law.d) + (law.d - 2) * np.log(np.sin(theta)))
        r = rho[some][:, None]
        distance = np.sqrt((r - c) ** 2 + 4 * r * c * np.cos(theta / 2) ** 2)
        behind = epsilon + law.log_density(np.log(distance)) - heights[some][:, None]
        total[some] += (inside * sines * -np.expm1(np.minimum(behind, 0.0))).sum(axis=1)
    density = np.exp(law._area + (law.d - 1) * s + heights)
    return float(outer @ (density * total))


def _reach(law: Radial, c: float, epsilon: float) -> tuple[float, float]:
    """Radii around the neighbor: the last one with a point where it is likelier by e^epsilon, and the last one with nothing else."""

    def beyond(s: float) -> float:
        return law.at(exp(s)) - law.at(exp(s) + c) - epsilon

    def between(s: float) -> float:
        return law.at(exp(s)) - law.at(c - exp(s)) - epsilon

    if beyond(_DEEPEST) <= 0:
        return 0.0, 0.0
    edge = log(law.edge)
    top = law.edge if beyond(edge) >= 0 else exp(float(optimize.brentq(beyond, _DEEPEST, edge, xtol=1e-13)))
    half = log(c / 2)
    if epsilon == 0:
        return top, c / 2
    if half <= _DEEPEST or between(_DEEPEST) <= 0 or between(half) >= 0:
        return top, 0.0
    return top, exp(float(optimize.brentq(between, _DEEPEST, half, xtol=1e-13)))


def _log_norm(d: int) -> float:
    """log of 1 / integral of sin^(d-2)."""
    return lgamma(d / 2) - lgamma((d - 1) / 2) - log(pi) / 2


@lru_cache(maxsize=64)
def _angles(d: int, count: int) -> tuple[tuple[float, float, tuple[Floats, Floats], Floats], ...]:
    """Pieces of [0, pi] that follow the concentration about the equator, with nodes, weights and sin^(d-2) on each."""
    steps = (2 / sqrt(d), 6 / sqrt(d))
    cuts = sorted({pi / 2, *(pi / 2 - x for x in steps), *(pi / 2 + x for x in steps)})
    ends = [0.0, *(x for x in cuts if 0 < x < pi), pi]
    place, weight = _rule(count)
    pieces = []
    for low, high in pairwise(ends):
        theta = low + (high - low) * place
        sines = np.exp(_log_norm(d) + (d - 2) * np.log(np.sin(theta)))
        pieces.append((low, high, (theta, (high - low) * weight), sines))
    return tuple(pieces)


# From this dimension on the limit stands for the exact curve.
LIMIT_FROM = 101
# Measured error of delta as a difference of probabilities: below 1e-7 of itself plus 1.7e-15/c, from d = 2 to 100 (tests: a second
# formula, identities, twice the nodes, 30 digits). Where its last part is not small, the sum without cancellation takes over, whose
# error is below 6e-6 of itself for c >= 1e-7. What is stated is raised by more than that.
_RAISE, _FLOOR = 1e-6, 1e-14
_RAISE_GAP = 2e-5
_LEAST_SHIFT = 1e-7  # below it that of this shift or of the limit is stated: both are larger
_DEEP = exp(-110)  # a bound on the mass within e^-60 of the centre


@dataclass(frozen=True, repr=False)
class SymmetricLaplace(Curve):
    """d: at least 2, or infinity; c: the shift in noise standard deviations, above 0. Made by `symmetric_laplace(d, c)`."""

    d: float
    c: float

    @property
    def light_tail(self) -> bool:
        # at d = 2 the density has a logarithmic pole: the loss has doubly exponential tails
        return self.d == 2

    @property
    def _limit(self) -> bool:
        return self.d >= LIMIT_FROM

    def _profile(self, epsilons: Floats) -> Floats:
        if self._limit:
            return -np.expm1(-(self.c**2) / (np.hypot(epsilons, sqrt(2) * self.c) + epsilons)) * (1 + SLACK)
        return np.array([self._stated(float(e)) for e in epsilons])

    def _stated(self, epsilon: float) -> float:
        if self.c < _LEAST_SHIFT:
            limit = SymmetricLaplace(float("inf"), self.c).exact_delta(epsilon) * (1 + SLACK)
            return min(limit, SymmetricLaplace(self.d, _LEAST_SHIFT)._stated(epsilon))
        alpha, power = self._errors(epsilon)
        quick = power - (exp(epsilon) * alpha if alpha > 0 else 0.0)
        slack = _FLOOR + _FLOOR / self.c
        if slack < _RAISE * quick:
            return quick * (1 + _RAISE) + slack
        exact = spherical_gap(radial(int(self.d)), self.c, epsilon)
        if exact > 0:
            return exact * (1 + _RAISE_GAP)
        # so far out that the neighbor is the likelier one only within e^-60 of it
        return min(_DEEP, _pole(int(self.d), self.c, epsilon))

    def exact_delta(self, epsilon: float) -> float:
        """The value itself, not rounded up, for epsilon >= 0 and c >= 1e-7: within 6e-6 of itself, and nearer for c >= 1e-3."""
        if self._limit:
            return float(-expm1(-(self.c**2) / (sqrt(epsilon**2 + 2 * self.c**2) + epsilon)))
        alpha, power = self._errors(epsilon)
        quick = power - (exp(epsilon) * alpha if alpha > 0 else 0.0)
        if _FLOOR + _FLOOR / self.c < _RAISE * quick:
            return quick
        return spherical_gap(radial(int(self.d)), self.c, epsilon)

    def _errors(self, threshold: float) -> tuple[float, float]:
        """(type I error, power) of the test that rejects above a threshold >= 0 on the log likelihood ratio."""
        if self._limit:
            return _limit_error(self.c, threshold), 1 - _limit_error(self.c, -threshold)
        return _cached_errors(int(self.d), self.c, threshold)

    def _beta(self, alpha: float) -> float:
        """f(alpha): the threshold whose type I error is near alpha, then the tangent there, which is a lower bound."""
        middle = exp(-self.c / sqrt(2)) / 2  # alpha = beta at threshold 0
        above = alpha <= middle
        goal = log(alpha) if above else log1m(alpha)

        def miss(threshold: float) -> float:
            first, power = self._errors(threshold)
            value = first if above else 1 - power
            return (log(max(value, 1e-300)) if above else log1m(value)) - goal

        # type I error at most e^-t: the threshold is at most -log alpha; on the other branch the type II error falls alike
        high = -log(alpha) if above else 1.0
        while not above and miss(high) > 0 and high < 700:
            high *= 2
        t = float(optimize.brentq(miss, 0.0, high, xtol=1e-6, rtol=1e-7)) if miss(0.0) * miss(high) < 0 else 0.0
        if not self._limit and self.c < 1e-3:  # the two errors lose digits; the tangent of the stated profile does not
            value = 1 - self._stated(t) - exp(t) * alpha if above else exp(-t) * (1 - self._stated(t) - alpha)
            return value * (1 - SLACK)
        first, power = self._errors(t)
        lost = 1e-14 + 1e-14 / self.c if not self._limit else 1e-14
        if above:
            return (1 - power - exp(t) * (alpha - first)) * (1 - SLACK) - lost
        return (first - exp(-t) * (alpha - (1 - power))) * (1 - SLACK) - lost

    def _data(self) -> dict[str, Any]:
        return {"curve": "symmetric_laplace", "d": float(self.d).hex(), "c": self.c.hex()}

    def __repr__(self) -> str:
        return f"symmetric_laplace({'inf' if isinf(self.d) else int(self.d)}, {self.c!r})"


def log1m(value: float) -> float:
    """log(1 - value), minus infinity kept finite."""
    return log(max(1 - value, 1e-300))


def _limit_error(c: float, threshold: float) -> float:
    h = threshold / c
    s = sqrt(2 + h * h)
    # 1 - h/s = 2 / (s (s + h)) without cancelling
    return (1 / (s * (s + h)) if h > 0 else (1 - h / s) / 2) * exp(-c * (s + h) / 2)


@lru_cache(maxsize=65_536)
def _cached_errors(d: int, c: float, threshold: float) -> tuple[float, float]:
    return radial(d).errors(c, threshold)


def _pole(d: int, c: float, epsilon: float) -> float:
    """A bound on delta in the tails: the mass of a ball around the neighbor's center that holds every point with LLR > epsilon.

    Within c/2 of that center the other density is at least g(3c/2), so the point's own must be above e^epsilon g(3c/2); and delta
    counts mass of that set alone. 1 where the ball reaches beyond c/2.
    """
    law = radial(d)
    if law.cap(c, epsilon)[1] > 1.5 * c:
        return 1.0
    return max(exp(law.log_pole(c, epsilon + law.at(1.5 * c))), 5e-324)
