"""Physical columns to numbers and labels: each cell separately, whatever its neighbors are. And what every input gives, piece by piece.

The privacy proof asks that the code of a record be a function of that record alone. So nothing here looks at a column
as a whole. No type is inferred, a cell that does not parse is missing and changes no other, and every cast is
elementwise.

The rules, one for each kind of cell:

- numbers and booleans become float64 (False 0, True 1); null, NaN and infinities are missing;
- text in a numeric column is the double nearest to the decimal number written there, without white space around it.
  The schema's `[file]` says what its decimal mark is and what separates thousands: nothing is guessed. The words true,
  True, TRUE are 1 and false, False, FALSE are 0. Any other text is missing;
- a cell whose text, or whose number in a numeric column, is one of the schema's codes of missing values is missing. A code is a number
  as programs write it, and as the schema's `[file]` does;
- a cell of a categorical column is the level that has exactly its text. A cell that has no such level is the level of
  the same number: 1, 1.0, "1.0" and True all mean the level "1" (an integer column that became floating because of
  one missing value still means its levels), and a boolean first means "True", "true", "1" in this order. Anything
  else is missing;
- a column of dates has separate rules (`sources.dates`). In a column of objects a date is its ISO text elsewhere;
- typed dates under another kind, binary data, lists and other physical types are refused by `is_readable`, from
  metadata, before anything is read.

Where records come from, piece by piece: what every kind of input gives to the aggregation.

An input is a list of parts (one table, or several files). A part is cut into pieces that threads take one after the
other. A piece streams blocks of rows. Nothing that leaves this room quotes a record: see `guarded`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.core.lost_values import ABOVE, BELOW, UNREAD
from confide.errors import SourceError
from confide.schema import Categorical, Column
from confide.schema.missing import MissingCode, code_ranges

Floats: TypeAlias = NDArray[np.float64]

# what booleans look like in text, and the numbers that they mean
WORDS = {"False": 0.0, "false": 0.0, "FALSE": 0.0, "True": 1.0, "true": 1.0, "TRUE": 1.0}
_WORD_VALUES = np.array([*WORDS.values(), np.nan])


# between NumPy and Arrow ----------------------------------------------------------------------------------------------
#
# By their memory, because pyarrow loads pandas in `pa.array`, `pa.scalar`, `to_numpy`, and where a compute function is given a Python
# value: a third of a second, of which nothing is used. What has no plain memory goes pyarrow's way.

_TEXT = pa.large_string()


def from_arrow(cells: pa.Array, null: float | None = None) -> NDArray[Any]:
    """The values of an Arrow array. null: what stands for a missing one; left out, NaN among floats, else what pyarrow puts there.

    >>> from_arrow(pa.array([3, None, 5]), -1).tolist(), from_arrow(pa.array([True, None])[:1]).tolist()
    ([3, -1, 5], [True])
    """
    kind, rows, start = cells.type, len(cells), cells.offset
    null = np.nan if null is None and pa.types.is_floating(kind) else null
    plain = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if not plain or not rows or kind == pa.float16() or (cells.null_count and null is None):
        return np.asarray(cells.to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind):
        packed = np.frombuffer(cells.buffers()[1], dtype=np.uint8)[start // 8 : (start + rows + 7) // 8]
        values = np.unpackbits(packed, bitorder="little")[start % 8 : start % 8 + rows].view(bool)
    else:
        values = np.frombuffer(cells.buffers()[1], dtype=kind.to_pandas_dtype(), count=start + rows)[start:]
    return np.where(missing_of(cells), np.array(null, dtype=values.dtype), values) if cells.null_count else values


def missing_of(cells: pa.Array) -> NDArray[np.bool_]:
    """Where an Arrow array has no value.

    >>> missing_of(pa.array(["a", None])).tolist(), missing_of(pa.nulls(1)).tolist()
    ([False, True], [True])
    """
    return from_arrow(cells.is_null())


def to_arrow(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers of NumPy as an Arrow array; they share memory where they lie in order.

    >>> to_arrow(np.arange(3)[::2]).to_pylist(), to_arrow(np.array([True, False]), np.array([False, True])).to_pylist()
    ([0, 2], [True, None])
    """
    valid = None if missing is None else _packed(~missing)
    if values.dtype.kind == "b":
        return pa.Array.from_buffers(pa.bool_(), len(values), [valid, _packed(values)])
    if values.dtype.kind not in "iuf" or values.dtype == np.float16:
        return pa.array(values, mask=missing)
    own = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return pa.Array.from_buffers(pa.from_numpy_dtype(own.dtype), len(own), [valid, pa.py_buffer(own)])


def _packed(bits: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def text_array(cells: Sequence[str | bytes | None], kind: pa.DataType = _TEXT) -> pa.Array:
    """Python strings, or bytes, as Arrow text; a lone surrogate, which has no UTF-8 form, becomes "?" in its own cell.

    >>> text_array(["a", None, "é\\ud800"]).to_pylist(), text_array([b"a"], pa.large_binary()).to_pylist()
    (['a', None, 'é?'], [b'a'])
    """
    raw = [cell.encode("utf-8", "replace") if isinstance(cell, str) else cell or b"" for cell in cells]
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum([len(one) for one in raw], dtype=np.int64)])
    there = np.array([cell is not None for cell in cells], dtype=bool)
    buffers = [None if there.all() else _packed(there), pa.py_buffer(ends), pa.py_buffer(b"".join(raw))]
    own = kind if kind == pa.large_binary() else _TEXT
    return pa.Array.from_buffers(own, len(raw), buffers).cast(kind)


def scalar(value: str | bytes, like: pa.Array) -> Any:
    """A text that compute functions compare with an array of texts."""
    return text_array([value], like.type)[0]


# text to numbers ------------------------------------------------------------------------------------------------------


def valid_text(cells: pa.Array) -> pa.Array:
    """The same cells as valid UTF-8: files may hold any bytes, and what is built on Arrow trusts them blindly."""
    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:
        view = cells.type == pa.string_view()
        raw = cells.cast(pa.binary_view() if view else pa.large_binary()).to_pylist()
        return text_array([None if cell is None else cell.decode("utf-8", "replace") for cell in raw])
    return cells.cast(pa.large_string()) if cells.type == pa.string_view() else cells


#: Decimal mark and separator of thousands, where a schema states none.
MARKS = (".", "")
#: What else a separator of thousands is written as: blanks that do not break a line, the typographic apostrophe.
ALIKE = {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}


def text_numbers(cells: pa.Array, marks: tuple[str, str] = MARKS) -> Floats:
    """Each cell as the double nearest to the decimal number in it, NaN where there is none; cells are valid UTF-8.

    marks: decimal mark and separator of thousands, as in `FileLayout.marks`.

    >>> text_numbers(pa.array(["1.742,81", "1742,81", "17.42", "-1", None]), (",", ".")).tolist()
    [1742.81, 1742.81, nan, -1.0, nan]
    """
    values = _parsed(cells) if marks == MARKS else np.full(len(cells), np.nan)
    (rest,) = np.nonzero(np.isnan(values))
    if rest.size:
        rest = rest[np.diff(text_bytes(cells)[0])[rest] > 0]
    if rest.size:
        texts = cells.take(to_arrow(rest))
        trimmed = pc.utf8_trim_whitespace(texts)
        written = _plainly_written(trimmed, marks)
        word = from_arrow(pc.index_in(trimmed, value_set=text_array([*WORDS], trimmed.type)), -1)
        values[rest] = _WORD_VALUES[word]
        # what reads as it did is no number again
        new = from_arrow(pc.not_equal(written, texts), False) if marks == MARKS else np.ones(len(rest), dtype=bool)
        new &= word < 0
        if new.any():
            values[rest[new]] = _parsed(written.filter(to_arrow(new)))
    return values


@lru_cache(maxsize=16)
def _number_pattern(marks: tuple[str, str]) -> str:
    """RE2 of a number with these marks: groups of exactly three after one to three digits, in the whole number or nowhere."""
    point, group = re.escape(marks[0]), f"[{ALIKE.get(marks[1], marks[1])}]"
    whole = "[0-9]+" if not marks[1] else f"(?:[0-9]+|[0-9]{{1,3}}(?:{group}[0-9]{{3}})+)"
    return f"^[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def _plainly_written(cells: pa.Array, marks: tuple[str, str]) -> pa.Array:
    """Numbers as programs write them, with a hyphen for a minus sign; null where a cell is none with these marks."""
    cells = pc.replace_substring(cells, "\u2212", "-")
    if marks == MARKS:
        return cells
    fits = pc.match_substring_regex(cells, _number_pattern(marks))
    if marks[1]:
        cells = pc.replace_substring_regex(cells, f"[{ALIKE.get(marks[1], marks[1])}]", "")
    if marks[0] != ".":
        cells = pc.replace_substring(cells, marks[0], ".")
    return pc.if_else(fits, cells, pa.nulls(1, cells.type)[0])


#: What Arrow reads as a number: RE2, of whole cells. Of bytes, which stand in no number that is written in digits.
_READ = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))$"
_BEYOND = np.ones(256, dtype=bool)
_BEYOND[list(b"0123456789.eE+-")] = False


def _parsed(cells: pa.Array) -> Floats:
    """Arrow's cast: correctly rounded, cell by cell, NaN for what is not a number.

    It fails where one cell is none. So cells that are empty or hold a byte that no number in digits has are read apart. Where it
    fails still, only cells that look like a number are read. Which cell is what number is the same in all ways.
    """
    offsets, data = text_bytes(cells)
    beyond, sizes = _BEYOND[data], np.diff(offsets)
    odd = np.zeros(len(cells), dtype=bool)
    if beyond.any():
        odd = np.diff(np.concatenate([[0], np.cumsum(beyond)])[offsets - offsets[0]]) > 0
    with suppress(pa.ArrowInvalid):
        kept = cells if sizes.all() and not odd.any() else _hidden(cells, odd | (sizes == 0))
        values = np.array(from_arrow(kept.cast(pa.float64())))
        if odd.any():
            values[odd] = _looked_at(cells.take(to_arrow(np.flatnonzero(odd))))
        return values
    return _looked_at(cells)


def _looked_at(cells: pa.Array) -> Floats:
    numbers = pc.if_else(pc.match_substring_regex(cells, _READ), cells, pa.nulls(1, cells.type)[0])
    return np.array(from_arrow(pc.replace_substring_regex(numbers, r"^\+", "").cast(pa.float64())))


def text_bytes(cells: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text of an Arrow array begins, and the last one ends; and the bytes from the first begin to the last end."""
    kind = np.dtype(np.int64 if pa.types.is_large_string(cells.type) else np.int32)
    offsets = np.frombuffer(cells.buffers()[1], kind, len(cells) + 1, cells.offset * kind.itemsize).astype(np.int64)
    return offsets, np.frombuffer(cells.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]


def _hidden(cells: pa.Array, hidden: NDArray[np.bool_]) -> pa.Array:
    """The same texts, in the same memory, but for some that are missing."""
    there = ~(hidden | missing_of(cells)) if cells.null_count else ~hidden
    _, offsets, data = cells.buffers()
    width = 8 if pa.types.is_large_string(cells.type) else 4
    return pa.Array.from_buffers(cells.type, len(cells), [_packed(there), offsets.slice(width * cells.offset), data])


@dataclass(frozen=True, slots=True)
class Coded:
    """A dictionary-coded column: positions in `cells`, -1 where the cell is null."""

    positions: NDArray[Any] = field(repr=False)
    cells: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.positions)


# a piece of one column: a one-dimensional NumPy array, a pyarrow Array, or Coded
Cells: TypeAlias = Any

# what is in every text of a finite number
_NUMERAL = re.compile("|".join(["[0-9]", *WORDS]))
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
# below this size every integer is a double of its own
_EXACT = 2.0**53


def sliced(cells: Cells, start: int, stop: int) -> Cells:
    """Rows start to stop (exclusive) of a piece of a column, without a copy."""
    if isinstance(cells, np.ndarray):
        return cells[start:stop]
    if isinstance(cells, Coded):
        return Coded(cells.positions[start:stop], cells.cells)
    return cells.slice(start, stop - start)


def is_readable(kind: Any) -> bool:
    """Whether cells of this physical type (a NumPy dtype, a pyarrow type, or the name of another) have a rule above.

    >>> is_readable(np.dtype("float32")), is_readable(pa.string()), is_readable(pa.date32())
    (True, True, False)
    """
    tests = (_is_number, is_text, pa.types.is_boolean, pa.types.is_decimal)
    return matches_type(kind, "biufOUT", tests)


def is_typed_date(kind: Any) -> bool:
    """Whether cells of this physical type are dates, with a time of day or without.

    >>> is_typed_date(np.dtype("datetime64[s]")), is_typed_date(pa.date32()), is_typed_date(pa.string())
    (True, True, False)
    """
    return matches_type(kind, "M", (pa.types.is_date, pa.types.is_timestamp))


def matches_type(kind: Any, letters: str, tests: Sequence[Callable[[Any], bool]]) -> bool:
    """Whether a physical type is a NumPy dtype of one of these kinds, or a pyarrow type, or a dictionary of one, that passes a test."""
    if isinstance(kind, np.dtype):
        return kind.kind in letters
    if not isinstance(kind, pa.DataType):
        return False
    if pa.types.is_dictionary(kind):
        return matches_type(kind.value_type, letters, tests)
    return any(test(kind) for test in tests)


class Reader(ABC):
    """Cells of one column to float64 values, `missing` where there is none. One reader belongs to one thread."""

    missing: float

    def __init__(self, marks: tuple[str, str]) -> None:
        self._dictionary: tuple[Any, Floats] | None = None
        self._marks = marks

    def __call__(self, cells: Cells) -> Floats:
        """The values of a piece of the column, shape (rows,). They may share memory with `cells`: read them only."""
        if isinstance(cells, np.ndarray):
            return self._numpy(cells)
        if isinstance(cells, Coded):
            return self._coded(cells.positions, cells.cells)
        return self._arrow(cells)

    @abstractmethod
    def numbers(self, values: Floats) -> Floats:
        """Values of numeric cells; NaN is missing."""

    @abstractmethod
    def integers(self, cells: pa.Array) -> Floats:
        """Values of integer cells of an Arrow array."""

    @abstractmethod
    def booleans(self, values: Floats) -> Floats:
        """Values of boolean cells, given as 0, 1 or NaN."""

    @abstractmethod
    def text(self, cells: pa.Array, marks: tuple[str, str]) -> Floats:
        """Values of text cells, whose numbers have these marks."""

    @abstractmethod
    def cell(self, cell: object) -> float:
        """The value of one Python object that is not text."""

    def _numpy(self, cells: NDArray[Any]) -> Floats:
        kind = cells.dtype.kind
        if kind == "f":
            return self.numbers(cells.astype(np.float64, copy=False))
        if kind in "iu":
            return self.integers(to_arrow(cells))
        if kind == "b":
            return self.booleans(cells.astype(np.float64))
        return self._objects(cells.astype(object, copy=False))

    def _arrow(self, cells: pa.Array) -> Floats:
        kind = cells.type
        if pa.types.is_dictionary(kind):
            return self._coded(from_arrow(cells.indices.cast(pa.int64()), -1), cells.dictionary)
        if pa.types.is_integer(kind):
            return self.integers(cells)
        if pa.types.is_boolean(kind):
            return self.booleans(as_floats(cells))
        if _is_number(kind):
            return self.numbers(as_floats(cells))
        # the text of a decimal has all its digits, and text is rounded correctly where the direct cast need not be
        return (
            self.text(cells.cast(pa.large_string()), MARKS)
            if pa.types.is_decimal(kind)
            else self.text(cells, self._marks)
        )

    def _coded(self, positions: NDArray[Any], cells: Any) -> Floats:
        if self._dictionary is None or not _same(self._dictionary[0], cells):
            # position -1 finds the last entry
            self._dictionary = (cells, np.append(self(cells), self.missing))
        values: Floats = self._dictionary[1][positions]
        return values

    def _objects(self, cells: NDArray[Any]) -> Floats:
        values = np.array([self.cell(cell) for cell in cells], dtype=np.float64)
        (at,) = np.nonzero(np.array([isinstance(cell, str) for cell in cells], dtype=bool))
        if at.size:
            values[at] = self.text(text_array([str(cell) for cell in cells[at]]), self._marks)
        return values


class Numbers(Reader):
    """Cells of a numeric column as float64, NaN where missing. marks: of numbers in text; codes: of missing values.

    >>> Numbers()(pa.array(["1.5", " 2 ", "true", "two", None])).tolist()
    [1.5, 2.0, 1.0, nan, nan]
    >>> Numbers((",", ""), ("-99", "true"))(pa.array(["1,5", "-99,0", "-99", "true", "TRUE"])).tolist()
    [1.5, nan, nan, nan, 1.0]
    """

    missing = float("nan")

    def __init__(self, marks: tuple[str, str] = MARKS, codes: Sequence[MissingCode] = ()) -> None:
        super().__init__(marks)
        self._ranges = np.unique(np.concatenate(_ranges(codes, marks)), axis=0) if codes else np.empty((0, 2))
        self._words = [str(code) for code in codes if code in WORDS]

    def __call__(self, cells: Cells) -> Floats:
        values = super().__call__(cells)
        return np.where(_within(values, self._ranges), np.nan, values) if len(self._ranges) else values

    def numbers(self, values: Floats) -> Floats:
        return values

    def integers(self, cells: pa.Array) -> Floats:
        return as_floats(cells)

    def booleans(self, values: Floats) -> Floats:
        return values

    def text(self, cells: pa.Array, marks: tuple[str, str]) -> Floats:
        cells = valid_text(cells)
        values = text_numbers(cells, marks)
        if self._words:
            words = pc.is_in(pc.utf8_trim_whitespace(cells), value_set=text_array(self._words, cells.type))
            values[from_arrow(words, False)] = np.nan
        return values

    def cell(self, cell: object) -> float:
        return real(cell)


def _ranges(codes: Sequence[MissingCode], marks: tuple[str, str]) -> list[Floats]:
    """Of each code the closed ranges of numbers that it means: as programs write numbers, and with these marks. A word means its text."""
    ranges: list[Floats] = [code_ranges([code]) for code in codes]
    if marks != MARKS:
        texts = [code if isinstance(code, str) and code not in WORDS else "" for code in codes]
        for at, number in enumerate(text_numbers(text_array(texts), marks)):
            ranges[at] = np.concatenate([ranges[at], np.full((int(np.isfinite(number)), 2), number)])
    return ranges


def _within(values: Floats, ranges: Floats) -> NDArray[np.bool_]:
    """Where a value lies in one of some closed ranges."""
    found = np.zeros(len(values), dtype=bool)
    with np.errstate(all="ignore"):
        for low, high in ranges:
            found |= (values >= low) & (values <= high)
    return found


@dataclass(frozen=True, eq=False)
class _Named:
    """What names the levels of a column: their texts and codes, the numbers that some of them are, false and true."""

    levels: dict[str, int]
    texts: pa.Array
    places: NDArray[np.float64]
    numbers: dict[float, int]
    keys: Floats
    positions: Floats
    boolean: Floats

    @cached_property
    def table(self) -> Floats | None:
        """The position of each whole number from the least on, -1 for none, and once more -1; None where the numbers lie too far apart."""
        if not self.keys.size or (self.keys != np.floor(self.keys)).any() or self.keys[-1] - self.keys[0] >= 1 << 16:
            return None
        found = np.full(int(self.keys[-1] - self.keys[0]) + 2, -1.0)
        found[(self.keys - self.keys[0]).astype(np.intp)] = self.positions
        return found


@lru_cache(maxsize=64)
def _named(named: tuple[tuple[str, int], ...]) -> _Named:
    """Of public levels, kept: every block of every source asks for the same few."""
    places = dict(named)
    texts = text_array([*places])
    numbers = _by_number(places)
    keys = np.array(sorted(numbers), dtype=np.float64)
    positions = np.array([numbers[key] for key in keys.tolist()], dtype=np.float64)

    def meant(value: float, words: tuple[str, ...]) -> float:
        named = [places[word] for word in words if word in places]
        return float(named[0] if named else numbers.get(value, -1))

    boolean = np.array([meant(0.0, ("False", "false", "0")), meant(1.0, ("True", "true", "1"))])
    # the last place is that of what has none
    found = np.array([*places.values(), -1], dtype=np.float64)
    return _Named(places, texts, found, numbers, keys, positions, boolean)


def _by_number(levels: dict[str, int]) -> dict[float, int]:
    """The level that a number means: the one written plainly ("1" before "01"), else the first; words come last."""
    written = [text for text in levels if _NUMERAL.search(text)]
    parsed = dict(zip(written, text_numbers(text_array(written)).tolist(), strict=True)) if written else {}
    ranked = sorted(levels.items(), key=lambda item: (item[0] in WORDS, not _INTEGER.fullmatch(item[0]), item[1]))
    result: dict[float, int] = {}
    for text, position in ranked:
        if np.isfinite(parsed.get(text, np.nan)):
            result.setdefault(parsed[text], position)
    return result


class Labels(Reader):
    """Cells of a categorical column as positions in its levels, -1 where missing. marks: of numbers in text.

    >>> Labels(Categorical(["N", "S"]))(pa.array(["S", "N", "n", None])).tolist()
    [1.0, 0.0, -1.0, -1.0]
    >>> Labels(Categorical(["no", "yes"], codes=["1", "2"]))(np.array([2.0, np.nan, 1.0, 1.5])).tolist()
    [1.0, -1.0, 0.0, -1.0]
    """

    missing = -1.0

    def __init__(self, column: Categorical, marks: tuple[str, str] = MARKS) -> None:
        super().__init__(marks)
        self._named = _named(tuple(column.places.items()))
        self._codes = [code for code in column.missing or () if isinstance(code, str)]

    def numbers(self, values: Floats) -> Floats:
        if not self._named.keys.size:
            return np.full(len(values), -1.0)
        if self._named.table is not None:
            at = values - self._named.keys[0]
            known = (at >= 0) & (at < len(self._named.table) - 1) & (at == np.floor(at))
            # the last entry is that of what is no level
            return self._named.table[np.where(known, at, -1.0).astype(np.intp)]
        at = np.minimum(np.searchsorted(self._named.keys, values), self._named.keys.size - 1)
        return np.where(self._named.keys[at] == values, self._named.positions[at], -1.0)

    def integers(self, cells: pa.Array) -> Floats:
        values = as_floats(cells)
        result = self.numbers(values)
        (large,) = np.nonzero(np.abs(values) >= _EXACT)
        if large.size:
            # two such integers may share a double: compare their digits
            result[large] = self._exactly(cells.take(to_arrow(large)).cast(pa.large_string()))
        return result

    def booleans(self, values: Floats) -> Floats:
        known = ~np.isnan(values)
        return np.where(known, self._named.boolean[np.where(known, values, 0.0).astype(np.intp)], -1.0)

    def text(self, cells: pa.Array, marks: tuple[str, str]) -> Floats:
        cells = valid_text(cells)
        result = self._exactly(cells)
        (other,) = np.nonzero(result < 0)
        if other.size and self._named.keys.size:
            rest = cells.take(to_arrow(other))
            # "1.000" may be a code and, with the file's marks, the number of a level
            known = pc.is_in(pc.utf8_trim_whitespace(rest), value_set=text_array(self._codes, rest.type))
            result[other] = np.where(from_arrow(known, False), -1.0, self.numbers(text_numbers(rest, marks)))
        return result

    def _exactly(self, cells: pa.Array) -> Floats:
        found = pc.index_in(cells, value_set=self._named.texts.cast(cells.type))
        return np.asarray(self._named.places[from_arrow(found, -1)])

    def cell(self, cell: object) -> float:
        if isinstance(cell, (bool, np.bool_)):
            return float(self._named.boolean[int(cell)])
        value = real(cell)
        if isinstance(cell, (int, np.integer)) and abs(value) >= _EXACT:
            return float(self._named.levels.get(str(int(cell)), -1))
        if isinstance(cell, (date, np.datetime64)):
            return float(self._named.levels.get(_iso(cell), -1))
        return float(self._named.numbers.get(value, -1))


#: What a `CodeOf` gives for a cell that holds nothing, and for one that holds something else than a code.
EMPTY, HOLDS = -2.0, -1.0


class CodeOf(Reader):
    """Which code of missing values a cell is, by its place among them; else `HOLDS` or `EMPTY`. A cell of blanks holds nothing.

    >>> from confide.schema import Numeric
    >>> CodeOf(Numeric(0, 100, missing=[-99, "n/a"]))(pa.array(["3", "n/a", " -99.0", " ", None, "?"])).tolist()
    [-1.0, 1.0, 0.0, -2.0, -2.0, -1.0]
    """

    missing = EMPTY

    def __init__(self, column: Column, marks: tuple[str, str] = MARKS) -> None:
        super().__init__(marks)
        self.column, codes = column, column.missing or ()
        self._texts = [code if isinstance(code, str) else None for code in codes]
        self._ranges = _ranges(codes, marks) if codes else []

    def numbers(self, values: Floats) -> Floats:
        found = np.where(np.isnan(values), EMPTY, HOLDS)
        for at, ranges in enumerate(self._ranges):
            found[(found == HOLDS) & _within(values, ranges)] = at
        return found

    def booleans(self, values: Floats) -> Floats:
        return self.numbers(values)

    def integers(self, cells: pa.Array) -> Floats:
        return self.numbers(as_floats(cells))

    def text(self, cells: pa.Array, marks: tuple[str, str]) -> Floats:
        trimmed = pc.utf8_trim_whitespace(valid_text(cells))
        found = np.where(from_arrow(pc.not_equal(trimmed, scalar("", trimmed)), False), HOLDS, EMPTY)
        if self._texts:
            known = pc.index_in(trimmed, value_set=text_array(self._texts, trimmed.type), skip_nulls=True)
            written = from_arrow(known, -1)
            meant = np.maximum(self.numbers(text_numbers(trimmed, marks)), found)
            found = np.where(written >= 0, written, meant).astype(np.float64)
        return found

    def cell(self, cell: object) -> float:
        # pandas' marks of a missing value are not equal to themselves, or refuse to say so
        if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
            return EMPTY
        if isinstance(cell, (date, np.datetime64)):
            text = _iso(cell)
            return float(self._texts.index(text)) if text in self._texts else HOLDS if text else EMPTY
        value = real(cell)
        no_number = np.isnan(value) and not isinstance(cell, (float, np.floating))
        return HOLDS if no_number else float(self.numbers(np.array([value]))[0])


def taken(cells: Cells, at: NDArray[np.intp]) -> Cells:
    """Some rows of a piece of a column."""
    if isinstance(cells, np.ndarray):
        return cells[at]
    if isinstance(cells, Coded):
        return Coded(cells.positions[at], cells.cells)
    # Arrow takes no rows of views
    return (valid_text(cells) if cells.type == pa.string_view() else cells).take(to_arrow(at))


def how_read(values: Floats, cells: Cells, code: CodeOf) -> Floats:
    """The codes of a row `read(NAME)` (`core.lost_values`). values: the cells as their reader read them."""
    column, found = code.column, np.zeros(len(values))
    low, high = (0.0, np.inf) if isinstance(column, Categorical) else (column.low, column.high)
    # most often each cell holds a value within the bounds, which two comparisons tell; what is no number fails them
    if len(values) and low <= values.min() and values.max() <= high:
        return found
    with np.errstate(all="ignore"):
        found[values < low] = BELOW
        found[values > high] = ABOVE
    (at,) = np.nonzero((values < 0) if isinstance(column, Categorical) else ~np.isfinite(values))
    if at.size:
        found[at] = UNREAD * (code(taken(cells, at)) == HOLDS)
    return found


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this Arrow type are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def as_floats(cells: pa.Array) -> Floats:
    """Arrow numbers or booleans as float64, NaN where null. The cast is unsafe: the safe one raises on values."""
    values = cells if pa.types.is_float64(cells.type) else cells.cast(pa.float64(), safe=False)
    return np.asarray(from_arrow(values, np.nan), dtype=np.float64)


def _same(one: Any, other: Any) -> bool:
    """Whether two dictionaries are known to be equal; in doubt they are not."""
    if one is other:
        return True
    return isinstance(one, pa.Array) and isinstance(other, pa.Array) and bool(one.equals(other))


def _iso(cell: Any) -> str:
    """A date or moment as ISO text; nothing for a mark of a missing one, which is not equal to itself."""
    if cell != cell:
        return ""
    return str(cell) if isinstance(cell, np.datetime64) else str(cell.isoformat())


def real(cell: object) -> float:
    """float(cell) for a real number, NaN for anything else."""
    if type(cell) is float:
        return cell
    if not isinstance(cell, (int, float, np.integer, np.floating, np.bool_, Decimal, Fraction)):
        return float("nan")
    try:
        return float(cell)
    except Exception:  # too large for a double, a signalling NaN, or a class with ideas of its own
        return float("nan")


T = TypeVar("T")

# what a reader must never swallow
_PASSING = (KeyboardInterrupt, SystemExit, GeneratorExit)


class Block(NamedTuple):
    """Some records: their number, and their cells in the columns that were asked for, in that order."""

    rows: int
    columns: list[Cells]

    def __repr__(self) -> str:
        return "Block"


@dataclass(frozen=True)
class Piece:
    """A stretch of records that one thread reads: `blocks(rows)` streams it with at most `rows` rows at a time."""

    place: str
    blocks: Callable[[int], Iterator[Block]] = field(repr=False)


class Part(Protocol):
    """Base of tables and files. `place` names one in messages, `type` in `repr`; `names` are all its columns, in order."""

    if TYPE_CHECKING:  # what each part has, as attributes or methods of its own

        @property
        def place(self) -> str: ...
        @property
        def type(self) -> str: ...
        @property
        def names(self) -> tuple[str, ...]: ...
        @property
        def rereadable(self) -> bool: ...
        @property
        def file(self) -> Hashable:
            """Which file it is read from, as `file_at` has it; what no file is for all else."""
            ...

        def kind(self, name: str) -> Any:
            """The physical type of a column: a NumPy dtype, a pyarrow type, or the name of another; from metadata."""
            ...

        def verify(self) -> None:
            """Raise `SourceError` when the file is not the one that was opened any more."""
            ...

        def pieces(self, names: Sequence[str]) -> Iterator[Piece]: ...
        def count(self) -> int: ...

    @property
    def travels(self) -> bool:
        """Whether workers elsewhere can read it. Override where they can."""
        return False

    @property
    def headed(self) -> bool:
        """Whether its names are a line of the file, which may be a record. Override where they are."""
        return False

    @property
    def groups(self) -> int | None:
        """How many pieces it has, for workers that take some each. Override where they are known and many."""
        return None

    def session(self) -> AbstractContextManager[None]:
        """For one release, with a new look at names and types before the charge. Override where it is asked again for each pass."""
        return nullcontext()

    def close(self) -> None:
        """Let go of what reading holds. Override where something is open."""
        return

    def watched(self, saw: Callable[[int, int], None]) -> Part:
        """The same part, for a preflight alone. It tells `saw`, block by block, how many rows have another width than the header, and how
        many lines do not count as records. Override where it has them.
        """
        return self


class Mark(Protocol):
    """A file as it was when it was opened: where it is, and whether it is still the same."""

    @property
    def name(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def origin(self) -> Hashable: ...
    def open(self) -> Any: ...
    def verify(self) -> None: ...


def file_at(path: str) -> Hashable:
    """Which file a path leads to, through all links; the path itself where there is none.

    >>> file_at(__file__) == file_at(f"{Path(__file__).parent}/./{Path(__file__).name}")
    True
    """
    try:
        state = Path(path).stat()
    except (OSError, ValueError):
        return path
    # some file systems number nothing
    return (state.st_dev, state.st_ino) if state.st_ino else str(Path(path).resolve())


# As a Path it has one slash of the two. It is not repeated, because it may hold a password.
_ADDRESS = re.compile(r"[a-z][a-z0-9+]+:/+[^/]", re.IGNORECASE)


_GIVE = "give the path of a .csv, .parquet, .xlsx, .ods, .dta or .sav file, or of another kind that confide.read takes"


@dataclass(frozen=True)
class FileMark:
    """Size, time of the last change and inode of a file, taken when it was opened and compared at each pass."""

    path: Path
    size: int = field(repr=False)
    changed: int = field(repr=False)
    inode: tuple[int, int] = field(repr=False)

    @classmethod
    def of(cls, path: Path) -> FileMark:
        """Raises `SourceError` when the file does not exist, or is not a regular one."""
        if _ADDRESS.match(str(path)):
            raise SourceError(
                "an address is not a file",
                "give CSV or Parquet files, or survey.sqlite/answers; a database is read in Python, by "
                "cf.read(cf.sql(address, 'select ...'), schema)",
            )
        if not path.exists():
            raise SourceError(f"there is no file {str(path)!r}", _GIVE)
        if not path.is_file():
            raise SourceError(f"{str(path)!r} is not a file", _GIVE)
        state = guarded(f"the state of {str(path)!r} could not be read", path.stat)
        return cls(path, state.st_size, state.st_mtime_ns, (state.st_dev, state.st_ino))

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def place(self) -> str:
        return repr(str(self.path))

    @property
    def origin(self) -> Hashable:
        """Equal for two marks of one file, whatever links lead to it."""
        return file_at(str(self.path))

    @property
    def own_path(self) -> str:
        """The path on this machine."""
        return str(self.path)

    def open(self) -> Any:
        """A file that can be read anywhere."""
        return pa.OSFile(str(self.path))

    def __reduce__(self) -> Any:
        # workers may be elsewhere in the file system
        return FileMark, (self.path.absolute(), self.size, self.changed, self.inode)

    def verify(self) -> None:
        """Raise `SourceError` when the file changed since `of`."""
        if not self.path.is_file() or FileMark.of(self.path) != self:
            raise SourceError(f"{str(self.path)!r} changed since it was opened", "open it again with confide.read(...)")


def cut(block: Block, rows: int) -> Iterator[Block]:
    """The same records in blocks of at most `rows`."""
    if 0 < block.rows <= rows:
        yield block
        return
    for start in range(0, block.rows, rows):
        stop = min(start + rows, block.rows)
        yield Block(stop - start, [sliced(cells, start, stop) for cells in block.columns])


# Within `of_simulated` of this thread: what readers say may be told, because the cells are made.
_SIMULATED = ContextVar("simulated rows are read", default=False)


@contextmanager
def of_simulated() -> Iterator[None]:
    """What is read within is simulated rows, by this thread: `guarded` lets errors through as they are."""
    token = _SIMULATED.set(True)
    try:
        yield
    finally:
        _SIMULATED.reset(token)


def guarded(message: str, action: Callable[[], T]) -> T:
    """The result of `action`; whatever it raises becomes `SourceError(message)`, but where simulated rows are read (`of_simulated`).

    Readers quote cells, row numbers and counts in their errors, so neither the text nor the chain of the original may
    stay.

    >>> guarded("'survey.csv' could not be read", lambda: float("a cell"))
    Traceback (most recent call last):
    confide.errors.SourceError: 'survey.csv' could not be read
    """
    try:
        return action()
    except _PASSING:
        raise
    except BaseException:  # a panic of a library in Rust is no Exception
        if _SIMULATED.get():
            raise
    # raised here and not above: an error raised while handling another carries it along
    raise SourceError(message)
