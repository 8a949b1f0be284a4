"""The privacy curves of randomised response, with and without a leak.

Every epsilon-private release is a post-processing of randomised response, and every (epsilon, delta)-private one of
randomised response that leaks its input with probability delta (Kairouz, Oh, Viswanath 2015). What holds
for these two holds for all.
"""

from __future__ import annotations

from math import atanh, erf, exp, expm1, log1p, sqrt, tanh

from confide._special import erfinv, log_ndtr, ndtri_exp
from confide.guarantees.rounding import SLACK
from confide.guarantees.validation import level

__all__ = ["leak_delta", "leak_epsilon", "pure_epsilon", "pure_mu"]


def pure_mu(epsilon: float) -> float:
    """The smallest mu such that every epsilon-private release is mu-GDP: -2 Phi^-1(1/(1 + e^epsilon)).

    epsilon: above 0. The number of a statement, not rounded up (`PureDP(epsilon).to_gdp()` is). Raises `PrivacyError`.

    >>> round(pure_mu(1.0), 10)
    1.2320353853
    """
    epsilon = level(epsilon, "epsilon", "pure_mu(1.0)")
    if epsilon < 1:  # Phi(mu/2) - 1/2 = tanh(epsilon/2)/2, without a difference from 1/2
        return 2 * sqrt(2) * float(erfinv(tanh(epsilon / 2)))
    return -2 * float(ndtri_exp(-epsilon - log1p(exp(-epsilon))))


def pure_epsilon(mu: float) -> float:
    """The largest epsilon such that every epsilon-private release is mu-GDP: log Phi(mu/2) - log Phi(-mu/2).

    mu: above 0. The number of a calibration, the inverse of `pure_mu`: how much a pure mechanism may spend within
    GDP(mu). Not rounded down. Raises `PrivacyError`.

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
