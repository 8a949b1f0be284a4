"""Records individually, in order: for a release in which noise is added to every row separately (`confide.local`), and
for nothing else.

A `RecordSource`, which methods are handed, gives sums alone. Rows come from here, for the faces of `cf.local`, which no method sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import SchemaError
from confide.schema import Schema
from confide.sources.coder import reader_of
from confide.sources.coding import Block, Reader, guarded
from confide.sources.grouping.ids import canonical
from confide.sources.source import RecordSource, check_id


class RowSource:
    """The rows of what `confide.read` opened; it shows nothing that depends on them but the rows themselves."""

    def __init__(self, source: RecordSource) -> None:
        self._source = source

    @property
    def schema(self) -> Schema:
        return self._source.schema

    @property
    def dataset(self) -> str | None:
        return self._source.dataset

    def check(self, columns: Sequence[str]) -> None:
        """As `RecordSource.check`, with a new check of what runs again, before anything is charged.

        Raises `SchemaError` for a derived column: it follows from protected columns, by anyone and without a charge.
        """
        for name in columns:
            if (own := self.schema.derive.get(name)) is not None:
                raise SchemaError(
                    f"{name!r} is derived, and rows are protected as the data have them",
                    f"name {', '.join(own.behind)} instead, and derive {name!r} from the protected rows",
                )
        with self._source.opened():
            self._source.check(columns)

    def rowwise(
        self, names: Sequence[str], rows: int, ids: str | None = None
    ) -> Iterator[tuple[list[NDArray[np.float64]], Any]]:
        """Blocks of at most `rows` records: numbers, positions of levels, NaN or -1 where missing; and canonical ids (`sources.ids`),
        an Arrow array, None where none are asked for.

        ids: the id column, None for none. What is raised names no record.
        """
        self._source.check(names)
        parts = self._source._parts
        if ids is not None:
            for part in parts:
                check_id(part, ids, (*self.schema.in_data, ids))
        columns = [self.schema[name] for name in names]
        asked = (*names, *(() if ids is None else (ids,)))
        for part in parts:
            pieces = part.pieces(asked)
            while (piece := guarded(f"{part.place} could not be read", partial(next, pieces, None))) is not None:
                readers = [reader_of(one, self.schema.file.marks) for one in columns]
                blocks = piece.blocks(rows)
                while (block := guarded(f"{piece.place} could not be read", partial(next, blocks, None))) is not None:
                    yield guarded(f"{piece.place} could not be coded", partial(_read, readers, block, ids is not None))
            part.verify()


def _read(readers: Sequence[Reader], block: Block, with_ids: bool) -> tuple[list[NDArray[np.float64]], Any]:
    """A block's cells as numbers, and its ids from its last column where there are any."""
    read = [reader(cells) for reader, cells in zip(readers, block.columns, strict=False)]
    return read, canonical(block.columns[-1]) if with_ids else None
