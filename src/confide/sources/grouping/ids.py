"""Canonical ids: which cells of an id column name the same unit.

The canonical id is bytes, and a function of one cell and its declared type alone, never of other cells, files or batches: whole numbers
are decimal text, dates ISO text, text and binary their bytes, neither trimmed nor folded; text of the form -?(0|[1-9][0-9]*)(.0+)? is
that whole number, and -0 is 0. So 7, 7.0 and "7" are one unit in any mix of files. A null, an empty text, text that stands for a missing
value in files without types (NA, N/A, NaN, nan, null, NULL, None, <NA>), a fractional, infinite or boolean cell and a float of 2^53 or
more, which no longer tells neighbouring integers apart, are no id. In columns of Python objects whole Decimals are whole numbers and UUIDs
their text.

Nothing here raises on a value, and no id leaves this room.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.sources.physical import Cells, Coded, is_one_of

__all__ = ["canonical", "is_id"]

_EXACT = 2.0**53
_DIGITS = 400
_MISSING = (b"NA", b"N/A", b"NaN", b"nan", b"null", b"NULL", b"None", b"<NA>")
_WHOLE = re.compile(rb"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")


def is_id(kind: Any) -> bool:
    """Whether cells of this physical type can be ids: whole numbers, floats, text, binary, dates and dictionaries of these.

    >>> is_id(np.dtype("int64")), is_id(pa.date32()), is_id(pa.bool_()), is_id(np.dtype("bool"))
    (True, True, False, False)
    """
    t = pa.types
    return is_one_of(kind, "iufOUS", (t.is_integer, t.is_floating, t.is_date, t.is_null, _is_text, _is_binary))


def canonical(cells: Cells) -> pa.Array:
    """The canonical ids of a piece of a column as Arrow large_binary, null where there is none.

    >>> canonical(np.array([7.0, 7.5, np.nan])).to_pylist(), canonical(pa.array(["7", "07", "-0.00", ""])).to_pylist()
    ([b'7', None, None], [b'7', b'07', b'0', None])
    """
    if isinstance(cells, Coded):
        known = canonical(cells.cells)
        positions = np.asarray(cells.positions, dtype=np.int64)
        return known.take(pa.array(positions, mask=positions < 0))
    found = _numpy(cells) if isinstance(cells, np.ndarray) else _arrow(cells)
    empty = pc.equal(pc.binary_length(found), 0)
    return pc.if_else(empty, pa.scalar(None, pa.large_binary()), found) if pc.any(empty).as_py() else found


def _numpy(cells: NDArray[Any]) -> pa.Array:
    kind = cells.dtype.kind
    if kind == "f":
        return _floats(cells)
    if kind in "iu":
        return _decimal(pa.array(np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("="))))
    return pa.array([_cell(cell) for cell in cells.tolist()], pa.large_binary())


def _arrow(cells: Any) -> pa.Array:
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return canonical(cells.dictionary).take(cells.indices)
    if pa.types.is_integer(kind):
        return _decimal(cells)
    if pa.types.is_floating(kind):
        return _floats(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if pa.types.is_date(kind):
        return pa.array([_cell(cell) for cell in cells.to_pylist()], pa.large_binary())
    if _is_text(kind):
        return _plain_text(_bytes(cells))
    return _bytes(cells) if _is_binary(kind) else pa.nulls(len(cells), pa.large_binary())


def _bytes(cells: pa.Array) -> pa.Array:
    """Text or binary as large_binary: the same bytes, valid as text or not."""
    if cells.type == pa.string_view():
        cells = cells.cast(pa.large_string())
    return cells.cast(pa.large_binary())


def _decimal(cells: pa.Array) -> pa.Array:
    return cells.cast(pa.large_string()).cast(pa.large_binary())


def _floats(values: NDArray[Any]) -> pa.Array:
    values = values.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        whole = (np.abs(values) < _EXACT) & (values == np.trunc(values))
    return _decimal(pa.array(np.where(whole, values, 0.0).astype(np.int64), mask=~whole))


def _plain_text(cells: pa.Array) -> pa.Array:
    """Text that is a whole number in other words becomes that number: few cells are, and only those are looked at."""
    missing = pc.is_in(cells, value_set=pa.array(_MISSING, pa.large_binary()))
    if pc.any(missing).as_py():
        cells = pc.if_else(missing, pa.scalar(None, pa.large_binary()), cells)
    odd = pc.or_kleene(pc.match_substring(cells, pattern=b".0"), pc.equal(cells, b"-0"))
    at = np.flatnonzero(pc.fill_null(odd, False).to_numpy(zero_copy_only=False))
    if not at.size:
        return cells
    mask = np.zeros(len(cells), dtype=bool)
    mask[at] = True
    plain = pa.array([_text(cell) for cell in cells.take(pa.array(at)).to_pylist()], pa.large_binary())
    return pc.replace_with_mask(cells, pa.array(mask), plain)


def _text(text: bytes) -> bytes | None:
    if text in _MISSING:
        return None
    found = _WHOLE.fullmatch(text)
    if found is None:
        return text
    return b"0" if found[1] == b"-0" else found[1]


def _cell(cell: object) -> bytes | None:
    """The canonical id of one Python object."""
    if isinstance(cell, str):
        return _text(cell.encode("utf-8", "surrogatepass"))
    if isinstance(cell, bytes):
        return cell
    if isinstance(cell, (bool, np.bool_)):
        return None
    if isinstance(cell, (int, np.integer)):
        return _digits(int(cell))
    if isinstance(cell, (float, np.floating)):
        value = float(cell)
        return _digits(int(value)) if abs(value) < _EXACT and value == int(value) else None
    if isinstance(cell, Decimal):
        return _digits(int(cell)) if _is_whole(cell) else None
    if isinstance(cell, UUID):
        return str(cell).encode()
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return cell.isoformat().encode()
    return None


def _is_whole(cell: Decimal) -> bool:
    # a number of a million digits is no id, and must not take the time to write it out
    return cell.is_finite() and cell.adjusted() <= _DIGITS and cell == cell.to_integral_value()


def _digits(number: int) -> bytes | None:
    """Decimal text; an integer of thousands of digits, which Python refuses to write out, is its hexadecimal text."""
    try:
        return str(number).encode()
    except ValueError:
        return hex(number).encode()


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def _is_binary(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind))
