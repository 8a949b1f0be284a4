"""Labels that match no declared level, counted for the data steward: a misspelt level is silently missing otherwise.

The counts are exact and come from records: they are for the eyes of anyone who may see the records, and belong in no release, plan, message
or log. Nothing on the way to a release calls this room.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.schema import Categorical
from confide.sources.aggregation import BLOCK_ROWS
from confide.sources.coding import Block, Labels, Part, Reader, guarded, plain, valid_text
from confide.sources.source import RecordSource


def unmatched_labels(source: RecordSource) -> dict[str, int]:
    """For each categorical column of the schema, how many cells hold something that is none of its levels. PRIVATE: exact counts.

    An empty cell holds nothing and is not counted. Raises `SourceError` when the records cannot be read.

    >>> from confide.schema import Categorical, Schema
    >>> from confide.sources import read
    >>> schema = Schema({"region": Categorical(["north", "south"])})
    >>> unmatched_labels(read({"region": ["north", "South", "", None, "south "]}, schema))
    {'region': 2}
    """
    levels = {
        name: column.levels for name in source.schema.names if isinstance(column := source.schema[name], Categorical)
    }
    if not levels:
        return {}
    source.check(tuple(levels))
    found = np.zeros(len(levels), dtype=np.int64)
    for part in source._parts:
        found += guarded(f"{part.place} could not be read", partial(_of_part, part, levels))
    return dict(zip(levels, found.tolist(), strict=True))


def _of_part(part: Part, levels: dict[str, tuple[str, ...]]) -> NDArray[np.int64]:
    readers = [(Labels(own), _Present()) for own in levels.values()]
    found = np.zeros(len(readers), dtype=np.int64)
    with np.errstate(all="ignore"):
        for piece in part.pieces(tuple(levels)):
            for block in piece.blocks(BLOCK_ROWS):
                found += _of_block(block, readers)
    part.verify()
    return found


def _of_block(block: Block, readers: Sequence[tuple[Labels, _Present]]) -> NDArray[np.int64]:
    cells = zip(block.columns, readers, strict=True)
    return np.array([np.count_nonzero((labels(own) < 0) & (present(own) > 0)) for own, (labels, present) in cells])


class _Present(Reader):
    """1 for a cell that holds something, 0 for an empty one: null, NaN or empty text."""

    missing = 0.0

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.isnan(values), 0.0, 1.0)

    def booleans(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.numbers(values)

    def integers(self, cells: pa.Array) -> NDArray[np.float64]:
        return plain(cells.is_valid()).astype(np.float64)

    def text(self, cells: pa.Array) -> NDArray[np.float64]:
        return plain(pc.fill_null(pc.not_equal(valid_text(cells), ""), False)).astype(np.float64)

    def cell(self, cell: object) -> float:
        # pandas' marks of a missing value are not equal to themselves, or refuse to say so
        nothing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
        return 0.0 if nothing or (isinstance(cell, (float, np.floating)) and np.isnan(cell)) else 1.0
