"""Private building blocks: record maps whose sensitivity is exact, and quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.mechanisms.column import ColumnMoments
    from confide.mechanisms.moments import ClippedResponse, ResidualRows, WeightedRows
    from confide.mechanisms.quantile import Histogram, Quantile
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ClippedResponse": "confide.mechanisms.moments",
            "ColumnMoments": "confide.mechanisms.column",
            "Histogram": "confide.mechanisms.quantile",
            "Quantile": "confide.mechanisms.quantile",
            "ResidualRows": "confide.mechanisms.moments",
            "WeightedRows": "confide.mechanisms.moments",
        },
    )

__all__ = ["ClippedResponse", "ColumnMoments", "Histogram", "Quantile", "ResidualRows", "WeightedRows"]
