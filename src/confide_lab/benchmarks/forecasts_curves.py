"""What plans of smoothed curves forecast against what happens: `confide lab bench forecasts_curves`.

One curve of each real set of CONFIDE_DATA that has a feature to draw it over (bandwidth a twelfth of its public bounds), n = 2,000 and
10,000, mu = .3, 1, 3, three releases each. A plan says one standard error, of the curve in the middle of the bounds, for an even feature
and residuals of a quarter of the response's range: its word is an order of magnitude. Printed: the median over the points with an interval
of the realised standard errors over it, and the share of the points that have an interval, for which a plan says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.curves import Kernel
from confide.noise import SimulatedNoise
from confide.protocol import seal
from confide_lab.datasets import available
from confide_lab.datasets import table as table_of

#: Set and feature.
CURVES = (
    ("D4", "length"),
    ("D6", "alcohol"),
    ("D8", "t1"),
    ("bike", "temp"),
    ("airfoil", "frequency"),
    ("concrete", "cement"),
    ("casp", "f1"),
    ("kin8nm", "theta3"),
    ("california", "median_income"),
    ("adult", "age"),
)
SIZES, LEVELS, RELEASES, WIDTH = (2_000, 10_000), (0.3, 1.0, 3.0), 3, 12


def cells() -> Iterator[dict[str, Any]]:
    """One row for each set, n and mu."""
    for name, feature in CURVES:
        if available(name) is not None:
            continue
        found = table_of(name)
        column = found.schema[feature]
        method = Kernel(f"{found.target} ~ {feature}", bandwidth=(column.high - column.low) / WIDTH)
        for n in SIZES:
            for mu in LEVELS:
                plan = cf.plan(method, found.schema, cf.GDP(mu), n=n)
                said = plan.forecast[f"{n:,}"]["curve"]
                ratios, shares = [], []
                for r in range(RELEASES):
                    rows = np.random.default_rng([20261123, n, r]).integers(0, len(found.frame), n)
                    source = cf.read(found.frame.iloc[rows].reset_index(drop=True), found.schema)
                    result: Any = method.infer(seal(method, source, plan, SimulatedNoise(r)))
                    limits = result.conf_int().to_numpy(dtype=float)
                    half = (limits[:, 1] - limits[:, 0]) / 2 / 1.96
                    told = np.isfinite(half)
                    shares.append(told.mean())
                    ratios += [np.median(half[told]) / said] if told.any() else []
                ratio = float(np.median(ratios)) if ratios else np.nan
                yield {"set": name, "n": n, "mu": mu, "said": said, "ratio": ratio, "points": float(np.mean(shares))}


def run() -> list[dict[str, Any]]:
    """All cells."""
    found = pd.DataFrame(list(cells()))
    if not len(found):
        print("skipped: set CONFIDE_DATA to the folder of the data sets")
        return []
    print(found.round(2).to_string(index=False))
    near = np.abs(np.log(found["ratio"].dropna()))
    within = {factor: float((near <= np.log(factor)).mean()) for factor in (2, 4)}
    print(
        f"realised over said: median {found['ratio'].median():.2f}, within 2 in {within[2]:.2f}, within 4 in {within[4]:.2f}"
    )
    return [{"check": "forecasts of curves: within 4", "value": within[4], "passed": True}]
