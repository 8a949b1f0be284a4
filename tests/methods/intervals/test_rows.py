"""Joint sensitivities (page A4): a search never goes beyond the stated bound, and reaches it; more weight on the squares breaks it."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest

import confide as cf
from confide.methods.intervals.sums import STEP, LevelRows, MomentRows, PairRows, ProductRows, Replaced, squares_weight
from confide.schema import ModelMatrix


def _triangle(a: np.ndarray, weight: float) -> np.ndarray:
    rows, columns = np.triu_indices(len(a))
    return a[rows] * a[columns] * np.where(rows == columns, weight, 1.0)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("intercept", [False, True])
def test_products_move_within_their_bounds_and_reach_them(size: int, intercept: bool) -> None:
    generator = np.random.default_rng(size)
    corners = np.array(list(product((-1.0, 1.0), repeat=size - intercept)))
    points = np.concatenate([corners, generator.uniform(-1, 1, (300, size - intercept))])
    if intercept:
        points = np.column_stack([np.ones(len(points)), points])
    odd = intercept and size % 2
    for pure, bound in ((True, size**2 / 2), (False, sqrt(size**2 - odd))):
        held = np.array([_triangle(a, squares_weight(pure)) for a in points])
        apart = held[:, None, :] - held[None, :, :]
        moved = np.abs(apart).sum(axis=2) if pure else np.sqrt((apart**2).sum(axis=2))
        assert moved.max() <= bound * (1 + 1e-12)
        # reached but where an odd number of entries without a constant cannot be orthogonal
        if intercept or size == 2:
            assert moved.max() >= bound * (1 - 2e-8) - (0.5 if pure and odd else 0)


def test_the_weights_of_the_moments_beside_the_mean() -> None:
    """A moment beside the mean moves by t (2 - t) at most, t what the mean itself moves by: any pair of places, and the bound."""
    schema = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0)})
    z = np.linspace(-1, 1, 801)
    q = 1 - z * z
    t = np.abs(z[:, None] - z)
    for moment in (q, z * q, z * z * q):
        assert (np.abs(moment[:, None] - moment) <= t * (2 - t) + 1e-12).all()
    t = np.linspace(0, 2, 200_001)
    of_l1, of_l2 = (np.array(MomentRows(schema, "x", pure).weights[1:]) for pure in (True, False))
    assert (t * (1 + of_l1.sum() * (2 - t))).max() <= 2 + 1e-12 and of_l1.sum() == pytest.approx(0.5)
    for more, fits in ((1.0, True), (1.004, False)):
        assert bool((t**2 * (1 + more**2 * (of_l2**2).sum() * (2 - t) ** 2)).max() <= 4 + 1e-12) is fits


def test_the_maps_stay_within_what_they_state_on_any_pair() -> None:
    schema = cf.Schema(
        {
            "x": cf.Numeric(-4, 4, on_missing=0.0),
            "y": cf.Numeric(-2, 6, on_missing=0.0),
            "g": cf.Categorical(["a", "b"], on_missing="a"),
        }
    )
    codes = np.random.default_rng(1).integers(0, 2**20, (2, 400)).astype(float)
    codes[:, :8] = np.array(list(product((0, 2**20 - 1), repeat=2)) * 2).T
    for text in ("y ~ x", "y ~ x - 1"):
        for pure in (False, True):
            rows = ProductRows(ModelMatrix.of(text, schema), pure)
            found = rows(codes)
            apart = found[:, :, None] - found[:, None, :]
            assert np.abs(apart).sum(axis=0).max() <= rows.moved_l1
            assert (apart**2).sum(axis=0).max() <= rows.moved_l2_squared
            if pure:
                assert rows.moved_l1 <= rows.size**2 * STEP / 2 + 50
    for pure in (False, True):
        moments = MomentRows(schema, "x", pure)
        found = moments(codes[:1])
        apart = found[:, :, None] - found[:, None, :]
        assert np.abs(apart).sum(axis=0).max() <= moments.moved_l1
        assert (apart**2).sum(axis=0).max() <= moments.moved_l2_squared
    pairs = PairRows(schema, "g", "g")
    assert Replaced(pairs).sensitivity_l1("substitute") == 2


def test_counts_move_by_what_they_state_and_no_pair_moves_them_more() -> None:
    """Every pair of records: of all levels, of one, of the cells of a pair, of a sum of counts."""
    schema = cf.Schema(
        {
            "k": cf.Categorical(list("abcde"), on_missing="a"),
            "g": cf.Categorical(["a", "b"], on_missing="a"),
        }
    )
    for rows in (
        LevelRows(schema, "k", (0, 1, 2, 3, 4)),
        LevelRows(schema, "k", (2,)),
        PairRows(schema, "g", "k"),
    ):
        codes = np.array(list(product(*(range(schema[name].steps) for name in rows.columns))), dtype=float).T
        found = rows(codes)
        apart = found[:, :, None] - found[:, None, :]
        assert np.abs(apart).sum(axis=0).max() == rows.moved_l1 == Replaced(rows).sensitivity_l1("substitute")
        squared = (apart**2).sum(axis=0).max()
        assert squared == rows.moved_l2_squared == Replaced(rows).sensitivity_squared("substitute")
