"""Curves by name and from files; every number is checked here.

For symmetric Laplace noise on rows: its levels, and the largest shift that meets an epsilon and a delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import expm1, floor, inf, isinf, log1p, sqrt
from numbers import Integral
from typing import Any

from confide import _docs
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
from confide.guarantees.curves.symmetric_laplace import SymmetricLaplace
from confide.guarantees.mechanisms.objective_perturbation import Objective
from confide.guarantees.validation import EXACT, count, level, orders_tuple, renyi_levels, share, sqrt_up

# Shifts whose radial laws are told by floats: noise of 1e-8 to 1e12 times the largest change.
_LEAST_SHIFT, _MOST_SHIFT = 1e-12, 1e8


def gaussian(mu: float) -> Curve:
    """Trade-off curve of the Gaussian mechanism: N(0, 1) against N(mu, 1).

    Parameters
    ----------
    mu : float
        Sensitivity over the SD of the noise, above 0.

    Examples
    --------
    >>> round(gaussian(1.0).delta(1.0), 6)
    0.126937
    """
    return Gaussian(level(mu, "mu", "gaussian(1.0)"))


def laplace(epsilon: float) -> Curve:
    """Trade-off curve of the Laplace mechanism.

    Parameters
    ----------
    epsilon : float
        Sensitivity over the scale of the noise, above 0.

    Examples
    --------
    >>> round(laplace(1.0).f(0.05), 6)
    0.864086
    """
    return Laplace(level(epsilon, "epsilon", "laplace(1.0)"))


def approx_dp(epsilon: float, delta: float = 0.0) -> Curve:
    """Trade-off curve of approximate differential privacy.

    It is the curve of randomized response that leaks with probability delta.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, above 0.
    delta : float, default 0
        Additive part, at least 0 and below 1.

    Examples
    --------
    >>> round(approx_dp(1.0, 0.01).f(0.05), 6)
    0.854086
    """
    pure = RandomisedResponse(level(epsilon, "epsilon", "approx_dp(1.0, 1e-6)"))
    leak = share(delta, "delta", "approx_dp(1.0, 1e-6)", zero=True)
    return ZeroInflated(leak, pure) if leak else pure


def perfect() -> Curve:
    """Trade-off curve of an output that is independent of the records.

    f(alpha) = 1 - alpha. It is neutral in composition.

    Returns
    -------
    Curve
        The curve.

    Examples
    --------
    >>> perfect().compose(gaussian(1.0))
    gaussian(1.0)
    """
    return Perfect()


def symmetric_laplace(d: float, c: float) -> Curve:
    """Trade-off curve of symmetric Laplace noise in d dimensions under a shift.

    Exact for d up to 100; beyond that the limit, which is safe.

    Parameters
    ----------
    d : int or float
        Number of coordinates, at least 1, or `math.inf`.
    c : float
        Shift in standard deviations of the noise, from 1e-12 to 1e8.

    Examples
    --------
    >>> round(symmetric_laplace(3, 0.5).delta(0.8), 5), round(symmetric_laplace(float("inf"), 0.5).delta(0.8), 6)
    (0.06775, 0.125282)
    """
    shift = level(c, "c", "symmetric_laplace(3, 0.5)", least=_LEAST_SHIFT, most=_MOST_SHIFT)
    whole = isinstance(d, Integral) or (isinstance(d, float) and (d.is_integer() or d == inf))
    if isinstance(d, bool) or not whole or not (1 <= d <= EXACT or d == inf):
        raise PrivacyError(
            f"d is the number of coordinates, a whole number from 1 to 2^53 or infinity, got {d!r}",
            "write symmetric_laplace(3, 0.5) or symmetric_laplace(math.inf, 0.5)",
        )
    if d == 1:
        return Laplace(sqrt_up(2 * Fraction(shift) ** 2))
    return SymmetricLaplace(inf if isinf(d) else float(d), shift)


def objective(mu: float, ratio: float, *, after: float = 0.0, replaced: bool = False) -> Curve:
    """The curve of objective perturbation of a logistic regression, sharp (`guarantees.objective_perturbation`).

    `mu`: slope over the SD of the tilt. `ratio`: curvature over ridge; both above 0. `after`: mu of Gaussian releases
    that follow it, at least 0. `replaced`: neighbors differ by a replaced record, not by one more.

    >>> 0.8 < 1e6 * objective(1 / 4.25, 1 / 2.0).delta(1.0) < 1.0
    True
    """
    example = "objective(0.25, 0.5)"
    tilt, bent = level(mu, "mu", example), level(ratio, "ratio", example)
    later = 0.0 if after == 0 else level(after, "after", example)
    if not isinstance(replaced, bool):
        raise PrivacyError(f"replaced must be True or False, got {replaced!r}", f"write {example}")
    return Objective(tilt, bent, later, replaced)


def zero_inflated(zeta: float, base: Curve) -> Curve:
    """Trade-off curve of a release that sometimes leaves a record without noise.

    Parameters
    ----------
    zeta : float
        Probability of no noise, at least 0 and below 1.
    base : Curve
        Curve of the release otherwise.

    Returns
    -------
    Curve
        The curve.

    Raises
    ------
    PrivacyError
        `zeta` is outside its range, or `base` is not a curve.

    Examples
    --------
    >>> zero_inflated(0.05, symmetric_laplace(6, 0.5)).mass_at_infinity
    0.05
    """
    bare = share(zeta, "zeta", "zero_inflated(0.05, laplace(1.0))", zero=True)
    if not isinstance(base, Curve):
        raise PrivacyError(
            f"the base of zero_inflated is a curve, got {type(base).__name__}",
            "write zero_inflated(0.05, laplace(1.0))",
        )
    return ZeroInflated(bare, base) if bare else base


def curve_from_dict(data: Mapping[str, Any]) -> Curve:
    """Read the curve that `to_dict` wrote, to the bit.

    Parameters
    ----------
    data : mapping
        What `to_dict` of a curve gave.

    Returns
    -------
    Curve
        The curve.

    Raises
    ------
    PrivacyError
        The mapping is anything else.

    Examples
    --------
    >>> curve_from_dict(gaussian(0.1).power(10).to_dict()) == gaussian(0.1).power(10)
    True
    """
    try:
        found = _read(data)
        if found.to_dict() == data:
            return found
        raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise PrivacyError("this is not a curve that to_dict wrote", "write it with curve.to_dict()") from None


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


_DIGITS = 1e-7  # a calibrated shift is rounded down to this
# Of a calibration: the shift that it asks for is near epsilon, and ends at 1e8.
_MOST_EPSILON = 1e8


def levels(
    widths: Iterable[float], scales: Iterable[float], *, zeta: float = 0.0, k: int | None = None
) -> dict[str, Curve]:
    """Curves of one noisy row when one attribute, any k, or the whole record changes.

    With r_j = widths[j] / scales[j] the shifts are the largest r_j, the root of
    the sum of the k largest squares, and the root of the sum of all squares.
    All columns share one noise radius, so every level has the full dimension.

    Parameters
    ----------
    widths : iterable of float
        Width of the declared domain of each column.
    scales : iterable of float
        SD of the noise of each column, of the same length and in the same
        units.
    zeta : float, default 0
        Probability that a row has no noise, at least 0 and below 1.
    k : int, optional
        Number of attributes of the middle level. Left out: no middle level.

    Returns
    -------
    dict of str to Curve
        The curves ``"attribute"``, ``"k attributes"`` and ``"record"``.

    Raises
    ------
    PrivacyError
        A parameter is outside its range, or the lengths differ.

    Examples
    --------
    >>> for name, curve in levels([2.0] * 3, [1.0] * 3, k=2).items():
    ...     print(name, curve)
    attribute symmetric_laplace(3, 2.0)
    2 attributes symmetric_laplace(3, 2.8284271247461903)
    record symmetric_laplace(3, 3.464101615137755)
    """
    example = "levels([2.0, 1.0], [0.5, 0.5])"
    for name, numbers in (("widths", widths), ("scales", scales)):
        if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Iterable):
            raise PrivacyError(f"{name} must be numbers, one for each column, got {numbers!r}", f"write {example}")
    wide, spread = (
        [Fraction(level(x, f"each of {n}", example)) for x in v] for n, v in (("widths", widths), ("scales", scales))
    )
    if len(wide) != len(spread) or not wide:
        raise PrivacyError(
            f"widths and scales have one number for each column, got {len(wide)} and {len(spread)}", f"write {example}"
        )
    squares = sorted(((w / s) ** 2 for w, s in zip(wide, spread, strict=True)), reverse=True)
    d = len(squares)
    if k is not None and count(k, "k", "levels(widths, scales, k=1)") > d:
        raise PrivacyError(
            f"k must be from 1 to the number of columns {d}, got {k}", "write levels(widths, scales, k=1)"
        )

    def curve(most: int) -> Curve:
        return zero_inflated(zeta, symmetric_laplace(d, sqrt_up(sum(squares[:most], Fraction(0)))))

    middle = {} if k is None else {f"{k} attribute{'s' if k > 1 else ''}": curve(k)}
    return {"attribute": curve(1)} | middle | {"record": curve(d)}


def calibrate_symmetric_laplace(epsilon: float, delta: float, d: float, *, zeta: float = 0.0) -> float:
    """Largest shift at which symmetric Laplace noise meets epsilon and delta.

    The SD of the noise of a column of width w is then w / c, c the shift.

    Parameters
    ----------
    epsilon : float
        Epsilon to meet, above 0 and at most 1e8.
    delta : float
        Delta to meet, at least 0 and below 1.
    d : int or float
        Number of coordinates, at least 1, or `math.inf`.
    zeta : float, default 0
        Probability of no noise, below delta; for d = 1 it may equal delta.

    Returns
    -------
    float
        The shift in standard deviations of the noise. Exact for finite d and
        rounded down to 1e-7, so that the statement for it meets the request.

    Raises
    ------
    PrivacyError
        No shift meets the request.

    Examples
    --------
    >>> round(calibrate_symmetric_laplace(0.8, 0.17, float("inf"), zeta=0.05), 5)
    0.50252
    """
    goal_epsilon = level(epsilon, "epsilon", "calibrate_symmetric_laplace(1.0, 1e-3, 3)", most=_MOST_EPSILON)
    goal = share(delta, "delta", "calibrate_symmetric_laplace(1.0, 1e-3, 3)", zero=True)
    bare = share(zeta, "zeta", "calibrate_symmetric_laplace(1.0, 0.1, 3, zeta=0.05)", zero=True)
    if bare > goal or (bare == goal and d != 1):
        raise PrivacyError(
            f"no noise meets delta = {goal!r} when a row goes without noise with probability zeta = {bare!r}"
            f"{'' if bare else ' in more than one dimension'}",
            "take zeta below delta, or a larger delta",
        )
    # delta = 1 - (1 - zeta)(1 - delta_base): the base's share of it
    rest = -expm1(log1p(-goal) - log1p(-bare))
    weight = -log1p(-rest)
    low, high = sqrt(2 * weight * (weight + goal_epsilon)), (goal_epsilon + 2 * weight) / sqrt(2)

    def fits(c: float) -> bool:
        return bool(zero_inflated(bare, symmetric_laplace(d, c)).delta(goal_epsilon) <= goal)

    if d == inf or low == 0:
        high = low if d != 1 else high
    if d == 1:
        low = high
    low *= 1 - _DIGITS / 4
    step = _DIGITS  # what is stated is a hair above the truth, and a little more where it is very small
    while not fits(low):
        low, high, step = low * (1 - min(step, 0.5)), low, 4 * step
    while high - low > _DIGITS / 4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    rounded = floor(low / _DIGITS) * _DIGITS if low > 1e-2 else low
    return rounded if fits(rounded) else low


_docs.tell("PrivacyError", gaussian, laplace, approx_dp, symmetric_laplace, returns="The curve.")
