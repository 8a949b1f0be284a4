"""Draws that are watched: what a method asked for, replayed."""
