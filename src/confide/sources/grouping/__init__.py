"""Rows of one unit or cluster brought together, and which of them count."""
