"""Treatment effects of a synthetic trial table: size, power and coverage from the release, beside the rows and the records."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide_lab.experiment import Block, Experiment, Layout, Quantity
from confide_lab.experiments.measures import shared

__all__ = ["EFFECTS"]

Array = NDArray[np.float64]
_ARMS, _LEVEL = ("control", "low", "high"), 0.05
# The effect of the second arm, in the units of each outcome: an F test of 1,000 records has a power of about .6 and .7.
_STRONG = {"numeric": 2.5, "two-valued": 0.1}
_NOTHING = {"answered": 0.0, "rejected": np.nan, "one": np.nan, "held": np.nan, "width": np.nan}


def trial(draw: np.random.Generator, n: int, outcome: str, effect: float) -> dict[str, Any]:
    """Arms at random, an age, and an outcome that bends with age and has other variances in the arms: no line is right."""
    arm, age = draw.integers(0, 3, n), draw.integers(20, 81, n)
    bend = ((age - 50) / 30.0) ** 2
    if outcome == "numeric":
        y = np.clip(40 + 6 * bend + effect * (arm == 2) + (8 + 3 * arm) * draw.standard_normal(n), 0, 100)
    else:
        y = (draw.random(n) < 0.2 + 0.2 * bend + effect * (arm == 2)).astype(float)
    return {"arm": np.array(_ARMS)[arm], "age": age, "y": y if outcome == "numeric" else y.astype(np.int64)}


def fitted(rows: Mapping[str, Any], *, robust: bool) -> tuple[Array, Array, int]:
    """Effects of two arms by least squares with age, their covariance (HC1, or the usual one of statistics programs), df."""
    arm, age, y = np.asarray(rows["arm"], dtype=str), np.asarray(rows["age"], float), np.asarray(rows["y"], float)
    x = np.column_stack([np.ones(len(y)), arm == "low", arm == "high", age]).astype(float)
    bread = np.linalg.inv(x.T @ x)
    theta = bread @ x.T @ y
    e, df = y - x @ theta, len(y) - x.shape[1]
    meat = (x * e[:, None] ** 2).T @ x * len(y) / df if robust else x.T @ x * float(e @ e) / df
    covariance = bread @ meat @ bread
    return theta[1:3], covariance[1:3, 1:3], df


def judged(effects: Array, covariance: Array, df: int, truth: Array) -> dict[str, float]:
    """The joint test, the test of the first arm, and the share of intervals that hold the truth."""
    error = np.sqrt(np.diag(covariance))
    f = float(effects @ np.linalg.solve(covariance, effects)) / 2
    half = stats.t.ppf(1 - _LEVEL / 2, df) * error
    return {
        "answered": 1.0,
        "rejected": float(stats.f.sf(f, 2, df) < _LEVEL),
        "one": float(2 * stats.t.sf(abs(effects[0] / error[0]), df) < _LEVEL),
        "held": float((np.abs(effects - truth) <= half).mean()),
        "width": float(half.mean()),
    }


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One trial, and by method: its records, the rows of its synthetic table, or the release behind them."""
    draw, outcome = shared("trial", at), at["outcome"]
    effect = _STRONG[outcome] if at["effect"] == "one arm" else 0.0
    records, truth = trial(draw, at["n"], outcome, effect), np.array([0.0, effect])
    plain = judged(*fitted(records, robust=True), truth)
    if at["method"] == "records":
        return {**plain, "width": 1.0}
    y = cf.Numeric(0, 100) if outcome == "numeric" else cf.Integer(0, 1)
    schema = cf.Schema({"arm": cf.Categorical(list(_ARMS)), "age": cf.Integer(20, 80), "y": y})
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**31)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trial.parquet"
        made = cf.synthesize(
            records, "y ~ arm + age", schema=schema, privacy=cf.GDP(at["mu"]), ledger=None, path=path, noise=noise
        )
        if at["method"] == "rows":
            found = judged(*fitted({str(name): own for name, own in made.frame.items()}, robust=False), truth)
            return {**found, "width": found["width"] / plain["width"]}
        result = cf.synthesis.treatment_effects(path, "arm")
    if result.status != "valid":
        return {**_NOTHING}
    ends = result.conf_int().to_numpy()
    return {
        "answered": 1.0,
        "rejected": float(result.wald_test(np.eye(2)).pvalue < _LEVEL),
        "one": float(result.pvalues.iloc[0] < _LEVEL),
        "held": float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()),
        "width": float((ends[:, 1] - ends[:, 0]).mean() / 2 / plain["width"]),
    }


EFFECTS = Experiment(
    "synthetic.effects",
    "Treatment effects of a synthetic trial table: tests and intervals",
    (
        Block(
            "trial",
            {
                "outcome": ("numeric", "two-valued"),
                "effect": ("none", "one arm"),
                "n": (1_000, 5_000),
                "mu": (0.3, 1.0),
            },
            ("records", "rows", "release"),
            measure,
            (
                Quantity("answered", label="share of releases with both effects"),
                Quantity("rejected", label="share of tests at 5 % that no arm differs, rejected"),
                Quantity("one", label="share of tests at 5 % of the arm without an effect, rejected"),
                Quantity("held", label="share of 95 % intervals that hold the effect"),
                Quantity("width", "median", label="width of the intervals over those of the records"),
            ),
            replications=200,
            titles={
                "records": "the records (not private)",
                "rows": "least squares on the synthetic rows",
                "release": "treatment_effects",
            },
            layouts=(
                Layout(
                    ("outcome", "effect", "n", "mu"), ("method",), quantity="rejected", title="Tests at 5 % that reject"
                ),
                Layout(
                    ("outcome", "effect", "n", "mu"),
                    ("method",),
                    quantity="held",
                    title="Intervals that hold the effect",
                ),
            ),
        ),
    ),
    sources=("confide.synthesis.treatment_effects",),
    notes=(
        "Three arms at random, an outcome that bends with age and varies more in the treated arms, the line adjusts for age. "
        "One arm has an effect of 2.5 of 100, or .1 of a risk, or none has.",
    ),
)
