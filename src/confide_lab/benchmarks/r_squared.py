"""Coverage of the interval for R squared where it is printed: 200 replications a cell; uniform, skewed and rare (3 %) features."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import confide as cf
from confide_lab.benchmarks.coverage import consistent, interval
from confide_lab.benchmarks.runs import table

Array = NDArray[np.float64]


def _features(generator: np.random.Generator, n: int, d: int, law: str) -> Array:
    if law == "uniform":
        return generator.uniform(-1, 1, (n, d))
    if law == "rare":
        return np.where(generator.uniform(size=(n, d)) < 0.03, 1.0, -1.0)
    return np.clip(generator.exponential(0.4, (n, d)) - 1, -1, 1)


def _truth(d: int, law: str, s2: float) -> float:
    """Population R squared, by simulation of 10^6 records."""
    variance = float((_features(np.random.default_rng(5), 1_000_000, d, law).sum(axis=1) / np.sqrt(d)).var())
    return variance / (variance + s2)


@cache
def _world(n: int, d: int, law: str, r2: float) -> tuple[float, float, cf.Schema, float]:
    """Centre and residual variance of the response, the schema, and the true R squared; the same for all replications."""
    signal = _features(np.random.default_rng(1), 200_000, d, law).sum(axis=1) / np.sqrt(d)
    centre, s2 = float(signal.mean()), float(signal.var()) * (1 - r2) / r2
    reach = 5 * np.sqrt(s2 / (1 - r2)) + 0.2
    schema = cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(d)}, "y": cf.Numeric(-reach, reach)})
    return centre, s2, schema, _truth(d, law, s2)


def replicate(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """One release: whether it has an interval, and whether that holds the truth.

    Records and noise are seeded by n, d and the replication alone, so that laws and sizes of R squared share them.
    """
    (n, d), r = at["size"], at["replication"]
    centre, s2, schema, truth = _world(n, d, at["law"], at["r2"])
    generator = np.random.default_rng((n, d, r))
    x = _features(generator, n, d, at["law"])
    y = x.sum(axis=1) / np.sqrt(d) - centre + np.sqrt(s2) * generator.standard_normal(n)
    method = cf.regression.SSP("y ~ " + " + ".join(f"x{j}" for j in range(d)), recenter=False)
    data, noise = cf.read(np.column_stack([x, y]), schema), cf.noise.SimulatedNoise(r)
    result = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None, noise=noise))
    if result.status != "valid":
        return {"ok": False, "hit": False}
    low, high = result.rsquared_interval
    return {"ok": bool(np.isfinite(low)), "hit": low <= truth <= high}


GRID = {
    "size": ((500, 2), (1_000, 5), (5_000, 5), (20_000, 10)),
    "law": ("uniform", "skewed", "rare"),
    "r2": (0.02, 0.3, 0.8),
}


def run() -> list[dict[str, Any]]:
    rows = []
    for ((n, d), law, r2), cell in table("r-squared", GRID, replicate, 200).groupby(list(GRID), sort=False):
        found = cell.loc[cell["ok"] == 1, "hit"].to_numpy(bool)
        if len(found) < 20:
            continue
        mean, a, b = interval(found)
        low = 0.93
        passed = consistent(found, low, 1.0)
        check = f"R squared, n={n} d={d} {law}, {r2}"
        print(
            f"{'ok    ' if passed else 'FAILED'} {check}: {mean:.3f} [{a:.3f}, {b:.3f}] over {len(found)} ok runs of 200",
            flush=True,
        )
        rows.append(
            {
                "check": check,
                "value": mean,
                "interval": [a, b],
                "low": low,
                "high": 1.0,
                "ok": len(found) / 200,
                "passed": passed,
            }
        )
    return rows
