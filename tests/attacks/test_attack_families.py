"""Attacks on the draws of other families of Fisher scoring: probit, and counts with their cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.test_attack_fisher import BRANCHES, FORMULA, K, nothing_else_tells_apart, schema_of, worst_neighbours

import confide as cf
from confide.regression import Logistic

poisson = pytest.importorskip("confide.regression.poisson")
count_cells = pytest.importorskip("confide.mechanisms.count_cells")

METHODS = {"probit": (Logistic, {"link": "probit"}, 1), "counts": (poisson.Poisson, {}, 100)}


def method_of(name: str) -> tuple[Any, int]:
    """The method and the largest outcome."""
    kind, settings, most = METHODS[name]
    return kind(FORMULA, **settings), most


@pytest.mark.parametrize("relation", Logistic.relations)
@pytest.mark.parametrize(("n", "steps"), BRANCHES)
@pytest.mark.parametrize("name", METHODS)
def test_nothing_but_the_planned_sums_tells_data_sets_apart(name: str, n: int, steps: int, relation: str) -> None:
    nothing_else_tells_apart(*method_of(name), n, steps, relation)


@pytest.mark.parametrize("relation", Logistic.relations)
@pytest.mark.parametrize("n", [60, 200 * K])
@pytest.mark.parametrize("name", METHODS)
def test_the_worst_neighbours_move_no_sum_beyond_its_sensitivity(name: str, n: int, relation: str) -> None:
    worst_neighbours(*method_of(name), n, relation)


def test_counts_of_dropped_records_are_in_no_cell() -> None:
    rows = count_cells.CountIndices(cf.Design.of(FORMULA, schema_of(100)))
    codes = np.zeros((len(rows.columns), 3))
    codes[rows.columns.index("x"), 1] = -1.0
    codes[rows.columns.index("y")] = [0.0, 50.0, 100.0]
    assert rows(codes)[0].tolist() == [1.0, 0.0, float(count_cells.COUNT_CELLS)]
