"""Linear regression."""

from confide.regression.linear import LinearEstimates
from confide.regression.ssp import SSP

__all__ = ["SSP", "LinearEstimates"]
