"""Frozen dataclasses in files: their plain JSON form, to the bit, and back, by the types of their fields.

A field that is a dataclass, a guarantee, a fraction, an array (`Numbers`), or a tuple or mapping of these is written
as that. Anything else is a public setting, which `pack` writes and `unpack` reads. A class of which a file holds one
of several kinds is registered (`register`). Two kinds of fields are marked where they are declared:

    LIVE     stands in no file: what was just computed, or may follow from what is not public
    SPARSE   is written only where one of the sparse fields of its class says something, that is differs from its default

A file is checked before it is read (`confide.core.files`), and nothing here measures it again.

What a value in a file may be: small shapes that are put together, each a check that raises `ReleaseError` and computes nothing.

A file comes from anybody. Whatever is read is therefore measured before it is converted: `Fraction("1e9999999")`
takes hours and an integer of a million digits seconds. Texts of numbers are therefore checked character by character,
up to a limited length.

What numbers, arrays and settings look like in a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import inf, isfinite, prod
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from confide.core.exact import (
    Numbers,
    array_from_dict,
    array_to_dict,
    fraction_from_text,
    fraction_to_text,
    pack,
    unpack,
)
from confide.errors import ReleaseError
from confide.guarantees import Guarantee, guarantee_from_dict
from confide.guarantees.validation import is_whole

LIVE: Mapping[str, bool] = {"live": True}
SPARSE: Mapping[str, bool] = {"sparse": True}

_T = TypeVar("_T")
_Coder = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_SETTING: _Coder = (pack, unpack)
_KNOWN: dict[Any, _Coder] = {
    Fraction: (fraction_to_text, fraction_from_text),
    Guarantee: (lambda value: value.to_dict(), guarantee_from_dict),
    Numbers: (lambda value: array_to_dict(np.asarray(value)), array_from_dict),
}


def register(kind: Any, to_plain: Callable[[Any], Any], from_plain: Callable[[Any], Any]) -> None:
    """Say how values of a type, or of one of the types of a union, are written and read."""
    _KNOWN[kind] = (to_plain, from_plain)


def encode(value: Any) -> dict[str, Any]:
    """A dataclass as plain JSON.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Share:
    ...     name: str
    ...     part: Fraction
    >>> encode(Share("a", Fraction(1, 3)))
    {'name': 'a', 'part': '1/3'}
    >>> decode(Share, encode(Share("a", Fraction(1, 3)))).part
    Fraction(1, 3)
    """
    kind: Any = type(value)
    coders = _coders(kind)
    written = {name: to_plain(getattr(value, name)) for name, (to_plain, _) in coders.items()}
    sparse = _sparse(kind)
    if sparse and all(getattr(value, name) == _default(field) for name, field in sparse.items()):
        return {name: one for name, one in written.items() if name not in sparse}
    return written


def decode(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """The inverse of `encode`. Raises `KeyError` where an entry is missing that is not sparse."""
    declared: Any = kind
    sparse = _sparse(declared)
    found = {
        name: from_plain(data[name])
        for name, (_, from_plain) in _coders(declared).items()
        if name in data or name not in sparse
    }
    return kind(**found)


@lru_cache(maxsize=256)
def _coders(kind: Any) -> dict[str, _Coder]:
    """How each field of a dataclass is written and read."""
    hints = get_type_hints(kind)
    return {field.name: _coder(hints[field.name]) for field in fields(kind) if not field.metadata.get("live")}


@lru_cache(maxsize=256)
def _sparse(kind: Any) -> dict[str, Any]:
    """The sparse fields of a dataclass by name."""
    return {field.name: field for field in fields(kind) if field.metadata.get("sparse")}


def _coder(hint: Any) -> _Coder:
    """How a value of a type is written and read."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _KNOWN:
        return _KNOWN[hint]
    if is_dataclass(hint):
        return encode, partial(decode, hint)  # type: ignore[arg-type]
    inner = _coder(_held(origin, args)) if origin is not None else _SETTING
    if inner is _SETTING:
        return _SETTING
    to_plain, from_plain = inner
    if origin is tuple:
        return lambda values: [to_plain(one) for one in values], lambda data: tuple(from_plain(one) for one in data)
    if origin in (Union, UnionType):
        return (
            lambda value: None if value is None else to_plain(value),
            lambda data: None if data is None else from_plain(data),
        )
    return (
        lambda values: {name: to_plain(one) for name, one in values.items()},
        lambda data: {name: from_plain(one) for name, one in data.items()},
    )


def _held(origin: Any, args: tuple[Any, ...]) -> Any:
    """What a tuple of one kind, an optional value or a mapping by name holds; `Any` for what else there is."""
    if origin in (Union, UnionType):
        kinds = [one for one in args if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else Any
    if origin is tuple:
        return args[0] if len(args) == 2 and args[1] is Ellipsis else Any
    return args[1] if isinstance(origin, type) and issubclass(origin, Mapping) else Any


def _default(field: Any) -> Any:
    return field.default_factory() if field.default is MISSING else field.default


def plain(value: Any) -> Any:
    """A value in types of strict JSON for readers, of which nothing is read back: what is not finite is None.

    >>> plain({"a": (1.0, float("nan")), "b": np.array([[1, 2]])})
    {'a': [1.0, None], 'b': [[1, 2]]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(value) if isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    return [plain(item) for item in value]


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
        f"{where} is not {wanted}: this is not what confide writes, so the file was altered",
        "ask for the original file",
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


def one_of_shape(*allowed: str | None) -> Shape:
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
    """Whether all are texts, and no instances of a derived class."""
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


#: Of a file: a histogram of 2^20 cells takes 8 MB.
FILE_CHARACTERS = 64 * 2**20
COUNT = 2**63 - 1
#: Of an array: no more axes.
DIMENSIONS = 8
FINITE = double()
_ANY_DOUBLE = double(finite=False)


def _list(value: Any, where: str) -> None:
    if not isinstance(value, list):
        raise refuse(where, "a list")


_ARRAYS = record(
    {"type": one_of_shape("float", "integer"), "shape": each(whole(0, COUNT), most=DIMENSIONS), "data": _list}
)


def array(value: Any, where: str) -> None:
    """An array: as many numbers as its shape says, doubles that are finite or integers."""
    _ARRAYS(value, where)
    if prod(value["shape"]) != len(value["data"]):
        raise refuse(where, "an array with as many numbers as its shape says")
    if value["type"] == "integer" and _all_whole(value["data"]):
        return
    check, fit = (FINITE, finite_doubles) if value["type"] == "float" else (whole_text, whole_texts)
    if fit(value["data"]):
        return
    for number in value["data"]:
        check(number, where)


def _all_whole(data: list[Any]) -> bool:
    """Whether all entries are what `whole_text` lets through, by way of the numbers: a table has millions."""
    if not all_texts(data) or max(map(len, data), default=0) > INTEGER_DIGITS:
        return False
    try:
        return list(map(str, map(int, data))) == data
    except ValueError:
        return False


def integers(value: Any, where: str) -> None:
    """An array of integers."""
    array(value, where)
    if value["type"] != "integer":
        raise refuse(where, "an array of integers")


def setting(value: Any, where: str) -> None:
    """What `pack` writes: null, text, true, false, whole numbers, doubles, fractions, and lists and mappings of them."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        TEXT(value, where)
    elif isinstance(value, int):
        if abs(value) >= 10**INTEGER_DIGITS:
            raise refuse(where, f"an integer of at most {INTEGER_DIGITS} digits")
    elif isinstance(value, list):
        _SETTING_LIST(value, where)
    elif isinstance(value, dict) and len(value) == 1 and isinstance(value.get("float"), str):
        _ANY_DOUBLE(value["float"], where)
    elif isinstance(value, dict) and len(value) == 1 and isinstance(value.get("fraction"), str):
        _ANY_FRACTION(value["fraction"], where)
    else:
        _SETTING_MAP(value, where)


_ANY_FRACTION = fraction()
_SETTING_LIST = each(setting, most=FILE_CHARACTERS)
_SETTING_MAP = named(setting, name=TEXT)


def fact(value: Any, where: str) -> None:
    """Plain strict JSON: how a synthetic table was made."""
    if isinstance(value, float):
        if not isfinite(value):
            raise refuse(where, "a finite number")
    elif isinstance(value, dict):
        named(fact, name=TEXT)(value, where)
    elif isinstance(value, list):
        each(fact)(value, where)
    else:
        setting(value, where)


def made(value: Any, where: str) -> None:
    """How a synthetic table was made: facts, of which some are used when several tables are combined."""
    _FACTS(value, where)
    for name, shape in _USED.items():
        if name in value:
            shape(value[name], f"{where}.{name}")


_FACTS = named(fact)
_USED: dict[str, Shape] = {"file": whole(1, COUNT), "drawn_line": BOOLEAN, "method": TEXT}
