"""Where a ledger is kept: the two databases, their tables, and the statements that read and write rows."""
