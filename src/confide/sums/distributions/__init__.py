"""Cumulative counts of a column and the bins that are fitted to them."""
