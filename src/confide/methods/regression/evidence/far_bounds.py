"""Which features have bounds so far from their values that a few records out there could move a coefficient unseen.

reach: the farthest point of a feature's public bounds from its private mean, in its private sds. Up to 25 of them the limits of scores and
leverages look after what can be counted, and so they do up to where a record with a residual of six sds would be limited at all: with
many records limits are far out. Beyond, a coefficient is answered only where private counts show a short tail: at most .5 % of the records
beyond five sds in the histogram of ranges, noise counted against it; or, where scores have no long tail, at most .5 % there as counted
and at most .5 % as far out in the metric as every record beyond ten sds is, noise counted against these. It is never answered beyond a
reach of 100, where one record can outweigh a sample of ten thousand. A long tail goes on where it can be seen no more; that a short one
ends is an assumption, which the table names. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.ranges import CELLS
from confide.schema import Design, Integer, Numeric, Schema

__all__ = ["FAR", "NEAR", "NOTED", "RESIDUAL", "far", "few_far", "short_tail", "too_wide"]


#: The first and the last reach between which tails decide; and how many sds of its own bounds would do.
NOTED, FAR, NEAR = 25.0, 100.0, 10.0
# A tail is short with at most this share of the records beyond so many sds; so many sds of the count's noise are added to it.
_SHARE, _BEYOND, _DOUBT = 0.005, 5.0, 1.5
# Farther out, of all records.
_OUTER = 10.0
#: A residual so large, in sds: where it is not limited at the bounds, these are not far.
RESIDUAL = 6.0
# 95 % of a normal distribution are so many sds wide.
_WIDE = 3.92


def far(reach: float, limited: float, tail: bool) -> bool:
    """Whether a feature of that reach is not answered for. limited: from how many of its sds on a residual of six sds makes a score
    that is limited; tail: whether private counts show a short one.

    >>> far(20.0, 9.0, False), far(50.0, 60.0, False), far(50.0, 30.0, True), far(50.0, 30.0, False), far(200.0, 300.0, True)
    (False, False, False, True, True)
    """
    return reach > FAR or (reach > max(NOTED, limited) and not tail)


def few_far(beyond: Array, noise: Array, edges: Array, per_sd: float, records: float) -> bool:
    """Whether few records are so long in the metric as every record beyond ten of a feature's sds is.

    beyond, noise, edges (k,): the noisy number of records longer than each edge, and its sd; per_sd: the least length of a record per sd
    of the feature; records: their noisy number.

    >>> counts, noise = np.array([400.0, 5.0]), np.array([10.0, 7.0])
    >>> few_far(counts, noise, np.array([2.0, 8.0]), 1.0, 10_000.0), few_far(counts, noise, np.array([2.0, 12.0]), 1.0, 10_000.0)
    (True, False)
    """
    inside = np.flatnonzero(edges <= _OUTER * per_sd)
    if not inside.size:
        return False
    last = inside[-1]
    return bool(max(float(beyond[last]), 0.0) + _DOUBT * float(noise[last]) <= _SHARE * records)


def short_tail(
    counts: Array,
    sd: float,
    records: float,
    bounds: tuple[float, float],
    mean: float,
    spread: float,
    doubt: float = _DOUBT,
) -> bool:
    """Whether a feature's noisy histogram, 64 equal cells between its bounds, shows a short tail.

    sd: of the noise in each cell; records: their noisy number; mean, spread: of the feature, in the units of the bounds; doubt: how many
    sds of the noise count against it.
    """
    low, high = bounds
    middles = low + (high - low) * (np.arange(CELLS) + 0.5) / CELLS
    # up to twice as far: beyond, noise alone adds up over the empty cells
    away = np.abs(middles - mean) / max(spread, 1e-300)
    own = (away > _BEYOND) & (away <= max(2 * _BEYOND, _BEYOND + 2 * (high - low) / CELLS / max(spread, 1e-300)))
    noise = sqrt(float(own.sum())) * sd
    return bool(max(float(counts[own].sum()), 0.0) + doubt * noise <= _SHARE * records)


def too_wide(design: Design, schema: Schema) -> Iterator[str]:
    """What a plan says beforehand of features whose bounds reach far beyond their typical spread."""
    for term in design.terms:
        column = schema[term.plain] if term.plain is not None else None
        spread = column.spread if isinstance(column, Numeric | Integer) else None
        if spread is None:
            continue
        sd, mean = (spread.high - spread.low) / _WIDE, (spread.low + spread.high) / 2
        reach = max(term.high - mean, mean - term.low) / sd
        if reach > NOTED:
            low, high = max(mean - NEAR * sd, term.low), min(mean + NEAR * sd, term.high)
            then = (
                "it will go unanswered unless records are so many that none is limited there"
                if reach > FAR
                else "it goes unanswered unless private counts show a short tail"
            )
            yield (
                f"the bounds of {term.name} reach {reach:.0f} typical standard deviations: a few records out there could move its "
                f"coefficient and no private count can see them, so that {then}; declare it within [{low:.2g}, {high:.2g}] "
                "(values beyond count at the bound), or ask limit='none'"
            )
