"""How many PSUs, or clusters, hold records, at least: by how many records each holds, cut at caps.

N_i is the number of records in PSU i. With caps 1 <= m_1 <= m_2, whole numbers,

    R_1 = sum_i min(N_i, m_1),    R_2 = sum_i min(max(N_i - m_1, 0), m_2 - m_1),

and K, the number of PSUs with N_i > 0, is at least R_1/m_1, and at least (R_1 + R_2)/m_2, as min(N, m) <= m [N > 0]. A PSU that holds next
to no record counts next to nothing, as it tells next to nothing of how PSUs differ. m_1 is the number of records over that of all PSUs,
what each holds where they are spread evenly; m_2 the stated size of a PSU, what each holds where they fill whole PSUs.

A record is in one PSU: one that comes or goes moves one N_i by 1, and with it one of the two, which share out the whole numbers up to m_2,
by 1 at most. So both together have sensitivity 1, whatever the caps are, which may come from earlier noisy numbers. Source: derived here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.protocol import Noisy

__all__ = ["COUNTED", "FEW", "LEAST_DF", "caps_of", "fewest", "fewest_behind", "ramps_of"]

Array = NDArray[np.float64]

#: How many numbers say it.
COUNTED = 2
#: Degrees of freedom, one less than PSUs, below which PSUs do not show how much they differ.
LEAST_DF = 2.5
#: Why there is no interval then.
FEW = (
    "the records are not known to lie in more than three PSUs, or clusters, by a noisy count, and fewer do not show how much these differ; "
    "ask for a subgroup that lies in more of them, or for a larger budget"
)
# The chance that a bound is above the number itself, shared out among the two that the larger is taken of.
_MISSED = 0.05
_MOST = 1 << 40


def caps_of(records: Any, count: float, size: float) -> NDArray[np.int64]:
    """(m_1, m_2), each as `records` is. records: noisy numbers; count: of all PSUs; size: of one, as stated.

    >>> caps_of(np.array([600.0, 1.0]), 40.0, 30.0).tolist()
    [[15, 1], [30, 30]]
    """
    low = np.clip(np.rint(np.asarray(records) / count), 1, _MOST)
    return np.stack([low, np.maximum(low, min(round(size), _MOST))]).astype(np.int64)


def ramps_of(own: NDArray[np.int64], caps: NDArray[np.int64]) -> NDArray[np.int64]:
    """What PSUs with N = own add to (R_1, R_2).

    >>> ramps_of(np.array([2, 20, 99]), np.array([[15], [30]])).tolist()
    [[2, 15, 15], [0, 5, 15]]
    """
    low, high = caps
    first = np.minimum(own, low)
    return np.stack([first, np.minimum(own, high) - first])


def fewest(ramps: Array, sd: float, caps: Array) -> Array:
    """A lower bound of K, above it by a chance of one in twenty at most. ramps: (R_1, R_2), noisy; sd: of the noise of each.

    >>> fewest(np.array([[150.0], [140.0]]), 0.0, np.array([[15], [30]])).tolist()
    [10.0]
    """
    (first, second), (low, high) = ramps, caps
    two = high > low
    z = -special.ndtri(np.where(two, _MISSED / 2, _MISSED))
    even, whole = (first - z * sd) / low, (first + second - z * np.sqrt(2) * sd) / high
    return np.asarray(np.where(two, np.maximum(even, whole), even))


def fewest_behind(noisy: Noisy, ruler: Array) -> float:
    """The bound by a meat that holds both numbers at the end of its diagonal. ruler: what it is read with, (..., what a record counts, m_1,
    m_2).
    """
    record, *caps = ruler[-3:]
    ramps = np.diag(noisy.decode())[-COUNTED:] / record
    return float(fewest(ramps, float(np.sqrt(noisy.variance) / record), np.array(caps)))
