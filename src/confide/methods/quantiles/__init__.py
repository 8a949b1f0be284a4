"""Quantiles and the distribution of a column."""
