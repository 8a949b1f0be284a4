"""Questions about all rows of a person, on workers: the bits of one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.sources.executors_toy import Here

import confide as cf

SCHEMA = cf.Schema({"g": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1), "y": cf.Numeric(0, 2)}, unit=cf.Unit("pid"))
METHODS = {
    "persons": cf.tables.DistinctCounts("any(g == 'a') * cut(x, 0.5)", inference="dataset"),
    "within": cf.regression.Within("y ~ x"),
}


@pytest.mark.parametrize("name", METHODS)
def test_workers_give_the_same_bits(name: str, tmp_path: Any) -> None:
    g = np.random.default_rng(1)
    n = 3_000
    data = pd.DataFrame({"pid": g.integers(0, 500, n), "g": g.choice(["a", "b"], n), "x": g.random(n)})
    data["y"] = data["x"] + g.random(n)
    for part in range(3):
        data.iloc[part::3].to_parquet(tmp_path / f"{part}.parquet")
    files = sorted(tmp_path.iterdir())
    here, there = (
        cf.release(
            METHODS[name], cf.read(files, SCHEMA, **more), cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1)
        )
        for more in ({}, {"executor": Here()})
    )
    assert here.to_json() == there.to_json()
