"""Between NumPy and Arrow by their memory, where pyarrow's own ways load pandas: a tenth of a second, of which nothing is used.

pyarrow asks whether pandas is there in `pa.array`, `pa.scalar`, `to_numpy`, and where a compute function is given a Python value. What
has no plain memory goes its way here too. Also the hashes of ids, which nothing in pyarrow makes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_TEXT = pa.large_string()
# Longer ids are hashed one by one.
_WORDS = 8


def from_arrow(cells: pa.Array, null: float | None = None) -> NDArray[Any]:
    """The values of an Arrow array, or of one chunk. null: what stands for a missing one; left out, what pyarrow puts there.

    >>> from_arrow(pa.array([3, None, 5]), -1).tolist(), from_arrow(pa.array([True, None])[:1]).tolist()
    ([3, -1, 5], [True])
    """
    kind, rows = cells.type, len(cells)
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    missing = missing_of(cells) if cells.null_count else None
    plain = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if missing is not None and null is None and pa.types.is_floating(kind):
        null = np.nan
    if not plain or kind == pa.float16() or (missing is not None and null is None):
        return np.asarray(cells.to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind):
        values = _bits(cells.buffers()[1], cells.offset, rows)
    else:
        dtype = np.dtype(kind.to_pandas_dtype())
        whole = np.frombuffer(cells.buffers()[1] or b"", dtype=dtype, count=cells.offset + rows if rows else 0)
        values = whole[cells.offset :] if rows else whole
    return values if missing is None else np.where(missing, np.array(null, dtype=values.dtype), values)


def missing_of(cells: pa.Array) -> NDArray[np.bool_]:
    """Where an Arrow array has no value.

    >>> missing_of(pa.array(["a", None])).tolist(), missing_of(pa.nulls(1)).tolist()
    ([False, True], [True])
    """
    return from_arrow(cells.is_null())


def _bits(buffer: Any, start: int, count: int) -> NDArray[np.bool_]:
    if not count:
        return np.zeros(0, dtype=bool)
    packed = np.frombuffer(buffer, dtype=np.uint8)[start // 8 : (start + count + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[start % 8 : start % 8 + count].view(bool)


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


def text_to_arrow(cells: Sequence[str | bytes | None], kind: pa.DataType = _TEXT) -> pa.Array:
    """Text, or bytes, as large strings or as another kind of them; raises `UnicodeEncodeError` for what has no form in UTF-8.

    >>> text_to_arrow(["a", None, "é"]).to_pylist(), text_to_arrow([b"a"], pa.large_binary()).to_pylist()
    (['a', None, 'é'], [b'a'])
    """
    raw = [cell.encode() if isinstance(cell, str) else cell or b"" for cell in cells]
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum([len(one) for one in raw], dtype=np.int64)])
    there = np.array([cell is not None for cell in cells], dtype=bool)
    buffers = [None if there.all() else _packed(there), pa.py_buffer(ends), pa.py_buffer(b"".join(raw))]
    own = kind if kind == pa.large_binary() else _TEXT
    return pa.Array.from_buffers(own, len(raw), buffers).cast(kind)


def scalar(value: str | bytes, like: pa.Array) -> Any:
    """A text that compute functions compare with an array of texts."""
    return text_to_arrow([value], like.type)[0]


def null(kind: pa.DataType) -> Any:
    """The missing value of a kind."""
    return pa.nulls(1, kind)[0]


def hashes(cells: pa.Array, seed: int = 1) -> NDArray[np.uint64]:
    """A hash of each cell, of large binaries: equal cells have one. What stands for a missing cell is of no use.

    >>> one, other, again = hashes(pa.array([b"7", b"07", b"7"], pa.large_binary())).tolist()
    >>> one == again, one == other
    (True, False)
    """
    assert sys.byteorder == "little"
    rows = len(cells)
    ends = (
        np.frombuffer(cells.buffers()[1], dtype=np.int64, count=rows + 1, offset=8 * cells.offset)
        if rows
        else np.zeros(1, np.int64)
    )
    raw, starts, sizes = cells.buffers()[2], ends[:-1], np.diff(ends)
    # eight bytes more, so that a word may begin at the last byte
    padded = np.zeros(int(ends[-1] - ends[0]) + 8, dtype=np.uint8)
    padded[:-8] = np.frombuffer(raw, dtype=np.uint8)[ends[0] : ends[-1]] if raw is not None else 0
    words: NDArray[np.uint64] = np.ndarray(len(padded) - 7, dtype=np.uint64, buffer=padded.data, strides=(1,))
    with np.errstate(over="ignore"):
        found = sizes.astype(np.uint64) * _ODD ^ np.uint64(seed)
        for at in range(min(_WORDS, -(-int(sizes.max(initial=0)) // 8))):
            (on,) = np.nonzero(sizes > 8 * at)
            left = np.minimum(sizes[on] - 8 * at, 8).astype(np.uint64)
            word = words[starts[on] - ends[0] + 8 * at] & (~np.uint64(0) >> (np.uint64(64) - np.uint64(8) * left))
            found[on] = _mixed(found[on] ^ word)
        for at in np.flatnonzero(sizes > 8 * _WORDS).tolist():
            found[at] ^= np.frombuffer(blake2b(cells[at].as_py() or b"", digest_size=8).digest(), dtype=np.uint64)[0]
        return _mixed(found)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A step of SplitMix64: each bit of a word reaches all that follow and, by the shifts, those before."""
    words = (words + _ODD) * _MIX
    words ^= words >> np.uint64(27)
    words *= _ODD
    return words ^ (words >> np.uint64(31))
