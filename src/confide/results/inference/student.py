"""Student's t and the normal distribution in one: degrees of freedom that may be infinite, one number or one for each estimate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import _special as special

__all__ = ["fewest", "quantile", "spread", "two_sided", "weighted"]

Vector = NDArray[np.float64]


def quantile(half: float, df: ArrayLike) -> Vector:
    """The upper quantile at the tail probability `half` for each df; NaN where df is.

    >>> quantile(0.025, [float("inf"), 4.0]).round(2).tolist()
    [1.96, 2.78]
    """
    freedom = np.asarray(df, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        # scipy's t quantile has the wrong sign where it overflows, hence the absolute value
        own = np.abs(special.stdtrit(np.where(np.isinf(freedom), 1.0, freedom), half))
    return np.asarray(np.where(np.isinf(freedom), abs(special.ndtri(half)), own))


def two_sided(t: ArrayLike, df: ArrayLike) -> Vector:
    """P(|T| >= |t|) for each t and df.

    >>> two_sided([1.96, 1.96], [float("inf"), 4.0]).round(3).tolist()
    [0.05, 0.122]
    """
    size, freedom = -np.abs(np.asarray(t, dtype=np.float64)), np.asarray(df, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        tail = special.stdtr(np.where(np.isinf(freedom), 1.0, freedom), size)
    return np.asarray(2 * np.where(np.isinf(freedom), special.ndtr(size), tail))


def fewest(rows: Vector, df: ArrayLike) -> float | Vector:
    """The degrees of freedom of combinations, rows (q, p): for each the fewest of the estimates that it weighs.

    One number stays one number.
    """
    freedom = np.asarray(df, dtype=np.float64)
    if freedom.ndim == 0:
        return float(freedom)
    own = np.where(rows != 0, freedom, np.inf)
    return np.asarray(own.min(axis=1))


def weighted(rows: Vector, values: Vector) -> Vector:
    """rows @ values, where an estimate without weight does not count even if it is NaN: not answered."""
    unknown = np.isnan(values)
    if not unknown.any():
        return np.asarray(rows @ values)
    known = rows @ np.where(unknown, 0.0, values)
    return np.where((rows[:, unknown] != 0).any(axis=1), np.nan, known)


def spread(rows: Vector, covariance: Vector) -> Vector:
    """rows @ covariance @ rows', NaN for the combinations that weigh an estimate whose variance is NaN, and for no others."""
    unknown = np.isnan(np.diag(covariance))
    if not unknown.any() or unknown.all():
        return np.asarray(rows @ covariance @ rows.T)
    known = rows[:, ~unknown] @ covariance[np.ix_(~unknown, ~unknown)] @ rows[:, ~unknown].T
    missing = (rows[:, unknown] != 0).any(axis=1)
    known[missing] = known[:, missing] = np.nan
    return np.asarray(known)
