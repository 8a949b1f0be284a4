"""What the tests of the ledger share: short calls, and the bodies of processes that charge a book."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confide.errors import BudgetExceeded
from confide.guarantees import GDP, Guarantee
from confide.ledger import Charge, Ledger

PLAN = "ab" * 32
RELEASE = "cd" * 32
ABOUT: dict[str, Any] = {"dataset": "survey", "unit": "record", "rows_per_unit": 1}


def gdp(mu: float, delta: float = 0.0) -> GDP:
    return GDP(mu, delta, relation="add-remove")


def charge(book: Ledger, *statements: Guarantee) -> Charge:
    about = {**ABOUT, "dataset": book.dataset}
    return book.charge(statements, **about, method="toy 1", plan_sha256=PLAN)


def release_digest(number: int) -> str:
    return f"{number:064x}"


def try_charges(path: str, count: int, mu: float, start: Any, results: Any) -> None:
    """Charge `count` times after the start signal; report (granted seqs, refused)."""
    book = Ledger.open(path, dataset="survey")
    start.wait()
    granted, refused = [], 0
    for _ in range(count):
        try:
            granted.append(charge(book, gdp(mu)).seq)
        except BudgetExceeded:
            refused += 1
    results.put((granted, refused))


def release_loop(path: str, mu: float, out: int) -> None:
    """Charge, publish (a line on `out` once the charge has returned), receipt; until killed or refused."""
    book = Ledger.open(path, dataset="survey")
    os.write(out, b"ready\n")
    try:
        while True:
            paid = charge(book, gdp(mu))
            os.write(out, f"{paid.seq} {paid.hash}\n".encode())
            book.receipt(paid, release_sha256=release_digest(paid.seq), version="test")
    except BudgetExceeded:
        os.write(out, b"refused\n")


def create_dataset(path: str, name: str, start: Any, results: Any) -> None:
    start.wait()
    try:
        Ledger.create(path, dataset=name, budget=GDP(1.0))
        results.put((name, ""))
    except Exception as error:
        results.put((name, f"{type(error).__name__}: {error}"))


def in_child(body: Callable[[], str]) -> str:
    """The text that `body` returns in a forked child, or its exception as text."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = body()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    chunks = []
    while chunk := os.read(reader, 65536):
        chunks.append(chunk)
    os.close(reader)
    os.waitpid(pid, 0)
    return b"".join(chunks).decode()


def settled_copy(book: Ledger, target: Path) -> Path:
    """One file with everything in it, to be tampered with."""
    book.backup(target)
    return target
