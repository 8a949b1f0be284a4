"""Columns of dates: bounds, the formats of dates in text, and how a text becomes a day.

A day is a whole number: days since 1970-01-01. A format is a few fixed layouts of bytes, because day and month have
one digit or two. Texts are read layout after layout, and what a cell gives depends on that cell alone. Where a digit
stands beside a field, or two fields meet, day and month have two digits: `1112024` could be two dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from confide.errors import SchemaError
from confide.schema.columns import Integer, grid_facts
from confide.schema.missing import code_ranges
from confide.schema.settings import PUBLIC, Provenance

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]

_ZERO = date(1970, 1, 1).toordinal()
#: ISO 8601, for texts where a schema states no format.
ISO = "%Y-%m-%d"
# A time of day behind a date, without a zone.
_TIME = re.compile(rb"([0-9-]{8,10})[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?")
_PARTS = re.compile("%(.)|(.)", re.DOTALL)
# A format is read in a few places of each text; longer ones are mistakes.
_LONGEST, _MOST_FORMATS = 40, 20


def day_of(text: str) -> int | None:
    """The day that an ISO text names, None where it names none.

    >>> day_of("1970-01-02"), day_of("1970-02-30"), day_of("1970")
    (1, None, None)
    """
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return date.fromisoformat(text).toordinal() - _ZERO
    except ValueError:
        return None


def day_text(day: float) -> str:
    """A day as ISO text; one beyond the calendar as a number.

    >>> day_text(1.0)
    '1970-01-02'
    """
    try:
        return date.fromordinal(int(day) + _ZERO).isoformat()
    except (ValueError, OverflowError):
        return f"{day:g}"


# formats --------------------------------------------------------------------------------------------------------------

#: A format as pieces: ("d", 1, 2) is a day of one digit or two, ("", "."), a literal.
_Piece: TypeAlias = tuple[str, Any]


@lru_cache(maxsize=64)
def pieces_of(text: str) -> tuple[_Piece, ...]:
    """The fields of a format with their possible numbers of digits, and the text between them.

    Raises `SchemaError` for a format that no date can be read with.
    """
    example = 'write format="%d.%m.%Y", of %d, %m, %Y or %y and the characters between them'
    if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST:
        raise SchemaError(f"Date: a format is a text of at most {_LONGEST} characters, got {text!r}", example)
    if re.search("%(?![dmYy])", text):
        raise SchemaError(f"Date: the format {text!r} has another field than %d, %m, %Y and %y", example)
    found = [(one[1] or "", one[2] or "") for one in _PARTS.finditer(text)]
    fields = "".join(name for name, _ in found)
    if sorted(fields.lower()) != ["d", "m", "y"]:
        raise SchemaError(f"Date: the format {text!r} must have day, month and year, each once", example)
    pieces: list[_Piece] = []
    for at, (name, literal) in enumerate(found):
        beside = found[max(at - 1, 0) : at] + found[at + 1 : at + 2]
        meets = any(other or next_to.isdigit() for other, next_to in beside)
        if not name:
            pieces.append(("", literal.encode()))
        elif name == "Y":
            pieces.append(("Y", (4,)))
        else:
            pieces.append((name, (2,) if meets or name == "y" else (2, 1)))
    return tuple(pieces)


@lru_cache(maxsize=256)
def _layouts(text: str) -> dict[int, list[list[tuple[str, int, Any]]]]:
    """The layouts of a format by their number of bytes: where each field begins and how many digits, which bytes stand between."""
    pieces, found = pieces_of(text), dict[int, list[list[tuple[str, int, Any]]]]()
    for widths in product(*(choices if name else (len(choices),) for name, choices in pieces)):
        place, layout = 0, []
        for (name, what), width in zip(pieces, widths, strict=True):
            layout.append((name, place, width if name else what))
            place += width
        found.setdefault(place, []).append(layout)
    return found


def days_in(data: NDArray[np.uint8], starts: Whole, ends: Whole, formats: Sequence[str], century: int | None) -> Floats:
    """The day of each text in some bytes, NaN where no format reads it; the first that does counts.

    >>> texts = b"31.12.1969 1.1.70 31.2.70"
    >>> data = np.frombuffer(texts, dtype=np.uint8)
    >>> days_in(data, np.array([0, 11, 18]), np.array([10, 17, 25]), ["%d.%m.%Y", "%d.%m.%y"], 1930).tolist()
    [-1.0, 0.0, nan]
    """
    days = np.full(len(starts), np.nan)
    lengths = ends - starts
    for text in formats:
        for length, layouts in _layouts(text).items():
            (at,) = np.nonzero((lengths == length) & np.isnan(days))
            if not at.size:
                continue
            cells = data[starts[at][:, None] + np.arange(length)]
            for layout in layouts:
                days[at] = np.where(np.isnan(days[at]), _in_layout(cells, layout, century), days[at])
    return days


def _in_layout(cells: NDArray[np.uint8], layout: list[tuple[str, int, Any]], century: int | None) -> Floats:
    fits = np.ones(len(cells), dtype=bool)
    parts: dict[str, Whole] = {}
    for name, place, what in layout:
        if not name:
            for offset, byte in enumerate(what):
                fits &= cells[:, place + offset] == byte
            continue
        value = np.zeros(len(cells), dtype=np.int64)
        for column in range(place, place + what):
            digit = cells[:, column] - np.uint8(48)  # below "0" it wraps around
            fits &= digit <= 9
            value = 10 * value + digit
        parts[name] = value
    if "y" in parts:
        assert century is not None
        parts["Y"] = century + (parts["y"] - century) % 100
    return _days(parts["Y"], parts["m"], parts["d"], fits)


def _days(year: Whole, month: Whole, day: Whole, fits: NDArray[np.bool_]) -> Floats:
    """Days since 1970-01-01, NaN where there is no such day."""
    fits = fits & (year >= 1) & (month >= 1) & (month <= 12)
    months = np.where(fits, (year - 1970) * 12 + month - 1, 0)
    first = first_days(months)
    fits &= (day >= 1) & (day <= first_days(months + 1) - first)
    return np.where(fits, first + day - 1, np.nan)


def first_days(months: Whole) -> Whole:
    """The first day of months that are counted from January 1970.

    >>> first_days(np.array([0, 1, -1])).tolist()
    [0, 31, -31]
    """
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def without_time(text: bytes) -> bytes:
    """An ISO text without its time of day, if it has one and no zone.

    >>> without_time(b"2024-07-01T12:30"), without_time(b"2024-07-01T12:30Z")
    (b'2024-07-01', b'2024-07-01T12:30Z')
    """
    found = _TIME.fullmatch(text)
    return found[1] if found else text


def day_of_cell(cell: object) -> float:
    """The day of a date or datetime of Python, NumPy or pandas as it is written; NaN for anything else, and for one with a time zone.

    >>> day_of_cell(date(1970, 1, 2)), day_of_cell(np.datetime64("1970-01-02T23:59")), day_of_cell(1)
    (1.0, 1.0, nan)
    """
    if isinstance(cell, np.datetime64):
        return float("nan") if np.isnat(cell) else float(cell.astype("datetime64[D]").astype(np.int64))
    if not isinstance(cell, date) or (isinstance(cell, datetime) and cell.tzinfo is not None):
        return float("nan")
    try:
        return float(cell.toordinal() - _ZERO)
    except (ValueError, TypeError, AttributeError):  # pandas' mark of a missing time is a datetime
        return float("nan")


def moments(values: NDArray[Any]) -> Floats:
    """The days of an array of NumPy datetimes, NaN where there is none."""
    days = values.astype("datetime64[D]")
    return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))


# the column -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False, repr=False)
class Date(Integer):
    """A column of dates with public bounds.

    Its values are whole days. Dates outside the bounds are moved to the nearest
    one. In formulas a date is the number of days since 1970-01-01. Conditions
    compare it with a date in quotes, as in ``where="birth >= '1990-01-01'"``.

    Parameters
    ----------
    low, high : str or date
        Public bounds, such as ``"1900-01-01"``. A float is a whole number of
        days since 1970-01-01.
    format : str or list of str, optional
        How dates are written in text, such as ``"%d.%m.%Y"``: %d, %m, and %Y or
        %y, with the characters between them. Left out: ISO 8601,
        ``"2024-07-01"``. Of several formats the first that fits counts.
    century : int, optional
        First year that two digits mean, required with %y. With 1930, 30 is 1930
        and 29 is 2029.
    epoch : str or date, optional
        The date that the number 0 means, for cells that hold numbers of days:
        ``"1899-12-30"`` for Excel, ``"1960-01-01"`` for SAS. Left out: numbers
        are missing.
    on_missing : str, default "drop"
        "drop" excludes the record; "midpoint" or a date within the bounds
        stands for a missing value.
    provenance : Provenance, optional
        Where the bounds come from.
    typical : (str, str) or Typical, optional
        Between which dates about 95% of the values lie, from public knowledge.
    missing : list of str or number, optional
        Codes for "no answer", such as ``["31.12.9999"]``.

    Raises
    ------
    SchemaError
        The bounds, formats or another entry are not allowed.

    Examples
    --------
    >>> column = Date("1900-01-01", "2006-12-31", format="%d.%m.%Y")
    >>> column.steps, column.low, column.days_of(["01.01.1970", "1.2.1970", "31.2.1970"]).tolist()
    (39081, -25567.0, [0.0, 31.0, nan])
    """

    format: tuple[str, ...] | None = field(default=None, kw_only=True)
    century: int | None = field(default=None, kw_only=True)
    epoch: str | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "date"

    def __init__(
        self,
        low: str | date | float,
        high: str | date | float,
        *,
        format: str | Sequence[str] | None = None,
        century: int | None = None,
        epoch: str | date | None = None,
        on_missing: str | date | float = "drop",
        provenance: Provenance = PUBLIC,
        typical: Any = None,
        missing: Sequence[Any] | None = None,
    ) -> None:
        given = {"low": low, "high": high, "on_missing": on_missing, "provenance": provenance}
        for name, value in {**given, "steps": 0, "typical": self._typical(typical), "missing": missing}.items():
            self._set(name, value)
        self._set("format", _checked_formats(format))
        self._set("century", _checked_century(century, self.formats))
        self._set("epoch", None if epoch is None else day_text(self._bound("epoch", epoch)))
        ends = [self._bound(name, end) for name, end in (("low", low), ("high", high))]
        if ends[0] >= ends[1]:
            raise SchemaError(
                f"Date: low must be before high, got low={day_text(ends[0])}, high={day_text(ends[1])}",
                f"write {self._example}",
            )
        self.__post_init__()

    def __repr__(self) -> str:
        more = {"format": self.format, "century": self.century, "epoch": self.epoch}
        rule = self.on_missing if isinstance(self.on_missing, str) else day_text(self.on_missing)
        shown = [f"{name}={given!r}" for name, given in more.items() if given is not None]
        shown += [f"on_missing={rule!r}"] if rule != "drop" else []
        return f"Date({', '.join([repr(self.said(self.low)), repr(self.said(self.high)), *shown])})"

    @property
    def _example(self) -> str:
        return 'cf.Date("1900-01-01", "2006-12-31")'

    @property
    def _typical_example(self) -> str:
        quarter = (self.high - self.low) / 4
        ends = [repr(self.said(end)) for end in (self.low + quarter, self.high - quarter)]
        return f"write typical=({', '.join(ends)})"

    def _bound(self, name: str, value: Any) -> float:
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            day: int | None = int(value)
        elif isinstance(value, str):
            day = day_of(value)
        else:
            day = value.toordinal() - _ZERO if isinstance(value, date) else None
        if day is None or not 1 <= day + _ZERO <= date.max.toordinal():
            raise SchemaError(
                f'Date: {name} must be a date such as "1900-01-01", got {value!r}', f"write {self._example}"
            )
        return float(day)

    def _missing_rule(self, rule: Any) -> str | float:
        if rule in ("drop", "midpoint"):
            return cast("str", rule)
        try:
            day = self._bound("on_missing", rule)
        except SchemaError:
            day = np.nan
        if self.low <= day <= self.high:
            return day
        raise SchemaError(
            f"Date: on_missing must be 'drop', 'midpoint' or a date from {self.said(self.low)} to {self.said(self.high)}, got {rule!r}",
            'write on_missing="drop"',
        )

    def _typical(self, given: Any) -> Any:
        """Dates as days, in each form in which a spread is given."""
        if isinstance(given, (list, tuple)):
            return [self._bound("typical", end) for end in given]
        if isinstance(given, Mapping):
            return {
                name: self._bound("typical", end) if name in ("low", "high") else end for name, end in given.items()
            }
        return given

    def said(self, value: float) -> str:
        """A value as messages and labels have it: the date.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31").said(0.0)
        '1970-01-01'
        """
        return day_text(value)

    def point(self, value: Any) -> float | None:
        """The day that a constant of a formula names; None for anything but a date in quotes.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31").point("1970-01-02"), Date("1900-01-01", "2006-12-31").point(2)
        (1.0, None)
        """
        day = day_of(value) if isinstance(value, str) else None
        return None if day is None else float(day)

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of dates in text.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31").formats
        ('%Y-%m-%d',)
        """
        return self.format or (ISO,)

    @cached_property
    def epoch_day(self) -> float | None:
        """The day that the number 0 means.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31", epoch="1960-01-01").epoch_day
        -3653.0
        """
        return None if self.epoch is None else float(cast("int", day_of(self.epoch)))

    @cached_property
    def missing_days(self) -> Floats:
        """The days that codes of missing values mean, by a format and as ISO text: shape (2, codes), NaN for none.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31", missing=["9999-12-31", "-9"]).missing_days.tolist()
        [[2932896.0, nan], [2932896.0, nan]]
        """
        texts = [code if isinstance(code, str) else "" for code in self.missing or ()]
        return np.stack([self._in_text(texts), self._in_text(texts, (ISO,))])

    def days_of_numbers(self, values: Floats) -> Floats:
        """Give the days that numbers mean by `epoch`.

        Parameters
        ----------
        values : array of float
            Numbers of days; a part of a day does not count.

        Returns
        -------
        array of float
            Days since 1970-01-01; NaN without an epoch, and for codes of missing
            values.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31", epoch="1899-12-30").days_of_numbers(np.array([25569.75])).tolist()
        [0.0]
        """
        if self.epoch_day is None:
            return np.full(len(values), np.nan)
        with np.errstate(all="ignore"):
            days = np.floor(values) + self.epoch_day
            for low, high in code_ranges(self.missing or ()):
                days[(values >= low) & (values <= high)] = np.nan
        return days

    def read_bytes(self, data: NDArray[np.uint8], starts: Whole, ends: Whole) -> Floats:
        """Give the days of texts in a buffer, as they stand there.

        Parameters
        ----------
        data : array of uint8
            The bytes of all texts.
        starts, ends : array of int
            Where each text begins and ends.

        Returns
        -------
        array of float
            Days since 1970-01-01; NaN where no format reads the text.

        Examples
        --------
        >>> data = np.frombuffer(b"1970-01-02", dtype=np.uint8)
        >>> Date("1900-01-01", "2006-12-31").read_bytes(data, np.array([0]), np.array([10])).tolist()
        [1.0]
        """
        return days_in(data, starts, ends, self.formats, self.century)

    def _in_text(self, texts: Iterable[str], formats: Sequence[str] | None = None) -> Floats:
        """Days of texts, blanks around them left out."""
        raw = [text.strip().encode("utf-8", "replace") for text in texts]
        raw = [without_time(text) for text in raw] if self.format is None else raw
        ends = np.cumsum([len(text) for text in raw], dtype=np.int64) if raw else np.zeros(0, dtype=np.int64)
        data = np.frombuffer(b"".join(raw), dtype=np.uint8)
        starts = np.concatenate([np.zeros(min(len(raw), 1), dtype=np.int64), ends[:-1]])
        return days_in(data, starts, ends, formats or self.formats, self.century)

    def days_of(self, cells: Any) -> Floats:
        """Give the days of cells of a public frame.

        Parameters
        ----------
        cells : sequence
            Dates of Python, NumPy or pandas, texts, or numbers, which are days
            since 1970-01-01 as in formulas.

        Returns
        -------
        array of float
            Days since 1970-01-01; NaN where a cell holds none.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31").days_of([date(1970, 1, 2), "1970-01-03", 3.0, None]).tolist()
        [1.0, 2.0, 3.0, nan]
        """
        held = np.asarray(cells.to_numpy() if hasattr(cells, "to_numpy") else cells)
        if held.dtype.kind == "M":
            days = moments(held)
        elif held.dtype.kind in "iuf":
            days = held.astype(np.float64)
        else:
            each = held.astype(object).tolist() if held.ndim == 1 else []
            days = np.array([float(one) if isinstance(one, float) else day_of_cell(one) for one in each])
            texts = [at for at, one in enumerate(each) if isinstance(one, str)]
            days[texts] = self._in_text([each[at] for at in texts])
        return np.where(np.isin(days, self.missing_days), np.nan, days)

    def text_of(self, days: Floats) -> list[str]:
        """Give days as texts in the first format.

        Parameters
        ----------
        days : array of float
            Days since 1970-01-01, none missing.

        Returns
        -------
        list of str
            The texts.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31", format="%d.%m.%y", century=1930).text_of(np.array([0.0, 31.0]))
        ['01.01.70', '01.02.70']
        """
        return [_written(int(day), self.formats[0]) for day in np.asarray(days).tolist()]

    def to_dict(self) -> dict[str, Any]:
        """Give the column as JSON types; formats, century and epoch only where given.

        Returns
        -------
        dict
            What `from_dict` reads back.

        Examples
        --------
        >>> Date("1900-01-01", "2006-12-31", epoch="1960-01-01").to_dict()["epoch"]
        '1960-01-01'
        """
        own = {"format": self.format and list(self.format), "century": self.century, "epoch": self.epoch}
        return {**super().to_dict(), **{name: given for name, given in own.items() if given is not None}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Date:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Date
            The column.

        Raises
        ------
        SchemaError
            The mapping is damaged.

        Examples
        --------
        >>> column = Date("1900-01-01", "2006-12-31", format="%d.%m.%Y")
        >>> Date.from_dict(column.to_dict()) == column
        True
        """
        low, high, facts = grid_facts(data)
        facts |= {name: data.get(name) for name in ("format", "century", "epoch")}
        column = cls(low, high, **facts)
        column.check_scale(data)
        return column


def _written(day: int, text: str) -> str:
    """A day in a format.

    >>> _written(0, "%d.%m.%Y")
    '01.01.1970'
    """
    given = date.fromordinal(day + _ZERO)
    fields = {
        "%d": f"{given.day:02d}",
        "%m": f"{given.month:02d}",
        "%Y": f"{given.year:04d}",
        "%y": f"{given.year % 100:02d}",
    }
    return re.sub("%[dmYy]", lambda one: fields[one[0]], text)


def _checked_formats(given: Any) -> tuple[str, ...] | None:
    """Formats as a tuple; `SchemaError` where one cannot be read, or where two read one text as two dates."""
    if given is None:
        return None
    formats = (given,) if isinstance(given, str) else given
    fits = isinstance(formats, Sequence) and 0 < len(formats) <= _MOST_FORMATS
    if not fits or not all(isinstance(one, str) for one in formats):
        raise SchemaError(
            f"Date: format must be a text, or a list of 1 to {_MOST_FORMATS} texts, got {given!r}",
            'write format="%d.%m.%Y"',
        )
    for one in formats:
        pieces_of(one)
    for one, other in combinations(formats, 2):
        if _order(one) != _order(other) and _same_look(one, other):
            raise SchemaError(
                f"Date: a text such as {_written(12_000, one)!r} is one date by {one!r} and another by {other!r}",
                "name the format of this column alone",
            )
        if one == other:
            raise SchemaError(f"Date: the format {one!r} is there twice", "write it once")
    return tuple(formats)


def _order(text: str) -> list[str]:
    return [name for name, _ in pieces_of(text) if name]


def _same_look(one: str, other: str) -> bool:
    """Whether some text fits both: as many bytes, and at each place a digit in both or the same byte in both."""
    return bool(_looks(one) & _looks(other))


def _looks(text: str) -> set[bytes]:
    found = set()
    for layouts in _layouts(text).values():
        for layout in layouts:
            look = b"".join(b"0" * what if name else what for name, _, what in layout)
            found.add(re.sub(b"[0-9]", b"0", look))
    return found


def _checked_century(given: Any, formats: Sequence[str]) -> int | None:
    short = [one for one in formats if "%y" in one]
    if given is None and not short:
        return None
    if not short:
        raise SchemaError("Date: century is for years of two digits, %y, and no format has them", "leave century out")
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    if not whole or not 1 <= given <= 9900:
        raise SchemaError(
            f"Date: the format {short[0]!r} has years of two digits, so century must be the first year that they mean, got {given!r}",
            "write century=1930: 30 is then 1930, and 29 is 2029",
        )
    return int(given)
