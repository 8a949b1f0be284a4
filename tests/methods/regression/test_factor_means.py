"""Least squares on factors: the exact line without noise, the law of its noise, coverage, levels that nothing can be told of."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.few import few
from tests.simulated import simulated

import confide as cf
from confide.core import Release, exact_cost
from confide.core.lost_values import NAME as LOST
from confide.methods.regression.factors.draw import FactorMeans
from confide.methods.regression.factors.reading import LevelFit, LevelTables
from confide.methods.regression.factors.results import Reading
from confide.noise import SimulatedNoise
from confide.regression import LeastSquares
from confide.testing.test_data import ZeroNoise
from confide_lab.benchmarks.coverage import consistent, interval
from confide_lab.benchmarks.factor_means import replicate

SCHEMA = cf.Schema(
    {
        "f": cf.Categorical(["a", "b", "c", "d"]),
        "g": cf.Categorical(["u", "v", "w"]),
        "k": cf.Integer(0, 1),
        "y": cf.Numeric(0, 100),
        "z": cf.Integer(0, 1),
    }
)
FORMULAS = (
    "y ~ f",
    "y ~ 0 + f",
    "y ~ 1",
    "y ~ k",
    "y ~ f:k",
    "y ~ f*k",
    "y ~ f + g",
    "y ~ f + g + k",
    "y ~ f*k + g",
    "z ~ f",
    "z ~ f + g",
)
RELATIONS = ("add-remove", "substitute")


def table(n: int, seed: int = 1, shares: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "f": generator.choice(list("abcd"), n, p=shares),
            "g": generator.choice(list("uvw"), n, p=[0.5, 0.3, 0.2]),
            "k": generator.integers(0, 2, n),
        }
    )
    frame["y"] = 30 + 10 * (frame.f == "b") - 5 * (frame.g == "w") + 4 * frame.k + 8 * generator.normal(size=n)
    frame["z"] = (generator.random(n) < 0.2 + 0.3 * (frame.f == "c")).astype(int)
    return frame


def drawn(formula: str, frame: pd.DataFrame, mu: float = 1.0, seed: int = 1, **more: Any) -> Release:
    noise = more.pop("noise", None) or SimulatedNoise(seed)
    relation = more.pop("relation", "add-remove")
    method = LeastSquares(formula, bounds="declared", **more)
    return cf.release(method, cf.read(frame, SCHEMA), cf.GDP(mu, relation=relation), ledger=None, noise=noise)


def path_of(formula: str) -> FactorMeans:
    found = LeastSquares(formula).about(SCHEMA)
    assert isinstance(found, FactorMeans)
    return found


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("formula", FORMULAS)
def test_without_noise_it_is_least_squares(formula: str, relation: str) -> None:
    frame = table(3_000)
    result = cf.infer(drawn(formula, frame, noise=ZeroNoise(), relation=relation))
    reference = path_of(formula).reference(frame)
    assert result.status == "valid"
    assert tuple(reference) == result.names
    # a response in steps of its grid: 100/2^20 apart, and its sums in steps of 2^-20
    np.testing.assert_allclose(result.estimates, list(reference.values()), atol=3e-5)


def test_group_means_are_the_means_and_clipped_responses_count_at_the_bounds() -> None:
    frame = table(2_000)
    frame.loc[:50, "y"] = 1e4
    result = cf.infer(drawn("y ~ 0 + f", frame, noise=ZeroNoise()))
    means = frame.assign(y=frame.y.clip(0, 100)).groupby("f").y.mean()
    np.testing.assert_allclose(result.estimates, means, atol=3e-5)
    assert "values_clipped" in result.flags


def test_a_smaller_model_of_the_same_release_is_its_own_least_squares() -> None:
    frame = table(3_000)
    release = drawn("y ~ f + g", frame, noise=ZeroNoise())
    small = cf.infer(release, subset=("g",))
    np.testing.assert_allclose(small.estimates, list(path_of("y ~ g").reference(frame).values()), atol=3e-5)
    assert "submodel_classical" in small.flags
    assert small.status == "valid"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("clipping_check", [True, False])
def test_the_shares_add_up_to_the_request(formula: str, relation: str, clipping_check: bool) -> None:
    method = LeastSquares(formula, bounds="declared", clipping_check=clipping_check)
    plan = method.plan(SCHEMA, cf.GDP(0.7, relation=relation))
    cost = exact_cost(plan.event)
    # every scale is an exact rational, rounded up at 2^-50 or so
    assert cost is not None
    assert 0.999999 * Fraction(0.7) ** 2 < cost.amount <= Fraction(0.7) ** 2
    assert plan.passes == (1 if set(plan.statistics) <= {LOST, "sums"} else 3)
    assert method.plan(SCHEMA, cf.GDP(0.7, relation=relation), n=5_000).event == plan.event


@pytest.mark.parametrize("formula", few(["y ~ f", "y ~ f + g"], 0))
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_noise_part_of_the_covariance_is_that_of_releases_of_the_same_records(formula: str, relation: str) -> None:
    frame = table(1_500)
    method, source = LeastSquares(formula, bounds="declared"), cf.read(frame, SCHEMA)
    results = [simulated(method, source, cf.GDP(0.5, relation=relation), seed) for seed in range(60)]
    estimates = np.array([result.estimates for result in results])
    noise = np.mean([result.noise_variance for result in results], axis=0)
    ratio = estimates.var(axis=0, ddof=1) / noise
    # chi-square with 59 degrees over 59: .43 to 1.84 at 1e-4 for each of six; the second order in 1/n adds a few percent
    assert ((ratio > 0.43) & (ratio < 1.9)).all(), ratio


def test_tables_that_tell_the_same_total_twice_are_made_consistent_and_lose_variance() -> None:
    path = path_of("y ~ f + g")
    release = drawn("y ~ f + g", table(1_000))
    tables = LevelTables.of(path.levels, path.rows("add-remove"), release["sums"])
    counts = tables.counts
    cells = counts[7:].reshape(4, 3)
    np.testing.assert_allclose(cells.sum(axis=1), counts[:4])
    np.testing.assert_allclose(cells.sum(axis=0), counts[4:7])
    np.testing.assert_allclose(tables.sums[:4].sum(), tables.sums[4:].sum())
    assert (tables.count_sds < np.sqrt(tables.count_variance)).all()
    # J x = A(x) w
    w = np.arange(6.0)
    np.testing.assert_allclose(tables.applied(w) @ counts, _gram(tables) @ w)


def _gram(tables: LevelTables) -> np.ndarray:
    """A from its definition, without a floor."""
    rows = np.array([np.add(a, b) for a in tables.design_rows[0] for b in tables.design_rows[1]])
    return (rows.T * tables.counts[7:]) @ rows


@pytest.mark.parametrize("formula", ["y ~ f", "y ~ f + g", "z ~ f", "z ~ f + g", "y ~ f*k + g"])
def test_what_joint_tests_are_told_is_what_the_covariance_is_made_of(formula: str) -> None:
    path, release = path_of(formula), drawn(formula, table(4_000), mu=2.0)
    tables = LevelTables.of(path.levels, path.rows("add-remove"), release["sums"])
    reading = Reading(release, path.design, path.levels, tables, np.arange(path.levels.width))
    result, told = cf.infer(release), reading.score_noise
    assert told is not None
    known = np.diag(told.units @ told.noise @ told.units.T)
    half = float(path.design.response.high - path.design.response.low) / 2
    np.testing.assert_allclose(known, half**2 * np.diag(reading.noise), rtol=1e-6)
    # and what is allowed for besides
    assert (result.noise_variance >= known * (1 - 1e-6)).all()
    whole = told.units @ (told.noise + told.meat) @ told.units.T
    # what was lifted to the least share is no smaller
    assert (np.diag(result.covariance) >= np.diag(whole) * (1 - 1e-6)).all()
    assert np.median(np.diag(result.covariance) / np.diag(whole)) < 1.05
    assert told.meat.shape == told.meat_sd.shape == told.shape.shape


@pytest.mark.parametrize("formula", ["y ~ f", "y ~ f + g"])
def test_a_level_without_records_is_not_told_and_says_what_would_do(formula: str) -> None:
    frame = table(2_000, shares=(0.4, 0.3, 0.3, 0.0))
    source = cf.read(frame, SCHEMA)
    found = [simulated(LeastSquares(formula, bounds="declared"), source, cf.GDP(1.0), seed) for seed in range(12)]
    for result in found:
        assert result.status == "partial"
        told = result.to_frame().loc[[name for name in result.names if name != "f[T.d]"]]
        assert told.notna().all().all()
        assert result.to_frame().loc["f[T.d]"].isna().all()
        assert "f[T.d]: not told from the noise" in result.reason
        assert re.match(
            r"n/a \((some coefficients are not answered|squares of far residuals were cut)\)",
            dict(result.facts)["R-squared"],
        )
        assert "records" in result.reason
        assert "level 'd' of f has a DP count of" in result.reason
        text = result.summary()
        assert next(line for line in text.splitlines() if line.startswith("f: d ")).split()[2] == "n/a"


def test_an_empty_reference_level_leaves_the_means_of_the_others() -> None:
    frame = table(2_000, shares=(0.0, 0.4, 0.3, 0.3))
    contrasts = cf.infer(drawn("y ~ f", frame))
    assert contrasts.status == "imprecise"
    assert np.isnan(contrasts.bse).all()
    means = cf.infer(drawn("y ~ 0 + f", frame))
    assert means.status == "partial"
    assert means.params.isna().tolist() == [True, False, False, False]


@pytest.mark.parametrize("formula", few(FORMULAS, 0, 5, 10))
def test_no_records_at_all_are_never_ok(formula: str) -> None:
    for seed in range(8):
        result = cf.infer(drawn(formula, table(0), seed=seed))
        assert result.status != "valid"
        result.summary()


def test_r_squared_has_an_interval_wherever_levels_are_told() -> None:
    frame = table(20_000)
    wide = cf.infer(drawn("y ~ f", frame, mu=3.0))
    low, high = wide.rsquared_interval
    matrix = pd.get_dummies(frame.f).to_numpy(dtype=float)
    fit = matrix @ np.linalg.lstsq(matrix, frame.y, rcond=None)[0]
    truth = 1 - ((frame.y - fit) ** 2).sum() / ((frame.y - frame.y.mean()) ** 2).sum()
    assert low < truth < high
    assert 0 < high - low <= 0.2
    facts = dict(wide.facts)
    assert facts["Residual sd"].startswith(f"{np.std(frame.y - fit):.4g}"[:2])
    for seed in range(6):
        narrow = cf.infer(drawn("y ~ f", frame[:1_500], mu=0.5, seed=seed))
        low, high = narrow.rsquared_interval
        assert narrow.status == "valid" and low <= narrow.rsquared <= high
        assert dict(narrow.facts)["R-squared"].endswith("]")


def test_a_release_reads_the_same_after_a_round_trip() -> None:
    for formula in ("y ~ f", "y ~ f + g", "z ~ f"):
        release = drawn(formula, table(1_200))
        again = Release.from_json(release.to_json())
        assert cf.infer(release).to_json() == cf.infer(again).to_json()


def test_public_numbers_between_the_passes_follow_from_what_was_drawn() -> None:
    """The fits at which residuals were measured are those of the released sums: nothing else of the records is in them."""
    path = path_of("y ~ f + g")
    release = drawn("y ~ f + g", table(1_200))
    tables = LevelTables.of(path.levels, path.rows("add-remove"), release["sums"])
    np.testing.assert_array_equal(
        release.public["fits"], np.concatenate([np.array(x) for x in LevelFit.of(tables).fits])
    )
    assert set(release.public) == {"fits", "reach"}


def test_worst_pairs_reach_the_bounds() -> None:
    method = LeastSquares("y ~ f + g", bounds="declared")
    pairs = list(method.worst_pairs(SCHEMA))
    assert pairs[0] == ({"f": "a", "g": "u", "y": 0.0}, {"f": "a", "g": "u", "y": 100.0})
    assert pairs[1][1] == {"f": "d", "g": "w", "y": 100.0}


@pytest.mark.few("incomes-y ~ f + g-2000-0.3-add-remove")
@pytest.mark.parametrize(
    ("population", "formula", "n", "mu", "relation"),
    few(
        [
            ("levels", "y ~ f", 1_600, 1.0, "add-remove"),
            ("unequal", "y ~ f + g", 1_600, 1.0, "substitute"),
            ("rare", "y ~ f + g", 2_000, 0.3, "add-remove"),
            ("rare", "y ~ f", 1_600, 1.0, "substitute"),
            ("spikes", "y ~ f + g", 2_000, 0.3, "add-remove"),
            ("incomes", "y ~ f + g", 2_000, 0.3, "add-remove"),
            ("lumps", "y ~ f", 1_600, 1.0, "add-remove"),
        ],
        0,
        5,
        6,
    ),
)
def test_intervals_cover_the_line_of_the_population(
    population: str, formula: str, n: int, mu: float, relation: str
) -> None:
    at = {"population": population, "formula": formula, "n": n, "mu": mu, "relation": relation}
    runs = [replicate({**at, "replication": 1_000 + r}, np.random.default_rng(0)) for r in range(40)]
    for j in range(len(runs[0]["hit"])):
        own = np.array([run["hit"][j] for run in runs if run["told"][j]])
        plain = np.array([run["plain_hit"][j] for run in runs])
        if len(own) < 15:
            continue
        allowed = min(0.93, float(plain.mean()) - 0.03)
        assert interval(own)[2] >= allowed, (j, own.mean(), plain.mean())
    told = np.array([run["told"] for run in runs])
    assert told.mean() > 0.8
    assert consistent(np.concatenate([np.array(run["hit"])[run["told"]] for run in runs]), 0.93, 1.0)


def test_a_residual_that_noise_left_below_nothing_is_a_dash_before_its_interval() -> None:
    """Levels without any spread: what noise leaves of the residual squares is at or below 0 in half of the releases."""
    schema = cf.Schema({"f": cf.Categorical(["a", "b", "c"]), "y": cf.Numeric(0, 10)})
    frame = pd.DataFrame({"f": np.repeat(["a", "b", "c"], 1_000), "y": np.repeat([2.0, 5.0, 7.0], 1_000)})
    data, dashes = cf.read(frame, schema), 0
    for seed in range(8):
        noise = cf.noise.SimulatedNoise(seed)
        result = cf.infer(
            cf.release(LeastSquares("y ~ f", bounds="declared"), data, cf.GDP(1.0), ledger=None, noise=noise)
        )
        facts = dict(result.facts)
        first = facts["Residual sd"].split()[0]
        assert first == "n/a" or float(first) > 0
        if facts["Residual sd"].startswith("n/a [0"):
            dashes += 1
            # what is made of it is none either
            assert facts["R-squared"].startswith("n/a [") and np.isnan(result.rsquared)
            assert 0.8 < result.rsquared_interval[0] <= result.rsquared_interval[1] <= 1.0
    assert 0 < dashes < 8
