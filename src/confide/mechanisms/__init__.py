"""Private building blocks: record maps whose sensitivity is exact."""

from confide.mechanisms.column import ColumnMoments
from confide.mechanisms.moments import ClippedResponse, ResidualRows, WeightedRows

__all__ = ["ClippedResponse", "ColumnMoments", "ResidualRows", "WeightedRows"]
