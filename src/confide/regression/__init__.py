"""Linear regression."""

from confide.regression.linear import LinearEstimates
from confide.regression.ssp import SSP
from confide.regression.ssp2 import SSP2

__all__ = ["SSP", "SSP2", "LinearEstimates"]
