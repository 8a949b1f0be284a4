"""Fisher scoring in rounds, for every family of the likelihood."""
