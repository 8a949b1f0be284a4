"""In how many PSUs records are, at least: how far one record, or a unit of several, moves what says it, and how often the bound misses."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import PlanError
from confide.sums.cells.cell_sums import Crossing
from confide.sums.cells.moments import Measure
from confide.sums.cells.weighted_cells import CappedWeight
from confide.sums.clusters.cluster_covariance import caps_of, fewest, fewest_behind, ramps_of
from confide.sums.clusters.psu_covariance import Contributing, PresentIn

COLUMNS: dict[str, Any] = {
    "f": cf.Categorical(["a", "b", "c"]),
    "y": cf.Numeric(0, 9, on_missing="drop"),
    "w": cf.Numeric(0, 4),
}
SCHEMA = cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=5))
CROSSING = Crossing.of(("f",), SCHEMA)
CAPS = np.array([[1, 3, 7], [5, 3, 9]])


def _of(numbers: np.ndarray, caps: np.ndarray = CAPS) -> np.ndarray:
    """Of so many records in each PSU and cell, (PSUs, cells)."""
    own = Contributing(PresentIn(CROSSING, (0,)), None).at(caps)
    return own.value(dict(enumerate(numbers.astype(np.int64))))


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_one_record_moves_it_by_no_more_than_is_charged_and_by_as_much(relation: str) -> None:
    own, g = Contributing(PresentIn(CROSSING, (0,)), None), np.random.default_rng(1)
    worst, sums = 0, 0
    for _ in range(400):
        base = g.integers(0, 12, (4, 3))
        here, there = base.copy(), base.copy()
        here[g.integers(4), g.integers(3)] += 1
        if relation == "substitute":
            there[g.integers(4), g.integers(3)] += 1
        moved = _of(here) - _of(there)
        worst, sums = max(worst, int((moved**2).sum())), max(sums, int(np.abs(moved).sum()))
    assert Fraction(worst) == own.sensitivity_squared(relation)
    assert Fraction(sums) == own.sensitivity_l1(relation)


def test_a_whole_unit_moves_it_as_one_record_does() -> None:
    """One with a row in each of five PSUs and of three cells is in one of them; units of which more rows count have no such tables."""
    method = cf.tables.Means("y ~ f", inference="population")
    schema = cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=5), unit=cf.Unit("pid"))
    plan = cf.plan(method, schema, cf.GDP(1.0, relation="add-remove"))
    spend = plan.spend("(in PSUs) f y")
    assert spend.sensitivity * spend.step == 1
    frame = pd.DataFrame({"pid": [1] * 5, "v": range(5), "f": list("abcab"), "y": 4.0, "w": 1.0})
    others = pd.DataFrame({"pid": [2, 3, 4], "v": [0, 1, 2], "f": list("abc"), "y": 4.0, "w": 1.0})
    here, there = (
        cf.read(one, schema).aggregate(plan.statistics[spend.name])[0] for one in (pd.concat([frame, others]), others)
    )
    assert ((here - there) ** 2).sum() <= 1
    assert plan.statistics[spend.name].sensitivity_squared("add-remove") == 1
    several = cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=5), unit=cf.Unit("pid", rows=3))
    with refuses(PlanError):
        cf.plan(method, several, cf.GDP(1.0))


def test_it_is_a_lower_bound_whatever_the_caps_are() -> None:
    g = np.random.default_rng(2)
    for _ in range(200):
        numbers = g.integers(0, 40, 30) * (g.random(30) < g.random())
        caps = caps_of(np.array([numbers.sum() * g.lognormal()]), 30.0, g.integers(1, 60))
        ramps = np.sum([ramps_of(np.array([one]), caps) for one in numbers], axis=0)
        assert fewest(ramps, 0.0, caps)[0] <= (numbers > 0).sum()
    # spread evenly, or in whole PSUs, it is their number
    even = ramps_of(np.full(30, 4), caps_of(120.0, 30.0, 60.0)).sum(axis=1)
    whole = ramps_of(np.array([60, 60]), caps_of(120.0, 30.0, 60.0)).sum(axis=1)
    caps = caps_of(120.0, 30.0, 60.0)
    assert (float(fewest(even, 0.0, caps)), float(fewest(whole, 0.0, caps))) == (30.0, 2.0)
    # a record beside whole PSUs is a part of one
    assert float(fewest(ramps_of(np.array([60, 60, 1]), caps).sum(axis=1), 0.0, caps)) == 2.25


@pytest.mark.parametrize("caps", [[5, 5], [5, 60]])
def test_noise_puts_it_above_the_number_once_in_twenty_at_most(caps: list[int]) -> None:
    """At a number that it can reach, with 99.9 % bounds of 4,000 draws."""
    g, sd, own = np.random.default_rng(3), 7.0, np.array(caps)
    exact = ramps_of(np.full(12, 60), own).sum(axis=1)
    noisy = exact[:, None] + sd * g.normal(size=(2, 4_000))
    missed = (fewest(noisy, sd, own[:, None]) > 12).mean()
    assert missed < 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / 4_000)
    if caps[0] == caps[1]:
        assert missed > 0.05 - 3.3 * np.sqrt(0.05 * 0.95 / 4_000)


def test_who_counts_in_a_cell() -> None:
    """Those with a level, a value and a weight above 0, alike in any batch; the map says which columns it reads."""
    own = PresentIn(CROSSING, (0,), Measure.of("y", SCHEMA), CappedWeight.named("w", SCHEMA))
    assert own.columns == ("f", "y", "w")
    codes = np.array([[0, 1, -1, 2, 2, 1], [0, -1, 5, 5, 5, 7], [3, 3, 3, 0, 9, 9]], dtype=float)
    rows = own(codes)
    assert rows.argmax(axis=0)[rows.any(axis=0)].tolist() == [0, 2, 1]
    assert rows.any(axis=0).tolist() == [True, False, False, False, True, True]
    apart = np.concatenate([own(codes[:, k : k + 1]) for k in range(6)], axis=1)
    assert (apart == rows).all()


def test_behind_a_meat_it_is_read_as_by_itself() -> None:
    ramps, record, caps = np.array([40.0, 25.0]), 1e9, np.array([4.0, 9.0])
    whole = np.diag(np.append(np.arange(5.0), record * ramps))
    noisy: Any = SimpleNamespace(decode=lambda: whole, variance=(2.0 * record) ** 2)
    ruler = np.array([3.0, 5.0, record, *caps])
    assert fewest_behind(noisy, ruler) == pytest.approx(float(fewest(ramps, 2.0, caps)), rel=1e-12)
