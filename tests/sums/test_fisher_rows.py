"""Maps of Fisher scoring: sensitivities by search on integer rows at hostile frames, both relations; the same bits in any batch; values."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from tests.messages import refuses

import confide as cf
from confide.core import Gram, Total
from confide.errors import PlanError
from confide.methods.regression.glm.fisher_rows import (
    _SURE,
    CROSS,
    INFORMATION_CELLS,
    FisherRows,
    FisherScores,
    InformationIndices,
    _jointly_within,
    _surely_within,
)
from confide.methods.regression.glm.sums import Excess, FisherSum, SumAndExcess
from confide.methods.regression.sums.whitened_rows import Frame
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import BOUND, Box, round_within

SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(-5, 5),
        "b": cf.Numeric(0, 1, steps=11),
        "k": cf.Integer(0, 1),
        "g": cf.Categorical(["p", "q", "r"], on_missing="drop"),
        "y": cf.Integer(0, 1),
    }
)
DESIGN = ModelMatrix.of("y ~ a + b + k + g + a:k", SCHEMA)
P = len(DESIGN.terms) + 1
LINE = ModelMatrix.of("y ~ a", cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)}))


def codes_of(m: int, generator: np.random.Generator) -> Any:
    sizes = [SCHEMA[name].steps for name in DESIGN.columns]
    return np.array([generator.choice([0, n - 1, generator.integers(n)], m) for n in sizes], dtype=np.float64)


def hostile(generator: np.random.Generator) -> Frame:
    """Anything that rounds may hand on, and worse: scales over twelve decades, lines from flat to far beyond saturation."""
    if generator.random() < 0.3:
        return Frame.of(Box.of(DESIGN), generator.normal(size=(P, P)), generator.normal(size=P), 1.0)
    transform = generator.normal(size=(P, P)) * 10.0 ** generator.uniform(-6, 6, P)
    box = Box(tuple(generator.normal(0, 3, P - 1)), tuple(10.0 ** generator.uniform(-4, 1, P - 1)))
    return Frame.of(box, transform, generator.normal(size=P) * 10.0 ** generator.uniform(-3, 4), 1.0)


def maps_of(frame: Frame, generator: np.random.Generator) -> dict[str, Any]:
    own = frame, 10.0 ** generator.uniform(-3, 3), 10.0 ** generator.uniform(-6, 6)
    return {
        "scores and information": FisherSum(FisherRows(DESIGN).at(*own)),
        "meat": Gram(FisherScores(DESIGN).at(*own)),
        "cells": Histogram(InformationIndices(DESIGN).at(*own)),
        "excess": Total(Excess(DESIGN).at(*own), nonnegative=True),
    }


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_record_moves_a_statistic_beyond_its_sensitivity(relation: str) -> None:
    worst: dict[str, float] = {}
    for seed in range(60):
        g = np.random.default_rng(seed)
        codes = codes_of(60, g)
        codes[-1, 30:] = 1 - codes[-1, :30]
        codes[:-1, 30:] = codes[:-1, :30]
        for name, statistic in maps_of(hostile(g), g).items():
            rows = statistic.map(codes).astype(np.int64).astype(object)
            assert (rows * rows).sum(axis=0).max() <= statistic.map.l2_squared
            assert abs(rows).sum(axis=0).max() <= statistic.map.l1
            owns = [np.zeros(len(rows), dtype=object), *(rows.T[::5] if relation == "substitute" else ())]
            moved = max(int(statistic.moved_squared(own, rows).max()) for own in owns)
            assert moved <= statistic.sensitivity_squared(relation), (name, seed)
            worst[name] = max(worst.get(name, 0.0), sqrt(moved / statistic.sensitivity_squared(relation)))
    assert min(worst.values()) > 0.99, worst


def test_lengths_pass_what_sums_of_squares_pass_and_nothing_more() -> None:
    """Records at the bound, where score and information share it in any way; and what is no number, which no length lets pass."""
    g = np.random.default_rng(3)
    for k in (1, 2, 21, _SURE):
        u = g.normal(size=(k, 400))
        square = (u * u).sum(axis=0)
        reach, size = (1 << 20) - sqrt(k) / 2 - 1, np.sqrt(square)
        share = g.choice([0.0, 0.3, 0.7, 0.84, 0.9, 1.0], 400)
        h, w = reach * share / size, reach * np.sqrt(1 - share**4) / size * g.choice([-1.0, 1.0], 400)
        rows = np.concatenate([u * h, u * w])
        assert _surely_within(square, h, w, sqrt(k) / 2)
        exact = np.rint(rows).astype(np.int64).astype(object)
        a, b = ((part * part).sum(axis=0) for part in (exact[:k], exact[k:]))
        assert max(a * a + 2 * CROSS**2 * b) <= BOUND**2
        assert (_jointly_within(np.rint(rows), h, w, square) == np.rint(rows)).all()
        assert not _surely_within(square, h * (1 + 2 / reach * sqrt(k)), w * (1 + 2 / reach * sqrt(k)), sqrt(k) / 2)
        for lost in (np.nan, np.inf):
            wrong = np.where(np.arange(400) == 7, lost, h)
            assert not _surely_within(square, wrong, w, sqrt(k) / 2)


@pytest.mark.parametrize("score", [True, False])
def test_a_length_within_the_bound_that_rounding_would_leave_is_not_sure(score: bool) -> None:
    """Coordinates that all lie just above a half are rounded away from zero together."""
    found = 0
    for k in range(2, _SURE + 1):
        longest = 2.0**40 / CROSS / sqrt(2) if score else 2.0**20
        half = np.floor(longest / sqrt(k) - 0.5) + 0.5 + 2.0**-20
        u, other = np.full((k, 1), half), np.zeros((k, 1))
        exact = int(np.rint(half)) ** 2 * k
        within = 2 * CROSS**2 * exact <= BOUND**2 if score else exact <= BOUND
        if within or half * sqrt(k) > longest * (1 - 2.0**-28):
            continue
        found += 1
        h, w = (np.zeros(1), np.ones(1)) if score else (np.ones(1), np.zeros(1))
        square = (u * u).sum(axis=0)
        assert not _surely_within(square, h, w, sqrt(k) / 2)
        rows = _jointly_within(np.rint(np.concatenate([other, u] if score else [u, other])), h, w, square)
        a, b = ((part.astype(np.int64).astype(object) ** 2).sum() for part in (rows[:k], rows[k:]))
        assert a * a + 2 * CROSS**2 * b <= BOUND**2
    assert found > 5


def test_a_length_that_leaves_room_for_rounding_needs_no_sum() -> None:
    g = np.random.default_rng(4)
    rows = g.normal(size=(9, 300))
    rows *= ((1 << 20) - 1.5 - g.choice([2.0**-15, 1.0, 100.0], 300)) / np.sqrt((rows * rows).sum(axis=0))
    length = np.sqrt((rows * rows).sum(axis=0))
    found = round_within(rows.copy(), length=length)
    assert (found == np.rint(rows)).all() and (found * found).sum(axis=0).max() <= BOUND
    # one that is too long is cut as it would be without a length; and so is one of a length that is no number
    for factor in (2.0, np.nan):
        rows[:, 5] *= factor
        cut = round_within(rows.copy(), length=np.sqrt((rows * rows).sum(axis=0)))
        assert (cut == round_within(rows.copy())).all() and (cut * cut).sum(axis=0).max() <= BOUND


def test_saturated_opposite_records_attain_twice_the_bound() -> None:
    """No information, residuals near 1 on either side: so substitute costs 2, not the sqrt(2) of Gram matrices."""
    frame = Frame.of(Box.of(LINE), np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([60.0, 0.0]), 1.0)
    statistic = FisherSum(FisherRows(LINE).at(frame, 1.0, 0.5))
    rows = statistic.map(np.array([[0.0, LINE.terms[0].steps - 1.0], [0.0, 0.0]])).astype(np.int64).astype(object)
    moved = int(statistic.moved_squared(rows[:, 0], rows[:, 1:]).max())
    assert 0.9999 * statistic.sensitivity_squared("substitute") < moved <= statistic.sensitivity_squared("substitute")
    assert (
        statistic.sensitivity_squared("substitute") == 4 * statistic.sensitivity_squared("add-remove") == 4 * BOUND**2
    )
    assert 2 * CROSS**2 <= BOUND < 2 * (CROSS + 1) ** 2


def test_the_bound_holds_whatever_the_floats_are() -> None:
    """NaN, infinities, bounds and coordinates at the ends of the doubles."""
    g = np.random.default_rng(1)
    codes = codes_of(40, g)
    for scale in (0.0, 1e-300, 1e150, 1e300):
        for theta in (0.0, 1e300, -1e300):
            frame = Frame.of(Box.of(DESIGN), scale * g.normal(size=(P, P)), theta * np.ones(P), 1.0)
            for bound in (1e-300, 1.0, 1e300):
                rows = FisherRows(DESIGN).at(frame, 1.0, bound)(codes)
                whole = rows.astype(np.int64).astype(object)
                assert (rows == np.rint(rows)).all()
                moved = FisherSum(FisherRows(DESIGN)).moved_squared(np.zeros(2 * P, dtype=object), whole)
                assert max(moved) <= BOUND**2
                meat = FisherScores(DESIGN).at(frame, 1.0, bound)(codes)
                assert (meat**2).sum(axis=0).max() <= BOUND
                far = Excess(DESIGN).at(frame, 1.0, bound)(codes)
                # "not >": no number at all would be added up as an integer of any size
                assert ((far >= 0) & (far <= BOUND) & (far == np.rint(far))).all()
                cells = InformationIndices(DESIGN).at(frame, 1.0, bound)(codes)
                assert ((cells >= 1) & (cells <= INFORMATION_CELLS)).all()


def test_records_that_are_dropped_count_for_nothing() -> None:
    """In every sum, however far out the rest of the record lies, and where its parts are no numbers."""
    g = np.random.default_rng(5)
    codes = codes_of(500, g)
    codes[DESIGN.columns.index("g")] = -1.0
    for frame in (
        *(hostile(g) for _ in range(5)),
        Frame.of(Box.of(DESIGN), np.full((P, P), 1e300), np.full(P, 1e300), 1.0),
    ):
        own = frame, 1.0, 1e-3
        for name, statistic in maps_of(frame, g).items():
            assert not statistic.map.at(*own)(codes).any(), name
        both = SumAndExcess(FisherSum(FisherRows(DESIGN).at(*own)), Excess(DESIGN).at(*own))
        assert not any(both.value(both.update(both.zero(), codes)))


def test_no_integer_depends_on_the_batch() -> None:
    g = np.random.default_rng(2)
    codes, frame = codes_of(20_000, g), Frame.of(Box.of(DESIGN), g.normal(size=(P, P)), g.normal(size=P), 1.0)
    for name, statistic in maps_of(frame, g).items():
        whole = statistic.map(codes)
        for size, first in ((1, 40), (7, 700), (8191, 20_000)):
            parts = [statistic.map(codes[:, k : min(k + size, first)]) for k in range(0, first, size)]
            assert (np.concatenate(parts, axis=1) == whole[:, :first]).all(), (name, size)
        strided = np.repeat(codes, 2, axis=1)[:, ::2]
        assert (statistic.map(strided) == whole).all(), name


def test_sums_are_those_of_the_formula() -> None:
    """A, g, N, cells and excess against numpy on a plain design; w < 1 for some records and 1 for others."""
    g = np.random.default_rng(3)
    n, alpha, bound = 4_000, 0.8, 1.8
    x, y = g.integers(0, LINE.terms[0].steps, n), g.integers(0, 2, n)
    transform, theta = g.normal(size=(2, 2)), np.array([0.4, 1.5])
    frame = Frame.of(Box.of(LINE), transform, theta, 1.0)
    z = np.column_stack([np.ones(n), 2 * x / (LINE.terms[0].steps - 1) - 1])
    u, p = z @ transform, expit(z @ theta)
    square, h, m = (u**2).sum(axis=1), p * (1 - p), np.maximum(p, 1 - p)
    size = np.sqrt((alpha * h * square) ** 2 + m**2 * square)
    w = np.minimum(1, bound / size)
    assert 0.1 < (w < 1).mean() < 0.9
    codes = np.array([x, y], dtype=np.float64)
    rows = FisherRows(LINE).at(frame, alpha, bound)
    statistic = FisherSum(rows)
    state = statistic.merge(
        statistic.update(statistic.zero(), codes[:, :999]), statistic.update(statistic.zero(), codes[:, 999:])
    )
    value, (a, b) = statistic.value(state).astype(np.float64), rows.steps
    np.testing.assert_allclose(value[:-1, :-1] / a, (u.T * (w * h)) @ u, rtol=1e-5)
    np.testing.assert_allclose(value[:-1, -1] / (CROSS * b), u.T @ (w * (y - p)), atol=1e-3)
    assert value[-1, -1] == 0 and (value == value.T).all()
    scores = FisherScores(LINE).at(frame, alpha, bound)
    np.testing.assert_allclose(
        scores(codes) @ scores(codes).T / scores.steps**2, (u.T * (w * (y - p)) ** 2) @ u, rtol=1e-5
    )
    excess = Excess(LINE).at(frame, alpha, bound)(codes)[0] / BOUND
    np.testing.assert_allclose(excess, (y - p) ** 2 * np.clip(size / bound - 1, 0, 1), atol=1e-9)
    cells = InformationIndices(LINE).at(frame, alpha, bound)
    np.testing.assert_array_equal(cells(codes)[0], 1 + np.searchsorted(cells.edges, size**2))
    assert len(cells.edges) == INFORMATION_CELLS - 1 and cells.edges[4] == 2.0


@pytest.mark.parametrize("missing", [False, True])
def test_one_look_at_each_record_gives_both_sums_to_the_bit(missing: bool) -> None:
    g = np.random.default_rng(4)
    codes, frame = codes_of(9_001, g), Frame.of(Box.of(DESIGN), g.normal(size=(P, P)), g.normal(size=P), 1.0)
    if missing:
        codes[DESIGN.columns.index("g"), g.random(9_001) < 0.1] = -1.0
    own = frame, 0.7, 1.5
    sums, excess = FisherSum(FisherRows(DESIGN).at(*own)), Excess(DESIGN).at(*own)
    both = SumAndExcess(sums, excess)
    state = both.merge(both.update(both.zero(), codes[:, :4_500]), both.update(both.zero(), codes[:, 4_500:]))
    value = both.value(state)
    assert value.shape == both.shape
    matrix, far = both.split(value)
    rows = sums.map(codes).astype(np.int64).astype(object)
    assert (matrix[:-1, :-1] == rows[:P] @ rows[:P].T).all()
    assert (matrix[:-1, -1] == CROSS * rows[P:].sum(axis=1)).all() and (matrix == matrix.T).all()
    assert far.tolist() == [int(excess(codes).astype(np.int64).astype(object).sum())] and far[0] > 0
    with refuses(PlanError):
        both.sensitivity_squared("add-remove")
