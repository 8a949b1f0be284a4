"""Arrays by what they hold: the names that annotations of the whole package use."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


def finite(values: Any) -> Array:
    """A copy as doubles in which what is not a finite number is 0.

    >>> finite([1.0, np.nan, -np.inf]).tolist()
    [1.0, 0.0, 0.0]
    """
    found = np.array(values, dtype=np.float64)
    found[~np.isfinite(found)] = 0.0
    return found


def median(values: Array) -> float:
    """The median of numbers, NaN of none. NumPy's own loads its masked arrays first, for 9 ms of CPU.

    >>> median(np.array([3.0, 1.0, 2.0])), median(np.array([4.0, 1.0]))
    (2.0, 2.5)
    """
    ordered, middle = np.sort(values, axis=None), values.size // 2
    if not values.size:
        return np.nan
    return float(ordered[middle] if values.size % 2 else (ordered[middle - 1] + ordered[middle]) / 2)
