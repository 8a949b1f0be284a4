"""Parquet files, one row group at a time.

One stream over a whole file would hold most of it in memory; one over a single row group holds that group. A piece is
a row group, so that two threads need the room of two.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from confide.errors import SourceError
from confide.sources.parts import Block, Mark, Part, Piece, guarded

__all__ = ["ParquetPart"]


@dataclass(frozen=True)
class ParquetPart(Part):
    """One Parquet file: its metadata, read when it was opened."""

    mark: Mark
    metadata: pq.FileMetaData = field(repr=False)
    schema: pa.Schema = field(repr=False)
    type: str = field(default="Parquet file", init=False)
    rereadable: bool = field(default=True, init=False)
    travels: ClassVar[bool] = True

    @classmethod
    def open(cls, mark: Mark) -> ParquetPart:
        """Raises `SourceError` when it is no Parquet file, or is packed as this pyarrow cannot unpack it."""
        return _unpacked(
            guarded(f"{mark.place} has no readable Parquet metadata; is it a Parquet file?", partial(cls._open, mark))
        )

    @classmethod
    def _open(cls, mark: Mark) -> ParquetPart:
        with mark.open() as raw, pq.ParquetFile(raw) as file:
            return cls(mark, file.metadata, file.schema_arrow)

    @property
    def place(self) -> str:
        return self.mark.place

    @property
    def file(self) -> Hashable:
        return self.mark.origin

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def kind(self, name: str) -> Any:
        return self.schema.field(name).type

    def verify(self) -> None:
        self.mark.verify()

    def count(self) -> int:
        return int(self.metadata.num_rows)

    @property
    def groups(self) -> int:
        """How many pieces there are."""
        return int(self.metadata.num_row_groups)

    def __reduce__(self) -> Any:
        # the metadata of a large file are large: who gets a part reads them again
        return ParquetPart.open, (self.mark,)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for group in range(self.metadata.num_row_groups):
            yield Piece(self.place, partial(self._blocks, tuple(names), group))

    def _blocks(self, names: tuple[str, ...], group: int, rows: int) -> Iterator[Block]:
        # opened anew for each row group: a file has one position, and its buffers go with it
        with self.mark.open() as raw, pq.ParquetFile(raw, metadata=self.metadata) as file:
            for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=list(names), use_threads=False):
                yield Block(batch.num_rows, [batch.column(name) for name in names])


def _unpacked(part: ParquetPart) -> ParquetPart:
    """The part, once its metadata name no codec that is not here: which there are hangs on how pyarrow was built."""
    groups = map(part.metadata.row_group, range(part.metadata.num_row_groups))
    named = {group.column(at).compression for group in groups for at in range(group.num_columns)}
    lacking = sorted(codec for codec in named if not _is_here(codec))
    if lacking:
        raise SourceError(
            f"{part.place} is packed by {', '.join(lacking)}, which this pyarrow cannot unpack; write the file again with "
            'compression="zstd"'
        )
    return part


def _is_here(codec: str) -> bool:
    try:
        return codec == "UNCOMPRESSED" or bool(pa.Codec.is_available(codec))
    except ValueError:  # a codec of the format that pyarrow never had
        return False
