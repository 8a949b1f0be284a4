"""Symmetric Laplace noise on rows: its levels side by side, and the largest shift that meets an (epsilon, delta)."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import expm1, floor, inf, log1p, sqrt

from confide.errors import PrivacyError
from confide.guarantees.curves.curve import Curve
from confide.guarantees.curves.factories import symmetric_laplace, zero_inflated
from confide.guarantees.rounding import sqrt_up
from confide.guarantees.validation import count, level, share

__all__ = ["calibrate_symmetric_laplace", "levels"]

_DIGITS = 1e-7  # a calibrated shift is rounded down to this
# Of a calibration: the shift that it asks for is near epsilon, and ends at 1e8.
_MOST_EPSILON = 1e8


def levels(
    widths: Iterable[float], scales: Iterable[float], *, zeta: float = 0.0, k: int | None = None
) -> dict[str, Curve]:
    """What one noisy row promises when one attribute changes, any k of them, or the whole record.

    widths: of the declared domain of each column; scales: noise standard deviation of each column, same length and units. With r_j =
    widths[j] / scales[j] the shifts are the largest r_j, the root of the sum of the k largest squares, and of all squares. k left
    out: no middle level. All columns share one noise radius, so every level has the full dimension.

    >>> for name, curve in levels([2.0] * 3, [1.0] * 3, k=2).items():
    ...     print(name, curve)
    attribute symmetric_laplace(3, 2.0)
    2 attributes symmetric_laplace(3, 2.8284271247461903)
    record symmetric_laplace(3, 3.464101615137755)
    """
    example = "levels([2.0, 1.0], [0.5, 0.5])"
    for name, numbers in (("widths", widths), ("scales", scales)):
        if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Iterable):
            raise PrivacyError(f"{name} must be numbers, one for each column, got {numbers!r}; write {example}")
    wide, spread = (
        [Fraction(level(x, f"each of {n}", example)) for x in v] for n, v in (("widths", widths), ("scales", scales))
    )
    if len(wide) != len(spread) or not wide:
        raise PrivacyError(
            f"widths and scales have one number for each column, got {len(wide)} and {len(spread)}; write {example}"
        )
    squares = sorted(((w / s) ** 2 for w, s in zip(wide, spread, strict=True)), reverse=True)
    d = len(squares)
    if k is not None and count(k, "k", "levels(widths, scales, k=1)") > d:
        raise PrivacyError(f"k must be from 1 to the number of columns {d}, got {k}; write levels(widths, scales, k=1)")

    def curve(most: int) -> Curve:
        return zero_inflated(zeta, symmetric_laplace(d, sqrt_up(sum(squares[:most], Fraction(0)))))

    middle = {} if k is None else {f"{k} attribute{'s' if k > 1 else ''}": curve(k)}
    return {"attribute": curve(1)} | middle | {"record": curve(d)}


def calibrate_symmetric_laplace(epsilon: float, delta: float, d: float, *, zeta: float = 0.0) -> float:
    """The largest shift c, in noise standard deviations, with which d-dimensional noise is (epsilon, delta)-private.

    The noise standard deviation of a column of width w is then w / c. zeta: the probability of no noise, below delta (or equal to it
    for d = 1). Exact finite d; rounded down to 1e-7, so that what is stated for it meets the request.
    Raises `PrivacyError` where no shift does.

    >>> round(calibrate_symmetric_laplace(0.8, 0.17, float("inf"), zeta=0.05), 5)
    0.50252
    """
    goal_epsilon = level(epsilon, "epsilon", "calibrate_symmetric_laplace(1.0, 1e-3, 3)", most=_MOST_EPSILON)
    goal = share(delta, "delta", "calibrate_symmetric_laplace(1.0, 1e-3, 3)", zero=True)
    bare = share(zeta, "zeta", "calibrate_symmetric_laplace(1.0, 0.1, 3, zeta=0.05)", zero=True)
    if bare > goal or (bare == goal and d != 1):
        raise PrivacyError(
            f"no noise meets delta = {goal!r} when a row goes without noise with probability zeta = {bare!r}"
            f"{'' if bare else ' in more than one dimension'}; take zeta below delta, or a larger delta"
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
