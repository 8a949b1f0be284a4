"""What `advise` predicts for the method that it puts first, against what that method then does: `python -m benchmarks advice`.

Cells: real sets of at least 2,000 records and synthetic designs, n = 2,000 and 10,000, mu = 1 and 3, with two kinds of public knowledge:
"like" (half of the records are taken to be public, an earlier survey; the other half is private) and "typical" (the schema states spreads,
own shares and shares of levels to one or two digits; `benchmarks.forecasts`). A cell's figure is the geometric mean over coefficients of
realised over predicted standard errors; realised: root mean squares over 12 samples of the private records, distances from their own
least-squares line. Claims: with "like" within a factor of 1.5 in 90 % of the cells; intervals for at least half as many numbers as said.
`python -m benchmarks advice_short` is the part of it that takes minutes: ten sets, mu = 1, "like" alone. Real sets need CONFIDE_DATA.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp, log
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from benchmarks.forecasts import with_typical
from benchmarks.truth_cases import DESIGNS
from confide import registry
from confide.advice import Advice
from confide.advice.expectation import mean_ratio
from confide.lab.datasets import SETS, Table, available
from confide.lab.datasets import table as table_of
from confide.schema import Practice

RUNS = 12
SIZES, LEVELS = (2_000, 10_000), (1.0, 3.0)
#: What `advice_short` runs: few terms, or named for long tails.
SHORT = ("kin8nm", "D4", "D6", "bike", "california", "casp", "plain", "incomes", "long-feature", "bent")
#: More terms than these take hours.
_MOST_TERMS = 30


def tables(names: tuple[str, ...]) -> Iterator[Table]:
    for name in SETS:
        if name in names and available(name) is None and _fits(table_of(name)):
            yield table_of(name)
    for name, design in DESIGNS.items():
        if name not in names:
            continue
        frame = pd.DataFrame(design.made(np.random.default_rng(20261122))).iloc[:100_000]
        yield Table(name, "public", frame, design.schema, design.formula, design.formula.split("~")[0].strip())


def _fits(found: Table) -> bool:
    """Enough records, not too many terms, and a line that they determine."""
    if len(found.frame) < 2_000 or len(found.schema) > _MOST_TERMS:
        return False
    try:
        cf.regression.SSP(found.formula).reference(Practice.of(found.frame, found.schema))
    except cf.PlanError:
        return False
    return True


def cells(*, quick: bool = False) -> Iterator[Mapping[str, Any]]:
    for found in tables(SHORT if quick else (*SETS, *DESIGNS)):
        order = np.random.default_rng(20261122).permutation(len(found.frame))
        public, private = (found.frame.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2))
        known: dict[str, tuple[Any, Any]] = {
            "like": (found.schema, public),
            "typical": (with_typical(found, own=True), None),
        }
        if quick:
            del known["typical"]
        for n in SIZES:
            for mu in LEVELS[:1] if quick else LEVELS:
                for kind, (schema, like) in known.items():
                    yield {**_cell(found, schema, like, private, kind, n, mu), "public": len(public)}


def _cell(
    found: Table, schema: Any, like: Any, private: pd.DataFrame, kind: str, n: int, mu: float
) -> Mapping[str, Any]:
    asked = cf.GDP(mu, relation="add-remove")
    advice = cf.advise("linear_regression", found.formula, schema, n, asked, like=like, replications=RUNS)
    errors, answered = realised(found, private, advice, n, mu)
    ratio = mean_ratio(errors, advice.best.error)
    return {
        "set": found.name, "known": kind, "n": n, "mu": mu, "best": advice.best.label, "ratio": ratio,
        "said": advice.best.intervals, "answered": answered, "covers": advice.best.coverage,
    }  # fmt: skip


def realised(found: Table, private: pd.DataFrame, advice: Advice, n: int, mu: float) -> tuple[tuple[float, ...], float]:
    """Root mean square errors of the advised method, and the share of numbers that it gives intervals for."""
    method = registry.make(advice.best.method, formula=found.formula)
    truth = cf.regression.SSP(found.formula).reference(Practice.of(private, found.schema))
    squares, answered = [], []
    for seed in range(RUNS):
        rows = np.random.default_rng((7, seed)).integers(0, len(private), n)
        source = cf.read(private.iloc[rows], found.schema)
        noise = cf.noise.SimulatedNoise(1_000 + seed)
        result = cf.infer(cf.release(method, source, cf.GDP(mu, relation="add-remove"), ledger=None, noise=noise))
        squares.append([(result.params.get(name, np.nan) - truth[name]) ** 2 for name in advice.names])
        has = getattr(result, "has_intervals", False)
        answered.append(float(np.isfinite(result.conf_int().to_numpy(dtype=float)).all(axis=1).mean()) if has else 0.0)
    known = np.array(squares)
    each = [float(np.sqrt(np.mean(c[np.isfinite(c)]))) if np.isfinite(c).any() else float("nan") for c in known.T]
    return tuple(each), float(np.mean(answered))


def close_to(rows: pd.DataFrame) -> pd.Series[Any]:
    """Whether what was realised is within a factor of 1.5 of what was predicted."""
    return np.abs(np.log(rows["ratio"])) <= log(1.5)


def run(*, quick: bool = False) -> list[dict[str, Any]]:
    rows = []
    for row in cells(quick=quick):
        rows.append(row)
        print(
            "  ".join(f"{key} {value:.2f}" if isinstance(value, float) else f"{value}" for key, value in row.items()),
            flush=True,
        )
    found = pd.DataFrame(rows)
    checks = []
    for kind, own in found.groupby("known"):
        close = close_to(own).mean()
        kept = (own["answered"] >= own["said"] / 2).mean()
        typical = exp(float(np.abs(np.log(own["ratio"].replace(np.inf, np.nan))).median()))
        print(
            f"{kind}: {len(own)} cells, within 1.5 in {close:.2f}, median factor {typical:.2f}; intervals kept in {kept:.2f}"
        )
        enough = own["public"] >= own["n"]
        print(
            f"{kind}: with at least n public records within 1.5 in {int((close_to(own) & enough).sum())} of {int(enough.sum())}"
        )
        asked = kind == "like"
        checks.append(
            {"check": f"advice, {kind}: within 1.5", "value": float(close), "passed": bool(close >= 0.9) or not asked}
        )
        checks.append(
            {"check": f"advice, {kind}: intervals come", "value": float(kept), "passed": bool(kept >= 0.9) or not asked}
        )
    return checks
