"""Coverage of correlations and explained variances on six real sets, resampled, against the whole table's own values.

Each replication draws n records with replacement from a table with its public bounds, and asks for correlations and principal components
of its first numeric columns at most. Judged are intervals of results with status "valid", and those of "partial" that are there. A cell
fails where the 99.9 % interval of its coverage, clustered by replication, lies below .95. The sets need CONFIDE_DATA.

confide lab bench reduction
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.schema import CodedFrame, Schema
from confide_lab.benchmarks.coverage import interval
from confide_lab.benchmarks.runs import table as replicated
from confide_lab.datasets import available, table as table_of

SETS = ("D4", "D5", "D6", "D7", "D8", "D9")
MOST_COLUMNS = 6
SIZES = (2_000, 10_000)
BUDGETS = (0.5, 1.0, 3.0)
REPLICATIONS = 60
METHODS = ("correlations", "pca", "pca covariance")


@cache
def whole(name: str) -> tuple[pd.DataFrame, Schema, tuple[str, ...]]:
    """Records, schema and columns of a set: the first numeric columns that vary."""
    found = table_of(name)
    columns = [
        one for one in found.schema.names if found.schema[one].kind != "categorical" and found.frame[one].nunique() > 2
    ][:MOST_COLUMNS]
    schema = Schema({one: found.schema[one] for one in columns})
    return found.frame[columns].reset_index(drop=True), schema, tuple(columns)


def method_of(name: str, columns: tuple[str, ...]) -> Any:
    if name == "correlations":
        return cf.reduction.Correlations(columns)
    return cf.reduction.PCA(columns, 3, "covariance" if name.endswith("covariance") else "correlation")


@cache
def truth(name: str, method: str) -> dict[str, float]:
    frame, schema, columns = whole(name)
    return dict(method_of(method, columns).reference(CodedFrame.of(frame, schema)))


def measure(at: dict[str, Any], generator: np.random.Generator) -> dict[str, float]:
    frame, schema, columns = whole(at["set"])
    records = frame.iloc[generator.integers(len(frame), size=at["n"])]
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
    method, known = method_of(at["method"], columns), truth(at["set"], at["method"])
    release = cf.release(method, cf.read(records, schema), cf.GDP(at["mu"]), ledger=None, noise=noise)
    result = cf.infer(release)
    limits = result.conf_int()
    found: dict[str, float] = {"answered": float(result.status in ("valid", "partial"))}
    for name, value in known.items():
        low, high = limits.loc[name]
        judged = bool(found["answered"]) and np.isfinite(low) and np.isfinite(high)
        found[f"in {name}"] = float(low <= value <= high) if judged else -1.0
        found[f"width {name}"] = float(high - low) if judged else -1.0
    return found


def run() -> list[dict[str, Any]]:
    """A row for each set, method, size and budget."""
    sets = tuple(name for name in SETS if available(name) is None)
    rows = []
    for method in METHODS:
        for name in sets:
            grid = {"set": (name,), "method": (method,), "n": SIZES, "mu": BUDGETS}
            found = replicated(f"reduction-{name}-{method}".lower().replace(" ", "-"), grid, measure, REPLICATIONS)
            for (n, mu), cell in found.groupby(["n", "mu"]):
                rows.append(_row(name, method, int(n), float(mu), cell))
                print(json.dumps(rows[-1]), flush=True)
    return rows


def _row(name: str, method: str, n: int, mu: float, cell: pd.DataFrame) -> dict[str, Any]:
    names = list(truth(name, method))
    hits = cell[[f"in {one}" for one in names]].to_numpy()
    judged = hits >= 0
    rate, least, most = float("nan"), 0.0, 1.0
    if judged.any():
        # replications as clusters; what is not answered in one counts as the cell's own rate
        filled = np.where(judged, hits, hits[judged].mean())[judged.any(axis=1)]
        _, least, most = interval(filled)
        rate = float(hits[judged].mean())
    widths = cell[[f"width {one}" for one in names]].to_numpy()
    return {
        "check": f"{method} of {name} ({table_of(name).name}), n = {n}, mu = {mu:g}",
        "coverage": rate,
        "interval": [least, most],
        "answered": float(judged.mean()),
        "least by name": float(
            min((hits[judged[:, j], j].mean() for j in range(len(names)) if judged[:, j].any()), default=np.nan)
        ),
        "median width": float(np.median(widths[judged])) if judged.any() else None,
        "passed": most >= 0.95,
    }
