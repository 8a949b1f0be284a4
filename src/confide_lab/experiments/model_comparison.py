"""Nested models compared from one release by `cf.regression.compare_models`: size and power of its F test beside that of the records, and
whether the noise that it states for F, AIC and BIC is the noise that is in them."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.errors import NoResult
from confide_lab.experiment import Block, Experiment, Layout, Quantity
from confide_lab.experiments.measures import shared

__all__ = ["MODELS"]

Array = NDArray[np.float64]
_SLOPES, _LEFT_OUT, _LEVEL, _BOUNDS = (1.5, 1.0, 2.0), ("x3", "x4"), 0.05, (0.0, 8.0)
# Slopes of the two features that are left out, times sqrt(n): the F test of the records then has a power of about .8.
_STRONG = 7.6
_METHODS = {"least_squares": cf.regression.LeastSquares, "ssp": cf.regression.SSP}
_NOTHING = {"rejected": nan, "clear": nan, "answered": 0.0} | {
    f"{own}_{what}": nan for own in ("f", "aic", "bic") for what in ("held", "off")
}


def criteria(x: Array, y: Array, left_out: tuple[int, ...]) -> dict[str, float]:
    """F with its p-value, and AIC and BIC of the smaller model less the full one's, of the records themselves."""

    def residual(own: Array) -> float:
        design = np.column_stack([np.ones(len(y)), own])
        return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())

    n, q, p = len(y), len(left_out), x.shape[1] + 1
    full, smaller = residual(x), residual(np.delete(x, left_out, axis=1))
    f = (smaller - full) / q / (full / (n - p))
    lost = n * log(smaller / full)
    return {"f": f, "aic": lost - 2 * q, "bic": lost - q * log(n), "p": float(stats.f.sf(f, q, n - p))}


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Five features against the first three. held: whether the interval holds the records' number; off: how many noise sds the
    released number is off."""
    draw, n = shared("models", at), at["n"]
    x = draw.random((n, len(_SLOPES) + len(_LEFT_OUT)))
    effect = _STRONG / sqrt(n) if at["smaller"] == "wrong" else 0.0
    slopes = np.array([*_SLOPES, effect, effect])
    y = np.clip(1 + x @ slopes + draw.standard_normal(n), *_BOUNDS)
    own = criteria(x, y, (3, 4))
    found: dict[str, float | str] = {"answered": 1.0, "rejected": float(own["p"] < _LEVEL)}
    if at["method"] == "records":
        return _NOTHING | found | {"clear": float(own["bic"] > 0)}
    names = [f"x{j}" for j in range(x.shape[1])]
    schema = cf.Schema({**{name: cf.Numeric(0, 1) for name in names}, "y": cf.Numeric(*_BOUNDS)})
    data = cf.read({**{name: x[:, j] for j, name in enumerate(names)}, "y": y}, schema)
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**31)))
    release = cf.release(
        _METHODS[at["method"]](f"y ~ {' + '.join(names)}"), data, cf.GDP(1.0), ledger=None, noise=noise
    )
    try:
        row = cf.regression.compare_models(cf.infer(release), [list(_LEFT_OUT)]).to_frame().iloc[0]
    except NoResult:
        return dict(_NOTHING)
    found["rejected"] = float(row["p_value"] < _LEVEL)
    if np.isfinite(row["bic"]):
        found["clear"] = float(row["bic"] > 0)
    for name in ("f", "aic", "bic"):
        if np.isfinite(row[name]):
            found[f"{name}_held"] = float(row[f"{name}_low"] <= own[name] <= row[f"{name}_high"])
            found[f"{name}_off"] = (row[name] - own[name]) / row[f"{name}_noise_sd"]
    return _NOTHING | found


MODELS = Experiment(
    "models.comparison",
    "Comparison of nested models from one release: F test, F, AIC and BIC",
    (
        Block(
            "nested",
            {"smaller": ("right", "wrong"), "n": (500, 2_000, 10_000)},
            ("records", *_METHODS),
            measure,
            (
                Quantity("answered", label="share of releases with a comparison"),
                Quantity("rejected", label="share of F tests at 5 % that reject the smaller model"),
                Quantity("clear", label="share of choices of the full model by BIC"),
                Quantity("f_held", label="share of 95 % intervals that hold the F of the records"),
                Quantity("aic_held", label="the same of AIC"),
                Quantity("bic_held", label="the same of BIC"),
                Quantity("aic_spread", "rms", of="aic_off", label="root mean square error of AIC, in noise sds"),
            ),
            replications=400,
            titles={
                "records": "the records (not private)",
                "least_squares": "LeastSquares",
                "ssp": "SSP",
            },
            layouts=(
                Layout(("smaller", "n"), ("method",), quantity="rejected", title="F test at 5 %"),
                Layout(
                    ("smaller", "n"), ("method",), quantity="aic_held", title="Intervals that hold the records' AIC"
                ),
            ),
        ),
    ),
    sources=("confide.regression.compare_models",),
    notes=(
        "Five uniform features, slopes 1.5, 1 and 2; the last two are left out. Where the smaller model is right their slopes are 0, "
        "else 7.6/sqrt(n). Errors of sd 1, response within (0, 8), mu = 1.",
    ),
)
