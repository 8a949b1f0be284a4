"""Queries, functions, readers: whatever gives Arrow streams gives the integers that the table itself does."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messages import refuses
from tests.sources.records import SCHEMA, Plain, table

import confide as cf
from confide.core import Gram
from confide.errors import SchemaError, SourceError
from confide.schema import Numeric, Schema
from confide.sources import read
from confide.sources.formats.tables import plain_cells
from confide.sources.grouping.ids import canonical
from confide.sources.row_by_row import RowSource

NAMES = ("x", "y", "k", "g", "h")
GRAM = Gram(Plain(NAMES))
SECRET = "31415926"


def records(n: int = 500) -> pa.Table:
    return pa.Table.from_pylist(table(n, 3))


class Once:
    """Something with an Arrow stream that nobody knows."""

    def __init__(self, whole: pa.Table) -> None:
        self._reader = pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=37))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader.__arrow_c_stream__(requested_schema)


class OneArray:
    def __init__(self, whole: pa.Table) -> None:
        self._batch = whole.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


def reader(whole: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=41))


def relation(whole: pa.Table) -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().from_arrow(whole).filter("true")


FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "function of a table": lambda t: lambda: t,
    "function of a reader": lambda t: lambda: reader(t),
    "function of a lazy frame": lambda t: lambda: pl.from_arrow(t).lazy(),
    "function of a relation": lambda t: lambda: relation(t),
    "functions": lambda t: [lambda: t.slice(0, 100), lambda: reader(t.slice(100))],
    "reader": reader,
    "unknown stream": Once,
    "one array": OneArray,
    "lazy frame": lambda t: pl.from_arrow(t).lazy().filter(pl.lit(True)),
    "relation": relation,
}


@pytest.mark.parametrize("memory", [192, 0])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_integers_of_the_table_pass_after_pass(form: str, memory: int) -> None:
    whole = records()
    expected = read(whole, SCHEMA).aggregate(GRAM)[0]
    source = read(FORMS[form](whole), SCHEMA, memory=memory)
    assert source.rereadable and source.count() == whole.num_rows
    source.check(NAMES)
    for _ in range(2):
        assert (source.aggregate(GRAM)[0] == expected).all()
    with source.kept(NAMES) as kept:
        for _ in range(2):
            assert (kept.aggregate(GRAM)[0] == expected).all()
    (constant,) = read(FORMS[form](whole), SCHEMA).aggregate(Gram(Plain(())))
    assert constant.tolist() == [[whole.num_rows]]


@pytest.mark.parametrize("form", FORMS)
def test_units_of_each_form(form: str) -> None:
    schema = Schema({"x": Numeric(-2, 2)}, unit=cf.Unit("person"))
    whole = records().append_column("person", pa.array([f"p{i % 90}" for i in range(500)]))
    expected = read(whole, schema).aggregate(Gram(Plain(("x",))))[0]
    assert (read(FORMS[form](whole), schema).aggregate(Gram(Plain(("x",))))[0] == expected).all()


def test_columns_that_cannot_be_read_are_named() -> None:
    whole = records().append_column("when", pa.array([0] * 500, pa.timestamp("us")))
    schema = Schema({"when": Numeric(0, 1), "other": Numeric(0, 1)})
    for form in FORMS.values():
        source = read(form(whole), schema)
        with refuses(SourceError):
            source.check(["when"])
        with refuses(SourceError):
            source.check(["other"])


def test_only_the_columns_of_the_schema_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    whole = pa.table({"x": np.zeros(100_000), "text": ["a" * 1000] * 100_000})
    read(reader(whole), Schema({"x": Numeric(0, 1)}))
    assert "the 1 columns" in (said := capfd.readouterr().err) and ": 0.8 MB" in said


def test_a_disk_without_room_is_a_fixed_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, f"No space left on device: {SECRET}")

    monkeypatch.setattr("confide.sources.formats.streams.tempfile.TemporaryFile", full)
    with pytest.raises(SourceError) as caught:
        read(reader(records()), SCHEMA, memory=0)
    assert SECRET not in str(caught.value) and "disk may be full" in str(caught.value)
    assert caught.value.__context__ is None


def failing() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"x": [1.0]})
        raise ValueError(SECRET)

    return pa.RecordBatchReader.from_batches(pa.schema({"x": pa.float64()}), batches())


def test_what_fails_says_nothing_of_the_records() -> None:
    schema = Schema({"x": Numeric(0, 1)})
    duckdb = pytest.importorskip("duckdb")
    broken = duckdb.connect().sql(
        f"select case when i < 3000 then '1' else '{SECRET}x' end::double as x from range(9000) r(i)"
    )
    for data, words in [
        (failing, "what the function gives could not be read"),
        (lambda: broken, "what the function gives could not be read"),
        (broken, "the DuckDB relation could not be read"),
    ]:
        for action in (
            lambda one: one.aggregate(Gram(Plain(("x",)))),
            lambda one: list(RowSource(one).rowwise(["x"], 10)),
        ):
            with pytest.raises(SourceError) as caught:
                action(read(data, schema))
            assert str(caught.value) == words
            assert caught.value.__context__ is None


def test_a_function_that_fails_or_changes_its_columns() -> None:
    def refuse() -> Any:
        raise ValueError(SECRET)

    with pytest.raises(SourceError) as caught:
        read(refuse, SCHEMA)
    assert SECRET not in str(caught.value) and caught.value.__context__ is None
    made = [pa.table({"x": [1.0]}), pa.table({"x": ["1"]})]
    source = read(lambda: made.pop(0), Schema({"x": Numeric(0, 1)}))
    with pytest.raises(SourceError):
        source.aggregate(Gram(Plain(("x",))))
    with refuses(SourceError):
        read(lambda: 3, SCHEMA)
    with refuses(SourceError):
        read(lambda: lambda: records(), SCHEMA)


def test_a_reader_that_was_kept_is_not_pickled() -> None:
    import pickle

    source = read(reader(records()), SCHEMA)
    with refuses(TypeError):
        pickle.dumps(source._parts[0])


def test_uuids_are_ids_by_their_text() -> None:
    ids = [uuid.UUID(int=7), None, uuid.UUID(int=2**127)]
    cells = pa.array([one and one.bytes for one in ids], pa.uuid())
    expected = [None if one is None else str(one).encode() for one in ids]
    assert canonical(plain_cells(cells)).to_pylist() == expected
    assert canonical(plain_cells(cells.slice(1))).to_pylist() == expected[1:]


def test_names_of_columns_are_no_patterns() -> None:
    """To polars a bare name may be one."""
    names = ("*", "^x.*$", "x y")
    frame = pl.LazyFrame({"^x.*$": [1.0], "x y": [2.0], "*": [3.0], "xz": [4.0]})
    schema = Schema({name: Numeric(0, 9) for name in names})
    asked = Gram(Plain(names))
    assert (read(frame, schema).aggregate(asked)[0] == read(frame.collect(), schema).aggregate(asked)[0]).all()


# folders and file systems -------------------------------------------------------------------------


def folders(at: Path, whole: pa.Table) -> Path:
    """The records in folders named by k, g and nothing else."""
    pq.write_to_dataset(whole, at / "hive", partition_cols=["k", "g"])
    (at / "hive" / "_temporary").mkdir()
    pq.write_table(whole, at / "hive" / "_temporary" / "a.parquet")
    return at / "hive"


def test_folders_named_by_keys_are_columns(tmp_path: Path) -> None:
    whole = records().set_column(3, "g", pa.array(["N W", "S", None, "W/E", "N"] * 100))
    schema = Schema(
        {name: SCHEMA[name] for name in ("x", "y", "k", "h")} | {"g": cf.Categorical(["N W", "S", "W/E", "N"])}
    )
    expected = read(whole, schema).aggregate(GRAM)[0]
    hive = folders(tmp_path, whole)
    assert (read(hive, schema).aggregate(GRAM)[0] == expected).all()
    assert read(hive, schema).count() == 500
    # a unit named by a folder
    of_units = Schema({"x": Numeric(-2, 2)}, unit=cf.Unit("k"))
    assert (
        read(hive, of_units).aggregate(Gram(Plain(("x",))))[0]
        == read(whole, of_units).aggregate(Gram(Plain(("x",))))[0]
    ).all()


def test_a_folder_named_by_an_id_is_in_no_message(tmp_path: Path) -> None:
    folder = tmp_path / "d" / f"person={SECRET}"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1.0], "when": pa.array([0], pa.timestamp("us"))}), folder / "a.parquet")
    schema = Schema({"x": Numeric(0, 1), "when": Numeric(0, 1), "none": Numeric(0, 1)}, unit=cf.Unit("person"))
    source = read(tmp_path / "d", schema)
    texts = [repr(source)]
    with pytest.raises((SourceError, SchemaError)) as caught:
        source.check(["when"])
    texts.append(str(caught.value))
    for change in (lambda: (folder / "a.parquet").write_bytes(b"PAR1"), (folder / "a.parquet").unlink):
        change()
        for action in (lambda: source.check(["x"]), lambda: source.aggregate(Gram(Plain(("x",)))), source.count):
            with pytest.raises(SourceError) as caught:
                action()
            texts.append(str(caught.value))
    (folder / "b.parquet").write_bytes(b"nothing")
    with pytest.raises(SourceError) as caught:
        read(tmp_path / "d", schema)
    texts.append(str(caught.value))
    assert not any(SECRET in text for text in texts)


def test_file_systems_of_arrow(tmp_path: Path) -> None:
    from pyarrow import fs

    whole = records()
    expected = read(whole, SCHEMA).aggregate(GRAM)[0]
    folders(tmp_path, whole.drop_columns(["g", "k"]).append_column("k", whole["k"]).append_column("g", whole["g"]))
    pq.write_table(whole, tmp_path / "t.parquet")
    pl.from_arrow(whole).write_csv(tmp_path / "t.csv")
    here = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    for path in ("t.parquet", "t.csv", "hive", ["t.parquet"]):
        source = read(path, SCHEMA, filesystem=here)
        assert (source.aggregate(GRAM)[0] == expected).all()
        assert source.count() == 500
        by_address = read(
            [f"file://{tmp_path}/{path}"] if isinstance(path, str) else f"file://{tmp_path}/t.parquet", SCHEMA
        )
        assert (by_address.aggregate(GRAM)[0] == expected).all()
    source = read("t.parquet", SCHEMA, filesystem=here)
    pq.write_table(whole.slice(1), tmp_path / "t.parquet")
    with refuses(SourceError):
        source.check(["x"])
    with refuses(SourceError):
        read("nothing.parquet", SCHEMA, filesystem=here)


@pytest.mark.parametrize(
    "address", [f"nothing://me:{SECRET}@bucket/a.parquet", f"s3://me:{SECRET}@/?x=1", f"file://{SECRET}/a"]
)
def test_the_key_of_an_address_is_in_no_message(address: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(address, SCHEMA)
    assert SECRET not in str(caught.value) and caught.value.__context__ is None
