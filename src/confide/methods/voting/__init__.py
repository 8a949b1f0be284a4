"""Votes: which of several levels most records have, and what teachers' votes on public rows teach a student."""
