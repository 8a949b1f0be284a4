"""Audits by running a mechanism: what its outputs tell of two neighbours, against exact laws where they are known."""
