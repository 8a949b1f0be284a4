"""`precise.real`: means and quantiles of the numeric columns of real sets, against the whole table, with bounds up to 20 times too wide.

A sample of n records is drawn from the table with replacement; each of its numeric columns is asked for by itself, relation substitute,
mu = 1 each. The target is the table's own mean or quantile, of values moved into their bounds, whatever the column's shape. "mean": the
default of `cf.intervals.mean`; "quantile": the .1, .5 and .9 quantiles of `cf.tables.quantiles`; "pure quantile": the same with
epsilon = 1; "exponential": three plain exponential mechanisms with a third of that epsilon each, which have no interval; "sample mean":
Student's interval, no privacy; "sample quantile": order statistics, no privacy. Errors are in widths of the interval without privacy. A
replication counts as one trial, however many columns it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.noise import SimulatedNoise
from confide.schema import Categorical
from confide_lab.datasets import available, table
from confide_lab.experiment import Block, Experiment, Quantity
from confide_lab.experiments.measures import shared
from confide_lab.experiments.precise import failing
from confide_lab.published.interval_rivals import private_quantile

__all__ = ["REAL", "SETS", "columns_of", "measure_real"]

Array = NDArray[np.float64]
#: Estimate, low, high.
Answer = tuple[float, float, float]


SETS = ("D4", "D8", "bike", "concrete", "yacht", "california", "casp", "adult")
QUANTILES = (0.1, 0.5, 0.9)
_MOST = 6  # columns of a set: the first ones


@lru_cache(maxsize=2)
def columns_of(name: str) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """(the numeric columns of a set, their public bounds)."""
    found = table(name)
    schema = found.schema
    numeric = [one for one in schema.names if not isinstance(schema[one], Categorical)][:_MOST]
    bounds = {one: (float(schema[one].low), float(schema[one].high)) for one in numeric}  # type: ignore[union-attr]
    return found.frame[numeric].astype(float), bounds


def measure_real(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Share of the columns' intervals that hold the table's number, and their width over that without privacy, on average."""
    frame, bounds = columns_of(str(at["set"]))
    n, method, wide = int(at["n"]), str(at["method"]), float(at["wide"])
    settings = {key: value for key, value in at.items() if key != "wide"}  # the same samples for all bounds
    rows = shared("precise real", settings).integers(0, len(frame), n)
    inside, ratios, errors = [], [], []
    for name in frame:
        box = _box(bounds[str(name)], wide)
        whole = np.clip(frame[name].to_numpy(), *box)  # the column as declared
        values = whole[rows]
        found, bare = _answers(method, values, box, generator), _plain(method, values)
        truths = [whole.mean()] if method.endswith("mean") else np.quantile(whole, QUANTILES, method="inverted_cdf")
        for truth, (estimate, low, high), (_, least, most) in zip(truths, found, bare, strict=True):
            inside.append(low <= truth <= high)
            ratios.append((high - low) / (most - least) if most > least else np.nan)
            errors.append(abs(estimate - truth) / (most - least) if most > least else np.nan)
    error = float(np.nanmedian(errors))
    if method == "exponential":
        return {"distance": error}
    return {"covered": float(np.mean(inside)), "ratio": float(np.nanmedian(ratios)), "distance": error}


def _box(bounds: tuple[float, float], wide: float) -> tuple[float, float]:
    """Bounds about the same middle, so many times as wide."""
    centre, half = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
    return centre - wide * half, centre + wide * half


def _answers(method: str, values: Array, box: tuple[float, float], generator: np.random.Generator) -> list[Answer]:
    if method.startswith("sample"):
        return _plain(method, values)
    if method == "exponential":
        found = [private_quantile(values, q, 1 / len(QUANTILES), box, generator) for q in QUANTILES]
        return [(one, np.nan, np.nan) for one in found]
    data = cf.read({"x": values}, cf.Schema({"x": cf.Numeric(*box, on_missing="midpoint")}))
    pure = method == "pure quantile"
    settings: Any = {
        "privacy": cf.PureDP(1.0, relation="substitute") if pure else cf.GDP(1.0, relation="substitute"),
        "ledger": None,
        "noise": SimulatedNoise(int(generator.integers(2**31))),
    }
    if method == "mean":
        result: Any = cf.intervals.mean(data, "x", **settings)
    else:
        result = cf.tables.quantiles("x", data, inference="population", quantiles=QUANTILES, **settings)
    frame = result.to_frame()
    return list(
        zip(frame["estimate"].astype(float), frame["ci_low"].astype(float), frame["ci_high"].astype(float), strict=True)
    )


def _plain(method: str, values: Array) -> list[Answer]:
    n = len(values)
    if method.endswith("mean"):
        half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / sqrt(n)
        return [(values.mean(), values.mean() - half, values.mean() + half)]
    ordered = np.sort(values)
    places = [np.clip(stats.binom.ppf([0.025, 0.5, 0.975], n, q), 1, n).astype(int) for q in QUANTILES]
    return [(ordered[at - 1], ordered[low - 1], ordered[min(high, n - 1)]) for low, at, high in places]


def _missing(method: str) -> str | None:
    return next((reason for name in SETS if (reason := available(name)) is not None), None)


REAL = Experiment(
    "precise.real",
    "Means and quantiles of real columns, bounds up to 20 times too wide",
    (
        Block(
            name="columns",
            grid={"set": SETS, "n": (500, 10_000), "wide": (1.0, 4.0, 20.0)},
            methods=("mean", "sample mean", "quantile", "pure quantile", "exponential", "sample quantile"),
            measure=measure_real,
            quantities=(
                Quantity("coverage", of="covered"),
                Quantity("width over no privacy", "median", of="ratio"),
                Quantity("error", "median", of="distance"),
            ),
            replications=20,
            full=1000,
            missing=_missing,
            without=lambda settings, method: method.startswith("sample") and settings["wide"] != 1.0,
            checks=failing,
            titles={
                "mean": "cf.intervals.mean",
                "quantile": "cf.tables.quantiles, mu = 1",
                "pure quantile": "cf.tables.quantiles, epsilon = 1",
            },
            title="coverage of the whole table's numbers over the columns, width over the interval without privacy, errors in its widths",
        ),
    ),
    sources=("public bounds of the sets: the manifest of CONFIDE_DATA (evidence/lab.md)",),
)
