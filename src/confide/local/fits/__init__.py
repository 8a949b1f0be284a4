"""Fits to protected records: losses corrected for noise, their means, terms and minimizers."""
