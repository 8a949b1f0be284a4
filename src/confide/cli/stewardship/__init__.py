"""Commands of a data steward: schema, ledger, audit, record of disclosure, studio."""
