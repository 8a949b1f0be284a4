"""The other trust: a table is protected before anyone sees it, and analysed from the protected records alone.

`fit` needs only the protected table, which says itself how much noise its columns carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.local.estimates import ProtectedEstimates, fit
    from confide.local.protection import Noised, Protection
    from confide.local.table import read_protected
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "Noised": "confide.local.protection",
            "Protection": "confide.local.protection",
            "ProtectedEstimates": "confide.local.estimates",
            "fit": "confide.local.estimates",
            "read_protected": "confide.local.table",
        },
    )

__all__ = ["Noised", "ProtectedEstimates", "Protection", "fit", "read_protected"]
