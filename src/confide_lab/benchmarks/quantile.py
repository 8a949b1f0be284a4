"""Coverage and width of private quantiles: four populations, three sizes, three quantiles, 300 replications each.

confide lab bench quantile
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide_lab.benchmarks.coverage import interval
from confide_lab.methods.quantile.ranks import Quantile
from confide_lab.runner import Study, run as run_study, version_of_sources

SCHEMA = cf.Schema({"x": cf.Numeric(0, 1, steps=1025)})
Q = (0.1, 0.5, 0.9)
REPLICATIONS = 300


def draw(population: str, n: int, generator: np.random.Generator) -> np.ndarray:
    if population == "uniform":
        return generator.uniform(size=n)
    if population == "skewed":
        return generator.beta(0.5, 5, size=n)
    if population == "ties":
        return generator.integers(0, 4, size=n) / 4
    return np.clip(generator.normal(0.9, 0.4, size=n), 0, 1)


def truth(population: str) -> np.ndarray:
    return np.quantile(draw(population, 4_000_001, np.random.default_rng(0)), Q, method="inverted_cdf")


def measure(at: dict[str, Any], generator: np.random.Generator) -> dict[str, float]:
    data = pd.DataFrame({"x": draw(at["population"], at["n"], generator)})
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
    release = cf.release(Quantile("x", q=Q), cf.read(data, SCHEMA), cf.PureDP(at["epsilon"]), ledger=None, noise=noise)
    result = cf.infer(release)
    low, high = np.asarray(result.low), np.asarray(result.high)
    found: dict[str, float] = {"ok": float(result.status == "valid")}
    for q, a, b in zip(Q, low, high, strict=True):
        found[f"low {q:g}"], found[f"high {q:g}"] = float(max(a, -1)), float(min(b, 2))
    return found


def run() -> list[dict[str, Any]]:
    """A row per cell and quantile; fails when the 99.9 % interval of the coverage lies below .95."""
    study = Study(
        "quantile",
        {"population": ("uniform", "skewed", "ties", "bounds"), "n": (300, 3000, 30000), "epsilon": (1.0, 4.0)},
        measure,
        replications=REPLICATIONS,
        version=version_of_sources(__file__),
    )
    table = run_study(study, "out/bench/cells")
    rows = []
    for (population, n, epsilon), cell in table.groupby(["population", "n", "epsilon"]):
        usable = cell[cell["ok"] == 1]
        for q, value in zip(Q, truth(str(population)), strict=True):
            low, high = usable[f"low {q:g}"], usable[f"high {q:g}"]
            if not len(usable):
                continue
            covered, least, most = interval(((low <= value) & (value <= high)).to_numpy())
            closed = (low > -1) & (high < 2)
            rows.append(
                {
                    "check": f"quantile {q:g} of {population}, n = {n}, epsilon = {epsilon:g}",
                    "coverage": covered,
                    "interval": [least, most],
                    "ok_share": len(usable) / len(cell),
                    "closed_share": float(closed.mean()),
                    "median_width": float((high - low)[closed].median()) if closed.any() else None,
                    "passed": most >= 0.95,
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows
