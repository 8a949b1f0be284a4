"""Algorithm 3 of Redberg, Zhu, Wang 2023 with its own budget: the printed Theorem 4.6 gives back what was asked for."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from confide_lab.published import generalized_ptr_ops as ops
from confide_lab.published.selection import run_budget, theorem_46

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
