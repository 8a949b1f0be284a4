"""Attacks on the statistics of the least-squares line: designs of their own, held to HC1 on the same samples.

Samples are drawn from fixed populations; truth is least squares of all of it. A coverage fails where its 99.9 % Clopper-Pearson interval
lies below min(.93, HC1's on the same samples - .03): with a true coverage at that bound, one false alarm in 2,000 for each coefficient.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.simulated import simulated

import confide as cf
from confide.methods.regression.least_squares.sums import (
    LEVERAGE_EDGES,
    OUTER,
    Levels,
    Maxima,
    Sizes,
    Tail,
    score_edges,
)
from confide.regression import LeastSquares
from confide.schema import CodedFrame, ModelMatrix
from confide_lab.benchmarks.truth.plain import line

pytestmark = pytest.mark.usefixtures("declared")

Array = NDArray[np.float64]
N, RUNS, SIZE = 2_000, 15, 50_000


def interaction(g: np.random.Generator) -> pd.DataFrame:
    """A slope for each level, one level rare, errors skewed and growing with the feature."""
    a, level = g.gamma(2, 1, SIZE), g.choice(list("pqr"), SIZE, p=[0.6, 0.35, 0.05])
    return pd.DataFrame({"a": a, "g": level, "y": a * (1 + (level == "r")) + g.exponential(1, SIZE) * (1 + a)})


def clipped(g: np.random.Generator) -> pd.DataFrame:
    """Both features cut by their bounds, a curved mean, heavy tails."""
    a, b = g.lognormal(0, 1, SIZE), g.random(SIZE)
    return pd.DataFrame({"a": a, "b": b, "y": 2 * np.sqrt(a) + b + g.standard_t(4, SIZE)})


def collinear(g: np.random.Generator) -> pd.DataFrame:
    """Features of correlation .989."""
    a = g.standard_normal(SIZE)
    b = a + 0.15 * g.standard_normal(SIZE)
    return pd.DataFrame({"a": a, "b": b, "y": a - b + g.laplace(size=SIZE) + 0.5 * a**2})


def gaps(g: np.random.Generator) -> pd.DataFrame:
    """A fifth of one feature and a tenth of the other missing; ties."""
    a, b = g.poisson(2, SIZE).astype(float), g.random(SIZE)
    y = g.poisson(np.exp(0.2 * a + b - 1)).astype(float)
    return pd.DataFrame(
        {"a": np.where(g.random(SIZE) < 0.2, np.nan, a), "b": np.where(g.random(SIZE) < 0.1, np.nan, b), "y": y}
    )


DESIGNS: dict[str, tuple[Callable[[np.random.Generator], pd.DataFrame], str, dict[str, Any]]] = {
    "interaction": (
        interaction,
        "y ~ a*g",
        {"a": cf.Numeric(0, 40), "g": cf.Categorical(list("pqr")), "y": cf.Numeric(0, 200)},
    ),
    "clipped": (clipped, "y ~ a + b", {"a": cf.Numeric(0, 2), "b": cf.Numeric(0.2, 5), "y": cf.Numeric(-50, 50)}),
    "collinear": (collinear, "y ~ a + b", {"a": cf.Numeric(-8, 8), "b": cf.Numeric(-8, 8), "y": cf.Numeric(-40, 40)}),
    "gaps": (
        gaps,
        "y ~ a + b",
        {
            "a": cf.Numeric(0, 30, on_missing="midpoint"),
            "b": cf.Numeric(0, 1, on_missing=0.0),
            "y": cf.Integer(0, 100),
        },
    ),
}


@cache
def population(name: str) -> tuple[pd.DataFrame, cf.Schema, CodedFrame]:
    made, _, columns = DESIGNS[name]
    frame, schema = made(np.random.default_rng(list(name.encode()))), cf.Schema(columns)
    return frame, schema, CodedFrame.of(frame, schema)


def table(name: str, n: int, run: int, mu: float = 1.0, seed: int = 31) -> tuple[Any, CodedFrame]:
    """One release of a sample, and the sample."""
    frame, schema, practice = population(name)
    rows = np.random.default_rng((seed, n, run)).integers(0, len(frame), n)
    data = cf.read(frame.iloc[rows], schema)
    result = simulated(LeastSquares(DESIGNS[name][1]), data, cf.GDP(mu), seed * 1_000 + run)
    return result, CodedFrame(schema, {key: own[rows] for key, own in practice.codes.items()})


def below(hits: Array, bound: float) -> bool:
    """Whether the 99.9 % Clopper-Pearson interval of the share of hits lies below the bound."""
    k, n = int(hits.sum()), len(hits)
    return k < n and float(stats.beta.ppf(0.9995, k + 1, n - k)) < bound


@pytest.mark.parametrize("name", DESIGNS)
def test_coefficients_contrasts_and_predictions_cover(name: str) -> None:
    _, schema, practice = population(name)
    method = LeastSquares(DESIGNS[name][1])
    truth = pd.Series(method.reference(practice))
    design = ModelMatrix.of(method.formula, schema)
    rows = practice.rows(design)[0][:2]
    found, plain, means = [], [], []
    for run in range(RUNS):
        result, sample = table(name, N, run)
        limits = result.conf_int().reindex(truth.index).to_numpy()
        found.append(
            np.where(np.isnan(limits[:, 0]), np.nan, np.abs(limits.mean(axis=1) - truth) <= np.ptp(limits, 1) / 2)
        )
        robust_ends = line(method, sample)
        ends = np.array([robust_ends[one] for one in truth.index])
        plain.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        if result.status == "valid":
            asked = np.vstack([rows, np.eye(len(truth))[1] - np.eye(len(truth))[2]])
            ends = result.t_test(asked).conf_int().to_numpy()
            means.append((ends[:, 0] <= asked @ truth) & (asked @ truth <= ends[:, 1]))
    hits, robust = np.array(found), np.array(plain)
    for j, coefficient in enumerate(truth.index):
        answered = ~np.isnan(hits[:, j])
        bound = min(0.93, float(robust[answered, j].mean()) - 0.03) if answered.any() else 0.0
        assert not below(hits[answered, j], bound), (coefficient, hits[answered, j].mean(), bound)
    if means:
        for j, own in enumerate(np.array(means).T):
            assert not below(own, 0.93), (j, own.mean())


def test_a_true_line_is_rarely_rejected() -> None:
    truth = pd.Series(LeastSquares(DESIGNS["clipped"][1]).reference(population("clipped")[2]))
    tests = [table("clipped", N, run, seed=32)[0].wald_test(np.eye(3)[1:], truth.to_numpy()[1:]) for run in range(25)]
    rejected = sum(test.pvalue < 0.05 for test in tests)
    # .07 is what a size may be; this many or more have probability below .0005 there
    assert rejected <= int(stats.binom.isf(0.0005, len(tests), 0.07))


# --- the histogram of sizes where nothing lies far out ------------------------------------------------------------------


def widths(n: int, mu: float, p: int, top: float, runs: int = 150) -> Array:
    """Of intervals under the chosen limits, in units of those without noise: normal scores, a typical size of 1."""
    g, sd, found = np.random.default_rng(5), 1 / (mu * sqrt(0.16)), []
    levels = Levels(*(mu * sqrt(share) for share in (0.10, 0.30, 0.02, 0.08)))
    edges = np.array(score_edges(1.0, n, p, levels.cross))
    for _ in range(runs):
        sizes = np.abs(g.standard_normal(n)) * np.sqrt((g.standard_normal((n, p)) ** 2).mean(axis=1))
        counts = np.histogram(sizes, [0, *edges, np.inf])[0] + sd * g.standard_normal(len(edges) + 1)
        leverage = np.array([0.7 * n, 0.2 * n, 0.05 * n, 0.01 * n, 0, 0, 0, 0, 0]) + 2.8 * sd * g.standard_normal(9)
        limits = Sizes(
            np.full(p, 1 / p),
            1.0,
            float(n),
            Tail(counts, edges, sd, outer=OUTER),
            Tail(leverage, np.array(LEVERAGE_EDGES), 2.8 * sd),
            Maxima(50.0, top, top),
            levels,
        ).limits()
        found.append(sqrt(1 + (limits.score / levels.cross) ** 2 * p / n))
    return np.array(found)


def test_the_usual_limit_costs_little() -> None:
    assert np.median(widths(1_600, 1.0, 5, 300.0)) < 1.25


def test_false_alarms_of_the_histogram_are_rare() -> None:
    found = widths(1_600, 1.0, 5, 300.0)
    assert (found > 1.5 * np.median(found)).mean() <= 0.05
    assert sqrt((found**2).mean()) <= 1.15 * np.median(found)
