"""All records of a small schema, and all pairs of them, against the sensitivities that plans of tables and rank tests state and pay."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.core import Statistic, Subset, leaves
from confide.core.lost_values import read_row
from confide.sums.cells.cell_sums import CellTotals, Crossing
from confide.sums.cells.moments import Measure, MomentRows
from confide.sums.coding import BOUND
from confide.sums.distributions.cumulative import ScoreRows

SCHEMA = cf.Schema(
    {
        "x": cf.Integer(0, 3, on_missing="drop"),
        "y": cf.Numeric(-1, 3, steps=5, on_missing="drop"),
        "g": cf.Categorical(["a", "b", "c"], on_missing="drop"),
        "h": cf.Categorical(["u", "v"], on_missing="u"),
    }
)
METHODS: dict[str, Any] = {
    "counts": cf.tables.Counts("g + h:cut(y, 1)", inference="dataset"),
    "means": cf.tables.Means("x + y ~ g", inference="dataset"),
    "distribution": cf.tables.Quantiles("y ~ h", bins=4),
    "table one": cf.tables.TableOne("y + g ~ h", medians=("y",)),
    "ranks": cf.tests.MannWhitney("y ~ h"),
    "signed ranks": cf.tests.Wilcoxon("y"),
    "correlation": cf.tests.Correlation("x + y"),
}


def _codes(name: str) -> list[int]:
    """The codes that a row of the coder can have: those of a column, or how its cell was read."""
    if name in map(read_row, SCHEMA.columns):
        return [0, 1, 2, 3]
    return [*range(SCHEMA[name].steps), *([-1] if SCHEMA[name].on_missing == "drop" else [])]


def contributions(statistic: Statistic) -> Any:
    """What each record adds, exactly: (records, numbers), with a row of zeros for none."""
    axes = [_codes(name) for name in statistic.map.columns]
    codes = np.array(list(product(*axes)), dtype=float).reshape(-1, len(axes)).T
    rows = {(0,) * int(np.prod(statistic.shape))}
    for k in range(codes.shape[1]):
        value = statistic.value(statistic.update(statistic.zero(), codes[:, [k]]))
        rows.add(tuple(int(v) for v in np.ravel(value)))
    return np.array(sorted(rows), dtype=object)


def furthest(statistic: Statistic, relation: str) -> Fraction:
    rows = contributions(statistic)
    lengths = (rows * rows).sum(axis=1)
    if relation == "add-remove":
        return Fraction(int(lengths.max()))
    apart = lengths[:, None] + lengths[None, :] - 2 * (rows @ rows.T)
    return Fraction(int(apart.max()))


def variants(statistic: Statistic) -> list[Statistic]:
    """The statistic; of scores, which noisy numbers choose, with extreme ones."""
    inner: Any = statistic.statistic if isinstance(statistic, Subset) else statistic
    if not isinstance(inner.map, ScoreRows):
        return [statistic]
    size = inner.map.bins.size
    some = [(-1.0, 1.0) * size, tuple(np.linspace(-1, 1, size)), (2.0, float("nan")) * size]
    made = [replace(inner, map=replace(inner.map, scores=tuple(map(float, one[:size])))) for one in some]
    return [Subset(one, statistic.predicate) if isinstance(statistic, Subset) else one for one in made]


@pytest.mark.parametrize("where", [None, "x >= 2 | g == 'a'"])
@pytest.mark.parametrize("name", METHODS)
def test_no_record_and_no_pair_moves_more_than_is_paid(name: str, where: str | None) -> None:
    for relation in ("add-remove", "substitute"):
        plan = cf.plan(replace(METHODS[name], where=where), SCHEMA, cf.GDP(1.0, relation=relation), n=50)
        paid = {leaf.name: (leaf.sensitivity * leaf.step) ** 2 for leaf in leaves(plan.event)}
        for spend, squared in paid.items():
            own = plan.statistics[spend]
            stated = own.sensitivity_squared(relation)
            found = max(furthest(one, relation) for one in variants(own))
            assert found <= stated <= squared, (spend, relation)
            assert found >= stated * Fraction(9, 20), (spend, relation)  # the bound is about one that records reach


def test_two_records_in_two_cells_count_twice_whatever_the_count_weighs() -> None:
    rows = MomentRows(Crossing.of(("h",), SCHEMA), (0,), (Measure.of("y", SCHEMA),), count=3 << 20)
    own = CellTotals(rows)
    assert own.sensitivity_squared("substitute") == 2 * (9 * BOUND + BOUND)
    assert furthest(own, "substitute") > own.sensitivity_squared("substitute") * Fraction(999, 1000)


@pytest.mark.parametrize(
    ("formula", "where", "exact"),
    [("h", None, True), ("h", "x >= 2", False), ("g", None, False), ("g * h", None, False)],
)
def test_a_total_is_exact_only_where_no_record_can_be_left_out(formula: str, where: str | None, exact: bool) -> None:
    method = cf.tables.Counts(formula, inference="dataset", where=where)
    plan = cf.plan(method, SCHEMA, cf.GDP(1.0, relation="substitute"), n=50)
    assert ("records" in plan.constants, "(total)" not in plan.statistics) == (exact, exact)


@pytest.mark.parametrize(("formula", "exact"), [("x ~ h", False), ("x + y ~ h", True)])
def test_a_total_of_means_is_exact_only_where_missing_values_are_counted(formula: str, exact: bool) -> None:
    plan = cf.plan(cf.tables.Means(formula, inference="dataset"), SCHEMA, cf.GDP(1.0, relation="substitute"), n=50)
    assert ("records" in plan.constants) == exact


def test_names_that_stand_for_two_marginals_are_refused() -> None:
    schema = cf.Schema({name: cf.Categorical(["p", "q"]) for name in ("a", "b", "a:b")})
    with refuses(cf.errors.PlanError):
        cf.plan(cf.tables.Counts("a * b + `a:b`", inference="dataset"), schema, cf.GDP(1.0))
