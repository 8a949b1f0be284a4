"""What is charged can have its receipt: on a disk that others fill in between, and under a limit on the size of files."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from confide.errors import LedgerBusy
from confide.guarantees import GDP
from confide.ledger import Charge, Ledger

ABOUT = {"dataset": "survey", "unit": "record", "rows_per_unit": 1, "method": "mean 1", "plan_sha256": "0" * 64}
SMALL = (GDP(0.01, relation="add-remove"),)


def fresh(path: Path, journal: str = "WAL") -> Ledger:
    Ledger.create(path, dataset="survey", budget=GDP(2.0)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()[0].upper() == journal
    return Ledger.open(path)


def charges_until_refused(ledger: Ledger, others: Path | None = None) -> int:
    """Charges with their receipts, until one is refused, at most 20; others: a file that fills the disk between charge and receipt."""
    for number in range(20):
        try:
            charge = ledger.charge(SMALL, **ABOUT)
        except LedgerBusy:
            return number
        if others is not None:
            fill(others)
        ledger.receipt(charge, release_sha256=f"{number:064x}", version="1")
        if others is not None:
            others.unlink()
    return 20


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4_096)):
            pass


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def tiny_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    if not sys.platform.startswith("linux"):
        pytest.skip("no tmpfs here")
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder]
    made = subprocess.run(words, capture_output=True, check=False)
    if made.returncode:
        pytest.skip("this account may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
@pytest.mark.parametrize("limit", [*range(40_960, 122_880, 12_288), 640_000, 700_000])
def test_no_limit_on_files_comes_between_charge_and_receipt(path: Path, journal: str, limit: int) -> None:
    ledger = fresh(path, journal)
    with file_limit(limit):
        done = charges_until_refused(ledger)
    assert (limit < 600_000) == (done == 0)
    state = ledger.show()
    assert (state.without_release, len(state.rows)) == (0, 1 + 2 * done)
    assert ledger.verify().ok


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
@pytest.mark.parametrize("free", [*range(128, 216, 22), 400, 440])
def test_a_disk_that_others_fill_between_charge_and_receipt_has_room_for_it(
    tmp_path: Path, journal: str, free: int
) -> None:
    with tiny_disk(tmp_path / "disk", free) as disk, closing(fresh(disk / "ledger.db", journal)) as ledger:
        done = charges_until_refused(ledger, disk / "others")
        assert (free < 300) == (done == 0)
        assert ledger.show().without_release == 0
        assert ledger.verify().ok


def room_taken(folder: Path) -> int:
    """Bytes in files without a name that this process holds in a folder."""
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(one.readlink()).startswith(str(folder)):
                held = one.stat()
                found += 0 if held.st_nlink else held.st_blocks * 512
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not list open files")
def test_room_is_given_back_with_the_receipt_and_with_a_charge_that_is_dropped(path: Path) -> None:
    ledger = fresh(path)
    paid: Charge | None = ledger.charge(SMALL, **ABOUT)
    dropped: Charge | None = ledger.charge(SMALL, **ABOUT)
    assert room_taken(path.parent) >= 2 * 250_000
    assert paid is not None
    ledger.receipt(paid, release_sha256="1" * 64, version="1")
    assert 250_000 <= room_taken(path.parent) < 2 * 250_000
    del dropped
    assert room_taken(path.parent) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_ends_leaves_the_room_and_one_that_lives_does_not_keep_it(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 500) as disk, closing(fresh(disk / "ledger.db")) as ledger:
        charge = ledger.charge(SMALL, **ABOUT)
        os.waitpid(os.fork() or os._exit(0), 0)
        awake, wake = os.pipe()
        if not (living := os.fork()):
            os.close(wake)
            os.read(awake, 1)  # until the parent ends it
            os._exit(0)
        fill(disk / "others")
        try:
            ledger.receipt(charge, release_sha256="1" * 64, version="1")
        finally:
            os.close(wake)
            os.waitpid(living, 0)
        assert ledger.verify().ok


def test_a_long_statement_takes_more_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    ledger = fresh(path)
    room = type(ledger._store).room
    monkeypatch.setattr(type(ledger._store), "room", lambda self, size: asked.append(size) or room(self, size))
    ledger.charge(SMALL, **ABOUT)
    ledger.charge(SMALL, **{**ABOUT, "method": "m" * 100_000})
    assert asked[1] - asked[0] >= 99_000
