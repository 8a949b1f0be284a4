"""Multivariate symmetric Laplace noise: S = sqrt(W) N with one W ~ Exp(1) for the whole row, shifted by c noise standard deviations.

d = 1 is the Laplace mechanism with epsilon = sqrt(2) c. d = infinity is the limit in which W is revealed (a Gaussian with mu =
c / sqrt(W)), in closed form:

    delta(e) = 1 - exp(-c^2 / (sqrt(e^2 + 2 c^2) + e))
    type I error (1 - h/s) exp(-c (s + h)/2) / 2 and type II error the same at -h, s = sqrt(2 + h^2), threshold e = c h

In between the exact value is one integral over the radius (`radial.py`). The curves fall with d and with c, and for every d
delta(0) = 1 - exp(-c / sqrt(2)). For d > 100 the limit is used, which is safe. From d = 3 on the tail is heavier than any Gaussian's:
no mu with delta = 0 and no rho exist. Source: Lu, Chen, Qiu 2026, sections 2 and 3, with exact finite d instead of its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, isinf, log, sqrt
from typing import Any

import numpy as np

from confide._lazy import later
from confide.guarantees.curves.curve import Curve, Floats
from confide.guarantees.curves.radial import radial
from confide.guarantees.curves.spherical_gap import spherical_gap
from confide.guarantees.rounding import SLACK

__all__ = ["LIMIT_FROM", "SymmetricLaplace"]

optimize = later("scipy.optimize")

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
        # so far out that the neighbour is the likelier one only within e^-60 of it
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
    """A bound on delta far out: the mass of a ball around the neighbour's centre that holds every point with LLR > epsilon.

    Within c/2 of that centre the other density is at least g(3c/2), so the point's own must be above e^epsilon g(3c/2); and delta
    counts mass of that set alone. 1 where the ball reaches beyond c/2.
    """
    law = radial(d)
    if law.cap(c, epsilon)[1] > 1.5 * c:
        return 1.0
    return max(exp(law.log_pole(c, epsilon + law.at(1.5 * c))), 5e-324)
