"""What is added up: maps of one record to integers and exact statistics, each with its sensitivity proved in its docstring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.aggregates.column import ColumnMoments
    from confide.aggregates.moments import ClippedResponse, ResidualRows, WeightedRows
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ClippedResponse": "confide.aggregates.moments",
            "ColumnMoments": "confide.aggregates.column",
            "ResidualRows": "confide.aggregates.moments",
            "WeightedRows": "confide.aggregates.moments",
        },
    )

__all__ = ["ClippedResponse", "ColumnMoments", "ResidualRows", "WeightedRows"]
