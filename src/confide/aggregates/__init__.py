"""What is added up: maps of one record to integers and exact statistics, each with its sensitivity proved in its docstring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.aggregates.column import ColumnMoments
    from confide.aggregates.lines.linear_rows import LinearRows
else:
    __getattr__, __dir__ = names(
        __name__,
        {"ColumnMoments": "confide.aggregates.column", "LinearRows": "confide.aggregates.lines.linear_rows"},
    )

__all__ = ["ColumnMoments", "LinearRows"]
