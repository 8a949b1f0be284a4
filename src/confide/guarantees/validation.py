"""Numbers, labels and counts as they come from a caller, checked once and for all.

Every refusal says what was given, what is allowed, and a call that works.

Directed rounding: floats that are never on the wrong side of an exact rational.

A guarantee may only ever be rounded to the weaker side, a noise level only to the safer one. Sums and squares are
formed in `Fraction`s and become floats here, once. Results of exp, log and the normal law carry a relative slack
instead, far above their measured error (tests/guarantees).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate, pairwise
from math import inf, isfinite, isqrt, nextafter
from numbers import Integral, Real
from sys import float_info
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from confide.errors import PrivacyError

RELATIONS = ("add-remove", "substitute")
TRUSTS = ("central", "local")
#: Whole numbers up to here are floats too; counts of anything stay below.
EXACT = 2**53
# Levels that can be asked for: forecasts and ledgers square them, multiply that by numbers of records, and divide by it.
_LEAST_LEVEL, _MOST_LEVEL = 1e-100, 1e100
# Of an order, so that twice the order is a float.
_MOST_ORDER = 1e300


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number of Python's own that a float can hold, and no bool.

    >>> is_number(2), is_number(float("inf")), is_number(True), is_number(10**400)
    (True, True, False, False)
    """
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) <= float_info.max
    )


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number of Python's own, and no bool."""
    return is_number(value) and isfinite(value)


def is_whole(value: object, least: float = -inf, most: float = inf) -> TypeGuard[int]:
    """Whether a value is a whole number of Python's own from `least` to `most`, and no bool.

    >>> is_whole(3, 1), is_whole(True), is_whole(3.0), is_whole(0, 1)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_count(value: object, least: int = 0) -> TypeGuard[int]:
    """Whether a value is a whole number of Python's own that may count something: from `least` to 2^53, and no bool.

    >>> is_count(3), is_count(0, 1), is_count(True), is_count(10**400)
    (True, False, False, False)
    """
    return is_whole(value, least, EXACT)


def real(value: object, name: str, example: str) -> float:
    """A finite real number as a float; NaN, infinity, booleans and text are refused.

    >>> real(2, "mu", "GDP(1.0)")
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PrivacyError(
            f"{name} must be a number, got {value!r} ({type(value).__name__})", f"write for instance {example}"
        )
    try:
        number = float(value)
    except OverflowError:
        raise PrivacyError(f"{name} is too large for a float", f"write for instance {example}") from None
    if not isfinite(number):
        raise PrivacyError(f"{name} must be finite, got {number}", f"write for instance {example}")
    return number + 0.0  # -0.0 becomes 0.0, so that equal values have one text


def reals(value: object, name: str, example: str) -> NDArray[np.float64]:
    """One real number or an array of them, as floats; NaN, booleans and text are refused, infinity is left to the caller.

    >>> reals([1, 2.5], "epsilon", "delta(1.0)").tolist()
    [1.0, 2.5]
    """
    array = np.asarray(float(value) if is_number(value) else value)
    if array.dtype.kind not in "fiu" or np.isnan(array).any():
        raise PrivacyError(
            f"{name} must be a number or an array of numbers, got {value!r}", f"write for instance {example}"
        )
    return np.asarray(array, dtype=np.float64)


def level(value: object, name: str, example: str, *, least: float = 0.0, most: float = inf) -> float:
    """A privacy level: a finite number above 0, and from `least` to `most` where a formula leaves the floats beyond.

    >>> level(0.5, "epsilon", "PureDP(0.5)")
    0.5
    """
    number = real(value, name, example)
    if number == 0:
        raise PrivacyError(
            f"{name} is 0: a budget of zero allows no release at all, because nothing that depends on the records can "
            f"leave; {name} must be above 0, for instance {example}"
        )
    if number < 0:
        raise PrivacyError(f"{name} must be above 0, got {number!r}", f"write for instance {example}")
    if not least <= number <= most:
        allowed = f"from {least:g} to {most:g}" if least else f"at most {most:g}"
        raise PrivacyError(f"{name} must be {allowed}, got {number!r}", f"write for instance {example}")
    return number


def check_reach(privacy: object) -> None:
    """Raise `PrivacyError` for a guarantee to ask for or to charge whose level is beyond reach: what squares it leaves the floats.

    >>> check_reach(0.5)  # what has no level is for others to refuse
    """
    for name in ("mu", "epsilon", "rho"):
        if not _LEAST_LEVEL <= getattr(privacy, name, 1.0) <= _MOST_LEVEL:
            raise PrivacyError(
                f"{name} must be from {_LEAST_LEVEL:g} to {_MOST_LEVEL:g} to be asked for or charged, got {privacy}; "
                "levels of use are near 1: write for instance GDP(1.0)"
            )


def share(value: object, name: str, example: str, *, zero: bool) -> float:
    """A probability below 1; 0 is allowed only where `zero` says so.

    >>> share(1e-6, "delta", "ApproxDP(1.0, 1e-6)", zero=False)
    1e-06
    """
    number = real(value, name, example)
    if 0 < number < 1 or (zero and number == 0):
        return number
    allowed = "at least 0 and below 1" if zero else "above 0 and below 1"
    hint = "; with delta 0 the guarantee is PureDP(epsilon)" if number == 0 else ""
    raise PrivacyError(f"{name} must be {allowed}, got {number!r}{hint}", f"write for instance {example}")


def count(value: object, name: str, example: str) -> int:
    """A whole number from 1 to 2^53, up to which all are floats too.

    >>> count(3, "k", "group(g, 3)")
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise PrivacyError(
            f"{name} must be a whole number of at least 1, got {value!r}", f"write for instance {example}"
        )
    if int(value) > EXACT:
        raise PrivacyError(f"{name} must be at most 2^53, got {value!r}", f"write for instance {example}")
    return int(value)


def renyi_order(value: object, name: str, example: str) -> float:
    """A Renyi order: above 1, and at most 1e300.

    >>> renyi_order(2, "order", "to_rdp((2, 8, 32))")
    2.0
    """
    number = real(value, name, example)
    if not 1 < number <= _MOST_ORDER:
        raise PrivacyError(
            f"{name} must be above 1 and at most {_MOST_ORDER:g}, got {number!r}", f"write for instance {example}"
        )
    return number


def orders_tuple(values: object, example: str) -> tuple[float, ...]:
    """Renyi orders: each as `renyi_order`, strictly rising.

    >>> orders_tuple((2, 4.5), "RDP((2, 8), (0.1, 0.4))")
    (2.0, 4.5)
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise PrivacyError(f"orders must be numbers above 1, got {values!r}", f"write for instance {example}")
    orders = tuple(real(value, "each of orders", example) for value in values)
    if not orders or min(orders) <= 1 or any(a >= b for a, b in pairwise(orders)):
        raise PrivacyError(
            f"orders must be above 1 and strictly rising, got {orders!r}", f"write for instance {example}"
        )
    return tuple(renyi_order(value, "each of orders", example) for value in orders)


def renyi_levels(values: object, orders: tuple[float, ...], example: str) -> tuple[float, ...]:
    """Renyi divergences, one for each order: finite, at least 0, each at most those of larger orders.

    >>> renyi_levels((0.5, 2, 1.5), (2.0, 8.0, 32.0), "RDP((2, 8, 32), (0.5, 2.0, 1.5))")
    (0.5, 1.5, 1.5)
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise PrivacyError("epsilons must be numbers, one for each order", f"write for instance {example}")
    epsilons = [real(epsilon, "each of epsilons", example) for epsilon in values]
    if len(epsilons) != len(orders):
        raise PrivacyError(
            f"epsilons must be one for each order, got {len(epsilons)} for {len(orders)} orders",
            f"write for instance {example}",
        )
    for epsilon in epsilons:
        if epsilon < 0:
            raise PrivacyError(f"each of epsilons must be at least 0, got {epsilon!r}", f"write for instance {example}")
    return tuple(accumulate(reversed(epsilons), min))[::-1]


def relation_name(value: object) -> str | None:
    """A neighboring relation, or None for one that is left open."""
    if value is None or (isinstance(value, str) and value in RELATIONS):
        return value
    raise PrivacyError(
        f"unknown relation {value!r}; allowed: 'add-remove' (one record more or fewer; the number of records is "
        "secret), 'substitute' (one record with other content, and a public number of records), or None to leave it "
        "to the plan",
        "write for instance relation='add-remove'",
    )


def trust_name(value: object) -> str:
    """Who is trusted with the records."""
    if isinstance(value, str) and value in TRUSTS:
        return value
    raise PrivacyError(
        f"unknown trust {value!r}; allowed: 'central' (a data holder sees the records and releases noisy statistics), "
        "'local' (each record is noised before it leaves its owner)",
        "write for instance trust='central'",
    )


def unit_name(value: object) -> str:
    """What is protected: "record", "attribute", or another short name, such as "household" or "columns age, income"."""
    if _one_line(value):
        return value
    raise PrivacyError(
        f"unit must be a short name on one line, got {value!r}", "write for instance unit='record' or unit='attribute'"
    )


def assumption_tuple(values: object) -> tuple[str, ...]:
    """Assumptions as a sorted tuple without repeats, so that the order of composition never shows.

    >>> assumption_tuple(["float64 sampling", "float64 sampling"])
    ('float64 sampling',)
    """
    if not isinstance(values, str) and isinstance(values, Iterable):
        texts = list(values)
        if all(_one_line(text) for text in texts):
            return tuple(sorted(set(texts)))
    raise PrivacyError(
        f"assumptions must be a tuple of texts of one line each, got {values!r}",
        "write for instance assumptions=('float64 sampling',)",
    )


def _one_line(value: object) -> TypeGuard[str]:
    """Whether a label may stand in a table and in a sentence."""
    return isinstance(value, str) and bool(value) and value.isprintable() and value.strip() == value


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
