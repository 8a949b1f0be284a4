"""Small files in the shapes that offices produce: each is read right, or refused, or told before the charge. Never silently wrong.

`docs/reference/files.md` lists them, with what happens.
"""

from __future__ import annotations

import datetime
import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.errors import ConfideError, SchemaError
from confide.schema.toml import value
from confide.sources.row_by_row import RowSource

INCOME = cf.Numeric(0, 90_000)
SEX = cf.Categorical(["male", "female"])
GERMAN = {"delimiter": ";", "decimal": ",", "thousands": "."}
NO = float("nan")
PAGE = Path(__file__).parents[2] / "evidence" / "files.md"


@dataclass(frozen=True)
class Shape:
    """A file, the schema's facts about it, and what is read: values by column, or words of the refusal."""

    name: str
    #: What the file holds, or what writes it.
    text: str | bytes | Callable[[Path], None]
    read: dict[str, list[Any]] | str
    file: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=lambda: {"income": INCOME, "sex": SEX})
    missing: list[Any] | None = None
    encoding: str = "utf-8"
    ending: str = "csv"
    #: Cells that hold something and count as missing, by column: the steward is told before the charge.
    unread: dict[str, int] = field(default_factory=dict)
    #: Lines with more or fewer fields than the header, told likewise.
    other_width: int = 0

    def write(self, path: Path) -> None:
        if not isinstance(self.text, (str, bytes)):
            self.text(path)
            return
        raw = self.text if isinstance(self.text, bytes) else self.text.encode(self.encoding)
        path.write_bytes(gzip.compress(raw) if self.ending.endswith(".gz") else raw)


def _days(*days: str) -> list[float]:
    """Days since 1970-01-01, NaN for what is no day."""
    return [float(np.datetime64(day, "D").astype(int)) if day else NO for day in days]


def _sheets(**sheets: list[list[Any]]) -> Callable[[Path], None]:
    """Writes a workbook, cell by cell."""

    def write(path: Path) -> None:
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        book.save(path)

    return write


def _merged(path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Persons", None], ["income", "sex"], [1742.81, "male"], [900, "female"]):
        book.active.append(row)
    book.active.merge_cells("A1:B1")
    book.save(path)


def _spss(path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"income": [1742.81, 900.0, -99.0], "sex": [1.0, 2.0, 9.0]})
    labels = {"sex": {1: "male", 2: "female", 9: "refused"}}
    pyreadstat.write_sav(frame, str(path), variable_value_labels=labels, missing_ranges={"income": [-99], "sex": [9]})


def _stata(path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"income": [1742.81, 900.0, float("nan")], "sex": ["male", "female", ""]})
    pyreadstat.write_dta(frame, str(path))


def _typed_dates(path: Path) -> None:
    frame = pd.DataFrame({"born": pd.to_datetime(["1950-03-01", "2000-12-31"]).date, "sex": ["male", "female"]})
    frame.to_parquet(path)


def _durations(path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["income", "sex"], [1742.81, "male"], [2e10, "female"], [900, "female"]):
        book.active.append(row)
    book.active["A3"].number_format = "[h]:mm:ss"
    book.save(path)


BORN = cf.Date("1900-01-01", "2020-12-31")
CODED = cf.Categorical(["male", "female"], codes=["1", "2"])
TWO = {"income": [1742.81, 900.0], "sex": ["male", "female"]}
DAYS = {"born": _days("1950-03-01", "2000-12-31")}
SHAPES = [
    Shape("commas and points", "income,sex\n1742.81,male\n900,female\n", TWO),
    Shape("semicolons, decimal comma, thousands point", "income;sex\n1.742,81;male\n900;female\n", TWO, GERMAN),
    Shape("thousands in some cells alone", "income;sex\n1742,81;male\n900,00;female\n", TWO, GERMAN),
    Shape(
        "a point that could be either mark",
        "income;sex\n1.742;male\n900;female\n",
        {**TWO, "income": [NO, 900.0]},
        {"delimiter": ";", "decimal": ","},
        unread={"income": 1},
    ),
    Shape(
        "a comma of thousands that is declared",
        'income,sex\n"1,742.81",male\n900,female\n',
        TWO,
        {"thousands": ","},
    ),
    Shape(
        "a comma of thousands that is not declared",
        'income,sex\n"1,742.81",male\n900,female\n',
        {**TWO, "income": [NO, 900.0]},
        unread={"income": 1},
    ),
    Shape(
        "groups of two digits",
        "income;sex\n17.42;male\n900;female\n",
        {**TWO, "income": [NO, 900.0]},
        GERMAN,
        unread={"income": 1},
    ),
    Shape("a byte order mark", b"\xef\xbb\xbfincome,sex\n1742.81,male\n900,female\n", TWO),
    Shape(
        "UTF-16 with tabs",
        "income\tsex\r\n1742.81\tmale\r\n900\tfemale\r\n",
        TWO,
        {"delimiter": "\t", "encoding": "utf-16"},
        encoding="utf-16",
    ),
    Shape(
        "cp1252 that is declared",
        "income;sex;größe\n1742,81;male;x\n900;female;ß\n",
        TWO,
        {**GERMAN, "encoding": "cp1252"},
        encoding="cp1252",
    ),
    Shape(
        "cp1252 that is not declared, with an umlaut in the header",
        "income;sex;größe\n1742,81;male;x\n900;female;ß\n",
        'encoding = "cp1252"',
        GERMAN,
        encoding="cp1252",
    ),
    Shape(
        "cp1252 that is not declared, with an umlaut in a label",
        "income,land\n1742.81,Köln\n900,Bonn\n",
        {"income": [1742.81, 900.0], "land": [None, "Bonn"]},
        columns={"income": INCOME, "land": cf.Categorical(["Köln", "Bonn"])},
        encoding="cp1252",
        unread={"land": 1},
    ),
    Shape("tabs, by the ending tsv", "income\tsex\n1742.81\tmale\n900\tfemale\n", TWO, ending="tsv"),
    Shape(
        "an ending that is not known, with its format",
        "income,sex\n1742.81,male\n900,female\n",
        TWO,
        {"format": "csv"},
        ending="txt",
    ),
    Shape("gzip", "income,sex\n1742.81,male\n900,female\n", TWO, ending="csv.gz"),
    Shape("blanks for thousands", "income;sex\n1\u00a0742,81;male\n900 ;female\n", TWO, {**GERMAN, "thousands": " "}),
    Shape(
        "narrow blanks for thousands", "income;sex\n1\u202f742,81;male\n900;female\n", TWO, {**GERMAN, "thousands": " "}
    ),
    Shape(
        "apostrophes for thousands",
        "income;sex\n1'742.81;male\n900;female\n",
        TWO,
        {"delimiter": ";", "thousands": "'"},
    ),
    Shape(
        "typographic apostrophes",
        "income;sex\n1\u2019742.81;male\n900;female\n",
        TWO,
        {"delimiter": ";", "thousands": "'"},
    ),
    Shape(
        "a minus sign and not a hyphen",
        "t,sex\n\u22125.5,male\n5.5,female\n",
        {"t": [-5.5, 5.5], "sex": ["male", "female"]},
        columns={"t": cf.Numeric(-50, 50), "sex": SEX},
    ),
    Shape("a title above the header", "Table 3,\nincome,sex\n1742.81,male\n900,female\n", TWO, {"skip": 1}),
    Shape(
        "a merged header above the header", "Persons,,\n,,\nincome,sex\n1742.81,male\n900,female\n", TWO, {"skip": 2}
    ),
    Shape("a title that is not declared", "Table 3,\nincome,sex\n1742.81,male\n", "none of the schema's names"),
    Shape(
        "a title without empty fields, not declared",
        "Table 3\nincome,sex\n1742.81,male\n900,female\n",
        "none of the schema's names",
    ),
    Shape("a line of sums", "income,sex\n1742.81,male\n900,female\nSumme,\n", TWO, {"not_records": ["Summe"]}),
    Shape(
        "a line of sums behind empty cells",
        "income,sex\n1742.81,male\n900,female\n, Summe \n",
        TWO,
        {"not_records": ["Summe"]},
    ),
    Shape(
        "a line of sums with fewer cells",
        "income,sex\n1742.81,male\n900,female\nSumme\n",
        TWO,
        {"not_records": ["Summe"]},
    ),
    Shape(
        "a line of sums that is not declared",
        "income,sex\n1742.81,male\n900,female\nSumme,\n",
        {"income": [1742.81, 900.0, NO], "sex": ["male", "female", None]},
        unread={"income": 1},
    ),
    Shape(
        "codes of missing values, however they are written",
        "income;sex\n-99;male\n-99,00;female\n 999 ;k.A.\n900;female\n",
        {"income": [NO, NO, NO, 900.0], "sex": ["male", "female", None, "female"]},
        GERMAN,
        missing=[-99, 999, "k.A."],
    ),
    Shape(
        "codes of missing values that are not declared",
        "income,sex\n-99,male\nk.A.,female\n",
        {"income": [-99.0, NO], "sex": ["male", "female"]},
        unread={"income": 1},
    ),
    Shape(
        "a range of codes",
        "income,sex\n-9,male\n-1,female\n900,male\n",
        {"income": [NO, NO, 900.0], "sex": ["male", "female", "male"]},
        missing=[{"from": -9, "to": -1}],
    ),
    Shape(
        "labels by their codes, with leading zeros",
        "income,sex\n1742.81,1\n900,02\n3,female\n4,3\n",
        {"income": [1742.81, 900.0, 3.0, 4.0], "sex": ["male", "female", "female", None]},
        columns={"income": INCOME, "sex": cf.Categorical(["male", "female"], codes=["1", "2"])},
        unread={"sex": 1},
    ),
    Shape(
        "leading zeros of a key",
        "land,x\n01,1\n1,2\n10,3\n",
        {"land": ["01", "01", "10"]},
        columns={"land": cf.Categorical(["01", "10"])},
    ),
    Shape("single quotes", "income,sex\n'1742.81','male'\n900,female\n", TWO, {"quote": "'"}),
    Shape(
        "inch marks, without quotes",
        'size,sex\n5",male\n7,female\n',
        {"size": ['5"', "7"], "sex": ["male", "female"]},
        {"quote": ""},
        columns={"size": cf.Categorical(['5"', "7"]), "sex": SEX},
    ),
    Shape("delimiters within quotes", 'note,income,sex\n"a, b",1742.81,male\n"say ""x""",900,female\n', TWO),
    Shape(
        "a line break within quotes",
        'note,income,sex\n"a\nb",1742.81,male\nc,900,female\n',
        {"income": [NO, 1742.81, 900.0], "sex": [None, "male", "female"]},
        other_width=1,
    ),
    Shape(
        "row names that the header lacks",
        '"income","sex"\n"1",1742.81,"male"\n"2",900,"female"\n',
        {"income": [NO, NO], "sex": [None, None]},
        other_width=2,
    ),
    Shape("a delimiter at each end of line, and in the header", "income,sex,\n1742.81,male,\n900,female,\n", TWO),
    Shape(
        "units in cells",
        "income,sex\n1742.81 EUR,male\n\u20ac 900,female\n",
        {**TWO, "income": [NO, NO]},
        unread={"income": 2},
    ),
    Shape(
        "percent signs and classes",
        "income,sex\n12%,male\n18-25,female\n",
        {**TWO, "income": [NO, NO]},
        unread={"income": 2},
    ),
    Shape(
        "other names in the file",
        "Einkommen (\u20ac);Sex\n1.742,81;male\n900;female\n",
        TWO,
        {**GERMAN, "names": {"income": "Einkommen (\u20ac)", "sex": "Sex"}},
    ),
    Shape("a column that is there twice", "income,sex,income\n1742.81,male,3\n", "more than one column 'income'"),
    Shape("no header", "1742.81,male\n900,female\n", "may be a record"),
    Shape(
        "no header, a number with a decimal comma, cut at a comma",
        "Erika;1.742,81;male\nMax;900;female\n",
        "may be a record",
    ),
    Shape("no header, words alone", "Erika,male\nMax,female\n", "may be a record"),
    Shape("line ends of old Macs", "income,sex\r1742.81,male\r900,female\r", "no readable header line"),
    Shape("line ends of two kinds", "income,sex\r\n1742.81,male\n900,female\r\n", TWO),
    Shape("empty lines", "\n".join(["income,sex", "", "1742.81,male", "", "900,female", "", ""]), TWO),
    Shape(
        "empty cells and blanks",
        "income,sex\n ,male\n900,\n,\n",
        {"income": [NO, 900.0, NO], "sex": ["male", None, None]},
    ),
    Shape(
        "digits of other scripts",
        "income,sex\n\uff11\uff17,male\n\u0661\u0667,female\n",
        {**TWO, "income": [NO, NO]},
        unread={"income": 2},
    ),
    Shape("dates as ISO 8601", "born\n1950-03-01\n2000-12-31\n", DAYS, columns={"born": BORN}),
    Shape(
        "dates with points",
        "born\n1.3.1950\n31.12.2000\n31.02.2000\n",
        {"born": _days("1950-03-01", "2000-12-31", "")},
        columns={"born": cf.Date("1900-01-01", "2020-12-31", format="%d.%m.%Y")},
        unread={"born": 1},
    ),
    Shape(
        "dates with the month first",
        "born\n03/01/1950\n12/31/2000\n",
        DAYS,
        columns={"born": cf.Date("1900-01-01", "2020-12-31", format="%m/%d/%Y")},
    ),
    Shape(
        "years of two digits",
        "born\n01.03.50\n31.12.00\n",
        DAYS,
        columns={"born": cf.Date("1900-01-01", "2020-12-31", format="%d.%m.%y", century=1930)},
    ),
    Shape(
        "dates as numbers of days",
        "born\n18323\n36891\n",
        DAYS,
        columns={"born": cf.Date("1900-01-01", "2020-12-31", epoch="1899-12-30")},
    ),
    Shape(
        "dates in another notation than is declared",
        "born\n1.3.1950\n2000-12-31\n",
        {"born": _days("", "2000-12-31")},
        columns={"born": BORN},
        unread={"born": 1},
    ),
    Shape(
        "typed dates in Parquet",
        _typed_dates,
        {**DAYS, "sex": TWO["sex"]},
        columns={"born": BORN, "sex": SEX},
        ending="parquet",
    ),
    Shape("typed dates under another kind", _typed_dates, "born", columns={"born": INCOME}, ending="parquet"),
    Shape("a workbook", _sheets(Data=[["income", "sex"], [1742.81, "male"], [900, "female"]]), TWO, ending="xlsx"),
    Shape(
        "a workbook with typed dates",
        _sheets(Data=[["born"], [datetime.date(1950, 3, 1)], [datetime.datetime(2000, 12, 31, 5)]]),
        DAYS,
        columns={"born": BORN},
        ending="xlsx",
    ),
    Shape(
        "a workbook with numbers as text",
        _sheets(Data=[["income", "sex"], ["1.742,81", "male"], [900, "female"]]),
        TWO,
        {"decimal": ",", "thousands": "."},
        ending="xlsx",
    ),
    Shape(
        "numbers, and text far below",
        _sheets(Data=[["income"], *([[7]] * 2_000), ["unknown"]]),
        {"income": [7.0] * 2_000 + [NO]},
        columns={"income": INCOME},
        ending="xlsx",
        unread={"income": 1},
    ),
    Shape("several sheets, and none named", _sheets(Notes=[["a"]], Data=[["income"], [7]]), "Notes", ending="xlsx"),
    Shape(
        "the sheet by its name, below a title and above a sum",
        _sheets(
            Notes=[["a"]], Data=[["Table 3"], ["income", "sex"], [1742.81, "male"], [900, "female"], ["Summe", None]]
        ),
        TWO,
        {"sheet": "Data", "skip": 1, "not_records": ["Summe"]},
        ending="xlsx",
    ),
    Shape(
        "a workbook with error cells such as #N/A, which count as empty",
        _sheets(Data=[["income", "sex"], [1742.81, "male"], ["#N/A", "female"]]),
        {**TWO, "income": [1742.81, NO]},
        ending="xlsx",
    ),
    Shape(
        "a workbook with a duration of a million years",
        _durations,
        {"income": [1742.81, NO, 900.0], "sex": ["male", None, "female"]},
        ending="xlsx",
        other_width=1,
    ),
    Shape("merged cells above the header", _merged, TWO, {"skip": 1}, ending="xlsx"),
    Shape(
        "SPSS with value labels and user-missing codes",
        _spss,
        {"income": [1742.81, 900.0, NO], "sex": ["male", "female", None]},
        columns={"income": INCOME, "sex": CODED},
        ending="sav",
    ),
    Shape(
        "Stata with missing values",
        _stata,
        {"income": [1742.81, 900.0, NO], "sex": ["male", "female", None]},
        ending="dta",
    ),
    Shape("a file of SAS that is not read", "x", "ending", ending="sas7bdat"),
]


def outcome(shape: Shape) -> str:
    """What happens to the file, as the page says it."""
    if isinstance(shape.read, str):
        return "refused"
    told = [f"{count} unread in {name}" for name, count in shape.unread.items()]
    told += [f"{shape.other_width} of another width"] if shape.other_width else []
    stated = {name: entry for name, entry in shape.file.items() if name != "names"}
    stated |= {} if shape.missing is None else {"missing": shape.missing}
    facts = [f"`{name} = {value(entry)}`" for name, entry in stated.items()]
    facts += ["`in_file`"] if "names" in shape.file else []
    facts += ["`codes`"] if any(getattr(column, "codes", None) for column in shape.columns.values()) else []
    read = f"read, with {', '.join(facts)}" if facts else "read"
    return f"{read}; told: {', '.join(told)}" if told else read


def test_the_page_lists_each_file() -> None:
    """With `CONFIDE_RECORD=1` the table of the page is written anew."""
    page = PAGE.read_text(encoding="utf-8")
    head, mark, _ = page.partition("| shape | what happens |\n| --- | --- |\n")
    rows = "".join(f"| {shape.name} | {outcome(shape)} |\n" for shape in SHAPES)
    if os.environ.get("CONFIDE_RECORD"):
        PAGE.write_text(head + mark + rows, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == head + mark + rows


def _opened(shape: Shape, folder: Path) -> Any:
    path = folder / f"persons.{shape.ending}"
    shape.write(path)
    schema = cf.Schema(shape.columns, missing=shape.missing, file=shape.file)
    source = cf.read(path, schema)
    source.check(schema.names)
    return source


def values_of(source: Any) -> dict[str, list[Any]]:
    """The values of all columns, labels as text, in the order of the records' text."""
    schema = source.schema
    blocks = [block for block, _ in RowSource(source).rowwise(schema.names, 100)]
    read = {name: np.concatenate([block[at] for block in blocks]) for at, name in enumerate(schema.names)}
    return {
        name: [None if at < 0 else schema[name].levels[int(at)] for at in values]
        if isinstance(schema[name], cf.Categorical)
        else values.tolist()
        for name, values in read.items()
    }


def same(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> bool:
    """Equal as collections of records, whose order no reader promises."""
    rows = [sorted(map(repr, zip(*values.values(), strict=True))) for values in (one, other)]
    return list(one) == list(other) and rows[0] == rows[1]


@pytest.mark.parametrize("shape", [one for one in SHAPES if not isinstance(one.read, str)], ids=lambda one: one.name)
def test_a_file_is_read_right(shape: Shape, tmp_path: Path) -> None:
    assert isinstance(shape.read, dict)
    source = _opened(shape, tmp_path)
    found = values_of(source)
    assert same(found, shape.read), found
    assert source.count() == len(next(iter(shape.read.values())))


@pytest.mark.parametrize("shape", [one for one in SHAPES if not isinstance(one.read, str)], ids=lambda one: one.name)
def test_what_is_not_read_is_told_before_the_charge(shape: Shape, tmp_path: Path) -> None:
    """The preflight counts what the page says, and nothing else of a file that is read."""
    found = cf.preflight(_opened(shape, tmp_path))
    assert {name: one.unread for name, one in found.columns.items() if one.unread} == shape.unread
    assert found.other_width == shape.other_width
    assert found.odd or not (shape.unread or shape.other_width)


@pytest.mark.parametrize("shape", [one for one in SHAPES if isinstance(one.read, str)], ids=lambda one: one.name)
def test_a_file_is_refused_before_it_is_read(shape: Shape, tmp_path: Path) -> None:
    assert isinstance(shape.read, str)
    with pytest.raises(ConfideError) as caught:
        _opened(shape, tmp_path)
    assert shape.read in str(caught.value)
    assert "Erika" not in str(caught.value) and "1742" not in str(caught.value)


NO_NAME = '"income","sex"\n"1",1742.81,"m"\n"2",900,"f"\n'  # of the row's number, as R leaves it out
TITLES: list[tuple[str, Any, int]] = [
    ("csv", "Persons 2024, as of July\nid;sex;income\n1;m;1.742,81\n2;f;900\n", 1),
    ("csv", "Persons 2024; as of July\nid,sex,income\n1,m,2\n2,f,900\n", 1),
    ("csv", "Persons\nas of July\n\nid;sex;income\n1;m;1,5\n2;f;2,5\n", 3),
    ("csv", "Persons\nid,sex\n", 1),
    ("csv", "Persons;;\nid;sex;income\n1;m;1\n", 1),
    ("csv", NO_NAME, 1),
    ("xlsx", _sheets(A=[["Persons", "as of July"], [None], ["id", "sex", "income"], [1, "m", 2], [2, None, 9]]), 2),
    ("xlsx", _sheets(A=[["Persons"], ["id", "sex"], [1, "m"]]), 1),
    ("csv", "id,sex,income\n1,m,2\n2,f\n3,m,4\n", 0),
    ("csv", "id;sex\n1;m\n2;f;x\n", 0),
    ("csv", "id;income;sex\n1;1,5;m\n2;2,5\n3;3,5\n", 0),
    ("csv", "income\n1742.81\n900\n", 0),
    ("csv", 'id,note\n1,"a;b"\n2,"c;d"\n', 0),
    ("xlsx", _sheets(A=[["id", "sex", "income"], [1, None, None], [2, "f", None]]), 0),
]


@pytest.mark.parametrize(("ending", "text", "above"), TITLES)
def test_a_draft_tells_a_title_from_a_header(ending: str, text: Any, above: int, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    Shape("", text, "", ending=ending).write(path)
    if above:
        with pytest.raises(
            SchemaError, match=f"may be a title above the header.*skip = {above} in.*--skip {above};"
        ) as told:
            cf.Schema.draft(path)
        assert "Persons" not in str(told.value) and "1742" not in str(told.value)
    if text != NO_NAME:
        assert "Persons" not in cf.Schema.draft(path, file={"skip": above})


FIRST = ["1.742,81", "1,742.81", "1950-03-01", "31.12.1950", "12/31/1950", "12:30", "-99", "true", "\u22125,5"]


@pytest.mark.parametrize("cell", FIRST)
def test_a_draft_withholds_a_first_line_that_may_be_a_record(cell: str, tmp_path: Path) -> None:
    for delimiter in (";", ","):
        path = tmp_path / "a.csv"
        text = f'"{cell}"' if delimiter == "," else cell
        path.write_text("\n".join(delimiter.join(["Erika", text, "Ulm"]) for _ in range(3)))
        with pytest.raises(SchemaError, match="may be a record") as told:
            cf.Schema.draft(path)
        assert "Erika" not in str(told.value) and cell not in str(told.value).replace(str(path), "")


@pytest.mark.parametrize(
    "cell", [1950, True, datetime.date(1950, 3, 1), datetime.datetime(1950, 3, 1, 4), datetime.time(5, 6)]
)
def test_a_draft_withholds_a_first_row_that_may_be_a_record(cell: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    _sheets(Data=[["Erika", cell, "Ulm"]] * 3)(path)
    with pytest.raises(SchemaError, match="may be a record") as told:
        cf.Schema.draft(path)
    assert "Erika" not in str(told.value) and "1950" not in str(told.value)
    with pytest.raises(ConfideError, match="may be a record") as told:
        cf.read(path, cf.Schema({"income": INCOME})).check(["income"])
    assert "Erika" not in str(told.value)


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "utf8", "utf-8-sig"])
def test_a_byte_order_mark_goes_by_each_name_of_utf_8(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfage,sex\n31,male\n")
    assert "[columns.age]" in cf.Schema.draft(path, file={"encoding": encoding})
    schema = cf.Schema({"age": INCOME}, file={"encoding": encoding})
    assert cf.read(path, schema).lacks(["age"]) == ()
    assert schema.file.encoding == ("utf-8-sig" if encoding.endswith("sig") else "utf-8")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
def test_one_release_from_all_encodings(encoding: str, tmp_path: Path) -> None:
    """The layout is in no digest, plan or release: the same records give the same bits."""
    rng = np.random.default_rng(5)
    amounts, sexes = rng.lognormal(7, 1, 500), rng.choice(["männlich", "weiblich"], 500)
    columns = {"income": cf.Numeric(0, 90_000), "sex": cf.Categorical(["männlich", "weiblich"])}
    german = [f"{amount:,.2f}".translate(str.maketrans(",.", ".,")) for amount in amounts]
    path = tmp_path / "a.csv"
    path.write_bytes("\r\n".join(["income;sex", *map(";".join, zip(german, sexes, strict=True))]).encode(encoding))
    layout = {**GERMAN, **({} if encoding.startswith("utf-8") else {"encoding": encoding})}
    plain = cf.read({"income": np.round(amounts, 2), "sex": sexes}, cf.Schema(columns, dataset="d"))
    laid = cf.read(path, cf.Schema(columns, dataset="d", file=layout))
    assert laid.schema.digest == plain.schema.digest and laid.schema != plain.schema
    releases = [_release(source) for source in (plain, laid)]
    assert releases[0].to_json() == releases[1].to_json()


def _release(source: Any) -> Any:
    method = cf.tables.Means("income ~ sex", inference="population")
    return cf.release(method, source, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(3))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"decimal": ",", "thousands": ","}, "both"),
    ({"decimal": ";"}, "decimal"),
    ({"quote": ";", "delimiter": ";"}, "both"),
    ({"format": "csv", "sheet": 1}, "sheet"),
    ({"skip": 1001}, "1,000"),
    ({"skip_last": 1}, "not_records"),
    ({"delimeter": ";"}, "delimiter"),
    ({"encoding": "utf-7"}, "later records"),
    ({"encoding": "iso-2022-jp"}, "later records"),
    ({"encoding": "base64"}, "encoding"),
    ({"encoding": "nosuch"}, "encoding"),
    ({"encoding": "undefined"}, "another that Python knows"),
    ({"sheet": 0}, "sheet"),
    ({"not_records": "Summe"}, "not_records"),
    ({"names": {"income": "a", "sex": "a"}}, "two columns"),
]


@pytest.mark.parametrize(("file", "said"), REFUSED, ids=lambda one: str(one) if isinstance(one, dict) else "")
def test_a_layout_is_refused(file: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        cf.Schema({"income": INCOME, "sex": SEX}, file=file)
    assert said in str(caught.value)


MISSING: list[tuple[Callable[[], Any], str]] = [
    (lambda: cf.Numeric(0, 1, missing="-99"), "list of codes"),
    (lambda: cf.Numeric(0, 1, missing=[""]), "not blank"),
    (lambda: cf.Numeric(0, 1, missing=["-99", -99]), "twice"),
    (lambda: cf.Numeric(0, 1, missing=[{"from": 2, "to": 1}]), "range"),
    (lambda: cf.Numeric(0, 1, missing=list(range(1001))), "1,000"),
    (lambda: cf.Categorical(["a", "1"], missing=["1.0"]), "a level"),
    (lambda: cf.Categorical(["a", "1"], missing=[{"from": 0, "to": 2}]), "a level"),
    (lambda: cf.Schema({"g": cf.Categorical(["a", "b"])}, missing=["b"]), "column 'g'"),
    (lambda: cf.Categorical(["a", "b"], codes=["1"]), "as many codes"),
    (lambda: cf.Categorical(["a", "b"], codes=["1", "01"]), "another level"),
    (lambda: cf.Categorical(["a", "b"], codes=["b", "2"]), "another level"),
]


@pytest.mark.parametrize(("made", "said"), MISSING)
def test_codes_are_refused(made: Callable[[], Any], said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        made()
    assert said in str(caught.value)


def test_codes_come_before_bounds_and_are_in_the_digest() -> None:
    """A code beyond the bounds would be moved to the nearest one, and count as a value there."""
    plain, coded = cf.Schema({"x": cf.Numeric(0, 100)}), cf.Schema({"x": cf.Numeric(0, 100, missing=[999])})
    cells = {"x": np.array([999.0, 50.0])}
    assert plain.digest != coded.digest
    assert np.isnan(values_of(cf.read(cells, coded))["x"][0])
    code = cf.Numeric(0, 100, missing=[999], on_missing=0)
    assert [float(v) for v in code.code([np.nan])] == [0.0]


def test_columns_keep_their_own_list() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1, missing=[]), "y": cf.Numeric(0, 1)}, missing=["-9"])
    assert schema["x"].missing == () and schema["y"].missing == ("-9",)
    assert cf.Schema.from_toml(schema.to_toml()) == schema == cf.Schema.from_dict(schema.to_dict())


def test_what_one_line_holds_moves_no_other(tmp_path: Path) -> None:
    """A line that is malformed in any encoding changes its own cells alone."""
    columns = {"x": cf.Numeric(0, 9), "y": cf.Numeric(0, 9)}
    for encoding in ("utf-8", "cp1252", "shift_jis", "gb18030", "big5", "euc_jp", "utf-16-le"):
        ends = [line.encode(encoding) for line in ("x,y\n", "1,2\n", "\n", "3,4\n")]
        for odd in (b"\x81", b"\xff\xfe", b'"', b"\x00", b"\x8e\xa1", b"\xf0\x28"):
            if encoding == "utf-16-le" and len(odd) % 2:
                continue  # half a character is no text of this encoding, and no line
            path = tmp_path / "a.csv"
            path.write_bytes(ends[0] + ends[1] + odd + ends[2] + ends[3])
            found = values_of(cf.read(path, cf.Schema(columns, file={"encoding": encoding})))
            kept = [row for row in zip(*found.values(), strict=True) if not np.isnan(row[0])]
            assert sorted(kept) == [(1.0, 2.0), (3.0, 4.0)], (encoding, odd, found)
