"""Exact samplers, one law a file, on words of secret randomness."""
