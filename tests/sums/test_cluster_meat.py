"""Clusters that are not units: their meat, its sensitivity, and how records come to their cluster."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from tests.messages import refuses

import confide as cf
from confide.core import leaves
from confide.core.units.privacy_unit import UNIT_ROW
from confide.methods.regression.sums.scores import UnitScores
from confide.noise import SimulatedNoise
from confide.schema import ModelMatrix
from confide.sources.grouping import ids, sampling, units as clustering
from confide.sources.grouping.ids import Groups
from confide.sums.clusters import cluster_covariance
from confide.sums.clusters.cluster_covariance import RAMPS, ClusterCovariance, Counting
from confide.sums.coding import BOUND

COLUMNS = {
    "x": cf.Numeric(-4, 4),
    "z": cf.Numeric(-4, 4),
    "y": cf.Numeric(-8, 8),
    "won": cf.Integer(0, 1),
    "f": cf.Categorical(["a", "b"]),
}
SCHOOLS = cf.Clusters("school", size=30)
PLAIN = cf.Schema(COLUMNS, dataset="pupils")
SCHEMA = cf.Schema(COLUMNS, dataset="pupils", cluster=SCHOOLS)
LINE = cf.regression.LeastSquares("y ~ x + z")


def pupils(schools: int, size: int, icc: float, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(schools), size)
    n = len(school)
    x, z = rng.normal(size=schools)[school], rng.normal(size=n)
    y = 1 + 0.5 * x - 0.3 * z + np.sqrt(icc) * rng.normal(size=schools)[school] + np.sqrt(1 - icc) * rng.normal(size=n)
    f = rng.choice(["a", "b"], n)
    return pd.DataFrame({"school": school, "pid": np.arange(n), "x": x, "z": z, "y": y, "won": (y > 1) * 1, "f": f})


def meat(spread: float = 2.0) -> ClusterCovariance:
    return ClusterCovariance(UnitScores(ModelMatrix.of("y ~ x", PLAIN), counting=Counting(1, UNIT_ROW)), spread, (4, 9))


def of_scores(one: ClusterCovariance, scores: NDArray[Any], clusters: NDArray[Any]) -> NDArray[Any]:
    """The meat of given scores, (units, width) integers."""
    state = one.zero()
    for score, cluster in zip(scores, clusters, strict=True):
        # the last number is that of units
        state = one.merge(state, {int(cluster): np.append(score, np.any(score)).astype(np.int64)})
    return one.value(state)


def searched(one: ClusterCovariance, relation: str) -> Fraction:
    """The largest squared move found when a unit is added, or replaced: within its cluster, or into another."""
    rng, worst, s = np.random.default_rng(4), Fraction(0), (1 << 20) - 2
    for _ in range(300):
        base = rng.normal(size=2)
        base /= np.linalg.norm(base)
        others = rng.integers(0, 8, 2)
        rest = np.concatenate(
            [
                np.tile(np.rint(base * s), (n, 1)) * sign
                for n, sign in zip(others, (1, rng.choice([-1, 1])), strict=True)
            ]
        )
        rest = rest.reshape(-1, 2)
        where = np.repeat([0, 1], others)
        turned = np.array([[0, -1], [1, 0]]) @ base if rng.random() < 0.3 else base
        here = np.rint(turned * s * rng.choice([-1, 1]))
        there = np.rint(turned * s * rng.choice([-1, 1])) if relation == "substitute" else np.zeros(2)
        cluster = int(rng.integers(0, 2)) if relation == "substitute" else 0
        one_side = of_scores(one, np.vstack([rest, here]), np.append(where, 0))
        other = of_scores(one, np.vstack([rest, there]), np.append(where, cluster))
        worst = max(worst, sum((Fraction(int(v)) ** 2 for v in (one_side - other).ravel()), Fraction(0)))
    return worst


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_one_member_moves_the_meat_by_no_more_than_is_charged(relation: str) -> None:
    """2 G s under add-remove, 4 G s under substitute, about; both are come near to."""
    one = meat()
    worst, allowed = searched(one, relation), one.sensitivity_squared(relation)
    assert worst <= allowed
    # the number of clusters does not move where the rest moves most
    assert worst >= allowed * Fraction(10, 11) * Fraction(1, 2)
    # a member alone in its cluster moves it by s^2 only
    assert allowed >= Fraction(2 * one.cut * (1 << 20)) ** 2 > BOUND**2


@pytest.mark.parametrize("fault", ["charged G s", "cut after the product", "not cut"])
def test_planted_faults_of_clusters_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "charged G s":
        right = ClusterCovariance.sensitivity_squared
        monkeypatch.setattr(ClusterCovariance, "sensitivity_squared", lambda self, relation: right(self, relation) / 4)
    if fault == "not cut":
        monkeypatch.setattr(ClusterCovariance, "_limited", lambda self, total: total.astype(object))
    if fault == "cut after the product":
        monkeypatch.setattr(ClusterCovariance, "value", _cut_late)
    with pytest.raises(AssertionError):
        test_one_member_moves_the_meat_by_no_more_than_is_charged("add-remove")


def _cut_late(self: ClusterCovariance, state: dict[int, NDArray[Any]]) -> NDArray[Any]:
    whole = np.zeros((self.scores.width, self.scores.width), dtype=object)
    for total in (own[:-1] for own in state.values()):
        product = np.multiply.outer(total.astype(object), total.astype(object))
        size = max(abs(int(v)) for v in product.ravel()) or 1
        # the product's own bound is G^2, and a member moves a product far beyond it by more than 2 G s
        whole += product * (4 * self.cut**2) // max(size, 4 * self.cut**2)
    return whole


def sums(schema: cf.Schema, frame: pd.DataFrame, method: Any = LINE) -> dict[str, Any]:
    plan = cf.plan(method, schema, cf.GDP(1.0))
    names = [name for name in plan.statistics if name != "contributions"]
    found = cf.read(frame, schema).aggregate(*(plan.statistics[name] for name in names))
    return {name: total.tolist() for name, total in zip(names, found, strict=True)}


def test_clusters_change_nothing_but_the_meat() -> None:
    frame = pupils(20, 5, 0.2)
    own, plain = sums(SCHEMA, frame), sums(PLAIN, frame)
    # under clusters R squared has no interval, and nothing is spent on one
    assert plain.keys() - own.keys() == {"influence"}
    del plain["influence"]
    assert {name for name in plain if own[name] != plain[name]} == {"meat"}
    alone = sums(SCHEMA, frame.assign(school=np.arange(len(frame))))
    # nobody is beyond the cut, and each is in a cluster by herself, of which one unit counts
    meat, width = np.array(alone.pop("meat")), len(plain["meat"])
    assert (meat[:width, :width] == plain.pop("meat")).all()
    behind = np.diag(meat)[width:]
    assert not (meat - np.diag(np.diag(meat)))[width:].any() and behind[:-2].tolist() == [0] * RAMPS
    assert behind[-2] % len(frame) == 0 and behind[-2] > 0 == behind[-1]
    assert alone == plain


@pytest.mark.parametrize("spread", [1.0, 4.0, 30.0])
def test_one_member_moves_what_stands_behind_by_a_third_of_the_rest_each(spread: float) -> None:
    one = meat(spread)
    size, third, worst = one.scores.width, float(one.sensitivity_squared("add-remove")) / 11, np.zeros(2)
    for n in (1, 2, 3, 6, 31, 45, 77, 300):
        rows = [{0: np.append(np.eye(size, dtype=np.int64)[0] * ((1 << 20) * k), k)} for k in (n, n - 1)]
        state, less = (one.value(row) for row in rows)  # type: ignore[arg-type]
        moved = np.diag(state - less)[size:].astype(float) ** 2
        worst = np.maximum(worst, [moved[:RAMPS].sum() / third, moved[RAMPS:].sum() / third])
    assert (worst > 0.9).all() and (worst <= 1).all()


def test_the_same_integers_in_any_order_type_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = cf.Schema(COLUMNS, unit=cf.Unit("pid"), cluster=SCHOOLS)
    frame = pupils(15, 6, 0.2).assign(pid=lambda f: f.pid // 4)  # some persons at two schools
    want = sums(schema, frame)
    mixed = frame.sample(frac=1, random_state=3)
    assert sums(schema, mixed.assign(school=mixed.school.astype(float))) == want
    assert sums(schema, mixed.assign(school=mixed.school.astype(str) + ".0")) == want
    monkeypatch.setattr(clustering, "GATHERED", 200)
    assert sums(schema, mixed) == want


def test_a_person_of_more_rows_than_are_looked_at_is_in_one_cluster_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows at other schools take no place of those that count, whether or not files cut a person's rows apart."""
    schema = cf.Schema(COLUMNS, unit=cf.Unit("pid"), cluster=SCHOOLS)
    frame = pupils(15, 60, 0.2).assign(pid=lambda f: f.pid // 200)
    monkeypatch.setattr(sampling, "MOST", 1)
    monkeypatch.setattr(ids, "_FILES", 2)
    want = sums(schema, frame)
    monkeypatch.setattr(clustering, "GATHERED", 200)
    assert sums(schema, frame) == want


def test_a_person_is_in_one_cluster_and_without_one_nowhere() -> None:
    schema = cf.Schema(COLUMNS, unit=cf.Unit("pid"), cluster=SCHOOLS)
    frame = pupils(2, 3, 0.2)
    twice = pd.concat([frame, frame.iloc[[0]].assign(school=1)])
    first = sums(schema, frame)
    moved = sums(schema, frame.assign(school=frame.school.where(frame.pid != 0, 1)))
    assert sums(schema, twice) in (first, moved)
    assert (
        sums(
            schema,
            pd.concat([frame.assign(school=frame.school.astype(str)), frame.assign(school="", pid=-frame.pid - 1)]),
        )
        == first
    )
    ranks = Groups("school", bytes(32))
    ranks(np.array(["b", "a"]))
    other = Groups("school", bytes(32))
    other(np.array(["a", "b"]))
    assert ranks.ranks.tolist() == other.ranks.tolist()[::-1]


def test_intervals_of_clusters_are_wider_and_say_so() -> None:
    frame = pupils(60, 30, 0.3)
    wide, narrow = (
        cf.infer(cf.release(LINE, cf.read(frame, own), cf.GDP(3.0), ledger=None, noise=SimulatedNoise(1)))
        for own in (SCHEMA, PLAIN)
    )
    assert wide.bse["Intercept"] > 1.5 * narrow.bse["Intercept"]
    rows = np.column_stack([np.ones(len(frame)), frame["x"], frame["z"]])
    left = frame["y"] - rows @ np.linalg.lstsq(rows, frame["y"], rcond=None)[0]
    scores = pd.DataFrame(rows * left.to_numpy()[:, None]).groupby(frame["school"]).sum().to_numpy()
    bread = np.linalg.inv(rows.T @ rows)
    plain = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    assert 0.8 * plain[0] < wide.bse["Intercept"] < 1.6 * plain[0]
    assert "independent values of school" in wide.intervals_for
    assert wide.title == f"{narrow.title}, clusters school" and wide.title in " ".join(wide.summary().split())
    few = cf.infer(
        cf.release(LINE, cf.read(pupils(20, 30, 0.1), SCHEMA), cf.GDP(3.0), ledger=None, noise=SimulatedNoise(1))
    )
    assert "few_independent_units" in few.flags


@pytest.mark.parametrize(
    "method",
    [cf.regression.Logistic("won ~ x"), cf.classification.ClassMeans("f ~ x + y"), cf.regression.LeastSquares("y ~ f")],
)
def test_methods_with_a_meat_of_units_count_clusters(method: Any) -> None:
    frame = pupils(50, 20, 0.3)
    release = cf.release(method, cf.read(frame, SCHEMA), cf.GDP(3.0), ledger=None, noise=SimulatedNoise(1))
    assert cf.infer(release).status == "valid"
    assert "independent values of school" in cf.infer(release).intervals_for
    assert cf.Plan.from_json(release.plan.to_json()) == release.plan


def test_other_methods_are_refused_and_schemas_are_values(tmp_path: Any) -> None:
    with refuses(cf.errors.PlanError):
        cf.plan(cf.regression.SSP("y ~ x"), SCHEMA, cf.GDP(1.0))
    # a record that names no school is in no pass, so that a number of records that an estimator rests on would be hers to change
    own = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")}, cluster=SCHOOLS)
    middle = cf.ptr.SafeRelease(cf.ptr.OrderStatistic(50, 0.0, 1.0, alpha=0.05), gamma_plan=4)
    with refuses(cf.errors.PlanError):
        cf.plan(middle, own, cf.ApproxDP(1.0, 1e-6), n=100)
    assert cf.Schema.from_toml(SCHEMA.to_toml()) == SCHEMA == cf.Schema.from_dict(SCHEMA.to_dict())
    assert "cluster" not in PLAIN.to_dict()
    assert SCHEMA.bare.cluster == SCHOOLS
    assert SCHEMA.sample(60, 1)["school"].nunique() == 2
    for wrong in (
        {"cluster": cf.Clusters("x", size=3)},
        {"cluster": SCHOOLS, "unit": "household", "rows_per_unit": 2},
        {"cluster": "school"},
    ):
        with refuses(cf.errors.SchemaError):
            cf.Schema(COLUMNS, **wrong)
    for settings in ({"size": 0}, {"size": 3, "icc": 2}, {"size": 3, "count": 1}):
        with pytest.raises(cf.errors.SchemaError):
            cf.Clusters("school", **settings)


def test_a_plan_warns_of_too_few_clusters() -> None:
    own = cf.Schema(COLUMNS, cluster=cf.Clusters("school", size=30, count=20))
    plan = cf.plan(LINE, own, cf.GDP(1.0))
    assert any("too few clusters for this budget" in text for text in plan.warnings)
    assert not cf.plan(
        LINE, cf.Schema(COLUMNS, cluster=cf.Clusters("school", size=30, count=5_000)), cf.GDP(1.0)
    ).warnings
    plain = {leaf.name for leaf in leaves(cf.plan(LINE, PLAIN, cf.GDP(1.0)).event)}
    assert {leaf.name for leaf in leaves(plan.event)} == plain - {"influence"}
    assert cluster_covariance.too_few(None, 3, 1.0) == ()


def test_the_largest_clusters_set_the_limit_and_are_printed_as_an_assumption() -> None:
    own = cf.Clusters("school", size=5, largest=60, icc=0.5)
    assert cf.Clusters("school", size=5).most == 15
    assert own.spread == pytest.approx((60 * (1 + 59 * 0.5)) ** 0.5) and own.spread > 6 * own.usual
    schema = cf.Schema(COLUMNS, cluster=own)
    assert cf.Schema.from_dict(schema.to_dict()) == schema
    plan = cf.plan(LINE, schema, cf.GDP(1.0))
    assert "at most about 60 members each, alike by at most 0.5" in " ".join(plan.intervals_for.split())
    with refuses(cf.errors.SchemaError):
        cf.Clusters("school", size=30, largest=5)
