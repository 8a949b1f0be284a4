"""Products in pieces: the same integers as in Python's own, for every number of rows and records; a product that rounds is found out."""

from __future__ import annotations

import numpy as np
import pytest

from confide.core import exact as products
from confide.sums.coding import aligned, leverage


@pytest.mark.parametrize("rows", [1, 2, 8, 9, 10, 15, 16, 17, 21, 32, 40, 41])
@pytest.mark.parametrize("records", [0, 1, 511, 512, 3_001, 8_192])
def test_gram_is_that_of_integers_with_and_without_room(rows: int, records: int) -> None:
    whole = np.random.default_rng(rows).integers(-(1 << 20), 1 << 20, (rows, records))
    exact = np.einsum("ij,kj->ik", whole, whole)
    room = aligned(rows, max(records, 1))[:, :records]
    room[:] = whole
    for given in (whole.astype(float), room, np.asfortranarray(whole, dtype=float)):
        assert (products.gram(given) == exact).all()


@pytest.mark.parametrize("records", [1, 700, 5_001])
def test_product_is_that_of_integers(records: int) -> None:
    g = np.random.default_rng(records)
    matrix, columns = g.integers(-(1 << 20), 1 << 20, (22, 21)), g.integers(0, 1 << 20, (21, records))
    exact = matrix @ columns
    assert (products.product(matrix.astype(float), columns.astype(float), None) == exact).all()
    out = np.empty((22, records))
    assert products.product(matrix.astype(float), columns.astype(float), out) is out and (out == exact).all()


def test_products_that_round_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = products.gram
    products.exact_sums.cache_clear()
    monkeypatch.setattr(products, "gram", lambda rows: exact(rows.astype(np.float32)).astype(float))
    assert not products.exact_sums()
    products.exact_sums.cache_clear()
    monkeypatch.undo()
    assert products.exact_sums()


@pytest.mark.parametrize("coordinates", [1, 2, 9, 50])
def test_a_records_length_is_the_same_alone_in_a_batch_and_in_any_place(coordinates: int) -> None:
    """To the bit: integers follow from it."""
    z = (
        np.random.default_rng(coordinates).standard_normal((coordinates, 1_003))
        * 10.0 ** np.arange(coordinates)[:, None] ** 0.5
    )
    whole = leverage(z)
    assert (whole == [leverage(z[:, [j]])[0] for j in range(z.shape[1])]).all()
    for first, step in ((0, 7), (3, 1), (5, 2), (1, 64)):
        cut = slice(first, None, step)
        assert (leverage(z[:, cut]) == whole[cut]).all() and (
            leverage(np.ascontiguousarray(z[:, cut])) == whole[cut]
        ).all()
    assert (leverage(np.asfortranarray(z)) == whole).all()
    assert (leverage(z[:, ::-1]) == whole[::-1]).all()
    assert leverage(z[:, :0]).shape == (0,) and leverage(np.empty((0, 3))).tolist() == [0.0] * 3
