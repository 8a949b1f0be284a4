"""Votes: which of several levels most records have, and what teachers' votes on public records teach a student."""
