"""Directed rounding: floats that are never on the wrong side of an exact rational.

A guarantee may only ever be rounded to the weaker side, a noise level only to the safer one. Sums and squares are
formed in `Fraction`s and become floats here, once. Results of exp, log and the normal law carry a relative slack
instead, far above their measured error (tests/guarantees).
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isqrt, nextafter

from confide.errors import PrivacyError

__all__ = ["SLACK", "float_up", "sqrt_down", "sqrt_up"]

# Relative slack of every transcendental result that states or meets a guarantee. The measured relative
# error of gaussian_delta is below 1e-12 and that of the inverses below 1e-13, so that 1e-11 covers each several
# times over.
SLACK = 1e-11


def float_up(exact: Fraction) -> float:
    """The smallest float that is not below a rational.

    >>> Fraction(float_up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = inf
    if nearest != inf and nearest < exact:
        nearest = nextafter(nearest, inf)
    if nearest == inf:
        raise PrivacyError("the guarantee is too large for a float; it would protect nothing, so ask for a smaller one")
    return nearest


def sqrt_up(exact: Fraction) -> float:
    """The smallest float whose exact square is not below a positive rational.

    >>> sqrt_up(Fraction(4)), sqrt_up(Fraction(2))
    (2.0, 1.4142135623730951)
    """
    # 128 bits of the square give 64 bits of the root: within one float of the right one, which the loops then find.
    shift = max(0, 64 - (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2)
    root = float_up(Fraction(isqrt(exact.numerator * 4**shift // exact.denominator), 2**shift))
    while Fraction(root) ** 2 < exact:
        root = float_up(Fraction(nextafter(root, inf)))
    while Fraction(nextafter(root, 0.0)) ** 2 >= exact:
        root = nextafter(root, 0.0)
    return root


def sqrt_down(exact: Fraction) -> float:
    """The largest float whose exact square is not above a positive rational.

    >>> sqrt_down(Fraction(4)), sqrt_down(Fraction(2))
    (2.0, 1.414213562373095)
    """
    root = sqrt_up(exact)
    return root if Fraction(root) ** 2 == exact else nextafter(root, 0.0)
