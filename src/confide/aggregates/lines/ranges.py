"""A noisy count of records, and noisy ranges of features: from where to where most of a feature's values lie.

Guarantee of the ranges: each feature that is not binary has a histogram of 64 equal cells between its public bounds, and a record lies in
one cell of each, so that one record moves the table by sqrt(F) in the Euclidean norm under add-remove and by sqrt(2 F) under substitute,
F = the number of those features. Middle and half-width of a feature follow from the noisy table alone.

Binary features keep their public box: measured in units of its own spread a rare level would lie far out, and lose its weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.cells.histogram import WholeSums
from confide.aggregates.lines.rows import Box, DesignRows, IndicatorRows
from confide.schema import Design

__all__ = ["CELLS", "CellIndices", "Present", "RangeCells", "found_ranges", "private_box", "ranged"]


#: Cells of each feature's histogram.
CELLS = 64
# The levels of detail: neighbouring cells are merged until enough of the records lie in cells above the noise.
_LEVELS = (64, 32, 16, 8)
_ENOUGH = 0.8


def ranged(design: Design) -> tuple[int, ...]:
    """The terms that have a range to be found: all that take more than two values."""
    return tuple(j for j, term in enumerate(design.terms) if not term.binary and term.steps > 2)


@dataclass(frozen=True)
class Present(IndicatorRows):
    """1 for every record that the design uses, 0 for one that is dropped for a missing value."""

    design: Design
    kind: ClassVar[str] = "present"

    def __call__(self, codes: Array) -> Array:
        _, keep = self.design.codes(codes)
        rows = codes.shape[1]
        return np.ones((1, rows)) if keep is None else keep[None, :].astype(np.float64)


@dataclass(frozen=True)
class CellIndices(DesignRows):
    """The cell of each ranged feature, counted from 1; 0 for a record that is dropped. Shape (ranged features, records)."""

    design: Design
    kind: ClassVar[str] = "range cells"
    stated: ClassVar[tuple[int, ...]] = (CELLS,)

    @property
    def width(self) -> int:
        return len(ranged(self.design))

    @property
    def l1(self) -> int:
        return CELLS * self.width

    @property
    def l2_squared(self) -> int:
        return CELLS**2 * self.width

    def __call__(self, codes: Array) -> Array:
        own = ranged(self.design)
        rows = np.empty((len(own), codes.shape[1]))
        for row, cells in zip(rows, self.cells(codes), strict=True):
            np.minimum(cells, CELLS, out=row)
        return rows

    def cells(self, codes: Array) -> Iterator[NDArray[np.int32]]:
        """The rows one after the other, as whole numbers, the upper end in a cell behind the last; each is overwritten by the next."""
        terms, keep = self.design.codes(codes)
        scaled, found = np.empty(terms.shape[1]), np.empty(terms.shape[1], dtype=np.int32)
        for j in ranged(self.design):
            np.multiply(terms[j], CELLS / (self.design.terms[j].steps - 1), out=scaled)
            # what is left behind the point is cut off with the type; a missing code, below 0, is that of a record that does not count
            np.copyto(found, scaled, casting="unsafe")
            found += 1
            if keep is not None:
                found *= keep
            yield found


@dataclass(frozen=True)
class RangeCells(WholeSums):
    """Histograms of the ranged features, shape (features, 64): one record moves one cell of each by 1."""

    map: CellIndices
    norm: ClassVar[str] = "cells"

    @property
    def shape(self) -> tuple[int, int]:
        return (self.map.width, CELLS)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.width * (2 if relation == "substitute" else 1))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def update(self, state: NDArray[np.int64], codes: Array) -> NDArray[np.int64]:
        # two features at a time: most of the work is a step for each record and count, however many cells there are
        cells, width = self.map.cells(codes), CELLS + 2
        for place in range(0, len(state), 2):
            pairs = next(cells) * width
            if place + 1 < len(state):
                pairs += next(cells)
            counts = np.bincount(pairs, minlength=width**2).reshape(width, width)
            for row, own in zip(state[place : place + 2], (counts.sum(axis=1), counts.sum(axis=0)), strict=False):
                row += own[1:-1]
                row[-1] += own[-1]
        return state


def private_box(design: Design, histograms: Array, sd: float) -> Box:
    """The box of noisy histograms: middle = mean, half-width = sqrt(3) standard deviations of the cells above the noise.

    histograms: shape (ranged features, 64); sd: of the noise in each cell. A uniform feature keeps its half-width; a feature whose
    cells all drown in noise keeps its public box.
    """
    public = Box.of(design)
    middle, half = list(public.middle), list(public.half)
    for j, counts in zip(ranged(design), histograms, strict=True):
        found = _range(counts, sd)
        if found is not None:
            low, width = public.middle[j] - public.half[j], 2 * public.half[j]
            middle[j] = float(low + width * found[0])
            half[j] = float(min(width * found[1], public.half[j]))
    return Box(tuple(middle), tuple(half))


def found_ranges(histograms: Array, sd: float) -> tuple[bool, ...]:
    """Which ranged features' histograms, shape (features, 64), stand above their noise at some level of detail."""
    return tuple(_range(counts, sd) is not None for counts in histograms)


def _range(counts: Array, sd: float) -> tuple[float, float] | None:
    """(mean, sqrt(3) sd) in units of the feature's width, from 0; None when no level of detail stands above the noise."""
    total = float(counts.sum())
    for cells in _LEVELS:
        keep = np.where(counts > 2 * sd, counts, 0.0)
        kept = float(keep.sum())
        if kept > 0 and kept >= _ENOUGH * total:
            middles = (np.arange(cells) + 0.5) / cells
            mean = float(keep @ middles) / kept
            spread = float(keep @ (middles - mean) ** 2) / kept
            return mean, sqrt(3 * (spread + 1 / cells**2 / 12))
        counts = counts[0::2] + counts[1::2]
        sd *= sqrt(2)
    return None
