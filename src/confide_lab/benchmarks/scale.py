"""Time, memory and spool of whole releases from Parquet, at growing numbers of records, beside DuckDB's scan of the same files.

One process and one thread each (DuckDB too); CPU is user and system time of the process, start-up taken off; memory its largest resident
set; the spool the temporary files that it holds open, looked at twenty times a second. `confide lab bench scale`; CONFIDE_BENCH_SCALE
(default "1000000 10000000") numbers of records, CONFIDE_BENCH_TASKS names of tasks joined by "; " (default all), CONFIDE_BENCH_FOLDER
(default out/bench) where files and spools go; they are removed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import confide as cf
from confide_lab.benchmarks.timed import peak

__all__ = ["run"]

SIZES = tuple(int(float(size)) for size in os.environ.get("CONFIDE_BENCH_SCALE", "1000000 10000000").split())
FOLDER = Path(os.environ.get("CONFIDE_BENCH_FOLDER", "out/bench")) / "scale"
GROUP, FILE = 262_144, 20
FEATURES = [f"x{j}" for j in range(10)]
#: Records of one person, on average.
ROWS = 5

COLUMNS: dict[str, Any] = {
    **{name: cf.Numeric(-4, 4) for name in FEATURES},
    "y": cf.Numeric(-30, 30),
    "ill": cf.Categorical(["no", "yes"]),
}
RECORDS = cf.Schema(COLUMNS)
PERSONS = cf.Schema(COLUMNS, unit=cf.Unit("person"))
LINE = "y ~ " + " + ".join(FEATURES)


def _release(method: Any, schema: cf.Schema, folder: Path, spool: Path) -> None:
    source = cf.read(folder, schema, threads=1, spool=spool)
    cf.release(method, source, cf.GDP(1.0), ledger=None)


def _duckdb(folder: Path, select: str) -> None:
    import duckdb

    with duckdb.connect() as own:
        own.execute("SET threads = 1")
        own.execute(f"SELECT {select} FROM read_parquet('{folder}/*/*.parquet')").fetchall()


TASKS: dict[str, Callable[[Path, Path], None]] = {
    "default regression": lambda folder, spool: _release(cf.regression.LeastSquares(LINE), RECORDS, folder, spool),
    "default regression, by person": lambda folder, spool: _release(
        cf.regression.LeastSquares(LINE), PERSONS, folder, spool
    ),
    "class means, by person": lambda folder, spool: _release(
        cf.classification.ClassMeans(LINE.replace("y ~", "ill ~")), PERSONS, folder, spool
    ),
    "logistic regression": lambda folder, spool: _release(
        cf.regression.Logistic(LINE.replace("y ~", "ill ~")), RECORDS, folder, spool
    ),
    "DuckDB, sums of 11 columns": lambda folder, spool: _duckdb(
        folder, ", ".join(f"sum({one})" for one in [*FEATURES, "y"])
    ),
    "DuckDB, float Gram matrix": lambda folder, spool: _duckdb(
        folder, ", ".join(f"sum({a} * {b})" for i, a in enumerate([*FEATURES, "y"]) for b in [*FEATURES, "y"][i:])
    ),
    "start": lambda folder, spool: None,
}
ASKED = tuple(os.environ.get("CONFIDE_BENCH_TASKS", "; ".join(task for task in TASKS if task != "start")).split("; "))


def made(n: int, folder: Path) -> list[Path]:
    """Files of generated records, 20 row groups each, in a folder by wave that holds eight of them."""
    found = list[Path]()
    blocks = enumerate(range(0, n, GROUP))
    for number in range(-(-n // (GROUP * FILE))):
        found.append(folder / f"wave={number // 8}" / f"{number:04}.parquet")
        found[-1].parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(found[-1], _block(0, 1).schema, compression="snappy") as out:
            for _, (k, start) in zip(range(FILE), blocks, strict=False):
                out.write_table(_block(k, min(GROUP, n - start), n))
    return found


def _block(k: int, rows: int, n: int = 1) -> pa.Table:
    g = np.random.default_rng([7, k])
    x = g.normal(0, 1, (len(FEATURES), rows))
    line = 1 + np.linspace(-1, 1, len(FEATURES)) @ x
    y = line + g.standard_t(6, rows)
    ill = np.where(g.random(rows) < 1 / (1 + np.exp(-line / 2)), "yes", "no")
    person = g.integers(0, max(n // ROWS, 1), rows)
    columns = {
        **dict(zip(FEATURES, x, strict=True)),
        "y": y,
        "ill": pa.array(ill).dictionary_encode(),
        "person": person,
    }
    return pa.table(columns)


def run() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for n in SIZES:
        folder = FOLDER / f"{n}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            files = made(n, folder / "records")
            found[str(n)] = {"bytes": sum(file.stat().st_size for file in files)}
            print(f"\n{n:,} records, {found[str(n)]['bytes'] / 1e9:.2f} GB of Parquet")
            print(f"{'':32}{'CPU s':>9}{'wall s':>9}{'MB':>8}{'spool GB':>10}")
            for task in ("start", *ASKED):
                figures = _measured(task, folder)
                found[str(n)][task] = figures
                print(
                    f"{task:32}{figures['cpu']:9.1f}{figures['wall']:9.1f}{figures['memory']:8.0f}{figures['spool']:10.2f}",
                    flush=True,
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    _slopes(found)
    return found


def _slopes(found: dict[str, Any]) -> None:
    """CPU seconds for each further million records, from the smallest to the largest number."""
    few, many = min(SIZES), max(SIZES)
    if few == many:
        return
    print(f"\nCPU seconds per million records, from {few:,} to {many:,}")
    for task in ASKED:
        slope = (found[str(many)][task]["cpu"] - found[str(few)][task]["cpu"]) / ((many - few) / 1e6)
        print(f"{task:32}{slope:9.3f}")


def _measured(task: str, folder: Path) -> dict[str, float]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    text = subprocess.run(
        [sys.executable, "-m", __name__, task, str(folder)], check=True, capture_output=True, text=True, env=environment
    ).stdout
    figures: dict[str, float] = json.loads(text.splitlines()[-1])
    return figures


def _spools(folder: Path) -> Iterator[int]:
    """The sizes of the temporary files that this process holds open."""
    for one in Path("/proc/self/fd").iterdir():
        try:
            if str(one.readlink()).startswith(str(folder)) and "(deleted)" in str(one.readlink()):
                yield one.stat().st_size
        except OSError:  # closed meanwhile
            continue


def _alone(task: str, folder: Path) -> None:
    spool = folder.absolute() / "spool"
    spool.mkdir(exist_ok=True)
    largest, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            largest[0] = max(largest[0], sum(_spools(spool)))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    start, used = time.perf_counter(), time.process_time()
    TASKS[task](folder / "records", spool)
    cpu, wall = time.process_time() - used, time.perf_counter() - start
    over.set()
    print(json.dumps({"cpu": cpu, "wall": wall, "memory": peak(), "spool": largest[0] / 1e9}))


if __name__ == "__main__":
    _alone(sys.argv[1], Path(sys.argv[2]))
