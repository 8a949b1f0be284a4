"""What a value in a file may be: small shapes that are put together, each a check that raises `ReleaseError` and computes nothing.

A file comes from anybody. Whatever is read is therefore measured before it is converted: `Fraction("1e9999999")` takes hours and an
integer of a million digits seconds, so that texts of numbers are looked at character by character, and no longer than a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite
from typing import Any

from confide.errors import ReleaseError
from confide.guarantees.validation import is_whole

__all__ = [
    "BOOLEAN",
    "DIGEST",
    "NAME",
    "TEXT",
    "Shape",
    "all_texts",
    "double",
    "each",
    "finite_doubles",
    "fraction",
    "fraction_text",
    "kinds",
    "maybe",
    "named",
    "one_of",
    "record",
    "refuse",
    "shown",
    "whole",
    "whole_text",
    "whole_texts",
]

#: A check: a value, and where in the file it stands.
Shape = Callable[[Any, str], None]

#: Of a whole number: every reading turns integers into doubles, which end at 1.8e308; the largest sums have about 40 digits.
INTEGER_DIGITS = 300
#: Of either part of a fraction: the exact value of the double 1e-100 has 100 digits over 200; scales and sensitivities have about 20.
FRACTION_DIGITS = 400
#: Of a fraction in size, or 1 over it: squares and quotients of two of them are still doubles.
FRACTION_SIZE = 10**100
#: Of a text, such as what an interval covers, or a formula of hundreds of terms.
TEXT_LENGTH = 100_000
#: Of a name: of a statistic, a parameter, a method.
NAME_LENGTH = 1_000

_WHOLE = re.compile(rf"0|-?[1-9][0-9]{{0,{INTEGER_DIGITS - 1}}}")
_PART = rf"[1-9][0-9]{{0,{FRACTION_DIGITS - 1}}}"
_FRACTION = re.compile(rf"(0|-?{_PART})/({_PART})")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DOUBLE_LENGTH = 24  # of float.hex: -0x1.0123456789abcp-1022


def refuse(where: str, wanted: str) -> ReleaseError:
    """The error for a value that is not what it should be; it quotes nothing of the value, which is of any size and content."""
    return ReleaseError(
        f"{where} is not {wanted}: this is not what confide writes, so the file was altered; ask for the original file"
    )


def _text(length: int, what: str, least: int = 0) -> Shape:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or not least <= len(value) <= length:
            raise refuse(where, f"{what} of at most {length} characters")

    return check


TEXT = _text(TEXT_LENGTH, "a text")
NAME = _text(NAME_LENGTH, "a name", least=1)


def BOOLEAN(value: Any, where: str) -> None:
    """true or false."""
    if not isinstance(value, bool):
        raise refuse(where, "true or false")


def DIGEST(value: Any, where: str) -> None:
    """A SHA-256 in hexadecimal."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise refuse(where, "a SHA-256 of 64 hexadecimal digits")


def one_of(*allowed: str | None) -> Shape:
    """One of a few texts, or null where None is among them."""

    def check(value: Any, where: str) -> None:
        if not (value is None or isinstance(value, str)) or value not in allowed:
            raise refuse(where, f"one of {', '.join(map(str, allowed))}")

    return check


def whole(least: int, most: int) -> Shape:
    """A JSON integer within bounds."""

    def check(value: Any, where: str) -> None:
        if not is_whole(value, least, most):
            raise refuse(where, f"a whole number from {least} to {most}")

    return check


def whole_text(value: Any, where: str) -> None:
    """An integer of any size as its decimals, as Python writes it."""
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise refuse(where, f"an integer of at most {INTEGER_DIGITS} digits")


def whole_texts(values: list[Any]) -> bool:
    """Whether `whole_text` takes all of them."""
    match = _WHOLE.fullmatch
    return all(type(value) is str and match(value) for value in values)


def finite_doubles(values: list[Any]) -> bool:
    """Whether all are `float.hex` texts of finite numbers."""
    if not all_texts(values) or max(map(len, values), default=0) > _DOUBLE_LENGTH:
        return False
    try:
        numbers = list(map(float.fromhex, values))
    except (ValueError, OverflowError):
        return False
    return all(map(isfinite, numbers)) and list(map(float.hex, numbers)) == values


def all_texts(values: list[Any]) -> bool:
    """Whether all are texts, and no instances of a class of its own."""
    return set(map(type, values)) <= {str}


def double(low: float = -inf, high: float = inf, *, finite: bool = True, above: bool = False) -> Shape:
    """A `float.hex` text, and no other text of that number; `above`: larger than `low`, not equal."""

    def check(value: Any, where: str) -> None:
        number = _number(value)
        if number is None:
            raise refuse(where, "a float.hex text such as 0x1.0000000000000p+0")
        if not isfinite(number):
            if finite:
                raise refuse(where, "a finite number")
        elif not low <= number <= high or (above and number == low):
            raise refuse(where, f"a number {'above' if above else 'from'} {low:g} to {high:g}")

    return check


def _number(value: Any) -> float | None:
    if not isinstance(value, str) or len(value) > _DOUBLE_LENGTH:
        return None
    try:
        number = float.fromhex(value)
    except (ValueError, OverflowError):
        return None
    return number if number.hex() == value else None


def fraction_text(value: Any) -> Fraction | None:
    """The fraction that a text "p/q" in lowest terms means, 0 or of a size that doubles hold; None for any other text."""
    return _fraction_of(value) if isinstance(value, str) else None


@lru_cache(maxsize=1024)  # the noise of a plan has few different numbers
def _fraction_of(text: str) -> Fraction | None:
    found = _FRACTION.fullmatch(text)
    if found is None:
        return None
    number = Fraction(int(found[1]), int(found[2]))
    fits = number == 0 or Fraction(1, FRACTION_SIZE) <= abs(number) <= FRACTION_SIZE
    return number if fits and number.denominator == int(found[2]) else None


def fraction(least: int | None = None, *, above: bool = False, below: int | None = None) -> Shape:
    """A text "p/q" of `fraction_text`: at least `least`, or above it; below `below`."""

    def check(value: Any, where: str) -> None:
        number = fraction_text(value)
        if number is None:
            raise refuse(where, f'a fraction "p/q" in lowest terms of at most {FRACTION_DIGITS} digits each')
        if least is not None and (number < least or (above and number == least)):
            raise refuse(where, f"{'above' if above else 'at least'} {least}")
        if below is not None and number >= below:
            raise refuse(where, f"below {below}")

    return check


def maybe(shape: Shape) -> Shape:
    """null, or what the shape says."""

    def check(value: Any, where: str) -> None:
        if value is not None:
            shape(value, where)

    return check


def each(shape: Shape, least: int = 0, most: int = 1_000_000) -> Shape:
    """A list of a bounded length."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise refuse(where, f"a list of {least} to {most} entries")
        for place, item in enumerate(value):
            shape(item, f"{where}[{place}]")

    return check


def named(shape: Shape, name: Shape = NAME) -> Shape:
    """A mapping of names to values of one shape."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise refuse(where, "a mapping of names")
        for key, item in value.items():
            name(key, f"a name in {where}")
            shape(item, f"{where}[{shown(key)}]")

    return check


def record(fields: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """A mapping with exactly these fields, and possibly the optional ones."""
    known = {**fields, **(optional or {})}

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise refuse(where, f"a mapping with the entries {', '.join(known)}")
        for name in fields:
            if name not in value:
                raise refuse(where, f"complete, for it lacks the entry {name!r}")
        for name, item in value.items():
            if name not in known:
                raise refuse(where, f"a mapping of known entries, for it has {shown(name)} among {', '.join(known)}")
            known[name](item, f"{where}.{name}")

    return check


def kinds(tag: str, known: Mapping[str, Shape]) -> Shape:
    """A mapping whose entry `tag` says which of several shapes it has."""

    def check(value: Any, where: str) -> None:
        kind = value.get(tag) if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in known:
            raise refuse(where, f"a mapping whose {tag!r} is one of {', '.join(known)}")
        known[kind](value, where)

    return check


def shown(name: Any) -> str:
    """A name from a file as a message shows it: short, and without characters that a terminal would run.

    >>> shown("a" * 50), shown("\\x1b[2J")
    ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'", "'\\\\x1b[2J'")
    """
    text = name if isinstance(name, str) else type(name).__name__
    return repr(text if len(text) <= 40 else text[:40] + "...")
