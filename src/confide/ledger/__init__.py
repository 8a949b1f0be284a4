"""The ledger: what may be spent on a data set, what was, and the proof that nobody changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._helpers import names

if TYPE_CHECKING:
    from confide.ledger.ledger import Ledger
    from confide.ledger.names import same_name
    from confide.ledger.records import Charge, Entry, LedgerState, Quote, Receipt, Verification
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "Charge": "confide.ledger.records",
            "Entry": "confide.ledger.records",
            "Ledger": "confide.ledger.ledger",
            "LedgerState": "confide.ledger.records",
            "Quote": "confide.ledger.records",
            "Receipt": "confide.ledger.records",
            "Verification": "confide.ledger.records",
            "same_name": "confide.ledger.names",
        },
    )

__all__ = ["Charge", "Entry", "Ledger", "LedgerState", "Quote", "Receipt", "Verification", "same_name"]
