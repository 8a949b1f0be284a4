"""Tables of eight real sets against their whole table: coverage, widths, and how many cells stand: `confide lab bench tables_real`.

Samples are drawn with replacement from a set, a Poisson number of records of mean n, of which a count of a population is one. Counts,
shares, differences of shares, relative risks, means and their differences at bounds 1, 4 and 20 times as wide, quantiles at 1 and 4
times, each from a release of its own plan (`tables_judge.streams`), judged against the whole table, and, for the reading "dataset",
against the sample; the first 100 samples are answered without privacy too (`tables_judge.plain`).

Claims, each by the rule of `tables_judge.rule`: covered at least .94 wherever no flag says otherwise, for each kind of number as a whole
and for each number by itself; at most .985 for a kind whose noise is below its sampling error, or at most what the interval without
privacy may cover on the same samples, where ties and whole values are covered for certain; width at most 1.3 times the interval without
privacy for shares and overall means with bounds up to 4 times too wide, elsewhere within 10 % of the formula's; at n = 10,000, mu = 1 at
most 5 % of the cells of all crossings of two columns with 100 expected records flagged.

    confide lab bench tables_real [--replications 400] [--sets adult wine_quality] [--sizes 500 10000] [--mu 0.3 1] [--only quantiles]
        [--write FILE.csv]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import stats

import confide as cf
from confide.core import seal
from confide.methods.tables.counts import Counts
from confide.methods.tables.means import Means
from confide.noise import SimulatedNoise
from confide.schema import CodedFrame
from confide_lab.benchmarks.tables_judge import plain
from confide_lab.benchmarks.tables_judge.formula import widths
from confide_lab.benchmarks.tables_judge.judged import Kept, kind_of
from confide_lab.benchmarks.tables_judge.page import lines
from confide_lab.benchmarks.tables_judge.sets import NAMES, Case, case, missing
from confide_lab.benchmarks.tables_judge.streams import Answer, Counted, Measured, Ranked

__all__ = ["cell", "flagged", "main", "overall"]

#: Flags that say that an interval is not to be relied on. E and F speak of precision alone.
UNSURE = ("count_below_noise", "skewed_few_records", "whole_range")

OUT = Path("out/bench")
#: How many times too wide the bounds are; samples that are answered without privacy, and by quantiles, at the most.
BOUNDS, PLAIN, RANKED = (1.0, 4.0, 20.0), 100, 400


def cell(one: Case, n: int, mu: float, replications: int, *, only: bool = False) -> list[dict[str, Any]]:
    """One row for each kind of number. only: quantiles."""
    generator = np.random.default_rng([crc32(one.name.encode()), n, round(1_000 * mu)])
    samples = [generator.integers(0, len(one.frame), generator.poisson(n)) for _ in range(replications)]
    whole = _targets(one, plain.truths(one, one.frame), n)
    frames = (one.frame.iloc[rows].reset_index(drop=True) for rows in samples[:PLAIN])
    bare = [plain.intervals(one, frame) for frame in frames]
    head, shares, rows = {"set": one.name, "n": n, "mu": mu}, whole["shares"], []
    answers = _quantiles(one, mu, samples, generator) if only else _answers(one, n, mu, samples, generator)
    for answer, formula in answers:
        kind = kind_of(answer.kind)
        part = Kept.of(answer, whole[kind], [own[kind] for own in bare])
        rows.append({**head, "kind": answer.kind, **part.judged(kind, formula, _floor(answer.names, shares, n, mu))})
    return rows


def _answers(
    one: Case, n: int, mu: float, samples: Sequence[np.ndarray], generator: np.random.Generator
) -> Iterator[tuple[Answer, np.ndarray | None]]:
    """Answers with the widths that the formula gives at the true numbers, where there is one."""
    counted = Counted(one, mu)
    margins, exact = counted.margins(samples, generator)
    for answer in counted.answers(margins, exact):
        tables = {"counts": counted.table, "shares": counted.shares}
        yield answer, widths(one, answer.kind, tables[answer.kind], n) if answer.kind in tables else None
    for widened in BOUNDS:
        measured = Measured(one, mu, widened)
        sums, bare = measured.sums(samples, generator)
        for answer in measured.answers(sums, bare if widened == 1 else None):
            is_mean = answer.kind == f"means, bounds x{widened:g}"
            yield answer, widths(one, answer.kind, measured.table, n) if is_mean else None
    yield from _quantiles(one, mu, samples, generator)


def _quantiles(
    one: Case, mu: float, samples: Sequence[np.ndarray], generator: np.random.Generator
) -> Iterator[tuple[Answer, None]]:
    for widened in BOUNDS[:2]:
        for column in one.measures[:2]:
            yield Ranked(one, mu, widened, column).answer(samples[:RANKED], generator), None


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
            method = Means(f"{name} ~ 1", inference="population")
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
    method = Counts(one.pairs, inference="population")
    schema = one.schema()
    plan = cf.plan(method, schema, cf.GDP(mu))
    marks: list[pd.Series[str]] = []
    for r in range(replications):
        g = np.random.default_rng([crc32(one.name.encode()), n, r])
        frame = one.frame.iloc[g.integers(0, len(one.frame), g.poisson(n))].reset_index(drop=True)
        table = method.infer(seal(method, cf.read(frame, schema), plan, SimulatedNoise(r)))
        expected = n * np.array(list(method.reference(CodedFrame.of(one.frame, schema)).values())) / len(one.frame)
        marks.append(table.to_frame()["flags"][expected >= 100])
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
    path = OUT / "tables_real.json"
    found: dict[str, Any] = {"replications": asked.replications, "rows": [], "flags": [], "bounds": []}
    for name in asked.sets:
        one = case(name)
        for n, mu in product(asked.sizes, asked.mu):
            found["rows"] += cell(one, n, mu, asked.replications, only=asked.only == "quantiles")
            found["bounds"] += overall(one, n, mu) if not asked.only else []
            print(f"{name} {n} {mu:g}: done", flush=True)
        found["flags"] += [flagged(one)] if not asked.only else []
        # what is done stands there, should the run be stopped
        path.write_text(json.dumps(found))
    text = "\n".join(lines(found["rows"], found["flags"], found["bounds"], asked.replications))
    print(text)
    if asked.write:
        Path(asked.write).write_text(kinds(text))
    failures = ("short", "long", "short numbers", "wide", "far")
    return int(any(row[name] for row in found["rows"] for name in failures))


def kinds(text: str) -> str:
    """The first table of what is printed, that of kinds of numbers, as CSV."""
    table = next(part for part in text.split("\n\n") if part.startswith("| kind"))
    rows = [[cell.strip().replace("nan", "") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    numbers = [
        [cell.replace(",", "") if re.fullmatch(r"[\d,]+", cell) else cell for cell in row]
        for row in rows[:1] + rows[2:]
    ]
    room = io.StringIO()
    csv.writer(room, lineterminator="\n").writerows(numbers)
    return room.getvalue()


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="confide lab bench tables_real")
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--sets", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 10_000])
    parser.add_argument("--mu", nargs="+", type=float, default=[0.3, 1.0])
    parser.add_argument("--only", default="", choices=["", "quantiles"])
    parser.add_argument("--write", default="")
    return parser.parse_args(list(words))
