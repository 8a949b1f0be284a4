"""The line within clusters."""
