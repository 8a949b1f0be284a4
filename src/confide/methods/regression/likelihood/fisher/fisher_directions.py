"""Directions of separation: along which the line may move for ever, since no record stands against it.

Albert, Anderson 1984: the likeliest coefficients are infinite where a direction d has x'd >= 0 at all records with the outcome, <= 0 at
all without, and not 0 at all. Of counts: x'd = 0 at all records that count something, and <= 0 at the others. Records stand against d
otherwise, and where they are next to none the line cannot be told from one without end. So for each coefficient the direction is looked
for that moves it and has the fewest records against it: with the noisy numbers of both outcomes at every distinct row of the matrix, the
linear programme

    min  sum over rows of ones (-x'd)+ + zeros (x'd)+     where d_j is 1, or -1

(of counts ones |x'd|), numbers below 0 as 0. The records against what it finds are counted, whose number has the noise of as many cells,
and are asked for as those of a level are (`fisher_levels`). A direction that is a level's own is left to that, whose count has less
noise. Post-processing of noisy counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._lazy import later

optimize = later("scipy.optimize")

__all__ = ["Against", "least_against"]


# Along a direction of largest entry 1 rows that move less are taken not to.
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class Against:
    """The direction that moves a coefficient and has the fewest records against it. moved: which rows it moves; count: of records against
    it; sd: of its noise.
    """

    place: int
    moved: NDArray[np.bool_]
    count: float
    sd: float


def least_against(rows: Array, counts: Array, sd: float, known: Sequence[Array], *, of_counts: bool) -> list[Against]:
    """For each coefficient and sign, without the directions that are known. rows (m, k); counts (m, 2): records with an outcome of 0, and
    with another one, with noise of this sd; known: what is 1 at the rows of a level and 0 elsewhere, (m,) each; of_counts: whether
    outcomes are counts.
    """
    m, k = rows.shape
    unit = rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)
    zeros, ones = np.maximum(counts, 0.0).T
    # x'd = up - down
    price = np.concatenate([np.zeros(k), zeros + (ones if of_counts else 0.0), ones])
    split = np.hstack([unit, -np.eye(m), np.eye(m)])
    found: list[Against] = []
    for place in range(k):
        for sign in (1.0, -1.0):
            bounds: list[tuple[float | None, float | None]] = [(None, None)] * k + [(0.0, None)] * (2 * m)
            bounds[place] = (sign, sign)
            done = optimize.linprog(price, A_eq=split, b_eq=np.zeros(m), bounds=bounds, method="highs")
            if done.status:
                continue
            along = unit @ (done.x[:k] / np.abs(done.x[:k]).max())
            up, down = along > _ROUNDING, along < -_ROUNDING
            moved = up | down
            if not moved.any() or _is_known(along, moved, known):
                continue
            against = np.stack([up, moved if of_counts else down], axis=1)
            found.append(Against(place, moved, float(counts[against].sum()), sd * sqrt(float(against.sum()))))
    return found


def _is_known(along: Array, moved: NDArray[np.bool_], known: Sequence[Array]) -> bool:
    """Whether a direction is a level's own."""
    size = along[moved]
    return bool(np.ptp(size) < _ROUNDING) and any((moved == (np.abs(one) > _ROUNDING)).all() for one in known)
