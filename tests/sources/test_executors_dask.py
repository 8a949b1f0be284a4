"""Dask with two workers of this machine: the bits of one thread, with workers killed, tasks that run twice, connections that are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.messages import refuses
from tests.sources.executors_toy import FEW, METHODS, OF_UNITS, SCHEMA, SCHEMAS, digest, files
from tests.sources.records import Plain

import confide as cf
from confide.core import Gram
from confide.core.units.privacy_unit import Weighted
from confide.errors import ReleaseError, SourceError
from confide.sources.executors import executor_of

distributed = pytest.importorskip("distributed", reason="Dask is not installed; pip install 'confide[dask]'")

AGES = Gram(Plain(("age",)))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster, set_as_default=False) as found:
        yield found


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    return files(tmp_path)


@pytest.mark.parametrize("method, schema", FEW)
def test_releases_are_those_of_one_thread(method: str, schema: str, data: list[Path], client: Any) -> None:
    own = SCHEMAS[schema]
    assert digest(method, cf.read(data, own, executor=client)) == digest(method, cf.read(data, own, threads=1))


def test_workers_forget_the_units(data: list[Path], client: Any) -> None:
    cf.read(data, OF_UNITS, executor=client).aggregate(AGES)
    for _ in range(1_200):
        held = [key for keys in client.has_what().values() for key in keys if str(key).startswith("confide-")]
        if not held:
            return
        time.sleep(0.1)
    raise AssertionError(held)


def kept_files(folder: str) -> tuple[int, list[str]]:
    """On a worker: how many draws it keeps codes of, and its open files within a folder."""
    import gc

    from confide.sources.executors.kept import _SPOOLS

    gc.collect()
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += [str(one.readlink())] if folder in str(one.readlink()) else []
    return len(_SPOOLS), found


def test_workers_forget_the_codes(data: list[Path], client: Any, tmp_path: Path) -> None:
    """Kept in a file without a name while the release runs, on each worker that read some; forgotten when it ends."""
    spool = tmp_path / "spool"
    spool.mkdir()
    source = cf.read(data, SCHEMA, executor=client, memory=0, spool=spool)
    with source.kept(("age", "income")) as kept:
        expected = cf.read(data, SCHEMA).aggregate(AGES)[0]
        assert (kept.aggregate(AGES)[0] == expected).all()
        during = client.run(kept_files, str(spool))
        assert any(held == 1 and len(named) == 1 for held, named in during.values())
        assert not list(spool.iterdir())
        assert (kept.aggregate(AGES)[0] == expected).all()
    for _ in range(1_200):
        if all(held == (0, []) for held in client.run(kept_files, str(spool)).values()):
            return
        time.sleep(0.1)
    raise AssertionError(client.run(kept_files, str(spool)))


def test_functions_on_workers(data: list[Path], client: Any) -> None:
    def reads(path: Path) -> Any:
        def table() -> Any:
            import pyarrow.parquet as pq

            return pq.read_table(path)

        return table

    source = cf.read([reads(path) for path in data], SCHEMA, executor=client)
    assert (source.aggregate(AGES)[0] == cf.read(data, SCHEMA).aggregate(AGES)[0]).all()


class Slowly(Plain):
    """A record map that stops at a mark on disk, once: a straggler, or a worker that is killed there."""

    def __call__(self, codes: Any) -> Any:
        mark = Path(self.digest.split(" on ")[1])
        try:
            (mark / "here").touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            (mark / "pid").write_text(str(os.getpid()))
            time.sleep(float((mark / "wait").read_text()))
        return Plain.__call__(self, codes)


def slowly(at: Path, wait: float) -> Gram:
    at.mkdir()
    (at / "wait").write_text(str(wait))

    class Here(Slowly):
        @property
        def digest(self) -> str:
            return f"plain on {at}"

    return Gram(Here(("age",)))


def pid(at: Path) -> int:
    for _ in range(2_400):
        if (at / "pid").exists() and (found := (at / "pid").read_text()):
            return int(found)
        time.sleep(0.05)
    raise AssertionError("no worker came by")


def during(action: Any) -> Any:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


@pytest.mark.long
@pytest.mark.parametrize("schema", ["units", "weight", "both"])
def test_a_worker_that_is_killed_in_the_middle(schema: str, data: list[Path], client: Any, tmp_path: Path) -> None:
    """What it held, units too, is read again by another one."""
    own, at = SCHEMAS[schema], tmp_path / "killed"
    weigh = (lambda one: Weighted(one, own.rows_per_unit)) if schema != "units" else (lambda one: one)
    expected = cf.read(data, own).aggregate(weigh(AGES))[0]
    killer = during(lambda: os.kill(pid(at), signal.SIGKILL))
    found = cf.read(data, own, executor=client).aggregate(weigh(slowly(at, 30.0)))[0]
    killer.join()
    assert (found == expected).all()


@pytest.mark.long
@pytest.mark.parametrize("schema", ["weight", "both"])
def test_files_that_change_under_the_workers(schema: str, data: list[Path], client: Any) -> None:
    """A worker that is lost after the first pass reads its files again; where they are other ones by then, nothing is released."""
    with cf.read(data, SCHEMAS[schema], executor=client).bounded(whole=True) as source:
        source.aggregate(AGES)
        for one in data:
            whole = pq.read_table(one)
            pq.write_table(whole.set_column(0, "age", pc.subtract(91, whole["age"])), one, row_group_size=251)
        client.restart_workers(list(client.scheduler_info()["workers"]))
        with pytest.raises(SourceError, match=r"changed|on a worker|were lost"):
            source.aggregate(AGES)


def killing(client: Any, passes: set[int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kill every worker of a client before these passes of a release over the records; those that were there are listed."""
    from confide.sources.executors.dask import Dask

    run, count, killed = Dask.run, [0], list[int]()

    def lost(self: Any, records: Any, work: Any) -> Any:
        if work.rows:
            count[0] += 1
            if count[0] in passes:
                for one in client.run(os.getpid).values():
                    killed.append(one)
                    os.kill(one, signal.SIGKILL)
        return run(self, records, work)

    monkeypatch.setattr(Dask, "run", lost)
    return killed


@pytest.mark.long
def test_all_workers_are_killed_twice(data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nannies start others, which read again what was kept: the same release, charged once, within two minutes."""
    expected = digest("line", cf.read(data, SCHEMA, threads=1))
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster, set_as_default=False) as own:
        killed = killing(own, {3, 5}, monkeypatch)
        start = time.monotonic()
        assert digest("line", cf.read(data, SCHEMA, executor=own)) == expected
        assert len(killed) == 4 and time.monotonic() - start < 120
        monkeypatch.undo()
        book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0))
        killed = killing(own, {2, 4}, monkeypatch)
        done = cf.release(METHODS["line"], cf.read(data, SCHEMA, executor=own), cf.GDP(1.0), ledger=book)
        assert done.status == "released" and len(killed) == 4
        assert len([row for row in book.show().rows if row.kind == "charge"]) == 1


def test_no_worker_is_left(data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody starts others: an error after the charge, when the time for that is over."""
    monkeypatch.setattr("confide.sources.executors.dask._LOST", 1.0)
    monkeypatch.setattr("confide.sources.executors.dask._ASK", 0.2)
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0))
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with (
        distributed.LocalCluster(**settings, processes=False) as cluster,
        distributed.Client(cluster, set_as_default=False) as own,
    ):
        source = cf.read(data, SCHEMA, executor=own)
        run, count = type(source._executor).run, [0]

        def lost(self: Any, records: Any, work: Any) -> Any:
            count[0] += bool(work.rows)
            if count[0] == 2:
                cluster.sync(cluster.workers[0].close)
            return run(self, records, work)

        monkeypatch.setattr(type(source._executor), "run", lost)
        start = time.monotonic()
        with pytest.raises(ReleaseError, match=r"could not be added up on Dask.*the charge stays"):
            cf.release(METHODS["line"], source, cf.GDP(1.0), ledger=book)
        assert time.monotonic() - start < 60 and count[0] == 2
    assert len([row for row in book.show().rows if row.kind == "charge"]) == 1


@pytest.mark.long
def test_a_scheduler_that_is_killed(data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own, which never says goodbye: an error after the charge, within two minutes."""
    place = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    with (tmp_path / "log").open("wb") as log:
        scheduler = subprocess.Popen([*command, "--scheduler-file", str(place)], stdout=log, stderr=log)
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
        ]
        worker = subprocess.Popen([*command, "--scheduler-file", str(place)], stdout=log, stderr=log)
    try:
        for _ in range(1_200):
            if place.exists():
                break
            time.sleep(0.05)
        client = distributed.Client(scheduler_file=str(place), set_as_default=False)
        book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0))
        source = cf.read(data, SCHEMA, executor=client)
        run = type(source._executor).run
        count = [0]

        def lost(self: Any, records: Any, work: Any) -> Any:
            count[0] += bool(work.rows)
            if count[0] == 2:
                scheduler.kill()
            return run(self, records, work)

        monkeypatch.setattr(type(source._executor), "run", lost)
        start = time.monotonic()
        with pytest.raises(ReleaseError, match="the charge stays"):
            cf.release(METHODS["line"], source, cf.GDP(1.0), ledger=book)
        assert time.monotonic() - start < 120 and count[0] == 2
        assert len([row for row in book.show().rows if row.kind == "charge"]) == 1
        client.close(timeout=5)
    finally:
        for one in (scheduler, worker):
            one.kill()
            one.wait()


def test_a_straggler(data: list[Path], client: Any, tmp_path: Path) -> None:
    found = cf.read(data, SCHEMA, executor=client).aggregate(slowly(tmp_path / "slow", 0.5))[0]
    assert (found == cf.read(data, SCHEMA).aggregate(AGES)[0]).all()


def test_no_scheduler_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.sources.executors.dask._WAIT", 0.5)
    with refuses(SourceError) as caught:
        executor_of("dask://secret@127.0.0.1:1")
    assert "secret" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("closed", ["workers", "cluster", "client"])
def test_what_is_closed_before_the_charge(
    closed: str, data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a scheduler, a scheduler without workers: nothing is charged."""
    monkeypatch.setattr("confide.sources.executors.dask._WAIT", 0.5)
    settings = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "memory_limit": 0,
        "processes": False,
    }
    cluster = distributed.LocalCluster(**settings)
    client = distributed.Client(cluster, set_as_default=False)
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0))
    try:
        source = cf.read(data, SCHEMA, executor=client)
        source.aggregate(AGES)
        {"workers": lambda: cluster.sync(cluster.workers[0].close), "cluster": cluster.close, "client": client.close}[
            closed
        ]()
        with refuses(SourceError):
            cf.release(METHODS["means"], source, cf.GDP(1.0), ledger=book)
    finally:
        client.close(timeout=60)
        cluster.close()
    assert not [row for row in book.show().rows if row.kind == "charge"]


def test_a_scheduler_that_is_lost_in_the_middle(data: list[Path], tmp_path: Path) -> None:
    """An error after the charge that says so."""
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    cluster = distributed.LocalCluster(**settings)
    client = distributed.Client(cluster, set_as_default=False)
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0))
    try:
        source = cf.read(data, SCHEMA, executor=client)
        run = type(source._executor).run

        def lost(self: Any, records: Any, work: Any) -> Any:
            if work.rows:  # none in the pass over no records, before the charge
                cluster.close()
            return run(self, records, work)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(source._executor), "run", lost)
            with refuses(ReleaseError):
                cf.release(METHODS["means"], source, cf.GDP(1.0), ledger=book)
    finally:
        client.close(timeout=60)
        cluster.close()
    assert len([row for row in book.show().rows if row.kind == "charge"]) == 1
