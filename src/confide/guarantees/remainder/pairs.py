"""A pair that dominates a release, as finitely many losses: what the certificate takes.

Randomised response has two losses. Any other curve is put on a grid by connecting the dots of its hockey-stick divergence, which is
convex in the order a = e^t: the chords between values that are rounded up are above it, and with them all that is composed with it.
What lies beyond the last grid point may be infinite for all that is known, and is paid as `leak`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf, isfinite

import numpy as np
from numpy.typing import NDArray

from confide.errors import NoConversion
from confide.guarantees.curves import Curve, Objective, RandomisedResponse, Relaxed, ZeroInflated
from confide.guarantees.gaussian import gaussian_delta
from confide.guarantees.loss_grid import HIGHEST, convex_slopes
from confide.guarantees.rounding import SLACK

__all__ = ["DELTA_UNIT", "Pair", "pair_of"]

Array = NDArray[np.float64]

#: One unit in which a ledger counts delta.
DELTA_UNIT = Fraction(1, 2**60)
# Steps between a loss of 0 and the last one: doubling them moves a price by less than 1e-3 of itself.
_STEPS = 128
_FAR = 12.0


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
    step = _top(curve, end, paid) / _STEPS
    above = step * np.arange(_STEPS + 1)
    values = np.asarray(curve.delta(above), dtype=np.float64)
    if isfinite(end):
        # a bounded loss leaves nothing beyond its end, and digits are no tail
        values[-1] = 0.0
    below = (-above)[::-1]
    mirrored = -np.expm1(below) + np.exp(below) * values[::-1]
    order = _connected(step, _STEPS, np.append(mirrored[:-1], values), float(values[-1]))
    return _checked(curve, Pair((order,), Fraction(float(values[-1])), _units(paid)))


def _directed(curve: Objective, leak: Fraction | None) -> Pair:
    """The larger data set against the smaller one: above the order 1 it is the curve, below it the smaller set's, which is m-Gaussian.

    A bound on both sides of the order 1 is worth far more than the same curve on both: the total variation is that of the Gaussian.
    """
    paid = _least(curve) if leak is None else leak
    step = _top(curve, inf, paid) / _STEPS
    above = step * np.arange(_STEPS + 1)
    values = np.asarray(curve.delta(above), dtype=np.float64)
    count = min(_STEPS, ceil(_FAR * curve.mu / step))
    gauss = np.array([gaussian_delta(e, curve.mu) for e in above[: count + 1]]) * (1 + SLACK)
    below = (-above[: count + 1])[::-1]
    mirrored = -np.expm1(below) + np.exp(below) * gauss[::-1]
    values[0] = min(values[0], gauss[0])
    t, masses = _connected(step, count, np.append(mirrored[:-1], values), float(gauss[-1]))
    bare = max(Fraction(float(values[-1])), Fraction(float(gauss[-1])))
    return _checked(curve, Pair(((t, masses), (-t[::-1], (np.exp(-t) * masses)[::-1])), bare, _units(paid)))


def _connected(step: float, below: int, values: Array, rest: float) -> tuple[Array, Array]:
    """Losses and P-masses of the largest convex function of the order that is nowhere above the given bounds of a divergence.

    values: at the log orders step * (-below, ..., 0, 1, ...); rest: by how much the first of them is above 1 - order.
    """
    t = step * np.arange(-below, len(values) - below, dtype=np.float64)
    slopes = convex_slopes(np.diff(values), np.exp(t[:-1]) * expm1(step))
    # before the first order the chord from (0, 1); beyond the last one nothing falls any more
    slopes = np.maximum.accumulate(np.concatenate([[rest * exp(-t[0]) - 1], slopes, [0.0]]))
    return t, np.exp(t) * np.diff(slopes)


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
    if pair.bare <= pair.leak:
        return pair
    raise NoConversion(
        f"the tail of {curve!r} needs a delta of {float(pair.bare):.3g}, got {float(pair.leak):.3g}; charge it at a larger one"
    )


def _units(delta: Fraction) -> Fraction:
    """Rounded up to units of 2^-60."""
    return ceil(delta / DELTA_UNIT) * DELTA_UNIT
