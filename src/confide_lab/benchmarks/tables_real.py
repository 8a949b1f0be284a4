"""Tables of eight real sets against their whole table: coverage, widths, and how many cells stand: `confide lab bench tables_real`.

Samples are drawn with replacement from a set, n of them Poisson under add-remove (a count of a population is one of a Poisson number of
records), exactly n under substitute. Each is answered by the method's own plan, gate and reader with simulated noise: counts, shares,
differences of shares, relative risks, means and their differences at bounds 1, 4 and 20 times as wide, quantiles at 1 and 4 times. Judged
against the whole table, and, for the reading "dataset", against the sample, beside the same numbers without privacy.

Claims, each by the rule of `tables_judge.rule`: covered at least .94 wherever no flag says otherwise, for each kind of number as a whole
and for each number by itself; at most .985 for a kind whose noise is below its sampling error; width at most 1.3 times the interval
without privacy for shares and overall means with bounds up to 4 times too wide, elsewhere within 10 % of the formula's; at n = 10,000,
mu = 1 at most 5 % of the cells of all crossings of two columns with 100 expected records flagged.

    confide lab bench tables_real [--replications 100] [--sets adult wine_quality] [--sizes 500 10000] [--mu 0.3 1] [--relation substitute]
                                  [--write docs/coverage-tables.md]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import stats

import confide as cf
from confide.methods.tables.counts import Counts
from confide.methods.tables.means import Means
from confide.noise import SimulatedNoise
from confide.protocol import seal
from confide.schema import Practice
from confide_lab.benchmarks.tables_judge import plain
from confide_lab.benchmarks.tables_judge.answers import UNSURE, Asked
from confide_lab.benchmarks.tables_judge.formula import widths
from confide_lab.benchmarks.tables_judge.judged import Kept, kind_of
from confide_lab.benchmarks.tables_judge.page import lines
from confide_lab.benchmarks.tables_judge.sets import NAMES, Case, case, missing

__all__ = ["cell", "flagged", "main"]

OUT = Path("out/bench")


def cell(one: Case, n: int, mu: float, replications: int, relation: str = "add-remove") -> list[dict[str, Any]]:
    """One row for each kind of number."""
    asked, kept = Asked(one, mu, relation), dict[str, Kept]()
    whole = _targets(one, plain.truths(one, one.frame), n)
    for r in range(replications):
        g = np.random.default_rng([crc32(one.name.encode()), n, r])
        size = int(g.poisson(n)) if relation == "add-remove" else n
        frame = one.frame.iloc[g.integers(0, len(one.frame), size)].reset_index(drop=True)
        own, bare = _targets(one, plain.truths(one, frame), size), plain.intervals(one, frame)
        for answer in asked.answers(frame, crc32(f"{one.name} {n} {mu} {r}".encode())):
            kind = kind_of(answer.kind)
            part = kept.setdefault(answer.kind, Kept(answer.names))
            part.add(answer, (own if "these records" in answer.kind else whole)[kind], bare[kind])
    formula = _formula(one, asked, n)
    head = {"set": one.name, "n": n, "mu": mu, "relation": relation}
    return [
        {**head, "kind": kind, **part.judged(kind, formula.get(kind), _floor(part.names, whole["shares"], n, mu))}
        for kind, part in kept.items()
    ]


def _targets(one: Case, found: dict[str, dict[str, float]], n: int) -> dict[str, dict[str, float]]:
    """Kind -> name -> what is to be covered."""
    counts = {name: share * n for name, share in found["shares"].items()}
    gaps, ratios, means = {}, {}, {}
    within = found["within"]
    for a, p in within.items():
        for b, q in within.items():
            gaps[f"({a}) - ({b})"] = p - q
            ratios[f"({a}) / ({b})"] = p / q if q else float("nan")
    for a, m in found["means"].items():
        for b, m2 in found["means"].items():
            (column, _, first), (other, _, second) = a.partition(" | "), b.partition(" | ")
            if column == other and first and second:
                means[f"{column}: ({first}) - ({second})"] = m - m2
    more = {"counts": counts, "differences of shares": gaps, "relative risks": ratios, "differences of means": means}
    return {**found, **more}


def _formula(one: Case, asked: Asked, n: int) -> dict[str, np.ndarray]:
    """Kind -> widths by the formula, of tables alone."""
    frame = one.frame.iloc[np.random.default_rng(n).integers(0, len(one.frame), n)].reset_index(drop=True)
    return {kind: widths(one, kind, table, n) for kind, table in asked.tables(frame, 0)}


def _floor(names: Sequence[str], shares: dict[str, float], n: int, mu: float) -> np.ndarray:
    """The least width over the one without privacy of a share whose count has noise of variance 1/mu^2, n known."""
    p = np.array([shares.get(name, np.nan) for name in names])
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt(1 + 1 / (mu * mu * n * p * (1 - p))))


def overall(one: Case, n: int, mu: float, replications: int = 20) -> list[dict[str, Any]]:
    """Widths of the mean of each column alone over Student's, by how many times its bounds are as wide as the records' own range.

    floor: what noise of variance (half-width/mu)^2 on the sum leaves at the least, were the number of records known.
    """
    rows, head = [], {"set": one.name, "n": n, "mu": mu}
    for name in one.measures:
        values = one.frame[name].dropna()
        low, high = float(values.min()), float(values.max())
        for times in (1.0, 2.0, 4.0):
            middle, half = (low + high) / 2, (high - low) / 2 * times
            schema = cf.Schema({name: cf.Numeric(middle - half, middle + half)})
            method = Means(f"{name} ~ 1", covers="population")
            plan = cf.plan(method, schema, cf.GDP(mu))
            ratios = []
            for r in range(replications):
                g = np.random.default_rng([crc32(name.encode()), n, r])
                own = values.to_numpy()[g.integers(0, len(values), g.poisson(n))]
                table: Any = method.infer(seal(method, cf.read({name: own}, schema), plan, SimulatedNoise(r)))
                a, b = table.conf_int().iloc[0]
                ratios.append((b - a) / (2 * stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))))
            floor = float(np.sqrt(1 + (half / values.std()) ** 2 / (mu * mu * n)))
            rows.append({**head, "column": name, "times": times, "width": float(np.mean(ratios)), "floor": floor})
    return rows


def flagged(one: Case, *, n: int = 10_000, mu: float = 1.0, replications: int = 5) -> dict[str, Any]:
    """Of the cells of all crossings of two columns that expect 100 records: how many, and the shares with any flag, and with one that
    says that the interval is not to be relied on."""
    method = Counts(one.pairs, covers="population")
    schema = one.schema()
    plan = cf.plan(method, schema, cf.GDP(mu))
    marks: list[pd.Series[str]] = []
    for r in range(replications):
        g = np.random.default_rng([crc32(one.name.encode()), n, r])
        frame = one.frame.iloc[g.integers(0, len(one.frame), g.poisson(n))].reset_index(drop=True)
        table = method.infer(seal(method, cf.read(frame, schema), plan, SimulatedNoise(r)))
        expected = n * np.array(list(method.reference(Practice.of(one.frame, schema)).values())) / len(one.frame)
        marks.append(table.to_frame()["flag"][expected >= 100])
    found = pd.concat(marks)
    unsure = found.map(lambda text: any(word in UNSURE for word in text.split()))
    return {
        "set": one.name,
        "cells": len(marks[0]),
        "any flag": float((found != "").mean()),
        "unsure": float(unsure.mean()),
    }


def main(words: Sequence[str] = ()) -> int:
    """Run, print, and write where asked; 1 when a claim failed."""
    asked = _asked(words)
    lost = missing()
    if lost is not None:
        print(f"skipped: {lost}")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"tables_real{'_substitute' if asked.relation == 'substitute' else ''}.json"
    found: dict[str, Any] = {"replications": asked.replications, "rows": [], "flags": [], "bounds": []}
    for name in asked.sets:
        one, settings = case(name), [(n, mu) for n in asked.sizes for mu in asked.mu]
        for n, mu in settings:
            found["rows"] += cell(one, n, mu, asked.replications, asked.relation)
            if asked.relation == "add-remove":
                found["bounds"] += overall(one, n, mu)
            print(f"{name} {n} {mu:g}: done", flush=True)
        if asked.relation == "add-remove":
            found["flags"].append(flagged(one))
        # what is done stands there, should the run be stopped
        path.write_text(json.dumps(found))
    text = "\n".join(lines(found["rows"], found["flags"], found["bounds"], asked.replications))
    print(text)
    if asked.write:
        Path(asked.write).write_text(text + "\n")
    failures = ("short", "long", "short numbers", "wide", "far")
    return int(any(row[name] for row in found["rows"] for name in failures))


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="confide lab bench tables_real")
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--sets", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 10_000])
    parser.add_argument("--mu", nargs="+", type=float, default=[0.3, 1.0])
    parser.add_argument("--relation", default="add-remove", choices=("add-remove", "substitute"))
    parser.add_argument("--write", default="")
    return parser.parse_args(list(words))
