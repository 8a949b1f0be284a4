"""Errata that print their numbers: `confide lab errata NAME`, a row of evidence/errata.md each, most in less than a second."""

from confide_lab.errata.register import Finding, names, rows

__all__ = ["Finding", "names", "rows"]
