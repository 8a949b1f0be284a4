"""Sparse empirical risk minimisation by propose-test-release: Redberg, Zhu, Wang 2023, C.4, names it and prints no algorithm.

This one is put together from the parts that C.4 cites: the support by votes of disjoint blocks (Kifer, Smith, Thakurta 2012), the test
of Algorithm 2 on how many blocks would have to change, and objective perturbation on the columns of the support.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide_lab.published.generalized_ptr import generalized_ptr
from confide_lab.published.generalized_ptr_glm import kifer_objective, logistic_minimiser
from confide_lab.published.marks import published

__all__ = ["block_votes", "sparse_erm", "support_distance"]

Array = NDArray[np.float64]


def block_votes(x: Array, y: Array, blocks: int, sparsity: int, ridge: float) -> NDArray[np.int64]:
    """(d,) how many of the blocks, of every blocks-th record each, have a column among their `sparsity` largest slopes."""
    votes = np.zeros(x.shape[1], dtype=np.int64)
    for first in range(blocks):
        slopes = np.abs(logistic_minimiser(x[first::blocks], y[first::blocks], ridge))
        votes[np.argsort(-slopes, kind="stable")[:sparsity]] += 1
    return votes


def support_distance(votes: NDArray[np.int64], sparsity: int) -> int:
    """How many blocks must change before one more change may make the columns with most votes others: a change moves the gap to the next
    column by two at most, and at a gap of two or less ties may be broken otherwise.

    >>> support_distance(np.array([9, 1, 8, 2, 0]), 2), support_distance(np.array([5, 3, 3]), 1), support_distance(np.array([5, 5, 5]), 2)
    (2, 0, 0)
    """
    ordered = np.sort(votes)[::-1]
    return max((int(ordered[sparsity - 1]) - int(ordered[sparsity]) - 1) // 2, 0)


@published(
    "(epsilon, delta)-DP under replacement, n public (Theorem 4.3 for the test, Kifer et al. 2012 for the slopes)",
    "C.4 claims 'when the design matrix is well-behaved' and gives neither algorithm nor theorem",
    "the test replies where the blocks agree, which needs many records in each of many; objective perturbation always replies",
)
def sparse_erm(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    sparsity: int,
    blocks: int,
    ridge: float,
    epsilon: float,
    delta: float,
) -> dict[str, Any]:
    """Half of epsilon and delta for the test, half for the slopes. Returns reply, support (sparsity,) and theta (d,), zero elsewhere.

    support and theta are None without a reply. The test passes where distance + Laplace noise of scale 2/epsilon is above
    log(2/delta)/(epsilon/2), as in Algorithm 1 with (epsilon/2, delta/2).
    """
    votes = block_votes(x, y, blocks, sparsity, ridge)
    half = epsilon / 2

    def passes(data: NDArray[np.int64], g: np.random.Generator) -> bool:
        return bool(support_distance(data, sparsity) + g.laplace(0, 1 / half) > log(2 / delta) / half)

    def slopes(data: NDArray[np.int64], g: np.random.Generator) -> tuple[NDArray[np.intp], Array]:
        support = np.sort(np.argsort(-data, kind="stable")[:sparsity])
        theta = np.zeros(x.shape[1])
        theta[support] = kifer_objective(x[:, support], y, g, ridge=ridge, epsilon=half, delta=delta / 2)["theta"]
        return support, theta

    found = generalized_ptr(votes, rng, test=passes, mechanism=slopes)
    support, theta = found["output"] or (None, None)
    return {"reply": found["reply"], "support": support, "theta": theta}
