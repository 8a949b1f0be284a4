"""Files of statistics packages, by pyreadstat: Stata (dta), SPSS (sav, zsav, por) and SAS transport files (xpt).

Rows are read in portions. Numbers are numbers and text is text. User-missing values of SPSS, .a to .z of Stata and special missing values
of SAS are missing. Value labels are not applied: cells stay codes, and the schema says what a code means.

Dates become dates here, because the reader stops at a date beyond the year 9999, and one cell must not end a pass. That date is missing.
Times of day are the seconds that the file holds.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import count, takewhile
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from confide.errors import SourceError
from confide.schema.draft import Field
from confide.schema.layout import FileLayout
from confide.sources.coding import Block, Cells, Mark, Part, Piece, cut, guarded

_READERS = {"dta": "read_dta", "sav": "read_sav", "zsav": "read_sav", "por": "read_por", "xpt": "read_xport"}
_PACKAGES = {"dta": "a Stata", "sav": "an SPSS", "zsav": "an SPSS", "por": "an SPSS", "xpt": "a SAS transport"}
# cells of one portion, which are Python objects of some 40 bytes, and the most rows
_CELLS, _ROWS = 1 << 18, 1 << 16
# in it every byte is a character: the reader stops at a byte that an encoding does not have
_BYTES = "ISO-8859-1"
_EPOCH = date(1970, 1, 1).toordinal()
_LEAST, _MOST = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH


class _Calendar(NamedTuple):
    """How a package writes days and moments: names of its formats, units of a day in both, and the day that is 0."""

    days: re.Pattern[str]
    moments: re.Pattern[str]
    of_days: float
    of_moments: float
    zero: date


_SPSS = _Calendar(
    re.compile(r"(?:[AEJS]?DATE|MOYR|QYR|WKYR)[\d.]*"),
    re.compile(r"(?:DATETIME|YMDHMS)[\d.]*"),
    86_400.0,
    86_400.0,
    date(1582, 10, 14),
)
_STATA = _Calendar(re.compile(r"%-?t?d.*"), re.compile(r"%-?t[cC].*"), 1.0, 86_400_000.0, date(1960, 1, 1))
_SAS = _Calendar(
    re.compile(
        r"(?:DATE|DAY|DOWNAME|JULDAY|JULIAN|MONTH|MONNAME|MONYY|NLDATE|QTRR?|WEEKDAT[EX]|WEEKDAY|WORDDAT[EX]|YEAR|[BEI]S?8601DA|"
        r"(?:DDMMYY|MMDDYY|YYMMDD|MMYY|YYMM|YYQR?)[BCDNPS]?|YYMON|YYWEEK[UVW]|EURDF\w*|MINGUO|NENGO|PDJUL[GI])[\d.]*"
    ),
    re.compile(r"(?:DATETIME|DATEAMPM|MDYAMPM|NLDATM|DTDATE|DTMONYY|DTWKDATX|DTYEAR|DTYYQC|[BEI]S?8601D[TZ])[\d.]*"),
    1.0,
    86_400.0,
    date(1960, 1, 1),
)
_CALENDARS = {"dta": _STATA, "xpt": _SAS}


@dataclass(frozen=True)
class StatisticsPart(Part):
    """One file of a statistics package: its metadata, read when it was opened. encoding: of its text; None where Python has none."""

    mark: Mark
    ending: str
    encoding: str | None
    kinds: Mapping[str, pa.DataType]
    per_day: Mapping[str, float] = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def type(self) -> str:
        return f"{_PACKAGES[self.ending].partition(' ')[2]} file"

    @property
    def place(self) -> str:
        return self.mark.place

    @property
    def file(self) -> Hashable:
        return self.mark.origin

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    def kind(self, name: str) -> Any:
        return self.kinds[name]

    def verify(self) -> None:
        self.mark.verify()

    def count(self) -> int:
        # what the file says of their number need not be true, and not each says it
        return sum(rows for rows, _ in self._portions(self.names[:1]))

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for rows, columns in self._portions(tuple(names) or self.names[:1]):
            cells = [self._cells(name, columns[name]) for name in names]
            yield Piece(self.place, partial(cut, Block(rows, cells)))

    def _portions(self, names: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        # to reach a row of a .por file all before it are read, which takes as long as to keep them
        most = 0 if self.ending == "por" else max(1, min(_ROWS, _CELLS // len(names)))
        inside = {name: name if self.encoding is None else _as_bytes(name, self.encoding) for name in names}
        start = 0
        while True:
            asked = {"usecols": list(inside.values()), "row_offset": start, "row_limit": most}
            found, _ = _read(self.mark, self.ending, None if self.encoding is None else _BYTES, **asked)
            columns = {name: found[own] for name, own in inside.items()}
            rows = len(columns[names[0]])
            if rows:
                yield rows, columns
            if not most or rows < most:
                return
            start += rows

    def _cells(self, name: str, column: Any) -> Cells:
        kind = self.kinds[name]
        if kind == pa.large_string():
            return pa.array([self._text(cell) for cell in column], pa.large_string())
        values = np.array(column, dtype=np.float64)
        return values if name not in self.per_day else _moments(values, self.per_day[name], self._zero, kind)

    def _text(self, cell: str | None) -> str | None:
        """A cell of bytes as text: what its encoding does not have becomes U+FFFD in this cell, and ends nothing."""
        if cell is None or self.encoding is None or cell.isascii():
            return cell
        return cell.encode(_BYTES, "replace").decode(self.encoding, "replace")

    @property
    def _zero(self) -> int:
        return _CALENDARS.get(self.ending, _SPSS).zero.toordinal() - _EPOCH


def _as_bytes(text: str, encoding: str) -> str:
    """The bytes of a text in its file, each as the character of its number."""
    return text.encode(encoding, "replace").decode(_BYTES)


def _encoding(mark: Mark, ending: str, metadata: Any) -> str | None:
    """How text is written in a file that says so, or whose kind has one way; None where Python does not know it, and in .por files."""
    if ending == "por":
        return None
    if ending == "dta":
        with mark.open() as raw:
            head = raw.read(64)
        # the releases from 118 on are in UTF-8
        release = re.match(rb"<stata_dta><header><release>(\d+)", head)
        return "utf-8" if release is not None and int(release[1]) >= 118 else "cp1252"
    try:
        return codecs.lookup(metadata.file_encoding or "utf-8").name
    except LookupError:
        return None


def _moments(values: Any, per_day: float, zero: int, kind: pa.DataType) -> pa.Array:
    """Days or moments as Arrow has them, null where there is none between the years 1 and 9999. zero: the day that is 0."""
    days = values / per_day + zero
    there = (days >= _LEAST) & (days < _MOST + 1)
    if pa.types.is_date(kind):
        return pa.array(np.floor(np.where(there, days, 0)).astype(np.int32), mask=~there).cast(kind)
    # the day apart, because one product of both has too few digits
    whole = np.floor(np.where(there, values, 0) / per_day)
    rest = np.where(there, values - whole * per_day, 0) * (86_400e6 / per_day)
    return pa.array((whole.astype(np.int64) + zero) * 86_400_000_000 + rest.astype(np.int64), mask=~there).cast(kind)


def open_statistics(mark: Mark, layout: FileLayout) -> StatisticsPart:
    """The file, by its metadata. Raises `SourceError` where they cannot be read."""
    ending, encoding, metadata = _metadata(mark, layout)
    if encoding is None:
        said = f"{mark.place} could not be read"
        encoding = guarded(said, partial(_encoding, mark, ending, metadata))
    calendar = _CALENDARS.get(ending, _SPSS)
    kinds, per_day = dict[str, pa.DataType](), dict[str, float]()
    for name in metadata.column_names:
        kinds[name] = _kind(metadata, name, calendar)
        if pa.types.is_date(kinds[name]) or pa.types.is_timestamp(kinds[name]):
            per_day[name] = calendar.of_days if pa.types.is_date(kinds[name]) else calendar.of_moments
    if not kinds:
        raise SourceError(f"{mark.place} has no columns")
    return StatisticsPart(mark, ending, encoding, kinds, per_day)


def fields(mark: Mark, layout: FileLayout) -> list[Field]:
    """The columns of a file, from its metadata alone; how many records it has is in none of them."""
    ending, _, metadata = _metadata(mark, layout)
    calendar = _CALENDARS.get(ending, _SPSS)
    return [_field(metadata, name, _kind(metadata, name, calendar)) for name in metadata.column_names]


def _field(metadata: Any, name: str, kind: pa.DataType) -> Field:
    stored, shown = metadata.readstat_variable_types[name], metadata.original_variable_types.get(name)
    labels = {_code(code): str(label) for code, label in metadata.variable_value_labels.get(name, {}).items()}
    missing = tuple(
        _code(one["lo"]) if one["lo"] == one["hi"] else (float(one["lo"]), float(one["hi"]))
        for one in metadata.missing_ranges.get(name, [])
    )
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        found, note = "date", "date in the data" if pa.types.is_date(kind) else "date with time in the data"
    elif kind == pa.large_string():
        found, note = "categorical", "text in the data"
    else:
        of_all, apart = _labeled([code for code in labels if code not in missing])
        numbers = "number in the data" + (f", shown as {shown}" if shown and "TIME" in shown else "")
        note = "codes with labels in the data" if of_all else numbers
        if apart:
            note += f"; labeled codes: maybe missing values: {', '.join(f'{code} = {labels[code]}' for code in apart)}"
        found = "categorical" if of_all else "integer" if stored.startswith("int") else "numeric"
    return Field(name, found, note, metadata.column_names_to_labels.get(name) or "", labels, missing)


def _labeled(codes: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether codes with labels look like all that a column has, and those that lie apart from the others.

    Metadata do not tell which codes the records have. So levels are those that count up from 0 or 1, or four and more.

    >>> _labeled(["1", "2", "-99"]), _labeled(["1", "5"]), _labeled(["2", "4", "8", "16"])
    ((True, ['-99']), (False, ['1', '5']), (True, []))
    """
    first = 0 if "0" in codes else 1
    counted = list(takewhile(lambda code: code in codes, map(str, count(first))))
    apart = [code for code in codes if code not in counted]
    if len(counted) > 1:
        return True, apart if len(apart) < len(counted) else []
    of_all = len(codes) > 3 and not all(code.startswith("-") for code in codes)
    return of_all, [] if of_all else list(codes)


def _code(code: Any) -> str:
    """A code as a schema writes it: 1 and not 1.0."""
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _kind(metadata: Any, name: str, calendar: _Calendar) -> pa.DataType:
    if metadata.readstat_variable_types[name] == "string":
        return pa.large_string()
    shown = metadata.original_variable_types.get(name) or ""
    if calendar.moments.fullmatch(shown):
        return pa.timestamp("us")
    return pa.date32() if calendar.days.fullmatch(shown) else pa.float64()


def _metadata(mark: Mark, layout: FileLayout) -> tuple[str, str | None, Any]:
    """The ending, the encoding and what the file says of its columns."""
    ending = layout.format or mark.name.lower().rpartition(".")[2]
    kind = f"{_PACKAGES[ending]} file"
    try:
        import pyreadstat  # noqa: F401
    except ImportError:
        raise SourceError(f"{mark.place} is {kind}", "run: pip install 'confide[stats]'") from None
    # most files say in which encoding they are
    plain = layout.encoding == FileLayout().encoding or ending == "por"
    encoding = None if plain else layout.encoding
    said = f"{mark.place} has no readable metadata; is it {kind}?"
    # without it, the codes are not told
    asked = {"user_missing": True} if _READERS[ending] == "read_sav" else {}
    _, metadata = guarded(said, partial(_read, mark, ending, encoding, metadataonly=True, **asked))
    return ending, encoding, metadata


def _read(mark: Mark, ending: str, encoding: str | None, **asked: Any) -> tuple[Mapping[str, Any], Any]:
    import pyreadstat

    if encoding is not None:
        asked["encoding"] = encoding
    read = partial(
        getattr(pyreadstat, _READERS[ending]), output_format="dict", disable_datetime_conversion=True, **asked
    )
    own = getattr(mark, "own_path", None)
    found: tuple[Mapping[str, Any], Any]
    if own is not None:
        found = read(own)
    else:
        with mark.open() as raw:
            found = read(raw)
    return found
