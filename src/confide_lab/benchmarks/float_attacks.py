"""Attacks on floating point: on releases of this library, and the same on diffprivlib as a positive control.

    confide lab bench float_attacks

Releases that are computed in doubles inside an opaque event, and those that were, get two attacks more: the least step of each integer of
noise must not show in what is published (`confide.audit.replay.opaque`), and the last digit of what is published must not tell
neighbors apart.

Each attack fixes an event in advance, runs both neighbors, and bounds from below the epsilon that the two rates imply
(Clopper-Pearson at 99.9 %, at the claim's own delta). It succeeds when that is above the claim. An attack that never
succeeds anywhere would prove nothing: the control must fall where it is marked so.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from math import inf, log
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import confide as cf
from confide.audit.replay.opaque import lattice
from confide.core import seal
from confide_lab.benchmarks.planted.lattice import OldSampling
from confide_lab.benchmarks.rival import python_of_diffprivlib
from confide_lab.methods import AdaOPS, JohnsonLindenstrauss, PosteriorSampling, SmoothNaiveBayes
from confide_lab.methods.logistic.methods import LogisticObjective

RUNS = 500
SCHEMA = cf.Schema({"y": cf.Numeric(0, 1)})
_WIDE = cf.Schema({"a": cf.Numeric(-1, 1), "b": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
_LABELS = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
#: Opaque releases of real numbers: every method whose assumptions name float64, and those whose sampling was once in doubles.
OPAQUE: dict[str, tuple[Any, cf.Schema, Any]] = {
    "johnson_lindenstrauss": (JohnsonLindenstrauss("y ~ a + b"), _WIDE, cf.ApproxDP(1.0, 1e-6)),
    "logistic_objective": (LogisticObjective("y ~ a"), _LABELS, cf.ApproxDP(1.0, 1e-6)),
    "posterior_sampling": (PosteriorSampling("y ~ a + b"), _WIDE, cf.GDP(1.0, 1e-6)),
    "adaops": (AdaOPS("y ~ a + b"), _WIDE, cf.GDP(1.0, 1e-6)),
    "smooth_naive_bayes": (SmoothNaiveBayes("y ~ a"), _LABELS, cf.PureDP(1.0)),
    "smooth_naive_bayes at 0.001": (SmoothNaiveBayes("y ~ a"), _LABELS, cf.PureDP(1e-3)),
}
_OPAQUE_RUNS = 200
METHOD = cf.regression.SSP("y ~ 1", cov="classical", clipping_check=False)
CLAIM = cf.GDP(1.0)

# Both neighbors of each attack, as the records of column y. The last one differs in order alone.
QUIET = [0.25, 0.5, 0.75]
NAN_PAYLOAD = np.array([0x7FF8DEADBEEF0001], dtype=np.uint64).view(np.float64)[0]
PAIRS: dict[str, tuple[list[float], list[float]]] = {
    "lattice: outputs between the steps of the noise": ([0.0], [1.0]),
    "lattice: low bits of the outputs": ([0.0], [1.0]),
    "a missing value shows": ([*QUIET, float("nan")], QUIET),
    "a payload of NaN shows": ([*QUIET, float(NAN_PAYLOAD)], [*QUIET, float("nan")]),
    "overflow of a sum": ([1.7e308] * 3, [1.7e308]),
    "an infinity shows": ([*QUIET, inf], QUIET),
    "the sign of zero": ([-0.0], [0.0]),
    "a subnormal": ([5e-324], [0.0]),
    "limits of 64-bit integers": ([float(2**63), -float(2**63)], [float(2**63)]),
}

_CONTROL = """
import json, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib import tools
from diffprivlib.mechanisms import Laplace

def outputs(value, runs):
    mechanism = Laplace(epsilon=1, sensitivity=1)
    return np.array([mechanism.randomise(value) for _ in range(runs)])

def fine(y):
    # a float near 0 has more digits than one that came from 1 - 1 + small
    scaled = y * 2.0**53
    return float(np.sum((np.abs(y) < 0.25) & (scaled != np.rint(scaled))))

runs = RUNS
few = runs // 10
out = {}
out["lattice: outputs between the steps of the noise"] = [fine(outputs(0.0, runs)), fine(outputs(1.0, runs)), runs]
quiet = [0.25, 0.5, 0.75]
def total(records, high):
    return [tools.sum(np.array(records), epsilon=1, bounds=(0, high)) for _ in range(few)]
out["a missing value shows"] = [float(np.isnan(total([*quiet, np.nan], 1)).sum()), float(np.isnan(total(quiet, 1)).sum()), few]
out["overflow of a sum"] = [float(np.isinf(total([1.7e308] * 3, 1.7e308)).sum()), float(np.isinf(total([1.7e308], 1.7e308)).sum()), few]
print(json.dumps(out))
"""
FALLS = ("lattice: outputs between the steps of the noise", "a missing value shows", "overflow of a sum")


def epsilon_from(hits: float, other: float, runs: float, delta: float) -> float:
    """A lower bound of epsilon at 99.9 % from how often an event was seen under each neighbor; the better direction."""
    best = 0.0
    for a, b in ((hits, other), (other, hits), (runs - hits, runs - other), (runs - other, runs - hits)):
        low = float(stats.beta.ppf(0.0005, a, runs - a + 1)) if a else 0.0
        high = float(stats.beta.ppf(0.9995, b + 1, runs - b)) if b < runs else 1.0
        if low > delta:
            best = max(best, log((low - delta) / high))
    return best


def _released(records: list[float], runs: int, seed: int) -> np.ndarray:
    """The released numbers in units of their own step, as integers: (runs, numbers)."""
    source = cf.read(pd.DataFrame({"y": records}), SCHEMA)
    rows = []
    for run in range(runs):
        release = cf.release(METHOD, source, CLAIM, ledger=None, noise=cf.noise.SimulatedNoise(seed).spawn(run))
        noisy = release["moments"]
        decoded = noisy.decode()[np.triu_indices(2)]
        rows.append(decoded / float(noisy.step))
    return np.array(rows)


def _event(name: str) -> Callable[[np.ndarray], np.ndarray]:
    if name.startswith("lattice: outputs"):
        return lambda y: (y != np.rint(y)).any(axis=1)
    if name.startswith("lattice: low"):
        return lambda y: (y[:, -1].astype(np.int64) & 1) == 1
    return lambda y: ~np.isfinite(y).all(axis=1)


def run() -> list[dict[str, Any]]:
    """One row per attack and target."""
    control = json.loads(
        subprocess.run(
            [python_of_diffprivlib(), "-c", _CONTROL.replace("RUNS", str(20_000))],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    limit = CLAIM.to_approx(delta=1e-3)
    rows: list[dict[str, Any]] = []
    for k, (name, (records, other)) in enumerate(PAIRS.items()):
        event = _event(name)
        ours = [_released(records, RUNS, 2 * k), _released(other, RUNS, 2 * k + 1)]
        hits = [float(event(y).sum()) for y in ours]
        lower = epsilon_from(*hits, RUNS, limit.delta)
        row: dict[str, Any] = {
            "check": name,
            "passed": lower <= limit.epsilon,
            "epsilon_lower": lower,
            "claim": limit.epsilon,
        }
        row["hits"] = hits
        if name in control:
            found = epsilon_from(*control[name], 0.0)
            row["control_epsilon_lower"], row["control_claim"] = found, 1.0
            row["passed"] = row["passed"] and found > 1.0
        rows.append(row)
        print(json.dumps(row), flush=True)
    for name, (method, schema, privacy) in OPAQUE.items():
        rows += opaque(name, method, schema, privacy)
        print(json.dumps(rows[-1]), flush=True)
    rows.append(_control())
    print(json.dumps(rows[-1]), flush=True)
    rows.append(_orders())
    print(json.dumps(rows[-1]), flush=True)
    return rows


def opaque(name: str, method: Any, schema: cf.Schema, privacy: Any, runs: int = _OPAQUE_RUNS) -> list[dict[str, Any]]:
    """The lattice of the noise, and the last digit of each published integer on 40 records and on 41."""
    records = schema.sample(41, 5)
    plan = cf.plan(method, schema, privacy)
    sources = [cf.read(data, schema) for data in (records.iloc[1:], records)]
    shown = lattice(method, plan, sources[1], seed=1)
    rows: list[dict[str, Any]] = [
        {"check": f"{name}: lattice of {one.name!r}", "passed": one.ok, "jump": one.jump, "allowed": one.allowed}
        for one in shown
    ]
    odd = []
    for side, source in enumerate(sources):
        ends = []
        for run in range(runs):
            noise = cf.noise.SimulatedNoise(side).spawn(run)
            with np.errstate(all="ignore"):
                release = seal(method, source, plan, noise)
            ends.append([int(v) & 1 for one in shown for v in release[one.name].values.ravel()])
        odd.append(np.array(ends).sum(axis=0))
    lower = max(epsilon_from(float(a), float(b), runs, 1e-3) for a, b in zip(*odd, strict=True))
    claim = privacy.to_approx(delta=1e-3).epsilon if isinstance(privacy, cf.GDP) else privacy.epsilon
    # the last digit is as good as a fair coin: nothing at all may be learnt from it, whatever the claim is
    rows.append(
        {"check": f"{name}: last digits", "passed": bool(shown) and lower <= min(claim, 0.05), "epsilon_lower": lower}
    )
    return rows


def _control() -> dict[str, Any]:
    """The sampling that posterior samples had: the attack on the lattice must see it."""
    method = OldSampling("y ~ a + b")
    plan = cf.plan(method, _WIDE, cf.GDP(1.0, 1e-6))
    (shown,) = lattice(method, plan, cf.read(_WIDE.sample(41, 5), _WIDE))
    return {"check": "control: noise of 2^-40 under a grid of 2^-50", "passed": not shown.ok, "jump": shown.jump}


def _orders() -> dict[str, Any]:
    """Six orders of records whose float sum depends on the order: one seed, one release, to the bit."""
    values = np.random.default_rng(3).uniform(size=501) * 10.0 ** np.random.default_rng(4).integers(-12, 1, 501)
    floats, releases = set(), set()
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(values)
        floats.add(float(sum(order)))
        source = cf.read(pd.DataFrame({"y": order}), SCHEMA)
        releases.add(cf.release(METHOD, source, CLAIM, ledger=None, noise=cf.noise.SimulatedNoise(1)).sha256)
    return {
        "check": "re-ordering of sums",
        "passed": len(releases) == 1 < len(floats),
        "float_sums": len(floats),
        "releases": len(releases),
    }


if __name__ == "__main__":
    run()
