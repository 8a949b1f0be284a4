"""Teachers' votes and components as published: known values, the sensitivities behind them, what their claims miss."""

from __future__ import annotations

from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from scipy import stats

from confide.guarantees import gaussian_epsilon
from confide.guarantees.mechanisms.noisy_max import gnmax_log_error, published_rdp
from confide_lab.published.components import (
    captured,
    corrected_gauss,
    corrected_projector,
    printed_projector,
    projector_move,
)
from confide_lab.published.pate import (
    algorithm_4,
    gnmax_exact,
    lemma_cost,
    local_sensitivities,
    printed_cost,
    printed_smooth_cost,
    smooth_cost,
)
from confide_lab.teachers import made_votes


@pytest.mark.parametrize(
    ("order", "beta", "printed", "exact"),
    [
        (49, 0.01, 0.2731, 3.616),
        (50, 0.4 / 50, 0.2504, 0.5378),
        (50, 0.495 / 50, 0.2838, 5.549),
        (20, 0.3 / 20, 0.1315, 0.1132),
        (50, 0.2 / 50, 0.2333, 0.1843),
    ],
)
def test_the_cost_of_smooth_noise(order: float, beta: float, printed: float, exact: float) -> None:
    assert printed_smooth_cost(order, beta, 15.0) == pytest.approx(printed, abs=1e-4)
    assert smooth_cost(order, beta, 15.0) == pytest.approx(exact, rel=1e-3)


def test_the_lemma_fails_for_small_orders_and_holds_where_the_rule_leads() -> None:
    assert smooth_cost(2.0, 0.1, 15.0) > 2 * lemma_cost(2.0, 15.0)
    assert smooth_cost(5.0, 0.04, 15.0) > lemma_cost(5.0, 15.0)
    for epsilon in (0.1, 1.0):
        order = 2 * np.log(2e5) / epsilon + 1
        sigma = sqrt((3 * order + 2) / epsilon)
        assert smooth_cost(order, 0.2 / order, sigma) <= lemma_cost(order, sigma)
    assert smooth_cost(50.0, 0.02, 15.0) == inf


@pytest.mark.parametrize(
    ("gap", "order", "sigma", "exact"), [(40, 50, 5.0, 1.305), (40, 20, 5.0, 0.703), (16, 10, 2.0, 2.286)]
)
def test_theorem_5_4_is_no_bound(gap: float, order: float, sigma: float, exact: float) -> None:
    found = gnmax_exact(gap, order, sigma)
    assert found == pytest.approx(exact, abs=2e-3) and found > 60 * printed_cost(order, sigma)
    # the two laws by themselves
    p, q = stats.norm.sf(np.array([gap, gap - 2]) / (sqrt(2) * sigma))
    worst = stats.norm.sf((gap + 2) / (sqrt(2) * sigma))
    direct = [
        np.logaddexp(order * np.log(p) + (1 - order) * np.log(r), order * np.log1p(-p) + (1 - order) * np.log1p(-r))
        / (order - 1)
        for r in (q, worst)
    ]
    assert found == pytest.approx(max(direct), rel=1e-6)
    assert found <= float(published_rdp(np.array(np.log(p)), order, sigma)) * (1 + 1e-9)


def test_local_sensitivities_are_above_brute_force() -> None:
    teachers, order, sigma = 8, 4.0, 1.5
    histograms = [h for h in product(range(teachers + 1), repeat=3) if sum(h) == teachers]
    cost = {h: float(published_rdp(gnmax_log_error([h], sigma), order, sigma)[0]) for h in histograms}

    def apart(one: tuple[int, ...], other: tuple[int, ...]) -> int:
        return sum(abs(a - b) for a, b in zip(one, other, strict=True)) // 2

    local = {h: max(abs(cost[h] - cost[o]) for o in histograms if apart(h, o) == 1) for h in histograms}
    for h in histograms:
        found = local_sensitivities(np.array([h]), order, sigma, 3)
        for d in range(4):
            # the grid's steps are 1/67 in log q
            assert found[d] >= max(local[o] for o in histograms if apart(h, o) <= d) * 0.97 - 1e-9


def test_algorithm_4_costs_more_than_the_plain_mechanism() -> None:
    votes = made_votes("high", np.random.default_rng(1), 100)
    found = algorithm_4(votes, np.random.default_rng(2), sigma=40.0, test_epsilon=1.0, delta=1e-5)
    assert found["total"] > gaussian_epsilon(1e-5, sqrt(200) / 40.0)
    assert algorithm_4.guarantee is None and len(algorithm_4.errata) == 4


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_record_moves_the_projector_further(relation: str) -> None:
    g = np.random.default_rng(3)
    for _ in range(300):
        x = g.normal(size=(12, 3)) * np.array([1.5, 0.5, 0.4])
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
        moments = x.T @ x
        values, vectors = np.linalg.eigh(moments)
        gap = values[-1] - values[-2]
        if gap <= (1.05 if relation == "add-remove" else 2.05):
            continue
        for _ in range(20):
            u = g.normal(size=3)
            moved = moments + np.outer(u, u) / (u @ u) - (0 if relation == "add-remove" else 1) * np.outer(x[0], x[0])
            other = np.linalg.eigh(moved)[1][:, -1]
            distance = np.linalg.norm(np.outer(vectors[:, -1], vectors[:, -1]) - np.outer(other, other))
            assert distance <= projector_move(gap, relation) + 1e-12


def test_exact_noise_captures_most() -> None:
    g = np.random.default_rng(4)
    x = g.normal(size=(5_000, 10)) * np.sqrt(np.where(np.arange(10) < 3, 10.0, 1.0))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    own = np.mean([captured(x, corrected_gauss(x, 3, g, epsilon=0.3, delta=1e-6)) for _ in range(10)])
    printed = [printed_projector(x, 3, g, epsilon=0.3, delta=1e-6)["basis"] for _ in range(10)]
    assert own >= np.mean([captured(x, one) for one in printed if one is not None])
    chosen = corrected_projector(x, (2, 3, 5), g, epsilon=2.0, delta=1e-6)
    assert chosen is not None and chosen.shape == (10, 3)
