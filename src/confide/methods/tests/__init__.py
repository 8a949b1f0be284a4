"""Tests with rounds of their own; tests that a table answers are questions to the table."""
