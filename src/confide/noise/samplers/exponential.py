"""e^-x twice: integer bounds to any precision, and a fast float64 whose error is proved.

No call of the C library's exp is made anywhere: it comes without a proved error bound and differs between platforms.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

__all__ = ["EXP_SMALL_ERROR", "EXP_WIDE_ERROR", "WHOLES", "exp_bounds", "exp_far", "exp_small", "exp_wide"]

FloatArray = npt.NDArray[np.float64]


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers `low <= 2^bits e^-x <= high`, `x >= 0` and exact; they differ by a few units.

    Reduce below 2^-8 by halving, alternating series, square back.

    >>> exp_bounds(Fraction(1), 8)  # 256 / e = 94.18
    (94, 95)
    """
    halvings = max(0, (x.numerator // x.denominator).bit_length() + 8)
    # Each squaring doubles the relative error and adds a unit; 32 spare bits keep the result within a few units.
    wide = bits + halvings + 32
    scaled = (x.numerator << wide) // x.denominator
    low = _reduced_exp(scaled + 1, wide, halvings)[0]
    high = _reduced_exp(scaled, wide, halvings)[1]
    return low >> (wide - bits), min(1 << bits, -(-high >> (wide - bits)))


def _reduced_exp(scaled: int, wide: int, halvings: int) -> tuple[int, int]:
    """Bounds of 2^wide e^-y, y = scaled / 2^wide: the series at y / 2^halvings < 2^-8, then `halvings` squarings."""
    shift = wide + halvings  # y / 2^halvings = scaled / 2^shift, exactly
    total = term = 1 << wide
    index = 0
    while term:
        index += 1
        # Each floor loses less than 1, and what it inherits shrinks by 2^-8: every term is short by less than 1.01.
        term = (term * scaled >> shift) // index
        total += -term if index % 2 else term
    # `index` terms, each off by less than 1.01, and an alternating remainder below the first term left out (< 1).
    slack = 2 * index + 2
    low, high = max(0, total - slack), total + slack
    for _ in range(halvings):
        low = low * low >> wide
        high = -(-high * high >> wide)
    return low, high


# Error budget of `exp_small`, relative, in units u = 2^-53, for 0 <= r < 1/64 (the tests redo it in rationals):
#   series cut after r^6, r^7/5040 e^(1/64): .42;  Horner, each product and sum rounded: 1.05;  table entry: 1;
#   last product: 1.  Sum 3.47, and terms in u^2.
EXP_SMALL_ERROR = Fraction(36, 10) / 2**53
# One table entry and one product more.
EXP_WIDE_ERROR = Fraction(57, 10) / 2**53
SLOTS = 64  # q = 0 .. 63: x < 1
WHOLES = 32  # x < 32


def _nearest_exp(x: Fraction) -> float:
    """The double nearest to e^-x: both integer bounds round to it (a division of ints rounds correctly)."""
    bits = 128
    while True:
        low, high = (end / (1 << bits) for end in exp_bounds(x, bits))
        if low == high:
            return low
        bits += 64


_EXP_TABLE: FloatArray = np.array([_nearest_exp(Fraction(q, SLOTS)) for q in range(SLOTS)], dtype=np.float64)
_EXP_WHOLES: FloatArray = np.array([_nearest_exp(Fraction(q)) for q in range(WHOLES)], dtype=np.float64)
_COEFFICIENTS = tuple((-1) ** j / factorial for j, factorial in enumerate((1, 1, 2, 6, 24, 120, 720)))


def exp_small(x: FloatArray) -> FloatArray:
    """e^-x for 0 <= x < 1 with relative error below 3.6 * 2^-53, from +, -, * and a table only.

    Every step is one IEEE operation of a NumPy ufunc, so the bits are the same on every platform.

    >>> float(exp_small(np.array([0.0]))[0])
    1.0
    """
    q = (x * 64.0).astype(np.int64)
    r = x - q * 0.015625  # exact: r < 1/64 is a multiple of the last place of x
    value: FloatArray = r * _COEFFICIENTS[6]
    for coefficient in _COEFFICIENTS[5:0:-1]:
        value += coefficient
        value *= r
    value += 1.0
    value *= _EXP_TABLE[q]
    return value


def exp_wide(x: FloatArray) -> FloatArray:
    """e^-x for 0 <= x < 32 with relative error below 5.7 * 2^-53, in the same way.

    >>> float(exp_wide(np.array([0.0]))[0])
    1.0
    """
    whole = x.astype(np.int64)
    value = exp_small(x - whole)  # exact: the difference keeps the last place of x
    value *= _EXP_WHOLES[whole]
    return value


_EXP_FARS: FloatArray = np.array([_nearest_exp(Fraction(WHOLES * q)) for q in range(22)], dtype=np.float64)


def exp_far(x: FloatArray) -> FloatArray:
    """e^-x for 0 <= x < 704 with relative error below 7.8 * 2^-53, in the same way.

    >>> float(exp_far(np.array([0.0]))[0])
    1.0
    """
    far = (x * (1 / WHOLES)).astype(np.int64)
    value = exp_wide(x - far * float(WHOLES))  # exact, as above
    value *= _EXP_FARS[far]
    return value
