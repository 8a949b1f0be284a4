"""Files of Stata, SPSS and SAS: codes and missing values as they are stored, in portions, whatever is in a cell."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyreadstat
import pytest
from tests.sources.records import Plain

from confide.core import Gram
from confide.errors import SourceError
from confide.schema import Categorical, Numeric, Schema
from confide.schema.layout import FileLayout
from confide.sources import read
from confide.sources.coding import FileMark, from_arrow
from confide.sources.formats import statistics_files
from confide.sources.formats.statistics_files import fields, open_statistics

NAMES = ("SEX", "INCOME", "AGE")
SCHEMA = Schema({"SEX": Categorical(["f", "m"]), "INCOME": Numeric(0, 9000), "AGE": Numeric(0, 120)}, dataset="d")
FRAME = pd.DataFrame(
    {
        "SEX": ["f", "m", "f", "", "m", " f", "x"],
        "INCOME": [2500.5, np.nan, 100.0, 1.0, 7.25, 8.0, 9.0],
        "AGE": [31.0, 57.0, 18.0, 2.0, 44.0, 5.0, np.nan],
    }
)


def write(path: Path, frame: pd.DataFrame, **options: Any) -> Path:
    ending = path.suffix[1:]
    if ending == "zsav":
        options["compress"] = True
    verb = {"dta": "dta", "por": "por", "xpt": "xport"}.get(ending, "sav")
    getattr(pyreadstat, f"write_{verb}")(frame, str(path), **options)
    return path


ENDINGS = ("dta", "sav", "zsav", "por", "xpt")


def cells_of(path: Path, names: Sequence[str], **entries: Any) -> list[list[Any]]:
    """The cells of columns as they are handed on, None for an empty one."""
    part = open_statistics(FileMark.of(path), FileLayout(**entries))
    found: list[list[Any]] = [[] for _ in names]
    for piece in part.pieces(names):
        for block in piece.blocks(3):
            for own, cells in zip(found, block.columns, strict=True):
                values = cells.tolist() if isinstance(cells, np.ndarray) else cells.to_pylist()
                own += [None if cell != cell else cell for cell in values]
    assert part.count() == len(found[0])
    return found


def gram(data: Any, schema: Schema = SCHEMA, names: Sequence[str] = NAMES, **options: Any) -> Any:
    return read(data, schema, **options).aggregate(Gram(Plain(tuple(names))))[0]


@pytest.mark.parametrize("portion", [1, 2, 7, 8, 1 << 16])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_and_the_frame_it_was_written_from_are_the_same_integers(
    ending: str, portion: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_files, "_ROWS", portion)
    path = write(tmp_path / f"d.{ending}", FRAME)
    assert read(path, SCHEMA).count() == len(FRAME)
    found = gram(path)
    assert np.array_equal(found, gram(FRAME))
    assert found[0][0] == 3
    schema = Schema({**{name: SCHEMA[name] for name in NAMES[1:]}, "SEX": Categorical([" f", "n"])}, dataset="d")
    assert gram(path, schema)[0][0] == 1


def test_row_by_row_compression_and_the_kinds_of_files(tmp_path: Path) -> None:
    path = write(tmp_path / "d.sav", FRAME, row_compress=True)
    assert np.array_equal(gram(path), gram(FRAME))
    types = {ending: read(write(tmp_path / f"k.{ending}", FRAME), SCHEMA)._parts[0].type for ending in ENDINGS}
    assert types == {
        "dta": "Stata file",
        "sav": "SPSS file",
        "zsav": "SPSS file",
        "por": "SPSS file",
        "xpt": "SAS transport file",
    }


def test_user_missing_values_of_spss_are_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [-99.0, 5.0, -3.0, 0.0, np.nan, -9.5], "s": ["k.A.", "x", " ", "k.a.", "", "y"]})
    path = write(tmp_path / "d.sav", frame, missing_ranges={"a": [-99.0, {"lo": -9, "hi": -1}], "s": ["k.A."]})
    assert cells_of(path, ["a", "s"]) == [[None, 5.0, None, 0.0, None, -9.5], [None, "x", "", "k.a.", "", "y"]]


def test_extended_missing_values_of_stata_are_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, "a", 3.0, "z"]}, dtype=object)
    path = write(tmp_path / "d.dta", frame, missing_user_values={"a": ["a", "z"]})
    assert cells_of(path, ["a"]) == [[1.0, None, 3.0, None]]


def test_special_missing_values_of_sas_are_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "d.xpt", pd.DataFrame({"a": [1.0, np.nan, 3.0, np.nan, 5.0]}))
    content = path.read_bytes()
    plain_missing = b"\x2e" + bytes(7)
    assert content.count(plain_missing) == 2
    path.write_bytes(
        content.replace(plain_missing, b"\x41" + bytes(7), 1).replace(plain_missing, b"\x5f" + bytes(7), 1)
    )
    assert cells_of(path, ["a"]) == [[1.0, None, 3.0, None, 5.0]]


def test_cells_stay_codes_whatever_labels_they_have(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": [1.0, 2.0, 2.0], "place": ["N", "S", "N"]})
    labels: Mapping[str, Any] = {"sex": {1.0: "male", 2.0: "female"}, "place": {"N": "North"}}
    path = write(tmp_path / "d.sav", frame, variable_value_labels=labels)
    assert cells_of(path, ["sex", "place"]) == [[1.0, 2.0, 2.0], ["N", "S", "N"]]
    schema = Schema({"sex": Categorical(["male", "female"], codes=["1", "2"])}, dataset="d")
    assert gram(path, schema, ["sex"]).tolist() == [[3, 2], [2, 2]]


def test_neighbours_differ_in_the_codes_of_their_one_record(tmp_path: Path) -> None:
    frame = pd.DataFrame({"SEX": ["f"] * 3000, "INCOME": [100.0] * 3000, "AGE": [7.0] * 3000})
    for ending in ENDINGS:
        sums = gram(write(tmp_path / f"a.{ending}", frame))
        other = frame.copy()
        other.loc[2500, "INCOME"] = np.nan
        assert gram(write(tmp_path / f"b.{ending}", other))[0][0] == sums[0][0] - 1
        other.loc[2500, "INCOME"] = 200.0
        differ = gram(write(tmp_path / f"c.{ending}", other)) - sums
        assert [differ[0][k] for k in (0, 1, 3)] == [0, 0, 0]
        assert differ[0][2] == int(np.diff(SCHEMA["INCOME"].code(np.array([100.0, 200.0])))[0])


# dates --------------------------------------------------------------------------------------------

DAYS = [date(1582, 10, 15), date(1900, 2, 28), date(1960, 1, 1), date(1999, 12, 31), None]
MOMENTS = [
    datetime(1900, 1, 2, 23, 59, 59),
    datetime(1960, 1, 1),
    datetime(2024, 2, 29, 12),
    datetime(1950, 6, 1),
    None,
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_dates_are_dates(ending: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"d.{ending}", pd.DataFrame({"D": DAYS, "T": MOMENTS, "N": [1.0] * 5}, dtype=object))
    assert cells_of(path, ["D", "T"]) == [DAYS, MOMENTS]
    part = open_statistics(FileMark.of(path), FileLayout())
    assert [part.kind(name) for name in ("D", "T", "N")] == [pa.date32(), pa.timestamp("us"), pa.float64()]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_date_that_is_none_is_missing_and_ends_nothing(ending: str, tmp_path: Path) -> None:
    # as numbers, and then under the format of a date: a reader that makes Python's dates stops at them
    days = np.array([0.0, 1e15, -1e15, 1e300, 5e8, np.nan])
    shown = {"dta": ("%td", "%tc"), "xpt": ("DATE9", "DATETIME20")}.get(ending, ("DATE11", "DATETIME20"))
    frame = pd.DataFrame({"D": days, "T": days})
    path = write(tmp_path / f"d.{ending}", frame, variable_format=dict(zip(("D", "T"), shown, strict=True)))
    zero = date(1582, 10, 14) if ending in ("sav", "zsav", "por") else date(1960, 1, 1)
    (found, moments) = cells_of(path, ["D", "T"])
    assert found[0] == zero
    assert moments[0] == datetime.combine(zero, datetime.min.time())
    assert [found[k] for k in (1, 2, 3, 5)] == [moments[k] for k in (2, 3, 5)] + [None] == [None] * 4


@pytest.mark.parametrize(
    ("calendar", "shown", "moments"),
    [
        (
            statistics_files._SPSS,
            "ADATE10 EDATE8 SDATE10 JDATE7 DATE11 MOYR8 QYR6 WKYR8",
            "DATETIME20 DATETIME23.2 YMDHMS19",
        ),
        (statistics_files._STATA, "%td %tdD_m_Y %d %-td %dN/D/Y", "%tc %tC %tcHH:MM:SS"),
        (
            statistics_files._SAS,
            "DATE9 DATE MMDDYY10 DDMMYYP10 YYMMDD10 E8601DA YEAR4 MONYY7 WEEKDATE",
            "DATETIME E8601DT19 DATETIME20",
        ),
    ],
)
def test_which_formats_are_dates(calendar: Any, shown: str, moments: str) -> None:
    for one in shown.split():
        assert calendar.days.fullmatch(one), one
        assert not calendar.moments.fullmatch(one), one
    for one in moments.split():
        assert calendar.moments.fullmatch(one), one
        assert not calendar.days.fullmatch(one), one
    for one in ("F8.2", "%9.0g", "%10.2f", "%ty", "%tm", "BEST12", "COMMA10.2", "TIME8", "DTIME20", "DOLLAR8", "A10"):
        assert not calendar.days.fullmatch(one), one
        assert not calendar.moments.fullmatch(one), one


def test_times_of_day_are_seconds(tmp_path: Path) -> None:
    path = write(tmp_path / "d.sav", pd.DataFrame({"t": [3600.0, 61.5]}), variable_format={"t": "TIME8"})
    assert cells_of(path, ["t"]) == [[3600.0, 61.5]]


# hostile files ------------------------------------------------------------------------------------


def test_what_a_file_says_of_its_number_of_records_is_not_believed(tmp_path: Path) -> None:
    path = write(tmp_path / "d.sav", FRAME)
    content = bytearray(path.read_bytes())
    assert struct.unpack_from("<i", content, 80) == (len(FRAME),)
    struct.pack_into("<i", content, 80, 10**9)
    path.write_bytes(content)
    asked = []

    def limited(*given: Any, **options: Any) -> Any:
        asked.append(options.get("row_limit") if not options.get("metadataonly") else 1)
        return real(*given, **options)

    real = pyreadstat.read_sav
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pyreadstat, "read_sav", limited)
        source = read(path, SCHEMA)
        with pytest.raises(SourceError) as raised:
            source.aggregate(Gram(Plain(NAMES)))
    assert str(raised.value) == f"{str(path)!r} could not be read"
    # the reader takes room for as many rows as it is asked for
    assert all(limit is not None and 0 < limit <= 1 << 16 for limit in asked)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_damaged_file_ends_with_one_sentence(ending: str, tmp_path: Path) -> None:
    frame = pd.concat([FRAME] * 300, ignore_index=True).assign(SEX="secret")
    path = write(tmp_path / f"d.{ending}", frame)
    content = path.read_bytes()
    rng = np.random.default_rng(1)
    noise = bytearray(content)
    for at in rng.integers(len(content) // 2, len(content), 200):
        noise[at] = rng.integers(256)
    for damaged in (b"", content[:100], content[: len(content) // 2], bytes(noise), bytes(2000)):
        path.write_bytes(damaged)
        try:
            gram(path)
        except SourceError as error:
            said = (
                f"{str(path)!r} could not be read",
                f"{str(path)!r} has no readable metadata; is it {statistics_files._PACKAGES[ending]} file?",
                f"{str(path)!r} has no columns",
            )
            assert str(error) in said
            assert error.__context__ is None


@pytest.mark.parametrize("ending", ["dta", "sav", "zsav", "xpt"])
def test_text_that_its_encoding_does_not_have_ends_nothing(ending: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"s": ["Kxxln", "日本", "", "x"], "Größe": [1.0, 2.0, 3.0, 4.0]})
    if ending == "xpt":
        frame = frame.rename(columns={"Größe": "G"})
    path = write(tmp_path / f"d.{ending}", frame)
    assert cells_of(path, list(frame)) == [frame["s"].tolist(), [1.0, 2.0, 3.0, 4.0]]
    if ending == "zsav":
        return  # packed
    path.write_bytes(path.read_bytes().replace(b"Kxxln", b"K\xf6ln "))
    found = cells_of(path, list(frame))
    assert [cell.rstrip() for cell in found[0]] == ["K\ufffdln", "日本", "", "x"]
    assert found[1] == [1.0, 2.0, 3.0, 4.0]
    ascii_names = frame.rename(columns={"Größe": "G"})
    path = write(path, ascii_names)
    path.write_bytes(path.read_bytes().replace(b"Kxxln", b"K\xf6ln "))
    assert cells_of(path, ["s"], encoding="cp1252")[0][0].rstrip() == "Köln"


@pytest.mark.parametrize("version", [10, 13, 14, 15])
def test_files_of_old_stata_are_in_cp1252(version: int, tmp_path: Path) -> None:
    path = write(tmp_path / "d.dta", pd.DataFrame({"s": ["Kxxln", "y"]}), version=version)
    path.write_bytes(path.read_bytes().replace(b"Kxxln", "Köln".encode() if version > 13 else b"K\xf6ln\0"))
    assert cells_of(path, ["s"]) == [["Köln", "y"]]


def test_codes_that_are_no_ascii_are_missing_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"s": ["weiß", "x", "weiss"], "Größe": [1.0, -9.0, 3.0]})
    path = write(tmp_path / "d.sav", frame, missing_ranges={"s": ["weiß"], "Größe": [-9.0]})
    assert cells_of(path, ["s", "Größe"]) == [[None, "x", "weiss"], [1.0, None, 3.0]]


# metadata -----------------------------------------------------------------------------------------


def test_fields_are_what_metadata_hold(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a": [1.0, 2.0], "income": [3.5, -99.0], "s": ["x", "y"], "d": [date(2000, 1, 2)] * 2, "i": np.int32([1, 2])}
    )
    path = write(
        tmp_path / "d.sav",
        frame,
        column_labels=["Sex of the person", "Monthly income", None, "Birth", None],
        variable_value_labels={"a": {1.0: "male", 2.0: "female", 2.5: "x"}, "income": {-99.0: "no answer"}},
        missing_ranges={"income": [-99.0, {"lo": -9, "hi": -1}], "s": ["k.A."]},
    )
    found = {field.name: field for field in fields(FileMark.of(path), FileLayout())}
    assert {name: field.kind for name, field in found.items()} == {
        "a": "categorical",
        "income": "numeric",
        "s": "categorical",
        "d": "date",
        "i": "numeric",
    }
    assert found["a"].label == "Sex of the person"
    assert found["s"].label == ""
    assert found["a"].labels == {"1": "male", "2": "female", "2.5": "x"}
    assert set(found["income"].missing) == {"-99", (-9.0, -1.0)}
    assert found["s"].missing == ("k.A.",)
    stata = fields(FileMark.of(write(tmp_path / "d.dta", frame)), FileLayout())
    assert [field.kind for field in stata] == ["numeric", "numeric", "categorical", "date", "integer"]


def test_labels_of_some_codes_leave_a_number(tmp_path: Path) -> None:
    frame = pd.DataFrame({name: [1.0, 2.0] for name in ("income", "scale", "sex", "land")})
    labels = {
        "income": {-99.0: "no\nanswer"},
        "scale": {1.0: "very good", 5.0: "very bad"},
        "sex": {1.0: "male", 2.0: "female", -99.0: "no answer"},
        "land": {float(code): str(code) for code in (4, 8, 12, 16)},
    }
    path = write(tmp_path / "d.sav", frame, variable_value_labels=labels)
    found = {field.name: field for field in fields(FileMark.of(path), FileLayout())}
    assert [field.kind for field in found.values()] == ["numeric", "numeric", "categorical", "categorical"]
    text = Schema.draft(path)
    for name, told in (
        ("income", "-99 = no answer"),
        ("scale", "1 = very good, 5 = very bad"),
        ("sex", "-99 = no answer"),
    ):
        line = text.partition(f"[columns.{name}]\n")[2].partition("\n")[0]
        assert f"labeled codes: maybe missing values: {told}" in line, line
    assert 'levels = ["male", "female", "no answer"]' in text, "nothing is decided"
    assert "maybe" not in found["land"].note


def test_fields_do_not_hang_on_records(tmp_path: Path) -> None:
    for ending in ENDINGS:
        one = fields(FileMark.of(write(tmp_path / f"d.{ending}", FRAME)), FileLayout())
        other = fields(FileMark.of(write(tmp_path / f"d.{ending}", FRAME.iloc[:2])), FileLayout())
        assert one == other
        assert not any(str(len(FRAME)) in str(field) for field in one)


# files --------------------------------------------------------------------------------------------


def test_a_file_that_changed(tmp_path: Path) -> None:
    source = read(write(tmp_path / "d.sav", FRAME), SCHEMA)
    write(tmp_path / "d.sav", FRAME.iloc[:3])
    with pytest.raises(SourceError, match="changed since it was opened"):
        source.aggregate(Gram(Plain(NAMES)))


def test_a_file_behind_a_file_system(tmp_path: Path) -> None:
    write(tmp_path / "d.sav", FRAME)
    there = pa.fs.SubTreeFileSystem(str(tmp_path), pa.fs.LocalFileSystem())
    assert np.array_equal(gram("d.sav", filesystem=there), gram(FRAME))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_without_a_path(ending: str, tmp_path: Path) -> None:
    mark = FileMark.of(write(tmp_path / f"d.{ending}", FRAME))

    class Elsewhere:
        name, place, own_path = mark.name, mark.place, None
        open, verify = staticmethod(mark.open), staticmethod(mark.verify)

    part = open_statistics(Elsewhere(), FileLayout())  # type: ignore[arg-type]
    (piece,) = part.pieces(["SEX"])
    (block,) = piece.blocks(99)
    assert from_arrow(block.columns[0]).tolist() == FRAME["SEX"].tolist()


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "d.sav", FRAME)
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(SourceError, match=r"d.sav' is an SPSS file; run: pip install 'confide\[stats\]'"):
        read(path, SCHEMA)
