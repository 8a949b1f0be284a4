"""Tests and comparisons between cells of a table."""
