"""Where leverage weights min(1, R2/|z|^2) begin: beyond the records of a noisy histogram of |z|^2; and how far a public box reaches.

Weights are silent as long as they are 1. A record beyond the cap R2 loses a part of its weight, and the line leans away from it, by
A^{-1} sum (1 - w) z e; no private number bounds this sharply while such records are too few to be counted. So the cap lies above everything
that is counted, with a margin, and at the corner of the public box (nothing is weighed) where records are counted far out: a heavy tail
goes on. The margin is small where the public bounds end soon, within 10 standard deviations of every feature, and large where a tail that
thins out slowly has room to go on. A feature whose bounds lie more than 25 of its standard deviations away is not answered: what a few
records out there would do to its coefficient is beyond any margin.

Guarantee of the histogram: a record lies in one of its 12 cells, so that one record moves it by 1 under add-remove and by sqrt(2) under
substitute (`aggregates.whitened_rows.LeverageCells`); its edges are public, and the box is that of earlier noisy ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.lines.rows import Box
from confide.aggregates.lines.whitened_rows import LeverageIndices
from confide.methods.regression.evidence.normal_equations import Fit
from confide.methods.regression.scaling import extent
from confide.protocol.exact import digest, pack
from confide.schema import Design

__all__ = [
    "REACH",
    "BoxLeverage",
    "chosen_cap",
    "largest",
    "margin",
    "reach",
    "residual_limit",
    "unanswered",
]


# A number of records beyond an edge is counted when it is at least this many sds of its noise.
_COUNTED = 3.0
# The cap is this far beyond the first edge without counted records beyond it, in squared length, where bounds are near and where they are
# not (docs/methods/ssp.md, "The cap").
_MARGIN, _WIDE = 1.25, 3.0
# The least edge and the others, as multiples of the number of coefficients p; |z|^2 is 1 + d/3 on average in a re-centred box.
_EDGES = (0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0)
#: Public bounds further out than this many standard deviations of a feature leave its coefficient unanswered (measured in spec and docs).
REACH = 25.0
# Bounds nearer than this are near.
_NEAR = 10.0
# Records counted beyond this edge say that the tail is heavy.
_HEAVY = _EDGES.index(8.0)
# A limit of residuals leaves the noise of the meat at this share of each variance, and never cuts within so many standard deviations.
_CALM = 0.25
_SPREADS = 10.0


@dataclass(frozen=True)
class BoxLeverage(LeverageIndices):
    """The cell of |z|^2 in a box among public edges p (.4, .5, .6, .7, .85, 1, 1.4, 2, 4, 8, 16): 1 to 12, 0 for a record that is
    dropped.
    """

    @property
    def edges(self) -> Array:
        return np.asarray((len(self.design.terms) + 1) * np.array(_EDGES))

    @property
    def digest(self) -> str:
        return digest(["box leverage", self.design.to_dict(), [pack(edge) for edge in _EDGES]])


def largest(design: Design, box: Box, within: float = inf) -> float:
    """The largest |z|^2 that the public bounds allow in a box: from there on nothing is weighed.

    within: bounds further out than this many standard deviations of their feature count as that near.
    """
    return float(1 + (np.minimum(reach(design, box), within) ** 2 / 3).sum())


def reach(design: Design, box: Box) -> Array:
    """How many of its standard deviations (half-widths of the box over sqrt(3)) each term's public bounds lie away at most, (terms,)."""
    low, high = extent(design, box)
    return np.asarray(sqrt(3) * np.maximum(np.abs(low), np.abs(high)))


def unanswered(design: Design, box: Box) -> NDArray[np.bool_]:
    """Which terms lie out of reach, (terms,)."""
    return np.asarray(reach(design, box) > REACH)


def margin(design: Design, box: Box) -> float:
    """How far the cap lies beyond records that are counted, in squared length."""
    return _WIDE if (reach(design, box) > _NEAR).any() else _MARGIN


def residual_limit(fitted: Fit, to_units: Array, ends: tuple[Array, Array], cap: float, sd: float) -> float:
    """Where residuals of a meat are limited, in half-ranges of the response: as far out as its noise allows.

    A limit that binds makes the meat too small, and unevenly: where a two-valued response is rare it loses more than elsewhere, and scaling
    the whole meat up does not give that back. Beyond 1 + max |z'theta| no residual lies. Noise of sd `sd` at a limit of 1 grows with its
    square; up to a quarter of each coefficient's variance (32 degrees of freedom) it does no harm. The limit is at least ten residual
    standard deviations, or 1 where that is less; and where a line leaves the response's bounds, moving by more than a half-range from two
    half-widths of the box to the longest records, it is at least what that needs.

    fitted: the noisy line; ends: from where to where x~ goes; cap: the largest |z|^2 that counts in full.
    """
    theta, moments = fitted.theta, fitted.moments
    line, farthest = np.abs(theta), np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    moved = float(line[1:] @ np.maximum(np.minimum(farthest, sqrt(cap)) - 2.0, 0.0))
    size = float(theta @ theta)
    spread = sqrt(fitted.s2 + 2 * moments.square_noise(size) / fitted.df)
    least = 1 + moved if moved > 1 else min(1.0, _SPREADS * spread)
    most = 1 + min(float(line[0] + line[1:] @ farthest), sqrt(cap * size))
    rows = to_units @ fitted.bread
    variance = np.einsum("ij,jk,ik->i", rows, fitted.s2 * moments.gram + fitted.noise, rows)
    calm = _CALM * float(np.min(variance / (rows**2).sum(axis=1))) / sd
    limit = max(min(sqrt(max(calm, 0.0)), most), least)
    return float(limit) if 0 < limit < inf else 1.0


def chosen_cap(edges: Array, counts: Array, sd: float, most: float, margin: float = _MARGIN) -> float:
    """R2: `margin` times the first edge beyond which no records are counted; `most` in a heavy tail, and at most that.

    edges (k,), counts (k + 1,): noisy numbers of records in the cells between them, with noise of the given sd.

    >>> edges, counts = np.array(_EDGES), np.array([500.0, 300.0, 90.0, 3.0, -4.0, 2.0, 0.0, 0.0, 3.0, -2.0, 0.0, 0.0])
    >>> chosen_cap(edges, counts, 5.0, 50.0), chosen_cap(edges, counts[::-1], 5.0, 50.0)
    (0.75, 50.0)
    """
    first = _uncounted(edges, counts, sd)
    return most if first > _HEAVY else float(min(margin * edges[first], most))


def _uncounted(edges: Array, counts: Array, sd: float) -> int:
    """The first edge beyond which no records are counted; the number of edges if there is none."""
    beyond = np.cumsum(counts[::-1])[::-1][1:]
    counted = np.flatnonzero(beyond >= _COUNTED * _noise(edges, sd))
    return 0 if not len(counted) else int(counted[-1]) + 1


def _noise(edges: Array, sd: float) -> Array:
    """The sd of the noise in the number of records beyond each edge."""
    return np.asarray(sd * np.sqrt(np.arange(len(edges), 0, -1)))
