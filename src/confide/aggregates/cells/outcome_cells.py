"""How many records each distinct row of a model matrix has, by outcome: one record is in one cell.

A histogram of these cells moves by 1 in one cell for one record, sensitivity 1, and by 1 in two under substitute, sqrt(2), whatever the
rows are; a unit of m records moves at most m times 1 (`Histogram`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide._arrays import Array
from confide.aggregates.cells.histogram import CellNumber
from confide.aggregates.lines.rows import DesignRows, only
from confide.schema import Design

__all__ = ["OutcomeCells"]


@dataclass(frozen=True)
class OutcomeCells(CellNumber, DesignRows):
    """The cell 1 + 2 r of a record of row r with an outcome of 0, 2 + 2 r with another one; 0 for a record that is dropped.

    names, sizes: the columns behind the rows, of so many values; row_of: the row of each combination, the last column's changing fastest.
    """

    design: Design
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    row_of: tuple[int, ...]
    kind: ClassVar[str] = "outcome cells"

    @property
    def cells(self) -> int:
        return 2 * (max(self.row_of) + 1)

    @property
    def stated(self) -> tuple[object, ...]:
        return (list(self.names), list(self.sizes), list(self.row_of))

    def __call__(self, codes: Array) -> Array:
        terms, keep = self.design.codes(codes)
        at = np.zeros(codes.shape[1], dtype=np.int64)
        for name, size in zip(self.names, self.sizes, strict=True):
            # what is missing is dropped by `keep`, wherever it is put
            own = np.clip(codes[self.design.columns.index(name)], 0, size - 1)
            at = at * size + own.astype(np.int64)
        cell = 1.0 + 2 * np.array(self.row_of, dtype=np.float64)[at] + (terms[-1] > 0)
        return only(cell, keep)[None, :]
