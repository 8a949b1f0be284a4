"""Means by the levels of factors."""
