"""Advice from public facts: what it runs, what it says, and that it agrees with what was measured elsewhere."""

from __future__ import annotations

import json
from math import nan

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.advice import TASKS, Advice, Expectation, ranked
from confide.scenarios import Columns, scenario_frame
from confide.schema import CodedFrame
from tests.messages import refuses

SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(0, 1, typical=cf.Typical(0.1, 0.9, own=1.0)),
        "b": cf.Numeric(-5, 5, typical=cf.Typical(-4, 4, own=1.0)),
        "y": cf.Numeric(-1, 3, typical=cf.Typical(0, 2, own=0.5)),
    }
)
ASKED = cf.ApproxDP(1.0, 1e-6)


@pytest.mark.long
def test_it_ranks_what_it_ran_and_repeats() -> None:
    one = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 3_000, ASKED, replications=4)
    again = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 3_000, ASKED, replications=4)
    assert str(one) == str(again)
    ratios = [e.ratio for e in one.expectations]
    # the advised one first, then the others by their errors
    assert (
        one.best is one.expectations[0] and ratios[1:] == sorted(ratios[1:]) and min(ratios) == 1.0 and len(ratios) >= 5
    )
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["names"] == ["Intercept", "a", "b"]
    assert list(one.to_frame().columns[:4]) == ["ratio", "replies", "tested", "intervals"]
    assert {"coverage", "width"} <= set(one.to_frame().columns)
    # privacy never helps, and the rivals' order is the one that is measured on simulated data
    assert all(e > 0.8 * b for e, b in zip(one.best.error, one.without_privacy, strict=True))
    by_name = {e.method: e.ratio for e in one.expectations}
    assert by_name["least_squares"] < by_name["ssp"] < by_name["output_perturbation"]


@pytest.mark.long
def test_more_records_and_more_budget_bring_it_nearer_to_no_privacy() -> None:
    def best(n: int, privacy: cf.GDP) -> float:
        found = cf.advise("linear_regression", "y ~ a + b", SCHEMA, n, privacy, replications=12)
        error = next(e.error for e in found.expectations if e.method == "least_squares")
        return float(np.mean(np.array(error) / np.array(found.without_privacy)))

    few, many, rich = best(1_000, cf.GDP(0.5)), best(10_000, cf.GDP(0.5)), best(10_000, cf.GDP(5.0))
    assert few > 1.3 * many > 1.3 * rich


def test_public_records_are_drawn_again() -> None:
    generator = np.random.default_rng(1)
    a = generator.uniform(0, 0.1, 500)
    similar_data = pd.DataFrame(
        {"a": a, "b": generator.normal(0, 0.2, 500), "y": 1 + a + generator.normal(0, 0.1, 500)}
    )
    near = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 2_000, ASKED, similar_data=similar_data, replications=12)
    even = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 2_000, ASKED, replications=3)
    # a feature that hardly varies within its bounds is hard to learn of
    assert near.without_privacy[1] > 1.5 * even.without_privacy[1] and near.best.error[1] > near.without_privacy[1]
    assert "public rows given (500, fewer than n" in near.assumes


@pytest.mark.long
def test_what_is_predicted_of_the_first_is_what_it_does_on_records_alike() -> None:
    records = scenario_frame(SCHEMA, Columns(("a", "b"), ("y",)), 50_000, 11)
    found = cf.advise(
        "linear_regression", "y ~ a + b", SCHEMA, 4_000, cf.GDP(1.0), similar_data=records, replications=12
    )
    assert found.best.method == "least_squares" and found.best.intervals == 1.0 and not found.best.misses
    truth = cf.regression.LeastSquares("y ~ a + b").reference(CodedFrame.of(records, SCHEMA))
    errors = []
    # a root mean square of so many is known to a tenth
    for seed in range(48):
        sample = records.iloc[np.random.default_rng(seed).integers(0, len(records), 4_000)]
        noise = cf.noise.SimulatedNoise(100 + seed)
        done = cf.release(
            cf.regression.LeastSquares("y ~ a + b"), cf.read(sample, SCHEMA), cf.GDP(1.0), ledger=None, noise=noise
        )
        errors.append([cf.infer(done).params[name] - truth[name] for name in found.names])
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.array(found.best.error)
    assert 1 / 1.5 < np.exp(np.log(ratio).mean()) < 1.5


def test_no_intervals_are_promised_where_none_come() -> None:
    wide = cf.Schema({"a": cf.Numeric(0, 1e6, typical=(1, 100)), "y": cf.Numeric(0, 1e6, typical=(1, 100))})
    found = cf.advise("linear_regression", "y ~ a", wide, 300, cf.GDP(0.2), replications=4)
    assert found.best.intervals < 0.9 and not found.best.valid
    assert "gave intervals in" in str(found) or "gave no intervals" in str(found)


def test_intervals_that_miss_are_no_reason_to_take_a_method() -> None:
    def one(name: str, ratio: float, coverage: float) -> Expectation:
        return Expectation(name, "", (ratio,), ratio, 1.0, False, 1.0, coverage=coverage, trials=100, width=ratio)

    sharp, honest, silent = (
        one("sharp", 1.0, 0.7),
        one("honest", 1.5, 0.95),
        Expectation("silent", "", (0.5,), 0.5, 1.0, False, 0.0),
    )
    assert sharp.misses and not honest.misses and not silent.misses
    order = ranked([sharp, silent, honest])
    assert [each.method for each in order] == ["honest", "silent", "sharp"]
    assert one("unlucky", 1.0, 0.9).valid  # 90 of 100 may be chance


def test_a_method_with_a_test_comes_first_only_where_no_other_gives_numbers() -> None:
    def one(name: str, ratio: float, tested: bool, coverage: float = 0.95) -> Expectation:
        return Expectation(name, "", (ratio,), ratio, 1.0, tested, 1.0, coverage=coverage, trials=100, width=ratio)

    assert ranked([one("ptr", 1.0, True), one("plain", 2.5, False)])[0].method == "plain"
    assert ranked([one("ptr", 1.0, True), one("plain", 2.5, False, coverage=0.5)])[0].method == "ptr"
    refused = Expectation("plain", "", (np.nan,), np.inf, 0.0, False, 0.0, "no")
    assert ranked([refused, one("ptr", 1.0, True)])[0].method == "ptr"


def test_where_no_intervals_hold_none_are_recommended() -> None:
    def one(name: str, ratio: float, intervals: float, coverage: float) -> Expectation:
        trials = 100 if intervals else 0
        return Expectation(
            name,
            "",
            (ratio,),
            ratio,
            1.0,
            False,
            intervals,
            coverage=coverage,
            trials=trials,
            width=ratio if trials else nan,
        )

    misses, some, silent = one("misses", 1.0, 1.0, 0.29), one("some", 3.0, 0.5, 0.95), one("silent", 2.0, 0.0, nan)
    assert [each.method for each in ranked([misses, silent, some])] == ["some", "misses", "silent"]
    assert [each.method for each in ranked([misses, silent])] == ["silent", "misses"]
    said = " ".join(Advice("t", "f", 10, ASKED, ("x",), (0.5,), ranked([misses, silent]), "").sentences)
    assert "Take" not in said and "No method is expected to give valid intervals" in said
    assert "silent gave no intervals; misses gave them in 100%, which held in 29% of the cases only" in said
    said = " ".join(Advice("t", "f", 10, ASKED, ("x",), (0.5,), ranked([misses]), "").sentences)
    assert "Take" not in said and "held in 29% of 100 cases; do not report them" in said


def test_a_long_tailed_feature_in_wide_bounds_is_not_promised_intervals() -> None:
    generator = np.random.default_rng(3)
    x = np.minimum(generator.pareto(2.0, 20_000), 100)
    similar_data = pd.DataFrame({"x": x, "y": x + generator.normal(0, 3, 20_000)})
    schema = cf.Schema({"x": cf.Numeric(0, 100), "y": cf.Numeric(-10, 40)})
    found = cf.advise(
        "linear_regression", "y ~ x", schema, 2_000, cf.GDP(1.0), similar_data=similar_data, replications=6
    )
    # simulated intervals that hold, or none are said to
    assert not found.best.valid or found.best.coverage >= 0.8
    assert found.best.valid or "No method is expected to give valid intervals" in str(found)


def test_a_method_that_cannot_be_asked_says_why() -> None:
    found = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 2_000, cf.GDP(1.0), replications=2)
    problems = {e.method: e.problem for e in found.expectations}
    assert problems["least_squares"] == "" and found.best.problem == ""
    for name in {"efficient_ptr", "posterior_sampling"} & set(problems):
        assert problems[name]


@pytest.mark.parametrize(
    "words",
    [
        ("linear_regresion", "y ~ a", SCHEMA, 100, ASKED),
        ("linear_regression", "a", SCHEMA, 100, ASKED),
        ("linear_regression", "y ~ a", SCHEMA, 1, ASKED),
    ],
)
def test_mistakes_are_named(words: tuple) -> None:
    with refuses(cf.errors.PlanError):
        cf.advise(*words)
    with pytest.raises(cf.errors.PrivacyError):
        cf.advise("linear_regression", "y ~ a", SCHEMA, 100, 1.0)


def test_a_test_is_advised_against_where_sums_do_better() -> None:
    def one(name: str, ratio: float, tested: bool) -> Expectation:
        return Expectation(name, "", (ratio,), ratio, 1.0, tested, True)

    def said(*expectations: Expectation) -> str:
        return " ".join(Advice("t", "f", 10, ASKED, ("x",), (0.5,), expectations, "").sentences)

    assert "worse than ssp, which needs none: standard errors 2.50 times" in said(
        one("ssp", 1.0, False), one("ptr", 2.5, True)
    )
    assert "better than any method without one" in said(one("ptr", 1.0, True), one("ssp", 2.5, False))


FORMULAS = {
    "linear_regression": "y ~ a + b",
    "logistic_regression": "z ~ a + b",
    "poisson_regression": "m ~ a + b",
    "classification": "k ~ a + b",
    "kernel_regression": "y ~ a",
}
WIDE = cf.Schema(
    {
        **SCHEMA.columns,
        "z": cf.Categorical(["no", "yes"]),
        "k": cf.Categorical(["u", "v", "w"]),
        "m": cf.Integer(0, 16),
    },
)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_names_methods_that_exist_and_work(task: str) -> None:
    kind = TASKS[task]
    candidates = [method.name for method, _ in kind.candidates(FORMULAS[task], WIDE, 4_000)]
    assert kind.reference(FORMULAS[task], WIDE, 4_000).name in candidates
    found = cf.advise(task, FORMULAS[task], WIDE, 4_000, ASKED, replications=2)
    assert {one.method for one in found.expectations} == set(candidates)
    assert np.isfinite(found.best.error).all() and np.isfinite(found.without_privacy).all()
    # the planted relation is found: sampling errors are a small part of what the numbers may be
    assert max(found.without_privacy) < 0.5


def test_the_planted_relation_does_not_share_a_stream_with_the_features() -> None:
    found = cf.advise("logistic_regression", "z ~ a + b", WIDE, 4_000, ASKED, replications=3)
    # 4 / (n var(a)) and more: a separated outcome would have errors of 10 and above
    assert 0.05 < found.without_privacy[1] < 0.4


def test_intervals_are_said_where_a_run_had_some() -> None:
    found = cf.advise("logistic_regression", "z ~ a + b", WIDE, 4_000, ASKED, replications=2)
    has = {one.method: one.intervals for one in found.expectations}
    assert has["logistic_objective"] and not has["logistic_output"]


@pytest.mark.parametrize(
    ("task", "formula"),
    [
        ("linear_regression", "k ~ a"),
        ("classification", "y ~ a"),
        ("kernel_regression", "y ~ k"),
    ],
)
def test_a_task_of_another_kind_is_named(task: str, formula: str) -> None:
    with refuses(cf.errors.PlanError):
        cf.advise(task, formula, WIDE, 1_000, ASKED, replications=2)
