"""What is asked again for each pass is looked at once more before the charge: what is gone by then, or is something else, costs nothing.

Read on a version that looks at nothing, each case below is an error after the charge.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messages import refuses
from tests.needs import need
from tests.sources.executors_toy import Here
from tests.sources.records import Plain

import confide as cf
from confide.core import Total
from confide.errors import SourceError
from confide.sources import read

SERVER = os.environ.get("CONFIDE_POSTGRES", "").replace("postgresql+psycopg://", "postgresql://")
SCHEMA = cf.Schema({"x": cf.Integer(0, 9)}, dataset="survey")
UNITS = cf.Schema({"x": cf.Integer(0, 9)}, dataset="survey", unit=cf.Unit("person"))
SECRET = "p31415926"
FRAME = pd.DataFrame({"x": range(10), "person": range(10)})
Case = tuple[Any, Callable[[], Any]]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Any]:
    with contextlib.closing(cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(9.0))) as made:
        yield made


def refused(source: Any, book: Any) -> str:
    """What is said; nothing is charged."""
    with pytest.raises(SourceError) as caught:
        cf.release(cf.tables.Means("x ~ 1", inference="population"), source, cf.GDP(1.0), ledger=book)
    assert caught.value.__context__ is None and SECRET not in str(caught.value)
    assert not [row for row in book.show().rows if row.kind == "charge"]
    return str(caught.value)


def changed(address: str, statement: str) -> Callable[[], Any]:
    def change() -> None:
        with contextlib.closing(sqlite3.connect(address)) as made:
            made.execute(statement)
            made.commit()

    return change


# files of databases -------------------------------------------------------------------------------


def _sqlite(at: Path) -> Path:
    pytest.importorskip("adbc_driver_sqlite")
    with contextlib.closing(sqlite3.connect(at / "a.sqlite")) as made:
        FRAME.to_sql("answers", made, index=False)
    return at / "a.sqlite"


STATEMENTS = {
    "a table is dropped": "drop table answers",
    "a column is renamed": "alter table answers rename column x to y",
    "there is another column": "alter table answers add column z integer",
}


@pytest.mark.parametrize("way", ["place", "query"])
@pytest.mark.parametrize("what", [*STATEMENTS, "the file is deleted"])
def test_sqlite(way: str, what: str, tmp_path: Path, book: Any) -> None:
    place = _sqlite(tmp_path)
    asked = f"{place}/answers" if way == "place" else cf.sql(f"sqlite:///{place}", "select * from answers")
    source = read(asked, SCHEMA)
    (place.unlink if what not in STATEMENTS else changed(str(place), STATEMENTS[what]))()
    said = refused(source, book)
    assert ("no connection to SQLite" in said) == (what not in STATEMENTS)
    assert place.exists() == (what in STATEMENTS)


def test_sqlite_that_another_process_locks(tmp_path: Path, book: Any) -> None:
    place = _sqlite(tmp_path)
    source = read(f"{place}/answers", SCHEMA)
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('begin exclusive'); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "1\n"
        refused(source, book)
        other.communicate("\n")
    assert source.count() == 10


def test_sqlite_is_opened_as_it_is(tmp_path: Path) -> None:
    """Through names that a URI would read otherwise, with a log beside it, and never made where it is not."""
    place = _sqlite(tmp_path).rename(tmp_path / "a b%20#?.sqlite")
    changed(str(place), "pragma journal_mode = wal")()
    for address in (
        f"sqlite:///{place}",
        f"sqlite:///{place.as_uri()}",
        f"sqlite:///{place.as_uri()}?cache=private&mode=rwc",
    ):
        assert read(cf.sql(address, "select * from answers"), SCHEMA).count() == 10
    for address in (f"sqlite:///{tmp_path}/none.sqlite", f"sqlite:///file:{tmp_path}/none.sqlite?mode=rwc"):
        with refuses(SourceError):
            read(cf.sql(address, "select 1 as x"), SCHEMA)
    assert not (tmp_path / "none.sqlite").exists()
    assert read(cf.sql("sqlite:///:memory:", "select 1 as x"), SCHEMA).count() == 1


@pytest.mark.parametrize("what", ["dropped", "renamed", "deleted"])
def test_duckdb(what: str, tmp_path: Path, book: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    place = tmp_path / "a.duckdb"

    def run(statement: str) -> None:
        with duckdb.connect(str(place)) as made:
            made.execute(statement)

    run("create table answers as select * from range(10) t(x)")
    source = read(f"{place}/answers", SCHEMA)
    actions = {
        "dropped": lambda: run("drop table answers"),
        "renamed": lambda: run("alter table answers rename column x to y"),
        "deleted": place.unlink,
    }
    actions[what]()
    refused(source, book)


@pytest.fixture
def postgres() -> Iterator[tuple[str, Any]]:
    """The address of a database with the table `answers`, and a connection of its owner."""
    need("PostgreSQL")
    pytest.importorskip("adbc_driver_postgresql")
    import psycopg

    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(SERVER) as owner:
        owner.execute(f'create schema "{schema}"')
        owner.execute(f'set search_path = "{schema}"')
        owner.execute("create table answers as select * from generate_series(0, 9) x")
        owner.commit()
        # a look that waits for a lock is before the charge: here it does not wait for long
        settings = f"options=-csearch_path%3D{schema}%20-clock_timeout%3D100ms"
        yield f"{SERVER}{'&' if '?' in SERVER else '?'}{settings}", owner
        owner.rollback()
        owner.execute(f'drop schema "{schema}" cascade')
        owner.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "drop table answers",
        "alter table answers rename x to y",
        "alter table answers alter x type text",
        "lock table answers",
    ],
)
def test_postgresql(statement: str, postgres: tuple[str, Any], book: Any) -> None:
    address, owner = postgres
    source = read(cf.sql(address, "select * from answers"), SCHEMA)
    owner.execute(statement)
    if not statement.startswith("lock"):
        owner.commit()
    refused(source, book)


# frames that are asked ----------------------------------------------------------------------------


def _connection_closed(at: Path) -> Case:
    connection = pytest.importorskip("duckdb").connect()
    return connection.sql("select 1 as x"), connection.close


def _relation_dropped(at: Path) -> Case:
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("create table answers as select 1 as x")
    return connection.sql("select * from answers"), lambda: connection.execute("drop table answers")


def _relation_other(at: Path) -> Case:
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("create table answers as select 1 as x")
    relation = connection.sql("select * from answers")
    return relation, lambda: connection.execute("create or replace table answers as select 'a' as x")


def _relation_file(at: Path) -> Case:
    FRAME.to_parquet(at / "a.parquet")
    return pytest.importorskip("duckdb").sql(f"select * from '{at}/a.parquet'"), (at / "a.parquet").unlink


def _lazy(at: Path) -> Case:
    FRAME.to_parquet(at / "a.parquet")
    return pl.scan_parquet(at / "a.parquet"), (at / "a.parquet").unlink


def _lazy_within(at: Path) -> Case:
    """Two files, one of them behind a glob and a join, in a folder that an id names."""
    (at / f"k={SECRET}").mkdir()
    FRAME.to_csv(at / f"k={SECRET}" / "a.csv", index=False)
    FRAME.to_parquet(at / "a.parquet")
    joined = pl.scan_parquet(at / "a.parquet").join(pl.scan_csv(at / "*" / "*.csv").sort("x"), on="x")
    return joined.filter(pl.col("x") > 2), (at / f"k={SECRET}" / "a.csv").unlink


def _lazy_changed(at: Path) -> Case:
    FRAME.to_parquet(at / "a.parquet")
    return pl.scan_parquet(at / "a.parquet"), lambda: pq.write_table(pa.table({"y": [1]}), at / "a.parquet")


class _Moody:
    """What a function gives: first the first, then the second; an error is raised."""

    def __init__(self, *given: Any) -> None:
        self.given, self.calls = given, 0

    def __call__(self) -> Any:
        self.calls += 1
        one = self.given[min(self.calls, len(self.given)) - 1]
        if isinstance(one, Exception):
            raise one
        return one


def _functions(*given: Any) -> Callable[[Path], Case]:
    return lambda at: (_Moody(*given), lambda: None)


ASKED = {
    "a DuckDB relation without its connection": _connection_closed,
    "a DuckDB relation without its table": _relation_dropped,
    "a DuckDB relation of another type": _relation_other,
    "a DuckDB relation without its file": _relation_file,
    "a LazyFrame without its file": _lazy,
    "a LazyFrame without a file within": _lazy_within,
    "a LazyFrame whose file changed": _lazy_changed,
    "a function that raises": _functions(FRAME, OSError(SECRET)),
    "a function of other columns": _functions(FRAME, FRAME.rename(columns={"x": "y"})),
    "a function of other types": _functions(FRAME, FRAME.astype(str)),
    "a function of what is no table": _functions(FRAME, 3),
    "the second of several functions": lambda at: (
        [_Moody(FRAME), _Moody(FRAME.copy(), OSError(SECRET))],
        lambda: None,
    ),
}


@pytest.mark.parametrize("form", ASKED)
def test_frames_and_functions(form: str, tmp_path: Path, book: Any) -> None:
    given, change = ASKED[form](tmp_path)
    source = read(given, SCHEMA)
    change()
    refused(source, book)


@pytest.mark.parametrize("executor", [None, Here()])
def test_a_function_under_a_unit_and_on_workers(executor: Any, tmp_path: Path, book: Any) -> None:
    refused(read(_Moody(FRAME, OSError(SECRET)), SCHEMA, executor=executor), book)
    budget = cf.GDP(9.0, unit="person")
    with contextlib.closing(cf.Ledger.create(tmp_path / "units.db", dataset="survey", budget=budget)) as units:
        refused(read(_Moody(FRAME, OSError(SECRET)), UNITS, executor=executor), units)


def test_protected_records(tmp_path: Path) -> None:
    """Of `cf.local` too: nothing is charged, and nothing is written."""
    place = _sqlite(tmp_path)
    budget = cf.GDP(9.0, trust="local")
    with contextlib.closing(cf.Ledger.create(tmp_path / "local.db", dataset="survey", budget=budget)) as book:
        for source, change in (
            (read(f"{place}/answers", SCHEMA), place.unlink),
            (read(_Moody(FRAME, OSError(SECRET)), SCHEMA), lambda: None),
        ):
            change()
            with pytest.raises(SourceError):
                cf.local.protect(
                    source, SCHEMA, tmp_path / "out.csv", columns=["x"], noise=0.5, ledger=book, charge_delta=1e-4
                )
        assert not [row for row in book.show().rows if row.kind == "charge"]
    assert not (tmp_path / "out.csv").exists()


def test_the_look_costs_one_call_of_a_release_and_none_of_a_pass(book: Any) -> None:
    function = _Moody(FRAME)
    source = read(function, SCHEMA)
    assert function.calls == 1
    for _ in range(2):
        source.aggregate(Total(Plain(("x",))))
    assert function.calls == 3
    cf.release(cf.tables.Means("x ~ 1", inference="population"), source, cf.GDP(1.0), ledger=book)
    assert function.calls == 5


def test_a_look_reads_no_record(book: Any) -> None:
    """What fails for some records alone fails after the charge: that it does is known from records."""
    broken = pl.LazyFrame({"x": ["1", SECRET]}).select(pl.col("x").cast(pl.Int64))
    with pytest.raises(cf.errors.ReleaseError):
        cf.release(cf.tables.Means("x ~ 1", inference="population"), read(broken, SCHEMA), cf.GDP(1.0), ledger=book)
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"select cast(x as integer) as x from (values ('1'), ('{SECRET}')) t(x)")
    with pytest.raises(cf.errors.ReleaseError):
        cf.release(cf.tables.Means("x ~ 1", inference="population"), read(relation, SCHEMA), cf.GDP(1.0), ledger=book)
