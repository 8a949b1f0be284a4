"""Quantiles: sensitivity of the scores, exact choices, coverage with a study that can fail, bad input, results."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations_with_replacement
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.few import few
from tests.messages import refuses

import confide as cf
from confide.core import exact_cost
from confide.errors import FileError, PlanError
from confide.methods.intervals.block_posterior import rank_scores
from confide.testing import ZeroNoise, check_method
from confide_lab.methods.quantile.ranks import Quantile, _binomial_offsets

SCHEMA = cf.Schema({"x": cf.Numeric(0, 1, steps=257)})


HALF, TENTH, ODD = Fraction(1, 2), Fraction(1, 10), Fraction(3, 7)


def scores(values: np.ndarray, q: Fraction, offset: int = 0, steps: int = 9) -> np.ndarray:
    """The scores by their definition, record by record, in fractions."""
    target = q * len(values) - Fraction(offset, q.denominator)
    found = []
    for point in range(steps):
        below, upto = int((values < point).sum()), int((values <= point).sum())
        found.append(-max(below - target, target - upto, Fraction(0)) * q.denominator)
    assert all(score.denominator == 1 for score in found)
    return np.array([int(score) for score in found])


def test_scores_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the release hands to the noise, with the sensitivity that the plan states."""
    generator = np.random.default_rng(1)
    schema = cf.Schema({"x": cf.Numeric(0, 8, steps=9)})
    for n in (0, 1, 2, 7, 40):
        values = generator.integers(0, 9, n)
        held: list[np.ndarray] = []

        class Watching(ZeroNoise):
            def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any, lengths: Any = None) -> int:
                assert (sensitivity, lengths) == (3 if len(held) < 3 else 1, None)  # noqa: B023
                held.append(np.asarray(scores))  # noqa: B023
                return super().exponential_mechanism(scores, epsilon, sensitivity, lengths)

        source = cf.read(pd.DataFrame({"x": values.astype(float)}), schema)
        release = cf.release(Quantile("x", q=(0.25, 0.5)), source, cf.PureDP(50.0), ledger=None, noise=Watching())
        offsets = np.asarray(release.public["offsets"])
        assert len(held) == 6
        for q, mine, (low, high) in zip((0.25, 0.5), (held[:3], held[3:]), offsets.tolist(), strict=True):
            for seen, offset in zip(mine, (max(low, 0), 0, -max(high, 0)), strict=True):
                np.testing.assert_array_equal(seen, scores(values, Fraction(q), offset))


def largest_move(q: Fraction, relation: str, points: int = 4, most: int = 4) -> int:
    """The largest change of any score over all databases of up to `most` records, all neighbours, many offsets."""
    worst = 0
    for n in range(most):
        for values in combinations_with_replacement(range(points), n + 1):
            one = np.bincount(values, minlength=points)
            for place in range(points):
                other = one - np.bincount(values[:1], minlength=points)
                if relation == "substitute":
                    other[place] += 1
                for offset in range(-3 * q.denominator, 3 * q.denominator):
                    moved = np.abs(rank_scores(one, q, offset) - rank_scores(other, q, offset))
                    worst = max(worst, int(moved.max()))
    return worst


@pytest.mark.parametrize("q", [HALF, TENTH, ODD])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_neighbour_moves_a_score_further_than_the_plan_says(q: Fraction, relation: str) -> None:
    """And some neighbour moves one just as far: a sensitivity smaller by one would be found out."""
    schema = cf.Schema({"x": cf.Numeric(0, 1, steps=4)})
    plan = cf.plan(Quantile("x", q=float(q)), schema, cf.PureDP(1.0, relation=relation))
    claimed = {plan.spend(f"{float(q)!r}{end}").sensitivity for end in (" low", "", " high")}
    assert claimed == {largest_move(q, relation)}


def test_the_sensitivity_of_one_relation_is_too_small_for_the_other() -> None:
    """The planted fault: the sensitivity of add-remove under substitute is half of what a record moves at the median."""
    assert largest_move(HALF, "substitute") == 2 * largest_move(HALF, "add-remove")


def test_binomial_offsets_bound_every_count_in_range() -> None:
    for q in (HALF, TENTH, Fraction(999_999, 10**6)):
        for least, most in ((0, 0), (0, 40), (50, 1500), (100_000, 106_000)):
            low, high = _binomial_offsets(q, least, most, 0.02)
            n = np.arange(least, most + 1)
            # k is a lower 2 % quantile when fewer than k come with at most 2 %
            k = np.floor(float(q) * n - low / q.denominator + 1e-9)
            assert (stats.binom.cdf(k - 1, n, float(q)) <= 0.02 + 1e-12).all()
            h = np.ceil(float(q) * n + high / q.denominator - 1e-9)
            assert (stats.binom.sf(h, n, float(q)) <= 0.02 + 1e-12).all()
            if most - least < 1000:
                exact = max(
                    0,
                    max(q.numerator * m - q.denominator * int(stats.binom.ppf(0.02, m, float(q))) for m in n.tolist()),
                )
                assert low == exact


@pytest.mark.parametrize("privacy", [cf.PureDP(1.0), cf.GDP(1.0), cf.ZCDP(0.5), cf.ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_plan_pays_its_epsilon_exactly(privacy: Any, relation: str) -> None:
    plan = cf.plan(Quantile("x", q=(0.1, 0.9)), SCHEMA, privacy.resolve(relation))
    cost = exact_cost(plan.event)
    assert cost is not None
    assert cost.amount <= Fraction(plan.guarantee.epsilon)
    assert float(cost.amount) == pytest.approx(plan.guarantee.epsilon, rel=1e-12)


def test_the_contract_holds() -> None:
    assert check_method(Quantile("x", q=(0.25, 0.5)), SCHEMA, privacy=cf.PureDP(3.0), replications=20).ok


def test_rows_per_unit_reach_the_choice() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1, steps=257)}, rows_per_unit=3)
    plan = cf.plan(Quantile("x"), schema, cf.PureDP(1.0))
    assert plan.spend("0.5").sensitivity == 3  # 3 max(1, 2 - 1)
    assert plan.spend("records").sensitivity * plan.spend("records").step == 3


POPULATIONS = {
    "uniform": lambda g, n: g.uniform(size=n),
    "skewed": lambda g, n: g.beta(0.5, 5, size=n),
    "ties": lambda g, n: g.integers(0, 4, size=n) / 4,
    "at the bounds": lambda g, n: np.clip(g.normal(0.9, 0.4, size=n), 0, 1),
}


def population_quantile(name: str, q: float) -> float:
    big = POPULATIONS[name](np.random.default_rng(0), 2_000_001)
    return float(np.quantile(big, q, method="inverted_cdf"))


@pytest.mark.parametrize("name", few(POPULATIONS, 0))
def test_intervals_cover_at_finite_n(name: str) -> None:
    """40 replications, two sizes, two quantiles; fails only if the 99.9 % bound misses .95. A ranks-only interval would fail."""
    method = Quantile("x", q=(0.25, 0.5))
    truth = np.array([population_quantile(name, q) for q in method.qs])
    for n in (300, 3_000):
        hits, runs = np.zeros(2), 0
        for seed in range(40):
            data = pd.DataFrame({"x": POPULATIONS[name](np.random.default_rng((seed, n)), n)})
            release = cf.release(
                method, cf.read(data, SCHEMA), cf.PureDP(4.0), ledger=None, noise=cf.noise.SimulatedNoise(seed)
            )
            result = cf.infer(release)
            assert result.status == "valid"
            hits += (np.asarray(result.low) <= truth) & (truth <= np.asarray(result.high))
            runs += 1
        for hit in hits:
            upper = stats.beta.ppf(0.9995, hit + 1, runs - hit) if hit < runs else 1.0
            assert upper >= 0.95


def test_intervals_that_ignore_the_privacy_noise_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: offsets for sampling alone. The same study sees it."""
    monkeypatch.setattr(Quantile, "_reach", lambda self, choice, alpha: 0)
    hits, runs = 0, 60
    for seed in range(runs):
        data = pd.DataFrame({"x": np.random.default_rng(seed).uniform(size=4_000)})
        release = cf.release(
            Quantile("x"), cf.read(data, SCHEMA), cf.PureDP(0.03), ledger=None, noise=cf.noise.SimulatedNoise(seed)
        )
        result = cf.infer(release)
        hits += bool(np.asarray(result.low)[0] <= 0.5 <= np.asarray(result.high)[0])
    assert stats.beta.ppf(0.9995, hits + 1, runs - hits) < 0.95


def test_ends_and_estimates_do_not_fall_and_intervals_only_widen() -> None:
    """Many close quantiles of few records: choices cross, and no end may move inwards for it."""
    q = tuple(i / 50 for i in range(15, 36))
    data = pd.DataFrame({"x": np.linspace(0, 1, 4_000)})
    noise = cf.noise.SimulatedNoise(4)
    release = cf.release(Quantile("x", q=q), cf.read(data, SCHEMA), cf.PureDP(40.0), ledger=None, noise=noise)
    result = cf.infer(release)
    for part in (result.low, result.estimates, result.high):
        assert (np.diff(np.asarray(part)) >= 0).all()
    half = 1 / 512
    chosen = {
        name: int(release[name].values[0]) / 256 for name in (f"{p!r}{end}" for p in q for end in (" low", " high"))
    }
    assert (np.asarray(result.low) <= np.array([chosen[f"{p!r} low"] for p in q]) - half + 1e-12).all()
    assert (np.asarray(result.high) >= np.array([chosen[f"{p!r} high"] for p in q]) + half - 1e-12).all()
    assert len({tuple(np.round(np.sort([chosen[f"{p!r} low"] for p in q]), 9))}) == 1


def test_a_quantile_is_taken_as_the_fraction_that_it_reads_as() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1, steps=4)})
    for q, relation, moved in ((1 / 3, "add-remove", 2), (1 / 3, "substitute", 3), (0.123456, "add-remove", 13_696)):
        plan = cf.plan(Quantile("x", q=q), schema, cf.PureDP(1.0, relation=relation))
        assert plan.spend(f"{q!r}").sensitivity == moved


def test_few_records_give_open_ends_and_then_nothing() -> None:
    noise = cf.noise.SimulatedNoise(2)
    data = pd.DataFrame({"x": np.linspace(0, 1, 130)})
    result = cf.infer(cf.release(Quantile("x", q=0.9), cf.read(data, SCHEMA), cf.PureDP(3.0), ledger=None, noise=noise))
    assert result.status == "valid"
    assert result.flags == ("one_sided", "noise_dominates")
    assert result.conf_int().iloc[0, 1] == inf
    empty = cf.infer(cf.release(Quantile("x"), cf.read(data[:5], SCHEMA), cf.PureDP(0.5), ledger=None, noise=noise))
    assert empty.status == "no_information"
    assert np.isinf(empty.low).all()
    json.loads(empty.to_json())


@pytest.mark.parametrize(
    "arguments",
    [
        {"q": 0.0}, {"q": 1.0}, {"q": float("nan")}, {"q": "0.5"}, {"q": ()}, {"q": (0.5, 0.25)}, {"q": (0.5, 0.5)},
        {"q": 1e-9}, {"q": (0.5, 0.5 + 1e-9)}, {"level": 1.0}, {"level": True}, {"q": None},
    ],
)  # fmt: skip
def test_impossible_parameters(arguments: dict[str, Any]) -> None:
    with refuses(PlanError):
        Quantile("x", **arguments)


def test_categorical_columns_have_none() -> None:
    schema = cf.Schema({"c": cf.Categorical(["a", "b"])})
    with refuses(PlanError):
        cf.plan(Quantile("c"), schema, cf.PureDP(1.0))


def test_what_is_shown(tmp_path: Path) -> None:
    data = pd.DataFrame({"x": np.linspace(0, 1, 2000)})
    release = cf.release(
        Quantile("x"), cf.read(data, SCHEMA), cf.PureDP(2.0), ledger=None, noise=cf.noise.SimulatedNoise(1)
    )
    result = cf.infer(release)
    text = result.summary()
    assert "95% intervals" in text
    assert "SIMULATED" in text
    assert str(result.guarantee) in " ".join(text.split())
    page = result.report(tmp_path / "report.html").read_text()
    assert "<svg" in page
    assert "SIMULATED" in page
    assert result.plot().get_xlabel() == "estimate, in units of x"
    with refuses(PlanError):
        result.conf_int(0.1)
    with refuses(FileError):
        result.report(tmp_path / "none" / "report.html")


def test_a_plan_with_n_says_how_far_the_intervals_reach():
    plan = cf.plan(Quantile("x", q=(0.25, 0.5)), SCHEMA, cf.PureDP(1.0), n=5_000)
    assert (
        "with 5,000 records the intervals reach about as far as these quantiles of the sample: 0.25 from 0."
        in " ".join(plan.summary().split())
    )
    assert "5,000" not in plan.to_json()
    few = cf.plan(Quantile("x"), SCHEMA, cf.PureDP(1.0), n=10)
    assert "from open to open" in " ".join(few.summary().split())
    (only,) = cf.plan(Quantile("x"), SCHEMA, cf.PureDP(1.0)).notes
    assert 'cf.tables.quantiles("x", ...)' in only


@pytest.mark.parametrize(
    "arguments",
    [
        {"q": 1.5},
        {"q": ()},
        {"level": 95},
        {"level": 0},
    ],
)
def test_what_is_wrong_is_named_alone(arguments):
    with refuses(PlanError) as caught:
        Quantile("x", **arguments)
    assert ("q must" in str(caught.value)) != ("level must" in str(caught.value))


def test_a_column_is_a_name():
    with refuses(PlanError):
        Quantile(3)
