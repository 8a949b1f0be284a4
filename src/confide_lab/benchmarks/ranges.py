"""Ranges found privately: coverage of what is named, width over the non-private interval and share answered, on laws and real tables.

Parts: `means`, eleven laws; `coefficients`, nine regressions on the files of CONFIDE_DATA; `new`, real tables that nobody used while
ranges were built, for means by a factor, lines, logits and counts; `tests`, power and size of t and F on them. Truth: the population's,
exact, of the columns clipped to the ranges that each release found, and of the columns as declared.

    confide lab bench ranges new --kinds means line --sizes 10000 --mu 1 --reps 40 --jobs 2
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.noise import SimulatedNoise
from confide_lab.benchmarks.coverage import interval
from confide_lab.benchmarks.ranges_tables import LAWS, MODELS, NEW, Regression, columns_of, law, population

__all__ = ["cell", "main", "run", "tested"]

Array = NDArray[np.float64]
OUT = Path("out/bench")
#: What is asked of a table.
KINDS = ("means", "line", "logit", "poisson")
#: How: means alone, of two columns, in Table 1 or with weights; regressions alone, of units of five rows, or within them.
WAYS = ("plain", "two", "table_one", "weights", "units", "within")
# Those of means, those of regressions.
_ASKED = {"means": WAYS[:4], "line": ("plain", *WAYS[4:]), "logit": ("plain", "units"), "poisson": ("plain", "units")}
# Cells of a table count from so many expected records on.
_CELL = 300
_UNIT = 5


@dataclass(frozen=True)
class Cell:
    """One cell of the grid. bounds: "auto", "declared", or "none": columns that declare no bounds."""

    part: str
    name: str
    kind: str
    n: int
    mu: float
    relation: str = "add-remove"
    bounds: str = "auto"
    way: str = "plain"
    reps: int = 40


# without privacy ------------------------------------------------------------------------------------------------------


def design(formula: str, frame: pd.DataFrame) -> tuple[Array, Array, list[str]]:
    """(X, y, names) of a formula of columns; labels as indicators without the first level."""
    left, right = (side.strip() for side in formula.split("~"))
    parts, names = [np.ones(len(frame))], ["Intercept"]
    for name in (part.strip() for part in right.split("+")):
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            for level in column.cat.categories[1:]:
                parts.append((column == level).to_numpy(dtype=float))
                names.append(f"{name}[T.{level}]")
        else:
            parts.append(column.to_numpy(dtype=float))
            names.append(name)
    return np.column_stack(parts), frame[left].to_numpy(dtype=float), names


def fitted(kind: str, formula: str, frame: pd.DataFrame, errors: bool = False) -> tuple[Array, Array]:
    """(coefficients, robust standard errors or none) of a line, a logit or a log-linear model."""
    x, y, _ = design(formula, frame)
    # columns to a common size, for Newton's steps
    size = np.maximum(np.abs(x).max(axis=0), 1e-300)
    x = x / size
    weight = np.ones(len(y))
    if kind == "line":
        beta = np.linalg.lstsq(x, y, rcond=None)[0]
        residual = y - x @ beta
    else:
        beta = np.zeros(x.shape[1])
        beta[0] = np.log(y.mean()) if kind == "poisson" else np.log(y.mean() / (1 - y.mean()))
        for _ in range(100):
            mean, weight = _curve(kind, x @ beta)
            step = np.linalg.lstsq((x * weight[:, None]).T @ x, x.T @ (y - mean), rcond=None)[0]
            step *= min(1.0, 5.0 / max(float(np.abs(x @ step).max()), 1e-12))
            beta = beta + step
            if np.abs(step).max() < 1e-9:
                break
        mean, weight = _curve(kind, x @ beta)
        residual = y - mean
    if not errors:
        return beta / size, np.array([])
    bread = np.linalg.pinv((x * weight[:, None]).T @ x)
    scores = x * residual[:, None]
    robust = bread @ (scores.T @ scores) @ bread * len(y) / max(len(y) - x.shape[1], 1)
    return beta / size, np.sqrt(np.diag(robust)) / size


def _curve(kind: str, at: Array) -> tuple[Array, Array]:
    if kind == "poisson":
        mean = np.exp(np.clip(at, -30, 30))
        return mean, mean
    mean = 1 / (1 + np.exp(-at))
    return mean, np.maximum(mean * (1 - mean), 1e-12)


def _clipped(frame: pd.DataFrame, ranges: Mapping[str, Any]) -> pd.DataFrame:
    own = {name: frame[name].clip(one.low, one.high) for name, one in ranges.items() if not one.kept}
    return frame.assign(**own) if own else frame


def _means(frame: pd.DataFrame, measured: Sequence[str], by: str | None, weight: str | None = None) -> Numbers:
    """Of the whole and of each level, by t."""
    levels = list(frame[by].cat.categories) if by else []
    code = frame[by].cat.codes.to_numpy() if by else np.zeros(len(frame), int)
    w = frame[weight].to_numpy(float) if weight else np.ones(len(frame))
    labels, found = [], []
    for name in measured:
        values = frame[name].to_numpy(float)
        found += [_mean(values, w)] + [_mean(values[code == k], w[code == k]) for k in range(len(levels))]
        labels += [name] + [f"{name} | {by}={level}" for level in levels]
    return Numbers(labels, *np.array(found).T)


def _mean(values: Array, w: Array) -> tuple[float, float, float]:
    if len(values) < 2:
        return np.nan, np.nan, float(len(values))
    mean = float(np.average(values, weights=w))
    error = float(np.sqrt(np.sum((w * (values - mean)) ** 2)) / w.sum())
    return mean, float(stats.t.ppf(0.975, len(values) - 1)) * error, float(len(values))


# one cell -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """What is asked without privacy: labels, numbers, half-widths of 95 % intervals and the numbers of records behind each."""

    labels: list[str]
    numbers: Array
    halves: Array
    records: Array


@dataclass(frozen=True)
class Asked:
    """A population, its schema, the method, and the same without privacy."""

    frame: pd.DataFrame
    schema: cf.Schema
    method: Any
    plain: Callable[[pd.DataFrame], Numbers]


def asked_of(at: Cell) -> Asked:
    """What a cell asks."""
    bounds = "auto" if at.bounds == "none" else at.bounds
    if at.part == "means":
        values, ends = law(at.name)
        column = cf.Numeric() if ends is None or at.bounds == "none" else cf.Numeric(*ends)
        method = cf.tables.Means("x ~ 1", inference="population", bounds=bounds)
        return Asked(pd.DataFrame({"x": values}), cf.Schema({"x": column}), method, lambda f: _means(f, ["x"], None))
    found = (NEW if at.part == "new" else MODELS)[at.name]
    frame, columns = population(at.part, at.name), columns_of(found, at.kind, declared=at.bounds != "none")
    return (_table if at.kind == "means" else _model)(at, found, frame, columns, bounds)


def _table(at: Cell, found: Regression, frame: pd.DataFrame, columns: dict[str, Any], bounds: str) -> Asked:
    name, by = found.means
    others = [column for column in found.numbers if column != name]
    measured = [name, *others[:1]] if at.way in ("two", "table_one") else [name]
    weight = "weight" if at.way == "weights" else None
    if weight:
        frame = frame.assign(weight=np.random.default_rng(5).integers(1, 4, len(frame)).astype(float))
        columns = {**columns, weight: cf.Numeric(0, 3)}
    kind = cf.tables.TableOne if at.way == "table_one" else cf.tables.Means
    method = kind(f"{' + '.join(measured)} ~ {by}", inference="population", bounds=bounds, weights=weight)
    names = [*measured, by, *([weight] if weight else [])]

    def plain(f: pd.DataFrame) -> Numbers:
        own = _means(f, measured, by, weight)
        if at.way != "table_one":
            return own
        return replace(own, labels=[re.sub(r"^([^ ]+)", r"\1: mean", label) for label in own.labels])

    return Asked(frame[names], cf.Schema({one: columns[one] for one in names}), method, plain)


def _model(at: Cell, found: Regression, frame: pd.DataFrame, columns: dict[str, Any], bounds: str) -> Asked:
    formula, within = found.formula(at.kind), at.way == "within"
    names = [part.strip() for part in re.split(r"[~+]", formula)]
    kinds = {"line": cf.regression.LeastSquares, "logit": cf.regression.Logistic, "poisson": cf.regression.Poisson}
    method = (cf.regression.Within if within else kinds[at.kind])(formula, bounds=bounds)
    unit: dict[str, Any] = {"unit": cf.Unit("unit", rows=_UNIT)} if at.way in ("units", "within") else {}
    # persons are rows at random, so that lines within them are the line of all, from (k - 1)/k of the information
    first, factor = (1, float(np.sqrt(_UNIT / (_UNIT - 1)))) if within else (0, 1.0)

    def plain(f: pd.DataFrame) -> Numbers:
        # of the population the numbers alone are wanted
        beta, errors = fitted(at.kind, formula, f, errors=f is not frame and len(f) == at.n)
        labels, halves = design(formula, f.iloc[:5])[2], 1.96 * factor * errors
        return Numbers(labels[first:], beta[first:], halves[first:], np.full(len(beta) - first, float(len(f))))

    return Asked(frame[names], cf.Schema({one: columns[one] for one in names}, **unit), method, plain)


def cell(at: Cell) -> dict[str, Any]:
    """All releases of a cell, and what they hold."""
    start, asked = time.process_time(), asked_of(at)
    truth = asked.plain(asked.frame)
    head = {key: getattr(at, key) for key in ("part", "name", "kind", "n", "mu", "relation", "bounds", "way", "reps")}
    expected = truth.records * at.n / len(asked.frame)
    shown = expected >= _CELL if at.kind == "means" and at.part == "new" else np.ones(len(truth.labels), bool)
    hits, plains, usual, widths, answered, beyond, errors = [], [], [], [], [], [], []
    for r in range(at.reps):
        g = np.random.default_rng([crc32(f"{at.name} {at.kind}".encode()), at.n, r])
        own = asked.frame.iloc[g.integers(0, len(asked.frame), at.n)].reset_index(drop=True)
        data = own.assign(unit=np.arange(at.n) // _UNIT) if at.way in ("units", "within") else own
        privacy = cf.GDP(at.mu, relation=at.relation)
        try:
            source = cf.read(data, asked.schema)
            release = cf.release(asked.method, source, privacy, ledger=None, noise=SimulatedNoise(r))
            result: Any = cf.infer(release)
            ends = result.conf_int()
        except cf.errors.ConfideError as error:
            errors.append(f"{type(error).__name__}: {error}"[:200])
            answered.append(np.zeros(shown.sum(), bool))
            continue
        right = asked.plain(_clipped(asked.frame, release.ranges)).numbers
        about = asked.plain(_clipped(own, release.ranges))
        low, high = ends.reindex(truth.labels).to_numpy(float).T
        ok = np.isfinite(low) & np.isfinite(high)
        answered.append(ok[shown])
        hits.append(np.where(ok, (low <= right) & (right <= high), np.nan)[shown])
        plains.append(np.where(ok, (low <= truth.numbers) & (truth.numbers <= high), np.nan)[shown])
        usual.append((np.abs(about.numbers - right) <= about.halves)[shown])
        widths.append(np.where(ok, (high - low) / (2 * np.maximum(about.halves, 1e-300)), np.nan)[shown])
        beyond.append([one.beyond for one in release.ranges.values()])
    if not hits:
        return {**head, "labels": [], "answered": 0.0, "errors": errors[:3]}
    stack = {
        key: np.array(value, float)
        for key, value in {"hit": hits, "plain": plains, "usual": usual, "width": widths}.items()
    }
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of nothing are NaN
        labels = [label for label, ok in zip(truth.labels, shown, strict=True) if ok]
        per = {key: np.nanmean(value, axis=0) for key, value in stack.items() if key != "width"}
        width = np.nanmedian(stack["width"], axis=0)
        done = stack["hit"][np.isfinite(stack["hit"]).all(axis=1)]
        pooled = interval(done.astype(bool)) if len(done) > 1 else (float(np.nanmean(stack["hit"])), 0.0, 1.0)
        worst = [_ends(stack["hit"][:, k]) for k in range(len(labels))]
    return {
        **head,
        "labels": labels,
        "answered": float(np.mean(answered)),
        "covered": float(np.nanmean(stack["hit"])),
        "pooled_high": pooled[2],
        "plain": float(np.nanmean(stack["plain"])),
        "usual": float(np.nanmean(stack["usual"])),
        "by_label": {key: value.round(4).tolist() for key, value in per.items()},
        "high_by_label": worst,
        "answered_by_label": np.mean(answered, axis=0).round(4).tolist(),
        "width_by_label": width.round(4).tolist(),
        "width": float(np.nanmedian(width)),
        "widest": float(np.nanmax(width)) if np.isfinite(width).any() else float("nan"),
        "beyond": float(np.mean([np.max(own) for own in beyond if own] or [0.0])),
        "errors": sorted(set(errors))[:3],
        # below the 99.9 % rule, pooled or for one label
        "short": bool(pooled[2] < 0.95 or min(worst) < 0.95),
        "cpu": time.process_time() - start,
    }


def _ends(hits: Array) -> float:
    own = hits[np.isfinite(hits)]
    return interval(own.astype(bool)[:, None])[2] if len(own) else 1.0


# tests ----------------------------------------------------------------------------------------------------------------


def tested(at: Cell) -> dict[str, Any]:
    """Rejections at 5 % of t (two levels) or F, with the effect of the table and without one, beside scipy's on the same records."""
    found = NEW[at.name]
    frame = population("new", at.name)
    name, by = found.means
    levels = list(frame[by].cat.categories)
    test = "ttest_ind" if len(levels) == 2 else "f_oneway"
    columns = columns_of(found, "means", declared=at.bounds != "none")
    schema = cf.Schema({one: columns[one] for one in (name, by)})
    counts: dict[str, list[int]] = {"power": [0, 0, 0], "size": [0, 0, 0]}
    for r in range(at.reps):
        g = np.random.default_rng([crc32(at.name.encode()), at.n, 7, r])
        own = frame[[name, by]].iloc[g.integers(0, len(frame), at.n)].reset_index(drop=True)
        null = own.assign(**{by: own[by].iloc[g.permutation(at.n)].to_numpy()})
        null[by] = pd.Categorical(null[by], categories=levels)
        for key, data in (("power", own), ("size", null)):
            call = getattr(cf.tests, test)
            extra = {"bounds": "auto" if at.bounds == "none" else at.bounds}
            result = call(
                f"{name} ~ {by}",
                cf.read(data, schema),
                privacy=cf.GDP(at.mu, relation=at.relation),
                ledger=None,
                noise=SimulatedNoise(r),
                **extra,
            )
            groups = [part[name].to_numpy(float) for _, part in data.groupby(by, observed=True)]
            theirs = (
                stats.ttest_ind(*groups, equal_var=False).pvalue
                if len(groups) == 2
                else stats.f_oneway(*groups, equal_var=False).pvalue
            )
            counts[key][0] += bool(result.pvalue < 0.05)
            counts[key][1] += bool(theirs < 0.05)
            counts[key][2] += bool(np.isfinite(result.pvalue))
    head = {key: getattr(at, key) for key in ("part", "name", "n", "mu", "relation", "bounds", "way", "reps")}
    return {
        **head,
        "kind": test,
        **{
            f"{key}{which}": value[k] / at.reps
            for key, value in counts.items()
            for k, which in enumerate(("", "_scipy", "_answered"))
        },
    }


# the whole ------------------------------------------------------------------------------------------------------------


def cells(asked: argparse.Namespace) -> list[Cell]:
    """Those that the words ask for."""
    grid = product(asked.sizes, asked.mu, asked.relations, asked.bounds, asked.ways)
    found = []
    for n, mu, relation, bounds, way in grid:
        about = {"n": n, "mu": mu, "relation": relation, "bounds": bounds, "way": way, "reps": asked.reps}
        if "means" in asked.parts:
            found += [Cell("means", name, "means", **about) for name in _named(asked, LAWS)]
        for part, tables in (("coefficients", MODELS), ("new", NEW)):
            if part in asked.parts:
                found += [
                    Cell(part, name, kind, **about)
                    for kind, name in product(asked.kinds, _named(asked, tables))
                    if tables[name].has(kind) and way in _ASKED[kind]
                ]
        if "tests" in asked.parts:
            found += [Cell("tests", name, "tests", **about) for name in _named(asked, NEW)]
    return found


def _named(asked: argparse.Namespace, names: Mapping[str, Any] | Sequence[str]) -> list[str]:
    return [name for name in names if not asked.only or name in asked.only]


def _one(at: Cell) -> dict[str, Any]:
    try:
        return tested(at) if at.part == "tests" else cell(at)
    except Exception as error:  # a cell that fails is a finding, and the others go on
        head = {key: getattr(at, key) for key in ("part", "name", "kind", "n", "mu", "relation", "bounds", "way")}
        return {**head, "failed": f"{type(error).__name__}: {error}"[:300]}


def line(row: Mapping[str, Any]) -> str:
    """One row of the table that is printed."""
    size = f"{row['n']:>7,} {row['mu']:<4g} {row['relation'][:3]} {row['bounds']:8} {row['way']:9}"
    head = f"{row['part'][:5]:5} {row['kind'][:9]:9} {row['name']:14} {size}"
    if "failed" in row:
        return f"{head} FAILED {row['failed']}"
    if "power" in row:
        power, size = (f"{key} {row[key]:.3f} (scipy {row[f'{key}_scipy']:.3f})" for key in ("power", "size"))
        return f"{head} {power}  {size}  answered {row['power_answered']:.2f}, {row['size_answered']:.2f}"
    if not row["labels"]:
        return f"{head} answered 0: {row['errors']}"
    least = min((own for own in row["by_label"]["hit"] if own == own), default=float("nan"))
    parts = [
        f"{head} answered {row['answered']:.3f}",
        f"covered {row['covered']:.3f} (least {least:.2f}, t {row['usual']:.3f}, plain {row['plain']:.3f})",
        f"width {row['width']:.2f} to {row['widest']:.2f}",
        f"beyond {100 * row['beyond']:.2f}%",
        *(["SHORT"] if row["short"] else []),
        *row["errors"][:1],
    ]
    return "  ".join(parts)


def totals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each kind, size, budget, relation, bounds and way: over all tables. In brackets the least and the median of the tables."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row.get("labels"):
            found.setdefault(
                tuple(row[k] for k in ("part", "kind", "n", "mu", "relation", "bounds", "way")), []
            ).append(row)
    lines = []
    for key, own in found.items():
        widths = np.array([w for row in own for w in row["width_by_label"]], float)
        each = [
            (a, h, p)
            for row in own
            for a, h, p in zip(row["answered_by_label"], row["by_label"]["hit"], row["by_label"]["plain"], strict=True)
        ]
        a = np.array(each, float)
        weight = a[:, 0]
        lines.append(
            f"{' '.join(str(k) for k in key)}: {len(own)} tables, {len(a)} numbers, answered {weight.mean():.3f}, "
            f"covered {np.nansum(weight * a[:, 1]) / weight.sum():.3f} {_least(own, 'covered')}, "
            f"plain {np.nansum(weight * a[:, 2]) / weight.sum():.3f} {_least(own, 'plain')}, t {_least(own, 'usual')}, "
            f"width {np.nanmedian(widths):.2f} to {np.nanmax(widths):.2f}, short {sum(row['short'] for row in own)}"
        )
    return lines


def _least(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    found = [row[name] for row in rows]
    return f"[{np.nanmin(found):.3f}, {np.nanmedian(found):.3f}]"


def main(words: Sequence[str] = ()) -> int:
    """Run, print, and write to out/bench; 1 when a cell is below the 99.9 % rule or failed."""
    parser = argparse.ArgumentParser(prog="confide lab bench ranges")
    parser.add_argument("parts", nargs="*", default=["means", "coefficients", "new", "tests"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[2_000, 10_000])
    parser.add_argument("--mu", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--relations", nargs="+", default=["add-remove"], choices=["add-remove", "substitute"])
    parser.add_argument("--bounds", nargs="+", default=["auto"], choices=["auto", "declared", "found", "none"])
    parser.add_argument("--ways", nargs="+", default=["plain"], choices=WAYS)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--reps", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="40 releases at 10,000 records and mu = 1")
    parser.add_argument("--out", default=str(OUT / "ranges.json"))
    asked = parser.parse_args(list(words))
    if asked.quick:
        asked.reps, asked.sizes, asked.mu = min(asked.reps, 40), [10_000], [1.0]
    grid, rows, path = cells(asked), [], Path(asked.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(_one, grid) if asked.jobs > 1 else map(_one, grid):
            rows.append(row)
            print(line(row), flush=True)
            # what is done stands there, should the run be stopped
            path.write_text(json.dumps(rows))
    print("\n".join(["", *totals(rows)]))
    return int(any(row.get("short") or "failed" in row for row in rows))


def run() -> list[dict[str, Any]]:
    """What `all` runs: the quick grid."""
    main(["--quick"])
    rows: list[dict[str, Any]] = json.loads((OUT / "ranges.json").read_text())
    return [{"check": line(row), "passed": not (row.get("short") or "failed" in row)} for row in rows]


if __name__ == "__main__":
    raise SystemExit(main())
