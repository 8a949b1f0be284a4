"""The same records in any form, order, batch and number of threads give the integers of Python's arithmetic."""

from __future__ import annotations

import gzip
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
from tests.sources.records import SCHEMA, Plain, codes_of, gram_of, table

from confide.core import Gram, Total
from confide.errors import SourceError
from confide.schema import Categorical, Numeric, Schema
from confide.sources import read
from confide.sources.aggregation import run

NAMES = ("x", "y", "k", "g", "h")
RECORDS = table(400)
EXPECTED = gram_of(codes_of(RECORDS, SCHEMA, NAMES))


def columns_of(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [record[name] for record in records] for name in NAMES}


def arrow_of(records: list[dict[str, Any]]) -> pa.Table:
    types = [pa.float64(), pa.float64(), pa.int64(), pa.string(), pa.string()]
    arrays = [pa.array(cells, kind) for cells, kind in zip(columns_of(records).values(), types, strict=True)]
    return pa.table(arrays, names=NAMES)


def objects_of(cells: list[Any]) -> np.ndarray:
    return np.fromiter(cells, dtype=object, count=len(cells))


def with_dictionaries(whole: pa.Table) -> pa.Table:
    for name in ("k", "g", "h"):
        whole = whole.set_column(whole.column_names.index(name), name, whole.column(name).dictionary_encode())
    return whole


def chunked(whole: pa.Table, made: Callable[[pa.Table], pa.Table] = lambda part: part) -> pa.Table:
    """Chunks of 7 rows, each made apart from the others."""
    return pa.concat_tables([made(whole.slice(at, 7)) for at in range(0, whole.num_rows, 7)])


def strided(whole: pa.Table) -> dict[str, Any]:
    doubled = {name: whole.column(name).to_pandas().to_numpy().repeat(2) for name in NAMES}
    return {name: cells[::2] for name, cells in doubled.items()}


def mixed(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Object columns in which the same value stands as many types."""
    makers = [float, np.float64, repr, lambda v: Decimal(repr(v)), lambda v: f" {v!r} "]
    frame = {name: objects_of(cells) for name, cells in columns_of(records).items()}
    frame["x"] = objects_of([None if v is None else makers[i % 5](v) for i, v in enumerate(frame["x"])])
    frame["h"] = objects_of([None if v is None else [int, float, str][i % 3](v) for i, v in enumerate(frame["h"])])
    return pd.DataFrame(frame)


def categories(whole: pa.Table) -> pd.DataFrame:
    frame = whole.to_pandas()
    frame["g"] = frame["g"].astype("category")
    frame["h"] = frame["h"].map({"1": 1, "2": 2}).astype("category")
    frame["k"] = frame["k"].astype("category")
    return frame


def nullable(whole: pa.Table) -> pd.DataFrame:
    return whole.to_pandas().convert_dtypes().astype({"g": pd.StringDtype("python")})


FORMS = {
    "arrow": lambda t, r: t,
    "arrow in chunks": lambda t, r: chunked(t),
    "arrow dictionaries": lambda t, r: with_dictionaries(t),
    "arrow dictionaries in chunks": lambda t, r: chunked(t, with_dictionaries),
    "record batch": lambda t, r: t.to_batches()[0],
    "reader": lambda t, r: pa.RecordBatchReader.from_batches(t.schema, t.to_batches(max_chunksize=11)),
    "pandas": lambda t, r: t.to_pandas(),
    "pandas of pyarrow": lambda t, r: t.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas nullable": lambda t, r: nullable(t),
    "pandas categories": lambda t, r: categories(t),
    "pandas objects": lambda t, r: mixed(r),
    "polars": lambda t, r: pl.DataFrame(columns_of(r)),
    "polars categories": lambda t, r: pl.DataFrame(columns_of(r)).with_columns(pl.col("g", "h").cast(pl.Categorical)),
    "polars lazy": lambda t, r: pl.LazyFrame(columns_of(r)).filter(pl.lit(True)),
    "lists": lambda t, r: columns_of(r),
    "mixed mapping": lambda t, r: {
        "x": t.column("x"),
        "y": pl.Series([one["y"] for one in r]),
        "k": pd.Series([one["k"] for one in r]),
        "g": t.column("g").combine_chunks(),
        "h": [one["h"] for one in r],
    },
    "strided arrays": lambda t, r: strided(t),
    "two-dimensional objects": lambda t, r: np.array([[record[name] for name in NAMES] for record in r], dtype=object),
}


def write(form: str, whole: pa.Table, at: Path) -> Any:
    """The records as files of one form; the path or paths to read."""
    frame = whole.to_pandas()
    if form == "csv of pandas":
        frame.to_csv(at / "t.csv", index=False)
    elif form == "csv of polars, gzipped":
        (at / "t.csv.gz").write_bytes(gzip.compress(pl.from_arrow(whole).write_csv().encode()))
        return at / "t.csv.gz"
    elif form == "csv quoted, with carriage returns":
        frame.to_csv(at / "t.csv", index=True, quoting=2, lineterminator="\r\n", encoding="utf-8-sig")
    elif form == "parquet":
        pq.write_table(whole, at / "t.parquet", row_group_size=37)
        return at / "t.parquet"
    elif form == "parquet dictionaries":
        pq.write_table(with_dictionaries(whole), at / "t.PARQUET", row_group_size=90)
        return at / "t.PARQUET"
    elif form == "parquet directory":
        (at / "d" / "part=1").mkdir(parents=True)
        (at / "d" / "_temporary").mkdir()
        half = whole.num_rows // 2
        pq.write_table(whole.slice(0, half), at / "d" / "a.parquet")
        pq.write_table(pa.Table.from_pandas(whole.slice(half).to_pandas()), at / "d" / "part=1" / "b.parquet")
        pq.write_table(whole, at / "d" / "_temporary" / "c.parquet")
        return at / "d"
    elif form == "several files":
        third = whole.num_rows // 3
        frame[:third].to_csv(at / "a.csv", index=False)
        frame.iloc[third : 2 * third, ::-1].to_csv(at / "b.csv", index=False)
        pq.write_table(whole.slice(2 * third), at / "c.parquet")
        return [at / "a.csv", str(at / "b.csv"), at / "c.parquet"]
    return str(at / "t.csv")


FILES = [
    "csv of pandas",
    "csv of polars, gzipped",
    "csv quoted, with carriage returns",
    "parquet",
    "parquet dictionaries",
    "parquet directory",
    "several files",
]


@pytest.mark.parametrize("form", FORMS)
def test_tables(form):
    source = read(FORMS[form](arrow_of(RECORDS), RECORDS), SCHEMA)
    source.check(NAMES)
    (gram,) = source.aggregate(Gram(Plain(NAMES)))
    assert gram.tolist() == EXPECTED


@pytest.mark.parametrize("form", FILES)
def test_files(form, tmp_path):
    source = read(write(form, arrow_of(RECORDS), tmp_path), SCHEMA)
    assert source.aggregate(Gram(Plain(NAMES)))[0].tolist() == EXPECTED
    assert source.count() == len(RECORDS)
    assert source.aggregate(Gram(Plain(NAMES)))[0].tolist() == EXPECTED


@pytest.mark.few("1-2", "7-1", "7-5", "64-1", "64-5", "8191-2")
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("block_rows", [1, 7, 64, 8191])
def test_any_blocks_and_threads(block_rows, threads, tmp_path):
    whole = arrow_of(RECORDS)
    for data in (
        whole,
        pl.DataFrame(columns_of(RECORDS)),
        write("parquet", whole, tmp_path),
        write("csv of pandas", whole, tmp_path),
    ):
        parts = read(data, SCHEMA)._parts
        (gram,) = run(parts, SCHEMA, (Gram(Plain(NAMES)),), threads=threads, block_rows=block_rows)
        assert gram.tolist() == EXPECTED


def test_any_order():
    order = np.random.default_rng(1).permutation(len(RECORDS))
    shuffled = [RECORDS[i] for i in order]
    assert read(arrow_of(shuffled), SCHEMA).aggregate(Gram(Plain(NAMES)))[0].tolist() == EXPECTED


def test_several_statistics_in_one_pass():
    source = read(arrow_of(RECORDS), SCHEMA)
    orders = [("x", "y", "k", "g", "h"), ("h", "x"), ("y",), ("k", "g", "x")]
    grams = source.aggregate(*(Gram(Plain(order)) for order in orders), Total(Plain(("x",))))
    for order, gram in zip(orders, grams[:-1], strict=True):
        assert gram.tolist() == gram_of(codes_of(RECORDS, SCHEMA, order))
    assert grams[-1].tolist() == gram_of(codes_of(RECORDS, SCHEMA, ["x"]))[0]
    assert source.aggregate() == ()


def test_a_statistic_of_no_column_counts():
    for data in (arrow_of(RECORDS), {name: [1.0, None] for name in NAMES}):
        source = read(data, SCHEMA)
        assert source.aggregate(Total(Plain(())))[0].tolist() == [source.count()]


def test_counts_do_not_overflow(tmp_path):
    """Large codes, many blocks: the sums are Python integers beyond 2^53."""
    n = 20_000
    schema = Schema({"a": Numeric(0, 1, steps=2**22), "b": Numeric(0, 1)})
    values = np.ones(n)
    pq.write_table(pa.table({"a": values, "b": values}), tmp_path / "t.parquet", row_group_size=6_000)
    for data in (np.column_stack([values, values]), tmp_path / "t.parquet"):
        (gram,) = read(data, schema).aggregate(Gram(Plain(("a", "b"), 1 << 22)))
        a, b = 2**22 - 1, 2**20 - 1
        assert gram.tolist() == [[n, n * a, n * b], [n * a, n * a * a, n * a * b], [n * b, n * a * b, n * b * b]]
        assert all(type(value) is int for value in gram.ravel())


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_records(n, tmp_path):
    records = [{"x": 0.5, "y": 0.25, "k": 4, "g": "S", "h": "1"}] * n
    whole = arrow_of(records)
    # these cannot be made of nothing
    needs_one = {"record batch", "two-dimensional objects", "arrow in chunks", "arrow dictionaries in chunks"}
    forms = {name: make(whole, records) for name, make in FORMS.items() if n or name not in needs_one}
    forms |= {name: write(name, whole, tmp_path) for name in FILES if name != "several files"}
    expected = gram_of(codes_of(records, SCHEMA, NAMES)) or [[0] * 6] * 6
    for form, data in forms.items():
        (gram,) = read(data, SCHEMA).aggregate(Gram(Plain(NAMES)))
        assert gram.tolist() == expected, form


def test_no_row_groups(tmp_path):
    with pq.ParquetWriter(tmp_path / "t.parquet", arrow_of([]).schema):
        pass
    assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups == 0
    source = read(tmp_path / "t.parquet", SCHEMA)
    assert source.count() == 0
    assert source.aggregate(Gram(Plain(NAMES)))[0].tolist() == [[0] * 6] * 6


def test_a_header_alone(tmp_path):
    (tmp_path / "t.csv").write_text("x,y,k,g,h")
    source = read(tmp_path / "t.csv", SCHEMA)
    assert source.count() == 0
    assert source.aggregate(Gram(Plain(NAMES)))[0].tolist() == [[0] * 6] * 6


def test_numpy_in_the_schemas_order():
    values = np.random.default_rng(0).normal(size=(500, 3))
    schema = Schema({name: Numeric(-2, 2) for name in "abc"})
    expected = gram_of(codes_of([dict(zip("abc", row, strict=True)) for row in values.tolist()], schema, "bca"))
    arrays = [values, np.asfortranarray(values), values.repeat(2, axis=1)[:, ::2], values[::-1], values.astype(">f8")]
    for array in arrays:
        assert read(array, schema).aggregate(Gram(Plain(tuple("bca"))))[0].tolist() == expected
    one = Schema({"a": Numeric(-2, 2)})
    expected = gram_of(codes_of([{"a": value} for value in values[:, 0].tolist()], one, "a"))
    assert read(values[:, 0], one).aggregate(Gram(Plain(("a",))))[0].tolist() == expected


def test_clipping_is_a_row_of_its_own():
    """read(NAME): 1 and 2 for a finite value below and above its bounds, 3 for a cell that is not read, 0 for any other."""
    schema = Schema({"y": Numeric(0, 1, on_missing=0.5), "g": Categorical(["1", "2"])})
    data = {"y": [-0.1, 0.0, 0.5, 1.0, 1.1, None, float("inf"), float("nan"), "x", 1e300], "g": ["1"] * 10}
    (gram,) = read(data, schema).aggregate(Gram(Plain(("read(y)", "g"))))
    assert gram.tolist() == [[10, 11, 0], [11, 27, 0], [0, 0, 0]]
    (gram,) = read(data, schema).aggregate(Gram(Plain(("read(y)", "y", "read(g)"))))
    middle = schema["y"].code([0.5])[0]
    assert gram[1].tolist() == [11, 27, 4 * (2**20 - 1) + 6 * middle, 0]


def test_integers_that_became_floating_keep_their_levels(tmp_path):
    schema = Schema({"c": Categorical(["1", "2", "10"])})
    whole = pd.DataFrame({"c": [1, 2, 10, 10]})
    holed = pd.DataFrame({"c": [1.0, 2.0, 10.0, 10.0, np.nan]})
    holed.to_csv(tmp_path / "t.csv", index=False)
    assert "10.0" in (tmp_path / "t.csv").read_text()
    expected = gram_of([(0,), (1,), (2,), (2,)])
    for data in (whole, holed, tmp_path / "t.csv", pl.from_pandas(whole), pa.Table.from_pandas(whole)):
        assert read(data, schema).aggregate(Gram(Plain(("c",))))[0].tolist() == expected


def test_parquet_decimals_and_small_types(tmp_path):
    schema = Schema({"d": Numeric(0, 1), "f": Numeric(0, 1), "b": Numeric(0, 1), "u": Numeric(0, 255)})
    cells = {"d": ["0.10", "0.35", None], "f": [0.1, 0.7, 0.3], "b": [True, False, True], "u": [0, 200, 255]}
    whole = pa.table(
        {
            "d": pa.array([None if v is None else Decimal(v) for v in cells["d"]], pa.decimal128(5, 2)),
            "f": pa.array(cells["f"], pa.float32()),
            "b": pa.array(cells["b"]),
            "u": pa.array(cells["u"], pa.uint8()),
        }
    )
    pq.write_table(whole, tmp_path / "t.parquet")
    records = [
        {"d": None if d is None else float(d), "f": float(np.float32(f)), "b": float(b), "u": u}
        for d, f, b, u in zip(*cells.values(), strict=True)
    ]
    expected = gram_of(codes_of(records, schema, "dfbu"))
    for data in (whole, tmp_path / "t.parquet", pl.from_arrow(whole)):
        assert read(data, schema).aggregate(Gram(Plain(tuple("dfbu"))))[0].tolist() == expected


def test_names_that_are_no_text():
    """Columns numbered by pandas or by a mapping are found by their text."""
    schema = Schema({"0": Numeric(0, 1), "1": Numeric(0, 1)})
    values = np.array([[0.25, 0.5], [0.75, 1.0]])
    expected = read(values, schema).aggregate(Gram(Plain(("1", "0"))))[0]
    for data in (pd.DataFrame(values), {0: values[:, 0], 1: values[:, 1]}):
        assert (read(data, schema).aggregate(Gram(Plain(("1", "0"))))[0] == expected).all()


def test_a_subclass_of_a_frame():
    class Survey(pd.DataFrame):
        pass

    expected = read(arrow_of(RECORDS), SCHEMA).aggregate(Gram(Plain(NAMES)))[0]
    assert (read(Survey(arrow_of(RECORDS).to_pandas()), SCHEMA).aggregate(Gram(Plain(NAMES)))[0] == expected).all()


@pytest.mark.parametrize("within", [False, True])
def test_a_codec_that_pyarrow_lacks_is_told_from_the_footer(within: bool, tmp_path: Path) -> None:
    """Which codecs there are hangs on how pyarrow was built. Here one column is packed by one that it never had."""
    whole = arrow_of(RECORDS)
    place = tmp_path / "d" / "g=1" / "a.parquet" if within else tmp_path / "a.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    given = tmp_path / "d" if within else place
    for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        pq.write_table(whole, place, compression=codec)
        assert read(given, SCHEMA).count() == 400
    pq.write_table(whole, place, compression={name: "snappy" if name == "k" else "zstd" for name in NAMES})
    raw = place.read_bytes()
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    # the list of a column's path, which has one name, and its codec after it: SNAPPY is 1, LZO 3, as thrift writes numbers
    sent, other = b"\x19\x18\x01k\x15\x02", b"\x19\x18\x01k\x15\x06"
    assert raw[footer:].count(sent) == 1
    place.write_bytes(raw[:footer] + raw[footer:].replace(sent, other))
    with pytest.raises(SourceError) as caught:
        read(given, SCHEMA)
    assert within or "is packed by LZO, which this pyarrow cannot unpack" in str(caught.value)
    assert caught.value.__context__ is None
