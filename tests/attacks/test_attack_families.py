"""Attacks on the draws of other families of Fisher scoring: probit, and counts with their cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.test_attack_fisher import (
    BRANCHES,
    FORMULA,
    K,
    nothing_else_tells_apart,
    records,
    replays,
    schema_of,
    worst_neighbours,
)
from tests.few import few

import confide as cf
from confide.core import seal
from confide.core.statistic import WrappedSource
from confide.methods.regression.glm.clipping import CountCut
from confide.methods.regression.glm.sums import COUNT_CELLS, CountIndices
from confide.noise import SimulatedNoise
from confide.regression import Logistic, Poisson

pytestmark = pytest.mark.usefixtures("declared")

#: The method and the largest outcome.
METHODS: dict[str, tuple[Any, int]] = {
    "probit": (Logistic(FORMULA, link="probit"), 1),
    "counts": (Poisson(FORMULA), 100),
}


@pytest.mark.few(
    "probit-60-1-add-remove", "probit-1200-3-add-remove", "counts-360-2-add-remove", "counts-3600-4-add-remove"
)
@pytest.mark.parametrize("relation", few(Logistic.relations, 0))
@pytest.mark.parametrize(("n", "steps"), BRANCHES)
@pytest.mark.parametrize("name", METHODS)
def test_nothing_but_the_planned_sums_tells_data_sets_apart(name: str, n: int, steps: int, relation: str) -> None:
    nothing_else_tells_apart(*METHODS[name], n, steps, relation)


@pytest.mark.few("probit-60-add-remove", "probit-1200-substitute", "counts-60-substitute", "counts-1200-add-remove")
@pytest.mark.parametrize("relation", Logistic.relations)
@pytest.mark.parametrize("n", [60, 200 * K])
@pytest.mark.parametrize("name", METHODS)
def test_the_worst_neighbours_move_no_sum_beyond_its_sensitivity(name: str, n: int, relation: str) -> None:
    worst_neighbours(*METHODS[name], n, relation)


def test_counts_of_dropped_records_are_in_no_cell() -> None:
    rows = CountIndices(cf.schema.ModelMatrix.of(FORMULA, schema_of(100)))
    codes = np.zeros((len(rows.columns), 3))
    codes[rows.columns.index("x"), 1] = -1.0
    codes[rows.columns.index("y")] = [0.0, 50.0, 100.0]
    assert rows(codes)[0].tolist() == [1.0, 0.0, float(COUNT_CELLS)]


def test_where_counts_are_cut_follows_from_noisy_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cut for data sets whose counts lie elsewhere, put at the edge behind the last cell that is seen, so that it is below 100."""
    monkeypatch.setattr(
        CountCut, "cut", property(lambda self: float(self._edges[min(self._last + 1, COUNT_CELLS - 1)]))
    )
    for n in (60, 200 * K):
        for found in replays(*METHODS["counts"], n, "add-remove"):
            assert found.problems == ()
    # cells tell cuts of these records apart: with their true numbers in the place of noisy ones it would show
    cuts = {CountCut(np.eye(COUNT_CELLS)[j] * 100, 1.0, 100.0, 100.0, K, 1.0).cut for j in range(10, 25)}
    assert len(cuts) == 15 and max(cuts) < 100.0


def test_every_sum_of_a_line_of_counts_is_cut_where_the_release_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum with another cut would be as private, and not what the table reads."""
    monkeypatch.setattr(CountCut, "cut", property(lambda self: 6.25))
    asked: list[Any] = []

    class Spied(WrappedSource):
        def aggregate(self, *statistics: Any) -> Any:
            asked.extend(statistics)
            return self._source.aggregate(*statistics)

    method, most = METHODS["counts"]
    plan = cf.plan(method, schema_of(most), cf.GDP(1.0))
    release = seal(method, Spied(cf.read(records(4_000, 4, most), schema_of(most))), plan, SimulatedNoise(4))
    # after the ranges a sum is asked for with its columns coded again
    own = [getattr(statistic, "statistic", statistic) for statistic in asked]
    families = [statistic.map.family for statistic in own if hasattr(statistic.map, "family")]
    assert release.public["cut"] == [6.25] and len(families) >= 7
    assert {family.cut for family in families} == {6.25}
