"""Moments of several columns at once."""
