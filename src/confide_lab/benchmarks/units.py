"""Coverage with several rows per unit: 100 replications a cell, rule 15 of the protocol.

Units have 1 to 20 rows, evenly; the outcome's errors correlate within a unit by `icc`; x is the same on all rows of a unit, z is not; in
"informative" the outcome also rises with the number of rows, so that the weighting matters. Truth: the same estimand, weights min(k, m)/m,
on 400,000 units. `rows as if independent` is the line of records with k kept rows of each unit, whose intervals take them as independent.
Width: half-width over that of the non-private cluster-robust interval of all rows with the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import confide as cf
from confide_lab.benchmarks.coverage import consistent, interval
from confide_lab.benchmarks.runs import table

Array = NDArray[np.float64]

COLUMNS = {
    "x": cf.Numeric(-4, 4),
    "z": cf.Numeric(-4, 4),
    "y": cf.Numeric(-8, 8),
    "won": cf.Integer(0, 1),
    "kind": cf.Categorical(["a", "b", "c"]),
}
METHODS: dict[str, Any] = {
    "line": cf.regression.LeastSquares("y ~ x + z"),
    "logistic": cf.regression.Logistic("won ~ x + z"),
    "class means": cf.classification.ClassMeans("kind ~ y + z"),
    "means": cf.tables.Means("y ~ kind", inference="population"),
}
_MOST = 20


def visits(units: int, icc: float, informative: bool, generator: np.random.Generator) -> pd.DataFrame:
    """Rows of `units` persons."""
    m = generator.integers(1, _MOST + 1, units)
    pid = np.repeat(np.arange(units), m)
    n = len(pid)
    x, z = generator.normal(size=units)[pid], generator.normal(size=n)
    e = np.sqrt(icc) * generator.normal(size=units)[pid] + np.sqrt(1 - icc) * generator.normal(size=n)
    y = 1 + 0.5 * x - 0.3 * z + e + informative * 0.05 * (m[pid] - 10.5)
    level = 0.7 * generator.normal(size=units)[pid] + 0.7 * generator.normal(size=n)
    kind = np.array(["a", "b", "c"])[(level > -0.5).astype(int) + (level > 0.8)]
    return pd.DataFrame({"pid": pid, "x": x, "z": z, "y": y, "won": (y > 1).astype(int), "kind": kind})


def schema(k: int, rule: str | None = None) -> cf.Schema:
    return cf.Schema(COLUMNS, dataset="visits", unit=cf.Unit("pid", rows=k, rule=rule))


def weights(frame: pd.DataFrame, k: int) -> Array:
    m = frame.groupby("pid")["pid"].transform("size").to_numpy()
    return np.asarray(np.minimum(1.0, k / m))


def _likeliest(rows: Array, y: Array, w: Array) -> Array:
    theta = np.zeros(rows.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-rows @ theta))
        theta = theta + np.linalg.solve((rows.T * (w * p * (1 - p))) @ rows, rows.T @ (w * (y - p)))
    return theta


def plain(name: str, frame: pd.DataFrame, k: int) -> tuple[Array, Array]:
    """(estimates, cluster-robust standard errors) without privacy, by the same weights."""
    w, unit = weights(frame, k), frame["pid"].to_numpy()
    if name in ("line", "logistic"):
        rows = np.column_stack([np.ones(len(frame)), frame["x"], frame["z"]])
        y = frame["y" if name == "line" else "won"].to_numpy(float)
        if name == "line":
            theta = np.linalg.solve((rows.T * w) @ rows, rows.T @ (w * y))
            r, h = y - rows @ theta, w
        else:
            theta = _likeliest(rows, y, w)
            p = 1 / (1 + np.exp(-rows @ theta))
            r, h = y - p, w * p * (1 - p)
        scores = pd.DataFrame(rows * (w * r)[:, None]).groupby(unit).sum().to_numpy()
        bread = np.linalg.inv((rows.T * h) @ rows)
        return theta, np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    found, errors = [], []
    columns = ("y", "z") if name == "class means" else ("y",)
    inside = {level: (frame["kind"] == level).to_numpy() for level in ("a", "b", "c")}
    if name == "class means":
        for own in inside.values():
            share = float(w @ own / w.sum())
            g = pd.Series(w * (own - share)).groupby(unit).sum()
            found.append(share)
            errors.append(float(np.sqrt((g**2).sum()) / w.sum()))
    for column in columns:
        for own in inside.values():
            value, weight = frame[column].to_numpy(), w * own
            mean = float(weight @ value / weight.sum())
            g = pd.Series(weight * (value - mean)).groupby(unit).sum()
            found.append(mean)
            errors.append(float(np.sqrt((g**2).sum()) / weight.sum()))
    return np.array(found), np.array(errors)


@cache
def truth(name: str, icc: float, k: int, informative: bool) -> Array:
    """The estimand, on 400,000 units."""
    return plain(name, visits(400_000, icc, informative, np.random.default_rng(7)), k)[0]


def _read(result: Any, name: str) -> tuple[Array, Array]:
    """Intervals in the order of `plain`; NaN where there is none."""
    ends = result.to_frame()[["ci_low", "ci_high"]][-3:] if name == "means" else result.conf_int()
    low, high = ends.to_numpy().T
    return low, high


def replicate(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """One release."""
    units, icc, k, name, informative, r = (
        at[one] for one in ("units", "icc", "k", "method", "informative", "replication")
    )
    frame = visits(units, icc, informative, np.random.default_rng((units, int(10 * icc), r)))
    data, noise = cf.read(frame, schema(k)), cf.noise.SimulatedNoise(1_000 + r)
    result = cf.infer(cf.release(METHODS[name], data, cf.GDP(1.0), ledger=None, noise=noise))
    right, (_, errors) = truth(name, icc, k, informative), plain(name, frame, k)
    try:
        low, high = _read(result, name)
    except cf.NoResult:
        low = high = np.full(len(right), np.nan)
    out: dict[str, Any] = {}
    for j, value in enumerate(right):
        out[f"answered {j}"] = bool(np.isfinite(low[j]))
        out[f"hit {j}"] = bool(low[j] <= value <= high[j])
        out[f"width {j}"] = float((high[j] - low[j]) / 2 / (1.96 * errors[j]))
    return out


GRID = {
    "method": tuple(METHODS),
    "units": (500, 2_000),
    "icc": (0.2, 0.8),
    "k": (1, 5),
    "informative": (False, True),
}


def run(grid: Mapping[str, Any] = GRID, replications: int = 100) -> list[dict[str, Any]]:
    """All cells; one fails where a coefficient misses its claim, or fewer than half of the releases are answered in full."""
    rows = []
    for name in grid["method"]:
        # intervals of a table take rows as independent: one row of each unit
        own = dict(grid) | {"method": (name,), "k": (1,) if name == "means" else grid["k"]}
        found = table("units", own, replicate, replications)
        rows += [_judged(at, cell, grid) for at, cell in found.groupby(list(grid), sort=False)]
    return rows


def _judged(at: Any, cell: pd.DataFrame, grid: Mapping[str, Any]) -> dict[str, Any]:
    numbers = range(sum(one.startswith("hit ") for one in cell.columns))
    hits, answered = (
        np.column_stack([cell[f"{word} {j}"].to_numpy(bool) for j in numbers]) for word in ("hit", "answered")
    )
    own, check = hits[answered.all(axis=1)], ", ".join(f"{name}={value}" for name, value in zip(grid, at, strict=True))
    said = f"{len(own)} of {len(hits)} answered"
    if 2 * len(own) < len(hits):
        print(f"FAILED {check}: {said}", flush=True)
        return {"check": check, "value": len(own) / len(hits), "passed": False}
    mean, a, b = interval(own)
    passed = all(consistent(own[:, j], 0.93, 1.0) for j in numbers)
    each = " ".join(f"{one:.3f}" for one in own.mean(axis=0))
    widths = " ".join(f"{cell[f'width {j}'].median():.2f}" for j in numbers)
    print(
        f"{'ok    ' if passed else 'FAILED'} {check}: {mean:.3f} [{a:.3f}, {b:.3f}] ({each}), widths {widths}, {said}",
        flush=True,
    )
    return {"check": check, "value": mean, "interval": [a, b], "low": 0.93, "high": 1.0, "passed": passed}
