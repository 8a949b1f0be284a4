"""The last step of Fisher scoring beyond first order: what the score would be at the new line, as made points say.

A and g are sums at the line before the step. The step A^-1 g is the root of the score in first order; where the mean bends much within
it, as an exponential does, it goes too far: a rate that is e^d times as large is reached by d, and the step is e^d - 1. With the mean
m(eta), its slope s and h, the score at eta of a line whose root is at eta + u'delta is

    F(delta) = sum u (h/s)(eta) (m(eta + u'delta) - m(eta)),      F'(0) = sum h u u',

so that g = A delta + (F(delta) - F'(0) delta), the bracket from made points (`fisher_start`) for as many records, is solved by
Newton's steps; it is of second order in delta, and so is what the points get wrong. A + F'(delta) - F'(0) is the information at the new
line. Points count as records do in A and g, with weight min(1, D/N): a bracket of full weights beside sums of less may leave no root.
All of it is post-processing.
"""

from __future__ import annotations

import numpy as np

from confide._arrays import Array
from confide.aggregates.scores.fisher_families import Family

__all__ = ["settled"]


_STEPS = 20
_ENOUGH = 1e-10
# Points move by at most so much along the line.
_FAR = 3.0


def settled(
    gram: Array, cross: Array, first: Array, u: Array, eta: Array, counts: Array, family: Family
) -> tuple[Array, Array]:
    """(delta (k,), the change of A (k, k)); first and zeros where Newton's steps fail. first: A^-1 g; u (points, k), eta (points,).

    counts: how many records, with their weights, a point stands for, (points,).
    """
    slope = family.slope(eta)
    weight = counts * family.information(eta) / np.maximum(slope, 1e-300)
    here = family.mean(eta)

    def bent(delta: Array) -> tuple[Array, Array]:
        moved = np.clip(u @ delta, -_FAR, _FAR)
        own = weight * (family.mean(eta + moved) - here - slope * moved)
        change = weight * (family.slope(eta + moved) - slope)
        return u.T @ own, (u.T * change) @ u

    delta = first
    try:
        for _ in range(_STEPS):
            second, change = bent(delta)
            step = np.linalg.solve(gram + change, cross - gram @ delta - second)
            delta = delta + step
            if float(step @ step) < _ENOUGH:
                change = bent(delta)[1]
                if np.linalg.eigvalsh(gram + change)[0] > 0:
                    return delta, np.asarray((change + change.T) / 2)
                break
    except np.linalg.LinAlgError:
        pass
    return first, np.zeros_like(gram)
