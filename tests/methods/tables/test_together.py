"""Tables of the same records together: pooled in a publication, and releases of one data set combined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import PlanError, ReleaseError
from confide.noise import SimulatedNoise

LEVELS = {name: cf.Categorical(list("abcde"), on_missing="a") for name in "xyz"}
SCHEMA = cf.Schema({**LEVELS, "age": cf.Numeric(0, 100)})
DATA = cf.read(SCHEMA.sample(3_000, seed=1), SCHEMA)
FRAME: Any = SCHEMA.sample(3_000, seed=1)
QUESTIONS = {
    "one": cf.tables.Counts("x * y", inference="dataset"),
    "line": cf.tables.Means("age ~ 1", inference="population"),
    "two": cf.tables.Shares("z * x", within="x", inference="population"),
}


def test_tables_that_share_marginals_are_one_release_with_less_noise() -> None:
    plan = cf.plan(cf.Publication(QUESTIONS), SCHEMA, cf.GDP(1.0))
    assert list(plan.children) == ["one + two", "line"]
    assert any("noise variance over that of separate tables: one 0.79, two 0.79" in note for note in plan.notes)
    apart = cf.plan(cf.Publication(QUESTIONS, pool=False), SCHEMA, cf.GDP(1.0))
    assert list(apart.children) == list(QUESTIONS)
    assert plan.children["one + two"].guarantee.mu == pytest.approx(np.sqrt(2 / 3))


def test_each_question_of_a_pool_has_its_own_table() -> None:
    publication = cf.Publication(QUESTIONS)
    release = cf.release(publication, DATA, cf.GDP(1e4), ledger=None, noise=SimulatedNoise(1))
    report: Any = cf.infer(cf.Release.from_json(release.to_json()))
    assert list(report) == list(QUESTIONS)
    assert report["one"].params["x=b, y=c"] == pytest.approx(((FRAME.x == "b") & (FRAME.y == "c")).sum(), abs=0.1)
    assert report["two"].params["z=d, x=a"] == pytest.approx((FRAME.z[FRAME.x == "a"] == "d").mean(), abs=1e-3)
    assert "x * y" in report["one"].target and "z * x within x" in report["two"].target
    assert report["one"].inference == "dataset" and report["two"].inference == "population"


@pytest.mark.parametrize(
    "questions",
    [
        {"one": QUESTIONS["one"], "two": cf.tables.Shares("z * x", inference="population", where="age > 50")},
        {"one": QUESTIONS["one"], "small": cf.tables.Counts("y", inference="dataset")},
        {"one": QUESTIONS["one"], "two": cf.tables.Shares("z * x", inference="population", weights="age")},
    ],
)
def test_what_would_lose_or_is_of_other_records_is_not_pooled(questions: dict[str, Any]) -> None:
    assert list(cf.plan(cf.Publication(questions), SCHEMA, cf.GDP(1.0)).children) == list(questions)


def test_columns_that_drop_missing_values_apart_are_not_pooled() -> None:
    schema = cf.Schema({name: cf.Categorical(list("abcde")) for name in "xyz"} | {"age": cf.Numeric(0, 100)})
    plan = cf.plan(cf.Publication(QUESTIONS), schema, cf.GDP(1.0))
    assert list(plan.children) == list(QUESTIONS)
    assert any("on_missing" in note for note in plan.notes), "or nobody learns why"


def test_the_same_marginal_asked_again_is_combined() -> None:
    method = cf.tables.Counts("x * y", inference="dataset")
    again = cf.tables.Counts("y * z", inference="dataset")
    releases = [
        cf.release(own, DATA, cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed))
        for own, mu, seed in ((method, 0.3, 1), (method, 0.4, 2), (again, 0.5, 3))
    ]
    one, both, three = cf.infer(releases[0]), cf.infer(releases[:2]), cf.infer(releases)
    assert both.guarantee.mu == pytest.approx(0.5)
    assert both.bse["x=b, y=c"] == pytest.approx(one.bse["x=b, y=c"] * 0.3 / 0.5, rel=1e-6)
    assert three.bse["y=c"] < both.bse["y=c"] and three.bse["x=b, y=c"] < both.bse["x=b, y=c"]
    wide = both.crosstab()
    assert wide.iloc[:-1, :-1].to_numpy().sum() == pytest.approx(wide.iloc[-1, -1])
    errors = (both.params - cf.infer(cf.release(method, DATA, cf.GDP(1e6), ledger=None)).params) / both.bse
    assert 0.6 < np.sqrt((errors**2).mean()) < 1.5


@pytest.mark.usefixtures("declared")
def test_releases_are_combined_by_the_ledger_that_has_their_receipts(tmp_path: Path) -> None:
    method = cf.tables.Means("age ~ x", inference="population")
    books = [cf.Ledger.create(tmp_path / f"{name}.db", dataset="d", budget=cf.GDP(2.0)) for name in ("a", "b")]
    # noise is most of the standard error, so that it is smaller for certain where it is halved
    data, asked = cf.read(SCHEMA.sample(5_000, seed=1), SCHEMA, dataset="d"), cf.GDP(0.05)
    first, again = (cf.release(method, data, asked, ledger=books[0]) for _ in range(2))
    found = cf.infer([first, again], ledger=books[0])
    assert found.guarantee.mu == pytest.approx(0.05 * np.sqrt(2))
    assert found.bse["age"] < cf.infer(first).bse["age"]
    other = cf.release(method, data, asked, ledger=books[1])
    with refuses(ReleaseError):
        cf.infer([first, other], ledger=books[0])
    with refuses(PlanError):
        cf.infer([first, again])
    with refuses(PlanError):
        cf.infer([first, first], ledger=books[0])
    alone = cf.release(cf.tables.Counts("x", inference="dataset"), data, asked, ledger=books[0])
    with refuses(PlanError):
        cf.infer([first, alone], ledger=books[0])
