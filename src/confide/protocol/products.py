"""Matrix products of integers in doubles, exact where this machine's products are, in pieces for which BLAS has its fast ways.

Integers whose partial sums stay below 2^53 add up exactly in any order, with or without fused multiplications; who calls sees to the
bound. A machine whose products split or emulate doubles is found out once (`exact_sums`, `exact_products`); callers then add in integers.

OpenBLAS has a way of its own for products of at most 10^6 terms, without the copies of the general one: it is the
quicker one for few rows of many records, and quickest where rows begin at multiples of 64 bytes (`confide.aggregates.lines.rows.aligned`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from confide._arrays import Array

__all__ = ["exact_products", "exact_sums", "gram", "product"]


# Terms of a product that BLAS takes the short way for.
_TERMS = 1_000_000
# Pieces of fewer records than this cost more in calls than they save.
_SHORTEST = 512
# Rows of one product; from how many rows on, and up to how many, products of so many beat the symmetric one of all.
_ROWS, _FEWEST, _MOST = 8, 9, 40


def product(matrix: Array, columns: Array, out: Array | None) -> Array:
    """matrix @ columns, into `out` where it is given."""
    most = _TERMS // matrix.size
    if columns.shape[1] <= most or most < _SHORTEST:
        return np.matmul(matrix, columns, out=out)
    if out is None:
        out = np.empty((len(matrix), columns.shape[1]))
    step = most // 8 * 8
    for start in range(0, columns.shape[1], step):
        np.matmul(matrix, columns[:, start : start + step], out=out[:, start : start + step])
    return out


def gram(rows: Array) -> Array:
    """rows @ rows.T of integers.

    >>> gram(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[5.0, 6.0], [6.0, 9.0]]
    """
    k, records = rows.shape
    if not _FEWEST <= k <= _MOST or records < _SHORTEST:
        return np.asarray(rows @ rows.T)
    found = np.empty((k, k))
    for first in range(0, k, _ROWS):
        some = rows[first : first + _ROWS]
        # one row more than the last few: NumPy takes the slow symmetric product for an array with its own transpose
        rest = rows[min(first, k - len(some) - 1) :]
        step = _TERMS // (len(some) * len(rest)) // 8 * 8
        part = np.zeros((len(some), len(rest)))
        for start in range(0, records, step):
            part += some[:, start : start + step] @ rest[:, start : start + step].T
        found[first : first + _ROWS, k - len(rest) :] = part
        found[k - len(rest) :, first : first + _ROWS] = part.T
    return found


@lru_cache(maxsize=1)
def exact_sums() -> bool:
    """Whether this machine's Gram matrices and sums of doubles are exact on integers of 20 bits, 8,192 at a time."""
    index = np.arange(17 * 8192, dtype=np.int64).reshape(17, 8192)
    rows = (1 << 20) - (index * 2654435761 % 7)
    rows[1::3] *= np.where(index[1] % 3 == 0, -1, 1)
    doubles = rows.astype(np.float64)
    exact = np.einsum("ik,jk->ij", rows, rows)
    sums = bool(((doubles @ np.ones(rows.shape[1])).astype(np.int64) == rows.sum(axis=1)).all())
    # few rows and more of them go different ways
    both = (gram(doubles), doubles[:3] @ doubles[:3].T)
    return sums and all(bool((own.astype(np.int64) == exact[: len(own), : len(own)]).all()) for own in both)


@lru_cache(maxsize=1)
def exact_products() -> bool:
    """Whether this machine's product of doubles is exact up to 2^53."""
    index = np.arange(64 * 96, dtype=np.int64).reshape(64, 96)
    left = (1 << 26) - (index[:6, :64].T * 2654435761 % 1009).T
    left[1::2] *= -1
    right = (1 << 20) - index * 40503 % 977
    exact = np.einsum("ij,jk->ik", left, right)
    rows, columns = left.astype(np.float64), right.astype(np.float64)
    # several rows and one row go different ways
    found = np.concatenate([rows @ columns, rows[:1] @ columns])
    return bool((found.astype(np.int64) == np.concatenate([exact, exact[:1]])).all())
