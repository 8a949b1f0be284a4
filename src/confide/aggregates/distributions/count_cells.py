"""Where counts lie: one record as a cell among edges that halve a declared bound.

With the bound C of an outcome between 0 and C the edges are C 2^(-j/2), j = 0..30. A histogram of these cells moves by 1 in one cell for
one record, sensitivity 1, and by 1 in two under substitute, sqrt(2): `Histogram`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.rows import DesignRows, only
from confide.schema import Design

__all__ = ["COUNT_CELLS", "CountIndices", "count_edges"]


#: Cells between 0 and C.
COUNT_CELLS = 31


def count_edges(high: float) -> Array:
    """Upper edges of the cells, (31,), the last one C."""
    return np.asarray(high * 2.0 ** (np.arange(1 - COUNT_CELLS, 1) / 2))


@dataclass(frozen=True)
class CountIndices(DesignRows):
    """The cell of a record's outcome, from 1 on, up to its upper edge; 0 for a record that is dropped."""

    design: Design
    kind: ClassVar[str] = "count cells"
    width: ClassVar[int] = 1
    cells: ClassVar[int] = COUNT_CELLS
    l1: ClassVar[int] = COUNT_CELLS
    l2_squared: ClassVar[int] = COUNT_CELLS**2

    def __call__(self, codes: Array) -> Array:
        terms, keep = self.design.codes(codes)
        # in steps of the code, so that the last edge is the last code
        edges = count_edges(float(self.design.response.steps - 1))
        cell = 1.0 + np.minimum(np.searchsorted(edges, terms[-1], side="left"), COUNT_CELLS - 1)
        return only(cell, keep)[None, :]
