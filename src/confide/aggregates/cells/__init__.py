"""Cells, levels and kernel points: sums by place."""
