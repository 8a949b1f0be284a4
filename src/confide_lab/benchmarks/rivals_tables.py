"""Counts, means and quartiles beside OpenDP and diffprivlib at an equal guarantee: `confide lab bench rivals_tables`.

The same samples of real sets (`tables_judge.sets`) for all; three questions, each with the whole of the guarantee: counts of a crossing
with its margins, means of a column for all records and by group, its quartiles by group. Guarantees:

- confide: GDP(mu), add-remove; OpenDP: rho = mu^2/2 zCDP, add-remove, the same Gaussian noise; its quartiles by the exponential mechanism,
  which it charges rho for, and by its tree of counts, once as it charges that and once at its exact length;
- diffprivlib: (epsilon, 0) at the epsilon at which GDP(mu) has delta = 1e-6, a much weaker promise, and at the largest epsilon that implies
  GDP(mu), a little stronger one. It takes the numbers of records of all and of each group as public.

dp-statsmodels is not in the package index: it is not run, and nothing stands in its place.

error: root mean square error against the whole table over that of the answer without privacy on the same samples, geometric mean over the
numbers. covered: of the intervals, the share that holds the number of the whole table: for OpenDP's counts and means that of its noise
alone, which is the accuracy that it prints or that follows from its scales; where a package has none, an interval as wide as that without
privacy around its number, as a reader might draw it (that width is not private). CONFIDE_RIVALS_REPS (default 40) sets the samples.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import confide as cf
from confide.core import seal
from confide.methods.quantiles.method import Quantiles
from confide.methods.tables.counts import Counts
from confide.methods.tables.means import Means
from confide.noise import SimulatedNoise
from confide_lab.benchmarks.rival import python_of_diffprivlib
from confide_lab.benchmarks.rivals_logistic import pure_epsilon
from confide_lab.benchmarks.tables_judge import sets
from confide_lab.benchmarks.tables_judge.rivals import PROBABILITIES, Diffprivlib, OpenDP, Sample

__all__ = ["run"]

REPLICATIONS = int(os.environ.get("CONFIDE_RIVALS_REPS", "40"))
DELTA = 1e-6
OUT = Path("out/bench")
#: Set and column; the crossing and the groups are the set's.
ASKED = (
    ("adult", "age"),
    ("default_of_credit_card_clients", "limit_bal"),
    ("california_housing", "median_income"),
)
CELLS = ((500, 1.0), (10_000, 0.3), (10_000, 1.0))
_Z = 1.959963984540054

Array = np.ndarray
#: Estimates and half-widths of intervals, NaN where there is none.
Reply = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Question:
    """One set, one column, and what all of it says."""

    name: str
    column: str

    @cached_property
    def case(self) -> sets.Case:
        return sets.case(self.name)

    @property
    def bounds(self) -> tuple[float, float]:
        low, high = self.case.recipe.columns[self.column]
        return float(low), float(high)

    @cached_property
    def levels(self) -> tuple[list[str], list[str]]:
        """Of the group and of the attribute that it is crossed with."""
        own = self.case.recipe
        return self.case.levels(own.group), self.case.levels(own.by)

    @cached_property
    def whole(self) -> Sample:
        own, (groups, others) = self.case.recipe, self.levels
        g = self.case.frame[own.group].map({level: k for k, level in enumerate(groups)}).to_numpy(dtype=int)
        o = self.case.frame[own.by].map({level: k for k, level in enumerate(others)}).to_numpy(dtype=int)
        values = self.case.frame[self.column].clip(*self.bounds).to_numpy(dtype=float)
        return Sample(g * len(others) + o, g, values)

    def rows(self, n: int, r: int) -> Array:
        """Of one sample: the same for every package."""
        g = np.random.default_rng([crc32(self.name.encode()), n, r])
        return g.integers(0, len(self.case.frame), n)

    def sample(self, n: int, r: int) -> Sample:
        at, own = self.rows(n, r), self.whole
        return Sample(own.codes[at], own.groups[at], own.values[at])

    def table(self, cells: Array) -> Array:
        """(..., numbers) of a crossing with its margins from its cells."""
        groups, others = self.levels
        wide = cells.reshape(*cells.shape[:-1], len(groups), len(others))
        parts = [wide.sum((-1, -2))[..., None], wide.sum(-1), wide.sum(-2), cells]
        return np.concatenate(parts, axis=-1)

    def plain(self, one: Sample, n: int) -> dict[str, Reply]:
        """What the records say, with the half-widths of intervals without privacy; counts are scaled to n records."""
        groups, others = self.levels
        cells = np.bincount(one.codes, minlength=len(groups) * len(others)) * (n / len(one.codes))
        table = self.table(cells)
        means, halves, ranks, ends = [], [], [], []
        for values in (one.values, *(one.values[one.groups == g] for g in range(len(groups)))):
            means.append(values.mean() if len(values) else np.nan)
            halves.append(_Z * values.std() / np.sqrt(len(values)) if len(values) else np.nan)
        for g in range(len(groups)):
            values = np.sort(one.values[one.groups == g])
            for q in PROBABILITIES:
                ranks.append(_order(values, q, 0.0))
                spread = _Z * np.sqrt(q * (1 - q) / max(len(values), 1))
                ends.append((_order(values, q, spread) - _order(values, q, -spread)) / 2)
        counted = table, _Z * np.sqrt(np.maximum(table * (1 - table / n), 0.0))
        return {
            "counts": counted,
            "means": (np.array(means), np.array(halves)),
            "quartiles": (np.array(ranks), np.array(ends)),
        }


def _order(values: Array, q: float, shift: float) -> float:
    if not len(values):
        return float("nan")
    place = int(np.ceil(np.clip(q + shift, 0.0, 1.0) * len(values))) - 1
    return float(values[np.clip(place, 0, len(values) - 1)])


# ours -----------------------------------------------------------------------------------------------------------------


def _ours(one: Question, n: int, mu: float) -> dict[str, tuple[Array, Array, Array]]:
    """Kind -> (estimates, low, high), each (samples, numbers)."""
    own, schema = one.case.recipe, one.case.schema()
    methods = {
        "counts": Counts(one.case.crossing, inference="population"),
        "means": Means(f"{one.column} ~ {own.group}", inference="population"),
        "quartiles": Quantiles(f"{one.column} ~ {own.group}", quantiles=PROBABILITIES),
    }
    found = {}
    for kind, method in methods.items():
        plan = cf.plan(method, schema, cf.GDP(mu))
        parts = []
        for r in range(REPLICATIONS):
            data = cf.read(one.case.frame.iloc[one.rows(n, r)].reset_index(drop=True), schema)
            noise = SimulatedNoise(crc32(f"{one.name} {kind} {n} {mu} {r}".encode()))
            frame = method.infer(seal(method, data, plan, noise)).to_frame()
            # the rows of all records stand first, and have no counterpart among the others' quartiles
            skipped = len(PROBABILITIES) if kind == "quartiles" else 0
            parts.append(frame[["estimate", "ci_low", "ci_high"]].to_numpy(dtype=float)[skipped:].T)
        whole = np.array(parts)
        found[kind] = whole[:, 0], whole[:, 1], whole[:, 2]
    return found


# rivals ---------------------------------------------------------------------------------------------------------------


def _opendp(one: Question, mu: float, samples: list[Sample]) -> Iterator[tuple[str, str, str, Array, Array | None]]:
    """(kind, package, guarantee, estimates, half-widths or None)."""
    groups, others = one.levels
    rival = OpenDP(mu, len(groups) * len(others), len(groups), *one.bounds)
    words = f"rho = {mu * mu / 2:.3g}"
    cells, scale = rival.counts(samples)
    yield "counts", "OpenDP", words, one.table(cells), _Z * np.sqrt(one.table(scale**2))
    means, errors = rival.means(samples)
    yield "means", "OpenDP", words, means, _Z * errors
    yield "quartiles", "OpenDP, exponential", words, rival.quartiles(samples).reshape(len(samples), -1), None
    for exact, label in ((False, "OpenDP, tree"), (True, "OpenDP, tree, exact length")):
        yield "quartiles", label, words, rival.tree_quartiles(samples, exact=exact).reshape(len(samples), -1), None


def _diffprivlib(
    one: Question, mu: float, samples: list[Sample], python: str
) -> Iterator[tuple[str, str, str, Array, Array | None]]:
    groups, others = one.levels
    rival = Diffprivlib(python, OUT)
    for epsilon in (cf.GDP(mu).to_approx(delta=DELTA).epsilon, pure_epsilon(mu)):
        found = rival.answers(samples, epsilon, len(groups) * len(others), len(groups), one.bounds)
        words = f"({epsilon:.3g}, 0)"
        yield "counts", "diffprivlib", words, one.table(found["counts"].astype(float)), None
        yield "means", "diffprivlib", words, found["means"], None
        yield "quartiles", "diffprivlib", words, found["quartiles"].reshape(len(samples), -1), None


# judging --------------------------------------------------------------------------------------------------------------


def cell(one: Question, n: int, mu: float, python: str | None) -> list[dict[str, Any]]:
    """One row for each kind and package."""
    samples = [one.sample(n, r) for r in range(REPLICATIONS)]
    truth = {kind: reply[0] for kind, reply in one.plain(one.whole, n).items()}
    plain = [one.plain(sample, n) for sample in samples]
    bare = {kind: tuple(np.array([own[kind][k] for own in plain]) for k in (0, 1)) for kind in truth}
    rows = []
    for kind, (estimates, low, high) in _ours(one, n, mu).items():
        rows.append(_row(kind, "confide", f"GDP({mu:g})", estimates, low, high, truth[kind], bare[kind], printed=True))
    others = [*(_opendp(one, mu, samples) if importlib.util.find_spec("opendp") else ())]
    others += [*(_diffprivlib(one, mu, samples, python) if python else ())]
    for kind, label, words, estimates, half in others:
        reach = bare[kind][1] if half is None else half
        low, high = estimates - reach, estimates + reach
        rows.append(_row(kind, label, words, estimates, low, high, truth[kind], bare[kind], printed=half is not None))
    head = {"set": one.name, "n": n, "mu": mu}
    return sorted(
        ({**head, **row} for row in rows), key=lambda row: ("counts", "means", "quartiles").index(row["kind"])
    )


def _row(
    kind: str,
    label: str,
    words: str,
    estimates: Array,
    low: Array,
    high: Array,
    truth: Array,
    bare: Any,
    *,
    printed: bool,
) -> dict[str, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        error = np.sqrt(np.nanmean((estimates - truth) ** 2, axis=0))
        plain = np.sqrt(np.nanmean((bare[0] - truth) ** 2, axis=0))
        ratios = (error / plain)[plain > 1e-9 * np.abs(truth)]
        told = np.isfinite(low) & np.isfinite(truth)
    held = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    return {
        "kind": kind, "method": label, "guarantee": words, "error": round(float(np.exp(np.nanmean(np.log(ratios)))), 2),
        "worst": round(float(np.nanmax(ratios)), 2), "covered": round(float(held[told].mean()), 3), "printed": printed,
    }  # fmt: skip


def lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The table of evidence/rivals.md."""
    yield "| set | n | mu | numbers | package | guarantee | error | worst | covered | whose interval |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        head = f"| {row['set']} | {row['n']:,} | {row['mu']:g} | {row['kind']} | {row['method']} | {row['guarantee']}"
        whose = "its own" if row["printed"] else "drawn by the reader"
        yield f"{head} | {row['error']:.3g} | {row['worst']:.3g} | {row['covered']:.2f} | {whose} |"


def run() -> list[dict[str, Any]]:
    """All cells."""
    lost = sets.missing()
    if lost is not None:
        print(f"skipped: {lost}")
        return []
    print("skipped: dp-statsmodels is not in the package index")
    python: str | None = None
    try:
        python = python_of_diffprivlib()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: diffprivlib could not be installed from the package index ({type(error).__name__})")
    if importlib.util.find_spec("opendp") is None:
        print("skipped: OpenDP is not installed (pip install opendp)")
    rows: list[dict[str, Any]] = []
    for name, column in ASKED:
        for n, mu in CELLS:
            found = cell(Question(name, column), n, mu, python)
            rows += found
            print("\n".join(list(lines(found))[2:]), flush=True)
    print("\n".join(lines(rows)))
    return [
        {
            "check": f"rivals: {row['set']} {row['n']} {row['mu']} {row['kind']} {row['method']} {row['guarantee']}",
            **row,
        }
        for row in rows
    ]


if __name__ == "__main__":
    run()
