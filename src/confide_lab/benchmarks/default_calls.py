"""CPU time, wall time and memory of what users call by default, against the same model without privacy and against one scan.

Alternating runs, one thread and one BLAS thread on both sides. `confide lab bench default_calls`; CONFIDE_BENCH_RUNS (default 7) runs of
each, CONFIDE_BENCH_MEMORY_ROWS (default 10^7) records of 20 features for the memory of logistic regression from Parquet.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import confide as cf
from confide_lab.benchmarks.rival import python_of_diffprivlib
from confide_lab.benchmarks.timed import Check, Seconds, alternating, shown

__all__ = ["run"]

RUNS = int(os.environ.get("CONFIDE_BENCH_RUNS", "7"))
MEMORY_ROWS = int(os.environ.get("CONFIDE_BENCH_MEMORY_ROWS", "10000000"))
FOLDER = Path("out/bench")
GROUP = 131_072


@dataclass(frozen=True)
class Task:
    """Records x0, x1, ... within (-1, 1) and an outcome y, of two values or real."""

    kind: str
    features: int

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(self.features)]

    @property
    def formula(self) -> str:
        return "y ~ " + " + ".join(self.names)

    @property
    def schema(self) -> cf.Schema:
        outcome = cf.Integer(0, 1) if self.kind == "logistic" else cf.Numeric(-12, 12)
        return cf.Schema({**{name: cf.Numeric(-1, 1) for name in self.names}, "y": outcome})

    def blocks(self, n: int) -> Iterator[dict[str, np.ndarray]]:
        slopes = np.random.default_rng(0).normal(0, 0.7, self.features)
        for k, start in enumerate(range(0, n, GROUP)):
            g = np.random.default_rng([1, k])
            x = g.uniform(-1, 1, (self.features, min(GROUP, n - start)))
            line = slopes @ x
            logistic = (g.uniform(size=line.size) < 1 / (1 + np.exp(-line))).astype(np.int64)
            y = logistic if self.kind == "logistic" else line + g.standard_normal(line.size)
            yield dict(zip([*self.names, "y"], [*x, y], strict=True))

    def frame(self, n: int) -> pd.DataFrame:
        return pd.concat([pd.DataFrame(block) for block in self.blocks(n)], ignore_index=True)

    def file(self, n: int) -> Path:
        """A Parquet file in row groups of 131,072, made once."""
        path = FOLDER / f"{self.kind}_{self.features}_{n}.parquet"
        if not path.exists():
            FOLDER.mkdir(parents=True, exist_ok=True)
            whole = path.with_suffix(".part")
            writer = None
            for block in self.blocks(n):
                table = pa.table(block)
                writer = writer or pq.ParquetWriter(whole, table.schema)
                writer.write_table(table, row_group_size=GROUP)
            assert writer is not None
            writer.close()
            whole.rename(path)
        return path

    def ours(self, data: Any, bounds: str = "auto") -> Any:
        """The call of the guide, ledger=None for no charge."""
        call = cf.logistic_regression if self.kind == "logistic" else cf.linear_regression
        return call(
            self.formula, cf.read(data, self.schema, threads=1), bounds=bounds, privacy=cf.GDP(1.0), ledger=None
        )

    def scan(self, path: Path) -> np.ndarray:
        """A bare scan of the file with the Gram matrix of its doubles."""
        file, total = pq.ParquetFile(path), np.zeros((self.features + 1, self.features + 1))
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(row_groups=[group], use_threads=False):
                block = np.column_stack([column.to_numpy() for column in batch.columns])
                total += block.T @ block
        return total


def _rivals(task: Task, frame: pd.DataFrame, path: Path) -> dict[str, Callable[[], Any]]:
    x, y = np.ascontiguousarray(frame[task.names]), frame["y"].to_numpy()
    if task.kind == "logistic":
        from sklearn.linear_model import LogisticRegression

        return {"scikit-learn's LogisticRegression without a penalty": lambda: LogisticRegression(C=np.inf).fit(x, y)}
    import statsmodels.api as sm

    whole = np.column_stack([np.ones(len(x)), x, y])
    return {
        "the float Gram matrix in memory": lambda: whole.T @ whole,
        "a Parquet scan and its float Gram matrix": lambda: task.scan(path),
        "statsmodels' OLS with HC1": lambda: sm.OLS(y, whole[:, :-1]).fit(cov_type="HC1"),
    }


def against(task: Task, n: int, bars: dict[tuple[str, str], float]) -> list[Check]:
    """Ratios of medians over alternating runs, the first of which warms up."""
    frame, path = task.frame(n), task.file(n)
    rivals = _rivals(task, frame, path)
    ours = {
        "memory": lambda: task.ours(frame),
        "memory in declared bounds": lambda: task.ours(frame, "declared"),
        "Parquet": lambda: task.ours(path),
    }
    seconds = alternating({**ours, **rivals}, RUNS)
    return [
        shown(
            f"{task.kind} regression, {n:,} x {task.features} from {own}, over {rival}",
            seconds[own],
            seconds[rival],
            bars.get((own, rival)),
        )
        for own in ours
        for rival in rivals
    ]


_RIVAL = """
import sys, time, warnings, json
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import LinearRegression
whole = np.load(sys.argv[1])
x, y = np.ascontiguousarray(whole[:, :-1]), whole[:, -1].copy()
for line in sys.stdin:
    start = time.process_time(), time.perf_counter()
    LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-12, 12)).fit(x, y)
    print(json.dumps([time.process_time() - start[0], time.perf_counter() - start[1]]), flush=True)
"""


def against_diffprivlib(n: int = 1_000_000) -> list[Check]:
    """The default regression and diffprivlib's, which gives no interval, on the same records in memory, one after the other, warm."""
    task = Task("linear", 10)
    frame, table = task.frame(n), FOLDER / "linear.npy"
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.save(table, frame.to_numpy())
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [python_of_diffprivlib(), "-c", _RIVAL, str(table)]
    times: dict[str, list[Seconds]] = {"ours": [], "diffprivlib": []}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as rival:
        assert rival.stdin is not None and rival.stdout is not None
        for r in range(RUNS + 1):
            rival.stdin.write("fit\n")
            rival.stdin.flush()
            theirs = json.loads(rival.stdout.readline())
            ours = alternating({"ours": lambda: task.ours(frame)}, 1, warm=False)["ours"]
            if r:
                times["diffprivlib"].append(tuple(theirs))
                times["ours"].append(ours)
        rival.stdin.close()
    own, other = (tuple(median(one[i] for one in times[who]) for i in (0, 1)) for who in ("ours", "diffprivlib"))
    return [shown(f"linear regression, {n:,} x 10 from memory, over diffprivlib's LinearRegression", own, other, 2.5)]


_ALONE = {
    "confide": "from confide_lab.benchmarks.default_calls import Task; import sys\nTask('logistic', 20).ours(sys.argv[1])",
    "scikit-learn": (
        "import sys, numpy as np, pyarrow.parquet as pq\nfrom sklearn.linear_model import LogisticRegression\n"
        "whole = pq.read_table(sys.argv[1]).to_pandas().to_numpy()\n"
        "LogisticRegression(C=np.inf).fit(whole[:, :-1], whole[:, -1])"
    ),
}
_USED = (
    "\nimport resource, json\nu = resource.getrusage(resource.RUSAGE_SELF)\n"
    "from confide_lab.benchmarks.timed import peak\nprint(json.dumps([u.ru_utime + u.ru_stime, peak()]))"
)


def _alone(code: str, path: Path) -> tuple[float, float]:
    """CPU seconds and peak MB of a process of its own, imports and start included."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code + _USED, str(path)], check=True, capture_output=True, text=True, env=env
    )
    cpu, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu, peak


def with_imports(n: int = 100_000) -> list[Check]:
    """A script that starts, reads a Parquet file and fits once."""
    path = Task("logistic", 20).file(n)
    ours, theirs = ([_alone(_ALONE[name], path)[0] for _ in range(3)] for name in _ALONE)
    what = f"a script with one logistic regression, {n:,} x 20 from Parquet, imports included, over scikit-learn's"
    return [shown(what, (median(ours),), (median(theirs),), None)]


def memory() -> list[Check]:
    """Peaks at half the records and at all of them; the file without a name that takes the rest of the codes is no memory."""
    task = Task("logistic", 20)
    peaks = [_alone(_ALONE["confide"], task.file(rows))[1] for rows in (MEMORY_ROWS // 2, MEMORY_ROWS)]
    row = {
        "check": f"peak MB of logistic regression, {MEMORY_ROWS:,} x 20 from Parquet",
        "value": round(peaks[1]),
        "bar": 600,
        "MB per 10^6 records more": round((peaks[1] - peaks[0]) / (MEMORY_ROWS / 2e6), 1),
        "passed": peaks[1] <= 600,
    }
    print(f"{'ok    ' if row['passed'] else 'FAILED'} {row}", flush=True)
    return [row]


def _means(frame: pd.DataFrame, schema: cf.Schema, bounds: str) -> Any:
    source = cf.read(frame, schema, threads=1)
    return cf.tables.means("x ~ g", source, inference="population", bounds=bounds, privacy=cf.GDP(1.0), ledger=None)


def _grouped(frame: pd.DataFrame, what: Any) -> Any:
    return frame.groupby("g", observed=False)["x"].agg(what)


def group_means(n: int = 1_000_000, levels: int = 1_000) -> list[Check]:
    """Means by a column of so many levels, as text and as pandas' categories, over pandas' means by group of the same frame."""
    g = np.random.default_rng(0)
    names = [f"g{k:04}" for k in range(levels)]
    codes, x = g.integers(0, levels, n), g.normal(50, 10, n)
    schema = cf.Schema({"g": cf.Categorical(names), "x": cf.Numeric(0, 100)})
    columns = {
        "text": np.array(names, dtype=object)[codes],
        "categories": pd.Categorical.from_codes(codes, pd.Index(names)),
    }
    bars, found = {("text", "declared"): 2.0, ("text", "auto"): 4.0}, []
    for kind, column in columns.items():
        frame = pd.DataFrame({"g": column, "x": x})
        ours = {bounds: partial(_means, frame, schema, bounds) for bounds in ("declared", "auto")}
        rivals = {str(what): partial(_grouped, frame, what) for what in ("mean", ["mean", "std", "count"])}
        seconds = alternating({**ours, **rivals}, RUNS)
        found += [
            shown(
                f"{levels:,} group means of {n:,} records by {kind}, bounds={own!r}, over pandas' {rival}",
                seconds[own],
                seconds[rival],
                bars.get((kind, own)) if rival == "mean" else None,
            )
            for own in ours
            for rival in rivals
        ]
    return found


def run() -> list[Check]:
    scan, gram = "a Parquet scan and its float Gram matrix", "the float Gram matrix in memory"
    logistic, few = ({("memory", "scikit-learn's LogisticRegression without a penalty"): bar} for bar in (4.5, 2.0))
    linear = {("Parquet", scan): 7.0, ("memory", gram): 25.0, ("memory", "statsmodels' OLS with HC1"): 1.0}
    return [
        *against(Task("logistic", 20), 100_000, logistic),
        *against(Task("logistic", 10), 1_000_000, few),
        *against(Task("linear", 10), 1_000_000, linear),
        *against(Task("linear", 100), 100_000, {("memory", gram): 12.0}),
        *group_means(),
        *against_diffprivlib(),
        *with_imports(),
        *(memory() if MEMORY_ROWS else ()),
    ]


if __name__ == "__main__":
    run()
