"""The exact privacy of one sample from a Gaussian posterior: two normal laws on a line.

A posterior sample of a linear regression is theta ~ N(H^-1 c, (gamma H)^-1), H = X'X + lam I, c = X'y. Adding the record (x, y) to
records whose matrix is H changes the law to N(theta + H^-1 x r/(1 + lev), (gamma (H + x x'))^-1), with lev = x'H^-1 x and
r = y - x'theta. After the map (gamma H)^(1/2), which is one to one, all but the direction of H^(-1/2) x has one law under both, so that
the pair is

    P = N(0, 1)   and   Q = N(m, 1/(1 + lev)),   m = sqrt(gamma) r sqrt(lev)/(1 + lev),

exactly. Where lev <= l and |r| <= r_max the pair is dominated by the one with variance 1/(1 + l) and shift m = sqrt(gamma) r_max
sqrt(l/(1 + l)): with a^2 = (lev/(1 + lev))/(l/(1 + l)) the map x -> a x + N(0, 1 - a^2) leaves N(0, 1) as it is, takes the variance
1/(1 + l) to 1/(1 + lev) and the shift to a m = sqrt(gamma) r_max sqrt(lev/(1 + lev)) >= |m of the record|; and at a fixed variance v
the divergence rises with |m|: shift the best set along with Q, whose mass on it stays, while its centre m/(1 - v) moves away from 0, so
that P's mass on it falls.

The hockey stick H_e(P | Q) = P(S) - e^e Q(S), S = {log p/q > e}: log p/q is a quadratic in x, so S is an interval or the outside of one.
It is computed from tails of the normal law in logarithms.

>>> round(pair_delta(0.3, 0.2, 0.9), 10), round(pair_delta(0.05, 0.0, 1.2), 10)
(0.0206414445, 0.0144239225)
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from confide.errors import PrivacyError
from confide.guarantees.mechanisms.gaussian import log_gaussian_delta
from confide.guarantees.validation import SLACK

__all__ = ["largest_precision", "largest_shift", "leverage_above", "pair_delta", "posterior_delta"]

Array = NDArray[np.float64]

# What a computed hockey stick may be wrong by, relative to P(S): two tails, each within a few ulps (tests, 50 digits).
_ACCURACY = 1e-12
# Leverages are rounded up to powers of 2^(1/4) where shifts are only compared.
_PER_OCTAVE = 4
# Relative distance of the points at which the target curve is compared; about what a shift loses by the comparison.
_FINE = 1e-3
# One point of so many is asked first.
_FEW = 16


def pair_delta(epsilon: float, mean: float, variance: float) -> float:
    """H_epsilon(N(0, 1) | N(mean, variance)), one direction, for epsilon >= 0. variance: above 0.

    >>> round(pair_delta(1.0, 1.0, 0.5), 10), round(pair_delta(0.1, 0.0, 0.8), 10)
    (0.2993206416, 0.0321350376)
    """
    if not (epsilon >= 0 and variance > 0):
        raise PrivacyError(
            f"epsilon must be at least 0 and the variance above 0, got {epsilon!r} and {variance!r}; write pair_delta(0.3, 0.2, 0.9)"
        )
    found, _ = _hockey_stick(np.array([float(epsilon)]), abs(float(mean)), 1 / float(variance) - 1)
    return float(found[0])


def posterior_delta(epsilon: Any, shift: float, leverage: float) -> Any:
    """The delta of one posterior sample at each epsilon >= 0, add-remove, for a record of that leverage and shift m.

    The larger of both directions; shift: m of the dominating pair (module docstring). An array gives an array.

    >>> round(posterior_delta(1.0, 0.2, 0.001), 9)
    2.5e-08
    """
    found, _ = _both(np.atleast_1d(np.asarray(epsilon, dtype=np.float64)), shift, leverage)
    return found if np.ndim(epsilon) else float(found[0])


def _both(epsilon: Array, shift: float, leverage: float) -> tuple[Array, Array]:
    """(delta, the mass that its accuracy is relative to), the larger direction."""
    added, mass = _hockey_stick(epsilon, shift, leverage)
    # the other direction, standardised: N(0, 1) against N(m/sqrt(v), 1/v), whose precision less 1 is -lev/(1 + lev)
    removed, other = _hockey_stick(epsilon, shift * sqrt(1 + leverage), -leverage / (1 + leverage))
    return np.maximum(added, removed), np.maximum(mass, other)


def _hockey_stick(epsilon: Array, m: float, lev: float) -> tuple[Array, Array]:
    """H_e(N(0, 1) | N(m, 1/(1 + lev))) for e >= 0 and P(S); lev above -1, either sign.

    log p/q - e = lev x^2/2 - m (1 + lev) x + (m^2 (1 + lev) - log(1 + lev))/2 - e.
    """
    precision = 1 + lev
    if lev == 0:
        if m == 0:
            return np.zeros_like(epsilon), np.zeros_like(epsilon)
        low, high = np.full_like(epsilon, -np.inf), m / 2 - epsilon / m
        log_p, log_q = special.log_ndtr(high), special.log_ndtr(high - m)
        return _difference(epsilon, log_p, log_q)
    # a quarter of the discriminant's fourfold; for e >= 0 and lev > 0 no term is negative
    discriminant = m * m * precision + lev * (log1p(lev) + 2 * epsilon)
    real = discriminant > 0
    root = np.sqrt(np.where(real, discriminant, 1.0))
    constant = (m * m * precision - log1p(lev)) / 2 - epsilon
    # the two roots without cancellation: q/A and C/q with A = lev/2
    q = (m * precision + root) / 2
    one, other = q / (lev / 2), constant / q
    low, high = np.minimum(one, other), np.maximum(one, other)
    scale = sqrt(precision)
    if lev > 0:  # outside the roots; where there are none log p/q would be above e everywhere, which e >= 0 rules out
        log_p = np.logaddexp(special.log_ndtr(low), special.log_ndtr(-high))
        log_q = np.logaddexp(special.log_ndtr((low - m) * scale), special.log_ndtr((m - high) * scale))
    else:
        log_p, log_q = _log_between(low, high), _log_between((low - m) * scale, (high - m) * scale)
    found, mass = _difference(epsilon, log_p, log_q)
    return np.where(real, found, 0.0), np.where(real, mass, 0.0)


def _difference(epsilon: Array, log_p: Array, log_q: Array) -> tuple[Array, Array]:
    mass = np.exp(log_p)
    return np.maximum(-mass * np.expm1(np.minimum(epsilon + log_q - log_p, 0.0)), 0.0), mass


def _log_between(low: Array, high: Array) -> Array:
    """log P(low < Z < high), from the tails on the side where both are small."""
    flip = low + high > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    upper, lower = special.log_ndtr(high), special.log_ndtr(low)
    with np.errstate(divide="ignore"):
        return np.asarray(upper + np.log(-np.expm1(np.minimum(lower - upper, 0.0))))


def leverage_above(leverage: float) -> float:
    """The leverage rounded up to a power of 2^(1/4): at which shifts are kept, and which dominates the leverage itself.

    >>> leverage_above(0.5), 1 < leverage_above(0.7) / 0.7 < 2 ** (1 / 4)
    (0.5, True)
    """
    power = ceil(_PER_OCTAVE * np.log2(leverage) - 1e-9)
    found = float(2.0 ** (power / _PER_OCTAVE))
    return found if found >= leverage else float(2.0 ** ((power + 1) / _PER_OCTAVE))


@lru_cache(maxsize=4096)
def largest_shift(leverage: float, mu: float, slack: float) -> float:
    """m*: the largest shift at which posterior samples are mu-GDP up to `slack`, at that leverage of a record; 0 where there is none.

    delta(e; m, lev) <= delta_GDP(e; mu) + slack for every e >= 0 in both directions; negative e follow, since each direction at -e is
    the other at e. Compared at points e_i with the target at e_(i+1): both curves fall, so that what lies between holds as well; the
    last point is one where delta(e) <= slack. Rounded down by at most 2e-6 of itself. slack: above 0.

    >>> round(largest_shift(0.001, 0.2, 1e-7), 4)
    0.1981
    """
    if not (mu > 0 and 0 < slack < 1 and 0 < leverage < 1e9):
        raise PrivacyError(
            "leverage and mu must be above 0 and the slack between 0 and 1, got "
            f"{leverage!r}, {mu!r}, {slack!r}; write largest_shift(0.001, 0.2, 1e-7)"
        )
    points, target = _target(mu, slack)
    most = np.append(target, slack)

    def within(at: slice, m: float) -> bool:
        found, mass = _both(points[at], m, leverage)
        return bool((found + _ACCURACY * mass <= most[at]).all())

    def holds(m: float) -> bool:
        # a shift that is too large is so at many points, and a few of them tell it
        return within(slice(None, None, _FEW), m) and within(slice(None), m)

    high = mu + 10 * slack
    while holds(high) and high < 64 * (mu + 10 * slack):
        high *= 2
    low = 0.0
    if not holds(low):
        return 0.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
        if high < 1e-9 * mu:
            return 0.0
    return low


@lru_cache(maxsize=256)
def _target(mu: float, slack: float) -> tuple[Array, Array]:
    """Points e_0 = 0 < ... < e_k, and delta_GDP(e_(i+1); mu) + slack for i < k."""
    points = [0.0]
    # beyond this both the Gaussian curve and any pair that could pass below it are under the slack
    last = mu * (mu / 2 + 1.5 * -float(special.ndtri(min(slack, 0.4) / 4)) + 1) + 1e-3 * mu
    while points[-1] < last:
        points.append(points[-1] + _FINE * max(points[-1], 1.5 * mu))
    target = [exp(log_gaussian_delta(e, mu)) for e in points[1:]]
    return np.array(points), np.array(target) * (1 - SLACK) + slack


def largest_precision(epsilon: float, delta: float, leverage: float, residual: float) -> float:
    """gamma: the largest precision at which one posterior sample is (epsilon, delta)-DP, add-remove; 0 where there is none.

    For records of at most that leverage (B^2 over the smallest eigenvalue of H) and residual (in units of y). Rounded down.

    >>> round(largest_precision(1.0, 1e-6, 1 / 1000, 2.0), 2)
    13.77
    """
    if not (epsilon >= 0 and 0 < delta < 1 and leverage > 0 and residual > 0):
        raise PrivacyError(
            "epsilon must be at least 0, delta between 0 and 1, leverage and residual above 0, got "
            f"{epsilon!r}, {delta!r}, {leverage!r}, {residual!r}; write largest_precision(1.0, 1e-6, 0.001, 2.0)"
        )
    unit = log(leverage) - log1p(leverage) + 2 * log(residual)  # m^2 = gamma e^unit
    point = np.array([float(epsilon)])

    def holds(log_gamma: float) -> bool:
        found, mass = _both(point, exp((log_gamma + unit) / 2), leverage)
        return bool(found[0] + _ACCURACY * mass[0] <= delta)

    low, high = -60.0 - unit, 20.0 - unit
    if not holds(low):
        return 0.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return exp(low) * (1 - 1e-12)
