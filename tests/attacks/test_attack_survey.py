"""Surveys under attack: persons with 1, k, k + 1 and 10 k rows, in one PSU, in several, and in PSUs that no public list names.

A person under an id of her own comes or goes, or gives way to another: every exact sum that a plan asks of the pass moves by at most what
is charged, with the meat at the length that it is charged for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.methods.regression.test_survey_logistic import OWN, records
from tests.methods.tables.survey.test_survey import LISTS, NAMES

import confide as cf
from confide.audit.replay.replay import replay
from confide.core import Meter, Noisy
from confide.core.lost_values import NAME as LOST
from confide.engine.planning import key_of, keyed
from confide.engine.releasing import _bounded
from confide.methods.tables.survey.draw import SurveyPath
from confide.noise import SimulatedNoise

pytestmark = pytest.mark.usefixtures("declared")

UNIT = cf.Unit("pid")
LISTED = cf.Schema(
    {**OWN, "v": cf.Categorical(NAMES)},
    unit=UNIT,
    design=cf.SurveyDesign(weight="w", strata="h", psu="v", psus=LISTS, size=4, largest=4),
)
IDS = cf.Schema(OWN, unit=UNIT, design=cf.SurveyDesign(weight="w", psu="v", size=4))
METHODS: dict[str, Any] = {
    "means": cf.tables.Means("y ~ sex", inference="population"),
    "totals": cf.tables.Totals("y ~ sex", inference="population"),
    "ratios": cf.tables.Ratios("y / x ~ sex", inference="population"),
    "line": cf.regression.LeastSquares("y ~ x + sex"),
    "odds": cf.regression.Logistic("o ~ x + sex"),
}
HIGH = {"y": 100.0, "x": 9.0, "w": 20.0, "h": "n", "sex": "m", "o": 1, "v": "p1"}
LOW = {"y": 0.0, "x": 1.0, "w": 20.0, "h": "s", "sex": "f", "o": 0, "v": "p5"}
#: Of a rows' worth k = 1.
ROWS = (1, 2, 10)


def crowd() -> pd.DataFrame:
    found = records(60).dropna()
    return found.assign(pid=[f"a{k}" for k in range(len(found))])


def persons(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """One person each: the same row many times, rows of opposite corners in PSUs of both strata, PSUs in no list."""
    for rows in ROWS:
        alike = [HIGH] * rows
        apart = [dict(HIGH, v=f"p{k % 3}") if k % 2 else dict(LOW, v=f"p{3 + k % 5}") for k in range(rows)]
        yield f"{rows} rows in one PSU", pd.DataFrame(alike).assign(pid="b")
        yield f"{rows} rows in several PSUs", pd.DataFrame(apart).assign(pid="b")


def sums(schema: cf.Schema, frame: pd.DataFrame, method: Any, relation: str) -> dict[str, Any]:
    plan = cf.plan(method, schema, cf.GDP(1.0, relation=relation))
    found = cf.read(frame, schema).aggregate(*plan.statistics.values())
    return {name: (own, plan.statistics[name]) for name, own in zip(plan.statistics, found, strict=True)}


def moved(one: dict[str, Any], other: dict[str, Any], relation: str = "add-remove") -> dict[str, float]:
    """Of each sum, the squared change over the squared sensitivity."""
    shares = {}
    for name, (value, statistic) in one.items():
        change = np.asarray(value, dtype=object) - np.asarray(other[name][0], dtype=object)
        shares[name] = float((change * change).sum() / statistic.sensitivity_squared(relation))
    return shares


@pytest.mark.parametrize("kind", list(METHODS))
@pytest.mark.parametrize("schema", [LISTED, IDS], ids=["listed", "ids"])
def test_no_person_moves_a_sum_further_than_charged(kind: str, schema: cf.Schema) -> None:
    frame, worst = crowd(), 0.0
    with_others = {name: pd.concat([frame, own], ignore_index=True) for name, own in persons(frame)}
    before = sums(schema, frame, METHODS[kind], "add-remove")
    for name, own in with_others.items():
        shares = moved(sums(schema, own, METHODS[kind], "add-remove"), before)
        assert max(shares.values()) <= 1.0, (name, shares)
        worst = max(worst, *shares.values())
    first, *rest = with_others.values()
    before = sums(schema, first, METHODS[kind], "substitute")
    for own in rest:
        shares = moved(sums(schema, own, METHODS[kind], "substitute"), before, "substitute")
        assert max(shares.values()) <= 1.0, shares
    # a count or a cell moves by all that is charged
    assert worst > 0.9


@pytest.mark.few("listed-means", "listed-line", "ids-odds")
@pytest.mark.parametrize("kind", list(METHODS))
@pytest.mark.parametrize("schema", [LISTED, IDS], ids=["listed", "ids"])
def test_no_person_moves_a_whole_release_further_than_charged(kind: str, schema: cf.Schema) -> None:
    """At the weights' cut, lines and limits that a release found: with what each sum moves by there, and nothing else that tells of her."""
    frame, worst = crowd(), 0.0
    plan = cf.plan(METHODS[kind], schema, cf.GDP(1.0))
    plan = keyed(plan, key_of(schema, None))
    for seed, (name, own) in enumerate(persons(frame)):
        with_her = pd.concat([frame, own], ignore_index=True)
        with (
            _bounded(cf.read(frame, schema), key_of(schema, None), plan) as one,
            _bounded(cf.read(with_her, schema), key_of(schema, None), plan) as other,
        ):
            found = replay(METHODS[kind], plan, one, other, seed=seed, thorough=False)
        assert found.ok, (name, found.problems)
        worst = max(worst, float(sum(moved.cost for moved in found.moved.values())))
    assert 0.2 < worst <= 1.0


@pytest.mark.parametrize("kind", list(METHODS))
def test_a_person_in_no_public_psu_moves_nothing(kind: str) -> None:
    """Names that no list has, names of another stratum, missing ones, and 1, k + 1 and 10 k rows of them; the paid counts of units, of
    ranges and of clipped values alone count her, as they count all.
    """
    frame = crowd()
    before = sums(LISTED, frame, METHODS[kind], "add-remove")
    for rows in ROWS:
        for wrong in ({"v": "p9"}, {"v": "p6", "h": "n"}, {"v": None}, {"h": None}):
            strange = pd.DataFrame([{**HIGH, **wrong}] * rows).assign(pid="b")
            shares = moved(sums(LISTED, pd.concat([frame, strange]), METHODS[kind], "add-remove"), before)
            ranges = [shares.pop(name) for name in list(shares) if name.startswith("range of ")]
            assert shares.pop(LOST) <= 1.0 and shares.pop("contributions") == 1.0 and max(shares.values()) == 0.0, (
                wrong,
                shares,
            )
            assert ranges and max(ranges) <= 1.0, (wrong, ranges)


@pytest.mark.parametrize("schema", [LISTED, IDS], ids=["listed", "ids"])
def test_a_row_too_many_would_be_seen(schema: cf.Schema) -> None:
    """The same person under ids of her own, as without a unit: the sums move by more than is charged for one."""
    frame, kind = crowd(), METHODS["means"]
    many = pd.DataFrame([HIGH] * 10).assign(pid=[f"b{k}" for k in range(10)])
    before = sums(schema, frame, kind, "add-remove")
    shares = moved(sums(schema, pd.concat([frame, many], ignore_index=True), kind, "add-remove"), before)
    assert max(shares.values()) > 10.0


def test_a_person_in_several_psus_is_in_one_of_them_whatever_the_order() -> None:
    """Rows in any order give the same sums: where she counts follows from her own rows and the key."""
    frame, own = crowd(), dict(persons(crowd()))["10 rows in several PSUs"]
    for schema in (LISTED, IDS):
        found = [
            sums(schema, pd.concat(parts, ignore_index=True), METHODS["means"], "add-remove")
            for parts in ((frame, own), (own[::-1], frame), (own[5:], frame, own[:5]))
        ]
        for other in found[1:]:
            assert max(moved(other, found[0]).values()) == 0.0


@pytest.mark.parametrize("kind", list(METHODS))
@pytest.mark.parametrize("schema", [LISTED, IDS], ids=["listed", "ids"])
def test_what_is_told_beside_noise_follows_from_noisy_numbers_alone(
    kind: str, schema: cf.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other records under the same noisy numbers are told the same cut of weights, limits, scales and forms, to the bit."""
    told: dict[str, Noisy] = {}
    draw = Meter.draw

    def once(self: Meter, name: str, integers: Any) -> Noisy:
        found = draw(self, name, integers)
        return told.setdefault(name, found)

    monkeypatch.setattr(Meter, "draw", once)
    plan = cf.plan(METHODS[kind], schema, cf.GDP(1.0))
    one = crowd()
    other = one.iloc[:20].assign(w=0.1, y=100.0, x=9.0, o=0, sex="m")
    first, second = (
        cf.release(plan, cf.read(frame, schema), ledger=None, noise=SimulatedNoise(1)).public for frame in (one, other)
    )
    assert len(told) >= 3 and list(first) == list(second) and len(first) >= 2
    for name, value in first.items():
        assert np.array_equal(value, second[name], equal_nan=True), name


def test_of_what_the_cut_leaves_out_a_person_in_no_public_psu_has_no_part() -> None:
    """The sum is of a cut that a histogram chose; a plan's own, at the bound, is 0 of anybody."""
    frame, path = crowd(), SurveyPath.of(METHODS["means"], LISTED)
    assert path is not None
    tail = path.tail(path.capped(4.0))

    def drawn(*more: dict[str, Any]) -> int:
        whole = pd.concat([frame, pd.DataFrame([*more]).assign(pid="b")]) if more else frame
        (found,) = cf.read(whole, LISTED).aggregate(tail)
        return int(found[0])

    before = drawn()
    assert drawn(HIGH) - before == 2**20
    for wrong in ({"v": "p9"}, {"v": "p6", "h": "n"}, {"v": None}, {"h": None}, {"w": None}):
        assert drawn({**HIGH, **wrong}) == before, wrong
