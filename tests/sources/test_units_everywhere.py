"""500 rows of one person are one row's worth from every kind of source and on an executor, kept or by weight; so are rows of one id that
lie in several files, batches and types."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from tests.sources.executors_toy import Here
from tests.sources.records import Plain

import confide as cf
from confide.core import Gram
from confide.core.units.privacy_unit import Weighted

COLUMNS = {"x": cf.Numeric(0, 1), "g": cf.Categorical(["n", "s"])}
SUMS = Gram(Plain(("x", "g")), entry_bits=20)


def people() -> pd.DataFrame:
    """300 persons of one row each."""
    rng = np.random.default_rng(3)
    return pd.DataFrame({"pid": np.arange(300), "x": rng.random(300), "g": rng.choice(["n", "s"], 300)})


def crowded() -> pd.DataFrame:
    """The same, where person 7 owns 500 rows, anywhere."""
    data = people()
    return pd.concat([data, *[data.iloc[[7]]] * 499]).sample(frac=1, random_state=1, ignore_index=True)


def _files(at: Path, data: pd.DataFrame) -> Path:
    """Parquet files of row groups of 61, the ids as whole numbers, text and floats in turn."""
    for number, kind in enumerate((int, str, float)):
        own = data.iloc[number::3]
        own.assign(pid=own.pid.astype(kind)).to_parquet(at / f"{number}.parquet", row_group_size=61)
    return at


def _csv(at: Path, data: pd.DataFrame) -> list[Path]:
    data.iloc[:400].to_csv(at / "1.csv", index=False)
    data.iloc[400:].to_csv(at / "2.csv.gz", index=False)
    return [at / "1.csv", at / "2.csv.gz"]


def _hive(at: Path, data: pd.DataFrame) -> Path:
    parts = ds.partitioning(pa.schema([("g", pa.string())]), flavor="hive")
    ds.write_dataset(pa.Table.from_pandas(data, preserve_index=False), at, format="parquet", partitioning=parts)
    return at


def _sqlite(at: Path, data: pd.DataFrame) -> Any:
    with sqlite3.connect(at / "people.db") as book:
        data.to_sql("people", book, index=False)
    return cf.sql(f"sqlite:///{at / 'people.db'}", "select * from people")


def _duckdb(at: Path, data: pd.DataFrame) -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().from_arrow(pa.Table.from_pandas(data, preserve_index=False))


SOURCES: dict[str, Callable[[Path, pd.DataFrame], Any]] = {
    "pandas": lambda at, data: data,
    "polars": lambda at, data: pl.from_pandas(data),
    "lazy": lambda at, data: pl.from_pandas(data).lazy(),
    "arrow": lambda at, data: pa.Table.from_pandas(data),
    "reader": lambda at, data: pa.Table.from_pandas(data).to_reader(max_chunksize=50),
    "function": lambda at, data: lambda: pa.Table.from_pandas(data).to_reader(max_chunksize=50),
    "mapping": lambda at, data: {name: data[name].to_numpy() for name in data},
    "Parquet": _files,
    "CSV": _csv,
    "hive folders": _hive,
    "SQLite": _sqlite,
    "DuckDB": _duckdb,
}


@pytest.mark.parametrize("rule", ["keep", "weight"])
@pytest.mark.parametrize("form", [*SOURCES, "executor"])
def test_500_rows_of_one_person_are_one_rows_worth(form: str, rule: str, tmp_path: Path) -> None:
    schema = cf.Schema(COLUMNS, unit=cf.Unit("pid", rule=rule))
    exact = Weighted(SUMS, 1) if rule == "weight" else SUMS

    def sums(data: Any, **more: Any) -> list[Any]:
        with cf.read(data, schema, **more).bounded(whole=rule == "weight") as source:
            return source.aggregate(exact)[0].tolist()

    once = sums(people())
    if form == "executor":
        assert sums(_files(tmp_path, crowded()), executor=Here()) == once
    else:
        assert sums(SOURCES[form](tmp_path, crowded())) == once
    assert once[0][0] == 300
