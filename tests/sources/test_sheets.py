"""Sheets of workbooks: each cell as it is, rows that are records, and workbooks that must not be opened."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.fs
import pytest
import xlwt
from odf import opendocument, table as odf_table, text as odf_text
from tests.sources.records import Plain

from confide.core import Gram
from confide.errors import SchemaError, SourceError
from confide.schema import Categorical, Integer, Numeric, Schema
from confide.schema.layout import FileLayout
from confide.sources import read
from confide.sources.coding import FileMark, from_arrow
from confide.sources.formats import sheets
from confide.sources.formats.sheets import header, open_sheet
from confide.sources.preflight import preflight

NAMES = ("sex", "income", "age")
SCHEMA = Schema({"sex": Categorical(["f", "m"]), "income": Numeric(0, 9000), "age": Integer(0, 120)}, dataset="d")
RECORDS = [["f", 2500.5, 31], ["m", None, 57], ["f", 100, 18], [None, 1, 2], ["m", "7.25", " 44 "]]


def write_xlsx(path: Path, rows: Sequence[Sequence[Any]], title: str = "Daten") -> Path:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(list(row))
    book.save(path)
    return path


def write_xls(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Daten")
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if cell is not None:
                sheet.write(i, j, cell)
    book.save(str(path))
    return path


def write_ods(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    book = opendocument.OpenDocumentSpreadsheet()
    sheet = odf_table.Table(name="Daten")
    for row in rows:
        line = odf_table.TableRow()
        for cell in row:
            typed = {"valuetype": "float", "value": cell} if isinstance(cell, (int, float)) else {"valuetype": "string"}
            made = odf_table.TableCell(**({} if cell is None else typed))
            if cell is not None:
                made.addElement(odf_text.P(text=str(cell)))
            line.addElement(made)
        sheet.addElement(line)
    book.spreadsheet.addElement(sheet)
    book.save(str(path))
    return path


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def record(kind: int, content: bytes = b"") -> bytes:
    """One record of a binary workbook: its type, its size, its content."""
    head = bytes([kind]) if kind < 128 else bytes([kind % 128 + 128, kind // 128])
    size, written = len(content), b""
    while size > 127:
        written, size = written + bytes([size % 128 + 128]), size // 128
    return head + written + bytes([size]) + content


def write_xlsb(path: Path, rows: Sequence[Sequence[Any]], at: Sequence[int] | None = None) -> Path:
    """A binary workbook, as no library writes it. at: the places of the columns."""
    sheet = record(129) + record(148, struct.pack("<4I", 0, len(rows), 0, 9)) + record(145)
    for i, row in enumerate(rows):
        sheet += record(0, struct.pack("<I", i) + bytes(21))
        for j, cell in zip(at or range(len(row)), row, strict=True):
            place = struct.pack("<II", j, 0)
            if isinstance(cell, str):
                sheet += record(6, place + wide(cell))
            elif cell is not None:
                sheet += record(5, place + struct.pack("<d", cell))
    book = (
        record(131) + record(143) + record(156, struct.pack("<II", 0, 1) + wide("rId1") + wide("Daten")) + record(144)
    )
    base = "http://schemas.openxmlformats.org"
    relation = f"{base}/officeDocument/2006/relationships/worksheet"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{base}/package/2006/content-types"/>')
        archive.writestr(
            "xl/_rels/workbook.bin.rels",
            f'<Relationships xmlns="{base}/package/2006/relationships"><Relationship Id="rId1" Type="{relation}" '
            'Target="worksheets/sheet1.bin"/></Relationships>',
        )
        archive.writestr("xl/workbook.bin", book + record(132))
        archive.writestr("xl/worksheets/sheet1.bin", sheet + record(146) + record(130))
    return path


WRITERS = {"xlsx": write_xlsx, "xlsm": write_xlsx, "xls": write_xls, "xlsb": write_xlsb, "ods": write_ods}


def sheet_of(path: Path, content: str) -> Path:
    """An .xlsx file whose sheet is this XML."""
    made = io.BytesIO()
    openpyxl.Workbook().save(made)
    head = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            own = entry.filename == "xl/worksheets/sheet1.xml"
            new.writestr(entry.filename, head + content + "</sheetData></worksheet>" if own else old.read(entry))
    return path


def cells_of(path: Path, names: Sequence[str], **entries: Any) -> list[list[Any]]:
    """The cells of a sheet's columns as they are handed on, None for an empty one."""
    part = open_sheet(FileMark.of(path), FileLayout(**entries), names)
    found: list[list[Any]] = [[] for _ in names]
    for piece in part.pieces(names):
        for block in piece.blocks(7):
            for own, cells in zip(found, block.columns, strict=True):
                values = cells.tolist() if isinstance(cells, np.ndarray) else from_arrow(cells).tolist()
                own += [None if cell != cell else cell for cell in values]
    assert part.count() == len(found[0])
    return found


def gram(data: Any, schema: Schema = SCHEMA, **options: Any) -> Any:
    return read(data, schema, **options).aggregate(Gram(Plain(NAMES)))[0]


@pytest.mark.parametrize("ending", WRITERS)
def test_a_sheet_and_a_csv_file_of_the_same_records_are_the_same_integers(ending: str, tmp_path: Path) -> None:
    path = WRITERS[ending](tmp_path / f"d.{ending}", [NAMES, *RECORDS])
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in [NAMES, *RECORDS]]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    assert read(path, SCHEMA).count() == len(RECORDS)
    assert np.array_equal(gram(path), gram(tmp_path / "d.csv"))
    assert gram(path)[0][0] == 3
    assert (
        repr(read(path, SCHEMA)) == "RecordSource(sheet of a workbook, dataset='d', columns=('sex', 'income', 'age'))"
    )


def test_each_cell_keeps_its_own_type(tmp_path: Path) -> None:
    mixed = [1.5, "text", True, date(2020, 1, 2), datetime(2020, 1, 2, 3, 4), time(5, 6), None, 3]
    path = write_xlsx(tmp_path / "d.xlsx", [["v", "w"], *([cell, 1] for cell in mixed)])
    (found, _) = cells_of(path, ["v", "w"])
    assert found == mixed
    assert [type(cell) for cell in found[:6]] == [float, str, bool, date, datetime, time]


@pytest.mark.parametrize("ending", WRITERS)
def test_no_type_comes_from_the_first_rows(ending: str, tmp_path: Path) -> None:
    schema = Schema({"v": Categorical(["1", "late"]), "w": Numeric(0, 10)}, dataset="d")
    rows = [["v", "w"], *([1, 2] for _ in range(2000)), *(["late", "4.5"] for _ in range(1001))]
    path = WRITERS[ending](tmp_path / f"d.{ending}", rows)
    sums = read(path, schema).aggregate(Gram(Plain(("v", "w"))))[0]
    assert sums[0].tolist()[:2] == [3001, 1001]
    other = [*rows[:1500], ["late", 2], *rows[1501:]]
    again = read(WRITERS[ending](tmp_path / f"e.{ending}", other), schema).aggregate(Gram(Plain(("v", "w"))))[0]
    w = schema["w"].code(np.array([2.0])).item()
    assert (again - sums).tolist() == [[0, 1, 0], [1, 1, w], [0, w, 0]]


def test_rows_that_are_no_records(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        ["Report", None, None],
        [None, None, None],
        ["a", None, "b"],
        [1, "x", 2],
        [None, None, None],
        ["  ", None, None],
        [None, "note", None],
        [None, " Summe ", 9],
        ["summe", None, 3],
        [None, "x", "Summe"],
        ["Summe 2", None, 4],
    ]
    path = write_xlsx(tmp_path / "d.xlsx", rows)
    found = cells_of(path, ["a", "b"], skip=2, not_records=["Summe"])
    assert found == [[1.0, None, "summe", None, "Summe 2"], [2.0, None, 3.0, "Summe", 4.0]]
    assert open_sheet(FileMark.of(path), FileLayout(skip=2), []).names == ("a", "b")


@pytest.mark.parametrize("ending", WRITERS)
def test_rows_above_the_header_count_from_the_top_of_the_sheet(ending: str, tmp_path: Path) -> None:
    path = WRITERS[ending](tmp_path / f"d.{ending}", [[None, None], [None, "t"], [None, None], [None, "a"], [None, 7]])
    assert cells_of(path, ["a"], skip=3) == [[7.0]]


def test_a_sheet_without_a_header(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", [[None], ["income"], [4711]])
    with pytest.raises(SourceError, match=r"row 1 of the sheet in .* is empty, .*skip") as raised:
        read(path, SCHEMA)
    assert "4711" not in str(raised.value)
    for skip in (3, 1000):
        with pytest.raises(SourceError, match=f"row {skip + 1} of the sheet"):
            read(path, SCHEMA, file={"skip": skip})
    with pytest.raises(SourceError, match="row 1 of the sheet"):
        read(write_xlsx(path, []), SCHEMA)


def test_names_are_those_of_the_header(tmp_path: Path) -> None:
    rows = [["age", 2024, None, 2.5, date(2020, 1, 2), "age", "Ü (€)", "last"], [1, 2, 3, 4, 5, 6, 7, 8]]
    path = write_xlsx(tmp_path / "d.xlsx", rows)
    part = open_sheet(FileMark.of(path), FileLayout(), ["2024", "last"])
    assert part.names == ("age", "2024", "2.5", "2020-01-02", "age", "Ü (€)", "last")
    assert cells_of(path, ["2024", "Ü (€)", "last"]) == [[2.0], [7.0], [8.0]]
    with pytest.raises(SourceError, match="more than one column 'age'"):
        read(path, SCHEMA).check(["age"])
    assert header(FileMark.of(path), FileLayout()) == (part.names, [7, 8])


def test_which_sheet(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["age"])
    book.create_chartsheet("Chart")
    for k, name in enumerate(("Daten", "7")):
        sheet = book.create_sheet(name)
        sheet.append(["age"])
        sheet.append([k])
    path = tmp_path / "d.xlsx"
    book.save(path)
    with pytest.raises(SourceError, match="several sheets") as raised:
        read(path, SCHEMA)
    assert "'Notes', 'Daten', '7'" in str(raised.value)
    assert 'sheet = "Notes" in [file], on the command line --sheet Notes' in str(raised.value)
    assert cells_of(path, ["age"], sheet="Daten") == cells_of(path, ["age"], sheet=2) == [[0.0]]
    assert cells_of(path, ["age"], sheet="7") == [[1.0]]
    for unknown in ("daten", 4, "Chart"):
        with pytest.raises(SourceError, match=f"has no sheet {unknown!r}") as raised:
            read(path, SCHEMA, file={"sheet": unknown})
        assert "'Notes', 'Daten', '7'" in str(raised.value)


def test_many_sheets_are_not_all_named(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for _ in range(300):
        book.create_sheet()
    book.save(tmp_path / "d.xlsx")
    with pytest.raises(SourceError, match=r"'Sheet19', \.\.\.") as raised:
        read(tmp_path / "d.xlsx", SCHEMA)
    assert len(str(raised.value)) < 600


def test_formulas_errors_and_merged_cells(tmp_path: Path) -> None:
    path = sheet_of(
        tmp_path / "d.xlsx",
        '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1" t="inlineStr"><is><t>b</t></is></c></row>'
        '<row r="2"><c r="A2"><f>1+1</f><v>2</v></c><c r="B2"><f>WEBSERVICE("http://example.org")</f></c></row>'
        '<row r="3"><c r="A3" t="e"><v>#N/A</v></c><c r="B3" t="str"><f>"x"&amp;"y"</f><v>xy</v></c></row>',
    )
    # an error cell is empty: the reader tells no difference
    assert cells_of(path, ["a", "b"]) == [[2.0, None], [None, "xy"]]
    book = openpyxl.Workbook()
    for row in (["a", "b"], [5, 6], [7, 8]):
        book.active.append(row)
    book.active.merge_cells("A2:A3")
    book.save(path)
    assert cells_of(path, ["a", "b"]) == [[5.0, None], [6.0, 8.0]]


@pytest.mark.parametrize("hours", [2e10, -1e300])  # an error of the reader, and a panic
def test_a_row_that_the_reader_cannot_hand_over_is_a_record_without_values(hours: float, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, "x"], [hours, "y"], ["Summe", None], [None, " "], [3, "z"]):
        book.active.append(row)
    book.active["A3"].number_format = "[h]:mm:ss"
    path = tmp_path / "d.xlsx"
    book.save(path)
    assert cells_of(path, ["a", "b"], not_records=["Summe"]) == [[1.0, None, 3.0], ["x", None, "z"]]
    columns = {"a": Numeric(0, 9), "b": Categorical(["x", "y", "z"])}
    found = preflight(read(path, Schema(columns, file={"not_records": ["Summe"]})))
    assert (found.records, found.other_width, found.not_records) == (3, 1, 1)
    assert {name: (one.unread, one.empty) for name, one in found.columns.items()} == {"a": (0, 1), "b": (0, 1)}


def test_an_error_that_the_reader_does_not_know_is_no_other_format(tmp_path: Path) -> None:
    path = sheet_of(
        tmp_path / "d.xlsx",
        '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row><row r="2"><c r="A2" t="e"><v>#SPILL!</v></c></row>',
    )
    with pytest.raises(SourceError, match=r"the sheet in .* could not be read, perhaps because of one cell") as raised:
        read(path, SCHEMA)
    assert "SPILL" not in str(raised.value) and raised.value.__context__ is None


def test_other_workbooks_and_macros_are_not_followed(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "d.xlsm", [NAMES, *RECORDS])
    plain_sums = gram(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/vbaProject.bin", b"Sub AutoOpen()")
        archive.writestr("xl/externalLinks/externalLink1.xml", "<externalLink/>")
        archive.writestr(
            "xl/worksheets/_rels/sheet1.xml.rels", '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><R>&e;</R>'
        )
    assert np.array_equal(gram(path), plain_sums)


def test_a_hostile_cell_changes_no_other(tmp_path: Path) -> None:
    hostile = ['"' * 10**6, "=1+1", "\ufffd\u202e", "'; drop table", "1e999", "x" * 40_000, "-0", "nan"]
    rows = [["f", 2500.5, 31] for _ in range(20)]
    sums = gram(sheet_of(tmp_path / "a.xlsx", xml_of([list(NAMES), *rows])))
    for cell in hostile:
        found = gram(sheet_of(tmp_path / "b.xlsx", xml_of([list(NAMES), *rows, ["no level", cell, 31]])))
        assert np.array_equal(found, sums)


def xml_of(rows: Sequence[Sequence[Any]]) -> str:
    """Rows without places, as some programs write them."""

    def cell_of(cell: Any) -> str:
        if isinstance(cell, str):
            return f't="inlineStr"><is><t>{cell.replace("&", "&amp;").replace("<", "&lt;")}</t></is></c>'
        return f"><v>{cell}</v></c>"

    return "".join("<row>" + "".join(f"<c {cell_of(cell)}" for cell in row) + "</row>" for row in rows)


# what must not be opened --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["xlsx", "xls"])
def test_an_encrypted_workbook(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.{ending}"
    entry = "EncryptedPackage".encode("utf-16-le").ljust(128, b"\0")
    path.write_bytes(sheets._COMPOUND.ljust(512, b"\0") + bytes(128) + entry + bytes(512))
    with pytest.raises(SourceError, match=r"is encrypted; save it without a password"):
        read(path, SCHEMA)


@pytest.mark.parametrize("protect", [b"", struct.pack("<HH", 0x86, 0)])
def test_an_encrypted_workbook_of_old(protect: bytes, tmp_path: Path) -> None:
    path = write_xls(tmp_path / "d.xls", [["age"], [3]])
    content = path.read_bytes()
    after = content.index(sheets._BOF) + 20
    record_of_password = protect + struct.pack("<HHH", 0x2F, 2, 0)
    path.write_bytes(content[:after] + record_of_password + content[after + len(record_of_password) :])
    with pytest.raises(SourceError, match="is encrypted"):
        read(path, SCHEMA)


def test_an_encrypted_ods_file(tmp_path: Path) -> None:
    plain_file = write_ods(tmp_path / "p.ods", [["age"], [3]])
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
        'manifest:full-path="content.xml" manifest:media-type="text/xml"><manifest:encryption-data/></manifest:file-entry>'
        "</manifest:manifest>"
    )
    with zipfile.ZipFile(plain_file) as old, zipfile.ZipFile(tmp_path / "d.ods", "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, manifest if entry.filename == "META-INF/manifest.xml" else old.read(entry))
    with pytest.raises(SourceError, match="is encrypted"):
        read(tmp_path / "d.ods", SCHEMA)


def far(column: str, row: int, tail: str = "><v>1</v></c>", quote: str = '"') -> str:
    header = '<row r="1"><c r="A1" t="inlineStr"><is><t>age</t></is></c></row>'
    return f'{header}<row><c s={quote}1{quote} r={quote}{column}{row}{quote} x=">"{tail}</row>'


@pytest.mark.parametrize(
    "cell",
    [
        far("XFD", 1_048_576),
        far("XFD", 1_048_576, quote="'"),
        far("CR", 1_048_576),
        far("A", 1_048_577),
        far("a", 4_294_967_295),
        far("XFE", 1),
        far("ABCDE", 1),
        '<row r="1048577"><c><v>1</v></c></row>',
        '<row r="1"><c\nr = "XFD1"><v>1</v></c></row><row r="9000"><c r="A9000"><v>1</v></c></row>',
    ],
)
def test_cells_too_far_apart_are_not_handed_to_the_reader(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheets, "_workbook", lambda raw: pytest.fail("was opened"))
    with pytest.raises(SourceError, match=r"is too large: .* save the sheet as a CSV file"):
        read(sheet_of(tmp_path / "d.xlsx", cell), SCHEMA)


def test_far_cells_without_a_value_count_for_nothing(tmp_path: Path) -> None:
    styled = far("XFD", 1_048_576, tail="/>")
    path = sheet_of(tmp_path / "d.xlsx", styled.replace("<row><c", '<row r="2"><c r="A2"><v>7</v></c><c'))
    assert cells_of(path, ["age"]) == [[7.0]]
    rows = [[f"x{k}" for k in range(400)], *([k] * 400 for k in range(30))]
    assert cells_of(write_xlsx(path, rows), ["x399"]) == [[float(k) for k in range(30)]]


@pytest.mark.parametrize("at", [1 << 14, 1 << 31])
def test_binary_cells_too_far_apart(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_xlsb(tmp_path / "d.xlsb", [["age", "b"], ["x" * 300, 4.0]], [0, 5])
    assert list(sheets._cells_of_xlsb(zipfile.ZipFile(path).read("xl/worksheets/sheet1.bin"))) == [
        (1, 1),
        (1, 6),
        (2, 1),
        (2, 6),
    ]
    monkeypatch.setattr(sheets, "_workbook", lambda raw: pytest.fail("was opened"))
    with pytest.raises(SourceError, match="is too large"):
        read(write_xlsb(path, [["age", "b"], [3.0, 4.0]], [0, at]), SCHEMA)


def test_repeated_cells_of_an_ods_file(tmp_path: Path) -> None:
    small = write_ods(tmp_path / "a.ods", [["age"], [3]])
    for repeated in ('table:number-rows-repeated="1048576"', 'table:number-rows-repeated="4000000"'):
        with zipfile.ZipFile(small) as old, zipfile.ZipFile(tmp_path / "d.ods", "w") as new:
            for entry in old.infolist():
                content = old.read(entry)
                if entry.filename == "content.xml":
                    content = content.replace(b"<table:table-row", f"<table:table-row {repeated}".encode())
                    content = content.replace(
                        b"<table:table-cell", b'<table:table-cell table:number-columns-repeated="16384"'
                    )
                new.writestr(entry.filename, content)
        with pytest.raises(SourceError, match=r"could not be read|is too large"):
            read(tmp_path / "d.ods", SCHEMA)


def test_what_is_packed_too_tightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", [NAMES, *RECORDS])
    monkeypatch.setattr(sheets, "_UNPACKED", 1 << 20)
    assert read(path, SCHEMA).count() == 5
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/image1.png", bytes(1 << 20))
    monkeypatch.setattr(sheets, "_workbook", lambda raw: pytest.fail("was opened"))
    with pytest.raises(SourceError, match="is too large"):
        read(path, SCHEMA)


def test_what_is_said_of_sizes_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(1 << 22))
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", 1 << 22), struct.pack("<I", 100)))
    monkeypatch.setattr(sheets, "_workbook", lambda raw: pytest.fail("was opened"))
    with pytest.raises(SourceError, match="could not be read"):
        read(path, SCHEMA)


@pytest.mark.parametrize("ending", WRITERS)
def test_a_damaged_workbook_quotes_nothing(ending: str, tmp_path: Path) -> None:
    path = WRITERS[ending](tmp_path / f"d.{ending}", [NAMES, *([["secret", 4711, 4712]] * 300)])
    content = path.read_bytes()
    for damaged in (b"", content[:300], content[: len(content) // 2], content[:-40], b"age,income\n1,2\n", bytes(1000)):
        path.write_bytes(damaged)
        try:
            gram(path)
        except SourceError as error:
            assert str(error).startswith(repr(str(path)))
            assert "could not be read" in str(error) or "no column" in str(error) or "no sheet" in str(error)
            assert error.__context__ is None
            assert not any(word in str(error) for word in ("secret", "4711", "4712"))


# kept records -------------------------------------------------------------------------------------


def test_only_the_columns_of_the_schema_are_kept(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", [["name", *NAMES], *(["Anna", *row] for row in RECORDS)])
    part = open_sheet(FileMark.of(path), FileLayout(), NAMES)
    assert all(set(cells) == set(NAMES) for _, cells in part.blocks)
    assert "Anna" not in repr(part)
    assert "2500" not in repr(part)
    with pytest.raises(TypeError, match="do not leave the process"):
        pickle.dumps(part)
    assert not part.travels


def test_a_file_that_changed_is_not_read_from_what_was_kept(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", [NAMES, *RECORDS])
    source = read(path, SCHEMA)
    source.aggregate(Gram(Plain(NAMES)))
    write_xlsx(path, [NAMES, *RECORDS, *RECORDS])
    with pytest.raises(SourceError, match="changed since it was opened"):
        source.aggregate(Gram(Plain(NAMES)))


def test_a_workbook_behind_a_file_system(tmp_path: Path) -> None:
    write_xlsx(tmp_path / "d.xlsx", [NAMES, *RECORDS])
    there = pa.fs.SubTreeFileSystem(str(tmp_path), pa.fs.LocalFileSystem())
    assert np.array_equal(gram("d.xlsx", filesystem=there), gram(tmp_path / "d.xlsx"))


@pytest.fixture
def without_calamine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    yield


@pytest.mark.usefixtures("without_calamine")
def test_without_the_package(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", [NAMES, *RECORDS])
    with pytest.raises(SourceError, match=r"d.xlsx' is an Excel workbook; run: pip install 'confide\[excel\]'"):
        read(path, SCHEMA)
    with pytest.raises(SourceError, match="is an OpenDocument workbook"):
        read(path.rename(tmp_path / "d.ods"), SCHEMA)


def test_an_unknown_ending_names_the_formats_and_pandas(tmp_path: Path) -> None:
    path = tmp_path / "d.sas7bdat"
    path.write_bytes(b"0")
    with pytest.raises(SourceError, match=r"xlsx.*sav.*cf.read\(pandas.read_\.\.\.\(path\), schema\)"):
        read(path, SCHEMA)


@pytest.mark.parametrize("empty", [[(1, 1)], [(1, 1), (1, 2)], [(2, 2), (3, 1)], []])
@pytest.mark.parametrize(("above", "skip"), [([], 0), ([["Title 2024"]], 1), ([["Title 2024"], []], 2)])
def test_which_cells_are_empty_changes_nothing_of_what_is_said_of_the_header(
    empty: list[tuple[int, int]], above: list[list[Any]], skip: int, tmp_path: Path
) -> None:
    records = [[7, None if (at, 1) in empty else 1, None if (at, 2) in empty else 1] for at in range(6)]
    path = write_xlsx(tmp_path / "a.xlsx", [*above, ["a", "b", "c"], *records])
    if not skip:
        assert "[columns.a]" in Schema.draft(path)
    else:
        with pytest.raises(SchemaError, match=f"skip = {skip}"):
            Schema.draft(path)
