"""Arrays by what they hold: the names that annotations of the whole package use."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Whole"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
