"""Stored outputs of streams, in a file and on a server: many writers, killed writers, rows that were deleted or altered."""

from __future__ import annotations

import multiprocessing
import os
import random
from pathlib import Path
from typing import Any

import pytest

import confide as cf
from tests.ledger.conftest import needs_server, url  # noqa: F401
from tests.messages import refuses

SCHEMA = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)}, dataset="survey")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*protects nobody"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
BUDGET = cf.GDP(20.0, 1e-3, relation="substitute", trust="local")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_server)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """Where the ledger is."""
    return tmp_path / "ledger.db" if request.param == "sqlite" else str(request.getfixturevalue("url"))


def _open(place: str | Path) -> Any:
    book = cf.Ledger.open(place)
    return cf.local.Releaser.open(book, SCHEMA, columns=["x"], noise=2.0, charge_delta=1e-6)


def _rows(count: int, start: int = 0) -> dict[str, list[Any]]:
    return {"id": [str(k) for k in range(start, start + count)], "x": [0.5] * count}


def _write(place: str | Path, count: int, out: int) -> None:
    """The body of a writer: batches of 20 records, each told on `out` when it is published."""
    stream = _open(place)
    os.write(out, b"ready\n")
    for start in range(0, count, 20):
        seen = stream.extend(_rows(20, start), ids="id")
        lines = [f"{start + k} {value!r}\n" for k, value in enumerate(seen.x.tolist())]
        os.write(out, "".join(lines).encode())


def _writer(place: str | Path, count: int) -> tuple[Any, Any]:
    """A forked writer, and what it tells."""
    reader, writer = os.pipe()
    process = multiprocessing.get_context("fork").Process(target=_write, args=(place, count, writer))
    process.start()
    os.close(writer)
    return process, os.fdopen(reader)


def _told(lines: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in lines.splitlines():
        if line.count(" ") == 1:
            one, value = line.split()
            found.setdefault(one, set()).add(value)
    return found


@pytest.mark.long
def test_eight_writers_agree_on_every_output(place: str | Path) -> None:
    book = cf.Ledger.create(place, dataset="survey", budget=BUDGET)
    _open(place)
    writers = [_writer(place, 400) for _ in range(8)]
    told = _told("\n".join(lines.read() for _, lines in writers))
    for process, lines in writers:
        process.join(60)
        lines.close()
        assert process.exitcode == 0
    assert len(told) == 400 and all(len(values) == 1 for values in told.values())
    assert book.verify().ok and [row.kind for row in book.show().rows].count("charge") == 1


@pytest.mark.long
def test_thirty_kills_leave_no_second_output_and_none_unpaid(place: str | Path) -> None:
    """Each writer is killed at a random moment of its work; what any of them showed is what the stream gives for good."""
    book = cf.Ledger.create(place, dataset="survey", budget=BUDGET)
    _open(place).extend(_rows(20), ids="id")  # what writers import is loaded before they are forked
    generator, shown = random.Random(1), ""
    for _ in range(30):
        process, lines = _writer(place, 100_000)
        assert lines.readline() == "ready\n"
        # some batches, and then a moment of the next one
        seen = "".join(lines.readline() for _ in range(20 * generator.randrange(4)))
        process.join(generator.uniform(0, 0.05))
        process.kill()
        process.join()
        shown += (seen + lines.read()).rpartition("\n")[0] + "\n"
        lines.close()
    told = _told(shown)
    assert all(len(values) == 1 for values in told.values()) and len(told) >= 60
    final = _open(place).extend(_rows(len(told)), ids="id")
    given = dict(zip(map(str, range(len(told))), map(repr, final.x.tolist()), strict=True))
    assert all(given[one] in values for one, values in told.items() if one in given)
    kinds = [row.kind for row in book.show().rows]
    assert kinds.count("charge") == 1 and kinds.index("charge") < kinds.index("outputs")
    assert book.verify().ok


def test_the_chain_knows_how_many_outputs_there_are(place: str | Path) -> None:
    book = cf.Ledger.create(place, dataset="survey", budget=BUDGET)
    stream = _open(place)
    first = stream.extend(_rows(5), ids="id")
    before = book.tip
    assert _open(place).extend(_rows(5), ids="id").equals(first) and book.tip == before, "nothing new, no entry"
    stream.extend(_rows(5, 3), ids="id")
    assert book.verify().ok and "8 stored outputs" in [row.note for row in book.show().rows][-1]
    with book._store.writing(creating=True) as connection:
        connection.execute("UPDATE stream_output SET output = ? WHERE id = ?", (b"x" * 8, b"1"))
    assert "was changed" in book.verify().problems[0]
    with book._store.writing(creating=True) as connection:
        connection.execute("DELETE FROM stream_output WHERE id = ?", (b"1",))
    assert "7 stored outputs" in book.verify().problems[0]
    with refuses(cf.errors.PlanError):
        _open(place).extend(_rows(3), ids="id")
    assert _open(place).extend(_rows(1), ids="id").x[0] == first.x[0], "what is stored is given"


@pytest.mark.parametrize("change", ["UPDATE stream_output SET entry = 1 WHERE entry = 3", "DROP TABLE stream_output"])
def test_outputs_under_another_entry_or_without_their_table_are_found(place: str | Path, change: str) -> None:
    book = cf.Ledger.create(place, dataset="survey", budget=BUDGET)
    _open(place).extend(_rows(3), ids="id")
    assert book.verify().ok and book.show().rows[2].kind == "outputs"
    with book._store.writing(creating=True) as connection:
        connection.execute(change)
    assert "the chain says 3" in book.verify().problems[0]


def test_an_older_copy_is_told_by_a_head_that_was_kept(tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=BUDGET)
    _open(book.path).extend(_rows(2), ids="id")
    book.backup(tmp_path / "old.db")
    _open(book.path).extend(_rows(4), ids="id")
    kept, old = book.tip, cf.Ledger.open(tmp_path / "old.db")
    assert old.verify().ok and not old.verify(tips=[kept]).ok
