"""Every method can be asked about a subgroup: the same integers as on the subgroup's records alone, and the same guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide import registry
from confide.audit.replay.replay import replay
from confide.core import Method, Plan, RecordMap, Subset, Total, leaves
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.testing import check_method
from confide_lab.methods.huber.huber_line import HuberLine
from confide_lab.methods.logistic.methods import LogisticObjective
from confide_lab.methods.quantile.ranks import Quantile

SCHEMA = cf.Schema(
    {
        "age": cf.Integer(0, 100),
        "region": cf.Categorical(["N", "S", "E"]),
        "x": cf.Numeric(0, 1),
        "y": cf.Numeric(-1, 3),
        "z": cf.Integer(0, 1),
        "v": cf.Integer(0, 6),
    }
)
FRAME = SCHEMA.sample(4000, 1)
OLD = "age >= 65 & region == 'N'"
MINE = FRAME.query(OLD)

METHODS: dict[str, tuple[Any, Any]] = {
    # the range of a column of the condition is not found, those of others are
    "least_squares": (cf.regression.LeastSquares("y ~ x + age", bounds="declared"), cf.GDP(1.0)),
    "least_squares in ranges": (cf.regression.LeastSquares("y ~ x"), cf.GDP(1.0)),
    "huber_line": (HuberLine("y ~ x"), cf.GDP(1.0)),
    "factor means": (cf.regression.LeastSquares("y ~ z"), cf.GDP(1.0)),
    "levels": (cf.regression.LeastSquares("y ~ region"), cf.GDP(1.0)),
    "ssp": (cf.regression.SSP("y ~ x"), cf.GDP(1.0)),
    "logistic": (cf.regression.Logistic("z ~ x"), cf.GDP(1.0)),
    "objective": (LogisticObjective("z ~ x"), cf.ApproxDP(1.0, 1e-6)),
    "poisson": (cf.regression.Poisson("v ~ x"), cf.GDP(1.0)),
    "class sums": (cf.classification.ClassMeans("z ~ x"), cf.GDP(1.0)),
    "kernel curve": (cf.curves.Kernel("y ~ x", bandwidth=0.1), cf.GDP(1.0)),
    "quantile": (Quantile("x"), cf.PureDP(1.0)),
}


def released(method: Method, privacy: Any, frame: Any, seed: int = 5) -> Any:
    return cf.release(method, cf.read(frame, SCHEMA), privacy, ledger=None, noise=SimulatedNoise(seed))


@pytest.mark.parametrize("name", METHODS)
def test_a_subgroup_gives_the_integers_of_its_records_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, privacy = METHODS[name]
    # those of clipped and unread values are of its condition too: tests/core/test_lost_values.py
    monkeypatch.setattr(type(method), "counts_lost", False)
    whole = released(replace(method, where=OLD), privacy, FRAME)
    alone = released(method, privacy, MINE)
    assert whole.to_dict()["statistics"] == alone.to_dict()["statistics"]
    for key, values in alone.public.items():
        np.testing.assert_array_equal(whole.public[key], values)
    assert whole.guarantees == alone.guarantees
    first, second = cf.infer(whole), cf.infer(alone)
    assert first.to_frame().equals(second.to_frame())
    assert first.target.split(", where ") == [second.target, OLD]
    for text in (first.summary(), whole.plan.summary()):
        assert OLD in " ".join(text.split())


def test_the_plan_covers_the_subgroup_and_is_made_again_from_its_file() -> None:
    method = cf.regression.SSP("y ~ x", where=OLD)
    plan = cf.plan(method, SCHEMA, cf.GDP(1.0))
    assert plan.where == OLD and plan.method.parameters["where"] == OLD
    again = Plan.from_json(plan.to_json())
    assert registry.remake(again, SCHEMA)[1] == plan
    others = [
        cf.plan(replace(method, where=where), SCHEMA, cf.GDP(1.0)) for where in (None, "age >= 66 & region == 'N'")
    ]
    assert len({plan.sha256, *(one.sha256 for one in others)}) == 3
    # the maps of the spends are those of the subgroup, whatever the parameters say
    assert not {leaf.map for leaf in leaves(plan.event)} & {leaf.map for one in others for leaf in leaves(one.event)}


def test_a_plan_without_a_subgroup_says_nothing_of_one() -> None:
    plan = cf.plan(cf.regression.SSP("y ~ x"), SCHEMA, cf.GDP(1.0))
    assert plan.where is None and plan.method.parameters["where"] is None and ", where" not in plan.target


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_neighbours_differ_by_no_more_than_the_sensitivity(relation: str) -> None:
    """A record that enters, leaves, changes within, or changes outside of the subgroup."""
    method = cf.regression.SSP("y ~ x", where="age >= 65")
    plan = cf.plan(method, SCHEMA, cf.GDP(1.0, relation=relation))
    base = SCHEMA.sample(30, 3)
    far = {"age": 90, "region": "N", "x": 1.0, "y": 3.0, "z": 1, "v": 0}
    others = [far, {**far, "age": 20}, {**far, "y": -1.0, "x": 0.0}, {**far, "age": None}, {**far, "x": np.nan}]
    moved = []
    for seed, (one, two) in enumerate((a, b) for a in others for b in others):
        first, second = base.copy().astype(object), base.copy().astype(object)
        first.loc[30] = one
        if relation == "substitute":
            second.loc[30] = two
        found = replay(method, plan, cf.read(first, SCHEMA), cf.read(second, SCHEMA), seed=seed)
        assert not found.problems
        moved += [change.ratio for change in found.moved.values()]
        assert all(change.within for change in found.moved.values())
    assert max(moved) > 0.99


@pytest.mark.long
def test_the_contract_holds_with_a_subgroup() -> None:
    schema = cf.Schema({name: SCHEMA[name] for name in ("age", "x", "y")})
    check_method(cf.regression.SSP("y ~ x", cov="classical", recenter=False, where="age >= 50"), schema)


def test_the_size_of_a_subgroup_stands_in_no_plan() -> None:
    """Under substitute n is public; the number of records in a subgroup is not."""
    plan = cf.plan(cf.regression.SSP("y ~ x", where=OLD), SCHEMA, cf.GDP(1.0, relation="substitute"), n=4000)
    assert plan.n is None and any("1,188" not in note and "475 of n = 4,000" in note for note in plan.notes)
    said = cf.plan(cf.regression.SSP("y ~ x", where=OLD), SCHEMA, cf.GDP(1.0), n=4000, guess={"where": 0.5})
    assert any("2,000 of n = 4,000" in note and "as you say" in note for note in said.notes)
    assert "2,000" not in said.to_json()
    with refuses(PlanError):
        cf.plan(cf.regression.SSP("y ~ x", where=OLD), SCHEMA, cf.GDP(1.0), n=4000, guess={"where": 2})


@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        (Quantile("x", where=OLD), cf.PureDP(1.0, relation="substitute")),
        (LogisticObjective("z ~ x", where=OLD), cf.ApproxDP(1.0, 1e-6, relation="substitute")),
        (cf.regression.EfficientPTR("y ~ x", where="z == 1"), cf.GDP(1.0, 1e-6)),
    ],
)
def test_methods_without_a_subgroup_say_so(method: Method, privacy: Any) -> None:
    schema = cf.Schema(
        {
            name: replace(column, on_missing=column.levels[0] if name == "region" else "midpoint")
            for name, column in SCHEMA.columns.items()
        }
    )
    with refuses(PlanError):
        cf.plan(method, schema, privacy, n=100)


@dataclass(frozen=True)
class _Deaf(Method):
    """A method that makes its plan by itself, and not by `Plan.of`."""

    name: ClassVar[str] = "deaf"
    family: ClassVar[str] = "tests"
    source: ClassVar[str] = "none"

    def plan(self, schema: Any, privacy: Any, *, n: Any = None, public: Any = None) -> Plan:
        return replace(cf.regression.SSP("y ~ x").plan(schema, privacy))


def test_a_method_that_would_read_all_records_is_refused() -> None:
    with refuses(PlanError):
        cf.plan(_Deaf(where=OLD), SCHEMA, cf.GDP(1.0))


class _Ones(RecordMap):
    """One number for each record."""

    columns, width, l1, l2_squared, digest = ("x",), 1, 1, 1, "ones"

    def __call__(self, codes: Any) -> Any:
        return np.ones((1, codes.shape[1]))


def test_a_subset_covers_a_record_that_enters_under_substitute() -> None:
    from confide.schema.formulas.conditions import parse_predicate

    class Fixed(Total):
        """A sum that a substitute cannot move: all records count one."""

        def sensitivity_squared(self, relation: str) -> Fraction:
            return Fraction(0 if relation == "substitute" else 1)

    own = Subset(Fixed(_Ones()), parse_predicate("age >= 65", SCHEMA))
    assert own.sensitivity_squared("substitute") == 1
    codes = np.array([[3.0, 4.0, 5.0], [70.0, 10.0, -1.0]])
    assert own.value(own.update(own.zero(), codes)).tolist() == [1]
    merged = own.merge(own.update(own.zero(), codes), own.update(own.zero(), codes[:, 1:]))
    assert own.value(merged).tolist() == [1]
