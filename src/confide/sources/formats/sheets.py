"""Sheets of workbooks: Excel (xlsx, xlsm, xlsb, xls) and OpenDocument (ods), by python-calamine.

A workbook can only be read as a whole, even for its header. So the sheet is read once, when it is opened. The columns that the schema knows
are kept in memory, each cell as the number, text, truth value, date or time that the workbook holds.

What a row gives depends on that row and on the layout alone:

- a row counts as a record where it holds something, and `not_records` does not name it. A cell of blanks holds nothing;
- merged cells hold in their first, and a formula gives the value that was stored with it;
- a cell that holds an error, such as #N/A, is empty, because the reader tells no difference;
- a row that the reader cannot hand over is a record without any value, such as one with a duration of a million years.

No macro, formula or link is followed. A small file may stand for cells that no memory holds, and the reader ends the process where it finds
no room. So sizes and places of cells are looked at first.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from itertools import accumulate, islice
from shlex import quote
from typing import IO, Any, ClassVar

import numpy as np
import pyarrow as pa

from confide.errors import SourceError
from confide.schema.layout import FileLayout
from confide.schema.toml import value
from confide.sources.coding import Block, Cells, Mark, Part, Piece, cut, guarded

# bytes of all that is packed in a workbook, and the rows and columns that Excel has
_UNPACKED, _ROWS, _COLUMNS = 2 << 30, 1 << 20, 1 << 14
# cells between the first and the last: as many as the reader takes of an .ods file. It needs some 30 bytes for each.
_CELLS = 10**8
# rows that become cells at a time, names of sheets in a message, and rows below a header that tell it from a title
_PORTION, _LISTED, _BELOW = 1 << 13, 20, 5
# the first bytes of files of Office before 2007, which are also those of an encrypted workbook
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# an entry of their directory, which begins at a multiple of 128; the first record of a workbook, and those that may follow it
_PACKAGE = "EncryptedPackage\0".encode("utf-16-le")
_BOF, _WRITE_PROTECT, _FILE_PASS = b"\x09\x08\x10\x00\x00\x06\x05\x00", b"\x86\x00", b"\x2f\x00"
_MANIFEST = "META-INF/manifest.xml"


@dataclass(frozen=True)
class SheetPart(Part):
    """One sheet with a header row, whose records are kept.

    blocks: the cells of some records by the names of their columns; lost: how many rows the reader could not hand over, and how many
    `not_records` names.
    """

    mark: Mark
    names: tuple[str, ...]
    blocks: tuple[tuple[int, Mapping[str, Cells]], ...] = field(repr=False)
    lost: tuple[int, int] = field(repr=False)
    type: ClassVar[str] = "sheet of a workbook"
    rereadable: ClassVar[bool] = True
    headed: ClassVar[bool] = True

    @property
    def place(self) -> str:
        return self.mark.place

    @property
    def file(self) -> Hashable:
        return self.mark.origin

    def kind(self, name: str) -> Any:
        # each cell has a type of its own
        return np.dtype(object)

    def verify(self) -> None:
        self.mark.verify()

    def watched(self, saw: Callable[[int, int], None]) -> SheetPart:
        saw(*self.lost)
        return self

    def count(self) -> int:
        return sum(rows for rows, _ in self.blocks)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for rows, cells in self.blocks:
            yield Piece(self.place, partial(cut, Block(rows, [cells[name] for name in names])))

    def __reduce__(self) -> Any:
        raise TypeError("records do not leave the process that reads them: a sheet that was kept is not pickled")


def open_sheet(mark: Mark, layout: FileLayout, wanted: Sequence[str]) -> SheetPart:
    """The sheet that the layout names. wanted: the columns whose cells are kept.

    Raises `SourceError` for a workbook that cannot be read, and where no sheet or several are meant.
    """
    with _rows(mark, layout) as (header, rows):
        once = {name: at for at, name in header.items() if list(header.values()).count(name) == 1}
        kept = {name: once[name] for name in dict.fromkeys(wanted) if name in once}
        lost = [0, 0]
        blocks = guarded(f"{mark.place} could not be read", lambda: tuple(_blocks(rows, kept, layout, lost)))
    return SheetPart(mark, tuple(header.values()), blocks, (lost[0], lost[1]))


def header(mark: Mark, layout: FileLayout) -> tuple[tuple[str, ...], list[int]]:
    """The names in the header row, how many there are, and how many cells hold something at most in the rows down to each of some below.

    An empty row counts as 0. The most of them is taken, because an empty cell of one record must not change the answer.
    """
    with _rows(mark, layout) as (names, rows):
        held = [sum(map(_holds, row or ())) for row in islice(rows, _BELOW)]
        found = [len(names), *held]
        return tuple(names.values()), [
            cells and most for cells, most in zip(found, accumulate(found, max), strict=True)
        ]


@contextmanager
def _rows(mark: Mark, layout: FileLayout) -> Iterator[tuple[dict[int, str], Iterator[list[Any] | None]]]:
    """The names in the header row by their places, and the rows below."""
    said = f"{mark.place} could not be read; is it an Excel or OpenDocument workbook?"
    # what some programs write, such as #SPILL!, this reader does not know
    unknown = f"the sheet in {mark.place} could not be read, perhaps because of one cell; save it as a CSV file"
    _check_package(mark)
    with guarded(said, mark.open) as raw:
        _check(mark, guarded(said, partial(_refusal, raw)))
        raw.seek(0)
        workbook = guarded(said, partial(_workbook, raw))
        with closing(workbook):
            name = _chosen(mark, guarded(said, partial(_sheets, workbook)), layout)
            sheet = guarded(unknown, partial(workbook.get_sheet_by_name, name))
        last = sheet.end
        if last is not None and (last[0] >= _ROWS or last[1] >= _COLUMNS):
            _check(mark, _HUGE)
        rows = iter(()) if last is None else _each(guarded(unknown, sheet.iter_rows), last[0] + 1)
        names = guarded(unknown, partial(_header, rows, layout))
        if not names:
            raise SourceError(
                f"row {layout.skip + 1} of the sheet in {mark.place} is empty, and it must name the columns",
                "write the number of rows above the header as skip = 2 in [file], on the command line --skip 2",
            )
        yield names, rows


def _each(rows: Iterator[list[Any]], most: int) -> Iterator[list[Any] | None]:
    """The rows, None for one that the reader cannot hand over: it goes on with the next."""
    for _ in range(most):
        try:
            row = next(rows, None)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # a panic of the reader is no Exception
            row = None
        else:
            if row is None:
                return
        yield row


def _check_package(mark: Mark) -> None:
    try:
        import python_calamine  # noqa: F401
    except ImportError:
        kind = "OpenDocument" if mark.name.lower().endswith(".ods") else "Excel"
        raise SourceError(f"{mark.place} is an {kind} workbook", "run: pip install 'confide[excel]'") from None


_ENCRYPTED = ("is encrypted", "save it without a password")
_HUGE = (
    "is too large: more than 2 GB unpacked, 1,048,576 rows, 16,384 columns, or 100 million cells from the first to the last",
    "save the sheet as a CSV file",
)


def _check(mark: Mark, refusal: tuple[str, str] | None) -> None:
    if refusal is not None:
        raise SourceError(f"{mark.place} {refusal[0]}", refusal[1])


def _workbook(raw: IO[bytes]) -> Any:
    """The workbook, whatever its ending."""
    from python_calamine import CalamineWorkbook

    return CalamineWorkbook.from_filelike(raw)


def _sheets(workbook: Any) -> list[str]:
    """Names of the sheets that have cells: not of charts and macros."""
    return [sheet.name for sheet in workbook.sheets_metadata if str(sheet.typ).endswith(".WorkSheet")]


def _chosen(mark: Mark, names: Sequence[str], layout: FileLayout) -> str:
    asked = 1 if layout.sheet is None and len(names) == 1 else layout.sheet
    if isinstance(asked, int) and asked <= len(names):
        return names[asked - 1]
    if isinstance(asked, str) and asked in names:
        return asked
    listed = ", ".join(map(repr, names[:_LISTED])) + (", ..." if len(names) > _LISTED else "")
    problem = "has several sheets, and which one is meant is not said" if asked is None else f"has no sheet {asked!r}"
    if not names:
        raise SourceError(f"{mark.place} has no sheet with cells")
    raise SourceError(
        f"{mark.place} {problem}",
        f"write sheet = {value(names[0])} in [file], on the command line --sheet {quote(names[0])}; or its number from 1",
        allowed=listed,
    )


def _header(rows: Iterator[list[Any] | None], layout: FileLayout) -> dict[int, str]:
    cells = next(islice(rows, layout.skip, None), None)
    named = ((at, _name(cell)) for at, cell in enumerate(cells or ()))
    return {at: name for at, name in named if name.strip()}


def _name(cell: Any) -> str:
    """What a cell of the header says: 2024 and not 2024.0."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (date, datetime)) else str(cell)


def _blocks(
    rows: Iterator[list[Any] | None], kept: Mapping[str, int], layout: FileLayout, lost: list[int]
) -> Iterator[tuple[int, dict[str, Cells]]]:
    """Cells of the records. lost: the counts of `SheetPart`, which grow."""
    marked = frozenset(layout.not_records)
    while portion := list(islice(rows, _PORTION)):
        held = [row for row in portion if row is None or any(map(_holds, row))]
        records = [row for row in held if row is None or _first_text(row) not in marked]
        lost[0] += records.count(None)
        lost[1] += len(held) - len(records)
        yield (
            len(records),
            {name: _cells([None if row is None else row[at] for row in records]) for name, at in kept.items()},
        )


def _holds(cell: Any) -> bool:
    return not isinstance(cell, str) or bool(cell.strip())


def _first_text(row: list[Any]) -> str | None:
    """The first cell of a row that holds something, where it is text."""
    first = next(filter(_holds, row))
    return first.strip() if isinstance(first, str) else None


def _cells(column: list[Any]) -> Cells:
    """Cells that are alike as one array, which means the same and takes less room; the others as they are."""
    column = [None if cell == "" else cell for cell in column]
    types = set(map(type, column))
    if types <= {float, type(None)}:
        return np.array(column, dtype=np.float64)
    if types <= {str, type(None)}:
        return pa.array(column, pa.large_string())
    return np.array([*column, None], dtype=object)[:-1]


def _refusal(raw: IO[bytes]) -> tuple[str, str] | None:
    """Why a workbook must not be handed to its reader; None where it may be."""
    size = raw.seek(0, 2)
    raw.seek(0)
    head = raw.read(len(_COMPOUND))
    if size > _UNPACKED:
        return _HUGE
    if head == _COMPOUND:
        raw.seek(0)
        return _ENCRYPTED if _is_encrypted(raw.read()) else None
    with zipfile.ZipFile(raw) as archive:
        packed = archive.infolist()
        if sum(entry.file_size for entry in packed) > _UNPACKED:
            return _HUGE
        if any(entry.filename == _MANIFEST and b"encryption-data" in archive.read(entry) for entry in packed):
            return _ENCRYPTED
        # to their end, because what is said of their sizes need not be true
        return _HUGE if any(_is_huge(archive, entry) for entry in packed if not entry.is_dir()) else None


def _is_encrypted(content: bytes) -> bool:
    """Whether a compound file holds an encrypted .xlsx file, or a sheet that begins with the record FILEPASS of [MS-XLS] 2.4.117."""
    if any(content.startswith(_PACKAGE, at) for at in range(0, len(content), 128)):
        return True
    begin = content.find(_BOF)
    after = begin + 20 + (4 if content[begin + 20 : begin + 22] == _WRITE_PROTECT else 0)
    return begin >= 0 and content[after : after + 2] == _FILE_PASS


def _is_huge(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    if entry.filename.lower().endswith(".bin"):
        with archive.open(entry) as file:
            return "/worksheets/" in entry.filename and _is_far(_cells_of_xlsb(file.read()))
    with archive.open(entry) as file:
        # most sheets are narrow, and their places need not be taken apart
        if not any(_WIDE.search(text) for text in _texts(file)):
            return False
    with archive.open(entry) as file:
        return _is_far((int(row), _number(column)) for text in _texts(file) for column, row in _PLACE.findall(text))


# a place in two letters or more, or in a row of seven digits
_WIDE = re.compile(rb"""=(?<=[\sr]=)\s*["'](?:[A-Za-z]{2,}[0-9]|[A-Za-z]?[0-9]{7})""")
# the place of a row, or of a cell that holds something: an empty one is closed at once
_PLACE = re.compile(
    rb"""\sr\s*=\s*["']([A-Za-z]*)([0-9]+)["'](?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*>""",
)
# no attributes of a cell are longer
_OVERLAP = 1 << 10


def _texts(file: IO[bytes]) -> Iterator[bytes]:
    """What is in a file, in portions that overlap, so that no cell is cut in two."""
    last = b""
    while text := file.read(1 << 20):
        yield last + text
        last = text[-_OVERLAP:]


def _number(column: bytes) -> int:
    """A column from 1 by its letters, 0 where there are none."""
    number = 0
    for letter in column.upper():
        number = 26 * number + letter - 64
    return number


def _is_far(places: Iterator[tuple[int, int]]) -> bool:
    """Whether cells lie farther apart than a workbook may be. Rows and columns count from 1."""
    bottom = right = 1
    for row, column in places:
        bottom, right = max(bottom, row), max(right, column)
    return bottom > _ROWS or right > _COLUMNS or bottom * right > _CELLS


def _cells_of_xlsb(content: bytes) -> Iterator[tuple[int, int]]:
    """The places of the cells of a binary sheet, from 1. [MS-XLSB] 2.1.4: a record is its type, its size and so many bytes."""
    at, row = 0, 0
    while at + 1 < len(content):
        kind = content[at]
        at += 1
        if kind > 127:
            kind = kind % 128 + 128 * (content[at] % 128)
            at += 1
        size = shift = 0
        for byte in islice(content[at : at + 4], 4):
            at += 1
            size += (byte % 128) << shift
            shift += 7
            if byte < 128:
                break
        if kind == 0:  # BrtRowHdr
            row = int.from_bytes(content[at : at + 4], "little") + 1
        elif 2 <= kind <= 11:  # BrtCellRk to BrtFmlaError; a BrtCellBlank is empty
            yield row, int.from_bytes(content[at : at + 4], "little") + 1
        at += size
