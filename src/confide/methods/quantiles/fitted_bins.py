r"""Bins that lie where the records are: a noisy outline of a column's distribution says how fine each part of its range is cut.

Fine bins are steps of a column's grid, all of one width, public, 2^16 of them at most. Round 1 counts the records up to the edges of an
outline, 64 public bins of whole fine ones (`Bins.graded`: half of them even, the others ever finer toward 0). Round 2 counts up to the
edges of m bins that follow from round 1 alone. Each of the outline's has one, and the rest are shared out by what they hold. A tenth is
shared evenly, so that they are nowhere coarser than a tenth of m even ones. Within a bin of the outline they are even again. An atom takes
what its bin can hold, so that it ends up in a bin of one fine step.

Sensitivity: a record is in one fine bin, and so in one bin of either round. Each round is `CumulativeRows`, whose bound holds for any
edges, and so for edges that follow from noisy numbers: adaptive composition (Dong, Roth, Su 2022, Corollary 2).

Intervals stay what they are for public edges. The hull of bins errs only if round 2 has too many records below the lower edge of the bin of
the quantile x, or too few below its upper edge. The exact number below the lower edge is at most the number below x, whatever the edge is.
The noise there is drawn after the edges are known: given round 1 it is normal with the strategy's variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from confide._arrays import Array, Whole
from confide.sums.cells.moments import Measure
from confide.sums.distributions.cumulative import Bins, Histograms, monotone, step_of

#: Bins of round 1.
OUTLINE = 64
# Fine bins of one group, and of all groups together: four million numbers are 32 MB.
_MOST_FINE, _MOST_NUMBERS = 1 << 16, 1 << 22
# The part of the bins that is shared out evenly, whatever the outline says.
_EVEN = 0.1
# Where quantiles are asked for: the parts laid about them, and by what the outline says.
_NEAR, _HELD = 0.7, 0.25


@dataclass(frozen=True)
class Fine:
    """Bins of so many codes each, the last one of what is left, of a grid of `codes` codes.

    >>> Fine(10, 4).size, Fine(10, 4).at(np.array([0.0, 3.0, 4.0, 9.0])).tolist()
    (3, [0, 0, 1, 2])
    """

    codes: int
    width: int

    @classmethod
    def of(cls, measure: Measure, cells: int, bins: int) -> Fine:
        """As fine as the grid, within 2^16 bins and four million of all groups, and no coarser than so many bins."""
        most = max(min(_MOST_FINE, _MOST_NUMBERS // cells), 4 * bins)
        return cls(measure.term.steps, ceil(measure.term.steps / most))

    @property
    def size(self) -> int:
        return ceil(self.codes / self.width)

    def at(self, codes: Array) -> Whole:
        """The fine bin of each code; codes and widths are whole and below 2^53, so that the quotient's floor is exact."""
        return np.asarray(np.clip(np.floor_divide(codes.astype(np.int64), self.width), 0, self.size - 1))


@dataclass(frozen=True)
class FineHistograms(Histograms):
    """Numbers of records in fine bins, (cells, fine bins), from which both rounds follow; aggregated and never released.

    map: of round 1, for which records are in which cell.
    """

    fine: Fine

    @property
    def _state(self) -> tuple[int, ...]:
        return (self.map.cells, self.fine.size)

    def _binned(self, codes: Array) -> tuple[Whole, Whole]:
        place, coded = self.map.coded(codes)
        return place, self.fine.at(coded)


def outline(measure: Measure, fine: Fine) -> Bins:
    """The public bins of round 1, of whole fine ones."""
    graded = Bins.graded(measure, OUTLINE)
    return of_starts(measure, fine, np.unique(np.array(graded.starts, dtype=np.int64) // fine.width))


def of_starts(measure: Measure, fine: Fine, starts: Whole) -> Bins:
    """Bins that start at these fine ones.

    Edges are half-way between what the grid tells apart, so that a value lies within the edges of its code's bin; whole values and
    their edges are exact.
    """
    term, step = measure.term, step_of(measure)
    codes = [int(start) * fine.width for start in starts]
    scale = (term.high - term.low) / (term.steps - 1)
    if step:
        return Bins(tuple(codes), (*(term.low + scale * code for code in codes), term.high + step), step)
    inner = (term.low + scale * (code - 0.5) for code in codes[1:])
    return Bins(tuple(codes), (term.low, *inner, term.high), 0.0)


def fitted(counts: Array, starts: Whole, size: int, bins: int) -> Whole:
    """The fine bins at which the bins of round 2 start, (bins,). counts: noisy, of the outline's bins, which start at `starts`.

    size: the number of fine bins, at least `bins`.

    >>> fitted(np.array([0.0, 90.0, 10.0]), np.array([0, 4, 8]), 12, 6).tolist()
    [0, 4, 5, 6, 7, 8]
    """
    rising = monotone(np.cumsum(counts))
    held = np.diff(rising, prepend=0.0) / max(float(rising[-1]), 1.0)
    shares = (1 - _EVEN) * held + _EVEN / len(starts)
    room = np.diff(np.append(starts, size))
    parts = _shared(shares, room, bins)
    return np.concatenate(
        [start + -(-np.arange(k) * wide // k) for start, wide, k in zip(starts, room, parts, strict=True)]
    )


def _shared(shares: Array, room: Whole, bins: int) -> Whole:
    """One for each, and the rest by shares while there is room; they sum to `bins`."""
    low, high = 0.0, float(bins) / float(shares.min())
    for _ in range(60):
        middle = (low + high) / 2
        many = int(np.minimum(room, 1 + np.floor(middle * shares)).sum()) > bins
        low, high = (low, middle) if many else (middle, high)
    parts: Whole = np.minimum(room, 1 + np.floor(low * shares)).astype(np.int64)
    # what rounding leaves, to the largest shares that have room
    while (rest := bins - int(parts.sum())) > 0:
        open_ = np.flatnonzero(parts < room)
        first = open_[np.argsort(-shares[open_] / parts[open_], kind="stable")[:rest]]
        parts[first] += 1
    return parts


def about_quantiles(sums: Array, starts: Whole, size: int, bins: int, spans: Sequence[tuple[float, float]]) -> Whole:
    """The fine bins at which bins of round 2 start, (bins,), where quantiles are asked for. sums: monotone, at the outline's upper edges.

    spans: the shares of records, in [0, 1], between which each quantile is looked for. They have seven tenths of the bins, all records a
    quarter, and a twentieth are even. Within a bin of the outline they are laid as if its records were even. size: the number of fine
    bins, at least `bins`.

    >>> about_quantiles(np.array([0.0, 90.0, 100.0]), np.array([0, 40, 80]), 120, 6, [(0.4, 0.6)]).tolist()
    [0, 46, 53, 60, 67, 74]
    """
    share = np.concatenate([[0.0], sums]) / max(float(sums[-1]), 1.0)
    at = np.append(starts, size)
    near = np.mean([np.clip((share - low) / (high - low), 0.0, 1.0) for low, high in spans], axis=0)
    near /= max(float(near[-1]), 1e-9)
    laid = _NEAR * near + _HELD * share + (1 - _NEAR - _HELD) * at / size
    places = np.floor(np.interp(np.arange(bins) * (laid[-1] / bins), laid, at)).astype(np.int64)
    # a fine bin cannot be cut: what is left over goes to its neighbors above, and below where there is no room
    k = np.arange(bins)
    return np.asarray(np.minimum(np.maximum.accumulate(places - k), size - bins) + k)
