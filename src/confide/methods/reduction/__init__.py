"""Several columns in fewer: correlations and principal components from noisy joint moments."""
