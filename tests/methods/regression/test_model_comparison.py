"""Nested models compared from one release: what the records say where noise is small, and noise that is as large as it is said to be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.few import few
from tests.messages import refuses

import confide as cf
from confide.errors import NoResult, PlanError
from confide.methods.regression.evidence.nested_models import ModelSums
from confide_lab.experiments.model_comparison import criteria

SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(0, 1),
        "z": cf.Numeric(0, 1),
        "g": cf.Categorical(["a", "b", "c"]),
        "y": cf.Numeric(-4, 6),
    }
)
METHODS = {"least_squares": cf.regression.LeastSquares, "ssp": cf.regression.SSP}


def _records(n: int, seed: int, effect: float = 0.0) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    g = np.random.default_rng(seed)
    x, z, level = g.random(n), g.random(n), g.choice(["a", "b", "c"], n)
    y = np.clip(1 + x + effect * z + 0.2 * (level == "b") + g.normal(size=n), -4, 6)
    return (
        {"x": x, "z": z, "g": level, "y": y},
        np.column_stack([x, z, level == "b", level == "c"]).astype(float),
        y,
    )


def _fit(name: str, records: dict[str, Any], mu: float, seed: int, formula: str = "y ~ x + z + g") -> Any:
    noise = cf.noise.SimulatedNoise(seed)
    data = cf.read(records, SCHEMA)
    return cf.infer(cf.release(METHODS[name](formula), data, cf.GDP(mu), ledger=None, noise=noise))


@pytest.mark.parametrize("name", METHODS)
def test_without_noise_they_are_those_of_the_records(name: str) -> None:
    records, x, y = _records(4_000, 1, effect=0.3)
    found = cf.regression.compare_models(_fit(name, records, 1_000.0, 1), ["z", "g", ["z", "g"]]).to_frame()
    assert list(found.index) == ["z", "g", "z, g"] and found["df_num"].tolist() == [1, 2, 3]
    for row, places in zip(found.itertuples(), ((1,), (2, 3), (1, 2, 3)), strict=True):
        own = criteria(x, y, places)
        assert row.f == pytest.approx(own["f"], rel=0.03, abs=0.05)
        assert row.aic == pytest.approx(own["aic"], rel=0.03, abs=0.2)
        assert row.bic == pytest.approx(own["bic"], rel=0.03, abs=0.2)


@pytest.mark.parametrize("name", few(list(METHODS), 1))
@pytest.mark.parametrize("effect", few([0.0, 0.25], 1))
def test_the_test_keeps_its_size_and_intervals_hold_the_records(name: str, effect: float) -> None:
    """A share that should be .95 or .05 and is further off than this has a chance below 1e-4."""
    runs = 40
    held, off, rejected = [], [], 0
    for seed in range(runs):
        records, x, y = _records(2_000, 100 + seed, effect)
        own = criteria(x, y, (1,))
        row = cf.regression.compare_models(_fit(name, records, 1.0, seed), "z").to_frame().iloc[0]
        rejected += row["p_value"] < 0.05
        held.append(row["aic_low"] - 1e-6 <= own["aic"] <= row["aic_high"] + 1e-6)
        off.append((row["aic"] - own["aic"]) / row["aic_noise_sd"])
    assert binom.cdf(sum(held), runs, 0.95) > 1e-4
    assert 0.5 < float(np.sqrt(np.mean(np.square(off)))) < 1.6
    if effect == 0:
        assert binom.sf(rejected - 1, runs, 0.05) > 1e-4


@pytest.mark.parametrize("along", [0, 4, None], ids=["where noise is large", "where it is small", "nowhere"])
def test_intervals_hold_an_effect_in_any_direction_of_the_noise(along: int | None) -> None:
    """A rare level that counts, left out with terms that do not: its noise is far above the mean noise. Sums as they stand, R = B = 1."""
    runs, g = 2_000, np.random.default_rng(5)
    noise = np.diag([1.0] + 7 * [0.2])
    truth = np.zeros(8)
    if along is not None:
        truth[along] = 6.0
    held, widths = 0, []
    for _ in range(runs):
        h = truth + np.sqrt(np.diag(noise)) * g.standard_normal(8)
        gap = ModelSums(h, np.eye(8), noise, np.eye(8), h, 5_000.0, 5_000.0, 0.0, 0.0, 0.0).without(list(range(8)))
        low, high = gap.interval("f", 0.05)
        least = gap.interval("f", 1e-9)[0]
        own = float(truth @ truth) / 8 / (5_000.0 / (5_000 - 8))
        assert 0 <= least <= low
        held += low - 1e-9 <= own <= high
        widths.append(high - low)
    assert binom.cdf(held, runs, 0.95) > 1e-4
    sd = np.sqrt(2 * (noise**2).sum() + 4 * float(truth @ noise @ truth)) / 8
    assert 0.7 < float(np.median(widths)) / (3.92 * sd) < 1.3


def test_bic_counts_the_noise_of_n() -> None:
    """What is left out fits nothing, so that the records' BIC is close to its least, which is log n: the noise of n moves that end."""
    runs, n, sd, g = 2_000, 1_000.0, 40.0, np.random.default_rng(6)
    held = {0.0: 0, sd: 0}
    for _ in range(runs):
        h = g.standard_normal(3)
        count = n + sd * float(g.standard_normal())
        gap = ModelSums(h, np.eye(3), np.eye(3), np.eye(3), h, n, count, 0.0, 0.0, 0.0).without([0, 1, 2])
        for own in held:
            low, high = replace(gap, sd_count=own).interval("bic", 0.05)
            held[own] += low - 1e-9 <= -3 * np.log(n) <= high + 1e-9
    assert binom.cdf(held[sd], runs, 0.95) > 1e-4
    assert held[0.0] < 0.7 * runs
    assert replace(gap, sd_count=sd).noise_sd("bic") > gap.noise_sd("bic")
    assert replace(gap, sd_count=sd).interval("aic", 0.05)[0] == gap.interval("aic", 0.05)[0]


def test_the_noise_of_n_is_that_of_the_release() -> None:
    """A noisy count, of either method, is off by as much as BIC counts."""
    for name in METHODS:
        off = []
        for seed in range(30):
            records = _records(2_000, 200 + seed)[0]
            sums = _fit(name, records, 1.0, seed, "y ~ x + z").sums
            off.append((sums.count - 2_000) / sums.without([1]).sd_count)
        # LeastSquares limits leverages, so that its count is a little below n
        assert 0.6 < float(np.std(off)) < 1.5


@pytest.mark.parametrize("effect", [5.0, 25.0])
def test_intervals_hold_where_the_residual_sum_is_barely_told(effect: float) -> None:
    """Of three sds of its noise: those that are told are chosen, and the less the lower the bar. In units of that noise."""
    runs, told, held, size, g = 2_500, 0, 0, 0.06, np.random.default_rng(8)
    for _ in range(runs):
        rss, h = 3 + float(g.standard_normal()), np.sqrt(size) * (np.sqrt(effect) + g.standard_normal(1))
        gap = ModelSums(h, np.eye(1), size * np.eye(1), np.eye(1), h, rss, 1_200.0, 0.0, 0.0, 1.0).without([0])
        told += gap.told
        low, high = gap.interval("aic", 0.05) if gap.told else (np.nan, np.nan)
        held += low <= 1_200 * np.log1p(effect * size / 3) - 2 <= high
    assert 0.7 * runs < told and binom.cdf(held, told, 0.95) > 1e-4


def test_a_ratio_to_what_may_be_nothing_has_no_upper_end() -> None:
    gap = ModelSums(np.ones(1), np.eye(1), np.eye(1) / 9, np.eye(1), np.ones(1), 2.2, 1_000.0, 0.0, 0.0, 1.0).without(
        [0]
    )
    assert gap.told and np.isfinite(gap.interval("f", 0.05)).all()
    low, high = gap.interval("f", 0.01)
    assert low >= 0 and high == np.inf


def test_it_says_which_ranges_the_records_are_within() -> None:
    """Criteria are of clipped records, as the fit's note says; without ranges there is none."""
    g = np.random.default_rng(4)
    x, z = g.random(3_000), g.random(3_000)
    records = {"x": x, "z": z, "y": np.exp(2 * x + g.normal(size=3_000))}
    wide = cf.Schema({"x": cf.Numeric(0, 1), "z": cf.Numeric(0, 1), "y": cf.Numeric(0, 100_000)})
    for bounds, said in (("auto", True), ("declared", False)):
        method = cf.regression.SSP("y ~ x + z", bounds=bounds)
        release = cf.release(
            method, cf.read(records, wide), cf.GDP(20.0), ledger=None, noise=cf.noise.SimulatedNoise(1)
        )
        fit: Any = cf.infer(release)
        found = cf.regression.compare_models(fit, "z")
        notes = dict(found.legend)
        assert ("Ranges" in notes) == said and notes.get("Ranges") == dict(fit.legend).get("Ranges")
        assert ("\nRanges " in found.summary()) == said and found.ranges == fit.ranges


def test_models_have_names_and_every_rendering() -> None:
    fit = _fit("ssp", _records(2_000, 3)[0], 1.0, 1)
    found = cf.regression.compare_models(fit, {"no group": "g", "x alone": ["z", "g"]})
    assert list(found.to_frame().index) == ["no group", "x alone"]
    assert "model's: above 0" in " ".join(found.summary().split()) and "no group" in found.to_markdown()
    wide, narrow = (found.to_frame(alpha=alpha) for alpha in (0.01, 0.2))
    assert (wide["aic_high"] - wide["aic_low"] > narrow["aic_high"] - narrow["aic_low"]).all()
    assert found.to_dict()["release_sha256"] == fit.release_sha256


def test_what_cannot_be_compared_is_refused() -> None:
    records = _records(2_000, 3)[0]
    fit = _fit("ssp", records, 1.0, 1)
    for without in ("q", [], [[]]):
        with refuses(PlanError):
            cf.regression.compare_models(fit, without)
    with refuses(PlanError):
        cf.regression.compare_models(3, "z")
    with pytest.raises(NoResult):
        cf.regression.compare_models(_fit("ssp", records, 0.01, 1), "z")
    with pytest.raises(NoResult):
        cf.regression.compare_models(_fit("least_squares", records, 1.0, 1, "y ~ g"), "g")
