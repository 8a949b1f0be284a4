"""Commands, a group a file."""
