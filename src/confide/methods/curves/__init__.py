"""Curves: kernel regression on public points."""
