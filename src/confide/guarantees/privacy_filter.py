"""What a release leaves of a Gaussian state: the remainder, its search and its certificate.

A state G(r), L promises that whatever is still asked has H_a <= min(1, g_r(a) + L) at every order a, in both orders. A release that is
dominated by the pair D may move it to G(r'), L - leak where

    H_a(D x G_r') <= H_a(G_r) + leak        at EVERY a >= 0

Proof that no one gets more out of the state, by induction over the releases that may still come. Split the joint law
by the first outcome x with densities p, q. What follows is within G(r'), so H_a <= integral of p g_r'(a q/p) + L -
leak = H_a(P_1 x G_r') + L - leak. Splitting that in the other order, it is at most H_a(D x G_r') + L - leak <= g_r(a)
+ L. Both D and r' are fixed before the draw. Chosen by the outcome, they may be worth a third more than the promise
(tests/ledger/test_ledger_trees.py). From a = 1 on in both orders is enough, as H_a(P||Q) = 1 - a + a H_(1/a)(Q||P).

A pure release costs about epsilon^2, a third less than by its GDP statement; a Gaussian release costs the square of
mu exactly.

A pair that dominates a release, as finitely many losses: what the certificate takes.

Randomized response has two losses. Any other curve is put on a grid by connecting the dots of its hockey-stick
divergence, which is convex in the order a = e^t. The chords between values that are rounded up are above it, and with
them all that is composed with it. What lies beyond the last grid point may be infinite for all that is known, and is
paid as `leak`.

The (epsilon, delta) pair as a state: staying in it by basic composition, and leaving it once for a Gaussian state.

A state K(epsilon, delta) promises that whatever is still asked is (epsilon, delta)-private, that is, below the pair
of Kairouz, Oh and Viswanath 2015 at every order. A release with (e, d) leads to K(epsilon - e, delta - d), for
adaptive choices too (Rogers, Roth, Ullman, Vadhan 2016). Once, before some release, it may become G(r) with a leak L
= delta/50, delta(epsilon; r) + L <= delta. Whatever has H_a <= g_r(a) + L at every a has it at a = e^epsilon, and is
(epsilon, delta)-private.

What a release leaves of a state: it is charged by what remains, not by a separate number.

>>> from fractions import Fraction
>>> from confide.guarantees import PureDP
>>> state = converted(Fraction(8), Fraction(1, 10**5))
>>> after = remaining(PureDP(0.1), state.r2)
>>> round(float(state.r2 - after.r2), 6), holds(PureDP(0.1), state.r2, after)
(0.010002, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, fsum, inf, isfinite, nextafter, sqrt

import numpy as np

from confide._arrays import Array
from confide.errors import NoConversion, PrivacyError
from confide.guarantees.conversion import from_guarantee, not_a_guarantee
from confide.guarantees.curves import (
    Composed,
    Curve,
    Gaussian,
    Objective,
    Perfect,
    RandomisedResponse,
    Relaxed,
    ZeroInflated,
)
from confide.guarantees.curves.composed import composed
from confide.guarantees.filter_certificate import Inequality
from confide.guarantees.mechanisms.gaussian import gaussian_delta, mu_bracket
from confide.guarantees.privacy_loss import HIGHEST, convex_slopes
from confide.guarantees.validation import SLACK, float_up
from confide.guarantees.values import RDP, ZCDP, ApproxDP, Guarantee, PureDP

_Profile = tuple[Array, Array]

#: One unit in which a ledger counts delta.
DELTA_UNIT = Fraction(1, 2**60)
# Steps between a loss of 0 and the last one: doubling them moves a price by less than 1e-3 of itself.
_STEPS = 128
_FAR = 12.0
# What the masses of an order may be short of 1: the certificate leaves as much of 1 - g.
_SHORT = 2.0**-50


@dataclass(frozen=True, eq=False)
class Pair:
    """`orders`: for each order that is not the mirror image of another, losses and P-masses. `bare`: P-mass at infinity
    at most, in either order, which any leak must cover. `leak`: what is charged for it at least, a multiple of 2^-60.
    """

    orders: tuple[tuple[Array, Array], ...]
    bare: Fraction
    leak: Fraction


@lru_cache(maxsize=256)
def pair_of(curve: Curve, leak: Fraction | None) -> Pair:
    """The dominating pair of a curve. leak: what may be paid for its tail; None: the least that its kind needs.

    Raises `NoConversion` where that is not enough.

    >>> from confide.guarantees import laplace
    >>> pair = pair_of(laplace(0.5), None)
    >>> len(pair.orders), float(pair.leak)
    (1, 0.0)
    """
    match curve:
        case RandomisedResponse(epsilon):
            share = 1 / (1 + exp(-epsilon))
            masses = np.array([exp(-epsilon) * share, share])
            return Pair(((np.array([-epsilon, epsilon]), masses),), Fraction(0), _units(leak or Fraction(0)))
        case ZeroInflated(zeta, base):
            return _with(pair_of(base, _rest(curve, leak, zeta)), zeta)
        case Relaxed(base, slack):
            return _with(pair_of(base, _rest(curve, leak, slack)), slack)
        case Objective(_, _, _, False):
            return _directed(curve, leak)
    return _symmetric(curve, leak)


def _symmetric(curve: Curve, leak: Fraction | None) -> Pair:
    """Both orders are alike: below the order 1 the divergence is the mirror image of the profile."""
    end = float(curve.epsilon(0.0))
    paid = (Fraction(0) if isfinite(end) else _least(curve)) if leak is None else leak
    t: Array = _top(curve, end, paid) / _STEPS * np.arange(_STEPS + 1, dtype=np.float64)
    values = np.asarray(curve.delta(t), dtype=np.float64)
    if isfinite(end):
        # a bounded loss leaves nothing beyond its end, and digits are no tail
        values[-1] = 0.0
    return _checked(curve, Pair(_joined((t, values), (t, values))[:1], Fraction(float(values[-1])), _units(paid)))


def _directed(curve: Objective, leak: Fraction | None) -> Pair:
    """The larger dataset against the smaller one: above the order 1 it is the curve, below it the smaller set's, which is m-Gaussian.

    A bound on both sides of the order 1 is worth far more than the same curve on both: the total variation is that of the Gaussian.
    """
    paid = _least(curve) if leak is None else leak
    step = _top(curve, inf, paid) / _STEPS
    t: Array = step * np.arange(_STEPS + 1, dtype=np.float64)
    values = np.asarray(curve.delta(t), dtype=np.float64)
    near = t[: min(_STEPS, ceil(_FAR * curve.mu / step)) + 1]
    gauss = np.array([gaussian_delta(e, curve.mu) for e in near]) * (1 + SLACK)
    bare = max(Fraction(float(values[-1])), Fraction(float(gauss[-1])))
    return _checked(curve, Pair(_joined((t, values), (near, gauss)), bare, _units(paid)))


def _joined(own: _Profile, other: _Profile) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Losses and P-masses, in either order, of the largest convex function of the order a that is nowhere above bounds of a divergence.

    `own`, `other`: log orders (0, t_1, ...) and bounds there, of H_a(P||Q) and of H_a(Q||P) = 1 - a + a
    H_(1/a)(P||Q). That mirror image takes chords to chords. Where the slope of the one rises by d at the order a, its
    P-mass is a d, and the other's at 1/a is d. So each side is formed from its own profile; from the function itself,
    which is 1 - a + a H at small orders a, no double would give the slopes there.
    """
    # at the order 1 also below every chord from one side to the other
    x, y = -np.expm1(-other[0][1:]), other[1][1:] * np.exp(-other[0][1:])
    a, chords = np.expm1(own[0][1:])[:, None], own[1][1:][:, None]
    middle = min(float(own[1][0]), float(other[1][0]), float((((x + y) * a + chords * x) / (a + x)).min()))
    sides = [_side(t, np.concatenate([[middle], values[1:]])) for t, values in (own, other)]
    at_0 = max(0.0, 1 - middle + sides[0][0] + sides[1][0])
    # what the sum has lost by rounding stays where both orders have it
    sums = [at_0 + fsum(np.exp(t[1:]) * rises) for (t, _), (_, rises) in zip((own, other), sides, strict=True)]
    lost = [
        1 - float(values[-1]) - total - fsum(mirror[1])
        for (_, values), total, mirror in zip((own, other), sums, reversed(sides), strict=True)
    ]
    at_0 += min(max(0.0, *lost), _SHORT)
    orders = [
        (
            np.concatenate([-far[0][:0:-1], near[0]]),
            np.concatenate([sides[1 - i][1][::-1], [at_0], np.exp(near[0][1:]) * sides[i][1]]),
        )
        for i, (near, far) in enumerate(((own, other), (other, own)))
    ]
    return orders[0], orders[1]


def _side(t: Array, values: Array) -> tuple[float, Array]:
    """The slope of the convex function from the order 1 on, and by how much it rises at each later order; beyond the last it is 0."""
    slopes = convex_slopes(np.diff(values), np.exp(t[:-1]) * np.expm1(np.diff(t)))
    slopes = np.maximum.accumulate(np.append(slopes, 0.0))
    return float(slopes[0]), np.diff(slopes)


def _least(curve: Curve) -> Fraction:
    return curve.least_leak if isinstance(curve, Objective) else DELTA_UNIT


def _top(curve: Curve, end: float, paid: Fraction) -> float:
    """The last loss of the grid: the end of a bounded one, else where half of what is paid is left."""
    top = end if isfinite(end) else float(curve.epsilon(float(paid) / 2))
    if top < HIGHEST:
        return max(top, 1e-12)
    needed = 4 * max(float(curve.delta(HIGHEST)), curve.mass_at_infinity)
    raise NoConversion(
        f"the tail of {curve!r} is too heavy for a Gaussian state at a delta of {float(paid):.3g}",
        f"pay more of it, for instance leak=Fraction({needed:.2g})",
    )


def _rest(curve: Curve, leak: Fraction | None, taken: float) -> Fraction | None:
    if leak is None:
        return None
    if leak < Fraction(taken):
        raise NoConversion(
            f"{curve!r} leaks with probability {taken!r}, got a delta of {float(leak):.3g} to pay for it",
            "charge it at a larger one",
        )
    return leak - Fraction(taken)


def _with(base: Pair, taken: float) -> Pair:
    return Pair(base.orders, base.bare, base.leak + _units(Fraction(taken)))


def _checked(curve: Curve, pair: Pair) -> Pair:
    totals = [fsum([*masses.tolist(), float(pair.bare)]) for _, masses in pair.orders]
    # not a number is no total either
    if not all(total >= 1 - _SHORT for total in totals):
        raise NoConversion(
            f"the losses of {curve!r} cannot be resolved in doubles: their masses fall short of 1 by {1 - min(totals):.0e}",
            "charge a statement that follows from it, statement.to_gdp(delta=...)",
        )
    if pair.bare <= pair.leak:
        return pair
    raise NoConversion(
        f"the tail of {curve!r} needs a delta of {float(pair.bare):.3g}, got {float(pair.leak):.3g}",
        "charge it at a larger one",
    )


def _units(delta: Fraction) -> Fraction:
    """Rounded up to units of 2^-60."""
    return ceil(delta / DELTA_UNIT) * DELTA_UNIT


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

    `r2`: above 0. `leak`: the delta that may be paid for the tail of a curve. By default the least its kind needs: 0
    for bounded losses, 2^-60 for unbounded ones, 2^-40 for objective perturbation, whose curve is a numerical bound.
    A statement's own delta comes on top. Raises `NoConversion` for a statement without a price here, `NothingRemains`
    (one of them) where it does not fit.

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
            f"no proof leads from {statement} to a remainder of a Gaussian state by its own numbers",
            "charge the curve that follows from it, statement.to_tradeoff(), or use a ledger in ZCDP",
        )
    try:
        curve = from_guarantee(statement)
    except PrivacyError:
        raise not_a_guarantee(statement, "remaining(GDP(0.5), Fraction(1))") from None
    exact, asked = Fraction(r2), None if leak is None else Fraction(leak)
    if exact <= 0 or (asked is not None and not 0 <= asked < 1):
        raise PrivacyError(
            f"what remains is r^2 above 0 and a leak from 0 to below 1, got {float(exact)!r} and {leak!r}",
            "write for instance remaining(PureDP(0.1), Fraction(1))",
        )
    return curve, exact, asked


@lru_cache(maxsize=4096)
def _remaining(curve: Curve, r2: Fraction, leak: Fraction | None) -> Remainder | None:
    bare = _own_gaussian(curve)
    if bare is not None:
        rest, mu2, slack = bare
        if rest is None:
            left = _down(r2 - mu2)
            return Remainder(left, _delta_units(slack + (leak or 0))) if left >= 0 else None
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
    """A Gaussian part, which costs the square of mu in any company: what is left without it, that square, and a slack;
    None without one.
    """
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
    """The square of mu of the GDP statement that follows from the curve at this leak: a proved cost in any state; None
    where there is none.
    """
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

    A bracket of the cost at which no node of a grid fails, around the mean square of the losses. Then the cost is
    raised by little until the certificate holds on all that is between the nodes and beyond them.
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


def _delta_units(delta: Fraction) -> Fraction:
    return -floor(-delta / DELTA_UNIT) * DELTA_UNIT


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
            f"a pair has epsilon from 0 and delta from 0 to below 1, got {float(epsilon)!r} and {float(delta)!r}",
            "write for instance converted(Fraction(1), Fraction(1, 10**6))",
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

    PureDP and ApproxDP are their own point (to 2^-40 of epsilon, which delta makes up for). Any other statement has
    one for each epsilon, by its own curve: where `request` is on or above that curve, the request. Else the one that
    takes equal shares of epsilon and delta, so that the larger share is least. It may be more than is left. Raises
    `NothingRemains` where the curve has no such point.

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
