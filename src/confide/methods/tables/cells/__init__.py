"""Cells of a table: layout, strategy, margins that add up, intervals, and the table as it is shown."""
