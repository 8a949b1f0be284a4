"""What a ledger counts in: its currencies, what each guarantee costs there, what the rest buys."""
