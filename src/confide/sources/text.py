"""Text cells: made valid, and read as numbers, each cell by itself."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["WORDS", "plain", "text_array", "text_numbers", "valid_text"]

Floats: TypeAlias = NDArray[np.float64]

# what booleans look like in text, and the numbers that they mean
WORDS = {"False": 0.0, "false": 0.0, "FALSE": 0.0, "True": 1.0, "true": 1.0, "TRUE": 1.0}
_WORD_VALUES = np.array([*WORDS.values(), np.nan])


def plain(cells: pa.Array) -> NDArray[Any]:
    return np.asarray(cells.to_numpy(zero_copy_only=False))


def text_array(cells: list[str]) -> pa.Array:
    """Python strings as Arrow text; a lone surrogate, which has no UTF-8 form, becomes "?" in its own cell."""
    try:
        return pa.array(cells, pa.large_string())
    except (UnicodeEncodeError, pa.ArrowException):
        return pa.array([cell.encode("utf-8", "replace").decode() for cell in cells], pa.large_string())


def valid_text(cells: pa.Array) -> pa.Array:
    """The same cells as valid UTF-8: files may hold any bytes, and what is built on Arrow trusts them blindly."""
    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:
        view = cells.type == pa.string_view()
        raw = cells.cast(pa.binary_view() if view else pa.large_binary()).to_pylist()
        return pa.array([None if cell is None else cell.decode("utf-8", "replace") for cell in raw], pa.large_string())
    return cells.cast(pa.large_string()) if cells.type == pa.string_view() else cells


def text_numbers(cells: pa.Array) -> Floats:
    """Each cell as the double nearest to the decimal number in it, NaN where there is none; cells are valid UTF-8."""
    values = _parsed(cells)
    (rest,) = np.nonzero(np.isnan(values))
    if rest.size:
        trimmed = pc.utf8_trim_whitespace(cells.take(pa.array(rest)))
        again = _parsed(trimmed)
        word = plain(pc.fill_null(pc.index_in(trimmed, value_set=pa.array(list(WORDS), trimmed.type)), -1))
        values[rest] = np.where(word >= 0, _WORD_VALUES[word], again)
    return values


def _parsed(cells: pa.Array) -> Floats:
    """polars' cast: correctly rounded, cell by cell, null for what is no number; pandas' parser looks at all cells."""
    import polars as pl  # here, because sources without text need not load it

    series = pl.Series(values=cells, dtype=None)
    return np.asarray(series.cast(pl.Float64, strict=False).to_numpy(writable=True), dtype=np.float64)
