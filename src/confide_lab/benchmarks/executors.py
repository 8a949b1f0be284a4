"""CPU of whole releases on Dask and on Spark, two workers of this machine, beside one thread, with the same bits.

CPU is user and system time of this process and of all that it started (workers, the scheduler, Java), for one release. Clusters are started
before, and a release of few records warms them up, because a cluster serves many releases. `confide lab bench executors`;
CONFIDE_BENCH_EXECUTORS (default 20000000) numbers of records, CONFIDE_BENCH_ENGINES (default "Dask Spark"; one that is not installed is
left out, and said), CONFIDE_BENCH_FOLDER (default out/bench) where files and spools go; they are removed.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

import confide as cf
from confide_lab.benchmarks.scale import FEATURES, LINE, RECORDS, made

__all__ = ["run"]

SIZES = tuple(int(float(size)) for size in os.environ.get("CONFIDE_BENCH_EXECUTORS", "20000000").split())
ENGINES = tuple(os.environ.get("CONFIDE_BENCH_ENGINES", "Dask Spark").split())
FOLDER = Path(os.environ.get("CONFIDE_BENCH_FOLDER", "out/bench")) / "executors"
_FEW = 20_000

TASKS: dict[str, tuple[Any, float]] = {
    "default regression, ten features": (cf.regression.LeastSquares(LINE), 2.0),
    "means of ten columns": (cf.tables.Means(" + ".join(FEATURES) + " ~ ill", inference="population"), 1.5),
}


@contextmanager
def _dask() -> Iterator[Any]:
    import distributed

    engine: Any = distributed
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with engine.LocalCluster(**settings) as cluster, engine.Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    building = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = building.config("spark.driver.host", "127.0.0.1").config("spark.log.level", "OFF").getOrCreate()
    try:
        yield session
    finally:
        session.stop()


_STARTED: dict[str, tuple[str, Callable[[], Any]]] = {"Dask": ("distributed", _dask), "Spark": ("pyspark", _spark)}


def cpu_of_all() -> float:
    """User and system seconds of this process and of all below it, those that ended and were waited for included."""
    own = psutil.Process()
    total = 0.0
    for one in (own, *own.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _measured(method: Any, files: list[Path], **given: Any) -> tuple[float, float, str]:
    """CPU and wall seconds of a release, and its digest."""
    source = cf.read(files, RECORDS, **given)
    start, used = time.perf_counter(), cpu_of_all()
    done = cf.release(method, source, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(7))
    return cpu_of_all() - used, time.perf_counter() - start, done.sha256


def run() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        folder = FOLDER / f"{n}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            few = [file for number in range(4) for file in made(_FEW, folder / f"few{number}")]
            files = made(n, folder / "all")
            print(f"\n{n:,} records{'':24}{'CPU s':>9}{'wall s':>9}{'times':>8}")
            alone = {}
            for task, (method, _) in TASKS.items():
                _measured(method, few, threads=1)
                alone[task] = _measured(method, files, threads=1)
                print(f"{'one thread: ' + task:42}{alone[task][0]:9.1f}{alone[task][1]:9.1f}", flush=True)
            for engine in ENGINES:
                rows += _on(engine, n, few, files, alone)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return rows


def _on(engine: str, n: int, few: list[Path], files: list[Path], alone: dict[str, Any]) -> Iterator[dict[str, Any]]:
    package, started = _STARTED[engine]
    try:
        __import__(package)
    except ImportError:
        print(f"{engine}: {package} is not installed", flush=True)
        return
    with started() as where:
        for task, (method, bar) in TASKS.items():
            for _ in range(2):  # both workers import what they need
                _measured(method, few, executor=where)
            cpu, wall, digest = _measured(method, files, executor=where)
            one, _, expected = alone[task]
            ratio = cpu / one
            print(f"{engine + ': ' + task:42}{cpu:9.1f}{wall:9.1f}{ratio:8.2f}", flush=True)
            yield {
                "check": f"{engine}, {task}, {n:,} records: at most {bar:g} times the CPU of one thread, the same bits",
                "passed": ratio <= bar and digest == expected,
                "same": digest == expected,
                "ratio": round(ratio, 2),
                "cpu": round(cpu, 1),
                "wall": round(wall, 1),
                "one_thread": round(one, 1),
            }
