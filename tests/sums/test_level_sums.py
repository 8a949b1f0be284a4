"""Sums by level: exact sensitivities over every pair of records, hostile fits, and the same integers in any batch."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.core import Gram, Total
from confide.methods.regression.factors.draw import FactorMeans
from confide.methods.regression.factors.sums import (
    FactorLevels,
    LevelRows,
    LevelScores,
    LevelSquares,
    LevelSums,
    ResidualCells,
    ResidualIndices,
    SquaredRows,
)
from confide.methods.regression.sums.scores import SizeIndices
from confide.methods.regression.sums.whitened_rows import Frame
from confide.schema import ModelMatrix
from confide.sums.coding import BOUND, Box

SCHEMA = cf.Schema(
    {
        "f": cf.Categorical(["a", "b", "c"], on_missing="drop"),
        "g": cf.Categorical(["u", "v", "w", "x"], on_missing="drop"),
        "h": cf.Categorical(["p", "q", "r"]),
        "k": cf.Integer(0, 1, on_missing="drop"),
        "x": cf.Numeric(0, 1),
        "y": cf.Numeric(-3, 7, steps=1025, on_missing="drop"),
    }
)
FORMULAS = (
    "y ~ 1",
    "y ~ f",
    "y ~ 0 + g",
    "y ~ k",
    "y ~ f:k",
    "y ~ f + g",
    "y ~ f + g + h",
    "y ~ f*k + g",
    "y ~ f*k + g*k + h",
)
RELATIONS = ("add-remove", "substitute")


def way(formula: str) -> FactorMeans:
    found = FactorMeans.of("test", SCHEMA, ModelMatrix.of(formula, SCHEMA))
    assert found is not None
    return found


def every_record(levels: FactorLevels, responses: tuple[float, ...] = (0.0, 300.0, 1024.0)) -> np.ndarray:
    """Codes of every combination of levels with the ends of the response and one value between, and of a missing one."""
    choices = [
        responses if name == "y" else tuple(float(k) for k in range(SCHEMA[name].steps)) for name in levels.columns
    ]
    rows = [*product(*choices), tuple(-1.0 if name == "y" else 0.0 for name in levels.columns)]
    return np.array(rows).T


def whole(rows: np.ndarray) -> np.ndarray:
    assert (rows == np.rint(rows)).all()
    return rows.astype(np.int64).astype(object)


def worst(statistic: Any, codes: np.ndarray, relation: str) -> int:
    """The largest squared change over all neighbours: no record for one, or every record for every other one."""
    rows = whole(statistic.map(codes))
    nothing = np.zeros(len(rows), dtype=object)
    found = int(statistic.moved_squared(nothing, rows).max())
    if relation == "substitute":
        found = max(found, *(int(statistic.moved_squared(own, rows).max()) for own in rows.T))
    return found


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_pair_of_records_moves_the_sums_beyond_the_bound_and_some_pair_reaches_it(
    formula: str, relation: str
) -> None:
    path = way(formula)
    statistic = LevelSums(path.rows(relation))
    found = worst(statistic, every_record(path.levels), relation)
    bound = statistic.sensitivity_squared(relation)
    assert found <= bound
    # overlapping blocks cannot differ in every combination of blocks; all others attain the bound exactly
    overlapping = sum(map(len, (block.columns for block in path.levels.blocks))) > len(path.levels.columns) - 1
    assert found == bound or (overlapping and found > 0.8 * bound)


def test_one_factor_under_substitute_costs_what_its_sums_alone_would() -> None:
    """Same level: 4 2^40 W^2 from opposite ends; another level: 2 U^2 + 2 2^40 W^2. Neither is 2 or 3 times 2^40 W^2."""
    statistic = LevelSums(way("y ~ f").rows("substitute"))
    unit = statistic.map.sums[0]
    assert statistic.map.counts == (unit << 20,)
    assert statistic.sensitivity_squared("substitute") == 4 * BOUND * unit**2
    assert statistic.sensitivity_squared("add-remove") == 2 * BOUND * unit**2


@pytest.mark.parametrize("units", [((5,), (), (1,)), ((1 << 20,), (), (3,)), ((1 << 24,), (), (1,))])
def test_any_units_have_their_own_exact_bound(units: Any) -> None:
    levels = way("y ~ f").levels
    for relation in RELATIONS:
        statistic = LevelSums(LevelRows(levels, *units))
        assert worst(statistic, every_record(levels), relation) == statistic.sensitivity_squared(relation)


@pytest.mark.parametrize("formula", ["y ~ f", "y ~ f + g", "y ~ 1"])
def test_the_sums_are_those_of_the_rows_in_any_batch(formula: str) -> None:
    statistic = LevelSums(way(formula).rows("add-remove"))
    generator = np.random.default_rng(3)
    records = every_record(statistic.map.levels)
    codes = records[:, generator.integers(0, records.shape[1], 500)]
    sums = whole(statistic.map(codes)).sum(axis=1)
    assert (statistic.value(statistic.update(statistic.zero(), codes)) == sums).all()
    for size in (1, 7, 333):
        state = statistic.zero()
        for start in range(0, 500, size):
            part = np.asfortranarray(codes[:, start : start + size])
            state = statistic.merge(state, statistic.update(statistic.zero(), part))
        assert (statistic.value(state) == sums).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("formula", ["y ~ f", "y ~ f + g"])
def test_functions_of_residuals_keep_their_bounds_at_any_line(formula: str, relation: str) -> None:
    """Fits over nine decades, infinite and no numbers; limits down to 1e-300; axes that are far longer than one."""
    path, generator = way(formula), np.random.default_rng(7)
    codes, found = every_record(path.levels), {"tail": 0.0, "square": 0.0, "meat": 0.0}
    for k in range(36):
        fits = tuple(
            tuple(generator.choice([0.0, -1.0, 1e9, np.nan, np.inf, float(generator.normal())]) for _ in range(levels))
            if k
            else (0.0,) * levels
            for levels in path.levels.levels
        )
        reach = float(10.0 ** generator.uniform(-3, 0.5)) if k % 9 else (1.0 if k == 0 else 1e-300)
        edges = np.sort(10.0 ** generator.uniform(-3, 0.3, 8))
        axes = tuple(
            tuple(tuple(generator.normal(size=path.levels.width) * (1e6 if k % 2 else 1.0)) for _ in range(levels))
            for levels in path.levels.levels
        )
        scores = LevelScores(path.levels, axes=axes).at(fits, reach)
        assert (whole(scores(codes)) ** 2).sum(axis=0).max() <= BOUND
        meat = LevelSquares.of(path.levels).at(fits, reach) if len(axes) == 1 else Gram(scores)
        for name, statistic in (
            ("tail", ResidualCells(ResidualIndices(path.levels)).at(fits, edges)),
            ("square", Total(SquaredRows(path.levels).at(fits, reach), nonnegative=True)),
            ("meat", meat),
        ):
            moved = Fraction(worst(statistic, codes, relation)) / statistic.sensitivity_squared(relation)
            assert moved <= 1, name
            found[name] = max(found[name], float(moved))
    # the Gram matrix attains sqrt(2) only where two records' scores are orthogonal
    assert min(found["tail"], found["square"]) == 1.0
    assert found["meat"] > (0.9999 if formula == "y ~ f" or relation == "add-remove" else 0.7)


def test_records_of_several_factors_have_scores_of_at_most_one_without_a_cut() -> None:
    """The axes are V^(-1/2) d: a row is shortened by rounding alone, whatever the number of levels."""
    for formula in FORMULAS[5:]:
        path = way(formula)
        axes = path._axes(path.rows("add-remove"))
        levels, _, keep = path.levels.placed(every_record(path.levels))
        v = sum(np.array(own)[place] for own, place in zip(axes, levels, strict=True))
        lengths = np.sqrt((v**2).sum(axis=1))[keep]
        assert lengths.max() <= 1 + 1e-9
        assert lengths.min() > 0.5


def test_a_dropped_record_adds_nothing_and_levels_are_those_of_the_codes() -> None:
    path = way("y ~ f + g")
    codes = np.array([[0.0, 2.0, -1.0, 1.0], [3.0, 1.0, 0.0, -1.0], [1024.0, 0.0, 5.0, 5.0]])
    rows = whole(path.rows("add-remove")(codes))
    assert (rows[:, 2:] == 0).all()
    assert np.flatnonzero(rows[:, 0]).tolist() == [0, 3 + 3, 7 + 3, 19 + 0, 22 + 3]
    assert np.flatnonzero(rows[:, 1]).tolist() == [2, 3 + 1, 7 + 2 * 4 + 1, 19 + 2, 22 + 1]
    assert rows[19, 0] == -rows[21, 1] > 0


@pytest.mark.parametrize(
    ("formula", "blocks"),
    [
        ("y ~ 1", (1,)),
        ("y ~ f", (3,)),
        ("y ~ k", (2,)),
        ("y ~ f:k", (4,)),  # without k the levels of f do not matter
        ("y ~ f*k", (6,)),
        ("y ~ f + k", (6,)),  # one table of six cells is no noisier than blocks of three and two
        ("y ~ f + g", (3, 4)),
        ("y ~ f*k + g", (4, 6)),
        ("y ~ f + g + h", (3, 4, 3)),
    ],
)
def test_blocks_of_a_formula(formula: str, blocks: tuple[int, ...]) -> None:
    assert way(formula).levels.levels == blocks


def test_combinations_that_no_term_tells_apart_are_one_level() -> None:
    schema = cf.Schema({"a": cf.Integer(0, 1), "b": cf.Integer(0, 1), "y": cf.Numeric(0, 1)})
    levels = FactorLevels.of(ModelMatrix.of("y ~ a:b", schema))
    assert levels is not None
    assert levels.levels == (2,)
    assert levels.saturated


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ f + x", "y ~ f:x", "y ~ 0 + k", "y ~ log1p(x) + f"])
def test_other_formulas_are_no_factors(formula: str) -> None:
    assert FactorMeans.of("test", SCHEMA, ModelMatrix.of(formula, SCHEMA)) is None


def test_cells_of_any_edges_are_those_of_the_record_alone() -> None:
    """A search among edges that are not in order begins where the last record was found: one record would move others."""
    edges = np.array([4.0, np.inf, 0.5, -1.0, np.nan, 1.0, 0.25, 2.0])
    codes, path = np.tile(every_record(way("y ~ f").levels), 40), way("y ~ f")
    line = ModelMatrix.of("y ~ x", SCHEMA)
    own = np.array([np.arange(400) * 2_621.0, np.arange(400) * 37 % 1025.0])
    start = Frame.start(Box.of(line))
    for rows, given in (
        (ResidualIndices(path.levels).at(((0.0,) * 3,), edges), codes),
        (SizeIndices(line, scores=True).at(start, tuple(edges)), own),
        (SizeIndices(line, scores=False).at(start, tuple(edges)), own),
    ):
        single = [rows(given[:, [k]]) for k in range(given.shape[1])]
        assert np.array_equal(np.concatenate(single, axis=1), rows(given))


def test_sums_of_squares_do_not_overflow() -> None:
    """2^33 records of 2^30 each: in 64 bits the sum would jump by 2^64 between neighbours."""
    statistic = LevelSquares.of(way("y ~ f").levels)
    one, other = statistic.zero(), statistic.zero()
    one += 1 << 62
    other += 1 << 62
    assert statistic.value(statistic.merge(one, other)).tolist() == [1 << 63] * 3
