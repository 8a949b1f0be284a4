"""What is added up: maps of one record to integers and exact statistics, each with its sensitivity proved in its docstring."""

from confide.sums.columns import ColumnMoments

__all__ = ["ColumnMoments"]
