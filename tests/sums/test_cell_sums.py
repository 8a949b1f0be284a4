"""Cells and free moments: exact integers, bounds attained and never passed under both relations, the same bits in any batch."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.errors import PlanError, SchemaError
from confide.methods.tables.sums import RowNumber, UnitCrossing
from confide.sources.aggregation import _following
from confide.sums.cells.cell_sums import Attribute, CellCounts, CellIndex, CellTotals, Crossing
from confide.sums.cells.moments import Measure, MomentRows, count_steps, free_moments
from confide.testing import codes_of

SCHEMA = cf.Schema(
    {
        "f": cf.Categorical(["a", "b", "c"]),
        "g": cf.Integer(0, 3),
        "x": cf.Numeric(-2, 6),
        "y": cf.Numeric(0, 9, on_missing=1.0),
    }
)
CROSSING = Crossing((Attribute.of("f", SCHEMA), Attribute.of("g", SCHEMA), Attribute.cut("x", (0, 3), SCHEMA)), SCHEMA)


def statistics(relation: str) -> list[CellCounts | CellTotals]:
    x, y = Measure.of("x", SCHEMA), Measure.of("y", SCHEMA)
    one = Crossing.of(("f",), SCHEMA)
    return [
        CellCounts(CellIndex(CROSSING, (0, 2))),
        CellTotals(MomentRows(one, (0,), (x,), count_steps(1, relation))),
        CellTotals(MomentRows(one, (), (x, y), count_steps(2, relation))),
    ]


def root_up(value: Fraction) -> Fraction:
    return Fraction(isqrt(int(value) << 60) + 1, 1 << 30)


@pytest.mark.parametrize(
    ("which", "relation"),
    [
        pytest.param(0, "substitute", marks=pytest.mark.long),
        (1, "add-remove"),
        pytest.param(1, "substitute", marks=pytest.mark.long),
        pytest.param(2, "add-remove", marks=pytest.mark.long),
    ],
)
def test_the_bound_is_attained_and_never_passed(which: int, relation: str) -> None:
    own = statistics(relation)[which]

    def query(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(cf.read(frame, SCHEMA).aggregate(own)[0])

    found = cf.audit.falsify_sensitivity(
        query,
        SCHEMA,
        root_up(own.sensitivity_squared(relation)),
        relation=relation,
        n=4 if relation == "substitute" else None,
        restarts=1,
    )
    assert not found.violated, found
    assert found.ratio > 0.999


place = st.one_of(st.sampled_from([-2.0, 2.0, 6.0, 4.3]), st.floats(-3, 7), st.none())


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 3), place, place), min_size=2, max_size=6)
)
def test_no_pair_of_records_goes_beyond_the_sensitivity(records: list[tuple[object, ...]]) -> None:
    frame = pd.DataFrame(records, columns=["f", "g", "x", "y"])
    for relation in ("add-remove", "substitute"):
        for own in statistics(relation)[1:]:
            rows = np.asarray(own.map(codes_of(cf.read(frame, SCHEMA), own.map))).astype(object)
            assert max((rows * rows).sum(axis=0)) <= own.map.l2_squared
            if relation == "substitute":
                gaps = ((rows[:, :, None] - rows[:, None, :]) ** 2).sum(axis=0)
                assert gaps.max() <= own.sensitivity_squared(relation)


def test_phi_has_length_at_most_one_and_a_mutant_has_not() -> None:
    u = np.linspace(-1, 1, 4001)
    assert (free_moments(u) ** 2).sum(axis=0).max() <= 1.0 + 1e-15
    mutant = np.stack([u, u * u, u**3, u**4])  # plain powers, which cost four times as much
    assert (mutant**2).sum(axis=0).max() == pytest.approx(4.0)


def test_a_statistic_is_what_its_map_says_record_by_record() -> None:
    frame = SCHEMA.sample(300, 3)
    frame.loc[::7, "x"] = np.nan
    for own in statistics("add-remove"):
        total = np.asarray(cf.read(frame, SCHEMA).aggregate(own)[0], dtype=float)
        rows = np.asarray(own.map(codes_of(cf.read(frame, SCHEMA), own.map)))
        if own.norm == "cells":
            assert total.tolist() == np.bincount(rows[0].astype(int), minlength=own.map.cells + 1)[1:].tolist()
        else:
            assert total.tolist() == rows.sum(axis=1).tolist()
            assert own.map.rows(codes_of(cf.read(frame, SCHEMA), own.map))[1].shape[0] == own.map.block


def test_counts_are_those_of_pandas_and_cuts_are_closed_on_the_left() -> None:
    frame = pd.DataFrame({"f": ["a", "b", "a", None], "g": [0, 1, 3, 2], "x": [0.0, -0.001, 3.0, 1.0], "y": 0.0})
    own = CellCounts(CellIndex(CROSSING, (2,)))
    assert CROSSING.attributes[2].labels == ("<0", "[0, 3)", ">=3")
    assert cf.read(frame, SCHEMA).aggregate(own)[0].tolist() == [1, 1, 1]  # the record without f is in no cell


def test_several_measures_count_their_missing_values() -> None:
    frame = pd.DataFrame({"f": ["a"] * 3, "g": 0, "x": [1.0, None, 2.0], "y": [0.0, 1.0, 2.0]})
    x, y = Measure.of("x", SCHEMA), Measure.of("y", SCHEMA)
    rows = MomentRows(Crossing.of(("f",), SCHEMA), (0,), (x, y), 1)
    total = np.asarray(cf.read(frame, SCHEMA).aggregate(CellTotals(rows))[0], dtype=float).reshape(rows.block, 3)
    assert rows.starts == (1, 6)
    assert rows.block == 10
    assert total[0, 0] == 3
    assert total[5, 0] == 1 << 20


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Attribute.of("x", SCHEMA), PlanError),
        (lambda: Attribute.of("q", SCHEMA), SchemaError),
        (lambda: Attribute.cut("x", (0, 9), SCHEMA), SchemaError),
        (lambda: Attribute.cut("x", (-2, 6), SCHEMA), PlanError),
        (lambda: Attribute.cut("x", (3, 1), SCHEMA), PlanError),
        (lambda: Attribute.cut("f", (3,), SCHEMA), PlanError),
        (lambda: Measure.of("f", SCHEMA), PlanError),
        (lambda: Measure.of("2 * 3", SCHEMA), PlanError),
    ],
)
def test_bad_input_names_what_works(make: object, error: type[Exception]) -> None:
    with refuses(error):
        make()  # type: ignore[operator]


def marginals(crossing: Crossing) -> list[CellCounts | CellTotals]:
    x, y = Measure.of("x", SCHEMA), Measure.of("y", SCHEMA)
    counts = [CellCounts(CellIndex(crossing, axes)) for axes in ((0, 1, 2), (0, 2), (1,), ())]
    return [*counts, *(CellTotals(MomentRows(crossing, axes, (x, y), 1 << 19)) for axes in ((0, 1), (1,), ()))]


def test_marginals_that_follow_from_finer_ones_are_those_that_are_counted_alone() -> None:
    generator = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "f": generator.choice(["a", "b", "c", "z"], 500),  # "z" is no level: in no cell
            "g": generator.integers(0, 4, 500),
            "x": generator.uniform(-3, 7, 500),
            "y": np.where(generator.random(500) < 0.2, np.nan, generator.uniform(0, 9, 500)),
        }
    )
    source, asked = cf.read(frame, SCHEMA), marginals(CROSSING)
    together, alone = source.aggregate(*asked), [source.aggregate(one)[0] for one in asked]
    assert all(one.tolist() == other.tolist() for one, other in zip(together, alone, strict=True))
    # from the smallest finer one, those of one crossing and one kind alone
    follow = {at: finer for at, (finer, _) in _following(asked).items()}
    assert follow == {1: 0, 2: 0, 3: 2, 5: 4, 6: 5}
    assert _following(asked[1:3]) == {} == _following([asked[0], asked[5]])
    assert _following([CellCounts(CellIndex(CROSSING, (2, 0))), asked[1]]) == {}
    # means of another column, at another count or of another crossing are other sums
    x, y = Measure.of("x", SCHEMA), Measure.of("y", SCHEMA)
    finer = CellTotals(MomentRows(CROSSING, (0, 1), (x,), 1 << 19))
    others = [MomentRows(CROSSING, (0,), (y,), 1 << 19), MomentRows(CROSSING, (0,), (x,), 1 << 18)]
    fewer = Crossing(CROSSING.attributes[:2], SCHEMA)
    for other in (*others, MomentRows(fewer, (0,), (x,), 1 << 19)):
        assert _following([finer, CellTotals(other)]) == {}
    assert list(_following([finer, CellTotals(MomentRows(CROSSING, (0,), (x,), 1 << 19))])) == [1]


def test_units_are_counted_in_each_marginal_by_themselves() -> None:
    schema = cf.Schema({"f": cf.Categorical(["a", "b"])}, unit=cf.Unit("id", rows=2))
    alike = (
        RowNumber.at_least_one("any(f == 'b')", "f == 'b'", schema),
        RowNumber.number("number(1)", None, (), schema),
    )
    units = UnitCrossing(alike, schema)
    assert _following([CellCounts(CellIndex(units, axes)) for axes in ((0, 1), (0,))]) == {}
