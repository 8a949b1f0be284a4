"""CSV files, plain or gzipped, in blocks of whole lines.

Lines of delimited text to fields. One line is one record, whatever is in it.

Parsers that follow quotes over the end of a line let one stray quote swallow the records below it, and then no bound
on what one record changes would hold. Here the newline byte alone ends a record, and what a line gives depends on
that line alone:

- a line is cut at every delimiter; one carriage return before the newline is dropped;
- a line with a quote character is read separately, by the rules of RFC 4180;
- other encodings than UTF-8 become UTF-8 before lines are cut, so that these rules of bytes hold for them too;
- a line is a record whose cells are all missing if it has too few or too many fields, a quote that does not close,
  a carriage return inside, or more than `LONGEST` bytes;
- bytes that are not UTF-8 become U+FFFD, in their own line;
- an empty line is not a record. Neither is one whose first cell that is not empty is in `not_records` of the layout: that
  depends on the line alone. A number of last lines would drop records.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import IO, Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.errors import SourceError
from confide.schema.layout import FileLayout
from confide.sources.coding import Block, Mark, Part, Piece, cut, from_arrow, guarded, scalar, text_array, to_arrow

# a line of more bytes is malformed, so that a hostile one cannot fill the memory
LONGEST = 1 << 24

_NEWLINE, _RETURN = b"\n\r"
Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]


def split(
    block: bytes,
    fields: Sequence[int],
    *,
    delimiter: str,
    width: int,
    quote: str = '"',
    not_records: Sequence[str] = (),
    saw: Callable[[int, int], None] | None = None,
) -> tuple[int, list[pa.Array]]:
    """The number of records in a block of whole lines, and the text of some of their fields, null where missing.

    The order of the records is not the file's: those on irregular lines come last. not_records: see `FileLayout`. saw: see `Part.watched`.

    >>> rows, (first, last) = split(b'1,a\\n2\\n3,"b,c"\\n', [0, 1], delimiter=",", width=2)
    >>> rows, first.to_pylist(), last.to_pylist()
    (3, ['1', '3', None], ['a', 'b,c', None])
    """
    block = _utf8(block)
    lines = _Lines(block, ord(delimiter), ord(quote) if quote else -1)
    sound = lines.records & ~lines.broken
    plain = sound & ~lines.irregular & (lines.last - lines.first == width - 1)
    first, marks = lines.first[plain], text_array(not_records, pa.string())
    if len(marks):
        first = first[~_marked(lines, first, width, marks)]
    columns = lines.cells(first, fields)
    single = sound & (lines.irregular | bool(not_records))
    rows = [
        parse_line(block[lines.starts[i] : lines.stops[i]].decode(), delimiter, quote) if single[i] else None
        for i in np.flatnonzero(lines.records & ~plain)
    ]
    rest = [row for row in rows if row is None or _first_text(row) not in not_records]
    if saw is not None:
        others = sum(row is None or len(row) != width for row in rest)
        saw(others, int(np.count_nonzero(plain)) - len(first) + len(rows) - len(rest))
    if rest:
        columns = [
            pa.concat_arrays(
                [
                    column,
                    text_array([row[field] if row and len(row) == width else None for row in rest], pa.string()),
                ]
            )
            for column, field in zip(columns, fields, strict=True)
        ]
    return len(first) + len(rest), columns


def _marked(lines: _Lines, first: Positions, width: int, marks: pa.Array) -> Mask:
    """Which regular lines, from cut number `first` on, begin with a text that marks no record, after empty cells."""
    found = np.zeros(len(first), dtype=bool)
    left = np.arange(len(first))
    for at in range(width):
        (cells,) = lines.cells(first[left], [at])
        cells = pc.utf8_trim_whitespace(cells)
        found[left] = from_arrow(pc.is_in(cells, value_set=marks))
        left = left[from_arrow(pc.equal(cells, scalar("", cells)))]
        if not left.size:
            break
    return found


def _first_text(row: Sequence[str]) -> str:
    """The first cell of a row that is not empty, without blanks around it."""
    return next((text for cell in row if (text := cell.strip())), "")


def count_records(block: bytes) -> int:
    """The number of records in a block of whole lines: of lines that are not empty."""
    starts, stops, _ = _bounds(np.frombuffer(block, dtype=np.uint8))
    return int(np.count_nonzero(stops > starts))


def parse_line(line: str, delimiter: str, quote: str = '"') -> list[str] | None:
    """The fields of one line by RFC 4180, or None when it is malformed.

    >>> parse_line('1,"a,b"', ","), parse_line('1,"a', ","), parse_line('1,"a', ",", quote="")
    (['1', 'a,b'], None, ['1', '"a'])
    """
    quoting = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True, **quoting), [])
    except csv.Error:
        return None


def _utf8(block: bytes) -> bytes:
    """The block with each byte that is not UTF-8 replaced; no such byte reaches over a delimiter or a newline."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode("utf-8", "replace").encode()
    return block


def _bounds(data: NDArray[np.uint8]) -> tuple[Positions, Positions, Positions]:
    """Where each line starts, where its text stops, and where its newline is; the last byte of `data` is a newline."""
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([ends[:1] * 0, ends[:-1] + 1])
    # for an empty line this looks at the newline before it, or at the last byte: neither is a carriage return
    return starts, ends - (data[ends - 1] == _RETURN), ends


class _Lines:
    """Where the lines of a block and their cells lie. Arrays over lines unless said otherwise."""

    def __init__(self, block: bytes, delimiter: int, quote: int) -> None:
        self.block = block
        self.data = np.frombuffer(block, dtype=np.uint8)
        self.delimiter, self.quote = delimiter, quote
        self.starts, self.stops, self.ends = _bounds(self.data)
        self.quotes = np.flatnonzero(self.data == quote)
        self.quotes_before = np.searchsorted(self.quotes, self.starts)
        self.cuts = self._cuts()
        self.last = np.searchsorted(self.cuts, self.ends)
        self.first = np.concatenate([self.last[:1] * 0, self.last[:-1] + 1])

    @property
    def records(self) -> Mask:
        return self.stops > self.starts

    @property
    def broken(self) -> Mask:
        """Lines that are too long or hold a carriage return."""
        broken = self.stops - self.starts > LONGEST
        returns = np.flatnonzero(self.data == _RETURN)
        if returns.size:
            line = np.searchsorted(self.ends, returns)
            broken[line[returns != self.stops[line]]] = True
        return broken

    @cached_property
    def irregular(self) -> Mask:
        """Lines with a quote anywhere but just inside a field's ends: those are read individually.

        In the others quotes open and close in turn, each opening one behind a delimiter (or first), each closing one
        before a delimiter (or last). There the fields are the text between the quotes.
        """
        irregular: Mask = np.diff(self.quotes_before, append=len(self.quotes)) % 2 == 1
        if self.quotes.size:
            line = np.searchsorted(self.ends, self.quotes)
            opens = (np.arange(len(self.quotes)) - self.quotes_before[line]) % 2 == 0
            begins = (self.quotes == self.starts[line]) | (self.data[self.quotes - 1] == self.delimiter)
            finishes = (self.quotes + 1 == self.stops[line]) | (self.data[self.quotes + 1] == self.delimiter)
            irregular[line[~np.where(opens, begins, finishes)]] = True
        return irregular

    def _cuts(self) -> Positions:
        """Positions of all newlines and of the delimiters outside quotes."""
        cuts: Positions = np.flatnonzero((self.data == self.delimiter) | (self.data == _NEWLINE))
        if not self.quotes.size:
            return cuts
        line = np.searchsorted(self.ends, cuts)
        outside = (np.searchsorted(self.quotes, cuts) - self.quotes_before[line]) % 2 == 0
        kept: Positions = cuts[outside | (self.data[cuts] == _NEWLINE)]
        return kept

    def cells(self, first: Positions, fields: Sequence[int]) -> list[pa.Array]:
        """Cells number `fields` of the regular lines whose first cut is number `first`, as text.

        The whole block is one Arrow array in which separators and cells take turns; the cells are taken from it.
        """
        begin = np.concatenate([self.cuts[:1] * 0, self.cuts[:-1] + 1])
        finish = self.cuts.copy()
        finish[self.last] = self.stops
        if self.quotes.size:
            line = np.searchsorted(self.ends, self.cuts)
            quoted = (self.data[begin] == self.quote) & ~self.irregular[line]
            begin += quoted
            finish -= quoted
        offsets = np.zeros(2 * len(self.cuts) + 1, dtype=np.int32)
        offsets[1::2] = begin
        offsets[2::2] = finish
        tokens = pa.StringArray.from_buffers(2 * len(self.cuts), pa.py_buffer(offsets), pa.py_buffer(self.block))
        return [tokens.take(to_arrow(2 * (first + field) + 1)) for field in fields]


# bytes read at once: some 10^4 records, so that both the text and its cells stay near the processor
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class CsvPart(Part):
    """One text file with a header line. All columns are text; what a cell means is decided by the schema."""

    mark: Mark
    names: tuple[str, ...]
    layout: FileLayout
    saw: Callable[[int, int], None] | None = field(default=None, repr=False, compare=False)
    type: str = field(default="CSV file", init=False)
    rereadable: bool = field(default=True, init=False)
    travels: ClassVar[bool] = True
    headed: ClassVar[bool] = True

    @classmethod
    def open(cls, mark: Mark, layout: FileLayout) -> CsvPart:
        """Raises `SourceError` for a file that has no header line."""
        return cls(mark, header(mark, layout)[0], layout)

    @property
    def place(self) -> str:
        return self.mark.place

    @property
    def file(self) -> Hashable:
        return self.mark.origin

    @property
    def delimiter(self) -> str:
        return self.layout.separator(self.mark.name)

    def kind(self, name: str) -> Any:
        return pa.string()

    def verify(self) -> None:
        self.mark.verify()

    def watched(self, saw: Callable[[int, int], None]) -> CsvPart:
        return replace(self, saw=saw)

    def count(self) -> int:
        if self.layout.not_records:
            return sum(self._split(block, ())[0] for block in self._lines())
        return sum(count_records(block) for block in self._lines())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        fields = tuple(self.names.index(name) for name in names)
        for block in self._lines():
            yield Piece(self.place, partial(self._blocks, block, fields))

    def _blocks(self, block: bytes, fields: tuple[int, ...], rows: int) -> Iterator[Block]:
        return cut(Block(*self._split(block, fields)), rows)

    def _split(self, block: bytes, fields: Sequence[int]) -> tuple[int, list[pa.Array]]:
        facts: dict[str, Any] = {
            "quote": self.layout.quote,
            "not_records": self.layout.not_records,
            "saw": self.saw,
        }
        return split(block, fields, delimiter=self.delimiter, width=len(self.names), **facts)

    def _lines(self) -> Iterator[bytes]:
        """The file below its header, in blocks of whole lines."""
        with _opened(self.mark, self.layout) as file:
            _skip(file, self.layout.skip + 1)
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


class _AsUtf8(io.RawIOBase):
    """A file in another encoding as UTF-8, decoded chunk by chunk; what the encoding does not have becomes U+FFFD."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            chunk = self._file.read(_BLOCK_BYTES)
            self._ended = not chunk
            self._ready = self._decoder.decode(chunk, final=self._ended).encode("utf-8", "replace")
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


@contextmanager
def _opened(mark: Mark, layout: FileLayout) -> Iterator[IO[bytes]]:
    with ExitStack() as files:
        file = files.enter_context(io.BufferedReader(files.enter_context(mark.open())))
        if mark.name.lower().endswith(".gz"):
            file = cast("io.BufferedReader", files.enter_context(gzip.open(file, "rb")))
        if layout.encoding != "utf-8":
            file = files.enter_context(io.BufferedReader(_AsUtf8(file, layout.encoding), _BLOCK_BYTES))
        yield file


def _skip(file: IO[bytes], lines: int) -> None:
    """Pass over whole lines, however long they are."""
    for _ in range(lines):
        while (part := file.readline(LONGEST)) and not part.endswith(b"\n"):
            pass


def header(mark: Mark, layout: FileLayout, below: int = 0) -> tuple[tuple[str, ...], list[int]]:
    """The names in the header line, and the numbers of fields in it and in `below` lines more, 0 for a malformed one.

    Raises `SourceError` for a file that has no header line.
    """
    said = f"the header line of {mark.place} could not be read"
    names, *rows = guarded(said, partial(_first_rows, mark, layout, 1 + below))
    if not names:
        where = f" below its first {layout.skip} lines" if layout.skip else ""
        raise SourceError(
            f"{mark.place} has no readable header line{where}, which must name the columns",
            'if it is not UTF-8, write encoding = "cp1252" in [file], on the command line --encoding cp1252',
        )
    return tuple(names), [len(names), *(len(row or ()) for row in rows)]


def _first_rows(mark: Mark, layout: FileLayout, most: int) -> list[list[str] | None]:
    """The fields of the first lines, None for one that is malformed, and for a header that is not in the encoding."""
    with _opened(mark, layout) as file:
        _skip(file, layout.skip)
        lines = [file.readline(LONGEST) for _ in range(most)]
    strange = _utf8(lines[0]) != lines[0] or (layout.encoding != "utf-8" and b"\xef\xbf\xbd" in lines[0])
    texts = [line.decode("utf-8-sig", "replace").removesuffix("\n").removesuffix("\r") for line in lines]
    rows = [parse_line(text, layout.separator(mark.name), layout.quote) for text in texts]
    return [None, *rows[1:]] if strange or len(lines[0]) == LONGEST else rows
