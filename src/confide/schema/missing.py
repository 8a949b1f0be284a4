"""Codes that stand for "no answer": texts, numbers and ranges of numbers that are read as missing.

A code is one whatever it is written like: in a column of numbers -99, -99.0 and a typed -99 are the code "-99". Codes are public, and
they are looked at before bounds and levels, in each cell separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from confide.errors import SchemaError
from confide.schema.settings import is_number, is_unicode

#: A text, or the ends of a closed range of numbers.
MissingCode: TypeAlias = str | tuple[float, float]
_MOST = 1000
_EXAMPLE = 'write missing=["-99", "n/a"], with codes from the codebook'


def missing_codes(owner: str, given: Any) -> tuple[MissingCode, ...] | None:
    """Codes as they are kept: None where none were given, numbers as their text.

    >>> missing_codes("Numeric", [-99, "n/a", {"from": -9, "to": -1}])
    ('-99', 'n/a', (-9.0, -1.0))
    """
    if given is None:
        return None
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
        raise SchemaError(f"{owner}: missing must be a list of codes, got {given!r}", _EXAMPLE)
    if len(given) > _MOST:
        raise SchemaError(
            f"{owner}: at most {_MOST:,} codes of missing values are allowed, got {len(given):,}", _EXAMPLE
        )
    codes = tuple(_code(owner, one) for one in given)
    twice = [code for code in codes if codes.count(code) > 1]
    if twice:
        raise SchemaError(f"{owner}: the code {twice[0]!r} of missing values is there twice", "write it once")
    return codes


def _code(owner: str, code: Any) -> MissingCode:
    if isinstance(code, str) and code.strip() and is_unicode(code):
        return code.strip()
    if is_number(code):
        return str(int(code)) if float(code).is_integer() else repr(float(code))
    ends = [code.get("from"), code.get("to")] if isinstance(code, Mapping) and set(code) == {"from", "to"} else code
    if isinstance(ends, (list, tuple)) and len(ends) == 2 and all(map(is_number, ends)) and ends[0] <= ends[1]:
        return float(ends[0]), float(ends[1])
    raise SchemaError(
        f"{owner}: a code of missing values is a text that is not blank, a number or a range of numbers, got {code!r}",
        "write missing=[-99, {'from': -9, 'to': -1}]; an empty cell is missing without a code",
    )


def codes_to_json(codes: Sequence[MissingCode]) -> list[Any]:
    """JSON types, with floats as `float.hex` texts.

    >>> codes_to_json(("n/a", (-9.0, -1.0)))
    ['n/a', ['-0x1.2000000000000p+3', '-0x1.0000000000000p+0']]
    """
    return [code if isinstance(code, str) else [end.hex() for end in code] for code in codes]


def codes_from_json(data: Any) -> list[Any]:
    """The inverse of `codes_to_json`; `SchemaError` when it is damaged.

    >>> codes_from_json(codes_to_json(["n/a", (-9.0, -1.0)]))
    ['n/a', (-9.0, -1.0)]
    """
    try:
        return [code if isinstance(code, str) else (float.fromhex(code[0]), float.fromhex(code[1])) for code in data]
    except (TypeError, ValueError, IndexError, OverflowError):
        raise SchemaError(
            "codes of missing values are texts, or two floats in hexadecimal", "write the column with to_dict()"
        ) from None


def codes_to_settings(codes: Sequence[MissingCode]) -> list[Any]:
    """As a TOML file has them.

    >>> codes_to_settings(("n/a", (-9.0, -1.0)))
    ['n/a', {'from': -9.0, 'to': -1.0}]
    """
    return [code if isinstance(code, str) else {"from": code[0], "to": code[1]} for code in codes]


def code_text(code: MissingCode) -> str:
    """A code as people read it.

    >>> code_text("-99"), code_text((-9.0, -1.0))
    ('-99', '-9 to -1')
    """
    return code if isinstance(code, str) else f"{code[0]:g} to {code[1]:g}"


def code_ranges(codes: Sequence[MissingCode]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The closed ranges of numbers that codes mean, shape (ranges, 2); that of a number has one point.

    >>> code_ranges(("\u221299", "n/a", (-9.0, -1.0))).tolist()
    [[-99.0, -99.0], [-9.0, -1.0]]
    """
    found = [(code, code) if isinstance(code, str) else code for code in codes]
    return np.array([ends for ends in map(_numbers, found) if ends is not None], dtype=np.float64).reshape(-1, 2)


def _numbers(ends: tuple[Any, Any]) -> tuple[float, float] | None:
    low, high = (end.replace("\u2212", "-") if isinstance(end, str) else end for end in ends)
    if isinstance(low, str) and ("_" in low or not low.isascii()):
        return None
    try:
        low, high = float(low), float(high)
    except ValueError:
        return None
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None
