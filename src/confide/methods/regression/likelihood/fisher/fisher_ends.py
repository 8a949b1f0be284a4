"""How far out the public bounds of features reach, and the records that lie there: where the bound of the last rounds should reach, too.

A feature whose bounds reach beyond five private half-widths is at risk from records that count less, and the reading has a bound of that
bias (`fisher_figures`). Others have none: so the records at the ends of THEIR bounds should count in full. Such a record has one feature
at an end of its bounds and all others at their means. Where noise leaves the bound short of it, the feature is at risk, too, and what one
record misses may be more than the bound, by which the excess counts it. All of it is post-processing of public and noisy numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.ranges import ranged
from confide.aggregates.lines.rows import Box
from confide.aggregates.scores.fisher_rows import FisherRows
from confide.schema import Design

__all__ = ["AT_RISK", "at_risk", "beyond", "lengths_at_ends", "missed_at_ends", "reaches"]


#: Coefficients of features whose bounds reach beyond so many private half-widths are at risk from records that count less.
AT_RISK = 5.0
# A range of sqrt(3) sds has this ratio at 1.75; beyond it a few far records have widened the range.
_WIDE = 2.6
# Edges of bounds lie a factor of 1.19 apart, and lines move on: a score is in full with nine tenths of it.
_FULL = 1.1
# More digits are the arithmetic's, not the data's.
_DIGITS = 3


def reaches(design: Design, box: Box, mean: Array, sd: Array, *, private: bool) -> Mapping[int, tuple[float, float]]:
    """By place among the terms of more than two values: how far its public bounds lie from its private mean in private sds, and from
    the middle of its private range in half-widths of sqrt(3) sds. mean, sd: of the features in units of `box`; private: whether that is a
    private range; else both are from the moments.
    """
    middle, half = box.arrays
    public_middle, public_half = Box.of(design).arrays
    centre, width = (public_middle - middle) / half, public_half / half
    sds = (np.abs(centre - mean) + width) / sd
    halves = np.abs(centre) + width if private else sds / sqrt(3)
    return {j: (float(sds[j]), float(halves[j])) for j in ranged(design)}


def at_risk(sds: float, halves: float) -> bool:
    """Whether bounds reach far beyond where most records are: beyond their private range, or, within one that a few far records have
    made wide, by their sds.
    """
    return halves > AT_RISK or sds > max(AT_RISK, _WIDE * halves)


def beyond(ends: Array, bound: float) -> Array:
    """How many times the bound a score at the ends of each feature's bounds may miss, at least 1; 0 where it counts in full, (terms,).

    ends: M of `lengths_at_ends`, of a family that weighs score and information alike.

    >>> beyond(np.array([0.0, 3.0, 4.5, 9.0]), 3.0).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    return np.where(ends > _FULL * bound, np.maximum(ends / bound - 1, 1.0), 0.0)


def lengths_at_ends(design: Design, rows: FisherRows, mean: Array, sd: Array, *, private: bool) -> tuple[Array, Array]:
    """(M, N), (terms,) each: the largest of a record at either end of a feature's bounds, 0 of features at risk and of two values; of rows
    at a line. M is the length that its score can have, over the part of a bound that scores count in full within.
    """
    safe, z = _at_ends(design, rows, mean, sd, private=private)
    lengths = rows.lengths_of(z)
    most, whole = (_largest(own, safe, len(design.terms)) for own in lengths)
    # scores count in full within a part of the bound, whatever the information
    return np.round(most / (rows.family.score_part or 1.0), _DIGITS), np.round(whole, _DIGITS)


def missed_at_ends(design: Design, rows: FisherRows, mean: Array, sd: Array, moments: Array, *, private: bool) -> Array:
    """What the score of a record at either end of a feature's bounds misses at most, in units of the bound, (terms,): all others where
    they are on average there, as a square is with what it is the square of; residuals up to the largest outcome. 0 as above.

    moments: of z, (k, k).
    """
    assert rows.frame is not None
    safe, z = _at_ends(design, rows, mean, sd, private=private)
    middle, half = Box.of(design).arrays
    centre, unit = rows.frame.box.arrays
    low, high = ((middle + side * half - centre) / unit for side in (-1.0, 1.0))
    for i, j in enumerate(safe):
        # the others' means move with how far the end is from the mean
        slope = (moments[1:, 1 + j] - mean * mean[j]) / sd[j] ** 2
        slope[j] = 0.0
        at = [i, len(safe) + i]
        z[at, 1:] += np.outer(z[at, 1 + j] - mean[j], slope)
    z[:, 1:] = np.clip(z[:, 1:], low, high)
    return np.round(_largest(rows.missed(*rows.sizes_of(z)[1:]), safe, len(design.terms)), _DIGITS)


def _at_ends(design: Design, rows: FisherRows, mean: Array, sd: Array, *, private: bool) -> tuple[list[int], Array]:
    """Features that are not at risk without it, and z of a record at the lower end of each, then at the upper, all others at their means,
    (2 features, k).
    """
    assert rows.frame is not None
    middle, half = Box.of(design).arrays
    centre, unit = rows.frame.box.arrays
    found = reaches(design, rows.frame.box, mean, sd, private=private)
    safe = [j for j, own in found.items() if not at_risk(*own)]
    z = np.tile(np.concatenate([[1.0], mean]), (2, len(safe), 1))
    for i, j in enumerate(safe):
        z[:, i, 1 + j] = (middle[j] - centre[j] + np.array([-half[j], half[j]])) / unit[j]
    return safe, z.reshape(-1, z.shape[-1])


def _largest(of: Array, places: list[int], terms: int) -> Array:
    """The larger of either end, by feature, 0 elsewhere."""
    whole = np.zeros(terms)
    whole[places] = of.reshape(2, -1).max(axis=0)
    return whole
