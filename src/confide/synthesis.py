"""Synthetic tables from a release: rows for those who need rows, and the release beside them for those who need intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.methods.synthesis.data import SyntheticData
    from confide.methods.synthesis.table import SyntheticTable
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "SyntheticData": "confide.methods.synthesis.data",
            "SyntheticTable": "confide.methods.synthesis.table",
        },
    )

__all__ = ["SyntheticData", "SyntheticTable"]
