"""Whoever changes a book is found: any column of any row, entries cut from the end, an older copy put back."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.ledger.ledger_workers import charge, gdp, release_digest
from tests.messages import refuses

from confide.errors import ConfideError
from confide.guarantees import GDP, ApproxDP, PureDP
from confide.ledger import Ledger, Receipt
from confide.ledger.chain import BUDGET, ENTRY, canonical, guarantee_to_text, row_hash
from confide.ledger.currencies import currency_of

ROWS = {"entry": 7, "budget": 1}
CELLS = [*(("budget", column) for column in BUDGET), *(("entry", column) for column in ENTRY)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Seven entries of every kind, of one dataset among two, in one settled file."""
    folder = tmp_path_factory.mktemp("verify")
    book = Ledger.create(folder / "live.db", dataset="survey", budget=GDP(2.0, 1e-5), note="first wave")
    for number, statement in enumerate((gdp(1.0), ApproxDP(0.1, 1e-6, relation="add-remove"))):
        paid = charge(book, statement, PureDP(4.0, relation="add-remove"))
        book.receipt(paid, release_sha256=release_digest(number), version="0.1.0")
    book.amend(GDP(3.0, 1e-5), reason="second wave")
    charge(book, gdp(0.5))
    Ledger.create(folder / "live.db", dataset="other", budget=GDP(2.0))
    book.backup(folder / "ledger.db")
    assert len(book.show().rows) == ROWS["entry"]
    yield folder / "ledger.db"


def tampered(source: Path, *statements: tuple[str, tuple[Any, ...]]) -> Path:
    """A copy with some SQL run on it, constraints off."""
    target = source.with_name("tampered.db")
    shutil.copy(source, target)
    with closing(sqlite3.connect(target)) as raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")
        for sql, values in statements:
            raw.execute(sql, values)
        raw.commit()
    return target


def problems_of(path: Path, tips: tuple[Receipt | str, ...] = ()) -> tuple[str, ...]:
    """What a steward who opens the file and verifies it gets to see; an error at opening counts."""
    try:
        found = Ledger.open(path, dataset="survey").verify(tips=tips)
    except ConfideError as error:
        return (str(error),)
    assert found.ok == (not found.problems)
    assert "FAIL" in str(found) or found.ok
    return found.problems


def changes(value: Any) -> list[Any]:
    """Other values for a cell: near, of another type, empty, absurd."""
    if isinstance(value, int):
        return [value + 1, value - 1, -value - 1, str(value) + "x", value + 0.5, None, b"\x00", 2**62]
    if value is None:
        return [2, "", "x"]
    flipped = chr(ord(value[-1]) ^ 1) if value else "x"
    return [value[:-1] + flipped, value + " ", "", None, b"\xff", 7, value.upper() + "\ud7ff", "[]"]


def test_the_original_is_fine(original: Path) -> None:
    book = Ledger.open(original, dataset="survey")
    found = book.verify()
    assert (found.ok, found.problems, found.rows, found.without_release) == (True, (), 7, (7,))
    assert found.tip == book.show().tip
    assert str(found).startswith("pass  hash chain, totals and limits of 7 entries")


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.sampled_from(CELLS), st.integers(0, 6), st.integers(0, 7))
def test_any_change_of_any_cell_is_found(original: Path, cell: tuple[str, str], row: int, change: int) -> None:
    table, column = cell
    row %= ROWS[table]
    with closing(sqlite3.connect(original)) as raw:
        query = f"SELECT rowid, {column} FROM {table} WHERE dataset = 'survey' ORDER BY rowid LIMIT 1 OFFSET {row}"
        rowid, value = raw.execute(query).fetchone()
    options = changes(value)
    new = options[change % len(options)]
    try:
        changed = tampered(original, (f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rowid)))
    except sqlite3.IntegrityError:
        return  # the table itself refused
    with closing(sqlite3.connect(changed)) as raw:
        stored = raw.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (rowid,)).fetchone()[0]
    if stored == value and type(stored) is type(value):
        return  # the column's type took the change back
    assert problems_of(changed), f"{table}.{column} of row {row}: {value!r} -> {stored!r} was not found"


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_each_column_of_each_row_is_covered(original: Path, table: str, column: str) -> None:
    """The property above, once for certain in every cell."""
    with closing(sqlite3.connect(original)) as raw:
        cells = raw.execute(f"SELECT rowid, {column} FROM {table} WHERE dataset = 'survey'").fetchall()
    assert len(cells) == ROWS[table]
    for rowid, value in cells:
        new = value + 1 if isinstance(value, int) else "0" * 64 if value != "0" * 64 else "1" * 64
        try:
            changed = tampered(original, (f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rowid)))
        except sqlite3.IntegrityError:
            continue
        assert problems_of(changed), f"{table}.{column} of row {rowid}"


@pytest.mark.parametrize("seq", range(1, 8))
def test_a_row_taken_out_is_found(original: Path, seq: int) -> None:
    assert problems_of(tampered(original, ("DELETE FROM entry WHERE dataset = 'survey' AND seq = ?", (seq,))))


def test_two_rows_exchanged_are_found(original: Path) -> None:
    swap = [
        ("UPDATE entry SET seq = -1, prev = 'x' WHERE dataset = 'survey' AND seq = 2", ()),
        ("UPDATE entry SET seq = 2 WHERE dataset = 'survey' AND seq = 4", ()),
        ("UPDATE entry SET seq = 4 WHERE dataset = 'survey' AND seq = -1", ()),
    ]
    assert problems_of(tampered(original, *swap))


def test_an_entry_that_appears_is_found(original: Path) -> None:
    columns = [column for column in ENTRY if column not in {"seq", "prev", "charge_seq"}]
    names = ", ".join(columns)
    source = "FROM entry WHERE dataset = 'survey' AND seq = 7"
    insert = f"INSERT INTO entry (seq, prev, {names}) SELECT 8, hash, {names} {source}"
    assert any("hash does not match" in line for line in problems_of(tampered(original, (insert, ()))))


def test_what_is_wrong_is_said(original: Path) -> None:
    cheaper = tampered(original, ("UPDATE entry SET amount = amount - 1 WHERE dataset = 'survey' AND seq = 2", ()))
    text = "\n".join(problems_of(cheaper))
    assert "entry 2 of 'survey': was changed after it was written" in text
    assert "the price is not that of GDP(mu=1, add-remove)" in text
    assert "spent_amount in the budget row is not what the chain adds up to" in text


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Path:
    """What someone with the source code would do: change the rows, hash them anew, and set the totals to match."""
    with closing(sqlite3.connect(path)) as raw:
        raw.row_factory = sqlite3.Row
        rows = change([dict(row) for row in raw.execute("SELECT * FROM entry WHERE dataset = 'survey' ORDER BY seq")])
    prev, spent, limit = "0" * 64, [0, 0], rows[0]
    for number, row in enumerate(rows, start=1):
        row.update(seq=number, prev=prev)
        if row["kind"] == "charge":
            spent = [spent[0] + row["amount"], spent[1] + row["delta"]]
        limit = row if row["kind"] in {"open", "amend"} else limit
        terms = {
            **json.loads(row["after"]),
            "guarantee": limit["guarantee"],
            "limit_amount": limit["amount"],
            "limit_delta": limit["delta"],
            "spent_amount": spent[0],
            "spent_delta": spent[1],
        }
        row["after"] = canonical(terms)
        row["hash"] = prev = row_hash(prev, row)
    names = list(rows[0])
    insert = f"INSERT INTO entry ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    update = (
        "UPDATE budget SET spent_amount = ?, spent_delta = ?, entries = ?, tip = ?, "
        "guarantee = ?, limit_amount = ?, limit_delta = ? WHERE dataset = 'survey'"
    )
    totals = (*spent, len(rows), prev, limit["guarantee"], limit["amount"], limit["delta"])
    return tampered(
        path,
        ("DELETE FROM entry WHERE dataset = 'survey'", ()),
        *((insert, tuple(row.values())) for row in rows),
        (update, totals),
    )


@pytest.mark.parametrize("left", [1, 2, 3, 4, 5, 6])
def test_rows_cut_from_the_end_show_through_a_receipt_kept_elsewhere(original: Path, left: int) -> None:
    """The chain alone cannot tell; the last receipt, or the last tip, can."""
    book = Ledger.open(original, dataset="survey")
    receipt, tip = book.find(release_digest(1)), book.show().tip
    assert receipt is not None
    cut = rewrite(original, lambda rows: rows[:left])
    assert problems_of(cut) == ()
    assert any("cut from the end" in line for line in problems_of(cut, (tip,)))
    if left < receipt.seq:
        for item in (receipt, receipt.tip, receipt.release_sha256):
            (line,) = problems_of(cut, (item,))
            assert "cut from the end, an older copy was put back" in line
    else:
        assert problems_of(cut, (receipt, receipt.tip, receipt.release_sha256)) == ()


def test_a_chain_written_anew_shows_through_a_receipt_kept_elsewhere(original: Path) -> None:
    receipt = Ledger.open(original, dataset="survey").find(release_digest(1))
    assert receipt is not None

    def forget_the_first_charge(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [rows[0], *rows[3:]]
        kept[2]["charge_seq"] = 2
        return kept

    anew = rewrite(original, forget_the_first_charge)
    assert problems_of(anew) == ()
    assert any("not in dataset 'survey'" in line for line in problems_of(anew, (receipt,)))


def test_a_change_far_back_reaches_every_later_tip(original: Path) -> None:
    """Each hash holds the one before, so that one tip kept elsewhere vouches for everything up to it."""
    tip = Ledger.open(original, dataset="survey").show().tip

    def another_note(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rows[0]["note"] = "another wave"
        return rows

    anew = rewrite(original, another_note)
    assert problems_of(anew) == ()
    assert any("written anew" in line for line in problems_of(anew, (tip,)))


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("the price is not that of", lambda rows: [row.update(amount=1) for row in rows if row["seq"] == 2]),
        (
            "was charged as PureDP(epsilon=4, add-remove), where GDP(mu=1, add-remove) was due",
            lambda rows: rows[1].update(
                guarantee=guarantee_to_text(PureDP(4.0, relation="add-remove")),
                amount=currency_of(GDP(1.0)).price(PureDP(4.0)).amount,
            ),
        ),
        ("did not fit", lambda rows: rows.insert(3, {**rows[1], "amount": 5 * 2**40, "charge_seq": None})),
        ("the limit is not that of the budget", lambda rows: rows[0].update(amount=9 * 2**40)),
        ("names charge 99", lambda rows: rows[2].update(charge_seq=99)),
        ("has a receipt already", lambda rows: rows[4].update(charge_seq=2)),
        ("its method is not that of charge 2", lambda rows: rows[2].update(method="other")),
        ("a receipt has a price", lambda rows: rows[2].update(amount=1)),
        ("is not among those", lambda rows: rows[1].update(statements="[]")),
        ("no reason is given", lambda rows: rows[5].update(note="")),
        ("unknown kind 'refund'", lambda rows: rows[6].update(kind="refund")),
        ("cannot be read", lambda rows: rows[1].update(guarantee="{}")),
        ("cannot be read", lambda rows: rows[0].update(guarantee="null")),
        (
            "is of another kind than the ledger",
            lambda rows: rows[5].update(guarantee=rows[5]["guarantee"].replace("add-remove", "substitute")),
        ),
        ("a ledger is opened once", lambda rows: rows.append({**rows[0]})),
    ],
)
def test_what_the_entries_say_is_checked_even_when_every_hash_is_right(
    original: Path, said: str, change: Callable[[list[dict[str, Any]]], Any]
) -> None:
    def changed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        change(rows)
        return rows

    try:
        found = problems_of(rewrite(original, changed))
    except sqlite3.IntegrityError:
        assert said == "has a receipt already"  # the tables refuse a second receipt of a charge
        return
    assert any(said in line for line in found), found
    assert not any("hash does not match" in line for line in found)


def test_an_older_copy_put_back_is_found_and_the_open_book_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    book = Ledger.create(path, dataset="survey", budget=GDP(2.0))
    charge(book, gdp(1.0))
    book.backup(tmp_path / "older.db")
    receipt = book.receipt(charge(book, gdp(1.0)), release_sha256=release_digest(1), version="0.1.0")
    assert book.verify(tips=[receipt]).ok
    book.close()
    (tmp_path / "older.db").replace(path)
    found = book.verify(tips=[receipt])
    assert not found.ok
    assert "older copy" in found.problems[0]
    assert book.show().units["spent_amount"] == 2**40


def test_an_open_book_charges_the_file_that_is_there(tmp_path: Path) -> None:
    """A connection to a file that was replaced would go on granting, unseen."""
    path = tmp_path / "ledger.db"
    book = Ledger.create(path, dataset="survey", budget=GDP(2.0))
    book.backup(tmp_path / "older.db")
    charge(book, gdp(1.0))
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    (tmp_path / "older.db").rename(path)
    charge(book, gdp(0.5))
    assert Ledger.open(path).show().units["spent_amount"] == 2**38


def test_an_open_book_does_not_charge_a_file_that_is_gone(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=GDP(2.0))
    charge(book, gdp(0.5))
    (tmp_path / "ledger.db").unlink()
    with refuses(ConfideError):
        charge(book, gdp(0.5))
    assert not book.verify().ok
    assert not (tmp_path / "ledger.db").exists()


def test_a_receipt_of_another_dataset_is_said_so(original: Path) -> None:
    other = Ledger.open(original, dataset="other")
    receipt = Ledger.open(original, dataset="survey").find(release_digest(0))
    assert receipt is not None
    assert "is of dataset 'survey', not 'other'" in other.verify(tips=[receipt]).problems[0]


@pytest.mark.parametrize("garbage", [b"", b"not a database at all" * 300])
def test_verify_never_raises_on_a_broken_file(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "ledger.db"
    book = Ledger.create(path, dataset="survey", budget=GDP(2.0))
    charge(book, gdp(0.5))
    book.close()
    for extra in tmp_path.glob("ledger.db-*"):
        extra.unlink()
    path.write_bytes(garbage)
    assert not book.verify().ok


def test_pages_overwritten_inside_the_file_are_found(original: Path, tmp_path: Path) -> None:
    content = original.read_bytes()
    path = tmp_path / "ledger.db"
    for offset in range(100, len(content), 3001):
        path.write_bytes(content[:offset] + bytes(64) + content[offset + 64 :])
        if content[offset : offset + 64] != bytes(64):
            problems_of(path)  # text or a typed error, never another exception


def test_a_chain_that_was_cut_is_not_charged(original: Path) -> None:
    cut = tampered(original, ("DELETE FROM entry WHERE dataset = 'survey' AND seq = 7", ()))
    book = Ledger.open(cut, dataset="survey")
    with refuses(ConfideError):
        charge(book, gdp(0.1))


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("seq = 9, hash = 'x', charge_seq = NULL", "entry.prev"),  # a second successor of one entry
        ("seq = 9, hash = 'x', prev = 'x'", "entry.charge_seq"),  # a second receipt of one charge
        ("hash = 'x', prev = 'x', charge_seq = NULL", "entry.seq"),
        ("seq = 9, prev = 'x', charge_seq = NULL, amount = -1", "never_refunded"),
        ("seq = 9, prev = 'x', charge_seq = NULL, delta = -1", "never_refunded"),
    ],
)
def test_the_tables_themselves_refuse(original: Path, tmp_path: Path, change: str, constraint: str) -> None:
    shutil.copy(original, tmp_path / "ledger.db")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as raw:
        raw.execute("CREATE TEMP TABLE one AS SELECT * FROM entry WHERE dataset = 'survey' AND seq = 3")
        raw.execute(f"UPDATE one SET {change}")
        with pytest.raises(sqlite3.IntegrityError, match=constraint):
            raw.execute("INSERT INTO entry SELECT * FROM one")
