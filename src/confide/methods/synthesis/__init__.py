"""Synthetic tables."""
