"""Privacy in whole units: a charge is rounded up, a limit down, both from the exact value of the float.

Sums of integers have no order and no rounding, so the total of a ledger is the same on every machine and can be
checked by anyone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, nextafter

__all__ = [
    "AMOUNT_BITS",
    "CURVE_SLACK",
    "DELTA_BITS",
    "LARGEST",
    "ZERO",
    "Price",
    "amount_of",
    "delta_of",
    "root_down",
    "root_up",
    "units_down",
    "units_up",
]

#: mu^2, rho and epsilon are counted in units of 2^-40 (9.1e-13).
AMOUNT_BITS = 40
#: delta is counted in units of 2^-60 (8.7e-19).
DELTA_BITS = 60
#: A price or a limit through a curve may differ by this share of itself between versions of the numerical library.
CURVE_SLACK = Fraction(1, 10**8)
#: The largest total that a ledger holds: half of what an SQL BIGINT can, so that a sum of two never overflows.
LARGEST = 2**62


@dataclass(frozen=True)
class Price:
    """An amount of privacy in whole units: `amount` (mu^2, rho or epsilon) in 2^-40, `delta` in 2^-60.

    >>> Price(1, 2) + Price(3, 4)
    Price(amount=4, delta=6)
    """

    amount: int
    delta: int

    def __add__(self, other: Price) -> Price:
        return Price(self.amount + other.amount, self.delta + other.delta)


ZERO = Price(0, 0)


def units_up(value: Fraction | float, bits: int) -> int:
    """The smallest number of units of 2^-bits that is at least the exact value.

    >>> units_up(0.25, 2), units_up(0.26, 2)
    (1, 2)
    """
    exact = Fraction(value) * (1 << bits)
    return -(-exact.numerator // exact.denominator)


def units_down(value: Fraction | float, bits: int) -> int:
    """The largest number of units of 2^-bits that is at most the exact value.

    >>> units_down(0.25, 2), units_down(0.49, 2)
    (1, 1)
    """
    exact = Fraction(value) * (1 << bits)
    return exact.numerator // exact.denominator


def amount_of(units: int) -> Fraction:
    """The exact mu^2, rho or epsilon of a number of units."""
    return Fraction(units, 1 << AMOUNT_BITS)


def delta_of(units: int) -> Fraction:
    """The exact delta of a number of units."""
    return Fraction(units, 1 << DELTA_BITS)


def root_down(value: Fraction) -> float:
    """The largest float whose exact square is at most `value`.

    >>> root_down(Fraction(1, 4)), Fraction(root_down(Fraction(2))) ** 2 <= 2
    (0.5, True)
    """
    root = float(Fraction(isqrt(value.numerator * value.denominator * 4**64), value.denominator * 2**64))
    while Fraction(root) ** 2 > value:
        root = nextafter(root, 0.0)
    return root


def root_up(value: Fraction) -> float:
    """The smallest float found from below whose exact square is at least `value`.

    >>> root_up(Fraction(1, 4)), Fraction(root_up(Fraction(2))) ** 2 >= 2
    (0.5, True)
    """
    root = root_down(value)
    return root if Fraction(root) ** 2 == value else nextafter(root, float("inf"))
