"""Renyi divergences of the classical mechanisms, and the privacy curve that bounds on them prove.

A bound epsilon_a on the Renyi divergence of order a > 1 proves, for every epsilon (Canonne, Kamath, Steinke 2020),

    delta <= exp((a - 1)(epsilon_a - epsilon)) / a * (1 - 1/a)^(a - 1)

and of several orders the best one counts. Divergences of mechanisms are those of Mironov 2017: with b = a - 1

    randomised response   log(1 + 2 sinh(a eps/2) sinh(b eps/2) / cosh(eps/2)) / b
    Laplace               log((a e^(b eps) + b e^(-a eps)) / (a + b)) / b

Both are written so that nothing cancels for small epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cosh, exp, expm1, log, log1p, sinh

from confide.guarantees.validation import level, renyi_order

__all__ = ["DEFAULT_ORDERS", "laplace_renyi", "pure_renyi", "rdp_epsilon", "rdp_log_delta"]

DEFAULT_ORDERS: tuple[float, ...] = (
    *(1 + tenth / 10 for tenth in range(1, 100)),
    *(float(order) for order in range(11, 64)),
    128.0,
    256.0,
    512.0,
    1024.0,
)


def rdp_log_delta(epsilon: float, orders: Sequence[float], epsilons: Sequence[float]) -> float:
    """log delta at an epsilon by the best order; not rounded; above 0 where nothing is proved.

    >>> round(rdp_log_delta(5.0, (5.0, 5.4), (2.5, 2.7)), 4)
    -12.7075
    """
    return min(
        (a - 1) * (bound - epsilon) - log(a) + (a - 1) * log1p(-1 / a)
        for a, bound in zip(orders, epsilons, strict=True)
    )


def rdp_epsilon(log_delta: float, orders: Sequence[float], epsilons: Sequence[float]) -> float:
    """epsilon at a delta, given by its logarithm, by the best order; not rounded; may be 0 or less.

    >>> round(rdp_epsilon(-12.7075, (5.0, 5.4), (2.5, 2.7)), 4)
    5.0
    """
    return min(
        bound + log1p(-1 / a) - (log_delta + log(a)) / (a - 1) for a, bound in zip(orders, epsilons, strict=True)
    )


def pure_renyi(order: float, epsilon: float) -> float:
    """The largest Renyi divergence of an order that epsilon-DP allows, that of randomised response; not rounded.

    Never above order * epsilon^2 / 2 (Bun, Steinke 2016).

    >>> round(pure_renyi(2.0, 1.0), 6), round(pure_renyi(1e6, 1.0), 6)
    (0.735326, 1.0)
    """
    order, epsilon = (
        renyi_order(order, "order", "pure_renyi(2.0, 1.0)"),
        level(epsilon, "epsilon", "pure_renyi(2.0, 1.0)"),
    )
    half, rest = order * epsilon / 2, (order - 1) * epsilon / 2
    if half < 10:
        return log1p(2 * sinh(half) * sinh(rest) / cosh(epsilon / 2)) / (order - 1)
    # log cosh(half + rest) - log cosh(epsilon/2)
    grown = half + rest - epsilon / 2
    return (grown + log1p(exp(-2 * (half + rest))) - log1p(exp(-epsilon))) / (order - 1)


def laplace_renyi(order: float, epsilon: float) -> float:
    """The Renyi divergence of an order between Laplace laws of scale 1 that are epsilon apart; not rounded.

    >>> round(laplace_renyi(2.0, 1.0), 6), round(laplace_renyi(2.0, 1e-9), 24)
    (0.619124, 1e-18)
    """
    order = renyi_order(order, "order", "laplace_renyi(2.0, 1.0)")
    epsilon = level(epsilon, "epsilon", "laplace_renyi(2.0, 1.0)")
    a, b = order, order - 1
    if a * epsilon < 0.5:
        # a (e^(b eps) - 1) + b (e^(-a eps) - 1), whose linear terms cancel, as a power series
        total, power = 0.0, epsilon
        for n in range(2, 24):
            power *= epsilon / n
            total += a * b * (b ** (n - 1) + (-1) ** n * a ** (n - 1)) * power
        return log1p(total / (a + b)) / b
    if b * epsilon < 1:
        return log1p((a * expm1(b * epsilon) + b * expm1(-a * epsilon)) / (a + b)) / b
    tail = b / a * exp(-(a + b) * epsilon) if (a + b) * epsilon < 700 else 0.0
    return epsilon + (log(a / (a + b)) + log1p(tail)) / b
