"""The metric and the limits of scores: maxima that no record exceeds, tails that are known, and what a limit costs."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

import confide as cf
from confide.methods.regression.least_squares.sums import (
    LEVERAGE_EDGES,
    OUTER,
    Layout,
    Levels,
    Maxima,
    Sizes,
    Tail,
    floored_moments,
    public_maxima,
    score_edges,
)
from confide.methods.regression.sums.scores import SCORE_CELLS
from confide.methods.regression.sums.whitened_rows import Coordinates, Frame
from confide.schema import ModelMatrix
from confide.sums.coding import Box

LIMIT_SCHEMA = cf.Schema(
    {
        **{f"x{j}": cf.Numeric(-1, 3) for j in range(8)},
        "k": cf.Integer(0, 1),
        "g": cf.Categorical(["p", "q", "r", "s"]),
        "h": cf.Categorical(["u", "v", "w"]),
        "y": cf.Numeric(0, 10),
    }
)


def design_of(formula: str) -> ModelMatrix:
    return ModelMatrix.of(formula, LIMIT_SCHEMA)


def moments_of(design: ModelMatrix, n: int = 20_000) -> np.ndarray:
    generator = np.random.default_rng(2)
    frame = LIMIT_SCHEMA.sample(n, seed=1)
    x = design.matrix(frame)[:, 1:]
    x = x + 0.3 * generator.standard_normal((n, 1)) * [not term.binary for term in design.terms]
    middle, half = Box.of(design).arrays
    z = np.column_stack([np.ones(n), (x - middle) / half])
    return z.T @ z / n


def test_a_layout_finds_factors_largest_first() -> None:
    layout = Layout.of(design_of("y ~ x0 + k + h + g + k:x1"))
    assert [len(factor) for factor in layout.factors] == [3, 2, 1]
    assert len(layout.numeric) == 2
    assert layout.start()[1] == pytest.approx(1 + 2 + 2 / 3)


@pytest.mark.parametrize("formula", ["y ~ x0 + x1", "y ~ x0 + g", "y ~ g + h + k + x0 + x1"])
def test_the_metric_has_the_planned_sizes_in_every_coordinate(formula: str) -> None:
    """E v v' has f^2 on its diagonal, and M is invertible; the start metric stays within R2."""
    design = design_of(formula)
    layout, moments = Layout.of(design), moments_of(design)
    metric = layout.metric(moments, 0.0)
    assert np.linalg.cond(metric.matrix) < 1e4
    inside = metric.matrix @ moments @ metric.matrix.T
    assert np.diag(inside) == pytest.approx(metric.weights, rel=1e-3)
    scaled = inside / np.sqrt(np.outer(metric.weights, metric.weights))
    assert np.abs(scaled - np.eye(len(scaled))).max() < 1e-2
    assert metric.size == pytest.approx(float(np.trace(inside)), rel=1e-3)
    start, bound = layout.start()
    middle, half = Box.of(design).arrays
    z = np.column_stack([np.ones(500), (design.matrix(LIMIT_SCHEMA.sample(500, seed=3))[:, 1:] - middle) / half])
    lengths = ((z @ start.T) ** 2).sum(axis=1)
    assert lengths.max() <= bound + 2 * len(layout.numeric) / 3 + 1e-9  # a third for each numeric column is its mean
    assert lengths.mean() <= bound * 1.05


def test_cells_of_a_factor_are_equally_long() -> None:
    """f_k^2 prop. s_k on d/sqrt(s): |v|^2 is the same in every level of a lone factor, rare ones too."""
    design = design_of("y ~ g + x0")
    layout = Layout.of(design)
    moments = np.eye(5)
    shares = np.array([0.01, 0.19, 0.3])  # q, r, s; p has the rest
    moments[0, 1:4] = moments[1:4, 0] = 2 * shares - 1
    for i in range(3):
        for j in range(3):
            if i != j:
                moments[1 + i, 1 + j] = 1 - 2 * shares[i] - 2 * shares[j]
    metric = layout.metric(moments, 0.0)
    levels = np.array([[1, -1, -1, -1, 0], [1, 1, -1, -1, 0], [1, -1, 1, -1, 0], [1, -1, -1, 1, 0]], dtype=float)
    lengths = ((levels @ metric.matrix.T) ** 2).sum(axis=1)
    assert lengths == pytest.approx(np.full(4, lengths[0]), rel=1e-6)


@pytest.mark.parametrize("formula", ["y ~ x0 + g + h + k", "y ~ x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + g"])
def test_no_record_exceeds_the_public_maxima(formula: str) -> None:
    generator = np.random.default_rng(4)
    design = design_of(formula)
    p = len(design.terms) + 1
    for _ in range(10):
        box = Box(tuple(generator.normal(0, 1, p - 1)), tuple(10.0 ** generator.uniform(-2, 1, p - 1)))
        frame = Frame.of(box, generator.normal(size=(p, p)), generator.normal(size=p), 1.0)
        maxima = public_maxima(design, Layout.of(design), frame)
        columns = [LIMIT_SCHEMA[name] for name in design.columns]
        ends = [range(column.steps) if column.steps < 5 else [0, column.steps - 1] for column in columns]
        codes = np.array([generator.choice(end, 3_000) for end in ends], dtype=np.float64)
        codes[:, ::3] = np.array([generator.integers(column.steps, size=1_000) for column in columns])
        rows = Coordinates.of(design, frame)(design.codes(codes)[0])
        lengths, r = np.linalg.norm(rows[:-1], axis=0), np.abs(rows[-1])
        assert lengths.max() ** 2 <= maxima.leverage
        assert (lengths * r).max() <= maxima.score
        assert r.max() <= maxima.residual
        if len(design.terms) < 9:  # corner by corner: attained
            assert lengths.max() ** 2 > 0.99 * maxima.leverage
            assert r.max() > 0.99 * maxima.residual


#: Four fine edges and four outer ones, and those of the same kind that a histogram of 1,000 scores has.
PLAIN_EDGES = np.array([1.0, 1.4, 2.0, 2.8, 4.0, 12.0, 36.0, 108.0])
EDGES = np.array(score_edges(1.0, 1_000.0, 3, 0.6))


def tail_of(sizes: np.ndarray, sd: float = 1e-6) -> Tail:
    counts = np.bincount(np.searchsorted(PLAIN_EDGES, sizes, side="left"), minlength=len(PLAIN_EDGES) + 1).astype(float)
    return Tail(counts, PLAIN_EDGES, sd, outer=OUTER)


def test_the_excess_of_a_power_tail_is_close() -> None:
    """Sizes with P(s > x) = x^-4: sum (s - R)^+ = n R^-3 / 3 beyond the first edge."""
    n = 100_000
    sizes = np.random.default_rng(5).random(n) ** -0.25
    tail = tail_of(sizes)
    for limit in (1.5, 3.0, 6.0):
        known = n * limit**-3 / 3
        # counted cells and the fitted tail both stand in for what lies beyond: at least the truth, at most three times it
        assert known <= tail.excess(limit, 1.0, 4.0, 1e9) <= 3.5 * known
    assert tail.excess(3.0, 1.0, 4.0, 3.0) <= tail.excess(3.0, 1.0, 4.0, 1e9)


def test_edges_are_fine_up_to_the_least_limit_and_wide_beyond() -> None:
    for n, p, mu in ((500.0, 3, 0.58), (10_000.0, 9, 0.2), (1e7, 2, 2.0)):
        edges = np.array(score_edges(0.3, n, p, mu)) / 0.3
        assert edges[-OUTER] == pytest.approx(max(5.0, 0.4 * min(mu, 1.0) * sqrt(n / p)))
        assert edges[-OUTER + 1 :] == pytest.approx(3 * edges[-OUTER:-1])
        assert (np.diff(edges) > 0).all() and len(edges) < SCORE_CELLS


def test_one_cell_alone_shows_a_lump_that_sums_of_cells_hide() -> None:
    counts = np.array([5_000.0, 500, 50, 0, -3, 10, -4, -3, 2])
    tail = Tail(counts, PLAIN_EDGES, 5.0, believed=1.6, outer=OUTER)
    assert tail.reliable.tolist() == [True] * 5 + [False] * 3
    # beyond the fine edges only: without outer ones the same cell is lost in the noise of four
    assert not Tail(counts, PLAIN_EDGES, 5.0, believed=1.6).reliable[4]
    counts[6] = 22  # one record more weighs most there: more is asked
    assert not Tail(counts, PLAIN_EDGES, 5.0, believed=1.6, outer=OUTER).reliable[6]
    counts[7] = 23
    assert Tail(counts, PLAIN_EDGES, 5.0, believed=1.6, outer=OUTER).reliable[6]
    counts[5:], counts[4] = 0, 20  # 2 sds of the noise of five cells: enough for one cell, not for the fine ones
    assert not Tail(counts, PLAIN_EDGES, 5.0, believed=1.6, outer=OUTER).reliable[3:].any()
    assert Tail(counts, PLAIN_EDGES, 5.0, believed=1.6).reliable[3]


def test_what_one_cell_shows_is_not_taken_back_by_those_beyond() -> None:
    counts = np.array([5_000.0, 500, 50, 0, 0, 10, -3, -3, 0])
    tail = Tail(counts, PLAIN_EDGES, 5.0, believed=1.6, outer=OUTER)
    assert tail.excess(8.0, 1.0, 3.5, 1e9) == pytest.approx(10 * 4 / 2.5 * (4 / 8) ** 2.5)


def sizes_of(maximum: float, *, lump: float = 0.0, residual: float = 3.0) -> Sizes:
    weights = np.array([1.0, 0.5, 0.5])
    g = 0.1 * sqrt(2)
    counts = np.zeros(len(EDGES) + 1)
    counts[np.searchsorted(EDGES, [0.9, 1.2, 1.7, 2.4])] = [800.0, 150, 45, 5]
    counts[-OUTER + 1] += lump  # from 3 to 9 times the least limit
    tail = Tail(counts, g * EDGES, 4.0, outer=OUTER)
    leverage = Tail(np.array([900.0, 90, 10, 0, 0, 0, 0, 0, 0]), sqrt(2) * np.array(LEVERAGE_EDGES), 7.0)
    return Sizes(weights, 0.1, 1_000.0, tail, leverage, Maxima(9.0, maximum, residual), Levels(0.3, 0.6, 0.17, 0.3))


def test_limits_grow_with_what_is_seen_and_end_at_the_public_maximum() -> None:
    plain, far = sizes_of(40.0).limits(), sizes_of(40.0, lump=30.0).limits()
    assert plain.score < far.score < 40.0
    assert sizes_of(0.5).limits().score == 0.5  # cheap: nothing is limited
    far, on = sizes_of(400.0, lump=30.0).limits(), sizes_of(400.0).limits()
    assert far.score > 3 * EDGES[-OUTER] * 0.1 * sqrt(2) > on.score
    assert far.cut > 0 == on.cut
    none = sizes_of(40.0).limits(unlimited=True)
    assert (none.score, none.leverage, none.kappa, none.square) == (40.0, 9.0, 0.0, 3.0)


def test_a_cell_that_the_maximum_lies_in_is_not_drawn_beyond_it() -> None:
    # 17 beyond 1 by the assumed tail, and 8 of them at 2.5 and not at 3, the middle of a cell that ends at 4
    tail = Tail(np.array([50.0, 9, 8]), np.array([1.0, 2.0]), 0.1)
    assert tail.excess(1.0, 1.0, 3.5, 2.5) == pytest.approx(17 * 0.4 + 8 * 1.5)


def test_a_residual_sd_that_the_rounds_overstate_is_measured() -> None:
    plain = sizes_of(400.0)
    counts = np.zeros(len(EDGES) + 1)
    counts[np.searchsorted(EDGES, 0.4)] = 1_000.0  # all at .4 of what is typical
    measured = replace(plain, tail=replace(plain.tail, counts=counts)).limits()
    assert measured.scale == pytest.approx(0.5 * 0.1)  # not below half
    assert measured.score < plain.limits().score


def test_a_rare_outcome_that_cannot_be_counted_is_not_limited() -> None:
    common, rare = sizes_of(40.0).limits(rare=900.0), sizes_of(40.0).limits(rare=20.0)
    assert common.score == sizes_of(40.0).limits().score
    assert rare.score >= 3.0 * sqrt(rare.leverage)


def test_released_moments_are_floored_and_mapped_back() -> None:
    generator = np.random.default_rng(9)
    z = np.column_stack([np.ones(500), generator.normal(size=(500, 2))])
    transform = generator.normal(size=(3, 3))
    u = z @ transform
    assert floored_moments(u.T @ u, transform, 500.0, 0.0) == pytest.approx(z.T @ z / 500, abs=1e-9)
    noisy = floored_moments(u.T @ u - 600 * np.eye(3), transform, 500.0, 1e-3)
    assert np.linalg.eigvalsh(noisy)[0] > 0 and noisy[0, 0] == pytest.approx(1.0)
