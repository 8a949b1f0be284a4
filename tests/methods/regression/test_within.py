"""The line within persons: the within estimator without privacy, what a person moves, intervals, words, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses

import confide as cf
from confide.audit import audit
from confide.core.lost_values import NAME as LOST
from confide.methods.regression.within.sums import Deviations
from confide.noise import SimulatedNoise
from confide.schema import ModelMatrix
from confide.testing import ZeroNoise

pytestmark = pytest.mark.usefixtures("declared")

COLUMNS = {
    "x": cf.Numeric(-4, 4),
    "year": cf.Categorical(["a", "b", "c"]),
    "sex": cf.Integer(0, 1),
    "y": cf.Numeric(-4, 4),
}
UNITS: dict[str, dict[str, Any]] = {
    "weight 1": {},
    "weight 3": {"rows": 3},
    "keep 20": {"rows": 20, "rule": "keep"},
}


def schema(**unit: Any) -> cf.Schema:
    return cf.Schema(COLUMNS, unit=cf.Unit("pid", **unit), dataset="panel")


def panel(units: int, seed: int, most: int = 8) -> pd.DataFrame:
    """1 to `most` rows of each person, whose own level moves x and y alike; unequal variances."""
    g = np.random.default_rng(seed)
    pid = np.repeat(np.arange(units), g.integers(1, most + 1, units))
    level, n = g.normal(size=units)[pid], len(pid)
    x = 0.7 * level + g.normal(size=n)
    year = g.integers(0, 3, n)
    y = 0.1 * x + 0.3 * level + 0.2 * (year == 2) + 0.5 * g.normal(size=n) * (1 + 0.5 * np.abs(x))
    return pd.DataFrame({"pid": pid, "x": x, "year": np.array(["a", "b", "c"])[year], "sex": pid % 2, "y": y})


def estimator(frame: pd.DataFrame, terms: tuple[str, ...], rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(slopes, clustered standard errors) of the within estimator by hand, each row with the weight min(1, rows/m)."""
    own = frame.assign(x=frame.x.clip(-4, 4), y=frame.y.clip(-4, 4), b=frame.year == "b", c=frame.year == "c")
    own = own.dropna(subset=["x", "y", "year"])
    size = own.groupby("pid").x.transform("size")
    own, size = own[size > 1], size[size > 1]
    weight = np.ones(len(own)) if rows is None else np.minimum(1.0, rows / size.to_numpy())
    columns = [*terms, "y"]
    values = own[columns].astype(float)
    apart = (values - values.groupby(own.pid).transform("mean")).to_numpy()
    z, y = apart[:, :-1], apart[:, -1]
    bread = np.linalg.inv((z * weight[:, None]).T @ z)
    theta = bread @ (z * weight[:, None]).T @ y
    scores = pd.DataFrame(z * (weight * (y - z @ theta))[:, None]).groupby(own.pid.to_numpy()).sum().to_numpy()
    return theta, np.sqrt(np.diag(bread @ scores.T @ scores @ bread))


def released(frame: pd.DataFrame, own: cf.Schema, formula: str = "y ~ x + year", noise: Any = None) -> Any:
    method = cf.regression.Within(formula)
    return cf.infer(cf.release(method, cf.read(frame, own), cf.GDP(1.0), ledger=None, noise=noise or ZeroNoise()))


@pytest.mark.parametrize("name", UNITS)
def test_without_noise_it_is_the_within_estimator(name: str) -> None:
    frame, unit = panel(2_500, 1), UNITS[name]
    frame.loc[::37, "x"] = np.nan
    frame.loc[::41, "year"] = None
    found = released(frame, schema(**unit))
    slopes, errors = estimator(frame, ("x", "b", "c"), None if "rule" in unit else unit.get("rows", 1))
    assert list(found.params.index) == ["x", "year[T.b]", "year[T.c]"]
    # columns stand on grids of 2^20 steps; scores far out are limited, within the printed allowance for bias
    assert np.abs(found.params.to_numpy() - slopes).max() < 2e-3
    # the covariance states the noise that there was not
    assert (found.bse.to_numpy() > 0.98 * errors).all()
    assert (found.bse.to_numpy() < (4 if "rule" in unit else 2) * errors).all()


def test_what_stays_the_same_within_a_person_moves_nothing() -> None:
    own = cf.Schema({"x": cf.Numeric(-1, 1), "y": cf.Numeric(-2, 2)}, unit=cf.Unit("pid", rows=3))
    frame = panel(1_500, 2)
    # within the bounds, so that nothing is clipped
    frame = frame.assign(x=np.tanh(frame.x), y=np.tanh(frame.y))
    shift = np.random.default_rng(3).uniform(-1, 1, 1_500)[frame.pid]
    found = [released(data, own, "y ~ x").params["x"] for data in (frame, frame.assign(y=frame.y + shift))]
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_bounds_that_are_too_wide_are_said_in_words() -> None:
    wide = cf.Schema({"x": cf.Numeric(-4e3, 4e3), "y": cf.Numeric(-4, 4)}, unit=cf.Unit("pid"))
    data = cf.read(panel(800, 2), wide)
    method = cf.regression.Within("y ~ x", bounds="declared")
    found = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1)))
    assert found.status in ("imprecise", "not_identified")
    assert "the bounds of x reach" in found.reason and "leave bounds='declared' out" in found.reason
    assert np.isnan(found.conf_int().to_numpy()).all()


def test_deviations_are_exact_in_any_order_and_batch() -> None:
    own = schema(rows=3)
    deviations = Deviations(ModelMatrix.of("y ~ x + year", own), weighted=True)
    g = np.random.default_rng(4)
    codes = np.stack([g.integers(-1, 2**20, 40), g.integers(0, 3, 40), g.integers(0, 2**20, 40)]).astype(float)
    first = np.full(40, -1.0)
    first[[0, 1, 7, 30]] = 0
    found, there = deviations(codes, first)
    assert not there[0] and found[:, 0].tolist() == [-1.0] * 4  # one row
    half = (found.max(), found.min())
    assert half[0] <= 2**20
    for start, stop in ((1, 7), (7, 30), (30, 40)):
        order = start + g.permutation(stop - start)
        marks = np.full(stop - start, -1.0)
        marks[0] = 0
        alone, kept = deviations(codes[:, order], marks)
        assert (alone == found[:, order]).all() and (kept == there[order]).all()
        used = found[0, start:stop][there[start:stop]]
        # deviations of a unit add up to 0, to rounding
        assert abs((used - 2**19).sum()) <= 0.5 * len(used) + 1


def test_the_same_integers_in_any_order_and_spelling_of_ids() -> None:
    frame, own = panel(300, 5), schema(rows=2)
    known = released(frame, own).params.tolist()
    for seed in range(2):
        other = frame.sample(frac=1, random_state=seed)
        other["pid"] = np.where(np.arange(len(other)) % 2, other["pid"].astype(str), other["pid"].astype(float))
        assert released(other, own).params.tolist() == known


@pytest.mark.long
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_audit_finds_nothing(name: str, relation: str) -> None:
    """Neighbours of 1, k, k + 1 and 10 k rows under one id, equal or of opposite corners."""
    if relation == "substitute" and UNITS[name]:
        pytest.skip("substitute is for rows=1")
    method = cf.regression.Within("y ~ x + year")
    assert audit(method, schema(**UNITS[name]), privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1).ok


@pytest.mark.parametrize(("unit", "most"), [({}, 1), ({"rows": 3}, 3), ({"rows": 3, "rule": "keep"}, 3)])
@pytest.mark.parametrize("rows", [1, 3, 4, 30])
def test_a_person_counts_as_many_rows_as_said(unit: dict[str, Any], most: int, rows: int) -> None:
    """Exact sums of deviations with and without a person of opposite corners: at most k rows' worth, and nothing of one row."""
    own = schema(**unit)
    plan = cf.plan(cf.regression.Within("y ~ x", bounds="declared"), own, cf.GDP(1.0))
    names = [name for name in plan.statistics if name != "contributions"]
    corners = pd.DataFrame({"x": [-4.0, 4.0] * rows, "year": "a", "sex": 0, "y": [4.0, -4.0] * rows})[:rows]
    frame = panel(40, 6)
    asked = [plan.statistics[name] for name in names]

    def sums(data: pd.DataFrame) -> tuple[Any, ...]:
        with cf.read(data, own).bounded(whole=plan.rule == "weight") as source:
            return source.aggregate(*asked)

    for name, one, other in zip(names, sums(frame), sums(pd.concat([frame, corners.assign(pid="new")])), strict=True):
        moved = float(((other - one).astype(float) ** 2).sum())
        stated = float((plan.spend(name).sensitivity * plan.spend(name).step) ** 2)
        assert moved <= stated, name
        assert moved == 0 or rows > 1 or name == LOST, name
        if name == "count" and rows > 1:
            assert np.sqrt(moved) == pytest.approx(min(rows, most), abs=1e-6)


@pytest.mark.long
def test_intervals_cover() -> None:
    """50 panels of 800 persons at mu = 1."""
    own = cf.Schema({name: COLUMNS[name] for name in ("x", "y")}, unit=cf.Unit("pid"))
    truth = float(np.mean([estimator(panel(20_000, 1_000 + seed), ("x",), 1)[0][0] for seed in range(4)]))
    inside = 0
    for seed in range(50):
        found = released(panel(800, seed), own, "y ~ x", SimulatedNoise(seed))
        low, high = found.conf_int().loc["x"]
        inside += int(found.status == "valid" and low <= truth <= high)
    # fails by chance once in a thousand runs
    assert stats.binom.cdf(inside, 50, 0.95) > 0.001, inside


def test_the_words(tmp_path: Any) -> None:
    own = schema(rows=5)
    plan = cf.plan(cf.regression.Within("y ~ x + year"), own, cf.GDP(1.0))
    assert plan.target == (
        "linear regression of y on x, year[T.b], year[T.c] within each pid (fixed effects), least squares; "
        "at most 5 rows' worth of each pid counts"
    )
    assert "Intercept" not in plan.summary()
    assert plan.rule == "weight" and not plan.guarantee.assumptions
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="panel", unit="pid", budget=cf.GDP(2.0))
    release = cf.release(plan, cf.read(panel(1_000, 7), own), ledger=book)
    result = cf.infer(cf.Release.from_json(release.to_json()))
    assert result.to_json() == cf.infer(release).to_json()
    assert "fixed effects of pid" in result.summary().splitlines()[0]
    text = " ".join(result.summary(verbose=True).split())
    assert "clustered by pid" in text and "fixed effects" in text and "Intercept" not in text
    assert list(result.wald_test_terms().index) == ["x", "year"]
    assert result.cov_params().shape == (3, 3)
    with refuses(cf.NoResult):
        result.predict(panel(5, 1))
    smaller = cf.infer(release, subset=("x",))
    assert list(smaller.params.index) == ["x"] and smaller.status == "imprecise"


def test_a_column_that_never_changes_is_not_answered() -> None:
    found = released(panel(1_000, 8), schema(), "y ~ x + sex", SimulatedNoise(1))
    assert found.status in ("partial", "not_identified", "imprecise")
    assert np.isnan(found.conf_int().loc["sex"]).all()


def test_members_of_clusters() -> None:
    """Persons of schools: the sandwich of schools, wider where schools are alike."""
    own = cf.Schema(
        {name: COLUMNS[name] for name in ("x", "y")}, unit=cf.Unit("pid"), cluster=cf.Clusters("school", size=20)
    )
    frame = panel(3_000, 9)
    g = np.random.default_rng(10)
    school = frame.pid // 20
    frame["y"] += g.normal(size=150)[school] * 0.4 * frame.x  # slopes of a school's own
    alike = released(frame.assign(school=school), own, "y ~ x", SimulatedNoise(2))
    apart = released(
        frame, cf.Schema({n: COLUMNS[n] for n in ("x", "y")}, unit=cf.Unit("pid")), "y ~ x", SimulatedNoise(2)
    )
    assert alike.bse["x"] > 1.3 * apart.bse["x"]
    assert "Clusters (school)" in dict(alike.facts)


def test_what_is_refused() -> None:
    def refused(formula: str = "y ~ x", own: cf.Schema | None = None, **more: Any) -> None:
        with refuses(cf.errors.PlanError):
            cf.plan(cf.regression.Within(formula, **more), own or schema(), cf.GDP(1.0))

    refused(own=cf.Schema(COLUMNS))
    refused(own=schema(rule="keep"))
    refused("y ~ 1")
    refused("y ~ 0 + x")
    refused(limit="some")
    with refuses(cf.errors.PrivacyError):
        cf.plan(cf.regression.Within("y ~ x"), schema(rows=3), cf.GDP(1.0, relation="substitute"), n=10)
    with refuses(cf.errors.PlanError):
        cf.regression.Within("y ~ x").reference(cf.schema.CodedFrame.of(panel(5, 1), schema()))
