"""What plans of smoothed curves forecast against what happens: `confide lab bench forecasts_curves`.

One curve of each real set of CONFIDE_DATA that has a feature to draw it over (bandwidth a twelfth of its public bounds), n = 2,000 and
10,000, mu = .3, 1, 3, three releases each, nothing stated. A plan says between what the median standard error over the points with an
interval lies, the chance of status "valid" and the share of the points that have one. Printed: each cell; how often the realised median
lies within what was said; the median ratio of the interval's ends; and what came of the chances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.core import seal
from confide.curves import Kernel
from confide.noise import SimulatedNoise
from confide_lab.datasets import available, table as table_of

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
                said, key = plan.forecast, f"{n:,}"
                low, high = said[key]["curve"] or (np.nan, np.nan)
                errors, shares, ok = [], [], []
                for r in range(RELEASES):
                    rows = np.random.default_rng([20261123, n, r]).integers(0, len(found.frame), n)
                    source = cf.read(found.frame.iloc[rows].reset_index(drop=True), found.schema)
                    result: Any = method.infer(seal(method, source, plan, SimulatedNoise(r)))
                    limits = result.conf_int().to_numpy(dtype=float)
                    half = (limits[:, 1] - limits[:, 0]) / 2
                    # where nothing is told the interval is all that the bounds allow
                    told = half < (1 - 1e-9) * (found.schema[found.target].high - found.schema[found.target].low) / 2
                    ok.append(result.status == "valid")
                    shares.append(told.mean())
                    errors += [np.median(half[told]) / 1.96] if told.any() else []
                yield {
                    "set": name, "n": n, "mu": mu, "low": low, "high": high, "realised": np.median(errors) if errors else np.nan,
                    "chance": said["valid"][key], "ok": np.mean(ok), "share": said["answered"][key], "points": np.mean(shares),
                }  # fmt: skip


def run() -> list[dict[str, Any]]:
    """All cells."""
    found = pd.DataFrame(list(cells()))
    if not len(found):
        print("skipped: set CONFIDE_DATA to the folder of the data sets")
        return []
    print(found.to_string(index=False, float_format="{:.3g}".format))
    seen = found[found["realised"].notna()]
    within = float(seen["realised"].between(seen["low"], seen["high"]).mean())
    apart = (seen["high"] / seen["low"]).median()
    print(
        f"{within:.3f} of {len(seen)} realised medians lie within what was said, its ends {apart:.0f} times apart (median)"
    )
    words = pd.cut(found["chance"], [-0.01, 0.2, 0.799, 1.0], labels=["no", "open", "likely"])
    came = found.groupby(words, observed=True).agg(
        cells=("n", "size"),
        chance=("chance", "mean"),
        ok=("ok", "mean"),
        share=("share", "mean"),
        points=("points", "mean"),
    )
    print(f"what was said of status valid, and what came\n{came.round(2).to_string()}")
    return [{"check": "forecasts of curves: within", "value": within, "passed": within >= 0.9}]
