"""The budget book: what may be spent on a dataset, what was, and the proof that nobody changed it."""

from confide.ledger.book import Ledger
from confide.ledger.records import Charge, Entry, LedgerState, Receipt, Verification

__all__ = ["Charge", "Entry", "Ledger", "LedgerState", "Receipt", "Verification"]
