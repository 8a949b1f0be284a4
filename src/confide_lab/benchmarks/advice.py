"""What `advise` predicts for the method that it puts first, against what that method then does: `confide lab bench advice`.

Cells: real sets of at least 2,000 records and synthetic designs, n = 2,000 and 10,000 (or as many as the private half has), mu = 1 and 3,
with two kinds of public knowledge: "like" (half of the records are taken to be public, an earlier survey; the other half is private)
and "typical" (the schema states spreads,
own shares and shares of levels to one or two digits; `confide_lab.benchmarks.forecasts`). A cell's figure is the geometric mean over
coefficients of realised over predicted standard errors; realised: root mean squares over 12 samples of the private records, distances from
their own least-squares line. Claims: with "like" within a factor of 1.5 in 90 % of the cells; intervals for at least half as many numbers
as said, widths within 1.5, and intervals that hold (the method's own reference on the private half). `confide lab bench advice_short` is
the part of it that takes minutes: eleven sets, mu = 1, "like" alone. Real sets need CONFIDE_DATA.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log, nan
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import confide as cf
from confide import registry
from confide.advice import Advice, mean_ratio
from confide.schema import CodedFrame
from confide_lab.benchmarks.forecasts import with_typical
from confide_lab.benchmarks.truth.cases import DESIGNS
from confide_lab.datasets import SETS, Table, available, table as table_of

RUNS = 12
SIZES, LEVELS = (2_000, 10_000), (1.0, 3.0)
#: What `advice_short` runs: few terms, or named for long tails.
SHORT = ("kin8nm", "D4", "D6", "bike", "california", "casp", "D7", "plain", "incomes", "long-feature", "bent")
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
        cf.regression.SSP(found.formula).reference(CodedFrame.of(found.frame, found.schema))
    except cf.errors.PlanError:
        return False
    return True


def cells(*, quick: bool = False) -> Iterator[Mapping[str, Any]]:
    """n: no more than the private half has records, since a sample of more would hold each far-out record several times."""
    for found in tables(SHORT if quick else (*SETS, *DESIGNS)):
        order = np.random.default_rng(20261122).permutation(len(found.frame))
        public, private = (found.frame.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2))
        known: dict[str, tuple[Any, Any]] = {
            "like": (found.schema, public),
            "typical": (with_typical(found, own=True), None),
        }
        if quick:
            del known["typical"]
        sizes = [min(size, len(private)) for size in SIZES]
        for n in sizes if sizes[-1] > 1.5 * sizes[0] else sizes[:1]:
            for mu in LEVELS[:1] if quick else LEVELS:
                for kind, (schema, similar_data) in known.items():
                    yield {**_cell(found, schema, similar_data, private, kind, n, mu), "public": len(public)}


def _cell(
    found: Table, schema: Any, similar_data: Any, private: pd.DataFrame, kind: str, n: int, mu: float
) -> Mapping[str, Any]:
    asked = cf.GDP(mu, relation="add-remove")
    advice = cf.advise(
        "linear_regression", found.formula, schema, n, asked, similar_data=similar_data, replications=RUNS
    )
    best, came = advice.best, realised(found, private, advice, n, mu)
    return {
        "set": found.name, "known": kind, "n": n, "mu": mu, "best": best.label, "ratio": mean_ratio(came.errors, best.error),
        "said": best.intervals, "answered": came.answered, "covers": best.coverage, "held": came.held, "of": came.trials,
        "wider": mean_ratio(came.halves, best.halves) if best.intervals and came.answered else nan,
    }  # fmt: skip


@dataclass(frozen=True)
class Came:
    """What the advised method did: root mean square errors and median half-widths by number; the share of numbers with intervals; how often
    they held, of how many.
    """

    errors: tuple[float, ...]
    halves: tuple[float, ...]
    answered: float
    held: float
    trials: int


def realised(found: Table, private: pd.DataFrame, advice: Advice, n: int, mu: float) -> Came:
    """Distances from the least-squares line of the private records, and whether intervals hold the method's own reference on them."""
    method, practice = registry.make(advice.best.method, formula=found.formula), CodedFrame.of(private, found.schema)
    truth = cf.regression.SSP(found.formula).reference(practice)
    try:
        own = method.reference(practice)
    except cf.errors.PlanError:  # a method without intervals
        own = {}
    squares, halves, held = [], [], []
    for seed in range(RUNS):
        rows = np.random.default_rng((7, seed)).integers(0, len(private), n)
        source = cf.read(private.iloc[rows], found.schema)
        noise = cf.noise.SimulatedNoise(1_000 + seed)
        result = cf.infer(cf.release(method, source, cf.GDP(mu, relation="add-remove"), ledger=None, noise=noise))
        squares.append([(result.params.get(name, nan) - truth[name]) ** 2 for name in advice.names])
        limits = result.conf_int() if getattr(result, "has_intervals", False) else None
        ends = [
            limits.loc[name] if limits is not None and name in limits.index else (nan, nan) for name in advice.names
        ]
        low, high = np.array(ends, dtype=float).T
        halves.append((high - low) / 2)
        aim = np.array([own.get(name, nan) for name in advice.names])
        told = np.isfinite(low + high + aim)
        held += list(((low <= aim) & (aim <= high))[told])
    widths = np.array(halves)
    errors = tuple(
        float(np.sqrt(np.mean(c[np.isfinite(c)]))) if np.isfinite(c).any() else nan for c in np.array(squares).T
    )
    medians = tuple(float(np.median(c[np.isfinite(c)])) if np.isfinite(c).any() else nan for c in widths.T)
    return Came(errors, medians, float(np.isfinite(widths).mean()), float(np.mean(held)) if held else nan, len(held))


def close_to(ratio: pd.Series[Any]) -> pd.Series[Any]:
    """Whether what was realised is within a factor of 1.5 of what was predicted."""
    return np.abs(np.log(ratio)) <= log(1.5)


def run(*, quick: bool = False) -> list[dict[str, Any]]:
    rows = []
    for row in cells(quick=quick):
        rows.append(row)
        print(
            "  ".join(f"{key} {value:.2f}" if isinstance(value, float) else f"{value}" for key, value in row.items()),
            flush=True,
        )
    found = pd.DataFrame(rows)
    return [check for kind, own in found.groupby("known") for check in _checks(str(kind), own)]


def _checks(kind: str, own: pd.DataFrame) -> list[dict[str, Any]]:
    close, typical = close_to(own["ratio"]).mean(), np.exp(np.abs(np.log(own["ratio"].replace(np.inf, nan))).median())
    kept = (own["answered"] >= own["said"] / 2).mean()
    told = own[own["of"] > 0]
    # what intervals that hold in .93 would give with less than one chance in a thousand
    fails = stats.binom.cdf((told["held"] * told["of"]).round(), told["of"], 0.93) < 1e-3
    wide = close_to(told["wider"]).mean()
    of = told["of"].sum()
    print(
        f"{kind}: {len(own)} cells; errors within 1.5 of what was said in {close:.2f}, median factor {typical:.2f}; "
        f"intervals kept in {kept:.2f}"
    )
    print(
        f"{kind}: {len(told)} cells with intervals; widths within 1.5 in {wide:.2f}; they held in "
        f"{(told['held'] * told['of']).sum() / of:.3f} of {of}, too seldom (p < .001) in {fails.sum()} cells"
    )
    asked = kind != "like"
    return [
        {"check": f"advice, {kind}: errors within 1.5", "value": float(close), "passed": bool(close >= 0.9) or asked},
        {"check": f"advice, {kind}: widths within 1.5", "value": float(wide), "passed": bool(wide >= 0.9) or asked},
        {"check": f"advice, {kind}: intervals come", "value": float(kept), "passed": bool(kept >= 0.9) or asked},
        {"check": f"advice, {kind}: intervals miss", "value": int(fails.sum()), "passed": not fails.any() or asked},
    ]
