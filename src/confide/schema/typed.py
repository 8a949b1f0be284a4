"""Public facts of a column as people type them, in a terminal or a form: bounds, levels with their codes, codes of missing values.

They come from a codebook. Nothing here sees a record.
"""

from __future__ import annotations

import re
from typing import Any

from confide.errors import SchemaError

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_BOUNDS = re.compile(rf"\s*({_NUMBER})\s*(?:,|;|\.\.\.?|to|-|\u2013)\s*({_NUMBER})\s*")
_DATES = re.compile(r"\s*(\d{4}-\d\d-\d\d)\s*(?:,|;|\.\.\.?|to|\s-\s|\u2013)\s*(\d{4}-\d\d-\d\d)\s*")
_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:\.\.\.?|to)\s*({_NUMBER})\s*")


def typed_bounds(text: str, kind: str = "numeric") -> dict[str, Any]:
    """The entries low and high of a column of this kind: "numeric", "integer" or "date".

    >>> typed_bounds("18-90"), typed_bounds("-5 to 40.5"), typed_bounds("0, 9e4")
    ({'low': 18, 'high': 90}, {'low': -5, 'high': 40.5}, {'low': 0, 'high': 90000.0})
    >>> typed_bounds("1900-01-01 to 2006-12-31", "date")
    {'low': '1900-01-01', 'high': '2006-12-31'}
    """
    found = (_DATES if kind == "date" else _BOUNDS).fullmatch(text.replace("\u2212", "-"))
    if found is None:
        example = "1900-01-01 to 2006-12-31" if kind == "date" else "18-90"
        raise SchemaError(f"{text!r} does not state two bounds", f"write them as {example}")
    read: Any = str if kind == "date" else _number
    low, high = read(found[1]), read(found[2])
    if not low < high:
        raise SchemaError(f"{text!r} has its bounds the wrong way round", f"write {high} to {low}")
    return {"low": low, "high": high}


def typed_levels(text: str) -> dict[str, Any]:
    """The entries levels and codes of a column of labels; codes where each level has one before it.

    >>> typed_levels("male, female"), typed_levels("1=male, 2=female")
    ({'levels': ['male', 'female']}, {'levels': ['male', 'female'], 'codes': ['1', '2']})
    """
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    coded = [bool(sign) for _, sign, _ in parts]
    if not any(coded):
        return {"levels": [level.strip() for level, _, _ in parts]}
    if not all(coded):
        raise SchemaError(f"{text!r} has codes for some levels alone", "write 1=male, 2=female, or male, female")
    return {"levels": [level.strip() for _, _, level in parts], "codes": [code.strip() for code, _, _ in parts]}


def typed_codes(text: str) -> list[Any]:
    """Codes of missing values; a range of numbers is written "-9 to -1".

    >>> typed_codes("-99, n/a"), typed_codes("-9 to -1")
    (['-99', 'n/a'], [{'from': -9, 'to': -1}])
    """
    codes: list[Any] = []
    for part in filter(None, map(str.strip, text.split(","))):
        ends = _RANGE.fullmatch(part)
        codes.append(part if ends is None else {"from": _number(ends[1]), "to": _number(ends[2])})
    return codes


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
