"""Noisy ranges of features, which every method of a comparison is given alike, and what the runs of opponents spend."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Spend", "box_of", "noisy_ranges", "spent"]

Array = NDArray[np.float64]

# Cells of a feature's histogram at first; the share of the records that has to lie in cells above the noise.
_CELLS, _ENOUGH = 64, 0.8


class Spend(NamedTuple):
    """One Gaussian release: how far a record moves it at most, in the metric in which its noise has standard deviation sd."""

    name: str
    sensitivity: float
    sd: float


def spent(spends: Iterable[Spend]) -> float:
    """mu of Gaussian releases chosen one after the other.

    >>> spent([Spend("count", 1.0, 2.0), Spend("ranges", 3.0, 4.0), Spend("line", 1.0, 1.0)])
    1.346...
    """
    return sqrt(sum((spend.sensitivity / spend.sd) ** 2 for spend in spends))


def noisy_ranges(
    x: Array, rng: np.random.Generator, *, x_bounds: Array, mu: float, binary: NDArray[np.bool_] | None = None
) -> tuple[Array, Array, Spend]:
    """Middle and half-width (d,) of a box in which most records lie. x: (n, d); x_bounds: (d, 2); binary: columns (d,) that keep theirs.

    A record lies in one of 64 cells of each of F features, which moves their histograms by sqrt(F).

    >>> g = np.random.default_rng(1)
    >>> middle, half, _ = noisy_ranges(g.random((5000, 1)), g, x_bounds=np.array([[-4.0, 6.0]]), mu=1.0)
    >>> bool(abs(middle[0] - 0.5) < 0.05 and abs(half[0] - 0.5) < 0.05)
    True
    """
    middle, half = box_of(x_bounds)
    low, width = middle - half, 2 * half
    free = np.arange(len(half)) if binary is None else np.flatnonzero(~binary)
    sd = sqrt(len(free)) / mu
    cells = np.clip(np.floor((x[:, free] - low[free]) / width[free] * _CELLS), 0, _CELLS - 1).astype(np.int64)
    cells += _CELLS * np.arange(len(free))
    counts = np.bincount(cells.ravel(), minlength=_CELLS * len(free)).reshape(len(free), _CELLS)
    for j, row in zip(free, counts + sd * rng.standard_normal(counts.shape), strict=True):
        noise, whole = sd, row.sum()
        while len(row) >= 8:
            kept = np.where(row > 2 * noise, row, 0.0)
            if kept.sum() >= _ENOUGH * whole and kept.sum() > 0:
                step = width[j] / len(row)
                at = low[j] + step * (np.arange(len(row)) + 0.5)
                middle[j] = kept @ at / kept.sum()
                half[j] = min(sqrt(3 * (kept @ (at - middle[j]) ** 2 / kept.sum() + step**2 / 12)), width[j] / 2)
                break
            row, noise = row[::2] + row[1::2], sqrt(2) * noise
    return middle, half, Spend("ranges", sqrt(len(free)), sd)


def box_of(x_bounds: Array) -> tuple[Array, Array]:
    """Middle and half-width (d,) of bounds (d, 2)."""
    low, high = np.asarray(x_bounds, dtype=np.float64).T
    return (low + high) / 2, (high - low) / 2
