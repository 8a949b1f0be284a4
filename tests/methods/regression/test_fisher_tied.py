"""Which coefficients are withheld beside one that far records may move: by the bound on what they move, or where there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import confide as cf
from confide.methods.regression.glm.reading import FisherReading
from confide.noise import SimulatedNoise
from confide.regression import Logistic


def tied(far: list[int]) -> dict[int, int]:
    """Of three coefficients beside the intercept: the second hangs on the first, the third does not."""
    correlation = np.array([[1, 0.5, 0.3, 0.1], [0.5, 1, 0.9, 0.1], [0.3, 0.9, 1, 0], [0.1, 0.1, 0, 1]])
    sandwich = SimpleNamespace(correlation=lambda: correlation)
    stub: Any = SimpleNamespace(_wide=[1 + j for j in far], sandwich=sandwich)
    found: dict[int, int] = FisherReading._tied.func(stub)  # type: ignore[attr-defined]
    return found


def test_what_reaches_too_far_withholds_what_hangs_on_it() -> None:
    assert tied([]) == {} and tied([0]) == {2: 1} and tied([2]) == {}
    assert tied([0, 1]) == {} and tied([1]) == {1: 2}


def test_down_weighted_records_withhold_nothing_and_their_bound_is_in_the_intervals() -> None:
    g = np.random.default_rng(8)
    x = np.exp(0.8 * g.standard_normal(4_000))
    frame = pd.DataFrame({"x": x, "s": (g.random(4_000) < expit(-1 + 0.5 * x)).astype(int)})
    frame["y"] = (g.random(4_000) < expit(-3 + 0.5 * np.sqrt(x) - 0.3 * frame.s)).astype(int)
    schema = cf.Schema({"x": cf.Numeric(0, 20), "s": cf.Integer(0, 1), "y": cf.Integer(0, 1)})
    data, seen = cf.read(frame, schema), 0
    for seed in range(12):
        method = Logistic("y ~ x + s", bounds="declared")
        found = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed)))
        shown = found.conf_int()
        if found.status == "valid":
            assert shown.loc["x", 1] - shown.loc["x", 0] > 2 * 1.96 * found.bse["x"] * 1.02
            seen += 1
    assert seen >= 8
