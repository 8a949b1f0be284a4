"""Logistic regression: coverage of its intervals with privacy noise, and its time beside scikit-learn's.

`confide lab bench logistic` runs both; CONFIDE_LOGISTIC_REPS (default 300) sets the replications of each cell.
"""

from __future__ import annotations

import os
import time
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from threadpoolctl import threadpool_limits

import confide as cf
from confide.core import seal
from confide.noise import SecureNoise, SimulatedNoise
from confide_lab.benchmarks.coverage import interval
from confide_lab.methods.logistic.labelled_rows import CurvatureRows, LabelledRows
from confide_lab.methods.logistic.methods import LogisticObjective, LogisticPTR, PerturbedLogistic

REPLICATIONS = int(os.environ.get("CONFIDE_LOGISTIC_REPS", "300"))

_METHODS = {"objective": LogisticObjective, "ptr": LogisticPTR}
#: mechanism, records, features, epsilon, factor of the slopes, correlated features
CELLS = (
    ("objective", 500, 1, 1.0, 1.0, False),
    ("objective", 2_000, 2, 1.0, 3.0, False),
    ("objective", 4_000, 5, 1.0, 1.0, False),
    ("objective", 10_000, 5, 0.2, 1.0, False),
    ("objective", 10_000, 5, 1.0, 1.0, False),
    ("objective", 10_000, 5, 1.0, 2.0, True),
    ("objective", 2_000, 5, 5.0, 1.0, False),
    ("objective", 20_000, 10, 1.0, 1.0, False),
    ("ptr", 20_000, 5, 1.0, 1.0, False),
)


def schema(d: int) -> cf.Schema:
    return cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(d)}, "y": cf.Integer(0, 1)})


def table(n: int, slopes: np.ndarray, correlated: bool, g: np.random.Generator) -> pd.DataFrame:
    d = len(slopes) - 1
    x = g.uniform(-1, 1, (n, d))
    if correlated:
        x = np.clip(0.35 * (0.8 * g.standard_normal((n, d)) + 0.6 * g.standard_normal((n, 1))), -1, 1)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(d)])
    frame["y"] = (g.random(n) < special.expit(slopes[0] + x @ slopes[1:])).astype(int)
    return frame


def cover(mechanism: str, n: int, d: int, epsilon: float, factor: float, correlated: bool) -> dict[str, Any]:
    """Coverage over replications, clustered; naive: the inverse Hessian around theta, without privacy noise and ridge."""
    truth = np.array([-0.5, *(factor * (-1) ** j * (1 - 0.1 * (j % 5)) for j in range(d))])
    names = " + ".join(f"x{j}" for j in range(d))
    method = _METHODS[mechanism](f"y ~ {names}")
    public = schema(d)
    asked: cf.GDP | cf.ApproxDP = cf.ApproxDP(epsilon, 1e-6)
    plan = cf.plan(method, public, asked)
    hits, naive, widths = [], [], []
    for seed in range(REPLICATIONS):
        frame = table(n, truth, correlated, np.random.default_rng(seed))
        release = seal(method, cf.read(frame, public), plan, SimulatedNoise(seed))
        theta, bent = _parts(release, d + 1, method)
        with np.errstate(invalid="ignore"):
            sd = np.sqrt(np.diag(np.linalg.inv(bent)))
        naive.append(np.abs(theta - truth) <= 1.96 * sd)
        found = method.infer(release)
        if found.status == "valid":
            low, high = found.conf_int().to_numpy().T
            hits.append((low <= truth) & (truth <= high))
            widths.append(float((high - low).mean()))
    mean, low, high = interval(np.array(hits))
    forgotten, _, top = interval(np.array(naive))
    return {
        "check": f"coverage {mechanism} n={n:,} d={d} eps={epsilon:g} slopes x{factor:g}{' correlated' if correlated else ''}",
        "coverage": round(mean, 4),
        "interval": [round(low, 4), round(high, 4)],
        "naive": round(forgotten, 4),
        "naive fails": top < 0.95,
        "intervals given": len(hits),
        "width": round(float(np.median(widths)), 3),
        "passed": low <= 0.975 and high >= 0.93 and len(hits) > REPLICATIONS / 2,
    }


def _parts(release: cf.Release, p: int, method: PerturbedLogistic) -> tuple[np.ndarray, np.ndarray]:
    """theta and the noisy Hessian; features lie in [-1, 1], so that scaled units are those of the data."""
    if method.name == "logistic_objective":
        drawn = release["logistic"].decode()
        theta, upper = drawn[:p], drawn[p:]
    else:
        design, _ = method._design(release.plan.declared)
        unit = CurvatureRows(LabelledRows(design), method._cut(design)).unit ** 2
        theta = release["minimiser"].decode() * float(release.public["step"][0])
        upper = release["curvature"].decode()[np.triu_indices(p)] / unit
    bent = np.zeros((p, p))
    bent[np.triu_indices(p)] = upper
    bent.T[np.triu_indices(p)] = upper
    return theta, bent


def speed() -> dict[str, Any]:
    """10^5 records of 20 features: plan to release with secure noise against `LogisticRegression().fit`, interleaved, one thread."""
    from sklearn.linear_model import LogisticRegression

    g = np.random.default_rng(0)
    slopes = np.concatenate([[0.3], 0.7 * g.standard_normal(20)])
    frame = table(100_000, slopes, False, g)
    x, y = frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()
    source = cf.read(frame, schema(20))
    method = LogisticObjective("y ~ " + " + ".join(f"x{j}" for j in range(20)))
    ours, theirs = [], []
    with threadpool_limits(1):
        for _ in range(9):
            start = time.perf_counter()
            plan = cf.plan(method, source.schema, cf.ApproxDP(1.0, 1e-6))
            seal(method, source, plan, SecureNoise())
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            LogisticRegression().fit(x, y)
            theirs.append(time.perf_counter() - start)
    ratio = median(ours) / median(theirs)
    return {
        "check": "time of a release over scikit-learn's fit, n=100,000 d=20",
        "ours": round(median(ours), 4),
        "scikit-learn": round(median(theirs), 4),
        "ratio": round(ratio, 2),
        "passed": ratio <= 3,
    }


def run() -> list[dict[str, Any]]:
    found = [speed()]
    print(found[0], flush=True)
    for cell in CELLS:
        found.append(cover(*cell))
        print(found[-1], flush=True)
    return found


if __name__ == "__main__":
    run()
