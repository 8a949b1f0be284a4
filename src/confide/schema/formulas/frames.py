"""Columns of public frames, for prediction: numbers as float64, labels as positions in their levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from confide._arrays import Array
from confide._text import near_match
from confide.errors import PlanError
from confide.schema.categorical import Categorical
from confide.schema.schema import Schema

__all__ = ["public_columns", "rows_of"]


def public_columns(frame: Any, names: Sequence[str], schema: Schema) -> dict[str, Array]:
    """The named columns of a DataFrame or a mapping of arrays, each of shape (rows,); NaN is missing, -1 no level.

    A single number or label stands for all rows. Raises `PlanError` for a frame of another kind, a column that is
    missing or holds no numbers, and columns of different lengths.
    """
    held = _held(frame)
    cells: dict[str, Any] = {}
    for name in names:
        if name not in held:
            raise PlanError(
                f"the frame has no column {name!r}{near_match(name, held)}; it has: {', '.join(held) or 'none'}; "
                f"add {name!r}, the prediction needs {', '.join(names)}"
            )
        cells[name] = frame[name]
    lengths = {len(column) for column in cells.values() if not _is_single(column)}
    if len(lengths) > 1:
        raise PlanError(f"the columns {', '.join(names)} of the frame must have one length, got {sorted(lengths)}")
    rows = lengths.pop() if lengths else 1
    return {
        name: _column(name, [column] * rows if _is_single(column) else column, schema) for name, column in cells.items()
    }


def has_columns(data: Any) -> bool:
    """Whether data name their columns, as frames and mappings do, and are no array."""
    return isinstance(data, Mapping) or hasattr(data, "columns")


def rows_of(frame: Any) -> int:
    """The number of rows of a frame, also when no column of it is needed."""
    _held(frame)
    if not isinstance(frame, Mapping):
        return int(frame.shape[0])
    return max((len(column) for column in frame.values() if not _is_single(column)), default=1)


def _held(frame: Any) -> tuple[str, ...]:
    """The names of the columns of a frame."""
    if isinstance(frame, Mapping):
        return tuple(map(str, frame))
    if hasattr(frame, "columns") and hasattr(frame, "shape"):
        return tuple(map(str, frame.columns))
    raise PlanError(
        f"a frame must be a DataFrame or a mapping of names to arrays, got {type(frame).__name__}; "
        'write predict({"age": [30, 40], "region": ["N", "S"]})'
    )


def _is_single(column: Any) -> bool:
    return isinstance(column, str) or not hasattr(column, "__len__") or getattr(column, "shape", None) == ()


def _column(name: str, cells: Any, schema: Schema) -> Array:
    column = schema[name]
    if isinstance(column, Categorical):
        return column.indices(cells.to_list() if hasattr(cells, "to_list") else list(cells))
    try:
        if hasattr(cells, "to_numpy") and type(cells).__module__.startswith("pandas"):
            values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.asarray(cells.to_numpy() if hasattr(cells, "to_numpy") else cells, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlanError(
            f"the column {name!r} of the frame must hold numbers; convert it, as in frame[{name!r}].astype(float)"
        ) from None
    if values.ndim != 1:
        raise PlanError(f"the column {name!r} of the frame must have one dimension, got {values.ndim}")
    return np.asarray(values, dtype=np.float64)
