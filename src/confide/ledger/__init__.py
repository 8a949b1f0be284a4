"""The ledger: what may be spent on a data set, what was, and the proof that nobody changed it."""

from confide.ledger.book import Ledger
from confide.ledger.names import same_name
from confide.ledger.records import Charge, Entry, LedgerState, Quote, Receipt, Verification

__all__ = ["Charge", "Entry", "Ledger", "LedgerState", "Quote", "Receipt", "Verification", "same_name"]
