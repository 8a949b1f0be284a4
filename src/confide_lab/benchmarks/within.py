"""The line within persons: coverage on simulated panels by rule 15 of the protocol, and the within line of the Parkinsons set.

Panels: persons of 1 to 8 rows whose own level moves x and y alike (pooled least squares has .30 for a slope of .10), errors whose spread
follows |x|. Truth: the within estimator with the same weights on 160,000 persons. Width: half-width over that of the non-private
cluster-robust interval of all rows. Parkinsons (with CONFIDE_DATA): 42 persons of 5,875 rows; 42 are few for any privacy, so that
the release is also made of the set with each person standing for 100 others of the same rows.
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
from confide_lab.datasets import available, frame_of

Array = NDArray[np.float64]

RULES: dict[str, dict[str, Any]] = {"once": {}, "5 rows": {"rows": 5}, "keep 5": {"rows": 5, "rule": "keep"}}
GRID = {"persons": (500, 2_000), "mu": (0.3, 1.0), "rule": tuple(RULES)}
_COLUMNS = {"x": cf.Numeric(-4, 4), "y": cf.Numeric(-4, 4)}
_COPIES = 100


def panel(persons: int, generator: np.random.Generator) -> pd.DataFrame:
    """Rows of `persons` persons."""
    pid = np.repeat(np.arange(persons), generator.integers(1, 9, persons))
    level = generator.normal(size=persons)[pid]
    x = 0.7 * level + generator.normal(size=len(pid))
    e = 0.5 * generator.normal(size=len(pid)) * (1 + 0.5 * np.abs(x))
    return pd.DataFrame({"pid": pid, "x": x, "y": 0.1 * x + 0.3 * level + e})


def estimator(frame: pd.DataFrame, columns: tuple[str, ...], response: str, rows: int | None) -> tuple[Array, Array]:
    """(slopes, clustered standard errors) of the within estimator, each row with the weight min(1, rows/m), or 1."""
    size = frame.groupby("pid")["pid"].transform("size").to_numpy()
    own, m = frame[size > 1], size[size > 1]
    weight = np.ones(len(own)) if rows is None else np.minimum(1.0, rows / m)
    values = own[[*columns, response]].astype(float)
    apart = (values - values.groupby(own["pid"]).transform("mean")).to_numpy()
    z, y = apart[:, :-1], apart[:, -1]
    bread = np.linalg.inv((z * weight[:, None]).T @ z)
    theta = bread @ (z * weight[:, None]).T @ y
    scores = pd.DataFrame(z * (weight * (y - z @ theta))[:, None]).groupby(own["pid"].to_numpy()).sum().to_numpy()
    return theta, np.sqrt(np.diag(bread @ scores.T @ scores @ bread))


@cache
def truth(rows: int) -> float:
    """The estimand, on 160,000 persons."""
    frame = panel(160_000, np.random.default_rng(7)).clip({"x": -4, "y": -4}, {"x": 4, "y": 4})
    return float(estimator(frame, ("x",), "y", rows)[0][0])


def replicate(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """One release."""
    unit = RULES[at["rule"]]
    frame = panel(at["persons"], np.random.default_rng((at["persons"], at["replication"])))
    schema = cf.Schema(_COLUMNS, dataset="panel", unit=cf.Unit("pid", **unit))
    noise = cf.noise.SimulatedNoise(1_000 + at["replication"])
    method = cf.regression.Within("y ~ x")
    result = cf.infer(cf.release(method, cf.read(frame, schema), cf.GDP(at["mu"]), ledger=None, noise=noise))
    low, high = result.conf_int().loc["x"]
    right, errors = truth(unit.get("rows", 1)), estimator(frame, ("x",), "y", None)[1]
    return {
        "answered": bool(np.isfinite(low)),
        "hit": bool(low <= right <= high),
        "width": float((high - low) / 2 / (1.96 * errors[0])),
    }


def run(grid: Mapping[str, Any] = GRID, replications: int = 200) -> list[dict[str, Any]]:
    """All cells; one fails where it misses its claim, or fewer than half of the releases are answered."""
    found = table("within", dict(grid), replicate, replications)
    rows = [_judged(at, cell, grid) for at, cell in found.groupby(list(grid), sort=False)]
    return [*rows, *parkinsons()]


def _judged(at: Any, cell: pd.DataFrame, grid: Mapping[str, Any]) -> dict[str, Any]:
    hits = cell["hit"].to_numpy(bool)[cell["answered"].to_numpy(bool)]
    check = ", ".join(f"{name}={value}" for name, value in zip(grid, at, strict=True))
    mean, a, b = interval(hits[:, None])
    passed = 2 * len(hits) >= len(cell) and consistent(hits, 0.93, 1.0)
    said = f"width {cell['width'].median():.2f}, {len(hits)} of {len(cell)} answered"
    print(f"{'ok    ' if passed else 'FAILED'} {check}: {mean:.3f} [{a:.3f}, {b:.3f}], {said}", flush=True)
    return {"check": check, "value": mean, "interval": [a, b], "low": 0.93, "high": 1.0, "passed": passed}


def parkinsons() -> list[dict[str, Any]]:
    """Total UPDRS on time and voice within persons, beside the estimator without privacy; nothing where the set is not here."""
    if available("D5"):
        return []
    raw = frame_of("parkinsons_telemonitoring")
    raw.columns = [name.strip().lower().replace(":", "_").replace("#", "") for name in raw.columns]
    frame = raw.rename(columns={"subject": "pid"})[["pid", "test_time", "hnr", "total_updrs"]]
    frame = frame.assign(test_time=frame.test_time.clip(0, 220), hnr=frame.hnr.clip(0, 40))
    columns = {"test_time": cf.Numeric(0, 220), "hnr": cf.Numeric(0, 40), "total_updrs": cf.Numeric(0, 70)}
    schema = cf.Schema(columns, dataset="parkinsons", unit=cf.Unit("pid"))
    rows = []
    for copies in (1, _COPIES):
        many = pd.concat([frame.assign(pid=frame.pid + 1_000 * copy) for copy in range(copies)], ignore_index=True)
        slopes, errors = estimator(many, ("test_time", "hnr"), "total_updrs", 1)
        method, noise = cf.regression.Within("total_updrs ~ test_time + hnr"), cf.noise.SimulatedNoise(1)
        result = cf.infer(cf.release(method, cf.read(many, schema), cf.GDP(1.0), ledger=None, noise=noise))
        shown = ", ".join(
            f"{name} {own:.4f} ({low:.4f} to {high:.4f}; without privacy {slope:.4f}, se {error:.4f})"
            for name, own, (low, high), slope, error in zip(
                result.params.index, result.params, result.conf_int().to_numpy(), slopes, errors, strict=True
            )
        )
        limits = result.conf_int().to_numpy()
        inside = bool(((limits[:, 0] <= slopes) & (slopes <= limits[:, 1])).all())
        # 42 persons may be too few to be answered; 4,200 are not
        passed = inside if result.status == "valid" else copies == 1
        check = f"parkinsons, {42 * copies} persons: {result.status}"
        print(f"{'ok    ' if passed else 'FAILED'} {check}: {shown}", flush=True)
        rows.append({"check": check, "value": float(passed), "passed": passed})
    return rows
