"""The privacy curve that zero-concentrated differential privacy proves, at its best order.

rho-zCDP bounds the Renyi divergence of each order a > 1 by a rho, hence (Canonne, Kamath, Steinke 2020)

    delta <= exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a        for every a > 1

With t = a - 1 the logarithm is t((1 + t) rho - epsilon) - log(1 + t) - t log(1 + 1/t), which is convex in t; the best
order is the root of an increasing function, so every order that the bisection stops at is a valid bound and the best
to the last bit.
"""

from __future__ import annotations

from math import log1p

from confide.guarantees.mechanisms.gaussian import bracket

__all__ = ["zcdp_epsilon", "zcdp_log_delta"]


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
