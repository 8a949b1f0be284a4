"""Advice from public facts: what it runs, what it says, and that it agrees with what was measured elsewhere."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.advice import TASKS, Advice, Expectation

SCHEMA = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(-5, 5), "y": cf.Numeric(-1, 3)})
ASKED = cf.ApproxDP(1.0, 1e-6)


def test_it_ranks_what_it_ran_and_repeats() -> None:
    one = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 3_000, ASKED, replications=4)
    again = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 3_000, ASKED, replications=4)
    assert str(one) == str(again)
    ratios = [e.ratio for e in one.expectations]
    assert ratios == sorted(ratios) and ratios[0] == 1.0 and len(ratios) >= 5
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["names"] == ["Intercept", "a", "b"]
    assert list(one.to_frame().columns[:4]) == ["ratio", "replies", "tested", "intervals"]
    # privacy never helps, and the rivals' order is the one that is measured on simulated data
    assert all(e > 0.8 * b for e, b in zip(one.best.error, one.without_privacy, strict=True))
    by_name = {e.method: e.ratio for e in one.expectations}
    assert by_name["ssp2"] < by_name["ssp"] < by_name["output_perturbation"]


def test_more_records_and_more_budget_bring_it_nearer_to_no_privacy() -> None:
    def best(n: int, privacy: cf.GDP) -> float:
        found = cf.advise("linear_regression", "y ~ a + b", SCHEMA, n, privacy, replications=4)
        error = next(e.error for e in found.expectations if e.method == "ssp")
        return float(np.mean(np.array(error) / np.array(found.without_privacy)))

    few, many, rich = best(500, cf.GDP(0.3)), best(5_000, cf.GDP(0.3)), best(5_000, cf.GDP(5.0))
    assert few > 1.5 * many > 1.5 * rich


def test_public_records_are_drawn_again() -> None:
    generator = np.random.default_rng(1)
    a = generator.uniform(0, 0.1, 500)
    like = pd.DataFrame({"a": a, "b": generator.normal(0, 0.2, 500), "y": 1 + a + generator.normal(0, 0.1, 500)})
    near = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 2_000, ASKED, like=like, replications=3)
    even = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 2_000, ASKED, replications=3)
    # features that hardly vary within their bounds are hard to learn of
    assert near.best.error[1] > 2 * even.best.error[1]
    assert "public records given" in near.assumes


def test_a_method_that_cannot_be_asked_says_why() -> None:
    found = cf.advise("linear_regression", "y ~ a + b", SCHEMA, 2_000, cf.GDP(1.0), replications=2)
    problems = {e.method: e.problem for e in found.expectations}
    assert problems["ssp2"] == "" and found.best.problem == ""
    for name in {"efficient_ptr", "posterior_sampling"} & set(problems):
        assert problems[name]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("linear_regresion", "y ~ a", SCHEMA, 100, ASKED), "did you mean 'linear_regression'"),
        (("linear_regression", "a", SCHEMA, 100, ASKED), "a formula names a response"),
        (("linear_regression", "y ~ a", SCHEMA, 1, ASKED), "n must be"),
    ],
)
def test_mistakes_are_named(words: tuple, said: str) -> None:
    with pytest.raises(cf.PlanError, match=said):
        cf.advise(*words)
    with pytest.raises(cf.PrivacyError):
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
    "classification": "k ~ a + b",
    "kernel_regression": "y ~ a",
}
WIDE = cf.Schema(
    {**SCHEMA.columns, "z": cf.Categorical(["no", "yes"]), "k": cf.Categorical(["u", "v", "w"])},
)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_names_methods_that_exist_and_work(task: str) -> None:
    known = {info.name: info.parameters for info in cf.methods()}
    kind = TASKS[task]
    for name, settings in (*kind.candidates(FORMULAS[task], WIDE, 4_000), *filter(None, [kind.reference])):
        assert name in known and set(settings) <= set(known[name])
    found = cf.advise(task, FORMULAS[task], WIDE, 4_000, ASKED, replications=2)
    assert np.isfinite(found.best.error).all() and np.isfinite(found.without_privacy).all()
    # the planted relation is found: sampling errors are a small part of what the numbers may be
    assert max(found.without_privacy) < 0.5


def test_the_planted_relation_does_not_share_a_stream_with_the_features() -> None:
    found = cf.advise("logistic_regression", "z ~ a + b", WIDE, 4_000, ASKED, replications=3)
    # 4 / (n var(a)) and more: a separated outcome would have errors of 10 and above
    assert 0.05 < found.without_privacy[1] < 0.4


def test_intervals_are_said_where_a_run_had_some() -> None:
    found = cf.advise("logistic_regression", "z ~ a + b", WIDE, 4_000, ASKED, replications=2)
    has = {one.settings: one.intervals for one in found.expectations}
    assert has["mechanism='objective'"] and not has["mechanism='output'"]


@pytest.mark.parametrize(
    ("task", "formula", "said"),
    [
        ("linear_regression", "k ~ a", "categorical"),
        ("classification", "y ~ a", "declare its levels"),
        ("kernel_regression", "y ~ k", "one numeric feature"),
    ],
)
def test_a_task_of_another_kind_is_named(task: str, formula: str, said: str) -> None:
    with pytest.raises(cf.PlanError, match=said):
        cf.advise(task, formula, WIDE, 1_000, ASKED, replications=2)
