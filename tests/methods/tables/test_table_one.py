"""Table One: zero noise gives pandas' numbers, missing values leave no other column out, intervals cover, bad input, the contract."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses

import confide as cf
import confide.testing
from confide import engine
from confide.core import seal
from confide.methods.tables.intervals import MeanSums
from confide.methods.tables.table_one.method import TableOne
from confide.methods.tables.table_one.reading import Level, Numeric
from confide.methods.tables.table_one.results import TableOneResult
from confide.noise import SimulatedNoise
from confide.schema import CodedFrame
from confide.testing.test_data import ZeroNoise

SCHEMA = cf.Schema(
    {
        "age": cf.Numeric(0, 100),
        "bmi": cf.Numeric(10, 60),
        "smoker": cf.Categorical(["no", "yes"]),
        "stage": cf.Categorical(["I", "II", "III"]),
        "arm": cf.Categorical(["A", "B"]),
    }
)


def _frame(n: int = 2_000, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    arm = rng.choice(["A", "B"], n)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 14, n) + 4 * (arm == "A"),
            "bmi": rng.lognormal(3.2, 0.2, n),
            "smoker": np.where(rng.random(n) < np.where(arm == "A", 0.3, 0.2), "yes", "no"),
            "stage": rng.choice(["I", "II", "III"], n),
            "arm": arm,
        }
    ).astype({"smoker": object})
    frame.loc[::7, "bmi"] = np.nan
    frame.loc[::11, "smoker"] = None
    return frame


def _result(
    method: TableOne, frame: pd.DataFrame, mu: float = 1.0, *, zero: bool = False, seed: int = 3
) -> TableOneResult:
    noise = ZeroNoise() if zero else SimulatedNoise(seed)
    release = engine.release(method, cf.read(frame, SCHEMA), cf.GDP(mu), ledger=None, noise=noise)
    found: TableOneResult = method.infer(release)
    return found


@pytest.mark.parametrize(
    "formula", ["age + bmi + smoker + stage ~ arm", "bmi + smoker ~ arm", "smoker ~ arm", "age + stage ~ 1"]
)
def test_without_noise_it_is_pandas(formula: str) -> None:
    frame = _frame()
    method = TableOne(formula, medians=("bmi",) if "bmi" in formula else ())
    result = _result(method, frame, zero=True)
    reference = pd.Series(method.reference(CodedFrame.of(frame, SCHEMA)))
    assert set(reference.index) == set(result.params.index)
    for name, value in result.params.items():
        assert value == pytest.approx(reference[name], abs=50 / 64 if "median" in str(name) else 1e-3), name
    if "bmi" in formula and "arm" in formula:
        assert reference["bmi: mean | arm=A"] == pytest.approx(frame.loc[frame["arm"] == "A", "bmi"].mean(), abs=1e-3)
    rows = result.to_frame()
    assert result.sizes[0] == pytest.approx(2_000, abs=0.1)
    if "smoker" in formula:
        assert rows.loc["smoker=yes", "n"] == pytest.approx(frame["smoker"].notna().sum(), abs=0.1)


def test_without_noise_standardised_differences_are_the_usual_ones() -> None:
    frame = _frame()
    found = _result(TableOne("age + smoker ~ arm"), frame, zero=True).differences()
    by = frame.groupby("arm")["age"]
    usual = (by.mean()["A"] - by.mean()["B"]) / np.sqrt((by.var(ddof=0)["A"] + by.var(ddof=0)["B"]) / 2)
    assert found.loc["age: mean", "estimate"] == pytest.approx(usual, abs=1e-4)
    p = (frame.dropna(subset=["smoker"])["smoker"] == "yes").groupby(frame["arm"]).mean()
    usual = (p["A"] - p["B"]) / np.sqrt((p * (1 - p)).mean())
    assert found.loc["smoker=yes", "estimate"] == pytest.approx(usual, abs=1e-4)


@pytest.mark.parametrize("mu", [1.0, 0.3])
def test_intervals_of_standardised_differences_cover(mu: float) -> None:
    """Of 4 years at an sd of 14, and of shares .3 and .2; fails when the 99.9 % upper limit of the coverage is below 95 %."""
    truth = {"age: mean": 4 / 14, "smoker=yes": 0.1 / np.sqrt((0.21 + 0.16) / 2)}
    hits = dict.fromkeys(truth, 0)
    for seed in range(60):
        found = _result(TableOne("age + smoker ~ arm"), _frame(600, seed), mu, seed=seed).differences()
        for name, value in truth.items():
            hits[name] += found.loc[name, "ci_low"] <= value <= found.loc[name, "ci_high"]
    for name, hit in hits.items():
        assert stats.beta.ppf(0.999, hit + 1, max(60 - hit, 1e-9)) >= 0.95, name


@pytest.mark.parametrize(("spread", "known"), [(0.01, 0.02), (0.08, 0.98), (0.3, 1.0)])
def test_a_difference_in_units_of_noise_is_none(spread: float, known: float) -> None:
    """Groups of 300 and 1,200, half an sd apart, between bounds up to a hundred times as wide as an sd; the lost spread is of noise alone.

    known: the share of releases that say something, at most for the narrowest and at least for others. Where they do the interval covers;
    fails when the coverage's 99.9 % upper limit is below 94 %.
    """
    rng, runs = np.random.default_rng(4), 300
    first = np.arange(1_500) < 300
    hits, told = 0, 0
    for _ in range(runs):
        own = np.clip(rng.normal(-0.3, spread, 1_500) + spread / 2 * first, -1, 1)
        v, n = own**2, np.array([1_500.0, 300.0, 1_200.0])
        parts = [own, 1 - v, own * (1 - v), v * (1 - v)]
        exact = np.array([[part.sum(), part[first].sum(), part[~first].sum()] for part in parts])
        v0, v1 = np.full(3, 0.03), np.full(3, 0.015)
        sums = exact + np.sqrt(v1) * rng.standard_normal((4, 3))
        row = Numeric("x", MeanSums(n + np.sqrt(v0) * rng.standard_normal(3), *sums, v0, v1), 0.0, 1.0, 1.0)
        d, low, high = row.difference(1, 2, 0.05)
        told += bool(np.isfinite(d))
        hits += bool(np.isfinite(d) and low <= 0.5 <= high)
        assert np.isfinite(d) or (low, high) == (-np.inf, np.inf)
    assert told <= known * runs if spread == 0.01 else told >= known * runs
    assert stats.beta.ppf(0.9995, hits + 1, max(told - hits, 1e-9)) >= 0.94, (hits, told)


def test_a_difference_of_levels_in_units_of_noise_is_none() -> None:
    """Nobody has the level: the floor of .01 under S made a difference of the noise."""
    bases, variance = np.array([1_000.0, 500.0, 500.0]), np.full(3, 4.0)
    none = Level("smoker=yes", np.array([1.0, 3.0, -2.0]), bases, variance, 2, 1.0)
    assert np.isnan(none.difference(1, 2, 0.05)[0]) and none.difference(1, 2, 0.05)[1:] == (-np.inf, np.inf)
    some = Level("smoker=yes", np.array([300.0, 100.0, 200.0]), bases, variance, 2, 1.0)
    assert some.difference(1, 2, 0.05)[0] == pytest.approx(-0.2 / np.sqrt(0.2), rel=1e-9)


def test_a_difference_that_noise_hides_is_a_dash_in_print_and_nan_in_frames() -> None:
    frame = _frame(600)
    frame["age"] = 50 + frame["age"] / 1_000
    result = _result(TableOne("age + smoker ~ arm"), frame, 0.3)
    found = result.differences()
    assert np.isnan(found.loc["age: mean", "estimate"]) and found.loc["age: mean", "ci_high"] == np.inf
    assert np.isfinite(found.loc["smoker=yes"]).all()
    line = next(line for line in result.summary().splitlines() if line.startswith("age, mean"))
    assert line.rstrip().endswith("n/a") and "the SDs of age do not exceed their noise" in " ".join(
        result.summary().split()
    )
    assert any("above its noise" in text.get_text() for text in result.plot().texts)


def test_a_mean_of_too_few_records_for_its_skewness_is_flagged() -> None:
    frame = _frame(400)
    frame["age"] = np.where(np.arange(400) < 2, 100.0, 0.0)
    flags = _result(TableOne("age ~ arm"), frame, 10.0).to_frame()["flags"]
    assert "skewed_few_records" in flags["age: mean"]
    exact = _result(TableOne("age ~ arm", inference="dataset"), frame, 10.0).to_frame()["flags"]
    assert "skewed_few_records" not in exact["age: mean"]


def test_what_is_printed_and_written(tmp_path: Path) -> None:
    result = _result(TableOne("age + bmi + smoker ~ arm", medians=("bmi",)), _frame())
    text = result.summary()
    assert "std. diff" in text and "bmi, median [quartiles]" in text and "%)" in text
    # too wide for a line, it is long, and no column is lost
    heads, _, *lines = text.splitlines()[3:]
    assert heads.split() == ["arm", "estimate", "std.", "diff."] and "further columns" not in text
    assert [line[len("bmi, median [quartiles]") :].split()[0] for line in lines[:3]] == ["A", "B", "Total"]
    assert "to_frame(), or the report" in text and "fewer than" in text
    body = json.loads(result.to_json())
    assert set(body["missing"]) == {"age", "bmi", "smoker"}
    assert len(body["cells"]["estimate"]) == 3 * 5
    assert "bmi, median [quartiles]" in result.report(tmp_path / "one.html").read_text(encoding="utf-8")
    dataset = _result(TableOne("age ~ arm", inference="dataset"), _frame())
    population = _result(TableOne("age ~ arm"), _frame())
    assert dataset.to_frame().loc["age: mean", "std_err"] < population.to_frame().loc["age: mean", "std_err"]
    assert _result(TableOne("age ~ arm"), _frame(8), 0.1).status == "imprecise"


@pytest.mark.parametrize(
    "arguments",
    [
        {"formula": "~ arm"},
        {"formula": "age + arm ~ arm"},
        {"formula": "age ~ arm + stage"},
        {"formula": "agee ~ arm"},
        {"formula": "age + smoker ~ arm", "medians": ("smoker",)},
        {"formula": "age ~ arm", "inference": "all"},
    ],
)
def test_what_cannot_be_planned_says_what_can(arguments: dict[str, object]) -> None:
    with refuses((cf.errors.PlanError, cf.errors.SchemaError)):
        TableOne(**arguments).plan(SCHEMA, cf.GDP(1.0))  # type: ignore[arg-type]


@pytest.mark.long
def test_the_contract() -> None:
    schema = cf.Schema(
        {
            "y": cf.Numeric(0.5, 2.5),
            "z": cf.Numeric(0, 1),
            "k": cf.Categorical(["a", "b"]),
            "g": cf.Categorical(["u", "v"]),
        }
    )
    assert cf.testing.check_method(TableOne("y + z + k ~ g", medians=("y",)), schema, replications=20).ok


# weights ---------------------------------------------------------------------------------------------------------------

WEIGHTED = cf.Schema({**SCHEMA.columns, "w": cf.Numeric(0, 6, on_missing="drop")})


def _weighed(n: int = 2_000, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = _frame(n, seed)
    frame["w"] = np.minimum(rng.lognormal(0, 0.6, n), 6)
    frame["age"] = np.clip(frame["age"] + 8 * np.log(frame["w"]), 0, 100)
    frame.loc[::13, "w"] = np.nan
    return frame


@pytest.mark.parametrize("formula", ["age + bmi + smoker + stage ~ arm", "bmi ~ arm", "smoker ~ 1"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_weighted_without_noise_it_is_numpys_average(formula: str, relation: str) -> None:
    frame, method = _weighed(), TableOne(formula, weights="w")
    privacy = cf.GDP(1.0, relation=relation)
    release = engine.release(method, cf.read(frame, WEIGHTED), privacy, ledger=None, noise=ZeroNoise(), n=2_000)
    found = method.infer(cf.Release.from_json(release.to_json()))
    reference = method.reference(CodedFrame.of(frame, WEIGHTED))
    for name, value in found.params.items():
        assert value == pytest.approx(reference[str(name)], abs=1e-3), name
    known = frame[frame["w"].notna()]
    if formula != "bmi ~ arm":
        assert found.sizes[0] == pytest.approx(known["w"].sum(), rel=1e-3)
        one = known[known["smoker"].notna()]
        assert reference["smoker=yes"] == pytest.approx(np.average(one["smoker"] == "yes", weights=one["w"]), abs=1e-5)


def test_weighted_standard_errors_are_the_linearised_ones() -> None:
    """Of means and shares, by group and over all."""
    frame = _weighed().dropna()
    method = TableOne("age + smoker ~ arm", weights="w")
    release = engine.release(method, cf.read(frame, WEIGHTED), cf.GDP(1e4), ledger=None, noise=ZeroNoise())
    table = method.infer(release).to_frame()
    yes = (frame["smoker"] == "yes").astype(float)
    for row, y in (("age: mean", frame["age"]), ("smoker=yes", yes)):
        for name, own in (("", frame["arm"] != ""), (" | arm=A", frame["arm"] == "A")):
            w, values = frame["w"][own], y[own]
            error = np.sqrt((w**2 * (values - np.average(values, weights=w)) ** 2).sum()) / w.sum()
            assert table.loc[row + name, "std_err"] == pytest.approx(error, rel=2e-3), row + name


def test_weighted_intervals_cover() -> None:
    """Means, shares and a standardised difference of two groups in 150 samples: .95, by the binomial bound of one in a thousand."""
    method = TableOne("age + smoker ~ arm", weights="w")
    whole = _weighed(60_000, seed=5).dropna()
    truth = method.reference(CodedFrame.of(whole, WEIGHTED))
    at = {arm: whole[whole["arm"] == arm] for arm in "AB"}
    means = {arm: np.average(own["age"], weights=own["w"]) for arm, own in at.items()}
    squares = [np.average((own["age"] - means[arm]) ** 2, weights=own["w"]) for arm, own in at.items()]
    gap = (means["A"] - means["B"]) / np.sqrt(np.mean(squares))
    plan = engine.plan(method, WEIGHTED, cf.GDP(0.5))
    hits: dict[str, int] = {}
    for seed in range(150):
        own = whole.sample(2_000, random_state=seed, replace=True).reset_index(drop=True)
        result = method.infer(seal(method, cf.read(own, WEIGHTED), plan, SimulatedNoise(seed)))
        assert isinstance(result, TableOneResult)
        low, high = result.conf_int().to_numpy().T
        for name, a, b in zip(map(str, result.params.index), low, high, strict=True):
            hits[name] = hits.get(name, 0) + bool(a <= truth[name] <= b)
        d = result.differences().loc["age: mean"]
        hits["difference"] = hits.get("difference", 0) + bool(d["ci_low"] <= gap <= d["ci_high"])
    assert min(hits.values()) >= stats.binom.ppf(0.001 / len(hits), 150, 0.95), hits


def test_medians_have_no_weights() -> None:
    with refuses(cf.errors.PlanError):
        TableOne("age ~ arm", medians=("age",), weights="w")
    with refuses(cf.errors.PlanError):
        engine.plan(TableOne("age ~ arm", weights="stage"), WEIGHTED, cf.GDP(1.0))
    plan = engine.plan(TableOne("age ~ arm", weights="w"), WEIGHTED, cf.GDP(1.0), n=1_000)
    assert "weighted by w (at most 6)" in plan.target and "weights of 3" in plan.forecast["note"]


def test_an_sd_that_is_noise_is_a_dash() -> None:
    wide = cf.Schema({"income": cf.Numeric(0, 1_000_000), "arm": cf.Categorical(["A", "B"])})
    frame = pd.DataFrame({"income": np.full(600, 30_000.0), "arm": ["A", "B"] * 300})
    call: dict[str, Any] = {
        "inference": "population",
        "privacy": cf.GDP(0.3),
        "ledger": None,
        "noise": SimulatedNoise(1),
    }
    found = cf.tables.table_one("income ~ arm", cf.read(frame, wide), **call)
    said = found.summary(verbose=True)
    row = next(line for line in said.splitlines() if line.startswith("income, mean (SD)"))
    assert (
        row.count("(n/a)") == 3
        and row.split()[-1] == "n/a"
        and "the SDs of income do not exceed their noise" in " ".join(said.split())
    )


WIDE = cf.Schema(
    {"income": cf.Numeric(0, 1_000_000), "votes": cf.Numeric(0, 1_000_000), "arm": cf.Categorical(["A", "B"])}
)


def _wide(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": g.lognormal(np.log(17_000), 0.9, n),
            "votes": g.poisson(30, n).astype(float),
            "arm": g.choice(["A", "B"], n),
        }
    )


def test_medians_are_told_as_closely_as_distributions_tell_them() -> None:
    """17,021 had the interval [15,625, 31,250], a whole one of 64 even bins of the bounds."""
    frame = _wide(10_000, 1)
    call: dict[str, Any] = {"inference": "population", "privacy": cf.GDP(1.0), "ledger": None}
    data = cf.read(frame, WIDE)
    one = cf.tables.table_one("income + votes ~ arm", data, medians=("income",), noise=SimulatedNoise(1), **call)
    whole = cf.tables.quantiles("income ~ arm", data, noise=SimulatedNoise(1), **call).to_frame()
    table = one.to_frame()
    for row, of in (("income: median", "0.5"), ("income: median | arm=A", "arm=A, 0.5")):
        low, high = table.loc[row, ["ci_low", "ci_high"]]
        # a third of the budget, to whole bins
        assert high - low < 2 * (whole.loc[of, "ci_high"] - whole.loc[of, "ci_low"])
        assert low <= frame["income"][frame["arm"] == "A" if "arm" in row else slice(None)].median() <= high
        assert low <= table.loc[row, "estimate"] <= high
    assert "its width at the median: income 1" in " ".join(one.summary(verbose=True).split())


@pytest.mark.usefixtures("declared")
def test_an_sd_that_its_moments_hide_is_that_of_the_distribution() -> None:
    frame = _wide(10_000, 2)
    call: dict[str, Any] = {"inference": "population", "privacy": cf.GDP(0.4), "ledger": None}
    found = cf.tables.table_one(
        "income + votes", cf.read(frame, WIDE), medians=("income",), noise=SimulatedNoise(1), **call
    )
    income, votes = (row for row in found.rows if isinstance(row, Numeric))
    # so in all of 400 releases, whose SDs have mean .92 and sd .03
    assert income.binned.all() and not votes.binned.any()
    # farther out than records are seen there are some 20 of 10,000
    assert 0.8 < income.sd[0] / frame["income"].std() < 1.1
    said = " ".join(found.summary(verbose=True).split())
    assert np.isnan(votes.sd[0]) and re.search(r"votes, mean \(SD\) [\d,.]+ \(n/a\)", said)
    assert "medians of votes would tell them" in said
    assert "of income from the distribution where the noise is larger" in said


@pytest.mark.parametrize("named", ["starts of income", "starts"])
def test_bins_that_no_release_has_are_refused(named: str) -> None:
    method = TableOne("income ~ arm", medians=("income",))
    release = engine.release(method, cf.read(_wide(500, 3), WIDE), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    held = SimpleNamespace(public={named: np.arange(5)})
    about = method.about(WIDE).medians[0]
    with refuses(cf.errors.ReleaseError):
        list(about.read(held, 1.0, ()))  # type: ignore[arg-type]
    assert "starts of income" in release.public


@pytest.mark.parametrize(("n", "seed"), [(400, 1), (2_000, 2)])
def test_without_noise_the_sd_of_a_distribution_is_pandas(n: int, seed: int) -> None:
    frame = _wide(n, seed)
    result = cf.infer(
        cf.release(
            TableOne("income ~ arm", medians=("income",)),
            cf.read(frame, WIDE), cf.GDP(30.0), ledger=None, noise=ZeroNoise(),
        )
    )  # fmt: skip
    groups = result.rows[0].quartiles
    sds = [frame["income"].std(ddof=0), *frame.groupby("arm")["income"].std(ddof=0)]
    assert [group.sd for group in groups] == pytest.approx(sds, rel=0.03)


def test_a_group_without_records_has_no_reference() -> None:
    frame = _frame(200).assign(arm="A")
    found = TableOne("age + smoker ~ arm", medians=("age",)).reference(CodedFrame.of(frame, SCHEMA))
    told = {name for name, value in found.items() if np.isfinite(value)}
    assert {name for name in found if "B" not in name} == told
