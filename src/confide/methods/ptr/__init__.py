"""Propose-test-release: classic, generalised, and by safety bounds."""
