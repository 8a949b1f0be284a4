"""Searches for records and neighbors that break a stated bound."""
