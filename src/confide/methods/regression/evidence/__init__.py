"""What several regressions read from a release: normal equations, sandwich, R squared, sparse levels, advice on sizes."""
