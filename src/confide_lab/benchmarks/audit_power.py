"""How near an audit comes to a tight claim, and how often it cries wolf.

    confide lab bench audit_power

Power: mechanisms whose claim of mu = 1 or epsilon = 1 is exact, 10^6 draws in all, 20 seeds, confidence .99; asked is at least .8 of the
claim each time, and that noise 3 % too small is found each time. False alarms: the same kinds at 10^4 draws, 200 audits at confidence
.95; asked is that no more break than a level of 5 % allows (99.9 % bound).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import confide as cf
from confide.audit import Finding, epsilon_lower_bound, mu_lower_bound
from confide.guarantees import laplace
from confide_lab.runner import Study, run as run_study, version_of_sources

Mechanism = Callable[[Any, int], Any]

CASES = (
    "gaussian",
    "gaussian, 10 numbers",
    "gaussian, 50 numbers",
    "rounded gaussian",
    "laplace",
    "randomised response",
)
SHORT = ("noise x .97", "noise x .97, 50 numbers")


def _vector(size: int, scale: float, generator: np.random.Generator) -> Mechanism:
    direction = generator.normal(size=size)
    direction /= np.linalg.norm(direction)
    return lambda x, runs: x * direction + scale * generator.normal(size=(runs, size))


def attack(case: str, generator: np.random.Generator, runs: int, confidence: float) -> Finding:
    settings: dict[str, Any] = {"vectorized": True, "runs": runs, "confidence": confidence}
    match case:
        case "laplace":
            return epsilon_lower_bound(lambda x, k: x + generator.laplace(size=k), 0.0, 1.0, claim=1.0, **settings)
        case "laplace, whole curve":
            return mu_lower_bound(lambda x, k: x + generator.laplace(size=k), 0.0, 1.0, claim=laplace(1.0), **settings)
        case "randomised response":
            lie = 1 / (1 + np.exp(1.0))
            flip: Mechanism = lambda x, k: np.where(generator.random(k) < lie, 1 - x, x)  # noqa: E731
            return epsilon_lower_bound(flip, 0, 1, claim=1.0, **settings)
        case "rounded gaussian":
            noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
            return mu_lower_bound(
                lambda x, k: x + noise.grid_gaussian(2**20, k), 0, 1024, claim=cf.GDP(1.0), **settings
            )
    size = next((int(word) for word in case.split() if word.isdigit()), 1)
    scale = 0.97 if ".97" in case else 1.0
    return mu_lower_bound(_vector(size, scale, generator), 0.0, 1.0, claim=cf.GDP(1.0), **settings)


def measure(at: dict[str, Any], generator: np.random.Generator) -> dict[str, float]:
    found = attack(at["case"], generator, at["runs"], at["confidence"])
    return {"lower": found.lower_bound, "violated": float(found.violated)}


def run() -> list[dict[str, Any]]:
    version = version_of_sources(__file__)
    power = Study(
        "audit-power", {"case": (*CASES, *SHORT), "runs": (500_000,), "confidence": (0.99,)}, measure, 20, version
    )
    alarms = Study(
        "audit-alarms",
        {"case": ("gaussian", "gaussian, 10 numbers", "laplace", "laplace, whole curve", "randomised response"),
         "runs": (5_000,), "confidence": (0.95,)},
        measure, 200, version,
    )  # fmt: skip
    rows = []
    for case, cell in run_study(power, "out/bench/cells").groupby("case"):
        lowest, violated = float(cell["lower"].min()), int(cell["violated"].sum())
        short = case in SHORT
        rows.append(
            {
                "check": f"power: {case}",
                "lowest": lowest,
                "mean": float(cell["lower"].mean()),
                "violated": violated,
                "seeds": len(cell),
                "passed": violated == len(cell) if short else lowest >= 0.8 and violated == 0,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    for case, cell in run_study(alarms, "out/bench/cells").groupby("case"):
        violated, audits = int(cell["violated"].sum()), len(cell)
        least = float(stats.beta.ppf(0.001, violated, audits - violated + 1)) if violated else 0.0
        rows.append(
            {
                "check": f"false alarms: {case}",
                "violated": violated,
                "audits": audits,
                "level": 0.05,
                "passed": least <= 0.05,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows
