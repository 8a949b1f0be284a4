"""ClassMeans and what all classifiers share: contract, audit, exactness, sensitivity, coverage, predictions, bad input."""

from __future__ import annotations

import json
from html import unescape
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

import confide as cf
import confide.audit
from confide import registry
from confide.classification import ClassMeans
from confide.core import Total
from confide.errors import NoResult, PlanError
from confide.methods.classification.design import ClassDesign
from confide.methods.classification.sums import ClassRows, ClassTotal, SquareRows
from confide.noise import SimulatedNoise
from confide.results.classes import ClassModel
from confide.testing import ZeroNoise, check_method, codes_of
from confide_lab.methods import NaiveBayes

SCHEMA = cf.Schema({"kind": cf.Categorical(["a", "b", "c"]), "x": cf.Numeric(-2, 3), "y": cf.Numeric(0, 10)})
SUBSTITUTE = cf.GDP(1.0, relation="substitute")


@pytest.fixture(autouse=True)
def registered() -> None:
    registry.register(ClassMeans)


def records(n: int, seed: int, shares: tuple[float, ...] = (0.5, 0.3, 0.2)) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    kind = g.choice(3, n, p=shares)
    x = np.array([-1.0, 0.5, 2.0])[kind] + 0.3 * g.standard_normal(n)
    y = np.array([2.0, 7.0, 5.0])[kind] + g.standard_normal(n)
    return pd.DataFrame({"kind": np.array(["a", "b", "c"])[kind], "x": x, "y": y})


def fitted(method: ClassMeans, frame: pd.DataFrame, mu: float = 1.0, seed: int = 1) -> ClassModel:
    noise = SimulatedNoise(seed)
    return method.infer(cf.release(method, cf.read(frame, SCHEMA), cf.GDP(mu), ledger=None, noise=noise))


@pytest.mark.long
@pytest.mark.parametrize("variance", ["per_feature", "per_class", "shared"])
def test_contract(variance: str) -> None:
    assert check_method(ClassMeans("kind ~ x + y", variance=variance), SCHEMA, privacy=cf.GDP(2.0), replications=25).ok


@pytest.mark.long
def test_contract_with_factors_groups_and_imputation() -> None:
    schema = cf.Schema(
        {
            "kind": cf.Categorical(["a", "b"], on_missing="b"),
            "r": cf.Categorical(["N", "S", "W"], on_missing="N"),
            "k": cf.Integer(0, 9, on_missing="midpoint"),
        },
        rows_per_unit=2,
    )
    assert check_method(ClassMeans("kind ~ r + k + log1p(k)"), schema, privacy=cf.GDP(3.0), replications=10).ok


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("radius", [None, 0.7])
def test_audit_finds_the_sensitivity_attained_and_never_exceeded(radius: float | None) -> None:
    found = cf.audit.audit(ClassMeans("kind ~ x + y", radius=radius), SCHEMA, runs=2_000, seed=1)
    assert found.ok
    exact = {(f.name, f.relation): f.lower_bound for f in found if f.attack == "exact difference"}
    for relation in ("add-remove", "substitute"):
        # rounding leaves a few steps of 2^20; a hundredth is for clipped and unread values
        assert 0.9999 * sqrt(0.8 * 0.99) < exact["class_means sums", relation] <= sqrt(0.8 * 0.99)


place = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 4), st.floats(0.2, 3.0), st.data())
def test_no_pair_of_records_goes_beyond_the_sensitivity(p: int, radius: float, data: st.DataObject) -> None:
    schema = cf.Schema({"kind": cf.Categorical(["a", "b", "c"]), **{f"x{j}": cf.Numeric(0, 1) for j in range(p)}})
    own = ClassDesign.of("kind ~ " + " + ".join(f"x{j}" for j in range(p)), schema)
    row = st.tuples(st.sampled_from(["a", "b", "c", None]), *[place] * p)
    frame = pd.DataFrame(data.draw(st.lists(row, min_size=2, max_size=5)), columns=list(schema.names))
    for share in (1 << 20, 1 << 19):
        rows = ClassRows(own, radius, share)
        squares = SquareRows(own, min(radius, sqrt(p)))
        for statistic in (ClassTotal(rows), Total(squares, nonnegative=True)):
            m = statistic.map(codes_of(cf.read(frame, schema), statistic.map)).astype(object)
            assert max((m * m).sum(axis=0)) <= statistic.sensitivity_squared("add-remove")
            gaps = ((m[:, :, None] - m[:, None, :]) ** 2).sum(axis=0)
            assert gaps.max() <= statistic.sensitivity_squared("substitute")


def test_counts_ride_for_free_under_substitute_and_cost_a_quarter_under_add_remove() -> None:
    own = ClassDesign.of("kind ~ x + y", SCHEMA)
    assert ClassTotal(ClassRows(own, 1.0, 1 << 20)).sensitivity_squared("substitute") == (2 << 20) ** 2
    assert ClassTotal(ClassRows(own, 1.0, 1 << 19)).sensitivity_squared("add-remove") * 4 == 5 << 40
    plan = ClassMeans("kind ~ x + y", variance="identity", radius=1.0).plan(SCHEMA, SUBSTITUTE, n=100)
    spend = plan.spend("sums")
    assert spend.sensitivity * spend.step == 2 << 20


def test_without_noise_it_is_the_plain_classifier() -> None:
    frame = records(3_000, 1)
    method = ClassMeans("kind ~ x + y", variance="per_class")
    found = method.infer(cf.release(method, cf.read(frame, SCHEMA), cf.GDP(1e5), ledger=None, noise=ZeroNoise()))
    groups = frame.assign(x=frame["x"].clip(-2, 3), y=frame["y"].clip(0, 10)).groupby("kind")[["x", "y"]]
    np.testing.assert_allclose(found.means, groups.mean(), rtol=1e-5)
    np.testing.assert_allclose(found.spreads, groups.var(ddof=0), rtol=1e-3)
    np.testing.assert_allclose(found.proportions, frame["kind"].value_counts(normalize=True).sort_index())
    se = np.sqrt(groups.var(ddof=0)["x"] / groups.size())
    np.testing.assert_allclose(found.bse[[f"x | {k}" for k in "abc"]], se, rtol=0.01)


def test_coverage_of_intervals_and_a_naive_one_that_fails() -> None:
    """Small classes and a small budget: 40 runs of 3 shares and 6 means; 99.9 % bounds, clustered by run."""
    hits, naive = [], []
    truth = np.array([0.5, 0.3, 0.2, -1.0, 0.5, 2.0, 2.0, 7.0, 5.0])
    for seed in range(40):
        found = fitted(ClassMeans("kind ~ x + y"), records(1_500, seed), mu=0.4, seed=seed)
        assert found.status == "valid"
        limits = found.conf_int().to_numpy()
        hits.append(((limits[:, 0] <= truth) & (truth <= limits[:, 1])).mean())
        half = 1.96 * np.sqrt(np.maximum(np.diag(found.covariance) - found.noise_variance, 0.0))
        naive.append((np.abs(found.estimates - truth) <= half)[3:].mean())
    error = np.std(hits) / sqrt(40)
    assert np.mean(hits) + 3.3 * error >= 0.95 and np.mean(hits) - 3.3 * error <= 0.985
    assert np.mean(naive) + 3.3 * np.std(naive) / sqrt(40) < 0.9


def test_predictions_are_the_gaussian_rule_and_ties_go_to_the_first_class() -> None:
    found = fitted(ClassMeans("kind ~ x + y"), records(4_000, 3), mu=3.0)
    frame = records(500, 9)
    assert (found.predict(frame) == frame["kind"]).mean() > 0.95
    share = found.predict_proba(frame)
    assert list(share) == ["a", "b", "c"] and np.allclose(share.sum(axis=1), 1)
    by_array = found.predict_proba(frame[["x", "y"]].to_numpy())
    assert by_array.equals(share) and found.predict_proba({"x": frame["x"], "y": frame["y"]}).equals(share)
    x = np.clip(frame[["x", "y"]].to_numpy(), [-2, 0], [3, 10])
    gap = (x[:, None, :] - found.centres) ** 2 / (2 * found.spreads) + np.log(found.spreads) / 2
    score = np.log(found.shares) - gap.sum(axis=2)
    np.testing.assert_array_equal(found.predict(frame), np.array(["a", "b", "c"])[score.argmax(axis=1)])
    from dataclasses import replace

    alike = replace(found, shares=np.full(3, 1 / 3), centres=np.zeros((3, 2)), spreads=np.ones((3, 2)))
    assert set(alike.predict(frame)) == {"a"}
    missing = found.predict(pd.DataFrame({"x": [0.0, np.nan], "y": [5.0, 5.0]}))
    assert missing[0] in "abc" and missing[1] is None
    with refuses(PlanError):
        found.predict(np.zeros((2, 3)))


def test_the_result_prints_plots_and_reports(tmp_path: Path) -> None:
    found = fitted(ClassMeans("kind ~ x + y"), records(4_000, 3), mu=2.0)
    assert "P(a)" in found.summary() and "x | a" in found.summary()
    body = json.loads(found.to_json())
    assert body["family"] == "classes" and body["classes"] == ["a", "b", "c"] and body["features"] == ["x", "y"]
    axes = found.plot()
    assert [text.get_text().split("\n")[0] for text in axes.get_yticklabels()] == ["x", "y"]
    found.plot(names=["x | a", "x | b"]).figure.savefig(tmp_path / "two.png")
    assert "x | c" in found.report(tmp_path / "report.html").read_text()


def test_the_report_reads_its_own_plot_and_the_legend_has_the_rule_of_each_column(tmp_path: Path) -> None:
    schema = cf.Schema(
        {
            "kind": cf.Categorical(["a", "b", "c"], on_missing="b"),
            "x": cf.Numeric(-2, 3, on_missing="midpoint"),
            "y": cf.Numeric(0, 10, on_missing=4.5),
        }
    )
    for method, privacy in ((ClassMeans("kind ~ x + y"), cf.GDP(2.0)), (NaiveBayes("kind ~ x + y"), cf.PureDP(2.0))):
        registry.register(type(method))
        noise = SimulatedNoise(1)
        release = cf.release(method, cf.read(records(4_000, 3), schema), privacy, ledger=None, noise=noise)
        found = method.infer(release)
        rules = (
            "a missing x counts as the midpoint of its bounds; a missing y counts as 4.5; a missing kind counts as the level 'b'; "
            "a label that is not declared counts as missing"
        )
        assert found.status == "valid" and dict(found.legend)["Missing"] == rules
        page = unescape(found.report(tmp_path / "report.html").read_text())
        assert rules in page and "a missing x counts as the midpoint" in " ".join(found.summary(verbose=True).split())
        assert "Thick bars" not in page and "line of the plot" not in page
        assert "Points: class means of each feature." in page and "is beside its name" in page
        assert ("For example, the estimate for P(a)" in page) == found.has_intervals
        assert ("Whiskers: 95% confidence intervals." in page) == found.has_intervals == bool(found.plot().containers)
    dropped = fitted(ClassMeans("kind ~ x + y"), records(4_000, 3))
    assert dict(dropped.legend)["Missing"].startswith("records with missing x, y or kind are excluded; a label")


def test_without_any_listed_label_the_result_says_so_and_shares_are_shares() -> None:
    frame = records(2_000, 3).assign(kind="nobody")
    for seed in range(30):
        found = fitted(ClassMeans("kind ~ x + y"), frame, seed=seed)
        assert found.status == "imprecise" and "undeclared labels" in " ".join(found.summary().split())
        assert found.flags == ("few_complete_records",)
        assert ((found.params[:3] >= 0) & (found.params[:3] <= 1)).all()
    assert not fitted(ClassMeans("kind ~ x + y"), records(300, 3, (0.9, 0.08, 0.02)), mu=0.5).flags


def test_tests_within_a_class_are_refused_because_their_covariance_is_not_known() -> None:
    found = fitted(ClassMeans("kind ~ x + y"), records(4_000, 3), mu=2.0)
    assert found.wald_test([[0, 0, 0, 1, -1, 0, 0, 0, 0]]).pvalue < 1e-6
    with refuses(PlanError):
        found.wald_test([[0, 0, 0, 1, 0, 0, -1, 0, 0]])
    assert np.isnan(found.cov_params().loc["x | a", "y | a"]) and found.cov_params().loc["x | a", "y | b"] == 0


def test_small_classes_are_weak_and_have_no_interval() -> None:
    found = fitted(ClassMeans("kind ~ x + y"), records(300, 3, (0.9, 0.08, 0.02)), mu=0.5)
    assert found.status == "imprecise" and found.conf_int().isna().all().all()
    assert np.isfinite(found.predict_proba(records(5, 1))).all().all()


def test_an_integer_column_is_a_class_too() -> None:
    schema = cf.Schema({"won": cf.Integer(0, 1), "x": cf.Numeric(0, 1)})
    own = ClassDesign.of("`won` ~ x", schema)
    assert own.classes == ("0", "1") and own.features == ("x",)


@pytest.mark.parametrize(
    "formula",
    [
        "x ~ y",
        "kind ~ 1",
        "kind",
        "nobody ~ x",
        "kind ~ kind",
    ],
)
def test_formulas_that_cannot_work_are_refused(formula: str) -> None:
    with refuses(PlanError):
        ClassMeans(formula).plan(SCHEMA, cf.GDP(1.0))


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), float("inf"), True, "8"])
def test_an_impossible_radius_is_refused(radius: object) -> None:
    with refuses(PlanError):
        ClassMeans("kind ~ x", radius=radius)  # type: ignore[arg-type]


def test_other_bad_settings_are_refused() -> None:
    with refuses(PlanError):
        ClassMeans("kind ~ x", variance="full")
    with pytest.raises(cf.errors.NoConversion):
        cf.plan(ClassMeans("kind ~ x"), SCHEMA, cf.PureDP(1.0))
    with pytest.raises(NoResult):
        ClassModel.predict(fitted_nothing(), records(3, 1))


def fitted_nothing() -> ClassModel:
    from confide.methods.classification.reading import silent

    method = ClassMeans("kind ~ x")
    release = cf.release(method, cf.read(records(50, 1), SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    return silent(method, release, ClassDesign.of("kind ~ x", SCHEMA), target="-", intervals_for="-", flags=())
