"""The tables on disk: a ledger of format 2 opens, verifies and goes on, and a new one has the same tables to the letter."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.ledger.ledger_workers import gdp

from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.ledger.chain import APPLICATION, FORMAT
from confide.ledger.storage.sqlite import APPLICATION as MARK

# What the datasets of the file end with: entries of every kind, a converted budget, an enforced unit, outputs of a stream.
TIPS = {
    "stream": "600c2d67fab512885fe4ffac1225d48a246745fac2844b4a8f75dd14234bf2c1",
    "survey": "4e4fec4ad6380a8fef207c9b59a366745f4f5be35ab9fad82477068d082e6597",
    "visits": "3dd0ffab1f4e16ae7565af5a89adf45791ecef597e38cf409441becbd8c84f3d",
}


def tables(path: Path) -> dict[str, str]:
    """The statements that made the tables of a file, whatever their white space and quotes."""
    with closing(sqlite3.connect(path)) as raw:
        found = raw.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {
        name: " ".join(sql.split()).replace('"', "").replace("( ", "(").replace(" )", ")").replace(" ,", ",")
        for name, sql in found
    }


@pytest.fixture
def written(path: Path) -> Path:
    """The file of format 2, from its text."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.executescript(Path(__file__).with_name("format_2.sql").read_text(encoding="utf-8"))
        raw.execute(f"PRAGMA application_id = {MARK}")
        raw.execute(f"PRAGMA user_version = {FORMAT}")
    return path


def test_a_ledger_of_format_2_verifies_and_goes_on(written: Path) -> None:
    assert Ledger.datasets(written) == tuple(TIPS)
    for dataset, tip in TIPS.items():
        book = Ledger.open(written, dataset=dataset)
        assert book.tip == tip
        assert book.verify(tips=[tip]).ok
    book = Ledger.open(written, dataset="survey")
    assert [row.kind for row in book.show().rows][::2] == ["open", "receipt", "convert", "receipt", "charge"]
    terms = {"dataset": "survey", "unit": "record", "rows_per_unit": 1}
    paid = book.charge((gdp(0.1),), **terms, method="mean 1", plan_sha256="6" * 64)
    book.receipt(paid, release_sha256="6" * 64, version="0.1.0")
    assert book.verify(tips=[TIPS["survey"]]).ok and len(book.show().rows) == 11
    stream = Ledger.open(written, dataset="stream")
    plan = next(row.plan_sha256 for row in stream.show().rows if row.kind == "charge")
    known = stream.outputs(plan).keep([b"a", b"e"], lambda at: [b"12345678" for _ in at])
    assert known[0] != known[1] == b"12345678" and stream.verify().ok


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET title = 'another' WHERE dataset = 'survey' AND seq = 2",
        "UPDATE stream_output SET output = x'00' WHERE id = x'61'",
        "UPDATE budget SET spent_amount = spent_amount - 1 WHERE dataset = 'visits'",
    ],
)
def test_a_change_of_that_file_is_found(written: Path, change: str) -> None:
    with closing(sqlite3.connect(written)) as raw, raw:
        assert raw.execute(change).rowcount == 1
    assert not all(Ledger.open(written, dataset=dataset).verify().ok for dataset in TIPS)


def test_a_new_file_has_the_same_tables(written: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.db"
    Ledger.create(fresh, dataset="survey", budget=GDP(1.0)).close()
    assert tables(fresh) == tables(written)
    with closing(sqlite3.connect(fresh)) as raw:
        assert raw.execute("PRAGMA application_id").fetchone() == (MARK,)
        assert raw.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_new_ledger_on_a_server_has_the_same_tables(url: str) -> None:
    import psycopg

    Ledger.create(url, dataset="survey", budget=GDP(1.0)).close()
    columns = "SELECT column_name, data_type, character_maximum_length, is_nullable FROM information_schema.columns"
    rules = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass ORDER BY 1"
    with psycopg.connect(url) as session:
        kinds = session.execute(f"{columns} WHERE table_schema = current_schema() AND table_name = 'stream_output'")
        assert sorted(kinds.fetchall()) == [
            ("charge", "bigint", None, "NO"),
            ("dataset", "character varying", 200, "NO"),
            ("entry", "bigint", None, "NO"),
            ("id", "bytea", None, "NO"),
            ("output", "bytea", None, "NO"),
        ]
        assert [rule for (rule,) in session.execute(rules, ("entry",))] == [
            "CHECK (((amount >= 0) AND (delta >= 0)))",
            "FOREIGN KEY (dataset) REFERENCES budget(dataset)",
            "FOREIGN KEY (dataset, charge_seq) REFERENCES entry(dataset, seq)",
            "PRIMARY KEY (dataset, seq)",
            "UNIQUE (dataset, charge_seq)",
            "UNIQUE (dataset, prev)",
        ]
        assert session.execute("SELECT application, format FROM confide_ledger").fetchall() == [(APPLICATION, FORMAT)]
