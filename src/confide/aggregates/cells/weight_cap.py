"""The cap on weights: a noisy histogram of them, and the edge at which the predicted interval is shortest.

Weights count as min(w, W). The noise of a weighted mean is W over the mean of min(w, W) times that of equal weights, so that a bound that
few weights reach costs much; weights above W that count as W move the weighted mean by exactly

    theta_W - theta = e (theta_W - ybar_t),     e = sum (w - W)+/sum w,  ybar_t the mean weighted by (w - W)+,

so by at most e times the distance of two means, which is taken to be at most `DISTANCE` standard deviations. Cells of few large weights
hide in their noise: beyond the last cell that is seen, whose count may be `_ABOVE` sds of noise larger than it seems, counts are taken to
halve from cell to cell, as those of a tail like w^-2 do; a cell far out that stands clear of its noise counts as it is.

That is no rule for weights that end at once, many in one cell and none seen in the next, as those of two strata do: they say nothing of a
rare stratum farther out. There e is what can hide in noise wherever it lies, the noisy sum of (w - W)+ over all cells beyond and `_LIKELY`
sds of it; W moves out, up to the bound, as far as that is worth its noise.

Guarantee: a person lies in one cell of the histogram, so that one count moves by 1 when she comes or goes; replaced, two do: sqrt(2).
The choice of W and e are post-processing. Source: derived here; intervals with a bounded bias after Armstrong, Kolesar 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.aggregates.cells.histogram import CellNumber
from confide.aggregates.cells.weighted_cells import CappedWeight
from confide.protocol import Noisy
from confide.protocol.exact import digest

__all__ = ["CELLS", "DISTANCE", "Cap", "WeightCells", "ended", "ended_words", "hides", "moments_of_omega", "worst"]

Array = NDArray[np.float64]

#: Cells of half an octave below the largest weight, the last one for all below.
CELLS = 21
#: Standard deviations between the mean and that of those whose weights are cut, at most.
DISTANCE = 2.0
# A cell's count in noise sds that is seen next to others, and alone; the sd of y in half-ranges; how slowly counts may fall.
_ABOVE, _ALONE, _SD = 2.0, 3.5, 0.25
_SLOWEST = 0.5
# A cell of so many noise sds, and a next one of less than so many, are no tail: lognormal ones fall to a third or a half from cell to cell.
# Of less than so many persons, whatever the noise, the next cell may be empty by chance.
_FULL, _EMPTY, _PERSONS = 16.0, 3.0, 30.0
# Sds of noise that may hide weight beyond, an error of 5 %; from how many on a cell is one that every later count sees too.
_LIKELY, _CLEAR = 1.645, 8.0


@dataclass(frozen=True)
class WeightCells(CellNumber):
    """The cell of a person's weight, from 1 (the largest) on, 0 for a person without. cells: `CELLS`, or 1, which counts persons."""

    weight: CappedWeight
    cells: int

    @property
    def columns(self) -> tuple[str, ...]:
        return self.weight.columns

    @property
    def digest(self) -> str:
        return digest(["cells of weights", self.weight.digest, self.cells])

    @property
    def edges(self) -> Array:
        """The upper edges, falling."""
        return np.asarray(float(self.weight.term.high) * 2.0 ** (-np.arange(self.cells) / 2))

    def __call__(self, codes: Array) -> Array:
        u, keep = self.weight.places(codes)
        w = u * self.weight.half
        w += self.weight.middle
        # the number of edges that are at least w: between 1 and all
        found = self.cells - np.searchsorted(self.edges[::-1], w, side="left")
        found = np.clip(found, 1, self.cells).astype(np.float64)
        if keep is not None:
            found[~keep] = 0.0
        return np.asarray(found[None, :])


@dataclass(frozen=True)
class Cap:
    """W, the lost share e of all weight with what may hide in noise, and the noisy number of persons."""

    weight: float
    lost: float
    persons: float

    @classmethod
    def chosen(
        cls, counts: Array, sd: float, edges: Array, low: float, noise: float, cells: int, meat: float = 0.0
    ) -> Cap:
        """From noisy counts, the sd of their noise, and the noise variance of a cell's sum in half-ranges; cells: of the table; meat: the
        noise of the sampling variance as a part of it, times sum omega (`psu_limits.hidden_part`).

        >>> counts = np.zeros(21); counts[9:14] = [12.0, 30.0, 90.0, 400.0, 1468.0]
        >>> Cap.chosen(counts, 1.0, 64.0 * 2.0 ** (-np.arange(21) / 2), 0.0, 4.0, 1)
        Cap(weight=4.0, lost=0.01..., persons=2000.0)
        """
        persons = max(float(counts.sum()), 1.0)
        if len(counts) == 1:
            return cls(float(edges[0]), 0.0, persons)
        beyond = _beyond(counts, sd)
        seen = _above(counts, sd, beyond) if beyond else continued(counts, sd)
        lower = np.append(edges[1:], low)
        inside = np.maximum((edges + np.minimum(lower, edges)) / 2, 1e-300)
        best = (np.inf, float(edges[0]), 0.0)
        for cap in edges.tolist():
            counted = np.minimum(inside, cap)
            total = max(float(seen @ counted), 1e-300)
            over = float(seen @ np.maximum(inside - cap, 0.0))
            if beyond:
                excess = np.maximum(edges[:beyond] - cap, 0.0)
                over += max(float(counts[:beyond] @ excess), 0.0) + _LIKELY * sd * float(np.linalg.norm(excess))
            lost = over / max(total + over, 1e-300)
            sampling = cells * _SD**2 * float(seen @ counted**2) / total**2 * (1 + meat * cap * cells / total)
            variance = sampling + noise * (cap * cells / total) ** 2
            half = float(worst(np.array([DISTANCE * _SD * lost / np.sqrt(variance)]), 0.05)[0]) * np.sqrt(variance)
            if half < best[0] * (1 - 1e-9):
                best = (half, cap, lost)
        return cls(best[1], min(best[2], 1.0), persons)


def moments_of_omega(counts: Array, sd: float, edges: Array, low: float, cap: float) -> tuple[float, float]:
    """(mean, mean square) of omega = min(w, cap)/cap, from the cells that are seen; at least those of a millionth.

    >>> moments_of_omega(np.array([0.0, 50.0, 50.0]), 1.0, np.array([8.0, 4.0, 2.0]), 2.0, 4.0)
    (0.625, 0.40625)
    """
    seen = _above(counts, sd)
    if not seen.any():
        return 1.0, 1.0
    lower = np.append(edges[1:], low)
    omega = np.clip((edges + np.minimum(lower, edges)) / 2 / cap, 1e-6, 1.0)
    return float(seen @ omega / seen.sum()), float(seen @ omega**2 / seen.sum())


def _above(counts: Array, sd: float, first: int = 0) -> Array:
    """Counts that are seen, from a cell on."""
    return np.asarray(np.where((counts > _ABOVE * sd) & (np.arange(len(counts)) >= first), counts, 0.0))


def continued(counts: Array, sd: float) -> Array:
    """Counts of cells, from the largest weights on, as a cap is chosen by: those that are seen, and what may follow beyond them.

    >>> continued(np.array([3.0, -2.0, 40.0, 80.0, 160.0, 80.0]), 5.0).round(1).tolist()
    [12.5, 25.0, 40.0, 80.0, 160.0, 80.0]
    """
    found = _above(counts, sd)
    top = int(np.argmax(counts))
    while top > 0 and found[top - 1] > 0:
        top -= 1
    hidden = found[top] + _ABOVE * sd
    for cell in range(top - 1, -1, -1):
        hidden *= _SLOWEST if sd > 0 else 0.0
        found[cell] = max(hidden, counts[cell] if counts[cell] > _ALONE * sd else 0.0)
    return np.asarray(found)


def _beyond(counts: Array, sd: float) -> int:
    """How many cells lie beyond the last full one, where weights end at once; 0 for a tail, and for weights that reach their bound."""
    full = np.flatnonzero(counts > max(_FULL * sd, _PERSONS))
    top = int(full[0]) if len(full) and sd > 0 else 0
    return top if top and counts[top - 1] < _EMPTY * sd else 0


def ended(counts: Array, sd: float, edges: Array) -> float | None:
    """The edge at which the weights end at once, with cells beyond it; None for a tail, and for weights that reach their bound.

    >>> edges = np.array([16.0, 11.3, 8.0, 5.7, 4.0])
    >>> ended(np.array([3.0, -2.0, 40.0, 80.0, 160.0]), 5.0, edges), ended(np.array([3.0, -2.0, 4.0, 90.0, 160.0]), 5.0, edges)
    (None, 5.7)
    """
    beyond = _beyond(counts, sd)
    return float(edges[beyond]) if beyond else None


def hides(counts: Array, sd: float) -> bool:
    """Whether weights end at once and next to nobody is seen farther out: those who may be there are too few for any count."""
    beyond = _beyond(counts, sd)
    return beyond > 0 and bool(counts[:beyond].max() < _CLEAR * sd)


def ended_words(noisy: Noisy, weight: CappedWeight) -> str:
    """What a release says of weights that end far below their bound, "" for others. noisy: their histogram."""
    edges = WeightCells(weight, noisy.values.size).edges
    seen = ended(noisy.decode(), sqrt(noisy.variance), edges)
    if seen is None:
        return ""
    column, bound = weight.columns[0], float(weight.term.high)
    return (
        f"many weights are seen up to {seen:.3g} and next to none just beyond, though {column} may be up to {bound:.4g}: rare larger ones "
        f"would hide in noise, which intervals allow for; declare {column} up to the largest weight of the codebook, if that is smaller"
    )


def worst(bias: Array, alpha: float) -> Array:
    """c with P(|N(b, 1)| <= c) = 1 - alpha, b the bias over the standard error.

    >>> worst(np.array([0.0, 1.0, 10.0]), 0.05).round(2).tolist()
    [1.96, 2.65, 11.64]
    """
    b = np.abs(bias)
    low, high = np.zeros(len(b)), b + 40.0
    for _ in range(80):
        middle = (low + high) / 2
        inside = special.ndtr(middle - b) - special.ndtr(-middle - b)
        low, high = np.where(inside < 1 - alpha, middle, low), np.where(inside < 1 - alpha, high, middle)
    return np.asarray((low + high) / 2)
