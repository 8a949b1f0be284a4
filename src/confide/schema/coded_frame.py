"""Test data as a schema reads them: what a method's non-private `reference` is computed from.

Values are clipped to their public bounds and rounded to their grid, missing ones follow the rule of their column, and
derived terms and indicators come from the model matrix. These are the same codes that a release is made from, so a
reference and a release analyze the same records in the same way. Nothing here is private, so it is for test data
alone, and no release ever holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.schema.columns import Categorical
from confide.schema.formulas.conditions import parse_predicate
from confide.schema.formulas.design import ModelMatrix, public_columns
from confide.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


@dataclass(frozen=True, eq=False)
class CodedFrame:
    """Test data as a schema reads them: the codes of each column.

    Parameters
    ----------
    schema : Schema
        The schema.
    codes : mapping of str to array
        Codes of each column that the frame has, shape (rows,); -1 where the
        record is dropped.

    Examples
    --------
    >>> from confide.schema import Categorical, Numeric
    >>> schema = Schema({"x": Numeric(0, 4, steps=5), "y": Numeric(0, 9, on_missing=0.0), "k": Categorical(["a", "b"])})
    >>> practice = CodedFrame.of({"x": [1.0, 7.0, None], "y": [3.0, None, 5.0], "k": ["b", "a", "b"]}, schema)
    >>> practice["x"].tolist()[:2], practice["y"].round(3).tolist(), practice["k"].tolist()
    ([1.0, 4.0], [3.0, 0.0, 5.0], ['b', 'a', 'b'])
    >>> rows, response = practice.rows(ModelMatrix.of("y ~ x + k", schema))
    >>> rows.tolist(), response.round(3).tolist()
    ([[1.0, 1.0, 1.0], [1.0, 4.0, 0.0]], [3.0, 0.0])
    """

    schema: Schema
    codes: Mapping[str, Array]

    @classmethod
    def of(cls, frame: Any, schema: Schema) -> CodedFrame:
        """Code the records of a frame.

        Parameters
        ----------
        frame : DataFrame or mapping of arrays
            The records. Columns that the schema does not know are ignored.
        schema : Schema
            The schema.

        Returns
        -------
        CodedFrame
            The coded records.

        Raises
        ------
        PlanError
            The frame is of another kind, or a column has no numbers where the
            schema says so.
        """
        if not isinstance(schema, Schema):
            raise PlanError(
                f"schema must be a confide.Schema, got {type(schema).__name__}", "write CodedFrame.of(frame, schema)"
            )
        held = frame if isinstance(frame, Mapping) else getattr(frame, "columns", ())
        columns = public_columns(frame, [name for name in schema.in_data if name in held], schema)
        codes = {name: schema[name].code(values) for name, values in columns.items()}
        if schema.derive:
            from confide.schema.derive import (
                derived_codes,  # here, because schemas without derived columns need not load it
            )

            codes = derived_codes(schema, codes)
        return cls(schema, codes)

    @staticmethod
    def checked(frame: Any) -> CodedFrame:
        """`frame`, which must be test data that a schema has read; `PlanError` for anything else."""
        if not isinstance(frame, CodedFrame):
            raise PlanError(
                f"reference takes test data as a schema reads them, got {type(frame).__name__}",
                "write method.reference(confide.schema.CodedFrame.of(frame, schema))",
            )
        return frame

    def __len__(self) -> int:
        return len(next(iter(self.codes.values()), ()))

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """The values of a column in its own units, or its labels; missing where the rule drops the record."""
        return pd.Series(self.schema[name].decode(self._coded(name)), name=name)

    def _coded(self, name: str) -> Array:
        if name not in self.codes:
            raise PlanError(f"the test data have no column {name!r}; they have: {', '.join(self.codes)}")
        return self.codes[name]

    def where(self, condition: str | None) -> CodedFrame:
        """The records of a subgroup; all of them for None."""
        if condition is None:
            return self
        predicate = parse_predicate(condition, self.schema)
        inside = predicate(np.stack([self._coded(name) for name in predicate.columns]))
        return CodedFrame(self.schema, {name: codes[inside] for name, codes in self.codes.items()})

    def present(self, name: str) -> Array:
        """The values (rows,) of a numeric column without the records that its rule drops."""
        column, codes = self.schema[name], self._coded(name)
        if isinstance(column, Categorical):
            raise PlanError(f"{name!r} is categorical and has no values in between", "name a numeric column")
        return column.decode(codes[codes >= 0])

    def rows(self, design: ModelMatrix) -> tuple[Array, Array]:
        """(X, y) of the records that a design counts, shapes (rows, len(design.names)) and (rows,), in the terms' own units."""
        codes, keep = design.codes(np.stack([self._coded(name) for name in design.columns]))
        kept = codes if keep is None else codes[:, keep]
        terms = [term.grid.decode(row) for term, row in zip((*design.terms, design.response), kept, strict=True)]
        ones = [np.ones(kept.shape[1])] * int(design.intercept)
        return np.column_stack([*ones, *terms[:-1]]), np.asarray(terms[-1])
