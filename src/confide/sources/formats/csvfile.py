"""CSV files, plain or gzipped, in blocks of whole lines."""

from __future__ import annotations

import gzip
import io
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, ClassVar, cast

import pyarrow as pa

from confide.errors import SchemaError, SourceError
from confide.sources.formats.lines import LONGEST, count_records, parse_line, split
from confide.sources.parts import Block, Mark, Part, Piece, cut, guarded

__all__ = ["CsvPart", "checked_delimiter"]

# bytes read at once: some 10^4 records, so that both the text and its cells stay near the processor
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class CsvPart(Part):
    """One CSV file with a header line. All columns are text; what a cell means is decided by the schema."""

    mark: Mark
    names: tuple[str, ...]
    delimiter: str
    type: str = field(default="CSV file", init=False)
    rereadable: bool = field(default=True, init=False)
    travels: ClassVar[bool] = True

    @classmethod
    def open(cls, mark: Mark, delimiter: str) -> CsvPart:
        """Raises `SourceError` for a file that has no header line."""
        names = guarded(f"the header line of {mark.place} could not be read", partial(_header, mark, delimiter))
        if names is None:
            raise SourceError(
                f"{mark.place} has no readable header line; its first line must name the columns, in UTF-8"
            )
        return cls(mark, names, delimiter)

    @property
    def place(self) -> str:
        return self.mark.place

    @property
    def file(self) -> Hashable:
        return self.mark.origin

    def kind(self, name: str) -> Any:
        return pa.string()

    def verify(self) -> None:
        self.mark.verify()

    def count(self) -> int:
        return sum(count_records(block) for block in self._lines())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        fields = tuple(self.names.index(name) for name in names)
        for block in self._lines():
            yield Piece(self.place, partial(self._blocks, block, fields))

    def _blocks(self, block: bytes, fields: tuple[int, ...], rows: int) -> Iterator[Block]:
        return cut(Block(*split(block, fields, delimiter=self.delimiter, width=len(self.names))), rows)

    def _lines(self) -> Iterator[bytes]:
        """The file below its header, in blocks of whole lines."""
        with _opened(self.mark) as file:
            file.readline()
            rest = b""
            while chunk := file.read(_BLOCK_BYTES):
                end = chunk.rfind(b"\n") + 1
                if end:
                    yield rest + chunk[:end]
                    rest = chunk[end:]
                elif len(rest) <= LONGEST:
                    # past LONGEST the line is malformed whatever follows: what is left out makes it no shorter than
                    # that
                    rest += chunk
            if rest:
                yield rest + b"\n"


def checked_delimiter(delimiter: str) -> str:
    """What may separate fields. Raises `SchemaError`."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise SchemaError(
            f'delimiter={delimiter!r} cannot separate fields; give one ASCII character, such as "," ";" or "\\t"'
        )
    return delimiter


@contextmanager
def _opened(mark: Mark) -> Iterator[IO[bytes]]:
    with mark.open() as raw, io.BufferedReader(raw) as plain:
        if not mark.name.lower().endswith(".gz"):
            yield plain
            return
        with gzip.open(plain, "rb") as file:
            yield cast("IO[bytes]", file)


def _header(mark: Mark, delimiter: str) -> tuple[str, ...] | None:
    with _opened(mark) as file:
        line = file.readline(LONGEST)
    if not line or len(line) == LONGEST:
        return None
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    row = parse_line(text.removesuffix("\n").removesuffix("\r"), delimiter)
    return None if row is None else tuple(row)
