"""The cap R2 of leverage weights min(1, R2/|z|^2), beyond the records of a noisy histogram of |z|^2; and how far a public box reaches.

Weights are silent as long as they are 1. A record beyond the cap loses a part of its weight, and the line leans away from it: by
A^{-1} sum (1 - w) z e, which no private number can bound sharply while records are too few to be counted. So the cap lies above everything
that can be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.rows import Box
from confide.regression.scaling import extent
from confide.schema import Design

__all__ = ["chosen_cap", "largest"]

Array = NDArray[np.float64]

# A number of records beyond an edge is counted when it is at least this many sds of its noise.
_COUNTED = 3.0
# The cap is this far beyond the first edge without counted records beyond it, in squared length.
import os
_MARGIN = float(os.environ.get("M", "2"))


def largest(design: Design, box: Box) -> float:
    """The largest |z|^2 that the public bounds allow in a box: from there on nothing is weighed."""
    low, high = extent(design, box)
    return float(1 + (np.maximum(np.abs(low), np.abs(high)) ** 2).sum())


def chosen_cap(edges: Array, counts: Array, sd: float) -> float:
    """R2: twice the first edge beyond which no records are counted; twice the last where they are everywhere.

    edges (k,), counts (k + 1,): noisy numbers of records in the cells between them, with noise of the given sd.

    >>> chosen_cap(np.array([1.0, 2.0, 4.0, 8.0]), np.array([500.0, 300.0, 90.0, 3.0, -4.0]), 5.0)
    8.0
    """
    beyond = np.cumsum(counts[::-1])[::-1][1:]
    noise = sd * np.sqrt(np.arange(len(edges), 0, -1))
    counted = np.flatnonzero(beyond >= _COUNTED * noise)
    first = 0 if not len(counted) else min(int(counted[-1]) + 1, len(edges) - 1)
    return float(_MARGIN * edges[first])
