"""The least-squares line of factors: coverage and width against the non-private HC1 interval on the same samples.

Populations are fixed tables of which samples are drawn with replacement; the truth is least squares of the whole table. Real tables:
adult (where `CONFIDE_DATA` names its folder). A row is a design, a number of records and a budget: pooled coverage with its 99.9 %
interval, coverage of the worst coefficient and HC1's of that one, median half-width over HC1's, the share of coefficients answered.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.core import seal
from confide.regression import LeastSquares
from confide_lab.benchmarks.coverage import interval
from confide_lab.benchmarks.runs import table

Array = NDArray[np.float64]

#: Runs of each cell.
REPLICATIONS = 40
# Fewer answers than this say nothing of coverage.
_FEWEST = 15
# Records of a simulated population.
_POPULATION = 200_000
_EDUCATION = {
    **dict.fromkeys(("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"), "below"),
    **dict.fromkeys(("HS-grad", "Some-college", "Assoc-voc", "Assoc-acdm"), "school"),
    "Bachelors": "bachelor",
    **dict.fromkeys(("Masters", "Prof-school", "Doctorate"), "grad"),
}


@dataclass(frozen=True)
class Design:
    """A population and what is asked of it."""

    formula: str
    schema: cf.Schema
    frame: pd.DataFrame


def _choice(generator: np.random.Generator, levels: str, shares: list[float]) -> Any:
    return generator.choice(list(levels), _POPULATION, p=shares)


def _effects(*columns: tuple[Any, Mapping[str, float]]) -> Array:
    return np.asarray(sum(pd.Series(column).map(dict(own)).to_numpy(dtype=float) for column, own in columns))


_SIX = dict(zip("abcdeg", (0.0, 1.0, -1.0, 2.0, 0.5, 1.5), strict=True))
_THREE = dict(zip("uvw", (0.0, 0.5, -1.0), strict=True))
_FACTORS = {"f": cf.Categorical(list("abcdeg")), "g": cf.Categorical(list("uvw"))}


def _factors(generator: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "f": _choice(generator, "abcdeg", [0.3, 0.25, 0.2, 0.15, 0.09, 0.01]),
            "g": _choice(generator, "uvw", [0.5, 0.3, 0.2]),
        }
    )


def _simulated(name: str) -> tuple[pd.DataFrame, tuple[float, float]]:
    """A population by name, and the public bounds of y."""
    generator = np.random.default_rng(abs(hash_of(name)))
    frame = _factors(generator)
    mean = _effects((frame.f, _SIX), (frame.g, _THREE))
    noise = generator.standard_normal(_POPULATION)
    match name:
        case "levels":
            frame["y"], bounds = mean + noise, (-8.0, 8.0)
        case "unequal":
            sizes = _effects((frame.f, dict(zip("abcdeg", (0.2, 1.0, 2.0, 0.3, 1.0, 3.0), strict=True))))
            frame["y"], bounds = mean + sizes * noise, (-15.0, 15.0)
        case "calm":  # the rare level has almost no variance
            sizes = _effects((frame.f, dict(zip("abcdeg", (2.0, 1.0, 2.0, 1.0, 1.0, 0.1), strict=True))))
            frame["y"], bounds = mean + sizes * noise, (-12.0, 12.0)
        case "rare":
            chance = 0.02 * np.exp(0.3 * mean)
            frame["y"], bounds = (generator.random(_POPULATION) < chance).astype(float), (0.0, 1.0)
        case "spikes":
            frame["y"] = mean + np.where(generator.random(_POPULATION) < 0.005, 30.0, noise)
            bounds = (-50.0, 50.0)
        case "incomes":
            frame["y"], bounds = np.exp(10 + 0.3 * mean + 0.8 * noise), (0.0, 1e6)
        case "zeros":
            frame["y"] = np.where(generator.random(_POPULATION) < 0.04, np.exp(1 + 0.3 * mean + noise), 0.0)
            bounds = (0.0, 200.0)
        case "lumps":
            high = generator.random(_POPULATION) < 0.02 * np.exp(0.3 * mean)
            frame["y"], bounds = np.where(high, 100.0, 10 * generator.random(_POPULATION)), (0.0, 100.0)
        case "crossed":  # additive models are wrong here
            crossed = np.where((frame.f == "b") & (frame.g == "w"), 3.0, 0.0) - np.where(frame.f == frame.f, 0, 0)
            frame["y"], bounds = mean + crossed + noise, (-10.0, 10.0)
        case other:
            raise KeyError(other)
    return frame, bounds


def hash_of(name: str) -> int:
    """The same number on any machine."""
    return int.from_bytes(name.encode()[:8], "big") % 1_000_003


@cache
def adult() -> pd.DataFrame | None:
    """The census table, with education in four levels; None where `CONFIDE_DATA` is not set."""
    folder = os.environ.get("CONFIDE_DATA")
    if not folder:
        return None
    frame = pd.read_parquet(Path(folder) / "adult.parquet")
    frame["edu"] = frame.education.map(_EDUCATION)
    frame["rich"] = (frame.income.astype(str).str.startswith(">")).astype(float)
    return frame


def _levels(frame: pd.DataFrame, name: str) -> cf.Categorical:
    return cf.Categorical(sorted(map(str, frame[name].dropna().unique())))


_BOUNDS: dict[str, Any] = {
    "hours_per_week": cf.Numeric(0, 100),
    "capital_gain": cf.Numeric(0, 1e5),
    "age": cf.Numeric(17, 90),
    "rich": cf.Integer(0, 1),
}


@cache
def design(population: str, formula: str) -> Design:
    """A design; `KeyError` for a population that there is not."""
    if population != "adult":
        frame, bounds = _simulated(population)
        two = bounds == (0.0, 1.0)
        return Design(formula, cf.Schema({**_FACTORS, "y": cf.Integer(0, 1) if two else cf.Numeric(*bounds)}), frame)
    found = adult()
    assert found is not None
    response = formula.split("~")[0].strip()
    names = [
        name for name in ("edu", "education", "sex", "marital_status", "race", "occupation") if name in _words(formula)
    ]
    schema = cf.Schema({**{name: _levels(found, name) for name in names}, response: _BOUNDS[response]})
    return Design(formula, schema, found[[*names, response]].dropna().reset_index(drop=True))


def _words(formula: str) -> list[str]:
    return formula.replace("~", " ").replace("+", " ").replace(":", " ").replace("*", " ").split()


@cache
def truth(population: str, formula: str) -> Array:
    own = design(population, formula)
    path = LeastSquares(formula).about(own.schema)
    return np.array(list(path.reference(own.frame).values()))


def hc1(matrix: Array, response: Array) -> tuple[Array, Array]:
    """Least squares and the half-widths of its robust 95 % intervals; NaN for a column that nobody has."""
    n, p = matrix.shape
    seen = np.abs(matrix).sum(axis=0) > 0
    inverse = np.linalg.pinv(matrix.T @ matrix)
    theta = inverse @ (matrix.T @ response)
    residual = response - matrix @ theta
    scores = matrix * residual[:, None]
    spread = inverse @ (scores.T @ scores) @ inverse * n / (n - p)
    half = stats.t.ppf(0.975, n - p) * np.sqrt(np.diag(spread))
    return np.where(seen, theta, np.nan), np.where(seen, half, np.nan)


_plan = lru_cache(maxsize=16)(cf.plan)


def replicate(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """One release on one sample: hits and half-widths of both intervals, by coefficient; NaN where there is none."""
    own = design(at["population"], at["formula"])
    generator = np.random.default_rng((hash_of(at["population"] + at["formula"]), at["n"], at["replication"]))
    frame = own.frame.iloc[generator.integers(len(own.frame), size=at["n"])].reset_index(drop=True)
    method = LeastSquares(at["formula"])
    path: Any = method.about(own.schema)
    noise = cf.noise.SimulatedNoise(at["replication"] + 1)
    plan = _plan(method, own.schema, cf.GDP(at["mu"], relation=at.get("relation", "add-remove")))
    with np.errstate(all="ignore"):
        result = method.infer(seal(method, cf.read(frame, own.schema), plan, noise))
    target = truth(at["population"], at["formula"])
    theta, half = hc1(path.design.matrix(frame), path.design.response_of(frame))
    answered = result.status in ("valid", "partial")
    limits = result.conf_int().to_numpy() if answered else np.full((len(target), 2), np.nan)
    told = np.isfinite(limits).all(axis=1)
    share, (low, high) = result.rsquared, result.rsquared_interval
    return {
        "status": result.status,
        "told": told.tolist(),
        "hit": ((limits[:, 0] <= target) & (target <= limits[:, 1])).tolist(),
        "half": (np.diff(limits, axis=1)[:, 0] / 2).tolist(),
        "error": (result.estimates - target).tolist(),
        "plain_hit": (np.abs(theta - target) <= half).tolist(),
        "plain_half": half.tolist(),
        "plain_error": (theta - target).tolist(),
        "r2": [share, low, high],
    }


def summary(runs: list[dict[str, Any]], target_r2: float) -> dict[str, Any]:
    """One row of the table from the runs of a cell."""
    told = np.array([run["told"] for run in runs])
    hit = np.array([run["hit"] for run in runs])
    plain = np.array([run["plain_hit"] for run in runs])
    half, plain_half = (np.array([run[key] for run in runs], dtype=float) for key in ("half", "plain_half"))
    error, plain_error = (np.array([run[key] for run in runs], dtype=float) for key in ("error", "plain_error"))
    each = [float(hit[told[:, j], j].mean()) if told[:, j].sum() >= 10 else 1.0 for j in range(hit.shape[1])]
    plain_each = [float(plain[told[:, j], j].mean()) if told[:, j].any() else 1.0 for j in range(hit.shape[1])]
    worst = int(np.argmin(each))
    r2 = np.array([run["r2"] for run in runs], dtype=float)
    printed = np.isfinite(r2[:, 0])
    inside = ((r2[:, 1] <= target_r2) & (target_r2 <= r2[:, 2]))[printed]
    rows = hit[told.all(axis=1)] if told.all(axis=1).any() else hit[:, :0]
    pooled = float(hit[told].mean()) if told.any() else float("nan")
    with np.errstate(all="ignore"):
        return {
            "coverage": pooled,
            "interval": interval(rows)[1:] if rows.size else (0.0, 1.0),
            "plain": float(plain[told].mean()) if told.any() else float("nan"),
            "worst": each[worst],
            "worst_plain": plain_each[worst],
            "width": float(np.nanmedian((half / plain_half)[told])) if told.any() else float("nan"),
            "error": float(np.sqrt(np.nanmean(error[told] ** 2) / np.nanmean(plain_error[told] ** 2)))
            if told.any()
            else 0.0,
            "told": float(told.mean()),
            "ok": float(np.mean([run["status"] == "valid" for run in runs])),
            "r2_printed": float(printed.mean()),
            "r2_coverage": float(inside.mean()) if len(inside) else 1.0,
            "r2_upper": interval(inside)[2] if len(inside) else 1.0,
        }


@cache
def r_squared(population: str, formula: str) -> float:
    """R squared of the whole table."""
    own = design(population, formula)
    path: Any = LeastSquares(formula).about(own.schema)
    matrix, response = path.design.matrix(own.frame), path.design.response_of(own.frame)
    rest = response - matrix @ truth(population, formula)
    return 1 - float(rest @ rest) / float(((response - response.mean()) ** 2).sum())


# What the acceptance of the method asks of formulas of factors, restated on adult by education where it named a table that is not public.
_REAL = (
    ("adult", "hours_per_week ~ edu"),
    ("adult", "hours_per_week ~ 0 + edu"),
    ("adult", "hours_per_week ~ sex"),
    ("adult", "rich ~ edu + sex"),
    ("adult", "capital_gain ~ edu"),
    ("adult", "capital_gain ~ edu + sex"),
    ("adult", "age ~ 0 + education"),
    ("adult", "hours_per_week ~ edu + marital_status + sex"),
)
_MADE = tuple(
    (name, formula)
    for name in ("levels", "unequal", "calm", "rare", "spikes", "incomes", "zeros", "lumps", "crossed")
    for formula in ("y ~ f", "y ~ f + g")
)
GRID = {
    "size": ((500, 1.0), (1_600, 0.3), (1_600, 1.0), (2_000, 0.3), (10_000, 0.3), (10_000, 1.0), (10_000, 3.0)),
    "relation": ("add-remove", "substitute"),
}


def measured(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    """`replicate` at a cell of the grid, as text: a row of a study holds no lists."""
    (population, formula), (n, mu) = at["design"], at["size"]
    own = {**at, "population": population, "formula": formula, "n": n, "mu": mu}
    return {"run": json.dumps(replicate(own, generator))}


def run() -> list[dict[str, Any]]:
    """Every cell: no coefficient below min(.93, HC1's coverage - .03) by its 99.9 % interval, nor R squared below .93 by its own."""
    designs = (*_MADE, *(_REAL if adult() is not None else ()))
    rows = []
    for (which, (n, mu), relation), cell in table(
        "factor-means", {"design": designs, **GRID}, measured, REPLICATIONS
    ).groupby(["design", *GRID], sort=False):
        population, formula = which
        runs = [json.loads(text) for text in cell["run"]]
        found = summary(runs, r_squared(population, formula))
        rows.append(
            {
                "check": f"{population} {formula}, n={n}, mu={mu}, {relation}",
                "value": found["coverage"],
                "passed": covers_as_well(runs) and found["r2_upper"] >= 0.93,
                **found,
            }
        )
        print(
            f"{rows[-1]['check']:66s} {found['coverage']:.3f} (HC1 {found['plain']:.3f}) worst {found['worst']:.2f} "
            f"({found['worst_plain']:.2f}) width {found['width']:.2f} told {found['told']:.2f} ok {found['ok']:.2f} "
            f"R2 {found['r2_printed']:.2f} {found['r2_coverage']:.2f}{'' if rows[-1]['passed'] else '  BELOW'}",
            flush=True,
        )
    return rows


def covers_as_well(runs: list[dict[str, Any]]) -> bool:
    """Whether no coefficient's interval covers less often than min(.93, HC1's coverage on the same samples - .03)."""
    for j in range(len(runs[0]["hit"])):
        own = np.array([run["hit"][j] for run in runs if run["told"][j]])
        plain = np.array([run["plain_hit"][j] for run in runs if run["told"][j]])
        if len(own) >= _FEWEST and interval(own)[2] < min(0.93, float(plain.mean()) - 0.03):
            return False
    return True
