"""Which features have bounds so far from their values that a few records out there could move a coefficient unseen.

reach: the farthest point of a feature's public bounds from its private mean, in its private sds. Up to 25 of them the limits of scores and
leverages look after what can be counted. Beyond, a coefficient is answered only where the private histogram of ranges shows a short tail,
at most .5 % of the records beyond five sds, its noise counted against it; and never beyond a reach of 100, where one record can outweigh
a sample of ten thousand. A long tail goes on where it can be seen no more; that a short one ends is an assumption, which the table names.
All of it is post-processing.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.ranges import CELLS

__all__ = ["FAR", "NEAR", "NOTED", "far", "short_tail"]

Array = NDArray[np.float64]

#: The first and the last reach between which the tail decides; and how many sds of its own bounds would do.
NOTED, FAR, NEAR = 25.0, 100.0, 10.0
# A tail is short with at most this share of the records beyond so many sds; so many sds of the count's noise are added to it.
_SHARE, _BEYOND, _DOUBT = 0.005, 5.0, 1.5


def far(reach: float, tail: bool) -> bool:
    """Whether a feature of that reach is not answered for. tail: whether its histogram shows a short one.

    >>> far(20.0, False), far(50.0, True), far(50.0, False), far(200.0, True)
    (False, False, True, True)
    """
    return reach > FAR or (reach > NOTED and not tail)


def short_tail(
    counts: Array, sd: float, records: float, bounds: tuple[float, float], mean: float, spread: float
) -> bool:
    """Whether a feature's noisy histogram, 64 equal cells between its bounds, shows a short tail.

    sd: of the noise in each cell; records: their noisy number; mean, spread: of the feature, in the units of the bounds.
    """
    low, high = bounds
    middles = low + (high - low) * (np.arange(CELLS) + 0.5) / CELLS
    # up to twice as far: beyond, noise alone adds up over the empty cells
    away = np.abs(middles - mean) / max(spread, 1e-300)
    own = (away > _BEYOND) & (away <= max(2 * _BEYOND, _BEYOND + 2 * (high - low) / CELLS / max(spread, 1e-300)))
    noise = sqrt(float(own.sum())) * sd
    return bool(max(float(counts[own].sum()), 0.0) + _DOUBT * noise <= _SHARE * records)
