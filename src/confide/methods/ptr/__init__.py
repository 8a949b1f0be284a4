"""Propose-test-release: classic, generalized, and by safety bounds."""
