"""Rows of lines: maps of one record whose exact sums all regressions read."""
