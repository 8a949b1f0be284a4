"""Decimal linear algebra, and the bounds on computed posterior samples that rest on it."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from confide_lab.aggregates.digits import cholesky, in_digits, numbers, solved, whole
from confide_lab.aggregates.posterior import Posterior, apart, sample_step


def hilbert(k: int) -> np.ndarray:
    """Whole numbers times the Hilbert matrix: of condition 10^16 at k = 12, where doubles give no digit."""
    least = int(np.lcm.reduce(np.arange(1, 2 * k, dtype=object)))
    return np.array([[least // (i + j + 1) for j in range(k)] for i in range(k)], dtype=object)


def test_a_system_that_doubles_cannot_solve_is_solved_to_80_digits() -> None:
    matrix = hilbert(12)
    right = matrix @ np.arange(1, 13, dtype=object)  # so that the solution is 1, .., 12
    upper = cholesky(numbers(matrix))
    found = solved(upper, solved(upper, numbers(right), transposed=True))
    assert max(abs(float(x - j)) for j, x in enumerate(found, 1)) < 1e-80
    back = upper.T @ upper
    assert abs(float(back[3, 4] - Decimal(int(matrix[3, 4])))) < 1e-12 and upper[4, 3] == 0
    assert abs(np.linalg.solve(matrix.astype(float), right.astype(float)) - np.arange(1, 13)).max() > 1e-3


def test_numbers_are_taken_exactly_and_rounded_to_the_nearest() -> None:
    values = numbers([0.1, 2.0**-1074, -3.0])
    assert [Fraction(value) for value in values] == [Fraction(0.1), Fraction(1, 2**1074), Fraction(-3)]
    assert numbers(np.array([10**100, -1], dtype=object))[0] == Decimal(10**100)
    assert numbers([2**63 + 1, -1])[0] == 2**63 + 1 and numbers([np.int64(3), np.float64(0.5)]).tolist() == [
        3,
        Decimal("0.5"),
    ]
    assert whole(numbers([0.5, 1.5, -2.6])).tolist() == [0, 2, -3]
    before = getcontext().prec
    assert in_digits(lambda: getcontext().prec)() == 120 and getcontext().prec == before


@pytest.mark.parametrize("seed", range(20))
def test_a_computed_sample_is_as_near_to_the_ideal_one_as_the_proof_says(seed: int) -> None:
    """z between two steps of 2^-56: the sample moves by at most eta; its steps on two neighbours by 2 + sqrt(k)."""
    g = np.random.default_rng(seed)
    k, lam, gamma = int(g.integers(1, 7)), float(10 ** g.uniform(-2, 2)), float(10 ** g.uniform(-4, 6))
    rows = g.standard_normal((int(g.integers(1, 40)), k)) * 10 ** g.uniform(-2, 1, k)
    posterior = Posterior(rows.T @ rows, g.standard_normal(k), 1.0, 1.0)
    least = lam + max(float(np.linalg.eigvalsh(rows.T @ rows)[0]), 0.0) * (1 - 1e-9)
    step = sample_step(gamma, least, k)
    eta = Fraction(sqrt(k / (gamma * least))) / 2**57
    assert eta <= step <= 2 * eta * (1 + Fraction(1, 2**19))
    drawn = [int(v) for v in g.integers(-(2**58), 2**58, k)]
    half = numbers(
        [Decimal(v) + Decimal("0.499999") * int(s) for v, s in zip(drawn, g.choice([-1, 1], k), strict=True)]
    )
    ideal, computed = posterior.draw(lam, gamma, half), posterior.draw(lam, gamma, numbers(drawn))
    moved = in_digits(lambda: float(((ideal - computed) @ (ideal - computed)).sqrt()))()
    assert 0 < moved <= float(eta) * (1 + 2.0**-20)
    # a neighbour whose ideal sample is the same: any other z on its own lattice that leads there
    more = np.vstack([rows, g.standard_normal(k)])
    other = Posterior(more.T @ more, g.standard_normal(k), 1.0, 1.0)
    z = _leading(other, lam, gamma, ideal)
    steps = [one.steps(lam, gamma, at, step) for one, at in ((posterior, numbers(drawn)), (other, numbers(z)))]
    difference = steps[0] - steps[1]
    assert Fraction(int((difference * difference).sum())) <= apart(k) ** 2


@in_digits
def _leading(posterior: Posterior, lam: float, gamma: float, ideal: np.ndarray) -> list[int]:
    """The steps of 2^-56 nearest to the z whose ideal sample this is."""
    upper = posterior._root(lam)
    z = upper @ (ideal - posterior._solved(upper)) * Decimal(gamma).sqrt() * 2**56
    return [int(v) for v in whole(z)]
