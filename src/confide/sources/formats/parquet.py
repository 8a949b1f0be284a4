"""Parquet files, one row group at a time.

One stream over a whole file would hold most of it in memory; one over a single row group holds that group. A piece is
a row group, so that two threads need the room of two.

Folders named key=value: a file's records have these values in columns of those names, as Hive, Spark, DuckDB and Arrow write them.

A value is text, read by the schema's rules as the text of a CSV file is. Which values there are may tell about the
records, and an id's folder is named by the id. So messages name the folder that was given, and never those within it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from confide.errors import SourceError
from confide.sources.coding import Block, Coded, Mark, Part, Piece, guarded
from confide.sources.formats.renamed import PartAround


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
        """Raises `SourceError` when it is not a Parquet file, or is packed as this pyarrow cannot unpack it."""
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
    """The part, once its metadata name no codec that is not here: which there are depends on how pyarrow was built."""
    groups = map(part.metadata.row_group, range(part.metadata.num_row_groups))
    named = {group.column(at).compression for group in groups for at in range(group.num_columns)}
    lacking = sorted(codec for codec in named if not _is_here(codec))
    if lacking:
        raise SourceError(
            f"{part.place} is packed by {', '.join(lacking)}, which this pyarrow cannot unpack",
            'write the file again with compression="zstd"',
        )
    return part


def _is_here(codec: str) -> bool:
    try:
        return codec == "UNCOMPRESSED" or bool(pa.Codec.is_available(codec))
    except ValueError:  # a codec of the format that pyarrow never had
        return False


_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def is_key(folder: str) -> bool:
    """Whether a folder's name is a key and its value.

    >>> is_key("year=2020"), is_key("2020"), is_key("=2020")
    (True, False, False)
    """
    key, sign, _ = folder.partition("=")
    return bool(key and sign)


def _keys_of(folders: Sequence[str]) -> dict[str, str | None]:
    """The keys in the names of folders, from the outermost in; None where there is no value.

    >>> _keys_of(("year=2020", "old", "region=N%20W"))
    {'year': '2020', 'region': 'N W'}
    """
    pairs = (folder.partition("=") for folder in folders if is_key(folder))
    return {unquote(key): None if value == _NOTHING else unquote(value) for key, _, value in pairs}


@dataclass(frozen=True)
class FolderPart(PartAround):
    """A file in folders within the one that was asked for, with the columns that their names give. A column of the file
    itself goes before one of the same name.
    """

    keys: Mapping[str, str | None] = field(repr=False)
    shown: str

    @classmethod
    def of(cls, part: Part, folders: Sequence[str], place: str) -> FolderPart:
        """folders: their names, from the outermost in; place: how messages call the file, without them."""
        return cls(part, {key: value for key, value in _keys_of(folders).items() if key not in part.names}, place)

    @property
    def place(self) -> str:
        return self.shown

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.part.names, *self.keys)

    def kind(self, name: str) -> Any:
        return pa.string() if name in self.keys else self.part.kind(name)

    def verify(self) -> None:
        guarded(f"{self.place} changed since it was opened; open it again with confide.read(...)", self.part.verify)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        asked = tuple(name for name in names if name not in self.keys)
        for piece in self.part.pieces(asked):
            yield replace(piece, place=self.place, blocks=partial(self._blocks, piece, tuple(names)))

    def _blocks(self, piece: Piece, names: tuple[str, ...], rows: int) -> Iterator[Block]:
        cells = {key: pa.array([value], pa.string()) for key, value in self.keys.items()}
        for block in piece.blocks(rows):
            own = iter(block.columns)
            yield Block(
                block.rows,
                [Coded(np.zeros(block.rows, np.int8), cells[name]) if name in cells else next(own) for name in names],
            )
