"""CSV files, plain or gzipped, in blocks of whole lines."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from confide.errors import SchemaError, SourceError
from confide.sources.lines import LONGEST, count_records, parse_line, split
from confide.sources.parts import Block, FileMark, Piece, cut, guarded

__all__ = ["CsvPart"]

# bytes read at once: some 10^4 records, so that both the text and its cells stay near the processor
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class CsvPart:
    """One CSV file with a header line. All columns are text; what a cell means is decided by the schema."""

    mark: FileMark
    names: tuple[str, ...]
    delimiter: str
    type: str = field(default="CSV file", init=False)
    rereadable: bool = field(default=True, init=False)

    @classmethod
    def open(cls, path: Path, delimiter: str) -> CsvPart:
        """Raises `SourceError` for a file that is missing or has no header line, `SchemaError` for a bad delimiter."""
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise SchemaError(
                f'delimiter={delimiter!r} cannot separate fields; give one ASCII character, such as "," ";" or "\\t"'
            )
        mark = FileMark.of(path)
        names = guarded(f"the header line of {str(path)!r} could not be read", partial(_header, path, delimiter))
        if names is None:
            raise SourceError(
                f"{str(path)!r} has no readable header line; its first line must name the columns, in UTF-8"
            )
        return cls(mark, names, delimiter)

    @property
    def place(self) -> str:
        return repr(str(self.mark.path))

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
        with _opened(self.mark.path) as file:
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


def _opened(path: Path) -> IO[bytes]:
    if path.name.lower().endswith(".gz"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _header(path: Path, delimiter: str) -> tuple[str, ...] | None:
    with _opened(path) as file:
        line = file.readline(LONGEST)
    if not line or len(line) == LONGEST:
        return None
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    row = parse_line(text.removesuffix("\n").removesuffix("\r"), delimiter)
    return None if row is None else tuple(row)
