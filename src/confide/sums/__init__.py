"""What is added up: maps of one record to integers and exact statistics, each with its sensitivity proved in its docstring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._helpers import names

if TYPE_CHECKING:
    from confide.sums.columns import ColumnMoments
    from confide.sums.linear_rows import LinearRows
else:
    __getattr__, __dir__ = names(
        __name__,
        {"ColumnMoments": "confide.sums.columns", "LinearRows": "confide.sums.linear_rows"},
    )

__all__ = ["ColumnMoments", "LinearRows"]
