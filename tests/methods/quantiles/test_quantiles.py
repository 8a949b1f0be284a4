"""Distributions: zero noise gives pandas' numbers, intervals and bands cover, hostile input, pictures, the contract."""

from __future__ import annotations

import json
from dataclasses import replace
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
from confide.methods.quantiles.fitted_bins import fitted
from confide.methods.quantiles.method import Quantiles
from confide.methods.quantiles.reading import QuantileGroup
from confide.methods.quantiles.results import QuantileTable
from confide.noise import SimulatedNoise
from confide.schema import CodedFrame
from confide.sums.distributions.cumulative import Bins, strategy
from confide.testing.test_data import ZeroNoise

SCHEMA = cf.Schema(
    {
        "income": cf.Numeric(0, 2e5),
        "sex": cf.Categorical(["F", "M"]),
        "region": cf.Categorical(["N", "S", "W"]),
        "visits": cf.Integer(0, 12),
    }
)


def _frame(n: int = 3_000, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.lognormal(10.5, 0.7, n),
            "sex": rng.choice(["F", "M"], n),
            "region": rng.choice(["N", "S", "W"], n),
            "visits": rng.poisson(1.2, n),
        }
    )


def _result(method: Quantiles, frame: pd.DataFrame, mu: float = 1.0, *, zero: bool = False) -> QuantileTable:
    noise = ZeroNoise() if zero else SimulatedNoise(3)
    release = engine.release(method, cf.read(frame, SCHEMA), cf.GDP(mu), ledger=None, noise=noise)
    found: QuantileTable = method.infer(release)
    return found


def test_without_noise_quantiles_are_those_of_pandas_to_a_bin() -> None:
    frame = _frame()
    result = _result(Quantiles("income ~ sex", bins=256, quantiles=(0.1, 0.5, 0.9)), frame, zero=True)
    reference = Quantiles("income ~ sex", quantiles=(0.1, 0.5, 0.9)).reference(CodedFrame.of(frame, SCHEMA))
    assert list(reference) == list(result.names)
    by = frame.assign(income=frame["income"].clip(0, 2e5)).groupby("sex")["income"].quantile(0.5)
    assert abs(reference["sex=F, 0.5"] - by["F"]) < 100
    for name, value in result.params.items():
        assert abs(value - reference[str(name)]) <= 2e5 / 256
    counts = result.histogram(bins=256)["count"]
    edges = np.linspace(0, 2e5, 257)
    np.testing.assert_allclose(counts, np.histogram(frame["income"].clip(0, 2e5), edges)[0], atol=0.02)


def test_bins_lie_where_the_records_are_whatever_the_bounds() -> None:
    """Fails when a bound twenty times too wide makes an interval twice as long, or when a value leaves its bin."""
    frame, lengths = _frame(), []
    for most in (2e5, 4e6):
        schema = cf.Schema({"income": cf.Numeric(0, most)})
        release = engine.release(
            Quantiles("income"), cf.read(frame, schema), cf.GDP(2.0), ledger=None, noise=ZeroNoise()
        )
        result = Quantiles("income").infer(release)
        lengths.append(float((result.conf_int()[1] - result.conf_int()[0]).sum()))
        bins = result.group().bins
        found = np.histogram(frame["income"].clip(0, most), bins.edges)[0]
        np.testing.assert_allclose(result.group().counts, found, atol=1e-6)
        assert bins.size == 384 and "laid where the records are" in result.summary(verbose=True)
        again = cf.infer(cf.Release.from_json(release.to_json()))
        pd.testing.assert_frame_equal(again.to_frame(), result.to_frame())
    assert lengths[1] < 1.3 * lengths[0]


@pytest.mark.parametrize("starts", [None, [0, 5, 5], [1], [0, 1 << 20]])
def test_a_release_whose_bins_are_nowhere_is_refused(starts: list[int] | None) -> None:
    release = engine.release(
        Quantiles("income"), cf.read(_frame(50), SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1)
    )
    own = np.array(release.public["starts"])
    wrong = {} if starts is None else {"starts": np.concatenate([starts, own[len(starts) :]])}
    with refuses(cf.errors.ReleaseError):
        Quantiles("income").infer(replace(release, public=wrong))


def test_bins_of_the_second_round_are_as_many_as_planned_and_fill_what_holds_records() -> None:
    rng = np.random.default_rng(2)
    starts = np.sort(rng.choice(np.arange(1, 4000), 63, replace=False))
    starts = np.concatenate([[0], starts])
    for counts in (rng.normal(0, 30, 64), np.eye(64)[3] * 1e6, np.zeros(64), rng.normal(0, 1, 64) - 50):
        found = fitted(counts, starts, 4096, 384)
        assert found[0] == 0 and len(found) == 384 and (np.diff(found) > 0).all() and found[-1] < 4096
        assert set(starts) <= set(found)
    room = int(starts[4] - starts[3])
    held = fitted(np.eye(64)[3] * 1e6, starts, 4096, 384)
    assert ((held >= starts[3]) & (held < starts[4])).sum() == min(room, 384 - 63)


@pytest.mark.few("1.0")
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_intervals_cover_where_bins_follow_from_noisy_numbers(mu: float) -> None:
    """Fails when the 99.9 % upper limit of the coverage is below 95 %; a third of the records share one value."""
    rng, hits, runs = np.random.default_rng(12), 0, 60
    schema = cf.Schema({"income": cf.Numeric(0, 1e6)})
    truth = stats.lognorm(0.7, scale=np.exp(10.5)).ppf((np.array([0.4, 0.5, 0.75]) - 1 / 3) * 1.5)
    plan = cf.plan(Quantiles("income", quantiles=(0.4, 0.5, 0.75)), schema, cf.GDP(mu))
    for run in range(runs):
        values = np.where(rng.random(1_000) < 1 / 3, 0.0, rng.lognormal(10.5, 0.7, 1_000))
        release = engine.release(plan, cf.read({"income": values}, schema), ledger=None, noise=SimulatedNoise(run))
        ends = cf.infer(release).conf_int()
        hits += int(((ends[0] <= truth) & (truth <= ends[1])).sum())
    assert stats.beta.ppf(0.999, hits + 1, max(3 * runs - hits, 1e-9)) >= 0.95


def test_whole_values_stay_whole_and_atoms_have_an_interval_of_one_value() -> None:
    frame = _frame(20_000)
    result = _result(Quantiles("visits", quantiles=(0.25, 0.5, 0.9)), frame)
    table = result.to_frame()
    assert (table[["estimate", "ci_low", "ci_high"]] % 1 == 0).all().all()
    assert table.loc["0.5", ["estimate", "ci_low", "ci_high"]].tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(result.cdf()["x"], range(13))


def test_crossings_have_their_margins_and_marginal_counts_add_up() -> None:
    result = _result(Quantiles("income ~ sex * region", bins=32), _frame())
    assert len(result.groups) == 1 + 2 + 3 + 6
    sizes = {group.name: group.size for group in result.groups}
    assert sizes[""] == pytest.approx(sizes["sex=F"] + sizes["sex=M"])
    assert sizes["region=S"] == pytest.approx(sizes["sex=F, region=S"] + sizes["sex=M, region=S"])


def _group(
    n: int, mu: float, chances: np.ndarray, rng: np.random.Generator, part: float = 1.0
) -> tuple[QuantileGroup, np.ndarray]:
    m = len(chances)
    own = strategy(m)
    unit = own.longest / 4.0**20 / mu**2
    drawn = rng.multinomial(n, chances)
    bins = Bins(tuple(range(m)), tuple(float(k) for k in range(m + 1)), 0.0)
    counts = drawn + np.sqrt(unit) * (own.root @ rng.standard_normal(m))
    return QuantileGroup("", counts, unit, bins, own, part), drawn


@pytest.mark.parametrize(
    ("n", "mu", "atom", "part"),
    few([(500, 1.0, 0.0, 1.0), (2000, 0.3, 0.45, 1.0), (150, 0.5, 0.0, 1.0), (800, 0.3, 0.2, 0.0)], 0),
)
def test_intervals_of_quantiles_and_the_band_cover(n: int, mu: float, atom: float, part: float) -> None:
    """Fails when the 99.9 % upper limit of the coverage is below 95 %."""
    rng = np.random.default_rng(8)
    m, runs = 64, 300
    chances = np.diff(stats.lognorm(0.7, scale=20).cdf(np.arange(m + 1)))
    chances = (1 - atom) * chances / chances.sum()
    chances[0] += atom
    draws = rng.standard_normal((400, m)) @ strategy(m).root.T
    hits = dict.fromkeys((0.02, 0.1, 0.25, 0.5, 0.75, "band"), 0)
    for _ in range(runs):
        group, drawn = _group(n, mu, chances, rng, part)
        truth = np.cumsum(chances if part else drawn / n)
        for q in (0.02, 0.1, 0.25, 0.5, 0.75):
            first, last = group.hull(q, 0.05)
            hits[q] += first <= np.searchsorted(truth, q - 1e-12) <= last
        half = group.band(0.05, draws, rng)
        hits["band"] += np.abs(group.distribution - truth).max() <= half
    for name, hit in hits.items():
        assert stats.beta.ppf(0.999, hit + 1, max(runs - hit, 1e-9)) >= 0.95, name


def test_intervals_are_as_short_as_the_page_says() -> None:
    """Mean length in probability of the quartiles of a lognormal within 0 to 200,000: at most .055 at (2000, 1), .033 at (10000, .3)."""
    rng = np.random.default_rng(9)
    edges = np.linspace(0, 2e5, 257)
    upto = stats.lognorm(0.7, scale=np.exp(10.5)).cdf(edges)
    upto[-1] = 1.0
    for n, mu, most in ((2000, 1.0, 0.055), (10_000, 0.3, 0.033)):
        lengths = []
        for _ in range(60):
            group, _ = _group(n, mu, np.diff(upto), rng)
            for q in (0.25, 0.5, 0.75):
                first, last = group.hull(q, 0.05)
                lengths.append(upto[last + 1] - upto[first])
        assert np.mean(lengths) <= most


def test_distances_between_quartiles_cover() -> None:
    rng = np.random.default_rng(4)
    chances = np.diff(stats.norm(32, 9).cdf(np.arange(65)))
    chances /= chances.sum()
    hits = 0
    for _ in range(200):
        group, _ = _group(600, 0.6, chances, rng)
        _, low, high = group.gap(0.25, 0.75, 0.05)
        hits += low <= 2 * 0.6745 * 9 <= high
    assert stats.beta.ppf(0.999, hits + 1, max(200 - hits, 1e-9)) >= 0.95


def test_a_question_asks_for_other_quantiles_and_for_these_very_records() -> None:
    method = Quantiles("income")
    release = engine.release(method, cf.read(_frame(400), SCHEMA), cf.GDP(2.0), ledger=None, noise=SimulatedNoise(1))
    wide = method.infer(release, cf.core.ResultOptions(quantiles=(0.3,)))
    narrow = method.infer(release, cf.core.ResultOptions(quantiles=(0.3,), inference="dataset"))
    assert list(wide.names) == ["0.3"]
    width = [float(one.conf_int().iloc[0, 1] - one.conf_int().iloc[0, 0]) for one in (wide, narrow)]
    assert width[1] < width[0]
    assert "exactly these records: privacy noise only" in narrow.summary()
    with refuses(cf.errors.PlanError):
        method.infer(release, cf.core.ResultOptions(inference="records"))


def test_nothing_is_said_where_noise_hides_the_records() -> None:
    result = _result(Quantiles("income ~ sex"), _frame(6), mu=0.05)
    assert result.status == "no_information"
    assert result.params.isna().all()
    assert set(result.to_frame()["flags"]) == {"count_below_noise whole_range"}
    assert "less than three SDs of its noise" in " ".join(result.summary().split())


def test_everything_that_can_be_read_off_a_result(tmp_path: Path) -> None:
    result = _result(Quantiles("income ~ sex", bins=48), _frame())
    assert list(result.quantile(0.9).index) == ["0.9", "sex=F, 0.9", "sex=M, 0.9"]
    assert (result.iqr()["ci_low"] < result.iqr()["ci_high"]).all()
    assert result.letter_values().index[0] == "M"
    band = result.cdf(group="sex=M")
    assert (band["band_low"] <= band["estimate"]).all() and band["estimate"].is_monotonic_increasing
    assert result.diff("sex=F", "sex=M", (0.5, 0.9)).shape == (2, 3)
    assert result.plot().get_xlabel() == result.plot(kind="cdf").get_xlabel() == "income"
    assert [panel.get_xlabel() for panel in result.plot(kind="histogram").child_axes] == ["", "income"]
    body = json.loads(result.to_json())
    assert body["groups"][1]["name"] == "sex=F" and len(body["edges"]) == 49
    assert "Income by sex: quartiles" in result.report(tmp_path / "d.html").read_text(encoding="utf-8")
    assert replace(result, q=(0.5,)).title == "Median income by sex"
    rows = [line.split()[:3] for line in result.summary().splitlines()[3:14]]
    assert rows[0] == ["sex", "quantile", "n"] and [row[0] for row in rows[2:]] == ["F"] * 3 + ["M"] * 3 + ["Total"] * 3
    frame = result.to_frame()
    assert list(frame.columns[:3]) == ["sex", "quantile", "n"] and frame["sex"].iloc[0] == "Total"


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.plot(kind="violin"),
        lambda r: r.plot(kind="box", edges=[0, 1]),
        lambda r: r.plot(edges=[1, 0]),
        lambda r: r.plot(edges=[50, 50.01, 60]),
        lambda r: r.cdf(group="sex=X"),
        lambda r: r.quantile(1.5),
        lambda r: r.diff("sex=F", "sex=F"),
        lambda r: r.histogram(0),
    ],
)
def test_questions_that_cannot_be_answered_say_what_can(call: object) -> None:
    result = _result(Quantiles("income ~ sex", bins=8), _frame(50))
    with refuses(cf.errors.PlanError):
        call(result)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("formula", "settings"),
    [
        ("income + visits ~ sex", {}),
        ("income ~ sex + region", {}),
        ("sex", {}),
        ("income ~ sexx", {}),
        ("income", {"quantiles": (0.5, 1.0)}),
        ("income", {"inference": "people"}),
        ("income", {"bins": 2000}),
        ("income", {"fitted": 20}),
    ],
)
def test_what_cannot_be_planned_says_what_can(formula: str, settings: dict[str, object]) -> None:
    with refuses((cf.errors.PlanError, cf.errors.SchemaError)):
        Quantiles(formula, **settings).plan(SCHEMA, cf.GDP(1.0))  # type: ignore[arg-type]


def test_the_plan_says_how_far_intervals_will_reach() -> None:
    text = Quantiles("income").plan(SCHEMA, cf.GDP(1.0), n=2_000).summary()
    assert "0.5 from 0.478 to 0.522" in " ".join(text.split())


@pytest.mark.long
def test_the_contract() -> None:
    schema = cf.Schema({"y": cf.Numeric(0.5, 2.5), "k": cf.Categorical(["a", "b"])})
    assert cf.testing.check_method(Quantiles("y ~ k", bins=40, quantiles=(0.3, 0.6)), schema, replications=20).ok
    schema = cf.Schema({"y": cf.Numeric(0.5, 2.5, steps=1025), "k": cf.Categorical(["a", "b"])})
    assert cf.testing.check_method(Quantiles("y ~ k", fitted=128, quantiles=(0.3, 0.6)), schema, replications=20).ok
