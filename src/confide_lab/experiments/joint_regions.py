"""Simultaneous regions of posteriors: how often all parameters at once lie within them, beside intervals that are read separately."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import confide as cf
from confide_lab.experiment import Block, Experiment, Quantity
from confide_lab.experiments.measures import shared

__all__ = ["REGIONS"]

_SHARES = np.array([0.4, 0.3, 0.2, 0.07, 0.03])


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """together: whether the region holds every parameter; apart: whether the separate intervals do; width: of the first over those."""
    draw, n = shared("joint regions", at), int(at["n"])
    if at["question"] == "slopes":
        x = draw.uniform(-1, 1, (n, 4))
        slopes = np.array([0.6, -0.4, 0.2, 0.0])
        y = 0.3 + x @ slopes + 0.4 * draw.standard_normal(n)
        names = [f"x{j}" for j in range(4)]
        schema = cf.Schema(
            {**{k: cf.Numeric(-1, 1, on_missing=0.0) for k in names}, "y": cf.Numeric(-4, 4, on_missing=0.0)}
        )
        data = cf.read({**{k: x[:, j] for j, k in enumerate(names)}, "y": np.clip(y, -4, 4)}, schema)
        method: Any = cf.intervals.Slope(f"y ~ {' + '.join(names)}")
        truth = np.array([0.3, *slopes])
    else:
        levels = list("abcde")
        schema = cf.Schema({"g": cf.Categorical(levels, on_missing="a")})
        data = cf.read({"g": draw.choice(levels, n, p=_SHARES)}, schema)
        method, truth = cf.intervals.Proportion("g"), _SHARES
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**31)))
    found: Any = cf.infer(cf.release(method, data, cf.GDP(at["mu"]), ledger=None, noise=noise))
    if found.status != "valid":
        return {"answered": 0.0, "together": np.nan, "apart": np.nan, "width": np.nan}
    both = [found.conf_int(simultaneous=own).to_numpy() for own in (True, False)]
    held = [float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).all()) for ends in both]
    wide, narrow = (np.diff(ends, axis=1).ravel() for ends in both)
    return {"answered": 1.0, "together": held[0], "apart": held[1], "width": float(np.median(wide / narrow))}


REGIONS = Experiment(
    "intervals.regions",
    "Simultaneous regions of posteriors",
    (
        Block(
            "regions",
            {"question": ("slopes", "shares"), "n": (500, 5_000), "mu": (0.5, 2.0)},
            ("posterior",),
            measure,
            (
                Quantity("answered", label="share of releases with status valid"),
                Quantity("together", label="share of 95 % regions that hold all parameters"),
                Quantity("apart", label="share of releases whose separate 95 % intervals all hold"),
                Quantity("width", "median", label="width of a region's side over that of the separate interval"),
            ),
            replications=200,
            titles={"posterior": "cf.intervals, conf_int(simultaneous=True)"},
        ),
    ),
    sources=("Besag, Green, Higdon, Mengersen 1995, section 6.3",),
    notes=("Five coefficients of a normal line with four uniform features, or the shares of five levels, .4 to .03.",),
)
