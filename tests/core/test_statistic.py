"""Exact sums: the Gram matrix equals Python integers at the edge of what doubles hold, in any order and partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from confide.core import Gram, RecordMap, Total, statistic as room
from confide.core.statistic import _gram


@dataclass(frozen=True)
class Plain(RecordMap):
    """Codes handed on as they are."""

    width: int = 3
    bits: int = 20
    columns: tuple[str, ...] = ("a", "b", "c")
    digest: str = "plain"
    l1: int = field(default=3 << 20)

    @property
    def l2_squared(self) -> int:
        return (1 << self.bits) ** 2

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        return codes


def exact_gram(codes: np.ndarray) -> np.ndarray:
    rows = [[int(v) for v in row] for row in codes]
    return np.array([[sum(x * y for x, y in zip(a, b, strict=True)) for b in rows] for a in rows], dtype=object)


def run(statistic: Gram | Total, pieces: list[np.ndarray]) -> np.ndarray:
    state = statistic.zero()
    for piece in pieces:
        state = statistic.update(state, piece)
    return statistic.value(state)


@pytest.mark.parametrize("bits", [1, 12, 20, 22, 26])
def test_gram_equals_python_integers(bits: int) -> None:
    generator = np.random.default_rng(bits)
    edge = 1 << bits
    codes = generator.choice([-edge, edge, edge - 1, 1 - edge, 0, 1], size=(3, 20_000)).astype(float)
    codes[0] = edge - (np.arange(20_000) % 2)
    assert (run(Gram(Plain(bits=bits)), [codes]) == exact_gram(codes)).all()


@pytest.mark.parametrize("width", [1, 2, 11, 32, 33])
def test_products_of_any_width_and_length_are_exact_at_the_largest_sums(width: int) -> None:
    generator = np.random.default_rng(width)
    for records in (0, 1, 511, 512, 1_300, 8_192):
        rows = generator.choice([-(1 << 20), 1 << 20, (1 << 20) - 1], size=(width, records)).astype(float)
        rows[0] = 1 << 20
        whole = rows.astype(np.int64)
        for given in (rows, np.repeat(rows, 2, axis=1)[:, ::2]):
            assert (_gram(given) == np.einsum("ik,jk->ij", whole, whole)).all()


def test_totals_at_and_above_what_doubles_hold() -> None:
    for bits in (20, 40):
        codes = np.full((3, 9_000), float((1 << bits) - 1))
        assert run(Total(Plain(bits=bits)), [codes]).tolist() == [9_000 * ((1 << bits) - 1)] * 3


def test_gram_passes_int64() -> None:
    block = np.full((3, 8192), float(1 << 20))
    state = Gram(Plain()).zero()
    for _ in range(1100):
        state = Gram(Plain()).update(state, block)
    assert Gram(Plain()).value(state)[0, 0] == 1100 * 8192 * (1 << 40) > 2**63


def test_order_blocks_and_merges_do_not_matter() -> None:
    generator = np.random.default_rng(0)
    codes = generator.integers(-(1 << 20), 1 << 20, (3, 5000)).astype(float)
    for statistic in (Gram(Plain()), Total(Plain())):
        whole = run(statistic, [codes])
        assert (run(statistic, [codes[:, ::-1]]) == whole).all()
        assert (run(statistic, [codes[:, j : j + 7] for j in range(0, 5000, 7)]) == whole).all()
        a, b = statistic.zero(), statistic.zero()
        a = statistic.update(a, codes[:, :123])
        b = statistic.update(b, codes[:, 123:])
        assert (statistic.value(statistic.merge(a, b)) == whole).all()


def test_no_rows_give_zeros() -> None:
    assert (run(Gram(Plain()), [np.zeros((3, 0))]) == 0).all()
    assert run(Total(Plain()), []).tolist() == [0, 0, 0]


def test_the_machine_without_exact_products_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(1).integers(-(1 << 20), 1 << 20, (3, 9000)).astype(float)
    fast = run(Gram(Plain()), [codes])
    monkeypatch.setattr(room, "exact_sums", lambda: False)
    assert (run(Gram(Plain()), [codes]) == fast).all()


def test_the_self_test_sees_a_product_that_rounds() -> None:
    assert room.exact_sums() is True


def test_sensitivities() -> None:
    assert Gram(Plain(bits=20)).sensitivity_squared("add-remove") == Fraction(2) ** 80
    assert Gram(Plain(bits=20)).sensitivity_squared("substitute") == 2 * Fraction(2) ** 80
    assert Total(Plain(bits=3)).sensitivity_squared("substitute") == 4 * 64
    assert Total(Plain(bits=3), nonnegative=True).sensitivity_squared("substitute") == 2 * 64
    assert Total(Plain(width=1, bits=3), nonnegative=True).sensitivity_squared("substitute") == 64
