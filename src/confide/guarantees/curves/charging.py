"""The smallest Gaussian curve below a trade-off function: what a ledger in (mu^2, delta) is charged.

T >= G_mu - leak exactly when delta_T(e) - leak <= delta(e; mu) for every e >= 0 (and then for every real e, as both are symmetric). In
x = exp(e) both sides are convex: between two points the left side is below its chord, the right side above any of its
tangents, and d delta(e; mu)/dx = -Phi(-e/mu - mu/2). A chord below a tangent at both ends proves the whole interval; an interval that
this does not prove is halved. So the proof covers every e although it looks at few, and the chord of values that were
rounded up is still above the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import exp, expm1, inf, log, nextafter

from confide._special import log_ndtr
from confide.errors import NoConversion
from confide.guarantees.mechanisms.gaussian import gaussian_mu, log_gaussian_delta
from confide.guarantees.rounding import SLACK

__all__ = ["least_mu"]

# Charging a little more is safe; closer to the truth costs in proportion to the square root.
_TOLERANCE = 1e-4
_MOST = 1 << 13  # hundreds are enough, but where 1 - excess is of the order of its digits
_FARTHEST = 690.0  # exp(e) is a float; beyond it intervals are compared end against end


def least_mu(excess: Callable[[float], float], top: float) -> float:
    """A mu with excess(e) <= delta(e; mu) for every e from 0 to `top`, at most 1e-4 of itself above the smallest one.

    excess: delta_T - leak, falling and convex in exp(e), rounded up; at most 0 at `top`, or of no consequence beyond it.
    0 where excess(0) is at most 0. After 2^13 intervals, where doubles do not tell the two sides apart, by ends alone: a larger mu.
    Raises `NoConversion` where excess(0) is 1.

    >>> round(least_mu(lambda e: exp(log_gaussian_delta(e, 1.5)), 20.0), 3)
    1.5
    """
    known: dict[float, float] = {}

    def at(e: float) -> float:
        if e not in known:
            known[e] = excess(e)
        return known[e]

    if at(0.0) <= 0:
        return 0.0
    if at(0.0) >= 1:
        raise NoConversion(
            "there is no conversion to GDP: neighbours are told apart with a probability that is 1 to eleven digits; "
            "ask for a smaller epsilon"
        )
    least = 0.0
    # intervals that are still to be proved; the first points are spread over all scales below top
    points = sorted({0.0, top, *(top * 2.0**-j for j in range(1, 13))})
    for e in points:
        least = _raised(least, e, at(e))
    intervals, looked = list(pairwise(points)), 0
    while intervals:
        a, b = intervals.pop()
        looked += 1
        if at(a) <= 0 or _proved(a, b, at(a), at(b), least * (1 + _TOLERANCE)):
            continue
        middle = (a + b) / 2
        if looked > _MOST or not a < middle < b:
            # the value on the left against the curve on the right: never too little
            least = max(least, gaussian_mu(b, at(a)))
            continue
        least = _raised(least, middle, at(middle))
        intervals += [(a, middle), (middle, b)]
    return nextafter(least * (1 + _TOLERANCE) * (1 + SLACK), inf)


def _raised(least: float, e: float, excess: float) -> float:
    """The mu so far, or the one that one more point needs."""
    if excess <= 0 or (least > 0 and log_gaussian_delta(e, least) >= log(excess)):
        return least
    return gaussian_mu(e, excess)


def _proved(a: float, b: float, left: float, right: float, mu: float) -> bool:
    """Whether the chord from (a, left) to (b, right) is below the Gaussian curve of mu."""
    kept = 1 - SLACK
    if left <= kept * exp(
        log_gaussian_delta(b, mu)
    ):  # the value on the left is the largest, the curve's on the right the least
        return True
    if b > _FARTHEST:
        return False
    middle = (a + b) / 2
    height, slope = kept * exp(log_gaussian_delta(middle, mu)), exp(middle + float(log_ndtr(-middle / mu - mu / 2)))
    return left <= height - slope * expm1(a - middle) * kept and right <= height - slope * expm1(b - middle) / kept
