"""Cells against cells: differences, tests that a released table answers, their power, intervals that hold together."""
