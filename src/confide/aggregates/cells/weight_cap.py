"""The cap on weights: a noisy histogram of them, and the edge at which the predicted interval is shortest.

Weights count as min(w, W). The noise of a weighted mean is W over the mean of min(w, W) times that of equal weights, so that a bound that
few weights reach costs much; weights above W that count as W move the weighted mean by exactly

    theta_W - theta = e (theta_W - ybar_t),     e = sum (w - W)+/sum w,  ybar_t the mean weighted by (w - W)+,

so by at most e times the distance of two means, which is taken to be at most `DISTANCE` standard deviations. The sum of (w - W)+ is that of
the noisy counts, whose noise has a known standard error, and nothing is taken for granted of cells whose few large weights hide in noise:
what may be there counts beside the noise of the estimate itself, and W moves out, up to the bound, as far as that is worth its noise. A
rule for how counts of a tail fall makes shorter intervals, and wrong ones: k persons at the bound b who are too few for any count of noise
sd s, k about 2 s, move a mean by 2 k b/sum w sds; Pareto's weights, or a small group with a long tail of its own, look like others.

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
# A cell's count in noise sds that is seen; the sd of y in half-ranges.
_ABOVE, _SD = 2.0, 0.25
# A cell of so many noise sds, and a next one of less than so many, look like a bound of weights far below the declared one.
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
    """W, and what it leaves out.

    lost: the share e of all weight, with what may hide in noise; persons: their noisy number; over: the sum of (w - W)+ in units of W,
    error: the sd of its noise.
    """

    weight: float
    lost: float
    persons: float
    over: float = 0.0
    error: float = 0.0

    @classmethod
    def chosen(
        cls,
        counts: Array,
        sd: float,
        edges: Array,
        low: float,
        noise: float,
        cells: int,
        meat: float = 0.0,
        distance: float = DISTANCE * _SD,
    ) -> Cap:
        """From noisy counts, the sd of their noise, and the noise variance of a cell's sum in half-ranges; cells: of the table; meat: the
        noise of the sampling variance as a part of it, times sum omega (`psu_limits.hidden_part`); distance: of two means, in half-ranges.

        >>> counts = np.zeros(21); counts[9:14] = [12.0, 30.0, 90.0, 400.0, 1468.0]
        >>> Cap.chosen(counts, 1.0, 64.0 * 2.0 ** (-np.arange(21) / 2), 0.0, 4.0, 1).weight
        8.0
        """
        persons = max(float(counts.sum()), 1.0)
        if len(counts) == 1:
            return cls(float(edges[0]), 0.0, persons)
        lower = np.append(edges[1:], low)
        inside = np.maximum((edges + np.minimum(lower, edges)) / 2, 1e-300)
        # weights beyond the bound count as the bound
        inside[0] = edges[0]
        seen = _above(counts, sd)
        found: list[tuple[float, float, Cap]] = []
        for cap in edges.tolist():
            # where next to nobody is seen, numbers stay finite
            total = max(float(seen @ np.minimum(inside, cap)), 1e-9 * cap)
            over = max(float(counts @ np.maximum(inside - cap, 0.0)), 0.0)
            error = sd * float(np.linalg.norm(np.maximum(edges - cap, 0.0)))
            # all that is lost may be of one cell's persons
            whole = total / cells + over
            sampling = (
                _SD**2
                * float(seen @ np.minimum(inside, cap) ** 2)
                * cells
                / total**2
                * (1 + meat * cap * cells / total)
            )
            se = sqrt(sampling + noise * (cap * cells / total) ** 2)
            # the error of what is lost counts beside other noise
            se = max(sqrt(se**2 + (distance * error / whole) ** 2), 1e-12)
            most = over + _LIKELY * error
            lost = most / max(total + most, 1e-300)
            found.append((distance * over / whole / se, se, cls(cap, lost, persons, over / cap, error / cap)))
        halves = worst(np.array([bias for bias, _, _ in found]), 0.05) * np.array([se for _, se, _ in found])
        best = 0
        for k, half in enumerate(halves.tolist()):
            if half < halves[best] * (1 - 1e-9):
                best = k
        return found[best][2]


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


def _above(counts: Array, sd: float) -> Array:
    """Counts that are seen."""
    return np.asarray(np.where(counts > _ABOVE * sd, counts, 0.0))


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
