"""Sums by cell: counts and moments of records in the cells of a table, weighted and not."""
