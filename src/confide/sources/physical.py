"""Physical columns to numbers and labels: each cell by itself, whatever its neighbours are.

The privacy proof asks that the code of a record be a function of that record alone. So nothing here looks at a column
as a whole: no type is inferred, a cell that does not parse is missing and changes no other, and every cast is
elementwise.

The rules, one for each kind of cell:

- numbers and booleans become float64 (False 0, True 1); null, NaN and infinities are missing;
- text in a numeric column is the double nearest to the decimal number written there, white space around it ignored;
  the words true, True, TRUE are 1 and false, False, FALSE are 0; any other text is missing;
- a cell of a categorical column is the level that has exactly its text. A cell that has no such level is the level of
  the same number: 1, 1.0, "1.0" and True all mean the level "1" (an integer column that became floating because of
  one missing value still means its levels), and a boolean first means "True", "true", "1" in this order. Anything
  else is missing;
- dates, binary data, lists and other physical types are refused by `is_readable`, from metadata, before anything is
  read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.sources.text import WORDS, plain, text_array, text_numbers, valid_text

__all__ = ["Cells", "Coded", "Labels", "Numbers", "Reader", "is_readable", "sliced"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coded:
    """A dictionary-coded column: positions in `cells`, -1 where the cell is null."""

    positions: NDArray[Any] = field(repr=False)
    cells: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.positions)


# a piece of one column: a one-dimensional NumPy array, a pyarrow Array, or Coded
Cells: TypeAlias = Any

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
    tests = (_is_number, _is_text, pa.types.is_boolean, pa.types.is_decimal)
    return is_one_of(kind, "biufOUT", tests)


def is_one_of(kind: Any, letters: str, tests: Sequence[Callable[[Any], bool]]) -> bool:
    """Whether a physical type is a NumPy dtype of one of these kinds, or a pyarrow type, or a dictionary of one, that passes a test."""
    if isinstance(kind, np.dtype):
        return kind.kind in letters
    if not isinstance(kind, pa.DataType):
        return False
    if pa.types.is_dictionary(kind):
        return is_one_of(kind.value_type, letters, tests)
    return any(test(kind) for test in tests)


class Reader(ABC):
    """Cells of one column to float64 values, `missing` where there is none. One reader belongs to one thread."""

    missing: float

    def __init__(self) -> None:
        self._dictionary: tuple[Any, Floats] | None = None

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
    def text(self, cells: pa.Array) -> Floats:
        """Values of text cells."""

    @abstractmethod
    def cell(self, cell: object) -> float:
        """The value of one Python object that is not text."""

    def _numpy(self, cells: NDArray[Any]) -> Floats:
        kind = cells.dtype.kind
        if kind == "f":
            return self.numbers(cells.astype(np.float64, copy=False))
        if kind in "iu":
            return self.integers(pa.array(np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("="))))
        if kind == "b":
            return self.booleans(cells.astype(np.float64))
        return self._objects(cells.astype(object, copy=False))

    def _arrow(self, cells: pa.Array) -> Floats:
        kind = cells.type
        if pa.types.is_dictionary(kind):
            return self._coded(plain(pc.fill_null(cells.indices.cast(pa.int64()), -1)), cells.dictionary)
        if pa.types.is_integer(kind):
            return self.integers(cells)
        if pa.types.is_boolean(kind):
            return self.booleans(_floats(cells))
        if _is_number(kind):
            return self.numbers(_floats(cells))
        # the text of a decimal has all its digits, and text is rounded correctly where the direct cast need not be
        return self.text(cells.cast(pa.large_string()) if pa.types.is_decimal(kind) else cells)

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
            values[at] = self.text(text_array([str(cell) for cell in cells[at]]))
        return values


class Numbers(Reader):
    """Cells of a numeric column as float64, NaN where missing.

    >>> Numbers()(pa.array(["1.5", " 2 ", "true", "two", None])).tolist()
    [1.5, 2.0, 1.0, nan, nan]
    """

    missing = float("nan")

    def numbers(self, values: Floats) -> Floats:
        return values

    def integers(self, cells: pa.Array) -> Floats:
        return _floats(cells)

    def booleans(self, values: Floats) -> Floats:
        return values

    def text(self, cells: pa.Array) -> Floats:
        return text_numbers(valid_text(cells))

    def cell(self, cell: object) -> float:
        return _real(cell)


@dataclass(frozen=True, eq=False)
class _Named:
    """What names the levels of a column: their texts, the numbers that some of them are, false and true."""

    levels: dict[str, int]
    texts: pa.Array
    numbers: dict[float, int]
    keys: Floats
    positions: Floats
    boolean: Floats


@lru_cache(maxsize=64)
def _named(levels: tuple[str, ...]) -> _Named:
    """Of public levels, kept: every block of every source asks for the same few."""
    places = {text: position for position, text in enumerate(levels)}
    texts = pa.array(list(places), pa.large_string())
    numbers = _by_number(places, texts)
    keys = np.array(sorted(numbers), dtype=np.float64)
    positions = np.array([numbers[key] for key in keys.tolist()], dtype=np.float64)

    def meant(value: float, words: tuple[str, ...]) -> float:
        named = [places[word] for word in words if word in places]
        return float(named[0] if named else numbers.get(value, -1))

    boolean = np.array([meant(0.0, ("False", "false", "0")), meant(1.0, ("True", "true", "1"))])
    return _Named(places, texts, numbers, keys, positions, boolean)


def _by_number(levels: dict[str, int], texts: pa.Array) -> dict[float, int]:
    """The level that a number means: the one written plainly ("1" before "01"), else the first; words come last."""
    parsed = text_numbers(valid_text(texts)).tolist()
    ranked = sorted(levels.items(), key=lambda item: (item[0] in WORDS, not _INTEGER.fullmatch(item[0]), item[1]))
    result: dict[float, int] = {}
    for _, position in ranked:
        if np.isfinite(parsed[position]):
            result.setdefault(parsed[position], position)
    return result


class Labels(Reader):
    """Cells of a categorical column as positions in its levels, -1 where missing.

    >>> Labels(["N", "S"])(pa.array(["S", "N", "n", None])).tolist()
    [1.0, 0.0, -1.0, -1.0]
    >>> Labels(["1", "2"])(np.array([2.0, np.nan, 1.0, 1.5])).tolist()
    [1.0, -1.0, 0.0, -1.0]
    """

    missing = -1.0

    def __init__(self, levels: Sequence[str]) -> None:
        super().__init__()
        self._named = _named(tuple(levels))

    def numbers(self, values: Floats) -> Floats:
        if not self._named.keys.size:
            return np.full(len(values), -1.0)
        at = np.minimum(np.searchsorted(self._named.keys, values), self._named.keys.size - 1)
        return np.where(self._named.keys[at] == values, self._named.positions[at], -1.0)

    def integers(self, cells: pa.Array) -> Floats:
        values = _floats(cells)
        result = self.numbers(values)
        (large,) = np.nonzero(np.abs(values) >= _EXACT)
        if large.size:
            # two such integers may share a double: compare their digits
            result[large] = self._exactly(cells.take(pa.array(large)).cast(pa.large_string()))
        return result

    def booleans(self, values: Floats) -> Floats:
        known = ~np.isnan(values)
        return np.where(known, self._named.boolean[np.where(known, values, 0.0).astype(np.intp)], -1.0)

    def text(self, cells: pa.Array) -> Floats:
        cells = valid_text(cells)
        result = self._exactly(cells)
        (other,) = np.nonzero(result < 0)
        if other.size and self._named.keys.size:
            result[other] = self.numbers(text_numbers(cells.take(pa.array(other))))
        return result

    def _exactly(self, cells: pa.Array) -> Floats:
        found = pc.index_in(cells, value_set=self._named.texts.cast(cells.type))
        return plain(pc.fill_null(found, -1)).astype(np.float64)

    def cell(self, cell: object) -> float:
        if isinstance(cell, (bool, np.bool_)):
            return float(self._named.boolean[int(cell)])
        value = _real(cell)
        if isinstance(cell, (int, np.integer)) and abs(value) >= _EXACT:
            return float(self._named.levels.get(str(int(cell)), -1))
        return float(self._named.numbers.get(value, -1))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def _floats(cells: pa.Array) -> Floats:
    """Arrow numbers or booleans as float64, NaN where null. The cast is unsafe: the safe one raises on values."""
    values = cells if pa.types.is_float64(cells.type) else cells.cast(pa.float64(), safe=False)
    return np.asarray(plain(pc.fill_null(values, np.nan) if values.null_count else values), dtype=np.float64)


def _same(one: Any, other: Any) -> bool:
    """Whether two dictionaries are known to be equal; in doubt they are not."""
    if one is other:
        return True
    return isinstance(one, pa.Array) and isinstance(other, pa.Array) and bool(one.equals(other))


def _real(cell: object) -> float:
    """float(cell) for a real number, NaN for anything else."""
    if type(cell) is float:
        return cell
    if not isinstance(cell, (int, float, np.integer, np.floating, np.bool_, Decimal, Fraction)):
        return float("nan")
    try:
        return float(cell)
    except Exception:  # too large for a double, a signalling NaN, or a class with ideas of its own
        return float("nan")
