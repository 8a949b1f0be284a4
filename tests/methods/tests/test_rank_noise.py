"""Heavy bins have to be seen above the noise of many: what noise alone makes of light ones costs no power and no interval."""

from __future__ import annotations

import numpy as np
import pandas as pd

import confide as cf
from confide.core import seal
from confide.noise import SimulatedNoise

RUNS = 40


def test_small_groups_at_a_small_budget_have_intervals_and_power() -> None:
    """2 x 50 normal records at mu = .3, a shift that a t test finds eight times in ten; at power .3 fewer than 4 are one in a thousand."""
    schema = cf.Schema({"y": cf.Numeric(-4, 4), "g": cf.Categorical(["a", "b"])})
    method = cf.tests.MannWhitney("y ~ g")
    plan = cf.plan(method, schema, cf.GDP(0.3))
    rejected = answered = 0
    for seed in range(RUNS):
        y = np.random.default_rng([seed, 50]).standard_normal((2, 50))
        y[0] += 2.83 * np.sqrt(2 / 50)
        data = cf.read(pd.DataFrame({"y": y.ravel(), "g": np.repeat(["a", "b"], 50)}), schema)
        found = method.infer(seal(method, data, plan, SimulatedNoise(seed)))
        rejected += bool(found.pvalue < 0.05)
        answered += found.status == "valid"
    assert rejected >= 4 and answered >= RUNS // 2, (rejected, answered)
