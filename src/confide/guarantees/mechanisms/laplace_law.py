"""The Laplace mechanism against the Gaussian curve, exactly.

With epsilon = sensitivity/scale the Laplace mechanism has the profile delta(e) = 1 - exp((e - epsilon)/2) for 0 <= e <=
epsilon and 0 beyond. So it is (mu, delta)-Gaussian exactly when

    exp(-epsilon/2) >= exp(-e/2) (1 - delta(e; mu) - delta)        for every e >= 0

With r(e) = exp(-e/2) (1 - delta(e; mu)) = exp(-e/2) Phi(e/mu - mu/2) + exp(e/2) Phi(-e/mu - mu/2) the normal densities in
its slope cancel: 2 r'(e) = -exp(-e/2) Phi(e/mu - mu/2) + exp(e/2) Phi(-e/mu - mu/2), which is at most 0 for e >= 0, as
Phi/phi rises. So for delta = 0 the largest right side is at e = 0: epsilon = -2 log(2 Phi(-mu/2)). For delta > 0 it is
where Phi(e/mu - mu/2) - e^e Phi(-e/mu - mu/2) = delta, whose left side rises from 0 to 1.
"""

from __future__ import annotations

from math import erf, exp, expm1, log, log1p, sqrt

from confide._special import erfinv, log_ndtr, ndtr, ndtri_exp
from confide.guarantees.mechanisms.gaussian import bracket
from confide.guarantees.validation import level, share

__all__ = ["laplace_epsilon", "laplace_mu"]

# With a delta, round-off takes the whole of an exponent from here on.
_MOST_MU, _MOST_EPSILON = 1e8, 1e15


def laplace_epsilon(mu: float, delta: float = 0.0) -> float:
    """The largest epsilon = sensitivity/scale whose Laplace mechanism is (mu, delta)-Gaussian differentially private.

    mu: above 0; delta: at least 0 and below 1. Above `pure_epsilon(mu)`, which holds for every pure mechanism. Not
    rounded (`calibrate_laplace(GDP(mu, delta))` is). Raises `PrivacyError` for other arguments.

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
    """The smallest mu such that the Laplace mechanism is (mu, delta)-Gaussian: the inverse of `laplace_epsilon`.

    0 where delta alone is enough. Below `pure_mu(epsilon)`, which holds for every pure mechanism. Not rounded. Raises
    `PrivacyError` for other arguments.

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
