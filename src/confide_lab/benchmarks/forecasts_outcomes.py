"""What plans of logistic, probit and Poisson regressions forecast against what happens: `confide lab bench forecasts_outcomes`.

For each table, n and mu: the chance of status "valid" and the share of coefficients that are answered, as the plan says without anything
stated, and what three releases of records drawn again from the table gave. Tables: two-valued outcomes of the real sets of CONFIDE_DATA and
synthetic designs (`confide_lab.benchmarks.outcome_sets`), on which the forecast was built; counts and probits, made and real; the whole
responses of the real sets as counts; and apart from them the outside tables that judge (`confide_lab.benchmarks.outside_outcomes`, and
of counts `confide_lab.benchmarks.outside_counts`).
Printed: what was said, in words, against what came; how often realised standard errors lie within the forecast's interval, how wide it is
as the ratio of its ends, and for how many none is said.
CONFIDE_FORECASTS (bounds, sets, families, counts, outside, outside-counts; comma-separated, default all) chooses; "bounds" prints how many
features of the real sets and of the outside tables of lines keep to less than 5 % of their bounds (`confide.scenarios`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

import confide as cf
from confide.core import seal
from confide.noise import SimulatedNoise
from confide.regression import Logistic
from confide.schema import Categorical, Integer
from confide_lab.benchmarks import log_odds
from confide_lab.benchmarks.outcome_sets import OutcomeSet, count_sets, family_sets, outcome_sets
from confide_lab.benchmarks.outside_counts import outside_counts
from confide_lab.benchmarks.outside_tables import OUTCOMES, TABLES, frame_of, missing
from confide_lab.datasets import SETS, available, table as table_of

OUT = Path("out/bench")
CHOSEN = tuple(os.environ.get("CONFIDE_FORECASTS", "bounds,sets,families,counts,outside,outside-counts").split(","))
SIZES, LEVELS, RELEASES = (2_000, 10_000), (0.3, 1.0, 3.0), 3


def outside() -> Iterator[OutcomeSet]:
    """The tables that judge."""
    for name, table in OUTCOMES.items():
        if missing(name) is None:
            yield OutcomeSet(name, frame_of(name), table.schema, table.formula)


def cell(one: OutcomeSet, n: int, mu: float) -> list[dict[str, Any]]:
    """One row for each coefficient."""
    method = one.method or Logistic(one.formula)
    plan = cf.plan(method, one.schema, cf.GDP(mu), n=n)
    said, key = plan.forecast, f"{n:,}"
    errors, status = [], []
    for r in range(RELEASES):
        rows = np.random.default_rng([crc32(one.name.encode()), n, r]).integers(0, len(one.frame), n)
        noise = SimulatedNoise(crc32(f"{one.name} {n} {mu} {r}".encode()))
        release = seal(method, cf.read(one.frame.iloc[rows].reset_index(drop=True), one.schema), plan, noise)
        result: Any = method.infer(release)
        status.append(result.status)
        told = result.status in ("valid", "partial")
        errors.append(np.asarray(result.bse, dtype=float) if told else np.full(len(result.names), np.nan))
    held = np.array(errors)
    base = {
        "table": one.name, "n": n, "mu": mu, "chance": said["valid"][key], "share": said["answered"][key],
        "ok": np.mean([s == "valid" for s in status]), "answered": np.isfinite(held).mean(),
    }  # fmt: skip
    rows = []
    for name, own in zip(result.names, held.T, strict=True):
        pair = said[key][name]
        low, high = pair if isinstance(pair, tuple) else (np.nan, np.nan)
        seen = own[np.isfinite(own)]
        rows.append(
            {**base, "name": name, "realised": np.median(seen) if len(seen) else np.nan, "low": low, "high": high}
        )
    return rows


def measured(tables: Iterator[OutcomeSet], *, show: bool = True) -> pd.DataFrame:
    """All cells."""
    found = []
    for one in tables:
        for n in SIZES:
            for mu in LEVELS:
                rows = cell(one, n, mu)
                found += rows
                if show:
                    words = "  ".join(f"{key} {rows[0][key]:.2f}" for key in ("chance", "share", "ok", "answered"))
                    print(f"{one.name:<22} n {n:>6} mu {mu:<4} {words}", flush=True)
    return pd.DataFrame(found)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """By what was said: the number of cells, and what came of them."""
    cells = found.drop_duplicates(["table", "n", "mu"])
    words = pd.cut(cells["chance"], [-0.01, 0.2, 0.5, 0.799, 1.0], labels=["no", "seldom", "open", "likely"])
    return cells.groupby(words, observed=True).agg(
        cells=("n", "size"), chance=("chance", "mean"), ok=("ok", "mean"), share=("share", "mean"),
        answered=("answered", "mean"), most=("answered", lambda a: (a >= 0.9).mean()),
    ).round(2)  # fmt: skip


def bounds() -> pd.DataFrame:
    """How much of its bounds 95 % of each feature of numbers lies in, by table; columns of two values are left out."""
    found = []
    tables = [(name, table_of(name).frame, table_of(name).schema) for name in SETS if available(name) is None]
    tables += [(name, frame_of(name), own.schema) for name, own in TABLES.items() if missing(name) is None]
    responses = {name: table_of(name).target for name in SETS if available(name) is None}
    responses |= {name: own.formula.split("~")[0].strip() for name, own in TABLES.items()}
    for name, frame, schema in tables:
        for column, own in schema.columns.items():
            if column != responses[name] and not isinstance(own, Categorical) and own.steps > 2:
                values = frame[column].astype(float).clip(own.low, own.high).dropna()
                low, high = np.quantile(values, [0.025, 0.975])
                kind = "whole numbers" if isinstance(own, Integer) else "numbers"
                found.append((name, column, kind, (high - low) / (own.high - own.low)))
    return pd.DataFrame(found, columns=["table", "column", "kind", "part"])


def _said_of_bounds() -> None:
    found = bounds()
    for kind, own in found.groupby("kind"):
        far = own["part"] < 0.05
        each = far.groupby(own["table"]).mean()
        print(
            f"{kind}: {far.sum()} of {len(own)} columns keep to less than 5 % of their bounds; by table, of {len(each)}, "
            f"{each.mean():.3f} of them on average; the least part {own['part'].min():.1g}"
        )


def run() -> list[dict[str, Any]]:
    """All kinds of tables."""
    checks = []
    if "bounds" in CHOSEN:
        _said_of_bounds()
    kinds = {
        "sets": outcome_sets, "families": family_sets, "counts": count_sets, "outside": outside,
        "outside-counts": outside_counts,
    }  # fmt: skip
    for kind in (kind for kind in CHOSEN if kind != "bounds"):
        tables = kinds[kind]()
        found = measured(tables)
        if not len(found):
            continue
        OUT.mkdir(parents=True, exist_ok=True)
        found.to_parquet(OUT / f"forecasts-outcomes-{kind}.parquet")
        print(f"{kind}: what was said of status valid, and what came\n{summary(found).to_string()}")
        # features that fill their box evenly and do not hang together are the best case, and lie at or below the interval's lower end
        made = [name for name in log_odds.DESIGNS if name not in log_odds.NEEDS]
        seen = found[found["realised"].notna() & ~found["table"].isin(made)]
        said = seen[seen["low"].notna()]
        within = float(said["realised"].between(said["low"], said["high"]).mean())
        print(f"{kind}: {within:.3f} of {len(said)} realised standard errors of real records lie within what was said")
        for words, side in (("smaller", said["realised"] < said["low"]), ("larger", said["realised"] > said["high"])):
            print(f"{kind}: {words} than said: {said.loc[side, 'table'].value_counts().to_dict()}")
        print(f"{kind}: its ends lie {(said['high'] / said['low']).median():.0f} times apart in the median; ", end="")
        print(f"none was said for {len(seen) - len(said)}")
        checks.append({"check": f"forecasts of outcomes, {kind}: within", "value": within, "passed": True})
    return checks
