"""Totals, limits and terms stand under the hash of the last entry: a charge that finds others in the budget row refuses."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.few import few
from tests.ledger.ledger_workers import charge, gdp, release_digest
from tests.messages import refuses

from confide.errors import BudgetExceeded, PlanError
from confide.guarantees import GDP, ApproxDP, PureDP
from confide.ledger import Ledger
from confide.ledger.chain import TERMS


def sql(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """What any SQLite client can do."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            raw.execute(statement, values)
        raw.commit()


def grants_nothing(path: Path) -> bool:
    """Whether the ledger grants nothing and says so, charged or asked, now and when it is opened again."""
    before = raw_entries(path)
    for ledger in (Ledger.open(path, dataset="survey"), Ledger.open(path)):
        for call in (
            lambda ledger=ledger: charge(ledger, gdp(1.0)),
            lambda ledger=ledger: ledger.preview((gdp(1.0),)),
            lambda ledger=ledger: ledger.amend(GDP(9.0), reason="r"),
            ledger.show,
        ):
            with refuses(PlanError):
                call()
        assert not ledger.verify().ok
    return raw_entries(path) == before


def raw_entries(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT * FROM entry").fetchall()


@pytest.fixture
def spent(path: Path) -> Path:
    """A ledger of GDP(2) with nothing left."""
    ledger = Ledger.create(path, dataset="survey", budget=GDP(2.0))
    for number in range(4):
        ledger.receipt(charge(ledger, gdp(1.0)), release_sha256=release_digest(number), version="test")
    with pytest.raises(BudgetExceeded):
        charge(ledger, gdp(1.0))
    ledger.close()
    return path


@pytest.mark.parametrize(
    "change",
    few(
        [
            "spent_amount = 0",
            "spent_amount = spent_amount - 1",
            "limit_amount = limit_amount * 4",
            "limit_delta = 5",
            "spent_delta = 7",
            "rows_per_unit = 5",
            "unit = 'household'",
            "trust = 'local'",
            "relation = 'substitute'",
            "currency = 'PureDP'",
            "currency = 'ApproxDP', state = 'pair'",
            "stayed_amount = 4",
            "guarantee = replace(guarantee, '0x1.0000000000000p+1', '0x1.8000000000000p+1')",
        ],
        0,
        2,
        4,
        5,
        7,
        8,
        9,
    ),
)
def test_a_row_that_was_edited_grants_nothing(spent: Path, change: str) -> None:
    sql(spent, f"UPDATE budget SET {change}")
    assert grants_nothing(spent)


@pytest.mark.parametrize("column", TERMS)
def test_every_column_of_the_row_is_authenticated(spent: Path, column: str) -> None:
    with closing(sqlite3.connect(spent)) as raw:
        (value,) = raw.execute(f"SELECT {column} FROM budget").fetchone()
    sql(spent, f"UPDATE budget SET {column} = ?", values=(value + 1 if isinstance(value, int) else f"{value}x",))
    assert grants_nothing(spent)


@pytest.mark.parametrize(
    "change",
    [
        "amount = 1",
        """after = replace(after, '"spent_amount":4398046511104', '"spent_amount":0')""",
        "after = ''",
        "method = 'other 1'",
    ],
)
def test_a_last_entry_that_was_edited_with_the_row_grants_nothing(spent: Path, change: str) -> None:
    """Row and last entry agree, and the entry's own hash tells."""
    sql(
        spent,
        f"UPDATE entry SET {change} WHERE seq = (SELECT max(seq) FROM entry)",
        "UPDATE budget SET spent_amount = 0" if "after" in change else "UPDATE budget SET trust = trust",
    )
    assert grants_nothing(spent)


def test_the_last_entry_taken_out_with_its_totals_is_found_by_a_kept_head_alone(path: Path, tmp_path: Path) -> None:
    """What no ledger can tell by itself: an older copy, put back whole, grants again."""
    ledger = Ledger.create(path, dataset="survey", budget=GDP(1.0))
    ledger.backup(tmp_path / "older.db")
    charge(ledger, gdp(1.0))
    kept = ledger.tip
    ledger.close()
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    (tmp_path / "older.db").rename(path)
    again = Ledger.open(path)
    assert again.verify().ok
    (line,) = again.verify(tips=[kept]).problems
    assert "an older copy was put back" in line


def test_a_converted_ledger_is_authenticated_too(path: Path) -> None:
    ledger = Ledger.create(path, dataset="survey", budget=ApproxDP(8.0, 1e-5))
    charge(ledger, PureDP(6.0, relation="add-remove"))
    ledger.convert()
    ledger.close()
    sql(path, "UPDATE budget SET stayed_amount = 0")
    assert grants_nothing(path)


def test_totals_in_an_entry_that_do_not_add_up_are_found_by_verify(spent: Path) -> None:
    """Whoever hashes the last entry anew deceives a charge, and not the walk through the chain."""
    from confide.ledger.chain import row_hash

    with closing(sqlite3.connect(spent)) as raw:
        raw.row_factory = sqlite3.Row
        row = dict(raw.execute("SELECT * FROM entry ORDER BY seq DESC LIMIT 1").fetchone())
        row["after"] = row["after"].replace('"spent_amount":4398046511104', '"spent_amount":0')
        found = row_hash(row["prev"], row)
        raw.execute("UPDATE entry SET after = ?, hash = ? WHERE seq = ?", (row["after"], found, row["seq"]))
        raw.execute("UPDATE budget SET spent_amount = 0, tip = ?", (found,))
        raw.commit()
    problems = Ledger.open(spent).verify().problems
    assert any("its totals are not what the entries up to it add up to" in line for line in problems)
