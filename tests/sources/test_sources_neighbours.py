"""One more record changes the sums by its own contribution and nothing else, whatever is in it."""

from __future__ import annotations

import gzip
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.sources.records import SCHEMA, Plain, codes_of, gram_of, table

from confide.core import Gram
from confide.schema import Categorical, Integer, Numeric, Schema
from confide.sources import read
from confide.sources.formats import text_files

NAMES = ("x", "y", "k", "g", "h")
GOOD = [{**record, "x": record["x"] or 0.0, "g": "N"} for record in table(23, seed=5)]
# a record whose cells are all missing is dropped for x here, so a schema without "drop" shows it too
KEEP = Schema(
    {
        "x": Numeric(-2, 2, on_missing=1),
        "y": Numeric(0, 1, on_missing="midpoint"),
        "k": Integer(0, 9, on_missing=3),
        "g": Categorical(["N", "S", "W"], on_missing="S"),
        "h": Categorical(["1", "2"], on_missing="2"),
    }
)
ALL_MISSING = dict.fromkeys(NAMES)


def gram(data: Any, schema: Schema, **options: Any) -> np.ndarray:
    return read(data, schema, **options).aggregate(Gram(Plain(NAMES)))[0]


def expected(records: list[dict[str, Any]], schema: Schema) -> np.ndarray:
    sums = gram_of(codes_of(records, schema, NAMES))
    return np.array(sums or [[0] * 6] * 6, dtype=object)


def line_of(record: dict[str, Any]) -> bytes:
    return ",".join("" if record[name] is None else str(record[name]) for name in NAMES).encode()


def csv_of(lines: list[bytes]) -> bytes:
    return b"x,y,k,g,h\n" + b"".join(line + b"\n" for line in lines)


# CSV ----------------------------------------------------------------------------------------------

MALFORMED = [
    b'"',
    b'0.5,0.5,1,"N,1',
    b'0.5,0.5,1,N,"1"x',
    b'"0.5,0.5,1,N,1',
    b"0.5,0.5,1,N",
    b"0.5,0.5,1,N,1,",
    b"0.5",
    b",,,,,,,,,",
    b"0.5,0.5\r,1,N,1",
    b"\x00",
    b"\xff\xfe\xfd",
    b"\xef\xbb\xbf",
    b" ",
    b"#",
    b"0.5;0.5;1;N;1",
    b"a" * 200_000,
    b'"' + b"," * 150_000,
]
CELLS = [
    (b"0.5,0.5,1,N,1", {"x": 0.5, "y": 0.5, "k": 1, "g": "N", "h": "1"}),
    (b'"0.5","0.5","1","N","1"', {"x": 0.5, "y": 0.5, "k": 1, "g": "N", "h": "1"}),
    (b"\xff,0.5,1,N\xff,1", {"x": None, "y": 0.5, "k": 1, "g": None, "h": "1"}),
    (b"0.5\x00,0.5,1,N\x00,1", {"x": None, "y": 0.5, "k": 1, "g": None, "h": "1"}),
    (b"nan,inf,-inf,NaN,null", {"x": None, "y": None, "k": None, "g": None, "h": None}),
    (b"1e300,-1e300,1e-300,E,3", {"x": 1e300, "y": -1e300, "k": 1e-300, "g": None, "h": None}),
    (b"text,2020-01-01,0x1F,n,one", {"x": None, "y": None, "k": None, "g": None, "h": None}),
    (b",,,,", {"x": None, "y": None, "k": None, "g": None, "h": None}),
    (b'0.5,0.5,1,"N",1\r', {"x": 0.5, "y": 0.5, "k": 1, "g": "N", "h": "1"}),
    (b'0.5,0.5,1,"N\r",1', ALL_MISSING),
    (b'0.5,0.5,1,N,1"x"', {"x": 0.5, "y": 0.5, "k": 1, "g": "N", "h": None}),
]


@pytest.mark.parametrize("schema", [SCHEMA, KEEP], ids=["drop", "keep"])
@pytest.mark.parametrize(("line", "record"), [*((line, ALL_MISSING) for line in MALFORMED), *CELLS])
def test_a_line_of_a_csv_file(line, record, schema, tmp_path):
    lines = [line_of(one) for one in GOOD]
    for place in (0, 11, len(lines)):
        path = tmp_path / f"{place}.csv"
        path.write_bytes(csv_of([*lines[:place], line, *lines[place:]]))
        assert (gram(path, schema) == expected([*GOOD, record], schema)).all()
    path.write_bytes(csv_of([line, *lines]).rstrip(b"\n") if line != b" " else csv_of([line]))
    if line != b" ":
        assert (gram(path, schema) == expected([*GOOD, record], schema)).all()


def test_blank_lines_are_nobody(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(csv_of([b"", *(line_of(one) for one in GOOD), b"\r", b"", b""]))
    source = read(path, KEEP)
    assert source.count() == len(GOOD)
    assert (gram(path, KEEP) == expected(GOOD, KEEP)).all()


trouble = st.sampled_from([b'"', b",", b'",', b',"', b"\r", b"\x00", b"\xff", b"0.5", b"N", b"1", b"-", b" "])
random_line = st.lists(trouble | st.binary(max_size=4), max_size=14).map(
    lambda parts: b"".join(parts).replace(b"\n", b"")
)


@pytest.mark.long
@given(
    st.lists(random_line, min_size=1, max_size=4),
    st.lists(st.integers(0, 6), min_size=4, max_size=4),
    st.integers(20, 400),
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_random_lines_among_good_ones(tmp_path, monkeypatch, hostile, places, block_bytes):
    """What the good lines give is unchanged: the file's sums are theirs plus those of each hostile line alone."""
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / "t.csv"
    total = expected(GOOD[:6], KEEP)
    lines = [line_of(one) for one in GOOD[:6]]
    for line, place in zip(hostile, places, strict=False):
        path.write_bytes(csv_of([line]))
        alone = gram(path, KEEP)
        assert alone[0, 0] == (line not in (b"", b"\r"))
        total = total + alone
        lines.insert(place, line)
    path.write_bytes(csv_of(lines))
    assert (gram(path, KEEP) == total).all()


# cells in memory ----------------------------------------------------------------------------------

HOSTILE_CELLS = [
    None,
    float("nan"),
    float("inf"),
    1e300,
    -(10**400),
    "text",
    " 0.5 ",
    "1e400",
    "\ud800",
    b"0.5",
    True,
    Decimal("0.1"),
    1j,
    [1, 2],
    {},
    pd.NaT,
]


@pytest.mark.parametrize("cell", HOSTILE_CELLS, ids=repr)
def test_a_cell_among_pythons_objects(cell):
    """As objects, as pandas infers a type from all cells, and as a list."""
    schema = Schema({"x": Numeric(-2, 2, on_missing=1), "g": Categorical(["0.5", "True", "text"], on_missing="text")})
    for name in ("x", "g"):
        good = [0.5, -1.25, 3.0, 0.1]
        statistic = Gram(Plain((name,)))
        both = np.fromiter([*good, cell], dtype=object, count=5)
        alone = read({name: [cell]}, schema).aggregate(statistic)[0]
        rest = read({name: good}, schema).aggregate(statistic)[0]
        for data in ({name: [*good, cell]}, {name: both}, pd.DataFrame({name: both})):
            assert (read(data, schema).aggregate(statistic)[0] == rest + alone).all()
        inferred = pd.DataFrame({name: [*good, cell]})
        if inferred[name].dtype.kind in "fO":
            assert (read(inferred, schema).aggregate(statistic)[0] == rest + alone).all()


def test_one_text_cell_changes_no_number():
    """pandas.to_numeric, and any inference over a column, parse the others differently beside a text cell."""
    schema = Schema({"x": Numeric(0, 1, steps=2**22)})
    rng = np.random.default_rng(0)
    values = rng.random(2_000)
    texts = [f"{value:.25f}" for value in values]
    statistic = Gram(Plain(("x",), 1 << 22))
    rest = read({"x": [float(text) for text in texts]}, schema).aggregate(statistic)[0]
    for cells in (texts, [*texts, "hostile"], ["", *texts], [None, *texts, "1e9999"][:-1]):
        for data in (
            {"x": cells},
            pd.DataFrame({"x": cells}),
            pl.DataFrame({"x": cells}),
            pd.DataFrame({"x": cells}, dtype=object),
        ):
            assert (read(data, schema).aggregate(statistic)[0] == rest).all()


def test_invalid_text_in_parquet(tmp_path, capfd):
    """Arrow does not check the bytes of text when it reads them; what is built on it may crash, and print them."""
    good = [b"0.5", b"0.25", None, b"0.125"]
    for bad in (b"\xff", b"\xf0\x9f", b"0.5\xff" + b"a" * 100):
        path = tmp_path / f"{len(bad)}.parquet"
        column = pa.array([*good, bad], pa.binary()).view(pa.string())
        pq.write_table(pa.table({"x": column, "g": column}), path)
        for name in ("x", "g"):
            schema = Schema({"x": Numeric(-2, 2, on_missing=1), "g": Categorical(["0.5", "0.25", "z"], on_missing="z")})
            rest = read(pa.table({name: column.slice(0, 4)}), schema).aggregate(Gram(Plain((name,))))[0]
            alone = read(pa.table({name: pa.array([None], pa.string())}), schema).aggregate(Gram(Plain((name,))))[0]
            assert (read(path, schema).aggregate(Gram(Plain((name,))))[0] == rest + alone).all()
    assert capfd.readouterr() == ("", "")


def test_gzipped_lines_too(tmp_path):
    path = tmp_path / "t.csv.gz"
    lines = [line_of(one) for one in GOOD]
    path.write_bytes(gzip.compress(csv_of([*lines, b'0.5,"'])))
    assert (gram(path, KEEP) == expected([*GOOD, ALL_MISSING], KEEP)).all()
