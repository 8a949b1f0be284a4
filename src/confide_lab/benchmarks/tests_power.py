"""The power that the plan of each test prints, against how often the test rejects on simulated records: `confide lab bench tests_power`.

Groups and levels are equally large and records normal with a third of their bounds' half-width as sd, which is what plans assume. A row
fails where the 99.9 % interval of the rejections misses the plan's number by more than .05: plans are a guide to a sample size.

    confide lab bench tests_power
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import confide as cf
from confide.methods.tables.comparing.power import EFFECTS
from confide.noise import SimulatedNoise

__all__ = ["CASES", "found", "run", "said"]

REPLICATIONS, _CLOSE = 300, 0.05
_SD = 1 / 3
_LABELS = ("a", "b", "c")
SCHEMA = cf.Schema(
    {
        "two": cf.Categorical(["a", "b"]),
        "three": cf.Categorical(["a", "b", "c"]),
        "x": cf.Numeric(-1, 1),
        "y": cf.Numeric(-1, 1),
    }
)

Draw = Callable[[np.random.Generator, int, float], Mapping[str, Any]]


def _levels(g: np.random.Generator, n: int, shares: Any) -> Any:
    return np.array(_LABELS)[g.choice(len(shares), n, p=shares)]


def _shifted(column: str, shifts: Callable[[float], Any]) -> Draw:
    """Groups of a column at shifts, in sds of records."""

    def draw(g: np.random.Generator, n: int, effect: float) -> Mapping[str, Any]:
        moved = np.asarray(shifts(effect))
        code = g.integers(0, len(moved), n)
        return {column: np.array(_LABELS)[code], "x": _SD * (moved[code] - moved.mean() + g.standard_normal(n))}

    return draw


def _differences(mean: Callable[[float], float]) -> Draw:
    """Differences x - y, within -2 and 2."""

    def draw(g: np.random.Generator, n: int, effect: float) -> Mapping[str, Any]:
        half = _SD * (mean(effect) + g.standard_normal(n))
        return {"x": half, "y": -half}

    return draw


def _crossed(g: np.random.Generator, n: int, w: float) -> Mapping[str, Any]:
    shares = np.full((2, 3), 1 / 6) + w * np.outer([-1, 1], [-1, 0, 1]) / np.sqrt(24)
    cell = g.choice(6, n, p=shares.ravel())
    return {"two": np.array(_LABELS)[cell // 3], "three": np.array(_LABELS)[cell % 3]}


def _dosed(g: np.random.Generator, n: int, r: float) -> Mapping[str, Any]:
    dose = g.integers(0, 3, n)
    high = g.random(n) < 0.5 + r * 0.5 / np.sqrt(2 / 3) * (dose - 1)
    return {"two": np.where(high, "b", "a"), "three": np.array(_LABELS)[dose]}


def _correlated(g: np.random.Generator, n: int, r: float) -> Mapping[str, Any]:
    x, other = g.standard_normal((2, n))
    return {"x": _SD * x, "y": _SD * (r * x + np.sqrt(1 - r * r) * other)}


def _ahead(effect: float) -> float:
    """The shift in sds at which one normal record is larger than another with a chance of 1/2 and the effect."""
    return float(np.sqrt(2) * stats.norm.ppf(0.5 + effect))


#: By test: formula, mu, number of records, effect, records of an effect.
CASES: Mapping[str, tuple[str, float, int, float, Draw]] = {
    "ttest_ind": ("x ~ two", 0.5, 600, 0.2, _shifted("two", lambda d: (d, 0.0))),
    "ttest_rel": ("x - y", 0.5, 600, 0.1, _differences(lambda d: d)),
    "f_oneway": ("x ~ three", 0.5, 900, 0.11, _shifted("three", lambda f: f * np.sqrt(1.5) * np.array([1.0, 0.0, -1.0]))),
    "chi2_contingency": ("two * three", 0.5, 600, 0.12, _crossed),
    "chisquare": ("three", 0.5, 600, 0.12, lambda g, n, w: {"three": _levels(g, n, 1 / 3 + w / np.sqrt(6) * np.array([-1, 0, 1]))}),
    "binomtest": ("two", 0.5, 600, 0.05, lambda g, n, h: {"two": np.where(g.random(n) < 0.5 + h, "b", "a")}),
    "trend": ("two ~ three", 0.5, 600, 0.1, _dosed),
    "pearsonr": ("x + y", 0.5, 900, 0.12, _correlated),
    "mannwhitneyu": ("x ~ two", 0.3, 400, 0.1, _shifted("two", lambda p: (_ahead(p), 0.0))),
    "wilcoxon": ("x - y", 0.3, 300, 0.1, _differences(lambda p: _ahead(p) / 2)),
    "kruskal": ("x ~ three", 0.3, 600, 0.1, _shifted("three", lambda p: (_ahead(p), 0.0, 0.0))),
}  # fmt: skip


def _privacy(name: str, mu: float) -> cf.GDP:
    # the exact binomial law needs a number of records that is public
    return cf.GDP(mu, relation="substitute") if name == "binomtest" else cf.GDP(mu)


def said(name: str) -> float:
    """The power that the plan prints."""
    formula, mu, n, effect, _ = CASES[name]
    given: dict[str, Any] = {"effect": effect} if name in EFFECTS else {}
    notes = cf.tests.plan(name, formula, SCHEMA, _privacy(name, mu), n=n, **given).notes
    pattern = r"records: (\d+)%" if name in EFFECTS else rf"(\d+)% at {effect:g}"
    return next(int(match[1]) / 100 for note in notes if (match := re.search(pattern, note)))


def found(name: str, replications: int = REPLICATIONS, *, null: bool = False) -> int:
    """How many of so many releases reject at 5 %; null: without an effect."""
    formula, mu, n, effect, draw = CASES[name]
    given: dict[str, Any] = {"n": n} if name == "binomtest" else {}
    rejected = 0
    for seed in range(replications):
        g = np.random.default_rng([seed, n])
        empty = {"two": "a", "three": "a", "x": np.zeros(n), "y": np.zeros(n)}
        data = cf.read(pd.DataFrame({**empty, **draw(g, n, 0.0 if null else effect)}), SCHEMA)
        call = getattr(cf.tests, name)
        result = call(formula, data, privacy=_privacy(name, mu), ledger=None, noise=SimulatedNoise(seed), **given)
        rejected += bool(result.pvalue < 0.05)
    return rejected


def run() -> list[dict[str, Any]]:
    """A row for each test; fails where the plan's power is off by more than .05 beyond chance."""
    rows = []
    for name, (formula, mu, n, effect, _) in CASES.items():
        rejected, own = found(name), said(name)
        interval = stats.binomtest(rejected, REPLICATIONS).proportion_ci(0.999, method="exact")
        passed = interval.low - _CLOSE <= own <= interval.high + _CLOSE
        share = rejected / REPLICATIONS
        text = (
            f"{name} {formula!r}: n = {n}, mu = {mu:g}, effect {effect:g}: the plan says {own:.2f}, found {share:.3f}"
        )
        rows.append(
            {"check": text, "said": own, "found": share, "low": interval.low, "high": interval.high, "passed": passed}
        )
        print(text, flush=True)
    return rows
