"""The ledger: the budget of a dataset, its charges, and the proof that no entry was changed."""

from confide.ledger.ledger import Ledger as Ledger
from confide.ledger.names import same_name as same_name
from confide.ledger.records import (
    Charge as Charge,
    Entry as Entry,
    LedgerState as LedgerState,
    Quote as Quote,
    Receipt as Receipt,
    Verification as Verification,
)
