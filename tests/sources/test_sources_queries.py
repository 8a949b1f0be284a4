"""`confide.sql`: PostgreSQL on a real server, SQLite, DuckDB. Same integers, one snapshot, and not a word of address, query or records."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messages import refuses
from tests.needs import need
from tests.sources.records import SCHEMA, Plain, table

import confide as cf
from confide.core import Gram
from confide.errors import ReleaseError, SourceError
from confide.sources import read

NAMES = ("x", "y", "k", "g", "h")
GRAM = Gram(Plain(NAMES))
SERVER = os.environ.get("CONFIDE_POSTGRES", "").replace("postgresql+psycopg://", "postgresql://")
PASSWORD = "Pq7XsecretPq7X"
ALL = "select * from answers"


def records() -> pa.Table:
    return pa.Table.from_pylist(table(400, 5)).append_column("person", pa.array([f"p{i % 70}" for i in range(400)]))


def expected() -> Any:
    return read(records(), SCHEMA).aggregate(GRAM)[0]


@pytest.fixture
def postgres() -> Iterator[str]:
    """The address of a database with the table `answers`."""
    need("PostgreSQL")
    pytest.importorskip("adbc_driver_postgresql")
    import psycopg

    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute(f'CREATE SCHEMA "{schema}"')
        server.execute(
            f'CREATE TABLE "{schema}".answers (x float8, y numeric(30, 20), k int, g text, h char(1), person varchar, at date)'
        )
        with (
            server.cursor() as cursor,
            cursor.copy(f'COPY "{schema}".answers (x, y, k, g, h, person) FROM STDIN') as copy,
        ):
            for row in records().to_pylist():
                copy.write_row([row[name] for name in (*NAMES, "person")])
        yield f"{SERVER}{'&' if '?' in SERVER else '?'}options={quote(f'-csearch_path={schema}')}"
        server.execute(f'DROP SCHEMA "{schema}" CASCADE')


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    pytest.importorskip("adbc_driver_sqlite")
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute("create table answers (x real, y real, k int, g text, h text, person text)")
        made.executemany(
            "insert into answers values (?, ?, ?, ?, ?, ?)", [tuple(row.values()) for row in records().to_pylist()]
        )
    return f"sqlite:///{tmp_path / 'a.db'}"


@pytest.fixture
def duck(tmp_path: Path) -> str:
    duckdb = pytest.importorskip("duckdb")
    pq.write_table(records(), tmp_path / "answers.parquet")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        made.execute(f"create table answers as select * from '{tmp_path}/answers.parquet'")
    return f"duckdb:///{tmp_path / 'a.duckdb'}"


@pytest.fixture(params=["postgres", "sqlite", "duck"])
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


def test_a_query_gives_the_integers_of_the_table(address: str) -> None:
    for query in (ALL, f"{ALL};", f"{ALL} -- all of them", "with a as (select * from answers) select * from a"):
        source = read(cf.sql(address, query), SCHEMA)
        assert source.rereadable and source.count() == 400
        for _ in range(2):
            assert (source.aggregate(GRAM)[0] == expected()).all()
    # numbers that a server gives as text, quoted names
    renamed = read(cf.sql(address, 'select x as "the ""x""" from answers'), cf.Schema({'the "x"': cf.Numeric(-2, 2)}))
    assert (
        renamed.aggregate(Gram(Plain(('the "x"',))))[0] == read(records(), SCHEMA).aggregate(Gram(Plain(("x",))))[0]
    ).all()


def test_units_of_a_query(address: str) -> None:
    schema = cf.Schema({"x": cf.Numeric(-2, 2)}, unit=cf.Unit("person"))
    source = read(cf.sql(address, ALL), schema)
    one = Gram(Plain(("x",)))
    assert (source.aggregate(one)[0] == read(records(), schema).aggregate(one)[0]).all()
    assert source.count() == 70


def connections(postgres: str) -> dict[str, Any]:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    return {"open": dbapi.connect(postgres), "function": lambda: dbapi.connect(postgres)}


@pytest.mark.parametrize("form", ["open", "function"])
def test_connections_of_adbc(postgres: str, form: str) -> None:
    given = connections(postgres)[form]
    source = read(cf.sql(given, ALL), SCHEMA)
    for _ in range(2):
        assert (source.aggregate(GRAM)[0] == expected()).all()
    assert source.count() == 400
    if form == "open":
        with given.cursor() as cursor:  # it is still the caller's
            cursor.execute("select 1")
            assert cursor.fetchall() == [(1,)]
        given.close()


# snapshots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["address", "open", "function"])
def test_all_passes_of_a_release_read_one_snapshot(postgres: str, form: str) -> None:
    import psycopg

    given = postgres if form == "address" else connections(postgres)[form]
    source = read(cf.sql(given, ALL), SCHEMA)
    with source.opened():
        first = source.aggregate(GRAM)[0]
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("delete from answers where k < 5")
            other.execute("insert into answers (x) values (1)")
        assert source.count() == 400
        assert (source.aggregate(GRAM)[0] == first).all()
    assert (first == expected()).all()
    # the next release has its own
    assert source.count() != 400
    assert (source.aggregate(GRAM)[0] != first).any()


def test_a_release_under_substitute_counts_and_reads_one_snapshot(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    from confide.sources.source import RecordSource

    counted = RecordSource.count

    def and_then_changed(self: RecordSource) -> int:
        n = counted(self)
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("delete from answers where k < 5")
        return n

    monkeypatch.setattr(RecordSource, "count", and_then_changed)
    method = cf.tables.Means("x ~ 1", inference="dataset")
    given = {"privacy": cf.GDP(1.0, relation="substitute"), "n": 400, "ledger": None}
    done = cf.release(method, read(cf.sql(postgres, ALL), SCHEMA), noise=cf.noise.SimulatedNoise(3), **given)
    monkeypatch.undo()
    same = cf.release(method, read(records(), SCHEMA), noise=cf.noise.SimulatedNoise(3), **given)
    assert done.sha256 == same.sha256


def test_nothing_stays_open_after_a_release(postgres: str) -> None:
    import psycopg

    asked = "select count(*) from pg_stat_activity where query like '%of them who stay%' and pid <> pg_backend_pid()"
    source = read(cf.sql(postgres, f"{ALL} -- of them who stay"), SCHEMA)
    source.aggregate(GRAM)
    source.count()
    with psycopg.connect(postgres, autocommit=True) as other:
        assert other.execute(asked).fetchone() == (0,)


def test_a_connection_that_is_lost_in_the_middle(postgres: str) -> None:
    """The release fails after the charge, says so, and says nothing else."""
    import psycopg

    source = read(cf.sql(postgres, "select a.* from answers a, generate_series(1, 3000)"), SCHEMA)

    def cut() -> None:
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where query like 'COPY%generate_series(1, 3000)%'"
            )

    class Cutting(Plain):
        def __call__(self, codes: Any) -> Any:
            cut()
            return Plain.__call__(self, codes)

    with pytest.raises(SourceError) as caught:
        source.aggregate(Gram(Cutting(NAMES)))
    assert str(caught.value) == "the query to PostgreSQL could not be read"
    assert caught.value.__context__ is None


# what is said -------------------------------------------------------------------------------------


def said(action: Callable[[], Any]) -> str:
    """Message, repr and whole traceback with the values of our frames' locals."""
    with pytest.raises((SourceError, ReleaseError)) as caught:
        action()
    assert caught.value.__context__ is None
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    trace.stack = traceback.StackSummary.from_list([one for one in trace.stack if "/confide/" in one.filename])
    return "".join(trace.format()) + repr(caught.value)


def test_a_server_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def refuse() -> None:
            while True:
                try:
                    other, _ = listening.accept()
                except OSError:
                    return
                with other:
                    other.recv(1024)
                    # an ErrorResponse that quotes the address: "password authentication failed"
                    words = f"SFATAL\0C28P01\0Mpassword authentication failed for me:{PASSWORD}\0\0".encode()
                    other.sendall(b"E" + (len(words) + 4).to_bytes(4, "big") + words)

        threading.Thread(target=refuse, daemon=True).start()
        address = f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/survey?sslmode=disable&gssencmode=disable"
        query = cf.sql(address, f"select '{PASSWORD}' from answers")
        texts = [repr(query), str(query), said(lambda: read(query, SCHEMA))]
        assert "no connection to PostgreSQL" in texts[2]
        assert not any(PASSWORD in text for text in texts), texts


def test_addresses_that_are_none_are_not_repeated() -> None:
    for address in (f"me:{PASSWORD}@host/db", f"mysql://me:{PASSWORD}@host", f"postgres//{PASSWORD}"):
        assert PASSWORD not in said(lambda address=address: cf.sql(address, "select 1"))
    assert "got int" in said(lambda: cf.sql(3, "select 1"))
    assert "one SELECT" in said(lambda: cf.sql("duckdb://", " "))


def test_a_query_that_the_server_does_not_take(address: str) -> None:
    texts = [
        said(lambda query=query: read(cf.sql(address, query), SCHEMA))
        for query in (
            f"select {PASSWORD} from answers",
            f"drop table answers -- {PASSWORD}",
            f"select * from {PASSWORD}",
        )
    ]
    assert not any(PASSWORD in text for text in texts), texts
    assert read(cf.sql(address, ALL), SCHEMA).count() == 400
    if "postgresql" in address:
        assert "SQLSTATE 42703" in texts[0] and "SQLSTATE 42P01" in texts[2]


# one SELECT ---------------------------------------------------------------------------------------


class Other:
    """A connection to a database that is not known here; idle: its driver prepares nothing."""

    def __init__(self, inner: Any, idle: bool) -> None:
        self.inner, self.idle = inner, idle

    def adbc_get_info(self) -> dict[str, str]:
        return {"vendor_name": "Other"}

    def cursor(self) -> Any:
        cursor = self.inner.cursor()
        if self.idle:
            cursor.adbc_prepare = lambda text: None
        return cursor

    def rollback(self) -> None:
        self.inner.rollback()

    def close(self) -> None:
        self.inner.close()


def opener(address: str) -> Callable[[], Any]:
    """A function that opens a connection to what is behind an address."""
    if address.startswith("duckdb"):
        import duckdb

        return lambda: duckdb.connect(address.removeprefix("duckdb:///"))
    driver = pytest.importorskip(f"adbc_driver_{address.partition(':')[0]}.dbapi")
    return lambda: driver.connect(address.removeprefix("sqlite:///"))


@pytest.fixture(params=["address", "function", "another", "idle"])
def given(request: pytest.FixtureRequest, address: str) -> Any:
    """What is given to `cf.sql`: an address; a function, which says what it opens or does not."""
    if request.param == "address":
        return address
    made = opener(address)
    if request.param == "function":
        return made
    if address.startswith("duckdb"):
        pytest.skip("the package of DuckDB opens no ADBC connection")
    return lambda: Other(made(), request.param == "idle")


TEXTS = [
    "select * from answers); drop table answers; --",
    "select * from answers) as records; drop table answers; select * from (select 1 as x",
    "select * from answers) records; drop table answers; select * from (select 1 as x",
    "select * from answers; drop table answers",
    "select * from answers; select * from answers",
    "select * from answers where g <> ';'; drop table answers",
    "drop table answers",
    "delete from answers",
    "with a as (select 1) delete from answers",
    "with a as (delete from answers returning *) select * from a",
    "insert into answers (x) values (1) returning x",
    "create table other as select * from answers",
    "create view other as select * from answers",
    "copy answers to 'written.csv'",
    "attach 'written.csv' as other",
    "select * from answers /* and then",
    "select * from answers union",
    "-- select * from answers",
]


def test_a_text_that_is_not_one_select(
    given: Any, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by the engine's own reading of it, before anything is charged; nothing of it is run."""
    monkeypatch.chdir(tmp_path)
    for text in TEXTS:
        assert "as one SELECT" in said(lambda text=text: read(cf.sql(given, text), SCHEMA)), text
    assert read(cf.sql(address, ALL), SCHEMA).count() == 400
    assert not (tmp_path / "written.csv").exists()
    assert "as one SELECT" in said(lambda: read(cf.sql(address, "select * from other"), SCHEMA))


def test_nothing_is_written_by_a_query_over_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB runs all statements of a text, and its database in memory may write."""
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    for name in ("records", "as records"):
        text = f"select 1 as x) {name}; copy (select 2) to 'written.csv'; select * from (select 1 as x"
        assert "as one SELECT" in said(lambda text=text: read(cf.sql("duckdb://", text), SCHEMA))
    assert not list(tmp_path.iterdir())


def test_texts_that_are_one_select(given: Any, request: pytest.FixtureRequest) -> None:
    """A semicolon within the text is for the engine to read; where the driver reads nothing, there may be none."""
    for text in (
        "select * from answers where coalesce(g, '') <> ';) drop table answers; --'",
        "select * from answers -- all; of them)",
        "/* all; of them) */ select * from answers",
        "select * from (select * from answers) a;;",
        "with a as (select * from answers) select * from a ;",
        "select * from answers where person <> '' union all select * from answers where person = ''",
    ):
        if "idle" in request.node.name and ";" in text.rstrip("; "):
            assert "as one SELECT" in said(lambda text=text: read(cf.sql(given, text), SCHEMA))
            continue
        assert (read(cf.sql(given, text), SCHEMA).aggregate(GRAM)[0] == expected()).all()


def test_a_text_with_a_zero_in_it(address: str) -> None:
    assert "one SELECT" in said(lambda: cf.sql(address, "select * from answers\0; drop table answers"))


def test_columns_that_differ_by_case(given: Any, address: str) -> None:
    """What is read is what was named: SQLite and DuckDB give the second of them another name, PostgreSQL tells them apart."""
    query = cf.sql(given, 'select x, y as "X" from answers')
    for name, column in (("x", "x"), ("X", "y")):
        schema = cf.Schema({name: SCHEMA[column]})
        if name == "X" and "postgres" not in address:
            assert "no column 'X'" in said(lambda schema=schema: read(query, schema).check(["X"]))
            continue
        found = read(query, schema).aggregate(Gram(Plain((name,))))[0]
        assert (found == read(records(), SCHEMA).aggregate(Gram(Plain((column,))))[0]).all()


def test_no_word_of_it_in_what_is_planned_and_released(postgres: str, tmp_path: Path) -> None:
    address = postgres.replace("postgresql://confide@", f"postgresql://confide:{PASSWORD}@")
    assert PASSWORD in address
    source = read(cf.sql(address, f"select * from answers where '{PASSWORD}' <> ''"), SCHEMA)
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(10.0))
    method = cf.tables.Means("x ~ g", inference="dataset")
    plan = cf.plan(method, SCHEMA, cf.GDP(1.0))
    done = cf.release(plan, source, ledger=book)
    texts = [
        repr(source),
        plan.to_json(),
        done.to_json(),
        str(book.show()),
        repr(plan),
        repr(done),
        repr(source._parts),
    ]
    # a failure after the charge, from cells: the server quotes them
    bad = read(cf.sql(address, f"select (g || '{PASSWORD}')::float8 as x, y, k, g, h from answers"), SCHEMA)
    texts.append(said(lambda: cf.release(plan, bad, ledger=book)))
    assert "the charge stays" in texts[-1] and "SQLSTATE" not in texts[-1]
    # the charge is there
    assert len([row for row in book.show().rows if row.kind == "charge"]) == 2
    assert not any(PASSWORD in text for text in texts)
    raw = (tmp_path / "ledger.db").read_bytes()
    assert PASSWORD.encode() not in raw


def test_addresses_are_not_pickled(sqlite: str) -> None:
    import pickle

    for one in (cf.sql(sqlite, ALL), read(cf.sql(sqlite, ALL), SCHEMA)._parts[0]):
        with refuses(TypeError):
            pickle.dumps(one)


@pytest.mark.parametrize(
    "scheme, package",
    [("postgresql", "adbc-driver-postgresql"), ("sqlite", "adbc-driver-sqlite"), ("duckdb", "duckdb")],
)
def test_a_driver_that_is_not_installed(scheme: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    monkeypatch.setitem(sys.modules, package.replace("-", "_") + ".dbapi", None)
    text = said(lambda: cf.sql(f"{scheme}://me:{PASSWORD}@host/db", "select 1"))
    assert package in text and "pip install 'confide[" in text and PASSWORD not in text


# types of SQLite ----------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", ["", "real", "numeric", "decimal(4, 2)", "text", "integer", "blob"])
@pytest.mark.parametrize(
    "cells",
    [
        [1] * 1999 + [0.5],
        [None] * 1100 + [0.5] * 900,
        [0.5] * 1999 + ["abc"],
        ["0.5"] * 1500 + [1, 0.25, None, b"x"] * 125,
        [b"ab"] * 1100 + [0.1 + 0.2] * 900,
        [2**53 + 1] * 1030 + [1e300 * 1e10, -1e-300, "1e-1"] * 10,
    ],
    ids=["a fraction last", "nothing first", "a word last", "text first", "bytes first", "large first"],
)
def test_no_record_of_sqlite_decides_on_a_type(declared: str, cells: list[Any], tmp_path: Path) -> None:
    """The driver infers a column's type from its first 1,024 rows; what a release reads may not depend on it, or fail for it."""
    pytest.importorskip("adbc_driver_sqlite")
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute(f"create table t (x {declared})")
        made.executemany("insert into t values (?)", [(one,) for one in cells])
        # what SQLite keeps, after the affinity of the column, read by another road
        kept = [one for (one,) in made.execute("select x from t")]
    schema = cf.Schema({"x": cf.Numeric(0, 2)})
    plain = [None if isinstance(one, bytes) else one for one in kept]
    one = Gram(Plain(("x",)))
    expected = read(pa.table({"x": [None if one is None else str(one) for one in plain]}), schema).aggregate(one)[0]
    for shuffled in ("select * from t", "select * from t order by random()"):
        assert (read(cf.sql(f"sqlite:///{tmp_path / 'a.db'}", shuffled), schema).aggregate(one)[0] == expected).all()


def test_an_id_of_sqlite_is_one_id_whatever_its_cells_are(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite")
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute("create table t (person, x real)")
        cells = [1234567890123456, 1234567890123456.0, "1234567890123456", b"1234567890123456", 10**17, 1e17, None, ""]
        made.executemany("insert into t values (?, 1)", [(one,) for one in cells])
    schema = cf.Schema({"x": cf.Numeric(0, 2)}, unit=cf.Unit("person"))
    assert read(tmp_path / "a.db" / "t", schema).count() == 2
