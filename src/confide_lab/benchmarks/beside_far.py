"""Coefficients that are answered beside one that far records withhold: `confide lab bench beside_far`.

Where the excess of records that count less is large, the coefficient of the feature that reaches far is not answered, and others move with
it by a bound that is in their intervals, whatever their correlation with it. Here features hang closely on the far one, and the model is
wrong where it is far (a mean that bends, outcomes against the slope, a flag that marks the tail). For each design: in how many releases one
was withheld, how often the intervals of those correlated with it by more than .2 hold the population's likeliest line, what the sandwich
interval without privacy holds on the same samples, and what the bound adds to them, in half-widths. CONFIDE_BESIDE_REPS (default 50) sets
the releases of each cell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.special import expit

import confide as cf
from confide.core import ResultOptions, seal
from confide.methods.regression.glm.coefficients import binary_design
from confide.methods.regression.glm.reading import FisherReading
from confide.noise import SimulatedNoise
from confide.regression import Logistic
from confide.schema import CodedFrame, Integer, Numeric, Schema
from confide_lab.benchmarks.coverage import interval
from confide_lab.benchmarks.truth.plain import plain_intervals

REPLICATIONS = int(os.environ.get("CONFIDE_BESIDE_REPS", "50"))
CELLS = (
    (2_000, 1.0, "add-remove"),
    (2_000, 3.0, "substitute"),
    (10_000, 1.0, "add-remove"),
    (10_000, 1.0, "substitute"),
)
#: Two coefficients with a correlation above this hang together.
_TIED = 0.2
_SIZE = 200_000

Made = dict[str, Any]


def _outcome(g: np.random.Generator, eta: Any) -> Any:
    return (g.random(_SIZE) < expit(eta)).astype(int)


def _long(g: np.random.Generator) -> Made:
    """A lognormal feature, two flags that grow with it, an outcome of some 8 % that bends."""
    x = np.exp(0.8 * g.standard_normal(_SIZE))
    f, s = _outcome(g, -3 + 0.8 * x), _outcome(g, -1 + 0.5 * x)
    return {"x": x, "f": f, "s": s, "y": _outcome(g, -3 + 0.5 * np.sqrt(x) + 0.5 * f - 0.3 * s)}


def _marked(g: np.random.Generator) -> Made:
    """A longer tail, a feature correlated with it, a flag that marks the tail, log-odds that stop growing."""
    normal = g.standard_normal(_SIZE)
    x, z = np.exp(normal), 0.5 * normal + np.sqrt(0.75) * g.standard_normal(_SIZE)
    flag = ((x > np.quantile(x, 0.97)) & (g.random(_SIZE) < 0.8)) | (g.random(_SIZE) < 0.01)
    return {
        "x": x,
        "z": z,
        "f": flag.astype(int),
        "y": _outcome(g, -0.8 + 0.8 * np.minimum(x, 3) + 0.4 * z + 0.5 * flag),
    }


def _against(g: np.random.Generator) -> Made:
    """.4 % of the records at 6 to 12 sds with outcomes against the slope, a feature that goes along, and a flag that marks them."""
    x = g.standard_normal((_SIZE, 2))
    y, out = _outcome(g, -0.3 + x @ [1.0, -0.7]), g.random(_SIZE) < 0.004
    x[out, 0] = g.uniform(6, 12, out.sum()) * g.choice([-1, 1], out.sum())
    y[out] = x[out, 0] < 0
    flag = (out & (g.random(_SIZE) < 0.7)) | (g.random(_SIZE) < 0.02)
    return {"x": x[:, 0], "z": 0.5 * x[:, 0] + 0.8 * x[:, 1], "f": flag.astype(int), "y": y}


def _bent(g: np.random.Generator) -> Made:
    """A mean that is a parabola of a feature with a t distribution (5 df)."""
    x = g.standard_t(5, _SIZE)
    z, f = 0.5 * x + g.standard_normal(_SIZE), (x + g.standard_normal(_SIZE) > 1.5).astype(int)
    return {"x": x, "z": z, "f": f, "y": _outcome(g, np.clip(-2 + 0.5 * x**2 - 0.3 * z + 0.4 * f, -4, 1))}


_FLAG, _NEAR = Integer(0, 1), Numeric(-6, 6)
#: name -> (columns, generator -> population of the columns that are declared)
DESIGNS: Mapping[str, tuple[Mapping[str, Any], Callable[[np.random.Generator], Made]]] = {
    "a long tail beside flags": ({"x": Numeric(0, 20), "f": _FLAG, "s": _FLAG}, _long),
    "a flag that marks the tail": ({"x": Numeric(0, 40), "z": _NEAR, "f": _FLAG}, _marked),
    "far records against the slope": ({"x": Numeric(-20, 20), "z": _NEAR, "f": _FLAG}, _against),
    "a parabola, t with 5 df": ({"x": Numeric(-20, 20), "z": _NEAR, "f": _FLAG}, _bent),
}


def cell(name: str, n: int, mu: float, relation: str, replications: int = REPLICATIONS) -> dict[str, Any]:
    """One cell."""
    columns, made = DESIGNS[name]
    schema, method = Schema({**columns, "y": _FLAG}), Logistic("y ~ " + " + ".join(columns))
    design, _ = binary_design(method.formula, schema)
    whole = pd.DataFrame(made(np.random.default_rng(crc32(name.encode()))))[list(schema.names)]
    truth = method.reference(CodedFrame.of(whole, schema))
    plan = cf.plan(method, schema, cf.GDP(mu, relation=relation), n=n)
    held, plain, added, withheld = list[bool](), list[bool](), list[float](), 0
    for r in range(replications):
        rows = np.random.default_rng([crc32(name.encode()), n, r]).integers(0, _SIZE, n)
        sample = whole.iloc[rows].reset_index(drop=True)
        release = seal(
            method, cf.read(sample, schema), plan, SimulatedNoise(crc32(f"{name} {n} {mu} {relation} {r}".encode()))
        )
        result: Any = method.infer(release)
        reading = FisherReading(release, ResultOptions(), design, ("0", "1"))
        if result.status != "partial" or not reading._wide:
            continue
        withheld += 1
        ends, bare = result.conf_int(), plain_intervals(method, CodedFrame.of(sample, schema))
        close = np.abs(reading.sandwich.correlation()[:, reading._wide]).max(axis=1) > _TIED
        for j, key in enumerate(result.names):
            low, high = ends.loc[key]
            if j and close[j] and np.isfinite(low) and key in bare:
                held.append(low <= truth[key] <= high)
                plain.append(bare[key][0] <= truth[key] <= bare[key][1])
                added.append(float(reading.bias[j] / reading._half[j]))
    found: dict[str, Any] = {
        "design": name,
        "n": n,
        "mu": mu,
        "relation": relation,
        "withheld": withheld,
        "intervals": len(held),
    }
    if held:
        found |= {
            key: float(np.mean(values)) for key, values in (("coverage", held), ("plain", plain), ("added", added))
        }
        found["high"] = interval(np.array(held))[2]
    return found


def run() -> list[dict[str, Any]]:
    """All cells, as a table."""
    checks = []
    print("| design | n | mu | relation | withheld in | intervals beside | coverage | without privacy | added |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in DESIGNS:
        for n, mu, relation in CELLS:
            row = cell(name, n, mu, relation)
            rest = [f"{row[key]:.2f}" if key in row else "-" for key in ("coverage", "plain", "added")]
            first = [name, f"{n:,}", f"{mu:g}", relation, f"{row['withheld']}", f"{row['intervals']}"]
            print(f"| {' | '.join([*first, *rest])} |", flush=True)
            if "coverage" in row:
                low = min(0.93, row["plain"] - 0.03)
                said = f"beside {name}, n={n} mu={mu:g} {relation}"
                checks.append({"check": said, "value": row["coverage"], "low": low, "passed": row["high"] >= low})
    return checks
