"""Adjusted predictions of a line: its mean over rows of a public frame, at chosen values, or over a grid of levels.

As `margins` in Stata, `emmeans` and `marginaleffects` in R give them. For a line each is a linear combination of the coefficients, so
that its standard error is exact given theirs (no delta method is needed). The rows are public: a mean over the private records is not
to be had from a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide._lazy import later
from confide.aggregates.column_codes import columns_of
from confide.errors import PlanError
from confide.schema import Categorical, Design, Schema

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["adjusted_rows"]

_MOST_ROWS = 100_000


def adjusted_rows(
    design: Design, frame: Any, by: str | Sequence[str] | None, at: Mapping[str, Any] | None
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names and rows (q, len(design.names)) whose products with the coefficients are adjusted predictions.

    frame: public rows to average over (a DataFrame or mapping of arrays), or None for the grid of the schema: numeric columns at the middle
    of their bounds, every combination of levels once. at: column -> value or values that replace the column in every row, one prediction
    for each combination. by: columns whose values in the frame (in the grid: whose levels) split the rows into groups.
    Raises `PlanError` for a column that the terms do not use, or a frame without rows.
    """
    schema = design.schema
    used = columns_of(*design.terms)
    groups = (by,) if isinstance(by, str) else tuple(by or ())
    values = {name: _listed(value) for name, value in (at or {}).items()}
    for name in (*groups, *values):
        if name not in used:
            raise PlanError(
                f"the terms do not use the column {name!r}; predictions can be adjusted by: {', '.join(used) or 'none'}"
            )
    both = [name for name in groups if name in values]
    if both:
        raise PlanError(f"{both[0]!r} is in by and in at; at sets a column in every row, so leave it out of by")
    rows = _grid(schema, used, groups, values) if frame is None else _public(frame, used, values)
    names, out = [], []
    for chosen in product(*values.values()):
        told = dict(zip(values, chosen, strict=True))
        here = rows.assign(**told) if told else rows
        matrix = design.matrix(here) if used else np.ones((len(here), len(design.names)))
        if not np.isfinite(matrix).all():
            raise PlanError(
                "the frame has missing values or labels that are no levels; give complete rows to predict for"
            )
        said = [f"{name}={value}" for name, value in told.items()]
        if not groups:
            names.append(", ".join(said) or "average")
            out.append(matrix.mean(axis=0))
            continue
        keys = here[list(groups)].apply(tuple, axis=1).to_numpy()
        for key in dict.fromkeys(keys):
            own = np.array([other == key for other in keys])
            names.append(", ".join([*(f"{name}={value}" for name, value in zip(groups, key, strict=True)), *said]))
            out.append(matrix[own].mean(axis=0))
    return tuple(names), np.array(out)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str) or np.isscalar(value):
        return [value]
    found = list(value)
    if not found:
        raise PlanError("at needs at least one value for each column, as in at={'age': [20, 40]}")
    return found


def _public(frame: Any, used: tuple[str, ...], values: Mapping[str, Any]) -> pd.DataFrame:
    try:
        rows = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(dict(frame))
    except (TypeError, ValueError):
        raise PlanError(
            f"frame must be a DataFrame or a mapping of columns, got {type(frame).__name__}; leave it out for the grid of the schema"
        ) from None
    missing = [name for name in used if name not in rows.columns and name not in values]
    if missing:
        raise PlanError(f"the frame lacks the column {missing[0]!r}; give it there, or a value of it in at")
    if not len(rows):
        raise PlanError("the frame has no rows to average over; leave it out for the grid of the schema")
    return rows.reset_index(drop=True)


def _grid(schema: Schema, used: tuple[str, ...], groups: tuple[str, ...], values: Mapping[str, Any]) -> pd.DataFrame:
    """Every combination of levels once; other columns at the middle of their bounds."""
    axes: dict[str, list[Any]] = {}
    for name in used:
        column = schema[name]
        if isinstance(column, Categorical):
            axes[name] = list(column.levels)
        elif column.kind == "integer" and name in groups:
            axes[name] = list(range(int(column.low), int(column.high) + 1))
        elif name in groups:
            raise PlanError(
                f"{name!r} has no levels to group by; write at={{{name!r}: [...]}} with the values to predict at"
            )
        else:
            axes[name] = [float(column.low + (column.high - column.low) / 2)]
        if name in values:
            axes[name] = values[name][:1]
    size = int(np.prod([len(axis) for axis in axes.values()], dtype=float))
    if size > _MOST_ROWS:
        raise PlanError(f"the grid of all levels has {size} rows; give a frame of the rows to average over")
    return pd.DataFrame(list(product(*axes.values())), columns=list(axes)) if axes else pd.DataFrame(index=[0])
