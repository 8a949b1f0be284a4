"""The integer strategy of cumulative counts: its columns, its noise, its statistics from histograms, its bins."""

from __future__ import annotations

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.core import Total
from confide.sums.cells.cell_sums import Crossing
from confide.sums.cells.moments import Measure
from confide.sums.distributions.cumulative import Bins, BinTotals, CumulativeRows, ScoreRows, strategy
from confide.testing.test_data import codes_of, edge_frame

SCHEMA = cf.Schema({"y": cf.Numeric(0, 10), "k": cf.Categorical(["a", "b", "c"]), "i": cf.Integer(-2, 17)})


def _rows(kind: type, size: int = 12, **more: int) -> CumulativeRows | ScoreRows:
    crossing, measure = Crossing.of(("k",), SCHEMA), Measure.of("y", SCHEMA)
    return kind(crossing, (0,), measure, Bins.of(measure, size), **more)


@pytest.mark.parametrize(("bins", "mean", "most"), [(64, 3.85, 4.38), (256, 5.85, 6.47), (1024, 8.25, 8.94)])
def test_the_noise_of_shares_up_to_an_edge_is_that_of_the_page(bins: int, mean: float, most: float) -> None:
    own = strategy(bins)
    variances = own.centred(np.arange(1, bins + 1) / bins) * own.longest / 4.0**20
    assert round(float(variances[:-1].mean()), 2) == mean
    assert round(float(variances.max()), 2) == most


def test_no_column_is_longer_than_the_longest_and_every_one_is_near() -> None:
    own = strategy(256)
    squares = (own.table.astype(object) ** 2).sum(axis=0)
    assert max(squares) == own.longest
    assert min(squares) > own.longest - 2 * 2**21  # isqrt rounds down: less than twice the root is left
    assert own.table.min() >= 0


def test_least_squares_undoes_the_strategy() -> None:
    counts = np.random.default_rng(1).integers(0, 900, (3, 40)).astype(float)
    own = strategy(40)
    np.testing.assert_allclose(own.counts(counts @ own.table.T), counts, atol=1e-7)


@pytest.mark.parametrize("kind", [CumulativeRows, ScoreRows])
def test_totals_from_histograms_are_the_sums_of_the_rows(kind: type) -> None:
    more = {"count": 2**19, "scores": tuple(np.linspace(-1, 1, 12))} if kind is ScoreRows else {}
    rows = _rows(kind, **more)
    source = cf.read(edge_frame(SCHEMA, 500), SCHEMA)
    fast, slow = source.aggregate(BinTotals(rows), Total(rows))
    assert [int(v) for v in fast] == [int(v) for v in slow]
    row = rows(codes_of(source, rows)).astype(object)
    assert max((row * row).sum(axis=0)) <= rows.l2_squared
    assert max(abs(row).sum(axis=0)) <= rows.l1


def test_two_records_move_the_totals_by_at_most_the_sensitivity_and_some_by_nearly_all_of_it() -> None:
    for rows in (_rows(CumulativeRows), _rows(ScoreRows, count=2**18, scores=tuple(np.linspace(-1, 1, 12)))):
        codes = codes_of(cf.read(edge_frame(SCHEMA, 200), SCHEMA), rows)
        each = rows(codes).astype(object)
        moved = max(int(((each[:, i : i + 1] - each) ** 2).sum(axis=0).max()) for i in range(0, 200, 3))
        bound = BinTotals(rows).sensitivity_squared("substitute")
        assert 0.99 * bound < moved <= bound


def test_a_doubled_slack_is_found() -> None:
    own = strategy(16)
    table = own.table.copy()
    table[32:] *= 2
    assert max((table.astype(object) ** 2).sum(axis=0)) > own.longest


def test_bins_of_public_edges_keep_values_at_an_edge_to_its_right() -> None:
    measure = Measure.of("y", SCHEMA)
    bins = Bins.of(measure, (2.5, 5))
    assert bins.edges == (0.0, 2.5, 5.0, 10.0)
    codes = SCHEMA["y"].code([0.0, 2.4999, 2.50001, 4.9999, 5.00001, 10.0])
    assert bins.at(codes).tolist() == [0, 0, 1, 1, 2, 2]
    whole = Bins.of(Measure.of("i", SCHEMA), 256)
    assert (whole.size, whole.lows[0], whole.highs[0], whole.highs[-1], whole.step) == (20, -2.0, -2.0, 17.0, 1.0)


@pytest.mark.parametrize(
    "bins",
    [
        1,
        5000,
        (3, 2),
        (-4, 2),
        "x",
        (1.0, 1.0000001),
    ],
)
def test_bins_that_cannot_be_used_say_what_can(bins: object) -> None:
    with refuses((cf.errors.PlanError, cf.errors.SchemaError)):
        Bins.of(Measure.of("y", SCHEMA), bins)  # type: ignore[arg-type]
