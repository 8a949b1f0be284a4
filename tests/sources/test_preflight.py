"""What was read of the records, counted for the steward: whatever holds them, as a release reads them, and in numbers nowhere else."""

from __future__ import annotations

import copy
import os
import pickle
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.sources.test_files_of_offices import SHAPES, Shape, _opened

import confide as cf
from confide.core.lost_values import ABOVE, BELOW, UNREAD
from confide.errors import SchemaError, SourceError
from confide.schema import Categorical, Clusters, Integer, Numeric, Schema, SurveyDesign, Unit
from confide.sources import cell_counts, read
from confide.sources.cell_counts import Repeats
from confide.sources.coder import Coder
from confide.sources.coding import Block
from confide.sources.preflight import HEAD, ColumnCheck, Preflight, preflight
from confide.sources.shapes import hint_of, shapes_of, texts_of

SCHEMA = Schema({"x": Numeric(0, 1), "g": Categorical(["a", "b"]), "k": Categorical([1, 2], on_missing=1)})
G = ["a", "A", None, "", "b", " b", "c", "a"]  # "A", " b" and "c" match none; an empty cell holds no label
K = [1.0, 2.0, 3.0, float("nan"), 1.5, 2.0, float("inf"), 1.0]  # 3, 1.5 and inf
FRAME = pd.DataFrame({"x": [-1, 0, 0.5, 1, 2, 3, np.nan, np.inf], "g": pd.Series(G, dtype=object), "k": K})


def as_csv(folder: Path) -> Path:
    FRAME.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_parquet(folder: Path) -> Path:
    FRAME.to_parquet(folder / "t.parquet", index=False)
    return folder / "t.parquet"


@pytest.mark.parametrize(
    "data",
    [
        as_csv,
        as_parquet,
        lambda folder: [as_csv(folder)],
        lambda folder: FRAME,
        lambda folder: FRAME.assign(g=FRAME["g"].astype("category")),
        lambda folder: FRAME.astype(object),
        lambda folder: pl.from_pandas(FRAME),
        lambda folder: pl.from_pandas(FRAME).lazy(),
        lambda folder: pa.Table.from_pandas(FRAME),
        lambda folder: pa.Table.from_pandas(FRAME).to_reader(max_chunksize=3),
        lambda folder: lambda: FRAME,
        lambda folder: {"x": FRAME["x"], "g": G, "k": K},
        lambda folder: {"x": FRAME["x"], "g": pa.array(G).dictionary_encode(), "k": np.array(K)},
    ],
)
def test_every_container_gives_the_same_counts(data: Any, tmp_path: Path) -> None:
    found = preflight(read(data(tmp_path), SCHEMA))
    assert {name: one.unread for name, one in found.columns.items()} == {"x": 1, "g": 3, "k": 3}
    assert {name: one.empty for name, one in found.columns.items()} == {"x": 1, "g": 2, "k": 1}
    assert {name: one.values for name, one in found.columns.items()} == {"x": 6, "g": 3, "k": 4}
    x = found.columns["x"]
    assert (x.below, x.above, found.records, found.other_width, x.single) == (1, 2, 8, 0, False)


def test_whole_numbers_and_booleans_are_read_as_a_release_reads_them() -> None:
    schema = Schema({"k": Categorical([1, 2]), "b": Categorical([True, False])})
    found = preflight(read({"k": np.array([1, 2, 7]), "b": np.array([True, False, True])}, schema)).columns
    assert (found["k"].unread, found["b"].unread) == (1, 0)
    values = {"k": [True, 2, pd.NA, None, "2.0", [1]], "b": [1, 0, "true", "no", None, 2]}
    found = preflight(read(values, schema)).columns
    # the list in k, and "no" and 2 in b: 1, 0 and "true" mean True, False and True
    assert (found["k"].unread, found["b"].unread) == (1, 2)


_CELLS = st.one_of(
    st.none(),
    st.floats(),
    st.integers(-(10**20), 10**20),
    st.booleans(),
    st.sampled_from(
        ["-99", " -99,0 ", "k.A.", "1.742,81", "a", "b", "2", "", "  ", "true", "NaN", "inf", "\ud800", "٣"]
    ),
    st.text(max_size=6),
)
_COLUMNS = Schema(
    {
        "x": Numeric(0, 10, missing=["-99", "k.A.", {"from": 5, "to": 6}]),
        "i": Integer(-1, 1, on_missing=0),
        "g": Categorical(["a", "b", "2"], missing=["k.A.", -99]),
    },
    file={"decimal": ",", "thousands": "."},
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(_CELLS, _CELLS, _CELLS), max_size=30), st.sampled_from([1, 3]))
def test_the_counts_are_those_of_the_codes_that_a_release_adds_up(rows: list[tuple[Any, ...]], threads: int) -> None:
    cells = {name: [row[at] for row in rows] for at, name in enumerate(_COLUMNS.names)}
    found = preflight(read(cells, _COLUMNS, threads=threads))
    wanted = [f"read({name})" for name in _COLUMNS.names]
    columns = [np.array([*column, None], dtype=object)[:-1] for column in cells.values()]
    with np.errstate(all="ignore"):
        coded = Coder(wanted, _COLUMNS, 32)(Block(len(rows), columns))
    for how, one in zip(coded, found.columns.values(), strict=True):
        assert [np.count_nonzero(how == kind) for kind in (BELOW, ABOVE, UNREAD)] == [one.below, one.above, one.unread]
        assert one.values + one.unread + one.empty + sum(one.missing.values()) == found.records == len(rows)
    # neither order nor portions matter
    again = preflight(read({name: column[::-1] for name, column in cells.items()}, _COLUMNS))
    assert str(again) == str(found)


@pytest.mark.parametrize("shape", [one for one in SHAPES if not isinstance(one.read, str)], ids=lambda one: one.name)
def test_files_of_offices_are_told(shape: Shape, tmp_path: Path) -> None:
    found = preflight(_opened(shape, tmp_path))
    assert {name: one.unread for name, one in found.columns.items() if one.unread} == shape.unread
    assert found.other_width == shape.other_width
    assert not (shape.unread or shape.other_width) or found.odd


# the three files that gave a wrong answer at status ok ---------------------------------------------------------------


def german(folder: Path, rows: int = 3_165) -> Path:
    random = np.random.default_rng(1)
    income = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in random.uniform(1_000, 9_000, rows)]
    income[:147] = ["-99"] * 147
    (folder / "german.csv").write_text("\ufeffincome;sex\n" + "\n".join(f"{one};m" for one in income), encoding="utf-8")
    return folder / "german.csv"


def test_decimal_commas_and_a_code_are_told_and_gone_once_they_are_declared(tmp_path: Path) -> None:
    path = german(tmp_path)
    schema = Schema({"income": Numeric(0, 90_000)}, file={"delimiter": ";"})
    (income,) = preflight(read(path, schema)).columns.values()
    assert income.unread == 3_165 - 147 and income.shapes == {"9.9,9": 3_018} and income.below == 147
    assert income.hints == ('decimal = "," and thousands = "." in [file]?',)
    assert income.single  # -99 are the only cells that were read
    file = {"delimiter": ";", "decimal": ",", "thousands": "."}
    right = preflight(read(path, Schema({"income": Numeric(0, 90_000, missing=[-99])}, file=file)))
    assert right.columns["income"].missing == {"-99": 147} and not right.odd


def test_ages_with_999_and_thousands_with_commas_are_told() -> None:
    ages = [48] * 85 + [50] + [999] * 14
    found = preflight(read({"age": ages}, Schema({"age": Integer(18, 110)}))).columns["age"]
    assert found.above == 14 and found.unread == found.below == 0
    incomes = ["950", "1,204", "12,100"] * 5
    found = preflight(read({"income": incomes}, Schema({"income": Numeric(0, 1e5)}))).columns["income"]
    assert (found.unread, found.shapes) == (10, {"9,9": 10})
    assert found.hints == ('decimal = "," or thousands = "," in [file]?',)


# what is counted ------------------------------------------------------------------------------------------------------


def test_each_declared_code_is_counted_before_bounds() -> None:
    codes = ["k.A.", -99, {"from": -9, "to": -1}]
    cells = ["k.A.", " k.A. ", "-99", "-99.0", "-9", "-1.5", "K.A.", "5", None, -99, -3.0]
    found = preflight(read({"x": cells}, Schema({"x": Numeric(0, 10, missing=codes)}))).columns["x"]
    assert found.missing == {"k.A.": 2, "-99": 3, "-9 to -1": 3}
    assert (found.unread, found.shapes, found.empty, found.values, found.below) == (1, {"a.a.": 1}, 1, 1, 0)
    labels = preflight(
        read({"g": ["a", "x", "-99", "b", "c"]}, Schema({"g": Categorical(["a", "b"], missing=["x", -99])}))
    )
    assert labels.columns["g"].missing == {"x": 1, "-99": 1} and labels.columns["g"].unread == 1
    assert labels.columns["g"].shapes == {}  # a label is never shown, not even by its shape


def test_codes_of_dates_are_counted_in_every_form(tmp_path: Path) -> None:
    column = cf.Date("1900-01-01", "2006-12-31", missing=["k.A.", "9999-12-31"])
    days = np.array(["1970-01-01", "NaT", "9999-12-31", "9999-12-31", "2000-02-29"], "datetime64[D]")
    table = pa.table({"d": pa.array(days)})
    pq.write_table(table, tmp_path / "t.parquet")
    texts = pa.array(["" if one == "NaT" else one for one in days.astype(str)])
    for data in (
        table,
        tmp_path / "t.parquet",
        pa.table({"d": pa.array(days).cast(pa.timestamp("us"))}),
        pa.table({"d": pa.array(days).dictionary_encode()}),
        {"d": days.astype("datetime64[s]")},
        {"d": np.array(days.tolist(), dtype=object)},
        {"d": texts},
    ):
        found = preflight(read(data, Schema({"d": column}))).columns["d"]
        assert (found.values, found.empty, found.unread, found.missing) == (2, 1, 0, {"9999-12-31": 2})


@pytest.mark.parametrize("encoding", [None, "utf-8", "cp1252"])
def test_another_encoding_is_told_by_its_cells(encoding: str | None, tmp_path: Path) -> None:
    lines = ["g,x", "Süd,1", "Nord,2", "Süd,groß", "Ost?,3"]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode("cp1252"))
    file = {"file": {"encoding": encoding}} if encoding else {}
    schema = Schema({"g": Categorical(["Süd", "Nord"]), "x": Numeric(0, 9)}, **file)
    found = preflight(read(tmp_path / "t.csv", schema))
    told = [(one.undecoded, 'encoding = "cp1252" in [file]?' in one.hints) for one in found.columns.values()]
    assert told == ([(0, False)] * 2 if encoding == "cp1252" else [(2, True), (1, True)])
    said = " ".join(str(found).split())
    assert (('encoding = "cp1252"' in said) is (encoding != "cp1252") and "�" in said) or encoding == "cp1252"
    assert found.columns["x"].hints[-1].startswith("encoding" if encoding != "cp1252" else "a code")


def test_a_line_of_sums_is_told(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    incomes = random.lognormal(7, 1, 400).round(2)
    rows = [f"{at},{random.choice(['a', 'b'])},{random.integers(9)},{one}" for at, one in enumerate(incomes)]
    rows[7:9] = ["7,,,12.5", "8,,,"]
    (tmp_path / "t.csv").write_text("\n".join(["n,g,k,income", *rows, f"Total,,,{incomes.sum():.2f}"]))
    columns = {"g": Categorical(["a", "b"]), "k": Integer(0, 9), "income": Numeric(0, 1e9)}
    for threads in (1, 2):
        # without the column that begins the line
        found = preflight(read(tmp_path / "t.csv", Schema(columns), threads=threads))
        assert [one.sums for one in found.columns.values()] == [False, False, True] and found.odd
        assert 'not_records = ["Total"]' in " ".join(str(found).split())
    found = preflight(read(tmp_path / "t.csv", Schema({"n": Integer(0, 999), **columns}))).columns
    assert found["n"].hints[0].startswith("a line of sums?") and found["income"].sums
    named = Schema({"n": Integer(0, 999), **columns}, file={"not_records": ["Total"]})
    right = preflight(read(tmp_path / "t.csv", named))
    assert not any(one.sums or one.hints for one in right.columns.values()) and not right.odd
    assert right.not_records == 1 and "rows that not_records names: 1" in " ".join(str(right).split())
    # a large value alone is none, and neither is a half empty row with a value like the others'
    cells = {"x": [1.0] * 9 + [2.5, 2.0], "g": ["a"] * 10 + [None]}
    assert not preflight(read(cells, Schema({"x": Numeric(0, 9), "g": Categorical(["a", "b"])}))).columns["x"].sums
    cells["x"][-1] = 5.01
    assert preflight(read(cells, Schema({"x": Numeric(0, 9), "g": Categorical(["a", "b"])}))).columns["x"].sums


def test_a_title_above_the_header_is_asked_for_where_most_rows_are_wider(tmp_path: Path) -> None:
    schema = Schema({"x": Numeric(0, 9)})
    for lines, asked in ((["x", "1,2", "2,3", "3"], True), (["x", "1", "2", "3,4"], False)):
        (tmp_path / "t.csv").write_text("\n".join(lines))
        assert ("--skip 1" in str(preflight(read(tmp_path / "t.csv", schema)))) is asked


def test_lines_of_another_width_and_lines_that_are_no_records(tmp_path: Path) -> None:
    lines = ["A B,g", "1,a", "2,b,", '"3,a', "4", "", "Summe,", ' "Summe" ,a', ",Summe", "Summe,1,2", "5,b\r\n6,a,a"]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode())
    file = {"not_records": ["Summe"]}
    for name, renamed in (("A B", {}), ("x", {"names": {"x": "A B"}})):
        schema = Schema({name: Numeric(0, 9), "g": Categorical(["a", "b"])}, file=file | renamed)
        found = preflight(read(tmp_path / "t.csv", schema))
        # '2,b,' and '"3,a' and '4' and '6,a,a'; a quote behind a blank is text
        assert (found.other_width, found.not_records, found.records) == (4, 3, 7)
        assert found.without_any == 4


def test_records_without_any_value_are_those_that_no_question_keeps() -> None:
    cells = {"x": [1.0, np.nan, np.nan, 2.0], "y": [np.nan, 1.0, np.nan, 2.0]}
    assert preflight(read(cells, Schema({"x": Numeric(0, 9), "y": Numeric(0, 9)}))).without_any == 1
    assert preflight(read(cells, Schema({"x": Numeric(0, 9), "y": Numeric(0, 9, on_missing=0)}))).without_any == 0
    units = Schema({"x": Numeric(0, 9)}, unit=Unit("p"), cluster=Clusters("c", size=2))
    cells = {"x": [1.0, 2.0, 3.0, 4.0], "p": ["1", None, "1", "3"], "c": ["a", "a", None, "NA"]}
    found = preflight(read(cells, units))
    assert found.no_id == {"p": 1, "c": 2} and found.without_any == 3
    assert found.repeated_ids is None  # a person may have several rows here


@pytest.mark.parametrize("name", ["id", "pid"])
def test_ids_with_several_rows_where_each_row_is_a_unit(tmp_path: Path, name: str) -> None:
    ids = [1, 2.0, "2", None, "", 3, 3, 3, 4.5]
    frame = pd.DataFrame({name: [None if one is None else str(one) for one in ids], "x": range(9)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema, asked = Schema({"x": Numeric(0, 9)}), None if name == "id" else name
    found = preflight(read(tmp_path / "t.csv", schema), ids=asked)
    # 2.0 and 2 are one person, 4.5 is nobody as a number and a name as text
    assert (found.one_id, found.repeated_ids, found.no_id) == (name, 2, {name: 2}) and found.odd
    assert preflight(read(frame, schema, ids=name), ids=name).repeated_ids == 2
    assert preflight(read(tmp_path / "t.csv", schema)).repeated_ids == (2 if name == "id" else None)
    units = Schema({"x": Numeric(0, 9)}, unit=Unit(name))
    assert preflight(read(tmp_path / "t.csv", units)).repeated_ids is None


def test_a_copy_of_a_file_is_found_by_its_equal_rows(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"x": random.random(500), "y": random.random(500), "g": random.choice(["a", "b"], 500)})
    frame.loc[:9, "x"] = None
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1), "g": Categorical(["a", "b"])})
    for name in ("one", "copy"):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    one = preflight(read(tmp_path / "one.csv", schema))
    assert one.equal_rows == 0 and not one.odd
    two = preflight(read([tmp_path / "one.csv", tmp_path / "copy.csv"], schema))
    assert two.equal_rows == 500 and two.odd and "is a file there twice?" in " ".join(str(two).split())
    missing = {"x": [np.inf, np.nan, -np.inf], "y": [0.5, 0.5, 0.5], "g": ["a", "a", "a"]}
    assert preflight(read(missing, schema)).equal_rows == 2
    # columns of few values have equal rows by nature, and nothing is said of them
    assert preflight(read([tmp_path / "one.csv", tmp_path / "copy.csv"], schema), "g").equal_rows is None
    visits = Schema({"g": Categorical(["a", "b"])}, unit=Unit("person"))
    twice = preflight(read(pd.DataFrame({"person": np.arange(500) // 12, "g": frame["g"]}), visits))
    assert twice.equal_rows is None and not twice.odd


def test_beyond_a_bounded_table_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_counts, "_MOST", 10)
    found = Repeats()
    found.add(np.arange(10, dtype=np.uint64))
    assert found.again == (0, 0)
    found.add(np.arange(1, dtype=np.uint64))
    assert found.again is None
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1)})
    many = preflight(read({"x": np.zeros(99), "y": np.ones(99)}, schema))
    assert many.equal_rows is None


def test_columns_with_one_value_or_none_and_no_records() -> None:
    schema = Schema({"x": Numeric(0, 9), "g": Categorical(["a", "b"])})
    found = preflight(read({"x": [3, 3, None], "g": ["", None, "c"]}, schema))
    assert found.columns["x"].single and found.columns["g"].values == 0 and found.odd
    assert "no value at all" in str(found) and "one value alone" in str(found)
    assert not preflight(read({"x": [3], "g": ["a"]}, schema)).odd
    empty = preflight(read({"x": [], "g": []}, schema))
    assert empty.records == 0 and empty.odd and empty.fails()


def test_listed_strata_and_psus_without_a_row() -> None:
    lists = {"n": ["n1", "n2"], "s": ["s1", "s2", "s3"], "w": ["w1", "w2"]}
    names = [one for own in lists.values() for one in own]
    columns = {"x": Numeric(0, 1), "s": Categorical(list(lists)), "v": Categorical(names)}
    design = SurveyDesign(strata="s", psu="v", psus=lists, size=10)
    cells = {"x": [0.0] * 5, "s": ["n", "s", "s", "n", None], "v": ["n1", "s1", "s2", "s3", "w1"]}
    source = read(cells, Schema(columns, design=design))
    found = preflight(source)
    # s3 is in no row of its stratum, and w1 in none at all
    assert found.not_drawn == {"strata": 1, "listed PSUs": 4} and found.odd
    assert preflight(source, ["x"]).not_drawn == {}
    alone = read(
        {"x": [0.0, 1.0], "v": ["n1", "n2"]},
        Schema({"x": Numeric(0, 1), "v": Categorical(names)}, design=SurveyDesign(psu="v", psus=names, size=10)),
    )
    assert preflight(alone).not_drawn == {"listed PSUs": 5}


def test_what_strict_fails_on(tmp_path: Path) -> None:
    schema = Schema({"x": Numeric(0, 9)})
    cells = [str(k % 9) for k in range(198)]
    assert not preflight(read({"x": [*cells, "?", ""]}, schema)).fails()
    assert not preflight(read({"x": [*cells, "?", "?"]}, schema)).fails(0.01)  # not more than one in a hundred
    assert preflight(read({"x": [*cells, "?", "?", "?"]}, schema)).fails(0.01)
    assert not preflight(read({"x": [*cells, "?", "?", "?"]}, schema)).fails(0.5)
    assert preflight(read({"x": [None, None]}, schema)).fails()
    (tmp_path / "t.csv").write_text("x\n1\n2,3\n" + "4\n" * 500)
    assert preflight(read(tmp_path / "t.csv", schema)).fails()


# shapes and what they look like -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "shape", "hint"),
    [
        ("1.742,81", "9.9,9", 'decimal = "," and thousands = "."'),
        ("-1.742.742,81", "-9.9.9,9", 'decimal = "," and thousands = "."'),
        ("1,742.81", "9,9.9", 'thousands = ","'),
        ("1 742,81", "9 9,9", 'decimal = "," and thousands = " "'),
        ("1\u202f742", "9\u202f9", 'thousands = " "'),
        ("1’742.5", "9’9.9", 'thousands = "\'"'),
        ("17,5", "9,9", 'decimal = "," or thousands = ","'),
        ("1.742.000", "9.9.9", "or a date?"),
        ("31/12/2000", "9/9/9", "a date?"),
        ("2000-12-31", "9-9-9", "a date?"),
        ("17 kg", "9 a", "a unit"),
        ("€ 12", "€ 9", "a unit"),
        ("5 %", "9 %", "a unit"),
        ("k.A.", "a.a.", "a code of missing values"),
        ("Žluťoučký", "a", "a code of missing values"),
        ("?", "?", ""),
        ("()#!()#!()#!()#!", "()#!()#!()#!", ""),
        ("1;2;Süd", "9;9;a", "another delimiter, or a title above the header"),
        ("gro\ufffd", "a\ufffd", ""),
    ],
)
def test_a_shape_shows_how_a_cell_is_written(cell: str, shape: str, hint: str) -> None:
    assert list(shapes_of(pa.array([cell]))) == [shape]
    assert (hint in hint_of(shape)) if hint else not hint_of(shape)


@given(
    st.lists(st.text(alphabet=st.sampled_from("09aZé٣ .,-\u00a0\U0001d7d8"), max_size=9), max_size=9), st.integers(0, 3)
)
def test_shapes_are_those_of_each_cell_alone(cells: list[str], skipped: int) -> None:
    def shape(cell: str) -> str:
        cell = re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", cell.strip()))
        return cell[:12]

    kept = cells[skipped:]
    assert shapes_of(pa.array(cells, pa.string()).slice(skipped)) == Counter(map(shape, kept))


def test_what_is_declared_is_not_proposed() -> None:
    assert hint_of("9.9", (",", "")) == 'decimal = "." or thousands = "." in [file]?'
    assert hint_of("9.9", (",", ".")) == 'decimal = "." in [file]?'  # 17.42 has no group of three
    assert hint_of("9,9.9", (".", "")) == 'thousands = "," in [file]?'
    assert hint_of("9.9.9", (",", ".")) == ""


def test_shapes_are_told_in_falling_frequency_and_at_most_five() -> None:
    cells = ["a"] * 9 + ["1 a"] * 8 + ["?"] * 7 + ["!"] * 6 + ["#"] * 5 + ["&"] * 4
    found = preflight(read({"x": cells}, Schema({"x": Numeric(0, 9)}))).columns["x"]
    assert list(found.shapes.items()) == [("a", 9), ("9 a", 8), ("?", 7), ("!", 6), ("#", 5)] and found.unread == 39


# hostile cells ----------------------------------------------------------------------------------------------------------


class Rude:
    """An object that answers nothing."""

    def __float__(self) -> float:
        raise OverflowError("SENTINEL")

    def __str__(self) -> str:
        raise OverflowError("SENTINEL")

    __eq__ = __hash__ = __len__ = __repr__ = __str__  # type: ignore[assignment]


@pytest.mark.parametrize(
    "cell",
    [
        '"' * 10**6,
        "\u202e" * 99,
        "9" * 5_000,
        10**5_000,
        -(10**400),
        Rude(),
        b"\xff",
        "\ud800",
        Decimal("sNaN"),
        (),
        "\x00\x1b[2J",
    ],
    ids=lambda one: type(one).__name__,
)
def test_no_cell_makes_it_fail(cell: Any) -> None:
    column = np.empty(3, dtype=object)
    column[:] = [cell, 5, None]
    for schema in (Schema({"x": Numeric(0, 9)}), Schema({"x": Categorical(["a", "5"], missing=["-1"])})):
        found = preflight(read({"x": column}, schema))
        assert found.records == 3 and found.columns["x"].unread + found.columns["x"].above == 1
        assert all(len(shape) <= 12 for shape in found.columns["x"].shapes)
        assert "\x1b" not in str(found) and "\u202e" not in str(found)


def test_shapes_without_number_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_counts, "_SHAPES", 10)
    random = np.random.default_rng(1)
    cells = ["".join(chr(33 + k) for k in random.integers(0, 15, 8)) for _ in range(500)]
    look = cell_counts.Look(read({"x": cells}, s := Schema({"x": Numeric(0, 9)}))._parts, s, cell_counts.Asked(("x",)))
    read({"x": cells}, s)._pass(look, ())
    assert len(look.counts()[1]["x"].shapes) == 10 and look.counts()[1]["x"].unread == 500


def test_texts_of_any_array_are_valid() -> None:
    assert texts_of(np.array(["a", "\ud800"], dtype=object)).to_pylist() == ["a", "?"]
    assert texts_of(pa.array(["a", "b"]).dictionary_encode()).to_pylist() == ["a", "b"]
    assert texts_of(np.array([np.inf])).to_pylist() == ["inf"]


# where it may be, and where not -----------------------------------------------------------------------------------------


def test_its_numbers_are_shown_by_print_alone() -> None:
    found = cf.preflight(read({"x": [7_411, 7_411, "?"]}, Schema({"x": Numeric(0, 1)})))
    assert isinstance(found, Preflight) and isinstance(found.columns["x"], ColumnCheck)
    assert " ".join(str(found).split()).startswith(HEAD)
    for shown in (repr(found), repr(found.columns["x"]), f"{[found]}"):
        assert not any(digit in shown for digit in "123456789")
    for one in (found, found.columns["x"]):
        for keep in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="exact counts"):
                keep(one)
        assert not any(hasattr(one, name) for name in ("to_json", "to_dict", "_repr_html_", "_repr_markdown_"))


def test_it_says_that_bounds_are_not_to_be_moved() -> None:
    said = " ".join(str(preflight(read({"x": [5.0]}, Schema({"x": Numeric(0, 1)})))).split())
    assert "Bounds are not to be moved because of these counts" in said and "above high: 1 of 1" in said


def test_a_long_name_and_control_characters_do_not_break_the_pane() -> None:
    name = "a very long name of a column \x1b[2J that goes on"
    said = str(preflight(read({name: ["?"]}, Schema({name: Numeric(0, 1)}))))
    assert "\x1b" not in said and all(len(line) <= 80 for line in said.splitlines() if "very long" not in line)


@pytest.mark.parametrize(
    ("ask", "kind", "said"),
    [
        (lambda: preflight(pd.DataFrame({"x": [1]})), SourceError, "cf.preflight(cf.read(data, schema))"),
        (lambda: preflight(read({"x": [1]}, Schema({"x": Numeric(0, 1)})), "y"), SchemaError, "no column 'y'"),
        (lambda: preflight(read({"x": [1]}, Schema({"x": Numeric(0, 1)})), ["read(x)"]), SchemaError, "no column"),
        (lambda: preflight(read({"x": [1]}, Schema({"x": Numeric(0, 1)})), ids="p"), SourceError, "no column 'p'"),
        (lambda: preflight(read({"y": [1]}, Schema({"x": Numeric(0, 1)}))), SourceError, "no column 'x'"),
    ],
)
def test_what_it_refuses(ask: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught:
        ask()
    assert said in str(caught.value)


def test_a_source_of_workers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    source = read(tmp_path / "t.csv", Schema({"x": Numeric(0, 1)}))
    source._executor = object()  # type: ignore[assignment]
    with pytest.raises(SourceError, match="without executor="):
        preflight(source)


def test_a_damaged_file_is_the_sentence_of_a_release(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    source = read(path, SCHEMA)
    sums = tuple(cf.plan(cf.tables.Means("x", inference="population"), SCHEMA, cf.GDP(1)).statistics.values())
    content, state = bytearray(path.read_bytes()), path.stat()
    content[4:60] = bytes(56)
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(SourceError) as one:
        preflight(source)
    with pytest.raises(SourceError) as other:
        source.aggregate(*sums)
    assert str(one.value) == str(other.value) and one.value.__context__ is None


def test_a_stream_that_is_read_once_is_released_afterwards() -> None:
    table = pa.table({"x": np.linspace(0, 1, 500)})
    source = read(table.to_reader(max_chunksize=100), Schema({"x": Numeric(0, 1)}))
    assert preflight(source).records == 500
    ask = (cf.tables.Means("x", inference="population"), cf.GDP(1.0))
    noise = cf.noise.SimulatedNoise
    released = cf.release(ask[0], source, ask[1], ledger=None, noise=noise(1))
    plain = cf.release(ask[0], read(table, source.schema), ask[1], ledger=None, noise=noise(1))
    assert released.to_json() == plain.to_json()


def test_dates_and_what_is_derived_of_them_are_looked_at_as_they_are_in_the_data() -> None:
    date = {"kind": "date", "low": "1900-01-01", "high": "2006-12-31", "format": "%d.%m.%Y", "missing": ["00.00.0000"]}
    schema = Schema({"birth": date}, derive={"age": "years_between(birth, '2024-07-01')"})
    cells = ["1.2.1970", "31.02.2000", "1972-01-01", "00.00.0000", "", "1.1.2020"]
    for columns in (None, "age"):
        found = preflight(read({"birth": cells}, schema), columns).columns
        assert list(found) == ["birth"]  # the age is in no file
        birth = found["birth"]
        assert (birth.unread, birth.shapes, birth.missing) == (2, {"9-9-9": 1, "9.9.9": 1}, {"00.00.0000": 1})
        assert (birth.below, birth.above, birth.values, birth.empty) == (0, 1, 2, 1)
        assert 'format = "%d.%m.%Y"?' in birth.hints
