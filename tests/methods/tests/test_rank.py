"""Rank tests: zero noise gives scipy's numbers, sizes and coverage hold, the label is not used before round 2, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.few import few
from tests.messages import refuses

import confide as cf
import confide.testing
from confide import engine
from confide.methods.tests.rank import Kruskal, MannWhitney, Wilcoxon
from confide.methods.tests.reading import scores_of
from confide.noise import SimulatedNoise
from confide.schema import CodedFrame
from confide.testing.test_data import ZeroNoise

SCHEMA = cf.Schema(
    {
        "y": cf.Numeric(-8, 8),
        "z": cf.Numeric(-8, 8),
        "g": cf.Categorical(["a", "b"]),
        "h": cf.Categorical(["u", "v", "w"]),
    }
)


def _frame(
    n: int, seed: int = 1, shift: float = 0.3, sds: tuple[float, float] = (1.0, 1.0), first: float = 0.5
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    g = rng.random(n) < first
    y = rng.normal(0, np.where(g, *sds)) + shift * g
    return pd.DataFrame(
        {"y": y, "z": y + rng.normal(0.2, 1, n), "g": np.where(g, "a", "b"), "h": rng.choice(["u", "v", "w"], n)}
    )


def _result(method: object, frame: pd.DataFrame, mu: float = 1.0, *, zero: bool = False, seed: int = 3):  # type: ignore[no-untyped-def]
    noise = ZeroNoise() if zero else SimulatedNoise(seed)
    release = engine.release(method, cf.read(frame, SCHEMA), cf.GDP(mu), ledger=None, noise=noise)
    return method.infer(release)  # type: ignore[attr-defined]


def test_without_noise_mann_whitney_is_scipys() -> None:
    frame = _frame(3_000)
    one, other = (frame.loc[frame["g"] == label, "y"] for label in "ab")
    result = _result(MannWhitney("y ~ g"), frame, zero=True)
    found = stats.mannwhitneyu(one, other)
    assert result.params.iloc[0] == pytest.approx(found.statistic / len(one) / len(other) - 0.5, abs=2e-3)
    assert MannWhitney("y ~ g").reference(CodedFrame.of(frame, SCHEMA))["P(g=a > g=b) - 1/2"] == pytest.approx(
        found.statistic / len(one) / len(other) - 0.5, abs=1e-4
    )
    z = stats.brunnermunzel(other, one).statistic  # the sign of scipy's is the other way round
    assert result.statistic == pytest.approx(z, rel=0.04)


def test_without_noise_kruskal_and_wilcoxon_are_scipys() -> None:
    frame = _frame(2_400)
    frame["y"] += 0.2 * (frame["h"] == "w")
    found = stats.kruskal(*(frame.loc[frame["h"] == label, "y"] for label in "uvw"))
    result = _result(Kruskal("y ~ h"), frame, zero=True)
    assert result.statistic * 2 == pytest.approx(found.statistic, rel=0.06)
    assert list(result.to_frame()["mean_rank"].round(2)) == [
        round(value, 2) for value in Kruskal("y ~ h").reference(CodedFrame.of(frame, SCHEMA)).values()
    ]
    d = frame["z"] - frame["y"]
    signed = _result(Wilcoxon("z - y"), frame, zero=True)
    ranks = stats.rankdata(np.abs(d))
    assert signed.params.iloc[0] == pytest.approx(float((np.sign(d) * ranks).sum()) / len(d) / (len(d) + 1), abs=4e-3)
    assert signed.pvalue < 1e-6


def _rejections(method: object, frame: Callable[[int], pd.DataFrame], mu: float, runs: int) -> int:
    return sum(_result(method, frame(seed), mu, seed=seed).pvalue < 0.05 for seed in range(runs))


@pytest.mark.parametrize(
    ("n", "mu", "sds", "first"),
    few(
        [
            (100, 1.0, (1.0, 1.0), 0.5),
            (400, 0.3, (1.0, 1.0), 0.5),
            (250, 1.0, (3.0, 1.0), 0.2),
            (500, 0.3, (3.0, 1.0), 0.5),
        ],
        3,
    ),
)
def test_the_size_is_at_most_seven_per_cent(n: int, mu: float, sds: tuple[float, float], first: float) -> None:
    """Fails when the 99.9 % lower limit of the size is above 7 %; equal centres, in the last two rows unequal sds and sizes."""
    hits = _rejections(MannWhitney("y ~ g"), lambda seed: _frame(n, seed, 0.0, sds, first), mu, 100)
    assert stats.beta.ppf(0.001, max(hits, 1e-9), 100 - hits + 1) <= 0.07


def test_the_size_of_the_others_and_what_they_find() -> None:
    hits = _rejections(Kruskal("y ~ h"), lambda seed: _frame(300, seed), 0.5, 80)
    assert stats.beta.ppf(0.001, max(hits, 1e-9), 80 - hits + 1) <= 0.07
    assert _rejections(Wilcoxon("z - y"), lambda s: _frame(200, s), 1.0, 25) >= 10
    assert _rejections(MannWhitney("y ~ g"), lambda s: _frame(400, s, 0.3), 0.5, 25) >= 12


def test_intervals_cover_under_unequal_sizes_and_spreads() -> None:
    """The truth is P(N(.5, 2) > N(0, 1)) - 1/2."""
    truth = stats.norm.cdf(0.5 / np.sqrt(5)) - 0.5
    hits = 0
    for seed in range(120):
        interval = _result(MannWhitney("y ~ g"), _frame(600, seed, 0.5, (2.0, 1.0), 0.25), 0.5, seed=seed).conf_int()
        hits += interval.iloc[0, 0] <= truth <= interval.iloc[0, 1]
    assert stats.beta.ppf(0.999, hits + 1, max(120 - hits, 1e-9)) >= 0.95


def test_scores_follow_from_the_sum_of_round_one_alone() -> None:
    """With the labels of all records exchanged the sum is the same, and so are the scores."""
    method, frame = MannWhitney("y ~ g"), _frame(300)
    swapped = frame.assign(g=frame["g"].map({"a": "b", "b": "a"}))
    scores = [
        engine.release(method, cf.read(one, SCHEMA), cf.GDP(1.0), ledger=None, noise=ZeroNoise()).public["scores"]
        for one in (frame, swapped, frame.assign(g="a"))
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-6)
    assert scores_of(np.ones(4)).tolist() == [-0.75, -0.25, 0.25, 0.75]


def test_small_groups_are_weak_and_rough_ranks_give_no_interval(tmp_path: Path) -> None:
    weak = _result(MannWhitney("y ~ g"), _frame(20), 0.1)
    assert weak.status == "imprecise" and np.isnan(weak.pvalue) and weak.params.isna().all()
    # 17 of 40 releases are of this status
    every = (_result(MannWhitney("y ~ g"), _frame(115), 0.2, seed=seed) for seed in range(20))
    rough = next(one for one in every if one.status == "partial")
    assert 0 < rough.pvalue <= 1 and rough.conf_int().isna().all().all()
    fine = _result(MannWhitney("y ~ g"), _frame(2_000))
    assert fine.status == "valid" and "t(" in fine.summary()
    body = json.loads(fine.to_json())
    assert body["p_value"] == [fine.pvalue] and len(body["df"]) == 1
    assert "P(g=a" in fine.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert _result(Kruskal("y ~ h"), _frame(30), 0.1).status == "imprecise"


def test_subgroups_and_cuts_make_groups() -> None:
    release = engine.release(
        MannWhitney("y ~ cut(z, 0)"), cf.read(_frame(800), SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1)
    )
    assert "cut(z, 0)=>=0" in MannWhitney("y ~ cut(z, 0)").infer(release).to_frame().index[0]


@pytest.mark.parametrize(
    "method",
    [
        MannWhitney("y ~ h"),
        MannWhitney("y"),
        MannWhitney("y ~ z"),
        MannWhitney("y ~ gg"),
        MannWhitney("g ~ h"),
        Wilcoxon("exp(y)"),
    ],
)
def test_what_cannot_be_planned_says_what_can(method: object) -> None:
    with refuses((cf.errors.PlanError, cf.errors.SchemaError)):
        method.plan(SCHEMA, cf.GDP(1.0))  # type: ignore[attr-defined]


def test_the_plan_prints_its_power() -> None:
    for method in (MannWhitney("y ~ g"), Kruskal("y ~ h"), Wilcoxon("z - y")):
        assert "the power (5%, two sides)" in " ".join(method.plan(SCHEMA, cf.GDP(1.0), n=500).summary().split())


@pytest.mark.long
@pytest.mark.parametrize("method", [MannWhitney("y ~ k"), Wilcoxon("d"), Kruskal("y ~ k")])
def test_the_contract(method: object) -> None:
    schema = cf.Schema({"y": cf.Numeric(0.5, 2.5), "d": cf.Numeric(-1, 2), "k": cf.Categorical(["a", "b"])})
    assert cf.testing.check_method(method, schema, replications=10).ok
