"""Public facts of a column as people type them, in a terminal or a form: bounds, levels with their codes, codes of missing values.

They come from a codebook. Nothing here sees a record.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from confide.errors import SchemaError
from confide.schema.dates import day_of, pieces_of

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_BETWEEN = r"\.\.\.?|to|-|\u2013"
_BOUNDS = re.compile(rf"\s*({_NUMBER})\s*(?:,|;|{_BETWEEN})\s*({_NUMBER})\s*")
_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:{_BETWEEN})\s*({_NUMBER})\s*")
_DATE = r"\d{4}-\d\d-\d\d|\d\d?\.\d\d?\.\d{4}"
_DATES = re.compile(rf"\s*({_DATE})\s*(?:,|;|\.\.\.?|to|\s-\s|\u2013)\s*({_DATE})\s*")
# A label, in double quotes where it has a comma or another mark of the list.
_LABEL = r'"(?:[^"]|"")*"|[^",=][^,=]*|'
_LEVEL = re.compile(rf"\s*({_LABEL})\s*(?:(=)\s*({_LABEL})\s*)?(?:,|$)")


def typed_bounds(text: str, kind: str = "numeric") -> dict[str, Any]:
    """The entries low and high of a column of this kind: "numeric", "integer" or "date".

    >>> typed_bounds("18-90"), typed_bounds("-5 to 40.5"), typed_bounds("0, 9e4")
    ({'low': 18, 'high': 90}, {'low': -5, 'high': 40.5}, {'low': 0, 'high': 90000.0})
    >>> typed_bounds("1900-01-01 to 2006-12-31", "date"), typed_bounds("1.1.1900 to 31.12.2006", "date")
    ({'low': '1900-01-01', 'high': '2006-12-31'}, {'low': '1900-01-01', 'high': '2006-12-31'})
    """
    dates = kind == "date"
    found = (_DATES if dates else _BOUNDS).fullmatch(text.replace("\u2212", "-"))
    if found is None:
        example = "1900-01-01 to 2006-12-31, or 1.1.1900 to 31.12.2006" if dates else "18-90"
        raise SchemaError(f"{text!r} does not state two bounds", f"write them as {example}")
    read: Any = typed_day if dates else _number
    low, high = read(found[1]), read(found[2])
    if not low < high:
        raise SchemaError(f"{text!r} has its bounds the wrong way round", f"write {high} to {low}")
    return {"low": low, "high": high}


def typed_day(text: str) -> str:
    """A date as ISO text.

    >>> typed_day("1.7.2024"), typed_day("2024-07-01")
    ('2024-07-01', '2024-07-01')
    """
    parts = re.fullmatch(r"(\d\d?)\.(\d\d?)\.(\d{4})", text.strip())
    iso = text.strip() if parts is None else f"{parts[3]}-{parts[2]:0>2}-{parts[1]:0>2}"
    if day_of(iso) is None:
        raise SchemaError(f"{text!r} is not a date", "write it as 2024-07-01, or 1.7.2024")
    return iso


def typed_format(text: str) -> dict[str, Any]:
    """The entries format and century of a column of dates, from an example of each way in which they are written.

    >>> typed_format("31.12.1950"), typed_format("%d/%m/%Y, 1950-12-31"), typed_format("31.12.50 from 1930")
    ({'format': '%d.%m.%Y'}, {'format': ['%d/%m/%Y', '%Y-%m-%d']}, {'format': '%d.%m.%y', 'century': 1930})
    """
    plain, _, century = (part.strip() for part in text.partition(" from "))
    formats = [_format(part.strip()) for part in plain.split(",")]
    if any("%y" in one for one in formats) != century.isdecimal():
        raise SchemaError(
            f"{text!r} does not say which century its years are of", "write it as 31.12.1950, or 31.12.50 from 1930"
        )
    return {"format": formats[0] if len(formats) == 1 else formats} | ({"century": int(century)} if century else {})


def _format(text: str) -> str:
    found = re.fullmatch(r"(\d{1,4})([./ -])(\d{1,4})\2(\d{1,4})", text)
    if found is not None:
        parts = [found[at] for at in (1, 3, 4)]
        # a number tells which part it is: a year above 31, a day above 12
        fields = ["Y" if len(one) == 4 else "y" if int(one) > 31 else "d" if int(one) > 12 else "m" for one in parts]
        text = found[2].join(f"%{one}" for one in fields)
    try:
        pieces_of(text)
    except SchemaError:
        raise SchemaError(
            f"{found[0] if found else text!r} does not show how dates are written",
            "write an example whose day is above 12, as 31.12.1950, or its fields, as %d.%m.%Y",
        ) from None
    return text


def typed_levels(text: str) -> dict[str, Any]:
    """The entries levels and codes of a column of labels; codes where each level has one before it.

    >>> typed_levels("male, female"), typed_levels('1=yes, 2="yes, but"')
    ({'levels': ['male', 'female']}, {'levels': ['yes', 'yes, but'], 'codes': ['1', '2']})
    """
    parts: list[tuple[str, str, str]] = []
    place = 0
    while place < len(text):
        found = _LEVEL.match(text, place)
        if found is None:
            raise SchemaError(
                f"{text[place:]!r} is not a list of levels", 'put a level with a comma in quotes: 1=no, 2="yes, but"'
            )
        parts.append((_bare(found[1]), found[2] or "", _bare(found[3] or "")))
        place = found.end()
    parts = [part for part in parts if any(part)]
    coded = [bool(sign) for _, sign, _ in parts]
    if not any(coded):
        return {"levels": [level for level, _, _ in parts]}
    if not all(coded):
        raise SchemaError(f"{text!r} has codes for some levels alone", "write 1=male, 2=female, or male, female")
    return {"levels": [level for _, _, level in parts], "codes": [code for code, _, _ in parts]}


def stated_levels(labels: Mapping[str, str], missing: Container[Any]) -> str:
    """Value labels of a file as `typed_levels` reads them, without those of codes of missing values.

    >>> stated_levels({"1": "no", "2": "yes, but", "9": "?"}, ("9",))
    '1=no, 2="yes, but"'
    """
    return ", ".join(f"{_listed(code)}={_listed(text)}" for code, text in labels.items() if code not in missing)


def _listed(text: str) -> str:
    plain = re.fullmatch('[^",=]+', text) and text == text.strip()
    return text if plain else '"' + text.replace('"', '""') + '"'


def _bare(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text.strip()


def typed_codes(text: str) -> list[Any]:
    """Codes of missing values; a range of numbers is written "-9 to -1" or "90-99".

    >>> typed_codes("-99, n/a"), typed_codes("-9 to -1"), typed_codes("90-99")
    (['-99', 'n/a'], [{'from': -9, 'to': -1}], [{'from': 90, 'to': 99}])
    """
    codes: list[Any] = []
    for part in filter(None, map(str.strip, text.split(","))):
        ends = _RANGE.fullmatch(part.replace("\u2212", "-"))
        low, high = (0, 0) if ends is None else (_number(ends[1]), _number(ends[2]))
        codes.append({"from": low, "to": high} if low < high else part)
    return codes


def typed_marks(text: str) -> dict[str, str]:
    """Decimal mark and separator of thousands, from how 1234.5 is written.

    >>> typed_marks("1.234,5"), typed_marks("1234,5"), typed_marks("1234.5"), typed_marks("1,234.5")
    ({'decimal': ',', 'thousands': '.'}, {'decimal': ','}, {'decimal': '.'}, {'decimal': '.', 'thousands': ','})
    """
    found = re.fullmatch("1([., '\u2019\u00a0\u202f\u2009]?)234([.,])50?", text.strip())
    if found is None or found[1] == found[2]:
        raise SchemaError(f"{text!r} is not 1234.5 in another notation", "write it as 1234.5, 1234,5 or 1.234,5")
    group = {"\u2019": "'", **dict.fromkeys("\u00a0\u202f\u2009", " ")}.get(found[1], found[1])
    return {"decimal": found[2], **({"thousands": group} if group else {})}


def _number(text: str) -> int | float:
    # 20.000 is twenty to one reader, twenty thousand to another
    if re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", text):
        plain = text.replace(".", "")
        raise SchemaError(f"{text!r} may be {plain} or a number with decimals", f"write {plain}, or {text}0")
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
