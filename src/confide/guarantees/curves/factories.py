"""Curves by name and from files; every number is checked here."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import inf, isinf
from numbers import Integral
from typing import Any

from confide.errors import PrivacyError
from confide.guarantees.curves.composed import Composed, composed
from confide.guarantees.curves.curve import Curve
from confide.guarantees.curves.elementary import (
    Gaussian,
    Laplace,
    Perfect,
    RandomisedResponse,
    Relaxed,
    RenyiBound,
    ZeroInflated,
)
from confide.guarantees.curves.objective import Objective
from confide.guarantees.curves.symmetric_laplace import SymmetricLaplace
from confide.guarantees.rounding import sqrt_up
from confide.guarantees.validation import EXACT, count, level, orders_tuple, renyi_levels, share

__all__ = [
    "approx_dp",
    "curve_from_dict",
    "gaussian",
    "laplace",
    "objective",
    "perfect",
    "symmetric_laplace",
    "zero_inflated",
]

# Shifts whose radial laws are told by floats: noise of 1e-8 to 1e12 times the largest change.
_LEAST_SHIFT, _MOST_SHIFT = 1e-12, 1e8


def gaussian(mu: float) -> Curve:
    """The curve of N(0, 1) against N(mu, 1), mu above 0: that of the Gaussian mechanism at sensitivity / sigma = mu.

    >>> round(gaussian(1.0).delta(1.0), 6)
    0.126937
    """
    return Gaussian(level(mu, "mu", "gaussian(1.0)"))


def laplace(epsilon: float) -> Curve:
    """The curve of the Laplace mechanism at sensitivity / scale = epsilon, above 0.

    >>> round(laplace(1.0).f(0.05), 6)
    0.864086
    """
    return Laplace(level(epsilon, "epsilon", "laplace(1.0)"))


def approx_dp(epsilon: float, delta: float = 0.0) -> Curve:
    """The curve of (epsilon, delta)-privacy, epsilon above 0 and delta from 0: randomised response that leaks with probability delta.

    >>> round(approx_dp(1.0, 0.01).f(0.05), 6)
    0.854086
    """
    pure = RandomisedResponse(level(epsilon, "epsilon", "approx_dp(1.0, 1e-6)"))
    leak = share(delta, "delta", "approx_dp(1.0, 1e-6)", zero=True)
    return ZeroInflated(leak, pure) if leak else pure


def perfect() -> Curve:
    """The curve of an output that is independent of the records, f(alpha) = 1 - alpha; neutral in composition.

    >>> perfect().compose(gaussian(1.0))
    gaussian(1.0)
    """
    return Perfect()


def symmetric_laplace(d: float, c: float) -> Curve:
    """The curve of d-dimensional symmetric Laplace noise under a shift of c noise standard deviations; d may be `math.inf`.

    d: a whole number of at least 1, or infinity; c: from 1e-12 to 1e8. Exact for d up to 100, beyond that the limit, which is safe.

    >>> round(symmetric_laplace(3, 0.5).delta(0.8), 5), round(symmetric_laplace(float("inf"), 0.5).delta(0.8), 6)
    (0.06775, 0.125282)
    """
    shift = level(c, "c", "symmetric_laplace(3, 0.5)", least=_LEAST_SHIFT, most=_MOST_SHIFT)
    whole = isinstance(d, Integral) or (isinstance(d, float) and (d.is_integer() or d == inf))
    if isinstance(d, bool) or not whole or not (1 <= d <= EXACT or d == inf):
        raise PrivacyError(
            f"d is the number of coordinates, a whole number from 1 to 2^53 or infinity, got {d!r}; "
            "write symmetric_laplace(3, 0.5) or symmetric_laplace(math.inf, 0.5)"
        )
    if d == 1:
        return Laplace(sqrt_up(2 * Fraction(shift) ** 2))
    return SymmetricLaplace(inf if isinf(d) else float(d), shift)


def objective(mu: float, ratio: float, *, after: float = 0.0, replaced: bool = False) -> Curve:
    """The curve of objective perturbation of a logistic regression, sharp (`guarantees.objective_perturbation`).

    mu: slope / sd of the tilt; ratio: curvature / ridge; both above 0. after: mu of Gaussian releases that follow it, at least 0.
    replaced: neighbours differ by a replaced record, not by one more.

    >>> 0.8 < 1e6 * objective(1 / 4.25, 1 / 2.0).delta(1.0) < 1.0
    True
    """
    example = "objective(0.25, 0.5)"
    tilt, bent = level(mu, "mu", example), level(ratio, "ratio", example)
    later = 0.0 if after == 0 else level(after, "after", example)
    if not isinstance(replaced, bool):
        raise PrivacyError(f"replaced must be True or False, got {replaced!r}; write {example}")
    return Objective(tilt, bent, later, replaced)


def zero_inflated(zeta: float, base: Curve) -> Curve:
    """The curve of a release that leaves a record without noise with probability zeta, and is `base` otherwise.

    zeta: at least 0 and below 1.

    >>> zero_inflated(0.05, symmetric_laplace(6, 0.5)).mass_at_infinity
    0.05
    """
    bare = share(zeta, "zeta", "zero_inflated(0.05, laplace(1.0))", zero=True)
    if not isinstance(base, Curve):
        raise PrivacyError(
            f"the base of zero_inflated is a curve, got {type(base).__name__}; write zero_inflated(0.05, laplace(1.0))"
        )
    return ZeroInflated(bare, base) if bare else base


def curve_from_dict(data: Mapping[str, Any]) -> Curve:
    """The curve that `to_dict` wrote, to the bit; `PrivacyError` on anything else.

    >>> curve_from_dict(gaussian(0.1).power(10).to_dict()) == gaussian(0.1).power(10)
    True
    """
    try:
        found = _read(data)
        if found.to_dict() == data:
            return found
        raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise PrivacyError("this is no curve that to_dict wrote; write it with curve.to_dict()") from None


def _read(data: Mapping[str, Any]) -> Curve:
    def number(name: str) -> float:
        return float.fromhex(data[name])

    match data["curve"]:
        case "perfect":
            return Perfect()
        case "gaussian":
            return gaussian(number("mu"))
        case "laplace":
            return laplace(number("epsilon"))
        case "randomised_response":
            return approx_dp(number("epsilon"))
        case "zero_inflated":
            zeta = number("zeta")  # 1 after very many compositions
            return ZeroInflated(1.0, _read(data["base"])) if zeta == 1 else zero_inflated(zeta, _read(data["base"]))
        case "relaxed":
            slack = number("slack")
            return Relaxed(
                _read(data["base"]), 1.0 if slack == 1 else share(slack, "slack", "GDP(1.0, 1e-6)", zero=False)
            )
        case "symmetric_laplace":
            return symmetric_laplace(number("d"), number("c"))
        case "objective":
            return objective(number("mu"), number("ratio"), after=number("after"), replaced=data["replaced"])
        case "renyi":
            bounds = tuple(map(float.fromhex, data["bounds"]))
            if data["orders"] is None:
                return RenyiBound(None, (level(bounds[0], "rho", "ZCDP(0.1)"),))
            example = "RDP((2, 8, 32), (0.1, 0.4, 1.6))"
            orders = orders_tuple(tuple(map(float.fromhex, data["orders"])), example)
            return RenyiBound(orders, renyi_levels(bounds, orders, example))
        case "composed":
            found = composed((_read(part), count(times, "times", "2")) for part, times in data["parts"])
            if isinstance(found, Composed):
                return found
    raise ValueError
