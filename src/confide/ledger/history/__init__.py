"""What a ledger has recorded: the hash chain, its verification, the statement, what was published."""
