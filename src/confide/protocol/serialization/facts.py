"""What numbers, arrays and settings look like in a file."""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

from confide.protocol.serialization.shapes import (
    BOOLEAN,
    INTEGER_DIGITS,
    TEXT,
    Shape,
    all_texts,
    double,
    each,
    finite_doubles,
    fraction,
    named,
    one_of,
    record,
    refuse,
    whole,
    whole_text,
    whole_texts,
)

__all__ = ["COUNT", "DIMENSIONS", "FILE_CHARACTERS", "FINITE", "array", "integers", "made", "setting"]

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


_ARRAYS = record({"type": one_of("float", "integer"), "shape": each(whole(0, COUNT), most=DIMENSIONS), "data": _list})


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
