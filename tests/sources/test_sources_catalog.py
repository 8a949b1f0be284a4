"""Tables of databases by name: what a catalogue says, what is refused, and that no address is repeated."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import SourceError
from confide.schema.draft import fields_of
from confide.schema.layout import FileLayout
from confide.sources import Database, read
from confide.sources.formats.databases import table_at

SERVER = os.environ.get("CONFIDE_POSTGRES", "").replace("postgresql+psycopg://", "postgresql://")
SCHEMA = cf.Schema({"age": cf.Integer(0, 99), "region": cf.Categorical(["N", "S"])})
ODD = 'odd "name/x'


@pytest.fixture
def lite(tmp_path: Path) -> Path:
    pytest.importorskip("adbc_driver_sqlite")
    with sqlite3.connect(tmp_path / "a.sqlite") as made:
        made.execute("create table answers (age int, region text, w boolean, y double precision, untyped, born blob)")
        made.execute(f'create table "{ODD.replace(chr(34), chr(34) * 2)}" (age int)')
        made.executemany("insert into answers (age, region) values (?, ?)", [(k, "NS"[k % 2]) for k in range(60)])
        made.execute("create view seen as select * from answers")
        made.execute("create virtual table found using fts5(region)")
    made.close()
    return tmp_path / "a.sqlite"


@pytest.fixture
def duck(tmp_path: Path) -> Path:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        made.execute(
            "create table answers (age integer, region varchar, w boolean, y decimal(9, 2), d date, l integer[])"
        )
        made.execute("insert into answers (age, region) select k, if(k % 2 = 0, 'N', 'S') from range(60) t(k)")
        made.execute("create schema other")
        made.execute("create table other.answers (x double)")
        made.execute("create view seen as select * from read_text('/etc/hostname')")
    return tmp_path / "a.duckdb"


def _kinds(fields: tuple[tuple[str, str, str], ...]) -> dict[str, str]:
    return {name: kind for name, kind, _ in fields}


def test_tables_and_types_of_files(lite: Path, duck: Path) -> None:
    own = Database.at(lite).tables()
    assert [name for name in own if not name.startswith("found")] == ["answers", ODD] and "found" not in own
    kinds = {"age": "integer", "region": "categorical", "w": "boolean", "y": "numeric"}
    assert _kinds(own["answers"]) == kinds | {"untyped": "?", "born": ""}
    found = Database.at(duck).tables()
    assert list(found) == ["answers", "other.answers"]
    assert _kinds(found["answers"]) == kinds | {"d": "date", "l": ""}
    assert [one[:3] for one in fields_of(table_at(duck / "answers"), FileLayout())[0]] == list(found["answers"])


def test_the_same_integers_as_the_query(lite: Path, duck: Path) -> None:
    for place, address in ((lite, "sqlite"), (duck, "duckdb")):
        named = read(place / "answers", SCHEMA)
        asked = read(cf.sql(f"{address}:///{place}", "select * from answers"), SCHEMA)
        assert named.count() == asked.count() == 60 and named.rereadable
        done = [
            cf.release(
                cf.tables.Counts("region", inference="dataset"),
                one,
                cf.GDP(1.0),
                ledger=None,
                noise=cf.noise.SimulatedNoise(1),
            )
            for one in (named, asked)
        ]
        assert done[0].sha256 == done[1].sha256
    assert read(f"{lite}/{ODD}", cf.Schema({"age": cf.Integer(0, 99)})).count() == 0


@pytest.mark.parametrize("name", ["{}/answers", "env:CLINIC/answers"])
def test_a_file_of_duckdb_is_read_without_access_to_others(
    duck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setenv("CLINIC", f"duckdb:///{duck}")
    (tmp_path / "other.csv").write_text("x\n1\n")
    found = table_at(name.format(duck))
    assert found is not None
    with found.connect() as opened:
        for asked in (f"select * from '{tmp_path}/other.csv'", "insert into answers (age) values (1)"):
            with pytest.raises(duckdb.Error):
                opened.execute(asked)


def test_columns_that_are_computed_in_each_pass(duck: Path, lite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two passes of one release would read two values; the table is as little records as a view is."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(duck)) as made:
        made.execute("create table drawn (age integer, g double generated always as (age * random()) virtual)")
        made.execute("create table usual (age integer default 3)")
    with sqlite3.connect(lite) as made:
        made.execute("create table drawn (age int, g int generated always as (abs(age)) virtual)")
        made.execute("create table usual (age int, g int generated always as (abs(age)) stored)")
    made.close()
    for place, scheme in ((duck, "duckdb"), (lite, "sqlite")):
        monkeypatch.setenv("CLINIC", f"{scheme}:///{place}")
        for name in (str(place), "env:CLINIC"):
            own = Database.at(name).tables()
            assert "drawn" not in own and "usual" in own
            with refuses(SourceError):
                read(f"{name}/drawn", cf.Schema({"age": cf.Integer(0, 99)}))


def test_the_tables_of_a_ledger_are_no_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "ledger.db"
    monkeypatch.setenv("BOOK", f"sqlite:///{place}")
    with closing(
        cf.Ledger.create(place, dataset="survey", budget=cf.GDP(1.0))
    ):  # its header may still be in the journal
        assert Database.at(place).tables() == Database.at("env:BOOK").tables() == {}
    for name in (f"{place}/entry", "env:BOOK/entry"):
        with refuses(SourceError):
            read(name, SCHEMA)


def test_a_draft_of_a_table(duck: Path) -> None:
    text = cf.Schema.draft(table_at(duck / "answers"))
    assert "[columns.region]" in text and '[columns.d]\nkind = "date"' in text


@pytest.mark.parametrize("table", ["", "/nothing", "/seen", "/answers/x", "/found"])
def test_what_is_no_table(lite: Path, table: str) -> None:
    with pytest.raises(SourceError):
        read(f"{lite}{table}", SCHEMA)


def test_what_is_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("age\n1\n")
    assert table_at(tmp_path / "a.csv") is None and table_at(tmp_path / "none" / "x") is None
    monkeypatch.setenv("CLINIC", "postgresql://me:Pq7XsecretPq7X@127.0.0.1:1/none")
    for name in ("env:CLINIC/answers", "env:NOWHERE/answers"):
        with pytest.raises(SourceError) as error:
            read(name, SCHEMA)
        assert "Pq7X" not in str(error.value) and error.value.__cause__ is None
    with pytest.raises(SourceError):
        Database.at(tmp_path / "a.csv")
    assert "Pq7X" not in repr(Database.at("env:CLINIC"))
    (tmp_path / "hollow.sqlite").write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    with refuses(SourceError):
        read(tmp_path / "hollow.sqlite" / "x", SCHEMA)


def test_a_file_of_another_database_through_a_variable(duck: Path, lite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, scheme in ((lite, "sqlite"), (duck, "duckdb")):
        monkeypatch.setenv("CLINIC", f"{scheme}:///{place}")
        assert read("env:CLINIC/answers", SCHEMA).count() == 60


@pytest.mark.needs("PostgreSQL")
def test_tables_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    pytest.importorskip("adbc_driver_postgresql")
    monkeypatch.setenv("CLINIC", SERVER)
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute("drop schema if exists catalogue_test cascade; create schema catalogue_test")
        server.execute(
            "create table catalogue_test.answers (age int, region varchar, w bool, y numeric(20, 3), d date)"
        )
        server.execute("insert into catalogue_test.answers select k, 'N', true, 1 from generate_series(1, 60) k")
        found = Database.at("env:CLINIC").tables()["catalogue_test.answers"]
        kinds = {"age": "integer", "region": "categorical", "w": "boolean", "y": "numeric", "d": "date"}
        assert _kinds(found) == kinds
        assert read("env:CLINIC/catalogue_test.answers", SCHEMA).count() == 60
        odd = 'odd "; drop table catalogue_test.answers; --'
        server.execute('create table catalogue_test."odd ""; drop table catalogue_test.answers; --" (age int)')
        assert read(f"env:CLINIC/catalogue_test.{odd}", cf.Schema({"age": cf.Integer(0, 99)})).count() == 0
        server.execute("drop schema catalogue_test cascade")
