"""The Laplace mechanism against the Gaussian curve, exactly.

With epsilon = sensitivity/scale the Laplace mechanism has the profile delta(e) = 1 - exp((e - epsilon)/2) for 0 <= e <=
epsilon and 0 beyond. So it is (mu, delta)-Gaussian exactly when

    exp(-epsilon/2) >= exp(-e/2) (1 - delta(e; mu) - delta)        for every e >= 0

With r(e) = exp(-e/2) (1 - delta(e; mu)) = exp(-e/2) Phi(e/mu - mu/2) + exp(e/2) Phi(-e/mu - mu/2) the normal
densities in its slope cancel. So 2 r'(e) = -exp(-e/2) Phi(e/mu - mu/2) + exp(e/2) Phi(-e/mu - mu/2), which is at most
0 for e >= 0, as Phi/phi rises. So for delta 0 the largest right side is at e = 0: epsilon = -2 log(2 Phi(-mu/2)). For
delta > 0 it is where Phi(e/mu - mu/2) - e^e Phi(-e/mu - mu/2) = delta, whose left side rises from 0 to 1.

The privacy curves of randomized response, with and without a leak.

Every epsilon-private release is a post-processing of randomized response, and every (epsilon, delta)-private one of
randomized response that leaks its input with probability delta (Kairouz, Oh, Viswanath 2015). What holds
for these two holds for all.

Renyi divergences of the classical mechanisms, and the privacy curve that bounds on them prove.

A bound epsilon_a on the Renyi divergence of order a > 1 proves, for every epsilon (Canonne, Kamath, Steinke 2020),

    delta <= exp((a - 1)(epsilon_a - epsilon)) / a * (1 - 1/a)^(a - 1)

and of several orders the best one counts. Divergences of mechanisms follow Mironov 2017. With b = a - 1

    randomized response   log(1 + 2 sinh(a eps/2) sinh(b eps/2) / cosh(eps/2)) / b
    Laplace               log((a e^(b eps) + b e^(-a eps)) / (a + b)) / b

Both are written so that nothing cancels for small epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh, cosh, erf, exp, expm1, log, log1p, sinh, sqrt, tanh

from confide import _docs
from confide._special import erfinv, log_ndtr, ndtr, ndtri_exp
from confide.guarantees.mechanisms.gaussian import bracket
from confide.guarantees.validation import SLACK, level, renyi_order, share

# With a delta, round-off takes the whole of an exponent from here on.
_MOST_MU, _MOST_EPSILON = 1e8, 1e15


def laplace_epsilon(mu: float, delta: float = 0.0) -> float:
    """Largest epsilon whose Laplace mechanism is (mu, delta)-Gaussian DP.

    Above `pure_epsilon(mu)`, which holds for every pure mechanism.

    Parameters
    ----------
    mu : float
        Parameter of Gaussian DP, above 0.
    delta : float, default 0
        Additive part, at least 0 and below 1.

    Returns
    -------
    float
        Sensitivity over scale. Not rounded; that of `calibrate_laplace` is rounded down.

    Examples
    --------
    >>> round(laplace_epsilon(1.0), 10)
    0.9655291621
    """
    mu = level(mu, "mu", "laplace_epsilon(1.0)")
    delta = share(delta, "delta", "laplace_epsilon(1.0, 1e-6)", zero=True)
    if delta == 0:  # -2 log erfc(mu / sqrt 8)
        return -2 * log1p(-erf(mu / sqrt(8))) if mu < 1 else -2 * (log(2) + float(log_ndtr(-mu / 2)))
    mu = level(mu, "mu", "laplace_epsilon(1.0, 1e-6)", most=_MOST_MU)

    def reached(e: float) -> float:
        return float(ndtr(e / mu - mu / 2)) - exp(e + float(log_ndtr(-e / mu - mu / 2))) - delta

    e = bracket(reached, start=mu)[0]
    # any e gives a lower bound of the largest right side, which is flat there; the last term covers round-off at small mu
    kept = float(ndtr(e / mu - mu / 2)) + exp(e + float(log_ndtr(-e / mu - mu / 2))) - delta
    return e - 2 * log(kept) - 2.0**-49 * (1 + e)


def laplace_mu(epsilon: float, delta: float = 0.0) -> float:
    """Smallest mu at which the Laplace mechanism is (mu, delta)-Gaussian DP.

    The inverse of `laplace_epsilon`. Below `pure_mu(epsilon)`, which holds for
    every pure mechanism.

    Parameters
    ----------
    epsilon : float
        Sensitivity over scale, above 0.
    delta : float, default 0
        Additive part, at least 0 and below 1.

    Returns
    -------
    float
        mu, not rounded; 0 where delta alone is enough.

    Examples
    --------
    >>> round(laplace_mu(0.9655291620576917), 10)
    1.0
    """
    epsilon = level(epsilon, "epsilon", "laplace_mu(1.0)")
    delta = share(delta, "delta", "laplace_mu(1.0, 1e-6)", zero=True)
    if delta == 0:
        if epsilon < 1:  # total variation 1 - exp(-epsilon/2) = erf(mu / sqrt 8)
            return sqrt(8) * float(erfinv(-expm1(-epsilon / 2)))
        return -2 * float(ndtri_exp(-epsilon / 2 - log(2)))
    if delta >= -expm1(-epsilon / 2):
        return 0.0
    epsilon = level(epsilon, "epsilon", "laplace_mu(1.0, 1e-6)", most=_MOST_EPSILON)
    return bracket(lambda mu: laplace_epsilon(mu, delta) - epsilon, start=1.0)[1]


def pure_mu(epsilon: float) -> float:
    """Smallest mu at which every epsilon-private release is mu-GDP.

    mu = -2 Phi^-1(1/(1 + e^epsilon)), the number of a statement.

    Parameters
    ----------
    epsilon : float
        Parameter of pure DP, above 0.

    Returns
    -------
    float
        mu, not rounded; ``PureDP(epsilon).to_gdp()`` is rounded up.

    Examples
    --------
    >>> round(pure_mu(1.0), 10)
    1.2320353853
    """
    epsilon = level(epsilon, "epsilon", "pure_mu(1.0)")
    if epsilon < 1:  # Phi(mu/2) - 1/2 = tanh(epsilon/2)/2, without a difference from 1/2
        return 2 * sqrt(2) * float(erfinv(tanh(epsilon / 2)))
    return -2 * float(ndtri_exp(-epsilon - log1p(exp(-epsilon))))


def pure_epsilon(mu: float) -> float:
    """Largest epsilon at which every epsilon-private release is mu-GDP.

    epsilon = log Phi(mu/2) - log Phi(-mu/2), the number of a calibration and
    the inverse of `pure_mu`: how much a pure mechanism may spend within
    Gaussian DP.

    Parameters
    ----------
    mu : float
        Parameter of Gaussian DP, above 0.

    Returns
    -------
    float
        epsilon, not rounded down.

    Examples
    --------
    >>> round(pure_epsilon(1.0), 10)
    0.8069653463
    """
    mu = level(mu, "mu", "pure_epsilon(1.0)")
    if mu < 1:
        return 2 * atanh(erf(mu / (2 * sqrt(2))))
    return float(log_ndtr(mu / 2)) - float(log_ndtr(-mu / 2))


def leak_delta(epsilon: float, delta: float, at: float) -> float:
    """delta of the (epsilon, delta) curve at another epsilon `at`; not rounded.

    Below epsilon it is delta + (1 - delta)(e^epsilon - e^at)/(1 + e^epsilon), from there on delta.

    >>> leak_delta(1.0, 0.0, 2.0), round(leak_delta(1.0, 0.0, 0.5), 6)
    (0.0, 0.287649)
    """
    if at >= epsilon:
        return delta
    return delta + (1 - delta) * -expm1(at - epsilon) / (1 + exp(-epsilon))


def leak_epsilon(epsilon: float, delta: float, at: float) -> float:
    """The inverse of `leak_delta` for `at` >= delta, rounded up; 0 or less where every epsilon above 0 holds.

    >>> leak_epsilon(1.0, 0.0, 1e-6) <= 1.0
    True
    """
    # Made smaller by the slack, so that the logarithm near its pole errs upwards; never above the epsilon that is
    # known.
    lost = (at - delta) / (1 - delta) * (1 + exp(-epsilon)) * (1 - SLACK)
    return min(epsilon, (epsilon + log1p(-lost)) * (1 + SLACK)) if lost < 1 else 0.0


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
    """Largest Renyi divergence of an order that epsilon-DP allows.

    It is that of randomized response, and never above order * epsilon^2 / 2.

    Parameters
    ----------
    order : float
        Order of the divergence, above 1.
    epsilon : float
        Parameter of pure DP, above 0.

    Returns
    -------
    float
        The divergence, not rounded.

    References
    ----------
    Bun and Steinke (2016), Concentrated differential privacy, TCC.

    Examples
    --------
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
    """Renyi divergence of an order between Laplace distributions epsilon apart.

    Parameters
    ----------
    order : float
        Order of the divergence, above 1.
    epsilon : float
        Distance of the two distributions of scale 1, above 0.

    Returns
    -------
    float
        The divergence, not rounded.

    Examples
    --------
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


_docs.tell("PrivacyError", laplace_epsilon, laplace_mu, pure_mu, pure_epsilon, pure_renyi, laplace_renyi)
