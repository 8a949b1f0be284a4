"""Score rows: whitened records, their rounds and limits."""
