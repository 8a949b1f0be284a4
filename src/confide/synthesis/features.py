"""The columns of made-up records, from noisy bins alone: how many in each bin, and where within it.

Post-processing of a release: the draws come from a generator keyed by its digest, so that one release gives one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.schema import Categorical, Design, Integer, Numeric, Schema
from confide.synthesis.bins import NoisyBins, feature_columns

__all__ = ["as_column", "draw_columns", "joined", "public_rows", "row_numbers", "tilted"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

# Numbers are rounded to the decimals that a millionth of the column's range has.
_FINE = 6
# A bin's noisy mean moves its rows when the noisy count exceeds so many noise sds.
_TRUSTED = 3.0
# A mean at the very edge of its bin would put every row there.
_EDGE = 0.97


def row_numbers(counts: Array, total: float) -> Whole:
    """Whole numbers of rows (bins,), at least 0, that add up to max(round(total), 0).

    The same amount is taken from every noisy count until what is left above 0 adds up to `total`: leaving out negative counts alone
    would make more rows than there were records. Halves go to the bins with the largest rest.

    >>> row_numbers(np.array([5.2, -2.0, 0.4, 3.4]), 7.0).tolist()
    [4, 0, 0, 3]
    """
    target = max(round(total), 0)
    if not len(counts) or target == 0:
        return np.zeros(len(counts), dtype=np.int64)
    ordered = np.sort(counts)[::-1]
    taken = (np.cumsum(ordered) - target) / np.arange(1, len(counts) + 1)
    # the last one that is still above what is taken from it; the largest always is
    last = int(np.flatnonzero(ordered > taken)[-1])
    exact = np.maximum(counts - taken[last], 0.0)
    numbers = np.floor(exact).astype(np.int64)
    rest = target - int(numbers.sum())
    if rest > 0:
        numbers[np.argsort(-(exact - numbers), kind="stable")[:rest]] += 1
    return np.asarray(numbers)


def draw_columns(
    noisy: NoisyBins, design: Design, numbers: Whole, generator: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Columns of final values: numbers[k] rows of bin k, even within the bin or tilted to its noisy mean.

    Integers lie on their lattice, labels are levels, numbers are rounded and within bounds. Rows are in the order of the bins.
    """
    row = np.repeat(np.arange(len(numbers)), numbers)
    trusted = noisy.counts > _TRUSTED * max(noisy.sd_counts, noisy.sd_sums)
    columns: dict[str, NDArray[Any]] = {}
    low, high = noisy.bins.low, noisy.bins.high
    for j, name in enumerate(feature_columns(design)):
        place = generator.random(len(row))
        column = design.schema[name]
        if not isinstance(column, Categorical):
            mean = np.where(trusted, noisy.sums[:, j] / np.where(trusted, noisy.counts, 1.0), 0.0)
            place = tilted(np.clip(mean, -_EDGE, _EDGE)[row], place)
        width = (high - low)[row, j]
        codes = low[row, j] + np.minimum(np.floor(place * width), width - 1)
        columns[name] = as_column(design.schema, name, codes)
    return columns


def tilted(mean: Array, place: Array) -> Array:
    """Places in [0, 1) of the density exp(k v), v in [-1, 1], of the given mean, by its quantile function at `place` in [0, 1).

    It has the largest entropy of all laws with this mean. coth(k) - 1/k = mean is solved by Newton's method from a rational start.

    >>> float(tilted(np.array([0.0]), np.array([0.25]))[0])
    0.25
    """
    # Cohen 1991, within 5 % of the inverse Langevin function
    start = mean * (3 - mean**2) / (1 - mean**2)
    tilt = np.where(np.abs(mean) < 1e-3, 1.0, start)
    for _ in range(4):
        off = 1 / np.tanh(tilt) - 1 / tilt - mean
        tilt = tilt - off / np.maximum(1 / tilt**2 - 1 / np.sinh(np.clip(tilt, -300, 300)) ** 2, 1e-12)
    tilt = np.where(np.abs(mean) < 1e-3, 1.0, tilt)
    # quantile function, written so that the exponential never overflows: by symmetry for tilts above 0
    size = np.abs(tilt)
    mirrored = np.where(tilt > 0, 1 - place, place)
    found = -np.log1p(mirrored * np.expm1(-2 * size)) / (2 * size)
    found = np.where(tilt > 0, 1 - found, found)
    return np.asarray(np.clip(np.where(np.abs(mean) < 1e-3, place, found), 0.0, np.nextafter(1.0, 0.0)))


def as_column(schema: Schema, name: str, codes: NDArray[Any]) -> NDArray[Any]:
    """Codes as final values: int64 for an integer column, positions for a categorical one, rounded floats else."""
    column = schema[name]
    if isinstance(column, Categorical):
        return codes.astype(np.int64)
    values = column.decode(codes)
    if isinstance(column, Integer):
        return np.rint(values).astype(np.int64)
    return np.clip(np.round(values, _decimals(column)), column.low, column.high)


def _decimals(column: Numeric) -> int:
    return min(max(_FINE - floor(log10(column.high - column.low)), 0), 300)


def public_rows(design: Design, rows: int, generator: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Columns drawn evenly within the schema's bounds; the levels of a categorical column take turns."""
    columns = {}
    for name in feature_columns(design):
        steps = design.schema[name].steps
        if isinstance(design.schema[name], Categorical):
            codes = (np.arange(rows) + int(generator.integers(steps))) % steps
        else:
            codes = generator.integers(0, steps, rows)
        columns[name] = as_column(design.schema, name, codes)
    return columns


def joined(first: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The rows of both."""
    return {name: np.concatenate([values, other[name]]) for name, values in first.items()}
