"""Cells of columns of dates to days since 1970-01-01, NaN where there is none; which physical types these columns may have.

Typed dates of any source are read as they are, of a date with a time the date part as it is written. Text is read by
the formats of the schema, by ISO 8601 where it states none. Numbers are dates only where the schema states what 0 means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.errors import SchemaError
from confide.schema.dates import Date, day_of_cell, moments
from confide.sources.coding import (
    EMPTY,
    HOLDS,
    MARKS,
    Cells,
    CodeOf,
    Floats,
    Reader,
    as_floats,
    from_arrow,
    is_readable,
    is_text,
    is_typed_date,
    matches_type,
    missing_of,
    real,
    text_numbers,
    to_arrow,
    valid_text,
)

# A time of day behind an ISO date, without a zone.
_TIME = r"^([0-9-]{8,10})[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?$"
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def check_type(place: str, name: str, kind: Any, column: Date) -> None:
    """Raise `SchemaError` where no cell of this physical type could be a date of the column."""
    if matches_type(kind, "", (lambda one: pa.types.is_timestamp(one) and one.tz is not None,)):
        raise SchemaError(
            f"{place}: column {name!r} has the type {kind}, and a moment with a time zone is one date here and another there",
            f"turn it into a date first, as date({name}) in a query does, or .dt.tz_localize(None) in pandas",
        )
    if is_typed_date(kind) or matches_type(kind, "OUT", (is_text, pa.types.is_null)):
        return
    if not is_readable(kind) or matches_type(kind, "b", (pa.types.is_boolean,)):
        raise SchemaError(
            f"{place}: column {name!r} has the type {kind}, and a column of dates holds dates or text",
            "turn it into dates first, or declare another kind",
        )
    if column.epoch is None:
        raise SchemaError(
            f"{place}: column {name!r} has the type {kind}, and a number is a date only where the schema says what 0 means",
            f'write {name!r}: cf.Date(..., epoch="1899-12-30") for days as Excel counts them, or turn it into dates first',
        )


class Dates(Reader):
    """Cells of a column of dates as days since 1970-01-01, NaN where missing. marks: of numbers in text; coded: whether days that are codes
    of missing values are missing.

    >>> Dates(Date("1900-01-01", "2006-12-31"))(pa.array(["1970-01-02", "1970-02-30", None])).tolist()
    [1.0, nan, nan]
    """

    missing = float("nan")

    def __init__(self, column: Date, marks: tuple[str, str] = MARKS, coded: bool = True) -> None:
        super().__init__(marks)
        self._column, known = column, column.missing_days
        self._codes = known[~np.isnan(known)] if coded else np.empty(0)

    def __call__(self, cells: Cells) -> Floats:
        days = super().__call__(cells)
        return np.where(np.isin(days, self._codes), np.nan, days) if len(self._codes) else days

    def numbers(self, values: Floats) -> Floats:
        return self._column.days_of_numbers(values)

    def integers(self, cells: pa.Array) -> Floats:
        return self.numbers(as_floats(cells))

    def booleans(self, values: Floats) -> Floats:
        return np.full(len(values), np.nan)

    def text(self, cells: pa.Array, marks: tuple[str, str]) -> Floats:
        cells = valid_text(cells)
        days = self._written(cells)
        (rest,) = np.nonzero(np.isnan(days) & (from_arrow(pc.binary_length(cells), 0) > 0))
        if rest.size:
            trimmed = pc.utf8_trim_whitespace(cells.take(to_arrow(rest)))
            if self._column.format is None:
                trimmed = pc.replace_substring_regex(trimmed, _TIME, r"\1")
            again = self._written(trimmed)
            if self._column.epoch is not None:
                again = np.where(np.isnan(again), self.numbers(text_numbers(trimmed, marks)), again)
            days[rest] = again
        return days

    def _written(self, cells: pa.Array) -> Floats:
        """Days of texts as they stand, by the formats; cells are valid UTF-8."""
        if not len(cells):
            return np.zeros(0)
        _, offsets, data = cells.buffers()
        width = np.dtype(np.int64 if pa.types.is_large_string(cells.type) else np.int32)
        places = np.frombuffer(offsets, width, len(cells) + 1, cells.offset * width.itemsize).astype(np.int64)
        starts, ends = places[:-1], places[1:]
        if cells.null_count:
            ends = np.where(missing_of(cells), starts, ends)
        return self._column.read_bytes(np.frombuffer(data or b"", np.uint8), starts, ends)

    def cell(self, cell: object) -> float:
        day = day_of_cell(cell)
        return float(self.numbers(np.array([real(cell)]))[0]) if np.isnan(day) and not isinstance(cell, bool) else day

    def _numpy(self, cells: NDArray[Any]) -> Floats:
        return moments(cells) if cells.dtype.kind == "M" else super()._numpy(cells)

    def _arrow(self, cells: pa.Array) -> Floats:
        return (
            typed_days(cells)
            if is_typed_date(cells.type) and not pa.types.is_dictionary(cells.type)
            else super()._arrow(cells)
        )


def typed_days(cells: pa.Array) -> Floats:
    """Days of Arrow dates and timestamps, NaN where there is none, and of a moment with a time zone."""
    kind = cells.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return np.full(len(cells), np.nan)
    per = 1 if pa.types.is_date32(kind) else _PER_DAY[kind.unit if pa.types.is_timestamp(kind) else "ms"]
    whole = cells.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(kind) else cells.cast(pa.int64())
    days = (from_arrow(whole, 0) // per).astype(np.float64)
    if cells.null_count:
        days[missing_of(cells)] = np.nan
    return days


class CodeOfDate(CodeOf):
    """The same of a column of dates, where a code may be a day however it is written.

    >>> CodeOfDate(Date("1900-01-01", "2006-12-31", missing=["9999-12-31"]))(pa.array(["9999-12-31", "31.2.", " "])).tolist()
    [0.0, -1.0, -2.0]
    """

    def __init__(self, column: Date, marks: tuple[str, str] = MARKS) -> None:
        super().__init__(column, marks)
        self._days, self._known = Dates(column, marks, coded=False), column.missing_days

    def __call__(self, cells: Cells) -> Floats:
        typed = is_typed_date(getattr(cells, "dtype", getattr(cells, "type", None)))
        days = self._days(cells) if typed or self._known.size else np.empty(0)
        found = np.where(np.isnan(days), EMPTY, HOLDS) if typed else super().__call__(cells)
        for at, known in enumerate(self._known.T):
            found[(found == HOLDS) & np.isin(days, known)] = at
        return found
