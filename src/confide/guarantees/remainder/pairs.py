"""A pair that dominates a release, as finitely many losses: what the certificate takes.

Randomised response has two losses. Any other curve is put on a grid by connecting the dots of its hockey-stick divergence, which is
convex in the order a = e^t: the chords between values that are rounded up are above it, and with them all that is composed with it.
What lies beyond the last grid point may be infinite for all that is known, and is paid as `leak`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, fsum, inf, isfinite

import numpy as np

from confide._arrays import Array
from confide.errors import NoConversion
from confide.guarantees.curves import Curve, Objective, RandomisedResponse, Relaxed, ZeroInflated
from confide.guarantees.losses.loss_grid import HIGHEST, convex_slopes
from confide.guarantees.mechanisms.gaussian import gaussian_delta
from confide.guarantees.rounding import SLACK

__all__ = ["DELTA_UNIT", "Pair", "pair_of"]

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
    """orders: for each order that is not the mirror image of another, losses and P-masses; bare: P-mass at infinity at most, in either
    order, which any leak must cover; leak: what is charged for it at least, a multiple of 2^-60.
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
    """The larger data set against the smaller one: above the order 1 it is the curve, below it the smaller set's, which is m-Gaussian.

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

    own, other: log orders (0, t_1, ...) and bounds there, of H_a(P||Q) and of H_a(Q||P) = 1 - a + a H_(1/a)(P||Q). That mirror image takes
    chords to chords: where the slope of the one rises by d at the order a, its P-mass is a d, and the other's at 1/a is d. So each side is
    formed from its own profile; from the function itself, which is 1 - a + a H at small orders a, no double would give the slopes there.
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
        f"the tail of {curve!r} is too heavy for a Gaussian state at a delta of {float(paid):.3g}; pay more of it, for instance "
        f"leak=Fraction({needed:.2g})"
    )


def _rest(curve: Curve, leak: Fraction | None, taken: float) -> Fraction | None:
    if leak is None:
        return None
    if leak < Fraction(taken):
        raise NoConversion(
            f"{curve!r} leaks with probability {taken!r}, got a delta of {float(leak):.3g} to pay for it; charge it at a larger one"
        )
    return leak - Fraction(taken)


def _with(base: Pair, taken: float) -> Pair:
    return Pair(base.orders, base.bare, base.leak + _units(Fraction(taken)))


def _checked(curve: Curve, pair: Pair) -> Pair:
    totals = [fsum([*masses.tolist(), float(pair.bare)]) for _, masses in pair.orders]
    # not a number is no total either
    if not all(total >= 1 - _SHORT for total in totals):
        raise NoConversion(
            f"the losses of {curve!r} cannot be resolved in doubles: their masses sum to {min(totals)!r}; charge a statement that follows "
            "from it, statement.to_gdp(delta=...)"
        )
    if pair.bare <= pair.leak:
        return pair
    raise NoConversion(
        f"the tail of {curve!r} needs a delta of {float(pair.bare):.3g}, got {float(pair.leak):.3g}; charge it at a larger one"
    )


def _units(delta: Fraction) -> Fraction:
    """Rounded up to units of 2^-60."""
    return ceil(delta / DELTA_UNIT) * DELTA_UNIT
