"""Generalized propose-test-release for mechanisms of one's own: features chosen by votes of blocks, `cf.ptr.select_features`, and a mean of
a group by `cf.ptr.generalized_release` beside a safety bound of the same mean."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

import confide as cf
from confide_lab.experiment import Block, Experiment, Quantity
from confide_lab.experiments.measures import shared

__all__ = ["OWN", "GroupMean"]

Array = NDArray[np.float64]
_DELTA, _TRUE, _FEATURES, _STEP = 1e-6, (1, 4), 8, 2**20


def measure_features(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """reply: whether the release answered; right: whether the two features are the true ones, among replies."""
    draw, n = shared("own features", at), int(at["n"])
    x = draw.random((n, _FEATURES))
    y = at["effect"] * (x[:, _TRUE[0]] - x[:, _TRUE[1]]) + draw.standard_normal(n)
    names = [f"x{j}" for j in range(_FEATURES)]
    if at["method"] == "records":
        from confide.methods.ptr.feature_votes import forward

        return {"reply": 1.0, "right": float(sorted(forward(np.column_stack([x, y]), 2)) == list(_TRUE))}
    schema = cf.Schema(
        {**{name: cf.Numeric(0, 1, on_missing="midpoint") for name in names}, "y": cf.Numeric(-8, 8, on_missing=0.0)}
    )
    data = cf.read({**{name: x[:, j] for j, name in enumerate(names)}, "y": np.clip(y, -8, 8)}, schema)
    found = cf.ptr.select_features(
        f"y ~ {' + '.join(names)}",
        data,
        2,
        privacy=cf.ApproxDP(at["epsilon"], _DELTA),
        ledger=None,
        n=n,
        noise=cf.noise.SimulatedNoise(int(generator.integers(2**31))),
    )
    if found.status != "valid":
        return {"reply": 0.0, "right": nan}
    return {"reply": 1.0, "right": float(found.names == tuple(f"x{j}" for j in _TRUE))}


class GroupMean(cf.ptr.SafetyBound):
    """The mean of y among records with x above 1/2, where at least `least` of them are there."""

    dim = 1

    def __init__(self, least: int) -> None:
        self.least, self.alpha = least, 1 / least

    def gamma(self, data: Array) -> float:
        return max(int((data[:, 0] > 0.5).sum()) - (self.least - 1), 0)

    def estimate(self, data: Array) -> Any:
        return data[data[:, 0] > 0.5, 1].mean()


def measure_group(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """distance: of the released mean from that of the records; reply."""
    draw, n = shared("own group", at), int(at["n"])
    table = np.column_stack([draw.random(n) < at["share"], draw.beta(2, 5, n)]).astype(float)
    schema = cf.Schema({name: cf.Numeric(0, 1, on_missing="midpoint") for name in "xy"})
    data, least = cf.read({"x": table[:, 0], "y": table[:, 1]}, schema), max(int(n * at["share"] / 2), 2)
    privacy, noise = cf.ApproxDP(1.0, _DELTA), cf.noise.SimulatedNoise(int(generator.integers(2**31)))
    if at["method"] == "safety_bound":
        method: Any = cf.ptr.SafeRelease(GroupMean(least), gamma_plan=float(least))
    else:
        scale = least * 3 // 4  # the loss is that of noise 1/scale: at most 3/4 from `least` on

        def mechanism(rows: Array, source: Any) -> Any:
            return np.rint(rows[rows[:, 0] > 0.5, 1].mean() * _STEP) + source.discrete_laplace(_STEP // scale, 1)

        def loss(k: float) -> float:
            return _STEP / (_STEP // scale) * (1 / k + 2 / _STEP) if k >= 1 else inf

        method = cf.ptr.GeneralizedRelease(
            mechanism, loss, lambda rows: float((rows[:, 0] > 0.5).sum()), 1.0, grid=1 / _STEP
        )
    release = cf.release(method, data, privacy, ledger=None, n=n, noise=noise)
    found = method.infer(release)
    if found.status == "declined":
        return {"reply": 0.0, "distance": nan}
    return {"reply": 1.0, "distance": float(found.estimates[0] - table[table[:, 0] > 0.5, 1].mean())}


OWN = Experiment(
    "ptr.features",
    "Generalized propose-test-release for users: features by votes of blocks, and a mechanism of one's own",
    (
        Block(
            "features",
            {"n": (2_000, 20_000), "effect": (0.0, 1.0, 2.0), "epsilon": (0.5, 2.0)},
            ("records", "votes"),
            measure_features,
            (
                Quantity("reply", label="share of runs with a reply"),
                Quantity("right", label="share of replies with the two true features"),
            ),
            replications=40,
            titles={"records": "forward search on the records (not private)", "votes": "cf.ptr.select_features"},
        ),
        Block(
            "group",
            {"n": (2_000, 20_000), "share": (0.1, 0.5)},
            ("safety_bound", "loss"),
            measure_group,
            (
                Quantity("reply", label="share of runs with a reply"),
                Quantity("error", "rms", of="distance", label="root mean square error beside the records' mean"),
            ),
            replications=40,
            titles={
                "safety_bound": "SafeRelease, mode gdp",
                "loss": "cf.ptr.generalized_release, Laplace noise",
            },
        ),
    ),
    sources=("Redberg, Zhu, Wang 2023, Theorem 4.3 and C.4: no number is printed",),
    notes=(
        "Eight uniform features, two with slopes of plus and minus the effect, errors of sd 1; 100 blocks; delta = 1e-6.",
        "The mean of a group of the stated share: both methods are made for half of its size, at epsilon = 1.",
    ),
)
