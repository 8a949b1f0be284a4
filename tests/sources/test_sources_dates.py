"""Cells of columns of dates, and rows of derived columns, from every kind of source."""

from __future__ import annotations

import datetime
import itertools
import sqlite3
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from tests.messages import refuses
from tests.sources.executors_toy import Here
from tests.sources.records import Plain

import confide as cf
from confide.core.lost_values import ABOVE, BELOW, OTHER, UNREAD
from confide.core.ranges import from_fine
from confide.core.units.privacy_unit import per_of, unit_squared
from confide.engine import plan
from confide.errors import SchemaError, SourceError
from confide.schema import Categorical, CodedFrame, Integer, Numeric
from confide.schema.schema import Schema
from confide.sources.coder import code_of, reader_of
from confide.sources.coding import EMPTY, HOLDS, Coded, CodeOf, Labels, Numbers
from confide.sources.dates import CodeOfDate, Dates
from confide.sources.simulated import simulated_source
from confide.testing.test_data import codes_of

GERMAN = cf.Date("1900-01-01", "2006-12-31", format="%d.%m.%Y")
ISO = cf.Date("1900-01-01", "2006-12-31")
DAYS = ["1970-01-01", "1899-12-31", "2020-06-01", "2000-02-29", None]
DATES = [None if one is None else datetime.date.fromisoformat(one) for one in DAYS]
TEXTS = [None if one is None else one.strftime("%d.%m.%Y") for one in DATES]
CODES = [0 - int(ISO.low), 0, ISO.steps - 1, 11016 - int(ISO.low), -1]
X = [1.0, 2.0, 3.0, 4.0, 5.0]


def schema(column: Any = ISO, **more: Any) -> Schema:
    return Schema({"born": column, "x": Numeric(0, 9)}, dataset="d", **more)


def codes(data: Any, own: Schema, *rows: str, **more: Any) -> Any:
    return codes_of(cf.read(data, own, **more), Plain(rows or ("born",)))


def xlsx(path: Path, cells: list[Any]) -> Path:
    book = openpyxl.Workbook()
    for row in [["born", "x"], *zip(cells, X, strict=True)]:
        book.active.append(list(row))
    book.save(path)
    return path


def text(path: Path, cells: list[Any]) -> Path:
    path.write_text(
        "born,x\n" + "".join(f"{'' if cell is None else cell},{x}\n" for cell, x in zip(cells, X, strict=True))
    )
    return path


def stata(path: Path) -> Path:
    frame = pd.DataFrame({"born": DATES, "x": X})
    write = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    write(frame, str(path))
    return path


def database(path: Path) -> Path:
    with sqlite3.connect(path) as store:
        store.execute("create table people (born date, x real)")
        store.executemany("insert into people values (?, ?)", zip(DAYS, X, strict=True))
    store.close()
    return path / "people"


FRAME = pd.DataFrame({"born": pd.to_datetime(DAYS), "x": X})
TYPED = {
    "pandas": lambda _: FRAME,
    "pandas in seconds": lambda _: FRAME.astype({"born": "datetime64[s]"}),
    "pandas with Arrow": lambda _: FRAME.astype({"born": pd.ArrowDtype(pa.date32())}),
    "objects": lambda _: pd.DataFrame({"born": np.array(DATES, dtype=object), "x": X}),
    "timestamps": lambda _: pd.DataFrame({"born": FRAME["born"].astype(object), "x": X}),
    "texts": lambda _: pd.DataFrame({"born": DAYS, "x": X}),
    "list": lambda _: {"born": DATES, "x": X},
    "list of texts": lambda _: {"born": DAYS, "x": X},
    "NumPy": lambda _: {"born": np.array(DAYS, dtype="datetime64[D]"), "x": np.array(X)},
    "NumPy in hours": lambda _: {"born": np.array(DAYS, dtype="datetime64[h]"), "x": np.array(X)},
    "NumPy objects": lambda _: {"born": np.array([np.datetime64(one or "NaT") for one in DAYS], dtype=object), "x": X},
    "polars": lambda _: pl.DataFrame({"born": DATES, "x": X}),
    "polars moments": lambda _: pl.from_pandas(FRAME),
    "polars text": lambda _: pl.DataFrame({"born": DAYS, "x": X}),
    **{
        str(kind): lambda _, kind=kind: pa.table({"born": pa.array(DATES, pa.date32()).cast(kind), "x": X})
        for kind in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.string(), pa.string_view())
    },
    "Arrow dictionary": lambda _: pa.table({"born": pa.array(DATES, pa.date32()).dictionary_encode(), "x": X}),
    "Arrow text dictionary": lambda _: pa.table({"born": pa.array(DAYS).dictionary_encode(), "x": X}),
    "category": lambda _: pd.DataFrame({"born": pd.Categorical(FRAME["born"]), "x": X}),
    "csv": lambda folder: text(folder / "a.csv", DAYS),
    "xlsx": lambda folder: xlsx(folder / "a.xlsx", [one if one is None or one.year >= 1900 else one.isoformat() for one in DATES]),
    "dta": lambda folder: stata(folder / "a.dta"),
    "sav": lambda folder: stata(folder / "a.sav"),
    "SQLite": lambda folder: database(folder / "a.sqlite"),
    "DuckDB": lambda _: duckdb.from_arrow(pa.table({"born": pa.array(DATES, pa.date32()), "x": X})),
    "LazyFrame": lambda _: pl.LazyFrame({"born": DATES, "x": X}),
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPED)
def test_dates_of_every_source_have_one_code(kind: str, tmp_path: Path) -> None:
    assert codes(TYPED[kind](tmp_path), schema())[0].tolist() == CODES


def test_parquet(tmp_path: Path) -> None:
    for at, kind in enumerate((pa.date32(), pa.date64(), pa.timestamp("ns"), pa.timestamp("us"), pa.string())):
        column = pa.array(DATES, pa.date32())
        column = column.cast(pa.string()) if kind == pa.string() else column.cast(pa.timestamp("s")).cast(kind)
        pq.write_table(pa.table({"born": column, "x": X}), tmp_path / f"{at}.parquet")
        assert codes(tmp_path / f"{at}.parquet", schema())[0].tolist() == CODES


def test_texts_in_a_format_and_typed_dates_are_one(tmp_path: Path) -> None:
    for data in (
        text(tmp_path / "a.csv", TEXTS),
        xlsx(tmp_path / "a.xlsx", TEXTS),
        {"born": TEXTS, "x": X},
        {"born": [TEXTS[0], DATES[1], pd.Timestamp(DATES[2]), np.datetime64(DATES[3]), None], "x": X},
        FRAME,
    ):
        assert codes(data, schema(GERMAN))[0].tolist() == CODES


def test_the_time_of_day_is_left_out_as_it_is_written() -> None:
    late = pd.DataFrame(
        {
            "born": pd.to_datetime(["1969-12-31 23:59:59.999", "1970-01-01 00:00", "1969-12-31 00:00"], format="mixed"),
            "x": 1.0,
        }
    )
    wanted = [-1 - ISO.low, 0 - ISO.low, -1 - ISO.low]
    assert codes(late, schema())[0].tolist() == wanted
    assert codes(pa.Table.from_pandas(late), schema())[0].tolist() == wanted
    assert (
        codes({"born": ["1969-12-31T23:59:59.999", "1970-01-01 00:00", "1969-12-31"], "x": [1.0] * 3}, schema())[
            0
        ].tolist()
        == wanted
    )


# refused before anything is read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "pandas",
        "polars",
        "date32[day]",
        "timestamp[us]",
        "NumPy",
        "Arrow dictionary",
        "dta",
        "sav",
        "DuckDB",
        "LazyFrame",
    ],
)
@pytest.mark.parametrize("column", [Numeric(0, 9), Integer(0, 9), Categorical(["a", "b"])], ids=lambda one: one.kind)
def test_a_typed_date_under_another_kind_is_refused_by_name(kind: str, column: Any, tmp_path: Path) -> None:
    with refuses(SourceError) as caught:
        cf.read(TYPED[kind](tmp_path), schema(column)).check(["born"])
    assert "'born'" in str(caught.value)
    assert 'kind = "date"' in str(caught.value)


def test_a_moment_with_a_zone_is_refused() -> None:
    zoned = FRAME.assign(born=FRAME["born"].dt.tz_localize("UTC"))
    for data in (zoned, pa.Table.from_pandas(zoned), pl.from_pandas(zoned)):
        with refuses(SchemaError) as caught:
            cf.read(data, schema()).check(["born"])
        assert "date(born)" in str(caught.value)
    # of single objects nothing is known from metadata
    zone = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert codes({"born": [zone, DATES[0]], "x": [1.0, 2.0]}, schema())[0].tolist() == [-1, CODES[0]]


def test_numbers_need_an_epoch() -> None:
    numbers = [25569, -1, 99_999, 25569]
    for data in (
        np.array(numbers),
        np.array(numbers, float),
        pa.array(numbers),
        np.array([True] * 4),
        np.array([1j] * 4),
    ):
        with refuses(SchemaError):
            cf.read({"born": data, "x": X[:4]}, schema()).check(["born"])
    excel = schema(cf.Date("1900-01-01", "2006-12-31", epoch="1899-12-30", missing=[-1]))
    wanted = [CODES[0], -1, ISO.steps - 1, CODES[0]]
    mixed = [25569, "-1", "99999", "1970-01-01"]
    for data in (
        np.array(numbers),
        np.array(numbers, float),
        pa.array(numbers),
        list(map(str, numbers)),
        mixed,
        np.array(numbers, "int32"),
    ):
        assert codes({"born": data, "x": X[:4]}, excel)[0].tolist() == wanted
    with refuses(SchemaError):
        cf.read({"born": np.array([True]), "x": [1.0]}, excel).check(["born"])
    with refuses((SchemaError, SourceError)):
        cf.read({"born": pa.array([b"x"]), "x": [1.0]}, excel).check(["born"])


def test_no_cell_without_an_epoch_is_a_date_by_chance() -> None:
    cells = [
        0,
        25569,
        1.5,
        True,
        b"1970-01-01",
        "",
        "0",
        (1970, 1, 1),
        datetime.time(1),
        datetime.timedelta(1),
        float("nan"),
        10**30,
    ]
    assert codes({"born": cells, "x": [1.0] * len(cells)}, schema())[0].tolist() == [-1.0] * len(cells)


# cells -----------------------------------------------------------------------------------------------------------------


def test_a_date_among_objects_is_its_iso_text_under_another_kind() -> None:
    objects = np.array(
        [
            datetime.date(2020, 1, 2),
            "2020-01-02",
            np.datetime64("2020-01-02"),
            datetime.datetime(2020, 1, 2),
            pd.NaT,
            5,
        ],
        dtype=object,
    )
    assert Labels(Categorical(["a", "2020-01-02", "2020-01-02T00:00:00"]))(objects).tolist() == [1, 1, 1, 2, -1, -1]
    assert np.isnan(Numbers()(objects)[:5]).all()
    found = CodeOf(Numeric(0, 9, missing=["x", "2020-01-02"]))(objects)
    assert found.tolist() == [1, 1, 1, HOLDS, EMPTY, HOLDS]


class _Odd(datetime.date):
    def toordinal(self) -> int:
        raise ValueError("4711")


def test_hostile_cells_are_unread_and_never_raise() -> None:
    reader = Dates(GERMAN)
    cells = [
        "1" * 1_000_000,
        "\ud800",
        "01.01.1970\x00",
        "0" * 40,
        "..",
        "%d.%m.%Y",
        "1.1.1970\n",
        " 1.1.1970",
        "\u200b1.1.1970",
        _Odd(1970, 1, 1),
    ]
    assert reader(np.array(cells, dtype=object)).tolist()[6:8] == [0.0, 0.0]
    assert np.isnan(reader(np.array([*cells[:6], *cells[8:]], dtype=object))).all()
    raw = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 3, 11], "int32")), pa.py_buffer(b"\xff\xfe\x001.1.1970")]
    )
    assert np.array_equal(reader(raw), [np.nan, 0.0], equal_nan=True)
    ends = np.array(
        ["NaT", "-9223372036854775807", "9223372036854775807"], dtype="datetime64[s]" if False else "datetime64[D]"
    )
    assert len(reader(ends)) == 3
    assert np.isnan(reader(ends)[0])
    for empty in (
        np.array([], dtype=object),
        np.array([], "datetime64[s]"),
        pa.array([], pa.string()),
        pa.array([], pa.date32()),
        pa.nulls(3),
    ):
        assert np.isnan(reader(empty)).all()


def test_slices_and_nulls_of_arrow_do_not_shift() -> None:
    whole = pa.array([None, "01.01.1970", None, "2.1.1970", "x", "03.01.1970 "] * 5)
    wanted = Dates(GERMAN)(whole)
    for start, stop in itertools.combinations(range(0, 31, 3), 2):
        for cells in (whole, whole.cast(pa.large_string()), whole.cast(pa.string_view()), whole.dictionary_encode()):
            assert np.array_equal(Dates(GERMAN)(cells[start:stop]), wanted[start:stop], equal_nan=True)


def test_what_a_cell_means_is_of_that_cell_alone() -> None:
    generator = np.random.default_rng(2)
    pool = np.array(
        ["01.01.1970", "1.1.1970", "31.02.2000", "", "x", "2000-01-01", " 5.6.1999", "99.99.9999", None], dtype=object
    )
    cells = generator.choice(pool, 500)
    whole = Dates(GERMAN)(cells)
    alone = np.concatenate([Dates(GERMAN)(cells[at : at + 1]) for at in range(len(cells))])
    assert np.array_equal(whole, alone, equal_nan=True)
    assert np.array_equal(Dates(GERMAN)(pa.array(cells.tolist())), whole, equal_nan=True)


def test_which_cells_are_unread() -> None:
    column = cf.Date("1900-01-01", "2006-12-31", format="%d.%m.%Y", missing=["31.12.9999", "k.A."])
    code = CodeOfDate(column)
    cells = ["01.01.1970", "31.02.2000", "31.12.9999", "k.A.", " ", "", "5"]
    of_cells = [HOLDS, HOLDS, 0, 1, EMPTY, EMPTY, HOLDS]
    assert code(pa.array([*cells, None])).tolist() == [*of_cells, EMPTY]
    objects = [
        *cells,
        None,
        pd.NaT,
        np.datetime64("NaT"),
        datetime.date(9999, 12, 31),
        datetime.date(1970, 1, 1),
        5,
        float("nan"),
    ]
    others = [EMPTY, EMPTY, EMPTY, 0, HOLDS, HOLDS, EMPTY]
    assert code(np.array(objects, dtype=object)).tolist() == [*of_cells, *others]
    days = np.array(["1970-01-01", "NaT", "9999-12-31"], "datetime64[D]")
    for typed in (days, pa.array(days), pa.array(days).cast(pa.timestamp("s")), pa.array(days).dictionary_encode()):
        assert code(typed).tolist() == [HOLDS, EMPTY, 0]
    assert code(Coded(np.array([0, -1]), pa.array(["31.02.2000"]))).tolist() == [HOLDS, EMPTY]
    own = schema(column)
    found = codes({"born": cells, "x": [1.0] * len(cells)}, own, "born", "read(born)")
    assert found[1].tolist() == [OTHER, UNREAD, OTHER, OTHER, OTHER, OTHER, UNREAD]
    assert found[0].tolist() == [CODES[0], *[-1] * 6]
    early = codes({"born": ["01.01.1850", "01.01.2024"], "x": [1.0] * 2}, own, "read(born)", "fine(born)")
    assert early[0].tolist() == [BELOW, ABOVE]
    assert from_fine(early[1]).tolist() == [-43_829.0, 19_723.0]


def test_readers() -> None:
    assert isinstance(reader_of(ISO), Dates)
    assert isinstance(code_of(ISO), CodeOfDate)
    assert type(code_of(Numeric(0, 1))) is CodeOf


@pytest.mark.long
def test_a_million_cells_take_about_a_second() -> None:
    days = np.random.default_rng(1).integers(-20_000, 10_000, 1_000_000)
    cells = pa.array(GERMAN.text_of(days), pa.large_string())
    start = time.process_time()
    assert np.array_equal(Dates(GERMAN)(cells), days)
    assert time.process_time() - start < 3


# rows of derived columns -----------------------------------------------------------------------------------------------

DERIVE: dict[str, Any] = {
    "age": "years_between(born, '2006-12-31')",
    "group": {"cut": "age", "at": [18, 65], "labels": ["young", "grown", "old"]},
    "land": {"recode": "g", "to": {"north": ["a", "b"]}, "else": "south"},
    "z": {"log": "x", "at_least": 1},
    "twice": "2 * x",
}


def whole(unit: Any = "record", **more: Any) -> Schema:
    columns = {"born": GERMAN, "x": Numeric(0, 9, missing=[-9]), "g": Categorical(["a", "b", "c"])}
    return Schema(columns, unit=unit, derive=DERIVE, **more)


def records(n: int = 400, seed: int = 1) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "born": generator.choice(
                ["01.01.1970", "31.12.1988", "1.1.1989", "31.02.2000", "1.1.1850", "5.5.2020", "", None], n
            ),
            "x": generator.choice(np.array([0.5, 1.0, 9.0, -9, -5, 77, "abc", None, np.nan], dtype=object), n),
            "g": generator.choice(np.array(["a", "b", "c", "d", "", None], dtype=object), n),
            "pid": generator.integers(0, n // 3, n),
        }
    )


ROWS = (
    "group",
    "fine(age)",
    "read(age)",
    "z",
    "fine(z)",
    "read(z)",
    "x",
    "land",
    "read(land)",
    "read(twice)",
    "twice",
)


def test_rows_of_derived_columns() -> None:
    own = whole()
    data = {
        "born": ["01.01.1970", "1.1.1850", "5.5.2020", "31.02.2000", None],
        "x": [9.0, 77.0, -9, "abc", -5.0],
        "g": ["a", "c", "d", None, "b"],
    }
    found = dict(zip(ROWS, codes(data, own, *ROWS), strict=True))
    assert found["group"].tolist() == [1, 2, 0, -1, -1]
    assert from_fine(found["fine(age)"])[:3].tolist() == [36.0, 106.0, 0.0]
    assert found["fine(age)"].tolist()[3:] == [-1, -1]
    # a late birth gives the lowest age
    assert found["read(age)"].tolist() == [OTHER, ABOVE, BELOW, UNREAD, OTHER]
    assert found["z"].tolist() == [own["z"].steps - 1, own["z"].steps - 1, -1, -1, 0]
    assert found["read(z)"].tolist() == [OTHER, ABOVE, OTHER, UNREAD, BELOW]
    assert found["land"].tolist() == [0, 1, -1, -1, 0]
    assert found["read(land)"].tolist() == [OTHER, OTHER, UNREAD, OTHER, OTHER]
    assert found["read(twice)"].tolist() == [OTHER, ABOVE, OTHER, UNREAD, BELOW]
    assert from_fine(found["fine(z)"])[0] == pytest.approx(np.log(9))


def test_on_missing_of_an_input_is_applied_before_a_column_is_derived() -> None:
    columns = {
        "born": cf.Date("1900-01-01", "2006-12-31", on_missing="1970-12-31"),
        "x": Numeric(0, 9, on_missing=1.0, missing=[-9]),
    }
    own = Schema(columns, derive={name: DERIVE[name] for name in ("age", "group", "z", "twice")})
    data = {"born": [None, "x", "2000-12-31"], "x": [-9, 5.0, None]}
    rows = ("age", "group", "fine(age)", "twice", "z", "read(age)")
    found = codes(data, own, *rows)
    assert own["age"].decode(found[0]).tolist() == [36.0, 36.0, 6.0]
    assert found[1].tolist() == [1, 1, 0]
    assert from_fine(found[2]).tolist() == [36.0, 36.0, 6.0]
    assert own["twice"].decode(found[3]) == pytest.approx([2, 10, 2], abs=1e-4)
    assert found[4].tolist()[0] == found[4].tolist()[2] == 0
    assert found[5].tolist() == [OTHER, UNREAD, OTHER]


def test_the_test_data_of_references_are_coded_alike() -> None:
    own, frame = whole(), records()
    frame["x"] = pd.to_numeric(frame["x"], errors="coerce").replace(-9, np.nan)
    coded = CodedFrame.of(frame, own)
    for name, row in zip(own.names, codes(frame, own, *own.names), strict=True):
        assert np.array_equal(row, coded.codes[name]), name


def test_derived_rows_do_not_hang_on_blocks_order_or_format(tmp_path: Path) -> None:
    own, frame = whole(), records(20_000)
    found = codes(frame, own, *ROWS)
    frame["x"] = frame["x"].map(lambda one: None if one is None or one != one else str(one))
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for data in (tmp_path / "a.csv", tmp_path / "a.parquet", pl.from_pandas(frame)):
        for threads in (1, 3):
            again = codes(data, own, *ROWS, threads=threads)
            order, other = np.lexsort(found), np.lexsort(again)
            assert np.array_equal(found[:, order], again[:, other])
    single = np.concatenate([codes(frame.iloc[at : at + 1], own, *ROWS) for at in range(60)], axis=1)
    assert np.array_equal(single, found[:, :60])


def test_only_inputs_must_be_there_and_a_column_of_that_name_is_not_looked_at() -> None:
    own, frame = whole(), records()
    source = cf.read(frame.assign(age="no number", z=object()), own)
    source.check(["group", "z"])
    assert np.array_equal(codes(frame.assign(age=5), own, "age"), codes(frame, own, "age"))
    assert cf.read(frame, own).lacks(["group", "land"]) == ()
    lacking = cf.read(frame.drop(columns="born"), own)
    assert lacking.lacks(["group", "land"]) == ("born",)
    with refuses(SourceError):
        lacking.check(["group"])
    lacking.check(["land", "z"])
    array = np.column_stack([np.zeros(5), X])
    both = Schema({"a": Numeric(0, 1), "b": Numeric(0, 9)}, derive={"c": "a + b"})
    assert codes(array, both, "c").shape == (1, 5)


def test_units_count_once_in_each_derived_level() -> None:
    frame = records(3_000)
    own = whole(cf.Unit("pid", per="land"))
    asked = {"inference": "dataset", "privacy": cf.GDP(50.0), "ledger": None, "noise": cf.noise.SimulatedNoise(1)}
    result = cf.tables.counts("land", cf.read(frame, own), **asked).to_frame()
    known = frame.assign(land=frame["g"].map({"a": "north", "b": "north", "c": "south"})).dropna(subset=["land"])
    wanted = known.groupby("land")["pid"].nunique()
    estimates = result.set_index("land")["estimate"]
    assert abs(estimates["north"] - wanted["north"]) < 5
    assert abs(estimates["south"] - wanted["south"]) < 5
    assert wanted["north"] < known["land"].eq("north").sum()


def test_weights_may_be_derived() -> None:
    frame = records(2_000)
    frame["x"] = 1.0
    result = cf.tables.counts(
        "land", cf.read(frame, whole()), weights="twice", inference="dataset", privacy=cf.GDP(50.0), ledger=None,
        noise=cf.noise.SimulatedNoise(1),
    ).to_frame()  # fmt: skip
    north = int(frame["g"].isin(["a", "b"]).sum())
    assert abs(result.set_index("land")["estimate"]["north"] - 2 * north) < 5


def test_ranges_of_derived_columns_are_found_like_others() -> None:
    frame = records(5_000)
    frame["x"] = np.random.default_rng(1).uniform(1, 2, 5_000)
    own = Schema({"x": Numeric(0, 1e6)}, derive={"twice": "2 * x"})
    asked = {"inference": "dataset", "privacy": cf.GDP(5.0), "ledger": None, "noise": cf.noise.SimulatedNoise(1)}
    result = cf.tables.means("twice", cf.read(frame, own), **asked)
    (found,) = result.ranges.values()
    assert found.high < 100
    assert result.to_frame()["estimate"].iloc[0] == pytest.approx(3.0, abs=0.1)


# neighbors -------------------------------------------------------------------------------------------------------------

CELLS = {
    "born": ["01.01.1970", "1.1.1850", "5.5.2020", "31.02.2000", None],
    "x": [0.5, 9.0, 77.0, -9, "abc"],
    "g": ["a", "c", "d"],
}


COUNTS = cf.tables.Counts("group * land", inference="population")
MEANS = cf.tables.Means("z + twice ~ group", inference="population")
SOME = cf.tables.Means("age ~ 1", inference="population", where="land == 'north'")
LINE = cf.regression.LeastSquares("z ~ age + land")
PERSON, KEPT, THREE = cf.Unit("pid"), cf.Unit("pid", rule="keep"), cf.Unit("pid", rows=3)


@pytest.mark.few(
    "Counts(formula='group * land',-record",
    "Counts(formula='group * land',-Unit('pid', rule='keep')",
    "Means(bounds='auto', formula='-record0",
    "Means(bounds='auto', formula='-Unit('pid')1",
    "LeastSquares(bounds='auto', fo-Unit('pid', rows=3)",
    "Counts(formula='land * group',-Unit('pid', per='land')",
)
@pytest.mark.parametrize(
    ("method", "unit"),
    [
        *itertools.product((COUNTS, MEANS, SOME, LINE), ("record", PERSON, KEPT)),
        (LINE, THREE),
        (cf.tables.Counts("land * group", inference="population"), cf.Unit("pid", per="land")),
    ],
    ids=lambda one: str(one)[:30],
)
def test_no_unit_moves_a_sum_beyond_its_sensitivity(method: Any, unit: Any) -> None:
    """Rows differ in one unit: in what is missing or not, read or not, derived or not."""
    own = whole(unit)
    made = plan(method, own, cf.GDP(1.0, relation="add-remove"))
    rest = [
        dict(zip(("born", "x", "g", "pid"), one, strict=True))
        for one in (("1.1.1989", 3.0, "b", "p"), ("1.1.1989", 3.0, "b", "q"))
    ]

    def sums(rows: list[dict[str, Any]]) -> dict[str, Any]:
        data = {name: [row[name] for row in rows] for name in ("born", "x", "g", "pid")}
        found = cf.read(data, own).aggregate(*made.statistics.values())
        return dict(zip(made.statistics, found, strict=True))

    base = sums(rest)
    rows = int(made.schema["rows_per_unit"])
    tried = 0
    for cells in itertools.product(*CELLS.values()):
        person = {**dict(zip(CELLS, cells, strict=True)), "pid": "new"}
        for count in {1, 1 if unit == "record" else 5}:
            moved = sums([*rest, *[person] * count])
            for name, statistic in made.statistics.items():
                change = [
                    int(one) - int(other)
                    for one, other in zip(np.ravel(moved[name]), np.ravel(base[name]), strict=True)
                ]
                least = Fraction(unit_squared(statistic, "add-remove", rows, per_of(made.schema)))
                size = sum(map(abs, change)) ** 2 if statistic.norm == "l1" else sum(one * one for one in change)
                assert size <= least, (name, person, count)
                tried += 1
    assert tried >= 75


# other ways in ---------------------------------------------------------------------------------------------------------


def test_rows_are_protected_as_the_data_have_them(tmp_path: Path) -> None:
    columns = {"x": Numeric(0, 9, on_missing=5.0), "y": Numeric(0, 9, on_missing=5.0)}
    own = Schema(columns, dataset="d", derive={"twice": "2 * x"})
    ledger = cf.Ledger.create(tmp_path / "l.db", dataset="d", budget=cf.GDP(100.0, relation="substitute"))
    data = {"x": X * 200, "y": X * 200}
    with refuses(SchemaError) as caught:
        cf.local.protect(
            data, own, tmp_path / "a.parquet", columns=["twice"], ledger=ledger, privacy=cf.ApproxDP(1.0, 1e-3)
        )
    assert "'twice' is derived" in str(caught.value)
    assert not (tmp_path / "a.parquet").exists()
    assert len(ledger.show().rows) == 1
    cf.local.protect(data, own, tmp_path / "b.parquet", columns=["x"], ledger=None, privacy=cf.ApproxDP(1.0, 1e-3))


def test_rehearsals_read_simulated_dates_as_the_records_are_written(tmp_path: Path) -> None:
    excel = cf.Date("1900-01-01", "2006-12-31", epoch="1899-12-30")
    numbers = np.array([25569, 25570])
    for column, data in (
        (GERMAN, text(tmp_path / "a.csv", TEXTS)),
        (GERMAN, FRAME),
        (GERMAN, {"born": TEXTS, "x": X}),
        (GERMAN, pa.table({"born": TEXTS, "x": X})),
        (GERMAN, pa.table({"born": pa.array(DATES, pa.date32()), "x": X})),
        (ISO, text(tmp_path / "b.csv", DAYS)),
        (excel, {"born": numbers, "x": np.array(X[:2])}),
        (excel, pa.table({"born": numbers.astype(float), "x": X[:2]})),
    ):
        own = schema(column, derive={"age": "years_between(born, '2006-12-31')"})
        found = codes_of(simulated_source(cf.read(data, own)), Plain(("born", "age", "read(born)", "read(age)")))
        assert (found[:2] >= 0).all()
        assert not found[2:].any()
        assert len(np.unique(found[0])) > 1_000


def test_executors_derive_where_the_records_are(tmp_path: Path) -> None:
    for unit in ("record", cf.Unit("pid")):
        own, frame = whole(unit), records(2_000)
        frame["x"] = frame["x"].map(lambda one: None if one is None or one != one else str(one))
        frame.to_parquet(folder := tmp_path / "a.parquet")
        asked = {"inference": "population", "privacy": cf.GDP(5.0), "ledger": None}
        made = [
            cf.tables.means("z + age ~ group", source, noise=cf.noise.SimulatedNoise(1), **asked)
            for source in (cf.read(folder, own), cf.read(folder, own, executor=Here()))
        ]
        assert made[0].to_frame().equals(made[1].to_frame())
