"""Interval arithmetic: public bounds of a formula's term from the public bounds of its columns.

An operation on intervals gives the smallest interval of doubles that contains every exact result. For logarithms,
exponentials and roots one unit in the last place more at each end, because mathematical libraries do not round them
correctly. So it also contains every result that is computed in float64. Sums, products and quotients are formed in
exact fractions, logarithms and exponentials in 60 decimal digits: the bounds have the same bits on every machine.

An operation is applied where it is defined: log to the positive part of an interval, and to nothing when there is none.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_INF = math.inf
# Enough digits that rounding outward from them is exact rounding in all but invented cases.
_DIGITS = 60
# exp() of more is above the largest double, of less is below the smallest one.
_EXP_HIGH, _EXP_LOW = 710.0, -746.0


@dataclass(frozen=True)
class Interval:
    """All real numbers from `low` to `high`; the ends may be infinite; low > high means no number at all.

    >>> Interval(1.0, 2.0) * Interval(-3.0, 0.5)
    Interval(low=-6.0, high=1.0)
    """

    low: float
    high: float

    @classmethod
    def point(cls, value: float) -> Interval:
        """The interval of one number.

        >>> Interval.point(2.0)
        Interval(low=2.0, high=2.0)
        """
        return cls(value, value)

    @property
    def empty(self) -> bool:
        """Whether there is no number in it."""
        return not self.low <= self.high

    @property
    def finite(self) -> bool:
        """Whether both ends are finite and there is a number in it."""
        return not self.empty and math.isfinite(self.low) and math.isfinite(self.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        if self.empty or other.empty:
            return EMPTY
        low = -_INF if -_INF in (self.low, other.low) else _down(_exact_sum(self.low, other.low))
        high = _INF if _INF in (self.high, other.high) else _up(_exact_sum(self.high, other.high))
        return Interval(low, high)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        if self.empty or other.empty:
            return EMPTY
        ends = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(_down(min(ends)), _up(max(ends)))

    def __truediv__(self, other: Interval) -> Interval:
        if self.empty or other.empty or other == Interval(0.0, 0.0):
            return EMPTY
        if other.low < 0.0 < other.high:
            return Interval(0.0, 0.0) if self.low == self.high == 0.0 else Interval(-_INF, _INF)
        # a zero at an end of the divisor is approached from inside the interval
        side = 1.0 if other.low >= 0.0 else -1.0
        ends = [_quotient(a, b, side) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(_down(min(ends)), _up(max(ends)))

    def __abs__(self) -> Interval:
        if self.empty:
            return EMPTY
        if self.low <= 0.0 <= self.high:
            return Interval(0.0, max(-self.low, self.high))
        return Interval(min(abs(self.low), abs(self.high)), max(abs(self.low), abs(self.high)))

    def sqrt(self) -> Interval:
        """Square roots of its part from 0 upwards.

        >>> Interval(-1.0, 4.0).sqrt()
        Interval(low=0.0, high=2.0)
        """
        return self._above(0.0)._monotone(_sqrt)

    def exp(self) -> Interval:
        """Exponentials.

        >>> Interval(-float("inf"), 0.0).exp()
        Interval(low=0.0, high=1.0)
        """
        return self._monotone(_exp)

    def log(self) -> Interval:
        """Natural logarithms of its part from 0 upwards; minus infinity at 0.

        >>> Interval(0.0, 1.0).log()
        Interval(low=-inf, high=0.0)
        """
        return self._above(0.0)._monotone(_log)

    def log1p(self) -> Interval:
        """Natural logarithms of 1 + x, for its part from -1 upwards; minus infinity at -1.

        >>> Interval(0.0, 1.0).log1p().low
        0.0
        """
        return self._above(-1.0)._monotone(_log1p)

    def power(self, exponent: float) -> Interval:
        """Powers with a constant exponent: whole ones of any number, others of the part from 0 upwards.

        >>> Interval(-1.0, 2.0).power(2), Interval(-1.0, 9.0).power(0.5)
        (Interval(low=0.0, high=4.0), Interval(low=0.0, high=3.0))
        """
        exponent = float(exponent)
        if exponent == 0.0:
            return EMPTY if self.empty else Interval(1.0, 1.0)
        if exponent < 0.0:
            return Interval(1.0, 1.0) / self.power(-exponent)
        if exponent == 0.5:
            return self.sqrt()
        if exponent.is_integer():
            base = abs(self) if exponent % 2 == 0 else self
            return base._monotone(lambda x, way: _whole_power(x, int(exponent), way))
        return self._above(0.0)._monotone(lambda x, way: _real_power(x, exponent, way))

    def _above(self, least: float) -> Interval:
        return Interval(max(self.low, least), self.high)

    def _monotone(self, function: Callable[[float, int], float]) -> Interval:
        """The image under an increasing function, which is told to round down (-1) or up (1)."""
        return EMPTY if self.empty else Interval(function(self.low, -1), function(self.high, 1))


EMPTY = Interval(_INF, -_INF)

_Number = TypeVar("_Number", float, "NDArray[np.float64]")


def repeated_product(x: _Number, exponent: int) -> _Number:
    """x to a whole power of at least 1 by products in one fixed order: the same bits for a number and for an array.

    >>> repeated_product(3.0, 5)
    243.0
    """
    result, square = None, x
    while exponent:
        if exponent % 2:
            result = square if result is None else result * square
        exponent //= 2
        if exponent:
            square = square * square
    assert result is not None
    return result


_Real = Fraction | float


def _down(value: _Real) -> float:
    """The largest double that is not above an exact value; an infinite value stands for itself."""
    return value if isinstance(value, float) else _rounded(value, -1)


def _up(value: _Real) -> float:
    return value if isinstance(value, float) else _rounded(value, 1)


def _rounded(value: Fraction | Decimal, way: int) -> float:
    """An exact value as a double, rounded down (way -1) or up (way 1)."""
    try:
        nearest = float(value)
    except OverflowError:
        nearest = _INF if value > 0 else -_INF
    if math.isinf(nearest):
        # beyond the largest double: infinite on the outer side, the largest double on the inner one
        return nearest if (nearest > 0) == (way > 0) else math.nextafter(nearest, 0.0)
    exact = Fraction(value)
    if way * (exact - Fraction(nearest)) > 0:
        return math.nextafter(nearest, way * _INF)
    return nearest + 0.0


def _exact_sum(a: float, b: float) -> Fraction:
    return Fraction(a) + Fraction(b)


def _product(a: float, b: float) -> _Real:
    # 0 times an infinite end is 0: the end stands for numbers that are large but finite
    if a == 0.0 or b == 0.0:
        return Fraction(0)
    if math.isinf(a) or math.isinf(b):
        return math.copysign(_INF, a) * math.copysign(1.0, b)
    return Fraction(a) * Fraction(b)


def _quotient(a: float, b: float, side: float) -> _Real:
    if a == 0.0 or (math.isinf(b) and not math.isinf(a)):
        return Fraction(0)
    if b == 0.0 or math.isinf(a):
        return math.copysign(_INF, a) * (side if b == 0.0 else math.copysign(1.0, b))
    return Fraction(a) / Fraction(b)


def _sqrt(x: float, way: int) -> float:
    if math.isinf(x):
        return x
    root = math.sqrt(x)
    if way * (Fraction(x) - Fraction(root) ** 2) > 0:
        return math.nextafter(root, way * _INF)
    return root


def _exp(x: float, way: int) -> float:
    if x > _EXP_HIGH:
        return _INF
    if x < _EXP_LOW:
        return 0.0 if way < 0 else math.nextafter(0.0, 1.0)
    return 1.0 if x == 0.0 else max(_outward(_context().exp(Decimal(x)), way), 0.0)


def _log(x: float, way: int) -> float:
    if x == 0.0 or math.isinf(x):
        return -_INF if x == 0.0 else _INF
    return 0.0 if x == 1.0 else _outward(_context().ln(Decimal(x)), way)


def _log1p(x: float, way: int) -> float:
    if x == -1.0 or math.isinf(x):
        return -_INF if x == -1.0 else _INF
    if x == 0.0:
        return 0.0
    # 1 + x exactly: a double has at most 1,075 digits behind the point
    whole = _context(1400).add(Decimal(1), Decimal(x))
    return _outward(_context().ln(whole), way)


def _whole_power(x: float, exponent: int, way: int) -> float:
    if x == 0.0 or math.isinf(x):
        return x if exponent % 2 else abs(x)
    # rounding is monotone, so repeated products at the ends also bound those of all numbers between
    exact, computed = _rounded(Fraction(x) ** exponent, way), repeated_product(x, exponent)
    return max(exact, computed) if way > 0 else min(exact, computed)


def _real_power(x: float, exponent: float, way: int) -> float:
    if x in (0.0, 1.0) or math.isinf(x):
        return x
    return _outward(_context().power(Decimal(x), Decimal(exponent)), way)


def _context(digits: int = _DIGITS) -> decimal.Context:
    return decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])


def _outward(value: Decimal, way: int) -> float:
    """A value known to 60 digits as a double, rounded down or up, and one unit in the last place further.

    The unit more is for the mathematical libraries: their logarithms are not correctly rounded.
    """
    if value.adjusted() > 400 or value.adjusted() < -400:  # far outside the doubles
        end = math.copysign(_INF if value.adjusted() > 0 else 0.0, value)
        return end if math.isinf(end) and (end > 0) == (way > 0) else math.nextafter(end, way * _INF)
    return math.nextafter(_rounded(value, way), way * _INF)
