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
