"""Planted faults: mechanisms and methods with one fault each, that the audit, the contract or a test must catch."""
