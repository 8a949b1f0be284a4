"""Columns without the extension types that databases give to what Arrow lacks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.sources.physical import Cells

__all__ = ["kind_of", "plain_cells"]

# where the digits of a UUID stand in its text
_DIGITS = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])


def kind_of(kind: pa.DataType) -> pa.DataType:
    """The physical type of a column as `plain_cells` gives it: an extension type is its storage, a UUID its text."""
    if not isinstance(kind, pa.BaseExtensionType):
        return kind
    return pa.binary() if kind.extension_name == "arrow.uuid" else kind_of(kind.storage_type)


def plain_cells(cells: pa.Array) -> Cells:
    """A column of a batch without its extension type, which databases give to what Arrow lacks; a UUID is its text."""
    if not isinstance(cells.type, pa.BaseExtensionType):
        return cells
    if cells.type.extension_name != "arrow.uuid":
        return plain_cells(cells.storage)
    raw = pc.fill_null(cells.storage, bytes(16))
    digits = np.frombuffer(b"".join(raw.to_pylist()).hex().encode(), dtype=np.uint8).reshape(len(raw), 32)
    text = np.full((len(raw), 36), ord("-"), dtype=np.uint8)
    text[:, _DIGITS] = digits
    whole = pa.Array.from_buffers(pa.binary(36), len(raw), [None, pa.py_buffer(text.tobytes())]).cast(pa.binary())
    return pc.if_else(cells.is_valid(), whole, pa.scalar(None, pa.binary()))
