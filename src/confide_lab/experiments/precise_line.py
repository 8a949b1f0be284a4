"""`precise.regression`: coverage and width of the credible intervals of a normal line, Gaussian and Laplace noise.

y = x_1/2 + N(0, .25^2), x ~ U(-1, 1), y in [-2, 2] by public bounds. Judged as the cells of `precise.coverage`: clustered by replication,
the 99.9 % interval of a coefficient's coverage may not lie below .95.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.noise import SimulatedNoise
from confide_lab.experiment import Block, Experiment, Quantity
from confide_lab.experiments.measures import shared
from confide_lab.experiments.precise import BUDGETS, NS, failing

__all__ = ["REGRESSION", "measure_line"]


def measure_line(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Coverage and width of each coefficient's interval; 1 where the sampler was Gibbs's, and where no answer was given."""
    n, budget, p = int(at["n"]), float(at["budget"]), int(at["p"])
    records = shared("precise line", at)
    x = records.uniform(-1, 1, (n, p))
    y = 0.5 * x[:, 0] + records.normal(0, 0.25, n)
    names = [f"x{j}" for j in range(p)]
    schema = cf.Schema(
        {**{name: cf.Numeric(-1, 1, on_missing=0.0) for name in names}, "y": cf.Numeric(-2, 2, on_missing=0.0)}
    )
    source = cf.read(pd.DataFrame({**dict(zip(names, x.T, strict=True)), "y": y}), schema)
    method = cf.intervals.Slope(f"y ~ {' + '.join(names)}" + ("" if at["intercept"] else " - 1"))
    asked = cf.PureDP(budget) if at["method"] == "laplace" else cf.GDP(budget)
    noise = SimulatedNoise(int(generator.integers(2**31)))
    result: Any = method.infer(cf.release(method, source, asked, ledger=None, noise=noise))
    ends = result.conf_int().to_numpy()
    truth = np.array([*([0.0] if at["intercept"] else []), 0.5, *([0.0] * (p - 1))])
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    slope = int(bool(at["intercept"]))
    return {
        "slope covered": float(inside[slope]),
        "slope width": float(ends[slope, 1] - ends[slope, 0]),
        "rest covered": float(np.delete(inside, slope).mean()) if len(inside) > 1 else float("nan"),
        "refused": float(result.status == "not_identified"),
    }


def _block(name: str, p: int, intercept: int, grid: Mapping[str, Any], replications: int) -> Block:
    return Block(
        name=name,
        grid={"p": (p,), "intercept": (intercept,), **grid},
        methods=("gaussian", "laplace"),
        measure=measure_line,
        quantities=(
            Quantity("slope coverage", of="slope covered"),
            Quantity("slope width", of="slope width"),
            Quantity("rest coverage", of="rest covered"),
            Quantity("refused"),
        ),
        replications=replications,
        full=1000,
        checks=failing,
        title=f"{p} predictor{'s' * (p > 1)}, {'with' if intercept else 'without'} intercept; `rest`: the other coefficients",
        titles={"gaussian": "Gaussian noise, mu", "laplace": "Laplace noise, epsilon"},
    )


_GRID = {"n": NS, "budget": BUDGETS}

REGRESSION = Experiment(
    "precise.regression",
    "Credible intervals of a normal line",
    (
        _block("slope", 1, 1, _GRID, 200),
        _block("origin", 1, 0, _GRID, 100),
        _block("two", 2, 1, _GRID, 100),
        _block("four", 4, 1, _GRID, 40),
    ),
    sources=("Zhou, Liu 2025, section 4.1 (slope)",),
)
