"""EfficientPTRBayes: contract, audit, worst neighbours against alpha, replies, coverage, bad input."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
import confide.audit
from confide import registry
from confide.classification import EfficientPTRBayes
from confide.core import SAFETY_STEPS
from confide.errors import NoResult, PlanError
from confide.methods.classification.design import ClassDesign
from confide.methods.classification.efficient_ptr import ClassSafety, SafeMeans
from confide.methods.classification.sums import ClassRows
from confide.noise import SimulatedNoise
from confide.testing import check_method

SCHEMA = cf.Schema({"kind": cf.Categorical(["a", "b", "c"]), "x": cf.Numeric(-2, 3), "y": cf.Numeric(0, 10)})
OWN = ClassDesign.of("kind ~ x + y", SCHEMA)
ROWS = ClassRows(OWN, 1.0, 1)
B = 1 << 20


@pytest.fixture(autouse=True)
def registered() -> None:
    registry.register(EfficientPTRBayes)


def total(*classes: list[float]) -> np.ndarray:
    """Exact sums of records whose x lies at the given places of the ball (in units of R) and whose y in the middle."""
    sums = [v for own in classes for v in (round(sum(own) * B), 0)]
    return np.array([*sums, *(len(own) for own in classes)], dtype=object)


@pytest.mark.long
def test_contract_and_audit() -> None:
    method = EfficientPTRBayes("kind ~ x + y", least=5, gamma_plan=8)
    assert check_method(method, SCHEMA, privacy=cf.GDP(2.0, 1e-3), replications=20).ok
    found = cf.audit.audit(method, SCHEMA, privacy=cf.GDP(1.0, 1e-3), runs=1_000, seed=1)
    assert found.ok


@pytest.mark.parametrize(("least", "known"), [(3, 0.8333), (5, 0.5207), (20, 0.1381)])
def test_worst_neighbours_attain_the_bound_on_class_means(least: int, known: float) -> None:
    """A record turns from one end of class a to the other end of class b, all others standing opposite: R = 1, means alone."""
    means = SafeMeans(ROWS, least)
    rest = [-1.0] * (least - 1)
    safe = total([*rest, 1.0], [-1.0] * least, [0.0] * least)
    other = total(rest, [*[-1.0] * least, 1.0], [0.0] * least)
    before, after = (means.decode(means.of(t).astype(float))[1] * ROWS.steps / B for t in (safe, other))
    assert np.linalg.norm(before - after) == pytest.approx(known, abs=1e-4)
    moved = float(np.linalg.norm((means.of(safe) - means.of(other)).astype(float)))
    # the counts add what w has room for: all of alpha
    assert 0.9999 * means.moved < moved <= means.moved


def test_random_neighbours_never_go_beyond_the_bound() -> None:
    g = np.random.default_rng(3)
    for _ in range(400):
        least = int(g.integers(2, 8))
        means, safety = SafeMeans(ROWS, least), ClassSafety(ROWS, least)
        data = [list(g.choice([-1.0, 1.0, 0.3], least + int(g.integers(0, 3)))) for _ in range(3)]
        other = [list(own) for own in data]
        i, j = g.integers(0, 3, 2)
        other[i].pop(int(g.integers(len(other[i]))))
        other[j].append(float(g.choice([-1.0, 1.0])))
        one, two = total(*data), total(*other)
        assert abs(int(safety.of(one)[0]) - int(safety.of(two)[0])) <= SAFETY_STEPS
        assert int(safety.of(one)[0]) > 0
        assert float(np.linalg.norm((means.of(one) - means.of(two)).astype(float))) <= means.moved


def test_an_absent_class_has_no_safety_and_no_error() -> None:
    empty = total([1.0, 1.0], [], [0.5])
    assert ClassSafety(ROWS, 2).of(empty).tolist() == [0]
    assert np.isfinite(SafeMeans(ROWS, 2).of(empty).astype(float)).all()


def records(n: int, seed: int, shares: tuple[float, ...] = (0.5, 0.3, 0.2)) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    kind = g.choice(3, n, p=shares)
    x = np.array([-1.0, 0.5, 2.0])[kind] + 0.3 * g.standard_normal(n)
    y = np.array([2.0, 7.0, 5.0])[kind] + g.standard_normal(n)
    return pd.DataFrame({"kind": np.array(["a", "b", "c"])[kind], "x": x, "y": y})


def released(method: EfficientPTRBayes, frame: pd.DataFrame, seed: int) -> cf.Release:
    asked = cf.ApproxDP(1.5, 0.01, relation="substitute")
    return cf.release(method, cf.read(frame, SCHEMA), asked, n=len(frame), ledger=None, noise=SimulatedNoise(seed))


def test_no_reply_where_a_class_is_small_and_it_is_a_result() -> None:
    method = EfficientPTRBayes("kind ~ x + y", c0=0.1)
    release = released(method, records(2_000, 1, (0.7, 0.28, 0.02)), 1)
    assert release.status == "declined" and not release.statistics
    found = method.infer(cf.Release.from_json(release.to_json()))
    assert found.status == "declined" and found.estimates.shape == (9,) and np.isnan(found.estimates).all()
    assert "declined" in found.summary() and found.plot() is not None and found.to_json()
    for call in (found.predict, found.predict_proba):
        with refuses(NoResult):
            call(records(3, 1))


def test_coverage_given_a_reply_and_a_naive_interval_that_fails() -> None:
    method = EfficientPTRBayes("kind ~ x + y", c0=0.1)
    truth = np.array([0.5, 0.3, 0.2, -1.0, 0.5, 2.0, 2.0, 7.0, 5.0])
    hits, naive = [], []
    for seed in range(40):
        found = method.infer(released(method, records(2_000, seed), seed))
        assert found.status == "valid" and set(found.flags) <= {"noise_dominates"}
        limits = found.conf_int().to_numpy()
        hits.append(((limits[:, 0] <= truth) & (truth <= limits[:, 1])).mean())
        half = 1.96 * np.sqrt(np.maximum(np.diag(found.covariance) - found.noise_variance, 0.0))
        naive.append((np.abs(found.estimates - truth) <= half)[3:].mean())
    error = np.std(hits) / sqrt(40)
    assert np.mean(hits) + 3.3 * error >= 0.95 and np.mean(hits) - 3.3 * error <= 0.985
    assert np.mean(naive) + 3.3 * np.std(naive) / sqrt(40) < 0.8


def test_a_reply_that_is_not_planned_for_is_flagged() -> None:
    method = EfficientPTRBayes("kind ~ x + y", least=100, gamma_plan=3)
    plan = method.plan(SCHEMA, cf.ApproxDP(0.5, 0.01))
    assert plan.constants["planned reply"] < 0.5
    assert any("gamma_plan is small" in text for text in plan.warnings)
    release = released(method, records(5_000, 1), 1)
    assert method.infer(release).flags[0] == "conditional_on_reply"


def test_the_plan_says_how_many_records_a_reply_needs_and_that_many_are_enough() -> None:
    asked = cf.ApproxDP(1.0, 1e-6)
    for n in (None, 6_000):
        plan = EfficientPTRBayes("kind ~ x", **({"least": 601} if n is None else {"c0": 0.1})).plan(SCHEMA, asked, n=n)
        assert plan.constants["least"] == 601 and plan.constants["records for a reply"] == 1_051
        assert "replies with probability 0.999 if the smallest class has at least 1,051 records" in " ".join(
            plan.summary().split()
        )
    warned = EfficientPTRBayes("kind ~ x", c0=0.1, gamma_plan=3).plan(SCHEMA, cf.ApproxDP(0.02, 1e-9), n=300)
    assert warned.constants["planned reply"] < 0.5 and "which 300 records cannot have" in warned.intervals_for
    # L = 30: from 30 - 1 + 22.5 records on, nearly always; at L itself, hardly ever
    method = EfficientPTRBayes("kind ~ x", least=30, gamma_plan=22.5)
    asked = cf.ApproxDP(1.5, 0.01)
    enough = method.plan(SCHEMA, asked).constants["records for a reply"]
    for size, low, high in ((enough, 0.98, 1.0), (30, 0.0, 0.06)):
        frame = pd.DataFrame({"kind": list("abc") * size, "x": 0.5, "y": 5.0})
        replies = []
        for seed in range(200):
            noise = SimulatedNoise(seed)
            replies.append(
                cf.release(method, cf.read(frame, SCHEMA), asked, ledger=None, noise=noise).status == "released"
            )
        assert low <= np.mean(replies) <= high


def test_a_plan_that_can_hardly_reply_is_refused_with_a_setting_that_works() -> None:
    asked = cf.ApproxDP(1.0, 1e-6)
    with refuses(PlanError) as caught:
        EfficientPTRBayes("kind ~ x", c0=0.3).plan(SCHEMA, asked, n=6_000)
    assert "half of the least share" in str(caught.value) and "c0=0.19 at most" in str(caught.value)
    for method, said in (
        (EfficientPTRBayes("kind ~ x", least=2_000), "least="),
        (EfficientPTRBayes("kind ~ x", c0=0.1, gamma_plan=1_600), "c0="),
        (EfficientPTRBayes("kind ~ x", c0=0.3), "c0="),
    ):
        with refuses(PlanError) as caught:
            method.plan(SCHEMA, asked, n=6_000)
        value = str(caught.value).split(said)[1].split(" ")[0]
        works = {"least": int(value)} if said == "least=" else {"c0": float(value)}
        plan = EfficientPTRBayes("kind ~ x", **works, gamma_plan=method.gamma_plan).plan(SCHEMA, asked, n=6_000)
        assert plan.constants["records for a reply"] <= 2_001
    with refuses(PlanError):
        EfficientPTRBayes("kind ~ x", least=5, gamma_plan=100).plan(SCHEMA, asked, n=40)


@pytest.mark.parametrize(
    "parameters",
    [
        {"c0": 0.1, "least": 10},
        {"c0": 0.0},
        {"c0": -0.1},
        {"c0": 0.5},
        {"least": 1},
        {"least": 2.5},
        {"c0": 0.1, "gamma_plan": 1},
        {"c0": 0.1, "beta": 0.0},
        {"c0": 0.1, "beta": 1.0},
        {"c0": 0.1, "radius": 0.0},
    ],
)
def test_bad_settings_are_refused(parameters: dict) -> None:
    with refuses(PlanError):
        EfficientPTRBayes("kind ~ x", **parameters)


def test_bad_plans_are_refused() -> None:
    asked = cf.ApproxDP(1.0, 1e-6)
    with refuses(PlanError):
        EfficientPTRBayes("kind ~ x", c0=0.34).plan(SCHEMA, asked, n=100)
    with refuses(PlanError):
        EfficientPTRBayes("kind ~ x", c0=0.1).plan(SCHEMA, asked)
    with refuses(PlanError):
        EfficientPTRBayes("kind ~ x", c0=0.01).plan(SCHEMA, asked, n=50)
    with refuses(cf.errors.PrivacyError):
        EfficientPTRBayes("kind ~ x", c0=0.1).plan(SCHEMA, cf.GDP(1.0), n=500)
    with refuses(cf.errors.PrivacyError):
        EfficientPTRBayes("kind ~ x", c0=0.1).plan(SCHEMA, cf.ApproxDP(1.0, 1e-6, relation="add-remove"), n=500)
    warned = EfficientPTRBayes("kind ~ x", c0=0.1).plan(SCHEMA, cf.ApproxDP(1.0, 0.1), n=500).notes
    assert any("above 1/n" in text for text in warned)
