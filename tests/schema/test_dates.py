"""Columns of dates: bounds, formats, what a text means, files; dates in formulas, conditions, cuts and drafts."""

from __future__ import annotations

import datetime
import itertools
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import PlanError, SchemaError
from confide.schema.dates import day_of, day_of_cell, day_text, pieces_of
from confide.schema.formulas.conditions import parse_predicate
from confide.schema.formulas.design import public_columns
from confide.schema.schema import Schema
from confide.schema.toml import column_from_dict
from confide.sums.cells.cell_sums import Attribute

BIRTH = cf.Date("1900-01-01", "2006-12-31")


def day(year: int, month: int, of: int) -> float:
    return float(datetime.date(year, month, of).toordinal() - datetime.date(1970, 1, 1).toordinal())


def test_the_grid_is_days() -> None:
    assert BIRTH.low == day(1900, 1, 1)
    assert BIRTH.high == day(2006, 12, 31)
    assert BIRTH.steps == int(BIRTH.high - BIRTH.low) + 1
    assert BIRTH.scale == 1.0
    assert BIRTH.code([BIRTH.low, BIRTH.low + 1, BIRTH.high]).tolist() == [0.0, 1.0, BIRTH.steps - 1.0]


def test_dates_beyond_are_moved_to_the_bound() -> None:
    assert BIRTH.code([day(1850, 1, 1), day(2024, 1, 1), np.nan]).tolist() == [0.0, BIRTH.steps - 1.0, -1.0]
    assert BIRTH.outside([day(1850, 1, 1), day(2024, 1, 1), 0.0, np.nan]).tolist() == [True, True, False, False]


def test_the_whole_calendar_fits() -> None:
    column = cf.Date("0001-01-01", "9999-12-31")
    assert column.code([column.low, column.high]).tolist() == [0.0, column.steps - 1.0]
    assert column.days_of(["0001-01-01", "9999-12-31", "0000-12-31"]).tolist()[:2] == [column.low, column.high]


def test_bounds_may_be_dates_of_python_and_what_a_column_holds() -> None:
    assert cf.Date(datetime.date(1900, 1, 1), datetime.date(2006, 12, 31)) == BIRTH
    assert cf.Date(BIRTH.low, BIRTH.high) == BIRTH
    assert replace(BIRTH, missing=["9999-12-31"]).low == BIRTH.low


# a number of the year would be a day of 1975
@pytest.mark.parametrize(
    "low", [1900, "1900", "01.01.1900", "1900-02-30", "1900-1-1", None, True, 0.5, float("nan"), 1e9, "١٩٠٠-٠١-٠١"]
)
def test_a_bound_is_a_date(low: Any) -> None:
    with refuses(SchemaError):
        cf.Date(low, "2006-12-31")


def test_other_entries_that_are_wrong() -> None:
    both = ("1900-01-01", "2006-12-31")
    for wrong in (
        {"format": "%d.%m"},
        {"format": "%d.%m.%Y %H"},
        {"format": "%d.%m.%Y.%y", "century": 1930},
        {"format": "%d.%d.%Y"},
        {"format": "%d.%m.%%Y"},
        {"format": "%"},
        {"format": ""},
        {"format": []},
        {"format": 5},
        {"format": ["%d.%m.%Y", "%d.%m.%Y"]},
        {"format": "%d.%m.%y"},
        {"format": "%d.%m.%y", "century": "1930"},
        {"format": "%d.%m.%y", "century": 19300},
        {"format": "%d.%m.%Y", "century": 1930},
        {"century": 1930},
        {"epoch": "1899"},
        {"on_missing": "2024-01-01"},
        {"on_missing": "never"},
        {"typical": ("1990-01-01", "1980-01-01")},
        {"typical": (1990, 2000)},
        {"missing": [""]},
    ):
        with refuses(SchemaError):
            cf.Date(*both, **wrong)  # type: ignore[arg-type]
    with refuses(SchemaError):
        cf.Date(*both[::-1])


# One text, two dates: which one a cell means would hang on the cell alone, and be wrong half of the time.
@pytest.mark.parametrize(
    "formats",
    [["%d/%m/%Y", "%m/%d/%Y"], ["%d.%m.%y", "%y.%m.%d"], ["%d%m%Y", "%Y%m%d"]],
)
def test_formats_that_read_one_text_as_two_dates_are_refused(formats: list[str]) -> None:
    with refuses(SchemaError):
        cf.Date("1900-01-01", "2006-12-31", format=formats, century=1930 if "%y" in formats[0] else None)


def test_formats_that_differ_are_allowed() -> None:
    column = cf.Date("1900-01-01", "2049-12-31", format=["%d.%m.%Y", "%Y-%m-%d", "%d.%m.%y"], century=1950)
    assert column.days_of(["2.1.1970", "1970-01-02", "2.1.70", "2.1.49"]).tolist() == [1.0, 1.0, 1.0, day(2049, 1, 2)]


def test_what_texts_mean() -> None:
    column = cf.Date("1900-01-01", "2006-12-31", format="%d.%m.%Y")
    read = ["01.02.1970", "1.2.1970", " 01.2.1970\u00a0", "29.02.2000", "31.12.0001"]
    assert column.days_of(read).tolist() == [31.0, 31.0, 31.0, day(2000, 2, 29), day(1, 12, 31)]
    unread = ["31.02.2000", "29.02.1900", "1972", "00.00.1972", "01.13.1970", "01.00.1970", "32.01.1970", "1970-02-01"]
    unread += [
        "01.02.70",
        "001.02.1970",
        "01.02.19700",
        "01..1970",
        "01-02-1970",
        "01.02.1970 12:00",
        "٠١.٠٢.١٩٧٠",
        "",
        "x",
        "01.02.0000",
    ]
    assert np.isnan(column.days_of(unread)).all()


def test_iso_is_the_format_where_none_is_stated() -> None:
    read = ["1970-01-02", "1970-01-02T23:59", "1970-01-02 00:00:00", "1970-01-02T10:00:00.123456", "1970-1-2"]
    assert BIRTH.days_of(read).tolist() == [1.0] * 5
    # a moment with a zone is one date here and another there; 24:00 is the next day to some
    unread = [
        "1970-01-02T23:59Z",
        "1970-01-02T23:59+01:00",
        "1970-01-02T24:00",
        "1970-01-02T",
        "19700102",
        "70-01-02",
        "1970-002",
    ]
    assert np.isnan(BIRTH.days_of(unread)).all()
    # with a format of its own, nothing else is read
    assert np.isnan(cf.Date("1900-01-01", "2006-12-31", format="%Y-%m-%d").days_of(["1970-01-02T23:59"])).all()


def test_fields_that_meet_have_all_their_digits() -> None:
    column = cf.Date("1900-01-01", "2024-12-31", format="%d%m%Y")
    # 1112024 could be the first or the eleventh
    assert np.isnan(column.days_of(["1112024", "112024"])).all()
    assert column.days_of(["01112024"]).tolist() == [day(2024, 11, 1)]
    beside = cf.Date("1900-01-01", "2024-12-31", format="%Y/1%m.%d")
    assert beside.days_of(["2024/102.1"]).tolist() == [day(2024, 2, 1)]
    assert np.isnan(beside.days_of(["2024/12.1"])).all()


def test_years_of_two_digits() -> None:
    column = cf.Date("1900-01-01", "2049-12-31", format="%d/%m/%y", century=1930)
    assert column.days_of(["1/1/30", "1/1/29", "1/1/00", "1/1/99"]).tolist() == [
        day(1930, 1, 1), day(2029, 1, 1), day(2000, 1, 1), day(1999, 1, 1),
    ]  # fmt: skip


def test_every_day_of_a_century_by_every_format() -> None:
    days = np.arange(day(1899, 12, 1), day(2001, 3, 1))
    for text in ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "am %d. %m. %Y"):
        column = cf.Date("1900-01-01", "2006-12-31", format=text)
        assert np.array_equal(column.days_of(column.text_of(days)), days)
        short = [one.replace("/0", "/").lstrip("0") for one in column.text_of(days)]
        if text == "%m/%d/%Y":
            assert np.array_equal(column.days_of(short), days)


def test_texts_agree_with_the_calendar() -> None:
    column = cf.Date("1900-01-01", "2006-12-31", format="%d.%m.%Y")
    for d, m, y in itertools.product(
        (0, 1, 9, 28, 29, 30, 31, 32, 99), (0, 1, 2, 9, 10, 12, 13), (1, 1900, 1999, 2000, 2004, 9999)
    ):
        try:
            wanted = day(y, m, d)
        except ValueError:
            wanted = np.nan
        for text in {f"{d}.{m}.{y:04d}", f"{d:02d}.{m:02d}.{y:04d}"}:
            assert np.array_equal(column.days_of([text]), [wanted], equal_nan=True), text


def test_numbers_are_dates_only_by_their_epoch() -> None:
    excel = cf.Date("1900-01-01", "2024-12-31", epoch="1899-12-30")
    assert excel.days_of_numbers(np.array([25569.0, 25569.99, 0.0, np.nan])).tolist()[:3] == [
        0.0,
        0.0,
        day(1899, 12, 30),
    ]
    assert np.isnan(BIRTH.days_of_numbers(np.array([25569.0]))).all()


def test_codes_of_missing_values_are_one_however_they_are_written() -> None:
    column = cf.Date("1900-01-01", "2006-12-31", format="%d.%m.%Y", missing=["31.12.2006", "1901-01-01", "n/a"])
    assert np.isnan(column.days_of(["31.12.2006", "1.1.1901", datetime.date(2006, 12, 31), "n/a"])).all()
    assert column.days_of(["30.12.2006"]).tolist() == [day(2006, 12, 30)]


def test_cells_of_python_numpy_and_pandas() -> None:
    assert day_of_cell(datetime.datetime(1970, 1, 2, 23, 59)) == 1.0
    assert day_of_cell(pd.Timestamp("1970-01-02")) == 1.0
    assert day_of_cell(np.datetime64("1969-12-31T23:00")) == -1.0
    zone = datetime.UTC
    for none in (
        pd.NaT,
        pd.NA,
        np.datetime64("NaT"),
        None,
        1,
        "1970-01-02",
        datetime.datetime(1970, 1, 2, tzinfo=zone),
        datetime.time(1),
    ):
        assert np.isnan(day_of_cell(none))


def test_texts_of_days() -> None:
    assert day_text(day(2000, 2, 29)) == "2000-02-29"
    assert day_of("2000-02-29") == day(2000, 2, 29)
    assert day_text(1e9) == "1e+09"
    assert [name for name, _ in pieces_of("%d. %m. %Y") if name] == ["d", "m", "Y"]


# files and digests ---------------------------------------------------------------------------------------------------

EACH = [
    BIRTH,
    cf.Date("1900-01-01", "2006-12-31", format="%d.%m.%Y", on_missing="1970-01-01"),
    cf.Date("1900-01-01", "2006-12-31", format=["%d.%m.%Y", "%d.%m.%y"], century=1930, on_missing="midpoint"),
    cf.Date(
        "1900-01-01", "2006-12-31", epoch="1899-12-30", missing=["9999-12-31", -9], typical=("1950-01-01", "1990-12-31")
    ),
]


@pytest.mark.parametrize("column", EACH)
def test_a_column_is_read_back_to_the_bit(column: Any) -> None:
    schema = Schema({"born": column})
    assert column_from_dict(column.to_dict()) == column
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_dict(schema.to_dict()).digest == schema.digest
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert eval(repr(BIRTH), {"Date": cf.Date}) == BIRTH


def test_how_dates_are_written_is_in_the_digest() -> None:
    digests = {Schema({"born": replace(column, typical=None)}).digest for column in EACH}
    assert len(digests) == len(EACH)
    assert Schema({"born": EACH[3]}).digest == Schema({"born": replace(EACH[3], typical=None)}).digest


def test_files() -> None:
    own = Schema.from_toml(
        '[columns.born]\nkind = "date"\nlow = 1900-01-01\nhigh = "2006-12-31"\nformat = "%d.%m.%Y"\n'
    )
    assert own["born"] == cf.Date("1900-01-01", "2006-12-31", format="%d.%m.%Y")
    for wrong in (
        'low = "?"',
        'low = "01.01.1900"',
        "low = 1900",
        'low = "1900-01-01"\nsteps = 5',
        'low = "2007-01-01"',
    ):
        with refuses(SchemaError):
            Schema.from_toml(f'[columns.born]\nkind = "date"\nhigh = "2006-12-31"\n{wrong}\n')


# formulas, conditions, cuts ------------------------------------------------------------------------------------------

SCHEMA = Schema({"born": BIRTH, "died": cf.Date("1950-01-01", "2024-12-31"), "x": cf.Numeric(0, 9)})


def asked(text: str, *days: float) -> list[bool]:
    return [bool(one) for one in parse_predicate(text, SCHEMA)(BIRTH.code(np.array([days], dtype=float)))]


def test_conditions_compare_with_dates_in_quotes() -> None:
    days = (day(1989, 12, 31), day(1990, 1, 1), day(1990, 1, 2))
    assert asked("born >= '1990-01-01'", *days) == [False, True, True]
    assert asked("born > '1990-01-01'", *days) == [False, False, True]
    assert asked("born == '1990-01-01'", *days) == [False, True, False]
    assert asked("born != '1990-01-01'", *days) == [True, False, True]
    assert asked("'1990-01-01' <= born < '1990-01-02'", *days) == [False, True, False]
    assert asked("born in ['1990-01-01', '1990-01-02']", *days) == [False, True, True]


@pytest.mark.parametrize(
    "text",
    [
        "born >= 7305",
        "born >= '01.01.1990'",
        "born >= '1990'",
        "born >= '1800-01-01'",
        "born >= died",
        "x >= '1990-01-01'",
        "born",
    ],
)
def test_conditions_that_are_refused(text: str) -> None:
    with refuses(PlanError):
        parse_predicate(text, SCHEMA)


def test_cuts() -> None:
    own = Attribute.cut("born", ("1970-01-01", "2000-01-01"), SCHEMA)
    assert own.labels == ("<1970-01-01", "[1970-01-01, 2000-01-01)", ">=2000-01-01")
    assert own.levels(BIRTH.code([-1.0, 0.0, day(2000, 1, 1)])).tolist() == [0, 1, 2]
    for points in ((0.0,), ("1800-01-01",), ("2000-01-01", "1970-01-01"), ("x",)):
        with refuses((PlanError, SchemaError)):
            Attribute.cut("born", points, SCHEMA)
    week = Schema({"on": cf.Date("2024-01-01", "2024-01-03")})
    assert Attribute.of("on", week).labels == ("2024-01-01", "2024-01-02", "2024-01-03")


def test_tables_and_lines() -> None:
    frame = pd.DataFrame(
        {
            "born": pd.to_datetime(["1950-01-01", "1990-06-01"] * 400),
            "died": pd.to_datetime(["2000-01-01"] * 800),
            "x": 1.0,
        }
    )
    frame["x"] = np.arange(800) % 9
    source, more = cf.read(frame, SCHEMA), {"privacy": cf.GDP(5.0), "ledger": None, "noise": cf.noise.SimulatedNoise(1)}
    table = cf.tables.counts("cut(born, '1970-01-01')", source, inference="dataset", **more)
    assert np.allclose(table.to_frame()["estimate"][1:], 400, atol=20)
    line = cf.linear_regression("x ~ days_between(born, died)", source, **more)
    assert "days_between(born, died)" in line.params.index
    alone = cf.linear_regression("x ~ born", source, **more)
    assert alone.params.index[1] == "born"


@pytest.mark.parametrize(
    "formula",
    [
        "x ~ born - died",
        "x ~ I(born / 365)",
        "x ~ log(born)",
        "x ~ I(born ** 2)",
        "x ~ days_between(born)",
        "x ~ days_between(born, x)",
        "x ~ days_between(born, 5)",
        "x ~ days_between(born, '2024-13-01')",
        "x ~ days_between(born, nobody)",
    ],
)
def test_arithmetic_is_of_days_between(formula: str) -> None:
    with refuses(PlanError):
        cf.schema.ModelMatrix.of(formula, SCHEMA)


def test_public_frames_hold_dates_in_any_form() -> None:
    for cells in (
        ["1970-01-02"],
        [datetime.date(1970, 1, 2)],
        np.array(["1970-01-02"], "datetime64[ns]"),
        [1.0],
        pd.to_datetime(["1970-01-02"]),
    ):
        assert public_columns({"born": cells}, ["born"], SCHEMA)["born"].tolist() == [1.0]


def test_a_sample_is_of_dates() -> None:
    frame = SCHEMA.sample(500, seed=1)
    assert str(frame["born"].dtype) == "datetime64[s]"
    assert frame["born"].between("1900-01-01", "2006-12-31").all()
    assert frame["born"].nunique() > 400


# drafts --------------------------------------------------------------------------------------------------------------


def test_drafts_have_dates_with_bounds_left_to_fill_in(tmp_path: Any) -> None:
    frame = pd.DataFrame(
        {"born": pd.to_datetime(["1947-11-04"]), "zoned": pd.to_datetime(["1947-11-04"]).tz_localize("UTC"), "x": [1.0]}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    arrow = pa.table({"born": pa.array([1], pa.date32()), "zoned": pa.array([1], pa.timestamp("s", "UTC")), "x": [1.0]})
    pq.write_table(arrow, tmp_path / "b.parquet")
    for data in (frame, tmp_path / "a.parquet", tmp_path / "b.parquet", arrow, pl.from_pandas(frame)):
        text = Schema.draft(data)
        assert '[columns.born]\nkind = "date"' in text
        assert "zoned" not in text.replace("# left out: zoned", "")
        assert "1947" not in text
        with pytest.raises(SchemaError, match=r"born.* lacks low"):
            Schema.from_toml(text)
    filled = text.replace('low = "?"', 'low = "1900-01-01"').replace('high = "?"', 'high = "2006-12-31"')
    filled = filled.replace('dataset = "?"', 'dataset = "d"').replace('unit = "?"', 'unit = "record"')
    assert Schema.from_toml(filled)["born"] == BIRTH
