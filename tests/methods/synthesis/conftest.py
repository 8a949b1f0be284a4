"""A survey with every kind of column, and one release of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide import registry
from confide.synthesis import SyntheticTable

FORMULA = "y ~ a + k + r"


@pytest.fixture(autouse=True)
def known():
    """The method under its name, as its entry point makes it known to every process."""
    before = dict(registry._registered)
    registry._registered[SyntheticTable.name] = SyntheticTable
    yield
    registry._registered.clear()
    registry._registered.update(before)


@pytest.fixture(scope="session")
def schema() -> cf.Schema:
    return cf.Schema(
        {
            "a": cf.Numeric(-1, 3),
            "unused": cf.Numeric(0, 1),
            "r": cf.Categorical(["N", "S", "NA", "E"]),
            "k": cf.Integer(0, 9),
            "y": cf.Numeric(-4, 9),
        },
        dataset="survey",
    )


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    generator = np.random.default_rng(5)
    n = 3_000
    found = pd.DataFrame(
        {
            "a": generator.normal(1, 0.5, n),
            "unused": generator.random(n),
            "k": np.minimum(generator.poisson(2, n), 9),
            "r": generator.choice(["N", "S", "NA", "E"], n, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )
    found["y"] = 1 + found["a"] - 0.2 * found["k"] + 0.5 * (found["r"] == "S") + generator.normal(0, 0.7, n)
    return found


@pytest.fixture(scope="session")
def release(frame, schema) -> cf.Release:
    method = SyntheticTable(FORMULA)
    return cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(4))


@pytest.fixture
def made(release):
    return SyntheticTable(FORMULA).build(release)
