"""`cf.intervals`: one parameter at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.methods.intervals.quantile import Histogram, Quantile
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "Histogram": "confide.methods.intervals.quantile",
            "Quantile": "confide.methods.intervals.quantile",
        },
    )

__all__ = ["Histogram", "Quantile"]
