"""Size and power of joint tests: how often a true set of restrictions is rejected at 5 %, and a false one.

Cells: four kinds of records, n, mu. Restrictions: the first 2, 4 and all 8 slopes have their true values (size), or values that lie away
by as much as the test that knows the covariance of the released estimate (from all runs of the cell) rejects in three quarters of runs
(power; the direction is drawn anew in each run). A size fails if the 99.9 % interval misses [.03, .07], a power if it is below .8 of the
other's by more than chance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, stats

import confide as cf
from benchmarks.coverage import consistent, interval

Array = NDArray[np.float64]
SLOPES = (1.0, -0.5, 0.5, 0.2, 0.0, 0.3, -0.4, 0.1)
RESTRICTIONS = (2, 4, 8)
KINDS = ("normal", "unequal", "skewed", "rare")
SIZES = ((500, 3.0), (2_000, 1.0), (2_000, 3.0), (10_000, 0.3), (10_000, 1.0), (10_000, 3.0))


def features(kind: str, n: int, generator: np.random.Generator) -> Array:
    """(n, 8): uniform; or two of them skewed; or three indicators of 5 %, 10 % and 30 %."""
    x = generator.uniform(-1, 1, (n, len(SLOPES)))
    if kind == "skewed":
        x[:, :2] = np.clip(generator.exponential(0.25, (n, 2)) - 1, -1, 1)
    if kind == "rare":
        x[:, :3] = generator.uniform(size=(n, 3)) < (0.05, 0.1, 0.3)
    return x


def errors(kind: str, x: Array, generator: np.random.Generator) -> Array:
    """(n,): mean 0 at every x, sd about 1."""
    if kind == "skewed":
        return np.asarray(generator.exponential(1.0, len(x)) - 1)
    spread = 0.4 + 1.2 * np.abs(x[:, 3]) if kind == "unequal" else np.ones(len(x))
    return np.asarray(spread * generator.standard_normal(len(x)))


def schema(kind: str) -> cf.Schema:
    low = -1.0
    indicators = 3 if kind == "rare" else 0
    columns: dict[str, Any] = {
        f"x{j}": cf.Integer(0, 1) if j < indicators else cf.Numeric(low, 1) for j in range(len(SLOPES))
    }
    return cf.Schema({**columns, "y": cf.Numeric(-8, 8)})


def releases(make: Callable[[str], Any], kind: str, n: int, mu: float, runs: int, seed: int) -> list[Any]:
    """Tables with an interval, one a run."""
    formula = "y ~ " + " + ".join(f"x{j}" for j in range(len(SLOPES)))
    method, columns = make(formula), schema(kind)
    found = []
    for run in range(runs):
        generator = np.random.default_rng((seed, KINDS.index(kind), n, run))
        x = features(kind, n, generator)
        y = x @ np.array(SLOPES) + errors(kind, x, generator)
        frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(len(SLOPES))]).assign(y=y)
        if kind == "rare":
            frame = frame.astype({f"x{j}": int for j in range(3)})
        noise = cf.noise.SimulatedNoise(hash((seed, n, round(10 * mu), run)) % 2**31)
        table = cf.infer(cf.release(method, cf.read(frame, columns), cf.GDP(mu), ledger=None, noise=noise))
        if table.status == "ok":
            found.append(table)
    return found


def distance(q: int) -> float:
    """How far away, in standard errors, a chi-square test of q restrictions at 5 % rejects in three quarters of cases."""
    critical = stats.chi2.ppf(0.95, q)
    return sqrt(float(optimize.brentq(lambda away: stats.ncx2.sf(critical, q, away) - 0.75, 0.1, 100)))


def judge(tables: list[Any], q: int, seed: int) -> dict[str, NDArray[np.bool_]]:
    """Rejections at 5 %, one a table: of the truth, of a false null, and of the latter by the known covariance."""
    rows = np.eye(len(SLOPES) + 1)[1 : q + 1]
    estimates = np.array([table.estimates[1 : q + 1] for table in tables])
    truth = np.array(SLOPES[:q])
    covariance = (estimates - truth).T @ (estimates - truth) / len(tables)
    root, inverse = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    critical = stats.chi2.ppf(0.95, q)
    generator = np.random.default_rng((seed, q))
    size, power, known = [], [], []
    for table, estimate in zip(tables, estimates, strict=True):
        direction = generator.standard_normal(q)
        away = truth + distance(q) * root @ direction / np.linalg.norm(direction)
        size.append(table.wald_test(rows, truth).pvalue < 0.05)
        power.append(table.wald_test(rows, away).pvalue < 0.05)
        known.append((estimate - away) @ inverse @ (estimate - away) > critical)
    return {"size": np.array(size), "power": np.array(power), "known": np.array(known)}


def cell(kind: str, n: int, mu: float, runs: int, seed: int = 7, make: Any = None) -> list[dict[str, Any]]:
    """Rows of one cell, one for each number of restrictions; none where fewer than a third of the runs have an interval."""
    tables = releases(make or cf.regression.SSP, kind, n, mu, runs, seed)
    if 3 * len(tables) < runs:
        print(f"       {kind} n={n} mu={mu:g}: intervals in {len(tables)} of {runs} runs, no test")
        return []
    rows = []
    for q in RESTRICTIONS:
        found = judge(tables, q, seed)
        mean, low, high = interval(found["size"])
        power, other = found["power"].mean(), found["known"].mean()
        passed = consistent(found["size"], 0.03, 0.07) and consistent(found["power"], 0.8 * other, 1.0)
        print(
            f"{'ok    ' if passed else 'FAILED'} {kind} n={n} mu={mu:g}, {q} restrictions: size {mean:.3f} [{low:.3f}, {high:.3f}], "
            f"power {power:.2f} of {other:.2f} ({len(tables)} of {runs} runs)",
            flush=True,
        )
        rows.append(
            {
                "check": f"joint test, {kind} n={n} mu={mu:g}, {q} restrictions: size",
                "value": float(mean),
                "interval": [low, high],
                "low": 0.03,
                "high": 0.07,
                "power": float(power),
                "power of the known covariance": float(other),
                "ok": len(tables) / runs,
                "passed": bool(passed),
            }
        )
    return rows


def run(runs: int = 400) -> list[dict[str, Any]]:
    return [row for kind in KINDS for n, mu in SIZES for row in cell(kind, n, mu, runs)]
