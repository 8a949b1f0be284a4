"""Redberg, Zhu, Wang 2023 to the letter: Algorithm 3 with its own budget, also for Example C.8, Algorithms 6 and 8, and C.4's parts."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

from confide_lab.published import generalized_ptr_glm as glm, generalized_ptr_ops as ops
from confide_lab.published.generalized_ptr import algorithm_6
from confide_lab.published.selection import run_budget, theorem_46
from confide_lab.published.sparse_erm import block_votes, sparse_erm, support_distance

Array = np.ndarray


def _records(n: int = 3_000) -> tuple[Array, Array]:
    g = np.random.default_rng(9)
    x = g.standard_normal((n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, np.clip(x @ [0.5, -0.3, 0.2] + 0.1 * g.standard_normal(n), -1, 1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-6), (1.0, 1e-6), (5.0, 1e-6), (1.0, 1e-4)])
def test_the_runs_of_algorithm_3_compose_to_what_was_asked(epsilon: float, delta: float) -> None:
    x, y = _records()
    found = ops.algorithm_3(x, y, x[:50], y[:50], np.random.default_rng(1), epsilon=epsilon, delta=delta)
    each, small = found["budget"]
    total = theorem_46(each, small, 0.05 / 30, delta / 2)
    assert total == pytest.approx((epsilon, delta), rel=1e-12)
    # the theorem once more, without the function
    cutoff = log(1 / (delta / 2)) / (0.05 / 30)
    assert 3 * each + 3 * sqrt(2 * small) == pytest.approx(epsilon, rel=1e-12)
    assert sqrt(2 * small * cutoff) + delta / 2 == pytest.approx(delta, rel=1e-12)


def test_the_printed_example() -> None:
    each, small = run_budget(1.0, 1e-6, 0.05 / 30)
    assert each == pytest.approx(1 / 3, abs=1e-7) and 1.4e-17 < small < 1.5e-17


@pytest.mark.parametrize(("deltas", "part"), [("algorithm 8", 1 / 3), ("section 5.1", 1 / 6)])
def test_a_run_of_algorithm_3_is_algorithm_8_at_that_budget(deltas: str, part: float) -> None:
    """With one candidate every run draws the same three times: the noise of the certificates and gamma follow from (e*, d*) alone."""
    x, y = _records()
    lam, least = 10.0, float(np.linalg.eigvalsh(x.T @ x)[0])
    found = ops.algorithm_3(
        x, y, x[:50], y[:50], np.random.default_rng(4), epsilon=3.0, delta=1e-6, penalties=(lam,), deltas=deltas
    )
    each, small = run_budget(3.0, 1e-6, 0.05)
    generator = np.random.default_rng(4)
    runs = int(generator.geometric(0.05))
    generator.choice(np.array([lam]), size=runs)
    best, chosen = np.inf, 0.0
    for _ in range(runs):
        sd = sqrt(log(6 / small)) / (each / 4)
        low = max(least + sd * (generator.standard_normal() - sqrt(2 * log(2 / small))), 0.0)
        line = np.linalg.solve(x.T @ x + lam * np.eye(3), x.T @ y)
        span = log(1 + 1 / (lam + low))
        bound = log(1 + np.linalg.norm(line)) + span * sd * (generator.standard_normal() + sqrt(2 * log(2 / small)))
        gamma = ops.precision_51(each / 2, small * part, lam + low, float(np.exp(bound)))
        if gamma <= 1e-300:
            continue
        upper = np.linalg.cholesky(x.T @ x + lam * np.eye(3)).T
        beta = line + np.linalg.solve(upper, generator.standard_normal(3)) / sqrt(gamma)
        loss = float(((y[:50] - x[:50] @ beta) ** 2).mean())
        if loss < best:
            best, chosen = loss, gamma
    assert found["runs"] == runs and found["gamma"] == pytest.approx(chosen, rel=1e-9)


@pytest.mark.parametrize("reading", ["printed", "restored"])
def test_both_readings_of_algorithm_8(reading: str) -> None:
    """Line 3 prints log(2/delta) outside the root and line 5 sqrt(6/delta) without the logarithm; the certificates are those."""
    x, y = _records()
    lam, epsilon, delta = 10.0, 400.0, 1e-6
    found = ops.algorithm_8(x, y, np.random.default_rng(3), epsilon=epsilon, delta=delta, lam=lam, reading=reading)
    g = np.random.default_rng(3)
    z, w = g.standard_normal(), g.standard_normal()
    e = epsilon / 4
    least = float(np.linalg.eigvalsh(x.T @ x)[0])
    shift = (
        sqrt(2 * log(6 / delta)) * log(2 / delta) if reading == "printed" else sqrt(2 * log(6 / delta) * log(2 / delta))
    )
    low = max(least + sqrt(log(6 / delta)) / e * z - shift / e, 0.0)
    assert found["eigenvalue"] == pytest.approx(low, rel=1e-12) and low > 0
    span = log(1 + 1 / (lam + low))
    noise = sqrt(6 / delta) if reading == "printed" else sqrt(log(6 / delta))
    line = np.linalg.solve(x.T @ x + lam * np.eye(3), x.T @ y)
    size = log(1 + np.linalg.norm(line)) + span / e * (noise * w + sqrt(2 * log(6 / delta) * log(2 / delta)))
    assert found["log_lipschitz"] == pytest.approx(size, rel=1e-12)


def _outcomes(n: int = 4_000) -> tuple[Array, Array]:
    g = np.random.default_rng(8)
    x = g.standard_normal((n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, np.where(g.random(n) < 1 / (1 + np.exp(-x @ [3.0, -2.0, 1.0])), 1.0, -1.0)


def test_the_runs_of_example_c8_compose_to_what_was_asked() -> None:
    x, y = _outcomes()
    ridges = (1.0, 16.0, 256.0)
    score = lambda theta: -float(np.logaddexp(0, -y[:200] * (x[:200] @ theta)).mean())  # noqa: E731
    found = glm.hessian_shaped_search(
        x, y, np.random.default_rng(2), ridges=ridges, score=score, epsilon=5.0, delta=1e-6
    )
    each, small = found["budget"]
    tau = 0.05 / 3
    assert theorem_46(each, small, tau, 0.5e-6) == pytest.approx((5.0, 1e-6), rel=1e-12)
    assert found["ridge"] in ridges and np.isfinite(found["theta"]).all() and found["runs"] >= 1
    # with one candidate the best of all runs is the best of as many runs of Example C.8 at (e*, d*/2), Theorem C.9 says d* of each
    alone = glm.hessian_shaped_search(
        x, y, np.random.default_rng(5), ridges=(256.0,), score=score, epsilon=5.0, delta=1e-6, shift="restored"
    )
    each, small = alone["budget"]
    g = np.random.default_rng(5)
    runs = int(g.geometric(0.05))
    best = []
    for _ in range(runs):
        g.integers(1)
        best.append(glm.hessian_shaped(x, y, g, ridge=256.0, epsilon=each, delta=small / 2, shift="restored")["theta"])
    assert runs == alone["runs"]
    assert alone["theta"] == pytest.approx(max((t for t in best if t is not None), key=score), rel=1e-9)


@pytest.mark.parametrize("shift", ["printed", "restored"])
def test_both_readings_of_the_shift_of_example_c8(shift: str) -> None:
    x, y = _outcomes()
    epsilon, delta, ridge = 40.0, 1e-6, 5.0
    found = glm.hessian_shaped(x, y, np.random.default_rng(1), ridge=ridge, epsilon=epsilon, delta=delta, shift=shift)
    theta = glm.logistic_minimiser(x, y, ridge)
    share = 1 / (1 + np.exp(-x @ theta))
    least = float(np.linalg.eigvalsh((x.T * (share * (1 - share))) @ x)[0])
    z, move = np.random.default_rng(1).standard_normal(), 2.25
    quantile = {"printed": log(1 / delta), "restored": sqrt(log(1 / delta))}[shift]
    low = least + move / (epsilon / 2) * (sqrt(log(4 / delta)) * z - sqrt(2 * log(4 / delta)) * quantile)
    assert found["alpha"] == pytest.approx(max(low, 0.0) + ridge, rel=1e-6) and low > 0
    # step 6: Remark C.7 at gamma spends epsilon/2 at delta/2
    spent = 1.25 / found["alpha"] * (1 + log(4 / delta)) + found["gamma"] / found["alpha"]
    assert spent + sqrt(found["gamma"] / found["alpha"] * log(4 / delta)) == pytest.approx(epsilon / 2, rel=1e-9)


@pytest.mark.long
def test_algorithm_6_calibrates_its_test_and_says_what_theorem_b5_says() -> None:
    settings = {"order": 8.0, "test": 1.0, "false_pass": 0.01, "conditional": 0.01, "overall": 4.0}
    run = lambda at, g: algorithm_6(at, g, distance=float, mechanism=lambda d, r: d + r.standard_normal(), **settings)  # noqa: E731
    found = run(0, np.random.default_rng(1))
    # a Gaussian test of a distance that a record moves by one: Renyi divergence order/(2 sd^2)
    assert 8.0 / (2 * found["sd"] ** 2) == pytest.approx(1.0, rel=1e-12)
    assert stats.norm.sf(found["threshold"] / found["sd"]) == pytest.approx(0.01, rel=1e-9)
    mixed = 0.01 * np.exp(7 * 4.0) + 0.99 * np.exp(7 * 0.01)
    assert found["rdp"] == pytest.approx(1.0 + log(mixed) / 7, rel=1e-12)
    g = np.random.default_rng(2)
    passed = sum(run(0, g)["reply"] for _ in range(20_000))
    assert stats.binomtest(passed, 20_000, 0.01).pvalue > 1e-4
    assert all(run(30, g)["reply"] and run(30, g)["output"] is not None for _ in range(20))
    assert algorithm_6.guarantee is None and "Theorem B.5" in algorithm_6.claim


def test_one_record_moves_the_distance_of_a_support_by_one_at_most() -> None:
    """Where the distance is above 0 the neighbours have the same support: the two things that Theorem 4.3 asks of the test."""
    g = np.random.default_rng(12)
    for _ in range(300):
        blocks = [g.choice(6, size=2, replace=False, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05]) for _ in range(15)]
        votes = np.bincount(np.concatenate(blocks), minlength=6)
        # one record changes one block, which may vote for any two other columns
        other = (
            votes - np.bincount(blocks[0], minlength=6) + np.bincount(g.choice(6, size=2, replace=False), minlength=6)
        )
        assert abs(support_distance(votes, 2) - support_distance(other, 2)) <= 1
        if support_distance(votes, 2) > 0:
            assert set(np.argsort(-votes, kind="stable")[:2]) == set(np.argsort(-other, kind="stable")[:2])


def test_sparse_erm_finds_the_columns_or_says_nothing() -> None:
    g = np.random.default_rng(3)
    x = g.standard_normal((12_000, 8))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.where(g.random(12_000) < 1 / (1 + np.exp(-12 * (x[:, 1] - x[:, 4]))), 1.0, -1.0)
    settings = {"sparsity": 2, "blocks": 60, "ridge": 1.0, "delta": 1e-6}
    assert block_votes(x, y, 60, 2, 1.0).sum() == 120
    found = sparse_erm(x, y, np.random.default_rng(1), epsilon=4.0, **settings)
    assert found["reply"] and found["support"].tolist() == [1, 4]
    assert (found["theta"][[0, 2, 3, 5, 6, 7]] == 0).all() and found["theta"][1] > 0 > found["theta"][4]
    # 60 blocks are 29 away at most, and at epsilon = .5 the threshold is 58
    assert not sparse_erm(x, y, np.random.default_rng(1), epsilon=0.5, **settings)["reply"]
    assert sparse_erm.guarantee is None
