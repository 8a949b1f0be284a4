"""What a noisy histogram of units says: noise in the cell of 2^16 rows must not pass for units, nor a title say a thing twice."""

from __future__ import annotations

import numpy as np

import confide as cf
from confide.core.units.contributions import CELLS, Counted


def test_noise_in_empty_cells_is_not_taken_for_rows() -> None:
    counts, sd = np.zeros(CELLS), 24.5
    counts[:4] = 100, 180, 620, 570
    generator = np.random.default_rng(1)
    lost = [Counted.of(counts + generator.normal(0, sd, CELLS), sd, 1).lost for _ in range(2_000)]
    assert np.mean(np.abs(np.array(lost) - 0.77) > 0.1) < 0.01  # 16 of 100 at a threshold of two standard deviations


def test_a_table_says_once_how_units_count() -> None:
    schema = cf.Schema({"k": cf.Categorical(["a", "b"])}, dataset="people", unit=cf.Unit("person"))
    data = cf.read(schema.sample(600, seed=1), schema)
    table = cf.tables.counts("k", data, inference="population", privacy=cf.GDP(1.0), ledger=None)
    assert table.target == "numbers of records by k, of the population; one row of each person, chosen at random"


def test_the_share_of_rows_is_a_range_where_a_cell_holds_several_sizes() -> None:
    counts = np.zeros(CELLS)
    counts[3] = 545  # eight rows each, an eighth of which counts; a cell of 5 to 8
    said = Counted.of(counts, 0.5, 1)
    low, high = said.lost_range
    assert low <= 7 / 8 <= high and "80% to 88%" in said.words(1) and "12% to 20%" in said.words(1, weighted=True)
    assert "about 50%" in Counted.of(np.eye(CELLS)[1] * 100, 0.5, 1).words(1)


def test_what_stands_after_a_plus_or_minus_is_at_95_percent_as_elsewhere() -> None:
    said = Counted.of(np.eye(CELLS)[0] * 1_000, 10.0, 1)
    assert said.words(1, whole=True).startswith(f"1,000 ± {1.96 * said.units_sd:,.0f}; ")
