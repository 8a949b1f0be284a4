"""Private building blocks: record maps whose sensitivity is exact, and quantiles."""

from confide.mechanisms.column import ColumnMoments
from confide.mechanisms.moments import ClippedResponse, ResidualRows, WeightedRows
from confide.mechanisms.quantile import Histogram, Quantile

__all__ = ["ClippedResponse", "ColumnMoments", "Histogram", "Quantile", "ResidualRows", "WeightedRows"]
