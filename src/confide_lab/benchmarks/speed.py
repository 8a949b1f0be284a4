"""CPU time and memory against a bare scan, and wall time against diffprivlib, interleaved in one run.

Rows of the Parquet file: CONFIDE_BENCH_ROWS (default 10^7; 10 features and a response, row groups of 131,072).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import confide as cf
from confide.core import Gram, RecordMap
from confide_lab.benchmarks.rival import python_of_diffprivlib
from confide_lab.benchmarks.timed import peak

ROWS = int(os.environ.get("CONFIDE_BENCH_ROWS", "10000000"))
D = 10
FILE = Path("out/bench/speed.parquet")
NAMES = [*(f"x{j}" for j in range(D)), "y"]
FORMULA = "y ~ " + " + ".join(NAMES[:-1])
SCHEMA = cf.Schema({**{name: cf.Numeric(0, 1) for name in NAMES[:-1]}, "y": cf.Numeric(-5, 20)})


@dataclass(frozen=True)
class Coded(RecordMap):
    """The coded columns themselves: integers of 20 bits."""

    columns: tuple[str, ...] = tuple(NAMES)
    width: int = len(NAMES)
    l1: int = len(NAMES) << 20
    l2_squared: int = len(NAMES) << 40
    digest: str = "coded columns"

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        return codes


def records(n: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=(D, n))
    y = x.sum(axis=0) * 1.5 + generator.standard_normal(n)
    return pa.table(dict(zip(NAMES, [*x, y], strict=True)))


def write() -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    if FILE.exists() and pq.ParquetFile(FILE).metadata.num_rows == ROWS:
        return
    with pq.ParquetWriter(FILE, records(1, 0).schema) as writer:
        for k, start in enumerate(range(0, ROWS, 131_072)):
            writer.write_table(records(min(131_072, ROWS - start), k), row_group_size=131_072)


def scan() -> np.ndarray:
    """A bare pyarrow scan with the float Gram matrix of the same batches."""
    total = np.zeros((D + 1, D + 1))
    file = pq.ParquetFile(FILE)
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(row_groups=[group], columns=NAMES, use_threads=False):
            block = np.column_stack([column.to_numpy() for column in batch.columns])
            total += block.T @ block
    return total


def exact() -> np.ndarray:
    return cf.read(FILE, SCHEMA).aggregate(Gram(Coded(), entry_bits=20))[0]


def ssp(cov: str, data: Any = FILE, seed: int = 1) -> Any:
    source = cf.read(data, SCHEMA)
    method = cf.regression.SSP(FORMULA, cov=cov, clipping_check=cov == "robust", recenter=False)
    return cf.infer(cf.release(method, source, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(seed)))


def _cpu(call: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def against_a_scan(runs: int = 3) -> list[dict[str, Any]]:
    calls = {"scan": scan, "exact": exact, "classical": lambda: ssp("classical"), "robust": lambda: ssp("robust")}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    with threadpool_limits(1, user_api="blas"):
        ssp("robust", SCHEMA.sample(1000, 1))  # imports and laws, once
        for _ in range(runs):
            for name, call in calls.items():
                times[name].append(_cpu(call))
    rows = []
    for name, bar in (("exact", 1.5), ("classical", 2.0), ("robust", None)):
        ratio = median(a[0] / b[0] for a, b in zip(times[name], times["scan"], strict=True))
        wall = median(a[1] / b[1] for a, b in zip(times[name], times["scan"], strict=True))
        label = {
            "exact": "exact Gram",
            "classical": "SSP classical, end to end",
            "robust": "SSP robust (two passes), end to end",
        }[name]
        row = {
            "check": f"CPU of {label} over scan + float Gram, {ROWS} rows",
            "value": ratio,
            "wall_ratio": wall,
            "bar": bar,
        }
        row["passed"] = bar is None or ratio <= bar
        row["cpu_seconds"] = [round(t[0], 2) for t in times[name]]
        row["scan_cpu_seconds"] = [round(t[0], 2) for t in times["scan"]]
        _show(row)
        rows.append(row)
    return rows


def _show(row: dict[str, Any]) -> None:
    print(
        f"{'ok    ' if row['passed'] else 'FAILED'} {row['check']}: {row['value']:.3g} (bar {row['bar']}) {row}",
        flush=True,
    )


def memory() -> list[dict[str, Any]]:
    """Peak resident memory of a fresh process that runs SSP in the public box on the file."""
    code = (
        "from confide_lab.benchmarks import speed; from confide_lab.benchmarks.timed import peak; "
        "speed.ssp('robust'); print(peak())"
    )
    found = float(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()[-1]
    )
    row = {
        "check": f"peak MB of SSP robust on {ROWS} x {D} Parquet",
        "value": found,
        "bar": 500,
        "passed": found <= 500,
    }
    _show(row)
    return [row]


_RIVAL = """
import sys, time, warnings, json
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import LinearRegression
x, y = np.load(sys.argv[1]), np.load(sys.argv[2])
bounds = (np.zeros(x.shape[1]), np.ones(x.shape[1]))
for line in sys.stdin:
    start = time.perf_counter(), time.process_time()
    LinearRegression(epsilon=1.0, bounds_X=bounds, bounds_y=(-5, 20)).fit(x, y)
    peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
    print(json.dumps([time.perf_counter() - start[0], time.process_time() - start[1], peak]), flush=True)
"""


def against_diffprivlib(runs: int = 9) -> list[dict[str, Any]]:
    """SSP and diffprivlib on the same arrays, one after the other, warm."""
    python = python_of_diffprivlib()
    table = records(1_000_000, 7)
    frame = table.to_pandas()
    x, y = FILE.parent / "x.npy", FILE.parent / "y.npy"
    np.save(x, frame[NAMES[:-1]].to_numpy())
    np.save(y, frame["y"].to_numpy())
    times: dict[str, list[float]] = {"diffprivlib": [], "robust": [], "classical": []}
    with subprocess.Popen(
        [python, "-c", _RIVAL, str(x), str(y)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as rival:
        assert rival.stdin is not None and rival.stdout is not None
        for r in range(runs + 1):
            rival.stdin.write("fit\n")
            rival.stdin.flush()
            wall, _, theirs = json.loads(rival.stdout.readline())
            ours = {cov: _cpu(partial(ssp, cov, frame, r)) for cov in ("robust", "classical")}
            if r:  # the first round warms up
                times["diffprivlib"].append(wall)
                for cov, (_, seconds) in ours.items():
                    times[cov].append(seconds)
        rival.stdin.close()
    rows = []
    for cov, bar in (("robust", 1.5), ("classical", 3.0)):
        ratio = median(b / a for a, b in zip(times[cov], times["diffprivlib"], strict=True))
        row = {
            "check": f"times faster than diffprivlib, SSP {cov}, 10^6 x {D} in memory, warm, wall",
            "value": ratio,
            "bar": bar,
            "passed": ratio >= bar,
        }
        row["seconds"] = [round(t, 3) for t in times[cov]]
        row["diffprivlib_seconds"] = [round(t, 3) for t in times["diffprivlib"]]
        _show(row)
        rows.append(row)
    row = {
        "check": "peak MB of the processes that fit 10^6 x 10 in memory (data included)",
        "value": peak(),
        "diffprivlib": theirs,
        "bar": None,
        "passed": True,
    }
    _show(row)
    return [*rows, row]


def run() -> list[dict[str, Any]]:
    write()
    return [*memory(), *against_a_scan(), *against_diffprivlib()]
