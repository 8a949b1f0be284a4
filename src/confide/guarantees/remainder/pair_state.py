"""The (epsilon, delta) pair as a state: staying in it by basic composition, and leaving it once for a Gaussian state.

A state K(epsilon, delta) promises that whatever is still asked is (epsilon, delta)-private, that is, below the pair of Kairouz, Oh and
Viswanath 2015 at every order. A release with (e, d) leads to K(epsilon - e, delta - d), for adaptive choices too (Rogers, Roth, Ullman,
Vadhan 2016). Once, before some release, it may become G(r) with a leak L = delta/50, delta(epsilon; r) + L <= delta: whatever has
H_a <= g_r(a) + L at every a has it at a = e^epsilon, and is (epsilon, delta)-private.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, floor, isfinite, nextafter

from confide.errors import PrivacyError
from confide.guarantees.conversion import from_guarantee
from confide.guarantees.curves import Curve
from confide.guarantees.mechanisms.gaussian import gaussian_delta, mu_bracket
from confide.guarantees.remainder.pairs import DELTA_UNIT
from confide.guarantees.remainder.state import AMOUNT_UNIT, NothingRemains, Remainder
from confide.guarantees.rounding import SLACK, float_up
from confide.guarantees.values import ApproxDP, Guarantee, PureDP

__all__ = ["Point", "converted", "pair_divergence", "stays"]

# The share of delta that a Gaussian state keeps for the deltas of releases; it costs 3e-3 of mu at delta = 1e-6.
_LEAK_SHARE = Fraction(1, 50)
_MOST_SHARES = 2.0**20


@dataclass(frozen=True)
class Point:
    """What a release takes from the pair: epsilon, a multiple of 2^-40, and delta, one of 2^-60; together never too little."""

    epsilon: Fraction
    delta: Fraction


def pair_divergence(epsilon: float, delta: float, log_order: float) -> float:
    """H_a of the pair K(epsilon, delta) at a = e^log_order: the largest of anything that is (epsilon, delta)-private. Not rounded.

    >>> pair_divergence(1.0, 1e-6, 1.0), round(pair_divergence(1.0, 1e-6, 0.0), 6)
    (1e-06, 0.462118)
    """
    if log_order >= epsilon:
        return delta
    if log_order <= -epsilon:
        return -expm1(log_order) + delta * exp(log_order)
    return delta + (1 - delta) * -expm1(log_order - epsilon) / (1 + exp(-epsilon))


@lru_cache(maxsize=1024)
def converted(epsilon: Fraction, delta: Fraction) -> Remainder:
    """The Gaussian state that a pair becomes: r^2, rounded down to 2^-40, and the leak that is left for deltas, down to 2^-60.

    Raises `NothingRemains` where no epsilon, no delta or no r^2 is left, `PrivacyError` for a delta of 1 or more.

    >>> state = converted(Fraction(8), Fraction(1, 10**5))
    >>> round(float(state.r2) ** 0.5, 4), round(float(state.leak) * 1e7, 3)
    (1.6647, 2.0)
    """
    if epsilon < 0 or not 0 <= delta < 1:
        raise PrivacyError(
            f"a pair has epsilon from 0 and delta from 0 to below 1, got {float(epsilon)!r} and {float(delta)!r}; write for instance "
            "converted(Fraction(1), Fraction(1, 10**6))"
        )
    leak = floor(delta * _LEAK_SHARE / DELTA_UNIT) * DELTA_UNIT
    curve = _float_down(delta - leak)
    if epsilon == 0 or curve <= 0:
        raise NothingRemains(
            f"a pair of epsilon {float(epsilon):.6g} and delta {float(delta):.3g} has no Gaussian state: that needs some of both; "
            "convert earlier, or stay with statements of epsilon alone"
        )
    point = _float_down(epsilon)
    mu = mu_bracket(point, curve)[0] * (1 - SLACK)
    r2 = floor(Fraction(mu) ** 2 / AMOUNT_UNIT) * AMOUNT_UNIT
    # mu^2 was rounded down, its root is a float: both are below a curve that is right to 1e-12
    if r2 <= 0 or gaussian_delta(point, float(r2) ** 0.5) * (1 + SLACK) > curve:
        raise NothingRemains(
            f"epsilon {float(epsilon):.3g} and delta {float(delta):.3g} are below what a Gaussian state counts; start from a larger pair"
        )
    return Remainder(r2, leak)


def stays(statement: Guarantee, epsilon: Fraction, delta: Fraction, request: ApproxDP | PureDP | None = None) -> Point:
    """The (epsilon, delta) point by which a release is charged in a pair of which `epsilon` and `delta` are left.

    PureDP and ApproxDP are their own point (to 2^-40 of epsilon, which delta makes up for). Any other statement has one for each
    epsilon, by its own curve: where `request`, what was asked for, is on or above that curve, the request; else the one that takes
    equal shares of epsilon and delta, so that the larger share is least. It may be more than is left. Raises `NothingRemains` where the
    curve has no such point.

    >>> from confide.guarantees import GDP
    >>> point = stays(GDP(0.2), Fraction(8), Fraction(1, 10**5))
    >>> round(float(point.epsilon), 4), round(float(point.delta) * 1e6, 4)
    (0.8323, 1.0404)
    """
    if isinstance(statement, (PureDP, ApproxDP)):
        return _own(statement, bool(delta))
    curve = from_guarantee(statement)
    if request is not None and float(curve.delta(request.epsilon)) <= _delta_of(request):
        return _own(request, bool(delta))
    return _balanced(curve, Fraction(epsilon), Fraction(delta))


def _own(statement: PureDP | ApproxDP, leaks: bool) -> Point:
    """The point itself. Where some delta is left, epsilon is rounded down and the rest of it paid as delta, by the statement's own curve.

    Ten releases of a tenth, which as a float is a little more, then fit 1: below 2^-40 of epsilon costs below 2^-40 of delta.
    """
    size, own = Fraction(statement.epsilon), _delta_of(statement)
    grid = floor(size / AMOUNT_UNIT) * AMOUNT_UNIT
    if grid == size or grid == 0 or not leaks:
        return _rounded(size, Fraction(own))
    # (1 - own)(1 - e^-(size - grid))/(1 + e^-size), from above
    return _rounded(grid, Fraction(own) + (size - grid))


def _delta_of(statement: PureDP | ApproxDP) -> float:
    return statement.delta if isinstance(statement, ApproxDP) else 0.0


@lru_cache(maxsize=1024)
def _balanced(curve: Curve, epsilon: Fraction, delta: Fraction) -> Point:
    end = float(curve.epsilon(0.0))
    if delta <= 0 and isfinite(end):
        return _rounded(Fraction(end), Fraction(0))
    if epsilon <= 0 or delta <= 0:
        raise NothingRemains(
            f"{curve!r} takes epsilon and delta, and of one of them nothing is left; ask for a statement of epsilon alone, PureDP(...)"
        )
    whole, part = float(epsilon), float(delta)

    def needed(share: float) -> float:
        return float(curve.delta(share * whole))

    low, high = 0.0, 1.0
    while needed(high) > high * part:
        low, high = high, 2 * high
        if high > _MOST_SHARES:
            raise NothingRemains(
                f"{curve!r} has a delta of {curve.mass_at_infinity:.3g} at least, and {part:.3g} is left; ask for a smaller one"
            )
    while high - low > 2.0**-44 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > middle * part else (low, middle)
    spent = high * whole
    if spent >= end:
        return _rounded(Fraction(end), Fraction(0))
    return _rounded(Fraction(spent), Fraction(float(curve.delta(spent))))


def _rounded(epsilon: Fraction, delta: Fraction) -> Point:
    return Point(-floor(-epsilon / AMOUNT_UNIT) * AMOUNT_UNIT, -floor(-delta / DELTA_UNIT) * DELTA_UNIT)


def _float_down(exact: Fraction) -> float:
    above = float_up(exact)
    return above if Fraction(above) == exact else nextafter(above, 0.0)
