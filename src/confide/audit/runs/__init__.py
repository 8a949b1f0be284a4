"""Audits by running a mechanism: what its outputs tell of two neighbors, against exact laws where they are known."""
