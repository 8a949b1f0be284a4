"""What a source may say: types, names, files. Never a value, a position or a count of records."""

from __future__ import annotations

import gzip
import logging
import os
import re
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.records import SCHEMA, Plain, table

from confide.core import Gram, Statistic, Total
from confide.errors import SchemaError, SourceError
from confide.schema import Numeric, Schema
from confide.sources import read

NAMES = ("x", "y", "k", "g", "h")
SECRET = "31415926"


def frame(n: int = 30, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(table(n, seed))


def parquet(path: Path, n: int = 30, seed: int = 0) -> Path:
    pq.write_table(pa.Table.from_pandas(frame(n, seed)), path, compression="none", row_group_size=10)
    return path


def raised(action: Any) -> Exception:
    with pytest.raises((SourceError, SchemaError)) as caught:
        action()
    return caught.value


# metadata -----------------------------------------------------------------------------------------


def test_a_column_that_is_not_there(tmp_path):
    frame().drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    source = read(tmp_path / "t.csv", SCHEMA)
    source.check(["x", "g"])
    for action in (lambda: source.check(["x", "y"]), lambda: source.aggregate(Total(Plain(("y",))))):
        error = raised(action)
        assert isinstance(error, SourceError)
        assert all(part in str(error) for part in ("t.csv", "'y'", "'x', 'k', 'g', 'h'"))
    error = raised(lambda: source.check(["age"]))
    assert isinstance(error, SchemaError)
    assert "'age'" in str(error)
    assert "x, y, k, g, h" in str(error)


def test_a_type_that_no_column_can_have(tmp_path):
    dates = pd.to_datetime(["2020-01-01", "2021-01-01"])
    whole = frame(2).assign(x=dates)
    pq.write_table(pa.Table.from_pandas(whole), tmp_path / "t.parquet")
    forms = [whole, pl.from_pandas(whole), pa.Table.from_pandas(whole), tmp_path / "t.parquet", {"x": dates.to_numpy()}]
    forms += [{"x": np.array([1j, 2])}, {"x": np.array([b"a"])}, {"x": pd.Series(pd.period_range("2020", periods=2))}]
    forms += [
        {"x": pd.Series(dates.tz_localize("UTC"))},
        {"x": pl.Series([[1], [2]])},
        {"x": pl.Series([object(), object()], dtype=pl.Object)},
    ]
    forms += [
        {"x": pd.Series(dates).astype("category")},
        {"x": pa.array([b"1", b"2"])},
        {"x": pl.Series([1, 2], dtype=pl.Int128)},
    ]
    for data in forms:
        source = read(data, SCHEMA)
        error = raised(lambda source=source: source.check(["x"]))
        assert "column 'x' has the type" in str(error)
        assert raised(lambda source=source: source.aggregate(Total(Plain(("x",))))).args == error.args
    source.check([])
    read(whole, SCHEMA).check(["y", "k"])


def test_a_column_that_is_there_twice(tmp_path):
    twice = frame(3)[["x", "x", "y"]]
    twice.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "u.csv").write_text("x,x,y\n1,2,3\n")
    whole = pa.table([[1.0], [2.0]], names=["x", "x"])
    for data in (twice, tmp_path / "u.csv", whole, pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches())):
        assert "more than one column 'x'" in str(raised(lambda data=data: read(data, SCHEMA).check(["x"])))


def test_paths(tmp_path):
    (tmp_path / "t.sas7bdat").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    (tmp_path / "none.csv").write_text("")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\n1\n")
    (tmp_path / "quote.csv").write_bytes(b'a,"b\n1,2\n')
    (tmp_path / "d.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    cases = {
        "t.sas7bdat": "ending that is not known",
        "missing.csv": "there is no file",
        "empty": "holds no .parquet file",
        "t.parquet": "Parquet",
        "none.csv": "no readable header",
        "bytes.csv": "no readable header",
        "quote.csv": "no readable header",
        "pipe.csv": "is not a file",
    }
    for name, words in cases.items():
        for data in (tmp_path / name, str(tmp_path / name), [tmp_path / name]):
            error = raised(lambda data=data: read(data, SCHEMA))
            assert words in str(error)
            assert name in str(error)


def test_things_that_are_no_table():
    assert "give the path of a .csv" in str(raised(lambda: read("nothing", SCHEMA)))
    for data in (3, None, {1, 2}, [1, 2], [], object()):
        assert "confide.read takes" in str(raised(lambda data=data: read(data, SCHEMA)))
    for values in (np.zeros((3, 2)), np.zeros(3), np.zeros((1, 2, 3))):
        assert "schema's order" in str(raised(lambda values=values: read(values, SCHEMA)))
    hidden = np.ma.masked_array(np.zeros((2, 5)), mask=True)
    for data in (hidden, {"x": hidden[:, 0]}):
        assert "filled(np.nan)" in str(raised(lambda data=data: read(data, SCHEMA)))
    assert "one length" in str(raised(lambda: read({"x": [1.0], "y": [1.0, 2.0]}, SCHEMA)))
    assert "column 'x' is a float" in str(raised(lambda: read({"x": 1.0}, SCHEMA)))
    for schema in (3, None, {"x": 1}):
        assert isinstance(raised(lambda schema=schema: read(frame(), schema)), SchemaError)
    for delimiter in ("", ",,", '"', "\n", "é"):
        assert isinstance(raised(lambda d=delimiter: read("nowhere.csv", SCHEMA, delimiter=d)), SchemaError)


def test_another_delimiter(tmp_path):
    frame().to_csv(tmp_path / "t.csv", sep=";", index=False)
    frame().to_csv(tmp_path / "u.csv", index=False)
    one = read(tmp_path / "t.csv", SCHEMA, delimiter=";").aggregate(Gram(Plain(NAMES)))[0]
    assert (one == read(tmp_path / "u.csv", SCHEMA).aggregate(Gram(Plain(NAMES)))[0]).all()


def test_how_cells_were_read_is_no_column_of_the_schema():
    schema = Schema({"y": Numeric(0, 1), "read(y)": Numeric(0, 1), "read(z)": Numeric(0, 1)})
    source = read({"y": [1.0], "read(y)": [1.0], "read(z)": [0.0]}, schema)
    source.check(["y", "read(z)"])
    for row in ("read(y)", "read(w)", "outside(y)", "unread(y)"):
        assert isinstance(raised(lambda row=row: source.check([row])), SchemaError)


def test_dataset_and_schema(tmp_path):
    assert read(frame(), SCHEMA).dataset == "survey"
    assert read(frame(), SCHEMA, dataset="other").dataset == "other"
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    source = read(frame(), tmp_path / "schema.toml")
    assert source.schema == SCHEMA
    assert read(frame(), str(tmp_path / "schema.toml")).schema == SCHEMA


# what is shown ------------------------------------------------------------------------------------


def test_repr_is_the_same_for_all_records(tmp_path):
    forms = [lambda n: frame(n), lambda n: pl.from_pandas(frame(n)), lambda n: parquet(tmp_path / f"{n}.parquet", n)]
    for form in forms:
        one, other = (read(form(n), SCHEMA) for n in (30, 77))
        assert repr(one) == repr(other)
        one.aggregate(Gram(Plain(NAMES)))
        assert repr(one) == repr(other)
    assert (
        repr(read(frame(), SCHEMA))
        == "RecordSource(pandas DataFrame, dataset='survey', columns=('x', 'y', 'k', 'g', 'h'))"
    )


def test_what_stands_behind_a_source_shows_no_record_either(tmp_path):
    """Error reports and the logs of engines print variables: parts, pieces, blocks, columns."""

    def csv(n: int) -> Path:
        frame(n).to_csv(tmp_path / "t.csv", index=False)
        return tmp_path / "t.csv"

    forms = [
        lambda n: frame(n),
        lambda n: frame(n).astype({"g": "category"}),
        lambda n: pa.Table.from_pandas(frame(n)),
        lambda n: pl.from_pandas(frame(n)).lazy(),
        lambda n: pa.Table.from_pandas(frame(n)).to_reader(),
        lambda n: parquet(tmp_path / "t.parquet", n),
        lambda n: f"file://{parquet(tmp_path / 't.parquet', n)}",
        csv,
    ]
    for form in forms:
        assert _behind(read(form(30), SCHEMA)) == _behind(read(form(777), SCHEMA))
    (folder := tmp_path / "hive" / f"person={SECRET}").mkdir(parents=True)
    parquet(folder / "a.parquet")
    assert SECRET not in _behind(read(tmp_path / "hive", SCHEMA))


def _behind(source: Any) -> str:
    """What prints of the first part, piece and block, without addresses in memory."""
    (part, *_) = source._parts
    piece = next(iter(part.pieces(NAMES)))
    return re.sub(r"0x[0-9a-f]+", "", repr((part, piece, next(iter(piece.blocks(10))))))


def test_public_attributes():
    """Nothing private can be asked for by name: only `count`, whose docstring says whom it is for. `lacks` is about columns,
    `check_statistics` about kinds of sums, `reads` about a path of the caller's, `simulated` about rows of the schema."""
    source = read(frame(), SCHEMA)
    public = {name for name in dir(source) if not name.startswith("_")}
    known = {
        "aggregate",
        "bounded",
        "check",
        "check_statistics",
        "coded_again",
        "count",
        "dataset",
        "kept",
        "lacks",
        "opened",
        "reads",
        "rereadable",
        "schema",
        "like",
    }
    assert public == known
    assert "gate" in type(source).count.__doc__


@pytest.mark.parametrize("form", ["csv", "parquet", "pandas", "polars"])
def test_hostile_records_say_nothing(form, tmp_path, capfd, caplog):
    """No exception, warning, output or log line, whatever the cells are."""
    caplog.set_level(logging.DEBUG)
    cells = ["nan", "inf", "1e300", "-1e999", "", SECRET, "\x00", "é" * 50, "2020-01-01", "true", '"', "1,2"]
    text = pd.DataFrame(dict.fromkeys(NAMES, cells))
    if form == "csv":
        data = tmp_path / "t.csv"
        text.to_csv(data, index=False)
        with data.open("ab") as file:
            file.write(b'"\n\xff,\xff\n,,,,,,\n\x00\n')
    elif form == "parquet":
        data = tmp_path / "t.parquet"
        pq.write_table(pa.Table.from_pandas(text), data)
    else:
        data = text.astype(object) if form == "pandas" else pl.from_pandas(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(data, SCHEMA).aggregate(Gram(Plain(NAMES)))
        numbers = {name: [float("nan"), float("inf"), 1e300, -1e300, 5e-324] for name in NAMES}
        read(numbers, SCHEMA).aggregate(Gram(Plain(NAMES)))
        for kind in (np.float32, np.float16, np.longdouble):
            with np.errstate(all="ignore"):
                column = np.array([np.nan, np.inf, 1e300, -1e300], dtype=kind)
            read(dict.fromkeys(NAMES, column), SCHEMA).aggregate(Gram(Plain(NAMES)))
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


PLAIN_X = Plain(("x",))


@dataclass(frozen=True)
class Broken(Statistic):
    """A statistic of a third party that quotes what it saw, in one of its steps."""

    step: str
    error: type[BaseException]
    map: Any = PLAIN_X
    shape: tuple[int, ...] = (1,)
    norm: str = "l2"

    def zero(self) -> int:
        return 0

    def update(self, state: int, codes: Any) -> int:
        if self.step == "update":
            raise self.error(f"{SECRET} {codes[0, 0]}")
        return state

    def merge(self, a: int, b: int) -> int:
        if self.step == "merge":
            raise self.error(SECRET)
        return a

    def value(self, state: int) -> Any:
        if self.step == "value":
            raise self.error(SECRET)
        return np.zeros(1)

    def sensitivity_squared(self, relation: str) -> Any:
        return 1


class Panic(BaseException):
    """What a panic of compiled code looks like: no Exception."""


@pytest.mark.parametrize("error", [ValueError, SchemaError, SourceError, MemoryError, Panic])
@pytest.mark.parametrize("step", ["update", "merge", "value"])
def test_no_error_of_a_worker_comes_through(step, error):
    seen = set()
    for seed in (0, 1):
        caught = raised(lambda seed=seed: read(frame(seed=seed), SCHEMA).aggregate(Broken(step, error)))
        assert type(caught) is SourceError
        assert caught.__cause__ is None
        assert caught.__context__ is None
        seen.add(str(caught))
    assert len(seen) == 1
    assert SECRET not in seen.pop()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_comes_through(error):
    with pytest.raises(error):
        read(frame(), SCHEMA).aggregate(Broken("update", error))


def damaged(path: Path, fraction: float) -> Path:
    """Bytes in the middle overwritten; the footer of a Parquet file stays whole."""
    content = bytearray(path.read_bytes())
    at = int(len(content) * fraction)
    content[at : at + 40] = b"\xff" * 40
    path.write_bytes(bytes(content))
    return path


def test_damaged_files(tmp_path):
    """Readers quote rows, values and sizes in such errors; what remains is the file and the step, on any data."""
    texts = set()
    for seed in (0, 1):
        path = tmp_path / "t.parquet"
        source = read(damaged(parquet(path, 200, seed), 0.05), SCHEMA)
        caught = raised(lambda source=source: source.aggregate(Gram(Plain(NAMES))))
        assert caught.__cause__ is None
        assert caught.__context__ is None
        texts.add(str(caught))
        zipped = tmp_path / "t.csv.gz"
        packed = gzip.compress(b"x,y,k,g,h\n" + b"1,2,3,N,1\n" * 5000 + str(seed).encode())
        zipped.write_bytes(packed[:-20])
        source = read(zipped, SCHEMA)
        for action in (partial(source.aggregate, Gram(Plain(NAMES))), source.count):
            caught = raised(action)
            assert caught.__context__ is None
            texts.add(str(caught))
    assert texts == {f"{str(tmp_path / name)!r} could not be read" for name in ("t.parquet", "t.csv.gz")}


def test_a_query_that_fails(tmp_path):
    lazy = pl.LazyFrame({"x": [SECRET, "text"]}).with_columns(pl.col("x").cast(pl.Float64, strict=True))
    caught = raised(lambda: read(lazy, SCHEMA).aggregate(Total(Plain(("x",)))))
    assert str(caught) == "the polars LazyFrame could not be read"
    assert SECRET not in str(caught)
    assert "text" not in str(caught)
    assert caught.__context__ is None

    def batches() -> Any:
        yield pa.record_batch({"x": [1.0]})
        raise ValueError(SECRET)

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.float64()}), batches())
    caught = raised(lambda: read(reader, SCHEMA).aggregate(Total(Plain(("x",)))))
    assert str(caught) == "the Arrow record batch reader could not be read"
    assert caught.__context__ is None


# files that change, streams that end --------------------------------------------------------------


@pytest.mark.parametrize("change", ["size", "time", "inode", "gone"])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_file_that_changed(name, change, tmp_path):
    path = tmp_path / name
    other = tmp_path / f"other-{name}"
    for target in (path, other):
        frame().to_csv(target, index=False) if name == "t.csv" else parquet(target)
    state = path.stat()
    source = read([path], SCHEMA)
    source.aggregate(Total(Plain(("x",))))
    if change == "size":
        with path.open("ab") as file:
            file.write(b"\n")
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    elif change == "time":
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1_000_000_000))
    elif change == "inode":
        os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
        other.replace(path)
    else:
        path.unlink()
    for action in (lambda: source.aggregate(Total(Plain(("x",)))), lambda: source.check(["x"]), source.count):
        error = raised(action)
        assert "changed since it was opened" in str(error)
        assert name in str(error)


def test_a_file_that_changes_during_the_pass(tmp_path):
    path = parquet(tmp_path / "t.parquet")

    @dataclass(frozen=True)
    class Touching(Broken):
        def update(self, state: int, codes: Any) -> int:
            later = (
                path.stat().st_mtime_ns + 1_000_000_000
            )  # a clock that ticks every few milliseconds may not have moved
            os.utime(path, ns=(later, later))
            return state

    assert "changed" in str(raised(lambda: read(path, SCHEMA).aggregate(Touching("", ValueError))))


def test_a_stream_that_can_be_read_once_is_kept_and_its_size_said_to_whoever_opens_it(capfd):
    whole = pa.Table.from_pandas(frame())
    source = read(pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=4)), SCHEMA)
    said = capfd.readouterr()
    assert said.out == "" and "can be read once" in said.err and "MB" in said.err
    assert source.rereadable and source.count() == whole.num_rows
    for _ in range(2):
        assert (source.aggregate(Gram(Plain(NAMES)))[0] == read(whole, SCHEMA).aggregate(Gram(Plain(NAMES)))[0]).all()
    assert capfd.readouterr() == ("", "")


def test_a_first_line_that_may_be_a_record_is_never_shown(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("4711,32.5,N\n12,3,S\n")
    schema = Schema({"age": Numeric(0, 100)})
    with pytest.raises(SourceError) as missing:
        read(path, schema).check(["age"])
    with pytest.raises(SchemaError) as draft:
        Schema.draft(path)
    for error in (missing, draft):
        said = str(error.value).replace(str(tmp_path), "")
        assert "4711" not in said and "32.5" not in said and "may be a record" in said
