"""Tests on released tables: the numbers of scipy without noise, sizes with noise where naive use of scipy fails, bad input."""

from __future__ import annotations

from dataclasses import fields
from math import isnan

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses

import confide as cf
from confide import registry
from confide.core import ResultOptions, seal
from confide.errors import PlanError
from confide.methods.regression.least_squares.correlation import Correlation
from confide.methods.regression.least_squares.reading import LeastSquaresReading
from confide.methods.tables.counts import Counts, CountTable, Shares
from confide.methods.tables.means import Means
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method

pytestmark = pytest.mark.usefixtures("declared")

SCHEMA = cf.Schema(
    {
        "region": cf.Categorical(["N", "S", "W"], on_missing="N"),
        "smoker": cf.Categorical(["no", "yes"], on_missing="no"),
        "sex": cf.Categorical(["f", "m"]),
        "x": cf.Numeric(-4, 4),
        "y": cf.Numeric(-4, 4),
    }
)


@pytest.fixture(autouse=True)
def registered() -> None:
    for method in (Counts, Means, Shares, Correlation):
        registry.register(method)


def records(n: int, seed: int) -> pd.DataFrame:
    """Columns that have nothing to do with each other, but x and y."""
    g = np.random.default_rng(seed)
    x = g.normal(0, 1, n)
    return pd.DataFrame(
        {
            "region": g.choice(["N", "S", "W"], n, p=[0.5, 0.3, 0.2]),
            "smoker": g.choice(["no", "yes"], n, p=[0.7, 0.3]),
            "sex": g.choice(["f", "m"], n),
            "x": x,
            "y": np.clip(0.6 * x + 0.8 * g.normal(0, 1, n), -4, 4),
        }
    )


def table(method: object, frame: pd.DataFrame, mu: float, seed: int | None) -> object:
    noise = ZeroNoise() if seed is None else SimulatedNoise(seed)
    plan = method.plan(SCHEMA, cf.GDP(mu))
    return method.infer(seal(method, cf.read(frame, SCHEMA), plan, noise))


def test_without_noise_they_are_scipys() -> None:
    frame = records(900, 1)
    counts = table(Counts("region * smoker * sex", inference="population"), frame, 1e4, None)
    wide = pd.crosstab(frame.smoker, frame.region)
    expected = stats.chi2_contingency(wide, correction=False)
    found = counts.test("independence", "smoker", "region")
    assert (found.statistics[0], found.pvalue) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-5)
    assert counts.test("independence", "region", "smoker").pvalue == pytest.approx(found.pvalue, rel=1e-9)
    given = [pd.crosstab(own.smoker, own.region) for _, own in frame.groupby("sex")]
    total = sum(stats.chi2_contingency(own, correction=False).statistic for own in given)
    assert counts.test("independence", "smoker", "region", given="sex").statistics[0] == pytest.approx(total, rel=1e-5)
    shares = [0.5, 0.3, 0.2]
    expected = stats.chisquare(frame.region.value_counts()[["N", "S", "W"]], f_exp=900 * np.array(shares))
    assert counts.test("fit", "region", expected=shares).statistics[0] == pytest.approx(expected.statistic, rel=1e-5)
    means = table(Means("x ~ sex", inference="population"), frame, 1e4, None).test("t")
    welch = stats.ttest_ind(*(own.x for _, own in frame.groupby("sex")), equal_var=False)
    assert means.statistics[0] == pytest.approx(welch.statistic, abs=0.01)
    assert means.pvalue == pytest.approx(welch.pvalue, abs=0.04)
    paired = table(Means("y - x ~ 1", inference="population"), frame, 1e4, None).test("mean")
    assert paired.statistics[0] == pytest.approx(stats.ttest_rel(frame.y, frame.x).statistic, rel=0.01)
    several = table(Means("x ~ region", inference="population"), frame, 1e4, None).test("f")
    assert several.pvalue == pytest.approx(
        stats.f_oneway(*(own.x for _, own in frame.groupby("region"))).pvalue, abs=0.1
    )
    r = table(Correlation("x + y"), frame, 1e4, None)
    assert r.params.iloc[0] == pytest.approx(np.corrcoef(frame.x, frame.y)[0, 1], abs=1e-4)


def test_the_test_of_a_correlation_is_that_of_the_slope() -> None:
    """Wide bounds, 40 sds of y: no moment of order four stands above its noise there, and the slope is seen in every release."""
    schema = cf.Schema({"x": cf.Numeric(-4, 4), "y": cf.Numeric(-40, 40)})
    for seed in range(10):
        g = np.random.default_rng([seed, 3])
        x = g.normal(size=4_000)
        frame = pd.DataFrame({"x": x, "y": -0.4 * x + 0.9 * g.normal(size=4_000)})
        release = cf.release(
            Correlation("x + y"), cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed)
        )
        found = cf.infer(release)
        own = Correlation("x + y").about(schema).way.design
        line = LeastSquaresReading(release, ResultOptions(), own, [0]).table()
        assert found.status == "valid" and found.statistic == "t" and found.pvalue < 0.001
        assert (found.statistics[0], found.pvalue) == (line.tvalues["x"], line.pvalues["x"])
        low, high = found.conf_int().iloc[0]
        assert low <= found.params.iloc[0] <= high < 0


def test_one_proportion_is_exact_where_the_number_of_records_is_public() -> None:
    frame = records(300, 2)
    method, privacy = Counts("smoker", inference="population"), cf.GDP(50.0, relation="substitute")
    release = cf.release(method, cf.read(frame, SCHEMA), privacy, ledger=None, n=300, noise=SimulatedNoise(1))
    found = cf.infer(release).test("proportion", "smoker", p=0.25, alternative="greater")
    yes = int((frame.smoker == "yes").sum())
    # hardly any noise: between the tails with and without the value itself
    assert stats.binom.sf(yes, 300, 0.25) <= found.pvalue <= stats.binom.sf(yes - 1, 300, 0.25)
    assert found.null.startswith("exact")


def sizes(mu: float, n: int, runs: int) -> dict[str, float]:
    """Shares of p-values below 5 % under the null, and of scipy's on the noisy counts."""
    method = Counts("region * smoker", inference="population")
    hits = {"own": 0, "naive": 0}
    for seed in range(runs):
        found = table(method, records(n, 100 + seed), mu, seed)
        hits["own"] += found.test("independence").pvalue < 0.05
        noisy = np.maximum(found.margins.table((0, 1))[0], 0.5)
        hits["naive"] += stats.chi2_contingency(noisy, correction=False).pvalue < 0.05
    return {name: count / runs for name, count in hits.items()}


def test_sizes_hold_where_scipy_on_noisy_counts_fails() -> None:
    found = sizes(mu=0.2, n=300, runs=150)
    assert stats.binomtest(round(found["own"] * 150), 150).proportion_ci(0.999).low <= 0.07
    assert found["naive"] > 0.15


def test_small_tables_are_referred_to_simulated_ones() -> None:
    found = table(Counts("region * smoker", inference="population"), records(40, 3), 1.0, 1).test("independence")
    assert found.null.startswith("simulated")
    assert 0 < found.pvalue <= 1


def test_too_few_records_give_no_p_value() -> None:
    counts = table(Counts("region * smoker", inference="population"), records(5, 1), 0.01, 1)
    for found in (counts.test("independence"), counts.test("fit", "region"), counts.test("trend", "smoker", "region")):
        assert found.status == "imprecise"
        assert isnan(found.pvalue)
    assert table(Correlation("x + y"), records(5, 1), 0.01, 1).status == "imprecise"
    assert table(Means("x ~ sex", inference="population"), records(5, 1), 0.01, 1).test("t").status == "imprecise"


def test_trend_sees_a_dose() -> None:
    g = np.random.default_rng(4)
    frame = records(3_000, 5)
    dose = frame.region.map({"N": 0, "S": 1, "W": 2}).to_numpy()
    frame["smoker"] = np.where(g.random(3_000) < 0.2 + 0.06 * dose, "yes", "no")
    counts = table(Counts("smoker:region", inference="population"), frame, 1.0, 1)
    found = counts.test("trend", "smoker", "region")
    assert found.pvalue < 0.01
    assert found.statistics[0] > 0
    assert counts.test("trend", "smoker", "region", level="no").statistics[0] == pytest.approx(
        -found.statistics[0], rel=1e-6
    )


@pytest.mark.long
def test_contract_of_the_correlation() -> None:
    schema = cf.Schema({"x": cf.Numeric(-4, 4), "y": cf.Numeric(0, 9)})
    assert check_method(Correlation("x + log1p(y)"), schema, replications=20).ok


def test_correlations_cover_where_fishers_interval_without_noise_does_not() -> None:
    truth, hits, naive, runs = 0.6, 0, 0, 120
    for seed in range(runs):
        found = table(Correlation("x + y"), records(400, 500 + seed), 0.8, seed)
        limits = found.conf_int().to_numpy()[0]
        hits += limits[0] <= truth <= limits[1]
        naive += abs(np.arctanh(found.params.iloc[0]) - np.arctanh(truth)) <= 1.96 / np.sqrt(397)
    assert stats.binomtest(hits, runs).proportion_ci(0.999).high >= 0.95
    assert naive / runs < 0.85


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.test("wilcoxon", "region"),
        lambda t: t.test("fit", "region", expected=[1.0]),
        lambda t: t.test("fit", "region", expected={"N": 1.0}),
        lambda t: t.test("proportion", "smoker", p=1.5),
        lambda t: t.test("proportion", "smoker", p=0.5, level="maybe"),
        lambda t: t.test("trend", "smoker", "region", scores=[1]),
        lambda t: t.test("independence", "smoker", "sex"),
        lambda t: t.test("t", "smoker"),
    ],
)
def test_a_test_that_cannot_be_answered_is_named(ask: object) -> None:
    counts = table(Counts("region * smoker", inference="population"), records(200, 1), 1.0, 1)
    with refuses(PlanError):
        ask(counts)


def test_means_that_cannot_answer_name_their_own_columns() -> None:
    means = table(Means("x + y ~ region * smoker", inference="population"), records(200, 1), 1.0, 1)
    for ask in (lambda: means.test("t"), lambda: means.test("anova", "region")):
        with refuses(PlanError) as refused:
            ask()
        assert "'sex'" not in str(refused.value) and "(its attributes: region, smoker)" in str(refused.value)


def test_means_asked_for_a_test_of_two_columns_say_what_they_answer() -> None:
    source = cf.read(SCHEMA.sample(500, seed=1), SCHEMA)
    means = cf.tables.means("x ~ region", source, inference="population", privacy=cf.GDP(1.0), ledger=None)
    for asked in (("independence", "region", "smoker"), ("t", "region", "smoker")):
        with refuses(PlanError):
            means.test(*asked)


def test_shares_answer_the_tests_of_the_counts_behind_them() -> None:
    shares = table(Shares("region * smoker", within="region", inference="dataset"), records(300, 1), 1.0, 1)
    own = {field.name: getattr(shares, field.name) for field in fields(shares) if field.name != "within"}
    counts = CountTable(**own)
    for kind, names, given in (
        ("independence", ("region", "smoker"), {}),
        ("fit", ("region",), {}),
        ("trend", ("smoker", "region"), {}),
        ("proportion", ("smoker",), {"p": 0.3}),
    ):
        found = shares.test(kind, *names, **given)
        assert found.pvalue == counts.test(kind, *names, **given).pvalue and found.status == "valid"


def test_one_calls_refuse_what_they_cannot_read() -> None:
    data = cf.read(records(50, 1), SCHEMA)
    common = {"privacy": cf.GDP(1.0), "ledger": None}
    for call in (
        lambda: cf.tests.ttest_ind("x", data, **common),
        lambda: cf.tests.ttest_ind("x ~ region", data, **common),
        lambda: cf.tests.chi2_contingency("region", data, **common),
        lambda: cf.tests.pearsonr("x", data, **common),
        lambda: cf.tests.ttest_ind("x ~ sex", data, privacy=cf.GDP(1.0)),
    ):
        with refuses(PlanError):
            call()


def test_a_mean_with_too_few_records_for_its_skewness_makes_its_test_weak() -> None:
    g = np.random.default_rng(5)
    schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "y": cf.Numeric(0, 100)})
    frame = pd.DataFrame({"sex": np.repeat(["f", "m"], 60), "y": np.where(g.random(120) < 0.03, 90.0, 1.0)})
    for column, status in (("y", "imprecise"), ("even", "valid")):
        shown = frame if column == "y" else frame.assign(y=g.uniform(0, 100, 120))
        release = cf.release(
            cf.tables.Means("y ~ sex", inference="population"),
            cf.read(shown, schema),
            cf.GDP(10.0),
            ledger=None,
            noise=SimulatedNoise(3),
        )
        assert cf.infer(release).test("t").status == status


def test_p_values_say_what_the_intervals_say() -> None:
    g = np.random.default_rng(5)
    agree = 0
    for seed in range(40):
        frame = records(300, seed)
        frame["x"] = np.clip(-4 + g.gamma(1.0, 1.0, 300) + 0.5 * (frame.sex == "m"), -4, 4)
        found = table(Means("x ~ sex", inference="population"), frame, 1.0, seed).test("t")
        for alpha in (0.05, 0.2):
            low, high = found.limits(alpha)
            assert (float(low[0]) <= 0 <= float(high[0])) == (found.pvalues[0] >= alpha) or isnan(found.pvalues[0])
        agree += not isnan(found.pvalues[0])
    assert agree >= 30
    one = table(Means("x ~ 1", inference="population"), records(300, 1), 1.0, 1)
    low, high = one.conf_int(0.05).loc["x"]
    assert one.test("mean", value=float(low) - 1e-6).pvalue < 0.05 < one.test("mean", value=float(low) + 1e-6).pvalue


def test_the_power_of_a_plan_is_that_of_its_test() -> None:
    n, mu, w = 600, 0.5, 0.16
    p = np.full((2, 3), 1 / 6) + w * np.outer([-1, 1], [-1, 0, 1]) / np.sqrt(4) / np.sqrt(6)
    assert ((p - 1 / 6) ** 2 * 6).sum() == pytest.approx(w**2)
    method, rejected, g = Counts("smoker:region", inference="population"), 0, np.random.default_rng(1)
    pairs = [(smoker, region) for smoker in ("no", "yes") for region in "NSW"]
    runs = 150
    for seed in range(runs):
        drawn = g.choice(6, n, p=p.ravel() / p.sum())
        frame = records(n, seed).assign(smoker=[pairs[k][0] for k in drawn], region=[pairs[k][1] for k in drawn])
        rejected += table(method, frame, mu, seed).test("independence").pvalue < 0.05
    plan = cf.tests.plan("chi2_contingency", "smoker * region", SCHEMA, cf.GDP(mu), n=n, effect=w)
    (note,) = (note for note in plan.notes if "power of" in note)
    said = float(note.partition("records: ")[2].partition("%")[0]) / 100
    # .1 is 2.7 standard deviations of 150 runs at one half
    assert rejected / runs == pytest.approx(said, abs=0.1)
    assert 0.3 < said < 0.95


@pytest.mark.parametrize("name", list(cf.tests.METHODS))
def test_every_plan_of_a_test_prints_its_power(name: str) -> None:
    formula = {
        "ttest_rel": "x - y",
        "wilcoxon": "x - y",
        "chi2_contingency": "smoker * region",
        "chisquare": "region",
        "binomtest": "smoker",
        "trend": "smoker ~ region",
        "pearsonr": "x + y",
    }.get(name, "x ~ sex")
    plan = cf.tests.plan(name, formula, SCHEMA, cf.GDP(1.0), n=500)
    assert any("power" in note and "500" in note for note in plan.notes)
    assert plan.n is None and "power" not in plan.to_json()


def test_a_power_needs_a_known_test_and_an_effect() -> None:
    for name, effect in (("ttest", None), ("trend", 0.0)):
        with refuses(PlanError):
            cf.tests.plan(name, "smoker ~ region", SCHEMA, cf.GDP(1.0), n=500, effect=effect)


@pytest.mark.parametrize("name", ["t", "f"])
def test_a_group_that_goes_without_saying_has_the_draws_of_its_name(name: str) -> None:
    """`confide test` leaves the group to the table and `confide infer --test` names it: one release, one p-value."""
    column = {"t": "sex", "f": "region"}[name]
    means = table(Means(f"x ~ {column}", inference="population"), records(600, 3), 0.5, 1)
    left_out, said = means.test(name), means.test(name, column)
    pd.testing.assert_frame_equal(left_out.to_frame(), said.to_frame())
