"""A formula with an outcome of two values, and the way from the scaled units of the fit to log-odds in the data's units."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.lines.rows import Box
from confide.errors import PlanError
from confide.schema import Categorical, Design, Integer, Schema
from confide.schema.formulas.formula import cut
from confide.schema.formulas.names import column_named, sides

__all__ = ["binary_design", "log_odds"]

Array = NDArray[np.float64]


def binary_design(
    formula: str, schema: Schema, term_bounds: Mapping[str, tuple[float, float]] | None = None
) -> tuple[Design, tuple[str, str]]:
    """The design and the two levels of its outcome, the base first.

    The outcome is a categorical column of two levels, whose second one counts as 1 (the design then holds it as Integer(0, 1), which has
    the same codes), or a number between 0 and 1, of which values from one half on count as 1. Raises `PlanError` for any other.
    """
    name = column_named(sides(formula)[0], schema.names) if isinstance(formula, str) else ""
    column = schema.columns.get(name)
    levels = ("0", "1")
    if isinstance(column, Categorical):
        if len(column.levels) != 2:
            raise PlanError(
                f"the outcome {name!r} of {cut(formula)!r} has {len(column.levels)} levels, a logistic regression needs two; put a column "
                "into the data that says whether a record has the level, and declare it as cf.Integer(0, 1)"
            )
        levels = (column.levels[0], column.levels[1])
        columns = {key: Integer(0, 1) if key == name else own for key, own in schema.columns.items()}
        schema = schema.with_columns(columns)
    design = Design.of(formula, schema, term_bounds=term_bounds)
    response = design.response
    if (response.low, response.high) != (0.0, 1.0):
        raise PlanError(
            f"the outcome {response.name!r} of {cut(formula)!r} lies between {response.low:g} and {response.high:g}, a logistic regression "
            "needs 0 and 1; where the data hold 0 and 1 declare Integer(0, 1), where they hold two labels Categorical with these as "
            "levels; for a count ask for a Poisson regression (`--method poisson`, cf.poisson_regression); of any other "
            "number put a 0/1 column into the data, for instance whether it is above a limit"
        )
    if not design.names:
        raise PlanError(f'the formula {cut(formula)!r} has no coefficient; write "y ~ a", or "y ~ 1"')
    return design, levels


def log_odds(design: Design, box: Box | None = None) -> Array:
    """J: coefficients in the data's units are J theta, in the order of `design.names`. box: where z was measured from, the public bounds
    when left out; the design has an intercept.
    """
    middle, half = (Box.of(design) if box is None else box).arrays
    matrix = np.diag(np.concatenate([[1.0], 1 / half]))
    matrix[0, 1:] = -middle / half
    return matrix
