"""The privacy curve of the Gaussian mechanism and its two inverses.

The curve: a mechanism is mu-GDP exactly when, for every real epsilon, it is (epsilon, delta)-private with

    delta(epsilon; mu) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

(Balle, Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 2.13). The two terms nearly cancel for small mu and for
small delta, so the difference is never taken between them. With a = epsilon/mu - mu/2, b = a + mu, phi the normal
density and M(x) = (1 - Phi(x))/phi(x) Mills' ratio, e^epsilon phi(b) = phi(a), hence

    delta = phi(a) (M(a) - M(b)) = phi(a) * integral from a to b of (1 - x M(x)) dx        -M'(x) = 1 - x M(x) > 0
    1 - delta = phi(a) (M(-a) + M(b))                                                       used when delta is near 1

Measured against 60-digit arithmetic (tests/guarantees): relative error of delta below 1e-12 for delta from 1e-300 to 1
and mu from 1e-4 to 50.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, expm1, inf, isfinite, log, log1p, nextafter, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _docs
from confide._special import erfcx
from confide.errors import PrivacyError
from confide.guarantees.validation import level, real, share

# Gauss-Legendre on [0, 1]. The integrand is only integrated over [a, b] with M(b) > M(a)/2, that is b < 2a or a short
# interval near 0; its convergence rate there is at least 3 + sqrt(8) per node and side, so 20 nodes leave less than
# 1e-30.
_NODES, _WEIGHTS = (np.polynomial.legendre.leggauss(20)[0] + 1) / 2, np.polynomial.legendre.leggauss(20)[1] / 2
_HALF_LOG_2PI = log(2 * pi) / 2
# From here on 1 - x M(x) loses more than two digits (all of them from 1e8 on), and 16 terms of its asymptotic series give
# it to the last bit.
_SERIES_FROM = 16.0
_BEYOND = 1e150  # a^2 would leave the floats soon after; delta is 0 to more than 10^299 digits


def log_gaussian_delta(epsilon: float, mu: float) -> float:
    """Natural logarithm of `gaussian_delta`, where delta itself underflows.

    Parameters
    ----------
    epsilon : float
        Any finite real number.
    mu : float
        Parameter of Gaussian DP, above 0.

    Returns
    -------
    float
        A number below 0, or 0 where delta is 1 to the last bit.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, ICML, Theorem 8.

    Examples
    --------
    >>> round(log_gaussian_delta(100.0, 1.0), 6)
    -4960.254554
    """
    epsilon, mu = (
        real(epsilon, "epsilon", "log_gaussian_delta(1.0, 1.0)"),
        level(mu, "mu", "log_gaussian_delta(1.0, 1.0)"),
    )
    if epsilon >= 0:
        return _log_delta(epsilon, mu)
    # delta(-e) = 1 - e^-e + e^-e delta(e) = 1 - e^-e (1 - delta(e)): whichever sum of positive terms is far from
    # cancelling.
    mirrored = _log_delta(-epsilon, mu)
    kept = -exp(epsilon) * expm1(mirrored)
    return log1p(-kept) if kept < 0.5 else log(-expm1(epsilon) + exp(epsilon + mirrored))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Smallest delta at which every mu-GDP mechanism is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        Any finite real number.
    mu : float
        Parameter of Gaussian DP, above 0.

    Returns
    -------
    float
        A probability; 0 where it underflows. Not rounded up;
        ``GDP(mu).to_approx(epsilon=...)`` is.

    Notes
    -----
    The relative error is below 1e-12 for delta from 1e-300 to 1 and mu from
    1e-4 to 50.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, ICML, Theorem 8.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 12)
    0.126936737507
    """
    return exp(log_gaussian_delta(epsilon, mu))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Epsilon at which the curve of mu-GDP has a given delta.

    The inverse of `gaussian_delta` for one mu. Negative when delta is above
    delta(0; mu) = 2 Phi(mu/2) - 1, the total variation: then every epsilon >= 0
    holds.

    Parameters
    ----------
    delta : float
        Above 0 and below 1.
    mu : float
        Parameter of Gaussian DP, above 0.

    Returns
    -------
    float
        Epsilon.

    Examples
    --------
    >>> round(gaussian_epsilon(1e-6, 1.0), 10)
    4.8865541175
    """
    delta, mu = (
        share(delta, "delta", "gaussian_epsilon(1e-6, 1.0)", zero=False),
        level(mu, "mu", "gaussian_epsilon(1e-6, 1.0)"),
    )
    target = log(delta)
    if _log_delta(0.0, mu) >= target:
        return bracket(lambda epsilon: target - _log_delta(epsilon, mu), start=mu)[0]
    return -bracket(lambda size: log_gaussian_delta(-size, mu) - target, start=mu)[0]


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Mu at which the Gaussian curve passes through epsilon and delta.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        Above 0 and below 1.

    Returns
    -------
    float
        mu, right to the last digits and not rounded to the safe side;
        ``calibrate_gaussian(ApproxDP(epsilon, delta))`` is.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, ICML.

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-6), 10)
    0.2367043807
    """
    return mu_bracket(epsilon, delta)[0]


@lru_cache(maxsize=1024)
def mu_bracket(epsilon: float, delta: float) -> tuple[float, float]:
    """Two neighboring floats around `gaussian_mu(epsilon, delta)`, to the precision of the curve.

    >>> low, high = mu_bracket(1.0, 1e-6)
    >>> low < high < low * (1 + 1e-15)
    True
    """
    epsilon, delta = (
        real(epsilon, "epsilon", "gaussian_mu(1.0, 1e-6)"),
        share(delta, "delta", "gaussian_mu(1.0, 1e-6)", zero=False),
    )
    if epsilon < 0:
        raise PrivacyError(f"epsilon must be at least 0, got {epsilon!r}", "write for instance gaussian_mu(1.0, 1e-6)")
    target = log(delta)
    return bracket(lambda mu: _log_delta(epsilon, mu) - target, start=1.0)


def bracket(increasing: Callable[[float], float], *, start: float) -> tuple[float, float]:
    """Neighboring floats (low, high) above 0 with increasing(low) < 0 <= increasing(high), by bisection.

    The caller compares logarithms, so that the sign is right over the whole range of a probability. Doubling from
    `start` finds the ends; a root at 0 gives the smallest floats.

    >>> low, high = bracket(lambda x: x * x - 2, start=1.0)
    >>> low < 2**0.5 <= high
    True
    """
    low = high = start
    while increasing(high) < 0:
        low, high = high, high * 2
        if not isfinite(high):
            raise PrivacyError(
                "the privacy level that was asked for is beyond the range of floats", "ask for one nearer to 1"
            )
    while low > 0 and increasing(low) >= 0:
        low, high = low / 2, low
    while nextafter(low, inf) < high:
        middle = low + (high - low) / 2
        low, high = (low, middle) if increasing(middle) >= 0 else (middle, high)
    return low, high


def _log_delta(epsilon: float, mu: float) -> float:
    """log delta for epsilon >= 0, by the form of the module docstring that does not cancel."""
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a <= -1.0:  # 1 - delta < 0.4
        return log1p(-exp(-a * a / 2 - _HALF_LOG_2PI) * (_mills(-a) + _mills(b))) if a > -_BEYOND else 0.0
    if not a < _BEYOND:
        return -inf
    upper, lower = _mills(a), _mills(b)
    if lower <= upper / 2:
        return -a * a / 2 - _HALF_LOG_2PI + log(upper - lower)
    mean_drop = float(_WEIGHTS @ _mills_drop(a + mu * _NODES))
    return -a * a / 2 - _HALF_LOG_2PI + log(mean_drop) + log(mu)


def _mills(x: float) -> float:
    """Mills' ratio (1 - Phi(x))/phi(x), for x >= -1."""
    return sqrt(pi / 2) * float(erfcx(x / sqrt(2)))


def _mills_drop(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """-M'(x) = 1 - x M(x): directly, or by 1/x^2 - 3/x^4 + 15/x^6 - ... where that difference would lose digits."""
    direct = x < _SERIES_FROM
    if direct.all():
        return np.asarray(1 - x * np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2)))
    square = np.maximum(x, _SERIES_FROM) ** -2.0
    series = np.ones_like(square)
    for odd in range(31, 1, -2):
        series = 1 - odd * square * series
    return np.where(direct, 1 - x * np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2)), square * series)


_docs.tell("PrivacyError", log_gaussian_delta, gaussian_delta, gaussian_epsilon, gaussian_mu)
