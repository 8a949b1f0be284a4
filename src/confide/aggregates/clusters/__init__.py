"""Sums over the rows of a cluster or a unit: meats, their limits, deviations from a unit's own means."""
