"""The columns of synthetic records, from noisy bins alone: how many in each bin, and where within it.

Post-processing of a release: the draws come from a generator keyed by its digest, so that one release gives one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.methods.synthesis.bins import NoisyBins, feature_columns
from confide.schema import Categorical, Design, Integer, Schema

__all__ = ["as_column", "draw_columns", "joined", "places", "public_rows", "row_numbers", "tilts"]


# Numbers are rounded to the decimals that a millionth of the column's range has.
_FINE = 6
# A bin's noisy mean moves its rows when the noisy count exceeds so many noise sds.
_TRUSTED = 3.0
# A mean at the very edge of its bin would put every row there.
_EDGE = 0.97
# Tilts beyond this have a mean above the edge; means below the other number are no tilt.
_STEEPEST = 60.0
_FLAT = 1e-6


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
    low, width = noisy.bins.low, noisy.bins.high - noisy.bins.low
    means = np.where(trusted[:, None], noisy.sums / np.where(trusted, noisy.counts, 1.0)[:, None], 0.0)
    tilt = tilts(np.clip(means, -_EDGE, _EDGE), width)
    columns: dict[str, NDArray[Any]] = {}
    for j, name in enumerate(feature_columns(design)):
        place = generator.random(len(row))
        if not isinstance(design.schema[name], Categorical):
            place = places(tilt[row, j], place)
        size = width[row, j]
        columns[name] = as_column(design.schema, name, low[row, j] + np.minimum(np.floor(place * size), size - 1))
    return columns


def tilts(mean: Array, width: Whole) -> Array:
    """k of the law P(i) ~ exp(2 k i/width) on the codes i = 0 .. width - 1, whose mean is the middle plus `mean` half-ranges.

    It has the largest entropy of all laws on these codes with that mean; means lie in [-0.97, 0.97]. The mean grows with k and is
    (width coth k - coth(k/width))/(width - 1); k is found by bisection.

    >>> tilts(np.array([0.0, 0.5]), np.array([4, 2])).round(6).tolist()
    [0.0, 1.098612]
    """
    size = np.maximum(width.astype(np.float64), 2.0)
    target = np.abs(mean)
    low, high = np.full(mean.shape, 1e-9), np.full(mean.shape, _STEEPEST)
    for _ in range(50):
        k = (low + high) / 2
        above = (size / np.tanh(k) - 1 / np.tanh(k / size)) / (size - 1) > target
        low, high = np.where(above, low, k), np.where(above, k, high)
    return np.asarray(np.where(target < _FLAT, 0.0, np.sign(mean) * (low + high) / 2))


def places(tilt: Array, place: Array) -> Array:
    """Places x in [0, 1) of the density exp(2 k x), by its quantile function at `place` in [0, 1)."""
    size = np.where(tilt == 0, 1.0, np.abs(tilt))
    # by symmetry for tilts above 0, so that the exponential never overflows
    found = -np.log1p(np.where(tilt > 0, 1 - place, place) * np.expm1(-2 * size)) / (2 * size)
    found = np.where(tilt > 0, 1 - found, found)
    return np.asarray(np.clip(np.where(tilt == 0, place, found), 0.0, np.nextafter(1.0, 0.0)))


def as_column(schema: Schema, name: str, codes: NDArray[Any]) -> NDArray[Any]:
    """Codes as final values: int64 for an integer column, positions for a categorical one, rounded floats else."""
    column = schema[name]
    if isinstance(column, Categorical):
        return codes.astype(np.int64)
    values = column.decode(codes)
    if isinstance(column, Integer):
        return np.rint(values).astype(np.int64)
    decimals = _FINE - floor(log10(column.high - column.low))
    # powers of ten beyond 10^22 are no exact doubles, and rounding with them would not look any rounder
    return np.clip(np.round(values, max(decimals, 0)), column.low, column.high) if decimals <= 22 else values


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
