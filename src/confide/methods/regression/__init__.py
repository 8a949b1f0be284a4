"""Regression: one method a folder, with its question, draws, reading and results."""
