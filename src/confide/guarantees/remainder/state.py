"""What a release leaves of a Gaussian state: the remainder, its search and its certificate.

A state G(r), L promises that whatever is still asked has H_a <= min(1, g_r(a) + L) at every order a, in both orders. A release that is
dominated by the pair D may move it to G(r'), L - leak where

    H_a(D x G_r') <= H_a(G_r) + leak        at EVERY a >= 0

Proof that nobody gets more out of the state, by induction over the releases that may still come: split the joint law by the first
outcome x with densities p, q. What follows is within G(r'), so H_a <= integral of p g_r'(a q/p) + L - leak = H_a(P_1 x G_r') + L - leak,
and splitting that in the other order it is at most H_a(D x G_r') + L - leak <= g_r(a) + L. D and r' are fixed before the draw: chosen
by the outcome, they may be worth a third more than the promise (tests/ledger/test_ledger_trees.py). From a = 1 on in both orders is
enough, as H_a(P||Q) = 1 - a + a H_(1/a)(Q||P).

A pure release costs about epsilon^2, a third less than by its GDP statement; GDP(mu) costs mu^2 exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor, sqrt

import numpy as np

from confide.errors import NoConversion, PrivacyError
from confide.guarantees.conversion import from_guarantee, not_a_guarantee
from confide.guarantees.curves import Composed, Curve, Gaussian, Objective, Perfect, Relaxed
from confide.guarantees.curves.composed import composed
from confide.guarantees.losses.loss_grid import HIGHEST
from confide.guarantees.remainder.certificate import Inequality
from confide.guarantees.remainder.pairs import DELTA_UNIT, Pair, pair_of
from confide.guarantees.values import RDP, ZCDP, Guarantee

__all__ = ["NothingRemains", "Remainder", "holds", "remaining"]

#: r^2 is counted in units of 2^-40.
AMOUNT_UNIT = Fraction(1, 2**40)
# Room that the search leaves and that the check asks for, of min(g, 1 - g): no price passes on one machine and fails on another.
_SEARCH_MARGIN, _CHECK_MARGIN = 2.0**-30, 2.0**-31
# The search stops this near to the least price, relative; then the price is raised until it is proved.
_TOLERANCE = 2e-5
_RAISES = 14
# r' below this share of r is not searched: hardly anything would remain.
_LEAST_SHARE = 1e-3
# A price below this share of r^2 is of the order of the margin, and the GDP statement may be cheaper.
_RESOLVED = Fraction(1, 2**20)
# So it may be where the price is this many times the mean square of the losses: near the end of a state, or for an r above 16.
_DEAR = Fraction(3, 2)


class NothingRemains(NoConversion):
    """The release has a price in this state's currency, but no r' of at least 0 pays it: it does not fit."""


@dataclass(frozen=True)
class Remainder:
    """What is left of r^2, a multiple of 2^-40 rounded down, and the delta that the price takes besides, a multiple of 2^-60.

    >>> Remainder(Fraction(1), Fraction(0)).r2
    Fraction(1, 1)
    """

    r2: Fraction
    leak: Fraction


def remaining(statement: Guarantee, r2: Fraction, leak: Fraction | None = None) -> Remainder:
    """What a state of r^2 moves to by a release with this statement: the largest r'^2 that is proved, within 1e-3 of the price.

    r2: above 0. leak: the delta that may be paid for the tail of a curve; by default the least its kind needs: 0 for bounded losses,
    2^-60 for unbounded ones, 2^-40 for objective perturbation, whose curve is a numerical bound. A statement's own delta comes on top.
    Raises `NoConversion` for a statement without a price here, `NothingRemains` (one of them) where it does not fit.

    >>> from confide.guarantees import GDP, PureDP
    >>> float(1 - remaining(GDP(0.5), Fraction(1)).r2), round(float(1 - remaining(PureDP(0.1), Fraction(1)).r2), 5)
    (0.25, 0.01001)
    """
    curve, exact, asked = _read(statement, r2, leak)
    found = _remaining(curve, exact, asked)
    if found is None:
        raise NothingRemains(
            f"{statement} does not fit what remains, mu = {sqrt(exact):.6g}: no Gaussian state is left behind it; ask for a smaller "
            "epsilon or mu"
        )
    return found


def holds(statement: Guarantee, r2: Fraction, after: Remainder) -> bool:
    """Whether a release with this statement may move a state of r^2 to `after`: the inequality is proved again, not searched for.

    Raises `NoConversion` and `PrivacyError` as `remaining` does, but for what does not fit: that is False.

    >>> from confide.guarantees import GDP
    >>> after = remaining(GDP(0.5), Fraction(1))
    >>> holds(GDP(0.5), Fraction(1), after), holds(GDP(0.5), Fraction(1), Remainder(Fraction(4, 5), Fraction(0)))
    (True, False)
    """
    curve, exact, _ = _read(statement, r2, None)
    if after.r2 < 0 or after.leak < 0 or after.r2 > exact:
        return False
    return _holds(curve, exact, after)


def _read(statement: Guarantee, r2: Fraction, leak: Fraction | None) -> tuple[Curve, Fraction, Fraction | None]:
    if isinstance(statement, (ZCDP, RDP)):
        raise NoConversion(
            f"no proof leads from {statement} to a remainder of a Gaussian state by its own numbers; charge the curve that follows from "
            "it, statement.to_tradeoff(), or use a ledger in ZCDP"
        )
    try:
        curve = from_guarantee(statement)
    except PrivacyError:
        raise not_a_guarantee(statement, "remaining(GDP(0.5), Fraction(1))") from None
    exact, asked = Fraction(r2), None if leak is None else Fraction(leak)
    if exact <= 0 or (asked is not None and not 0 <= asked < 1):
        raise PrivacyError(
            f"what remains is r^2 above 0 and a leak from 0 to below 1, got {float(exact)!r} and {leak!r}; write for instance "
            "remaining(PureDP(0.1), Fraction(1))"
        )
    return curve, exact, asked


@lru_cache(maxsize=4096)
def _remaining(curve: Curve, r2: Fraction, leak: Fraction | None) -> Remainder | None:
    bare = _own_gaussian(curve)
    if bare is not None:
        rest, mu2, slack = bare
        if rest is None:
            left = _down(r2 - mu2)
            return Remainder(left, _units(slack + (leak or 0))) if left >= 0 else None
        before = _remaining(rest, r2, leak)
        return None if before is None or before.r2 < mu2 else Remainder(_down(before.r2 - mu2), before.leak)
    pair = pair_of(curve, leak)
    price = _search(pair, r2) if _searched(pair) else None
    if price is None or price < _RESOLVED * r2 or price > _DEAR * _mean_square(pair):
        # what the search cannot resolve has a price too: that of the GDP statement which follows from the curve
        known = _gaussian_price(curve, pair.leak)
        price = known if price is None else min(price, known or price)
    return None if price is None or price > r2 else Remainder(_down(r2 - price), pair.leak)


@lru_cache(maxsize=4096)
def _holds(curve: Curve, r2: Fraction, after: Remainder) -> bool:
    bare = _own_gaussian(curve)
    if bare is not None:
        rest, mu2, slack = bare
        if rest is None:
            return after.r2 <= r2 - mu2 and after.leak >= slack
        # the release without its Gaussian part leaves what the Gaussian part then takes
        return _holds(rest, r2, Remainder(after.r2 + mu2, after.leak))
    try:
        pair = pair_of(curve, after.leak)
    except NoConversion:
        return False
    if _searched(pair) and _proved(pair, r2, after.r2, _CHECK_MARGIN):
        return True
    known = _gaussian_price(curve, pair.leak)
    return known is not None and r2 - after.r2 >= known


def _own_gaussian(curve: Curve) -> tuple[Curve | None, Fraction, Fraction] | None:
    """A Gaussian part, which costs mu^2 whatever stands beside it: what is left without it, mu^2, and a slack; None without one."""
    match curve:
        case Perfect():
            return None, Fraction(0), Fraction(0)
        case Gaussian(mu):
            return None, Fraction(mu) ** 2, Fraction(0)
        case Relaxed(Gaussian(mu), slack):
            return None, Fraction(mu) ** 2, Fraction(slack)
        case Objective(mu, ratio, after, False) if after > 0:
            return Objective(mu, ratio), Fraction(after) ** 2, Fraction(0)
        case Composed(parts) if any(isinstance(part, Gaussian) for part, _ in parts):
            mu2 = sum((k * Fraction(part.mu) ** 2 for part, k in parts if isinstance(part, Gaussian)), Fraction(0))
            return composed((part, k) for part, k in parts if not isinstance(part, Gaussian)), mu2, Fraction(0)
    return None


@lru_cache(maxsize=1024)
def _gaussian_price(curve: Curve, leak: Fraction) -> Fraction | None:
    """mu^2 of the GDP statement that follows from the curve at this leak: a proved price in any state; None where there is none."""
    try:
        return Fraction(curve.gdp(float(leak))) ** 2
    except NoConversion:
        return None


def _proved(pair: Pair, r2: Fraction, left: Fraction, margin: float) -> bool:
    if not 0 < left < r2:
        return False
    spare = float(pair.leak - pair.bare) * (1 - 2.0**-50)
    r, after, price = sqrt(r2), sqrt(left), float(r2 - left)
    return all(Inequality(losses, masses, r, after, price, spare).proved(margin) for losses, masses in pair.orders)


def _searched(pair: Pair) -> bool:
    """Whether doubles hold what the inequality is formed from: larger losses have their GDP price, or none."""
    return all(float(losses.max()) <= HIGHEST for losses, _ in pair.orders)


def _search(pair: Pair, r2: Fraction) -> Fraction | None:
    """The least price that is proved, nearly; None where none is found.

    A bracket of the price at which no node of a grid fails, around the mean square of the losses; then the price is raised by little
    until the certificate holds on all that is between the nodes and beyond them.
    """
    whole, spare, r = float(r2), float(pair.leak - pair.bare) * (1 - 2.0**-50), sqrt(r2)
    most = whole * (1 - _LEAST_SHARE**2)
    nodes = np.concatenate([np.linspace(0.0, r * r / 2 + 8 * r, 64), r * r / 2 + r * np.linspace(9.0, 30.0, 12)])

    def fails(price: float) -> bool:
        return any(
            (Inequality(losses, masses, r, sqrt(whole - price), price, spare).gaps(nodes) < _SEARCH_MARGIN).any()
            for losses, masses in pair.orders
        )

    low, high = 0.0, min(max(float(_mean_square(pair)), whole * 2.0**-60), most)
    while fails(high):
        if high == most:
            return None
        low, high = high, min(1.5 * high, most)
    low = max(low, high / 4) if low == 0 and fails(high / 4) else low
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    for raised in range(_RAISES):
        left = _down(r2 - Fraction(high) * (1 + Fraction(_TOLERANCE) * (2**raised - 1)))
        if left <= 0:
            return None
        if _proved(pair, r2, left, _SEARCH_MARGIN):
            return r2 - left
    return None


def _mean_square(pair: Pair) -> Fraction:
    losses, masses = pair.orders[0]
    return Fraction(float(losses**2 @ masses))


def _down(amount: Fraction) -> Fraction:
    return floor(amount / AMOUNT_UNIT) * AMOUNT_UNIT


def _units(delta: Fraction) -> Fraction:
    return -floor(-delta / DELTA_UNIT) * DELTA_UNIT
