"""Searches for records and neighbours that break a stated bound."""
