"""What typical ledgers grant, what a ledger adds to a release, and its reliability at full size, one JSON line per check.

    python -m confide_lab.benchmarks.ledger [--processes 64] [--charges 100] [--fits 1000] [--kills 200] [--rounds 101]

On SQLite, and on PostgreSQL when CONFIDE_POSTGRES names a server (a URL whose role may create schemas).

Asked: in a file, a release of 200 rows takes at most 3 ms of CPU more with a ledger than without, beyond one raw
durable commit, with ten entries and with ten thousand (alternating rounds, one thread each). Processes that charge at
once are granted exactly what fits and none is lost. After `kill -9` at random points of a release loop every published
release has its charge, the sum is within the budget, and the book opens and verifies.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import select
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from urllib.parse import quote

import confide as cf
from confide.engine.planning import plan
from confide.engine.releasing import rehearsed
from confide.errors import BudgetExceeded, LedgerBusy
from confide.guarantees import GDP
from confide.ledger import Charge, Ledger
from confide.ledger.chain import guarantee_to_text, statements_to_text
from confide.ledger.currency import Price
from confide.ledger.storage import rows as ledger_rows
from confide_lab.benchmarks import ledger_grants
from confide_lab.benchmarks.timed import alternating

_FORK = multiprocessing.get_context("fork")
_PLAN = "0" * 64
# A kill falls after 0 to 5 releases and a random part of a few more: a charge and its receipt take 1 to 10 ms each.
_RELEASES, _SECONDS = 6, 0.02
# CPU that a ledger may add to a release beyond a raw durable commit, in ms; the numbers of entries that it is measured with.
_MOST_MS, _ENTRIES = 3.0, (10, 10_000)


#: Gives a fresh place for a book.
Places = Callable[[], str | Path]


def _statement(mu: float) -> tuple[GDP]:
    return (GDP(mu, relation="add-remove"),)


def _charge(book: Ledger, mu: float) -> Charge:
    return book.charge(
        _statement(mu), dataset="bench", unit="record", rows_per_unit=1, method="bench 1", plan_sha256=_PLAN
    )


def _charges(path: str | Path, count: int, mu: float, start: Event, results: SimpleQueue[Any]) -> None:
    book = Ledger.open(path)
    start.wait()
    granted, refused, busy, longest = [], 0, 0, 0.0
    cpu = time.process_time()
    for _ in range(count):
        begun = time.perf_counter()
        try:
            granted.append(_charge(book, mu).seq)
        except BudgetExceeded:
            refused += 1
        except LedgerBusy:
            busy += 1
        longest = max(longest, time.perf_counter() - begun)
    results.put((granted, refused, busy, longest, time.process_time() - cpu))


def contention(kind: str, places: Places, processes: int, charges: int, fits: int) -> dict[str, Any]:
    """Exactly `fits` of processes x charges are granted, in an unbroken chain; all of them where they are fewer."""
    mu, fits = 2.0**-6, min(fits, processes * charges)
    place = places()
    book = Ledger.create(place, dataset="bench", budget=GDP(((fits + 0.999) * mu**2) ** 0.5))
    start, results = _FORK.Event(), _FORK.SimpleQueue()
    workers = [_FORK.Process(target=_charges, args=(place, charges, mu, start, results)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    time.sleep(1.0)
    begun = time.perf_counter()
    start.set()
    outcomes = [results.get() for _ in workers]
    seconds = time.perf_counter() - begun
    for worker in workers:
        worker.join()
    granted = sorted(seq for outcome in outcomes for seq in outcome[0])
    refused, busy = sum(outcome[1] for outcome in outcomes), sum(outcome[2] for outcome in outcomes)
    found = book.verify()
    return {
        "check": f"{kind}: {processes} processes x {charges} charges, budget for {fits}: exactly {fits} granted",
        "passed": granted == list(range(2, fits + 2)) and busy == 0 and found.ok,
        "granted": len(granted),
        "refused": refused,
        "busy": busy,
        "verified": found.ok,
        "seconds": round(seconds, 2),
        "tries_per_second": round(processes * charges / seconds),
        "cpu_ms_per_try": round(1e3 * sum(outcome[4] for outcome in outcomes) / (processes * charges), 3),
        "longest_wait_seconds": round(max(outcome[3] for outcome in outcomes), 2),
    }


def _release_loop(path: str | Path, mu: float, out: int) -> None:
    book = Ledger.open(path)
    os.write(out, b"ready\n")
    while True:
        try:
            paid = _charge(book, mu)
        except BudgetExceeded:
            os.write(out, b"refused\n")
            time.sleep(0.001)
            continue
        os.write(out, f"{paid.seq} {paid.hash}\n".encode())
        book.receipt(paid, release_sha256=f"{paid.seq:064x}", version="bench")


def kills(kind: str, places: Places, count: int, seed: int = 20240607) -> dict[str, Any]:
    """After each of `count` kills: published releases have their charges, the total fits, the book verifies.

    The budget is for 4 releases a kill, amended for each kill, so that some kills fall on refusals.
    """
    moments, mu = random.Random(seed), 2.0**-8
    place = places()
    book = Ledger.create(place, dataset="bench", budget=GDP((4 * mu**2) ** 0.5))
    published: dict[int, str] = {}
    failures: list[str] = []
    unfinished = refusals = 0
    for number in range(count):
        if number:
            book.amend(GDP((4 * (number + 1) * mu**2) ** 0.5), reason=f"kill {number}")
        book.close()
        text, refused = _run_and_kill(place, mu, moments.randrange(_RELEASES), moments.uniform(0.0, _SECONDS))
        refusals += refused
        published.update(text)
        book = Ledger.open(place)
        found, state = book.verify(tips=published.values()), book.show()
        charged = {row.seq: row.hash for row in state.rows if row.kind == "charge"}
        failures += found.problems
        failures += [f"kill {number}: a release without its charge"] * (not published.items() <= charged.items())
        failures += [f"kill {number}: over the budget"] * (state.units["spent_amount"] > state.units["limit_amount"])
        unfinished = state.without_release
    return {
        "check": f"{kind}: kill -9 at {count} random points of a release loop",
        "passed": not failures,
        "failures": failures[:5],
        "published": len(published),
        "unfinished": unfinished,
        "kills_after_the_budget_was_spent": refusals,
    }


def _run_and_kill(path: str | Path, mu: float, releases: int, after: float) -> tuple[dict[int, str], bool]:
    reader, writer = os.pipe()
    loop = _FORK.Process(target=_release_loop, args=(path, mu, writer))
    loop.start()
    os.close(writer)
    text = b""
    while text.count(b"\n") < 1 + releases and b"refused" not in text:
        select.select([reader], [], [], 60)
        said = os.read(reader, 65536)
        if not said:  # the loop failed; its traceback is on the screen
            break
        text += said
    time.sleep(after)
    assert loop.pid is not None
    os.kill(loop.pid, signal.SIGKILL)
    loop.join()
    while chunk := os.read(reader, 65536):
        text += chunk
    os.close(reader)
    lines = text.decode().split("\n")[:-1]
    done = [line.split(" ") for line in lines if line not in {"ready", "refused"}]
    return {int(seq): digest for seq, digest in done}, "refused" in lines


def alone(kind: str, places: Places, count: int = 1000) -> dict[str, Any]:
    """Durable charges a second of one process, and the time to verify them."""
    book = Ledger.create(places(), dataset="bench", budget=GDP(8.0))
    begun, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        _charge(book, 2.0**-8)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    begun = time.perf_counter()
    found = book.verify()
    return {
        "check": f"{kind}: {count} charges by one process",
        "passed": found.ok,
        "charges_per_second": round(count / seconds),
        "cpu_ms_per_charge": round(1e3 * cpu / count, 3),
        "verify_ms_per_entry": round(1e3 * (time.perf_counter() - begun) / found.rows, 3),
    }


def _grown(place: str | Path, entries: int) -> Ledger:
    """A ledger with that many entries, written in one transaction."""
    book, statement = Ledger.create(place, dataset="bench", budget=GDP(500.0)), _statement(2.0**-8)[0]
    text, offered = guarantee_to_text(statement), statements_to_text((statement,))
    columns: dict[str, Any] = {"guarantee": text, "statements": offered, "method": "bench 1", "plan_sha256": _PLAN}
    price = Price(2**24, 0)
    with book._store.writing() as connection:
        account = ledger_rows.locked_account(connection, "bench")
        for _ in range(entries - 1):
            after = account.charged(price)
            _, account = ledger_rows.append(connection, account, after, price=price, kind="charge", **columns)
    return book


@contextmanager
def _raw_commits() -> Iterator[Callable[[], object]]:
    """One durable commit of a row of 2 kB by the driver alone, with the ledger's settings."""
    with tempfile.TemporaryDirectory() as folder:
        raw = sqlite3.connect(Path(folder) / "raw.db", isolation_level=None)
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE entry (text TEXT)"):
            raw.execute(statement)

        def commit() -> None:
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("INSERT INTO entry VALUES (?)", ("x" * 2000,))
            raw.commit()

        yield commit
        raw.close()


def _calls(book: Ledger) -> None:
    """What a release asks of its ledger."""
    about: dict[str, Any] = {"dataset": "bench", "unit": "record", "rows_per_unit": 1}
    statement = _statement(2.0**-8)
    _ = book.relation
    book.check(**about)
    book.preview(statement)
    paid = book.charge(statement, **about, method="bench 1", plan_sha256=_PLAN)
    book.receipt(paid, release_sha256=_PLAN, version="bench")


def added(kind: str, places: Places, rounds: int) -> dict[str, Any]:
    """What a ledger adds to the CPU of a release of 200 rows: counts of four groups.

    The ledger's own calls, and the rehearsal on simulated rows that comes before a charge.
    """
    schema = cf.Schema({"group": cf.Categorical(list("abcd"))}, dataset="bench")
    data = cf.read({"group": [*"abcd"] * 50}, schema, threads=1)
    method, privacy = cf.tables.Counts("group", inference="population"), GDP(2.0**-8)
    books = {entries: _grown(places(), entries) for entries in _ENTRIES}
    planned = plan(method, schema, privacy, ledger=books[10])
    calls: dict[str, Callable[[], object]] = {
        "without": lambda: cf.release(method, data, privacy, ledger=None),
        "rehearsal": lambda: rehearsed(planned, data, None),
    }
    for n, book in books.items():
        calls[f"with_{n}"] = partial(cf.release, method, data, privacy, ledger=book)
        calls[f"ledger_{n}"] = partial(_calls, book)
    with _raw_commits() as commit:
        took = {name: 1e3 * cpu for name, (cpu, _) in alternating({**calls, "raw_commit": commit}, rounds).items()}
    own = {n: took[f"ledger_{n}"] - took["raw_commit"] for n in _ENTRIES}
    whole = {n: took[f"with_{n}"] - took["without"] - took["raw_commit"] for n in _ENTRIES}
    verified = all(book.verify().ok for book in books.values())
    return {
        "check": f"{kind}: CPU of a ledger in a release of 200 rows, at most {_MOST_MS:g} ms beyond a durable commit",
        "passed": verified and (kind != "SQLite" or max(own.values()) <= _MOST_MS),
        "with_the_rehearsal_passed": max(whole.values()) <= _MOST_MS,
        "ledger_over_a_commit": round(took[f"ledger_{_ENTRIES[0]}"] / took["raw_commit"], 1),
        "ratio": round(took[f"with_{_ENTRIES[0]}"] / took["without"], 2),
        **{f"{name}_ms": round(value, 3) for name, value in took.items()},
        **{f"ledger_beyond_a_commit_{n}_ms": round(value, 3) for n, value in own.items()},
        **{f"release_beyond_a_commit_{n}_ms": round(value, 3) for n, value in whole.items()},
    }


@contextmanager
def _files() -> Iterator[Places]:
    with tempfile.TemporaryDirectory() as name:
        numbers = count()
        yield lambda: Path(name) / f"{next(numbers)}.db"


@contextmanager
def _schemas(url: str) -> Iterator[Places]:
    """Schemas of their own on a server, dropped at the end."""
    import psycopg

    made: list[str] = []

    def fresh() -> str:
        made.append(f"bench_{os.getpid()}_{len(made)}")
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f'CREATE SCHEMA "{made[-1]}"')
        return f"{url}{'&' if '?' in url else '?'}options={quote(f'-csearch_path={made[-1]}')}"

    try:
        yield fresh
    finally:
        with psycopg.connect(url, autocommit=True) as server:
            for schema in made:
                server.execute(f'DROP SCHEMA "{schema}" CASCADE')


def run(
    processes: int = 64, charges: int = 100, fits: int = 1000, kill: int = 200, rounds: int = 101
) -> list[dict[str, Any]]:
    """All checks on each database, each in a fresh book; prints what it finds."""
    server = os.environ.get("CONFIDE_POSTGRES", "").replace("postgresql+psycopg://", "postgresql://")
    stores = [("SQLite", _files()), *([("PostgreSQL", _schemas(server))] if server else [])]
    checks: tuple[tuple[Callable[..., dict[str, Any]], tuple[int, ...]], ...]
    checks = (
        (added, (rounds,)),
        (alone, ()),
        (contention, (1, charges, fits)),
        (contention, (processes, charges, fits)),
        (kills, (kill,)),
    )
    rows = ledger_grants.run()
    for kind, opened in stores:
        with opened as places:
            for check, sizes in checks:
                rows.append(check(kind, places, *sizes))
                print(json.dumps(rows[-1]), flush=True)
    if not server:
        print("PostgreSQL: not measured, CONFIDE_POSTGRES names no server", flush=True)
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--processes", type=int, default=64)
    options.add_argument("--charges", type=int, default=100)
    options.add_argument("--fits", type=int, default=1000)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--rounds", type=int, default=101)
    given = options.parse_args()
    run(given.processes, given.charges, given.fits, given.kills, given.rounds)


if __name__ == "__main__":
    main()
