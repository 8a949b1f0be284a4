"""Curves in closed form: no leak at all, Gaussian, Laplace, randomized response, and what is built over another curve.

The privacy curve that zero-concentrated differential privacy proves, at its best order.

rho-zCDP bounds the Renyi divergence of each order a > 1 by a rho, hence (Canonne, Kamath, Steinke 2020)

    delta <= exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a        for every a > 1

With t = a - 1 the logarithm is t((1 + t) rho - epsilon) - log(1 + t) - t log(1 + 1/t), which is convex in t. The best
order is the root of an increasing function. So every order that the bisection stops at is a valid bound and the best
to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, inf, isinf, log1p, nextafter
from typing import Any

import numpy as np

from confide._special import ndtr, ndtri
from confide.guarantees.curves.curve import Curve, Floats, least_mu
from confide.guarantees.mechanisms.classical import laplace_mu, pure_mu, rdp_log_delta
from confide.guarantees.mechanisms.gaussian import bracket, gaussian_epsilon, log_gaussian_delta
from confide.guarantees.validation import SLACK, float_up, sqrt_up


def zcdp_log_delta(epsilon: float, rho: float) -> float:
    """log delta at an epsilon, both above 0; not rounded.

    >>> round(zcdp_log_delta(5.0, 0.5), 6)
    -12.752138
    """
    _, t = bracket(lambda t: (1 + 2 * t) * rho - epsilon - log1p(1 / t), start=1.0)
    return t * ((1 + t) * rho - epsilon) - log1p(t) - t * log1p(1 / t)


def zcdp_epsilon(log_delta: float, rho: float) -> float:
    """epsilon at a delta below 1, given by its logarithm; not rounded; may be 0 or less when delta is near 1.

    For one t the bound gives epsilon = (1 + t) rho - (log delta + log(1 + t))/t - log(1 + 1/t); its slope in t has the
    sign of t^2 rho + log(1 + t) + log delta.

    >>> round(zcdp_epsilon(-12.752138, 0.5), 6)
    5.0
    """
    _, t = bracket(lambda t: t * t * rho + log1p(t) + log_delta, start=1.0)
    return (1 + t) * rho - (log_delta + log1p(t)) / t - log1p(1 / t)


# What is below every positive float and not 0: a delta that underflows is not a delta of 0.
_SMALLEST = 5e-324
_NEAR_0 = 1e-9


def _up(numbers: Floats) -> Floats:
    return np.minimum(numbers * (1 + SLACK), 1.0)


def _any_of(zeta: float, times: int) -> Fraction:
    """1 - (1 - zeta)^times, exact for few times and rounded up for many, where the exact fraction has millions of digits."""
    if times <= 256 or zeta == 0:
        return 1 - (1 - Fraction(zeta)) ** times
    return Fraction(min(1.0, -expm1(times * log1p(-zeta)) * (1 + SLACK))) if zeta < 1 else Fraction(1)


@dataclass(frozen=True, repr=False)
class Perfect(Curve):
    """f(alpha) = 1 - alpha: the output is independent of the records."""

    @property
    def light_tail(self) -> bool:
        return True

    def _profile(self, epsilons: Floats) -> Floats:
        return np.zeros_like(epsilons)

    def _beta(self, alpha: float) -> float:
        return 1 - alpha

    def _merged(self, other: Curve, times: int) -> Curve | None:
        return other.power(times)

    def _data(self) -> dict[str, Any]:
        return {"curve": "perfect"}

    def __repr__(self) -> str:
        return "perfect()"


@dataclass(frozen=True, repr=False)
class Gaussian(Curve):
    """N(0, 1) against N(mu, 1) (Dong, Roth, Su 2022)."""

    mu: float

    @property
    def light_tail(self) -> bool:
        return True

    def _profile(self, epsilons: Floats) -> Floats:
        logs = np.array([log_gaussian_delta(float(e), self.mu) for e in epsilons])
        return np.maximum(_up(np.exp(logs)), _SMALLEST)

    def _beta(self, alpha: float) -> float:
        return float(ndtr(-ndtri(alpha) - self.mu)) * (1 - SLACK)

    def _epsilon(self, goal: float) -> float:
        if goal <= 0:
            return inf
        if self.delta(0.0) <= goal:
            return 0.0
        found = gaussian_epsilon(goal, self.mu)
        return found + SLACK * (found + self.mu) if found > 0 else 0.0

    def _gdp(self, leak: float) -> float:
        return self.mu if leak == 0 else min(super()._gdp(leak), self.mu)

    def _merged(self, other: Curve, times: int) -> Curve | None:
        if isinstance(other, Gaussian):
            return Gaussian(sqrt_up(Fraction(self.mu) ** 2 + times * Fraction(other.mu) ** 2))
        return None

    def _data(self) -> dict[str, Any]:
        return {"curve": "gaussian", "mu": self.mu.hex()}

    def __repr__(self) -> str:
        return f"gaussian({self.mu!r})"


@dataclass(frozen=True, repr=False)
class Laplace(Curve):
    """The Laplace mechanism at sensitivity / scale = epsilon (Dong, Roth, Su 2022, Proposition 2.6 and appendix A).

    delta(e) = 1 - exp((e - epsilon) / 2) for e < epsilon, 0 from there on.
    """

    level: float

    @property
    def light_tail(self) -> bool:
        return True

    def _profile(self, epsilons: Floats) -> Floats:
        return _up(0.0 - np.expm1(np.minimum(epsilons - self.level, 0.0) / 2))

    def _beta(self, alpha: float) -> float:
        edge = exp(-self.level)
        if alpha < edge / 2:
            value = 1 - alpha / edge
        elif alpha <= 0.5:
            value = edge / (4 * alpha)
        else:
            value = edge * (1 - alpha)
        return value * (1 - SLACK)

    def _epsilon(self, goal: float) -> float:
        return self.level if goal == 0 else min(super()._epsilon(goal), self.level)

    def _gdp(self, leak: float) -> float:
        mu = laplace_mu(self.level, leak)
        return nextafter(mu * (1 + SLACK), inf) if mu else 0.0

    def _data(self) -> dict[str, Any]:
        return {"curve": "laplace", "epsilon": self.level.hex()}

    def __repr__(self) -> str:
        return f"laplace({self.level!r})"


@dataclass(frozen=True, repr=False)
class RandomisedResponse(Curve):
    """One bit, told truly with probability e^epsilon / (1 + e^epsilon): the worst of all epsilon-private releases.

    Source: Kairouz, Oh, Viswanath 2015. delta(e) = (e^epsilon - e^e) / (1 + e^epsilon) below epsilon.
    """

    level: float

    @property
    def light_tail(self) -> bool:
        return True

    def _profile(self, epsilons: Floats) -> Floats:
        return _up((0.0 - np.expm1(np.minimum(epsilons - self.level, 0.0))) / (1 + exp(-self.level)))

    def _beta(self, alpha: float) -> float:
        return max(1 - alpha * exp(min(self.level, 700.0)), exp(-self.level) * (1 - alpha)) * (1 - SLACK)

    def _epsilon(self, goal: float) -> float:
        return self.level if goal == 0 else min(super()._epsilon(goal), self.level)

    def _gdp(self, leak: float) -> float:
        return nextafter(pure_mu(self.level) * (1 + SLACK), inf) if leak == 0 else super()._gdp(leak)

    def _data(self) -> dict[str, Any]:
        return {"curve": "randomised_response", "epsilon": self.level.hex()}

    def __repr__(self) -> str:
        return f"approx_dp({self.level!r}, 0.0)"


@dataclass(frozen=True, repr=False)
class ZeroInflated(Curve):
    """A release that gives the record away with probability zeta, and is `base` otherwise.

    The two cases are told apart by the output, hence delta(e) = 1 - (1 - zeta)(1 - delta_base(e)) and f(alpha) = (1 -
    zeta) f_base(alpha / (1 - zeta)), 0 beyond. The pair (epsilon, delta) is randomized response with zeta = delta.
    """

    zeta: float
    base: Curve

    @property
    def mass_at_infinity(self) -> float:
        return float_up(1 - (1 - Fraction(self.zeta)) * (1 - Fraction(self.base.mass_at_infinity)))

    @property
    def light_tail(self) -> bool:
        return self.base.light_tail

    def _profile(self, epsilons: Floats) -> Floats:
        below = np.asarray(self.base.delta(epsilons))
        # zeta + (1 - zeta) delta: a sum of positive terms keeps the digits of both
        return np.where(below > 0, _up(self.zeta + (1 - self.zeta) * below), self.zeta)

    def _beta(self, alpha: float) -> float:
        rest = 1 - self.zeta
        return rest * float(self.base.f(alpha / rest)) * (1 - SLACK) if alpha < rest else 0.0

    def _gdp(self, leak: float) -> float:
        # delta - leak = (1 - zeta) (delta_base - rest), in the form that does not cancel
        rest = -float_up((Fraction(self.zeta) - Fraction(leak)) / (1 - Fraction(self.zeta)))
        top = self.base._epsilon(rest)
        if isinf(top) and not self.base.mass_at_infinity:
            top = self.base._epsilon(1e-290)
        if isinf(top):
            return self.base.gdp(rest)  # without the factor: a little above
        kept = (1 - self.zeta) * (1 + SLACK)
        return least_mu(lambda epsilon: kept * (float(self.base.delta(epsilon)) - rest), top)

    def _merged(self, other: Curve, times: int) -> Curve | None:
        """All bare: the product of the bare parts; any one not bare: the record is given away."""
        bare, zeta = (other.base, other.zeta) if isinstance(other, ZeroInflated) else (other, 0.0)
        kept = (1 - Fraction(self.zeta)) * (1 - _any_of(zeta, times))
        return ZeroInflated(float_up(1 - kept), self.base.compose(bare.power(times)))

    def _data(self) -> dict[str, Any]:
        return {"curve": "zero_inflated", "zeta": self.zeta.hex(), "base": self.base.to_dict()}

    def __repr__(self) -> str:
        if isinstance(self.base, RandomisedResponse):
            return f"approx_dp({self.base.level!r}, {self.zeta!r})"
        return f"zero_inflated({self.zeta!r}, {self.base!r})"


@dataclass(frozen=True, repr=False)
class Relaxed(Curve):
    """f_base - slack or 0, in both orders: the delta-approximate form of a guarantee; delta(e) = delta_base(e) + slack for e >= 0.

    In both orders: f(alpha) is the larger of f_base(alpha) - slack and its mirror image f_base(alpha + slack).

    Two of them compose to the composed bases with both slacks. The hockey-stick divergence of the second release,
    conditional on the first, is at most its base's plus its slack. Integrating in either order adds the other (the
    argument of `docs/explain/ledger.md`).
    """

    base: Curve
    slack: float

    @property
    def mass_at_infinity(self) -> float:
        return min(1.0, float_up(Fraction(self.base.mass_at_infinity) + Fraction(self.slack)))

    @property
    def light_tail(self) -> bool:
        return self.base.light_tail

    def _profile(self, epsilons: Floats) -> Floats:
        return np.minimum(np.nextafter(np.asarray(self.base.delta(epsilons)) + self.slack, inf), 1.0)

    def _beta(self, alpha: float) -> float:
        # the second is the mirror image of the first: the statement holds in both orders
        return max(float(self.base.f(alpha)) - self.slack, float(self.base.f(min(alpha + self.slack, 1.0)))) * (
            1 - SLACK
        )

    def _gdp(self, leak: float) -> float:
        return self.base.gdp(-float_up(Fraction(self.slack) - Fraction(leak)))

    def _merged(self, other: Curve, times: int) -> Curve | None:
        bare, slack = (other.base, other.slack) if isinstance(other, Relaxed) else (other, 0.0)
        total = float_up(Fraction(self.slack) + times * Fraction(slack))
        return Relaxed(self.base.compose(bare.power(times)), min(total, 1.0))

    def _data(self) -> dict[str, Any]:
        return {"curve": "relaxed", "slack": self.slack.hex(), "base": self.base.to_dict()}

    def __repr__(self) -> str:
        return f"relaxed({self.base!r}, {self.slack!r})"


@dataclass(frozen=True, repr=False)
class RenyiBound(Curve):
    """What bounds on Renyi divergences prove (Canonne, Kamath, Steinke 2020): of rho-zCDP, or of some orders.

    orders None: rho-zCDP with rho = bounds[0]; else bounds[i] is the divergence of order orders[i].
    """

    orders: tuple[float, ...] | None
    bounds: tuple[float, ...]

    def _profile(self, epsilons: Floats) -> Floats:
        # the orders prove something for epsilon above 0; delta(0) <= delta(e) + e^e - 1
        proved = np.array([exp(min(self._log_delta(max(float(e), _NEAR_0)), 0.0)) for e in epsilons])
        return np.maximum(_up(proved + np.where(epsilons < _NEAR_0, 2 * _NEAR_0, 0.0)), _SMALLEST)

    def _log_delta(self, epsilon: float) -> float:
        if self.orders is not None:
            return rdp_log_delta(epsilon, self.orders, self.bounds)
        return zcdp_log_delta(epsilon, self.bounds[0])

    @property
    def mass_at_infinity(self) -> float:
        return 0.0

    def _merged(self, other: Curve, times: int) -> Curve | None:
        if not isinstance(other, RenyiBound) or other.orders != self.orders:
            return None
        sums = (Fraction(a) + times * Fraction(b) for a, b in zip(self.bounds, other.bounds, strict=True))
        return RenyiBound(self.orders, tuple(float_up(total) for total in sums))

    def _data(self) -> dict[str, Any]:
        orders = None if self.orders is None else [order.hex() for order in self.orders]
        return {"curve": "renyi", "orders": orders, "bounds": [bound.hex() for bound in self.bounds]}

    def __repr__(self) -> str:
        return f"ZCDP({self.bounds[0]!r})" if self.orders is None else f"RDP({self.orders!r}, {self.bounds!r})"
