"""The scales of the noise: which numbers are taken, at which exact value, and the fixed point the sampler needs of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError

__all__ = ["Scales", "exact_rational", "exact_scale", "exact_variance", "whole"]

IntArray = npt.NDArray[np.int64]

MAX_SCALE_BITS = 57  # scale < 2^57: a draw leaves int64 only beyond 64 scales (probability e^-64; sampler.py)
FRACTION_BITS = 32
LOW = 2**32 - 1
CELL_BITS = 4  # the standard laws count in 16ths (standard.py)


def exact_rational(number: object) -> Fraction | None:
    """`number` as the exact rational that it is: int, Fraction, float (finite) and their NumPy kin; None for all else.

    >>> exact_rational(0.5), exact_rational(float("nan"))
    (Fraction(1, 2), None)
    """
    if isinstance(number, bool | np.bool_):
        return None
    if isinstance(number, Integral):
        return Fraction(int(number))
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    if isinstance(number, Real):
        nearest = float(number)
        # A wider float that a double cannot hold, and nan, differ from `nearest`.
        return Fraction(nearest) if math.isfinite(nearest) and nearest == number else None
    return None


def exact_variance(sigma2: object) -> Fraction:
    """`sigma2` as the exact positive rational that it is; int, Fraction and float are taken at their exact value.

    Errors: PrivacyError when it is not a positive finite number, or its square root is 2^57 steps or more.

    >>> exact_variance(0.1) == Fraction(0.1)
    True
    """
    return _positive(
        sigma2, "sigma2", "variance", "squared grid steps", 2 * MAX_SCALE_BITS, "grid_gaussian(Fraction(9, 4), 100)"
    )


def exact_scale(scale: object) -> Fraction:
    """`scale` of a Laplace law as the exact positive rational that it is, in grid steps.

    Errors: PrivacyError when it is not a positive finite number, or 2^57 steps or more.

    >>> exact_scale(3)
    Fraction(3, 1)
    """
    return _positive(scale, "scale", "scale", "grid steps", MAX_SCALE_BITS, "grid_laplace(Fraction(5, 2), 100)")


def _positive(number: object, name: str, what: str, unit: str, bits: int, call: str) -> Fraction:
    value = exact_rational(number)
    if value is None or value <= 0:
        raise PrivacyError(
            f"{name} is {described(number)}, but the {what} of the noise, in {unit}, must be a positive finite number: "
            f"an int, a float or a fractions.Fraction, as in {call}."
        )
    if value >= 2**bits:
        raise PrivacyError(
            f"{name} is at least 2^{_floor_log2(value)} {unit}, but it must be below 2^{bits} for the noise to fit "
            "64-bit integers: use fewer grid steps."
        )
    return value


def whole(value: object, name: str, call: str, least: int = 0) -> int:
    """`value` as an int of `least` or more.

    Errors: PrivacyError that shows `call`, when it is no integer or too small.

    >>> whole(3, "size", "bernoulli(p, 100)")
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        given = f"a {type(value).__name__}"
    elif value >= least:
        return int(value)
    else:
        given = described(value)
    raise PrivacyError(f"{name} is {given}, but it must be an integer of {least} or more, as in {call}.")


def described(number: object) -> str:
    """What was given, short even where its digits or its elements would fill a page."""
    if isinstance(number, float):
        return repr(float(number))
    value = exact_rational(number)
    if value is None:
        return f"a {type(number).__name__}"
    if max(abs(value.numerator), value.denominator) < 10**20:
        return str(value)
    return "negative" if value < 0 else "positive"


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


class Scales:
    """The scale of each of `size` draws: one for all, or one each; squared when they are given as variances.

    values: the distinct ones, exact; index: which of them each draw has, int64, or None when it is one for all.
    fixed: floor(2^32 scale / 16) <= 2^85 of each, as uint64 limbs (k2, k1, k0) in base 2^32. That number is
    all that the sampler precomputes; a law needs no table of its own.
    """

    def __init__(self, values: list[Fraction], index: IntArray | None, *, squared: bool) -> None:
        self.values = values
        self.index = index
        self.squared = squared
        fixed = [_fixed(value, squared) for value in values]
        limbs = zip(*((number >> 64, number >> 32 & LOW, number & LOW) for number in fixed), strict=True)
        self.fixed = tuple(np.array(limb, dtype=np.uint64) for limb in limbs)
        if not values:
            self.fixed = (np.empty(0, dtype=np.uint64),) * 3

    @classmethod
    def read(cls, given: object, size: int, *, squared: bool) -> Scales:
        """One rational, or a list, tuple or array of `size` of them.

        Errors: PrivacyError as `exact_variance` and `exact_scale`, and when the number of scales is not `size`.
        """
        exact = exact_variance if squared else exact_scale
        if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
            return cls([exact(given)], None, squared=squared)
        values, index = _distinct(given, size, "sigma2" if squared else "scale")
        return cls(list(map(exact, values)), index, squared=squared)

    def map(self, function: Callable[[Fraction], Fraction], *, squared: bool) -> Scales:
        """The scales `function(value)`, for the same draws."""
        return Scales([function(value) for value in self.values], self.index, squared=squared)

    def at(self, draws: IntArray) -> IntArray:
        """Where in `values` the scales of these draws stand; shape (1,) when it is one for all."""
        return np.zeros(1, dtype=np.int64) if self.index is None else self.index[draws]

    def of(self, draw: int) -> Fraction:
        """The exact scale, or variance, of one draw."""
        return self.values[0 if self.index is None else int(self.index[draw])]


def _fixed(value: Fraction, squared: bool) -> int:
    bits = FRACTION_BITS - CELL_BITS
    if squared:
        return math.isqrt((value.numerator << 2 * bits) // value.denominator)
    return (value.numerator << bits) // value.denominator


def _distinct(given: Sequence[object] | npt.NDArray[np.generic], size: int, name: str) -> tuple[list[object], IntArray]:
    """The distinct scales, and the number of its own for each draw; equal objects need not be found equal."""
    if isinstance(given, np.ndarray) and given.ndim != 1:
        _refuse_shape(name, f"an array of {given.ndim} dimensions")
    if len(given) != size:
        _refuse_shape(name, f"a sequence of {len(given)} for {size} draws")
    if isinstance(given, np.ndarray) and given.dtype.kind in "iuf":
        values, index = np.unique(given, return_inverse=True)
        return list(values), index.astype(np.int64, copy=False).reshape(-1)
    items = list(given)
    # By identity: a Fraction is slow to hash. `items` keeps the objects alive, so that no two share an id.
    by_id = {id(item): item for item in items}
    place = {key: position for position, key in enumerate(by_id)}
    index = np.fromiter((place[id(item)] for item in items), dtype=np.int64, count=size)
    return list(by_id.values()), index


def _refuse_shape(name: str, given: str) -> NoReturn:
    call = "grid_gaussian([4, Fraction(9, 4)], 2)" if name == "sigma2" else "grid_laplace([4, Fraction(9, 4)], 2)"
    raise PrivacyError(
        f"{name} is {given}, but it must be one number, or a sequence of one for each draw, as in {call}."
    )
