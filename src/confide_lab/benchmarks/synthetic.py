"""Synthetic files: OLS on the file against the release and against OLS on the private data, coverage, several files, time.

d = 3, n = 2000, mu = 1, even features in [0, 1], normal errors of sd 1. Plain OLS on the calibrated file must return the release to 1e-8
and have at most 1.5 times the median error of OLS on the private data; the intervals of `refit` and of `combine` must cover. The rows of
Algorithm 3 (generator="binagg", with the noise that its guarantee needs) are measured for comparison.

Incomes by age and sex are lognormal (sd 1 of the logarithm), n = 10,000, mu = 1: a line of limited residuals, which synthetic files once
were of, is a tenth off there.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.ask.synthesis import combine, refit, synthesize
from confide.methods.synthesis.model import Matrix
from confide.synthesis import SyntheticTable
from confide_lab.benchmarks.coverage import consistent, interval
from confide_lab.benchmarks.runs import table
from confide_lab.published.binagg import synthetic_rows

Array = NDArray[np.float64]

_LINE = np.array([1.0, 1.0, -1.0, 2.0])
_FORMULA = "y ~ x0 + x1 + x2"
_SIZE = 2_000
_SCHEMA = cf.Schema({**{f"x{j}": cf.Numeric(0, 1) for j in range(3)}, "y": cf.Numeric(-4, 8)})


def _records(generator: np.random.Generator) -> pd.DataFrame:
    x = generator.uniform(size=(_SIZE, 3))
    y = _LINE[0] + x @ _LINE[1:] + generator.standard_normal(_SIZE)
    return pd.DataFrame({**{f"x{j}": x[:, j] for j in range(3)}, "y": y})


def _ols(frame: pd.DataFrame) -> tuple[Array, float]:
    """Slopes and intercept of plain OLS on a frame, and its residual sd."""
    matrix = np.column_stack([np.ones(len(frame)), *(frame[f"x{j}"] for j in range(3))])
    y = frame["y"].to_numpy()
    solution = Matrix.of(matrix).fitted(y)
    rest = y - matrix @ solution
    return solution, float(np.sqrt(rest @ rest / max(len(y) - 4, 1)))


def _error(solution: Array) -> float:
    """Relative Euclidean error of the slopes."""
    return float(np.linalg.norm(solution[1:] - _LINE[1:]) / np.linalg.norm(_LINE[1:]))


def _covered(name: str, result: Any) -> dict[str, Any]:
    """Which coefficients an interval holds, and the mean width."""
    low, high = (result.conf_int()[side].to_numpy() for side in (0, 1))
    hits = (low <= _LINE) & (high >= _LINE)
    return {f"{name} {j}": bool(hit) for j, hit in enumerate(hits)} | {f"{name} width": float(np.mean(high - low))}


def _rubin(paths: tuple[Path, ...]) -> dict[str, Any]:
    """The rule of Raghunathan, Reiter, Rubin 2003 for fully synthetic data, (1 + 1/m) b - u; no interval where that is below 0."""
    solutions, stated, m = [], [], len(paths)
    for path in paths:
        frame = pd.read_parquet(path)
        matrix = np.column_stack([np.ones(len(frame)), *(frame[f"x{j}"] for j in range(3))])
        solution, sd = _ols(frame)
        solutions.append(solution)
        stated.append(sd**2 * np.diag(np.linalg.inv(matrix.T @ matrix)))
    between, within = np.var(solutions, axis=0, ddof=1), np.mean(stated, axis=0)
    variance = (1 + 1 / m) * between - within
    df = (m - 1) * (1 - within / ((1 + 1 / m) * between)) ** 2
    half = stats.t.ppf(0.975, df) * np.sqrt(np.maximum(variance, 0))
    hits = (variance > 0) & (np.abs(np.mean(solutions, axis=0) - _LINE) <= half)
    return {"rubin": float(hits.mean()), "rubin negative": float((variance <= 0).mean())}


def _literal(frame: pd.DataFrame, generator: np.random.Generator, mu: float) -> dict[str, Any]:
    """Algorithm 3 as published, with the noise that its guarantee needs: y without its intercept, in [-3, 7]."""
    x, y = frame[["x0", "x1", "x2"]].to_numpy(), frame["y"].to_numpy() - _LINE[0]
    bounds = np.array([[0.0, 1.0]] * 3)
    made = synthetic_rows(x, y, generator, x_bounds=bounds, y_bounds=(-3.0, 7.0), mu=mu, noise="corrected")
    with_intercept = np.column_stack([np.ones(len(made["y"])), made["x"]])
    solution = Matrix.of(with_intercept).fitted(made["y"])
    without = np.concatenate([[0.0], Matrix.of(made["x"]).fitted(made["y"])])
    rest = made["y"] - with_intercept @ solution
    return {
        "literal": _error(solution),
        "literal without": _error(without),
        "literal sd": float(np.sqrt(rest @ rest / max(len(rest) - 4, 1))),
        "literal outside": float(((made["x"] < 0) | (made["x"] > 1)).mean()),
    }


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="confide-synthetic-"))


def replicate(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """One data set, one release, its file in both formats, five files, and the rows of Algorithm 3."""
    r = at["replication"]
    frame = _records(np.random.default_rng((2027, r)))
    data, noise = cf.read(frame, _SCHEMA), cf.noise.SimulatedNoise(r)
    request = cf.GDP(at["mu"])
    method = SyntheticTable(_FORMULA)
    release = cf.release(method, data, request, ledger=None, noise=noise)
    place = _folder() / f"{r}.parquet"
    made = method.build(release)
    made.save(place)
    made.save(place.with_suffix(".csv"))
    result = refit(place)
    released = np.asarray(result.params)
    back, sd = _ols(pd.read_parquet(place))
    text, _sd = _ols(pd.read_csv(place.with_suffix(".csv")))
    several = method.build(release, files=5).save(_folder() / f"{r}-m.parquet")
    together, rubin = combine(several), _rubin(several)
    literal = synthesize(
        data, _FORMULA, privacy=request, ledger=None, generator="binagg", noise=cf.noise.SimulatedNoise(10_000 + r)
    )
    alg3, alg3_sd = _ols(literal.frame)
    outside = sum(int(((literal.frame[f"x{j}"] < 0) | (literal.frame[f"x{j}"] > 1)).sum()) for j in range(3))
    own, _own_sd = _ols(frame)
    for path in (place, place.with_suffix(".csv"), *several):
        path.unlink()
        path.with_name(path.name + ".confide.json").unlink()
    return {
        "identity": float(max(np.abs(back - released).max(), np.abs(text - released).max())),
        "file": _error(back),
        "private": _error(own),
        "residual_sd": sd,
        "rows": len(made.frame),
        **_covered("refit", result),
        **_covered("files", together),
        **rubin,
        **_literal(frame, np.random.default_rng((2028, r)), at["mu"]),
        "binagg": _error(alg3),
        "binagg_sd": alg3_sd,
        "binagg_outside": outside / max(3 * len(literal.frame), 1),
    }


_INCOMES = cf.Schema({"age": cf.Integer(18, 90), "sex": cf.Categorical(["f", "m"]), "income": cf.Numeric(0, 1_000_000)})
_BY_SEX = "income ~ age + sex"


@cache
def _population() -> pd.DataFrame:
    """Incomes of 200,000 persons."""
    generator, size = np.random.default_rng(2029), 200_000
    age, male = generator.integers(18, 90, size), generator.random(size) < 0.5
    income = np.exp(10.2 + 0.006 * (age - 40) + 0.3 * male + generator.standard_normal(size))
    return pd.DataFrame({"age": age, "sex": np.where(male, "m", "f"), "income": np.clip(income, 0, 1_000_000)})


@cache
def _incomes_line() -> pd.Series[float]:
    """Least squares on the population."""
    return _incomes_ols(_population())


def _incomes_ols(frame: pd.DataFrame) -> pd.Series[float]:
    matrix = np.column_stack([np.ones(len(frame)), frame["age"], frame["sex"] == "m"])
    return pd.Series(Matrix.of(matrix).fitted(frame["income"].to_numpy()), ["Intercept", "age", "sex[T.m]"])


def replicate_incomes(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """One sample of the incomes, one release, its file, and five files: the gap by plain OLS on the rows, and what the intervals hold."""
    r, line = at["replication"], _incomes_line()
    rows = np.random.default_rng((2030, r)).integers(0, len(_population()), 10_000)
    data, method = cf.read(_population().iloc[rows].reset_index(drop=True), _INCOMES), SyntheticTable(_BY_SEX)
    release = cf.release(method, data, cf.GDP(at["mu"]), ledger=None, noise=cf.noise.SimulatedNoise(r))
    with tempfile.TemporaryDirectory(prefix="confide-incomes-") as folder:
        (path,) = method.build(release).save(Path(folder) / "one.parquet")
        several = method.build(release, files=5).save(Path(folder) / "five.parquet")
        gap = float(_incomes_ols(pd.read_parquet(path))["sex[T.m]"])
        found = {"gap": gap}
        for name, result in (("refit", refit(path)), ("files", combine(several))):
            ends = result.conf_int().loc[line.index]
            found |= {
                f"{name} {one}": bool(low <= line[one] <= high)
                for one, low, high in zip(line.index, ends[0], ends[1], strict=True)
            }
    return found


def _time_of_a_file() -> tuple[float, float]:
    """Seconds for the rows of a release, and for release and rows: 10,000 records, six features and a response."""
    generator = np.random.default_rng(1)
    x = generator.uniform(size=(10_000, 6))
    schema = cf.Schema({**{f"x{j}": cf.Numeric(0, 1) for j in range(6)}, "y": cf.Numeric(-6, 10)})
    data = cf.read(np.column_stack([x, 1 + x.sum(axis=1) + generator.standard_normal(10_000)]), schema)
    method = SyntheticTable("y ~ " + " + ".join(f"x{j}" for j in range(6)))
    begin = time.perf_counter()
    release = cf.release(method, data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    method.build(release)
    whole = time.perf_counter() - begin
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        method.build(release)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)), whole


def _row(check: str, value: float, low: float, high: float) -> dict[str, Any]:
    value = float(value)
    passed = low <= value <= high
    print(f"{'ok    ' if passed else 'FAILED'} {check}: {value:.3g} (allowed {low:g} to {high:g})", flush=True)
    return {"check": check, "value": value, "low": low, "high": high, "passed": passed}


def _coverage(check: str, held: pd.DataFrame) -> dict[str, Any]:
    hits = held.to_numpy(bool)
    mean, low, high = interval(hits)
    passed = bool(consistent(hits, 0.93, 1.0))
    print(f"{'ok    ' if passed else 'FAILED'} coverage of {check}: {mean:.3f} [{low:.3f}, {high:.3f}]", flush=True)
    whole = {"check": f"coverage of {check}", "value": mean, "interval": [low, high], "low": 0.93, "high": 1.0}
    return whole | {"passed": passed}


def run() -> list[dict[str, Any]]:
    inf = float("inf")
    cells = table("synthetic", {"mu": (1.0,)}, replicate, 60)
    middle = cells.median(numeric_only=True)
    rows = [
        _row("largest |OLS on the file - release|, Parquet and CSV", float(cells["identity"].max()), 0.0, 1e-8),
        _row("median error: OLS on the file / OLS on private data", middle["file"] / middle["private"], 0.0, 1.5),
        _row("median error of OLS on the file", middle["file"], 0.0, inf),
        _row("median error of OLS on private data", middle["private"], 0.0, inf),
        _row("residual sd of OLS on the file (truth 1)", middle["residual_sd"], 0.9, 1.1),
        _row("median number of rows (2000 records)", middle["rows"], 1_900, 2_100),
        _row("Algorithm 3 as published: median error of OLS with intercept", middle["literal"], 0.0, inf),
        _row("Algorithm 3 as published: median error of OLS without", middle["literal without"], 0.0, inf),
        _row("Algorithm 3 as published: residual sd (truth 1)", middle["literal sd"], 0.0, inf),
        _row("Algorithm 3 as published: share of feature values outside bounds", middle["literal outside"], 0.0, inf),
        _row('generator="binagg": median error of OLS with intercept', middle["binagg"], 0.0, inf),
        _row('generator="binagg": residual sd (truth 1)', middle["binagg_sd"], 0.0, inf),
        _row('generator="binagg": share of feature values outside bounds', middle["binagg_outside"], 0.0, inf),
        _row("width of combined intervals / of refit's", middle["files width"] / middle["refit width"], 0.0, inf),
    ]
    for name, check in (("refit", "refit"), ("files", "five files combined")):
        rows.append(_coverage(check, cells[[f"{name} {j}" for j in range(4)]]))
    incomes, line = table("synthetic-incomes", {"mu": (1.0,)}, replicate_incomes, 100), _incomes_line()
    gap = float(line["sex[T.m]"])
    rows.append(_row("incomes by age and sex: the gap in the population", gap, 0.0, inf))
    rows.append(_row("the same: mean of the gaps in the files", float(incomes["gap"].mean()), 0.97 * gap, 1.03 * gap))
    for name, check in (("refit", "refit, incomes"), ("files", "five files combined, incomes")):
        rows.append(_coverage(check, incomes[[f"{name} {one}" for one in line.index]]))
    rows.append(_row("coverage of Rubin's rule on the same files", float(cells["rubin"].mean()), 0.0, 1.0))
    rows.append(_row("share of its variances at most 0", float(cells["rubin negative"].mean()), 0.0, 1.0))
    file_seconds, whole = _time_of_a_file()
    rows.append(_row("milliseconds for a file of 10,000 x 7", 1_000 * file_seconds, 0.0, 50.0))
    rows.append(_row("milliseconds with the release", 1_000 * whole, 0.0, inf))
    return rows
