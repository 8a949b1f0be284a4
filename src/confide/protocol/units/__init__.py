"""Whose records count and how many: units, their weights and levels, subgroups."""
