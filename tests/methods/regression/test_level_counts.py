"""A level without records is named in the reason, with its noisy count: counts are exact where the noise is zero, and its sd is right."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.simulated import simulated

import confide as cf
from confide.methods.regression.evidence.sparse_levels import totals_of_gram, unseen_levels
from confide.noise import SimulatedNoise
from confide.results.base import LevelCount, level_remarks
from confide.schema import ModelMatrix
from confide.sums.coding import Box
from confide.testing.test_data import ZeroNoise
from confide_lab.methods import AdaSSP, AnalyzeGauss, BinAgg, BoostedAdaSSP, NaiveBayes

SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(-1, 3),
        "g": cf.Categorical(["a", "b", "c", "d"]),
        "h": cf.Categorical(["u", "v"]),
        "y": cf.Numeric(0, 1),
    }
)
FORMULA = "y ~ x + g + h"


def records(n: int, g: str, h: str = "uv") -> pd.DataFrame:
    """n records with the levels listed, in turn."""
    generator = np.random.default_rng(n)
    return pd.DataFrame(
        {
            "x": generator.uniform(-1, 3, n),
            "g": [g[i % len(g)] for i in range(n)],
            "h": [h[i % 7 % len(h)] for i in range(n)],
            "y": generator.random(n),
        }
    )


def reason(method: Any, frame: pd.DataFrame, privacy: Any, subset: Any = None, noise: Any = None) -> tuple[str, str]:
    release = cf.release(
        method, cf.read(frame, SCHEMA), privacy, ledger=None, noise=SimulatedNoise(1) if noise is None else noise
    )
    result = cf.infer(cf.Release.from_json(release.to_json()), subset=subset)
    return result.status, result.reason


METHODS = [
    (cf.regression.SSP(FORMULA), cf.GDP(1.0)),
    (cf.regression.LeastSquares(FORMULA), cf.GDP(1.0)),
    (BinAgg("y ~ x + g"), cf.GDP(1.0)),
    (AnalyzeGauss(FORMULA), cf.GDP(1.0)),
    (AdaSSP(FORMULA), cf.GDP(1.0)),
    (BoostedAdaSSP(FORMULA), cf.GDP(1.0)),
    (cf.classification.ClassMeans("g ~ x"), cf.GDP(1.0)),
    (NaiveBayes("g ~ x"), cf.PureDP(1.0)),
]


@pytest.mark.parametrize("empty", ["a", "d"])  # the base of the coding, and a level with a feature of its own
@pytest.mark.parametrize(("method", "privacy"), METHODS, ids=lambda value: getattr(value, "name", None))
def test_a_level_without_records_is_named_with_its_noisy_count(method: Any, privacy: Any, empty: str) -> None:
    status, said = reason(method, records(3_000, "abcd".replace(empty, "")), privacy)
    assert status in ("partial", "imprecise", "not_identified")  # partial: all but the coefficient of that level
    named = re.findall(
        r"(?:^|; )level '(.)' of (.) has a (?:DP|noisy|noisy weighted) count of (-?\d+) ± (\d+): it cannot be estimated",
        said,
    )
    if (
        status == "partial" and not named
    ):  # its records are left out, and the level is named with its count all the same
        assert re.search(
            rf"too few records to estimate: g\[{empty}\] \(about -?\d+ ± \d+, at least about \d+ would do\)", said
        )
        return
    assert [(level, column) for level, column, *_ in named] == [(empty, "g")]
    ((*_, count, margin),) = named
    assert int(count) <= int(margin) and abs(int(count)) < 4 * int(margin)


def test_levels_with_records_are_not_named() -> None:
    for method, privacy in METHODS:
        said = reason(method, records(3_000, "abcd"), privacy)
        assert "level '" not in said[1], method.name
    # too small a budget for the line, with levels that are all there
    status, said = reason(AnalyzeGauss(FORMULA), records(3_000, "abcd"), cf.GDP(0.02))
    assert status == "imprecise" and said.count("level '") < 5


def test_a_column_that_a_subset_leaves_out_is_not_named() -> None:
    method, frame = cf.regression.SSP(FORMULA), records(3_000, "abc", h="u")
    assert all(f"level '{level}' of" in reason(method, frame, cf.GDP(1.0))[1] for level in "dv")
    assert "of g has" not in reason(method, frame, cf.GDP(1.0), ("x", "h"))[1]
    assert "level 'v' of h" in reason(method, frame, cf.GDP(1.0), ("x", "h"))[1]


@pytest.mark.parametrize("formula", ["y ~ x + g + h", "y ~ 0 + g + x", "y ~ g:x + g"])
@pytest.mark.parametrize("seed", [1, 2])
def test_without_noise_the_counts_are_exact_in_any_coordinates(formula: str, seed: int) -> None:
    design, frame = ModelMatrix.of(formula, SCHEMA), records(700, "aabbbbc")
    values = design.matrix(frame)[:, int(design.intercept) :]
    generator = np.random.default_rng(seed)
    middle, half = Box.of(design).arrays
    box = Box(tuple(middle + generator.normal(size=len(middle))), tuple(half * generator.uniform(0.5, 2, len(half))))
    middle, half = box.arrays
    z = np.column_stack([np.ones(len(values)), (values - middle) / half])
    transform = generator.normal(size=(z.shape[1],) * 2)
    u = z @ transform
    totals, _ = totals_of_gram(u.T @ u, 1.0, transform)
    assert totals == pytest.approx(z.sum(axis=0), rel=1e-7, abs=1e-6)
    # a noise so large that no level stands above it: every level is named, with its own count
    said = unseen_levels(design, (totals, 1e9 * np.eye(len(totals))), box=box)
    found = {
        level: int(count.replace(",", ""))
        for level, count in re.findall(r"level '(\w)' of g has a DP count of (\S+) ±", said)
    }
    assert found == {"a": 200, "b": 400, "c": 100, "d": 0}


def test_the_noise_of_totals_is_that_of_a_symmetric_matrix() -> None:
    generator, p, sd = np.random.default_rng(3), 4, 1.7
    transform = generator.normal(size=(p, p))
    back = np.linalg.inv(transform)
    covariance = np.zeros((p, p))
    for i in range(p):
        for j in range(i + 1):
            unit = np.zeros((p, p))
            unit[i, j] = unit[j, i] = 1.0
            moved = back.T @ unit @ back[:, 0]
            covariance += (sd**2 if i == j else sd**2 / 2) * np.outer(moved, moved)
    assert totals_of_gram(np.eye(p), sd, transform)[1] == pytest.approx(covariance)


def test_bins_without_noise_count_levels_exactly() -> None:
    _, said = reason(BinAgg("y ~ g"), records(12, "aab"), cf.GDP(0.2), noise=ZeroNoise())
    found = dict(re.findall(r"level '(\w)' of g has a DP count of (\S+) ±", said))
    assert found == {"a": "8", "b": "4", "c": "0", "d": "0"}


def test_many_levels_are_counted_and_not_listed() -> None:
    said = level_remarks(LevelCount("g", str(k), 0.0, 1.0) for k in range(1_000))
    assert said.count("level '") == 6 and said.endswith("; 994 more levels cannot be estimated")
    assert level_remarks([]) == ""


@pytest.mark.long
def test_the_margin_of_a_laplace_count_is_a_95_percent_interval() -> None:
    schema = cf.Schema({"g": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1)})
    source = cf.read(pd.DataFrame({"g": ["a"] * 300, "x": [0.5] * 300}), schema)
    method, hits, runs = NaiveBayes("g ~ x"), 0, 1_000
    for seed in range(runs):
        counts = cf.release(method, source, cf.PureDP(1.0), ledger=None, noise=SimulatedNoise(seed))["counts"]
        margin = LevelCount("g", "a", 0.0, float(np.sqrt(counts.variance)), laplace=True).margin
        hits += int((np.abs(counts.decode() - [300, 0]) <= margin).sum())
    # two-sided, false alarm 1e-3
    low, high = stats.beta.ppf([0.0005, 0.9995], [hits, hits + 1], [2 * runs - hits + 1, 2 * runs - hits])
    assert low <= 0.95 <= high


def test_levels_beyond_the_sixth_are_said_to_be_what_they_are() -> None:
    unseen = [LevelCount("g", str(k), 0.0, 1.0) for k in range(7)]
    said = level_remarks([LevelCount("g", "seen", 19.0, 1.0), *unseen])
    assert said.endswith("1 more levels cannot be estimated; 1 more levels are as small")
    assert "'seen'" not in said


def test_an_empty_level_is_named_whatever_the_status() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 10), "g": cf.Categorical(["a", "b", "c", "e"]), "y": cf.Numeric(-1, 4)})
    draw = np.random.default_rng(0)
    columns = {
        "x": draw.uniform(0, 10, 1_500),
        "g": draw.choice(["a", "b", "c"], 1_500),
        "y": draw.uniform(-1, 4, 1_500),
    }
    source, silent = cf.read(pd.DataFrame(columns), schema), 0
    for seed in range(20):
        result = simulated(BinAgg("y ~ x + g"), source, cf.GDP(1.0), seed)
        silent += "level 'e'" not in result.summary().replace("\n", " ")
    # an empty level stands above 1.96 sds of its noise in 1 of 40: 5 of 20 by chance have a probability of 1e-4
    assert silent < 5
