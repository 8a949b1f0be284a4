"""What typical ledgers grant, and the reliability of the ledger at full size, one JSON line per check.

    python -m confide_lab.benchmarks.ledger [--processes 64] [--charges 100] [--fits 1000] [--kills 200]

On SQLite, and on PostgreSQL when CONFIDE_POSTGRES names a server (a URL whose role may create schemas).

Asked: processes that charge at once are granted exactly what fits and none is lost; after `kill -9`
at random points of a release loop every published release has its charge, the sum is within the budget, and the book
opens and verifies.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from urllib.parse import quote

from confide.errors import BudgetExceeded, LedgerBusy
from confide.guarantees import GDP
from confide.ledger import Charge, Ledger
from confide_lab.benchmarks import ledger_grants

_FORK = multiprocessing.get_context("fork")
_PLAN = "0" * 64
# A kill falls after 0 to 5 releases and a random part of a few more: a charge and its receipt take 1 to 10 ms each.
_RELEASES, _SECONDS = 6, 0.02


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
    for _ in range(count):
        begun = time.perf_counter()
        try:
            granted.append(_charge(book, mu).seq)
        except BudgetExceeded:
            refused += 1
        except LedgerBusy:
            busy += 1
        longest = max(longest, time.perf_counter() - begun)
    results.put((granted, refused, busy, longest))


def contention(kind: str, places: Places, processes: int, charges: int, fits: int) -> dict[str, Any]:
    """Exactly `fits` of processes x charges are granted, in an unbroken chain."""
    mu = 2.0**-6
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
    begun = time.perf_counter()
    for _ in range(count):
        _charge(book, 2.0**-8)
    seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    found = book.verify()
    return {
        "check": f"{kind}: {count} charges by one process",
        "passed": found.ok,
        "charges_per_second": round(count / seconds),
        "verify_ms_per_entry": round(1e3 * (time.perf_counter() - begun) / found.rows, 3),
    }


@contextmanager
def _files() -> Iterator[Places]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield lambda: folder / f"{len(list(folder.iterdir()))}.db"


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


def run(processes: int = 64, charges: int = 100, fits: int = 1000, kill: int = 200) -> list[dict[str, Any]]:
    """All checks on each database, each in a fresh book; prints what it finds."""
    server = os.environ.get("CONFIDE_POSTGRES", "").replace("postgresql+psycopg://", "postgresql://")
    stores = [("SQLite", _files()), *([("PostgreSQL", _schemas(server))] if server else [])]
    checks: tuple[tuple[Callable[..., dict[str, Any]], tuple[int, ...]], ...]
    checks = ((alone, ()), (contention, (processes, charges, fits)), (kills, (kill,)))
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
    given = options.parse_args()
    run(given.processes, given.charges, given.fits, given.kills)


if __name__ == "__main__":
    main()
